"""Non-maximum suppression: the best box of each object."""

import numpy as np
import numpy.typing as npt

from framedex.enrichers.detector import Floats


def non_maximum_suppression(
    boxes: Floats, scores: Floats, classes: npt.NDArray[np.int64], *, max_iou: float, max_count: int
) -> list[int]:
    """Return the positions of the remaining boxes, the best score first.

    The algorithm is greedy: the box with the best score remains, boxes of its class that overlap it by more than
    *max_iou* are removed, and so on (Neubeck and Van Gool, "Efficient Non-Maximum Suppression", ICPR 2006). Ties go to
    the first box.

    Args:
        boxes: float32, shape (N, 4): left, top, right, bottom.
        scores: float32, shape (N,).
        classes: int64, shape (N,); boxes of two classes do not compete.
        max_iou: the maximum intersection over union of two boxes of a class, in [0, 1].
        max_count: the maximum number of boxes.
    """
    waiting = np.argsort(-scores, kind="stable")
    selection: list[int] = []
    while len(waiting) and len(selection) < max_count:
        best, waiting = int(waiting[0]), waiting[1:]
        selection.append(best)
        rival = (classes[waiting] == classes[best]) & (iou(boxes[best], boxes[waiting]) > max_iou)
        waiting = waiting[~rival]
    return selection


def iou(box: Floats, others: Floats) -> npt.NDArray[np.float64]:
    """Return the intersection over union of a box with each other box: float64, shape (N,); 0 for empty boxes.

    Args:
        box: shape (4,): left, top, right, bottom.
        others: shape (N, 4), in the same order.
    """
    one, many = box.astype(np.float64), others.astype(np.float64)
    sides = np.minimum(one[2:], many[:, 2:]) - np.maximum(one[:2], many[:, :2])
    both = np.maximum(sides, 0).prod(axis=1)
    areas = np.maximum(many[:, 2:] - many[:, :2], 0).prod(axis=1) + np.maximum(one[2:] - one[:2], 0).prod() - both
    return np.asarray(np.divide(both, areas, out=np.zeros(len(many)), where=areas > 0))
