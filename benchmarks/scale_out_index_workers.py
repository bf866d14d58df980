"""The measured processes of scale_out_index.py: ``python scale_out_index_workers.py TASK SOURCE ANSWER``.

A task is ``create:WAY:BYTES:WORKSPACE``, where the source is a Parquet file, or ``compare:WORKSPACE``, where it is
another workspace.
"""

import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

_EVERY_S = 0.25
_GIB = 2**30
READING = "reading"


class Memory:
    """The largest memory of this process and of its workers, and the largest size of temporary files.

    Args:
        spill: the folder of temporary files.
    """

    def __init__(self, spill: Path) -> None:
        self.peak = self.own = self.worker = self.mapped = self.spilled = 0
        self._spill, self._end = spill, threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> "Memory":
        """Begin to watch."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """End."""
        self._end.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._end.wait(_EVERY_S):
            own, *workers = [memory_of(each) for each in _family(os.getpid())]
            self.own, self.worker = max(self.own, own[0]), max([self.worker, *(each[0] for each in workers)])
            self.peak = max(self.peak, own[0] + sum(each[0] for each in workers))
            self.mapped = max(self.mapped, own[1])
            self.spilled = max(self.spilled, sum(_blocks(each) for each in self._spill.rglob("*")))

    def answer(self) -> dict[str, float]:
        """Return the figures, in GiB."""
        names = {"peak_gib": self.peak, "own_gib": self.own, "worker_gib": self.worker, "mapped_gib": self.mapped}
        return {name: value / _GIB for name, value in {**names, "spilled_gib": self.spilled}.items()}


def _family(pid: int) -> list[int]:
    """Return a process, and all that it started."""
    found = [pid]
    try:
        for thread in Path(f"/proc/{pid}/task").iterdir():
            children = (thread / "children").read_text().split()
            found += [each for child in children for each in _family(int(child))]
    except OSError:  # it has ended
        pass
    return found


def memory_of(pid: int | str) -> tuple[int, int]:
    """Return (anonymous and shared memory, mapped files in memory) of a process, in bytes."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0, 0
    values = {line.split(":")[0]: line.split()[1] for line in lines if line.startswith("Rss")}
    parts = {name: 1024 * int(value) for name, value in values.items()}
    return parts.get("RssAnon", 0) + parts.get("RssShmem", 0), parts.get("RssFile", 0)


def _blocks(path: Path) -> int:
    try:
        return path.stat().st_blocks * 512
    except OSError:
        return 0


def create(source: Path, way: str, memory_bytes: str, folder: str) -> dict[str, Any]:
    """Make a dataset; return seconds in all, of the index alone, and by stage, and the memory."""
    if way == "memory":
        os.environ["FRAMEDEX_MEMORY_BYTES"] = str(2**50)
    else:
        os.environ["FRAMEDEX_MEMORY_BYTES"], os.environ["FRAMEDEX_EXECUTOR"] = memory_bytes, way
    from framedex import Workspace

    stages: dict[str, float] = {}
    last: list[Any] = [None, time.perf_counter()]

    def note(stage: str, _share: float) -> None:
        name, now = stage.split(":", maxsplit=1)[0], time.perf_counter()
        if last[0] is not None:
            stages[last[0]] = stages.get(last[0], 0.0) + now - last[1]
        last[:] = [name, now]

    started = time.perf_counter()
    with Workspace(folder) as workspace, Memory(Path(folder) / "cache" / "spill") as memory:
        workspace.create_dataset("scale", str(source), wait=False).task.wait(progress=note)
        seconds = time.perf_counter() - started
    index_s = seconds - sum(value for name, value in stages.items() if READING in name)
    return {"seconds": seconds, "index_s": index_s, "stages": stages, **memory.answer()}


def compare(workspace: Path, other: str) -> dict[str, Any]:
    """Return what share of neighbour lists, and which F1 of pairs, two indexes have in common."""
    import numpy as np

    columns, others = (_columns(Path(each)) for each in (workspace, other))
    lists = [np.sort(each["neighbours"], axis=1) for each in (columns, others)]
    agreement = {"neighbour lists that are equal": float((lists[0] == lists[1]).all(axis=1).mean())}
    for name in columns:
        if name != "neighbours":
            agreement[f"pair F1 of {name}"] = _pair_f1(columns[name], others[name])
    return {"agreement": agreement}


def _columns(workspace: Path) -> dict[str, Any]:
    import lance

    (folder,) = (workspace / "datasets").iterdir()
    dataset = lance.dataset(str(folder / "media.lance"))
    groups = ("cluster_", "duplicate_")
    names = [each for each in dataset.schema.names if each.startswith(groups) and each.split("_")[1].isdigit()]
    rows = dataset.to_table(columns=[*names, "neighbours"])
    lists = rows["neighbours"].combine_chunks()
    width = lists.type.list_size
    found = {name: rows[name].fill_null(-1).to_numpy() for name in names}
    return {**found, "neighbours": lists.fill_null([-1] * width).flatten().to_numpy().reshape(-1, width)}


def _pair_f1(one: Any, other: Any) -> float:
    """Return the F1 of pairs of rows in one group; rows below 0 are in none."""
    import numpy as np

    def pairs(labels: Any) -> float:
        sizes = np.unique(labels, return_counts=True)[1].astype(np.float64)
        return float((sizes * (sizes - 1)).sum())

    both = (one >= 0) & (other >= 0)
    shared = pairs(one[both].astype(np.int64) << 32 | other[both])
    in_all = pairs(one[one >= 0]) + pairs(other[other >= 0])
    return 2 * shared / in_all if in_all else 1.0


def main(task: str, source: str, answer: str) -> None:
    """Run a task and write its answer."""
    name, *given = task.split(":")
    function = {"create": create, "compare": compare}[name]
    Path(answer).write_text(json.dumps(function(Path(source), *given)))


if __name__ == "__main__":
    main(*sys.argv[1:])
