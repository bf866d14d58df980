"""What the measured processes of the filter benchmark do: ``python search_filters_workers.py TASK:OPTION FOLDER ANSWER``.

The folder holds ``workspace`` with the dataset ``bench``, which ``create`` makes.
"""

import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from framedex import Workspace

Answer = dict[str, Any]
NAME = "bench"
DIMENSION = 8
_BLOCK = 65_536
_WORDS = ("dog", "cat", "red", "street", "house", "tree", "runs", "stands", "behind", "car", "boat", "mountain")


def create(folder: Path, option: str) -> Answer:
    """Make a dataset: 8 values, labels of 200 classes, captions, two tags, and a number for four fifths."""
    rows = int(option)
    source = folder / "source.parquet"
    with pq.ParquetWriter(source, _block(0, 1, rows).schema) as writer:
        for block in _blocks(rows):
            writer.write_table(block)
    started = time.perf_counter()
    with Workspace(folder / "workspace") as workspace:
        dataset = workspace.create_dataset(NAME, source)
        for tag, classes in (("keep", range(1, 50)), ("check", range(40, 60))):
            dataset.create_tag(tag)
            names = [f"class {number}" for number in classes]
            dataset.tag(dataset.where([{"labels": {"op": "one_of", "value": names}}]), tag)
        dataset.add_field("rating", "float")
        numbers = np.random.default_rng(1).random(rows).round(4)
        given = {
            media_id: number
            for place, (media_id, number) in enumerate(
                zip(dataset.where([]).media_ids(), numbers.tolist(), strict=True)
            )
            if place % 5
        }
        dataset.set_field("rating", given, wait=True)
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
    captions = [" ".join(_WORDS[word] for word in row) for row in words.tolist()]
    return pa.table(
        {
            "uri": [f"set-{number % 100:02d}/photos/{number:08d}.jpg" for number in numbers],
            "embedding": pa.FixedSizeListArray.from_arrays(pa.array(vectors.astype(np.float32).ravel()), DIMENSION),
            "width": np.full(count, 640),
            "height": np.full(count, 480),
            "labels": pa.array([_labels(number) for number in numbers], pa.list_(pa.string())),
            "caption": pa.array(
                [each if number % 4 else None for number, each in zip(numbers, captions, strict=True)], pa.string()
            ),
        }
    )


def _labels(number: int) -> list[str]:
    first, second = f"class {number % 200}", f"class {(7 * number + 1) % 200}"
    return [] if number % 10 == 0 else [first] if number % 3 else [first, second]


TASKS: dict[str, Callable[[Path, str], Answer]] = {"create": create}


def main() -> None:
    """Run the task that the command line names."""
    task, _, option = sys.argv[1].partition(":")
    result = TASKS[task](Path(sys.argv[2]), option)
    Path(sys.argv[3]).write_text(json.dumps(result), "utf-8")


if __name__ == "__main__":
    main()
