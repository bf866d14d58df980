"""Grouped bars as SVG text, so that a benchmark draws without a plotting library."""

from collections.abc import Mapping, Sequence
from html import escape

_LEFT, _TOP, _ROW, _GAP, _WIDTH, _LEGEND = 130, 46, 9, 10, 520, 22
_COLOURS = ("#0b63b0", "#c2410c", "#0f7b4f", "#8b3fa8", "#8a6d00", "#5b6472", "#b03060")


def bars(title: str, groups: Sequence[str], shares: Mapping[str, Sequence[float]]) -> str:
    """Return horizontal bars: a group for each name, in it a bar for each series.

    Args:
        title: above the bars.
        groups: their names, from top to bottom.
        shares: by series, a value in [0, 1] for each group.
    """
    step = _ROW * len(shares) + _GAP
    foot = _TOP + step * len(groups)
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_LEFT + _WIDTH + 60} {foot + 20 + _LEGEND}" '
        'font-family="sans-serif" font-size="11">',
        f'<rect width="100%" height="100%" fill="white"/><text x="10" y="22" font-size="14">{escape(title)}</text>',
    ]
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        x = _LEFT + share * _WIDTH
        out.append(f'<path d="M{x:g} {_TOP - 6}V{foot}" stroke="#ccc"/>')
        out.append(f'<text x="{x:g}" y="{_TOP - 9}" text-anchor="middle">{share:g}</text>')
    for place, group in enumerate(groups):
        y = _TOP + place * step
        out.append(f'<text x="{_LEFT - 8}" y="{y + step / 2}" text-anchor="end">{escape(group)}</text>')
        for number, (name, values) in enumerate(shares.items()):
            out.append(
                f'<rect x="{_LEFT}" y="{y + number * _ROW}" width="{max(values[place] * _WIDTH, 0.5):.1f}" '
                f'height="{_ROW - 1}" fill="{_COLOURS[number % len(_COLOURS)]}">'
                f"<title>{escape(f'{name}, {group}: {values[place]:.3f}')}</title></rect>"
            )
    for number, name in enumerate(shares):
        x = 10 + number * 95
        out.append(f'<rect x="{x}" y="{foot + 12}" width="10" height="10" fill="{_COLOURS[number % len(_COLOURS)]}"/>')
        out.append(f'<text x="{x + 14}" y="{foot + 21}">{escape(name)}</text>')
    return "\n".join([*out, "</svg>"]) + "\n"
