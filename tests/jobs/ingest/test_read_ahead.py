"""Work ahead of who uses it: in order, bounded, and stopped when nobody wants it."""

import threading
from collections.abc import Generator
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from framedex.jobs.ingest.read_ahead import Stream, in_chunks, run_ahead
from tests.laws import examples

Results = Generator[int | None, None, None]


def is_long(item: int) -> bool:
    return item < 0


def started(items: list[int], *, long_work: object = None, threads: int = 2) -> Results:
    """Yield each item, and of a negative one so many results as it says."""

    def many(item: int, stream: Stream[int]) -> None:
        for place in range(-item):
            stream.put(place)

    return run_ahead(
        in_chunks(items, 3, is_long),
        is_long=is_long,
        work=list,
        long_work=long_work or many,  # type: ignore[arg-type]
        threads=threads,
        meanwhile=lambda: None,
    )


@examples(40)
@given(st.lists(st.integers(-150, 20), max_size=30), st.integers(1, 4))
def test_ahead__in_order(items: list[int], threads: int) -> None:
    """Results come in the order of the items, and those of a long one in its own, however many threads there are."""
    expected = [each for item in items for each in (range(-item) if item < 0 else [item])]
    assert [each for each in started(items, threads=threads) if each is not None] == expected


def test_stream__waits_for_who_uses_it() -> None:
    """A worker is never more than 64 results ahead."""
    made = 0

    def count(_item: int, stream: Stream[int]) -> None:
        nonlocal made
        for place in range(500):
            stream.put(place)
            made = place + 1

    most = 0
    for used, each in enumerate(each for each in started([-1], long_work=count) if each is not None):
        most = max(most, made - used)
        assert each == used
    assert most <= 64 + 2


def test_errors__come_where_the_result_would() -> None:
    """What the work on a long item raises is raised behind its results."""

    def fails(_item: int, stream: Stream[int]) -> None:
        stream.put(7)
        raise KeyError("broken")

    results = (each for each in started([1, -1, 2], long_work=fails) if each is not None)
    assert [next(results), next(results)] == [1, 7]
    with pytest.raises(KeyError, match="broken"):
        next(results)


def test_closing__ends_the_threads() -> None:
    """Whoever stops early leaves no thread at work, nor one that waits."""

    def endless(_item: int, stream: Stream[int]) -> None:
        while True:
            stream.put(1)

    with closing(started([-1, -1, -1], long_work=endless)) as results:
        assert next(results) == 1
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("framedex-video")]


def test_waiting__lets_the_user_look() -> None:
    """While a result takes long, the user is asked now and then."""
    go_on = threading.Event()

    def slow(_item: int, stream: Stream[int]) -> None:
        go_on.wait()
        stream.put(1)

    results = started([-1], long_work=slow)
    assert next(results) is None
    go_on.set()
    assert [each for each in results if each is not None] == [1]


def test_chunks__long_items_are_alone() -> None:
    """Chunks keep the order, and a long item is a chunk of its own."""
    assert list(in_chunks([1, 2, 3, 4, -1, 5, -2, -3], 3, is_long)) == [[1, 2, 3], [4], [-1], [5], [-2], [-3]]
