"""Matrix products of vectors and selections from the scores, on the CPU or on a GPU.

On the CPU, threads work on separate blocks, each with a single-threaded BLAS: selecting from the scores takes as much
memory traffic as multiplying, so both run on all cores. On a GPU the scores never leave the device.
"""

import os
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from framedex.core.arrays import Vectors
from framedex.core.blas_threads import single_threaded_blas
from framedex.core.gpus import may_have_gpu
from framedex.core.masks import true_places

Columns = npt.NDArray[np.int64]
Survivors = tuple[npt.NDArray[np.integer], npt.NDArray[np.integer], Vectors]
"""(rows, columns, scores) of single entries of a matrix of scores."""

_TIMED_ROWS = 1024
_TRIES = 10
_MAX_SURVIVORS = 4  # times k per row: if more scores exceed the limits, only the k largest are selected
_In = TypeVar("_In")
_Out = TypeVar("_Out")


class Products(Protocol):
    """Products of two blocks of vectors: the scores, and selections from them.

    Attributes:
        name: ``cpu`` or the name of the device, for display.
        workers: the number of threads that may use it concurrently.
    """

    name: str
    workers: int

    def largest(self, a: Vectors, b: Vectors, k: int, *, own: bool = False) -> tuple[Columns, Vectors]:
        """Return (columns, scores) of the k largest scores of each row of *a*, both of shape (A, k), descending.

        Args:
            a: float32, shape (A, D).
            b: float32, shape (B, D), B > k - or ≥ k without *own*.
            k: the number of scores per row.
            own: *a* and *b* are the same rows; a row is not compared with itself.
        """

    def above(
        self, a: Vectors, b: Vectors, limits: Vectors, k: int, *, reverse_limits: Vectors | None = None
    ) -> list[Survivors]:
        """Return the scores above the limit of each row of *a*, or the k largest if there are many; unordered.

        Args:
            a: float32, shape (A, D).
            b: float32, shape (B, D).
            limits: float32, shape (A,): a limit for each row of *a*.
            k: if more than a few times k scores per row exceed the limits, only the k largest per row are returned.
            reverse_limits: float32, shape (B,): limits for the rows of *b*; adds a second item (rows of b, rows of a,
                scores) to the result.
        """

    def near(
        self, a: Vectors, b: Vectors, reach: float | Vectors, *, beyond: float | None = None
    ) -> tuple[Columns, Columns, Columns]:
        """Return the best column of each row of *a*, and (rows, columns) of others with almost the same score.

        Args:
            a: float32, shape (A, D).
            b: float32, shape (B, D).
            reach: the maximum difference to the row's best score; float32, shape (A,), if each row has its own.
            beyond: columns up to this difference are left out.
        """


class CpuProducts:
    """Products by NumPy, on the CPU.

    Args:
        workers: the number of threads; by default the number of processors that this process may use.
    """

    name = "cpu"

    def __init__(self, workers: int | None = None) -> None:
        affinity = getattr(os, "sched_getaffinity", None)
        self.workers: int = workers or (len(affinity(0)) if affinity else os.cpu_count() or 1)

    def near(
        self, a: Vectors, b: Vectors, reach: float | Vectors, *, beyond: float | None = None
    ) -> tuple[Columns, Columns, Columns]:
        """See :class:`Products`."""
        return near_best(a @ b.T, reach, beyond)

    def largest(self, a: Vectors, b: Vectors, k: int, *, own: bool = False) -> tuple[Columns, Vectors]:
        """See :class:`Products`."""
        scores = a @ b.T
        if own:
            np.fill_diagonal(scores, -np.inf)
        return largest(scores, k)

    def above(
        self, a: Vectors, b: Vectors, limits: Vectors, k: int, *, reverse_limits: Vectors | None = None
    ) -> list[Survivors]:
        """See :class:`Products`."""
        scores = a @ b.T
        survivors = [_above(scores, limits, k)]
        if reverse_limits is not None:
            survivors.append(_above(scores.T, reverse_limits, k, mask=(scores > reverse_limits).T))
        return survivors


def near_best(scores: Vectors, reach: float | Vectors, beyond: float | None) -> tuple[Columns, Columns, Columns]:
    """Return the columns of :meth:`Products.near` from the scores."""
    own = scores.argmax(axis=1)
    rows = np.arange(len(scores))
    best = scores[rows, own]
    near = scores >= (best - np.asarray(reach, dtype=np.float32))[:, None]
    if beyond is not None:
        near &= scores < (best - np.float32(beyond))[:, None]
    near[rows, own] = False
    row, column = true_places(near)
    return own, row, column


def largest(scores: Vectors, k: int) -> tuple[Columns, Vectors]:
    """Return (columns, values) of the k largest scores of each row, descending; ties in column order."""
    if k == 1:
        columns = scores.argmax(axis=1)[:, None]
        return columns, np.take_along_axis(scores, columns, axis=1)
    if k < scores.shape[1]:
        columns = np.argpartition(scores, -k, axis=1)[:, scores.shape[1] - k :]
        columns.sort(axis=1)
    else:
        columns = np.broadcast_to(np.arange(scores.shape[1]), scores.shape).copy()
    values = np.take_along_axis(scores, columns, axis=1)
    order = np.argsort(-values, axis=1, kind="stable")
    return np.take_along_axis(columns, order, axis=1), np.take_along_axis(values, order, axis=1)


