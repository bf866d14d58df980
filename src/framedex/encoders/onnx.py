"""Any image model in ONNX as an encoder, by ONNX Runtime."""

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from framedex.arrays import Vectors
from framedex.encoders.onnx_model import Layout, OnnxModel
from framedex.encoders.onnx_pictures import Resize, fitted, normalised
from framedex.encoders.onnx_settings import (
    OnnxSettings,
    checked,
    model_path,
    name_of,
    parse_name,
    read_sidecar,
    sidecar_of,
    text_of,
)
from framedex.encoders.weights import sha256_of
from framedex.errors import InvalidEmbedding, InvalidInput
from framedex.records import Weights
from framedex.settings import available_cpus

_IMAGENET = {
    "rgb": ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
    "bgr": ((0.406, 0.456, 0.485), (0.225, 0.224, 0.229)),
}
_AS_THEY_ARE = ((0.0, 0.0, 0.0), (1.0, 1.0, 1.0))
# Of MobileNetV2's features on 1,250 photographs, one of which is like another at the first; see docs/encoders.md.
_THRESHOLDS = (0.1, 0.2, 0.28, 0.33, 0.38)
_MOST = 16384  # values of a vector: more are no description, but a picture again


@dataclass(frozen=True)
class Preparation:
    """The steps from an image to the input of a model; see :class:`~framedex.encoders.onnx_settings.OnnxSettings`."""

    size: tuple[int, int]
    scale: float
    mean: tuple[float, float, float]
    std: tuple[float, float, float]
    colours: Literal["rgb", "bgr"]
    layout: Layout
    resize: Resize
    crop: float
    fill: int
    pool: Literal["mean", "first"]


class OnnxEncoder:
    """An image model in ONNX, whose vectors are one of its tensors.

    Settings that are not given are those of the file beside the model (``model.toml`` beside ``model.onnx``), else what
    the model says, else the defaults. Which output is taken by default: of a classifier the input of its last layer,
    of other models their output. A tensor of shape (N, C, H, W) is averaged over its places, one of shape (N, T, C)
    over its tokens, or its first token is taken. Vectors are scaled to unit length. Where a model finds nothing at all
    in a picture, and its vector is zero, all values are the same and negative: such pictures are like each other.

    The name says all that was given: it leads to the same encoder in any process while the file stays where it is.

    Args:
        path: of the model file.
        size: height and width of the input in pixels, or one number for both; only needed where the model leaves them
            open.
        scale: what the largest pixel value becomes before the mean is taken off: 1 by default, or 255.
        mean: of each colour, in the order of the input. By default that of ImageNet where *scale* is 1, else 0.
        std: deviations of each colour, likewise.
        colours: order of the colours in the input, ``rgb`` by default.
        layout: order of the input's axes, ``nchw`` or ``nhwc``; by default what its shape says.
        resize: ``stretch`` (default), ``crop`` or ``letterbox``.
        crop: the share of the largest middle part that ``crop`` takes, in (0, 1]; 0.875 by default.
        fill: the grey level that ``letterbox`` fills up with; 114 by default.
        output: name of a tensor, also of one inside of the model.
        pool: ``mean`` (default) or ``first``.
        thresholds: five ascending cosine distances of the cluster levels.

    Raises:
        NotFound: there is no such file.
        InvalidInput: it is no model that takes one picture, or a setting cannot be.
        MissingDependency: ONNX Runtime is not installed.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        size: int | tuple[int, int] | None = None,
        scale: float | None = None,
        mean: Sequence[float] | None = None,
        std: Sequence[float] | None = None,
        colours: Literal["rgb", "bgr"] | None = None,
        layout: Layout | None = None,
        resize: Resize | None = None,
        crop: float | None = None,
        fill: int | None = None,
        output: str | None = None,
        pool: Literal["mean", "first"] | None = None,
        thresholds: Sequence[float] | None = None,
    ) -> None:
        given = {
            "size": size, "scale": scale, "mean": mean, "std": std, "colours": colours, "layout": layout,
            "resize": resize, "crop": crop, "fill": fill, "output": output, "pool": pool, "thresholds": thresholds,
        }  # fmt: skip
        self._open(path, checked({name: value for name, value in given.items() if value is not None}, "OnnxEncoder"))

    @classmethod
    def by_name(cls, name: str) -> "OnnxEncoder":
        """Return the encoder of a name: ``onnx:<path>[?<setting>=<value>&…]``.

        Raises:
            NotFound: there is no such file.
            InvalidInput: the name cannot be read, or see the class.
            MissingDependency: ONNX Runtime is not installed.
        """
        path, given = parse_name(name)
        made = cls.__new__(cls)
        made._open(path, given)
        return made

    def _open(self, path: str | os.PathLike[str], given: OnnxSettings) -> None:
        whole = model_path(path)
        wanted = given.over(read_sidecar(whole))
        self.name = name_of(whole, given)
        sha256 = sha256_of(whole)
        self._model = OnnxModel(whole, wanted)
        self._prepared = _preparation(self._model, wanted)
        self._black, self._step = _affine(self._prepared)
        self.min_side_px = max(self._prepared.size)
        self.thresholds = wanted.thresholds or _THRESHOLDS
        self.files: tuple[Path, ...] = (whole, sidecar_of(whole), *self._model.files.values())
        grey = np.full((*self._prepared.size, 3), 128, np.uint8)
        self.dimension = len(self.values(grey))
        if self.dimension > _MOST:
            raise InvalidInput(
                f"tensor {self._model.output!r} of the model {os.fspath(whole)!r} has {self.dimension} values a "
                f"picture; a vector has at most {_MOST}: name another output"
            )
        settings = {name: text_of(value) for name, value in vars(self._prepared).items()}
        self.weights: Weights | None = Weights(
            path=os.fspath(whole),
            sha256=sha256,
            settings=settings | {"output": self._model.output} | self._model.hashes(),
        )

    def prepare(self, pixels: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
        """Return a picture in the model's size: uint8, shape (height, width, 3), RGB."""
        how = self._prepared
        return fitted(pixels, *how.size, resize=how.resize, crop=how.crop, fill=how.fill)

    def encode_images(self, batch: npt.NDArray[np.uint8]) -> Vectors:
        """Return float32, shape (N, D), unit length; a picture has the same vector in every batch.

        Args:
            batch: uint8, shape (N, height, width, 3), RGB.

        Raises:
            InvalidEmbedding: the model makes values that are not finite.
        """
        if not len(batch):
            return np.empty((0, self.dimension), np.float32)
        with ThreadPoolExecutor(min(available_cpus(), len(batch)), thread_name_prefix="framedex-onnx") as pool:
            return np.stack(list(pool.map(self._vector, batch)))

    def _vector(self, picture: npt.NDArray[np.uint8]) -> Vectors:
        values = self.values(picture)
        length = float(np.linalg.norm(values))
        if not np.isfinite(length):
            raise InvalidEmbedding(
                f"encoder {self.name!r} makes values that are not finite; are scale, mean and std right?"
            )
        if length == 0:
            return np.full(len(values), -1 / np.sqrt(len(values)), np.float32)
        return np.asarray(values / length, np.float32)

    def values(self, picture: npt.NDArray[np.uint8]) -> npt.NDArray[np.float64]:
        """Return the vector of a prepared picture as the model makes it, of any length: float64, shape (D,)."""
        found = self._model.run(self._input(picture)).astype(np.float64)
        match found.ndim:
            case 1:
                return found
            case 2:
                return np.asarray(found[0] if self._prepared.pool == "first" else found.mean(axis=0))
            case 3:
                return np.asarray(found.mean(axis=(1, 2)))
        raise InvalidInput(
            f"tensor {self._model.output!r} of encoder {self.name!r} has the shape {found.shape} a picture; "
            "a vector is made of one axis, two (tokens) or three (channels, rows, columns)"
        )

    def _input(self, picture: npt.NDArray[np.uint8]) -> npt.NDArray[Any]:
        """Return a picture as the model takes it, without the axis of the batch."""
        how, dtype = self._prepared, self._model.shape.dtype
        if dtype is np.uint8:
            ordered = picture[:, :, ::-1] if how.colours == "bgr" else picture
            return ordered.transpose(2, 0, 1) if how.layout == "nchw" else ordered
        planes = normalised(picture, self._step, self._black, reverse=how.colours == "bgr").astype(dtype, copy=False)
        return planes if how.layout == "nchw" else planes.transpose(1, 2, 0)


