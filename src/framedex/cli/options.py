"""Arguments and options that several commands share."""

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Annotated, Any

import typer

import framedex
from framedex.errors import Error, InvalidInput, WorkspaceError

WorkspaceOption = Annotated[
    Path | None,
    typer.Option("--workspace", "-w", help="Workspace folder. Default: FRAMEDEX_WORKSPACE, else ~/framedex."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def _dataset_names(incomplete: str) -> list[str]:
    """Return the names of datasets for the completion of a shell; none where they cannot be read."""
    from framedex.storage.listing import list_workspace

    try:
        records = list_workspace(existing_folder(None), os.environ.get("FRAMEDEX_NAMESPACE", ""))
    except (Error, OSError):
        return []
    return [each.display_name for each in records if each.display_name.startswith(incomplete)]


NameArgument = Annotated[str, typer.Argument(help="Name or id of a dataset.", autocompletion=_dataset_names)]
VqlOption = Annotated[str | None, typer.Option(help="VQL filter, a JSON array.")]
TagArgument = Annotated[str, typer.Argument(metavar="TAG", help="Name or id of a tag.")]
IdsOption = Annotated[list[str] | None, typer.Option("--ids", help="Ids of images, separated by commas. Repeatable.")]
EntityOption = Annotated[str, typer.Option("--entity-type", help="IMAGES, OBJECTS or VIDEOS.")]
KindOption = Annotated[str, typer.Option("--entity-type", help="IMAGES or OBJECTS.")]
YesOption = Annotated[
    bool, typer.Option("--yes", "-y", help="Do not ask for confirmation. Required without a terminal.")
]
LimitOption = Annotated[
    int | None, typer.Option(min=1, help="Maximum number of rows, for issues of each type. JSON has no default limit.")
]


NAMESPACE: ContextVar[str] = ContextVar("namespace", default="")
"""The namespace of the option before the command."""


def workspace_folder(workspace: Path | None) -> Path:
    """Return the workspace folder of the option, the environment or the default."""
    from framedex.settings import load_settings, user_path

    return user_path(workspace or load_settings().workspace)


def existing_folder(workspace: Path | None) -> Path:
    """Return the workspace folder, which must exist, so that a mistyped name creates no workspace.

    Raises:
        WorkspaceError: there is no workspace at that folder.
    """
    from framedex.storage.layout import MARKER

    folder = workspace_folder(workspace)
    if not os.path.lexists(folder / MARKER):
        raise WorkspaceError(f"no workspace at {folder}; `framedex create` creates one")
    return folder


@contextmanager
def open_workspace(workspace: Path | None, *, create: bool = False) -> Iterator["framedex.Workspace"]:
    """Yield the open workspace, in the namespace of the command line.

    Args:
        workspace: the folder of the option.
        create: whether a workspace may be created; else it must exist, as in :func:`existing_folder`.
    """
    folder = workspace_folder(workspace) if create else existing_folder(workspace)
    with framedex.Workspace(folder) as opened:
        yield opened.in_namespace(NAMESPACE.get())


def confirm(question: str, *, yes: bool, is_final: bool = True) -> None:
    """Ask for confirmation of a step.

    Args:
        question: names the step.
        yes: whether --yes was given; then nothing is asked.
        is_final: whether the step cannot be undone.

    Raises:
        InvalidInput: there is no terminal to ask on.
        Abort: the answer is no.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        why = "This cannot be undone, and there" if is_final else "There"
        raise InvalidInput(f"{question} {why} is no terminal to ask on: give --yes to confirm")
    typer.confirm(question, abort=True)


def parse_vql(vql: str | None) -> list[Any] | None:
    """Return the filter of a JSON text; None without one."""
    if vql is None:
        return None
    try:
        parsed = json.loads(vql)
    except json.JSONDecodeError as error:
        raise InvalidInput(f"--vql is not valid JSON: {error}") from None
    if not isinstance(parsed, list):
        raise InvalidInput(f"--vql must be a JSON array of filters, not {vql!r}")
    return parsed


def count_header(entity_type: str) -> str:
    """Return the header of a column of counts."""
    return "objects" if entity_type == "OBJECTS" else "images"


def number(name: str, text: str | None) -> float:
    """Return the number in the text of an option."""
    try:
        return float(text or "")
    except ValueError:
        raise InvalidInput(f"{name} must be a number, not {text!r}") from None
