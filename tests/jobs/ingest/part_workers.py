"""Workers of parts to which something happens; other processes find them here.

They note what happened in files beside the folder of the images.
"""

import os
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import pytest

from framedex.errors import Aborted
from framedex.jobs.ingest import parts
from framedex.jobs.ingest.decoding import Decoded
from framedex.jobs.ingest.in_processes import RemoteDecoder
from framedex.jobs.ingest.parts import RemoteWriter
from framedex.media.sources import Item
from tests.pauses import wait_until


def beside(decoder: RemoteDecoder, name: str) -> Path:
    """Return the path of a file beside the folder of the images."""
    return Path(decoder.places.roots[0]).parent / name


@contextmanager
def working(
    *, decoder: type[RemoteDecoder] = RemoteDecoder, writer: type[RemoteWriter] = RemoteWriter
) -> Iterator[None]:
    """Let parts be decoded and written by other workers, in a block or in a test."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parts, "RemoteDecoder", decoder)
        patch.setattr(parts, "RemoteWriter", writer)
        yield


def abort(*_arguments: Any) -> NoReturn:
    """Stop a run, in its own process."""
    raise Aborted("aborted on request")


class EndingDecoder(RemoteDecoder):
    """A decoder whose process crashes at images whose names say so."""

    def __call__(self, items: list[Item]) -> list[Decoded]:
        """Return the results of images, unless the process ends."""
        if any("crash" in each.path for each in items):
            os.kill(os.getpid(), signal.SIGSEGV)
        return super().__call__(items)


class KilledDecoder(RemoteDecoder):
    """A decoder whose process is killed, as where memory is short."""

    def __call__(self, items: list[Item]) -> list[Decoded]:
        """End the process."""
        os.kill(os.getpid(), signal.SIGKILL)
        return super().__call__(items)


class WaitingDecoder(RemoteDecoder):
    """A decoder that says that it has begun, and waits for a file that lets it go on."""

    def __call__(self, items: list[Item]) -> list[Decoded]:
        """Return the results of images."""
        beside(self, f"begun-{os.getpid()}").touch()
        wait_until(beside(self, "go").exists)
        return super().__call__(items)


class OnceKilledWriter(RemoteWriter):
    """A writer whose process is killed once, after it has written a part."""

    def __call__(self, items: list[Item]) -> Any:
        """Return the fragment, the second time."""
        written = super().__call__(items)
        killed = beside(self.decode, "killed")
        if not killed.exists():
            killed.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return written


class ElsewhereWriter(RemoteWriter):
    """A writer on another machine that has a copy of the workspace at the same path."""

    def __call__(self, items: list[Item]) -> Any:
        """Write the part into the copy."""
        copy = beside(self.decode, f"elsewhere-{os.getpid()}")
        if not copy.exists():
            shutil.copytree(self.target.path, copy)
        return RemoteWriter(self.decode, replace(self.target, path=copy), self.version)(items)


class StrangerWriter(RemoteWriter):
    """A writer on another machine that has no such folder."""

    def __call__(self, items: list[Item]) -> Any:
        """Write nothing."""
        nowhere = beside(self.decode, "nowhere")
        return RemoteWriter(self.decode, replace(self.target, path=nowhere), self.version)(items)
