"""Plots: what is in them stands where it should, and can be read."""

import re
from itertools import pairwise
from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st

from framedex.render.plot import Line, line_plot
from tests.laws import examples

SPACE = "{http://www.w3.org/2000/svg}"
SHARES = st.floats(0, 1) | st.sampled_from([0.0, 0.5, 0.999999, 1.0])
LINES = st.lists(
    st.builds(
        Line,
        st.text(max_size=20),
        st.lists(st.tuples(SHARES, st.floats(1e-3, 1e7), st.text(max_size=9)), max_size=5),
    ),
    max_size=8,
)


def drawn(svg: str) -> list[tuple[float, float]]:
    """Return where the points are."""
    root = ElementTree.fromstring(svg)
    groups = [each for each in root.iter(f"{SPACE}g") if each.find(f"{SPACE}title") is not None]
    found = [re.fullmatch(r"translate\((\S+) (\S+)\)", each.attrib["transform"]) for each in groups]
    return [(float(match[1]), float(match[2])) for match in found if match]


def plot(*lines: Line) -> str:
    """Return a plot of lines."""
    return line_plot(lines, title="t", x_label="x", y_label="y", mark="default")


@examples(60)
@given(LINES)
def test_line_plot__any_lines(lines: list[Line]) -> None:
    """Whatever is drawn is XML, with each point inside of the frame."""
    places = drawn(plot(*lines))
    assert len(places) == sum(len(line.points) for line in lines)
    for across, down in places:
        assert 65 <= across <= 481
        assert 33 <= down <= 349


def test_line_plot__order() -> None:
    """Better recall is further to the right, and faster further up; the last steps to 1 have room."""
    steps = [(0.5, 900.0), (0.9, 500.0), (0.99, 100.0), (0.999, 20.0), (1.0, 5.0)]
    places = drawn(plot(Line("a", [(share, value, "") for share, value in steps])))
    assert [across for across, _ in places] == sorted(across for across, _ in places)
    assert [down for _, down in places] == sorted(down for _, down in places)
    assert all(b[0] - a[0] > 25 for a, b in pairwise(places))


def test_line_plot__words() -> None:
    """Names, axes, ticks and what rings mean are written, and no markup comes of a name."""
    svg = plot(Line("<b>&'\x01", [(0.9, 10.0, "here"), (1.0, 1.0, "there")], frozenset({1})))
    written = [each.text for each in ElementTree.fromstring(svg).iter(f"{SPACE}text")]
    for words in ("t", "x", "y", "default", "<b>&' ", "0.9", "1", "10"):
        assert words in written
    assert svg.count("class='ring'") == 2
    assert "prefers-color-scheme:dark" in svg
    assert "http" not in svg.replace("http://www.w3.org/2000/svg", "")
