"""What the measured processes of the export benchmark do: ``python export_workers.py TASK:OPTION FOLDER ANSWER``."""

import io
import json
import resource
import sys
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from framedex import Dataset, Workspace
from framedex.export.parquet_file import REPEATED

Answer = dict[str, Any]
NAME = "bench"
DIMENSION = 8
_BLOCK = 65_536
_REPEATS = 4
_WORDS = (
    "dog",
    "cat",
    "red",
    "street",
    "house",
    "tree",
    "runs",
    "stands",
    "behind",
    "car",
    "boat",
    "mountain",
    "small",
)


def create(folder: Path, option: str) -> Answer:
    """Make a dataset of a table: 8 values, labels of 200 classes for nine tenths, captions for three quarters."""
    rows = int(option)
    source = folder / "source.parquet"
    with pq.ParquetWriter(source, _block(0, 1, rows).schema) as writer:
        for block in _blocks(rows):
            writer.write_table(block)
    started = time.perf_counter()
    with Workspace(folder / "workspace") as workspace:
        workspace.create_dataset(NAME, source)
    return {"seconds": time.perf_counter() - started}


def _blocks(rows: int) -> Iterator[pa.Table]:
    for start in range(0, rows, _BLOCK):
        yield _block(start, min(_BLOCK, rows - start), rows)


def _block(start: int, count: int, rows: int) -> pa.Table:
    """Return some rows of the source; each cluster has about 40, wherever they are."""
    rng = np.random.default_rng(start)
    centres = np.random.default_rng(0).normal(size=(max(1, rows // 40), DIMENSION))
    vectors = centres[rng.integers(0, len(centres), count)] + 0.15 * rng.normal(size=(count, DIMENSION))
    numbers = range(start, start + count)
    words = rng.integers(0, len(_WORDS), (count, 10))
    return pa.table(
        {
            "uri": [f"set-{number % 100:02d}/photos/{number:08d}.jpg" for number in numbers],
            "embedding": pa.FixedSizeListArray.from_arrays(pa.array(vectors.astype(np.float32).ravel()), DIMENSION),
            "width": np.full(count, 640),
            "height": np.full(count, 480),
            "labels": pa.array([_labels(number) for number in numbers], pa.list_(pa.string())),
            "caption": pa.array(
                [
                    " ".join(_WORDS[word] for word in row) if number % 4 else None
                    for number, row in zip(numbers, words, strict=True)
                ],
                pa.string(),
            ),
        }
    )


def _labels(number: int) -> list[str]:
    first, second = f"class {number % 200}", f"class {(7 * number + 1) % 200}"
    return [] if number % 10 == 0 else [first] if number % 3 else [first, second]


def one_format(folder: Path, option: str) -> Answer:
    """Export some times in one format."""
    target = folder / f"{option}.zip"
    with Workspace(folder / "workspace") as workspace:
        dataset = workspace.dataset(NAME)
        dataset.count()
        before = _peak_mib()
        seconds = [_timed(lambda: dataset.export(target, option)) for _ in range(_REPEATS)]
    peak = _peak_mib()  # before the archive is opened, whose reader keeps an object for each member
    with zipfile.ZipFile(target) as archive:
        content = sum(info.file_size for info in archive.infolist())
    size = target.stat().st_size
    target.unlink()
    return {
        "seconds": min(seconds),
        "all_seconds": seconds,
        "before_mib": before,
        "peak_mib": peak,
        "size_bytes": size,
        "content_bytes": content,
    }


def rounds(folder: Path, option: str) -> Answer:
    """Export to Parquet and write the same table with pyarrow, in turn."""
    with Workspace(folder / "workspace") as workspace:
        dataset = workspace.dataset(NAME)
        held = _exported(dataset, folder / "out.zip")
        ways: dict[str, Callable[[], Any]] = {
            "export": lambda: dataset.export(folder / "out.zip", "parquet"),
            "pyarrow": lambda: pq.write_table(held, folder / "out.parquet", compression="zstd"),
            "tuned": lambda: pq.write_table(held, folder / "out.parquet", compression="zstd", use_dictionary=REPEATED),
        }
        for way in ways.values():
            way()
        found = []
        for number in range(int(option)):
            names = list(ways)[:: 1 if number % 2 else -1]
            found.append({name: _timed(ways[name]) for name in names})
    return {"seconds": sum(each["export"] for each in found), "rounds": found}


def _exported(dataset: Dataset, path: Path) -> pa.Table:
    """Return the table of an export, in memory."""
    dataset.export(path, "parquet")
    with zipfile.ZipFile(path) as archive:
        return pq.read_table(io.BytesIO(archive.read("metadata.parquet")))


def _timed(call: Callable[[], Any]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def _peak_mib() -> float:
    unit = 1 if sys.platform == "darwin" else 1024  # ru_maxrss is in bytes on macOS, in KiB on Linux
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**20


TASKS: dict[str, Callable[[Path, str], Answer]] = {"create": create, "format": one_format, "rounds": rounds}


def main() -> None:
    """Run the task that the command line names."""
    task, _, option = sys.argv[1].partition(":")
    result = TASKS[task](Path(sys.argv[2]), option)
    Path(sys.argv[3]).write_text(json.dumps(result), "utf-8")


if __name__ == "__main__":
    main()
