"""Embeddings of real photos: MobileNetV2's features of changed versions of each photo, for the benchmarks of the index.

It runs in the environment of ONNX Runtime. The first version of a photo is its middle, as in ImageNet's evaluation;
the others are parts of it, half of them mirrored, in changed colours. Row v × P + p is version v of photo p of P, so
that the first rows hold all photos, and row modulo P is the photo.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime
from PIL import Image, ImageEnhance

SEED = 20261121
FEATURES = "464"  # of the global average pooling: what the classifier, the last layer, gets
_SIDE, _EVALUATED_SIDE, _KEPT_SIDE = 224, 256, 320  # pixels; the last is the shorter side of what versions are cut from
_MEAN = np.array([0.485, 0.456, 0.406], dtype=np.float32)
_DEVIATION = np.array([0.229, 0.224, 0.225], dtype=np.float32)
Vectors = npt.NDArray[np.float32]
Random = np.random.Generator


def write_embeddings(paths: Sequence[Path], versions: int, *, model: Path, target: Path, threads: int) -> None:
    """Write the embeddings of all versions of photos to a NumPy file: float32, unit length, shape (V × P, 1280).

    Args:
        paths: the photos.
        versions: of each.
        model: MobileNetV2 with eight-bit weights, in ONNX.
        target: the file; it is there when it is complete.
        threads: that the network may use.
    """
    network = _Network(model, threads)
    part = target.with_suffix(".part")
    out: Any = None
    for place, path in enumerate(paths):
        features = network.features(np.stack(list(_versions(path, versions, seed=place))))
        if out is None:
            shape = (len(paths) * versions, features.shape[1])
            out = np.lib.format.open_memmap(part, mode="w+", dtype=np.float32, shape=shape)
        out[place :: len(paths)] = features / np.linalg.norm(features, axis=1, keepdims=True)
    assert out is not None, "there are photos"
    out.flush()
    part.rename(target)


class _Network:
    """MobileNetV2 without its classifier."""

    def __init__(self, model: Path, threads: int) -> None:
        graph = onnx.load(model)
        constants = {each.name: onnx.numpy_helper.to_array(each) for each in graph.graph.initializer}
        self._scale = np.float32(constants[f"{FEATURES}_scale"])
        self._zero = np.float32(constants[f"{FEATURES}_zero_point"])
        self._name = f"{FEATURES}_quantized"
        graph.graph.output.append(onnx.helper.make_tensor_value_info(self._name, onnx.TensorProto.UINT8, None))
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.log_severity_level = 3
        self._session = onnxruntime.InferenceSession(
            graph.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )

    def features(self, pixels: npt.NDArray[np.uint8]) -> Vectors:
        """Return float32, shape (N, 1280), of images of shape (N, 224, 224, 3)."""
        values = ((pixels / np.float32(255) - _MEAN) / _DEVIATION).transpose(0, 3, 1, 2)
        (found,) = self._session.run([self._name], {"input": np.ascontiguousarray(values, dtype=np.float32)})
        return np.asarray((found.reshape(len(pixels), -1).astype(np.float32) - self._zero) * self._scale)


def _versions(path: Path, count: int, *, seed: int) -> Iterator[npt.NDArray[Any]]:
    with Image.open(path) as opened:
        image = opened.convert("RGB")
    yield np.asarray(_middle(image))
    kept = _with_shorter_side(image, min(_KEPT_SIDE, *image.size))
    for version in range(1, count):
        yield np.asarray(_changed(kept, np.random.default_rng((SEED, seed, version))))


def _middle(image: Image.Image) -> Image.Image:
    """Return the middle square of an image whose shorter side was made 256 pixels."""
    image = _with_shorter_side(image, _EVALUATED_SIDE)
    left, top = (image.width - _SIDE) // 2, (image.height - _SIDE) // 2
    return image.crop((left, top, left + _SIDE, top + _SIDE))


def _with_shorter_side(image: Image.Image, side: int) -> Image.Image:
    factor = side / min(image.size)
    return image.resize(
        (max(side, round(image.width * factor)), max(side, round(image.height * factor))), Image.Resampling.BILINEAR
    )


def _changed(image: Image.Image, random: Random) -> Image.Image:
    """Return 35 to 100 % of an image, of another shape, mirrored or not, in other colours."""
    area, shape = random.uniform(0.35, 1.0), np.exp(random.uniform(np.log(3 / 4), np.log(4 / 3)))
    width = min(image.width, round(float(np.sqrt(image.width * image.height * area * shape))))
    height = min(image.height, round(float(np.sqrt(image.width * image.height * area / shape))))
    left, top = random.integers(0, image.width - width + 1), random.integers(0, image.height - height + 1)
    box = (int(left), int(top), int(left) + width, int(top) + height)
    part = image.resize((_SIDE, _SIDE), Image.Resampling.BILINEAR, box=box)
    if random.random() < 0.5:
        part = part.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    for change in (ImageEnhance.Brightness, ImageEnhance.Contrast, ImageEnhance.Color):
        part = change(part).enhance(random.uniform(0.7, 1.3))
    return part
