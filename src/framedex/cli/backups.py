"""Commands that back up a workspace, and restore a backup."""

from pathlib import Path
from typing import Annotated

import typer

import framedex
from framedex.cli.options import JsonOption, WorkspaceOption, open_workspace
from framedex.cli.output import print_json, say
from framedex.core.counts import counted
from framedex.render.sizes import bytes_text


def backup(
    folder: Annotated[Path, typer.Argument(help="Folder of the backup: missing, empty, or of one that did not end.")],
    with_users: Annotated[
        bool, typer.Option("--with-users", help="Also copy the database of the service: users, roles and grants.")
    ] = False,
    hard_links: Annotated[
        bool, typer.Option("--hard-links", help="Link files that never change, where the file system allows it.")
    ] = False,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Copy the workspace to a folder while it is in use, and say what the backup does not hold."""
    with open_workspace(workspace) as ws:
        result = ws.backup(folder, with_users=with_users, hard_links=hard_links)
    if as_json:
        print_json(result)
        return
    parts = f"{counted(len(result.datasets), 'datasets')}{' and the users' if result.with_users else ''}"
    say(f"backed up {parts} to {result.path}: {counted(result.files, 'files')}, {bytes_text(result.bytes)}")
    if result.linked_files:
        say(f"hard links: {counted(result.linked_files, 'files')}; copied: {bytes_text(result.copied_bytes)}")
    for line in result.not_included:
        say(f"not in the backup: {line}")
    if result.missing_uploads:
        missing = counted(result.missing_uploads, "uploaded files")
        say(f"missing in the workspace itself: {missing}; `framedex check` lists them")


def restore_backup(
    folder: Annotated[Path, typer.Argument(help="Folder of the backup.")],
    target: Annotated[Path, typer.Argument(help="Folder of the new workspace: missing or empty.")],
    as_json: JsonOption = False,
) -> int:
    """Make a workspace of a backup, verify each file, check it, and count its rows; exit with status 1 on a fault."""
    result = framedex.Workspace.restore_backup(folder, target)
    if as_json:
        print_json(result)
        return 0 if result.is_sound else 1
    for finding in result.findings:
        say(f"{finding.path}: {finding.fault} ({finding.remedy})")
    for each in result.datasets:
        numbers = [counted(each.n_media, "images"), counted(each.n_snapshots, "snapshots")]
        numbers += [counted(each.n_objects, "objects")] if each.n_objects else []
        say(f"{each.name}: {', '.join(numbers)}")
    say(
        f"restored {counted(len(result.datasets), 'datasets')}{' and the users' if result.with_users else ''} to "
        f"{result.path}: {counted(result.files, 'files')} verified, {bytes_text(result.bytes)}, "
        f"{counted(len(result.findings), 'findings')}"
    )
    return 0 if result.is_sound else 1
