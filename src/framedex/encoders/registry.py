"""Encoders by name: a row for each scheme of names.

Further rows come from other packages, by entry points, and from :func:`register`.
"""

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

from framedex import forks
from framedex.encoders import onnx_settings, open_clip_names
from framedex.encoders.availability import check_onnx, check_open_clip
from framedex.encoders.base import Encoder, TextEncoder
from framedex.encoders.gist import Gist
from framedex.encoders.onnx import OnnxEncoder
from framedex.encoders.open_clip import OpenClipEncoder
from framedex.encoders.open_clip_files import cached_on_hub
from framedex.encoders.scheme import RESERVED, Scheme
from framedex.encoders.weights import Stamp, Weighted, stamp
from framedex.errors import InvalidInput
from framedex.lru_cache import LruCache
from framedex.plugins import Contributions
from framedex.settings import Settings, load_settings

_BUILT_IN = (
    Scheme("gist", lambda _name, _settings: Gist(), reads_texts=False),
    Scheme(
        onnx_settings.SCHEME,
        lambda name, _settings: OnnxEncoder.by_name(name),
        reads_texts=False,
        check=check_onnx,
        absolute_name=onnx_settings.absolute_name,
    ),
    Scheme(
        open_clip_names.SCHEME,
        lambda name, settings: OpenClipEncoder.by_name(name, allow_download=settings.allow_downloads),
        reads_texts=True,
        check=check_open_clip,
        absolute_name=open_clip_names.absolute_name,
    ),
)

CLIP = "open_clip:ViT-B-32/laion2b_s34b_b79k"
"""The learned encoder that ``auto`` stands for where its weights are on this machine; it is usable without a GPU."""
CLIP_ON_HUB = "laion/CLIP-ViT-B-32-laion2B-s34B-b79K"
"""The repository that open_clip 3.3 reads these weights from; written out, as asking open_clip would load PyTorch."""

_SCHEMES: dict[str, Scheme] = {scheme.name: scheme for scheme in _BUILT_IN}
ENCODER_PLUGINS = Contributions("framedex.encoders", Scheme, taken=lambda: [scheme.name for scheme in _BUILT_IN])
"""Schemes of other packages."""

_IN_CODE: dict[str, Encoder] = {}
"""Encoders that this process passed as objects, by their names: queries of what they indexed need them again."""
_TEXTS_IN_CODE: dict[str, TextEncoder] = {}
"""Likewise encoders of texts."""

_MADE: LruCache[str, tuple[Encoder | TextEncoder, tuple[Stamp, ...]]] = LruCache(2)  # models take memory
"""Encoders that were made, with the stamps of the files that they were read from: each query needs one again."""
_MAKING = forks.RLock()


def register(scheme: str, factory: Callable[[str], Encoder | TextEncoder]) -> None:
    """Make ``scheme`` and ``scheme:…`` name the encoder that *factory* returns for the whole name.

    The encoder is one of images, of texts, or of both.

    Raises:
        InvalidInput: the scheme cannot name an encoder.
    """
    row = Scheme(scheme, lambda name, _settings: factory(name))
    with _MAKING:
        _SCHEMES[scheme] = row
        _MADE.clear()


def schemes() -> dict[str, Scheme]:
    """Return all schemes by name: those that are built in or were registered, and those of other packages."""
    return {**ENCODER_PLUGINS.rows(), **_SCHEMES}


def choose_encoder(name: str | Encoder, settings: Settings | None = None) -> tuple[Encoder, str]:
    """Return an encoder of images, and why it was chosen.

    Args:
        name: ``auto``, a registered name, or an encoder itself.
        settings: what ``auto`` stands for, and whether weights may be fetched; None for those of the environment.

    Raises:
        InvalidInput: no encoder has that name, it knows no images, or the value is neither a name nor an encoder.
    """
    if isinstance(name, Encoder):
        if _scheme_of(name.name) is None:  # what is read again by its name is checked against its files
            _IN_CODE[name.name] = name
        return name, "given in code"
    if not isinstance(name, str):
        raise InvalidInput(f"{name!r} is no encoder: give a name, or an object with the methods of Encoder")
    reason = "chosen by name"
    if name == RESERVED:
        name, reason = automatic(settings or load_settings())
    scheme = _scheme_of(name)
    if scheme is None and name in _IN_CODE:
        return _IN_CODE[name], "given in code before"
    encoder = _made(name, scheme, settings)
    if not isinstance(encoder, Encoder):
        raise InvalidInput(f"{name!r} is no encoder of images; one has the methods of framedex.Encoder")
    return encoder, reason


