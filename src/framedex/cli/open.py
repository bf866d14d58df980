"""The command that shows a folder of images in the web app."""

import json
import os
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated
from urllib.parse import quote

import typer

import framedex
from framedex.cli.browser import show_in_browser
from framedex.cli.options import NAMESPACE, WorkspaceOption, workspace_folder
from framedex.cli.output import say
from framedex.cli.serve import load_server, needing_http, without_collection
from framedex.core.counts import counted
from framedex.core.naming import check_dataset_name
from framedex.errors import Conflict, InvalidInput, ReadOnly
from framedex.web import BUILD_HINT, AppPages

if TYPE_CHECKING:
    from framedex.api.folder import OpenedFolder

_STOPPED = "framedex open was stopped"
_PAUSE_S = 0.1
_BROWSER_S = 5.0  # the start of a browser, which the end of the process would prevent
_WHAT = "`framedex open` takes one folder"


def open_folder(
    folder: Annotated[list[str], typer.Argument(metavar="FOLDER", help="A folder of images and videos.")],
    name: Annotated[
        str | None, typer.Option(help="Name of the dataset. Default: that of the folder, for a new dataset.")
    ] = None,
    workspace: WorkspaceOption = None,
    host: Annotated[str, typer.Option(help="Address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 for a free one.")] = 8765,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Do not open the app in a browser.")] = False,
) -> None:
    """Show a folder of images in the web app, until Ctrl-C: a new folder while it is read.

    A folder without a dataset becomes one. To the dataset of a folder, files that are new or have changed are added.
    What Ctrl-C interrupts continues with the next call. If the workspace is served already, that server shows it.
    """
    home = workspace_folder(workspace)
    path = _images(folder, home)
    check_dataset_name(path.name if name is None else name)
    with _terminable():
        _prepare(home, host, port)
        shown = _Shown(path, name, no_browser=no_browser)
        while not shown.has_begun:
            _show(shown, home, host, port)


def _images(folders: Sequence[str], home: Path) -> Path:
    """Return the folder of the arguments, which has images and is apart from the workspace.

    Raises:
        InvalidInput: it is not a folder with images, or the workspace and it are within each other.
        Forbidden: it is in no allowed folder.
    """
    from framedex.media.files import allowed_folders
    from framedex.media.open_sources import check_not_empty, open_source
    from framedex.settings import load_settings, user_path

    if len(folders) != 1:
        raise InvalidInput(
            f"{_WHAT}, not {counted(len(folders), 'paths')}; name the folder that has the images, "
            "or `framedex create` a dataset from a .txt list of paths"
        )
    text = folders[0]
    if "://" in text:
        raise InvalidInput(f"{_WHAT} of this machine, not {text!r}; `framedex create NAME s3://…` reads a bucket")
    path = Path(os.path.abspath(user_path(text)))  # noqa: PTH100 - keeps links, unlike resolve
    if not os.path.lexists(path):
        if any(sign in text for sign in "*?["):
            raise InvalidInput(f"{_WHAT}, not the pattern {text!r}; name the folder that has the images")
        raise InvalidInput(f"{_WHAT}, and there is nothing at {str(path)!r}")
    if not path.is_dir():
        raise InvalidInput(f"{_WHAT}, and {str(path)!r} is a file; its folder is {str(path.parent)!r}")
    _check_apart(path, home)
    allowed = allowed_folders(load_settings())
    if allowed is not None:
        allowed.check(path)
    check_not_empty(open_source(path, allowed), path)
    return path


def _check_apart(path: Path, home: Path) -> None:
    """Check that neither the folder is within the workspace, nor the workspace is read with the folder."""
    real, real_home = Path(os.path.realpath(path)), Path(os.path.realpath(home))
    if real.is_relative_to(real_home):
        within = "is the workspace" if real == real_home else f"is within the workspace {home}"
        raise InvalidInput(f"{_WHAT} of images, and {str(path)!r} {within}; `framedex serve` opens a workspace")
    if real_home.is_relative_to(real):
        parts = real_home.relative_to(real).parts
        if not any(part.startswith(".") for part in parts):  # hidden folders are not read
            raise InvalidInput(
                f"{str(path)!r} holds the workspace {home}, whose files are no images of yours; "
                "name a folder beside it, or another workspace with --workspace"
            )


def _prepare(home: Path, host: str, port: int) -> None:
    """Create the workspace if there is none, once it is certain that it can be served.

    Raises:
        ReadOnly: it cannot be written.
        InvalidInput: it is new, and the address cannot be used.
    """
    from framedex.storage.layout import MARKER
    from framedex.storage.listing import is_unwritable

    with needing_http():
        from framedex.service.place import listening

    if is_unwritable(home):
        raise ReadOnly(f"the workspace {home} cannot be written; `framedex serve --read-only` shows its datasets")
    if not os.path.lexists(home / MARKER):
        with listening(host, port):
            pass
        framedex.Workspace(home).close()


def _show(shown: "_Shown", home: Path, host: str, port: int) -> None:
    """Show a folder by the server of its workspace, or serve the workspace until a signal ends it."""
    from framedex.service.place import running_server

    url = running_server(home)
    if url is not None:
        with framedex.Workspace(home) as workspace:
            shown.begin(workspace, url, is_served=True)
            shown.wait(workspace)
        return
    with without_collection() as started:
        try:
            load_server()(
                home, host=host, port=port, begin=shown.begin, announce=lambda _url: started(), log_level="WARNING"
            )
        except Conflict:
            if shown.has_begun:
                raise
            # Another server started meanwhile; the next attempt uses it.
        finally:
            shown.say_whether_interrupted(home)