def _above(scores: Vectors, limits: Vectors, k: int, *, mask: npt.NDArray[np.bool_] | None = None) -> Survivors:
    mask = scores > limits[:, None] if mask is None else mask
    if np.count_nonzero(mask) > _MAX_SURVIVORS * k * len(scores) and k < scores.shape[1]:
        columns, values = largest(scores, k)
        row, column_index = true_places(values > limits[:, None])
        return row, columns[row, column_index], values[row, column_index]
    row, column = true_places(mask)
    return row, column, scores[row, column]


class TorchProducts:
    """Products by PyTorch, on a device such as ``cuda``.

    Args:
        device: the device's name in PyTorch.
    """

    workers = 1

    def __init__(self, device: str) -> None:
        import torch

        self._torch: Any = torch
        self._device = torch.device(device)
        self.name = device

    def _scores(self, a: Vectors, b: Vectors) -> Any:
        return self._to_device(a) @ self._to_device(b).T

    def _to_device(self, values: Vectors) -> Any:
        # PyTorch warns about read-only memory, such as that of a mapped file.
        return self._torch.from_numpy(np.require(values, requirements=["C", "W"])).to(self._device)

    def largest(self, a: Vectors, b: Vectors, k: int, *, own: bool = False) -> tuple[Columns, Vectors]:
        """See :class:`Products`."""
        scores = self._scores(a, b)
        if own:
            scores.fill_diagonal_(-np.inf)
        values, columns = scores.topk(k, dim=1)
        return columns.cpu().numpy(), values.cpu().numpy()

    def above(
        self, a: Vectors, b: Vectors, limits: Vectors, k: int, *, reverse_limits: Vectors | None = None
    ) -> list[Survivors]:
        """See :class:`Products`."""
        scores = self._scores(a, b)
        survivors = [self._above(scores, limits, k)]
        if reverse_limits is not None:
            survivors.append(self._above(scores.T, reverse_limits, k))
        return survivors

    def near(
        self, a: Vectors, b: Vectors, reach: float | Vectors, *, beyond: float | None = None
    ) -> tuple[Columns, Columns, Columns]:
        """See :class:`Products`."""
        scores = self._scores(a, b)
        best, own = scores.max(dim=1)
        near = scores >= (best - self._to_device(np.asarray(reach, dtype=np.float32)))[:, None]
        if beyond is not None:
            near &= scores < (best - beyond)[:, None]
        near.scatter_(1, own[:, None], False)
        row, column = near.nonzero(as_tuple=True)
        return own.cpu().numpy(), row.cpu().numpy(), column.cpu().numpy()

    def _above(self, scores: Any, limits: Vectors, k: int) -> Survivors:
        limit = self._to_device(limits)[:, None]
        mask = scores > limit
        if int(mask.sum()) > _MAX_SURVIVORS * k * len(scores) and k < scores.shape[1]:
            values, columns = scores.topk(k, dim=1)
            row, column_index = (values > limit).nonzero(as_tuple=True)
            column, value = columns[row, column_index], values[row, column_index]
        else:
            row, column = mask.nonzero(as_tuple=True)
            value = scores[row, column]
        return row.cpu().numpy(), column.cpu().numpy(), value.cpu().numpy()


def best_products() -> Products:
    """Return products on the GPU if PyTorch and a CUDA device are available, else on the CPU.

    PyTorch's float32 products on CUDA use full float32 precision by default, not TF32. PyTorch is not loaded if Linux
    has no device file of a GPU driver.
    """
    if may_have_gpu() and find_spec("torch") is not None:
        import torch

        if torch.cuda.is_available():
            return TorchProducts("cuda")
    return CpuProducts()


def multiply_adds_a_second(engine: Products, dimension: int) -> float:
    """Return about how many multiply-adds a second matrix products have, on all threads of an engine.

    The fastest of some tries counts: the first one starts the threads, and what else runs now may be over soon.
    """
    block = np.ones((_TIMED_ROWS, dimension), dtype=np.float32)
    limits = np.full(_TIMED_ROWS, np.inf, dtype=np.float32)
    items, seconds = range(2 * engine.workers), []
    for _ in range(_TRIES):
        started = time.perf_counter()
        run_all(engine, lambda _item: engine.above(block, block, limits, 1), items, after=lambda _place, _result: None)
        seconds.append(time.perf_counter() - started)
    return float(len(items) * _TIMED_ROWS**2 * dimension / min(seconds))


def run_all(
    engine: Products, work: Callable[[_In], _Out], items: Iterable[_In], *, after: Callable[[int, _Out], None]
) -> None:
    """Run *work* for each item on the engine's threads, and call *after* with (position, result) on this one, in order.

    Only a few results are in memory at a time. An exception of *after* ends the work. An item is taken from *items*
    after the same number of results in every run, independent of the threads' timing.
    """
    if engine.workers == 1:
        for position, item in enumerate(items):
            after(position, work(item))
        return
    waiting: list[Any] = []
    with single_threaded_blas(), ThreadPoolExecutor(engine.workers, thread_name_prefix="framedex-index") as pool:
        try:
            position = 0
            for item in items:
                waiting.append(pool.submit(work, item))
                if len(waiting) > 2 * engine.workers:
                    after(position, waiting.pop(0).result())
                    position += 1
            while waiting:
                after(position, waiting.pop(0).result())
                position += 1
        finally:
            for future in waiting:
                future.cancel()
