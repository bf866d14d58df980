"""Methods that return the rows of a view: ids, tables, dictionaries, embeddings."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from framedex.api.data_frames import as_pandas
from framedex.api.ids import Ids
from framedex.api.view.base import check_count
from framedex.api.view.composition import Composition, as_index
from framedex.browse.duplicates import Kept, kept_ids
from framedex.browse.embeddings import selected_vectors, vectors
from framedex.errors import OutOfRange
from framedex.export.table_columns import table_batches, table_schema
from framedex.operations.context import Context
from framedex.operations.empty_results import warn_if_empty, why_empty
from framedex.operations.steps import SelectedRows
from framedex.storage.column_keys import ColumnsKey, columns_key
from framedex.storage.media import EVERYTHING, Media
from framedex.storage.objects import is_empty_object_view

if TYPE_CHECKING:
    import pandas as pd

SCORES = pa.schema(
    [
        pa.field("relevance_score", pa.float32()),
        pa.field("relevance_score_type", pa.string()),
        pa.field("relevance", pa.float32()),
        pa.field("copy", pa.string()),
    ]
)
"""The columns that a ranked view adds to those of a view.

``relevance_score`` is a ``cosine_distance`` (0 best, 2 worst), a ``bm25`` score or a ``reciprocal_rank_fusion`` score
(higher is better). ``relevance``, 0 to 1, says how seldom something unrelated in this dataset would have such a score;
0.5 or more is a match, see :mod:`framedex.analysis.relevance`. ``copy`` says how a row is a verified copy of the image
that was searched by, as ``cropped to 25%``; it is null for other rows.
"""
_FEW = 4096  # rows that are located one by one
_YIELDED = 1024  # rows that are Python objects at a time
_MANY_ROWS = 200_000  # of a table in which the members to keep of a few groups are found without the others
_FEW_GROUPS = 1000
_FEW_PAGES = 4  # afterwards, who reads pages probably reads all


class Reading(Composition):
    """Methods that return rows. Each reads the state of the dataset when it is called."""

    def count(self) -> int:
        """Return the number of rows.

        Examples:
            >>> ds.where(vql.labels(["cat", "dog"])).count()
            16
        """
        selection = self._selection(self._media())
        count = selection.count()
        warn_if_empty(count, self._context, selection.media, self._steps)
        return count

    def why_empty(self) -> list[str]:
        """Return sentences that say why the view has no rows: names in its filters that the dataset does not have.

        The list is empty if the view has rows, or if no name is unknown. Methods that return rows warn with these
        sentences (:class:`framedex.EmptyResultWarning`).

        Examples:
            >>> ds.where(vql.labels("dgo")).why_empty()
            ["there is no label 'dgo'; did you mean 'dog'?"]
        """
        selection = self._selection(self._media())
        return [] if selection.count() else why_empty(self._context, selection.media, self._steps)

    def __len__(self) -> int:
        """Return the number of rows."""
        return self.count()

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Yield the rows; see :meth:`rows`."""
        return self.rows()

    def rows(self, columns: Sequence[str] | None = None) -> Iterator[dict[str, Any]]:
        """Yield a dictionary for each row, in order. The rows are those of one state, and few are in memory at a time.

        Args:
            columns: as for :meth:`to_arrow`.

        Raises:
            InvalidInput: a column does not exist.

        Examples:
            >>> for row in ds.where(vql.issues("dark")).rows(["image_filename", "width", "height"]):
            ...     print(row)
            {'image_filename': 'night.jpg', 'width': 160, 'height': 120}
        """
        selection = self._selection(self._media())
        return _rows(self._batches(selection, columns))

    def first(self, n: int = 1) -> list[dict[str, Any]]:
        """Return the first *n* rows as dictionaries; all if there are fewer.

        Raises:
            InvalidInput: *n* is no integer of at least 0.

        Examples:
            >>> [row["image_filename"] for row in ds.view.sort_by("file_name").first(2)]
            ['bird-1.jpg', 'bird-2.jpg']
        """
        return list(self.limit(check_count("n", n)).rows())

    def _row(self, position: Any) -> dict[str, Any]:
        """Return the row at a position; negative positions count from the end.

        Raises:
            InvalidInput: the position is no integer.
            OutOfRange: there is no such row.
        """
        index = as_index(position)
        for row in self._slice(slice(index, None if index == -1 else index + 1)).rows():
            return row
        raise OutOfRange(f"no row {index} in a view of {self.count():,} {self._noun}")

    @property
    def ids(self) -> Ids:
        """The ids of the rows, in order: an immutable sequence of texts, 40 bytes each.

        Examples:
            >>> ds.where(vql.labels("cat")).ids
            <9 ids: '...', '...', '...', …>
        """
        selection = self._selection(self._media())
        found = Ids(_ids_of(selection))
        warn_if_empty(len(found), self._context, selection.media, self._steps)
        return found

    def media_ids(self) -> list[str]:
        """Return the ids of the rows as a list, in order; see :attr:`ids`.

        Examples:
            >>> ds.where(vql.issues("dark")).media_ids() == [ds.media_id("night.jpg")]
            True
        """
        return list(self.ids)

    def to_arrow(self, columns: Sequence[str] | None = None) -> pa.Table:
        """Return a table with the rows of the view, in order.

        Args:
            columns: names of the columns, in order. By default ``media_id, image_filename, file_path,
                file_size_bytes, width, height, uniqueness_score, cluster_id, caption, labels, tags, issues``, the video
                columns ``media_type, video_id, video_name, frame_number, frame_timestamp``, and ``cluster_0`` (finest)
                to ``cluster_4``. The value of each issue type is a column with the name of the type (``blur``,
                ``dark``, ``outliers``, …; float32, null where it could not be measured), and whether the row has the
                issue is a column as ``is_blur_issue`` (bool). ``duplicate_group_id`` is the near-duplicate group at the
                lowest similarity, and ``keep`` (bool) whether the row is the member of this group to keep, among all
                media of the dataset; both are null outside of groups. Custom fields follow, by name; a field comes
                before other columns of the same name. Objects have no custom fields, but ``parent_id`` (the id of the
                image that contains the object), ``label``, ``confidence`` (null if unknown), ``source`` and ``bbox``
                (x, y, width, height in pixels of that image). Results of a search also have ``relevance_score``,
                ``relevance_score_type``, ``relevance`` and ``copy``. On request only: ``file_name`` and ``path``
                (relative to the source), as in :meth:`View.issues`; and ``embedding`` (float32 lists of unit length).

        Raises:
            InvalidInput: a column does not exist.

        Examples:
            >>> ds.where(vql.issues("duplicates")).to_arrow(["path", "keep"]).to_pylist()
            [{'path': 'cat-1-copy.jpg', 'keep': False}, {'path': 'cat-1.jpg', 'keep': True}, {'path':
              'garden-small.jpg', 'keep': False}, {'path': 'garden.jpg', 'keep': True}]
        """
        selection = self._selection(self._media())
        schema = self._schema(selection, columns)
        found = pa.concat_tables([schema.empty_table(), *self._batches(selection, columns)])
        warn_if_empty(len(found), self._context, selection.media, self._steps)
        return found

    def to_pandas(self, columns: Sequence[str] | None = None) -> "pd.DataFrame":
        """Return :meth:`to_arrow` as a DataFrame.

        Raises:
            MissingDependency: pandas is not installed.

        Examples:
            >>> ds.where(vql.issues("duplicates")).to_pandas(["path", "keep"])
                           path   keep
            0    cat-1-copy.jpg  False
            1         cat-1.jpg   True
            2  garden-small.jpg  False
            3        garden.jpg   True
        """
        return as_pandas(self.to_arrow(columns))

    def embeddings(self) -> tuple[list[str], npt.NDArray[np.float32]]:
        """Return the ids and the embeddings of the rows that have one, in order.

        Embeddings that take more than half of the machine's memory are in a file without a name, as a memory map.

        Returns:
            ids: the ids of the N rows.
            embeddings: float32, shape (N, D), unit length.

        Examples:
            >>> ids, vectors = ds.where(vql.labels("cat")).embeddings()
            >>> len(ids), vectors.shape
            (9, (9, 610))
        """
        selection = self._selection(self._media())
        media, rows = selection.media, selection.rows
        if isinstance(rows, np.ndarray) or rows != EVERYTHING:
            return selected_vectors(media, selection.row_ids())
        return vectors(media)

    def _schema(self, selection: SelectedRows, columns: Sequence[str] | None) -> pa.Schema:
        if selection.ranking is None:
            return table_schema(selection.media, columns)
        stored = _stored_schema(selection, columns)
        if columns is None:
            return pa.schema([*stored, *SCORES])
        fields = {field.name: field for field in (*stored, *SCORES)}
        return pa.schema([fields[name] for name in columns])

    def _batches(self, selection: SelectedRows, columns: Sequence[str] | None) -> Iterator[pa.Table]:
        """Return the rows of a selection in tables of bounded size."""
        media, ranking, schema = selection.media, selection.ranking, self._schema(selection, columns)
        kept = _KeptIds(self._context, media)
        if ranking is None:
            return table_batches(media, selection.rows, schema, kept_ids=kept)
        scores = pa.table(
            [
                pa.array(ranking.score, pa.float32()),
                pa.repeat(pa.scalar(ranking.kind), len(ranking)),
                pa.array(ranking.relevance, pa.float32()),
                ranking.copy_column(),
            ],
            schema=SCORES,
        )
        stored = _stored_schema(selection, columns)
        return _with_scores(table_batches(media, selection.rows, stored, kept_ids=kept), scores, schema)


