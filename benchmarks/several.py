"""Several processes at one workspace: one adds media, the others read and change them; nobody may see half a change.

One process adds small batches of vectors and indexes them anew now and then. The others explore, filter, tag, set
labels, delete media, snapshot, restore and export, at random, for as long as is asked. The interface's conflicts are
the only errors allowed, and that what was named is gone by now. Whoever reads checks that all counts agree, that each
row has its cluster, that tags are those that somebody makes, and that the marker which an addition brings is there for
all rows of a batch or for none.

The same file is the driver and, with ``work``, each of its processes; ``run`` prints one result as JSON.
"""

import argparse
import collections
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from common import save, table

DATASET, TAGS = "pets", ("red", "green", "blue")
BATCH, FIRST, DIMENSION = 20, 200, 16
_MARKER = "batch-"
_DELETED, _RELABELLED = 3, 5


class Longest:
    """Measures how long the catalog's write lock was waited for.

    Attributes:
        wait_s: the longest time.
    """

    def __init__(self) -> None:
        self.wait_s = 0.0

    def watch(self) -> None:
        """Measure each write of the catalog from now on."""
        from framedex.storage import catalog

        write = catalog.Catalog.write

        @contextmanager
        def measured(catalog_: Any, **options: Any) -> Iterator[Any]:
            began = time.monotonic()
            with write(catalog_, **options) as connection:
                self.wait_s = max(self.wait_s, time.monotonic() - began)
                yield connection

        catalog.Catalog.write = measured  # type: ignore[assignment] # what is measured stays as it is


def vectors(batch: int, rows: int) -> Any:
    """Return a table with the vectors of a batch, all with the batch's marker as their label."""
    import numpy as np
    import pyarrow as pa

    numbers = np.random.default_rng(batch)
    found = numbers.normal(size=(rows, DIMENSION)).astype(np.float32)
    uris = [f"{batch}-{number}.jpg" for number in range(rows)]
    lists = pa.FixedSizeListArray.from_arrays(pa.array(found.ravel()), DIMENSION)
    return pa.table({"uri": uris, "embedding": lists, "label": [f"{_MARKER}{batch}"] * rows})


