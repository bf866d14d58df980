"""The two ways in which models write captions: some continue a beginning, some answer in a conversation."""

import os
from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from framedex.arrays import Pixels
from framedex.enrichers.captioner_files import CaptionerFiles
from framedex.enrichers.captioner_loading import load_part, reading
from framedex.enrichers.captioner_pictures import as_picture
from framedex.errors import InvalidInput

ASKED = "Describe this picture in one sentence."
"""The default prompt of a model that answers prompts."""

_OVERSAMPLED = 2  # pixels that pictures are decoded with, for each that the model takes
_FREE_SIDE_PX = 768  # of models that take pictures of any size


class Way(Protocol):
    """A way to get captions from a model.

    Attributes:
        min_side_px: pixels that the shorter side of a picture should have at least.
        asked: what the model is asked; None for nothing.
        room: how many tokens a caption can have; None for any number.
    """

    min_side_px: int
    asked: str | None
    room: int | None

    def prepare(self, pixels: Pixels) -> npt.NDArray[Any]:
        """Return what is needed of a picture; called on several threads at once."""
        ...

    def inputs(self, prepared: npt.NDArray[Any]) -> dict[str, Any]:
        """Return the model's inputs for some pictures, as tensors on the CPU."""
        ...

    def texts(self, made: Any, inputs: Mapping[str, Any]) -> list[str]:
        """Return the captions of what the model made of its inputs: int64, shape (N, L), on the CPU."""
        ...


class Continuing:
    """Models that caption a picture by themselves; a prompt is how captions begin, and a part of them.

    Args:
        files: where the model is.
        model: the model.
        prompt: how captions begin; None for nothing.
    """

    def __init__(self, files: CaptionerFiles, model: Any, prompt: str | None) -> None:
        self._kind = files.kind
        self._pictures, self._tokenizer = load_part(files, "AutoImageProcessor"), load_part(files, "AutoTokenizer")
        self._start = self._beginning(model, prompt)
        self.asked: str | None = prompt
        positions = getattr(model.config.get_text_config(decoder=True), "max_position_embeddings", None)
        self.room: int | None = None if positions is None else positions - len(self._start or (0,))
        if self.room is not None and self.room < 1:
            raise InvalidInput(f"the prompt is too long: the model knows {positions} tokens, caption included")
        with reading(files, "preparation of pictures"):
            shape = self.prepare(np.full((64, 64, 3), 128, np.uint8)).shape
        self.min_side_px = _OVERSAMPLED * max(shape[-2:])

    def _beginning(self, model: Any, prompt: str | None) -> list[int] | None:
        """Return the tokens that captions begin with; None for what the model begins with by itself."""
        if prompt is None:
            return None
        words: list[int] = self._tokenizer(prompt, add_special_tokens=False).input_ids
        said, first = model.generation_config, self._tokenizer.bos_token_id
        if self._kind == "vision-encoder-decoder":
            start = said.decoder_start_token_id
            first = model.config.decoder_start_token_id if start is None else start
        elif self._tokenizer.cls_token_id is not None:
            first = self._tokenizer.cls_token_id
        # BLIP leaves out the last one, which its tokenizer puts at the end of any text.
        last = [self._tokenizer.sep_token_id] if self._kind == "blip" else []
        return [first, *words, *last]

    def prepare(self, pixels: Pixels) -> npt.NDArray[Any]:
        """Return the model's input: float32, shape (3, H, W)."""
        found = self._pictures(images=as_picture(pixels), return_tensors="np")["pixel_values"]
        return np.asarray(found[0], np.float32)

    def inputs(self, prepared: npt.NDArray[Any]) -> dict[str, Any]:
        """Return the model's inputs for some pictures."""
        import torch

        pixels = {"pixel_values": torch.from_numpy(np.ascontiguousarray(prepared))}
        if self._start is None:
            return pixels
        start = torch.tensor([self._start] * len(prepared))
        if self._kind == "vision-encoder-decoder":
            return {**pixels, "decoder_input_ids": start}
        return {**pixels, "input_ids": start, "attention_mask": torch.ones_like(start)}

    def texts(self, made: Any, inputs: Mapping[str, Any]) -> list[str]:
        """Return the captions, with what they begin with."""
        del inputs
        return list(self._tokenizer.batch_decode(made, skip_special_tokens=True))


class Answering:
    """Models of pictures and texts that answer in a conversation, by the chat template of their folder.

    Args:
        files: where the model is.
        prompt: what the model is asked; None for :data:`ASKED`.
    """

    min_side_px = _FREE_SIDE_PX
    room: int | None = None

    def __init__(self, files: CaptionerFiles, prompt: str | None) -> None:
        self._processor = load_part(files, "AutoProcessor")
        if not hasattr(self._processor, "apply_chat_template") or not hasattr(self._processor, "tokenizer"):
            raise InvalidInput(f"{os.fspath(files.folder)!r} does not describe how pictures and texts are put together")
        self._processor.image_processor = load_part(files, "AutoImageProcessor")
        self._processor.tokenizer.padding_side = "left"  # answers follow at once, in all rows
        self.asked: str | None = ASKED if prompt is None else prompt

    def prepare(self, pixels: Pixels) -> npt.NDArray[Any]:
        """Return the picture, since such models take pictures of any size: shape (1,), of one object."""
        held = np.empty(1, object)
        held[0] = as_picture(pixels, shorter=_FREE_SIDE_PX)
        return held

    def inputs(self, prepared: npt.NDArray[Any]) -> dict[str, Any]:
        """Return the model's inputs for some pictures."""
        asked = [
            [{"role": "user", "content": [{"type": "image", "image": picture}, {"type": "text", "text": self.asked}]}]
            for picture in prepared[:, 0]
        ]
        made = self._processor.apply_chat_template(
            asked,
            add_generation_prompt=True,
            tokenize=True,
            return_dict=True,
            return_tensors="pt",
            processor_kwargs={"padding": True},
        )
        return dict(made)

    def texts(self, made: Any, inputs: Mapping[str, Any]) -> list[str]:
        """Return the answers, without what was asked."""
        answers = made[:, inputs["input_ids"].shape[1] :]
        return list(self._processor.tokenizer.batch_decode(answers, skip_special_tokens=True))
