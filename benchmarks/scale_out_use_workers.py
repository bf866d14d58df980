"""The measured processes of scale_out_use.py: ``python scale_out_use_workers.py WORK:BYTES WORKSPACE ANSWER``."""

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.append(str(Path(__file__).resolve().parent))
from scale_out_index_workers import Memory

Answer = dict[str, Any]
K, QUERIES, TURNS = 100, 100, 11
NOISE = 0.35
"""The length of what is added to a vector of the dataset to make a query, as in search.py."""
ADDED = 0.01


def main(task: str, folder: str, answer: str) -> None:
    """Do the work and write its answer."""
    work, memory_bytes = task.split(":")
    os.environ["FRAMEDEX_MEMORY_BYTES"] = memory_bytes
    functions: dict[str, Callable[[Any, Any], Answer]] = {
        "pages": pages,
        "filters": filters,
        "similar": similar,
        "snapshot": snapshot,
        "read": read,
        "add": add,
        "reindex": reindex,
        "retry": retry,
    }
    started = time.perf_counter()
    from framedex import Workspace

    imported = time.perf_counter() - started
    with Memory(Path(folder) / "cache" / "spill") as memory, Workspace(folder) as workspace:
        opened = time.perf_counter() - started
        found = functions[work](workspace, workspace.dataset(workspace.datasets()[0].display_name))
    found = {"import, s": imported, "import and open, s": opened, **found, "memory": memory.answer()}
    Path(answer).write_text(json.dumps(found))


def _timed(call: Callable[[], Any]) -> float:
    """Return the seconds of a call."""
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def pages(workspace: Any, dataset: Any) -> Answer:
    """First pages of Explore by level, and the first images of a cluster."""
    found: Answer = {"first page, s": _timed(lambda: dataset.explore(level=2))}
    for level in range(5):
        found[f"level {level}, s"] = _timed(lambda level=level: dataset.explore(level=level))
        found[f"level {level}, page 50, s"] = _timed(lambda level=level: dataset.explore(level=level, page_number=50))
    cluster = dataset.explore(level=2).clusters[0]
    found["first 100 images of the largest cluster, s"] = _timed(lambda: dataset.cluster(cluster.cluster_id).first(100))
    found["count, s"] = _timed(dataset.count)
    found["issues, s"] = _timed(dataset.view.issue_summaries)
    found["groups of duplicates, first 50, s"] = _timed(lambda: dataset.duplicates(limit=50))
    return found


def filters(workspace: Any, dataset: Any) -> Answer:
    """Count what passes each filter, with other values each time."""
    if "bench" not in {each.name for each in dataset.tags()}:
        dataset.create_tag("bench")
        outlying = [{"issues": {"op": "issue", "value": "outliers", "confidence_min": 0.5, "confidence_max": 1.0}}]
        dataset.tag(dataset.where(outlying), "bench")
    asked: dict[str, Callable[[int], list[Any]]] = {
        "issue with bounds": lambda turn: [
            {"issues": {"op": "issue", "value": "outliers", "confidence_min": turn / 100, "confidence_max": 0.9}}
        ],
        "duplicates": lambda turn: [{"duplicates": {"op": "duplicates", "value": 0.98}}, *_unique(turn)],
        "uniqueness": lambda turn: [{"uniqueness": {"op": "uniqueness", "value": 0.3 + turn / 100}}],
        "tag": lambda turn: [{"tags": {"op": "is", "value": "bench"}}, *_unique(turn)],
        "untagged": lambda turn: [{"tags": {"op": "is", "value": "untagged"}}, *_unique(turn)],
        "file name": lambda turn: [{"file_name": {"op": "contains", "value": f"{turn:02d}7"}}],
    }
    times: Answer = {}
    for name, of in asked.items():
        cold = _timed(dataset.where(of(0)).count)
        counted = [1000 * _timed(dataset.where(of(turn)).count) for turn in range(1, TURNS + 1)]
        paged = [1000 * _timed(dataset.where(of(turn)).explore) for turn in range(TURNS + 1, 2 * TURNS + 1)]
        times[name] = {
            "rows": dataset.where(of(1)).count(),
            "first, ms": 1000 * cold,
            "p50, ms": float(np.median(counted)),
            "most, ms": max(counted),
            "with the first page, p50, ms": float(np.median(paged)),
        }
    return {"filters": times}


def _unique(turn: int) -> list[Any]:
    return [{"uniqueness": {"op": "uniqueness", "value": 0.01 * turn}}]


def similar(workspace: Any, dataset: Any) -> Answer:
    """The nearest hundred of vectors that are near to some of the dataset, against exact answers."""
    from framedex.operations.context import open_media

    media = open_media(dataset._context, dataset.id)
    random = np.random.default_rng(1)
    chosen = np.sort(random.choice(media.table.count(), QUERIES, replace=False))
    queries = _noisy(media.table.take_positions(chosen, "embedding"), seed=1)
    first = _timed(lambda: dataset.similar(queries[0], K).media_ids())
    answers, times = [], []
    for query in queries:
        started = time.perf_counter()
        answers.append(dataset.similar(query, K).media_ids())
        times.append(1000 * (time.perf_counter() - started))
    truth = _exact(media.table, queries)
    ids = [set(_ids(media.table, rows)) for rows in truth]
    recall = [len(wanted & set(found)) / K for wanted, found in zip(ids, answers, strict=True)]
    by_image = [1000 * _timed(lambda each=each: dataset.similar(each[0], K).media_ids()) for each in answers[:50]]
    return {
        "first, with what is made once, s": first,
        "p50, ms": float(np.median(times)),
        "p95, ms": float(np.percentile(times, 95)),
        "to an image of the dataset, p50, ms": float(np.median(by_image)),
        "recall": float(np.mean(recall)),
    }


