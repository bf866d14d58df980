"""The encoder that ``auto`` stands for."""

from importlib.util import find_spec

from framedex.encoders.open_clip_files import cached_on_hub
from framedex.settings import Settings

CLIP = "open_clip:ViT-B-32/laion2b_s34b_b79k"
"""The learned encoder that is taken where its weights are here already; it can be used without a GPU, too."""
CLIP_ON_HUB = "laion/CLIP-ViT-B-32-laion2B-s34B-b79K"
"""Where open_clip 3.3 has these weights from: said here, as asking it would load PyTorch."""


def automatic(settings: Settings) -> tuple[str, str]:
    """Return the name of an encoder, and why it was chosen. No model and no engine is loaded for that."""
    if settings.encoder not in (None, "auto"):
        assert settings.encoder is not None
        return settings.encoder, "auto: FRAMEDEX_ENCODER names it"
    if not all(find_spec(package) for package in ("torch", "open_clip")):
        return "gist", "auto: open_clip is not installed, so the built-in encoder is used"
    if cached_on_hub(CLIP_ON_HUB) is None:
        return "gist", f"auto: the weights of {CLIP} are not on this machine, so the built-in encoder is used"
    return CLIP, "auto: open_clip is installed and the weights are on this machine"
