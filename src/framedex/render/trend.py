"""Trends as SVG text and as lines of a terminal: a bar for each batch, and a line for the running total."""

from collections.abc import Iterable, Sequence
from datetime import datetime

from framedex.render.histogram import round_steps
from framedex.render.plot import svg_text

Point = tuple[datetime, int, int]
"""The time, the count and the running total of a batch."""
_WIDTH, _HEIGHT = 640, 260
_LEFT, _RIGHT, _TOP, _BOTTOM = 72, 78, 58, 40
_MOST_BARS = 120
_LABELS = 6
_STYLE = (
    ".fdt{font:12px system-ui,sans-serif}.fdt text{fill:#333}.fdt .head{font-weight:600;font-size:13px}"
    ".fdt .bg{fill:#fff}.fdt .grid{stroke:#e3e3e3}.fdt .bar{fill:#3f72af}"
    ".fdt .total{fill:none;stroke:#c2410c;stroke-width:2}.fdt .dot{fill:#c2410c}.fdt text.of-total{fill:#c2410c}"
    "@media (prefers-color-scheme:dark){.fdt text{fill:#ddd}.fdt .bg{fill:#1d1f23}.fdt .grid{stroke:#3a3d43}"
    ".fdt .bar{fill:#6ca0dc}.fdt .total{stroke:#ff9b66}.fdt .dot{fill:#ff9b66}.fdt text.of-total{fill:#ff9b66}}"
)


def join_points(points: Sequence[Point], most: int) -> list[Point]:
    """Return at most *most* points: those of neighbouring batches are added up, with the time of the last one."""
    size = -(-len(points) // most)
    groups = [points[start : start + size] for start in range(0, len(points), max(size, 1))]
    return [(group[-1][0], sum(count for _, count, _ in group), group[-1][2]) for group in groups]


def trend_svg(points: Sequence[Point], *, title: str) -> str:
    """Return a trend as SVG text.

    Args:
        points: the points, oldest first; more than 120 are added up in groups.
        title: the title.
    """
    bars = join_points(points, _MOST_BARS)
    parts = [] if bars else [f"<text x='{_LEFT}' y='{_HEIGHT / 2:.0f}'>no batch was added yet</text>"]
    if bars:
        parts = [*_legend(), *_axes(bars), *_bars(bars), *_total(bars), *_times(bars)]
    return (
        f"<svg class='fdt' xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {_WIDTH} {_HEIGHT}' width='{_WIDTH}' "
        f"role='img' style='max-width:100%;height:auto'><title>{svg_text(title)}</title><style>{_STYLE}</style>"
        f"<rect class='bg' width='{_WIDTH}' height='{_HEIGHT}' rx='6'/>"
        f"<text class='head' x='{_LEFT}' y='20'>{svg_text(title)}</text>{''.join(parts)}</svg>"
    )


def _legend() -> list[str]:
    return [
        f"<text x='{_LEFT}' y='42'>in the batch</text>",
        f"<text class='of-total' x='{_WIDTH - _RIGHT}' y='42' text-anchor='end'>in all batches</text>",
    ]


def _across(place: int, count: int) -> float:
    """Return the middle of the bar at a place from 0."""
    return _LEFT + (_WIDTH - _LEFT - _RIGHT) * (place + 0.5) / count


def _down(value: float, most: int) -> float:
    return _HEIGHT - _BOTTOM - (_HEIGHT - _TOP - _BOTTOM) * value / most


def _scales(bars: Sequence[Point]) -> tuple[int, int]:
    """Return the largest values of both scales, at least 1."""
    return max(1, *(count for _, count, _ in bars)), max(1, *(total for _, _, total in bars))


def _axes(bars: Sequence[Point]) -> Iterable[str]:
    most, total = _scales(bars)
    for value in _whole(round_steps(0, most, 4)):
        at = _down(value, most)
        yield f"<path class='grid' d='M{_LEFT} {at:.1f}H{_WIDTH - _RIGHT}'/>"
        yield f"<text x='{_LEFT - 7}' y='{at + 4:.1f}' text-anchor='end'>{value:,}</text>"
    for value in _whole(round_steps(0, total, 4)):
        at = _down(value, total)
        yield f"<text class='of-total' x='{_WIDTH - _RIGHT + 7}' y='{at + 4:.1f}'>{value:,}</text>"


def _whole(values: Iterable[float]) -> list[int]:
    return [int(value) for value in values if value == int(value)]


def _bars(bars: Sequence[Point]) -> Iterable[str]:
    most, _ = _scales(bars)
    slot = (_WIDTH - _LEFT - _RIGHT) / len(bars)
    width = min(slot - min(1.0, slot / 4), 40.0)
    for place, (time, count, total) in enumerate(bars):
        left, top = _across(place, len(bars)) - width / 2, _down(count, most)
        yield (
            f"<rect class='bar' x='{left:.2f}' y='{top:.2f}' width='{width:.2f}' "
            f"height='{_HEIGHT - _BOTTOM - top:.2f}'>"
            f"<title>{time:%Y-%m-%d %H:%M} UTC: {count:,} new, {total:,} in all</title></rect>"
        )


def _total(bars: Sequence[Point]) -> Iterable[str]:
    _, most = _scales(bars)
    places = [(_across(place, len(bars)), _down(total, most)) for place, (_, _, total) in enumerate(bars)]
    yield f"<path class='total' d='M{'L'.join(f'{across:.1f} {down:.1f}' for across, down in places)}'/>"
    across, down = places[-1]
    yield f"<circle class='dot' cx='{across:.1f}' cy='{down:.1f}' r='3'/>"


def _times(bars: Sequence[Point]) -> Iterable[str]:
    step = -(-len(bars) // _LABELS)
    is_one_day = bars[0][0].date() == bars[-1][0].date()
    for place in range(0, len(bars), step):
        shown = f"{bars[place][0]:%H:%M}" if is_one_day else f"{bars[place][0]:%Y-%m-%d}"
        yield (
            f"<text x='{_across(place, len(bars)):.1f}' y='{_HEIGHT - _BOTTOM + 18}' "
            f"text-anchor='middle'>{shown}</text>"
        )
