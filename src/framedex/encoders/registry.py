"""Registry of encoders: one row for each scheme of names.

Plugins and :func:`register` add rows.
"""

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

from framedex.core import forks
from framedex.core.lru_cache import LruCache
from framedex.encoders import onnx_settings, open_clip_names
from framedex.encoders.availability import check_onnx, check_open_clip
from framedex.encoders.base import Encoder, TextEncoder
from framedex.encoders.gist import Gist
from framedex.encoders.local_models import automatic_model
from framedex.encoders.onnx import OnnxEncoder
from framedex.encoders.open_clip import OpenClipEncoder
from framedex.encoders.open_clip_files import cached_on_hub
from framedex.encoders.scheme import RESERVED, Scheme
from framedex.encoders.weights import Stamp, Weighted, stamp
from framedex.errors import InvalidInput
from framedex.plugins import Contributions
from framedex.settings import Settings, load_settings

_BUILT_IN = (
    Scheme("gist", lambda _name, _settings: Gist(), reads_texts=False),
    Scheme(
        onnx_settings.SCHEME,
        lambda name, _settings: OnnxEncoder.by_name(name),
        reads_texts=False,
        check=check_onnx,
        absolute_name=onnx_settings.absolute_onnx_name,
    ),
    Scheme(
        open_clip_names.SCHEME,
        lambda name, settings: OpenClipEncoder.by_name(name, allow_download=settings.allow_downloads),
        reads_texts=True,
        check=check_open_clip,
        absolute_name=open_clip_names.absolute_open_clip_name,
    ),
)

CLIP = "open_clip:ViT-B-32/laion2b_s34b_b79k"
"""The learned encoder that ``auto`` selects if its weights are on this machine. It is fast enough without a GPU."""
CLIP_ON_HUB = "laion/CLIP-ViT-B-32-laion2B-s34B-b79K"
"""The repository from which open_clip 3.3 reads these weights; a constant, because open_clip imports PyTorch."""

_SCHEMES: dict[str, Scheme] = {scheme.name: scheme for scheme in _BUILT_IN}
ENCODER_PLUGINS = Contributions("framedex.encoders", Scheme, taken=lambda: [scheme.name for scheme in _BUILT_IN])
"""Schemes of plugins."""

_IN_CODE: dict[str, Encoder] = {}
"""Encoders that this process passed as objects, by name. Queries of their datasets need them again."""
_TEXTS_IN_CODE: dict[str, TextEncoder] = {}
"""Text encoders that this process passed as objects, by name."""

_LOADED: LruCache[str, tuple[Encoder | TextEncoder, tuple[Stamp, ...]]] = LruCache(2)  # models take memory
"""Loaded encoders with the stamps of their files. Each query needs its encoder again."""
_MAKING = forks.RLock()


def register(scheme: str, factory: Callable[[str], Encoder | TextEncoder]) -> None:
    """Register a factory of encoders for the names ``scheme`` and ``scheme:…``. It is called with the full name.

    The encoder may encode images, texts, or both.

    Raises:
        InvalidInput: the scheme cannot name an encoder.

    Examples:
        >>> framedex.encoders.register("mine", lambda name: encoder)
        >>> framedex.encoders.choose_encoder("mine:any")[0].name
        'gist'
    """
    row = Scheme(scheme, lambda name, _settings: factory(name))
    with _MAKING:
        _SCHEMES[scheme] = row
        _LOADED.clear()


def schemes() -> dict[str, Scheme]:
    """Return all schemes by name: built-in and registered ones, and those of plugins."""
    return {**ENCODER_PLUGINS.rows(), **_SCHEMES}


def choose_encoder(name: str | Encoder, settings: Settings | None = None) -> tuple[Encoder, str]:
    """Return an image encoder, and the reason for its choice.

    Args:
        name: ``auto``, a registered name, or an encoder itself.
        settings: the encoder of ``auto``, and whether weights may be downloaded; by default from the environment.

    Raises:
        InvalidInput: no encoder has that name, it does not encode images, or the value is neither a name nor an
            encoder.

    Examples:
        >>> encoder, reason = framedex.encoders.choose_encoder("onnx:classifier.onnx?colours=bgr")
        >>> encoder.dimension, reason
        (6, 'chosen by name')
    """
    if isinstance(name, Encoder):
        if _scheme_of(name.name) is None:  # an encoder that its name loads again is checked against its files
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
    encoder = _load(name, scheme, settings)
    if not isinstance(encoder, Encoder):
        raise InvalidInput(f"{name!r} is no encoder of images; one has the methods of framedex.Encoder")
    return encoder, reason


