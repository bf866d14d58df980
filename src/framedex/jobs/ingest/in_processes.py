"""Decoding of images in processes: where there are many of them, each processor gets an interpreter of its own.

What follows from the pixels of an image is computed in a process: its measures, its copy descriptors, the embedding of
the built-in encoder, and the input of a model. The results are some kilobytes an image, or the input of a model, and go
through a pipe: 16 images at a time, a few times a process ahead of what is written, so memory stays bounded. Workers of
a Ray cluster do the same; they read the files at their paths.
"""

import logging
import os
import tempfile
import threading
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import cv2

from framedex.encoders import Preparation
from framedex.errors import Unavailable
from framedex.executors import Executor, ProcessExecutor, ResultLost, open_executor
from framedex.jobs.ingest.decoding import Decoded, FileDecoder, Places
from framedex.media.decode import PartOfBudget
from framedex.media.frame_sampling import EVERY_SECOND
from framedex.media.remote import is_remote
from framedex.media.sources import Item
from framedex.settings import PROCESSES, THREADS, Settings, is_ray

_LOG = logging.getLogger(__name__)
_WORTH = 2000  # images that are left: with two processes, decoding half of them saves what their start takes
_KILLED = 9  # SIGKILL, which Windows lacks
_TRIED = 128  # images that were decoded before: files that are there already, or cannot be read, take no time
Decode = Callable[[list[Item]], list[Decoded]]


@dataclass(frozen=True)
class RemoteDecoder:
    """A decoder of images in another process, which is pickled without what it opens there.

    Attributes:
        places, preparation, settings, columns: see :class:`FileDecoder`.
        pixels: the process's share of the limit of decoded pixels.
        turn: a file, by its path or its name in the machine's folder for temporary files; images with more pixels are
            decoded one at a time over all processes that share it.
    """

    places: Places
    preparation: Preparation
    settings: Settings
    columns: tuple[str, ...]
    pixels: int
    turn: str

    def __call__(self, items: list[Item]) -> list[Decoded]:
        """Return the results of images."""
        return self._decoder.decode_images(items)

    @cached_property
    def _decoder(self) -> FileDecoder:
        cv2.setNumThreads(1)
        budget = PartOfBudget(self.pixels, Path(tempfile.gettempdir(), self.turn))
        return FileDecoder(
            self.places, self.preparation, self.settings, EVERY_SECOND, _has_no_frame, self.columns, budget
        )


def _has_no_frame(_item: Item, _number: int) -> bool:
    return False


@contextmanager
def decoding(decoder: FileDecoder, settings: Settings, remaining: Callable[[], float]) -> Iterator[tuple[Decode, int]]:
    """Yield a function that decodes images, and the number of threads that should call it.

    By default it decodes on those threads at first. Where many images are left, processes start meanwhile, and decode
    the others. So a small dataset does not wait for processes, and a large one does not wait for their start.

    Args:
        decoder: decodes images on threads.
        settings: choose the executor and its size.
        remaining: returns about how many images are left.
    """
    chosen = settings.executor
    reason = _not_in_processes(decoder)
    if reason and chosen not in (None, THREADS):
        where = "in processes" if chosen == PROCESSES else f"by the executor {chosen!r}"
        _LOG.warning("images are decoded on threads, not %s: %s", where, reason)
    if reason or chosen == THREADS or (chosen is None and settings.processes < 2):
        yield decoder.decode_images, settings.threads
        return
    with ExitStack() as stack:
        if is_ray(chosen):
            executor = stack.enter_context(open_executor(settings))
            turn = f"framedex-turn-{uuid.uuid4().hex}"  # on each machine
            stack.callback(Path(tempfile.gettempdir(), turn).unlink, missing_ok=True)
        else:
            executor = stack.enter_context(ProcessExecutor(settings.processes))
            turn = str(Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="framedex-")), "turn"))
        pixels = max(settings.pixels_in_flight // executor.workers, 1)
        remote = RemoteDecoder(decoder.places, decoder.preparation, settings, tuple(decoder.columns), pixels, turn)
        hybrid = _Hybrid(decoder, remote, executor, remaining if chosen is None else None)
        yield hybrid, max(executor.workers, 2)


def _not_in_processes(decoder: FileDecoder) -> str | None:
    """Return why images cannot be decoded in processes, or need not be; None if they can."""
    if os.name != "posix":
        return "this system starts processes in another way"
    if any(map(is_remote, decoder.places.roots)):
        return "objects in buckets mostly wait for the network"
    if not decoder.preparation.is_portable:
        return f"the encoder {decoder.preparation.name!r} has no `preparer`"
    return None


class _Hybrid:
    """Decoding on the calling threads, and in processes once these are worth their start.

    Args:
        decoder: decodes on the calling thread.
        remote: decodes in processes.
        processes: the processes, or other workers.
        remaining: returns about how many images are left, which may be worth the start of processes; None to wait for
            the processes.
    """

    def __init__(
        self,
        decoder: FileDecoder,
        remote: RemoteDecoder,
        processes: Executor,
        remaining: Callable[[], float] | None,
    ) -> None:
        self._decoder, self._remote, self._processes, self._remaining = decoder, remote, processes, remaining
        self._lock, self._decoded, self._has_failed = threading.Lock(), 0, False
        self._started: Future[None] | None = None

    def __call__(self, items: list[Item]) -> list[Decoded]:
        """Return the results of images.

        Raises:
            Unavailable: there are no processes, and they were to be waited for; or they are killed again and again.
        """
        with self._lock:
            if self._started is None and self._is_worth():
                self._started = self._processes.start()
            self._decoded += len(items)
        if self._started is None or (self._remaining is not None and not self._is_ready(self._started)):
            return self._decoder.decode_images(items)
        self._started.result()
        try:
            return self._processes.call(self._remote, items)
        except ResultLost as lost:
            return self._one_by_one(items, lost)

    def _is_worth(self) -> bool:
        if self._remaining is None:
            return True
        return not self._has_failed and self._decoded >= _TRIED and self._remaining() >= _WORTH

    def _is_ready(self, started: "Future[None]") -> bool:
        """Return whether processes can take images; if they cannot be started, threads go on."""
        if not started.done():
            return False
        if (error := started.exception()) is not None:
            self._has_failed, self._started = True, None
            _LOG.warning("images are decoded on threads, not in processes: %s", error)
            return False
        return True

    def _one_by_one(self, items: list[Item], lost: ResultLost) -> list[Decoded]:
        """Return the results of images of which one ends its process: that one is broken.

        Raises:
            Unavailable: the process was killed from outside, as where memory is short.
        """
        if lost.signal == _KILLED:
            raise Unavailable(f"{lost}; if memory is short, fewer processes need less (FRAMEDEX_PROCESSES)") from lost
        if len(items) > 1:
            return [each for item in items for each in self([item])]
        if not isinstance(self._processes, ProcessExecutor):
            return self._after_loss(items)
        return [self._decoder.broken(items[0], f"its decoding ended the process ({lost.how})")]

    def _after_loss(self, items: list[Item]) -> list[Decoded]:
        """Return the result of an image in a process of this machine, which tells how it ends; a cluster does not.

        Raises:
            Unavailable: the process was killed from outside.
        """
        with ProcessExecutor(1) as process:
            return _Hybrid(self._decoder, self._remote, process, None)(items)
