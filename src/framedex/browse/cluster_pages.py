"""Pages of clusters: which clusters a page has, in what order, and which of their members are shown.

Two numbers for each media item that is explored are all that this needs, so it is done on arrays: a page of a million
media takes some ten milliseconds, whichever page it is.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from framedex.arrays import RowIds
from framedex.records import Condition
from framedex.search.ranking import Ranking
from framedex.storage.media import Media

_SPARSE = 4  # numbers up to so many times the members are counted in one array


@dataclass(frozen=True)
class ClusterPage:
    """Clusters, and the media in them that are explored.

    Attributes:
        level: the column with the clusters' numbers, or other names.
        numbers: of the clusters, in the order of the page.
        sizes: how many members of each are explored.
        row_ids: uint64, shape (M,): of these members, cluster by cluster; within one the best or the first come first.
        scores: float32, shape (M,): of a ranking; None without one.
    """

    level: str
    numbers: Sequence[int | str]
    sizes: list[int]
    row_ids: RowIds
    scores: npt.NDArray[np.float32] | None

    def shown(self, most: int) -> tuple[list[list[int]], list[list[float]]]:
        """Return the row ids of the first members of each cluster, and their scores: 0.0 without a ranking."""
        ends = np.cumsum(self.sizes).tolist()
        spans = [slice(end - size, min(end, end - size + most)) for end, size in zip(ends, self.sizes, strict=True)]
        rows = [self.row_ids[span].tolist() for span in spans]
        if self.scores is None:
            return rows, [[0.0] * len(each) for each in rows]
        return rows, [self.scores[span].tolist() for span in spans]

    def owners(self) -> npt.NDArray[Any]:
        """Return the number of each member's cluster: shape (M,)."""
        return np.repeat(np.array(self.numbers), self.sizes)


def cluster_page(
    media: Media, condition: Condition, level: str, *, first: int, count: int, ranking: Ranking | None
) -> ClusterPage:
    """Return a page of the clusters of the media that meet a condition.

    Clusters come largest first, those of one size in the order of their first media; with a ranking, the cluster with
    the best member first.

    Args:
        media: what is explored.
        condition: which of it.
        level: the column with the clusters' numbers, or texts that name them; rows where it is null are in none.
        first: how many clusters come before the page.
        count: how many it has at most.
        ranking: of the media that meet the condition, all of them.
    """
    if ranking is None:
        row_ids, values = media.values(condition, level)
    else:
        row_ids, values = ranking.row_ids, media.values_at(ranking.row_ids, level)
    scores = None if ranking is None else ranking.score
    if values.null_count:
        known = pc.is_valid(values).to_numpy(zero_copy_only=False)
        row_ids, values = row_ids[known], values.drop_null()
        scores = None if scores is None else scores[known]
    if not len(values):
        return ClusterPage(level, [], [], row_ids, None)
    names, group = _dense(values)
    sizes = np.bincount(group)
    earliest = np.zeros(len(sizes), np.int64)
    earliest[group[::-1]] = np.arange(len(group) - 1, -1, -1)  # of several, the one that is put last stays
    present = np.flatnonzero(sizes)
    worth = earliest[present] if ranking is not None else earliest[present] - len(group) * sizes[present]
    chosen = present[_smallest(worth, first, count)]
    place = np.full(len(sizes), len(chosen), np.min_scalar_type(len(chosen)))
    place[chosen] = np.arange(len(chosen))
    at = place[group]
    members = np.flatnonzero(at < len(chosen))
    members = members[np.argsort(at[members], kind="stable")]
    scores = None if scores is None else scores[members]
    return ClusterPage(level, names[chosen].tolist(), sizes[chosen].tolist(), row_ids[members], scores)


def _dense(values: pa.Array) -> tuple[npt.NDArray[Any], npt.NDArray[np.integer]]:
    """Return (names, groups), so that ``names[groups]`` are the values, and groups are not much more than members."""
    if pa.types.is_string(values.type):
        encoded = values.dictionary_encode()
        return encoded.dictionary.to_numpy(zero_copy_only=False), encoded.indices.to_numpy()
    numbers = values.to_numpy()
    most = int(numbers.max())
    if most <= _SPARSE * len(numbers) + 2**16:
        return np.arange(most + 1), numbers
    names, groups = np.unique(numbers, return_inverse=True)
    return names.astype(np.int64), groups


def _smallest(values: npt.NDArray[np.int64], first: int, count: int) -> npt.NDArray[np.int64]:
    """Return the places of the smallest values, in their order, from some place of that order on."""
    stop = min(first + count, len(values))
    if first >= stop:
        return np.empty(0, np.int64)
    smallest = np.argpartition(values, stop - 1)[:stop]
    return smallest[np.argsort(values[smallest])][first:]
