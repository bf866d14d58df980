"""Finding encoders by name. Further encoders join with :func:`register`."""

from collections import OrderedDict
from collections.abc import Callable

from framedex import forks
from framedex.encoders.automatic import automatic
from framedex.encoders.base import Encoder
from framedex.encoders.gist import Gist
from framedex.encoders.onnx import OnnxEncoder
from framedex.encoders.open_clip import OpenClipEncoder
from framedex.encoders.weights import Stamp, Weighted, stamp
from framedex.errors import InvalidInput
from framedex.settings import Settings, load_settings

_FACTORIES: dict[str, Callable[[str, Settings], Encoder]] = {
    "gist": lambda _name, _settings: Gist(),
    "onnx": lambda name, _settings: OnnxEncoder.by_name(name),
    "open_clip": lambda name, settings: OpenClipEncoder.by_name(name, allow_download=settings.allow_downloads),
}

_GIVEN: dict[str, Encoder] = {}
"""Encoders that this process was given, by their names: queries of what they indexed need them again."""

_READ: "OrderedDict[str, tuple[Encoder, tuple[Stamp, ...]]]" = OrderedDict()
"""Encoders that were read from files, by their own names, with the stamps of the files: each query needs one again."""
_KEPT = 2  # models take memory
_READING = forks.Lock()


def register(scheme: str, factory: Callable[[str], Encoder]) -> None:
    """Make ``scheme`` and ``scheme:…`` name what *factory* returns when it is given the whole name."""
    if not scheme or ":" in scheme or scheme == "auto":
        raise InvalidInput(f"{scheme!r} cannot name an encoder: it must be a word without ':', and not 'auto'")
    _FACTORIES[scheme] = lambda name, _settings: factory(name)


def choose_encoder(name: str | Encoder, settings: Settings | None = None) -> tuple[Encoder, str]:
    """Return an encoder, and why it was chosen.

    Args:
        name: ``auto``, a registered name, or an encoder itself.
        settings: what ``auto`` stands for, and whether weights may be fetched; None for those of the environment.

    Raises:
        InvalidInput: no encoder has that name, or the value is neither a name nor an encoder.
    """
    if isinstance(name, Encoder):
        if _scheme(name.name) not in _FACTORIES:  # what is read again by its name is checked against its files
            _GIVEN[name.name] = name
        return name, "given in code"
    if not isinstance(name, str):
        raise InvalidInput(f"{name!r} is no encoder: give a name, or an object with the methods of Encoder")
    reason = "chosen by name"
    if name == "auto":
        name, reason = automatic(settings or load_settings())
    factory = _FACTORIES.get(_scheme(name))
    if factory is None and name in _GIVEN:
        return _GIVEN[name], "given in code before"
    if factory is None:
        raise InvalidInput(f"no encoder {name!r}; there are: auto, {', '.join(sorted(_FACTORIES))}")
    return _made(name, lambda name: factory(name, settings or load_settings())), reason


def _scheme(name: str) -> str:
    return name.partition(":")[0]


def _made(name: str, factory: Callable[[str], Encoder]) -> Encoder:
    """Return what a factory makes of a name, or made before, while the files that it was read from stay as they are."""
    with _READING:
        kept = _READ.get(name)
        if kept is not None and _stamps(kept[0]) == kept[1]:
            _READ.move_to_end(name)
            return kept[0]
        made = factory(name)
        if stamps := _stamps(made):
            _READ[made.name] = made, stamps
            _READ.move_to_end(made.name)
            while len(_READ) > _KEPT:
                _READ.popitem(last=False)
        return made


def _stamps(encoder: Encoder) -> tuple[Stamp, ...]:
    return tuple(stamp(path) for path in encoder.files) if isinstance(encoder, Weighted) else ()
