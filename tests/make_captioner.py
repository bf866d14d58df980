"""Trains the small captioner that tests use, and says how often its captions are right.

    python -m tests.make_checkpoints tests/checkpoints/shapes-captioner

What it writes is a folder as any other of transformers: a vision encoder and a decoder of text (VisionEncoderDecoder)
with configurations, weights as float16, a tokenizer of whole words and how images are prepared. It took 26 minutes on
one core of two that had other work, too. Seeds are fixed.

*Exact captions*: two images of each of the 48 pairs of colour and shape on each of 3 backgrounds, drawn from seeds
that the training did not have. A caption is right when all of its words are: size, colour, shape and background.
"""

import time
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from framedex.enrichers import TransformersCaptioner
from framedex.enrichers.captioner_loading import load_transformers
from tests.shapes import BACKGROUNDS, COLOURS, PAIRS, SHAPES, SIZES, Scene, draw, gallery

CAPTIONER = "shapes-captioner"
"""The name of its folder."""
SIDE = 64
IMAGES, STEPS, BATCH, PEAK_RATE = 16_000, 3_600, 64, 1.5e-3
_SPECIAL = ("[PAD]", "[BOS]", "[EOS]", "[UNK]")
_WORDS = ("a", "an", "on", "background", *SIZES, *COLOURS, *SHAPES, *BACKGROUNDS)
_LAYOUT: dict[str, int] = {"hidden_size": 96, "num_hidden_layers": 3, "num_attention_heads": 4}


def make_captioner(folder: Path) -> None:
    """Train, write the folder, load it as a user would, and print how many captions are right."""
    import torch

    begun_s = time.monotonic()
    load_transformers()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = _tokenizer()
    model = _model(tokenizer)
    _train(model, tokenizer)
    _write(model, tokenizer, folder)
    right = exact(TransformersCaptioner(folder, device="cpu"))
    print(f"exact captions of {len(right)} images: {np.mean(right):.3f}")
    print(f"{time.monotonic() - begun_s:.0f} s")


def exact(captioner: TransformersCaptioner, seed: int = 1) -> list[bool]:
    """Return of each image that the training did not have whether the whole caption is right."""
    rng = np.random.default_rng(seed)
    scenes = [*gallery(), *gallery()]
    images = np.stack([captioner.prepare(draw(scene, rng)) for scene in scenes])
    return [said == scene.caption for said, scene in zip(captioner.captions(images), scenes, strict=True)]


def _tokenizer() -> Any:
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    words = Tokenizer(models.WordLevel({word: n for n, word in enumerate([*_SPECIAL, *_WORDS])}, unk_token="[UNK]"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    pad, bos, eos, unk = _SPECIAL
    return PreTrainedTokenizerFast(tokenizer_object=words, pad_token=pad, bos_token=bos, eos_token=eos, unk_token=unk)


def _model(tokenizer: Any) -> Any:
    from transformers import GPT2Config, VisionEncoderDecoderConfig, VisionEncoderDecoderModel, ViTConfig

    width, layers, heads = _LAYOUT.values()
    encoder = ViTConfig(**_LAYOUT, intermediate_size=2 * width, image_size=SIDE, patch_size=8, hidden_dropout_prob=0.0)
    decoder = GPT2Config(
        vocab_size=len(tokenizer), n_positions=16, n_embd=width, n_layer=layers - 1, n_head=heads, n_inner=2 * width,
        resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
        bos_token_id=tokenizer.bos_token_id, eos_token_id=tokenizer.eos_token_id,
    )  # fmt: skip
    config = VisionEncoderDecoderConfig.from_encoder_decoder_configs(encoder, decoder)
    config.decoder_start_token_id = tokenizer.bos_token_id
    config.pad_token_id, config.eos_token_id = tokenizer.pad_token_id, tokenizer.eos_token_id
    model = VisionEncoderDecoderModel(config)
    said = model.generation_config
    said.decoder_start_token_id, said.bos_token_id = tokenizer.bos_token_id, tokenizer.bos_token_id
    said.pad_token_id, said.eos_token_id = tokenizer.pad_token_id, tokenizer.eos_token_id
    return model


def _train(model: Any, tokenizer: Any) -> None:
    import torch

    rng = np.random.default_rng(0)
    scenes = [_any_scene(rng) for _ in range(IMAGES)]
    images = torch.from_numpy(np.stack([_small(draw(scene, rng)) for scene in scenes])).permute(0, 3, 1, 2)
    ids = tokenizer([f"{scene.caption} [EOS]" for scene in scenes], return_tensors="pt", padding=True).input_ids
    words = torch.nn.functional.one_hot(ids, len(tokenizer)).amax(1).float()
    ids[ids == tokenizer.pad_token_id] = -100  # what the loss leaves out
    # For the training alone: which words a caption has, by the mean of what the encoder makes of the image.
    named = torch.nn.Linear(_LAYOUT["hidden_size"], len(tokenizer))
    optimizer = torch.optim.AdamW([*model.parameters(), *named.parameters()], PEAK_RATE, (0.9, 0.98), weight_decay=0.02)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, PEAK_RATE, STEPS, pct_start=0.1)
    model.train()
    for step in range(STEPS):
        chosen = torch.from_numpy(rng.integers(IMAGES, size=BATCH))
        made = model(pixel_values=images[chosen].float() / 127.5 - 1, labels=ids[chosen])
        seen = named(made.encoder_last_hidden_state.mean(1))
        loss = made.loss + torch.nn.functional.binary_cross_entropy_with_logits(seen, words[chosen])
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if step % 100 == 99:
            print(f"step {step + 1}: loss {loss.item():.3f}, of captions {made.loss.item():.3f}", flush=True)
    model.eval()


def _any_scene(rng: np.random.Generator) -> Scene:
    colour, shape = PAIRS[rng.integers(len(PAIRS))]
    return Scene(colour, shape, str(rng.choice(list(BACKGROUNDS))), str(rng.choice(list(SIZES))))


def _small(pixels: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    from PIL import Image

    return np.asarray(Image.fromarray(pixels).resize((SIDE, SIDE), Image.Resampling.BICUBIC))


def _write(model: Any, tokenizer: Any, folder: Path) -> None:
    from transformers import ViTImageProcessorPil

    model.half().save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    half = [0.5, 0.5, 0.5]
    size = {"height": SIDE, "width": SIDE}
    ViTImageProcessorPil(size=size, resample=3, image_mean=half, image_std=half).save_pretrained(folder)
    for path in folder.iterdir():
        path.chmod(0o644)  # safetensors 0.8 makes files for their owner alone
