"""Many threads, of one or of several processes, that write and read one workspace: how much gets done, and how evenly.

Each thread tags, untags, labels and reads a dataset of vectors in turn, as the threads of a server do. To wait for
others is part of the time of an operation. With ``--datasets`` the threads are divided over as many datasets.
"""

import argparse
import itertools
import json
import random
import subprocess
import sys
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


def made(workspace: Workspace, rows: int, name: str) -> Dataset:
    """Return a dataset of random vectors."""
    vectors = np.random.default_rng(0).standard_normal((rows, 64)).astype(np.float32)
    values = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), 64)
    uris = [f"/images/{number:06}.jpg" for number in range(rows)]
    return workspace.create_dataset(name, pa.table({"uri": uris, "embedding": values}))


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


def run_threads(workspace: Workspace, names: list[str], seeds: range, seconds: float) -> list[Done]:
    """Run a thread for each seed; return what they did."""
    everyone = [Done() for _ in seeds]
    datasets = [workspace.dataset(name) for name in names]
    ids = [dataset.where([]).media_ids() for dataset in datasets]
    begin, end = threading.Barrier(len(seeds)), time.monotonic() + seconds
    threads = [
        threading.Thread(
            target=work, args=(datasets[seed % len(names)], ids[seed % len(names)], seed, end, begin, done)
        )
        for seed, done in zip(seeds, everyone, strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return everyone


def run_processes(folder: Path, names: list[str], options: argparse.Namespace) -> list[Done]:
    """Run the threads, divided over processes; return what they did."""
    each = options.threads // options.processes
    command = [sys.executable, __file__, "--threads", str(each), "--seconds", str(options.seconds)]
    running = [
        subprocess.Popen(
            [*command, "--work", str(folder), "--seed", str(number * each), "--names", *names],
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(options.processes)
    ]
    outputs = [process.communicate()[0] for process in running]
    if any(process.returncode for process in running):
        sys.exit("a process failed")
    return [Done(**each) for output in outputs for each in json.loads(output)]


def main() -> None:
    """Run the threads and print what they did."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=40)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--datasets", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--work", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--seed", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--names", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work is not None:
        seeds = range(options.seed, options.seed + options.threads)
        with Workspace(options.work) as workspace:
            print(json.dumps([vars(done) for done in run_threads(workspace, options.names, seeds, options.seconds)]))
        return
    names = [f"threads {number}" for number in range(options.datasets)]
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        with Workspace(Path(folder) / "ws") as workspace:
            for name in names:
                made(workspace, options.rows, name).create_tag("seen")
            if options.processes == 1:
                everyone = run_threads(workspace, names, range(options.threads), options.seconds)
        if options.processes > 1:
            everyone = run_processes(Path(folder) / "ws", names, options)
    _print(everyone, options)


def _print(everyone: list[Done], options: argparse.Namespace) -> None:
    names = sorted({name for done in everyone for name in done.times})
    times = {name: sorted(each for done in everyone for each in done.times.get(name, [])) for name in names}
    print(
        table(
            ["operation", "done", "median, s", "99th percentile, s", "slowest, s"],
            [
                [name, len(all_), all_[len(all_) // 2], all_[len(all_) * 99 // 100], all_[-1]]
                for name, all_ in times.items()
            ],
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
    print(verdict("99th percentile of a tag, s", times["tag"][len(times["tag"]) * 99 // 100], 1, at_most=True))
    print(verdict("least of a thread, as a share of the mean", min(counts) / mean, 0.5))
    result = {"threads": options.threads, "processes": options.processes, "datasets": options.datasets}
    save("threads", {**result, "seconds": options.seconds, "counts": counts, "slowest_s": slowest})


if __name__ == "__main__":
    main()
