"""Tables that grow a dataset, encoders for it, and what its groups are, as tests compare them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from framedex import Dataset, Workspace
from framedex.records import DatasetStatus
from framedex.storage.media_rows import CLUSTERS, DUPLICATES
from tests.analysis.arrays import unit
from tests.inside import stored_media
from tests.prepared import prepared

GROUPS = (*CLUSTERS, *DUPLICATES)
THRESHOLDS = (0.01, 0.03, 0.1, 0.3, 0.6)


def part(vectors: Any, first: int = 0, **columns: Sequence[Any]) -> pa.Table:
    """Return a table that brings embeddings (or None), with the uris ``<first>.jpg`` and so on."""
    values = [None if vector is None else [float(value) for value in vector] for vector in vectors]
    uris = [f"{first + place}.jpg" for place in range(len(values))]
    return pa.table({"uri": uris, "embedding": pa.array(values, pa.list_(pa.float32())), **columns})


def families(count: int, *, seed: int = 0, dimension: int = 8) -> npt.NDArray[np.float32]:
    """Return rows of which most are near-duplicates of some others, at all levels."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(max(2, count // 6), dimension))
    spread = rng.choice([0.01, 0.05, 0.1, 0.3], (count, 1))
    return unit(centres[rng.integers(0, len(centres), count)] + spread * rng.normal(size=(count, dimension)))


def columns_of(dataset: Dataset, names: Sequence[str] = GROUPS) -> dict[str, list[Any]]:
    """Return stored columns in the order of rows."""
    columns: dict[str, list[Any]] = stored_media(dataset).table.scan(names).read_all().to_pydict()
    return columns


def summary_of(dataset: Dataset) -> dict[str, Any]:
    """Return what the dataset's generation stores beside its tables; of the times of additions which there are."""
    found = stored_media(dataset).generation.summary.model_dump(mode="json")
    return found | {"added_at": sorted(found.get("added_at", {}))}


def partition(numbers: Sequence[int | None]) -> npt.NDArray[np.int64]:
    """Return group numbers in which rows without a group are groups of their own."""
    return np.array([-2 - place if number is None else number for place, number in enumerate(numbers)])


def ids_of(dataset: Dataset) -> dict[str, str]:
    """Return media ids by uri."""
    columns = columns_of(dataset, ["path", "media_id"])
    return dict(zip(columns["path"], columns["media_id"], strict=True))


def groups_of(dataset: Dataset, threshold: float = 0.96) -> dict[str, set[str]]:
    """Return the uris of near-duplicate groups by group id."""
    return {group.group_id: set(group.paths) for group in dataset.duplicates(threshold)}


def status_of(dataset: Dataset) -> DatasetStatus:
    """Return the dataset's status now; a call, of which no type checker thinks that it stays the same."""
    return dataset.info.status_new


def grown(workspace: Workspace, rows: Any, *sizes: int, name: str = "d") -> Dataset:
    """Return a dataset of the first rows to which the others were added in turn."""
    dataset = prepared(workspace, name, part(rows[: sizes[0]]), thresholds=THRESHOLDS)
    start = sizes[0]
    for size in sizes[1:]:
        dataset.add_media(part(rows[start : start + size], start))
        start += size
    return dataset
