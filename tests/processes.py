"""Runs Python code in processes of their own, or in children of a fork."""

import os
import signal
import subprocess
import traceback
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent
from typing import Any

from tests.programs import ROOT, Program

# Takes root's right to pass over the permissions of files (CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH) from what it starts.
_WITHOUT_PRIVILEGES = """
import ctypes, os, sys
for capability in (1, 2):
    assert ctypes.CDLL(None).prctl(24, capability, 0, 0, 0) == 0  # PR_CAPBSET_DROP
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""


def start(code: str, *arguments: object, unprivileged: bool = False, fresh: bool = False) -> subprocess.Popen[str]:
    """Start a process whose input and output are text pipes.

    Args:
        code: what it runs.
        arguments: its ``sys.argv[1:]``.
        unprivileged: permissions of files hold for it, also where the tests run as root.
        fresh: it is a new interpreter, in which nothing is imported yet.
    """
    pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    environment = {**os.environ, "FRAMEDEX_HEARTBEAT_S": "0.2"}  # so that requests to stop are soon heard
    command = ["-W", "error", "-c", dedent(code), *arguments]
    is_unprivileged = unprivileged and os.geteuid() == 0
    if is_unprivileged:
        command = ["-c", _WITHOUT_PRIVILEGES, *command]
    # From the project's folder, so that it can import from tests.
    return Program(command, fresh=fresh or is_unprivileged, **pipes, env=environment, cwd=ROOT)


def finish(process: subprocess.Popen[str]) -> str:
    """Wait for a process that must end well and return its output."""
    try:
        out, err = process.communicate(timeout=120)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    assert process.returncode == 0, err
    return out


def run(code: str, *arguments: object, unprivileged: bool = False, fresh: bool = False) -> str:
    """Run code in a process that must end well and return its output; arguments as for :func:`start`."""
    return finish(start(code, *arguments, unprivileged=unprivileged, fresh=fresh))


def is_running(pid: int) -> bool:
    """Return whether a process exists and has not ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def is_blocked(pid: int) -> bool:
    """Return whether the main thread of a process waits for something."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "S"


def in_child(work: Callable[[], object]) -> None:
    """Fork, do something in the child, and check that it ended well and soon; its error goes to stderr."""
    child = os.fork()
    if not child:
        signal.alarm(60)
        try:
            work()
        except BaseException:
            traceback.print_exc()
            os._exit(3)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0, f"the child {child} failed"
