"""Index columns of the media table: conversion from arrays to Arrow, and back to arrays for index updates."""

import logging
from bisect import bisect_left
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from framedex.analysis.cells import Cells
from framedex.analysis.issues import issue_confidence, limit_of_subjects
from framedex.analysis.label_entries import Labels
from framedex.analysis.labels import LabelQuality
from framedex.analysis.neighbour_lists import NeighbourGraph
from framedex.core.arrays import Floats, Mask, Vectors
from framedex.issue_types import (
    BLUR,
    CORRUPTED,
    FAULTS,
    LABEL_OUTLIER,
    MISLABELS,
    OUTLIERS,
    IssueType,
    JudgedBy,
    LabelLimits,
    is_built_in,
    issue_types,
)
from framedex.issue_types.labels import MISLABEL_LIMIT, OUTLIER_LIMIT
from framedex.records import DUPLICATE_LEVELS
from framedex.storage.generation import limits_of_labels, of_label
from framedex.storage.label_decisions import LabelDecisions
from framedex.storage.media_rows import (
    CLUSTERS,
    DAMAGED,
    DUPLICATES,
    NEAR,
    NEIGHBOURS,
    STANDING,
    index_schema,
    judged_columns,
)
from framedex.storage.objects import OBJECTS
from framedex.storage.row_numbers import RowNumbers
from framedex.storage.table_versions import Table

_LOG = logging.getLogger(__name__)
_ROWS = 65536
Columns = dict[str, Any]
Positions = npt.NDArray[np.int64]
BY_LIMIT = (JudgedBy.LIMIT, JudgedBy.GROUP)
"""Sources of decisions that :func:`limited_confidence` makes."""
NO_LIMITS: Mapping[str, float] = MappingProxyType({})


def scatter(values: npt.NDArray[Any], positions: Positions, count: int) -> npt.NDArray[Any]:
    """Return values at their positions; all other rows are null: NaN, or -1 for integers."""
    empty = np.nan if values.dtype.kind == "f" else -1
    out = np.full((count, *values.shape[1:]), empty, dtype=values.dtype)
    out[positions] = values
    return out


def issue_columns(
    table: Table, columns: Columns, defaults: dict[str, float], limits: Mapping[str, float] = NO_LIMITS
) -> Columns:
    """Return the columns of confidences and derived values; the default limit of each issue is added to *defaults*.

    A measure without a column, in a table of an older version of the program, gives no issues.

    Args:
        table: the media table.
        columns: the index columns with the values of issues, one value per row.
        defaults: default limits that were computed from the dataset; changed in place.
        limits: limits that users set, which replace the defaults.
    """
    types = issue_types().values()
    inputs = {name for each in types for name in (each.derived.inputs if each.derived else (each.column or "",))}
    stored = sorted((inputs & set(table.schema.names)) - columns.keys() - set(index_schema().names))
    of_faults = [name for name in ("error", "fault") if name in table.schema.names]
    rows_read = table.scan([*stored, *of_faults]).read_all()
    values = {name: rows_read.column(name).to_numpy().astype(np.float32) for name in stored} | columns
    missing = np.full(len(rows_read), np.nan, dtype=np.float32)
    results: Columns = {}
    for issue in types:
        if issue.derived is not None:
            results[str(issue.column)] = _derived(issue, [values.get(name, missing) for name in issue.derived.inputs])
    values |= results
    for issue in types:
        if issue.has_value:
            default = defaults.setdefault(issue.name, np.inf if issue.threshold is None else issue.threshold)
            if issue.judged_by in BY_LIMIT:
                limit = limits[issue.name] if issue.name in limits else limit_of_rows(table, issue, default, defaults)
                results[issue.confidence_column] = limited_confidence(issue, values, limit, missing)
    return results | _faults(rows_read, values.get(str(CORRUPTED.column), missing))


def kept_defaults(thresholds: Mapping[str, float | None]) -> dict[str, float]:
    """Return the default limits that the last index computed from the dataset, which additions and removals keep."""
    own = (OUTLIERS.name, BLUR.name)
    found = {
        name: limit for name, limit in thresholds.items() if name in own or name.startswith(of_label(BLUR.name, ""))
    }
    return {name: np.inf if limit is None else limit for name, limit in found.items()}