def choose_text_encoder(name: str | TextEncoder) -> TextEncoder:
    """Return a text encoder, which may also encode images.

    Args:
        name: a registered name, or an encoder itself.

    Raises:
        InvalidInput: no encoder has that name, it does not encode texts, or the value is neither a name nor an encoder.

    Examples:
        >>> framedex.encoders.choose_text_encoder("open_clip:shapes-clip").dimension
        64
        >>> framedex.encoders.choose_text_encoder("gist")
        Traceback (most recent call last):
            ...
        framedex.errors.InvalidInput: the encoder 'gist' knows images only; a text encoder has the method
          encode_texts
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
    encoder: object = _IN_CODE[name] if scheme is None and name in _IN_CODE else _load(name, scheme, None)
    if not isinstance(encoder, TextEncoder):
        raise InvalidInput(f"the encoder {name!r} knows images only; a text encoder has the method encode_texts")
    return encoder


def check_multimodal(name: str, settings: Settings) -> None:
    """Check by packages and files that an encoder of images and texts can be loaded on this machine.

    Raises:
        MissingDependency: a package is not installed.
        NotFound: a file does not exist, or the weights are not on this machine.
        InvalidInput: no encoder has that name, or it does not encode texts.

    Examples:
        >>> framedex.encoders.check_multimodal("gist", ws.settings)
        Traceback (most recent call last):
            ...
        framedex.errors.InvalidInput: the encoder 'gist' knows images only; one of images and texts is needed
    """
    scheme = _scheme_of(name)
    if scheme is None or scheme.reads_texts is None:
        reads_texts = isinstance(choose_encoder(name, settings)[0], TextEncoder)
    else:
        reads_texts = scheme.reads_texts
    if not reads_texts:
        raise InvalidInput(f"the encoder {name!r} knows images only; one of images and texts is needed")
    if scheme is not None:
        scheme.check(name, settings)


def absolute_name(name: str, folder: Path) -> str:
    """Return the name of an encoder with absolute paths; relative ones are relative to the folder.

    Examples:
        >>> from pathlib import Path
        >>> framedex.encoders.absolute_name("onnx:model.onnx", Path("/models"))
        'onnx:/models/model.onnx'
    """
    scheme = _scheme_of(name)
    return name if scheme is None or ":" not in name else scheme.absolute_name(name, folder)


def automatic(settings: Settings) -> tuple[str, str]:
    """Return the name of the encoder that ``auto`` selects, and the reason. It loads no model and no engine."""
    if settings.encoder not in (None, RESERVED):
        assert settings.encoder is not None
        return settings.encoder, "auto: FRAMEDEX_ENCODER names it"
    fetched, reason = automatic_model(settings)
    if fetched is not None:
        return fetched.encoder, reason
    if reason:
        return "gist", f"auto: {reason}; until then the built-in encoder is used"
    if not all(find_spec(package) for package in ("torch", "open_clip")):
        return "gist", "auto: open_clip is not installed, so the built-in encoder is used"
    if cached_on_hub(CLIP_ON_HUB) is None:
        return "gist", f"auto: the weights of {CLIP} are not on this machine, so the built-in encoder is used"
    return CLIP, "auto: open_clip is installed and the weights are on this machine"


def is_loaded_by_name(name: str) -> bool:
    """Return whether another process can load an encoder by its name: not one that was given or registered in code.

    Args:
        name: the name, such as ``gist`` or ``clip:ViT-B-32``.

    Examples:
        >>> from framedex.encoders import is_loaded_by_name
        >>> is_loaded_by_name("gist")
        True
    """
    word = name.partition(":")[0]
    return any(_SCHEMES.get(word) is each for each in _BUILT_IN) or (
        word not in _SCHEMES and word in ENCODER_PLUGINS.rows()
    )


def _scheme_of(name: str) -> Scheme | None:
    word = name.partition(":")[0]
    # Plugins are loaded only if no built-in or registered scheme has the name.
    return _SCHEMES.get(word) or ENCODER_PLUGINS.rows().get(word)


def _load(name: str, scheme: Scheme | None, settings: Settings | None) -> Encoder | TextEncoder:
    """Return the encoder with a name, from the cache if its files have not changed.

    An image encoder without files is not cached: it costs nothing to build, and would evict a model.
    """
    if scheme is None:
        raise InvalidInput(f"no encoder {name!r}; there are: {RESERVED}, {', '.join(sorted(schemes()))}")
    with _MAKING:
        if (cached := _LOADED.get(name)) is not None and _stamps(cached[0]) == cached[1]:
            return cached[0]
        encoder = scheme.make(name, settings or load_settings())
        if not isinstance(encoder, Encoder | TextEncoder):
            raise InvalidInput(f"{encoder!r}, made for {name!r}, is no encoder: it lacks the methods of Encoder")
        if (stamps := _stamps(encoder)) or isinstance(encoder, TextEncoder):
            _LOADED.put(encoder.name if stamps else name, (encoder, stamps))
        return encoder


def _stamps(encoder: Encoder | TextEncoder) -> tuple[Stamp, ...]:
    return tuple(stamp(path) for path in encoder.files) if isinstance(encoder, Weighted) else ()
