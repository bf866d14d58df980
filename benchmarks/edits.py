"""Edits of a small and of a large dataset: seconds of one edit, and of one of a thousand media.

The data are clustered vectors with labels. Each edit is done a few times on other media; the first one of a process,
which reads what later ones find in memory, is shown apart. Making the large dataset takes minutes; ``--keep`` leaves it
in a folder, from which the next run takes it.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from common import save, table, verdict

AIM_ONE_S, AIM_MANY_S, MANY = 0.15, 0.5, 1000
_CLASSES, _MEMBERS = 100, 50


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--dimension", type=int, default=64)
    parser.add_argument("--times", type=int, default=7)
    parser.add_argument("--keep", type=Path, help="folder for the datasets, which a later run uses again")
    parser.add_argument("--only", nargs="+", help="edits to measure, such as label")
    options = parser.parse_args()
    found = []
    with tempfile.TemporaryDirectory(prefix="bench-edits-") as folder:
        for rows in options.rows:
            workspace = (options.keep or Path(folder)) / f"edits-{rows}-{options.dimension}"
            if not workspace.exists():
                _make(workspace, rows, options.dimension)
            found.append({"rows": rows, **measure(workspace, options.times, options.only)})
    _print(found)
    save("edits", {"dimension": options.dimension, "sizes": found})


def _make(workspace: Path, rows: int, dimension: int) -> None:
    import numpy as np
    import pyarrow as pa

    from framedex import Workspace

    rng = np.random.default_rng(0)
    centres = rng.standard_normal((max(1, rows // _MEMBERS), dimension), dtype=np.float32)
    cluster = rng.integers(len(centres), size=rows)
    vectors = centres[cluster]
    vectors += 0.35 * rng.standard_normal((rows, dimension), dtype=np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    classes = np.where(rng.random(rows) < 0.05, rng.integers(_CLASSES, size=rows), cluster % _CLASSES)
    columns = {
        "uri": pa.array([f"{number:08}.jpg" for number in range(rows)]),
        "embedding": pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), dimension),
        "labels": pa.array([[f"class {number:03}"] for number in classes.tolist()]),
    }
    with Workspace(workspace) as opened:
        opened.create_dataset("edits", pa.table(columns))


def measure(workspace: Path, times: int, only: Sequence[str] | None = None) -> dict[str, Any]:
    """Return for each edit the seconds of the first time, and those of the others with their processor time."""
    import numpy as np

    from framedex import Workspace

    results: dict[str, Any] = {}
    with Workspace(workspace) as opened:
        dataset = opened.dataset("edits")
        ids: list[str] = dataset.where([]).media_ids()
        rng = np.random.default_rng()

        def some(count: int) -> list[str]:
            return [ids[place] for place in rng.choice(len(ids), count, replace=False).tolist()]

        edits: dict[str, Callable[[int, int], Any]] = {
            "tag": lambda count, turn: dataset.tag(some(count), f"tag {turn % 5}"),
            "caption": lambda count, turn: dataset.set_captions(dict.fromkeys(some(count), f"caption {turn}")),
            "label": lambda count, turn: dataset.set_labels(some(count), [f"class {turn % _CLASSES:03}"]),
            "decision": lambda count, _turn: dataset.not_duplicates(some(2)),
            "deletion": lambda count, _turn: _delete(dataset, ids, some(count)),
        }
        for name, edit in edits.items():
            if only and name not in only:
                continue
            for count in (1, MANY) if name != "decision" else (1,):
                taken, processor = [], []
                for turn in range(times + 1):
                    start, begun = time.perf_counter(), time.process_time()
                    edit(count, turn)
                    taken.append(time.perf_counter() - start)
                    processor.append(time.process_time() - begun)
                first, *others = taken
                results[f"{name} {count}"] = {
                    "first_s": first,
                    "median_s": statistics.median(others),
                    "slowest_s": max(others),
                    "processor_s": statistics.median(processor[1:]),
                }
                print(name, count, [round(each, 3) for each in taken], flush=True)
    return results


def _delete(dataset: Any, ids: list[str], chosen: list[str]) -> None:
    dataset.delete_media(chosen)
    gone = set(chosen)
    ids[:] = [each for each in ids if each not in gone]


def _print(found: list[dict[str, Any]]) -> None:
    rows = [
        [f"{each['rows']:,}", name, *(round(seconds, 3) for seconds in taken.values())]
        for each in found
        for name, taken in each.items()
        if name != "rows"
    ]
    print(table(["rows", "edit", "first s", "median s", "slowest s", "processor s"], rows))
    for name, taken in found[-1].items():
        if name != "rows":
            aim = AIM_MANY_S if name.endswith(str(MANY)) else AIM_ONE_S
            print(verdict(f"{found[-1]['rows']:,} rows, {name}", taken["median_s"], aim, at_most=True))


if __name__ == "__main__":
    main()
