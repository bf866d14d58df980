"""Schemes of encoder names."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from framedex.encoders.base import Encoder, TextEncoder
from framedex.errors import InvalidInput
from framedex.settings import Settings

RESERVED = "auto"


def _unchanged(name: str, _folder: Path) -> str:
    return name


def _unchecked(_name: str, _settings: Settings) -> None:
    pass


@dataclass(frozen=True)
class Scheme:
    """The encoders whose names begin with one word: ``<scheme>`` or ``<scheme>:…``.

    Attributes:
        name: the word.
        make: returns the encoder with a full name.
        reads_texts: whether its encoders encode texts, too; None if only a loaded encoder can answer.
        check: raises the errors of *make* that packages and files show, without loading a model.
        absolute_name: returns a name with absolute paths; relative ones are relative to a folder.

    Raises:
        InvalidInput: the word cannot be a scheme.

    Examples:
        >>> framedex.encoders.Scheme("mine", lambda name, settings: encoder, reads_texts=False).name
        'mine'
        >>> framedex.encoders.Scheme("auto", lambda name, settings: encoder)
        Traceback (most recent call last):
            ...
        framedex.errors.InvalidInput: 'auto' cannot name an encoder: it must be a word without ':', and not
          'auto'
    """

    name: str
    make: Callable[[str, Settings], Encoder | TextEncoder]
    reads_texts: bool | None = None
    check: Callable[[str, Settings], None] = _unchecked
    absolute_name: Callable[[str, Path], str] = _unchanged

    def __post_init__(self) -> None:
        """Check the word."""
        if not isinstance(self.name, str) or not self.name or ":" in self.name or self.name == RESERVED:
            raise InvalidInput(
                f"{self.name!r} cannot name an encoder: it must be a word without ':', and not {RESERVED!r}"
            )
