"""A workspace that knows the small captioner as the model ``shapes``, and images of shapes."""

from pathlib import Path

import numpy as np

from framedex import Workspace
from tests.enrichers.captioners import TRAINED
from tests.image_files import write
from tests.shapes import Scene, draw

CAPTION = {"CAPTION_IMAGES": "shapes"}
SCENES = [
    Scene("red", "circle", "white", "large"), Scene("blue", "square", "black", "large"),
    Scene("green", "cross", "white", "large"), Scene("yellow", "star", "black", "large"),
    Scene("pink", "ring", "black", "large"), Scene("brown", "triangle", "white", "large"),
]  # fmt: skip


def register_captioner(workspace: Workspace, more: str = "") -> None:
    """Let a workspace know the captioner, also as ``anew``, which replaces all captions; and models of *more*."""
    model = f'type = "CAPTION_IMAGES"\ncaptioner = "{TRAINED}"\n'
    (workspace.path / "models.toml").write_text(
        f"[shapes]\n{model}[anew]\n{model}replace = true\nprompt = 'a small'\n{more}"
    )


def draw_all(folder: Path) -> Path:
    """Write an image of each scene, ``0.png`` and so on, and return their folder."""
    rng = np.random.default_rng(8)
    for number, scene in enumerate(SCENES):
        write(folder / f"{number}.png", draw(scene, rng))
    return folder
