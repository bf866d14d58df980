"""Tests that need an extra of the package are skipped where that is not installed; no engine loads to find out."""

from importlib.util import find_spec

import pytest


def need(extra: str, *modules: str) -> None:
    """Skip the tests of the module that calls this, where one of the modules of an extra is missing."""
    if any(find_spec(module) is None for module in modules):
        pytest.skip(f"the extra {extra} is not installed", allow_module_level=True)
