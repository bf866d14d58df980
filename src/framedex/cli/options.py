"""What several commands are given."""

import json
import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

import framedex
from framedex.errors import InvalidInput, WorkspaceError

WorkspaceOption = Annotated[
    Path | None,
    typer.Option("--workspace", "-w", help="The workspace folder; FRAMEDEX_WORKSPACE or ~/framedex if not given."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
NameArgument = Annotated[str, typer.Argument(help="A dataset's name or id.")]
VqlOption = Annotated[str | None, typer.Option(help="A VQL filter: a JSON array.")]
TagArgument = Annotated[str, typer.Argument(metavar="TAG", help="A tag's name or id.")]
IdsOption = Annotated[
    list[str] | None, typer.Option("--ids", help="Ids of pictures, with commas between them or each with --ids.")
]
EntityOption = Annotated[str, typer.Option("--entity-type", help="IMAGES, OBJECTS or VIDEOS.")]
KindOption = Annotated[str, typer.Option("--entity-type", help="IMAGES or OBJECTS.")]
YesOption = Annotated[
    bool, typer.Option("--yes", "-y", help="Do not ask; without a terminal, where nobody can answer, it is needed.")
]
LimitOption = Annotated[int | None, typer.Option(min=1, help="At most so many; if not given, JSON has all.")]


def workspace_folder(workspace: Path | None) -> Path:
    """Return the workspace folder that is meant."""
    from framedex.settings import load_settings, user_path

    return user_path(workspace or load_settings().workspace)


def existing_folder(workspace: Path | None) -> Path:
    """Return the workspace folder, which must exist: a mistyped folder is not to be made into a workspace.

    Raises:
        WorkspaceError: there is no workspace at that folder.
    """
    from framedex.storage.layout import MARKER

    folder = workspace_folder(workspace)
    if not os.path.lexists(folder / MARKER):
        raise WorkspaceError(f"there is no workspace at {folder}; `framedex create` makes one")
    return folder


def open_workspace(workspace: Path | None) -> "framedex.Workspace":
    """Open the workspace at :func:`existing_folder`."""
    return framedex.Workspace(existing_folder(workspace))


def confirm(question: str, *, yes: bool) -> None:
    """Ask whether something that cannot be undone is to be done, and go on only if so.

    Args:
        question: what is to be done.
        yes: whether that was answered on the command line.

    Raises:
        InvalidInput: there is no terminal on which somebody could answer.
        Abort: the answer is no.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise InvalidInput(f"{question} That cannot be undone, and there is no terminal to ask: give --yes to do it")
    typer.confirm(question, abort=True)


def parse_vql(vql: str | None) -> list[Any] | None:
    """Return a filter that was given as JSON; None if none was."""
    if vql is None:
        return None
    try:
        parsed = json.loads(vql)
    except json.JSONDecodeError as error:
        raise InvalidInput(f"--vql is no JSON: {error}") from None
    if not isinstance(parsed, list):
        raise InvalidInput(f"--vql must be a JSON array of filters, not {vql!r}")
    return parsed


def counted(entity_type: str) -> str:
    """Return what a column of counts is called."""
    return "objects" if entity_type == "OBJECTS" else "images"


def number(name: str, text: str | None) -> float:
    """Return a number that an option was given."""
    try:
        return float(text or "")
    except ValueError:
        raise InvalidInput(f"{name} must be a number, not {text!r}") from None
