"""ONNX image models as encoders, run by ONNX Runtime."""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from framedex.core.arrays import Vectors
from framedex.encoders.onnx_images import Resize, fit_image, normalise_image
from framedex.encoders.onnx_model import Layout, OnnxModel
from framedex.encoders.onnx_settings import (
    OnnxSettings,
    model_path,
    name_of,
    parse_name,
    parse_onnx_settings,
    read_onnx_sidecar,
    setting_text,
    sidecar_of,
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
_MAX_DIMENSION = 16384  # maximum length of a vector; longer outputs are images, not descriptors


@dataclass(frozen=True)
class OnnxPreparation:
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
    """An ONNX image model whose vectors are one of its tensors.

    A setting that is not passed comes from the file beside the model (``model.toml`` beside ``model.onnx``), else from
    the model, else it has its default. The default output is the input of the last layer for classifiers, and the
    model's output for other models. A tensor of shape (N, C, H, W) is averaged over its positions. A tensor of shape
    (N, T, C) is averaged over its tokens, or its first token is the vector. Vectors are scaled to unit length. A zero
    vector is replaced by one with equal negative values, so images without any activation are similar to each other.

    The name contains all settings that were passed. It identifies the same encoder in any process while the file stays
    in its place.

    Args:
        path: of the model file.
        size: height and width of the input in pixels, or one number for both. It is required only if the model accepts
            any size.
        scale: the largest pixel value before the mean is subtracted: 1 by default, or 255.
        mean: of each colour, in the order of the input. By default that of ImageNet if *scale* is 1, else 0.
        std: standard deviation of each colour, with the same order and default.
        colours: order of the colours in the input, ``rgb`` by default.
        layout: order of the input's axes, ``nchw`` or ``nhwc``; by default inferred from its shape.
        resize: ``stretch`` (default), ``crop`` or ``letterbox``.
        crop: the fraction of the largest centred part that ``crop`` keeps, in (0, 1]; 0.875 by default.
        fill: the grey level of the bars that ``letterbox`` adds; 114 by default.
        output: name of a tensor, which may be inside the model.
        pool: ``mean`` (default) or ``first``.
        thresholds: five ascending cosine distances of the cluster levels.

    Raises:
        NotFound: the file does not exist.
        InvalidInput: the file is not a model with one image as input, or a setting is invalid.
        MissingDependency: ONNX Runtime is not installed.

    Examples:
        >>> encoder = framedex.encoders.OnnxEncoder("classifier.onnx", colours="bgr")
        >>> encoder.dimension, encoder.min_side_px
        (6, 8)
        >>> ws.create_dataset("more", "new", encoder).embedding_config.encoder
        'onnx:.../classifier.onnx?colours=bgr'
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
        settings = {
            "size": size, "scale": scale, "mean": mean, "std": std, "colours": colours, "layout": layout,
            "resize": resize, "crop": crop, "fill": fill, "output": output, "pool": pool, "thresholds": thresholds,
        }  # fmt: skip
        self._open(
            path,
            parse_onnx_settings({name: value for name, value in settings.items() if value is not None}, "OnnxEncoder"),
        )

    @classmethod
    def by_name(cls, name: str) -> "OnnxEncoder":
        """Return the encoder with a name: ``onnx:<path>[?<setting>=<value>&…]``.

        Raises:
            NotFound: the file does not exist.
            InvalidInput: the name is malformed, or the class raises it.
            MissingDependency: ONNX Runtime is not installed.
        """
        path, settings = parse_name(name)
        encoder = cls.__new__(cls)
        encoder._open(path, settings)
        return encoder

    def _open(self, path: str | os.PathLike[str], settings: OnnxSettings) -> None:
        whole = model_path(path)
        merged = settings.over(read_onnx_sidecar(whole))
        self.name = name_of(whole, settings)
        sha256 = sha256_of(whole)
        self._model = OnnxModel(whole, merged)
        self._prepared = _preparation(self._model, merged)
        self._black, self._step = _affine(self._prepared)
        self.min_side_px = max(self._prepared.size)
        self.thresholds = merged.thresholds or _THRESHOLDS
        self.files: tuple[Path, ...] = (whole, sidecar_of(whole), *self._model.files.values())
        grey = np.full((*self._prepared.size, 3), 128, np.uint8)
        self.dimension = len(self.values(grey))
        if self.dimension > _MAX_DIMENSION:
            raise InvalidInput(
                f"tensor {self._model.output!r} of the model {os.fspath(whole)!r} has {self.dimension} values an "
                f"image; a vector has at most {_MAX_DIMENSION}: name another output"
            )
        used = {name: setting_text(value) for name, value in vars(self._prepared).items()}
        self.weights: Weights | None = Weights(
            path=os.fspath(whole),
            sha256=sha256,
            settings=used | {"output": self._model.output} | self._model.hashes(),
        )

    @property
    def preparer(self) -> Callable[[npt.NDArray[np.uint8]], npt.NDArray[np.uint8]]:
        """The function that prepares images, for other processes."""
        how = self._prepared
        height, width = how.size
        return partial(fit_image, height=height, width=width, resize=how.resize, crop=how.crop, fill=how.fill)

    def prepare(self, pixels: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
        """Return an image in the model's size: uint8, shape (height, width, 3), RGB."""
        return self.preparer(pixels)

    def encode_images(self, batch: npt.NDArray[np.uint8]) -> Vectors:
        """Return float32, shape (N, D), unit length. The vector of an image does not depend on its batch.

        Args:
            batch: uint8, shape (N, height, width, 3), RGB.

        Raises:
            InvalidEmbedding: the model returns values that are not finite.
        """
        if not len(batch):
            return np.empty((0, self.dimension), np.float32)
        with ThreadPoolExecutor(min(available_cpus(), len(batch)), thread_name_prefix="framedex-onnx") as pool:
            return np.stack(list(pool.map(self._vector, batch)))

    def _vector(self, image: npt.NDArray[np.uint8]) -> Vectors:
        values = self.values(image)
        length = float(np.linalg.norm(values))
        if not np.isfinite(length):
            raise InvalidEmbedding(
                f"encoder {self.name!r} makes values that are not finite; are scale, mean and std right?"
            )
        if length == 0:
            return np.full(len(values), -1 / np.sqrt(len(values)), np.float32)
        return np.asarray(values / length, np.float32)

    def values(self, image: npt.NDArray[np.uint8]) -> npt.NDArray[np.float64]:
        """Return the model's vector of a prepared image, before normalisation: float64, shape (D,)."""
        output = self._model.run(self._input(image)).astype(np.float64)
        match output.ndim:
            case 1:
                return output
            case 2:
                return np.asarray(output[0] if self._prepared.pool == "first" else output.mean(axis=0))
            case 3:
                return np.asarray(output.mean(axis=(1, 2)))
        raise InvalidInput(
            f"tensor {self._model.output!r} of encoder {self.name!r} has the shape {output.shape} an image; "
            "a vector is made of one axis, two (tokens) or three (channels, rows, columns)"
        )

    def _input(self, image: npt.NDArray[np.uint8]) -> npt.NDArray[Any]:
        """Return the model's input for an image, without the batch axis."""
        how, dtype = self._prepared, self._model.shape.dtype
        if dtype is np.uint8:
            ordered = image[:, :, ::-1] if how.colours == "bgr" else image
            return ordered.transpose(2, 0, 1) if how.layout == "nchw" else ordered
        planes = normalise_image(image, self._step, self._black, reverse=how.colours == "bgr").astype(dtype, copy=False)
        return planes if how.layout == "nchw" else planes.transpose(1, 2, 0)


def _preparation(model: OnnxModel, settings: OnnxSettings) -> OnnxPreparation:
    shape, says = model.shape, f"the model {os.fspath(model.path)!r}"
    fixed = (shape.height, shape.width)
    size = settings.size
    if size is None:
        if shape.height is None or shape.width is None:
            raise InvalidInput(f"{says} takes images of any size: say which, as size=224")
        size = (shape.height, shape.width)
    elif any(there not in (None, requested) for there, requested in zip(fixed, size, strict=True)):
        raise InvalidInput(f"{says} takes images of {fixed[0]}×{fixed[1]} (height × width), not {size[0]}×{size[1]}")
    whole = shape.dtype is np.uint8
    scale = settings.scale or (255.0 if whole else 1.0)
    colours = settings.colours or "rgb"
    mean, std = _IMAGENET[colours] if scale == 1 else _AS_THEY_ARE
    mean, std = settings.mean or mean, settings.std or std
    if whole and (scale, mean, std) != (255.0, *_AS_THEY_ARE):
        raise InvalidInput(f"{says} takes whole numbers, 0 to 255: no scale, mean or std can be applied")
    return OnnxPreparation(
        size=size,
        scale=scale,
        mean=mean,
        std=std,
        colours=colours,
        layout=shape.layout,
        resize=settings.resize or "stretch",
        crop=settings.crop or 0.875,
        fill=114 if settings.fill is None else settings.fill,
        pool=settings.pool or "mean",
    )


def _affine(how: OnnxPreparation) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """Return (offset, factor) for each colour: pixels are multiplied by the factor before the offset is subtracted."""
    std = np.array(how.std)
    return (np.array(how.mean) / std).astype(np.float32), (how.scale / 255 / std).astype(np.float32)
