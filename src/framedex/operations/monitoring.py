"""Evaluation of saved views: the results of each view in each new batch of media, once.

A batch is due for a view if it is in the head, is not older than the view, and has no point in the view's trend. So
batches of other processes, and those of a process that was killed, are evaluated later. An evaluation reads one
generation without any lock. One short transaction stores its results; of two processes that evaluate a batch at the
same time, the first one stores the point and raises the alert.

The views of a dataset share their work: the rows of the batches are read once, and each text is searched once.
"""

import logging
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from framedex.core import forks
from framedex.core.arrays import RowIds
from framedex.core.path_columns import relation_with, stored
from framedex.errors import Conflict, Error, MissingDependency
from framedex.operations.context import Context, open_media
from framedex.operations.row_counts import count_rows, tests_of
from framedex.operations.saved_views import filter_of
from framedex.operations.searches import open_searcher, search_results
from framedex.records import Alert, EntityType, ViewStats
from framedex.search.conditions import condition_of, times_added
from framedex.storage import datasets, view_rows
from framedex.storage.alert_queue import clear_queue, queue_alerts
from framedex.storage.condition import Condition
from framedex.storage.failures import own_errors
from framedex.storage.media import Media
from framedex.storage.media_rows import VIDEO_FRAME
from framedex.storage.objects import is_empty_object_view, open_objects
from framedex.storage.table_versions import ROW_ID
from framedex.storage.view_rows import DueView, ViewEvaluation
from framedex.vql import Filter, SearchTest, searches

_LOG = logging.getLogger(__name__)
_PASSING = (OSError, MemoryError, MissingDependency)
"""Failures of this process or of the disk, not of a view: another evaluation may succeed."""
_BATCH, _VIDEO, _KIND = "batch", "video_id", "kind"
_BLOCK_ROWS = 65_536
_TOGETHER = 25  # views whose results in the whole dataset are counted in one pass
_NO_STATS = ViewStats(n_images=0, n_objects=0, n_video_frames=0)


def evaluate_all(context: Context, names: Sequence[str] = ()) -> list[Alert]:
    """Evaluate the saved views of datasets in all batches that are due; return the alerts that this raised.

    Args:
        context: the workspace.
        names: names or ids of datasets; none for all. If the evaluation of one fails, the others are evaluated.

    Raises:
        NotFound: a dataset does not exist.
        ReadOnly: the workspace was opened for reading.
        Error: the evaluation of a dataset failed.
    """
    context.catalog.check_writable()
    with context.catalog.read() as connection:
        if names:
            ids = [datasets.find_dataset(connection, name).id for name in names]
        else:
            ids = [record.id for record in datasets.list_datasets(connection)]
    alerts: list[Alert] = []
    failure = None
    for dataset_id in ids:
        try:
            alerts += evaluate_dataset(context, dataset_id)
        except Error as error:
            failure = failure or error
    if failure is not None:
        raise failure
    return alerts


def evaluate_dataset(context: Context, dataset_id: str, *, check: Callable[[], object] = lambda: None) -> list[Alert]:
    """Evaluate the saved views of a dataset in all batches that are due; return the alerts that this raised.

    A view that cannot be evaluated, for example because its filter names a field that was deleted, has no results in
    these batches, and keeps the reason. After a failure of the disk or of this process the batches stay due.

    Args:
        context: the workspace.
        dataset_id: the dataset.
        check: called between the steps of the evaluation; raises Aborted to stop, and then nothing is stored.
    """
    if not has_due_batches(context, dataset_id):
        return []
    try:
        media = open_media(context, dataset_id)
    except Conflict:  # nothing was committed yet
        return []
    added = times_added(media)
    with context.catalog.read() as connection:
        due = view_rows.due_views(connection, dataset_id, sorted(added))
    if not due:
        return []
    evaluations: list[ViewEvaluation] = []
    for of_objects in (False, True):
        views = [each for each in due if (each.record.filters.entity_type == EntityType.OBJECTS) == of_objects]
        if views:
            entities = open_objects(media) if of_objects else media
            evaluations += _Evaluation(context, entities, views, check).run()
    check()
    _log_failures(due, evaluations)
    with context.catalog.write() as connection:
        alerts = view_rows.store_evaluations(connection, dataset_id, evaluations, added)
        if context.layout.service_db.exists():
            queue_alerts(connection, [(each.view_id, each.batch) for each in alerts])
        else:
            clear_queue(connection)
        return alerts


