"""BLAS has one thread within the blocks, and its own number of threads after the last of them."""

from threading import Event, Thread

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from framedex.core.blas_threads import single_threaded_blas


def threads_of_blas() -> set[int]:
    """Return the number of threads of the BLAS libraries in this process."""
    return {each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"}


def test_single_threaded_blas__until_the_last_block_ends() -> None:
    """Blocks may overlap in any order: BLAS has one thread until the last block ends, then its previous number."""
    with threadpool_limits(2, user_api="blas"):
        before = threads_of_blas()
        first, second = single_threaded_blas(), single_threaded_blas()
        first.__enter__()
        assert threads_of_blas() == {1}
        second.__enter__()
        first.__exit__(None, None, None)
        assert threads_of_blas() == {1}
        second.__exit__(None, None, None)
        assert threads_of_blas() == before


def test_single_threaded_blas__ends_with_an_error() -> None:
    """An error within a block restores the threads, and the next block works."""

    @single_threaded_blas()
    def fail() -> None:
        assert threads_of_blas() == {1}
        raise ZeroDivisionError

    with threadpool_limits(2, user_api="blas"):
        before = threads_of_blas()
        for _ in range(2):
            with pytest.raises(ZeroDivisionError):
                fail()
            assert threads_of_blas() == before


def test_single_threaded_blas__in_any_thread() -> None:
    """Blocks begin and end in any threads, also beside one that limited BLAS before and can do so again."""
    is_limited, is_seen, is_done = Event(), Event(), Event()
    others = list[set[int]]()

    def limit_twice() -> None:
        with threadpool_limits(2, user_api="blas"):
            pass
        is_limited.set()
        is_seen.wait()
        with threadpool_limits(2, user_api="blas"):
            others.append(threads_of_blas())
            is_done.wait()

    other = Thread(target=limit_twice)
    other.start()
    is_limited.wait()
    block = single_threaded_blas()
    block.__enter__()
    assert threads_of_blas() == {1}
    end = Thread(target=block.__exit__, args=(None, None, None))
    end.start()
    end.join()
    is_seen.set()
    is_done.set()
    other.join()
    assert others == [{2}]
