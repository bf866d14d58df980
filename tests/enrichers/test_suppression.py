"""Non-maximum suppression equals its definition in plain loops."""

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from framedex.enrichers.suppression import iou, non_maximum_suppression

Row = tuple[int, int, int, int, int, int]
_rows = st.lists(
    st.tuples(*[st.integers(0, 12)] * 2, *[st.integers(0, 8)] * 2, st.integers(0, 2), st.integers(0, 5)), max_size=14
)


def plain_iou(one: list[float], other: list[float]) -> float:
    across = min(one[2], other[2]) - max(one[0], other[0])
    down = min(one[3], other[3]) - max(one[1], other[1])
    if across <= 0 or down <= 0:
        return 0
    areas = [(each[2] - each[0]) * (each[3] - each[1]) for each in (one, other)]
    return across * down / (sum(areas) - across * down)


def arrays(rows: list[Row]) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32], npt.NDArray[np.int64]]:
    """Return boxes, scores and classes."""
    made = np.array(rows, np.float32).reshape(-1, 6)
    boxes = np.hstack([made[:, :2], made[:, :2] + made[:, 2:4]])
    return boxes, (made[:, 5] / 5).astype(np.float32), made[:, 4].astype(np.int64)


@given(_rows, st.sampled_from([0.0, 0.25, 0.45, 0.9, 1.0]), st.integers(1, 14))
def test_non_maximum_suppression__is_what_plain_loops_keep(rows: list[Row], max_iou: float, max_count: int) -> None:
    """A box remains unless a better remaining box of its class overlaps it by more; ties go to the first."""
    boxes, scores, classes = arrays(rows)
    kept: list[int] = []
    for place in sorted(range(len(rows)), key=lambda place: (-scores[place], place)):
        rivals = [other for other in kept if classes[other] == classes[place]]
        if all(plain_iou(boxes[place].tolist(), boxes[other].tolist()) <= max_iou for other in rivals):
            kept.append(place)
    assert non_maximum_suppression(boxes, scores, classes, max_iou=max_iou, max_count=max_count) == kept[:max_count]


@pytest.mark.parametrize(
    ("other", "share"),
    [
        ((0, 0, 4, 4), 1),
        ((0, 0, 2, 4), 0.5),
        ((2, 0, 6, 4), 1 / 3),
        ((4, 0, 8, 4), 0),
        ((9, 9, 10, 10), 0),
        ((1, 1, 1, 1), 0),
    ],
)
def test_iou__of_known_boxes(other: tuple[int, ...], share: float) -> None:
    """Intersection over union of known boxes; an empty box overlaps nothing, including itself."""
    box = np.array([0, 0, 4, 4], np.float32)
    assert iou(box, np.array([other], np.float32)).tolist() == [share]
    empty = np.zeros(4, np.float32)
    assert iou(empty, empty[None]).tolist() == [0]
