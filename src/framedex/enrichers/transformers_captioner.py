"""Captioners of transformers, from a folder on this machine (extra ``caption``)."""

import os
from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from framedex.annotations.labels import storable
from framedex.checks import check_integer
from framedex.encoders.devices import choose_device
from framedex.enrichers.captioner import MAX_TOKENS, Captioner
from framedex.enrichers.captioner_files import find_captioner
from framedex.enrichers.captioner_loading import load_engine, load_model, reading
from framedex.enrichers.captioner_models import Answering, Continuing, Way
from framedex.enrichers.models_file import ModelEntry
from framedex.errors import InvalidInput
from framedex.settings import user_path

_BATCHES = {"cpu": 8, "mps": 16, "cuda": 64}
"""Captions that are written at a time: fewer than images are encoded, as each takes many steps."""
_CHATTING = 4  # times as much as the others do conversations and their pictures take


class TransformersCaptioner:
    """A model of transformers that writes captions: VisionEncoderDecoder, BLIP, GIT, or one with a chat template.

    Nothing is fetched, and no code of the folder is run. The most probable token is taken at each step, so that the
    same pictures get the same captions. To be used by one thread at a time, except for :meth:`prepare`.

    Args:
        folder: with the model, as ``save_pretrained`` writes it: configuration, tokenizer, how pictures are prepared,
            and weights as .safetensors, or as .bin, of which only tensors are read.
        prompt: how captions begin, for VisionEncoderDecoder, BLIP and GIT; what is asked of others:
            "Describe this picture in one sentence." by default.
        max_tokens: after which a caption ends, at the latest.
        device: ``auto`` for a GPU where there is one, or ``cpu``, ``cuda``, ``cuda:<number>``, ``mps``. On CUDA weights
            are held in half precision.
        batch: how many captions are written at a time; by default 8 on a CPU, 16 on MPS, 64 on CUDA, and a quarter of
            that by models with a chat template.

    Attributes:
        name: the folder's path.
        weights: the file of the weights and its hash, hashes of all other files, and what is asked.
        min_side_px: pixels of the shorter side that pictures are read with.
        batch: see above.

    Raises:
        MissingDependency: PyTorch or transformers is not installed, or something that the model needs besides.
        NotFound: there is no such folder, or it lacks a file.
        InvalidInput: its model writes no captions, is damaged, or does not fit its configuration; there is no such
            device; or a number is below 1.
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
        files = find_captioner(Path(os.path.abspath(user_path(folder))))  # noqa: PTH100 - keeps links, unlike resolve
        load_engine()
        self._files, self._device = files, choose_device(device)
        self._model = load_model(files, self._device.precision).to(self._device.name)
        self._way: Way = Answering(files, prompt) if files.chats else Continuing(files, self._model, prompt)
        self._generation = self._greedy(max_tokens)
        self.name = os.fspath(files.folder)
        self.weights = files.weights({"prompt": self._way.asked or "", "max_tokens": str(max_tokens)})
        self.min_side_px = self._way.min_side_px
        self.batch = batch or _BATCHES[self._device.kind] // (_CHATTING if files.chats else 1)
        with reading(files, "model"):  # what the parts of a folder make of each other shows only now
            self.captions(self.prepare(np.full((64, 64, 3), 128, np.uint8))[None])

    def _greedy(self, max_tokens: int) -> Any:
        """Return how texts are made: as the model says, but without chance and without looking for others."""
        made = deepcopy(self._model.generation_config)
        room = self._way.room
        made.max_new_tokens, made.max_length = max_tokens if room is None else min(max_tokens, room), None
        made.do_sample, made.num_beams = False, 1
        # These have a meaning only for chance and beams, and are warned of without.
        made.temperature = made.top_p = made.top_k = made.typical_p = None
        made.early_stopping, made.length_penalty = False, 1.0
        return made

    def prepare(self, pixels: npt.NDArray[np.uint8]) -> npt.NDArray[Any]:
        """Return what the model needs of one picture.

        Args:
            pixels: uint8, shape (H, W, 3), RGB, upright. Of a picture, or a part of one.
        """
        if pixels.dtype != np.uint8 or pixels.ndim != 3 or pixels.shape[2] != 3 or not pixels.size:
            raise InvalidInput(f"a picture must be uint8 of shape (H, W, 3), not {pixels.dtype} of {pixels.shape}")
        return self._way.prepare(pixels)

    def captions(self, prepared: npt.NDArray[Any]) -> list[str]:
        """Return a caption a picture: a line without spaces around it, empty where the model says nothing.

        Args:
            prepared: N prepared pictures, stacked.
        """
        parts = (prepared[at : at + self.batch] for at in range(0, len(prepared), self.batch))
        return [" ".join(storable(text).split()) for part in parts for text in self._texts(part)]

    def _texts(self, prepared: npt.NDArray[Any]) -> list[str]:
        import torch

        with torch.inference_mode():
            inputs = self._placed(self._way.inputs(prepared))
            made = self._model.generate(**inputs, generation_config=self._generation)
            return self._way.texts(made.cpu(), inputs)

    def _placed(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Return inputs on the device, pictures in the model's precision."""
        return {
            name: value.to(self._device.name, self._model.dtype if value.is_floating_point() else None)
            for name, value in inputs.items()
        }

    def __repr__(self) -> str:
        return f"<framedex.enrichers.TransformersCaptioner {self.name!r} on {self._device.name}>"


def make_captioner(entry: ModelEntry) -> Captioner:
    """Return the captioner of a registered model.

    Raises:
        Error: it cannot be made here; see :class:`TransformersCaptioner`.
    """
    assert entry.captioner is not None, "a model of captions has a captioner"
    return TransformersCaptioner(entry.captioner, entry.prompt, entry.max_tokens)
