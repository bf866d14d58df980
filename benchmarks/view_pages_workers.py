"""What the measured process of the view benchmark does: ``python view_pages_workers.py TASK:OPTION FOLDER ANSWER``.

The folder holds ``workspace`` with the dataset ``bench``, which ``create`` of the benchmark of filters makes.
"""

import json
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from framedex import View, Workspace, vql
from search_filters_workers import NAME, create

Answer = dict[str, Any]
PAGE = 100
SHOWN = ["media_id", "file_name", "width", "height", "labels", "tags", "rating", "outliers"]
"""The columns of a page in a table of results."""


def pages(folder: Path, option: str) -> Answer:
    """Read pages at random places of sorted, filtered, searched and sampled views; the first of each view is cold."""
    turns = int(option)
    random = np.random.default_rng(0)
    found: dict[str, Any] = {}
    with Workspace(folder / "workspace") as workspace:
        dataset = workspace.dataset(NAME)
        for name, view in views(dataset.view).items():
            first = _timed(lambda view=view: _page(view, 0, SHOWN))
            rows = len(view)
            starts = random.integers(0, max(1, rows - PAGE), 2 * turns).tolist()
            times = [_timed(lambda view=view, start=start: _page(view, start, SHOWN)) for start in starts[:turns]]
            _timed(lambda view=view: _page(view, 0, None))
            wide = [_timed(lambda view=view, start=start: _page(view, start, None)) for start in starts[turns:]]
            found[name] = {"rows": rows, "first": first, "page": times, "all_columns": wide}
    return {"seconds": 0.0, "views": found, "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}


def views(view: View) -> dict[str, View]:
    """Return the measured views by name."""
    label = vql.labels("class 7")
    return {
        "as ingested": view,
        "by outliers": view.sort_by("outliers", descending=True),
        "by file name": view.sort_by("file_name"),
        "by custom field": view.sort_by("rating"),
        "filtered, by outliers": view.where(label).sort_by("outliers"),
        "half, by rating": view.where(vql.tags("untagged")).sort_by("rating"),
        "sample": view.sample(100_000, seed=1),
        "similar": view.similar(view[0]["media_id"], limit=None),
    }


def _page(view: View, start: int, columns: list[str] | None) -> int:
    return len(list(view[start : start + PAGE].rows(columns)))


def _timed(call: Callable[[], Any]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


if __name__ == "__main__":
    task, _, chosen = sys.argv[1].partition(":")
    answer = {"create": create, "pages": pages}[task](Path(sys.argv[2]), chosen)
    Path(sys.argv[3]).write_text(json.dumps(answer))
