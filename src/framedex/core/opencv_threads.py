"""The threads of OpenCV."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import cv2

_limiting = threading.Lock()
_before: list[int] = []  # the number of threads before the blocks, and 1 for each further block


@contextmanager
def single_threaded_opencv() -> Iterator[None]:
    """Let OpenCV use only the calling threads in the whole process, within the block; blocks may overlap.

    Where several threads work on images of their own, its threads only wait for each other: they cost a tenth of the
    processor time of ingestion.
    """
    with _limiting:
        _before.append(cv2.getNumThreads())
        cv2.setNumThreads(1)
    try:
        yield
    finally:
        with _limiting:
            threads = _before.pop()
            if not _before:  # the first that was stored
                cv2.setNumThreads(threads)
