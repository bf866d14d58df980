"""Programs of tests, as forks of a process that has imported what they import: imports take most of a short program.

One process for each process of tests does the imports and forks for each program, which then runs as ``python -c`` does
but for its beginning: it has the arguments, variables, folder, pipes and signals that it is given, is a child of the
test, and ends as an interpreter does, but for freeing all objects. Tests of imports start a new interpreter instead:
``fresh=True``.
"""

import atexit
import ctypes
import gc
import inspect
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import threading
import traceback
import warnings
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).parent.parent
_PR_SET_CHILD_SUBREAPER = 36  # of <linux/prctl.h>
_READ_BY_PYTHON = {
    name: os.environ.get(name) for name in ("PYTHONPATH", "PYTHONWARNINGS", "PYTHONDEVMODE", "PYTHONHASHSEED")
}
_MOST_BYTES = 2**17
_STREAMS = 3
_IMPORTED = (
    "cv2", "duckdb", "framedex.api.workspace", "framedex.cli.program", "framedex.client", "framedex.hub",
    "framedex.jobs.create", "framedex.service.app", "pandas", "pyarrow.dataset", "tests.gallery", "tests.growth",
    "tests.pauses",
)  # fmt: skip
# Not Lance: it survives no fork, so that in a child of a process that has loaded it helpers do its work.
_ASKING = threading.Lock()
_FORKERS: list[subprocess.Popen[bytes]] = []


class Program(subprocess.Popen[str]):
    """A ``Popen`` with text pipes of a Python program.

    Args:
        args: those of Python: ``-W error`` or not, ``-c`` with code or ``-m`` with the name of a module, and
            ``sys.argv[1:]``.
        fresh: it is a new interpreter, in which nothing is imported yet; so it is with variables that Python reads.
        options: of ``Popen``: ``stdin``, ``stdout``, ``stderr``, ``env``, ``cwd`` and ``start_new_session``.
    """

    def __init__(self, args: Sequence[object], *, fresh: bool = False, **options: Any) -> None:
        environment = options.get("env") or os.environ
        is_alike = all(environment.get(name) == value for name, value in _READ_BY_PYTHON.items())
        self._is_forked = sys.platform == "linux" and is_alike and not fresh
        super().__init__([sys.executable, *map(str, args)], text=True, **options)

    def _execute_child(self, args: Sequence[str], *others: Any) -> None:
        if not self._is_forked:
            super()._execute_child(args, *others)  # type: ignore[misc] # not public
            return
        given = inspect.signature(subprocess.Popen._execute_child).bind(self, args, *others).arguments  # type: ignore[attr-defined] # not public
        streams = [given[name] for name in ("p2cread", "c2pwrite", "errwrite")]
        request = {
            "args": args[1:],
            "env": dict(os.environ if given["env"] is None else given["env"]),
            "cwd": os.fspath(given["cwd"] or Path.cwd()),
            "is_leader": given["start_new_session"],
        }
        try:
            self.pid = _fork(request, [own if theirs == -1 else theirs for own, theirs in enumerate(streams)])
        finally:
            ends = ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")
            self._close_pipe_fds(*(given[name] for name in ends))  # type: ignore[attr-defined] # not public
        self._child_created = True


def completed(
    args: Sequence[object], *, typed: str = "", timeout_s: float = 240.0, **options: Any
) -> subprocess.CompletedProcess[str]:
    """Run a program, and return its status and its output when it has ended.

    Args:
        args: as of :class:`Program`.
        typed: its input.
        timeout_s: when it is killed, and an error is raised.
        options: as of :class:`Program`.
    """
    pipe = subprocess.PIPE
    with Program(args, stdin=pipe, stdout=pipe, stderr=pipe, **options) as program:
        try:
            output, errors = program.communicate(typed, timeout_s)
        finally:
            program.kill()
    return subprocess.CompletedProcess(program.args, program.returncode, output, errors)


@cache
def _forker(pid: int) -> socket.socket:
    """Start the process that forks for this one; return the connection to it."""
    del pid
    # A program is left by its parent at once, and becomes the child of this process.
    assert ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0
    own, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    command = [sys.executable, "-c", "from tests.programs import serve; serve()", str(theirs.fileno())]
    _FORKERS.append(subprocess.Popen(command, pass_fds=[theirs.fileno()], cwd=ROOT, stdin=subprocess.DEVNULL))
    theirs.close()
    return own


def _fork(request: dict[str, Any], streams: Sequence[int]) -> int:
    """Have a program started; return the id of its process."""
    with _ASKING:
        connection = _forker(os.getpid())
        socket.send_fds(connection, [json.dumps(request).encode()], streams)
        return int(connection.recv(_MOST_BYTES))


def serve() -> None:
    """Fork for each request of a connection; in the child, run its program."""
    for name in _IMPORTED:
        __import__(name)
    gc.freeze()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # libraries warn of forks; they have only been imported
        request, streams = _wait_for_program(socket.socket(fileno=int(sys.argv[1])))
    _run(request, streams)


def _wait_for_program(connection: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """Fork for each request; return the request and the streams in a child. The parent never returns."""
    while True:
        message, streams, _, _ = socket.recv_fds(connection, _MOST_BYTES, _STREAMS)
        if not message:
            os._exit(0)
        reader, writer = os.pipe()
        if not (child := os.fork()):
            if program := os.fork():
                os.write(writer, str(program).encode())
                os._exit(0)
            for each in (connection.detach(), reader, writer):
                os.close(each)
            return json.loads(message), streams
        os.waitpid(child, 0)
        connection.send(os.read(reader, _MOST_BYTES))
        for each in (reader, writer, *streams):
            os.close(each)


def _run(request: dict[str, Any], streams: Sequence[int]) -> None:
    """Be a program."""
    if request["is_leader"]:
        os.setsid()
    for own, theirs in enumerate(streams):
        os.dup2(theirs, own)
        os.close(theirs)
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    arguments = request["args"]
    if arguments[0] == "-W":
        warnings.simplefilter(arguments[1])
        del arguments[:2]
    option, content, *arguments = arguments
    sys.argv[:] = [option, *arguments]
    main = sys.modules["__main__"] = ModuleType("__main__")
    status = 0
    try:
        if option == "-m":
            runpy.run_module(content, run_name="__main__", alter_sys=True)
        else:
            exec(compile(content, "<string>", "exec"), main.__dict__)
    except SystemExit as end:
        is_status = end.code is None or isinstance(end.code, int)
        status = int(end.code or 0) if is_status else 1
        if not is_status:
            sys.stderr.write(f"{end.code}\n")
    except BaseException as error:
        traceback.print_exc()
        status = -signal.SIGINT if isinstance(error, KeyboardInterrupt) else 1
    _end(status)


def _end(status: int) -> None:
    """End as an interpreter does, but for freeing all objects, which takes longer than most programs.

    Args:
        status: the status of the process, or the negative number of the signal that ends it.
    """
    threading._shutdown()  # type: ignore[attr-defined] # not public; waits for threads
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    if status < 0:
        signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    os._exit(status)
