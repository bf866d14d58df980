"""Commands that compare states of a dataset, snapshots and the present one, or the media of two datasets."""

from pathlib import Path
from typing import Annotated

import typer

from framedex.cli.options import (
    JsonOption,
    LimitOption,
    NameArgument,
    VqlOption,
    WorkspaceOption,
    open_workspace,
    parse_vql,
)
from framedex.cli.output import print_json, print_table, say
from framedex.core.counts import counted

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


def overlap(
    name: NameArgument,
    other: Annotated[str, typer.Argument(help="Name or id of the other dataset; or the same one, with filters.")],
    similarity: Annotated[float, typer.Option(help="Minimum similarity, 0.96 to 1.")] = 0.96,
    exact: Annotated[bool, typer.Option("--exact", help="Only files with equal content.")] = False,
    vql: VqlOption = None,
    other_vql: Annotated[str | None, typer.Option(help="VQL filter of the other dataset, a JSON array.")] = None,
    report: Annotated[Path | None, typer.Option(help="Write the pairs with their images to this HTML file.")] = None,
    limit: LimitOption = None,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the images of a dataset that have copies in another one, for example test images among training images."""
    with open_workspace(workspace) as ws:
        views = [ws.dataset(each).where(parse_vql(text) or []) for each, text in ((name, vql), (other, other_vql))]
        found = views[0].overlap(views[1], similarity, exact=exact)
        rows = found.to_arrow().slice(0, limit or (None if as_json else _SHOWN)).to_pylist()
        if report is not None:
            found.report(report)
        if as_json:
            print_json({"count": found.count(), "other_count": found.other_count(), "pairs": len(found), "rows": rows})
            return
        shown = [
            (row["here_name"], row["there_name"], f"{row['similarity']:.4f}", row["copy"] or "", row["reason"])
            for row in rows
        ]
        print_table(("image", "image of the other", "similarity", "copy", "what was done to it"), shown)
        say(f"{counted(found.count(), 'images', 'have')} copies in the other dataset: {counted(len(found), 'pairs')}")


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
