"""What measured processes of the filter benchmark do: ``python search_filters_workers.py TASK:OPTION FOLDER ANSWER``.

The folder holds ``workspace`` with the dataset ``bench``, which ``create`` makes. Each turn asks a filter with other
values, so that columns are in memory and answers are not.
"""

import json
import resource
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from framedex import Workspace
from framedex.operations.context import open_media
from framedex.records import DUPLICATE_LEVELS
from framedex.storage.definitions import fields_of, tags_of

Answer = dict[str, Any]
NAME = "bench"
DIMENSION = 8
LEVELS = DUPLICATE_LEVELS[:6]
CHECKED = 3
"""Of how many turns the counts are compared."""
_BLOCK = 65_536
_WORDS = ("dog", "cat", "red", "street", "house", "tree", "runs", "stands", "behind", "car", "boat", "mountain")


def create(folder: Path, option: str) -> Answer:
    """Make a dataset: 8 values, labels of 200 classes, captions, two tags, and a number for four fifths."""
    rows = int(option)
    source = folder / "source.parquet"
    with pq.ParquetWriter(source, _block(0, 1, rows).schema) as writer:
        for block in _blocks(rows):
            writer.write_table(block)
    started = time.perf_counter()
    with Workspace(folder / "workspace") as workspace:
        dataset = workspace.create_dataset(NAME, source)
        for tag, classes in (("keep", range(1, 50)), ("check", range(40, 60))):
            dataset.create_tag(tag)
            names = [f"class {number}" for number in classes]
            dataset.tag(dataset.where([{"labels": {"op": "one_of", "value": names}}]), tag)
        dataset.add_field("rating", "float")
        numbers = np.random.default_rng(1).random(rows).round(4)
        given = {
            media_id: number
            for place, (media_id, number) in enumerate(
                zip(dataset.where([]).media_ids(), numbers.tolist(), strict=True)
            )
            if place % 5
        }
        dataset.set_field("rating", given, wait=True)
    return {"seconds": time.perf_counter() - started}


def _blocks(rows: int) -> Iterator[pa.Table]:
    for start in range(0, rows, _BLOCK):
        yield _block(start, min(_BLOCK, rows - start), rows)


