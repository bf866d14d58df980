"""The HTML page of a clean-up plan: removed images beside the images kept in their place."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from framedex.core.counts import counted
from framedex.render import html

_MEMBERS = 8
_DUPLICATES, _NEAR = "duplicates", "near"
Jpegs = Callable[[Sequence[str]], list[bytes | None]]


def plan_parts(
    rows: pa.Table,
    counts: Mapping[str, int],
    jpegs: Jpegs,
    *,
    groups: int,
    media: int,
    progress: Callable[[str, float], None] | None = None,
) -> Iterator[str]:
    """Yield the parts of a page about a plan.

    Args:
        rows: the rows of the plan.
        counts: the number of removed media by reason.
        jpegs: returns the JPEGs of media by their ids; None for images that cannot be decoded.
        groups: the maximum number of duplicate groups, the largest.
        media: the maximum number of media of each issue, the worst.
        progress: called with the current section and the fraction of it that is done.
    """
    yield html.bars(counts.items())
    yield from _groups(rows, jpegs, groups, progress or (lambda _stage, _share: None))
    removed = rows.filter(pc.equal(rows["action"], "remove"))
    for issue in counts:
        if issue not in (_DUPLICATES, _NEAR):
            yield from _issue(removed.filter(pc.equal(removed["issue_type"], issue)), issue, jpegs, media)


def _groups(rows: pa.Table, jpegs: Jpegs, max_groups: int, progress: Callable[[str, float], None]) -> Iterator[str]:
    repeated = rows.filter(pc.is_valid(rows["kept_media_id"]))
    if not len(repeated):
        return
    yield html.heading("Duplicates")
    numbered = repeated.select(["group_id"]).append_column("place", pa.array(range(len(repeated))))
    sizes = numbered.group_by("group_id").aggregate([("place", "count"), ("place", "min")])
    order = [("place_count", "descending"), ("place_min", "ascending")]  # PyArrow gives groups in any order
    largest = pc.sort_indices(sizes, sort_keys=order)[:max_groups]
    for number, group_id in enumerate(sizes["group_id"].take(largest)):
        progress(_DUPLICATES, number / len(largest))
        yield _card(repeated.filter(pc.equal(repeated["group_id"], group_id)), jpegs)
    if (rest := len(sizes) - len(largest)) > 0:
        yield html.note(f"and {counted(rest, 'more groups')}")


def _card(group: pa.Table, jpegs: Jpegs) -> str:
    """Return the card of a group: first the kept image, then the removed ones."""
    shown = group.take(pc.sort_indices(group, sort_keys=[("action", "ascending")])[:_MEMBERS])
    rest = len(group) - len(shown)
    return html.card(_figures(shown, jpegs), html.note(f"and {rest:,} more to remove") if rest else "")


def _issue(removed: pa.Table, issue: str, jpegs: Jpegs, max_media: int) -> Iterator[str]:
    worst = removed.take(pc.sort_indices(removed, sort_keys=[("confidence", "descending")])[:max_media])
    yield html.heading(f"{issue}: {len(removed):,}")
    yield _figures(worst, jpegs)
    if (rest := len(removed) - len(worst)) > 0:
        yield html.note(f"and {rest:,} more")


def _figures(rows: pa.Table, jpegs: Jpegs) -> str:
    images = zip(rows.to_pylist(), jpegs(rows["media_id"].to_pylist()), strict=True)
    return html.row(html.figure(jpeg, row["file_name"], _mark(row) + _words(row)) for row, jpeg in images)


def _words(row: dict[str, Any]) -> str:
    return row["reason"] if row["warning"] is None else f"{row['reason']} ⚠ {row['warning']}"


def _mark(row: dict[str, Any]) -> str:
    return "★ " if row["action"] == "keep" else ""
