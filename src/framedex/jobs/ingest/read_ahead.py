"""Work on threads ahead of the consumer, with results in the order of the items and with bounded memory.

Short items are processed in chunks, each to its end. A long item with many results has a stream: its worker waits
while many results are unused. Short and long items have separate threads and start in the order of the items, so the
item that the consumer waits for is always in progress.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, Generic, Protocol, TypeVar

from framedex.core.blas_threads import single_threaded_blas
from framedex.core.opencv_threads import single_threaded_opencv
from framedex.errors import Aborted
from framedex.executors import ResultLost

T = TypeVar("T")
R = TypeVar("R")

_MAX_RESULTS = 64  # unused results of a stream
_POLL_S = 0.5  # interval at which the consumer gets control while it waits
_LISTED_S = _POLL_S / 2  # for which the items of further chunks are listed at once
STREAMS = 2
"""Streams in progress at the same time; all but the first mostly wait, because they may not run far ahead."""


class Stream(Generic[R]):
    """Results that a worker passes to the consumer one by one."""

    def __init__(self, max_results: int = _MAX_RESULTS) -> None:
        self._max_results, self._results = max_results, deque[R]()
        self._changed = threading.Condition()
        self._ended = self._stopped = False
        self._error: BaseException | None = None

    def put(self, result: R) -> None:
        """Pass a result to the consumer; wait while many results are unused.

        Raises:
            Aborted: the consumer has stopped.
        """
        with self._changed:
            self._changed.wait_for(lambda: len(self._results) < self._max_results or self._stopped)
            self.check()
            self._results.append(result)
            self._changed.notify_all()

    def check(self) -> None:
        """Raise Aborted if the consumer has stopped."""
        if self._stopped:
            raise Aborted("the results are no longer needed")

    def run(self, work: Callable[["Stream[R]"], None]) -> None:
        """Run *work*, which puts its results; its exception is raised at the consumer."""
        try:
            self.check()
            work(self)
        except BaseException as error:
            self._error = error
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def stop(self) -> None:
        """Stop the worker at its next result."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    def results(self) -> Iterator[R | None]:
        """Yield the results; yield None at intervals while the next one takes long."""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._results or self._ended, timeout=_POLL_S)
                result = self._results.popleft() if self._results else None
                over = result is None and self._ended
                self._changed.notify_all()
            if over:
                if self._error is not None:
                    raise self._error
                return
            yield result


class Calls(Protocol[T, R]):
    """Work on chunks of items in processes, as :class:`framedex.jobs.ingest.guarded_calls.GuardedCalls` does it."""

    def submit(self, items: list[T]) -> "Future[list[R]]": ...  # noqa: D102
    def after_loss(self, items: list[T], lost: ResultLost) -> list[R]: ...  # noqa: D102


def run_ahead(
    chunks: Iterator[list[T]],
    *,
    is_long: Callable[[T], bool],
    work: Callable[[list[T]], list[R]],
    long_work: Callable[[T, Stream[R]], None],
    threads: int,
    meanwhile: Callable[[], None],
    elsewhere: Calls[T, R] | None = None,
) -> Generator[R | None, None, None]:
    """Yield results in the order of the items, while threads work a limited number of chunks ahead.

    Args:
        chunks: the items; a long item is alone in its chunk.
        is_long: returns whether an item is long.
        work: returns the results of a chunk.
        long_work: puts the results of a long item into its stream.
        threads: number of chunks that are processed at the same time.
        meanwhile: called once, while the threads work on the first chunks.
        elsewhere: works on chunks in place of the threads, in processes; threads have long items alone then.

    Yields:
        Results; None at intervals while the next one takes long, so that the caller can check for a stop.
    """
    waiting: deque[tuple[Future[list[R]] | Stream[R], list[T]]] = deque()
    started: list[Future[list[R]] | Stream[R]] = []
    with (
        single_threaded_opencv(),
        single_threaded_blas(),  # its threads would wait for those that decode
        ThreadPoolExecutor(threads, thread_name_prefix="framedex-decode") as pool,
        ThreadPoolExecutor(STREAMS, thread_name_prefix="framedex-video") as streams,
    ):

        def hand_over() -> None:
            listed_s = 0.0
            while len(waiting) < 2 * threads + 2 and (not waiting or listed_s < _LISTED_S):
                begun_s = time.monotonic()
                chunk = next(chunks, None)
                listed_s += time.monotonic() - begun_s
                if chunk is None:
                    return
                if not is_long(chunk[0]):
                    waiting.append((pool.submit(work, chunk) if elsewhere is None else elsewhere.submit(chunk), chunk))
                    continue
                stream = Stream[R]()
                streams.submit(stream.run, lambda stream, item=chunk[0]: long_work(item, stream))  # type: ignore[misc]
                waiting.append((stream, chunk))

        try:
            hand_over()
            meanwhile()
            while waiting:
                job, its_chunk = waiting.popleft()
                started = [job]
                if isinstance(job, Stream):
                    yield from job.results()
                else:
                    yield from _results(job, its_chunk, elsewhere, pool)
                hand_over()
        finally:
            for each in (*started, *(job for job, _ in waiting)):
                if isinstance(each, Stream):
                    each.stop()
                else:
                    each.cancel()


def _results(
    job: "Future[list[R]]", chunk: list[T], elsewhere: Calls[T, R] | None, pool: ThreadPoolExecutor
) -> Iterator[R | None]:
    """Yield the results of a chunk; yield None at intervals while they take long."""
    yield from _until_done(job)
    lost = job.exception()
    if elsewhere is not None and isinstance(lost, ResultLost):
        job = pool.submit(elsewhere.after_loss, chunk, lost)
        yield from _until_done(job)
    yield from job.result()


def _until_done(chunk: Future[Any]) -> Iterator[None]:
    """Yield None at intervals until a chunk is done."""
    while not wait([chunk], timeout=_POLL_S).done:
        yield None


def in_chunks(items: Iterable[T], size: int, is_long: Callable[[T], bool]) -> Iterator[list[T]]:
    """Yield items in chunks; a long item is a chunk of its own."""
    chunk: list[T] = []
    for item in items:
        if is_long(item):
            if chunk:
                yield chunk
            yield [item]
            chunk = []
            continue
        chunk.append(item)
        if len(chunk) == size:
            yield chunk
            chunk = []
    if chunk:
        yield chunk
