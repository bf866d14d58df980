"""Reading CSV files with fields of any length."""

import csv
from collections.abc import Iterator
from contextlib import contextmanager

from framedex import forks

_readers, _readers_lock = [0, 0], forks.Lock()  # how many read, and the limit before the first of them


@contextmanager
def long_fields() -> Iterator[None]:
    """Let CSV fields be as long as they are. The module has one limit for the whole process, which comes back."""
    with _readers_lock:
        _readers[0] += 1
        if _readers[0] == 1:
            _readers[1] = csv.field_size_limit(2**31 - 1)
    try:
        yield
    finally:
        with _readers_lock:
            _readers[0] -= 1
            if not _readers[0]:
                csv.field_size_limit(_readers[1])
