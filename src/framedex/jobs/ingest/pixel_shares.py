"""The limit of decoded pixels where workers of an executor share it."""

import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from framedex.executors import Executor, ProcessExecutor
from framedex.media.budget import PartOfBudget
from framedex.settings import Settings


@dataclass(frozen=True)
class PixelShare:
    """One worker's share of the limit of decoded pixels, which can be pickled.

    Attributes:
        pixels: the number of pixels.
        turn: a file, by its path or its name in the machine's folder for temporary files; images with more pixels are
            decoded one at a time over all workers of a machine.
    """

    pixels: int
    turn: str

    def budget(self) -> PartOfBudget:
        """Return the budget of this process."""
        return PartOfBudget(self.pixels, Path(tempfile.gettempdir(), self.turn))


@contextmanager
def shared_pixels(settings: Settings, executor: Executor) -> Iterator[PixelShare]:
    """Yield the share of each worker of an executor.

    Args:
        settings: have the limit.
        executor: the executor; its workers are processes, maybe of other machines.
    """
    pixels = max(settings.pixels_in_flight // executor.workers, 1)
    if isinstance(executor, ProcessExecutor):
        with tempfile.TemporaryDirectory(prefix="framedex-") as folder:
            yield PixelShare(pixels, str(Path(folder, "turn")))
        return
    turn = f"framedex-turn-{uuid.uuid4().hex}"  # on each machine
    try:
        yield PixelShare(pixels, turn)
    finally:
        Path(tempfile.gettempdir(), turn).unlink(missing_ok=True)
