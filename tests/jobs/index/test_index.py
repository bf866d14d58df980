"""Indexing adds clusters, duplicates, scores and issues to any rows."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from framedex.errors import Aborted
from framedex.issue_types import FAULTS, issue_types
from framedex.jobs.index.index import index
from framedex.jobs.ingest.rows import rows_to_batch
from framedex.records import DUPLICATE_LEVELS
from framedex.storage import tables
from framedex.storage.media_rows import CLUSTERS, DUPLICATES, index_schema, media_schema
from framedex.storage.table_versions import Table
from tests.analysis.arrays import Vectors, clustered, uniform
from tests.jobs.fakes import StopAt

CUTS = (0.02, 0.05, 0.1, 0.3, 0.6)
MEASURES = ("acutance", "highlights", "exposure", "aspect_ratio", "information", "colourfulness")
GOOD = dict(zip(MEASURES, (0.6, 0.9, 0.1, 0.75, 0.7, 0.5), strict=True))
ISSUES = [issue.confidence_column for issue in issue_types().values()]


def build(path: Path, vectors: list[Any], **columns: list[Any]) -> Table:
    """Return a media table with embeddings (or None) and columns; other columns have the values of a good image."""
    dimension = next((len(each) for each in vectors if each is not None), 4)
    schema = media_schema(dimension)
    rows = []
    for place, vector in enumerate(vectors):
        row: dict[str, Any] = dict.fromkeys(schema.names)
        row |= {"media_id": str(place), "path": f"{place}.jpg", "root": 0, "batch": 0, "width": 640, "height": 480}
        row |= GOOD | {"embedding": vector} | {name: values[place] for name, values in columns.items()}
        rows.append(row)
    return Table(path, tables.append(path, [rows_to_batch(rows, schema)], schema))


def indexed(table: Table, **options: Any) -> tuple[pa.Table, dict[str, float | None]]:
    """Return the index columns and the limits of the issues."""
    result = index(table, CUTS, progress=options.get("progress", lambda _stage, _share: None))
    new = Table(table.path, result.version)
    assert new.schema.names == [*table.schema.names, *(n for n in index_schema().names if n not in table.schema.names)]
    return new.scan(index_schema().names).read_all(), result.thresholds


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The path of the table."""
    return tmp_path / "media.lance"


def copies_and_others() -> Vectors:
    """Return ten vectors: three copies of one, a near-duplicate pair, five others."""
    base = uniform(8, 32)
    near = base[1] + 0.02 * uniform(1, 32, seed=1)[0]
    return np.concatenate([base[[0, 0, 0, 1]], (near / np.linalg.norm(near))[None], base[3:8]]).astype(np.float32)


def test_index__groups_copies_and_near_duplicates(path: Path) -> None:
    """Copies share all groups, near-duplicates share groups up to their similarity, and other rows have none."""
    columns, _ = indexed(build(path, list(copies_and_others())))
    finest = columns[CLUSTERS[0]].to_pylist()
    assert finest == [1, 1, 1, 2, 2, 3, 4, 5, 6, 7]
    assert columns[DUPLICATES[0]].to_pylist() == [0, 0, 0, 1, 1] + [None] * 5
    assert columns[DUPLICATES[-1]].to_pylist() == [0, 0, 0] + [None] * 7
    similarity = columns["duplicate_similarity"].to_pylist()
    assert similarity[:3] == [1, 1, 1]
    assert DUPLICATE_LEVELS[0] < similarity[3] < 1
    found = columns["issue_duplicates"].to_pylist()
    assert found[:5] == similarity[:5]
    assert found[5:] == [None] * 5
    assert columns["uniqueness"].to_pylist()[:3] == [0, 0, 0]
    assert min(columns["uniqueness"].to_pylist()[5:]) > 0.5


def test_index__clusters_are_nested_and_complete(path: Path) -> None:
    """Every row with an embedding has a cluster at each level, and clusters are nested."""
    columns, _ = indexed(build(path, list(clustered(300, 16))))
    levels = [columns[name].to_numpy() for name in CLUSTERS]
    assert all(level.min() == 1 for level in levels)
    assert len(set(levels[0].tolist())) > len(set(levels[-1].tolist())) >= 2
    for fine, coarse in pairwise(levels):
        assert len(set(zip(fine.tolist(), coarse.tolist(), strict=True))) == len(set(fine.tolist()))


def test_index__rows_without_an_embedding(path: Path) -> None:
    """Corrupted rows are in cluster 0, have no scores, and have the issue with the confidence 1."""
    vectors: list[Any] = list(uniform(4, 8))
    vectors[1] = None
    broken: dict[str, list[Any]] = {name: [1.0, None, 1.0, 1.0] for name in MEASURES}
    table = build(path, vectors, error=[None, "cut off", None, None], width=[9, None, 9, 9], **broken)
    columns, _ = indexed(table)
    row = columns.slice(1, 1).to_pylist()[0]
    assert {row[name] for name in CLUSTERS} == {0}
    expected = {name: None for name in index_schema().names if name not in CLUSTERS} | {"issue_corrupted": 1.0}
    assert {name: value for name, value in row.items() if name not in CLUSTERS} == expected
    assert columns["issue_corrupted"].to_pylist() == [None, 1, None, None]
    assert 0 not in columns[CLUSTERS[0]].to_pylist()[2:]


