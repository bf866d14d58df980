"""Histograms of the values of issue types."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from framedex.core.checks import check_integer, is_integer
from framedex.errors import InvalidInput
from framedex.issue_types import find_valued_type
from framedex.records import ValueHistogram
from framedex.storage.condition import Condition
from framedex.storage.media import Media

MAX_BINS = 1000
_LARGEST = 1e38  # values are float32
_VALUES = "(SELECT {column}::DOUBLE AS value FROM chosen WHERE isfinite({column}))"
_Edges = npt.NDArray[np.float64]


def value_histogram(
    media: Media, condition: Condition, issue_type: str, *, bins: int | Sequence[float] = 20
) -> ValueHistogram:
    """Return the histogram of the values of an issue type; the filter engine counts them.

    Args:
        media: the media, or the objects, of a dataset.
        condition: the condition that they must meet.
        issue_type: the name of the type.
        bins: the number of bins of equal width between the least and the greatest value, 1 to 1,000; or their edges,
            ascending. As in ``numpy.histogram``, bins include their start, the last bin its end, too, and a single
            value is in the middle of a width of 1.

    Raises:
        InvalidInput: the type is unknown or has no value, or the bins are neither a number nor edges.
    """
    issue = find_valued_type(issue_type)
    given = _checked_edges(bins)
    total, column = media.count(condition), str(issue.column)
    if column in media.table.schema.names:
        values = _VALUES.format(column=column)
        text = f"SELECT min(value) AS low, max(value) AS high, count(*) AS n FROM {values}"
        row = media.query(text, condition, [column]).to_pylist()[0]
    else:  # the dataset was indexed before the type existed
        row = {"low": None, "high": None, "n": 0}
    edges = _equal_bins(row["low"], row["high"], bins) if given is None else given
    counts = _counts(media, condition, column, edges) if row["n"] else [0] * (len(edges) - 1)
    return ValueHistogram(
        issue_type=issue.name,
        meaning=issue.meaning,
        edges=edges.tolist(),
        counts=counts,
        missing=total - row["n"],
        outside=row["n"] - sum(counts),
        limit=media.generation.summary.limit(issue.name, issue.threshold),
        above=issue.above,
    )


def _checked_edges(bins: Any) -> _Edges | None:
    """Return the edges of bins; None for a number of bins.

    Raises:
        InvalidInput: they are neither.
    """
    if is_integer(bins):
        check_integer("bins", bins, minimum=1, maximum=MAX_BINS)
        return None
    try:
        edges = np.asarray([] if isinstance(bins, str | bytes) else bins, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        edges = np.empty(0)
    is_list = edges.ndim == 1 and 2 <= len(edges) <= MAX_BINS + 1
    if is_list and (np.abs(edges) <= _LARGEST).all() and (np.diff(edges) > 0).all():
        return edges
    raise InvalidInput(
        f"bins must be a whole number from 1 to {MAX_BINS:,}, or their edges in ascending order, not {bins!r:.200}"
    )


def _equal_bins(low: float | None, high: float | None, bins: Any) -> _Edges:
    """Return the edges of bins of equal width between two values; None without values."""
    low, high = (0.0, 1.0) if low is None or high is None else (low, high)
    if low == high:
        low, high = low - 0.5, high + 0.5
    return np.linspace(low, high, bins + 1)


def _counts(media: Media, condition: Condition, column: str, edges: _Edges) -> list[int]:
    """Return the number of values in each bin."""
    starts = ", ".join(map(repr, edges.tolist()))
    # Each value belongs to the largest edge that is not above it; the last edge has the values that equal it.
    text = (
        f"SELECT edge, count(*) FILTER (value <= {edges[-1].item()!r}) AS n "
        f"FROM {_VALUES.format(column=column)} AS measured "
        f"ASOF JOIN (SELECT unnest([{starts}]::DOUBLE[]) AS edge) AS starts ON value >= edge GROUP BY edge"
    )
    rows = media.query(text, condition, [column])
    by_edge = dict(zip(rows["edge"].to_pylist(), rows["n"].to_pylist(), strict=True))
    counts = [int(by_edge.get(edge, 0)) for edge in edges.tolist()]
    return [*counts[:-2], counts[-2] + counts[-1]]
