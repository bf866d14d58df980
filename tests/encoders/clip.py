"""A small open_clip folder with random weights, and the trained one."""

import json
from pathlib import Path
from typing import Any

from framedex.encoders.open_clip_loading import load_open_clip
from tests.extras import need
from tests.make_checkpoints import CONFIG

need("clip", "torch", "huggingface_hub")

TRAINED = Path(__file__).parent.parent / "checkpoints" / "shapes-clip"
"""See tests/make_checkpoints.py."""


def random_state() -> dict[str, Any]:
    """Return random weights that fit the configuration of the small model, by name."""
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        state = load_open_clip().CLIP(**CONFIG["model_cfg"]).state_dict()
    return {name: value.contiguous() for name, value in state.items()}


def write_folder(folder: Path, state: dict[str, Any], name: str = "open_clip_model.safetensors") -> Path:
    """Write a configuration and weights in the layout of the hub, and return the folder."""
    import torch
    from safetensors.torch import save_file

    folder.mkdir(parents=True, exist_ok=True)
    (folder / "open_clip_config.json").write_text(json.dumps(CONFIG))
    if name.endswith(".safetensors"):
        save_file(state, folder / name)
    else:
        torch.save(state, folder / name)
    return folder
