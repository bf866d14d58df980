"""Results: the rows of a view in one state of its dataset, with random access by position."""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from framedex.api.dataset import Dataset
from framedex.api.view import PinnedView, View
from framedex.core.arrays import RowIds
from framedex.core.checks import check_integer
from framedex.core.counts import counted
from framedex.errors import Conflict, Gone, InvalidInput, NotFound, WorkspaceError
from framedex.operations.empty_results import why_empty
from framedex.operations.pinned_rows import PinnedRows, have_changed, media_at, rows_of_ids
from framedex.operations.steps import SelectedRows, Sorted
from framedex.search.ranking import Ranking
from framedex.storage.condition import Condition
from framedex.storage.media import EVERYTHING, Media
from framedex.storage.objects import is_empty_object_view
from framedex.storage.row_positions import positions_of
from framedex.storage.table_names import IN_BASKET

CONTENT_VERSION = "v"
"""The column with the first 8 hexadecimal digits of the hash of the file, for URLs that change with the content."""
_HASH = "content_hash"
_VERSION_BYTES = 4
_ORDER = "path"
_BLOCK_ROWS = 4096


class ResultSet:
    """The rows of a view in one state of its dataset, in their order.

    Rows are kept as positions in the table, 4 bytes each, and 8 more for the scores of a search; all rows in the order
    of ingestion take none. Reading methods raise :class:`framedex.Gone` once the state was freed, ten minutes after it
    was replaced.

    Args:
        view: the view.

    Attributes:
        name: a text that is equal for equal results.
        notes: sentences that say why there are no rows; see :meth:`framedex.View.why_empty`.

    Raises:
        Conflict: the dataset has nothing to show yet.
        InvalidFilter: the filter does not suit the dataset.
    """

    def __init__(self, view: View, name: str = "") -> None:
        self._context, self._steps, self.name = view._context, view._steps, name
        selection = view._selection(view._media())
        self._media, self._ranking = selection.media, selection.ranking
        self._is_objects = view._objects
        self._positions: npt.NDArray[np.uint32] | None = None
        if is_empty_object_view(self._media):
            self._positions = np.empty(0, np.uint32)
        elif not (isinstance(selection.rows, Condition) and selection.rows == EVERYTHING):
            positions = positions_of(self._all_rows(), selection.row_ids())
            assert positions is not None, "the rows are those of the table"
            self._positions = positions.astype(np.uint32)
        self.notes = [] if len(self) else why_empty(self._context, self._media, self._steps)

    @property
    def generation(self) -> str:
        """The id of the state."""
        return self._media.generation.id

    @property
    def columns(self) -> list[str]:
        """The columns of :meth:`rows` by default.

        Raises:
            Gone: the state was freed.
        """
        with self._reading():
            return list(self.pinned()._schema(self._selection(np.arange(0)), None).names)

    @property
    def nbytes(self) -> int:
        """The number of bytes that the rows take."""
        scores = 0 if self._ranking is None else self._ranking.score.nbytes + self._ranking.relevance.nbytes
        return (0 if self._positions is None else self._positions.nbytes) + scores

    @property
    def total(self) -> int:
        """The number of rows of the table, to which positions refer."""
        return 0 if is_empty_object_view(self._media) else self._media.table.count()

    @property
    def n_images(self) -> int:
        """The number of images of the dataset in this state, frames of videos left out."""
        return self._media.generation.n_still_images

    def __len__(self) -> int:
        """Return the number of rows."""
        return self.total if self._positions is None else len(self._positions)

    def rows(self, offset: int = 0, limit: int | None = None, columns: Sequence[str] | None = None) -> pa.Table:
        """Return some rows as a table.

        Args:
            offset: the position of the first row, from 0.
            limit: the maximum number of rows; None for all.
            columns: as for :meth:`framedex.View.to_arrow`, and ``v``: the first 8 hexadecimal digits of the hash of the
                file, null without a hash; and ``in_basket``: whether the media item is in the basket.

        Raises:
            InvalidInput: a number is negative, or a column does not exist.
            Gone: the state was freed.
        """
        check_integer("offset", offset, minimum=0)
        check_integer("limit", limit, minimum=0, optional=True)
        stop = len(self) if limit is None else min(offset + limit, len(self))
        with self._reading():
            return self._table(np.arange(min(offset, stop), stop), columns)

    def rows_at(self, positions: Sequence[int], columns: Sequence[str] | None = None) -> pa.Table:
        """Return the rows at some positions, in their order, as a table; those beyond the end are left out.

        Raises:
            InvalidInput: a position is negative, or a column does not exist.
            Gone: the state was freed.
        """
        for position in positions:
            check_integer("position", position, minimum=0)
        with self._reading():
            return self._table(np.array([each for each in positions if each < len(self)], np.int64), columns)

    def embedding_blocks(self) -> Iterator[pa.Table]:
        """Yield tables with the columns ``id`` and ``embedding``, some thousand rows each, the first one empty.

        Rows without an embedding are left out.

        Raises:
            Gone: the state was freed.
        """
        empty = _no_embeddings(self._media)
        yield empty
        for start in range(0, len(self), _BLOCK_ROWS):
            rows = self._row_ids(np.arange(start, min(start + _BLOCK_ROWS, len(self))))
            with self._reading():
                table = self._media.take(rows.tolist(), ["media_id", "embedding"])
            yield table.filter(pc.is_valid(table["embedding"])).rename_columns(empty.column_names).cast(empty.schema)

    def order(self) -> str:
        """Return the column by which the rows are sorted: the score in a search, ``path`` in the order of ingestion."""
        column = next((step.column for step in reversed(self._steps) if isinstance(step, Sorted)), None)
        return column or ("relevance_score" if self._ranking is not None else _ORDER)

    def quantiles(self, n: int = 200, column: str | None = None) -> tuple[list[int], list[Any]]:
        """Return the values of a column at evenly spaced rows, from the first to the last.

        Args:
            n: the number of rows, 2 to 1,000; all rows if there are fewer.
            column: the column; by default that by which the rows are sorted.

        Returns:
            positions: the positions of the rows, ascending.
            values: the values there.

        Raises:
            InvalidInput: the number is out of range, or the column does not exist.
            Gone: the state was freed.
        """
        check_integer("n", n, minimum=2, maximum=1000)
        name = column or self.order()
        positions = np.unique(np.linspace(0, max(len(self) - 1, 0), n).round().astype(np.int64))[: len(self)]
        with self._reading():
            return positions.tolist(), self._table(positions, [name])[name].to_pylist()

    def position(self, media_id: str) -> int:
        """Return the position of a row by its id.

        Raises:
            NotFound: the row is not among the results.
            Gone: the state was freed.
        """
        missing = f"no media {media_id!r} among these results"
        if is_empty_object_view(self._media):
            raise NotFound(missing)
        with self._reading():
            row_ids = np.array([*self._media.find_row_ids([media_id]).values()], np.uint64)
            place = positions_of(self._all_rows(), row_ids)
        if place is None or not len(place):
            raise NotFound(missing)
        if self._positions is None:
            return int(place[0])
        found = np.flatnonzero(self._positions == place[0])
        if not len(found):
            raise NotFound(missing)
        return int(found[0])

    def mask(self) -> bytes:
        """Return a bit for each row of the table, 1 for those among the results.

        Bit *i* of the first byte, the least significant first, is that of row *i*; the order of rows is that of
        ingestion.
        """
        if self._positions is None:
            chosen = np.ones(self.total, bool)
        else:
            chosen = np.zeros(self.total, bool)
            chosen[self._positions] = True
        return np.packbits(chosen, bitorder="little").tobytes()

    def facets(self, field: str, text: str = "", limit: int = 50) -> tuple[list[tuple[Any, int]], int]:
        """Return the values of a column with the number of rows that have each, the most frequent first.

        Args:
            field: a column of texts, of lists of texts, or of truth values.
            text: only values that contain this text, whatever the case.
            limit: the maximum number of values, 1 to 200.

        Returns:
            values: pairs of a value and its number of rows.
            total: the number of values that contain the text.

        Raises:
            InvalidInput: the column does not exist or is of another type, or the limit is out of range.
            Gone: the state was freed.
        """
        check_integer("limit", limit, minimum=1, maximum=200)
        counts: Counter[Any] = Counter()
        with self._reading():
            selection = self._selection(np.arange(len(self)))
            kind = self.pinned()._schema(selection, [field]).field(field).type
            if not _is_countable(kind):
                raise InvalidInput(f"the values of {field!r} cannot be listed: they are neither texts nor truth values")
            for batch in self.pinned()._batches(selection, [field]):
                values = batch[field].combine_chunks()
                values = pc.list_flatten(values) if pa.types.is_list(kind) else values
                for each in pc.value_counts(values.drop_null()).to_pylist():
                    counts[each["values"]] += each["counts"]
        part = text.casefold()
        chosen = [pair for pair in counts.items() if part in str(pair[0]).casefold()]
        chosen.sort(key=lambda pair: (-pair[1], str(pair[0])))
        return chosen[:limit], len(chosen)

    def pinned(self) -> "PinnedView":
        """Return the rows as a view that reads the state of the results, whatever happens to the dataset."""
        rows = PinnedRows(self._media, self._row_ids(np.arange(len(self))), self._step_name)
        steps = () if self._positions is None and self._ranking is None else (rows,)
        return PinnedView.of(self._context, self._owner, steps, self._media, objects=self._is_objects)

    def view(self, *, is_strict: bool = False) -> View:
        """Return those of the rows that the dataset still has as a view, for edits and exports.

        Args:
            is_strict: whether it is a conflict if rows are gone, or have other labels, captions, tags, fields or files
                when the view is read.
        """
        rows = PinnedRows(self._media, self._row_ids(np.arange(len(self))), self._step_name, is_strict)
        return View(self._context, self._owner, (rows,), objects=self._is_objects)

    def have_changed(self) -> bool:
        """Return whether rows are gone, or have other labels, captions, tags, fields or files now.

        Raises:
            Gone: the state was freed.
        """
        with self._reading():
            rows, view = self._row_ids(np.arange(len(self))), View(self._context, self._owner, objects=self._is_objects)
            return have_changed(self._media, rows, view._media())

    @property
    def _owner(self) -> str:
        """The id of the dataset."""
        return self._media.generation.dataset_id

    @property
    def _step_name(self) -> str:
        return self.name or f"{id(self)}"

    def _all_rows(self) -> RowIds:
        """Return the ids of all rows of the table, ascending; they are kept for the generation."""
        key = "row ids", self.generation, self._media.parents is not None
        rows: RowIds | None = self._context.selections.get(key)
        if rows is None:
            rows = self._media.row_ids(EVERYTHING)
            self._context.selections.put(key, rows, weight=max(rows.nbytes, 1))
        return rows

    def _row_ids(self, places: npt.NDArray[np.int64]) -> RowIds:
        if is_empty_object_view(self._media):
            return np.empty(0, np.uint64)
        rows = self._all_rows()
        return rows[places] if self._positions is None else rows[self._positions[places]]

    def _selection(self, places: npt.NDArray[np.int64]) -> SelectedRows:
        ranking: Ranking | None = None if self._ranking is None else self._ranking.only(places)
        return SelectedRows(self._media, self._row_ids(places), ranking)

    def _table(self, places: npt.NDArray[np.int64], columns: Sequence[str] | None) -> pa.Table:
        selection, view = self._selection(places), self.pinned()
        wanted = None if columns is None else [name for name in columns if name not in (CONTENT_VERSION, IN_BASKET)]
        read = wanted if wanted or columns is None else ["media_id"]
        schema = view._schema(selection, read)
        table = pa.concat_tables([schema.empty_table(), *view._batches(selection, read)])
        if columns is None:
            return table
        if CONTENT_VERSION in columns:
            table = table.append_column(CONTENT_VERSION, self._versions(selection))
        if IN_BASKET in columns:
            table = table.append_column(IN_BASKET, self._in_basket(selection))
        return table.select(list(columns))

    def _in_basket(self, selection: SelectedRows) -> pa.Array:
        """Return whether rows are in the basket; a table has the column once something was put into it."""
        if is_empty_object_view(self._media) or IN_BASKET not in self._media.table.schema.names:
            return pa.array(np.zeros(len(selection.row_ids()), np.bool_))
        return pc.fill_null(self._media.values_at(selection.row_ids(), IN_BASKET), fill_value=False)

    def _versions(self, selection: SelectedRows) -> pa.Array:
        if is_empty_object_view(self._media):
            return pa.array([], pa.string())
        hashes = self._media.take(selection.row_ids().tolist(), [_HASH], keep=True)[_HASH].to_pylist()
        return pa.array([None if each is None else each[:_VERSION_BYTES].hex() for each in hashes], pa.string())

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Raise :class:`framedex.Gone` if files of the state are missing and it is no longer the present one."""
        try:
            yield
        except (NotFound, WorkspaceError) as error:
            if View(self._context, self._owner)._media().generation.id == self.generation:
                raise
            raise Gone("These results are not kept any more; make them again") from error

    def __repr__(self) -> str:
        return f"<framedex.ResultSet of dataset {self._owner}: {counted(len(self), 'rows')}>"


def view_of_ids(dataset: Dataset, ids: Sequence[str], *, generation: str) -> View:
    """Return media by their ids as a view that raises a conflict if they have changed since a state.

    Raises:
        NotFound: an id was not in the dataset then.
        Conflict: the state was freed.
    """
    context = dataset._context
    try:
        media = media_at(context, dataset.id, generation)
    except NotFound:
        raise Conflict("the state in which the rows were read is not kept any more; read them again") from None
    distinct = list(dict.fromkeys(ids))
    rows = PinnedRows(media, rows_of_ids(media, distinct), f"{generation}/{len(ids)}/{hash(tuple(ids))}", True)
    return View(context, dataset.id, (rows,))


def _no_embeddings(media: Media) -> pa.Table:
    owner = media if media.parents is None else media.parents
    embedding = owner.table.schema.field("embedding").type
    return pa.schema([pa.field("id", pa.string()), pa.field("embedding", embedding)]).empty_table()


def _is_countable(kind: pa.DataType) -> bool:
    inner = kind.value_type if pa.types.is_list(kind) else kind
    return bool(pa.types.is_string(inner) or pa.types.is_boolean(inner))
