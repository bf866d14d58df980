"""Commands that compare states of a dataset: snapshots and the present one."""

from typing import Annotated

import typer

from framedex.cli.options import JsonOption, NameArgument, WorkspaceOption, open_workspace
from framedex.cli.output import print_json, print_table, say

_BeforeArgument = Annotated[
    str, typer.Argument(help="The earlier state: the id or name of a snapshot, or `current` for the current snapshot.")
]
_AfterArgument = Annotated[str, typer.Argument(help="The later state; `head` is the present one.")]
_SHOWN = 20


def compare(
    name: NameArgument,
    before: _BeforeArgument = "current",
    after: _AfterArgument = "head",
    change: Annotated[str | None, typer.Option(help="Only images with this change, such as relabelled.")] = None,
    limit: Annotated[int, typer.Option(help="The number of images of each change; 0 shows all.", min=0)] = _SHOWN,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what differs between two states: images that were added, removed, replaced, relabelled and so on."""
    with open_workspace(workspace) as ws:
        found = ws.dataset(name).compare(before, after)
        rows = found.to_arrow(change, limit=limit or None).to_pylist()  # type: ignore[arg-type] # checked there
        if as_json:
            print_json({"counts": found.counts, "rows": rows})
            return
        shown = [
            (row["change"].replace("_", " "), row["image_filename"], _words(row["before"]), _words(row["after"]))
            for row in rows
        ]
        print_table(("change", "image", "before", "after"), shown)
        counts = ", ".join(f"{count:,} {each.replace('_', ' ')}" for each, count in found.counts.items() if count)
        say(counts or "nothing differs")


def snapshots(name: NameArgument, workspace: WorkspaceOption = None, as_json: JsonOption = False) -> None:
    """List the snapshots of a dataset and its present state, with their numbers of images and issues."""
    with open_workspace(workspace) as ws:
        points = ws.dataset(name).trends()
    if as_json:
        print_json(list(points))
        return
    rows = [
        (
            each.state,
            each.name,
            f"{each.created_at:%Y-%m-%d %H:%M}",
            f"{each.n_images:,}",
            f"{each.n_videos:,}",
            f"{sum(each.issues.values()):,}",
        )
        for each in points
    ]
    print_table(("state", "name", "created", "images", "videos", "issues"), rows)


def _words(values: list[str] | None) -> str:
    return "" if values is None else ", ".join(values)
