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
        make: returns the encoder of a whole name.
        reads_texts: whether its encoders turn texts into vectors, too; None if only a loaded one can say.
        check: raises what *make* would, as far as packages and files show it; loads no model.
        absolute_name: returns a name in which paths that were relative to a folder are absolute.

    Raises:
        InvalidInput: the word cannot be a scheme.
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
