"""Processors, GPUs and memory: which items run at the same time."""

import math
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from framedex.errors import InvalidInput, Unavailable
from framedex.executors import Executor, ProcessExecutor, ThreadExecutor
from framedex.executors.resources import Admission, Capacity, Need
from tests.executors import work

processes = pytest.mark.skipif(sys.platform == "win32", reason="processes are started as on POSIX")


@pytest.fixture(
    scope="module", params=[ThreadExecutor, pytest.param(ProcessExecutor, marks=[processes, pytest.mark.slow])]
)
def executor(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Executor]:
    """Each executor of this machine, with three workers, 100 bytes and a GPU."""
    with request.param(3, memory=100, gpus=1) as made:
        list(made.map(partial(work.meet, tmp_path_factory.mktemp("started"), 3), range(3)))  # all workers have started
        yield made


def most_at_once(spans: list[tuple[float, float]]) -> int:
    """Return the largest number of spans of time with a common moment."""
    return max(sum(start <= begin < end for start, end in spans) for begin, _ in spans)


@pytest.mark.parametrize(
    ("need", "most"),
    [
        ({}, 3),
        ({"cpus": 0.5}, 3),
        ({"cpus": 1.5}, 2),
        ({"cpus": 2}, 1),
        ({"cpus": 99}, 1),
        ({"memory": 33}, 3),
        ({"memory": 50}, 2),
        ({"memory": 51}, 1),
        ({"memory": 1000}, 1),
        ({"gpus": 0.5}, 2),
        ({"gpus": 1}, 1),
        ({"cpus": 0, "memory": 40}, 2),
    ],
)
def test_needs__bound_the_items_at_once(executor: Executor, tmp_path: Path, need: dict[str, Any], most: int) -> None:
    """As many items run at the same time as there is room for, and one at least; never more."""
    assert most_at_once(list(executor.map(work.pause, [0.02] * 5, **need))) <= most
    assert list(executor.map(partial(work.meet, tmp_path, most), range(most), **need)) == [None] * most


def test_needs__of_each_item(executor: Executor) -> None:
    """A large item waits for its turn, is alone then, and later ones do not overtake it."""
    waiting = [
        executor.submit(work.pause, pause, memory=memory) for pause, memory in ((0.1, 60), (0.1, 500), (0, 60), (0, 1))
    ]
    (_, first), (begin, end), (third, _), (fourth, _) = (each.result() for each in waiting)
    assert first <= begin <= end <= min(third, fourth)


def test_map__requests_as_few_items_as_can_run() -> None:
    """Items that run one at a time are requested one at a time, and a few ahead."""
    taken: list[int] = []

    def numbers() -> Iterator[int]:
        while True:
            taken.append(len(taken))
            yield taken[-1]

    with ThreadExecutor(8, memory=100) as threads:
        results = threads.map(work.square, numbers(), memory=80)
        assert [next(results) for _ in range(3)] == [0, 1, 4]
        results.close()
    assert len(taken) <= 3 + 4


@pytest.mark.parametrize("gpus", [0.5, 1, 2])
def test_gpus__that_are_not_there(gpus: float) -> None:
    """An item that needs a GPU is refused at once where there is none, and by number where there are fewer."""
    with ThreadExecutor(2, gpus=0) as threads:
        with pytest.raises(Unavailable, match=f"an item needs {gpus:g} GPUs, and this machine has none"):
            threads.submit(work.square, 1, gpus=gpus)
        with pytest.raises(Unavailable, match="has none"):
            next(threads.map(work.square, [1], gpus=gpus))
    with ThreadExecutor(2, gpus=1) as threads:
        if gpus <= 1:
            assert threads.submit(work.square, 3, gpus=gpus).result() == 9
        else:
            with pytest.raises(Unavailable, match="needs 2 GPUs, and this machine has 1"):
                threads.submit(work.square, 1, gpus=gpus)


@pytest.mark.parametrize(
    ("need", "message"),
    [
        ({"cpus": -1}, "the processors of an item are a finite number, 0 or more, not -1"),
        ({"cpus": math.nan}, "not nan"),
        ({"memory": math.inf}, "the bytes of memory of an item .* not inf"),
        ({"gpus": -0.5}, "the GPUs .* not -0.5"),
        ({"gpus": 1.5}, "an item shares one GPU or has whole ones: 1.5 is neither"),
    ],
)
def test_needs__that_cannot_be(need: dict[str, Any], message: str) -> None:
    """A number that cannot be that of a resource is refused before anything runs."""
    with ThreadExecutor(1, gpus=4) as threads, pytest.raises(InvalidInput, match=message):
        threads.submit(work.square, 1, **need)


def test_end__cancels_those_that_wait() -> None:
    """Leaving an executor waits for what runs, and cancels what does not; nothing is left unanswered."""
    begun, go_on = ([threading.Event() for _ in range(4)] for _ in range(2))

    def wait(number: int) -> str:
        begun[number].set()
        go_on[number].wait(20)
        return "done"

    with ThreadExecutor(4, memory=10) as threads:
        waiting = [threads.submit(wait, number, memory=8) for number in range(4)]
        assert begun[0].wait(20)
        assert waiting[1].cancel()
        go_on[0].set()
        assert begun[2].wait(20)
        threading.Timer(0.05, go_on[2].set).start()
    assert [each.cancelled() for each in waiting] == [False, True, False, True]
    assert (waiting[0].result(0), waiting[2].result(0), begun[3].is_set()) == ("done", "done", False)
    with pytest.raises(Unavailable, match="the executor has ended"):
        threads.submit(work.square, 1)


NEEDS = st.builds(
    Need, st.sampled_from([0, 0.1, 0.2, 0.5, 1, 2, 9]), st.sampled_from([0, 0.5, 1]), st.sampled_from([0, 1, 50, 200])
)


@given(st.lists(st.one_of(NEEDS, st.integers(0, 9), st.just(None)), max_size=40))
def test_admission__any_order(steps: list[Need | int | None]) -> None:
    """Items begin in the order in which they came, never need more than there is together, and all run in the end."""
    capacity = Capacity(2, 1, 100)
    admission = Admission(capacity, 3)
    entered: list[Future[None]] = []
    running: list[tuple[int, Need]] = []
    begun: list[int] = []

    def begin(number: int, need: Need) -> None:
        begun.append(number)
        running.append((number, need))
        together = [each for _, each in running]
        assert len(together) <= 3
        if len(together) > 1:
            assert math.fsum(each.cpus for each in together) <= 2 + 1e-6
            assert math.fsum(each.gpus for each in together) <= 1 + 1e-6
            assert sum(each.memory for each in together) <= 100

    def leave(place: int) -> None:
        if running:
            admission.leave(running.pop(place % len(running))[1])

    for step in steps:
        if isinstance(step, Need):
            entered.append(Future())
            admission.enter(step, entered[-1], partial(begin, len(entered) - 1, step))
        elif step is None and entered and len(entered) - 1 not in begun:
            entered[-1].cancel()
        elif step is not None:
            leave(step)
    while running:
        leave(0)
    assert begun == [number for number, each in enumerate(entered) if not each.cancelled()]
