"""Many threads that write and read through one Workspace: how much gets done, and how evenly.

Each thread tags, untags, labels and reads a dataset of vectors in turn, as the threads of a server do. To wait for
others is part of the time of an operation.
"""

import argparse
import itertools
import random
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa

from common import save, table, verdict
from framedex import Dataset, Workspace

WRITES = ("tag", "untag", "set_labels")


@dataclass
class Done:
    """What one thread did.

    Attributes:
        times: seconds of each operation, by its name.
        errors: what was raised.
    """

    times: dict[str, list[float]] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)

    @property
    def count(self) -> int:
        """How many operations ended well."""
        return sum(map(len, self.times.values()))


def made(workspace: Workspace, rows: int) -> Dataset:
    """Return a dataset of random vectors."""
    vectors = np.random.default_rng(0).standard_normal((rows, 64)).astype(np.float32)
    values = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), 64)
    uris = [f"/images/{number:06}.jpg" for number in range(rows)]
    return workspace.create_dataset("threads", pa.table({"uri": uris, "embedding": values}))


def operations(dataset: Dataset, ids: list[str], draw: random.Random) -> dict[str, Callable[[], object]]:
    """Return what a thread may do next, by name; half of it writes."""
    some = draw.sample(ids, 3)
    return {
        "tag": lambda: dataset.tag(some, "seen"),
        "untag": lambda: dataset.untag(some, "seen"),
        "set_labels": lambda: dataset.set_labels(some, [draw.choice("abc")]),
        "count": lambda: dataset.where([{"labels": {"op": "is", "value": "a"}}]).count(),
        "tags": dataset.tags,
        "explore": dataset.explore,
    }


def work(dataset: Dataset, ids: list[str], seed: int, end: float, begin: threading.Barrier, done: Done) -> None:
    """Do one thing after another until the time is over."""
    draw = random.Random(seed)
    begin.wait()
    for step in itertools.count(seed):
        if (started := time.monotonic()) >= end:
            return
        choice = list(operations(dataset, ids, draw).items())
        name, run = choice[step % len(choice)]
        try:
            run()
        except Exception as error:  # every one counts
            done.errors.append(f"{name}: {type(error).__name__}: {error}")
        else:
            done.times.setdefault(name, []).append(time.monotonic() - started)


def main() -> None:
    """Run the threads and print what they did."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=40)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--rows", type=int, default=2000)
    options = parser.parse_args()
    everyone = [Done() for _ in range(options.threads)]
    with tempfile.TemporaryDirectory(prefix="bench-") as folder, Workspace(Path(folder) / "ws") as workspace:
        dataset = made(workspace, options.rows)
        dataset.create_tag("seen")
        ids = dataset.to_arrow(["media_id"]).column(0).to_pylist()
        begin, end = threading.Barrier(options.threads), time.monotonic() + options.seconds
        threads = [
            threading.Thread(target=work, args=(dataset, ids, seed, end, begin, done))
            for seed, done in enumerate(everyone)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    names = sorted({name for done in everyone for name in done.times})
    times = {name: sorted(each for done in everyone for each in done.times.get(name, [])) for name in names}
    print(
        table(
            ["operation", "done", "median, s", "slowest, s"],
            [[name, len(all_), all_[len(all_) // 2], all_[-1]] for name, all_ in times.items()],
        )
    )
    counts, errors = [done.count for done in everyone], [error for done in everyone for error in done.errors]
    mean, slowest = sum(counts) / len(counts), max(all_[-1] for all_ in times.values())
    print(f"\n{sum(counts):,} operations, of which {sum(len(times.get(name, [])) for name in WRITES):,} wrote")
    print(f"operations a thread: least {min(counts)}, mean {mean:.1f}")
    for error in sorted(set(errors)):
        print(f"{errors.count(error)} × {error}")
    print(verdict("errors", len(errors), 0, at_most=True))
    print(verdict("slowest operation, s", slowest, 5, at_most=True))
    print(verdict("least of a thread, as a share of the mean", min(counts) / mean, 0.5))
    save("threads", {"threads": options.threads, "seconds": options.seconds, "counts": counts, "slowest_s": slowest})


if __name__ == "__main__":
    main()
