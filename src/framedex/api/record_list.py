"""Lists of records that are printed a record a line, and that a notebook displays as a table."""

from collections.abc import Iterable
from datetime import datetime
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from framedex.api.data_frames import as_pandas
from framedex.core.counts import counted
from framedex.records import Record, VideoCopy
from framedex.render import html

if TYPE_CHECKING:
    import pandas as pd

Item = TypeVar("Item", bound=Record)
_SHOWN = 20
_COLUMNS = 8  # of a table in a notebook: the first fields that have a value in some record


class RecordList(list[Item]):
    """A list of records; equal to a plain list of them, and pickled as one.

    Printed, it has a line for each of its first records. :meth:`to_pandas` has all fields of all records.

    Args:
        records: the records.
    """

    def __init__(self, records: Iterable[Item] = ()) -> None:
        super().__init__(records)

    def to_pandas(self) -> "pd.DataFrame":
        """Return a row for each record and a column for each field.

        Raises:
            MissingDependency: pandas is not installed.
        """
        return as_pandas(pa.Table.from_pylist([each.model_dump(mode="json") for each in self]))

    def __reduce__(self) -> tuple[Any, ...]:
        """Return a plain list for copies and pickles."""
        return list, (list(self),)

    def __repr__(self) -> str:
        rest = len(self) - _SHOWN
        lines = [*map(repr, self[:_SHOWN]), *([f"… and {rest:,} more"] if rest > 0 else [])]
        return f"[{(',' + chr(10) + ' ').join(lines)}]"

    def _repr_html_(self) -> str:
        if not self:
            return html.block(html.note("none"))
        shown = self[:_SHOWN]
        names = [name for name in type(self[0]).model_fields if any(_has(getattr(each, name)) for each in shown)]
        rows = ([_cell(getattr(each, name)) for name in names[:_COLUMNS]] for each in shown)
        rest = len(self) - len(shown)
        return html.block(html.table(names[:_COLUMNS], rows), html.note(f"and {rest:,} more") if rest else "")


def _has(value: Any) -> bool:
    return value is not None and value not in ("", [], {})


def _cell(value: Any) -> Any:
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, datetime):
        return value.isoformat(" ", "seconds")
    if isinstance(value, Record):
        return repr(value)
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else value


class VideoCopies(RecordList[VideoCopy]):
    """The parts of videos that are also parts of other ones, as a list.

    Attributes:
        n_unread: the number of pairs of videos that were not compared, because a file cannot be read.
        n_left: the number of pairs that were not compared, because ``copy_budget_ms`` was spent.
    """

    def __init__(self, records: Iterable[VideoCopy] = (), n_unread: int = 0, n_left: int = 0) -> None:
        super().__init__(records)
        self.n_unread, self.n_left = n_unread, n_left

    @property
    def not_compared(self) -> str:
        """The pairs of videos that were not compared, in words; empty if all were."""
        reasons = (self.n_unread, "a file cannot be read"), (self.n_left, "copy_budget_ms is spent")
        return "; ".join(f"{counted(n, 'pairs of videos')} not compared: {why}" for n, why in reasons if n)

    def __repr__(self) -> str:
        return "\n".join(filter(None, [super().__repr__(), self.not_compared]))