def _log_failures(views: Sequence[DueView], evaluations: Sequence[ViewEvaluation]) -> None:
    """Write failures that are new to the log."""
    records = {each.record.id: each.record for each in views}
    for each in evaluations:
        record = records[each.view_id]
        if each.error is not None and each.error != record.evaluation_error:
            _LOG.warning("the saved view %r cannot be evaluated: %s", record.name, each.error)


def has_due_batches(context: Context, dataset_id: str) -> bool:
    """Return whether a dataset has batches to evaluate, by the catalog alone."""
    with context.catalog.read() as connection:
        if not view_rows.has_monitored_views(connection, dataset_id):
            return False
        if (head := context.heads.read(connection, dataset_id)) is None:
            return False
        batches = sorted(map(int, head.generation.summary.added_at))
        return bool(view_rows.due_views(connection, dataset_id, batches))


@dataclass(frozen=True)
class _Prepared:
    """A view whose results are to be counted.

    Attributes:
        view: the view.
        condition: its condition; the results of its searches are reduced to the rows of the batches.
        stats: its results in the whole dataset; None if they are to be counted.
    """

    view: DueView
    condition: Condition
    stats: ViewStats | None = None


class _Evaluation:
    """The evaluation of views of the same entities.

    Args:
        context: the workspace.
        media: the media, or the objects.
        views: the views with their batches.
        check: called between steps; raises Aborted to stop.
    """

    def __init__(self, context: Context, media: Media, views: Sequence[DueView], check: Callable[[], object]) -> None:
        self._context, self._media, self._views, self._check = context, media, views, check
        self._columns = frozenset(media.table.schema.names)
        self._searcher = open_searcher(context, media)
        self._uses: Counter[SearchTest] = Counter()
        self._results: dict[SearchTest, pa.Table] = {}

    def run(self) -> list[ViewEvaluation]:
        """Return an evaluation for each view."""
        if is_empty_object_view(self._media):
            return [ViewEvaluation(each.record.id, dict.fromkeys(each.batches, 0), _NO_STATS) for each in self._views]
        rows = self._rows()
        failures: dict[str, Exception] = {}
        filters = {each.record.id: self._tried(failures, each, self._filter) for each in self._views}
        self._uses.update(test for vql in filters.values() if vql is not None for test in searches(vql))
        prepared: list[_Prepared] = []
        for view in self._views:
            vql = filters[view.record.id]
            if vql is None:
                continue
            ready = self._tried(failures, view, partial(self._prepare, vql, rows))
            self._release(vql)
            prepared += [] if ready is None else [ready]
        prepared = self._with_stats(prepared, failures)
        counts = self._counts(prepared, rows, failures)
        return [
            *(
                ViewEvaluation(each.view.record.id, counts[each.view.record.id], each.stats)
                for each in prepared
                if each.view.record.id not in failures
            ),
            *(self._failed(each, failures[each.record.id]) for each in self._views if each.record.id in failures),
        ]

    @staticmethod
    def _failed(view: DueView, error: Exception) -> ViewEvaluation:
        reason = str(error) or type(error).__name__
        counts = {} if isinstance(error, _PASSING) else dict.fromkeys(view.batches, 0)
        text = reason if isinstance(error, Error) else f"{type(error).__name__}: {reason}"
        return ViewEvaluation(view.record.id, counts, None, text)

    def _tried(self, failures: dict[str, Exception], view: DueView, step: Any) -> Any:
        """Return the result of a step for a view; None if it failed, with the error in *failures*."""
        self._check()
        try:
            return step(view)
        except Exception as error:  # one view stops no other
            failures[view.record.id] = error
            return None

    def _rows(self) -> RowIds:
        """Return the rows of all batches that are due, ascending."""
        batches = sorted({batch for view in self._views for batch in view.batches})
        if _BATCH not in self._columns:
            return np.empty(0, np.uint64)
        text = f"{_BATCH} IN (SELECT unnest($1::INTEGER[]))"
        return self._media.row_ids(Condition(text, (batches,), frozenset({_BATCH})))

    def _filter(self, view: DueView) -> Filter:
        return filter_of(self._context, self._media, view.record.filters)

    def _prepare(self, vql: Filter, rows: RowIds, view: DueView) -> _Prepared:
        condition = condition_of(self._media, vql, {test: self._search(test) for test in searches(vql)})
        if not condition.relations:
            return _Prepared(view, condition)
        stats = self._stats(condition, view.record.filters.entity_type)
        wanted = pa.array(rows)
        relations = {
            name: table.filter(pc.is_in(table[ROW_ID], value_set=wanted)) if ROW_ID in table.column_names else table
            for name, table in condition.relations.items()
        }
        return _Prepared(view, replace(condition, relations=relations), stats)

    def _search(self, test: SearchTest) -> pa.Table:
        """Return the results of a search, which are kept while a further view needs them."""
        if test not in self._results:
            self._results.update(search_results(self._context, self._searcher, [test]))
        return self._results[test]

    def _release(self, vql: Filter) -> None:
        for test in searches(vql):
            self._uses[test] -= 1
            if not self._uses[test]:
                self._results.pop(test, None)

    def _stats(self, condition: Condition, entity_type: str) -> ViewStats:
        """Return the number of rows in the whole dataset that meet a condition."""
        return self._stats_of([self._media.count(each) for each in self._kinds(condition)], entity_type)

    def _kinds(self, condition: Condition) -> list[Condition]:
        """Return a condition; if there are videos, also those for its rows of videos, and for its frames."""
        if not self._media.has_videos or _KIND not in self._columns:
            return [condition]
        tests = f"{_KIND} IS NOT NULL", f"coalesce({_KIND} = '{VIDEO_FRAME}', FALSE)"
        columns = condition.columns | {_KIND}
        return [
            condition,
            *(replace(condition, text=f"({condition.text} AND {each})", columns=columns) for each in tests),
        ]

    @staticmethod
    def _stats_of(counts: Sequence[int], entity_type: str) -> ViewStats:
        total, of_videos, frames = (*counts, 0, 0)[:3]
        if entity_type == EntityType.OBJECTS:
            return _NO_STATS.model_copy(update={"n_objects": total})
        return ViewStats(n_images=total - of_videos, n_objects=0, n_video_frames=frames)

    def _with_stats(self, prepared: Sequence[_Prepared], failures: dict[str, Exception]) -> list[_Prepared]:
        """Return the views with their results in the whole dataset, many of which one pass over the rows counts."""
        filled = [each for each in prepared if each.stats is not None]
        missing = [each for each in prepared if each.stats is None]
        for start in range(0, len(missing), _TOGETHER):
            group = missing[start : start + _TOGETHER]
            kinds = [self._kinds(each.condition) for each in group]
            self._check()
            try:
                counts = count_rows(self._context, self._media, [each for several in kinds for each in several])
            except Exception:  # each alone, so that the failure of one stops no other
                counts = []
            for place, each in enumerate(group):
                kind, size = each.view.record.filters.entity_type, len(kinds[place])
                if counts:
                    stats = self._stats_of(counts[place * size : (place + 1) * size], kind)
                else:
                    stats = self._tried(
                        failures, each.view, lambda _, each=each, kind=kind: self._stats(each.condition, kind)
                    )
                filled += [] if stats is None else [replace(each, stats=stats)]
        return filled

    def _counts(
        self, prepared: Sequence[_Prepared], rows: RowIds, failures: dict[str, Exception]
    ) -> Mapping[str, dict[int, int]]:
        """Return the number of results of each view in each of its batches, by the view's id."""
        counts = {each.view.record.id: dict.fromkeys(each.view.batches, 0) for each in prepared}
        videos: defaultdict[str, set[tuple[int, str]]] = defaultdict(set)
        needed = {_BATCH}.union(*(stored(each.condition.columns) for each in prepared))
        columns = sorted(needed | ({_VIDEO} & self._columns))
        for start in range(0, len(rows) if prepared else 0, _BLOCK_ROWS):
            ids = rows[start : start + _BLOCK_ROWS]
            block = self._media.take(ids.tolist(), columns).append_column(ROW_ID, pa.array(ids))
            self._count_block(
                [each for each in prepared if each.view.record.id not in failures], block, counts, videos, failures
            )
        for view_id, seen in videos.items():
            for batch, _ in seen:
                counts[view_id][batch] += 1
        return counts

    def _count_block(
        self,
        prepared: Sequence[_Prepared],
        block: pa.Table,
        counts: dict[str, dict[int, int]],
        videos: Mapping[str, set[tuple[int, str]]],
        failures: dict[str, Exception],
    ) -> None:
        """Add the results of views in a block of rows; one query counts those of many views."""
        alone = [
            each
            for each in prepared
            if each.condition.relations or each.view.record.filters.entity_type == EntityType.VIDEOS
        ]
        others = [each for each in prepared if each not in alone]
        for start in range(0, len(others), _TOGETHER):
            group = others[start : start + _TOGETHER]
            self._check()
            try:
                self._count_together(group, block, counts)
            except Exception:  # each alone, so that the failure of one stops no other
                alone += group
        for each in alone:
            self._tried(failures, each.view, partial(self._count, each, block, counts, videos))

    def _count_together(
        self, group: Sequence[_Prepared], block: pa.Table, counts: Mapping[str, dict[int, int]]
    ) -> None:
        columns = frozenset[str]().union(*(each.condition.columns for each in group))
        tests, params = tests_of([each.condition for each in group])
        text = f"SELECT {_BATCH}, {tests} FROM {relation_with(columns, 'media')} GROUP BY {_BATCH}"
        for row in self._query(text, Condition("TRUE", tuple(params)), block).to_pylist():
            for number, each in enumerate(group):
                of_view = counts[each.view.record.id]
                if row[_BATCH] in of_view:
                    of_view[row[_BATCH]] += row[f"n{number}"]

    def _count(
        self,
        each: _Prepared,
        block: pa.Table,
        counts: dict[str, dict[int, int]],
        videos: Mapping[str, set[tuple[int, str]]],
        _view: DueView,
    ) -> None:
        """Add the results of a view in a block of rows: to its counts, or to the videos that it has found."""
        condition, of_view = each.condition, counts[each.view.record.id]
        relation = relation_with(condition.columns, "media")
        if each.view.record.filters.entity_type == EntityType.VIDEOS:
            if _VIDEO in self._columns:
                text = f"SELECT DISTINCT {_BATCH}, {_VIDEO} FROM {relation} WHERE {condition.text}"
                found = self._query(text, condition, block)
                pairs = zip(found[_BATCH].to_pylist(), found[_VIDEO].to_pylist(), strict=True)
                videos[each.view.record.id].update(pair for pair in pairs if pair[0] in of_view)
            return
        text = f"SELECT {_BATCH}, count(*) AS n FROM {relation} WHERE {condition.text} GROUP BY {_BATCH}"
        found = self._query(text, condition, block)
        for batch, count in zip(found[_BATCH].to_pylist(), found["n"].to_pylist(), strict=True):
            if batch in of_view:
                of_view[batch] += count

    def _query(self, text: str, condition: Condition, block: pa.Table) -> pa.Table:
        with own_errors(f"read {self._media.table.path}"):
            return self._context.sql.query(text, condition.params, {**condition.relations, "media": block})


class Monitor:
    """Evaluation of a dataset's saved views after a commit that brought or removed batches; it never raises.

    After other commits it costs two queries of the catalog. A failed evaluation is repeated after the next batch.

    Args:
        context: the open workspace.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self._lock = forks.Lock()
        self._evaluated: dict[str, Mapping[str, str]] = {}

    def __call__(self, dataset_id: str) -> None:
        """Evaluate the views of a dataset, if it has batches that this process has not evaluated."""
        with suppress(Exception):  # the change is committed; the batches stay due
            if self._is_due(dataset_id):
                evaluate_dataset(self._context, dataset_id)

    def _is_due(self, dataset_id: str) -> bool:
        with self._context.catalog.read() as connection:
            if not view_rows.has_monitored_views(connection, dataset_id):
                return False
            head = self._context.heads.read(connection, dataset_id)
        batches = {} if head is None else head.generation.summary.added_at
        with self._lock:
            is_due = self._evaluated.get(dataset_id) != batches
            self._evaluated[dataset_id] = batches
        return is_due
