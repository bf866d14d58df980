"""Pairs of images that may show the same by their local features: the cheap test before pixels are read."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from framedex.analysis.local_features import AGREEING, LOCAL_FEATURE, agreeing_features
from framedex.core.arrays import Mask
from framedex.executors import Executor
from framedex.storage.media_rows import LOCAL_FEATURES
from framedex.storage.table_versions import Table

Rows = npt.NDArray[np.int64]
_HELD = 2**14  # pairs whose features are held at a time
_PART = 512  # pairs that a worker compares at a time
_FEW = 16  # features of an image that has too few of them to be compared


@dataclass(frozen=True)
class _ComparedFeatures:
    """Pairs, by the places of their ends: int64, shape (2, P), and the features of their images: None for none."""

    ends: Rows
    features: list[bytes | None]


def may_show_the_same(tables: Sequence[Table], a: Rows, b: Rows, executor: Executor, check: Callable[[], None]) -> Mask:
    """Return which pairs of images share local features, or have too few of them to tell: bool, shape (P,).

    Args:
        tables: media tables whose rows are numbered one after another.
        a: int64, shape (P,): the first row of each pair.
        b: int64, shape (P,): the second one.
        executor: compares them.
        check: called between parts; raises to stop.
    """
    found = np.ones(len(a), dtype=bool)
    if not all(LOCAL_FEATURES in each.schema.names for each in tables):
        return found
    order, start = np.lexsort((b, a)), 0
    with closing(executor.map(_compared, _parts(tables, a[order], b[order]), check=check)) as results:
        for each in results:
            found[order[start : start + len(each)]] = each
            start += len(each)
            check()
    return found


def _parts(tables: Sequence[Table], a: Rows, b: Rows) -> Iterator[_ComparedFeatures]:
    for start in range(0, len(a), _HELD):
        ends = np.stack([a[start : start + _HELD], b[start : start + _HELD]])
        rows, places = np.unique(ends, return_inverse=True)
        features = _read(tables, rows)
        for pair in range(0, ends.shape[1], _PART):
            used, its_places = np.unique(places.reshape(ends.shape)[:, pair : pair + _PART], return_inverse=True)
            yield _ComparedFeatures(its_places.reshape(2, -1), [features[place] for place in used.tolist()])


def _read(tables: Sequence[Table], rows: Rows) -> list[bytes | None]:
    """Return the features of ascending rows; None for none."""
    features: list[bytes | None] = []
    first = 0
    for table in tables:
        end = first + table.count()
        low, high = np.searchsorted(rows, [first, end]).tolist()
        if high > low:
            features += table.take_positions(rows[low:high] - first, LOCAL_FEATURES).to_pylist()
        first = end
    return features


def _compared(part: _ComparedFeatures) -> Mask:
    features = [None if each is None else np.frombuffer(each, LOCAL_FEATURE) for each in part.features]
    found = np.ones(part.ends.shape[1], dtype=bool)
    for pair, (place, other) in enumerate(part.ends.T.tolist()):
        a, b = features[place], features[other]
        if a is not None and b is not None and min(len(a), len(b)) >= _FEW:
            found[pair] = agreeing_features(a, b) >= AGREEING
    return found