def choose_text_encoder(name: str | TextEncoder) -> TextEncoder:
    """Return an encoder of texts: of texts alone, or of images and texts.

    Args:
        name: a registered name, or an encoder itself.

    Raises:
        InvalidInput: no encoder has that name, it knows no texts, or the value is neither a name nor an encoder.
    """
    if not isinstance(name, str):
        if not isinstance(name, TextEncoder):
            raise InvalidInput(f"{name!r} is no text encoder: give a name, or an object with the method encode_texts")
        _TEXTS_IN_CODE[name.name] = name
        return name
    if name in _TEXTS_IN_CODE:
        return _TEXTS_IN_CODE[name]
    if name == RESERVED:
        raise InvalidInput(f"a text encoder is given by its own name, not as {RESERVED!r}")
    scheme = _scheme_of(name)
    encoder: object = _IN_CODE[name] if scheme is None and name in _IN_CODE else _made(name, scheme, None)
    if not isinstance(encoder, TextEncoder):
        raise InvalidInput(f"the encoder {name!r} knows pictures only; a text encoder has the method encode_texts")
    return encoder


def check_multimodal(name: str, settings: Settings) -> None:
    """Check that an encoder of images and texts can be made here, as far as packages and files show it.

    Raises:
        MissingDependency: a package is not installed.
        NotFound: a file is not there, or weights are not on this machine.
        InvalidInput: no encoder has that name, or it knows no texts.
    """
    scheme = _scheme_of(name)
    if scheme is None or scheme.reads_texts is None:
        reads_texts = isinstance(choose_encoder(name, settings)[0], TextEncoder)
    else:
        reads_texts = scheme.reads_texts
    if not reads_texts:
        raise InvalidInput(f"the encoder {name!r} knows pictures only; one of pictures and texts is needed")
    if scheme is not None:
        scheme.check(name, settings)


def absolute_name(name: str, folder: Path) -> str:
    """Return the name of an encoder in which paths that are relative to a folder are absolute."""
    scheme = _scheme_of(name)
    return name if scheme is None or ":" not in name else scheme.absolute_name(name, folder)


def automatic(settings: Settings) -> tuple[str, str]:
    """Return the name of the encoder that ``auto`` stands for, and why; loads no model and no engine."""
    if settings.encoder not in (None, RESERVED):
        assert settings.encoder is not None
        return settings.encoder, "auto: FRAMEDEX_ENCODER names it"
    if not all(find_spec(package) for package in ("torch", "open_clip")):
        return "gist", "auto: open_clip is not installed, so the built-in encoder is used"
    if cached_on_hub(CLIP_ON_HUB) is None:
        return "gist", f"auto: the weights of {CLIP} are not on this machine, so the built-in encoder is used"
    return CLIP, "auto: open_clip is installed and the weights are on this machine"


def _scheme_of(name: str) -> Scheme | None:
    word = name.partition(":")[0]
    # Those of other packages are looked for only where none of our own has the name.
    return _SCHEMES.get(word) or ENCODER_PLUGINS.rows().get(word)


def _made(name: str, scheme: Scheme | None, settings: Settings | None) -> Encoder | TextEncoder:
    """Return the encoder of a name: one that was made before, while the files that it was read from stay as they are.

    An encoder of images that was read from no file is made each time: it costs nothing, and would push out a model.
    """
    if scheme is None:
        raise InvalidInput(f"no encoder {name!r}; there are: {RESERVED}, {', '.join(sorted(schemes()))}")
    with _MAKING:
        if (kept := _MADE.get(name)) is not None and _stamps(kept[0]) == kept[1]:
            return kept[0]
        made = scheme.make(name, settings or load_settings())
        if not isinstance(made, Encoder | TextEncoder):
            raise InvalidInput(f"{made!r}, made for {name!r}, is no encoder: it lacks the methods of Encoder")
        if (stamps := _stamps(made)) or isinstance(made, TextEncoder):
            _MADE.put(made.name if stamps else name, (made, stamps))
        return made


def _stamps(encoder: Encoder | TextEncoder) -> tuple[Stamp, ...]:
    return tuple(stamp(path) for path in encoder.files) if isinstance(encoder, Weighted) else ()
