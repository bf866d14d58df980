"""Matrix products of vectors and what is selected from them, on the CPU or on a GPU: the one place that knows which.

On the CPU a few threads work on blocks of their own, each with a single-threaded BLAS: selecting from the scores takes
as much memory traffic as multiplying, and so both run on all cores. On a GPU the scores never leave the device.
"""

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from framedex import forks
from framedex.arrays import Vectors

Columns = npt.NDArray[np.int64]
Survivors = tuple[npt.NDArray[np.integer], npt.NDArray[np.integer], Vectors]
"""(rows, columns, scores) of single entries of a matrix of scores."""

_MANY = 4  # times k: where more scores than that pass a limit, the k largest are selected instead
_In = TypeVar("_In")
_Out = TypeVar("_Out")


class Products(Protocol):
    """Scores, the dot products of two blocks of vectors, and selections from them.

    Attributes:
        name: for people: ``cpu``, or that of the device.
        workers: threads that may use it at a time.
    """

    name: str
    workers: int

    def largest(self, a: Vectors, b: Vectors, k: int, *, own: bool = False) -> tuple[Columns, Vectors]:
        """Return (columns, scores) of the k largest scores of each row of *a*, both of shape (A, k), descending.

        Args:
            a: float32, shape (A, D).
            b: float32, shape (B, D), B > k - or ≥ k without *own*.
            k: how many.
            own: *a* and *b* are the same rows, and a row is not compared with itself.
        """

    def above(self, a: Vectors, b: Vectors, least: Vectors, k: int, *, back: Vectors | None = None) -> list[Survivors]:
        """Return the scores above a limit for each row of *a*, or its k largest where many are; in no order.

        Args:
            a: float32, shape (A, D).
            b: float32, shape (B, D).
            least: float32, shape (A,): the limits.
            k: of more than a few times k scores only the k largest of each row come back.
            back: float32, shape (B,): limits for the rows of *b*; then the second item are (rows of b, rows of a,
                scores).
        """

    def near(self, a: Vectors, b: Vectors, reach: float) -> tuple[Columns, Columns, Columns]:
        """Return the best column of each row of *a*, and (rows, columns) of the others that are almost as good.

        Args:
            a: float32, shape (A, D).
            b: float32, shape (B, D).
            reach: how much less a score may be than the row's best.
        """


class CpuProducts:
    """NumPy.

    Args:
        workers: threads; by default one for each processor that this process may use.
    """

    name = "cpu"

    def __init__(self, workers: int | None = None) -> None:
        affinity = getattr(os, "sched_getaffinity", None)
        self.workers: int = workers or (len(affinity(0)) if affinity else os.cpu_count() or 1)

    def near(self, a: Vectors, b: Vectors, reach: float) -> tuple[Columns, Columns, Columns]:
        """See :class:`Products`."""
        scores = a @ b.T
        own = scores.argmax(axis=1)
        rows = np.arange(len(scores))
        near = scores >= (scores[rows, own] - np.float32(reach))[:, None]
        near[rows, own] = False
        row, column = np.nonzero(near)
        return own, row, column

    def largest(self, a: Vectors, b: Vectors, k: int, *, own: bool = False) -> tuple[Columns, Vectors]:
        """See :class:`Products`."""
        scores = a @ b.T
        if own:
            np.fill_diagonal(scores, -np.inf)
        return largest(scores, k)

    def above(self, a: Vectors, b: Vectors, least: Vectors, k: int, *, back: Vectors | None = None) -> list[Survivors]:
        """See :class:`Products`."""
        scores = a @ b.T
        found = [_above(scores, least, k)]
        if back is not None:
            found.append(_above(scores.T, back, k, mask=(scores > back).T))
        return found


def largest(scores: Vectors, k: int) -> tuple[Columns, Vectors]:
    """Return (columns, values) of the k largest scores of each row, descending; ties in column order."""
    if k < scores.shape[1]:
        columns = np.argpartition(scores, -k, axis=1)[:, scores.shape[1] - k :]
        columns.sort(axis=1)
    else:
        columns = np.broadcast_to(np.arange(scores.shape[1]), scores.shape).copy()
    values = np.take_along_axis(scores, columns, axis=1)
    order = np.argsort(-values, axis=1, kind="stable")
    return np.take_along_axis(columns, order, axis=1), np.take_along_axis(values, order, axis=1)


def _above(scores: Vectors, least: Vectors, k: int, *, mask: npt.NDArray[np.bool_] | None = None) -> Survivors:
    mask = scores > least[:, None] if mask is None else mask
    if np.count_nonzero(mask) > _MANY * k * len(scores) and k < scores.shape[1]:
        columns, values = largest(scores, k)
        row, place = np.nonzero(values > least[:, None])
        return row, columns[row, place], values[row, place]
    row, column = np.nonzero(mask)
    return row, column, scores[row, column]