@pytest.mark.parametrize("count", [0, 1, 3])
def test_index__no_embedding_at_all(path: Path, count: int) -> None:
    """A table of corrupted rows only, and a table without rows, can be indexed."""
    columns, _ = indexed(build(path, [None] * count, error=["broken"] * count))
    assert columns.num_rows == count
    assert columns[CLUSTERS[0]].to_pylist() == [0] * count
    assert columns["issue_corrupted"].to_pylist() == [1] * count
    assert columns["uniqueness"].to_pylist() == [None] * count


@pytest.mark.parametrize("count", [1, 2])
def test_index__few_rows(path: Path, count: int) -> None:
    """A single image is unique; two images are compared with each other."""
    columns, limits = indexed(build(path, list(uniform(count, 8))))
    assert columns[CLUSTERS[0]].to_pylist() == [1, 2][:count]
    assert columns[DUPLICATES[0]].to_pylist() == [None] * count
    assert columns["uniqueness"].to_pylist() == [1] * count
    assert limits["outliers"] is None
    assert all(columns[name].null_count == count for name in ISSUES)


@pytest.mark.slow
def test_index__thousands_of_copies(path: Path) -> None:
    """Copies of one image are one cluster and one group, with the uniqueness 0."""
    columns, _ = indexed(build(path, [uniform(1, 16)[0]] * 5000))
    assert set(columns[CLUSTERS[0]].to_pylist()) == {1}
    assert set(columns[DUPLICATES[-1]].to_pylist()) == {0}
    assert set(columns["uniqueness"].to_pylist()) == {0}
    assert columns["issue_outliers"].null_count == 5000


def test_index__issues_by_the_rules(path: Path) -> None:
    """Each measure beyond its limit is an issue of its row only, with a confidence."""
    cases = {
        "blur": ("acutance", 0.1),
        "dark": ("highlights", 0.1),
        "bright": ("exposure", 0.99),
        "odd_aspect_ratio": ("aspect_ratio", 0.1),
        "low_information": ("information", 0.1),
        "grayscale": ("colourfulness", 0.0),
    }
    count = len(cases) + 3
    measures = {name: [value] * count for name, value in GOOD.items()}
    for place, (column, value) in enumerate(cases.values()):
        measures[column][place] = value
    columns, limits = indexed(build(path, list(uniform(count, 32)), **measures))
    for place, issue in enumerate(cases):
        found = columns[f"issue_{issue}"].to_pylist()
        assert [value is not None for value in found] == [other == place for other in range(count)], issue
        assert 0.5 < found[place] <= 1
        assert limits[issue] == issue_types()[issue].threshold
    assert set(limits) == set(issue_types()) - {each.name for each in FAULTS.values()}


def test_index__of_a_table_without_a_measure(path: Path) -> None:
    """A table without a newer measure is indexed, without issues of that measure."""
    table = build(path, list(uniform(6, 16)), acutance=[0.1] * 6, colourfulness=[0.0] * 6)
    older = Table(path, tables.drop_columns(table, ["colourfulness"]))
    columns, limits = indexed(older)
    assert columns["issue_grayscale"].null_count == 6
    assert columns["issue_blur"].null_count == 0
    assert limits["grayscale"] is not None


def test_index__odd_sizes_and_outliers(path: Path) -> None:
    """An image of another size, and one unlike all others, are found among many."""
    vectors = clustered(60, 32, centres=1, spread=0.2)
    vectors[7] = -vectors[7]
    width = [640] * 60
    width[3] = 64
    columns, limits = indexed(build(path, list(vectors), width=width))
    assert [place for place, value in enumerate(columns["issue_odd_size"].to_pylist()) if value is not None] == [3]
    assert 7 in [place for place, value in enumerate(columns["issue_outliers"].to_pylist()) if value is not None]
    assert limits["outliers"] is not None
    assert columns["outlier_distance"].to_pylist()[7] > limits["outliers"]


def test_index__again_replaces_the_columns(path: Path) -> None:
    """A second run over the same rows gives the same columns, once each."""
    table = build(path, list(copies_and_others()))
    once = Table(path, index(table, CUTS, progress=lambda _stage, _share: None).version)
    again, _ = indexed(once)
    assert again == once.scan(index_schema().names).read_all()


def test_index__progress_ascends_to_one_and_can_stop(path: Path) -> None:
    """Progress ascends to one, and an error raised by progress ends the work before anything is written."""
    table = build(path, list(clustered(200, 8)))
    stop = StopAt(0.4)
    with pytest.raises(Aborted):
        index(table, CUTS, progress=lambda _stage, share: stop(share))
    assert Table(path, table.version).count() == 200
    with pytest.raises(Exception, match="has no version"):
        Table(path, table.version + 1)
    shares: list[float] = []
    indexed(table, progress=lambda _stage, share: shares.append(share))
    assert shares == sorted(shares)
    assert shares[-1] == 1
