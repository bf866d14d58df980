"""Runs Python code in processes of their own, or in children of a fork."""

import os
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

# Takes root's right to pass over the permissions of files (CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH) from what it starts.
_WITHOUT_PRIVILEGES = """
import ctypes, os, sys
for capability in (1, 2):
    assert ctypes.CDLL(None).prctl(24, capability, 0, 0, 0) == 0  # PR_CAPBSET_DROP
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""


def start(code: str, *arguments: object, unprivileged: bool = False) -> subprocess.Popen[str]:
    """Start a process whose input and output are text pipes.

    Args:
        code: what it runs.
        arguments: its ``sys.argv[1:]``.
        unprivileged: permissions of files hold for it, also where the tests run as root.
    """
    command = ["-W", "error", "-c", dedent(code), *map(str, arguments)]
    if unprivileged and os.geteuid() == 0:
        command = ["-c", _WITHOUT_PRIVILEGES, *command]
    return subprocess.Popen(
        [sys.executable, *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "FRAMEDEX_HEARTBEAT_S": "0.2"},  # so that requests to stop are soon heard
        cwd=Path(__file__).parent.parent,  # so that it can import from tests
    )


def finish(process: subprocess.Popen[str]) -> str:
    """Wait for a process that must end well and return its output."""
    try:
        out, err = process.communicate(timeout=120)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    assert process.returncode == 0, err
    return out


def run(code: str, *arguments: object, unprivileged: bool = False) -> str:
    """Run code in a process that must end well and return its output."""
    return finish(start(code, *arguments, unprivileged=unprivileged))


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
