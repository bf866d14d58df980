"""Tests that need an extra of the package are skipped where that is not installed; no engine loads to find out."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

import pytest


def need(extra: str, *modules: str) -> None:
    """Skip the tests of the module that calls this, where one of the modules of an extra is missing."""
    if any(find_spec(module) is None for module in modules):
        pytest.skip(f"the extra {extra} is not installed", allow_module_level=True)


@contextmanager
def missing(*modules: str, again: tuple[str, ...] = ()) -> Iterator[None]:
    """Let modules not be found in a block.

    Args:
        modules: their names.
        again: beginnings of the names of those that import them, and are imported again.
    """
    with pytest.MonkeyPatch.context() as patch:
        for name in [each for each in sys.modules if each.startswith(again)]:
            patch.delitem(sys.modules, name)
        for name in modules:
            patch.setitem(sys.modules, name, None)
        yield
