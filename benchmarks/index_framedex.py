"""Tasks that measure Framedex: whole datasets by their stages, and the functions of its index engine."""

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from framedex import Dataset, Workspace
from framedex.analysis.label_entries import Labels
from framedex.analysis.labels import label_quality
from framedex.analysis.linkage import average_linkage
from framedex.analysis.neighbours import nearest, unique_rows

Answer = dict[str, Any]
NAME = "bench"
LEVELS = 5
_RATE_ROWS, _RATE_COLUMNS = 1024, 16384
_RATE_S = 2.0  # seconds that bare products are repeated for


class Stages:
    """Seconds by stage of a task, as it tells of its progress.

    Work is told of when a piece of it is done, so the time since the last word belongs to the stage that speaks.
    """

    def __init__(self) -> None:
        self.spent: dict[str, float] = {}
        self.started = self._last = time.perf_counter()

    def __call__(self, stage: str, share: float) -> None:
        """Note what the task says."""
        now = time.perf_counter()
        self.spent[stage] = self.spent.get(stage, 0.0) + now - self._last
        self._last = now

    def answer(self) -> Answer:
        """Return seconds in all and by stage; what came after the last word is the commit."""
        self("committing", 1.0)
        return {"seconds": self._last - self.started, "stages": self.spent}


def create(source: str, folder: Path, **_: Any) -> Answer:
    """Make a dataset of a Parquet file in the folder's workspace."""
    with Workspace(folder / "workspace") as workspace, compared_rows() as compared:
        stages = Stages()
        dataset = workspace.create_dataset(NAME, source, wait=False)
        _wait(dataset, stages)
        return {**stages.answer(), "rows": dataset.count(), "compared": sum(compared)}


def add(source: str, folder: Path, **_: Any) -> Answer:
    """Add a Parquet file to the dataset, without a new index."""
    with Workspace(folder / "workspace") as workspace:
        dataset = workspace.dataset(NAME)
        stages = Stages()
        dataset.add_media(source, auto_reindex=False, wait=False)
        _wait(dataset, stages)
        return {**stages.answer(), "rows": dataset.count()}


def reindex(folder: Path, **_: Any) -> Answer:
    """Index the whole dataset anew."""
    with Workspace(folder / "workspace") as workspace, compared_rows() as compared:
        dataset = workspace.dataset(NAME)
        stages = Stages()
        dataset.reindex(wait=False)
        _wait(dataset, stages)
        return {**stages.answer(), "rows": dataset.count(), "compared": sum(compared)}


def _wait(dataset: Dataset, stages: Stages) -> None:
    assert dataset.task is not None, "it was started here"
    dataset.task.wait(progress=stages)


@contextmanager
def compared_rows() -> Iterator[list[int]]:
    """Yield a list that gets, for each search of neighbours, how many pairs of rows it compared.

    The index does not keep that figure, so the function is listened to in every module that uses it.
    """
    counts: list[int] = []

    def listened(*given: Any, **options: Any) -> Any:
        graph = nearest(*given, **options)
        counts.append(int(graph.n_comparisons))
        return graph

    users = [module for name, module in sys.modules.items() if name.startswith("framedex.") and _uses(module)]
    for module in users:
        vars(module)["nearest"] = listened
    try:
        yield counts
    finally:
        for module in users:
            vars(module)["nearest"] = nearest


def _uses(module: ModuleType) -> bool:
    return vars(module).get("nearest") is nearest


def read_clusters(target: str, folder: Path, **_: Any) -> Answer:
    """Write the cluster of each media item as numbers, shape (N, levels), with the ids that they stand for."""
    columns = [f"cluster_{level}" for level in range(LEVELS)]
    with Workspace(folder / "workspace", read_only=True) as workspace:
        listed = workspace.dataset(NAME).to_arrow(["file_path", *columns])
    order = np.argsort(listed["file_path"].to_numpy())
    held: dict[str, Any] = {}
    labels = np.empty((len(order), LEVELS), dtype=np.int64)
    for level, column in enumerate(columns):
        found = listed[column].combine_chunks().dictionary_encode()
        labels[:, level] = found.indices.to_numpy()[order]
        held[f"ids_{level}"] = np.array(found.dictionary.to_pylist(), dtype=str)
    np.savez(target, labels=labels, **held)
    return {"seconds": 0, "rows": len(labels)}


