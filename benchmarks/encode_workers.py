"""What one process measures of one model: the bare model on prepared tensors, and whole datasets, in turn."""

import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

AHEAD = ("reading", "decoding", "quality measures", "preparing")
"""What threads do ahead of the model: seconds of processor time, of all threads together."""
IN_TURN = ("waiting for images", "the model", "writing", "indexing")
"""What is done one after the other, on the task's thread: seconds that passed."""
_END = object()


def measure(model: str, source: Path, rounds: int) -> dict[str, Any]:
    """Return what a model's rounds took, in seconds, and what else is to be known of it.

    Args:
        model: name of an encoder.
        source: folder of the images.
        rounds: how often the bare model and a dataset are measured, one after the other, behind one that warms up.
    """
    from framedex.encoders import choose_encoder
    from framedex.jobs.ingest.ingest import batch_of

    encoder, _ = choose_encoder(model)
    prepared = _prepared(encoder, source)
    batch = batch_of(encoder)
    bare = (_bare_torch if model.startswith("open_clip:") else _bare_onnx)(encoder, prepared, batch)
    found: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="bench-encode-") as work:
        for place in range(rounds + 1):
            begun = time.process_time()
            seconds, bare_cpu = _on_a_thread(bare), time.process_time() - begun
            made = _dataset(encoder, source, Path(work) / str(place))
            cpu = time.process_time() - begun - bare_cpu
            found.append({"bare": seconds, "bare cpu": bare_cpu, "cpu": cpu, **made})
    return {"model": model, "images": len(prepared), "batch": batch, "rounds": found[1:], "gpu": _gpu()}


def _on_a_thread(run: Callable[[], None]) -> float:
    """Return the seconds of a function that runs on a thread of its own, as tasks do: memory is given out otherwise."""
    start = time.perf_counter()
    with ThreadPoolExecutor(1) as pool:
        pool.submit(run).result()
    return time.perf_counter() - start


def _prepared(encoder: Any, source: Path) -> Any:
    """Return the encoder's inputs for all images: uint8, shape (N, height, width, 3)."""
    from framedex.encoders import decode_side_px
    from framedex.media.decode import decode

    detail = decode_side_px(encoder)
    found = (decode(path.read_bytes(), max_pixels=10**9, detail=detail) for path in sorted(source.iterdir()))
    return np.stack([encoder.prepare(each.pixels) for each in found])


def _bare_torch(encoder: Any, prepared: Any, batch: int) -> Callable[[], None]:
    """Return what calls the engine on tensors as the model takes them, on its device, and waits for it."""
    import torch

    device, model, (mean, scale) = encoder._device, encoder._model, encoder._normalisation
    tensors = [
        ((part.to(device.name).permute(0, 3, 1, 2).float() - mean) * scale).to(getattr(torch, device.precision))
        for part in torch.from_numpy(prepared).split(batch)
    ]

    def run() -> None:
        with torch.inference_mode(), device.autocast():
            for each in tensors:
                model.encode_image(each).cpu()

    return run


def _bare_onnx(encoder: Any, prepared: Any, batch: int) -> Callable[[], None]:
    """Return what calls the engine on arrays as the model takes them, on a thread for each processor."""
    from framedex.settings import available_cpus

    pool = ThreadPoolExecutor(available_cpus())
    arrays = [np.ascontiguousarray(encoder._input(each)) for each in prepared]

    def run() -> None:
        for at in range(0, len(arrays), batch):
            list(pool.map(encoder._model.run, arrays[at : at + batch]))

    return run


def _dataset(encoder: Any, source: Path, folder: Path) -> dict[str, Any]:
    """Make a dataset; return its seconds, and those of its parts."""
    import framedex
    from framedex.jobs import create
    from framedex.jobs.ingest import decoding, ingest
    from framedex.media.files import Reader

    parts = _Parts()
    with framedex.Workspace(folder) as workspace, ExitStack() as patches:
        for owner, name, part, clock in (
            (Reader, "read", "reading", time.thread_time),
            (decoding, "decode", "decoding", time.thread_time),
            (decoding, "measure_images", "quality measures", time.thread_time),
            (encoder, "prepare", "preparing", time.thread_time),
            (encoder, "encode_images", "the model", time.perf_counter),
            (ingest._Writer, "flush", "writing", time.perf_counter),
            (create, "index", "indexing", time.perf_counter),
        ):
            patches.enter_context(mock.patch.object(owner, name, parts.timed(getattr(owner, name), part, clock)))
        patches.enter_context(mock.patch.object(ingest, "run_ahead", parts.waited(ingest.run_ahead)))
        start = time.perf_counter()
        dataset = workspace.create_dataset("photos", source, encoder)
        seconds = time.perf_counter() - start
        assert dataset.count() == sum(1 for _ in source.iterdir())
    return {"seconds": seconds, "parts": parts.seconds}


class _Parts:
    """Seconds by part of the work, as several threads note them: without a lock, which would take longer than they."""

    def __init__(self) -> None:
        self._noted: dict[str, list[float]] = {part: [] for part in (*IN_TURN, *AHEAD)}

    @property
    def seconds(self) -> dict[str, float]:
        """Sums by part."""
        return {part: sum(noted) for part, noted in self._noted.items()}

    def timed(self, function: Callable[..., Any], part: str, clock: Callable[[], float]) -> Callable[..., Any]:
        """Return a function that does the same, and counts."""
        note = self._noted[part].append

        def counted(*args: Any, **options: Any) -> Any:
            start = clock()
            found = function(*args, **options)
            note(clock() - start)
            return found

        return counted

    def waited(self, ahead: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function whose iterator yields the same, and counts how long is waited for results."""

        def counted(*args: Any, **options: Any) -> Any:
            with closing(ahead(*args, **options)) as results:
                following = self.timed(lambda: next(results, _END), "waiting for images", time.perf_counter)
                while (each := following()) is not _END:
                    yield each

        return counted


def _gpu() -> dict[str, Any] | None:
    """Return the GPU's name and the most memory that was held on it, in MiB; None where there is none."""
    import torch

    if not torch.cuda.is_available():
        return None
    return {"name": torch.cuda.get_device_name(), "peak_mib": torch.cuda.max_memory_allocated() / 2**20}
