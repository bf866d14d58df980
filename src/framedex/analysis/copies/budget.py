"""The pairs that a budget of processor time can verify."""

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np

from framedex.analysis.components import connected_components
from framedex.analysis.copies.units import Candidates, Rows, row_parts

_BLOCK = 4096
_MIRRORED = 4  # the first pose that mirrors


def affordable(
    candidates: Candidates,
    *,
    budget_ms: float,
    cost: Sequence[float],
    near: Candidates,
    tries: int,
    added: int = 0,
    check: Callable[[], None] = lambda: None,
) -> Rows:
    """Return the pairs to verify, best first, within a budget.

    Near-duplicates need no verification. Two sets of them are compared a few times only, because one pair that is
    verified joins them.

    Args:
        candidates: the pairs.
        budget_ms: milliseconds of processor time.
        cost: milliseconds for the keypoints of an image, and for the comparison of two images; those that may be
            mirrored are compared as they are, too.
        near: pairs that are near-duplicates.
        tries: the maximum number of pairs between two sets of near-duplicates.
        added: the first image whose keypoints count; those of earlier images are mostly known.
        check: called between blocks; raises to stop.
    """
    if not len(candidates.a) or tries < 1:
        return np.empty(0, np.int64)
    count = 1 + int(max(candidates.b.max(), near.b.max(initial=0)))
    set_of = connected_components(count, near.a, near.b)[1]
    has_several = np.bincount(set_of) > 1  # two sets of one image each are compared once anyway
    order = np.lexsort((candidates.b, candidates.a, -candidates.priority))
    left = budget_ms
    seen = np.arange(count) < added
    chosen: list[Rows] = [np.empty(0, np.int64)]
    tried = Counter[tuple[int, int]]()
    for part in row_parts(order, _BLOCK):
        check()
        mine, others = candidates.a[part], candidates.b[part]
        comparisons = np.where(candidates.pose[part] >= _MIRRORED, 2, 1)
        sets = set_of[mine], set_of[others]
        columns = (part, mine, others, comparisons, *sets, has_several[sets[0]] | has_several[sets[1]])
        of_part: list[int] = []
        for pair, a, b, compared, one, other, is_counted in zip(*(each.tolist() for each in columns), strict=True):
            between = min(one, other), max(one, other)
            if one == other or tried[between] == tries:
                continue
            left -= cost[1] * compared + cost[0] * (2 - int(seen[a]) - int(seen[b]))
            if left < 0:
                break
            if is_counted:
                tried[between] += 1
            seen[a] = seen[b] = True
            of_part.append(pair)
        chosen.append(np.array(of_part, np.int64))
        if left < 0:
            break
    return np.concatenate(chosen)