def _stored_schema(selection: SelectedRows, columns: Sequence[str] | None) -> pa.Schema:
    """Return the schema of the columns beside the scores, at least one, so that batches have a length."""
    if columns is None or isinstance(columns, str):
        fields = table_schema(selection.media, columns)
        return pa.schema([field for field in fields if field.name not in SCORES.names])
    return table_schema(selection.media, [name for name in columns if name not in SCORES.names] or ["media_id"])


def _with_scores(batches: Iterator[pa.Table], scores: pa.Table, schema: pa.Schema) -> Iterator[pa.Table]:
    start = 0
    for batch in batches:
        own = scores.slice(start, len(batch))
        yield pa.table(
            [(own if name in SCORES.names else batch)[name] for name in schema.names],
            schema=schema,
        )
        start += len(batch)


def _ids_of(selection: SelectedRows) -> pa.StringArray:
    media, rows = selection.media, selection.rows
    if is_empty_object_view(media):
        return pa.array([], pa.string())
    if isinstance(rows, np.ndarray) and len(rows) <= _FEW:
        # Searches often follow each other, so all ids are cached; Lance takes milliseconds to read even a few.
        return media.take(rows.tolist(), ["media_id"], keep=True)["media_id"].combine_chunks()
    if isinstance(rows, np.ndarray):
        return media.values_at(rows, "media_id")
    return media.values(rows, "media_id")[1]