def own_defaults(table: Table) -> dict[str, float]:
    """Return the default limits that a table of objects has by what its crops show: that of blur, also by label."""
    if table.path.stem != OBJECTS:
        return {}
    assert BLUR.column is not None, "it has a measure"
    assert BLUR.threshold is not None, "it has a limit"
    rows = table.scan([BLUR.column, "labels"]).read_all()
    values, (codes, names) = rows.column(0).to_numpy().astype(np.float32), _first_labels(rows.column(1))
    whole = limit_of_subjects(values, BLUR.threshold)
    order = np.argsort(codes, kind="stable")
    parts = np.split(values[order], np.searchsorted(codes[order], np.arange(len(names))))[1:]
    limits = (limit_of_subjects(part, BLUR.threshold, few=whole) for part in parts)
    of_labels = {of_label(BLUR.name, name): limit for name, limit in zip(names, limits, strict=True) if limit != whole}
    return {BLUR.name: whole, **of_labels}


def limit_of_rows(
    table: Table, issue: IssueType, default: float, thresholds: Mapping[str, float | None]
) -> float | Floats:
    """Return the default limit of an issue type; that of each row, shape (N,), where labels have limits of their own.

    Args:
        table: the table.
        issue: the type.
        default: the limit of labels without one.
        thresholds: default limits of the dataset, with those of labels.
    """
    of_labels = limits_of_labels(thresholds, issue.name)
    if not of_labels:
        return default
    codes, names = _first_labels(table.scan(["labels"]).read_all().column(0))
    return np.array([*(of_labels.get(name, default) for name in names), default], dtype=np.float32)[codes]


def _first_labels(column: pa.ChunkedArray) -> tuple[Positions, list[str]]:
    """Return the first label of each row by its number, -1 for none, and the names of the labels."""
    lists = column.combine_chunks()
    lengths = lists.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
    encoded = lists.flatten().dictionary_encode()
    codes = np.full(len(lists), -1, dtype=np.int64)
    codes[lengths > 0] = encoded.indices.to_numpy(zero_copy_only=False)[(np.cumsum(lengths) - lengths)[lengths > 0]]
    return codes, encoded.dictionary.to_pylist()


def _faults(rows_read: pa.Table, damage: Floats) -> Columns:
    """Return the confidences of the issues about files that are not decoded, or not wholly.

    A file that an older version could not decode counts as damaged until a reindex has read it.
    """
    failed, names = rows_read.column("error").is_valid(), rows_read.column_names
    fault = rows_read.column("fault") if "fault" in names else pa.chunked_array([pa.nulls(len(rows_read), pa.string())])
    fault = pc.if_else(pc.and_(failed, pc.is_null(fault)), DAMAGED, fault)
    masks = {kind: pc.fill_null(pc.equal(fault, kind), False).to_numpy() for kind in FAULTS}
    masks[DAMAGED] = masks[DAMAGED] | (damage > 0)
    return {
        issue.confidence_column: np.where(masks[kind], 1, np.nan).astype(np.float32) for kind, issue in FAULTS.items()
    }


def limited_confidence(issue: IssueType, values: Mapping[str, Any], limit: float | Floats, missing: Floats) -> Floats:
    """Return the confidences of an issue whose type is judged by one of :data:`BY_LIMIT`; NaN without an issue.

    The confidence of a near-duplicate is its similarity.

    Args:
        issue: the issue type.
        values: columns by name: the value of the type and, for near-duplicates, the numbers of their groups.
        limit: the limit of the type, or that of each row.
        missing: float32, shape (N,), NaN: the values of a column that the table lacks.
    """
    value = values.get(str(issue.column), missing)
    if issue.judged_by is JudgedBy.LIMIT:
        return issue_confidence(value, issue, limit)
    groups = values.get(DUPLICATES[duplicate_column(float(limit))], missing)
    return np.where(groups >= 0, np.clip(value, 0, 1), np.nan).astype(np.float32)


def duplicate_column(limit: float) -> int:
    """Return the index of the duplicate level of a similarity, or of the next stricter one."""
    return min(bisect_left(DUPLICATE_LEVELS, limit), len(DUPLICATE_LEVELS) - 1)


def limited_columns(issue: IssueType, limit: float) -> list[str]:
    """Return the stored columns that :func:`limited_confidence` takes."""
    groups = [DUPLICATES[duplicate_column(limit)]] if issue.judged_by is JudgedBy.GROUP else []
    return [str(issue.column), *groups]


def read_columns(table: Table, names: Collection[str]) -> Columns:
    """Read columns of numbers, as far as the table has them, with -1 or NaN for null."""
    present = sorted(set(names) & set(table.schema.names))
    rows_read = table.scan(present).read_all() if present else pa.table({})
    return {name: _values(rows_read.column(name)) for name in present}


