"""The index columns of the media table: from arrays to Arrow, and back to what an index of more rows goes on from."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from framedex.analysis.cells import Cells
from framedex.analysis.issues import confidence
from framedex.analysis.labels import LabelQuality, Labels
from framedex.analysis.neighbours import Graph
from framedex.arrays import Floats, Vectors
from framedex.issue_types import CORRUPTED, LABEL_OUTLIER, MISLABELS, IssueType, JudgedBy, is_built_in, issue_types
from framedex.issue_types import DUPLICATES as DUPLICATE_ISSUE
from framedex.storage.media_rows import CLUSTERS, DUPLICATES, NEIGHBOURS, index_schema, judged_columns
from framedex.storage.tables import Table

_LOG = logging.getLogger("framedex")
_ROWS = 65536
Columns = dict[str, Any]
Positions = npt.NDArray[np.int64]


def scatter(values: npt.NDArray[Any], positions: Positions, count: int) -> npt.NDArray[Any]:
    """Return values at their rows; elsewhere NaN, or -1 for whole numbers, which stand for null."""
    empty = np.nan if values.dtype.kind == "f" else -1
    out = np.full((count, *values.shape[1:]), empty, dtype=values.dtype)
    out[positions] = values
    return out


def issue_columns(table: Table, columns: Columns, limits: dict[str, float]) -> Columns:
    """Return the columns of confidences and derived values; *limits* gains the limit of each issue.

    A value that the table has no column of, as it was made before there was such a measure, is no issue.

    Args:
        table: the media table.
        columns: the index columns that issues are judged by, a value for each row.
        limits: limits that were computed from the dataset.
    """
    types = issue_types().values()
    inputs = {name for each in types for name in (each.derived.inputs if each.derived else (each.column or "",))}
    stored = sorted((inputs & set(table.schema.names)) - columns.keys() - set(index_schema().names))
    held = table.scan([*stored, "error"]).read_all()
    values = {name: held.column(name).to_numpy().astype(np.float32) for name in stored} | columns
    unknown = np.full(len(held), np.nan, dtype=np.float32)
    made: Columns = {}
    for issue in types:
        if issue.derived is not None:
            made[str(issue.column)] = _derived(issue, [values.get(name, unknown) for name in issue.derived.inputs])
    values |= made
    for issue in types:
        if issue.column is not None:
            limit = limits.setdefault(issue.name, np.inf if issue.threshold is None else issue.threshold)
            if issue.judged_by is JudgedBy.LIMIT:
                made[issue.confidence_column] = confidence(values.get(issue.column, unknown), issue, limit)
    # A near-duplicate at exactly the level counts, and its similarity says how sure that is.
    made[DUPLICATE_ISSUE.confidence_column] = np.where(
        columns[DUPLICATES[0]] >= 0, np.clip(columns["duplicate_similarity"], 0, 1), np.nan
    ).astype(np.float32)
    broken = held.column("error").is_valid().to_numpy()
    made[CORRUPTED.confidence_column] = np.where(broken, 1, np.nan).astype(np.float32)
    return made


def _derived(issue: IssueType, inputs: Sequence[Floats]) -> Floats:
    """Return the derived values of an issue type; those of a plugin that fails are unknown, and the log says so."""
    assert issue.derived is not None, "the type is a derived one"
    if is_built_in(issue):
        return issue.derived.compute(*inputs)
    unknown = np.full_like(inputs[0], np.nan)
    try:
        values = np.asarray(issue.derived.compute(*(each.copy() for each in inputs)), dtype=np.float32)
    except Exception as error:  # whatever the other package does
        said = f"{type(error).__name__}: {error}"
        _LOG.warning("the value of the issue type %r of a plugin failed: %s", issue.name, said)
        return unknown
    if values.shape != unknown.shape:
        _LOG.warning("the value of the issue type %r of a plugin has the shape %s", issue.name, values.shape)
        return unknown
    return values


@dataclass(frozen=True)
class LabelNames:
    """The labels of the media that have an embedding, as numbers.

    Attributes:
        labels: the numbers.
        names: text of each, shape (labels.count,).
    """

    labels: Labels
    names: pa.Array


def read_labels(table: Table, positions: Positions) -> LabelNames:
    """Return the labels of the rows at some positions."""
    column = table.scan(["labels"]).read_all().column("labels").combine_chunks()
    column = column if len(positions) == len(column) else column.take(pa.array(positions))
    lengths = column.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
    encoded = column.flatten().dictionary_encode()
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int32)
    return LabelNames(Labels(codes, offsets, len(encoded.dictionary)), encoded.dictionary)


def label_columns(quality: LabelQuality, names: pa.Array, positions: Positions, count: int) -> Columns:
    """Return the columns about labels, for all rows."""
    suggested = scatter(quality.suggested, positions, count)
    return {
        "label_support": scatter(quality.support, positions, count),
        "label_distance": scatter(quality.distance, positions, count),
        "suggested_label": names.cast(pa.string()).take(pa.array(suggested, mask=suggested < 0)),
        MISLABELS.confidence_column: scatter(quality.mislabel_confidence, positions, count),
        LABEL_OUTLIER.confidence_column: scatter(quality.outlier_confidence, positions, count),
    }


def graph_columns(graph: Graph, first: Positions, inverse: Positions, positions: Positions, count: int) -> Columns:
    """Return the columns that keep the neighbour graph.

    Args:
        graph: of M distinct rows.
        first: int64, shape (M,): the first item of each.
        inverse: int64, shape (N,): the distinct row of each item.
        positions: int64, shape (N,): where each item stands in the table.
        count: rows of the table.
    """
    place = positions[first]
    cell = np.zeros(len(first), np.int32) if graph.cells is None else graph.cells.of_row
    number = np.full(count, -1, dtype=np.int64)
    number[place] = np.arange(len(first))
    return {
        "original": scatter(place[inverse].astype(np.int32), positions, count),
        "cell": scatter(cell, place, count),
        "neighbours": _Lists(graph.rows, number, np.append(place, -1).astype(np.int32)),
        "neighbour_similarity": _Lists(graph.similarity, number, None),
    }


@dataclass(frozen=True)
class _Lists:
    """The lists of distinct rows at their rows of the table, made when a part of them is asked for.

    Attributes:
        lists: int32 or float32, shape (M, k).
        number: int64, shape (N,): the distinct row of each row of the table that has a list; -1 for others.
        place: int32, shape (M + 1,): what takes the place of each value, -1 last; None if values stay.
    """

    lists: npt.NDArray[Any]
    number: Positions
    place: npt.NDArray[np.int32] | None

    def __getitem__(self, part: slice) -> npt.NDArray[Any]:
        """Return the lists of some rows, shape (rows, NEIGHBOURS), ended with -1; NaN or -1 first for none."""
        number = self.number[part]
        held, width = np.flatnonzero(number >= 0), self.lists.shape[1]
        out = np.full((len(number), NEIGHBOURS), -1, dtype=self.lists.dtype)
        if self.lists.dtype.kind == "f":
            out[:, 0] = np.nan
        values = self.lists[number[held]]
        out[held, :width] = values if self.place is None else self.place[values]
        return out


@dataclass(frozen=True)
class IndexedRows:
    """What an index says of the rows that it covers.

    Attributes:
        rows: how many of the table's first rows it covers.
        positions: int64, shape (K,), ascending: those among them that have an embedding.
        graph: of the distinct ones among them.
        first: int64, shape (M,): the position of the first row of each distinct vector.
        inverse: int64, shape (K,): the distinct row of each covered row that has an embedding.
        columns: the other index columns of the covered rows, by name.
    """

    rows: int
    positions: Positions
    graph: Graph
    first: Positions
    inverse: Positions
    columns: Columns


def read_indexed_rows(table: Table, centroids: Vectors | None, reach: float) -> IndexedRows:
    """Return what the index columns of a table say; rows that were appended since then have none.

    Args:
        table: the media table.
        centroids: float32, shape (C, D): of the cells that the graph was found by; None if all rows were compared.
        reach: of the cells.
    """
    anew = {*judged_columns(), *_LISTS}
    names = [name for name in index_schema().names if name not in anew]
    held = table.scan(names).read_all()
    rows = len(held) - held.column(CLUSTERS[0]).null_count
    held = held.slice(0, rows)
    columns = {name: _values(held.column(name)) for name in names}
    original, cell = columns.pop("original"), columns.pop("cell")
    first = np.flatnonzero(original == np.arange(rows))
    row_of = np.full(rows + 1, -1, dtype=np.int32)  # the last one is for -1, the end of a list
    row_of[first] = np.arange(len(first))
    cells = None if centroids is None else Cells(centroids, cell[first], reach)
    graph = Graph(*_read_lists(table, row_of, len(first)), cells)
    positions = np.flatnonzero(original >= 0)
    return IndexedRows(rows, positions, graph, first, row_of[original[positions]].astype(np.int64), columns)


def _read_lists(
    table: Table, row_of: npt.NDArray[np.int32], count: int
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float32]]:
    """Return the neighbours of distinct rows, by their numbers, and their similarities: shape (count, k)."""
    k = min(NEIGHBOURS, max(count - 1, 0))
    neighbours, similarity = np.empty((count, k), np.int32), np.empty((count, k), np.float32)
    done = 0
    for batch in table.scan(_LISTS) if k else ():
        places, scores = (column.drop_null() for column in batch.columns)
        part = slice(done, done + len(places))
        neighbours[part] = row_of[places.flatten().to_numpy().reshape(-1, NEIGHBOURS)[:, :k]]
        similarity[part] = scores.flatten().to_numpy().reshape(-1, NEIGHBOURS)[:, :k]
        done += len(places)
    return neighbours, similarity


_LISTS = ("neighbours", "neighbour_similarity")


def _values(column: pa.ChunkedArray) -> npt.NDArray[Any]:
    """Return a column's values, null as -1 or NaN."""
    missing = np.nan if pa.types.is_floating(column.type) else -1
    return np.asarray(column.fill_null(missing).to_numpy())


def to_batches(columns: Mapping[str, Any], count: int, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield some index columns of all rows, some ten thousand rows at a time.

    Args:
        columns: by name: Arrow arrays, or NumPy ones in which NaN or a negative number stands for null.
        count: how many rows there are.
        names: which columns.
    """
    written = index_schema()
    schema = pa.schema([written.field(name) for name in names])
    for start in range(0, count, _ROWS):
        arrays = [_array(columns[field.name][start : start + _ROWS], field.type) for field in schema]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def _array(values: Any, kind: pa.DataType) -> pa.Array:
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    missing = np.isnan(values) if values.dtype.kind == "f" else values < 0
    if values.ndim == 1:
        return pa.array(values, kind, mask=missing)
    return pa.FixedSizeListArray.from_arrays(
        pa.array(np.ascontiguousarray(values).ravel(), kind.value_type), kind.list_size, mask=pa.array(missing[:, 0])
    )
