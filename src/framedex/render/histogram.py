"""Histograms as SVG text, in light and dark colours, with a line at a limit."""

import math
import sys
from collections.abc import Iterable, Sequence

from framedex.render.plot import svg_text

_WIDTH, _HEIGHT = 560, 260
_LEFT, _RIGHT, _TOP, _BOTTOM = 58, 18, 46, 46
_STYLE = (
    ".fdh{font:12px system-ui,sans-serif}.fdh text{fill:#333}.fdh .head{font-weight:600;font-size:13px}"
    ".fdh .bg{fill:#fff}.fdh .grid{stroke:#e3e3e3}.fdh .bar{fill:#3f72af}"
    ".fdh .limit{stroke:#c2410c;stroke-width:2;stroke-dasharray:5 3}.fdh text.limit-text{fill:#c2410c}"
    "@media (prefers-color-scheme:dark){.fdh text{fill:#ddd}.fdh .bg{fill:#1d1f23}.fdh .grid{stroke:#3a3d43}"
    ".fdh .bar{fill:#6ca0dc}.fdh .limit{stroke:#ff9b66}.fdh text.limit-text{fill:#ff9b66}}"
)


def histogram_svg(
    edges: Sequence[float], counts: Sequence[int], *, title: str, x_label: str, limit: tuple[float, str] | None = None
) -> str:
    """Return a histogram as SVG text.

    Args:
        edges: the edges of the bins, ascending.
        counts: the number of values in each bin.
        title: the title.
        x_label: the label of the x axis.
        limit: the position of a vertical line, and its text; left out if it is outside of the edges.
    """
    low, high, most = edges[0], edges[-1], max(1, *counts)
    parts = [*_grid(most), *_x_ticks(low, high), *_bars(edges, counts, most)]
    if limit is not None and low <= limit[0] <= high:
        parts += _limit_line(_across(limit[0], low, high), limit[1])
    middle = (_LEFT + _WIDTH - _RIGHT) / 2
    return (
        f"<svg class='fdh' xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {_WIDTH} {_HEIGHT}' width='{_WIDTH}' "
        f"role='img' style='max-width:100%;height:auto'><title>{svg_text(title)}</title><style>{_STYLE}</style>"
        f"<rect class='bg' width='{_WIDTH}' height='{_HEIGHT}' rx='6'/>"
        f"<text class='head' x='{_LEFT}' y='20'>{svg_text(title)}</text>{''.join(parts)}"
        f"<text x='{middle:.0f}' y='{_HEIGHT - 10}' text-anchor='middle'>{svg_text(x_label)}</text></svg>"
    )


def _across(value: float, low: float, high: float) -> float:
    return _LEFT + (_WIDTH - _LEFT - _RIGHT) * (value - low) / (high - low)


def _down(count: float, most: int) -> float:
    return _HEIGHT - _BOTTOM - (_HEIGHT - _TOP - _BOTTOM) * count / most


def round_steps(low: float, high: float, count: int) -> list[float]:
    """Return round numbers from *low* to *high*, at equal steps of 1, 2 or 5 times a power of ten, about *count*."""
    raw = (high - low) / count
    if raw < sys.float_info.min:
        return [low]
    power = 10.0 ** math.floor(math.log10(raw))
    steps = [power * each for each in (1, 2, 5, 10)]
    number = next(number for number, step in enumerate(steps) if step >= raw * 0.999)
    # A step longer than the range may have no multiple within it; the next shorter one has.
    step = steps[number] if steps[number] <= high - low else steps[number - 1]
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [step * number for number in range(first, last + 1)]


def _grid(most: int) -> Iterable[str]:
    for count in round_steps(0, most, 4):
        if count == int(count):
            at = _down(count, most)
            yield f"<path class='grid' d='M{_LEFT} {at:.1f}H{_WIDTH - _RIGHT}'/>"
            yield f"<text x='{_LEFT - 7}' y='{at + 4:.1f}' text-anchor='end'>{count:,.0f}</text>"


def _x_ticks(low: float, high: float) -> Iterable[str]:
    for value in round_steps(low, high, 6):
        at = _across(min(max(value, low), high), low, high)
        label = f"{value:.4g}" if abs(value) > 1e-9 * (high - low) else "0"
        yield f"<text x='{at:.1f}' y='{_HEIGHT - _BOTTOM + 16}' text-anchor='middle'>{label}</text>"


def _bars(edges: Sequence[float], counts: Sequence[int], most: int) -> Iterable[str]:
    for start, end, count in zip(edges, edges[1:], counts, strict=False):
        left, right, top = _across(start, edges[0], edges[-1]), _across(end, edges[0], edges[-1]), _down(count, most)
        gap = min(1.0, (right - left) / 4)
        yield (
            f"<rect class='bar' x='{left:.2f}' y='{top:.2f}' width='{right - left - gap:.2f}' "
            f"height='{_HEIGHT - _BOTTOM - top:.2f}'><title>{start:.4g} to {end:.4g}: {count:,}</title></rect>"
        )


def _limit_line(at: float, words: str) -> list[str]:
    side, shift = ("start", 5) if at < _WIDTH / 2 else ("end", -5)
    return [
        f"<path class='limit' d='M{at:.1f} {_TOP - 12}V{_HEIGHT - _BOTTOM}'/>",
        f"<text class='limit-text' x='{at + shift:.1f}' y='{_TOP - 4}' text-anchor='{side}'>{svg_text(words)}</text>",
    ]