def label_limits(limits: Mapping[str, float]) -> LabelLimits:
    """Return the limits of the issues about labels among the limits that users set, with the defaults of the others."""
    return LabelLimits(limits.get(MISLABELS.name, MISLABEL_LIMIT), limits.get(LABEL_OUTLIER.name, OUTLIER_LIMIT))


def _derived(issue: IssueType, inputs: Sequence[Floats]) -> Floats:
    """Return the derived values of an issue type; NaN if a plugin fails, which is logged."""
    assert issue.derived is not None, "the type has a derived value"
    if is_built_in(issue):
        return issue.derived.compute(*inputs)
    missing = np.full_like(inputs[0], np.nan)
    try:
        values = np.asarray(issue.derived.compute(*(each.copy() for each in inputs)), dtype=np.float32)
    except Exception as error:  # a plugin may raise anything
        message = f"{type(error).__name__}: {error}"
        _LOG.warning("the value of the issue type %r of a plugin failed: %s", issue.name, message)
        return missing
    if values.shape != missing.shape:
        _LOG.warning("the value of the issue type %r of a plugin has the shape %s", issue.name, values.shape)
        return missing
    return values


@dataclass(frozen=True)
class LabelCodes:
    """Label codes of the media with an embedding, and the label names.

    Attributes:
        labels: the codes.
        names: the name of each code, shape (labels.count,), in ascending order.
        are_right: bool, shape (N,): whether a user decided that the labels of a media item are right.
    """

    labels: Labels
    names: pa.Array
    are_right: Mask


def read_label_codes(table: Table, positions: Positions, decisions: LabelDecisions) -> LabelCodes:
    """Return the label codes of the rows at some positions."""
    column = table.scan(["labels"]).read_all().column("labels").combine_chunks()
    return label_codes_of(table, column, positions, decisions)


def label_codes_of(table: Table, column: pa.ListArray, positions: Positions, decisions: LabelDecisions) -> LabelCodes:
    """Return the label codes of the rows at some positions.

    Args:
        table: the table.
        column: the labels of all of its rows.
        positions: int64: of the rows.
        decisions: decisions that labels are right.
    """
    are_right = np.zeros(len(column), dtype=bool)
    if decisions:
        start = 0
        for batch in table.scan(["media_id"]):
            part = slice(start, start + batch.num_rows)
            are_right[part] = decisions.hold(batch.column(0), column[part])
            start = part.stop
    if len(positions) < len(column):
        column, are_right = column.take(pa.array(positions)), are_right[positions]
    return label_codes(column, are_right)


def label_codes(column: pa.ListArray, are_right: Mask) -> LabelCodes:
    """Return the label codes of the values of the column ``labels``.

    Ties between labels are broken by their codes, so the codes follow the names and not the order of the rows.

    Args:
        column: the values.
        are_right: see :class:`LabelCodes`.
    """
    lengths = column.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
    encoded = column.flatten().dictionary_encode()
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    order = pc.array_sort_indices(encoded.dictionary)
    code_of = np.empty(len(order), dtype=np.int32)
    code_of[order.to_numpy()] = np.arange(len(order))
    codes = code_of[encoded.indices.to_numpy(zero_copy_only=False)]
    return LabelCodes(Labels(codes, offsets, len(order)), encoded.dictionary.take(order), are_right)


def label_columns(quality: LabelQuality, codes: LabelCodes, positions: Positions, count: int) -> Columns:
    """Return the index columns of label quality, for all rows.

    Media whose labels are right by decision have no issue about labels. They keep their values, and vote.
    """
    suggested = scatter(np.where(codes.are_right, -1, quality.suggested), positions, count)
    mislabelled, distant = (
        np.where(codes.are_right, np.float32(np.nan), each)
        for each in (quality.mislabel_confidence, quality.outlier_confidence)
    )
    return {
        "label_support": scatter(quality.support, positions, count),
        "label_distance": scatter(quality.distance, positions, count),
        "suggested_label": codes.names.cast(pa.string()).take(pa.array(suggested, mask=suggested < 0)),
        MISLABELS.confidence_column: scatter(mislabelled, positions, count),
        LABEL_OUTLIER.confidence_column: scatter(distant, positions, count),
    }


