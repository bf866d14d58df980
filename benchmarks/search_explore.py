"""Explore with an image and with a text, at the finest and a coarse level: the first page, and the fifty-first.

The image is a vector that was uploaded; the text is looked for in captions of ten words of about a hundred, which
are likelier in some clusters than in others. Each call asks something new, so that no answer is known before; *next
page* asks for a page of what was asked just before. Beside it, in turns, what the answer cannot do without: NumPy
compares all vectors, which it holds in memory, with the query and sorts them.
"""

import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from common import arguments, median, save, table
from vectors import Clustered, unit

_WORDS = [
    f"{first}{second}" for first in "bdfghklmnprstvwz" for second in ["anel", "imor", "ules", "atis", "onde", "arib"]
]
_PAGES = (0, 50)
_LEVELS = (0, 2)


def main() -> None:
    """Measure, print and write."""
    parser = arguments(__doc__, peers=False, data=False)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--dimension", type=int, default=512)
    parser.add_argument("--turns", type=int, default=15)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-explore-") as folder:
        times = measure(Path(folder), options.rows, options.dimension, options.turns)
    figures = {name: {"p50_ms": median(each), "p95_ms": float(np.percentile(each, 95))} for name, each in times.items()}
    bare = figures["NumPy, compare and sort"]["p50_ms"]
    lines = [
        [name, *(f"{value:.1f}" for value in each.values()), f"{each['p50_ms'] / bare:.2f}"]
        for name, each in figures.items()
    ]
    print(table(["call", "p50 ms", "p95 ms", "times NumPy"], lines))
    save("search_explore", {"rows": options.rows, "dimension": options.dimension, "calls": figures})


def measure(folder: Path, rows: int, dimension: int, turns: int) -> dict[str, list[float]]:
    """Return the times of each call, in milliseconds."""
    import framedex

    source, vectors = folder / "source.parquet", np.empty((rows, dimension), np.float32)
    _write(source, vectors)
    random = np.random.default_rng(5)
    times: dict[str, list[float]] = defaultdict(list)
    with framedex.Workspace(folder / "workspace") as workspace:
        dataset = workspace.create_dataset("bench", source)
        source.unlink()
        dataset.similar(vectors[0], 1).count()
        dataset.search(_WORDS[0], 1).count()
        for turn in range(turns + 1):
            for name, call in _calls(dataset, vectors, random):
                elapsed = _timed(call)
                if turn:
                    times[name].append(elapsed)
    return times


def _calls(dataset: Any, vectors: Any, random: np.random.Generator) -> list[tuple[str, Callable[[], Any]]]:
    found: list[tuple[str, Callable[[], Any]]] = []

    def query() -> Any:
        noise = random.standard_normal(vectors.shape[1]) * 0.35 / np.sqrt(vectors.shape[1])
        return unit((vectors[random.integers(len(vectors))] + noise)[None])[0]

    for level in _LEVELS:
        for page in _PAGES:
            anchor = dataset.upload(query())
            text = " ".join(random.choice(_WORDS, 3, replace=False))
            name = f"level {level}, page {page}"
            found.append((f"image, {name}", _explore(dataset, level, page, anchor_media_id=anchor)))
            found.append((f"text, {name}", _explore(dataset, level, page, caption=text)))
        found.append((f"text, level {level}, next page", _explore(dataset, level, page + 1, caption=text)))
        found.append((f"image, level {level}, next page", _explore(dataset, level, page + 1, anchor_media_id=anchor)))
    wanted = query()
    return [*found, ("NumPy, compare and sort", lambda: np.argsort(-(vectors @ wanted)))]


def _explore(dataset: Any, level: int, page: int, **asked: Any) -> Callable[[], Any]:
    return lambda: dataset.explore(level=level, page_number=page, **asked)


def _timed(call: Callable[[], Any]) -> float:
    started = time.perf_counter()
    call()
    return 1000 * (time.perf_counter() - started)


def _write(source: Path, vectors: Any) -> None:
    """Write the source's rows, and put their vectors into an array."""
    random, start = np.random.default_rng(3), 0
    writer = None
    for block in Clustered(*vectors.shape).blocks():
        vectors[start : start + len(block)] = block
        # The signs of some components choose the words, so that media that are alike share some of them.
        kind = (block[:, :4] > 0) @ np.array([1, 2, 4, 8])
        words = (6 * kind[:, None] + random.integers(0, 30, (len(block), 10))) % len(_WORDS)
        part = pa.table(
            {
                "uri": [f"{number:08d}.jpg" for number in range(start, start + len(block))],
                "embedding": pa.FixedSizeListArray.from_arrays(pa.array(block.ravel()), block.shape[1]),
                "caption": [" ".join(_WORDS[word] for word in row) for row in words.tolist()],
            }
        )
        writer = writer or pq.ParquetWriter(source, part.schema)
        writer.write_table(part)
        start += len(block)
    assert writer is not None, "there are rows"
    writer.close()


if __name__ == "__main__":
    main()