class _Shown:
    """A folder that is shown.

    Args:
        path: of the folder.
        name: of its dataset, if the user names it.
        no_browser: whether no browser is to be opened.

    Attributes:
        has_begun: whether there was a server that shows it.
    """

    def __init__(self, path: Path, name: str | None, *, no_browser: bool) -> None:
        self._path, self._name, self._no_browser = path, name, no_browser
        self._opened: OpenedFolder | None = None
        self.has_begun = False

    def begin(self, workspace: "framedex.Workspace", url: str, *, is_served: bool = False) -> None:
        """Start what brings the dataset of the folder up to date, and show it at the address of a server.

        Args:
            workspace: the open workspace.
            url: of the server.
            is_served: whether another process serves the workspace.
        """
        from framedex.api.folder import count_files
        from framedex.api.folder import open_folder as open_dataset

        self.has_begun = True
        try:
            opened = open_dataset(workspace.in_namespace(NAMESPACE.get()), self._path, self._name)
        except Conflict as error:
            error.add_note("--name NAME")
            raise
        self._opened = opened
        address = f"{url}{_page(workspace, opened)}"
        browser = None if self._no_browser or not AppPages().exist else show_in_browser(address)
        end = "served by another process" if is_served else "Ctrl-C stops it"
        say(f"Framedex shows {opened.name} at {address} ({end})")
        if not AppPages().exist:
            say(f"warning: {BUILD_HINT}")
        say(_sentence(opened, count_files(workspace, opened.folder)))
        if is_served and browser is not None:
            browser.join(_BROWSER_S)

    def wait(self, workspace: "framedex.Workspace") -> None:
        """Wait until the task of this process has ended, while another one serves the workspace.

        Raises:
            Exit: a signal ended the wait; the task is interrupted.
            Error: the task failed.
        """
        opened = self._opened
        if opened is None or (task := opened.task) is None:
            return
        with _signals() as stopped:
            while not stopped.wait(_PAUSE_S):
                if task.status.final:
                    task.wait()
                    say(f"{opened.name} is up to date")
                    return
            workspace.close(_STOPPED)
        self.say_whether_interrupted(workspace.path)
        raise typer.Exit(130)

    def say_whether_interrupted(self, home: Path) -> None:
        """Say so if the end of this process interrupted the task."""
        from framedex.storage.task_rows import INTERRUPTED

        if self._opened is None or self._opened.task is None:
            return
        with framedex.Workspace(home, read_only=True) as workspace:
            record = workspace.task(self._opened.task.id).record
        if record.status_message == INTERRUPTED:
            say(f"{self._opened.name} is not complete yet; the next `framedex open` or `framedex serve` continues it")


def _page(workspace: "framedex.Workspace", opened: "OpenedFolder") -> str:
    """Return the path of the page that shows a folder: findings, or images where findings are still to come."""
    from framedex.records import TaskType

    same = [each for each in workspace.datasets(all_namespaces=True) if each.display_name == opened.name]
    is_clear = len(same) == 1 and opened.name not in (".", "..")
    page = f"/d/{quote(opened.name if is_clear else opened.dataset.id, safe='')}"
    if opened.below:
        vql = json.dumps([{"folder": {"op": "starts", "value": opened.below}}], separators=(",", ":"))
        return f"{page}/pictures?f={quote(vql, safe='')}"
    return f"{page}/pictures" if opened.task_type is TaskType.DATASET_CREATION else page


def _sentence(opened: "OpenedFolder", count: int) -> str:
    """Return what is done with a folder."""
    from framedex.api.folder import FolderStep
    from framedex.records import TaskType

    name, files = opened.name, f"{opened.folder}: {counted(count, 'files')}"
    is_creation = opened.task_type is TaskType.DATASET_CREATION
    match opened.step:
        case FolderStep.CREATE:
            return f"creating {name} from {files}"
        case FolderStep.ADD:
            return f"adding what is new to {name} from {files}"
        case FolderStep.CONTINUE if is_creation:
            return f"continuing to create {name} from {files}"
        case FolderStep.CONTINUE if opened.task_type is TaskType.MEDIA_ADDITION:
            return f"continuing to add what is new to {name} from {files}"
        case FolderStep.CONTINUE:
            return f"continuing an interrupted task of {name}; the next `framedex open` adds what is new"
        case FolderStep.WAIT if is_creation:
            return f"{name} is being created by another call"
    return f"{name} is being changed by another task; `framedex open` adds what is new once that has ended"


@contextmanager
def _terminable() -> Iterator[None]:
    """Let SIGTERM interrupt the block as Ctrl-C does."""

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    former = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, former)


@contextmanager
def _signals() -> Iterator[threading.Event]:
    """Yield an event that Ctrl-C and SIGTERM set, instead of interrupting the block."""
    stopped = threading.Event()
    numbers = (signal.SIGINT, signal.SIGTERM)
    former = {number: signal.signal(number, lambda _number, _frame: stopped.set()) for number in numbers}
    try:
        yield stopped
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)