def graph_columns(
    graph: NeighbourGraph, first: Positions, inverse: Positions, positions: Positions, count: int
) -> Columns:
    """Return the index columns that store the neighbour graph.

    Args:
        graph: neighbours of M distinct rows.
        first: int64, shape (M,): the first item of each distinct row.
        inverse: int64, shape (N,): the distinct row of each item.
        positions: int64, shape (N,): the row of each item in the table.
        count: the number of rows in the table.
    """
    position = positions[first]
    cell = np.zeros(len(first), np.int32) if graph.cells is None else graph.cells.of_row
    number = np.full(count, -1, dtype=np.int64)
    number[position] = np.arange(len(first))
    return {
        "original": scatter(position[inverse].astype(np.int32), positions, count),
        "cell": scatter(cell, position, count),
        "neighbours": _Lists(graph.rows, number, np.append(position, -1).astype(np.int32)),
        "neighbour_similarity": _Lists(graph.similarity, number, None),
    }


@dataclass(frozen=True)
class _Lists:
    """Column of neighbour lists, whose parts are built on request.

    Attributes:
        lists: int32 or float32, shape (M, k): the lists of distinct rows.
        number: int64, shape (N,): the distinct row of each row of the table with a list; -1 for others.
        position: int32, shape (M + 1,): the replacement of each value, -1 last; None for unchanged values.
    """

    lists: npt.NDArray[Any]
    number: Positions
    position: npt.NDArray[np.int32] | None

    def __getitem__(self, part: slice) -> npt.NDArray[Any]:
        """Return the lists of rows: shape (rows, NEIGHBOURS), padded with -1; first value NaN or -1 for no list."""
        number = self.number[part]
        listed, width = np.flatnonzero(number >= 0), self.lists.shape[1]
        out = np.full((len(number), NEIGHBOURS), -1, dtype=self.lists.dtype)
        if self.lists.dtype.kind == "f":
            out[:, 0] = np.nan
        values = self.lists[number[listed]]
        out[listed, :width] = values if self.position is None else self.position[values]
        return out


@dataclass(frozen=True)
class IndexedRows:
    """Indexed rows of a table, as arrays.

    Attributes:
        rows: the number of the table's first rows that are indexed.
        positions: int64, shape (K,), ascending: the indexed rows with an embedding.
        graph: neighbours of the distinct vectors of these rows.
        first: int64, shape (M,): the position of the first row of each distinct vector.
        inverse: int64, shape (K,): the distinct vector of each indexed row with an embedding.
        columns: the other index columns of the indexed rows, by name.
    """

    rows: int
    positions: Positions
    graph: NeighbourGraph
    first: Positions
    inverse: Positions
    columns: Columns

    @property
    def nbytes(self) -> int:
        """The bytes of the arrays."""
        graph = (self.graph.rows, self.graph.similarity)
        return sum(each.nbytes for each in (self.positions, self.first, self.inverse, *graph, *self.columns.values()))

    def without_graph(self) -> "IndexedRows":
        """Return the same with an empty graph: the lists of ten million rows take 1.6 GB."""
        return replace(self, graph=NeighbourGraph(np.empty((0, 0), np.int32), np.empty((0, 0), np.float32)))


def indexed_columns() -> frozenset[str]:
    """Return the columns that :func:`read_indexed_rows` reads."""
    return frozenset(index_schema().names) - {*judged_columns(), *STANDING}


def read_indexed_rows(table: Table, centroids: Vectors | None, reach: float) -> IndexedRows:
    """Read the index columns of a table, without rows that were appended after indexing.

    Args:
        table: the media table.
        centroids: float32, shape (C, D): the centroids of the graph's cells; None if all rows were compared.
        reach: the reach of the cells.
    """
    names = [name for name in index_schema().names if name in indexed_columns() - {*_LISTS}]
    if NEAR not in table.schema.names:  # of an older version of the program
        names.remove(NEAR)
    rows, columns = _read_indexed(table, names)
    columns.setdefault(NEAR, columns[DUPLICATES[0]])
    numbers = RowNumbers.of(table.overlay)
    original, cell = numbers.rows(columns.pop("original")), columns.pop("cell")
    first = np.flatnonzero(original == np.arange(rows))
    row_of = np.full(rows + 1, -1, dtype=np.int32)  # the last entry maps -1, the end of a list
    row_of[first] = np.arange(len(first))
    cells = None if centroids is None else Cells(centroids, cell[first], reach)
    graph = NeighbourGraph(*_read_lists(table, row_of, len(first), numbers), cells)
    positions = np.flatnonzero(original >= 0)
    return IndexedRows(rows, positions, graph, first, row_of[original[positions]].astype(np.int64), columns)


