"""Conversion of failures of the disk and the storage engines into our own errors."""

import errno
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from framedex.errors import Error, WorkspaceError

_OF_THE_DISK = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO})
_ENGINE = re.compile(r"LanceError\(|lance(-[a-z]+)?/src/|\bGeneric \w+ error: ")  # the last is of its files
# Positions in the engine's source do not help users.
_PLACE_IN_SOURCE = re.compile(r",? ?/[^ ,]*\.rs:\d+(:\d+)?")
CHECK = "; `framedex check` lists missing and damaged files"
"""The end of a message about a table that cannot be read."""
_PANICS = "pyo3_runtime"  # module of the exceptions for panics of engines in Rust


class _Stored(Protocol):
    @property
    def path(self) -> Path: ...


Given = TypeVar("Given", bound=Path | _Stored)
Options = ParamSpec("Options")
Result = TypeVar("Result")


@contextmanager
def own_errors(operation: str) -> Iterator[None]:
    """Raise failures of the disk and the table engine as WorkspaceError; other errors pass unchanged.

    Args:
        operation: as in ``cannot <operation>``.

    Raises:
        WorkspaceError: the disk is full, read-only or broken, or a table is damaged.
    """
    try:
        yield
    except Error:
        raise
    except BaseException as error:  # a panic does not derive from Exception
        if not _is_of_the_disk(error):
            raise
        raise WorkspaceError(f"cannot {operation}: {_reason(error)}") from error


def on_table(
    operation: str,
) -> Callable[[Callable[Concatenate[Given, Options], Result]], Callable[Concatenate[Given, Options], Result]]:
    """Return a decorator for functions on a table that converts errors as :func:`own_errors` does.

    Args:
        operation: a verb such as ``read``. The first argument of the decorated function is the table's folder, or has
            it as ``path``.
    """

    def decorate(
        function: Callable[Concatenate[Given, Options], Result],
    ) -> Callable[Concatenate[Given, Options], Result]:
        @wraps(function)
        def guarded(table: Given, /, *args: Options.args, **options: Options.kwargs) -> Result:
            with own_errors(f"{operation} {table if isinstance(table, Path) else table.path}"):
                return function(table, *args, **options)

        return guarded

    return decorate


def is_panic(error: BaseException) -> bool:
    """Return whether an error is a panic of an engine in Rust, as for a truncated file."""
    return type(error).__module__ == _PANICS


def _is_of_the_disk(error: BaseException) -> bool:
    is_disk = isinstance(error, OSError) and error.errno in _OF_THE_DISK
    return is_disk or is_panic(error) or _ENGINE.search(str(error)) is not None


def _reason(error: BaseException) -> str:
    text = str(error)
    if is_panic(error):
        return f"a file of the table is damaged ({text}){CHECK}"
    if getattr(error, "errno", None) == errno.ENOSPC or "No space left on device" in text:
        return "no space left on the disk; nothing was changed"
    return _PLACE_IN_SOURCE.sub("", text) + (CHECK if _ENGINE.search(text) is not None else "")


def is_missing(error: BaseException) -> bool:
    """Return whether an engine says that a table, or a version of it, is not there."""
    return "not found" in str(error).lower()


def damage(what: str, error: BaseException) -> WorkspaceError:
    """Return the error that something cannot be read, with the reason and what helps."""
    return WorkspaceError(f"{what}: {_PLACE_IN_SOURCE.sub('', str(error))}{CHECK}")
