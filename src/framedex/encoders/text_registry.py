"""Finding encoders of texts by name: those of texts alone, and multimodal ones, which know texts, too."""

from collections.abc import Callable

from framedex import forks
from framedex.encoders.base import TextEncoder
from framedex.encoders.registry import choose_encoder
from framedex.errors import InvalidInput

_FACTORIES: dict[str, Callable[[str], TextEncoder]] = {}
_GIVEN: dict[str, TextEncoder] = {}
"""Encoders that this process was given, by their names."""
_MADE: dict[str, TextEncoder] = {}
_MAKING = forks.Lock()


def register_text_encoder(scheme: str, factory: Callable[[str], TextEncoder]) -> None:
    """Make ``scheme`` and ``scheme:…`` name what *factory* returns when it is given the whole name.

    For encoders of texts alone; what knows pictures, too, is found by the name that it was registered by.

    Args:
        scheme: a word without ``:``.
        factory: called once for each name.

    Raises:
        InvalidInput: the scheme cannot name an encoder.
    """
    if not scheme or ":" in scheme or scheme == "auto":
        raise InvalidInput(f"{scheme!r} cannot name an encoder: it must be a word without ':', and not 'auto'")
    with _MAKING:
        _FACTORIES[scheme] = factory
        for name in [each for each in _MADE if each.partition(":")[0] == scheme]:
            del _MADE[name]


def choose_text_encoder(name: str | TextEncoder) -> TextEncoder:
    """Return an encoder of texts.

    Args:
        name: a registered name, that of a multimodal encoder, or an encoder itself.

    Raises:
        InvalidInput: no encoder has that name, it knows no texts, or the value is neither a name nor an encoder.
    """
    if not isinstance(name, str):
        if not isinstance(name, TextEncoder):
            raise InvalidInput(f"{name!r} is no text encoder: give a name, or an object with the method encode_texts")
        _GIVEN[name.name] = name
        return name
    factory = _FACTORIES.get(name.partition(":")[0])
    if factory is not None:
        return _made(name, factory)
    if name in _GIVEN:
        return _GIVEN[name]
    if name == "auto":
        raise InvalidInput("a text encoder is given by its own name, not as 'auto'")
    encoder: object = choose_encoder(name)[0]
    if not isinstance(encoder, TextEncoder):
        raise InvalidInput(f"the encoder {name!r} knows pictures only; a text encoder has the method encode_texts")
    return encoder


def _made(name: str, factory: Callable[[str], TextEncoder]) -> TextEncoder:
    with _MAKING:
        if name not in _MADE:
            _MADE[name] = factory(name)
        return _MADE[name]