def _block(start: int, count: int, rows: int) -> pa.Table:
    """Return some rows of the source; each cluster has about 40, wherever they are."""
    rng = np.random.default_rng(start)
    centres = np.random.default_rng(0).normal(size=(max(1, rows // 40), DIMENSION))
    vectors = centres[rng.integers(0, len(centres), count)] + 0.15 * rng.normal(size=(count, DIMENSION))
    numbers = range(start, start + count)
    words = rng.integers(0, len(_WORDS), (count, 10))
    captions = [" ".join(_WORDS[word] for word in row) for row in words.tolist()]
    return pa.table(
        {
            "uri": [f"set-{number % 100:02d}/photos/{number:08d}.jpg" for number in numbers],
            "embedding": pa.FixedSizeListArray.from_arrays(pa.array(vectors.astype(np.float32).ravel()), DIMENSION),
            "width": np.full(count, 640),
            "height": np.full(count, 480),
            "labels": pa.array([_labels(number) for number in numbers], pa.list_(pa.string())),
            "caption": pa.array(
                [each if number % 4 else None for number, each in zip(numbers, captions, strict=True)], pa.string()
            ),
        }
    )


def _labels(number: int) -> list[str]:
    first, second = f"class {number % 200}", f"class {(7 * number + 1) % 200}"
    return [] if number % 10 == 0 else [first] if number % 3 else [first, second]


def filters(turn: int) -> dict[str, list[Any]]:
    """Return the ten filters by name, with values that no other turn has where the filter has any."""
    name, other = f"class {turn % 200}", f"class {(turn + 77) % 200}"
    share = 0.3 + turn / 1000
    label = {"labels": {"op": "is", "value": name}}
    return {
        "label is": [label],
        "two labels, any": [{"labels": {"op": "one_of", "value": [name, other]}}],
        "not label": [{"labels": {"op": "is_not", "value": name}}],
        "issue in, with bounds": [
            {"issues": {"op": "issue", "value": "outliers", "confidence_min": share, "confidence_max": 0.9}}
        ],
        "duplicates": [{"duplicates": {"op": "duplicates", "value": LEVELS[turn % len(LEVELS)]}}],
        "uniqueness": [{"uniqueness": {"op": "uniqueness", "value": share}}],
        "tag is": [{"tags": {"op": "is", "value": ["keep", "check"][turn % 2]}}],
        "untagged": [{"tags": {"op": "is", "value": "untagged"}}],
        "file name contains": [{"file_name": {"op": "contains", "value": f"{turn:03d}7.J"}}],
        "field between, label": [{"field": {"name": "rating", "op": "between", "value": [share, 0.8]}}, label],
    }


def ours(folder: Path, option: str) -> Answer:
    """Count and show the first page (Explore at level 0) of each filter: cold, and with columns in memory."""
    turns = int(option)
    found: dict[str, dict[str, Any]] = {}
    for name in filters(0):
        with Workspace(folder / "workspace") as workspace:  # nothing is in memory
            view = workspace.dataset(NAME).where(filters(0)[name])
            found[name] = {"cold": _timed(view.count), "cold_page": _timed(view.explore)}
    with Workspace(folder / "workspace") as workspace:
        dataset = workspace.dataset(NAME)
        for name, times in found.items():
            dataset.where(filters(0)[name]).explore()
            times["count"] = [_timed(dataset.where(filters(turn)[name]).count) for turn in range(1, turns + 1)]
            later = range(turns + 1, 2 * turns + 1)
            times["page"] = [_timed(dataset.where(filters(turn)[name]).explore) for turn in later]
            times["again"] = [_timed(dataset.where(filters(1)[name]).count) for _ in range(turns)]
            times["rows"] = [dataset.where(filters(turn)[name]).count() for turn in range(CHECKED)]
    return {"seconds": 0.0, "filters": found, "peak_mib": _peak_mib()}


def pandas(folder: Path, option: str) -> Answer:
    """The same with a DataFrame of the same columns, with file names taken out of the paths before."""
    frame, columns = _frame(folder)
    found: dict[str, Any] = {name: {"count": [], "page": [], "rows": []} for name in filters(0)}
    for turn in range(CHECKED):
        for name, chosen in _masks(frame, columns, turn).items():
            found[name]["rows"].append(_count(chosen))
    for turn in range(1, int(option) + 1):
        for name, chosen in _masks(frame, columns, turn).items():
            found[name]["count"].append(_timed(partial(_count, chosen)))
            found[name]["page"].append(_timed(partial(_page, frame, chosen)))
    return {"seconds": 0.0, "filters": found, "peak_mib": _peak_mib()}


def _frame(folder: Path) -> tuple[Any, dict[str, str]]:
    with Workspace(folder / "workspace") as workspace:
        dataset = workspace.dataset(NAME)
        media = open_media(dataset._context, dataset.id)
        rating = fields_of(media)[0].column.name
        names = ["media_id", "path", "labels", "caption", "tags", "issue_outliers", "uniqueness", "cluster_0", rating]
        rows = media.table.scan([*names, *(f"duplicate_{level}" for level in range(8))]).read_all()
        numbers = {tag.name: tag.number for tag in tags_of(media)}
    frame = rows.drop_columns(["labels", "tags"]).to_pandas()
    for name in ("labels", "tags"):  # as lists of Python, in which pandas finds a value faster than in arrays
        frame[name] = rows[name].to_pylist()
    frame["file_name"] = frame["path"].str.rsplit("/", n=1).str[-1]
    return frame, {"rating": rating, **{name: str(number) for name, number in numbers.items()}}


def _masks(frame: Any, known: dict[str, str], turn: int) -> dict[str, Callable[[], Any]]:
    """Return what computes which rows pass each filter."""
    asked = filters(turn)
    name, other = asked["two labels, any"][0]["labels"]["value"]
    share = np.float32(0.3 + turn / 1000)
    tag = int(known[asked["tag is"][0]["tags"]["value"]])
    level = DUPLICATE_LEVELS.index(asked["duplicates"][0]["duplicates"]["value"])
    text = asked["file name contains"][0]["file_name"]["value"]
    labels, tags, rating = frame["labels"], frame["tags"], frame[known["rating"]]
    return {
        "label is": lambda: labels.map(lambda held: held is not None and name in held),
        "two labels, any": lambda: labels.map(lambda held: held is not None and (name in held or other in held)),
        "not label": lambda: ~labels.map(lambda held: held is not None and name in held),
        "issue in, with bounds": lambda: frame["issue_outliers"].between(share, np.float32(0.9)),
        "duplicates": frame[f"duplicate_{level}"].notna,
        "uniqueness": lambda: frame["uniqueness"] >= share,
        "tag is": lambda: tags.map(lambda held: held is not None and tag in held),
        "untagged": lambda: tags.map(lambda held: held is None or len(held) == 0),
        "file name contains": lambda: frame["file_name"].str.contains(text, case=False, regex=False),
        "field between, label": lambda: (
            rating.between(0.3 + turn / 1000, 0.8) & labels.map(lambda held: held is not None and name in held)
        ),
    }


def _count(chosen: Callable[[], Any]) -> int:
    return int(chosen().sum())


def _page(frame: Any, chosen: Callable[[], Any]) -> Any:
    """Return what a page of clusters shows: sizes, the first nine of each, their most frequent labels."""
    rows = frame[chosen()]
    sizes = rows["cluster_0"].value_counts().head(100)
    members = rows[rows["cluster_0"].isin(sizes.index)]
    shown = members.groupby("cluster_0").head(9)
    labels = members[["cluster_0", "labels"]].explode("labels").groupby("cluster_0")["labels"].value_counts()
    return sizes, shown, labels


def _timed(call: Callable[[], Any]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def _peak_mib() -> float:
    unit = 1 if sys.platform == "darwin" else 1024  # ru_maxrss is in bytes on macOS, in KiB on Linux
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**20


TASKS: dict[str, Callable[[Path, str], Answer]] = {"create": create, "ours": ours, "pandas": pandas}


def main() -> None:
    """Run the task that the command line names."""
    task, _, option = sys.argv[1].partition(":")
    result = TASKS[task](Path(sys.argv[2]), option)
    Path(sys.argv[3]).write_text(json.dumps(result), "utf-8")


if __name__ == "__main__":
    main()
