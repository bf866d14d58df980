"""OpenCV has one thread within the blocks, and its own number of threads after the last of them."""

import threading

import cv2
import pytest

from framedex.core.opencv_threads import single_threaded_opencv


@pytest.fixture(autouse=True)
def _two_threads() -> object:
    before = cv2.getNumThreads()
    cv2.setNumThreads(2)
    yield
    cv2.setNumThreads(before)


def test_single_threaded_opencv__until_the_last_block_ends() -> None:
    """Blocks may overlap in any order; the number of threads returns when the last one ends."""
    first, second = single_threaded_opencv(), single_threaded_opencv()
    first.__enter__()
    assert cv2.getNumThreads() == 1
    second.__enter__()
    first.__exit__(None, None, None)
    assert cv2.getNumThreads() == 1
    second.__exit__(None, None, None)
    assert cv2.getNumThreads() == 2


def test_single_threaded_opencv__ends_with_an_error() -> None:
    """An error in a block restores the number of threads."""
    with pytest.raises(ValueError, match="stop"), single_threaded_opencv():
        raise ValueError("stop")
    assert cv2.getNumThreads() == 2


def test_single_threaded_opencv__from_several_threads() -> None:
    """Threads may enter and leave blocks at the same time."""

    def work() -> None:
        for _ in range(200):
            with single_threaded_opencv():
                assert cv2.getNumThreads() == 1

    threads = [threading.Thread(target=work) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert cv2.getNumThreads() == 2
