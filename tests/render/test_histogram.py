"""Plots of histograms: bars and the limit stand where they should, and can be read in light and dark."""

import math
import re
from itertools import pairwise
from xml.etree import ElementTree

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from framedex.render.histogram import histogram_svg, round_steps
from tests.laws import examples

SPACE = "{http://www.w3.org/2000/svg}"
EDGES = st.lists(st.floats(-1e30, 1e30).map(lambda value: round(value, 6)), min_size=2, max_size=30, unique=True)


def bars(svg: str) -> list[tuple[float, float, float, float]]:
    """Return the left side, the top, the width and the height of all bars."""
    rectangles = [each for each in ElementTree.fromstring(svg).iter(f"{SPACE}rect") if each.get("class") == "bar"]
    x, y, width, height = ([float(each.attrib[name]) for each in rectangles] for name in ("x", "y", "width", "height"))
    return list(zip(x, y, width, height, strict=True))


@examples(60)
@given(EDGES.map(sorted), st.data())
def test_histogram__any_bins(edges: list[float], data: st.DataObject) -> None:
    """Whatever is drawn is XML, with each bar inside of the frame."""
    counts = data.draw(st.lists(st.integers(0, 10**9), min_size=len(edges) - 1, max_size=len(edges) - 1))
    drawn = bars(histogram_svg(edges, counts, title="<t>", x_label="x & y", limit=(edges[0], "limit")))
    assert len(drawn) == len(counts)
    for left, top, width, height in drawn:
        assert 57.9 <= left <= left + width <= 542.1
        assert 45.9 <= top <= top + height <= 214.1


def test_histogram__heights_and_limit() -> None:
    """Heights are in proportion to counts, and the line is between the bars of the values around the limit."""
    svg = histogram_svg([0, 1, 2, 4], [1, 2, 0], title="t", x_label="x", limit=(1.5, "limit 1.5"))
    (first, second, third) = bars(svg)
    assert second[3] == pytest.approx(2 * first[3])
    assert third[3] == 0
    assert third[2] > 1.9 * second[2]
    (line,) = re.findall(r"class='limit' d='M([\d.]+) ", svg)
    assert second[0] < float(line) < third[0]
    assert float(line) == pytest.approx((second[0] + third[0]) / 2, abs=0.1)
    assert "limit 1.5" in svg
    assert "prefers-color-scheme:dark" in svg


@pytest.mark.parametrize("edges", [[0, 5e-324], [-1e38, 1e38], [1e38, 1.0000001e38], [0.5, 0.5000000000000001]])
def test_histogram__of_extreme_edges(edges: list[float]) -> None:
    """Edges that are nearly equal, or far apart, make a plot."""
    assert len(bars(histogram_svg(edges, [1], title="t", x_label="x"))) == 1


def test_histogram__limit_outside() -> None:
    """A limit beyond the bins has no line."""
    assert "class='limit'" not in histogram_svg([0, 1], [3], title="t", x_label="x", limit=(1.5, "limit"))


@examples(60)
@given(st.floats(-1e6, 1e6), st.floats(1e-6, 1e6), st.integers(2, 8))
@example(1.0, 400401.0, 2)
@example(879609.9999999999, 1e-06, 5)
def test_round_steps__are_within(low: float, width: float, count: int) -> None:
    """The steps ascend, are within the range, and are about as many as requested."""
    high = low + width
    steps = round_steps(low, high, count)
    assert 1 <= len(steps) <= count + 2
    assert all(a < b for a, b in pairwise(steps))
    slack = width * 1e-6 + math.ulp(max(abs(low), abs(high)))  # a step may be rounded to the next number
    assert low - slack <= steps[0] <= steps[-1] <= high + slack
