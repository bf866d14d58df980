"""Finding encoders by name. Further encoders join with :func:`register`."""

from collections.abc import Callable

from framedex.encoders.base import Encoder
from framedex.encoders.gist import Gist
from framedex.errors import InvalidInput

_FACTORIES: dict[str, Callable[[str], Encoder]] = {"gist": lambda _name: Gist()}

_GIVEN: dict[str, Encoder] = {}
"""Encoders that this process was given, by their names: queries of what they indexed need them again."""


def register(scheme: str, factory: Callable[[str], Encoder]) -> None:
    """Make ``scheme`` and ``scheme:…`` name what *factory* returns when it is given the whole name."""
    if not scheme or ":" in scheme or scheme == "auto":
        raise InvalidInput(f"{scheme!r} cannot name an encoder: it must be a word without ':', and not 'auto'")
    _FACTORIES[scheme] = factory


def choose_encoder(name: str | Encoder) -> tuple[Encoder, str]:
    """Return an encoder, and why it was chosen.

    Args:
        name: ``auto``, a registered name, or an encoder itself.

    Raises:
        InvalidInput: no encoder has that name, or the value is neither a name nor an encoder.
    """
    if isinstance(name, Encoder):
        _GIVEN[name.name] = name
        return name, "given in code"
    if not isinstance(name, str):
        raise InvalidInput(f"{name!r} is no encoder: give a name, or an object with the methods of Encoder")
    if name == "auto":
        return (
            Gist(),
            "auto: no learned encoder with local weights is registered, so the built-in one is used",
        )
    factory = _FACTORIES.get(name.partition(":")[0])
    if factory is None and name in _GIVEN:
        return _GIVEN[name], "given in code before"
    if factory is None:
        raise InvalidInput(f"no encoder {name!r}; there are: auto, {', '.join(sorted(_FACTORIES))}")
    return factory(name), "chosen by name"
