"""The overlap of two views: copies of media of one in the other."""

import hashlib
import os
from collections.abc import Hashable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Protocol, Self, TypeVar

import numpy as np
import pyarrow as pa

from framedex.api.data_frames import as_pandas
from framedex.api.result_pages import ThumbnailSource
from framedex.browse.duplicates import check_similarity
from framedex.browse.explore import file_name
from framedex.core.arrays import RowIds
from framedex.errors import InvalidInput
from framedex.export.files import whole_file
from framedex.jobs.overlap import OverlapPairs, OverlapSide, find_overlap, side_of
from framedex.operations.context import Context, check_indexed
from framedex.operations.pinned_rows import PinnedRows
from framedex.operations.starting import load_job_context
from framedex.operations.steps import SelectedRows, Steps
from framedex.render import html
from framedex.render.progress import progress_bar
from framedex.settings import user_path
from framedex.storage import datasets
from framedex.storage.media import Media
from framedex.vql import duplicate_level

if TYPE_CHECKING:
    import pandas as pd

_SHOWN, _REPORTED = 12, 200
_SCHEMA = pa.schema(
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


class OverlappingView(ThumbnailSource, Protocol):
    """A view whose media are compared with those of another one."""

    _context: Context
    _dataset_id: str

    def _media(self) -> Media: ...

    def _selection(self, media: Media) -> SelectedRows: ...

    def _with(self, steps: Steps) -> Self: ...


Source = TypeVar("Source", bound=OverlappingView)


class Overlap(Generic[Source]):
    """The copies of media of one view, *here*, among those of another one, *there*.

    It stays as it is while the datasets change. Each media item is in at most 24 pairs: of both sides with its 12 most
    similar ones.

    Attributes:
        view: the media here of which there is a copy there, in the order of ingestion; deleted ones leave it.
        other_view: the media there of which there is a copy here.
    """

    view: Source
    other_view: Source

    def __init__(
        self, here: Source, there: Source, sides: tuple[OverlapSide, OverlapSide], pairs: OverlapPairs
    ) -> None:
        self._names = _dataset_name(here), _dataset_name(there)
        self._sides, self._pairs = sides, pairs
        self.view = _rows(here, sides[0], pairs.here, f"{self._key} here")
        self.other_view = _rows(there, sides[1], pairs.there, f"{self._key} there")

    @property
    def _key(self) -> str:
        return f"overlap {id(self._pairs)}"

    def __len__(self) -> int:
        """Return the number of pairs."""
        return len(self._pairs.here)

    def count(self) -> int:
        """Return the number of media here of which there is a copy there."""
        return len(np.unique(self._pairs.here))

    def other_count(self) -> int:
        """Return the number of media there of which there is a copy here."""
        return len(np.unique(self._pairs.there))

    def to_arrow(self, *, offset: int = 0, limit: int | None = None) -> pa.Table:
        """Return a row for each pair, the most similar first.

        Args:
            offset: the number of pairs that are left out, from the first on.
            limit: the maximum number of pairs; None for all.

        Returns:
            A table: ``here_id`` and ``there_id``, media ids; ``here_name`` and ``there_name``, paths within the
            sources; ``similarity``, the cosine similarity of the copy descriptors in [0, 1], 0.96 for copies that
            keypoints show; ``copy``, ``here`` or ``there``, the end that is the copy, null if unknown; ``reason``, what
            was done to it.
        """
        part = slice(offset, None if limit is None else offset + limit)
        columns = [
            side.media.values_at(rows[part], name)
            for name in ("media_id", "path")
            for side, rows in zip(self._sides, (self._pairs.here, self._pairs.there), strict=True)
        ]
        rest = self._pairs.similarity[part], self._pairs.copies[part], self._pairs.reasons[part]
        arrays = [*columns, *(pa.array(each) for each in rest)]
        return pa.table([each.cast(field.type) for each, field in zip(arrays, _SCHEMA, strict=True)], schema=_SCHEMA)

    def to_pandas(self) -> "pd.DataFrame":
        """Return :meth:`to_arrow` as a DataFrame.

        Raises:
            MissingDependency: pandas is not installed.
        """
        return as_pandas(self.to_arrow())

    def report(self, path: str | os.PathLike[str]) -> Path:
        """Write one self-contained HTML page with the 200 most similar pairs side by side; return its path.

        Raises:
            InvalidInput: the file cannot be written.
        """
        target = user_path(path)
        title = f"Overlap of {' and '.join(dict.fromkeys(self._names))}"
        content = html.page(title, html.heading(title, 1), html.note(self._summary()), *self._cards(_REPORTED))
        with whole_file(target) as file:
            file.write(content.encode())
        return target

    def _summary(self) -> str:
        return f"{self.count():,} media have copies there: {len(self):,} pairs with {self.other_count():,} media"

    def _cards(self, count: int) -> Iterator[str]:
        rows = self.to_arrow(limit=count).to_pylist()
        jpegs = [
            dict(zip(ids, view.thumbnails(ids), strict=True))
            for view, ids in (
                (self.view, list({row["here_id"]: None for row in rows})),
                (self.other_view, list({row["there_id"]: None for row in rows})),
            )
        ]
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
        yield html.note(f"and {rest:,} more pairs") if rest else ""

    def __repr__(self) -> str:
        return f"<framedex.Overlap of {' and '.join(map(repr, dict.fromkeys(self._names)))}: {self._summary()}>"

    def _repr_html_(self) -> str:
        return html.block(html.note(self._summary()), *self._cards(_SHOWN))


def overlap_of(here: Source, there: Any, *, similarity: float, exact: bool) -> Overlap[Source]:
    """Return the overlap of two views; see :meth:`framedex.View.overlap`."""
    check_similarity("similarity", similarity)
    sides = _side(here), _side(there)
    if here._dataset_id == there._dataset_id and np.array_equal(sides[0].row_ids, sides[1].row_ids):
        raise InvalidInput("the two views have the same media; duplicates() finds the copies within a view")
    key = _key(sides, similarity, exact)
    pairs: OverlapPairs | None = here._context.selections.get(key)
    if pairs is None:
        with progress_bar("Overlap", late=True) as progress:
            show = progress or (lambda _stage, _share: None)
            pairs = find_overlap(*sides, level=duplicate_level(similarity), exact=exact, progress=show)
        here._context.selections.put(key, pairs, weight=pairs.nbytes)
    return Overlap(here, there, sides, pairs)


def _key(sides: tuple[OverlapSide, OverlapSide], similarity: float, exact: bool) -> Hashable:
    """Return a value that is equal for equal sets of media in equal states."""
    digests = [hashlib.blake2b(each.row_ids.tobytes(), digest_size=16).hexdigest() for each in sides]
    return "overlap", *digests, *(each.media.generation.id for each in sides), duplicate_level(similarity), exact


def _side(view: Any) -> OverlapSide:
    media = view._media()
    check_indexed(view._context, media)
    return side_of(load_job_context(view._context, view._dataset_id), media, view._selection(media).row_ids())


def _rows(view: Source, side: OverlapSide, rows: RowIds, name: str) -> Source:
    return view._with((PinnedRows(side.media, np.unique(rows), name),))


def _dataset_name(view: OverlappingView) -> str:
    with view._context.catalog.read() as connection:
        return datasets.find_dataset(connection, view._dataset_id).display_name