class TorchProducts:
    """PyTorch on a device, usually ``cuda``.

    Args:
        device: as PyTorch names it.
    """

    workers = 1

    def __init__(self, device: str) -> None:
        import torch

        self._torch: Any = torch
        self._device = torch.device(device)
        self.name = device

    def _scores(self, a: Vectors, b: Vectors) -> Any:
        return self._moved(a) @ self._moved(b).T

    def _moved(self, values: Vectors) -> Any:
        # PyTorch warns of memory that it may not write to, such as that of a mapped file.
        return self._torch.from_numpy(np.require(values, requirements=["C", "W"])).to(self._device)

    def largest(self, a: Vectors, b: Vectors, k: int, *, own: bool = False) -> tuple[Columns, Vectors]:
        """See :class:`Products`."""
        scores = self._scores(a, b)
        if own:
            scores.fill_diagonal_(-np.inf)
        values, columns = scores.topk(k, dim=1)
        return columns.cpu().numpy(), values.cpu().numpy()

    def above(self, a: Vectors, b: Vectors, least: Vectors, k: int, *, back: Vectors | None = None) -> list[Survivors]:
        """See :class:`Products`."""
        scores = self._scores(a, b)
        found = [self._above(scores, least, k)]
        if back is not None:
            found.append(self._above(scores.T, back, k))
        return found

    def near(self, a: Vectors, b: Vectors, reach: float) -> tuple[Columns, Columns, Columns]:
        """See :class:`Products`."""
        scores = self._scores(a, b)
        best, own = scores.max(dim=1)
        near = scores >= (best - reach)[:, None]
        near.scatter_(1, own[:, None], False)
        row, column = near.nonzero(as_tuple=True)
        return own.cpu().numpy(), row.cpu().numpy(), column.cpu().numpy()

    def _above(self, scores: Any, least: Vectors, k: int) -> Survivors:
        limit = self._moved(least)[:, None]
        mask = scores > limit
        if int(mask.sum()) > _MANY * k * len(scores) and k < scores.shape[1]:
            values, columns = scores.topk(k, dim=1)
            row, place = (values > limit).nonzero(as_tuple=True)
            column, value = columns[row, place], values[row, place]
        else:
            row, column = mask.nonzero(as_tuple=True)
            value = scores[row, column]
        return row.cpu().numpy(), column.cpu().numpy(), value.cpu().numpy()


def best_products() -> Products:
    """Return the GPU's products where PyTorch and a CUDA device are there, else the CPU's.

    PyTorch's float32 products on CUDA are full float32 ones by default, not TF32. It is not even loaded where Linux
    shows no device of a driver.
    """
    devices = ("/dev/nvidiactl", "/dev/kfd", "/dev/dxg")  # NVIDIA, AMD, Windows' own under WSL
    possible = sys.platform != "linux" or any(os.path.exists(each) for each in devices)  # noqa: PTH110
    if possible and find_spec("torch") is not None:
        import torch

        if torch.cuda.is_available():
            return TorchProducts("cuda")
    return CpuProducts()


_limits: list[Any] = []
_limiting = forks.Lock()
_users = 0


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Let BLAS use one thread for each caller, in the whole process, while the block runs; blocks may overlap."""
    global _users  # noqa: PLW0603 - BLAS itself is the global that is guarded
    from threadpoolctl import threadpool_limits

    with _limiting:
        if _users == 0:
            _limits.append(threadpool_limits(1, user_api="blas"))
        _users += 1
    try:
        yield
    finally:
        with _limiting:
            _users -= 1
            if _users == 0:
                _limits.pop().restore_original_limits()


def run_all(
    engine: Products, work: Callable[[_In], _Out], items: Iterable[_In], *, after: Callable[[int, _Out], None]
) -> None:
    """Do *work* for each item on the engine's threads, and give (place, result) to *after* on this one, in order.

    A few results are held at a time. What *after* raises ends the work. An item is drawn when its work is handed out,
    which is after the same number of results in every run, whatever the threads' timing.
    """
    if engine.workers == 1:
        for place, item in enumerate(items):
            after(place, work(item))
        return
    waiting: list[Any] = []
    with single_threaded_blas(), ThreadPoolExecutor(engine.workers, thread_name_prefix="framedex-index") as pool:
        try:
            place = 0
            for item in items:
                waiting.append(pool.submit(work, item))
                if len(waiting) > 2 * engine.workers:
                    after(place, waiting.pop(0).result())
                    place += 1
            while waiting:
                after(place, waiting.pop(0).result())
                place += 1
        finally:
            for future in waiting:
                future.cancel()
