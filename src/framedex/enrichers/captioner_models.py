"""The two kinds of captioning models: those that continue a beginning, and those that answer in a conversation."""

import os
from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from framedex.core.arrays import Pixels
from framedex.enrichers.captioner_files import CaptionerFiles
from framedex.enrichers.captioner_images import to_image
from framedex.enrichers.captioner_loading import load_part, translate_errors
from framedex.errors import InvalidInput

DEFAULT_PROMPT = "Describe this picture in one sentence."
"""The default prompt of a model that answers prompts."""

_OVERSAMPLED = 2  # pixels of a decoded image's side for each pixel of the model's input
_FREE_SIDE_PX = 768  # of models that accept images of any size


class CaptionMethod(Protocol):
    """A method to get captions from a model.

    Attributes:
        min_side_px: pixels that the shorter side of an image should have.
        prompt: the prompt; None without a prompt.
        room: the maximum number of tokens in a caption; None for no limit.
    """

    min_side_px: int
    prompt: str | None
    room: int | None

    def prepare(self, pixels: Pixels) -> npt.NDArray[Any]:
        """Return the prepared input for an image. Several threads may call it at the same time."""
        ...

    def inputs(self, prepared: npt.NDArray[Any]) -> dict[str, Any]:
        """Return the model's inputs for several images, as tensors on the CPU."""
        ...

    def texts(self, output: Any, inputs: Mapping[str, Any]) -> list[str]:
        """Return the captions in the model's output: int64, shape (N, L), on the CPU."""
        ...


class ContinuationMethod:
    """Models that caption an image without a question. A prompt is the beginning of the caption, and a part of it.

    Args:
        files: the model's files.
        model: the model.
        prompt: the beginning of captions; None without a prompt.
    """

    def __init__(self, files: CaptionerFiles, model: Any, prompt: str | None) -> None:
        self._kind = files.kind
        self._image_processor, self._tokenizer = (
            load_part(files, "AutoImageProcessor"),
            load_part(files, "AutoTokenizer"),
        )
        self._start = self._beginning(model, prompt)
        self.prompt: str | None = prompt
        positions = getattr(model.config.get_text_config(decoder=True), "max_position_embeddings", None)
        self.room: int | None = None if positions is None else positions - len(self._start or (0,))
        if self.room is not None and self.room < 1:
            raise InvalidInput(f"the prompt is too long: the model knows {positions} tokens, caption included")
        with translate_errors(files, "preparation of images"):
            shape = self.prepare(np.full((64, 64, 3), 128, np.uint8)).shape
        self.min_side_px = _OVERSAMPLED * max(shape[-2:])

    def _beginning(self, model: Any, prompt: str | None) -> list[int] | None:
        """Return the tokens that captions begin with; None for the model's own beginning."""
        if prompt is None:
            return None
        words: list[int] = self._tokenizer(prompt, add_special_tokens=False).input_ids
        generation, first = model.generation_config, self._tokenizer.bos_token_id
        if self._kind == "vision-encoder-decoder":
            start = generation.decoder_start_token_id
            first = model.config.decoder_start_token_id if start is None else start
        elif self._tokenizer.cls_token_id is not None:
            first = self._tokenizer.cls_token_id
        # BLIP drops the last token, which its tokenizer adds at the end of any text.
        last = [self._tokenizer.sep_token_id] if self._kind == "blip" else []
        return [first, *words, *last]

    def prepare(self, pixels: Pixels) -> npt.NDArray[Any]:
        """Return the model's input: float32, shape (3, H, W)."""
        pixel_values = self._image_processor(images=to_image(pixels), return_tensors="np")["pixel_values"]
        return np.asarray(pixel_values[0], np.float32)

    def inputs(self, prepared: npt.NDArray[Any]) -> dict[str, Any]:
        """Return the model's inputs for several images."""
        import torch

        pixels = {"pixel_values": torch.from_numpy(np.ascontiguousarray(prepared))}
        if self._start is None:
            return pixels
        start = torch.tensor([self._start] * len(prepared))
        if self._kind == "vision-encoder-decoder":
            return {**pixels, "decoder_input_ids": start}
        return {**pixels, "input_ids": start, "attention_mask": torch.ones_like(start)}

    def texts(self, output: Any, inputs: Mapping[str, Any]) -> list[str]:
        """Return the captions, including the prompt."""
        del inputs
        return list(self._tokenizer.batch_decode(output, skip_special_tokens=True))


class ConversationMethod:
    """Models of images and texts that answer in a conversation, with the chat template of their folder.

    Args:
        files: the model's files.
        prompt: the question; None for :data:`DEFAULT_PROMPT`.
    """

    min_side_px = _FREE_SIDE_PX
    room: int | None = None

    def __init__(self, files: CaptionerFiles, prompt: str | None) -> None:
        self._processor = load_part(files, "AutoProcessor")
        if not hasattr(self._processor, "apply_chat_template") or not hasattr(self._processor, "tokenizer"):
            raise InvalidInput(f"{os.fspath(files.folder)!r} does not describe how images and texts are put together")
        self._processor.image_processor = load_part(files, "AutoImageProcessor")
        self._processor.tokenizer.padding_side = "left"  # so that the answer follows the prompt directly in all rows
        self.prompt: str | None = DEFAULT_PROMPT if prompt is None else prompt

    def prepare(self, pixels: Pixels) -> npt.NDArray[Any]:
        """Return the image unchanged, because such models accept images of any size: shape (1,), dtype object."""
        image = np.empty(1, object)
        image[0] = to_image(pixels, shorter=_FREE_SIDE_PX)
        return image

    def inputs(self, prepared: npt.NDArray[Any]) -> dict[str, Any]:
        """Return the model's inputs for several images."""
        conversations = [
            [{"role": "user", "content": [{"type": "image", "image": image}, {"type": "text", "text": self.prompt}]}]
            for image in prepared[:, 0]
        ]
        inputs_ = self._processor.apply_chat_template(
            conversations,
            add_generation_prompt=True,
            tokenize=True,
            return_dict=True,
            return_tensors="pt",
            processor_kwargs={"padding": True},
        )
        return dict(inputs_)

    def texts(self, output: Any, inputs: Mapping[str, Any]) -> list[str]:
        """Return the answers, without the prompt."""
        answers = output[:, inputs["input_ids"].shape[1] :]
        return list(self._processor.tokenizer.batch_decode(answers, skip_special_tokens=True))
