"""Functions that fail where a test wants it."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest


@contextmanager
def failing(*places: str, error: BaseException) -> Iterator[None]:
    """Let functions raise an error, in a block or in a whole test.

    Args:
        places: their dotted names.
        error: the error.
    """

    def fail(*_arguments: Any, **_options: Any) -> Any:
        raise error

    with pytest.MonkeyPatch.context() as patch:
        for place in places:
            patch.setattr(place, fail)
        yield
