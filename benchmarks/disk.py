"""Disk: what many rounds of changes leave behind, what vacuum frees of it, and how long cleaning up takes.

A dataset is added to, indexed anew, enriched and deleted from, round by round, and then cleaned up; beside it lies a
dataset that was built at once of the vectors that were left, and enriched once. To enrich writes a caption and a number
for each row, as a model would. Rounds delete as many rows as they add, at random. Then automatic cleaning is timed:
when there is nothing to free, and after an edit of all rows that superseded another one.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from common import save, table, verdict
from vectors import Clustered

AIM = 1.5  # times the bytes of a dataset that was built at once
_MB = 2**20


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(
        description=(__doc__ or "").partition("\n")[0], formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--dimension", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--changed", type=float, default=0.02, help="share of the rows that a round adds and deletes")
    parser.add_argument("--folder", type=Path, default=None, help="where the workspaces are made")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        result = measure(Path(folder), options.rows, options.dimension, options.rounds, options.changed)
    _print(result)
    save("disk", result)


def measure(folder: Path, rows: int, dimension: int, rounds: int, changed: float) -> dict[str, Any]:
    """Return the figures."""
    import framedex
    from framedex.settings import Settings

    new = round(rows * changed)
    vectors = Clustered(rows + rounds * new, dimension).all()
    with framedex.Workspace(folder / "changed", settings=Settings(clean_every_s=float("inf"))) as workspace:
        dataset = workspace.create_dataset("changed", _table(vectors[:rows], 0))
        sizes = [_mb(folder / "changed")]
        random = np.random.default_rng(0)
        for number in range(rounds):
            first = rows + number * new
            dataset.add_media(_table(vectors[first : first + new], first), auto_reindex=True)
            ids = _enrich(dataset, number)
            dataset.delete_media([str(each) for each in random.choice(ids, new, replace=False)])
            sizes.append(_mb(folder / "changed"))
            print(f"round {number + 1}: {sizes[-1]:,.0f} MiB", flush=True)
        usage_s = _seconds(workspace.disk_usage)
        vacuum_s = _seconds(lambda: workspace.vacuum(older_than_s=0))
        with_snapshot = _mb(folder / "changed")
        parts = {part: size / _MB for part, size in workspace.disk_usage().by_part.items()}
        dataset.snapshot()
        dataset.delete_snapshot(dataset.snapshots()[-1])
        workspace.vacuum(older_than_s=0)
        left = _mb(folder / "changed")
        again_s = _seconds(lambda: workspace.vacuum(older_than_s=0))
        ids, kept = dataset.embeddings()
        plan_s = _seconds(lambda: dataset.plan_cleanup(duplicates=0.96, issues=["outliers"]))
        cleaning = _cleaning(workspace, dataset)
    with framedex.Workspace(folder / "once") as workspace:
        _enrich(workspace.create_dataset("once", _table(kept, 0)), 0)
        workspace.vacuum(older_than_s=0)
        once = _mb(folder / "once")
    return {
        "rows": rows,
        "dimension": dimension,
        "rounds": rounds,
        "changed_rows": new,
        "mib_by_round": sizes,
        "once_mib": once,
        "left_mib": left,
        "left_with_first_snapshot_mib": with_snapshot,
        "parts_with_first_snapshot_mib": parts,
        "disk_usage_s": usage_s,
        "vacuum_s": vacuum_s,
        "vacuum_again_s": again_s,
        "plan_s": plan_s,
        **cleaning,
    }


def _enrich(dataset: Any, number: int) -> list[str]:
    """Write a caption and a number for each row, others than before; return the ids."""
    ids: list[str] = dataset.to_arrow(["media_id"])["media_id"].to_pylist()
    dataset.set_captions({media_id: f"in round {number} a model saw image {media_id}" for media_id in ids})
    values = {media_id: number + place / len(ids) for place, media_id in enumerate(ids)}
    if any(field.field_name == "model_score" for field in dataset.fields()):
        dataset.set_field("model_score", values)
    else:
        dataset.add_field("model_score", "float", values=values)
    return ids


def _cleaning(workspace: Any, dataset: Any) -> dict[str, float]:
    """Return how long automatic cleaning takes, in milliseconds: the median of some times."""
    from framedex.operations.vacuum import AutoClean
    from framedex.settings import Settings

    context = workspace._context
    settings = Settings(clean_every_s=0, keep_versions_s=0)
    eager = AutoClean(type(context)(**{**vars(context), "settings": settings}))
    found: dict[str, list[float]] = {"nothing_to_free_ms": [], "after_an_edit_ms": []}
    eager(dataset.id)
    for number in range(7):
        found["nothing_to_free_ms"].append(1000 * _seconds(lambda: eager(dataset.id)))
        dataset.tag(dataset.where([]), f"tag {number}")
        found["after_an_edit_ms"].append(1000 * _seconds(lambda: eager(dataset.id)))
    return {name: statistics.median(times) for name, times in found.items()}


def _table(vectors: Any, first: int) -> pa.Table:
    embedding = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), vectors.shape[1])
    return pa.table({"uri": [f"{number}.jpg" for number in range(first, first + len(vectors))], "embedding": embedding})


def _mb(folder: Path) -> float:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / _MB


def _seconds(run: Callable[[], object]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def _print(result: dict[str, Any]) -> None:
    once = result["once_mib"]
    sizes = {
        "built at once": once,
        f"after {result['rounds']} rounds": result["mib_by_round"][-1],
        "after vacuum": result["left_mib"],
        "after vacuum, with the snapshot of the creation": result["left_with_first_snapshot_mib"],
    }
    print()
    print(table(["dataset", "MiB", "times"], [[name, size, size / once] for name, size in sizes.items()]))
    times = [
        ["vacuum, s", result["vacuum_s"]],
        ["vacuum again, s", result["vacuum_again_s"]],
        ["disk_usage, s", result["disk_usage_s"]],
        ["plan_cleanup, s", result["plan_s"]],
        ["automatic, nothing to free, ms", result["nothing_to_free_ms"]],
        ["automatic, after an edit of all rows, ms", result["after_an_edit_ms"]],
    ]
    print()
    print(table(["what", "time"], times))
    print()
    print(verdict("times the bytes of a dataset built at once", result["left_mib"] / once, AIM, at_most=True))


if __name__ == "__main__":
    main()
