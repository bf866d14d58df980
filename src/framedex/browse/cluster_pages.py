"""Pages of clusters: the order of clusters, and the members to show.

The computation needs only two numbers for each media item and runs on arrays. A page of a million media takes some ten
milliseconds, independent of its number.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from framedex.core.arrays import RowIds
from framedex.search.ranking import Ranking
from framedex.storage.condition import Condition
from framedex.storage.media import Media

_SPARSE = 4  # numbers up to 4 times the members are counted in one array


@dataclass(frozen=True)
class ClusterPage:
    """A page of clusters with their members.

    Attributes:
        level: the column with the clusters' numbers or names.
        numbers: numbers or names of the clusters, in the order of the page.
        sizes: number of members of each cluster.
        row_ids: uint64, shape (M,): the members, cluster by cluster; within a cluster the best or the first row comes
            first.
        scores: float32, shape (M,): the scores of the ranking; None without a ranking.
        total: number of clusters on all pages.
    """

    level: str
    numbers: Sequence[int | str]
    sizes: list[int]
    row_ids: RowIds
    scores: npt.NDArray[np.float32] | None
    total: int

    def first_members(self, max_count: int) -> tuple[list[list[int]], list[list[float]]]:
        """Return the row ids of the first members of each cluster, and their scores: 0.0 without a ranking."""
        ends = np.cumsum(self.sizes).tolist()
        spans = [
            slice(end - size, min(end, end - size + max_count)) for end, size in zip(ends, self.sizes, strict=True)
        ]
        rows = [self.row_ids[span].tolist() for span in spans]
        if self.scores is None:
            return rows, [[0.0] * len(each) for each in rows]
        return rows, [self.scores[span].tolist() for span in spans]

    def members(self, place: int) -> RowIds:
        """Return the row ids of the members of the cluster at a place of the page."""
        start = sum(self.sizes[:place])
        return self.row_ids[start : start + self.sizes[place]]

    def owners(self) -> npt.NDArray[Any]:
        """Return the cluster number of each member: shape (M,)."""
        return np.repeat(np.array(self.numbers), self.sizes)


def cluster_page(
    media: Media, condition: Condition, level: str, *, first: int, count: int, ranking: Ranking | None
) -> ClusterPage:
    """Return a page of the clusters of the media that meet a condition.

    The largest cluster comes first; ties are in the order of their first media. With a ranking, the cluster with the
    best member comes first.

    Args:
        media: the media to explore.
        condition: the condition that media must meet.
        level: the column with the clusters' numbers or names; rows with null are in no cluster.
        first: number of clusters before the page.
        count: maximum number of clusters on the page.
        ranking: a ranking of all media that meet the condition, or None.
    """
    if ranking is None:
        row_ids, values = media.values(condition, level)
    else:
        row_ids, values = ranking.row_ids, media.values_at(ranking.row_ids, level)
    scores = None if ranking is None else ranking.score
    if values.null_count:
        in_cluster = pc.is_valid(values).to_numpy(zero_copy_only=False)
        row_ids, values = row_ids[in_cluster], values.drop_null()
        scores = None if scores is None else scores[in_cluster]
    if not len(values):
        return ClusterPage(level, [], [], row_ids, None, 0)
    names, group = _dense(values)
    sizes = np.bincount(group)
    earliest = np.zeros(len(sizes), np.int64)
    earliest[group[::-1]] = np.arange(len(group) - 1, -1, -1)  # the last assignment, the first row, wins
    present = np.flatnonzero(sizes)
    worth = earliest[present] if ranking is not None else earliest[present] - len(group) * sizes[present]
    selected = present[_smallest(worth, first, count)]
    rank_of = np.full(len(sizes), len(selected), np.min_scalar_type(len(selected)))
    rank_of[selected] = np.arange(len(selected))
    at = rank_of[group]
    members = np.flatnonzero(at < len(selected))
    members = members[np.argsort(at[members], kind="stable")]
    scores = None if scores is None else scores[members]
    numbers, counts = names[selected].tolist(), sizes[selected].tolist()
    return ClusterPage(level, numbers, counts, row_ids[members], scores, len(present))


def _dense(values: pa.Array) -> tuple[npt.NDArray[Any], npt.NDArray[np.integer]]:
    """Return (names, groups) with ``names[groups]`` equal to the values.

    The number of names is at most of the order of the number of values.
    """
    if pa.types.is_string(values.type):
        encoded = values.dictionary_encode()
        return encoded.dictionary.to_numpy(zero_copy_only=False), encoded.indices.to_numpy()
    numbers = values.to_numpy()
    largest = int(numbers.max())
    if largest <= _SPARSE * len(numbers) + 2**16:
        return np.arange(largest + 1), numbers
    names, groups = np.unique(numbers, return_inverse=True)
    return names.astype(np.int64), groups


def _smallest(values: npt.NDArray[np.int64], first: int, count: int) -> npt.NDArray[np.int64]:
    """Return the positions of the smallest values in sorted order, from rank *first* on."""
    stop = min(first + count, len(values))
    if first >= stop:
        return np.empty(0, np.int64)
    smallest = np.argpartition(values, stop - 1)[:stop]
    return smallest[np.argsort(values[smallest])][first:]
