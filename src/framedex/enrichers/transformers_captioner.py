"""Captioners of transformers, from a local folder (extra ``caption``)."""

import os
from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from framedex.annotations.labels import storable
from framedex.core.checks import check_integer
from framedex.encoders.devices import choose_device
from framedex.enrichers.captioner import MAX_TOKENS, Captioner
from framedex.enrichers.captioner_files import find_captioner
from framedex.enrichers.captioner_loading import load_model, load_transformers, translate_errors
from framedex.enrichers.captioner_models import CaptionMethod, ContinuationMethod, ConversationMethod
from framedex.enrichers.models_file import ModelEntry
from framedex.errors import InvalidInput
from framedex.settings import user_path

_BATCHES = {"cpu": 8, "mps": 16, "cuda": 64}
"""Batch sizes of captioners. They are smaller than those of encoders, because each caption takes many steps."""
_CHATTING = 4  # memory of a conversation with its image, relative to other captioners


class TransformersCaptioner:
    """A transformers model that writes captions: VisionEncoderDecoder, BLIP, GIT, or one with a chat template.

    It downloads nothing, and runs no code of the folder. Each step takes the most probable token, so equal images get
    equal captions. Only :meth:`prepare` may be called by several threads at the same time.

    Args:
        folder: the model as ``save_pretrained`` writes it: configuration, tokenizer, image processor, and weights as
            .safetensors, or as .bin, from which only tensors are read.
        prompt: the beginning of captions for VisionEncoderDecoder, BLIP and GIT; the question for other models, by
            default "Describe this picture in one sentence."
        max_tokens: the maximum length of a caption.
        device: ``auto`` for a GPU if one is available, or ``cpu``, ``cuda``, ``cuda:<number>``, ``mps``. On CUDA the
            weights have half precision.
        batch: the number of captions in a batch; by default 8 on a CPU, 16 on MPS, 64 on CUDA, and a quarter of these
            for models with a chat template.

    Attributes:
        name: the folder's path.
        weights: the weights file with its hash, the hashes of all other files, and the prompt.
        min_side_px: the shorter side, in pixels, of decoded images.
        batch: see above.

    Raises:
        MissingDependency: PyTorch, transformers, or another package that the model needs is not installed.
        NotFound: the folder does not exist, or lacks a file.
        InvalidInput: the model writes no captions, is damaged, or does not fit its configuration; the device does not
            exist; or a number is below 1.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        prompt: str | None = None,
        max_tokens: int = MAX_TOKENS,
        device: str = "auto",
        batch: int | None = None,
    ) -> None:
        check_integer("max_tokens", max_tokens, minimum=1)
        check_integer("batch", batch, minimum=1, optional=True)
        if not isinstance(folder, str | os.PathLike) or not isinstance(prompt, str | None):
            raise InvalidInput(f"a captioner is a folder, with a text as its prompt; not {folder!r} and {prompt!r}")
        files = find_captioner(Path(os.path.abspath(user_path(folder))))  # noqa: PTH100 - does not follow links, unlike resolve
        load_transformers()
        self._files, self._device = files, choose_device(device)
        self._model = load_model(files, self._device.precision).to(self._device.name)
        self._way: CaptionMethod = (
            ConversationMethod(files, prompt) if files.chats else ContinuationMethod(files, self._model, prompt)
        )
        self._generation = self._greedy(max_tokens)
        self.name = os.fspath(files.folder)
        self.weights = files.weights({"prompt": self._way.prompt or "", "max_tokens": str(max_tokens)})
        self.min_side_px = self._way.min_side_px
        self.batch = batch or _BATCHES[self._device.kind] // (_CHATTING if files.chats else 1)
        with translate_errors(files, "model"):  # conflicts between the parts of a folder show only here
            self.captions(self.prepare(np.full((64, 64, 3), 128, np.uint8))[None])

    def _greedy(self, max_tokens: int) -> Any:
        """Return the generation settings: those of the model, but greedy and without beams."""
        settings = deepcopy(self._model.generation_config)
        room = self._way.room
        settings.max_new_tokens, settings.max_length = max_tokens if room is None else min(max_tokens, room), None
        settings.do_sample, settings.num_beams = False, 1
        # These settings apply only to sampling and beams; transformers would warn about them.
        settings.temperature = settings.top_p = settings.top_k = settings.typical_p = None
        settings.early_stopping, settings.length_penalty = False, 1.0
        return settings

    def prepare(self, pixels: npt.NDArray[np.uint8]) -> npt.NDArray[Any]:
        """Return the model's input for one image or a part of one.

        Args:
            pixels: uint8, shape (H, W, 3), RGB, upright.
        """
        if pixels.dtype != np.uint8 or pixels.ndim != 3 or pixels.shape[2] != 3 or not pixels.size:
            raise InvalidInput(f"an image must be uint8 of shape (H, W, 3), not {pixels.dtype} of {pixels.shape}")
        return self._way.prepare(pixels)

    def captions(self, prepared: npt.NDArray[Any]) -> list[str]:
        """Return a caption for each image: one line without surrounding spaces; empty if the model returns no words.

        Args:
            prepared: N prepared images, stacked.
        """
        parts = (prepared[at : at + self.batch] for at in range(0, len(prepared), self.batch))
        return [" ".join(storable(text).split()) for part in parts for text in self._texts(part)]

    def _texts(self, prepared: npt.NDArray[Any]) -> list[str]:
        import torch

        with torch.inference_mode():
            inputs = self._placed(self._way.inputs(prepared))
            output = self._model.generate(**inputs, generation_config=self._generation)
            return self._way.texts(output.cpu(), inputs)

    def _placed(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Return inputs on the device, with images in the model's precision."""
        return {
            name: value.to(self._device.name, self._model.dtype if value.is_floating_point() else None)
            for name, value in inputs.items()
        }

    def __repr__(self) -> str:
        return f"<framedex.enrichers.TransformersCaptioner {self.name!r} on {self._device.name}>"


def make_captioner(entry: ModelEntry) -> Captioner:
    """Return the captioner of a registered model.

    Raises:
        Error: it cannot be loaded on this machine; see :class:`TransformersCaptioner`.
    """
    assert entry.captioner is not None, "a model of captions has a captioner"
    return TransformersCaptioner(entry.captioner, entry.prompt, entry.max_tokens)
