"""Commands that edit what is known of pictures."""

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
    open_workspace,
    parse_vql,
)
from framedex.cli.output import print_json, print_table, say
from framedex.errors import InvalidInput

if TYPE_CHECKING:
    from framedex.records import Tag


def not_duplicates(
    name: NameArgument,
    media_id: Annotated[list[str], typer.Argument(help="Ids of two or more pictures, as JSON output has them.")],
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Decide that no two of some pictures are duplicates of each other, from now on."""
    with open_workspace(workspace) as ws:
        decision = ws.dataset(name).not_duplicates(media_id)
        if as_json:
            print_json(decision)
            return
        say(f"{len(decision.media_ids):,} pictures are kept apart by decision {decision.decision_id}")


def tag(
    name: NameArgument,
    tag_name: TagArgument,
    vql: VqlOption = None,
    ids: IdsOption = None,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Put a tag on pictures; a new name makes a tag."""
    with open_workspace(workspace) as ws:
        dataset = ws.dataset(name)
        _show_tag(dataset.tag(_selected(dataset, vql, ids), tag_name), as_json=as_json)


def untag(
    name: NameArgument,
    tag_name: TagArgument,
    vql: VqlOption = None,
    ids: IdsOption = None,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Take a tag off pictures."""
    with open_workspace(workspace) as ws:
        dataset = ws.dataset(name)
        _show_tag(dataset.untag(_selected(dataset, vql, ids), tag_name), as_json=as_json)


def tags(name: NameArgument, workspace: WorkspaceOption = None, as_json: JsonOption = False) -> None:
    """List a dataset's tags, oldest first."""
    with open_workspace(workspace) as ws:
        records = ws.dataset(name).tags()
        if as_json:
            print_json(records)
            return
        rows = [(r.name, r.count, f"{r.created_at:%Y-%m-%d %H:%M}", r.created_by, r.tag_id) for r in records]
        print_table(("tag", "images", "created (UTC)", "by", "id"), rows)


def _show_tag(record: "Tag", *, as_json: bool) -> None:
    if as_json:
        print_json(record)
    else:
        say(f"{record.name}: {record.count:,} pictures have it")


def _selected(dataset: "framedex.Dataset", vql: str | None, ids: list[str] | None) -> "framedex.View | list[str]":
    """Return what an edit is about: nobody is to tag a whole dataset by leaving the filter out."""
    if (vql is None) == (not ids):
        raise InvalidInput("say which pictures: either --vql, or --ids; --vql '[]' means all")
    return dataset.where(parse_vql(vql) or []) if not ids else [each for part in ids for each in part.split(",")]
