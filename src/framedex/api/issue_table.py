"""Issues as a table that a notebook displays, with the reasons for issue types that are not listed."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from framedex.api.data_frames import as_pandas
from framedex.render import html

if TYPE_CHECKING:
    import pandas as pd

_SHOWN = 20  # rows in a notebook
_COLUMNS = ("issue_type", "path", "value", "threshold", "percentile", "confidence")


class IssueTable:
    """A row for each issue of each media item: an Arrow table with notes.

    Columns, methods and attributes are those of :class:`pyarrow.Table`, which :meth:`to_arrow` returns.

    Attributes:
        notes: the reasons, a line each, for issue types that are not listed in this dataset.
    """

    def __init__(self, table: pa.Table, notes: Sequence[str] = ()) -> None:
        self._table, self.notes = table, list(notes)

    def to_arrow(self) -> pa.Table:
        """Return the rows as an Arrow table, without the notes."""
        return self._table

    def to_pandas(self) -> "pd.DataFrame":
        """Return the rows as a pandas table; ``to_arrow().to_pandas(…)`` takes the options of Arrow."""
        return as_pandas(self._table)

    def equals(self, other: Any) -> bool:
        """Return whether another table has the same rows; its notes do not matter."""
        table = other.to_arrow() if isinstance(other, IssueTable) else other
        return bool(self._table.equals(table))

    def __len__(self) -> int:
        """Return the number of rows."""
        return int(self._table.num_rows)

    def __getitem__(self, key: Any) -> Any:
        """Return a column by its name or position, or some rows by a slice."""
        return self._table[key]

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the Arrow table."""
        if name.startswith("_"):  # also before __init__, when a copy is made
            raise AttributeError(name)
        return getattr(self._table, name)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """Return the rows for other libraries by the Arrow PyCapsule interface."""
        return self._table.__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        """Return the number of issues of each type, and the notes."""
        counts = self._table["issue_type"].value_counts().to_pylist()
        listed = ", ".join(f"{each['values']} {each['counts']:,}" for each in counts) or "no issues"
        return "\n".join([f"<IssueTable: {listed}>", *self.notes])

    def _repr_html_(self) -> str:
        shown = self._table.slice(0, _SHOWN).to_pylist()
        rows = ([*(row[name] for name in _COLUMNS), _remark(row)] for row in shown)
        rest = len(self) - len(shown)
        return html.block(
            *map(html.note, self.notes),
            html.table((*_COLUMNS, "remark"), rows) if shown else html.note("no issues"),
            html.note(f"and {rest:,} more rows") if rest else "",
        )


def _remark(row: dict[str, Any]) -> str:
    return str(row["reason"] or (row["suggested_label"] and f"suggested label: {row['suggested_label']}") or "")
