"""CLIP and related models of open_clip: encoders of images and texts (extra ``clip``).

A. Radford et al., "Learning transferable visual models from natural language supervision", ICML 2021; G. Ilharco et
al., OpenCLIP, 2021 (doi 10.5281/zenodo.5143773). Weights are read from a file or the local cache. They are downloaded
only with the user's permission. They are random only on request.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from framedex.core import forks
from framedex.core.arrays import Pixels, Vectors
from framedex.core.forks import cached_property
from framedex.encoders.devices import choose_device
from framedex.encoders.open_clip_files import ModelFiles, find_files
from framedex.encoders.open_clip_images import ClipPreparation
from framedex.encoders.open_clip_loading import build_model, load_open_clip, load_tokenizer
from framedex.encoders.open_clip_names import ModelName
from framedex.encoders.weights import sha256_of
from framedex.errors import InvalidInput
from framedex.records import Weights

THRESHOLDS = (0.06, 0.12, 0.18, 0.25, 0.32)
"""Default cosine distances at which clusters of levels 0 to 4 are cut.

These values are not measured, because no weights of a large model were available. They follow from typical cosines of
the usual CLIP models: about 0.4 to 0.6 for unrelated photographs, 0.7 to 0.9 for photographs of one subject, and mostly
above 0.95 for edits of one photograph. Other models differ.
"""


class OpenClipEncoder:
    """A model of open_clip, which turns images and texts into vectors. The cosine of two vectors is their similarity.

    Several threads may use it at the same time.

    Args:
        model: a model of open_clip, such as ``ViT-B-32``; or a folder with ``open_clip_config.json`` and weights, in
            the layout of the hub.
        weights: for a model of open_clip: one of its pretrained tags, or a file: .safetensors, or .pt, .pth and .bin,
            from which only tensors are read, never code.
        device: ``auto`` for a GPU if one is available, or ``cpu``, ``cuda``, ``cuda:<number>``, ``mps``.
        precision: ``auto`` for ``float16`` on CUDA and ``float32`` elsewhere; or ``float32``, ``float16``,
            ``bfloat16``. Vectors are always float32.
        allow_download: whether weights that are not on this machine may be downloaded.
        random_weights: build the model without trained weights. Its vectors are meaningless; it measures speed.
        thresholds: five ascending cosine distances instead of :data:`THRESHOLDS`.

    Attributes:
        name: ``open_clip:<model>/<tag>``, ``open_clip:<model>/<absolute path>`` or ``open_clip:<absolute path>``.
        dimension: length D of the vectors.
        min_side_px: the shorter side, in pixels, of decoded images.
        thresholds: see above.
        weights: the weights file with its hash, and the preparation of images; None for random weights.
        files: the files that were read.
        batch: the number of images in a batch.

    Raises:
        MissingDependency: open_clip is not installed.
        NotFound: the weights do not exist.
        InvalidInput: the model or the device does not exist, or the weights do not fit the model or cannot be read.
        Unavailable: the weights could not be downloaded.

    Examples:
        >>> encoder = framedex.encoders.OpenClipEncoder("shapes-clip")
        >>> encoder.encode_texts(["a red circle", "a blue square"]).shape
        (2, 64)
    """

    def __init__(
        self,
        model: str | os.PathLike[str],
        weights: str | os.PathLike[str] | None = None,
        *,
        device: str = "auto",
        precision: str = "auto",
        allow_download: bool = False,
        random_weights: bool = False,
        thresholds: Sequence[float] | None = None,
    ) -> None:
        self._named = ModelName.of(model, weights, random=random_weights)
        self._engine = load_open_clip()
        self._device = choose_device(device, precision)
        self._allow_download = allow_download
        files = find_files(self._named, self._engine, allow_download=allow_download)
        self._model = build_model(self._named, files, self._engine, allow_download=allow_download).to(self._device.name)
        self._preparation = ClipPreparation.of(self._model.visual.preprocess_cfg)
        self._tokenizing = forks.Lock()
        self.name = str(self._named)
        self.dimension = self._dimension()
        self.min_side_px = self._preparation.min_side_px
        self.batch = self._device.batch
        a, b, c, d, e = map(float, thresholds or THRESHOLDS)
        self.thresholds = (a, b, c, d, e)
        self.weights = self._weights(files)
        self.files: tuple[Path, ...] = (*([files.checkpoint] if files.checkpoint else []), *files.beside)

    @classmethod
    def by_name(cls, name: str, *, allow_download: bool = False) -> "OpenClipEncoder":
        """Return the encoder with a full name, as in a dataset's embedding config: ``open_clip:…``.

        Raises:
            InvalidInput: the name is malformed; other errors are those of the class.
        """
        named = ModelName.parse(name)
        weights = None if named.model is None else named.tag or named.path
        model = named.model or named.path
        assert model is not None
        return cls(model, weights, allow_download=allow_download, random_weights=named.random)

    def _dimension(self) -> int:
        config = self._engine.get_model_config(self._named.model or f"local-dir:{self._named.path}")
        return int(config["embed_dim"])

    def _weights(self, files: ModelFiles) -> Weights | None:
        if files.checkpoint is None:
            return None
        settings = self._preparation.described()
        if self._named.model is not None:
            settings |= {"model": self._named.model, "quick_gelu": str(bool(files.pretrained.get("quick_gelu")))}
        settings |= {f"sha256 of {path.name}": sha256_of(path) for path in files.beside}
        return Weights(path=os.fspath(files.checkpoint), sha256=sha256_of(files.checkpoint), settings=settings)

    @property
    def preparer(self) -> Callable[[Pixels], Pixels]:
        """The function that prepares images, for other processes."""
        return self._preparation

    def prepare(self, pixels: Pixels) -> Pixels:
        """Return the model's input before normalisation: uint8, shape (S, S, 3) for the model's size S.

        Args:
            pixels: uint8, shape (H, W, 3), RGB, upright.
        """
        return self._preparation(pixels)

    def encode_images(self, batch: npt.NDArray[Any]) -> Vectors:
        """Return one vector for each of N prepared images: float32, shape (N, D), unit length."""
        import torch

        pixels = torch.from_numpy(np.require(batch, requirements=["C", "W"]))
        with torch.inference_mode():
            return self._joined(self._images(pixels[at : at + self.batch]) for at in range(0, len(pixels), self.batch))

    def _images(self, pixels: Any) -> Any:
        mean, scale = self._normalisation
        values = pixels.to(self._device.name).permute(0, 3, 1, 2).float().sub_(mean).mul_(scale)  # in place
        with self._device.autocast():
            return self._model.encode_image(values)

    @cached_property
    def _normalisation(self) -> tuple[Any, Any]:
        """The mean and the reciprocal of the standard deviation of values 0–255: shape (3, 1, 1), on the device."""
        import torch

        mean, std = (
            torch.tensor(each, device=self._device.name).reshape(3, 1, 1)
            for each in (self._preparation.mean, self._preparation.std)
        )
        return mean * 255, 1 / (std * 255)

    def encode_texts(self, texts: Sequence[str]) -> Vectors:
        """Return one vector for each text: float32, shape (N, D), unit length.

        Text beyond the model's context length (77 tokens for most models) is cut off.

        Raises:
            InvalidInput: a value is not a text.
            MissingDependency: the model's tokenizer needs a package that is not installed.
            NotFound: the tokenizer's files are not on this machine.
        """
        import torch

        texts = list(texts)
        wrong = next((text for text in texts if not isinstance(text, str)), None)
        if wrong is not None:
            raise InvalidInput(f"texts are str, not {type(wrong).__name__}: {wrong!r}")
        with torch.inference_mode():
            return self._joined(self._texts(texts[at : at + self.batch]) for at in range(0, len(texts), self.batch))

    def _texts(self, texts: list[str]) -> Any:
        with self._tokenizing:  # tokenizers of the hub are not thread-safe
            tokens = self._tokenizer(texts)
        with self._device.autocast():
            return self._model.encode_text(tokens.to(self._device.name))

    @cached_property
    def _tokenizer(self) -> Any:
        return load_tokenizer(self._named, self._engine, allow_download=self._allow_download)

    def _joined(self, parts: Iterator[Any]) -> Vectors:
        """Return features of several batches as unit vectors, on the CPU."""
        import torch

        scaled = [torch.nn.functional.normalize(part.float(), dim=-1).cpu().numpy() for part in parts]
        return np.concatenate([np.empty((0, self.dimension), np.float32), *scaled])

    def __repr__(self) -> str:
        return f"<framedex.encoders.OpenClipEncoder {self.name!r} on {self._device.name}>"
