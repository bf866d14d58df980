"""An encoder of images and texts by colour, and workspaces that know it as a model."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from framedex import Workspace
from framedex.encoders import choose_encoder
from tests.gallery import Gate
from tests.image_files import flat, write

COLOURS = {"red": (230, 20, 20), "green": (20, 230, 20), "blue": (20, 20, 230)}
ENCODE = {"MULTIMODEL_IMAGE_ENCODING": "hues"}
TAG = {"IMAGE_TAGGING": "names"}


class Hues(Gate):
    """Mean colours of images, and of the colours that texts name; it waits at its gate.

    Attributes:
        prepared: how many images were prepared.
    """

    name = "hues"
    dimension = 3

    def __init__(self, *, opened: bool = True) -> None:
        super().__init__()
        self.prepared = 0
        if opened:
            self.opened.set()

    def prepare(self, pixels: npt.NDArray[np.uint8]) -> npt.NDArray[Any]:
        self.prepared += 1
        return np.asarray(pixels.reshape(-1, 3).mean(axis=0), np.float32)

    def encode_texts(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        named = [[COLOURS[word] for word in text.split() if word in COLOURS] or [(1, 1, 1)] for text in texts]
        means = np.array([np.mean(colours, axis=0) for colours in named], np.float32)
        return np.asarray(means / np.linalg.norm(means, axis=1, keepdims=True), np.float32)


def register_models(workspace: Workspace, encoder: Hues) -> None:
    """Let a workspace know the encoder as the models ``hues`` and ``names``, which tags by it."""
    choose_encoder(encoder)
    (workspace.path / "tags.txt").write_text("\n".join(COLOURS))
    (workspace.path / "models.toml").write_text(
        """
        [hues]
        type = "MULTIMODEL_IMAGE_ENCODING"
        encoder = "hues"
        vendor = "ours"
        description = "colours"

        [names]
        type = "IMAGE_TAGGING"
        encoder = "hues"
        vocabulary = "tags.txt"
        threshold = 0.5
        """
    )


def paint(folder: Path, count: int = 6) -> Path:
    """Write images of the colours in turn, ``0-red.png`` and so on, and return their folder."""
    rng = np.random.default_rng(7)
    for number in range(count):
        name = list(COLOURS)[number % len(COLOURS)]
        colour = np.clip(np.array(COLOURS[name]) + rng.integers(-15, 15, 3), 0, 255)
        write(folder / f"{number}-{name}.png", flat((int(colour[0]), int(colour[1]), int(colour[2]))))
    return folder
