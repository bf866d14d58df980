"""Evaluation of saved views after an addition: 100 views over a batch of 10,000 among a million media, beside readers.

Eighty views are filters: of labels, issues, duplicates, uniqueness, names and their combinations. Ten search captions
by words, and ten by meaning, with an encoder that maps words to random directions. Readers count filters in other
threads, before the evaluation and during it; the processor time is that of the process, with its readers. The limit is
10 s for the evaluation. A second addition is evaluated with columns and search structures in memory, as in a process
that goes on.
"""

import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from common import arguments, median, save, table, verdict

LIMIT_S = 10.0
_PAUSE_S = 0.02  # between two counts of the reader
_DIMENSION, _MEANINGS, _BLOCK = 8, 64, 65_536
_WORDS = [
    f"{first}{second}" for first in "bdfghklmnprstvwz" for second in ["anel", "imor", "ules", "atis", "onde", "arib"]
]


class WordVectors:
    """An encoder of texts whose vector is the sum of random directions, one for each word."""

    name = "benchmark-words"
    dimension = _MEANINGS

    def __init__(self) -> None:
        random = np.random.default_rng(3)
        self._directions = {word: random.normal(size=_MEANINGS) for word in _WORDS}

    def encode_texts(self, texts: list[str]) -> npt.NDArray[np.float32]:
        """Return a vector of unit length for each text: float32, shape (N, D)."""
        nothing = np.zeros(_MEANINGS)
        sums = [1e-6 + sum((self._directions.get(word, nothing) for word in text.split()), nothing) for text in texts]
        vectors = np.stack(sums)
        return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def main() -> None:
    """Measure, print and write."""
    parser = arguments(__doc__, peers=False, data=False)
    parser.add_argument("--rows", type=int, default=1_000_000, help="media before the additions")
    parser.add_argument("--batch", type=int, default=10_000, help="media of an addition")
    parser.add_argument("--views", type=int, default=100, help="saved views, of which a fifth searches texts")
    parser.add_argument("--readers", type=int, default=1, help="threads that count filters meanwhile; 0 for none")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-saved-views-") as folder:
        found = measure(Path(folder), options.rows, options.batch, options.views, options.readers)
    lines = [
        ["first evaluation, s", found["evaluation_s"][0]],
        ["second evaluation, s", found["evaluation_s"][1]],
        ["processor time of the first, s", found["processor_s"][0]],
        ["processor time of the second, s", found["processor_s"][1]],
    ]
    if options.readers:
        lines += [
            ["count of a reader alone, median ms", found["alone_ms"]],
            ["count of a reader meanwhile, median ms", found["meanwhile_ms"]],
            ["the slowest count meanwhile, ms", found["slowest_ms"]],
        ]
    print(table([f"{options.rows:,} + {options.batch:,} media, {options.views} views", ""], lines))
    print(verdict("evaluation, s", max(found["evaluation_s"]), LIMIT_S, at_most=True))
    save(
        "saved_views",
        {"rows": options.rows, "batch": options.batch, "views": options.views, "readers": options.readers, **found},
    )


