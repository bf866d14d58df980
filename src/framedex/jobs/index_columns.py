"""The index columns of the media table: from arrays to Arrow, and back to what an index of more rows goes on from."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from framedex.analysis.cells import Cells
from framedex.analysis.issues import RULES, confidence, size_distance
from framedex.analysis.labels import LabelQuality, Labels
from framedex.analysis.neighbours import Graph
from framedex.analysis.products import Vectors
from framedex.records import IssueType
from framedex.storage.media_rows import CLUSTERS, DUPLICATES, INDEX_SCHEMA, NEIGHBOURS
from framedex.storage.tables import Table

_ROWS = 65536
_JUDGED = (IssueType.MISLABELS, IssueType.LABEL_OUTLIER)
"""Issues whose confidence needs more than a limit; :mod:`framedex.analysis.labels` says it."""

Columns = dict[str, Any]
Positions = npt.NDArray[np.int64]


def spread(values: npt.NDArray[Any], positions: Positions, count: int) -> npt.NDArray[Any]:
    """Return values at their rows; elsewhere NaN, or -1 for whole numbers, which stand for null."""
    empty = np.nan if values.dtype.kind == "f" else -1
    out = np.full((count, *values.shape[1:]), empty, dtype=values.dtype)
    out[positions] = values
    return out


def issue_columns(table: Table, columns: Columns, limits: dict[str, float]) -> Columns:
    """Return the columns of confidences; *limits* gains the limit of each issue.

    Args:
        table: the media table.
        columns: the index columns that issues are judged by, a value for each row.
        limits: limits that were computed from the dataset.
    """
    measured = {rule.column for rule in RULES.values()} & set(table.schema.names) - set(INDEX_SCHEMA.names)
    held = table.scan([*sorted(measured), "width", "height", "error"]).read_all()
    values = {name: held.column(name).to_numpy().astype(np.float32) for name in measured | {"width", "height"}}
    found: Columns = {"size_distance": size_distance(values["width"], values["height"])}
    values |= columns | found
    for issue, rule in RULES.items():
        limit = limits.setdefault(issue.value, np.inf if rule.threshold is None else rule.threshold)
        if issue not in _JUDGED:
            found[f"issue_{issue}"] = confidence(values[rule.column], rule, limit)
    # A near-duplicate at exactly the level counts, and its similarity says how sure that is.
    found["issue_duplicates"] = np.where(
        columns[DUPLICATES[0]] >= 0, np.clip(columns["duplicate_similarity"], 0, 1), np.nan
    ).astype(np.float32)
    broken = held.column("error").is_valid().to_numpy()
    found["issue_corrupted"] = np.where(broken, 1, np.nan).astype(np.float32)
    return found


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
    suggested = spread(quality.suggested, positions, count)
    return {
        "label_support": spread(quality.support, positions, count),
        "label_distance": spread(quality.distance, positions, count),
        "suggested_label": names.cast(pa.string()).take(pa.array(suggested, mask=suggested < 0)),
        f"issue_{IssueType.MISLABELS}": spread(quality.mislabel_confidence, positions, count),
        f"issue_{IssueType.LABEL_OUTLIER}": spread(quality.outlier_confidence, positions, count),
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
    rows = np.full((len(first), NEIGHBOURS), -1, dtype=np.int32)
    rows[:, : graph.k] = place[graph.rows]
    similarity = np.full((len(first), NEIGHBOURS), -1 if graph.k else np.nan, dtype=np.float32)
    similarity[:, : graph.k] = graph.similarity
    cell = np.zeros(len(first), np.int32) if graph.cells is None else graph.cells.of_row
    return {
        "original": spread(place[inverse].astype(np.int32), positions, count),
        "cell": spread(cell, place, count),
        "neighbours": spread(rows, place, count),
        "neighbour_similarity": spread(similarity, place, count),
    }


@dataclass(frozen=True)
class Known:
    """What an index says of the rows that it covers.

    Attributes:
        rows: how many of the table's first rows it covers.
        graph: of the distinct ones among them.
        first: int64, shape (M,): the position of the first row of each distinct vector.
        inverse: int64, shape (K,): the distinct row of each covered row that has an embedding.
        columns: the other index columns of the covered rows, by name.
    """

    rows: int
    graph: Graph
    first: Positions
    inverse: Positions
    columns: Columns


def read_known(table: Table, centroids: Vectors | None, reach: float) -> Known:
    """Return what the index columns of a table say; rows that were appended since then have none.

    Args:
        table: the media table.
        centroids: float32, shape (C, D): of the cells that the graph was found by; None if all rows were compared.
        reach: of the cells.
    """
    names = [field.name for field in INDEX_SCHEMA if field.name not in _NOT_CONTINUED]
    held = table.scan(names).read_all()
    rows = len(held) - held.column(CLUSTERS[0]).null_count
    held = held.slice(0, rows)
    columns = {name: _values(held.column(name)) for name in names if not name.startswith("neighbour")}
    original, cell = columns.pop("original"), columns.pop("cell")
    first = np.flatnonzero(original == np.arange(rows))
    row_of = np.full(rows, -1, dtype=np.int32)
    row_of[first] = np.arange(len(first))
    k = min(NEIGHBOURS, max(len(first) - 1, 0))
    neighbours, similarity = (
        _matrix(held.column(name), len(first))[:, :k] for name in ("neighbours", "neighbour_similarity")
    )
    cells = None if centroids is None else Cells(centroids, cell[first], reach)
    graph = Graph(row_of[neighbours], similarity, cells)
    return Known(rows, graph, first, row_of[original[original >= 0]].astype(np.int64), columns)


_NOT_CONTINUED = (
    "suggested_label",
    "label_support",
    "label_distance",
    "size_distance",
    *(f"issue_{issue}" for issue in IssueType),
)


def _values(column: pa.ChunkedArray) -> npt.NDArray[Any]:
    """Return a column's values, null as -1 or NaN."""
    missing = np.nan if pa.types.is_floating(column.type) else -1
    return np.asarray(column.fill_null(missing).to_numpy())


def _matrix(column: pa.ChunkedArray, rows: int) -> npt.NDArray[Any]:
    """Return the lists of a column that are there, shape (rows, values); a single row has no neighbours and no list."""
    parts = [chunk.drop_null().flatten().to_numpy(zero_copy_only=False) for chunk in column.chunks]
    flat = np.concatenate(parts) if parts else np.empty(0)
    width = column.type.list_size
    return flat.reshape(-1, width) if len(flat) == rows * width else np.empty((rows, width), flat.dtype)


def to_batches(columns: Mapping[str, Any], count: int, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield some index columns of all rows, some ten thousand rows at a time.

    Args:
        columns: by name: Arrow arrays, or NumPy ones in which NaN or a negative number stands for null.
        count: how many rows there are.
        names: which columns.
    """
    schema = pa.schema([INDEX_SCHEMA.field(name) for name in names])
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
