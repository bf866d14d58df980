"""The pairs that a budget of processor time can verify."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from framedex.analysis.copies.units import Candidates, Rows, row_parts
from framedex.core.arrays import Mask

_BLOCK = 4096
_MIRRORED = 4  # the first pose that mirrors


@dataclass(frozen=True)
class Costs:
    """Milliseconds of processor time of the verification.

    Attributes:
        keypoints: of an image.
        comparison: of the keypoints of two images.
        registration: of two images that are alike as they are, without keypoints.
    """

    keypoints: float
    comparison: float
    registration: float


def affordable(
    candidates: Candidates,
    *,
    budget_ms: float,
    costs: Costs,
    near: Mask,
    free: Mask,
    added: int = 0,
    check: Callable[[], None] = lambda: None,
) -> Rows:
    """Return the pairs to verify, best first, within a budget.

    Args:
        candidates: the pairs.
        budget_ms: milliseconds of processor time.
        costs: of one pair; images that may be mirrored are compared as they are, too.
        near: bool, shape (P,): pairs that are alike as they are, which come first.
        free: bool, shape (P,): those among them that are chosen without a budget, before all others.
        added: the first image whose keypoints count; those of earlier images are mostly known.
        check: called between blocks; raises to stop.
    """
    order = np.lexsort((candidates.b, candidates.a, -candidates.priority, ~near, ~free))
    left = budget_ms
    seen = np.arange(1 + int(candidates.b.max(initial=0))) < added
    chosen: list[Rows] = [np.empty(0, np.int64)]
    for part in row_parts(order, _BLOCK):
        check()
        comparisons = np.where(candidates.pose[part] >= _MIRRORED, 2, 1)
        columns = (part, candidates.a[part], candidates.b[part], comparisons, near[part], free[part])
        of_part: list[int] = []
        for pair, a, b, compared, is_near, is_free in zip(*(each.tolist() for each in columns), strict=True):
            if is_near:
                left -= 0 if is_free else costs.registration
            else:
                left -= costs.comparison * compared + costs.keypoints * (2 - int(seen[a]) - int(seen[b]))
                seen[a] = seen[b] = True
            if left < 0 and not (is_near and is_free):
                break
            of_part.append(pair)
        chosen.append(np.array(of_part, np.int64))
        if left < 0:
            break
    return np.concatenate(chosen)
