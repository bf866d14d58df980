"""Selections of rows: filters, searches, orders and windows, which views apply one after another.

A selection is a condition as long as its rows are in the order of ingestion, and an array of row ids afterwards. The
arrays are kept for the generation, so that a page of a sorted view only reads its own rows.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from framedex.core.arrays import RowIds
from framedex.core.forks import cached_property
from framedex.export.objects import as_condition, objects_in
from framedex.export.splits import divide_by_shares, random_order
from framedex.operations.context import Context
from framedex.operations.copy_searches import copies_first
from framedex.operations.searches import condition_for, open_searcher
from framedex.operations.sorting import sort_field, sorted_rows
from framedex.search.queries import Query
from framedex.search.query_images import QueryImage
from framedex.search.ranking import Ranking
from framedex.storage.condition import Condition
from framedex.storage.media import EVERYTHING, Media
from framedex.storage.objects import is_empty_object_view
from framedex.storage.table_versions import ROW_ID
from framedex.vql import Filter

_FEW_IDS = 1000  # which are looked up one by one
_NO_ROW = np.uint64(np.iinfo(np.uint64).max)


@dataclass(frozen=True)
class SelectedRows:
    """Rows of a table at one generation.

    Attributes:
        media: the media, or the objects.
        rows: a condition, for rows in the order of ingestion; or row ids, in their order.
        ranking: the scores of the same row ids, in the same order, if the rows are results of a search.
    """

    media: Media
    rows: Condition | RowIds
    ranking: Ranking | None = None

    def count(self) -> int:
        """Return the number of rows."""
        return self.media.count(self.rows) if isinstance(self.rows, Condition) else len(self.rows)

    def row_ids(self) -> RowIds:
        """Return the row ids in order: uint64, shape (N,)."""
        return self.media.row_ids(self.rows) if isinstance(self.rows, Condition) else self.rows

    def condition(self) -> Condition:
        """Return the condition that only these rows meet; it has no order."""
        return self.rows if isinstance(self.rows, Condition) else as_condition(self.rows)

    def rows_of(self, media_ids: pa.StringArray) -> RowIds:
        """Return those of the rows that have some media ids, in the order of the ids: uint64."""
        if len(media_ids) > _FEW_IDS:
            row_ids, own_ids = self.media.values(self.condition(), "media_id")
            return np.asarray(row_ids[pc.index_in(media_ids, value_set=own_ids).drop_null().to_numpy()])
        names = media_ids.to_pylist()
        found = self.media.find_row_ids(names)
        row_ids = np.array([found[each] for each in names if each in found], np.uint64)
        if self.condition() == EVERYTHING or not len(row_ids):
            return row_ids
        own = np.append(np.sort(self.row_ids()), _NO_ROW)
        return np.asarray(row_ids[own[np.searchsorted(own[:-1], row_ids)] == row_ids])

    def only(self, positions: npt.NDArray[np.integer]) -> "SelectedRows":
        """Return the rows at some positions, in that order."""
        ranking = None if self.ranking is None else self.ranking.only(positions)
        return SelectedRows(self.media, self.row_ids()[positions], ranking)

    def reordered(self, row_ids: RowIds) -> "SelectedRows":
        """Return some of the rows in another order."""
        if self.ranking is None:
            return SelectedRows(self.media, row_ids)
        own = self.row_ids()
        order = np.argsort(own)
        return self.only(order[np.searchsorted(own[order], row_ids)])

    def within(self, row_ids: RowIds) -> "SelectedRows":
        """Return the rows that are among others, in the present order."""
        if isinstance(self.rows, Condition):
            return SelectedRows(self.media, np.sort(row_ids))
        return self.only(np.flatnonzero(np.isin(self.rows, row_ids)))


class Step(ABC):
    """A change of a selection.

    Attributes:
        needs_order: whether the step depends on the positions of rows.
        is_kept: whether its row ids are kept for the generation.
    """

    needs_order: ClassVar[bool] = False
    is_kept: ClassVar[bool] = True

    @abstractmethod
    def apply(self, context: Context, selection: SelectedRows) -> SelectedRows:
        """Return the changed selection."""

    @cached_property
    def key(self) -> Hashable:
        """A value that is equal for equal steps."""
        return repr(self)


Steps = tuple[Step, ...]


@dataclass(frozen=True)
class Filtered(Step):
    """The rows that pass a filter, in the present order."""

    vql: Filter

    def apply(self, context: Context, selection: SelectedRows) -> SelectedRows:
        """Return the rows that pass."""
        condition = condition_for(context, selection.media, self.vql)
        if isinstance(selection.rows, Condition):  # of all rows: consecutive filters are one step
            return SelectedRows(selection.media, condition)
        return selection.within(selection.media.row_ids(condition))


@dataclass(frozen=True)
class Searched(Step):
    """The results of a search among the rows, best first.

    Attributes:
        query: the query.
        limit: the maximum number of results; None for all.
        diversity: 0 to 1.
        relevance: the minimum relevance, 0 to 1.
        image: the image whose verified copies come first; None for a text, and with diversity, which they would defeat.
    """

    query: Query
    limit: int | None
    diversity: float
    relevance: float
    image: QueryImage | None = None

    def apply(self, context: Context, selection: SelectedRows) -> SelectedRows:
        """Return the results with their scores."""
        searcher = open_searcher(context, selection.media)
        rows = selection.rows
        candidates = searcher.rows_of(rows) if isinstance(rows, Condition) else np.sort(rows)
        ranking = self.query.run(searcher, candidates, self.limit, self.diversity)
        ranking = ranking.only(np.flatnonzero(ranking.relevance >= self.relevance))
        if self.image is not None:
            ranking = copies_first(context, searcher, self.image, ranking, candidates, self.limit)
        return SelectedRows(selection.media, ranking.row_ids, ranking)


@dataclass(frozen=True)
class Sorted(Step):
    """The rows in the order of a column; ties are in row order, and rows without a value are last."""

    column: str
    descending: bool

    def apply(self, context: Context, selection: SelectedRows) -> SelectedRows:
        """Return the rows in order."""
        media = selection.media
        field = sort_field(media, self.column)
        if is_empty_object_view(media):
            return SelectedRows(media, np.empty(0, np.uint64))
        return selection.reordered(sorted_rows(media, selection.rows, field, descending=self.descending))


@dataclass(frozen=True)
class Window(Step):
    """The rows at some positions, as a slice of a list."""

    start: int | None
    stop: int | None
    step: int | None = None

    needs_order: ClassVar[bool] = True
    is_kept: ClassVar[bool] = False

    def apply(self, context: Context, selection: SelectedRows) -> SelectedRows:
        """Return the rows of the window."""
        positions = range(selection.count())[self.start : self.stop : self.step]
        return selection.only(np.arange(positions.start, positions.stop, positions.step))


@dataclass(frozen=True)
class Sampled(Step):
    """A random sample of the rows, in the present order."""

    count: int
    seed: int

    def apply(self, context: Context, selection: SelectedRows) -> SelectedRows:
        """Return the rows of the sample."""
        media = selection.media
        if is_empty_object_view(media):
            return SelectedRows(media, np.empty(0, np.uint64))
        key, columns = random_order(media, self.seed)
        text = f"SELECT {ROW_ID} FROM chosen ORDER BY {key}, {ROW_ID} LIMIT {self.count}"
        rows = media.query(text, selection.condition(), columns, keep=False)[ROW_ID]
        return selection.within(np.asarray(rows.to_numpy(), np.uint64))


@dataclass(frozen=True)
class Part(Step):
    """A part of the rows that were divided by shares, in the present order."""

    shares: tuple[float, ...]
    number: int
    seed: int
    by_labels: bool = False

    def apply(self, context: Context, selection: SelectedRows) -> SelectedRows:
        """Return the rows of the part."""
        if is_empty_object_view(selection.media):
            return SelectedRows(selection.media, np.empty(0, np.uint64))
        rows = np.sort(selection.row_ids())
        shares = list(self.shares)
        numbers = divide_by_shares(selection.media, rows, shares, seed=self.seed, by_labels=self.by_labels)
        return selection.within(rows[numbers == self.number])


@dataclass(frozen=True)
class Picked(Step):
    """The rows with some ids, in the order of the ids. Ids that are not among the rows are left out."""

    ids: pa.StringArray

    @cached_property
    def key(self) -> Hashable:
        """The ids as bytes."""
        return tuple(buffer.to_pybytes() for buffer in self.ids.buffers() if buffer is not None)

    def apply(self, context: Context, selection: SelectedRows) -> SelectedRows:
        """Return the rows with these ids."""
        if is_empty_object_view(selection.media):
            return SelectedRows(selection.media, np.empty(0, np.uint64))
        return selection.reordered(selection.rows_of(self.ids))


@dataclass(frozen=True)
class Contained(Step):
    """The objects that a selection of media contains, in row order.

    Attributes:
        media_steps: the steps of the selection of media.
    """

    media_steps: Steps

    @cached_property
    def key(self) -> Hashable:
        """The keys of the steps."""
        return "contained", tuple(step.key for step in self.media_steps)

    def apply(self, context: Context, selection: SelectedRows) -> SelectedRows:
        """Return the objects."""
        objects = selection.media
        if is_empty_object_view(objects) or objects.parents is None:
            return SelectedRows(objects, np.empty(0, np.uint64))
        media = apply_steps(context, objects.parents, self.media_steps)
        return SelectedRows(objects, objects_in(objects, media.condition()))


def apply_steps(context: Context, media: Media, steps: Steps) -> SelectedRows:
    """Return the rows of a table after all steps.

    Args:
        context: the workspace.
        media: the media, or the objects.
        steps: the steps, in order.
    """
    if not steps:
        return SelectedRows(media, condition_for(context, media, ()))
    *before, step = steps
    first = ordered_rows if step.needs_order else apply_steps

    def make() -> SelectedRows:
        return step.apply(context, first(context, media, tuple(before)))

    return _kept(context, media, steps, "steps", make) if step.is_kept else make()


def ordered_rows(context: Context, media: Media, steps: Steps) -> SelectedRows:
    """Return :func:`apply_steps` with row ids, which are kept for the generation."""

    def make() -> SelectedRows:
        selection = apply_steps(context, media, steps)
        return replace(selection, rows=selection.row_ids())

    return _kept(context, media, steps, "rows", make)


def _kept(context: Context, media: Media, steps: Steps, kind: str, make: Callable[[], SelectedRows]) -> SelectedRows:
    """Return a selection from the cache, or make it; conditions are not cached."""
    # Objects and their placeholder have the generation of media, with another id or as their own parents.
    key = kind, media.generation.id, media.parents is not None, tuple(step.key for step in steps)
    cached: tuple[RowIds, Ranking | None] | None = context.selections.get(key)
    if cached is not None:
        return SelectedRows(media, *cached)
    selection = make()
    if not isinstance(selection.rows, Condition):
        weight = selection.rows.nbytes + (0 if selection.ranking is None else 2 * selection.ranking.score.nbytes)
        context.selections.put(key, (selection.rows, selection.ranking), weight=max(weight, 1))
    return selection
