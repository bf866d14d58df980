"""Boxes are fitted to their images, or have a problem with a reason."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from framedex.annotations.boxes import finite_number, fit_box, label_of
from framedex.annotations.labels import parse_labels
from framedex.annotations.problems import AnnotationProblem, Problems, without_problems
from tests.boxes import box

Edges = tuple[float, float, float, float]


@pytest.mark.parametrize("edges", [(0, 0, 10, 8), (0.25, 0, 0.5, 8), (9, 7, 1, 1), (9.5, 0, 0.5, 1e-9)])
def test_fit__within_is_untouched(edges: Edges) -> None:
    """A box within its image is returned as the same object."""
    given = box("a.jpg", *edges)
    assert fit_box(given, 10, 8) == (given, None)
    assert fit_box(given, 10, 8).box is given


@pytest.mark.parametrize(
    ("edges", "fitted"),
    [
        ((-1, 0, 3, 3), (0, 0, 2, 3)),
        ((0, -0.5, 3, 3), (0, 0, 3, 2.5)),
        ((8, 0, 3, 3), (8, 0, 2, 3)),
        ((0, 6, 3, 3), (0, 6, 3, 2)),
        ((-1, -1, 12, 10), (0, 0, 10, 8)),
    ],
)
def test_fit__a_pixel_over_the_edge_is_cut_off(edges: Edges, fitted: Edges) -> None:
    """Overhang from rounding is cut off without a problem, and the opposite side stays."""
    found, problem = fit_box(box("a.jpg", *edges), 10, 8)
    assert found == box("a.jpg", *fitted)
    assert problem is None


@pytest.mark.parametrize("edges", [(-1.5, 0, 3, 3), (0, 0, 11.1, 3), (0, -2, 30, 30)])
def test_fit__more_than_a_pixel_is_told(edges: Edges) -> None:
    """A box that reaches far over the edge is cut off, with a problem."""
    found, problem = fit_box(box("a.jpg", *edges), 10, 8)
    assert found is not None
    assert problem is not None
    assert "cut off" in problem.reason
    assert "10×8" in problem.reason


@pytest.mark.parametrize(
    ("edges", "reason"),
    [
        ((math.nan, 0, 1, 1), "finite"),
        ((0, 0, math.inf, 1), "finite"),
        ((5, 5, -2, 3), "swapped"),
        ((5, 5, 2, -3), "swapped"),
        ((5, 5, 0, 3), "empty"),
        ((5, 5, 3, 0), "empty"),
        ((10, 0, 1, 1), "outside"),
        ((-3, 0, 3, 1), "outside"),
        ((0, 8.5, 1, 1), "outside"),
    ],
)
def test_fit__what_cannot_be_used(edges: Edges, reason: str) -> None:
    """A box outside of its image has a reason, its location and its numbers."""
    found, problem = fit_box(replace(box("a.jpg", *edges), location="x.csv: line 3"), 10, 8)
    assert found is None
    assert problem is not None
    assert reason in problem.reason
    assert str(problem).startswith("x.csv: line 3: x ")


def test_fit__names_the_image_of_a_box_without_a_place() -> None:
    """A box without a location is named by its image."""
    assert "a.jpg" in str(fit_box(box(width=0), 10, 8).problem)


_any = st.floats(-50, 50) | st.floats()


@given(_any, _any, _any, _any, st.integers(1, 40), st.integers(1, 40))
def test_fit__is_within_or_told(x: float, y: float, across: float, down: float, width: int, height: int) -> None:
    """For any numbers, a box lies within the image or has a problem; fitting it again changes nothing."""
    found, problem = fit_box(box("a.jpg", x, y, across, down), width, height)
    assert found is not None or problem is not None
    if found is not None:
        assert 0 <= found.x <= found.x + found.width <= width
        assert 0 <= found.y <= found.y + found.height <= height
        assert found.width > 0
        assert found.height > 0
        assert fit_box(found, width, height) == (found, None)


def test_problems__are_all_counted_and_some_kept() -> None:
    """A file with nothing but problems does not fill the memory."""
    problems = Problems()
    rows = [AnnotationProblem("x", str(place), "wrong") for place in range(1000)]
    assert list(without_problems([rows[0], box(), *rows[1:]], problems)) == [box()]
    assert problems.count == 1000
    assert problems.sample == rows[:20]


@pytest.mark.parametrize("value", [None, True, "", "x", "1,5", math.nan, math.inf, "inf", "1e999", 10**400, [1]])
def test_number__of_what_is_none(value: object) -> None:
    """A value that is not a finite number gives None."""
    assert finite_number(value) is None


def test_label__may_be_a_number() -> None:
    """A class may be named by a number; a value that is not a name gives an empty text."""
    assert [label_of(each) for each in (" a ", 7, True, None, 1.5, "\ud800")] == ["a", "7", "", "", "", "?"]


@pytest.mark.parametrize("text", ["a\0b", "\0", " cat\0 ", "\ud800\0"])
def test_label__with_null_characters(text: str) -> None:
    """A class name is stored as the same text in a table of labels is."""
    assert (label_of(text),) == parse_labels(text)
    assert "\0" not in label_of(text)