def products(dimension: int, **_: Any) -> Answer:
    """Measure the rate of bare float32 matrix products, in multiply-adds a second."""
    random = np.random.default_rng(0)
    one = random.standard_normal((_RATE_ROWS, dimension), dtype=np.float32)
    other = random.standard_normal((_RATE_COLUMNS, dimension), dtype=np.float32)
    out = np.empty((_RATE_ROWS, _RATE_COLUMNS), dtype=np.float32)
    np.matmul(one, other.T, out=out)  # the threads start
    times, started = 0, time.perf_counter()
    while time.perf_counter() - started < _RATE_S:
        np.matmul(one, other.T, out=out)
        times += 1
    seconds = time.perf_counter() - started
    return {"seconds": seconds, "rate": times * one.size * _RATE_COLUMNS / seconds}


def neighbours(
    vectors: str, sample: str, k: int, target: str, exact: bool | None, recall: float | None, **_: Any
) -> Answer:
    """Find neighbours of all rows; write those of the sampled rows.

    Args:
        vectors: a NumPy file, of distinct rows.
        sample: a NumPy file with rows.
        k: neighbours a row.
        target: a NumPy file for the neighbours' rows.
        exact: the engine's path; None for its choice.
        recall: the wanted one; None for the default.
    """
    held, rows = np.load(vectors), np.load(sample)
    started = time.perf_counter()
    graph = nearest(held, k=k, **_given(exact=exact, recall=recall))
    seconds = time.perf_counter() - started
    np.save(target, graph.rows[rows])
    return {"seconds": seconds, "compared": int(graph.n_comparisons)}


def framedex(
    vectors: str, sample: str, k: int, cuts: Sequence[float], target: str, exact: bool | None = None, **_: Any
) -> Answer:
    """Find neighbours and clusters of vectors; see ``index_tools`` for what is written."""
    held = np.load(vectors)
    started = time.perf_counter()
    first, inverse = unique_rows(held)
    distinct = held if len(first) == len(held) else held[first]
    graph = nearest(distinct, k=k, **_given(exact=exact))
    between = time.perf_counter()
    weights = np.bincount(inverse, minlength=len(first))
    labels = average_linkage(distinct, weights, graph, cuts)[inverse]
    ended = time.perf_counter()
    found: dict[str, Any] = {"labels": labels}
    if len(first) == len(held):
        found["neighbours"] = graph.rows[np.load(sample)]
    np.savez(target, **found)
    return {"seconds": ended - started, "neighbours_s": between - started, "clusters_s": ended - between}


def _given(**options: Any) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


def gist(images: str, target: str, levels: Sequence[float], folder: Path, **_: Any) -> Answer:
    """Make a dataset of a folder of images; write its embeddings, file names and near-duplicate groups."""
    with Workspace(folder / "workspace-gist") as workspace:
        started = time.perf_counter()
        dataset = workspace.create_dataset(NAME, images, encoder="gist")
        seconds = time.perf_counter() - started
        ids, vectors = dataset.embeddings()
        listed = dataset.to_arrow(["media_id", "image_filename"]).to_pydict()
        name_of = dict(zip(listed["media_id"], listed["image_filename"], strict=True))
        place = {media_id: row for row, media_id in enumerate(ids)}
        groups = np.full((len(ids), len(levels)), -1, dtype=np.int64)
        for column, level in enumerate(levels):
            for number, group in enumerate(dataset.duplicates(level)):
                groups[[place[media_id] for media_id in group.media_ids], column] = number
    np.savez(target, names=[name_of[media_id] for media_id in ids], vectors=vectors, groups=groups)
    return {"seconds": seconds, "images": len(ids)}


def mislabels(labelled: str, target: str, **_: Any) -> Answer:
    """Write how little the neighbours support each given label, for each set of labels, shape (seeds, N)."""
    data = np.load(labelled)
    vectors, given = data["vectors"], data["given"]
    count = int(given.max()) + 1
    started = time.perf_counter()
    scores = []
    for codes in given:
        first, inverse = unique_rows(vectors)
        labels = Labels(codes.astype(np.int32), np.arange(len(codes) + 1), count)
        scores.append(1 - label_quality(nearest(vectors[first]), inverse, labels).support)
    seconds = (time.perf_counter() - started) / len(scores)
    np.save(target, np.stack(scores))
    return {"seconds": seconds}