def _preparation(model: OnnxModel, wanted: OnnxSettings) -> Preparation:
    shape, says = model.shape, f"the model {os.fspath(model.path)!r}"
    fixed = (shape.height, shape.width)
    size = wanted.size
    if size is None:
        if shape.height is None or shape.width is None:
            raise InvalidInput(f"{says} takes pictures of any size: say which, as size=224")
        size = (shape.height, shape.width)
    elif any(there not in (None, asked) for there, asked in zip(fixed, size, strict=True)):
        raise InvalidInput(f"{says} takes pictures of {fixed[0]}×{fixed[1]} (height × width), not {size[0]}×{size[1]}")
    whole = shape.dtype is np.uint8
    scale = wanted.scale or (255.0 if whole else 1.0)
    colours = wanted.colours or "rgb"
    mean, std = _IMAGENET[colours] if scale == 1 else _AS_THEY_ARE
    mean, std = wanted.mean or mean, wanted.std or std
    if whole and (scale, mean, std) != (255.0, *_AS_THEY_ARE):
        raise InvalidInput(f"{says} takes whole numbers, 0 to 255: no scale, mean or std can be applied")
    return Preparation(
        size=size,
        scale=scale,
        mean=mean,
        std=std,
        colours=colours,
        layout=shape.layout,
        resize=wanted.resize or "stretch",
        crop=wanted.crop or 0.875,
        fill=114 if wanted.fill is None else wanted.fill,
        pool=wanted.pool or "mean",
    )


def _affine(how: Preparation) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """Return what is taken off, and what pixels are multiplied by before that, for each colour."""
    std = np.array(how.std)
    return (np.array(how.mean) / std).astype(np.float32), (how.scale / 255 / std).astype(np.float32)
