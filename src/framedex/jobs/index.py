"""Rows to an index: neighbours, clusters, duplicates, scores and issues, as columns of the media table."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from framedex.analysis.duplicates import duplicate_groups
from framedex.analysis.issues import RULES, confidence, size_distance
from framedex.analysis.linkage import average_linkage
from framedex.analysis.neighbours import Vectors, nearest, unique_rows
from framedex.analysis.scores import neighbour_distances, outlier_values, uniqueness
from framedex.records import DUPLICATE_LEVELS, IssueType
from framedex.storage import tables
from framedex.storage.media_rows import CLUSTERS, DUPLICATES, INDEX_SCHEMA, NO_EMBEDDING
from framedex.storage.tables import Table

_ROWS = 65536
Columns = dict[str, npt.NDArray[Any]]


@dataclass(frozen=True)
class Indexed:
    """What indexing wrote.

    Attributes:
        version: of the media table.
        thresholds: the limit of each issue in this dataset; None where it could not be set.
    """

    version: int
    thresholds: dict[str, float | None]


def index(table: Table, thresholds: Sequence[float], *, progress: Callable[[float], None]) -> Indexed:
    """Compute all index columns of a media table and write them; return the new version.

    Args:
        table: the media table, at its newest version.
        thresholds: five ascending cosine distances.
        progress: called with the share that is done; raises to stop.
    """
    count = table.count()
    positions, vectors = table.vectors()
    columns, limits = _by_neighbours(vectors, thresholds, progress)
    columns = {name: _spread(values, positions, count) for name, values in columns.items()}
    columns |= {name: np.maximum(columns[name], NO_EMBEDDING) for name in CLUSTERS}
    columns |= _issues(table, columns, limits)
    version = tables.put_columns(table, _batches(columns, count), INDEX_SCHEMA)
    progress(1.0)
    return Indexed(version, {name: limit if np.isfinite(limit) else None for name, limit in limits.items()})


def _by_neighbours(
    vectors: Vectors, thresholds: Sequence[float], progress: Callable[[float], None]
) -> tuple[Columns, dict[str, float]]:
    """Return what follows from the embeddings, for the rows that have one, and the outlier limit."""
    first, inverse = unique_rows(vectors)
    distinct = vectors if len(first) == len(vectors) else vectors[first]
    graph = nearest(distinct, progress=lambda share: progress(0.5 * share))
    weights = np.bincount(inverse, minlength=len(first))
    clusters = average_linkage(
        distinct, weights, graph, thresholds, progress=lambda share: progress(0.5 + 0.4 * share)
    )[inverse]
    groups, similarity = duplicate_groups(
        distinct, graph, inverse, DUPLICATE_LEVELS, progress=lambda _share: progress(0.9)
    )
    distances = neighbour_distances(graph, inverse)
    outliers, limit = outlier_values(distances)
    columns: Columns = {name: clusters[:, level] + 1 + NO_EMBEDDING for level, name in enumerate(CLUSTERS)}
    columns |= {name: groups[:, level] for level, name in enumerate(DUPLICATES)}
    columns |= {
        "duplicate_similarity": similarity,
        "uniqueness": uniqueness(distances),
        "outlier_distance": outliers,
    }
    return columns, {IssueType.OUTLIERS.value: limit}


def _spread(values: npt.NDArray[Any], positions: npt.NDArray[np.int64], count: int) -> npt.NDArray[Any]:
    """Return values at their rows; elsewhere NaN, or -1 for whole numbers, which stand for null."""
    empty = np.nan if values.dtype.kind == "f" else -1
    out = np.full(count, empty, dtype=values.dtype)
    out[positions] = values
    return out


def _issues(table: Table, columns: Columns, limits: dict[str, float]) -> Columns:
    """Return the columns of confidences; *limits* gains the limit of each issue."""
    measured = {rule.column for rule in RULES.values()} & set(table.schema.names)
    held = table.scan([*sorted(measured), "width", "height", "error"]).read_all()
    values = {name: held.column(name).to_numpy().astype(np.float32) for name in measured | {"width", "height"}}
    found: Columns = {"size_distance": size_distance(values["width"], values["height"])}
    values |= columns | found
    for issue, rule in RULES.items():
        limit = limits.setdefault(issue.value, np.inf if rule.threshold is None else rule.threshold)
        found[f"issue_{issue}"] = confidence(values[rule.column], rule, limit)
    # A near-duplicate at exactly the level counts, and its similarity says how sure that is.
    found["issue_duplicates"] = np.where(
        columns[DUPLICATES[0]] >= 0, np.clip(columns["duplicate_similarity"], 0, 1), np.nan
    ).astype(np.float32)
    broken = held.column("error").is_valid().to_numpy()
    found["issue_corrupted"] = np.where(broken, 1, np.nan).astype(np.float32)
    return found


def _batches(columns: Columns, count: int) -> Iterator[pa.RecordBatch]:
    for start in range(0, count, _ROWS):
        arrays = []
        for field in INDEX_SCHEMA:
            values = columns[field.name][start : start + _ROWS]
            missing = np.isnan(values) if values.dtype.kind == "f" else values < 0
            arrays.append(pa.array(values, field.type, mask=missing))
        yield pa.RecordBatch.from_arrays(arrays, schema=INDEX_SCHEMA)
