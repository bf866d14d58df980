"""Non-maximum suppression: of boxes around the same object the surest one stays."""

import numpy as np
import numpy.typing as npt

from framedex.enrichers.detector import Floats


def non_maximum_suppression(
    boxes: Floats, scores: Floats, classes: npt.NDArray[np.int64], *, max_iou: float, max_count: int
) -> list[int]:
    """Return the positions of the boxes that stay, the surest first.

    Greedy: the surest box stays, those of its class that overlap it by more than *max_iou* go, and so on with the rest
    (Neubeck and Van Gool, "Efficient Non-Maximum Suppression", ICPR 2006). Of equal scores the first is the surer.

    Args:
        boxes: float32, shape (N, 4): left, top, right, bottom.
        scores: float32, shape (N,).
        classes: int64, shape (N,); boxes of two classes do not compete.
        max_iou: intersection over union, in [0, 1], that two boxes of a class may have.
        max_count: how many may stay.
    """
    waiting = np.argsort(-scores, kind="stable")
    kept: list[int] = []
    while len(waiting) and len(kept) < max_count:
        best, waiting = int(waiting[0]), waiting[1:]
        kept.append(best)
        rival = (classes[waiting] == classes[best]) & (iou(boxes[best], boxes[waiting]) > max_iou)
        waiting = waiting[~rival]
    return kept


def iou(box: Floats, others: Floats) -> npt.NDArray[np.float64]:
    """Return the intersection over union of a box and each of others: float64, shape (N,); 0 of empty boxes.

    Args:
        box: shape (4,): left, top, right, bottom.
        others: shape (N, 4), likewise.
    """
    one, many = box.astype(np.float64), others.astype(np.float64)
    sides = np.minimum(one[2:], many[:, 2:]) - np.maximum(one[:2], many[:, :2])
    both = np.maximum(sides, 0).prod(axis=1)
    areas = np.maximum(many[:, 2:] - many[:, :2], 0).prod(axis=1) + np.maximum(one[2:] - one[:2], 0).prod() - both
    return np.asarray(np.divide(both, areas, out=np.zeros(len(many)), where=areas > 0))
