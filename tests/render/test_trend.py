"""Plots of trends: bars and the line stand where they should, and many batches are added up."""

import re
from datetime import UTC, datetime, timedelta
from itertools import accumulate, pairwise
from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st

from framedex.render.trend import Point, join_points, trend_svg
from tests.laws import examples

SPACE = "{http://www.w3.org/2000/svg}"
COUNTS = st.lists(st.integers(0, 10**9), max_size=400)


def points_of(counts: list[int]) -> list[Point]:
    """Return points an hour apart."""
    start = datetime(2026, 1, 30, 22, tzinfo=UTC)
    totals = accumulate(counts)
    return [(start + timedelta(hours=at), *each) for at, each in enumerate(zip(counts, totals, strict=True))]


def numbers_of(path: str) -> list[tuple[float, float]]:
    """Return the points of a path."""
    return [(float(x), float(y)) for x, y in re.findall(r"[ML]([\d.]+) ([\d.]+)", path)]


@examples(60)
@given(COUNTS)
def test_trend__any_counts(counts: list[int]) -> None:
    """Whatever is drawn is XML; bars and line stay in the frame, side by side, and the line never falls."""
    tree = ElementTree.fromstring(trend_svg(points_of(counts), title="<t> & 'x'"))
    bars = [each for each in tree.iter(f"{SPACE}rect") if each.get("class") == "bar"]
    lines = [numbers_of(each.attrib["d"]) for each in tree.iter(f"{SPACE}path") if each.get("class") == "total"]
    assert len(bars) <= 120
    assert len(lines) == bool(counts)
    right = 72.0
    for bar in bars:
        x, y, width, height = (float(bar.attrib[name]) for name in ("x", "y", "width", "height"))
        assert right - 0.01 <= x <= x + width <= 562.01
        assert 57.9 <= y <= y + height <= 220.1
        right = x + width
    for line in lines:
        assert len(line) == len(bars)
        assert all(before[0] < after[0] and before[1] >= after[1] for before, after in pairwise(line))
        assert line[-1][1] == (58.0 if sum(counts) else 220.0)
    texts = [each for each in tree.iter(f"{SPACE}text") if each.get("text-anchor") == "middle"]
    places = [float(each.attrib["x"]) for each in texts]
    assert all(after - before > 60 for before, after in pairwise(places))


def test_trend__heights() -> None:
    """Bars are in proportion to the counts, the line to the running total; each bar has its numbers."""
    svg = trend_svg(points_of([2, 0, 4]), title="t")
    tree = ElementTree.fromstring(svg)
    bars = [each for each in tree.iter(f"{SPACE}rect") if each.get("class") == "bar"]
    assert [float(each.attrib["height"]) for each in bars] == [81.0, 0.0, 162.0]
    (line,) = (numbers_of(each.attrib["d"]) for each in tree.iter(f"{SPACE}path") if each.get("class") == "total")
    assert [y for _, y in line] == [166.0, 166.0, 58.0]
    assert "2026-01-31 00:00 UTC: 4 new, 6 in all" in svg


@given(COUNTS, st.integers(1, 50))
def test_join_points__keeps_totals(counts: list[int], most: int) -> None:
    """Joined points are as many as allowed at most; no count is lost, and the last total stays."""
    points = points_of(counts)
    found = join_points(points, most)
    assert len(found) <= most
    assert sum(count for _, count, _ in found) == sum(counts)
    assert [total for _, _, total in found] == list(accumulate(count for _, count, _ in found))
    assert found == points or len(points) > most
