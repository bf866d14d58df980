"""Decoding of images in processes: where there are many of them, each processor gets an interpreter of its own.

What follows from the pixels of an image is computed in a process: its measures, its copy descriptors, the embedding of
the built-in encoder, and the input of a model. The results are some kilobytes an image, or the input of a model, and go
through a pipe: 16 images at a time, a few times a process ahead of what is written, so memory stays bounded. Workers of
a Ray cluster do the same; they read the files at their paths.
"""

import logging
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property

import cv2

from framedex.encoders import Preparation, is_loaded_by_name
from framedex.executors import Executor, ProcessExecutor, open_executor
from framedex.jobs.ingest.decoding import Decoded, FileDecoder, Places
from framedex.jobs.ingest.guarded_calls import GuardedCalls
from framedex.jobs.ingest.pixel_shares import PixelShare, shared_pixels
from framedex.media.display_range import Range
from framedex.media.frame_sampling import EVERY_SECOND
from framedex.media.remote import is_remote
from framedex.media.sources import Item
from framedex.settings import PROCESSES, THREADS, Settings, is_ray

_LOG = logging.getLogger(__name__)
_WORTH = 2000  # images that are left: with two processes, decoding half of them saves what their start takes
CHUNK = 16  # images that are decoded by one call: enough to make its cost negligible
_TRIED = 128  # images that were decoded before: files that are there already, or cannot be read, take no time
Decode = Callable[[list[Item]], list[Decoded]]


@dataclass(frozen=True)
class RemoteDecoder:
    """A decoder of images in another process, which is pickled without what it opens there.

    Attributes:
        places, preparation, settings, columns, display_range: see :class:`FileDecoder`.
        share: the process's share of the limit of decoded pixels.
    """

    places: Places
    preparation: Preparation
    settings: Settings
    columns: tuple[str, ...]
    display_range: Range | None
    share: PixelShare

    @classmethod
    def of(cls, decoder: FileDecoder, share: PixelShare) -> "RemoteDecoder":
        """Return what decodes in other processes as a decoder does in this one."""
        columns = tuple(decoder.columns)
        return cls(decoder.places, decoder.preparation, decoder.settings, columns, decoder.display_range, share)

    def __call__(self, items: list[Item]) -> list[Decoded]:
        """Return the results of images."""
        return self._decoder.decode_images(items)

    @cached_property
    def _decoder(self) -> FileDecoder:
        cv2.setNumThreads(1)
        return FileDecoder(
            self.places,
            self.preparation,
            self.settings,
            EVERY_SECOND,
            _has_no_frame,
            self.columns,
            self.share.budget(),
            self.display_range,
        )


def _has_no_frame(_item: Item, _number: int) -> bool:
    return False


@contextmanager
def cluster_of(decoder: FileDecoder, encoder: str, settings: Settings) -> Iterator[Executor | None]:
    """Yield the cluster that the settings name; None without one, or if it can neither decode nor encode.

    Args:
        decoder: decodes images on threads.
        encoder: the encoder's name.
        settings: name the executor.
    """
    is_of_use = not_in_processes(decoder) is None or is_loaded_by_name(encoder)
    if os.name != "posix" or not is_ray(settings.executor) or not is_of_use:
        yield None
        return
    with open_executor(settings) as executor:
        yield executor


@contextmanager
def decoding(
    decoder: FileDecoder, settings: Settings, remaining: Callable[[], float], cluster: Executor | None = None
) -> Iterator[tuple[Decode, int]]:
    """Yield a function that decodes images, and the number of threads that should call it.

    By default it decodes on those threads at first. Where many images are left, processes start meanwhile, and decode
    the others. So a small dataset does not wait for processes, and a large one does not wait for their start.

    Args:
        decoder: decodes images on threads.
        settings: choose the executor and its size.
        remaining: returns about how many images are left.
        cluster: that of the settings, by :func:`cluster_of`.
    """
    chosen = settings.executor
    reason = not_in_processes(decoder)
    if reason and chosen not in (None, THREADS):
        where = "in processes" if chosen == PROCESSES else f"by the executor {chosen!r}"
        _LOG.warning("images are decoded on threads, not %s: %s", where, reason)
    if reason or chosen == THREADS or (chosen is None and settings.processes < 2):
        yield decoder.decode_images, settings.threads
        return
    with ExitStack() as stack:
        executor = cluster or stack.enter_context(ProcessExecutor(settings.processes, modules=[__name__]))
        share = stack.enter_context(shared_pixels(settings, executor))
        calls = GuardedCalls(executor, RemoteDecoder.of(decoder, share), decoder.broken)
        start = LateStart(executor, remaining if chosen is None else None)
        yield _Hybrid(decoder, calls, start), max(executor.workers, 2)


def not_in_processes(decoder: FileDecoder) -> str | None:
    """Return why images cannot be decoded in processes, or need not be; None if they can."""
    if os.name != "posix":
        return "this system starts processes in another way"
    if any(map(is_remote, decoder.places.roots)):
        return "objects in buckets mostly wait for the network"
    if not decoder.preparation.is_portable:
        return f"the encoder {decoder.preparation.name!r} has no `preparer`"
    return None


class LateStart:
    """The start of workers once they are worth it; used by several threads at once.

    Args:
        executor: has the workers.
        remaining: returns about how many images are left, which may be worth the start; None to wait for the workers.
    """

    def __init__(self, executor: Executor, remaining: Callable[[], float] | None) -> None:
        self._executor, self._remaining = executor, remaining
        self._lock, self._decoded, self._has_failed = threading.Lock(), 0, False
        self._started: Future[None] | None = None

    def is_ready(self, count: int) -> bool:
        """Return whether workers can take images; if they cannot be started, this process goes on.

        Args:
            count: the number of images that are decoded next, by the workers or by this process.

        Raises:
            Unavailable: there are no workers, and they were to be waited for.
        """
        with self._lock:
            if self._started is None and self._is_worth():
                self._started = self._executor.start()
            self._decoded += count
            started = self._started
        if started is None or (self._remaining is not None and not started.done()):
            return False
        error = started.exception()
        if error is None:
            return True
        if self._remaining is None:
            raise error
        with self._lock:
            if not self._has_failed:
                _LOG.warning("images are decoded on threads, not in processes: %s", error)
            self._has_failed, self._started = True, None
        return False

    def _is_worth(self) -> bool:
        if self._remaining is None:
            return True
        return not self._has_failed and self._decoded >= _TRIED and self._remaining() >= _WORTH


class _Hybrid:
    """Decoding on the calling threads, and in processes once these are worth their start.

    Args:
        decoder: decodes on the calling thread.
        calls: decode in processes, or other workers.
        start: starts these.
    """

    def __init__(self, decoder: FileDecoder, calls: GuardedCalls[Item, Decoded], start: LateStart) -> None:
        self._decoder, self._calls, self._start = decoder, calls, start

    def __call__(self, items: list[Item]) -> list[Decoded]:
        """Return the results of images.

        Raises:
            Unavailable: there are no processes, and they were to be waited for; or they are killed again and again.
        """
        return self._calls.call(items) if self._start.is_ready(len(items)) else self._decoder.decode_images(items)
