"""Warnings about what is empty."""

import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

from framedex.errors import EmptyResultWarning

_PACKAGE = str(Path(__file__).parents[1])


def warn_empty(sentence: str) -> None:
    """Warn that something is empty, at the line outside of the package that asked for it."""
    level, frame = 1, sys._getframe(0)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        level, frame = level + 1, frame.f_back
    warnings.warn(sentence, EmptyResultWarning, stacklevel=level)


def warn_empty_result(reasons: Sequence[str]) -> None:
    """Warn that a result is empty, if there are reasons why."""
    if reasons:
        warn_empty(f"the result is empty: {'; '.join(reasons)}")
