"""Commands that edit tags, decisions about duplicates and limits of issues."""

from typing import TYPE_CHECKING, Annotated

import typer

import framedex
from framedex.cli.options import (
    IdsOption,
    JsonOption,
    NameArgument,
    TagArgument,
    VqlOption,
    WorkspaceOption,
    number,
    open_workspace,
    parse_vql,
)
from framedex.cli.output import print_json, print_table, say, short_number
from framedex.core.counts import counted
from framedex.errors import InvalidInput

if TYPE_CHECKING:
    from framedex.records import JournalStep, Tag

StepArgument = Annotated[int | None, typer.Argument(help="The number of the step; `framedex journal` lists them.")]

_BASKET_COLUMNS = ("media_id", "image_filename")


def not_duplicates(
    name: NameArgument,
    media_id: Annotated[
        list[str], typer.Argument(help="Ids of two or more images; `--json` output of other commands shows them.")
    ],
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Record the decision that images are not duplicates of one another."""
    with open_workspace(workspace) as ws:
        decision = ws.dataset(name).not_duplicates(media_id)
        if as_json:
            print_json(decision)
            return
        say(
            f"{counted(len(decision.media_ids), 'images', 'are')} never duplicates of one another; "
            f"decision {decision.decision_id}"
        )


def tag(
    name: NameArgument,
    tag_name: TagArgument,
    vql: VqlOption = None,
    ids: IdsOption = None,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Add a tag to images; a tag with a new name is created."""
    with open_workspace(workspace) as ws:
        dataset = ws.dataset(name)
        _show_tag(dataset.tag(selected(dataset, vql, ids), tag_name), as_json=as_json)


def untag(
    name: NameArgument,
    tag_name: TagArgument,
    vql: VqlOption = None,
    ids: IdsOption = None,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Remove a tag from images."""
    with open_workspace(workspace) as ws:
        dataset = ws.dataset(name)
        _show_tag(dataset.untag(selected(dataset, vql, ids), tag_name), as_json=as_json)


def basket(
    name: NameArgument,
    action: Annotated[str, typer.Argument(metavar="[list|add|remove|clear]", help="Action.")] = "list",
    vql: VqlOption = None,
    ids: IdsOption = None,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the basket of a dataset, or change it: add or remove images that --vql or --ids selects, or clear it."""
    if action not in ("list", "add", "remove", "clear"):
        raise InvalidInput(f"the action must be list, add, remove or clear, not {action!r}")
    if action in ("list", "clear") and (vql is not None or ids):
        raise InvalidInput(f"{action} takes no --vql and no --ids")
    with open_workspace(workspace) as ws:
        dataset = ws.dataset(name)
        content = dataset.basket
        if action == "add":
            content.add(selected(dataset, vql, ids))
        elif action == "remove":
            content.remove(selected(dataset, vql, ids))
        elif action == "clear":
            content.clear()
        rows = list(content.rows(_BASKET_COLUMNS)) if as_json or action == "list" else []
        if as_json:
            print_json(rows)
        elif action == "list":
            print_table(("image", "id"), ((row["image_filename"], row["media_id"]) for row in rows))
        else:
            say(f"basket: {counted(content.count(), 'images')}")


def keep(
    name: NameArgument,
    vql: VqlOption = None,
    ids: IdsOption = None,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Choose images to keep, which no clean-up removes; without --vql and --ids, list them."""
    with open_workspace(workspace) as ws:
        dataset = ws.dataset(name)
        if vql is not None or ids:
            dataset.keep(selected(dataset, vql, ids))
        kept = dataset.kept_ids()
        if as_json:
            print_json(kept)
        else:
            say(f"kept: {counted(len(kept), 'images')}")
            for media_id in kept:
                say(media_id)


def unkeep(
    name: NameArgument,
    vql: VqlOption = None,
    ids: IdsOption = None,
    workspace: WorkspaceOption = None,
) -> None:
    """Let clean-ups remove images that were chosen to be kept, or that stayed as the last of their copies."""
    with open_workspace(workspace) as ws:
        dataset = ws.dataset(name)
        dataset.unkeep(selected(dataset, vql, ids))
        say(f"kept: {counted(len(dataset.kept_ids()), 'images')}")


def tags(name: NameArgument, workspace: WorkspaceOption = None, as_json: JsonOption = False) -> None:
    """List the tags of a dataset, oldest first."""
    with open_workspace(workspace) as ws:
        records = ws.dataset(name).tags()
        if as_json:
            print_json(records)
            return
        rows = [(r.name, r.count, f"{r.created_at:%Y-%m-%d %H:%M}", r.created_by, r.tag_id) for r in records]
        print_table(("tag", "images", "created (UTC)", "by", "id"), rows)


def limits(
    name: NameArgument,
    new: Annotated[
        list[str] | None, typer.Option("--set", metavar="ISSUE=LIMIT", help="Set a limit, as blur=0.4. Repeatable.")
    ] = None,
    reset: Annotated[
        list[str] | None, typer.Option(metavar="ISSUE", help="Return a limit to its default. Repeatable.")
    ] = None,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the limits of issues, after changing those that are given."""
    changes = _limit_changes(new or [], reset or [])
    with open_workspace(workspace) as ws:
        dataset = ws.dataset(name)
        if changes:
            dataset.set_limits(**changes)
        records = dataset.limits.values()
        if as_json:
            print_json(list(records))
            return
        rows = [
            (
                record.issue_type,
                "none" if record.limit is None else short_number(record.limit),
                "none" if record.default is None else short_number(record.default),
                "above" if record.above else "below",
                record.meaning,
            )
            for record in records
        ]
        print_table(("issue", "limit", "default", "issue if", "value"), rows)


def journal(
    name: NameArgument,
    limit: Annotated[int, typer.Option(help="The number of steps, the last ones; 0 shows all.", min=0)] = 20,
    step: Annotated[int | None, typer.Option(help="Show what this step changed, by media, instead.")] = None,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the steps by which people edited a dataset, the last first."""
    with open_workspace(workspace) as ws:
        if step is not None:
            values = ws.dataset(name).journal_values(step)
            if as_json:
                print_json(values.to_pylist())
                return
            print_table(values.column_names, [tuple(map(_shown, row.values())) for row in values.to_pylist()])
            return
        steps = ws.dataset(name).journal(limit or None)
    if as_json:
        print_json(list(steps))
        return
    rows = [
        (
            str(each.step),
            f"{each.created_at:%Y-%m-%d %H:%M}",
            each.created_by,
            each.operation,
            f"{each.n_media:,}",
            _state(each),
        )
        for each in steps
    ]
    print_table(("step", "when (UTC)", "who", "what", "images", ""), rows)


def _shown(value: object) -> str:
    return "" if value is None else ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def undo(
    name: NameArgument, step: StepArgument = None, workspace: WorkspaceOption = None, as_json: JsonOption = False
) -> None:
    """Undo a step of the journal, by default the last one that is not undone."""
    with open_workspace(workspace) as ws:
        _show_step(ws.dataset(name).undo(step), "undone", as_json=as_json)


def redo(
    name: NameArgument, step: StepArgument = None, workspace: WorkspaceOption = None, as_json: JsonOption = False
) -> None:
    """Do a step again that was undone, by default the one that was undone last."""
    with open_workspace(workspace) as ws:
        _show_step(ws.dataset(name).redo(step), "done again", as_json=as_json)


def _show_step(step: "JournalStep", verb: str, *, as_json: bool) -> None:
    if as_json:
        print_json(step)
    else:
        lost = f"; gone for good: the files of {counted(step.lost_files, 'images')}" if step.lost_files else ""
        done = f"{step.operation} of {counted(step.n_media, 'images')} by {step.created_by}"
        say(f"step {step.step} is {verb}: {done}{lost}")


def _state(step: "JournalStep") -> str:
    if step.undone_at is not None:
        return f"undone by {step.undone_by}"
    return "" if step.reason is None else f"cannot be undone: {step.reason}"


def _limit_changes(new: list[str], reset: list[str]) -> dict[str, float | None]:
    """Return the limits of options by issue type; None for the default."""
    changes: dict[str, float | None] = dict.fromkeys(reset)
    for text in new:
        issue_type, equals, limit = text.partition("=")
        if not equals:
            raise InvalidInput(f"--set must be ISSUE=LIMIT, as blur=0.4, not {text!r}")
        if issue_type in changes:
            raise InvalidInput(f"the limit of {issue_type!r} is given twice")
        changes[issue_type] = number(f"the limit of {issue_type!r}", limit)
    return changes


def _show_tag(record: "Tag", *, as_json: bool) -> None:
    if as_json:
        print_json(record)
    else:
        say(f"{record.name}: {counted(record.count, 'images')}")


def selected(dataset: "framedex.Dataset", vql: str | None, ids: list[str] | None) -> "framedex.View | list[str]":
    """Return the selection of an edit; a missing filter is refused, so that no whole dataset is edited by mistake."""
    if (vql is None) == (not ids):
        raise InvalidInput("select images by --vql or by --ids; --vql '[]' selects all")
    return dataset.where(parse_vql(vql) or []) if not ids else [each for part in ids for each in part.split(",")]
