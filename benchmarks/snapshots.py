"""Snapshots, restores and clones of a small and of a large dataset: seconds, and bytes added on the disk.

Each is done a few times on a dataset of clustered vectors; the median counts. That the large dataset costs as little
as the small one says that no data moves. Making the large one takes minutes.
"""

import argparse
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from common import save, table, verdict
from index_jobs import framedex_python, job_folder, run_job, write_parts

AIM_S, AIM_BYTES = 1.0, 0.01


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000, 1_000_000])
    parser.add_argument("--dimension", type=int, default=512)
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--peers", type=Path, default=Path(__file__).parent.parent / "bench-results" / "peers")
    options = parser.parse_args()
    python = framedex_python(options.peers)
    found = []
    for rows in options.rows:
        with job_folder() as folder:
            source, _ = write_parts(python, folder, rows, 1, options.dimension)
            run_job(python, "create", folder, source=source)
            source.unlink()
            found.append({"rows": rows, **measure(folder / "workspace", options.times)})
    _print(found)
    save("snapshots", {"dimension": options.dimension, "sizes": found})


def measure(workspace: Path, times: int) -> dict[str, Any]:
    """Return the median seconds of each operation, and what share of the dataset's bytes it adds at most."""
    import framedex

    with framedex.Workspace(workspace) as opened:
        dataset = opened.dataset(opened.datasets()[0].id)
        kept = dataset.snapshot("kept")
        operations: dict[str, Callable[[], Any]] = {
            "snapshot": dataset.snapshot,
            "restore": lambda: dataset.restore(kept),
            "clone": lambda: dataset.clone(kept),
        }
        found: dict[str, Any] = {"bytes": size_of(workspace)}
        for name, operation in operations.items():
            taken, added = zip(*(_timed(operation, workspace) for _ in range(times)), strict=True)
            found[name] = {"seconds": statistics.median(taken), "slowest_s": max(taken), "bytes_added": max(added)}
    return found


def _timed(operation: Callable[[], Any], workspace: Path) -> tuple[float, int]:
    before = size_of(workspace)
    start = time.perf_counter()
    operation()
    return time.perf_counter() - start, size_of(workspace) - before


def size_of(folder: Path) -> int:
    """Return the bytes that the files of a folder take on the disk, each counted once, whatever names it has."""
    taken: dict[int, int] = {}
    for where, _, names in os.walk(folder):
        for name in names:
            status = os.lstat(Path(where) / name)
            taken[status.st_ino] = status.st_blocks * 512
    return sum(taken.values())


def _print(found: list[dict[str, Any]]) -> None:
    operations = ("snapshot", "restore", "clone")
    rows = [
        [f"{each['rows']:,}", name, each[name]["seconds"], each[name]["slowest_s"], each[name]["bytes_added"],
         each[name]["bytes_added"] / each["bytes"]]
        for each in found
        for name in operations
    ]  # fmt: skip
    print(table(["rows", "operation", "median s", "slowest s", "bytes added", "share of all bytes"], rows))
    large = found[-1]
    for name in operations:
        print(verdict(f"{name}, seconds at {large['rows']:,} rows", large[name]["seconds"], AIM_S, at_most=True))
        share = large[name]["bytes_added"] / large["bytes"]
        print(verdict(f"{name}, share of bytes added", share, AIM_BYTES, at_most=True))
        if len(found) > 1:
            print(f"{name}: {large[name]['seconds'] / found[0][name]['seconds']:.2f} times as long as at "
                  f"{found[0]['rows']:,} rows")  # fmt: skip


if __name__ == "__main__":
    main()
