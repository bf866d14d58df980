"""The log of the package on the standard error, with a level for each logger."""

import logging
import os
import subprocess
import sys

from framedex.errors import InvalidInput

VARIABLE = "FRAMEDEX_LOG"
ROOT = "framedex"
"""The logger above all others of the package, which have the names of its modules."""
LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
_OTHER_LEVELS = {"TRACE": "DEBUG", "VERBOSE": "DEBUG", "WARN": "WARNING", "FATAL": "CRITICAL"}
"""Levels of other programs, which the variable ``LOG_LEVEL`` may mean."""
_FORMAT = "%(asctime)s %(levelname)s %(name)s [%(process)d] %(message)s"


def check_log_level(level: str) -> str:
    """Return the name of a log level in capitals after checking it.

    Raises:
        InvalidInput: Python's logging has no such level.
    """
    name = level.strip().upper()
    name = _OTHER_LEVELS.get(name, name)
    if name not in LEVELS:
        raise InvalidInput(f"no log level {level!r}; there are {', '.join(LEVELS)}")
    return name


def log_levels(text: str) -> dict[str, str]:
    """Return the levels by logger in a text such as ``info,framedex.storage=debug``; a level alone is that of all.

    Raises:
        InvalidInput: a level or a logger is wrong.
    """
    levels = dict[str, str]()
    for part in filter(None, map(str.strip, text.split(","))):
        logger, _, level = part.rpartition("=")
        logger = logger.strip() or ROOT
        if f"{logger}.".partition(".")[0] != ROOT:
            raise InvalidInput(f"no logger {logger!r}; their names begin with {ROOT!r}, as in {ROOT}.storage=debug")
        levels[logger] = check_log_level(level)
    return levels


def show_log(text: str) -> None:
    """Set the levels of a text as for :func:`log_levels`, and write the log to the standard error.

    A program whose own handlers take a line gets it there, and only there.

    Raises:
        InvalidInput: a level or a logger is wrong.
    """
    levels = log_levels(text)
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)
    root = logging.getLogger(ROOT)
    if levels and not root.handlers:
        root.addHandler(_ErrorHandler())


def show_environment_log() -> None:
    """Show the log that ``FRAMEDEX_LOG`` names.

    Raises:
        InvalidInput: the variable has an invalid value; the message names it.
    """
    text = os.environ.get(VARIABLE, "")
    try:
        show_log(text)
    except InvalidInput as error:
        raise InvalidInput(f"{VARIABLE} is {text!r}: {error}") from None


def child_stderr() -> int | None:
    """Return the ``stderr`` of processes that work for this one: that of this process if it shows the log."""
    return None if os.environ.get(VARIABLE) else subprocess.DEVNULL


class _ErrorHandler(logging.Handler):
    """A handler that writes to the standard error of the moment, which notebooks and tests replace."""

    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(logging.Formatter(_FORMAT))

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record, unless a handler of the program takes it."""
        if any(record.levelno >= handler.level for handler in logging.getLogger().handlers):
            return
        try:
            if sys.stderr is not None:  # as in a program without a console
                sys.stderr.write(f"{self.format(record)}\n")
                sys.stderr.flush()
        except Exception:
            self.handleError(record)
