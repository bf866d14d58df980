"""Trains the small checkpoint that tests of searches by text use, and says how well it finds images new to it.

    python -m tests.make_checkpoints tests/checkpoints/shapes-clip

For ``tests/checkpoints/shapes-captioner`` see ``tests/make_captioner.py``.

What it writes is a folder as any other of open_clip: a configuration and weights, the latter as float16. The tokenizer
is the usual one, so the table of words has 49,408 rows; those of words that no caption has are zero and say nothing.

The loss is that of CLIP, but every pair counts as right in which the caption is true of the image: "a red circle" is
true of many. Two runs on one machine give the same checkpoint, in eight to ten minutes on one core of two with other
work on them.

*Recall@1*: a gallery has one image of each of the 48 pairs of colour and shape on each of 3 backgrounds, drawn from
seeds that the training did not have. Asked are "a <colour> <shape>" and "a <colour> <shape> on a <background>
background": 32 queries for the 8 held-out pairs, of which no image and no caption of the training had both, and 160
for the others. A query counts when the image most similar to it shows all that it says.
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from framedex.encoders import OpenClipEncoder
from framedex.encoders.open_clip_loading import load_open_clip
from tests.make_captioner import CAPTIONER, make_captioner
from tests.shapes import BACKGROUNDS, HELD_OUT, PAIRS, SEEN, SIZES, Pixels, Scene, draw, gallery, queries

SIDE = 64
CONFIG: dict[str, Any] = {
    "model_cfg": {
        "embed_dim": 64,
        "vision_cfg": {"image_size": SIDE, "layers": [1, 1, 1, 1], "width": 8, "head_width": 64},
        "text_cfg": {"context_length": 16, "vocab_size": 49408, "width": 20, "heads": 2, "layers": 1},
    },
    "preprocess_cfg": {
        "mean": [0.5, 0.5, 0.5],
        "std": [0.5, 0.5, 0.5],
        "interpolation": "bicubic",
        "resize_mode": "shortest",
    },
}
"""As ``open_clip_config.json`` has it."""
IMAGES, STEPS, BATCH, PEAK_RATE = 12_000, 1_000, 192, 3e-3
# How often a caption says the colour, the shape, the background and the size: seldom all, so that each word is learned
# by itself, and pairs of words that never came together are understood.
_SAID = (0.65, 0.65, 0.4, 0.25)
_MOST_SCALE = 4.6  # of the logarithm by which similarities are multiplied, as in CLIP


def make_clip(folder: Path) -> None:
    """Train, write the folder, load it as a user would, and print the recall."""
    import torch

    begun_s = time.monotonic()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "open_clip_config.json").write_text(json.dumps(CONFIG, indent=2) + "\n")
    engine = load_open_clip()
    tokenizer = engine.get_tokenizer(f"local-dir:{folder}")
    _write(*_train(engine, tokenizer), folder / "open_clip_model.safetensors")
    encoder = OpenClipEncoder(folder, device="cpu")
    for name, pairs in (("held-out", HELD_OUT), ("seen", SEEN)):
        hits = find_all(encoder, pairs)
        print(f"recall@1 of {len(hits)} queries for {name} pairs: {np.mean(hits):.3f}")
    print(f"{time.monotonic() - begun_s:.0f} s")


def _train(engine: Any, tokenizer: Any) -> tuple[Any, npt.NDArray[np.bool_]]:
    """Return a trained model, and of which tokens the captions were."""
    import torch

    rng = np.random.default_rng(0)
    scenes = [_any_scene(rng) for _ in range(IMAGES)]
    pixels = torch.from_numpy(np.stack([small(draw(scene, rng)) for scene in scenes])).permute(0, 3, 1, 2)
    shown = torch.tensor([_numbers(scene) for scene in scenes])
    model = engine.CLIP(**CONFIG["model_cfg"])
    optimizer = torch.optim.AdamW(model.parameters(), PEAK_RATE, (0.9, 0.98), weight_decay=0.02)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, PEAK_RATE, STEPS, pct_start=0.1)
    used = np.zeros(model.vocab_size, bool)
    for step in range(STEPS):
        chosen = rng.integers(IMAGES, size=BATCH)
        captions = [_partly(scenes[each], rng) for each in chosen]
        tokens = tokenizer([scene.caption for scene in captions])
        used[tokens.unique().numpy()] = True
        said = torch.tensor([_numbers(scene) for scene in captions])[:, None]
        right = ((said < 0) | (said == shown[chosen])).all(-1).float()
        images = model.encode_image(pixels[chosen].float() / 127.5 - 1, normalize=True)
        texts = model.encode_text(tokens, normalize=True)
        loss = _loss(model.logit_scale.exp() * texts @ images.T, right)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        model.logit_scale.data.clamp_(0, _MOST_SCALE)
        if step % 100 == 99:
            print(f"step {step + 1}: loss {loss.item():.3f}", flush=True)
    return model, used


def _any_scene(rng: np.random.Generator) -> Scene:
    colour, shape = SEEN[rng.integers(len(SEEN))]
    return Scene(colour, shape, str(rng.choice(list(BACKGROUNDS))), str(rng.choice(list(SIZES))))


def _partly(scene: Scene, rng: np.random.Generator) -> Scene:
    """Return what a caption says of a scene: mostly colour and shape, the rest now and then."""
    told = rng.random(len(_SAID)) < _SAID
    return Scene(*(value if tell else None for value, tell in zip(vars(scene).values(), told, strict=True)))


def _numbers(scene: Scene) -> list[int]:
    """Return the attributes of a scene as numbers; -1 for what is left open."""
    return [-1 if value is None else _NUMBER[value] for value in vars(scene).values()]


_NUMBER = {word: number for number, word in enumerate(dict.fromkeys([*sum(PAIRS, ()), *BACKGROUNDS, *SIZES]))}


def _loss(logits: Any, right: Any) -> Any:
    """Return the mean cross entropy of both directions; what is right shares the probability evenly."""
    from torch.nn.functional import cross_entropy

    directions = ((logits, right), (logits.T, right.T))
    return sum(cross_entropy(each, truth / truth.sum(1, keepdim=True)) for each, truth in directions) / 2


def small(pixels: Pixels) -> Pixels:
    """Return an image of the size that the model takes."""
    from PIL import Image

    return np.asarray(Image.fromarray(pixels).resize((SIDE, SIDE), Image.Resampling.BICUBIC))


def _write(model: Any, used: npt.NDArray[np.bool_], path: Path) -> None:
    import torch
    from safetensors.torch import save_file

    model.token_embedding.weight.data[~torch.from_numpy(used)] = 0
    state = {name: value.contiguous() for name, value in model.state_dict().items()}
    save_file({name: value.half() if value.is_floating_point() else value for name, value in state.items()}, path)
    path.chmod(0o644)  # safetensors 0.8 makes files for their owner alone


def find_all(encoder: OpenClipEncoder, pairs: tuple[tuple[str, str], ...]) -> list[bool]:
    """Return of each query about some pairs whether the image found first shows what it says."""
    rng = np.random.default_rng(1)
    scenes = list(gallery())
    images = encoder.encode_images(np.stack([encoder.prepare(draw(scene, rng)) for scene in scenes]))
    asked = queries(pairs)
    best = (encoder.encode_texts([query.caption for query in asked]) @ images.T).argmax(axis=1)
    return [query.fits(scenes[place]) for query, place in zip(asked, best.tolist(), strict=True)]


if __name__ == "__main__":
    path = Path(sys.argv[1])
    (make_captioner if path.name == CAPTIONER else make_clip)(path)