def _exact(table: Any, queries: Any) -> Any:
    """Return the rows of the K most similar vectors: int64, shape (Q, K)."""
    best = np.full((len(queries), K), -2, np.float32)
    rows = np.zeros((len(queries), K), np.int64)
    start = 0
    for batch in table.vector_batches("embedding", 0):
        vectors = batch.column(0).flatten().to_numpy().reshape(len(batch), -1)
        values = np.concatenate([best, queries @ vectors.T], axis=1)
        its_rows = np.arange(start, start + len(batch))
        numbers = np.concatenate([rows, np.broadcast_to(its_rows, (len(queries), len(batch)))], axis=1)
        kept = np.argpartition(-values, K - 1, axis=1)[:, :K]
        best, rows = np.take_along_axis(values, kept, 1), np.take_along_axis(numbers, kept, 1)
        start += len(batch)
    return rows


def _ids(table: Any, rows: Any) -> list[str]:
    return list(table.take_positions(np.sort(rows), "media_id").to_pylist())


def snapshot(workspace: Any, dataset: Any) -> Answer:
    """A snapshot, and a clone, which is deleted again."""
    found = {"snapshot, s": _timed(lambda: dataset.snapshot("before"))}
    started = time.perf_counter()
    clone = dataset.clone("current")
    found["clone, s"] = time.perf_counter() - started
    found["deletion of the clone, s"] = _timed(lambda: workspace.delete_dataset(clone.id))
    return found


def read(workspace: Any, dataset: Any) -> Answer:
    """All rows, one after another in blocks, and all ids."""
    started, count = time.perf_counter(), 0
    for _ in dataset.view.rows(["media_id", "uniqueness_score"]):
        count += 1
        if count == 1:
            first = time.perf_counter() - started
    found = {"first row, s": first, "rows, s": time.perf_counter() - started, "rows": count}
    return found | {"ids, s": _timed(lambda: sum(len(each) for each in dataset.view.ids))}


def add(workspace: Any, dataset: Any) -> Answer:
    """One per cent more: vectors of the dataset with noise."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from framedex.operations.context import open_media

    table, count = open_media(dataset._context, dataset.id).table, dataset.count()
    chosen = np.sort(np.random.default_rng(2).choice(count, int(count * ADDED), replace=False))
    with tempfile.TemporaryDirectory() as folder:
        source, writer = Path(folder) / "added.parquet", None
        for start in range(0, len(chosen), 8192):
            vectors = _noisy(table.take_positions(chosen[start : start + 8192], "embedding"), seed=start)
            values = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), vectors.shape[1])
            names = [f"added/{number}" for number in range(start, start + len(vectors))]
            part = pa.table({"uri": names, "embedding": values})
            writer = writer or pq.ParquetWriter(source, part.schema)
            writer.write_table(part)
        assert writer is not None, "there are rows"
        writer.close()
        seconds, stages = _stages(lambda: dataset.add_media(source, wait=False))
    return {"rows": dataset.count() - count, "seconds": seconds, "stages": stages}


def _noisy(vectors: Any, seed: int) -> Any:
    """Return vectors with noise, at unit length: float32, shape (N, D)."""
    held = vectors.flatten().to_numpy().reshape(len(vectors), -1)
    noise = np.random.default_rng(seed).standard_normal(held.shape, np.float32) * np.float32(
        NOISE / held.shape[1] ** 0.5
    )
    found = held + noise
    return found / np.linalg.norm(found, axis=1, keepdims=True)


def reindex(workspace: Any, dataset: Any) -> Answer:
    """The whole index anew."""
    seconds, stages = _stages(lambda: dataset.reindex(wait=False))
    return {"rows": dataset.count(), "seconds": seconds, "stages": stages}


def retry(workspace: Any, dataset: Any) -> Answer:
    """The last task, which failed or was killed, once more."""
    last = workspace.task(workspace.tasks().tasks[0].task_id)

    def start() -> Any:
        last.retry()
        return last

    seconds, stages = _stages(start)
    return {"rows": dataset.count(), "seconds": seconds, "stages": stages}


def _stages(start: Callable[[], Any]) -> tuple[float, dict[str, float]]:
    """Return the seconds of a task, in all and by stage."""
    stages: dict[str, float] = {}
    started = before = time.perf_counter()
    last = ""

    def note(stage: str, _share: float) -> None:
        nonlocal last, before
        now = time.perf_counter()
        if last:
            stages[last] = stages.get(last, 0.0) + now - before
        last, before = stage.split(":", maxsplit=1)[0], now

    start().wait(progress=note)
    return time.perf_counter() - started, stages


if __name__ == "__main__":
    main(*sys.argv[1:])
