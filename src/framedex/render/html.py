"""Fragments of self-contained HTML: no scripts, no external links, images as data URIs."""

import base64
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape

STYLE = """
.fdx{color-scheme:light dark;font:13px/1.45 system-ui,sans-serif;color:light-dark(#1c1c1c,#e6e6e6);
background:light-dark(#fff,#1b1c1e);padding:8px}
[data-jp-theme-light=true] .fdx{color-scheme:light}
[data-jp-theme-light=false] .fdx,.vscode-dark .fdx,.vscode-high-contrast .fdx{color-scheme:dark}
.fdx h1{font-size:22px;margin:8px 0}.fdx h2{font-size:17px;margin:22px 0 6px}.fdx h3{font-size:14px;margin:14px 0 4px}
.fdx p{margin:4px 0}.fdx .dim{color:light-dark(#5f5f5f,#a8a8a8)}.fdx a{color:light-dark(#1f5fa8,#8ab8f0)}
.fdx nav ul{columns:auto 17em;margin:4px 0;padding-left:18px}.fdx summary{cursor:pointer}
.fdx table{border-collapse:collapse;margin:6px 0;color:inherit;font:inherit}
.fdx th,.fdx td{padding:3px 10px;text-align:left;background:transparent;color:inherit;
border-bottom:1px solid light-dark(#e4e4e4,#3a3c40)}
.fdx td.n,.fdx th.n{text-align:right;font-variant-numeric:tabular-nums}
.fdx td img{width:64px;height:48px;object-fit:contain;display:block;margin:0}
.fdx .row{display:flex;flex-wrap:wrap;gap:8px;margin:4px 0 10px}
.fdx figure{margin:0;width:132px}.fdx figure.large{width:264px}
.fdx figure img,.fdx figure svg,.fdx .gone{width:100%;height:100px;object-fit:contain;
background:light-dark(#f1f1f1,#2a2c2f);border-radius:4px;display:block}.fdx figure.large svg{height:198px}
.fdx .gone{display:flex;align-items:center;justify-content:center;color:light-dark(#5f5f5f,#a8a8a8);font-size:11px}
.fdx svg.boxes rect{fill:none;stroke:#ff5a36;stroke-width:2;vector-effect:non-scaling-stroke}
.fdx figcaption{font-size:11px;overflow-wrap:anywhere;line-height:1.3;margin-top:2px}
.fdx .card{border:1px solid light-dark(#e4e4e4,#3a3c40);border-radius:6px;padding:6px 10px;margin:8px 0}
.fdx span.bar{display:inline-block;height:9px;background:light-dark(#3f72af,#6ea3e0);border-radius:2px;
vertical-align:middle}
"""
"""The colours are those of the browser's theme, or of the notebook's where it says which one it has."""


def block(*parts: str) -> str:
    """Return parts as one block with a style sheet, for a notebook."""
    return f"<style>{STYLE}</style><div class='fdx'>{''.join(parts)}</div>"


def page(title: str, *parts: str) -> str:
    """Return a complete document."""
    return (
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>"
        f"<meta name='viewport' content='width=device-width'><title>{escape_html(title)}</title>"
        f"<style>{STYLE}</style></head><body class='fdx'><main>{''.join(parts)}</main></body></html>\n"
    )


def escape_html(value: object) -> str:
    """Return a value as escaped HTML text; lone surrogates are shown as escape sequences."""
    return escape(str(value).encode("utf-8", "backslashreplace").decode())


def heading(value: object, level: int = 2, *, anchor: str | None = None) -> str:
    """Return a heading; with an *anchor*, links of :func:`contents` lead to it."""
    place = "" if anchor is None else f" id='{escape_html(anchor)}'"
    return f"<h{level}{place}>{escape_html(value)}</h{level}>"


def contents(links: Iterable[tuple[str, object]]) -> str:
    """Return the contents of a page: links to anchors of headings, each with its words."""
    items = "".join(f"<li><a href='#{escape_html(anchor)}'>{escape_html(words)}</a></li>" for anchor, words in links)
    return f"<nav aria-label='Contents'><ul>{items}</ul></nav>"