class Worker:
    """What one of the processes does.

    Args:
        workspace: the open workspace.
        folder: for its exports.
        seed: of its choices.
    """

    def __init__(self, workspace: Any, folder: Path, seed: int) -> None:
        self.workspace, self.folder, self.random = workspace, folder, random.Random(seed)
        self.dataset = workspace.dataset(DATASET)
        self.batch = 0

    def add(self) -> None:
        """Add a batch; it is the next one only if this one was added."""
        self.dataset.add_media(vectors(self.batch + 1, BATCH))
        self.batch += 1

    def reindex(self) -> None:
        """Index all anew."""
        self.dataset.reindex()

    def read(self) -> None:
        """Look at one state from all sides."""
        from framedex.jobs.edits.tag_lists import count_tags
        from framedex.operations.context import open_media
        from framedex.storage.definitions import tags_of

        media = open_media(self.dataset._context, self.dataset.id)
        rows = media.table.scan(["media_id", "path", "labels", "cluster_0"]).read_all()
        assert rows.num_rows == media.generation.n_images == media.table.count(), "rows, records and counts agree"
        assert rows["cluster_0"].null_count == 0, "every row has its cluster"
        ids = rows["media_id"].to_pylist()
        assert len(set(ids)) == len(ids), "every row is there once"
        known = {tag.number for tag in tags_of(media)}
        assert {tag.name for tag in tags_of(media)} <= set(TAGS), "tags are those that somebody makes"
        used = {number for number, count in count_tags(media).items() if count}
        assert used <= known, "media have known tags only"
        _check_markers(rows)

    def explore(self) -> None:
        """Ask for all that counts media; where no other state came between, all answers are the same."""
        state = self._state()
        view, pages, sizes = self.dataset.where([]), 0, 0
        while found := view.explore(level=4, page_number=pages).clusters:
            sizes, pages = sizes + sum(cluster.n_images for cluster in found), pages + 1
        shown = self.dataset.to_arrow(["media_id", "cluster_id"])
        assert shown["cluster_id"].null_count == 0, "every row has its cluster"
        counts = {sizes, shown.num_rows, self.dataset.count(), self.dataset.info.n_images}
        assert len(counts) == 1 or state != self._state(), f"counts of one state differ: {counts}"

    def _state(self) -> str:
        """Return the id of the generation that readers see."""
        from framedex.operations.context import open_media

        return str(open_media(self.dataset._context, self.dataset.id).generation.id)

    def filter(self) -> None:
        """Count what has tags, and what a marker: all rows of a batch or none."""
        tagged = self.dataset.where([{"tags": {"op": "is", "value": ["untagged", *TAGS]}}]).count()
        assert tagged > 0, "each media item has a tag or none"
        marked = self.dataset.where(
            [{"labels": {"op": "is", "value": f"{_MARKER}{self.random.randint(1, 9)}"}}]
        ).count()
        assert marked in (0, BATCH), f"{marked} rows of a batch"

    def tag(self) -> None:
        """Tag some media, which somebody else may delete at the moment."""
        self.dataset.tag(self._some(10), self.random.choice(TAGS))

    def untag(self) -> None:
        """Take a tag off some media."""
        self.dataset.untag(self._some(10), self.random.choice(TAGS))

    def label(self) -> None:
        """Give media of the first batch other labels."""
        self.dataset.set_labels(self._some(_RELABELLED), [f"seen-{self.random.randrange(5)}"])

    def delete(self) -> None:
        """Delete a few of the first media."""
        self.dataset.delete_media(self._some(_DELETED))

    def snapshot(self) -> None:
        """Keep the state."""
        self.dataset.snapshot()

    def restore(self) -> None:
        """Bring one of the last states back."""
        self.dataset.restore(self.random.choice(self.dataset.snapshots()[:3]))

    def export(self) -> None:
        """Export all, and count what was written."""
        import zipfile

        path = self.folder / f"{self.random.randrange(10**9)}.zip"
        result = self.dataset.export(path)
        with zipfile.ZipFile(path) as archive:
            assert archive.testzip() is None, "the archive is whole"
        assert result is not None
        path.unlink()

    def _some(self, count: int) -> list[str]:
        """Return ids of media of the first batch: what the additions bring stays whole."""
        rows = self.dataset.to_arrow(["media_id", "image_filename"]).to_pylist()
        first = [row["media_id"] for row in rows if row["image_filename"].startswith("0-")]
        return self.random.sample(first, min(count, len(first)))


def _check_markers(rows: Any) -> None:
    """Check that each added batch is there whole, with its marker on all its rows."""
    batches: dict[str, list[Any]] = collections.defaultdict(list)
    for path, labels in zip(rows["path"].to_pylist(), rows["labels"].to_pylist(), strict=True):
        batches[path.partition("-")[0]].append(labels)
    for batch, found in batches.items():
        if batch != "0":
            assert len(found) == BATCH, f"batch {batch} has {len(found)} rows"
            assert all(labels == [f"{_MARKER}{batch}"] for labels in found), f"batch {batch} has other labels: {found}"


INGESTS = {"add": 6, "reindex": 1, "read": 1}
EXPLORES = {
    "read": 8, "explore": 4, "filter": 4, "tag": 4, "untag": 1, "label": 3, "delete": 1, "snapshot": 1, "restore": 1,
    "export": 1,
}  # fmt: skip
"""How often each kind of operation is chosen, of all."""


def work(workspace: Path, folder: Path, number: int, seconds: float) -> None:
    """Do one process' part and print what came of it, as JSON."""
    import framedex

    kinds, pause_s = (INGESTS, 0.5) if number == 0 else (EXPLORES, 0.0)
    longest = Longest()
    longest.watch()
    done: collections.Counter[str] = collections.Counter()
    conflicts: collections.Counter[str] = collections.Counter()
    errors: list[str] = []
    with framedex.Workspace(workspace) as opened:
        worker = Worker(opened, folder, number)
        end = time.monotonic() + seconds
        kind = next(iter(kinds))  # what a process is there for comes first, however little it gets done
        while True:
            operation: Callable[[], None] = getattr(worker, kind)
            try:
                operation()
                done[kind] += 1
            except (framedex.Conflict, framedex.NotFound) as error:
                if not _is_allowed(error):
                    errors.append(f"{kind}: {type(error).__name__}: {error}")
                conflicts[kind] += 1
            except Exception as error:
                errors.append(f"{kind}: {type(error).__name__}: {error}")
            if time.monotonic() >= end:
                break
            # Who adds without a pause leaves the others nothing but conflicts.
            time.sleep(worker.random.uniform(0, pause_s))
            kind = worker.random.choices(list(kinds), list(kinds.values()))[0]
    print(json.dumps({"done": done, "conflicts": conflicts, "errors": errors, "wait_s": longest.wait_s}))


