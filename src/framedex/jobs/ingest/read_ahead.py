"""Work on threads ahead of who uses it, in the order of the items, with bounded memory.

Items that take little are worked on in chunks, each to its end. What takes long and gives many results is a stream of
its own: its worker waits while many of them are not used yet. Both kinds have threads of their own and begin in the
order of the items, so that what is waited for is always worked on.
"""

import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, Generic, TypeVar

from framedex.errors import Aborted

T = TypeVar("T")
R = TypeVar("R")

_MOST = 64  # results of a stream that wait to be used
_LOOK_S = 0.5  # how long is waited for a result before the user may look at something else
STREAMS = 2
"""Streams that are worked on at a time: what is behind the first one waits mostly, as it may not get far ahead."""


class Stream(Generic[R]):
    """Results that a worker hands over one by one."""

    def __init__(self, most: int = _MOST) -> None:
        self._most, self._waiting = most, deque[R]()
        self._changed = threading.Condition()
        self._ended = self._unwanted = False
        self._error: BaseException | None = None

    def put(self, result: R) -> None:
        """Hand a result over; wait while many others are not used yet.

        Raises:
            Aborted: nobody wants it any more.
        """
        with self._changed:
            self._changed.wait_for(lambda: len(self._waiting) < self._most or self._unwanted)
            self.check()
            self._waiting.append(result)
            self._changed.notify_all()

    def check(self) -> None:
        """Raise Aborted if nobody wants further results."""
        if self._unwanted:
            raise Aborted("nobody wants the results any more")

    def run(self, work: Callable[["Stream[R]"], None]) -> None:
        """Let *work* hand its results over; what it raises is raised where they are used."""
        try:
            self.check()
            work(self)
        except BaseException as error:
            self._error = error
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def stop(self) -> None:
        """Want no further results."""
        with self._changed:
            self._unwanted = True
            self._changed.notify_all()

    def results(self) -> Iterator[R | None]:
        """Yield the results; None now and then while there is none."""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._ended, timeout=_LOOK_S)
                result = self._waiting.popleft() if self._waiting else None
                over = result is None and self._ended
                self._changed.notify_all()
            if over:
                if self._error is not None:
                    raise self._error
                return
            yield result


def ahead(
    chunks: Iterator[list[T]],
    *,
    is_long: Callable[[T], bool],
    work: Callable[[list[T]], list[R]],
    long_work: Callable[[T, Stream[R]], None],
    threads: int,
    meanwhile: Callable[[], None],
) -> Generator[R | None, None, None]:
    """Yield results in the order of the items, while threads work a few chunks ahead and no further.

    Args:
        chunks: the items; one that takes long is alone in its chunk.
        is_long: whether an item takes long.
        work: turns a chunk into results.
        long_work: hands the results of an item that takes long over to its stream.
        threads: how many chunks are worked on at a time.
        meanwhile: called once, while the threads work on the first chunks.

    Yields:
        Results; None now and then while the next one takes long, so that the caller can look whether to stop.
    """
    waiting: deque[Future[list[R]] | Stream[R]] = deque()
    begun: list[Stream[R]] = []
    with (
        ThreadPoolExecutor(threads, thread_name_prefix="framedex-decode") as pool,
        ThreadPoolExecutor(STREAMS, thread_name_prefix="framedex-video") as streams,
    ):

        def hand_over() -> None:
            while len(waiting) < 2 * threads + 2 and (chunk := next(chunks, None)) is not None:
                if not is_long(chunk[0]):
                    waiting.append(pool.submit(work, chunk))
                    continue
                stream = Stream[R]()
                streams.submit(stream.run, lambda stream, item=chunk[0]: long_work(item, stream))  # type: ignore[misc]
                waiting.append(stream)

        try:
            hand_over()
            meanwhile()
            while waiting:
                first = waiting.popleft()
                if isinstance(first, Stream):
                    begun = [first]
                    yield from first.results()
                else:
                    begun = []
                    yield from _until_done(first)
                    yield from first.result()
                hand_over()
        finally:
            for each in (*begun, *waiting):
                if isinstance(each, Stream):
                    each.stop()
                else:
                    each.cancel()


def _until_done(chunk: Future[Any]) -> Iterator[None]:
    """Yield None now and then while a chunk is worked on."""
    while not wait([chunk], timeout=_LOOK_S).done:
        yield None


def in_chunks(items: Iterable[T], size: int, is_long: Callable[[T], bool]) -> Iterator[list[T]]:
    """Yield items some at a time; those that take long alone."""
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
