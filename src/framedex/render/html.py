"""Fragments of self-contained HTML: no scripts, no external links, images as data URIs."""

import base64
from collections.abc import Callable, Iterable, Sequence
from html import escape

STYLE = """
.fdx{font:13px/1.45 system-ui,sans-serif;color:#1c1c1c;background:#fff;padding:8px}
.fdx h1{font-size:22px;margin:8px 0}.fdx h2{font-size:17px;margin:22px 0 6px}.fdx h3{font-size:14px;margin:14px 0 4px}
.fdx p{margin:4px 0}.fdx .dim{color:#6b6b6b}
.fdx table{border-collapse:collapse;margin:6px 0}.fdx th,.fdx td{padding:3px 10px;border-bottom:1px solid #e4e4e4;
text-align:left}
.fdx td.n,.fdx th.n{text-align:right;font-variant-numeric:tabular-nums}
.fdx .row{display:flex;flex-wrap:wrap;gap:8px;margin:4px 0 10px}
.fdx figure{margin:0;width:132px}.fdx figure img,.fdx .gone{width:132px;height:100px;object-fit:contain;
background:#f1f1f1;border-radius:4px;display:block}
.fdx .gone{display:flex;align-items:center;justify-content:center;color:#5f5f5f;font-size:11px}
.fdx figcaption{font-size:11px;overflow-wrap:anywhere;line-height:1.3;margin-top:2px}
.fdx .card{border:1px solid #e4e4e4;border-radius:6px;padding:6px 10px;margin:8px 0}
.fdx .bar{display:inline-block;height:9px;background:#3f72af;border-radius:2px;vertical-align:middle}
"""


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


def heading(value: object, level: int = 2) -> str:
    """Return a heading."""
    return f"<h{level}>{escape_html(value)}</h{level}>"


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
    return f"<td>{escape_html('' if value is None else value)}</td>"


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
    if jpeg is None:
        image = "<div class='gone'>cannot be shown</div>"
    else:
        image = f"<img alt='' src='data:image/jpeg;base64,{base64.b64encode(jpeg).decode()}'>"
    lines = "<br>".join(escape_html(line) for line in captions if line not in (None, ""))
    return f"<figure>{image}<figcaption>{lines}</figcaption></figure>"


def row(figures: Iterable[str]) -> str:
    """Return figures side by side."""
    return f"<div class='row'>{''.join(figures)}</div>"


def card(*parts: str) -> str:
    """Return parts in a bordered box."""
    return f"<div class='card'>{''.join(parts)}</div>"
