"""Line plots as SVG text: without scripts, with light and dark colours, and a distinct marker for each line."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

_WIDTH, _HEIGHT = 660, 400
_LEFT, _RIGHT, _TOP, _BOTTOM = 66, 180, 34, 52
_TICKS = (0.0, 0.5, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.998, 0.999, 0.9995, 0.9999)
_MIN_GAP = 34.0  # between labels
_LIGHT = ("#0b63b0", "#c2410c", "#0f7b4f", "#8b3fa8", "#8a6d00", "#5b6472")
_DARK = ("#6cb2ff", "#ff9b66", "#58d3a0", "#d69bf0", "#e6c84c", "#aab4c2")
_SHAPES = (
    "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z",
    "M-3.6 -3.6h7.2v7.2h-7.2z",
    "M0 -4.8L4.6 3.4H-4.6z",
    "M0 -5L5 0L0 5L-5 0z",
    "M0 4.8L4.6 -3.4H-4.6z",
    "M-4 -4L4 4M-4 4L4 -4",
)


@dataclass(frozen=True)
class Line:
    """A line of a plot.

    Attributes:
        name: the name in the legend.
        points: the points (x, y, tooltip); x is a fraction, 0 to 1; y is above 0.
        marked: the indices of points with a ring.
    """

    name: str
    points: Sequence[tuple[float, float, str]]
    marked: frozenset[int] = frozenset()


class _Shares:
    """A scale of fractions, logarithmic in the distance to 1: 0.9 to 0.99 is as long as 0.99 to 0.999."""

    def __init__(self, values: Sequence[float]) -> None:
        missing = [1 - value for value in values if value < 1]
        self._floor = min(0.01, min(missing, default=0.01)) / 3
        lowest = min([*values, 0.9])
        self._ticks = [tick for tick in _TICKS if self._floor * 1.5 < 1 - tick]
        start = max((tick for tick in self._ticks if tick <= lowest), default=0.0)
        self._ticks = [tick for tick in self._ticks if tick >= start]
        self._low, self._high = self._raw(start), self._raw(1.0)

    def _raw(self, value: float) -> float:
        return -math.log10(max(1 - value, self._floor))

    def at(self, value: float) -> float:
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * (self._raw(value) - self._low) / (self._high - self._low)

    def ticks(self) -> list[float]:
        """Return the values of ticks whose labels do not overlap, in descending order."""
        ticks = [1.0]
        for tick in reversed(self._ticks):
            if self.at(ticks[-1]) - self.at(tick) >= _MIN_GAP:
                ticks.append(tick)
        return ticks


class _Logarithms:
    """A logarithmic scale."""

    def __init__(self, values: Sequence[float]) -> None:
        low, high = math.log10(min(values, default=1)), math.log10(max(values, default=10))
        spare = max(0.08 * (high - low), 0.15)
        self._low, self._high = low - spare, high + spare

    def at(self, value: float) -> float:
        share = (math.log10(value) - self._low) / (self._high - self._low)
        return _HEIGHT - _BOTTOM - (_HEIGHT - _TOP - _BOTTOM) * share

    def ticks(self) -> list[float]:
        decades = range(math.floor(self._low), math.ceil(self._high) + 1)
        steps = (1, 2, 5) if self._high - self._low < 2.5 else (1,)
        values = [step * 10.0**decade for decade in decades for step in steps]
        return [each for each in values if self._low <= math.log10(each) <= self._high]


def line_plot(lines: Sequence[Line], *, title: str, x_label: str, y_label: str, mark: str = "") -> str:
    """Return a line plot as SVG text.

    Args:
        lines: the lines; colours and markers repeat after six.
        title: the title.
        x_label: the label of the x axis, whose scale widens towards 1.
        y_label: the label of the y axis, whose scale is logarithmic.
        mark: the legend of rings around points; empty for none.
    """
    points = [point for line in lines for point in line.points]
    x, y = _Shares([point[0] for point in points]), _Logarithms([point[1] for point in points])
    body = [
        *_x_axis(x, x_label),
        *_y_axis(y, y_label),
        *(part for number, line in enumerate(lines) for part in _drawn(line, number, x, y)),
        *_legend(lines, mark),
    ]
    return (
        f"<svg class='fdp' xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {_WIDTH} {_HEIGHT}' width='{_WIDTH}' "
        f"role='img' style='max-width:100%;height:auto'><title>{svg_text(title)}</title><style>{_style()}</style>"
        f"<rect class='bg' width='{_WIDTH}' height='{_HEIGHT}' rx='6'/>"
        f"<text class='head' x='{_LEFT}' y='21'>{svg_text(title)}</text>{''.join(body)}</svg>"
    )


def _style() -> str:
    light = "".join(f".fdp .c{number}{{color:{colour}}}" for number, colour in enumerate(_LIGHT))
    dark = "".join(f".fdp .c{number}{{color:{colour}}}" for number, colour in enumerate(_DARK))
    return (
        ".fdp{font:12px system-ui,sans-serif}.fdp text{fill:#333}.fdp .head{font-weight:600;font-size:13px}"
        ".fdp .bg{fill:#fff}.fdp .grid{stroke:#e3e3e3}.fdp .line{fill:none;stroke:currentColor;stroke-width:1.8}"
        ".fdp .dot{fill:currentColor;stroke:currentColor}"
        f".fdp .ring{{fill:none;stroke:currentColor;stroke-width:1.6}}{light}"
        "@media (prefers-color-scheme:dark){.fdp text{fill:#ddd}.fdp .bg{fill:#1d1f23}.fdp .grid{stroke:#3a3d43}"
        f"{dark}}}"
    )


def _x_axis(scale: _Shares, label: str) -> Iterable[str]:
    bottom = _HEIGHT - _BOTTOM
    for tick in scale.ticks():
        at = scale.at(tick)
        yield f"<path class='grid' d='M{at:.1f} {_TOP}V{bottom}'/>"
        yield f"<text x='{at:.1f}' y='{bottom + 17}' text-anchor='middle'>{tick:g}</text>"
    middle = (_LEFT + _WIDTH - _RIGHT) / 2
    yield f"<text x='{middle:.0f}' y='{_HEIGHT - 13}' text-anchor='middle'>{svg_text(label)}</text>"


def _y_axis(scale: _Logarithms, label: str) -> Iterable[str]:
    for tick in scale.ticks():
        at = scale.at(tick)
        yield f"<path class='grid' d='M{_LEFT} {at:.1f}H{_WIDTH - _RIGHT}'/>"
        yield f"<text x='{_LEFT - 7}' y='{at + 4:.1f}' text-anchor='end'>{_number(tick)}</text>"
    middle = (_TOP + _HEIGHT - _BOTTOM) / 2
    yield f"<text transform='translate(15 {middle:.0f}) rotate(-90)' text-anchor='middle'>{svg_text(label)}</text>"


def _drawn(line: Line, number: int, x: _Shares, y: _Logarithms) -> Iterable[str]:
    positions = [(x.at(share), y.at(value)) for share, value, _ in line.points]
    path = "L".join(f"{across:.1f} {down:.1f}" for across, down in positions)
    yield f"<g class='c{number % len(_LIGHT)}'>"
    if len(positions) > 1:
        yield f"<path class='line' d='M{path}'/>"
    for index, ((across, down), (_, _, tooltip)) in enumerate(zip(positions, line.points, strict=True)):
        ring = "<circle class='ring' r='8'/>" if index in line.marked else ""
        yield (
            f"<g transform='translate({across:.1f} {down:.1f})'><title>{svg_text(tooltip)}</title>"
            f"<path class='dot' d='{_SHAPES[number % len(_SHAPES)]}'/>{ring}</g>"
        )
    yield "</g>"


def _legend(lines: Sequence[Line], mark: str) -> Iterable[str]:
    across, down = _WIDTH - _RIGHT + 22, _TOP + 10
    for number, line in enumerate(lines):
        yield (
            f"<g class='c{number % len(_LIGHT)}' transform='translate({across} {down + 20 * number})'>"
            f"<path class='dot' d='{_SHAPES[number % len(_SHAPES)]}'/>"
            f"<text x='12' y='4'>{svg_text(line.name)}</text></g>"
        )
    if mark:
        yield (
            f"<g class='c5' transform='translate({across} {down + 20 * len(lines)})'>"
            f"<circle class='ring' r='7'/><text x='12' y='4'>{svg_text(mark)}</text></g>"
        )


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1 else f"{value:g}"


def svg_text(value: str) -> str:
    """Return a text for SVG: escaped, without control characters."""
    shown = "".join(each if each >= " " else " " for each in value)
    return escape(shown.encode("utf-8", "backslashreplace").decode())