def _rows(tables: Iterator[pa.Table]) -> Iterator[dict[str, Any]]:
    for table in tables:
        for start in range(0, len(table), _YIELDED):
            yield from table.slice(start, _YIELDED).to_pylist()


class _KeptIds:
    """The ids of the members to keep in groups: for a page of rows of a large table, in the groups of these alone.

    Those of all groups are computed once, until what they follow from is changed.
    """

    def __init__(self, context: Context, media: Media) -> None:
        self._context, self._media, self._pages = context, media, 0

    def __call__(self, numbers: pa.Array) -> pa.Array:
        """Return the ids of the members to keep, at least in the groups with some numbers."""
        media, selections = self._media, self._context.selections
        key = "kept ids", str(media.table.path)
        known: tuple[Kept, ColumnsKey] | None = selections.get(key)
        if known is not None and known[1] == columns_key(media.table, known[0].columns):
            return known[0].ids
        self._pages += 1
        if media.table.count() > _MANY_ROWS and len(numbers) <= _FEW_GROUPS and self._pages <= _FEW_PAGES:
            return kept_ids(media, numbers).ids
        kept = kept_ids(media)
        selections.put(key, (kept, columns_key(media.table, kept.columns)), weight=max(kept.ids.nbytes, 1))
        return kept.ids