def measure(folder: Path, rows: int, batch: int, views: int, readers: int) -> dict[str, Any]:
    """Return the times of two evaluations in s, and those of the readers' counts in ms."""
    import framedex

    source = folder / "source.parquet"
    with pq.ParquetWriter(source, _block(0, 1).schema) as writer:
        for start in range(0, rows, _BLOCK):
            writer.write_table(_block(start, min(_BLOCK, rows - start)))
    started = time.perf_counter()
    with framedex.Workspace(folder / "workspace", text_encoder=WordVectors()) as workspace:
        dataset = workspace.create_dataset("bench", source)
        print(f"{rows:,} rows made and indexed in {time.perf_counter() - started:.0f} s", flush=True)
        for number, options in enumerate(_views(views)):
            vql = options.pop("vql", [])
            dataset.save_view(f"view {number}", dataset.where(vql), **options)
        print(f"{views} views saved after {time.perf_counter() - started:.0f} s", flush=True)
        workspace._context.runner.after_commit = None  # the evaluation is called, and timed, alone
        times: list[float] = []
        processor: list[float] = []
        alone: list[float] = []
        meanwhile: list[float] = []
        for turn in range(2):
            dataset.add_media(_block(rows + turn * batch, batch))
            alone += _counts(dataset, seconds=2.0) if readers else []
            with ThreadPoolExecutor(max(readers, 1)) as pool:
                done = threading.Event()
                reading = [pool.submit(_counts, dataset, until=done) for _ in range(readers)]
                started, begun = time.perf_counter(), time.process_time()
                workspace.evaluate_views()
                times.append(time.perf_counter() - started)
                processor.append(time.process_time() - begun)
                done.set()
                meanwhile += [each for one in reading for each in one.result()]
        results = sum(view.record.total_results for view in dataset.views())
        failures = [view.record.evaluation_error for view in dataset.views() if view.record.evaluation_error]
        assert not failures, failures
    found = {"evaluation_s": times, "processor_s": processor, "results": results}
    if readers:
        found |= {
            "alone_ms": 1000 * median(alone),
            "meanwhile_ms": 1000 * median(meanwhile),
            "slowest_ms": 1000 * max(meanwhile),
        }
    return found


def _counts(dataset: Any, *, seconds: float = 0.0, until: threading.Event | None = None) -> list[float]:
    """Return the times of counts, in s, for some seconds or until an event."""
    times: list[float] = []
    end = time.perf_counter() + seconds
    while (time.perf_counter() < end if until is None else not until.is_set()) or not times:
        started = time.perf_counter()
        dataset.where([{"labels": {"op": "is", "value": f"class {len(times) % 200}"}}]).count()
        times.append(time.perf_counter() - started)
        time.sleep(_PAUSE_S)
    return times


def _views(count: int) -> list[dict[str, Any]]:
    """Return the arguments of the saved views; every fifth one has a text."""
    result: list[dict[str, Any]] = []
    for number in range(count):
        label = {"labels": {"op": "is", "value": f"class {number % 200}"}}
        words = f"{_WORDS[number % len(_WORDS)]} {_WORDS[(5 * number + 3) % len(_WORDS)]}"
        filters = [
            [label],
            [{"not": label}, {"uniqueness": {"op": "uniqueness", "value": 0.3 + number / 1000}}],
            [{"issues": {"op": "issue", "value": "outliers", "confidence_min": 0.3 + number / 1000}}],
            [{"any": [label, {"file_name": {"op": "contains", "value": f"{number:02d}7.J"}}]}],
        ]
        if number % 10 == 4:
            result.append({"vql": [{"text": {"op": "fts", "value": words}}]})
        elif number % 10 == 9:
            result.append({"caption": words, "threshold": 0.6})
        else:
            result.append({"vql": filters[number % 5 if number % 5 < 4 else 0]})
    return result


def _block(start: int, count: int) -> pa.Table:
    """Return some rows of the source."""
    random = np.random.default_rng(start)
    centres = np.random.default_rng(0).normal(size=(2000, _DIMENSION))
    vectors = centres[random.integers(0, len(centres), count)] + 0.15 * random.normal(size=(count, _DIMENSION))
    numbers = range(start, start + count)
    words = random.integers(0, len(_WORDS), (count, 8))
    return pa.table(
        {
            "uri": [f"set-{number % 100:02d}/photos/{number:08d}.jpg" for number in numbers],
            "embedding": pa.FixedSizeListArray.from_arrays(pa.array(vectors.astype(np.float32).ravel()), _DIMENSION),
            "labels": pa.array([[f"class {number % 200}"] for number in numbers], pa.list_(pa.string())),
            "caption": [" ".join(_WORDS[word] for word in row) for row in words.tolist()],
        }
    )


if __name__ == "__main__":
    main()
