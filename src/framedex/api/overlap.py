"""The copies of media of one view in another one, with thumbnails for notebooks and reports."""

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from framedex.api.data_frames import as_pandas
from framedex.api.result_pages import ThumbnailSource
from framedex.browse.explore import file_name
from framedex.core.counts import counted
from framedex.export.files import whole_file
from framedex.render import html
from framedex.settings import user_path

if TYPE_CHECKING:
    import pandas as pd

_SHOWN, _REPORTED = 12, 200
OVERLAP_COLUMNS = pa.schema(
    [
        pa.field("here_id", pa.string()),
        pa.field("there_id", pa.string()),
        pa.field("here_name", pa.string()),
        pa.field("there_name", pa.string()),
        pa.field("similarity", pa.float32()),
        pa.field("copy", pa.string()),
        pa.field("reason", pa.string()),
    ]
)
"""The columns of :meth:`Overlap.to_arrow`."""
Source = TypeVar("Source", bound=ThumbnailSource)


class Overlap(Generic[Source]):
    """The copies of media of one view, *here*, among those of another one, *there*.

    It stays as it is while the datasets change. Each media item is in at most 24 pairs: of both sides with its 12 most
    similar ones.

    Args:
        table: a row for each pair, with the columns :data:`OVERLAP_COLUMNS`.
        sources: both views.
        names: the names of their datasets.
        select: returns the media with some ids of one side, 0 or 1, as a view.

    Examples:
        >>> leaks = ds.overlap(ws.dataset("new"))
        >>> leaks
        <framedex.Overlap of 'pets' and 'new': 1 media item has copies there: 1 pair with 1 media item>
    """

    def __init__(
        self,
        table: pa.Table,
        sources: tuple[Source, Source],
        names: Sequence[str],
        select: Callable[[int, pa.Array], Source],
    ) -> None:
        self._table, self._sources, self._names, self._select = table, sources, names, select

    @property
    def view(self) -> Source:
        """The media here of which there is a copy there, those of the most similar pairs first; deleted ones leave it.

        Raises:
            InvalidInput: a service has more of them than the 10,000 that its views take.

        Examples:
            >>> [row["image_filename"] for row in ds.overlap(ws.dataset("new")).view]
            ['cat-3.jpg']
        """
        return self._select(0, pc.unique(self._table["here_id"]))

    @property
    def other_view(self) -> Source:
        """The media there of which there is a copy here; see :attr:`view`.

        Examples:
            >>> ds.overlap(ws.dataset("new")).other_view.tag("known").count
            1
        """
        return self._select(1, pc.unique(self._table["there_id"]))

    def __len__(self) -> int:
        """Return the number of pairs."""
        return len(self._table)

    def count(self) -> int:
        """Return the number of media here of which there is a copy there.

        Examples:
            >>> ds.overlap(ws.dataset("new")).count()
            1
        """
        return int(pc.count_distinct(self._table["here_id"]).as_py())

    def other_count(self) -> int:
        """Return the number of media there of which there is a copy here.

        Examples:
            >>> ds.overlap(ws.dataset("new")).other_count()
            1
        """
        return int(pc.count_distinct(self._table["there_id"]).as_py())

    def to_arrow(self) -> pa.Table:
        """Return a row for each pair, the most similar first; ties in the order of ingestion.

        Returns:
            A table: ``here_id`` and ``there_id``, media ids; ``here_name`` and ``there_name``, paths within the
            sources; ``similarity``, the cosine similarity of the copy descriptors in [0, 1], 0.96 for copies that
            keypoints show; ``copy``, ``here`` or ``there``, the end that is the copy, null if unknown; ``reason``, what
            was done to it.

        Examples:
            >>> ds.overlap(ws.dataset("new")).to_arrow().select(["here_name", "there_name", "reason"]).to_pylist()
            [{'here_name': 'cat-3.jpg', 'there_name': 'cat-3.jpg', 'reason': 'same file'}]
        """
        return self._table

    def to_pandas(self) -> "pd.DataFrame":
        """Return :meth:`to_arrow` as a DataFrame.

        Raises:
            MissingDependency: pandas is not installed.

        Examples:
            >>> ds.overlap(ws.dataset("new")).to_pandas()[["here_name", "there_name", "reason"]]
               here_name there_name     reason
            0  cat-3.jpg  cat-3.jpg  same file
        """
        return as_pandas(self._table)

    def report(self, path: str | os.PathLike[str]) -> Path:
        """Write one self-contained HTML page with the 200 most similar pairs side by side; return its path.

        Raises:
            InvalidInput: the file cannot be written.

        Examples:
            >>> ds.overlap(ws.dataset("new")).report("leaks.html").name
            'leaks.html'
        """
        target = user_path(path)
        title = f"Overlap of {' and '.join(dict.fromkeys(self._names))}"
        content = html.page(title, html.heading(title, 1), html.note(self._summary()), *self._cards(_REPORTED))
        with whole_file(target) as file:
            file.write(content.encode())
        return target

    def _summary(self) -> str:
        copied = counted(self.count(), "media", "have")
        return f"{copied} copies there: {counted(len(self), 'pairs')} with {counted(self.other_count(), 'media')}"

    def _cards(self, count: int) -> Iterator[str]:
        rows = self._table.slice(0, count).to_pylist()
        jpegs = []
        for source, column in zip(self._sources, ("here_id", "there_id"), strict=True):
            ids = list({row[column]: None for row in rows})
            jpegs.append(dict(zip(ids, source.thumbnails(ids), strict=True)))
        for row in rows:
            marks = (f"{side}{', the copy' if row['copy'] == side else ''}" for side in ("here", "there"))
            names = (file_name(row[name]) for name in ("here_name", "there_name"))
            found = jpegs[0][row["here_id"]], jpegs[1][row["there_id"]]
            yield html.card(
                html.heading(f"similarity {row['similarity']:.4f}", 3),
                html.note(row["reason"]),
                html.row(html.figure(*each) for each in zip(found, names, marks, strict=True)),
            )
        rest = len(self) - len(rows)
        yield html.note(f"and {counted(rest, 'more pairs')}") if rest else ""

    def __repr__(self) -> str:
        return f"<framedex.Overlap of {' and '.join(map(repr, dict.fromkeys(self._names)))}: {self._summary()}>"

    def _repr_html_(self) -> str:
        return html.block(html.note(self._summary()), *self._cards(_SHOWN))
