"""Problems of labels and of boxes in the same files are counted once."""

import pytest

from framedex.annotations.problems import Problems, joined_problems, problem


def problems(*values: int) -> Problems:
    found = Problems()
    for each in values:
        found.add(problem("a.json", each, "is wrong", "wrong parts"))
    return found


@pytest.mark.parametrize(
    ("of_labels", "of_boxes", "count"),
    [
        ([], [1, 2], 2),
        ([1, 2], [], 2),
        ([1, 2], [3], 3),
        ([1, 2], [2, 3], 3),
        ([1, 2], [1, 2], 2),
        (range(50), range(50), 50),
        (range(50), range(60), 60),
        (range(50), range(100, 130), 80),
    ],
)
def test_joined_problems__counts_each_once(of_labels: list[int], of_boxes: list[int], count: int) -> None:
    """The number is that of different parts, also beyond those that are kept as examples."""
    found = joined_problems(problems(*of_labels), problems(*of_boxes))
    assert found == {"wrong parts": count}
    assert len(found.examples["wrong parts"]) == min(count, 20)
