"""Watchers that stop a task where a test wants it, and a way to have them listen from the start."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from framedex import Task, Workspace
from framedex.tasks.runner import Run


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
            assert self.opened.wait(60), "the test did not let the task go on"


def run_of(task: Task) -> Run:
    """Return this process's work on a task."""
    run = task._run
    assert run is not None
    return run


@contextmanager
def all_threads_busy(workspace: Workspace) -> Iterator[None]:
    """Keep all threads for tasks busy, so that a task that is started waits until the block ends."""
    pool, free = workspace._context.runner._pool, threading.Event()
    assert pool is not None
    waiting = [pool.submit(free.wait, 60) for _ in range(4)]
    try:
        yield
    finally:
        free.set()
        assert all(future.result() for future in waiting)


def watched(workspace: Workspace, start: Callable[[], Task], progress: Callable[[str, float], None]) -> Task:
    """Start a task that a watcher hears from its first report on."""
    with all_threads_busy(workspace):
        task = start()
        run_of(task).progress.progress = progress
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
