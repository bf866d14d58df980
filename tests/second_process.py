"""A workspace that is open in another process, which runs functions for this one and can be killed."""

import multiprocessing
import pickle
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from framedex import Workspace
from framedex.settings import Settings

_START = multiprocessing.get_context("forkserver")
_START.set_forkserver_preload(["framedex.api.workspace", "framedex.jobs.create", "duckdb", "pandas", "pyarrow.dataset"])
_TIMEOUT_S = 120.0


class SecondProcess:
    """A process with an open workspace. Functions are called with the workspace; arguments and results are pickled.

    Args:
        folder: of the workspace.
        settings: of the workspace.
        prepare: called in the process before it opens the workspace.
    """

    def __init__(self, folder: Path, settings: Settings, prepare: Callable[[], object]) -> None:
        self._arguments = folder, settings, prepare
        self._start()

    def _start(self) -> None:
        self._connection, theirs = _START.Pipe()
        self._process = _START.Process(target=_serve, args=(theirs, *self._arguments))
        self._process.start()
        theirs.close()

    def run(self, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        """Return the result of a function; its error is raised here."""
        self.begin(function, *arguments, **options)
        return self.result()

    def begin(self, function: Callable[..., Any], *arguments: Any, **options: Any) -> None:
        """Begin a call whose result is awaited later."""
        self._connection.send((function, arguments, options))

    def result(self) -> Any:
        """Return the result of the call that was begun; its error is raised here.

        Raises:
            EOFError: the process has ended.
        """
        assert self._connection.poll(_TIMEOUT_S), f"no result in {_TIMEOUT_S} s"
        is_error, result = self._connection.recv()
        if is_error:
            raise result
        return result

    def reopen(self) -> None:
        """Close the workspace and open it again."""
        self.run(_reopen)

    def kill(self) -> None:
        """End the process by SIGKILL and start another one."""
        self._process.kill()
        self.close()
        self._start()

    def die_within(self, after_s: float, function: Callable[..., Any], *arguments: Any) -> bool:
        """Begin a call and kill the process after a time, unless it ends itself; return whether the call had not ended.

        An error of the call is raised here.
        """
        self.begin(function, *arguments)
        try:
            if has_ended := self._connection.poll(after_s):
                self.result()
        except (EOFError, ConnectionResetError):
            has_ended = False
        finally:
            self._process.kill()
            self.close()
        return not has_ended

    def kill_within(self, after_s: float, function: Callable[..., Any], *arguments: Any) -> None:
        """Begin a call and kill the process after a time, unless the call ends before."""
        self._connection.send((function, arguments, {}))
        self._connection.poll(after_s)
        self.kill()

    def close(self) -> None:
        """End the process."""
        self._connection.close()
        self._process.join(_TIMEOUT_S)
        assert self._process.exitcode is not None, "the process does not end"


def _reopen(workspace: Workspace) -> None:
    raise NotImplementedError("for the process alone")


def _serve(connection: Connection, folder: Path, settings: Settings, prepare: Callable[[], object]) -> None:
    prepare()
    workspace = Workspace(folder, settings=settings)
    while True:
        try:
            function, arguments, options = connection.recv()
        except EOFError:
            break
        try:
            if function is _reopen:
                workspace.close()
                workspace, result = Workspace(folder, settings=settings), None
            else:
                result = function(workspace, *arguments, **options)
            connection.send((False, result))
        except Exception as error:
            error.add_note(traceback.format_exc())
            try:
                connection.send((True, pickle.loads(pickle.dumps(error))))
            except Exception:
                connection.send((True, RuntimeError(traceback.format_exc())))
    workspace.close()
