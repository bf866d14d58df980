"""Eight threads search a dataset at once while media are being added to it: times, and that there are no errors.

Each thread asks at random for media like a vector, with and without a filter, for words, for counts of a filter and for
pages of explore. Each answer is checked: the order, the number, that all of it passes the filter.
"""

import argparse
import random
import tempfile
import threading
import time
import traceback
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from common import save, table
from vectors import Clustered, unit

_LABELS = ("cat", "dog", "car", "tree", "house")
_WORDS = ("red", "small", "street", "runs", "behind", "boat", "mountain", "stands")
_LIMIT = 50


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(
        description=(__doc__ or "").partition("\n")[0], formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--dimension", type=int, default=128)
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--added", type=int, default=200, help="media of each addition")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-threads-") as folder:
        result = measure(Path(folder), options)
    _print(result)
    save("search_threads", result)


def measure(folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Return times in milliseconds by operation, errors, and how many additions there were."""
    import framedex

    vectors = Clustered(options.rows + 400 * options.added, options.dimension).all()
    times: dict[str, list[float]] = defaultdict(list)
    errors: list[str] = []
    stop, lock = threading.Event(), threading.Lock()
    with framedex.Workspace(folder / "workspace") as workspace:
        dataset = workspace.create_dataset("bench", _table(vectors[: options.rows], 0))
        for operation in OPERATIONS.values():  # indices are made before the clock starts
            operation(dataset, vectors, random.Random(0))

        def ask(seed: int) -> None:
            chosen = random.Random(seed)
            while not stop.is_set():
                name = chosen.choice(list(OPERATIONS))
                started = time.perf_counter()
                try:
                    OPERATIONS[name](dataset, vectors, chosen)
                except Exception:
                    with lock:
                        errors.append(f"{name}: {traceback.format_exc(limit=-3)}")
                with lock:
                    times[name].append(1000 * (time.perf_counter() - started))

        threads = [threading.Thread(target=ask, args=(seed,)) for seed in range(options.threads)]
        for each in threads:
            each.start()
        end, additions, first = time.monotonic() + options.seconds, 0, options.rows
        while time.monotonic() < end and first < len(vectors):
            dataset.add_media(_table(vectors[first : first + options.added], first))
            additions, first = additions + 1, first + options.added
        stop.set()
        for each in threads:
            each.join()
    return {
        **{name: getattr(options, name) for name in ("rows", "dimension", "threads", "seconds", "added")},
        "additions": additions,
        "errors": errors,
        "ms": {
            name: dict(zip(("p50", "p95", "p99"), np.percentile(each, [50, 95, 99]).tolist(), strict=True))
            for name, each in times.items()
        },
        "count": {name: len(each) for name, each in times.items()},
    }


def _table(vectors: Any, first: int) -> pa.Table:
    numbers = np.arange(first, first + len(vectors))
    return pa.table(
        {
            "uri": [f"{number}.jpg" for number in numbers],
            "embedding": pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), vectors.shape[1]),
            "label": [_LABELS[number % len(_LABELS)] for number in numbers],
            "caption": [
                f"a {_WORDS[number % 8]} {_LABELS[number % 5]} {_WORDS[number // 8 % 8]}" for number in numbers
            ],
        }
    )


def _like(dataset: Any, vectors: Any, chosen: random.Random, label: str | None = None) -> None:
    query = unit(vectors[chosen.randrange(len(vectors))][None] + 0.01)[0]
    view = dataset.similar(query, _LIMIT)
    if label is not None:
        view = view.where([{"labels": {"op": "is", "value": label}}])
    found = view.to_arrow(["media_id", "labels", "relevance_score"])
    distance = found["relevance_score"].to_numpy()
    assert len(found) == len(set(found["media_id"].to_pylist())) == _LIMIT, f"{len(found)} media"
    assert (np.diff(distance) >= 0).all(), "the order"
    assert label is None or all(label in each for each in found["labels"].to_pylist()), "the filter"


def _words(dataset: Any, _vectors: Any, chosen: random.Random) -> None:
    word = chosen.choice(_LABELS)
    found = dataset.search(f"{word} AND {chosen.choice(_WORDS)}", _LIMIT).to_arrow(["caption", "relevance_score"])
    assert len(found) == _LIMIT, f"{len(found)} media"
    assert all(word in each for each in found["caption"].to_pylist()), "the words"
    assert (np.diff(found["relevance_score"].to_numpy()) <= 0).all(), "the order"


def _count(dataset: Any, _vectors: Any, chosen: random.Random) -> None:
    counts = [
        dataset.where([{"labels": {"op": op, "value": chosen.choice(_LABELS)}}]).count() for op in ("is", "is_not")
    ]
    assert min(counts) > 0, f"counts {counts}"


def _explore(dataset: Any, _vectors: Any, chosen: random.Random) -> None:
    page = dataset.explore(level=chosen.randrange(5), vql=[{"labels": {"op": "is", "value": "cat"}}])
    assert all(cluster.labels == ["cat"] for cluster in page.clusters), "labels"


OPERATIONS: dict[str, Callable[[Any, Any, random.Random], None]] = {
    "similar": _like,
    "similar, filtered": lambda dataset, vectors, chosen: _like(dataset, vectors, chosen, "dog"),
    "search for words": _words,
    "count": _count,
    "explore": _explore,
}


def _print(result: dict[str, Any]) -> None:
    rows = [
        [name, result["count"][name], each["p50"], each["p95"], each["p99"]]
        for name, each in sorted(result["ms"].items())
    ]
    print(table(["operation", "done", "p50 ms", "p95 ms", "p99 ms"], rows))
    added = f"{result['additions']} additions of {result['added']}"
    print(f"{result['threads']} threads, {added}: {len(result['errors'])} errors")
    for error in result["errors"][:5]:
        print(error)


if __name__ == "__main__":
    main()
