"""The base class of records, and how they are printed."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from enum import Enum
from typing import Any

from pydantic import BaseModel, ConfigDict

from framedex.core.counts import counted

_REPR_LENGTH = 240
_TEXT_LENGTH = 120
_ITEMS_LENGTH = 60


class Record(BaseModel):
    """Base class of all records: immutable, without undocumented fields.

    Printed, a record is a line or two with its first fields that have a value; ``model_dump()`` has all of them.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    def __repr_args__(self) -> Iterable[tuple[str | None, Any]]:
        """Yield the fields that are printed."""
        length = 0
        for name, value in self:
            if value is None or value in ([], {}):
                continue
            shown = short(value)
            length += len(name) + len(shown) + 3
            if length > _REPR_LENGTH:
                yield None, _Plain("…")
                return
            yield name, _Plain(shown)


class _Plain(str):
    """Text that is printed without quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def short(value: Any) -> str:
    """Return a value as one line: long texts are cut, long lists become their number of items."""
    if isinstance(value, Enum):
        return repr(value.value)
    if isinstance(value, datetime):
        return repr(value.isoformat(" ", "seconds"))
    if isinstance(value, str):
        return repr(value if len(value) <= _TEXT_LENGTH else f"{value[: _TEXT_LENGTH - 1]}…")
    if isinstance(value, Record):
        return f"{type(value).__name__}(…)"
    if isinstance(value, Mapping | Sequence) and not isinstance(value, bytes):
        whole = repr(value)
        if len(whole) <= _ITEMS_LENGTH and "(…)" not in whole:
            return whole
        return f"[{counted(len(value), 'items')}]"
    whole = repr(value)
    return whole if len(whole) <= _TEXT_LENGTH else f"{whole[: _TEXT_LENGTH - 1]}…"
