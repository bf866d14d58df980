"""Commands for snapshots of a dataset, restores, clones and names."""

from typing import Annotated

import typer

from framedex.cli.options import JsonOption, NameArgument, WorkspaceOption, YesOption, confirm, open_workspace
from framedex.cli.output import print_json, say
from framedex.core.counts import counted
from framedex.errors import InvalidInput

_SnapshotArgument = Annotated[
    str, typer.Argument(metavar="SNAPSHOT", help="Id or name of a snapshot; `current` for the last one.")
]


def snapshot(
    name: NameArgument,
    snapshot_name: Annotated[str | None, typer.Argument(help="Name of the snapshot; one is made without it.")] = None,
    description: Annotated[str, typer.Option(help="What the snapshot is for.")] = "",
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Keep the present state of a dataset as a snapshot; no data is copied."""
    with open_workspace(workspace) as ws:
        record = ws.dataset(name).snapshot(snapshot_name, description=description)
    if as_json:
        print_json(record)
        return
    say(f"snapshot {record.snapshot_name} of {counted(record.n_images, 'images')}, id {record.snapshot_id}")


def delete_snapshot(
    name: NameArgument,
    snapshot: _SnapshotArgument,
    yes: YesOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Delete a snapshot; the dataset does not change."""
    with open_workspace(workspace) as ws:
        confirm(f"Delete the snapshot {snapshot!r} of {name!r}?", yes=yes)
        ws.dataset(name).delete_snapshot(snapshot)
    say(f"deleted the snapshot {snapshot}")


def restore(
    name: NameArgument,
    snapshot: Annotated[
        str | None,
        typer.Argument(help="Id or name of a snapshot, which must be given; `current` for the last one."),
    ] = None,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make a dataset what it was at a snapshot; `framedex undo` takes that back."""
    with open_workspace(workspace) as ws:
        dataset = ws.dataset(name)
        task = dataset.restore(snapshot)
        count = dataset.count()
        if as_json:
            print_json(task.record)
            return
    _, semicolon, lost = (task.record.status_message or "").partition(";")
    of_files = f"{semicolon}{lost}"  # of media whose files a clean-up deleted
    say(f"{name} has the {counted(count, 'images')} of the snapshot {snapshot}{of_files}; undo: framedex undo {name}")


def clone(
    name: NameArgument,
    new_name: Annotated[str | None, typer.Argument(help="Name of the new dataset; `NAME (cloned)` without it.")] = None,
    snapshot: Annotated[str, typer.Option(help="Id or name of a snapshot; `head` is the present state.")] = "head",
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Create a dataset that equals another one now, or at a snapshot; neither changes the other."""
    with open_workspace(workspace) as ws:
        made = ws.dataset(name).clone(snapshot)
        if new_name is not None:
            made.rename(new_name)
        record = made.info
    if as_json:
        print_json(record)
        return
    say(f"created {record.display_name} with {counted(record.n_images, 'images')}")


def rename(
    name: NameArgument,
    new_name: Annotated[str | None, typer.Argument(help="The new name.")] = None,
    description: Annotated[str | None, typer.Option(help="The new description, empty for none.")] = None,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Change the name or the description of a dataset."""
    if new_name is None and description is None:
        raise InvalidInput("give a new name, --description, or both")
    with open_workspace(workspace) as ws:
        dataset = ws.dataset(name)
        dataset.update(name=new_name, description=description)
        record = dataset.info
    if as_json:
        print_json(record)
        return
    say(f"{name} is now {record.display_name}" if new_name else f"described {record.display_name}")
