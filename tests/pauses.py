"""Watchers that stop a task where a test wants it, and a way to have them listen from the start."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from framedex import Dataset, Task, Workspace
from framedex.tasks.runner import Run
from tests.inside import runner_of, waiting_edits

Answer = TypeVar("Answer")
PATIENCE_S = 240.0
"""How long is waited for what comes in an instant on an idle machine: engines load slowly on a busy one."""


class Pause:
    """A watcher that waits at a stage, from some share of the whole on, until a test lets the task go on.

    Attributes:
        reached: set when the task waits.
        opened: lets it go on.
    """

    def __init__(self, stage: str, share: float = 0.0) -> None:
        self.stage, self.share = stage, share
        self.reached, self.opened = threading.Event(), threading.Event()

    def __call__(self, stage: str, share: float) -> None:
        if stage == self.stage and share >= self.share:
            self.reached.set()
            assert self.opened.wait(PATIENCE_S), "the test did not let the task go on"


def first_answer(
    ask: Callable[[], Answer], will_do: Callable[[Answer], object], timeout_s: float = PATIENCE_S
) -> Answer:
    """Ask again and again for what sets no event; return the first answer that will do, and fail without one.

    To ask may take longer than what is waited for, which needs the same processor: pauses grow with the time.

    Args:
        ask: returns the present state.
        will_do: whether it is waited for no more.
        timeout_s: how long is waited.
    """
    start = time.monotonic()
    while not will_do(answer := ask()):
        waited_s = time.monotonic() - start
        assert waited_s < timeout_s, f"what was waited for did not come within {timeout_s} s: {answer!r}"
        time.sleep(min(max(waited_s / 10, 0.001), 0.02))
    return answer


def wait_until(holds: Callable[[], object], timeout_s: float = PATIENCE_S) -> None:
    """Return as soon as something holds that sets no event; fail where it does not within the time."""
    first_answer(holds, bool, timeout_s)


def wait_for_edits(dataset: Dataset, count: int) -> None:
    """Return once so many threads of this process hold the lease of a dataset or wait for it."""
    wait_until(lambda: waiting_edits(dataset) >= count)


def run_of(task: Task) -> Run:
    """Return this process's work on a task."""
    run = task._run
    assert run is not None
    return run


@contextmanager
def all_threads_busy(workspace: Workspace) -> Iterator[None]:
    """Keep all threads for tasks busy, so that a task that is started waits until the block ends."""
    pool, free = runner_of(workspace).pool, threading.Event()
    waiting = [pool.submit(free.wait, PATIENCE_S) for _ in range(4)]
    try:
        yield
    finally:
        free.set()
        assert all(future.result() for future in waiting)


def watched(workspace: Workspace, start: Callable[[], Task], progress: Callable[[str, float], None]) -> Task:
    """Start a task that a watcher hears from its first report on."""
    with all_threads_busy(workspace):
        task = start()
        run_of(task).progress.callback = progress
    return task


class FailAt:
    """A watcher that fails at its n-th report.

    Attributes:
        left: reports until then.
    """

    def __init__(self, left: int) -> None:
        self.left = left

    def __call__(self, _stage: str, _share: float) -> None:
        self.left -= 1
        if self.left == 0:
            raise RuntimeError("the disk is full")
