"""The command that serves a workspace over HTTP."""

import atexit
import gc
import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from framedex.cli.browser import show_in_browser
from framedex.cli.options import WorkspaceOption, existing_folder, open_workspace, workspace_folder
from framedex.cli.output import say
from framedex.errors import MissingDependency, WorkspaceError
from framedex.web import BUILD_HINT, AppPages

_LONGEST_STOP_S = 4.5


def serve(
    workspace: WorkspaceOption = None,
    host: Annotated[str, typer.Option(help="Address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 for a free one.")] = 8765,
    read_only: Annotated[bool, typer.Option("--read-only", help="Change nothing in the workspace.")] = False,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Do not open the app in a browser.")] = False,
) -> None:
    """Serve a workspace until Ctrl-C: the web app, and the API. A missing or empty folder becomes one.

    In a terminal the app opens in a browser.
    """
    with without_collection() as started:
        _serve(workspace, host, port, started, read_only=read_only, no_browser=no_browser)


@contextmanager
def needing_http() -> Iterator[None]:
    """Raise MissingDependency instead of an ImportError within the block."""
    try:
        yield
    except MissingDependency:
        raise
    except ImportError as error:
        raise MissingDependency(f"the service needs {error.name}: pip install 'framedex[http]'") from None


def load_server() -> Callable[..., None]:
    """Return the function that serves a workspace, with the settings of the environment.

    Raises:
        MissingDependency: the extra ``http`` is not installed.
        InvalidInput: a setting is invalid.
    """
    with needing_http():
        from framedex.service.server import serve as run
    from framedex.service.settings import load_oidc_settings, load_service_settings

    deadline = threading.Event()
    threading.Thread(target=_end_after, args=(deadline,), name="framedex-deadline", daemon=True).start()
    atexit.register(_end_quickly, deadline)
    options: dict[str, Any] = {
        "settings": load_service_settings(),
        "oidc": load_oidc_settings(),
        "on_stop": deadline.set,
    }
    return partial(run, **options, warn=lambda sentence: say(f"warning: {sentence}"))


def _end_after(stop: threading.Event) -> None:
    """End the process some seconds after it was told to stop, whatever it waits for: nothing is lost by a kill."""
    stop.wait()
    time.sleep(_LONGEST_STOP_S)
    logging.getLogger("framedex.service").warning("the server did not stop within %g s and is ended", _LONGEST_STOP_S)
    os._exit(0)


def _end_quickly(stop: threading.Event) -> None:
    """End the process of a stopped server, all of which is closed, without freeing its objects: it takes seconds."""
    if stop.is_set():
        logging.shutdown()
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
        os._exit(0)


@contextmanager
def without_collection() -> Iterator[Callable[[], None]]:
    """Look for no garbage until the yielded function is called: of what a start loads, which takes a tenth of it."""

    def end() -> None:
        gc.freeze()
        gc.enable()

    gc.disable()
    try:
        yield end
    finally:
        gc.unfreeze()  # else engines complain at the end that they are not released
        gc.enable()


def _serve(
    workspace: Path | None, host: str, port: int, started: Callable[[], None], *, read_only: bool, no_browser: bool
) -> None:
    run = load_server()
    folder, is_new = workspace_folder(workspace), False
    try:
        existing_folder(workspace)
    except WorkspaceError:
        if read_only:
            raise
        with open_workspace(workspace, create=True):
            is_new = True

    def announce(url: str) -> None:
        started()
        say(f"Framedex serves {folder}{', a new workspace,' if is_new else ''} at {url} (Ctrl-C stops it)")
        if not AppPages().exist:
            say(f"warning: {BUILD_HINT}")
        elif sys.stdout.isatty() and not no_browser:
            show_in_browser(url)

    run(folder, host=host, port=port, read_only=read_only, announce=announce)