def _read_indexed(table: Table, names: Sequence[str]) -> tuple[int, Columns]:
    """Return the number of indexed rows, and their columns: -1 or NaN for null; the table is read in parts."""
    batches, schema = table.scan(names), table.schema  # a damaged table that lacks columns is noticed by the scan
    columns: Columns = {name: np.empty(table.count(), schema.field(name).type.to_pandas_dtype()) for name in names}
    rows = 0
    for batch in batches:
        indexed = len(batch) - batch.column(names.index(CLUSTERS[0])).null_count
        for name, values in zip(names, batch.columns, strict=True):
            columns[name][rows : rows + indexed] = _values(values)[:indexed]
        rows += indexed
        if indexed < len(batch):  # the others were appended
            break
    return rows, {name: values[:rows] for name, values in columns.items()}


def read_neighbours(table: Table) -> tuple[npt.NDArray[np.int32], Positions, Positions, Positions]:
    """Read the neighbour lists of a table, without rows that were appended after indexing.

    Returns:
        neighbours: int32, shape (M, k): the lists of distinct vectors, by their numbers; -1 at the end of a list.
        first: int64, shape (M,): the position of the first row of each distinct vector.
        positions: int64, shape (K,), ascending: the indexed rows with an embedding.
        inverse: int64, shape (K,): the distinct vector of each of them.
    """
    numbers = RowNumbers.of(table.overlay)
    original = numbers.rows(_values(table.scan(["original"]).read_all().column(0)))
    first = np.flatnonzero(original == np.arange(len(original)))
    row_of = np.full(len(original) + 1, -1, dtype=np.int32)  # the last entry maps -1, the end of a list
    row_of[first] = np.arange(len(first))
    positions = np.flatnonzero(original >= 0)
    positions = positions[row_of[original[positions]] >= 0]
    lists, _ = _read_lists(table, row_of, len(first), numbers)
    return lists, first, positions, row_of[original[positions]].astype(np.int64)


def _read_lists(
    table: Table, row_of: npt.NDArray[np.int32], count: int, numbers: RowNumbers
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float32]]:
    """Read the neighbours of distinct rows, by their numbers, and their similarities: shape (count, k)."""
    k = min(NEIGHBOURS, max(count - 1, 0))
    neighbours, similarity = np.empty((count, k), np.int32), np.empty((count, k), np.float32)
    done = 0
    for batch in table.scan(_LISTS) if k else ():
        neighbour_rows, scores = (column.drop_null() for column in batch.columns)
        part = slice(done, done + len(neighbour_rows))
        near = numbers.rows(neighbour_rows.flatten().to_numpy().reshape(-1, NEIGHBOURS)[:, :k])
        neighbours[part] = row_of[near]
        similarity[part] = scores.flatten().to_numpy().reshape(-1, NEIGHBOURS)[:, :k]
        done += len(neighbour_rows)
    return neighbours, similarity


_LISTS = ("neighbours", "neighbour_similarity")


def _values(column: pa.Array | pa.ChunkedArray) -> npt.NDArray[Any]:
    """Return the values of a column, with -1 or NaN for null."""
    missing = np.nan if pa.types.is_floating(column.type) else -1
    return np.asarray(column.fill_null(missing).to_numpy())


def to_batches(columns: Mapping[str, Any], count: int, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield index columns of all rows as record batches of some ten thousand rows.

    Args:
        columns: by name: Arrow arrays, or NumPy arrays with NaN or negative numbers for null.
        count: the number of rows.
        names: the columns to include.
    """
    for start in range(0, count, _ROWS):
        yield to_batch(columns, names, slice(start, start + _ROWS))


def to_batch(columns: Mapping[str, Any], names: Sequence[str], rows: slice = slice(None)) -> pa.RecordBatch:
    """Return index columns of some rows, by default of all, as one record batch; arguments as of :func:`to_batches`."""
    schema_of_index = index_schema()
    schema = pa.schema([schema_of_index.field(name) for name in names])
    arrays = [_array(columns[field.name][rows], field.type) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _array(values: Any, kind: pa.DataType) -> pa.Array:
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    missing = np.isnan(values) if values.dtype.kind == "f" else values < 0
    if values.ndim == 1:
        return pa.array(values, kind, mask=missing)
    return pa.FixedSizeListArray.from_arrays(
        pa.array(np.ascontiguousarray(values).ravel(), kind.value_type), kind.list_size, mask=pa.array(missing[:, 0])
    )
