"""Fresh interpreters that work for this process, and never import the program of the user."""

import os
import subprocess
import sys
from collections.abc import Mapping
from multiprocessing.connection import Connection, Pipe
from pathlib import Path

from framedex.core.child_processes import ChildProcess
from framedex.core.logs import child_stderr
from framedex.errors import Unavailable

ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
"""Environment variables with which each process multiplies matrices on one thread."""


def module_path() -> str:
    """Return the value of ``PYTHONPATH`` with which another interpreter finds the modules that this one finds."""
    return os.pathsep.join(str(Path(each).absolute()) for each in sys.path)


def start_interpreter(
    python: str | None, module: str, variables: Mapping[str, str], *arguments: str
) -> tuple["subprocess.Popen[bytes]", Connection]:
    """Start an interpreter that runs one of our modules; return its process and a connection to it. POSIX only.

    The module gets the descriptor of the other end of the connection as its argument. It ignores the Ctrl-C of this
    process. What it prints is not shown, unless ``FRAMEDEX_LOG`` shows the log.

    Args:
        python: the path of the interpreter; None, as that of an embedded one, cannot be started.
        module: the name of the module.
        variables: environment variables beside those of this process.
        arguments: further arguments of the module.

    Raises:
        Unavailable: it cannot be started.
    """
    if not python:
        raise Unavailable("cannot start processes that work for this one: this interpreter is embedded in a program")
    ours, theirs = Pipe()
    # Without -P, modules in the working directory would come before those of Python.
    command = [python, "-P", "-m", module, str(theirs.fileno()), *arguments]
    try:
        process = subprocess.Popen(  # noqa: S603 - our own module, by this interpreter
            command, pass_fds=[theirs.fileno()], env={**os.environ, **ONE_THREAD, **variables},
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=child_stderr(), start_new_session=True,
        )  # fmt: skip
    except OSError as error:
        ours.close()
        raise Unavailable(f"cannot start processes that work for this one: {error}") from error
    finally:
        theirs.close()
    return process, ours


def wait_for_start(process: ChildProcess, connection: Connection) -> None:
    """Wait for the message of a process that it has started; close the connection if there is none.

    Raises:
        Unavailable: it has ended.
    """
    try:
        connection.recv()
    except (EOFError, OSError):
        connection.close()
        raise Unavailable(f"a process that should work for this one ended with status {process.wait()}") from None
