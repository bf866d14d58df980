"""Tasks of ``label_noise.py``: ``python label_noise_worker.py TASK FOLDER ANSWER``."""

import json
import resource
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from framedex import Workspace

LABELS, DIMENSION, WRONG = 1_000, 512, 0.1
_NOISE, _PART = 0.045, 20_000  # standard deviation beside centres of unit length; vectors made at a time


def main() -> None:
    """Run a task."""
    task = {"create": create, "rank": rank}[sys.argv[1]]
    Path(sys.argv[3]).write_text(json.dumps(task(Path(sys.argv[2]))), "utf-8")


def create(folder: Path) -> dict[str, Any]:
    """Make and index the dataset."""
    rows = int(json.loads((folder / "rows.json").read_text()))
    source = folder / "vectors.parquet"
    with pq.ParquetWriter(source, _part(0, 1, rows).schema) as writer:
        for start in range(0, rows, _PART):
            writer.write_table(_part(start, min(start + _PART, rows), rows))
    with Workspace(folder / "ws") as workspace:
        workspace.create_dataset("labelled", source)
    source.unlink()
    return {"seconds": 0.0}


def _part(start: int, stop: int, rows: int) -> pa.Table:
    """Return some rows as a table; the path of a row has its true label."""
    count = min(LABELS, max(2, rows // 20))
    centres = np.random.default_rng(1).normal(size=(count, DIMENSION)).astype(np.float32)
    centres /= np.linalg.norm(centres, axis=1, keepdims=True)
    random = np.random.default_rng((2, start))
    true = random.integers(0, count, stop - start)
    vectors = centres[true] + np.float32(_NOISE) * random.normal(size=(stop - start, DIMENSION)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    is_wrong = random.random(stop - start) < WRONG
    given = np.where(is_wrong, (true + random.integers(1, count, stop - start)) % count, true)
    embedding = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), DIMENSION)
    numbers = range(start, stop)
    return pa.table(
        {
            "uri": [f"{label}/{number}.jpg" for number, label in zip(numbers, true.tolist(), strict=True)],
            "embedding": embedding,
            "label": [f"label {code}" for code in given.tolist()],
        }
    )


def rank(folder: Path) -> dict[str, Any]:
    """Rank the labels."""
    with Workspace(folder / "ws") as workspace:
        dataset = workspace.dataset("labelled")
        before, started = _processor_s(), time.perf_counter()
        issues = dataset.label_issues()
        seconds, processor_s = time.perf_counter() - started, _processor_s() - before
        listed = issues.to_arrow()
    first = listed.slice(0, issues.n_wrong)
    true = [path.partition("/")[0] for path in first["path"].to_pylist()]
    wrong = np.array([f"label {label}" for label in true]) != np.array(first["label"].to_pylist())
    return {
        "seconds": seconds,
        "processor_s": processor_s,
        "rows": len(issues),
        "rate": issues.rate,
        "low": issues.interval[0],
        "high": issues.interval[1],
        "listed": len(first),
        "precision": float(wrong.mean()),
        "expected": first["expected_precision"][len(first) - 1].as_py(),
    }


def _processor_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    main()
