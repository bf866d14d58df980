"""A clean-up plan with pictures: what goes beside what stays."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from framedex.render import html

_MEMBERS = 8
_DUPLICATES = "duplicates"
Jpeg = Callable[[str], bytes | None]


def plan_parts(
    rows: pa.Table,
    counts: Mapping[str, int],
    jpeg: Jpeg,
    *,
    groups: int,
    media: int,
    tell: Callable[[str, float], None] | None = None,
) -> Iterator[str]:
    """Yield the parts of a page about a plan.

    Args:
        rows: of the plan.
        counts: how many media go, by reason.
        jpeg: returns the picture of a media item, by its id.
        groups: at most so many groups of duplicates, the largest.
        media: at most so many media of each issue, the worst.
        tell: called with what is being shown and the share of it that is done.
    """
    yield html.bars(counts.items())
    yield from _groups(rows, jpeg, groups, tell or (lambda _stage, _share: None))
    gone = rows.filter(pc.equal(rows["action"], "remove"))
    for issue in counts:
        if issue != _DUPLICATES:
            yield from _issue(gone.filter(pc.equal(gone["issue_type"], issue)), issue, jpeg, media)


def _groups(rows: pa.Table, jpeg: Jpeg, most: int, tell: Callable[[str, float], None]) -> Iterator[str]:
    repeated = rows.filter(pc.is_valid(rows["kept_media_id"]))
    if not len(repeated):
        return
    yield html.heading("Duplicates")
    sizes = repeated.group_by("group_id", use_threads=False).aggregate([([], "count_all")])
    largest = pc.sort_indices(sizes, sort_keys=[("count_all", "descending")])[:most]
    for place, group_id in enumerate(sizes["group_id"].take(largest)):
        tell(_DUPLICATES, place / len(largest))
        yield _card(repeated.filter(pc.equal(repeated["group_id"], group_id)), jpeg)
    if (rest := len(sizes) - len(largest)) > 0:
        yield html.note(f"and {rest:,} more groups")


def _card(group: pa.Table, jpeg: Jpeg) -> str:
    """Return a card of a group: first what stays, then what goes."""
    shown = group.take(pc.sort_indices(group, sort_keys=[("action", "ascending")])[:_MEMBERS]).to_pylist()
    rest = len(group) - len(shown)
    figures = (_figure(row, jpeg, "★ " if row["action"] == "keep" else "") for row in shown)
    return html.card(html.row(figures), html.note(f"and {rest:,} more that go") if rest else "")


def _issue(gone: pa.Table, issue: str, jpeg: Jpeg, most: int) -> Iterator[str]:
    worst = gone.take(pc.sort_indices(gone, sort_keys=[("confidence", "descending")])[:most])
    yield html.heading(f"{issue}: {len(gone):,}")
    yield html.row(_figure(row, jpeg) for row in worst.to_pylist())
    if (rest := len(gone) - len(worst)) > 0:
        yield html.note(f"and {rest:,} more")


def _figure(row: dict[str, Any], jpeg: Jpeg, mark: str = "") -> str:
    return html.picture(jpeg(row["media_id"]), row["file_name"], mark + row["reason"])