def folded(summary: object, *parts: str) -> str:
    """Return parts that are shown once their summary is opened."""
    return f"<details><summary>{escape_html(summary)}</summary>{''.join(parts)}</details>"


class Markup(str):
    """HTML that is a cell of a table as it is."""

    __slots__ = ()


def image_cell(jpeg: bytes | None) -> Markup:
    """Return an image for a cell of a table."""
    return Markup("" if jpeg is None else f"<img alt='' src='{_data_uri(jpeg)}'>")


def _data_uri(jpeg: bytes) -> str:
    return f"data:image/jpeg;base64,{base64.b64encode(jpeg).decode()}"


def note(value: object) -> str:
    """Return a paragraph in grey."""
    return f"<p class='dim'>{escape_html(value)}</p>"


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table; numbers are aligned to the right."""
    body = "".join("<tr>" + "".join(_cell(value) for value in row) + "</tr>" for row in rows)
    return "<table><tr>" + "".join(f"<th>{escape_html(name)}</th>" for name in header) + f"</tr>{body}</table>"


def _cell(value: object) -> str:
    if isinstance(value, int | float):
        return f"<td class='n'>{value:,.3g}</td>" if isinstance(value, float) else f"<td class='n'>{value:,}</td>"
    return f"<td>{value if isinstance(value, Markup) else escape_html('' if value is None else value)}</td>"


def bars(counts: Iterable[tuple[str, int]], *, shown: Callable[[int], str] = "{:,}".format) -> str:
    """Return a table of counts with a bar for each; *shown* formats a count."""
    counts = list(counts)
    largest = max((count for _, count in counts), default=1) or 1
    rows = (_bar(name, shown(count), max(1, round(160 * count / largest)) if count else 0) for name, count in counts)
    return f"<table>{''.join(rows)}</table>"


def _bar(name: str, count: str, width: int) -> str:
    bar = f"<span class='bar' style='width:{width}px'></span>"
    return f"<tr><td>{escape_html(name)}</td><td class='n'>{escape_html(count)}</td><td>{bar}</td></tr>"


def figure(jpeg: bytes | None, *captions: object) -> str:
    """Return an image with lines of text below it; a grey field if *jpeg* is None."""
    image = "<div class='gone'>cannot be shown</div>" if jpeg is None else f"<img alt='' src='{_data_uri(jpeg)}'>"
    return f"<figure>{image}{_figcaption(captions)}</figure>"


def _figcaption(captions: Iterable[object]) -> str:
    lines = "<br>".join(escape_html(line) for line in captions if line not in (None, ""))
    return f"<figcaption>{lines}</figcaption>"


@dataclass(frozen=True)
class Rectangle:
    """A rectangle on an image, in the image's pixels, with what it is of."""

    x: float
    y: float
    width: float
    height: float
    words: str


def figure_with_boxes(
    jpeg: bytes | None, width: int, height: int, boxes: Iterable[Rectangle], *captions: object
) -> str:
    """Return an image with rectangles on it, each with its words, and lines of text below it.

    Args:
        jpeg: the image at any size; None draws the rectangles alone.
        width: of the image in the pixels of the boxes.
        height: likewise.
        boxes: the rectangles.
        captions: the lines.
    """
    image = "" if jpeg is None else f"<image width='{width}' height='{height}' href='{_data_uri(jpeg)}'/>"
    rects = "".join(
        f"<rect x='{box.x:.1f}' y='{box.y:.1f}' width='{box.width:.1f}' height='{box.height:.1f}'>"
        f"<title>{escape_html(box.words)}</title></rect>"
        for box in boxes
    )
    drawn = f"<svg class='boxes' viewBox='0 0 {width} {height}' role='img' aria-hidden='true'>{image}{rects}</svg>"
    return f"<figure class='large'>{drawn}{_figcaption(captions)}</figure>"


def row(figures: Iterable[str]) -> str:
    """Return figures side by side."""
    return f"<div class='row'>{''.join(figures)}</div>"


def card(*parts: str) -> str:
    """Return parts in a bordered box."""
    return f"<div class='card'>{''.join(parts)}</div>"
