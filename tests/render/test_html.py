"""Fragments of HTML for reports and notebooks."""

import base64
import re
from datetime import UTC, datetime
from html.parser import HTMLParser
from typing import Any

import pytest

from framedex.render import html
from framedex.render.histogram import histogram_svg
from framedex.render.plot import Line, line_plot
from framedex.render.trend import trend_svg

JPEG = b"\xff\xd8 not quite an image"


class Outline(HTMLParser):
    """A parser that collects tags and fails on wrong nesting."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in ("img", "br", "meta"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


@pytest.mark.parametrize(
    "value", ["<script>alert(1)</script>", "a & b", "'single' \"double\"", "new\nline", "猫", 7, None]
)
def test_text__is_escaped(value: Any) -> None:
    """A value is shown as it is, and is never a tag."""
    outline = Outline(f"<p>{html.escape_html(value)}</p>")
    assert "".join(outline.texts) == str(value)
    assert [tag for tag, _ in outline.tags] == ["p"]
    assert "<" not in html.escape_html(value)


def test_text__without_unicode() -> None:
    """Bytes that are no text are shown escaped, so that the page can be encoded."""
    assert html.escape_html("a\udcffb") == "a\\udcffb"


def test_figure__contains_its_image() -> None:
    """A figure contains its image as data; its lines are escaped text; empty lines are left out."""
    outline = Outline(html.figure(JPEG, "<name>", None, "", 3))
    (image,) = [attributes for tag, attributes in outline.tags if tag == "img"]
    assert image["src"] == "data:image/jpeg;base64," + base64.b64encode(JPEG).decode()
    assert outline.texts == ["<name>", "3"]


def test_figure__without_an_image() -> None:
    """Without an image, a field with a text is shown."""
    outline = Outline(html.figure(None, "name"))
    assert "img" not in [tag for tag, _ in outline.tags]
    assert outline.texts == ["cannot be shown", "name"]


def test_table__cells() -> None:
    """Numbers are written for people and stand to the right; missing values are empty."""
    text = html.table(["a", "b", "c"], [[1234567, 0.123456, None], ["<x>", True, "y"]])
    outline = Outline(text)
    assert [tag for tag, _ in outline.tags].count("tr") == 3
    assert "1,234,567" in outline.texts
    assert "0.123" in outline.texts
    assert "<x>" in outline.texts


def test_bars__lengths() -> None:
    """The largest count has the longest bar; a count of none has no length."""
    widths = [int(width) for width in re.findall(r"width:(\d+)px'", html.bars([("a", 10), ("b", 5), ("c", 0)]))]
    assert widths == [160, 80, 0]
    assert Outline(html.bars([])).texts == []
    assert "width:0px" in html.bars([("a", 0)])


def test_page__is_a_document() -> None:
    """A page is one whole document with its style, and its title is text."""
    text = html.page("<title>", html.heading("Head", 1), html.card(html.row([html.figure(JPEG)])), html.note("n"))
    outline = Outline(text)
    assert text.startswith("<!doctype html>")
    assert outline.texts[0] == "<title>"
    assert {"style", "h1", "figure"} <= {tag for tag, _ in outline.tags}


def test_block__brings_its_style() -> None:
    """A block for a notebook carries the style that it needs, and none for what is outside of it."""
    text = html.block("x")
    rules = re.sub(r"\{[^}]*\}", "\n", html.STYLE).split()
    assert html.STYLE in text
    assert all(
        re.match(r"(\[data-jp-theme-light=\w+\] |\.vscode-[a-z-]+ )?\.fdx", selector.strip())
        for line in re.sub(r"\{[^}]*\}", "\n", html.STYLE).splitlines()
        for selector in line.split(",")
        if selector.strip()
    )
    assert rules


@pytest.mark.parametrize(
    "drawn",
    [
        histogram_svg([0.0, 0.5, 1.0], [3, 1], title="t", x_label="x", limit=(0.4, "limit")),
        line_plot([Line("a", [(0.9, 10.0, "tip")], frozenset({0}))], title="t", x_label="x", y_label="y", mark="m"),
        trend_svg([(datetime(2026, 1, 1, tzinfo=UTC), 1, 1), (datetime(2026, 1, 2, tzinfo=UTC), 2, 3)], title="t"),
    ],
)
def test_style__leaves_plots_alone(drawn: str) -> None:
    """No rule of the page is about a class of a plot: the height of a rule would be that of each bar."""
    classes = {name for names in re.findall(r" class='([^']+)'", drawn) for name in names.split()}
    assert classes
    assert not classes & set(re.findall(r"\.fdx \.(\w+)", html.STYLE))
