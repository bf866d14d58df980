"""The threads of BLAS, which NumPy multiplies matrices by."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from framedex.core import forks

_limits: list[Any] = []
_limiting = forks.Lock()
_users = 0


@cache
def _blas() -> Any:
    """Return the controller of the BLAS that NumPy has loaded; to find it among all libraries takes milliseconds."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")


def _set_free() -> None:
    """Let this thread set the number of threads: threadpoolctl 3.8 heeds only one, until it ends, which may be any."""
    for library in _blas().lib_controllers:
        if (clear := getattr(library, "clear_controlling_thread", None)) is not None:
            clear(force=True)


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Limit BLAS to one thread per caller in the whole process, within the block; blocks may overlap."""
    global _users  # noqa: PLW0603 - BLAS itself is the global that is guarded
    with _limiting:
        if _users == 0:
            _set_free()
            _limits.append(_blas().limit(limits=1))
        _users += 1
    try:
        yield
    finally:
        with _limiting:
            _users -= 1
            if _users == 0:
                _set_free()
                _limits.pop().restore_original_limits()
                _set_free()
