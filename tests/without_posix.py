"""Takes from Python what only POSIX or Linux has: a process imports this before Framedex, and calls :func:`take_away`.

Other packages, which have builds of their own for other systems, are imported before.
"""

import asyncio  # noqa: F401
import builtins
import errno
import fcntl
import io
import multiprocessing  # noqa: F401
import os
import shutil
import signal
import subprocess  # noqa: F401
import sys
import tempfile  # noqa: F401
from typing import Any

import alembic.command  # noqa: F401
import cv2  # noqa: F401
import duckdb  # noqa: F401
import lance  # noqa: F401
import numpy as np  # noqa: F401
import PIL.Image  # noqa: F401
import pyarrow.dataset
import pyarrow.parquet  # noqa: F401
import pydantic_settings  # noqa: F401
import sqlalchemy.dialects.sqlite  # noqa: F401

_FCNTL = fcntl.fcntl
MODULES = ("fcntl", "grp", "posix_spawn", "pwd", "resource", "syslog", "termios", "tty")
CALLS = (
    "chown", "fchmod", "fchown", "fdatasync", "fork", "forkpty", "getegid", "geteuid", "getgid", "getgroups",
    "getloadavg", "getpgid", "getuid", "killpg", "lchown", "link", "lockf", "memfd_create", "mkfifo", "mknod",
    "nice", "openpty", "pipe2", "posix_fadvise", "posix_fallocate", "posix_spawn", "pread", "preadv",
    "pwrite", "pwritev", "register_at_fork", "sched_getaffinity", "sched_setaffinity", "sendfile", "setsid",
    "statvfs", "sync", "sysconf", "uname", "wait", "wait3", "wait4", "O_ASYNC", "O_CLOEXEC", "O_DIRECT",
    "O_DIRECTORY", "O_DSYNC", "O_NOATIME", "O_NOCTTY", "O_NOFOLLOW", "O_NONBLOCK", "O_PATH", "O_SYNC",
    "O_TMPFILE",
)  # fmt: skip
SIGNALS = (
    "SIGALRM",
    "SIGCHLD",
    "SIGHUP",
    "SIGKILL",
    "SIGQUIT",
    "SIGUSR1",
    "SIGUSR2",
    "alarm",
    "pthread_sigmask",
    "setitimer",
)


def take_away() -> None:
    """Take modules, calls, signals and ``/proc`` away, and make files and folders behave as on Windows when synced."""
    for name in MODULES:
        sys.modules[name] = None  # type: ignore[assignment] # importing it then raises ImportError
    for name in CALLS:
        vars(os).pop(name, None)
    for name in SIGNALS:
        vars(signal).pop(name, None)
    shutil._USE_CP_SENDFILE = False  # type: ignore[attr-defined]
    shutil._use_fd_functions = False  # type: ignore[attr-defined] # as where folders cannot be opened
    os.kill = _refuse_to_kill
    os.open = _without_folders(os.open)
    os.fsync = _only_for_writers(os.fsync)
    builtins.open = io.open = _without_proc(io.open)
    os.readlink = _without_proc(os.readlink)


def _refuse_to_kill(pid: int, number: int) -> None:
    # There each signal but two ends the process, 0 too.
    raise AssertionError(f"a process of Windows would have been ended by os.kill({pid}, {number})")


def _is_of_linux(path: str) -> bool:
    # threadpoolctl reads the one that is left where ``sys.platform`` is Linux.
    return path.startswith("/proc") and path != "/proc/self/maps"


def _without_proc(function: Any) -> Any:
    def checked(path: Any, *arguments: Any, **options: Any) -> Any:
        if not isinstance(path, int) and _is_of_linux(os.fsdecode(path)):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return function(path, *arguments, **options)

    return checked


def _without_folders(function: Any) -> Any:
    def checked(path: Any, *arguments: Any, **options: Any) -> Any:
        if os.path.isdir(path):  # noqa: PTH112 - the path may be bytes
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        return function(path, *arguments, **options)

    return _without_proc(checked)


def _only_for_writers(function: Any) -> Any:
    def checked(descriptor: int) -> None:
        if not _FCNTL(descriptor, fcntl.F_GETFL) & (os.O_WRONLY | os.O_RDWR):
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        function(descriptor)

    return checked
