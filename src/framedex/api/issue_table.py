"""Issues as a table that a notebook displays, with the reasons for issue types that are not listed."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from framedex.api.data_frames import as_pandas
from framedex.core.counts import counted
from framedex.errors import Error
from framedex.render import html

if TYPE_CHECKING:
    import pandas as pd

Thumbnails = Callable[[Sequence[str]], list[bytes | None]]
"""Returns JPEGs of media; None for those that cannot be shown."""
_SHOWN = 20  # rows in a notebook
_COLUMNS = ("issue_type", "path", "value", "threshold", "percentile", "confidence")


class IssueTable:
    """A row for each issue of each media item: an Arrow table with notes.

    Columns, methods and attributes are those of :class:`pyarrow.Table`, which :meth:`to_arrow` returns.

    Attributes:
        notes: warnings, a line each, about issue types whose issues are uncertain in this dataset.

    Args:
        table: the rows.
        notes: the warnings.
        thumbnails: reads the images that a notebook shows beside the rows; None shows none.

    Examples:
        >>> issues = ds.issues()
        >>> issues
        <IssueTable: corrupted 1, dark 1, duplicates 4, mislabels 1, outliers 4>
        >>> issues["path"][0].as_py(), len(issues)
        ('broken.jpg', 11)
    """

    def __init__(self, table: pa.Table, notes: Sequence[str] = (), thumbnails: "Thumbnails | None" = None) -> None:
        self._table, self.notes, self._thumbnails = table, list(notes), thumbnails

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the rows and the notes for copies and pickles, which cannot contain an open workspace."""
        return type(self), (self._table, self.notes)

    def to_arrow(self) -> pa.Table:
        """Return the rows as an Arrow table, without the notes.

        Examples:
            >>> ds.issues("duplicates").to_arrow()["path"].to_pylist()
            ['cat-1-copy.jpg', 'cat-1.jpg', 'garden-small.jpg', 'garden.jpg']
        """
        return self._table

    def to_pandas(self) -> "pd.DataFrame":
        """Return the rows as a pandas table; ``to_arrow().to_pandas(…)`` takes the options of Arrow.

        Examples:
            >>> ds.issues("corrupted").to_pandas()[["path", "reason"]]
                     path                                    reason
            0  broken.jpg  it ends early: 0 % of the image is there
        """
        return as_pandas(self._table)

    def equals(self, other: Any) -> bool:
        """Return whether another table has the same rows; its notes do not matter.

        Examples:
            >>> ds.issues().equals(ds.view.issues())
            True
        """
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
        images = self._images([row["media_id"] for row in shown])
        rows = (
            [*first, *(row[name] for name in _COLUMNS), _remark(row)] for first, row in zip(images, shown, strict=True)
        )
        header = (*([""] if any(images) else []), *_COLUMNS, "remark")
        rest = len(self) - len(shown)
        return html.block(
            *map(html.note, self.notes),
            html.table(header, rows) if shown else html.note("no issues"),
            html.note(f"and {counted(rest, 'more rows')}") if rest else "",
        )

    def _images(self, media_ids: Sequence[str]) -> list[list[html.Markup]]:
        """Return the cells with the images of rows: one for each row, or none where they cannot be read."""
        if self._thumbnails is None:
            return [[] for _ in media_ids]
        try:
            return [[html.image_cell(jpeg)] for jpeg in self._thumbnails(media_ids)]
        except Error:  # the dataset was deleted meanwhile, or its workspace is closed
            return [[] for _ in media_ids]


def _remark(row: dict[str, Any]) -> str:
    return str(row["reason"] or (row["suggested_label"] and f"suggested label: {row['suggested_label']}") or "")