def _is_allowed(error: Exception) -> bool:
    """Return whether an error says that another one was first: not that a table of a state is gone."""
    return ".lance" not in str(error)


def run(processes: int, seconds: float) -> dict[str, Any]:
    """Let processes work on a new workspace, look at what they leave, and return what happened."""
    import framedex

    with tempfile.TemporaryDirectory(prefix="bench-several-") as home:
        workspace = Path(home) / "workspace"
        with framedex.Workspace(workspace) as opened:
            opened.create_dataset(DATASET, vectors(0, FIRST))
        command = [sys.executable, __file__, "work", str(workspace), home]
        started = [
            subprocess.Popen([*command, str(number), str(seconds)], stdout=subprocess.PIPE, text=True)
            for number in range(processes)
        ]
        outs = [process.communicate(timeout=seconds + 120)[0] for process in started]
        ended = [process.returncode for process in started]
        found = [json.loads(out.splitlines()[-1]) for out in outs if out]
        errors = [error for each in found for error in each["errors"]]
        errors += [f"a process ended with {code}" for code in ended if code]
        errors += _check_end(workspace)
    kinds = {
        key: sum((collections.Counter(each[key]) for each in found), collections.Counter())
        for key in ("done", "conflicts")
    }
    return {"processes": processes, **kinds, "errors": errors, "wait_s": max(each["wait_s"] for each in found)}


def _check_end(workspace: Path) -> list[str]:
    """Return what is wrong with the workspace when all are done."""
    import framedex

    with framedex.Workspace(workspace) as opened:
        worker = Worker(opened, workspace.parent, 0)
        worker.read()
        worker.explore()
        status = worker.dataset.info.status_new
        tasks = [task for task in opened.tasks(page_size=50).tasks if task.status not in ("COMPLETED",)]
        faults = [f"a task is {task.status}: {task.error_message}" for task in tasks if not _is_late(task)]
    return faults if status in ("READY", "PARTIAL INDEX") else [*faults, f"the dataset is {status}"]


def _is_late(task: Any) -> bool:
    """Return whether a task failed because another process was first: what it was to delete was gone when it began."""
    return task.status == "FAILED" and "no media" in (task.error_message or "")


def main() -> None:
    """Run for each number of processes and print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--processes", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--seconds", type=float, default=120)
    options = parser.parse_args()
    results = [run(processes, options.seconds) for processes in options.processes]
    kinds = sorted({kind for result in results for kind in (*result["done"], *result["conflicts"])})
    headers = [
        "operation",
        *(f"{each['processes']} processes: {key}" for each in results for key in ("done", "conflicts")),
    ]
    rows = [[kind, *(each[key][kind] for each in results for key in ("done", "conflicts"))] for kind in kinds]
    rows.append(["all", *(sum(each[key].values()) for each in results for key in ("done", "conflicts"))])
    print(table(headers, rows))
    for each in results:
        print(f"{each['processes']} processes: {len(each['errors'])} errors, longest wait {each['wait_s']:.2f} s")
        for error in collections.Counter(each["errors"]).most_common(20):
            print(f"  {error[1]} × {error[0]}")
    save("several", {"seconds": options.seconds, "results": results})
    if any(each["errors"] for each in results):
        sys.exit(1)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["work", workspace, folder, number, seconds]:
            work(Path(workspace), Path(folder), int(number), float(seconds))
        case ["run", processes, seconds]:
            print(json.dumps(run(int(processes), float(seconds))))
        case _:
            main()
