"""Views and tables: lazy selections of a dataset's media."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from framedex import InvalidFilter, InvalidInput, Workspace
from framedex.issue_types import issue_types
from tests.gallery import ANIMALS, BROKEN, COPIES, FURRY, NAMES, Gallery, embedded, grouped
from tests.laws import examples

ISSUE = pa.struct(
    {
        "issue_type": pa.string(),
        "confidence": pa.float32(),
        "duplicate_group_id": pa.string(),
        "duplicate_threshold": pa.float32(),
    }
)
COLUMNS = pa.schema(
    {
        "media_id": pa.string(),
        "image_filename": pa.string(),
        "file_path": pa.string(),
        "file_size_bytes": pa.int64(),
        "width": pa.int32(),
        "height": pa.int32(),
        "uniqueness_score": pa.float32(),
        "cluster_id": pa.string(),
        "caption": pa.string(),
        "labels": pa.list_(pa.string()),
        "tags": pa.list_(pa.string()),
        "issues": pa.list_(ISSUE),
        "media_type": pa.string(),
        "video_id": pa.string(),
        "video_name": pa.string(),
        "frame_number": pa.int64(),
        "frame_timestamp": pa.float64(),
        "cluster_0": pa.string(),
        "cluster_1": pa.string(),
        "cluster_2": pa.string(),
        "cluster_3": pa.string(),
        "cluster_4": pa.string(),
        "blur": pa.float32(),
        "dark": pa.float32(),
        "bright": pa.float32(),
        "odd_aspect_ratio": pa.float32(),
        "odd_size": pa.float32(),
        "low_information": pa.float32(),
        "grayscale": pa.float32(),
        "duplicates": pa.float32(),
        "outliers": pa.float32(),
        "mislabels": pa.float32(),
        "label_outlier": pa.float32(),
        **{f"is_{name}_issue": pa.bool_() for name in issue_types()},
        "duplicate_group_id": pa.string(),
        "keep": pa.bool_(),
    }
)
ELEMENTS = st.sampled_from(
    [
        {"labels": {"op": "is", "value": "animal"}},
        {"labels": {"op": "not_one_of", "value": ["fur", "town"]}},
        {"issues": {"op": "issue", "value": "corrupted"}},
        {"issues": {"op": "issue", "value": "duplicates", "mode": "out"}},
        {"duplicates": {"op": "duplicates", "value": 0.99}},
        {"uniqueness": {"op": "uniqueness", "value": 0.2}},
        {"quality": {"of": "blur", "op": "lt", "value": 0.5}},
    ]
)
FILTERS = st.lists(ELEMENTS, max_size=3)


def test_to_arrow__columns(gallery: Gallery) -> None:
    """The table has the columns of the Parquet export, clusters of each level and values, with a row a media item."""
    table = gallery.dataset.to_arrow()
    assert table.schema == COLUMNS
    assert table.num_rows == len(NAMES)
    table.validate(full=True)


def test_to_arrow__values(gallery: Gallery) -> None:
    """A row says what is known of its file."""
    row = gallery.dataset.to_arrow().to_pylist()[NAMES.index(ANIMALS[0])]
    path = gallery.folder / ANIMALS[0]
    group = gallery.dataset.duplicates()[0]
    assert row == row | {
        "media_id": gallery.ids[ANIMALS[0]],
        "image_filename": ANIMALS[0],
        "file_path": str(path),
        "file_size_bytes": path.stat().st_size,
        "width": 160,
        "height": 120,
        "uniqueness_score": 0.0,
        "caption": None,
        "labels": ["animal", "fur"],
        "tags": [],
    }
    assert row["cluster_id"] == row["cluster_0"]
    (found,) = row["issues"]
    assert (found["issue_type"], found["confidence"], found["duplicate_group_id"]) == ("duplicates", 1, group.group_id)
    assert found["duplicate_threshold"] == pytest.approx(0.96)


def test_to_arrow__values_of_broken_files(gallery: Gallery) -> None:
    """Unknown values of a broken file are null, and its lists are empty or name the error."""
    rows = gallery.dataset.to_arrow([*COLUMNS.names, "embedding"]).to_pylist()
    for row in (rows[NAMES.index(name)] for name in BROKEN):
        assert [row[name] for name in ("width", "height", "uniqueness_score", "caption", "embedding")] == [None] * 5
        assert (row["labels"], row["tags"]) == ([], [])
        assert row["issues"] == [
            {
                "issue_type": "corrupted",
                "confidence": 1,
                "duplicate_group_id": None,
                "duplicate_threshold": None,
            }
        ]


def test_to_arrow__scores(gallery: Gallery) -> None:
    """Uniqueness lies in 0 to 1: least for copies."""
    rows = gallery.dataset.to_arrow(["image_filename", "uniqueness_score"]).to_pylist()
    scores = {row["image_filename"]: row["uniqueness_score"] for row in rows if row["uniqueness_score"] is not None}
    assert all(0 <= score <= 1 for score in scores.values())
    assert {name for name, score in scores.items() if score == min(scores.values())} == set(COPIES)


def test_to_arrow__chosen_columns(gallery: Gallery) -> None:
    """Columns come as they are asked for, in that order; the embedding is one of them."""
    table = gallery.dataset.to_arrow(["embedding", "width", "media_id"])
    assert table.schema.names == ["embedding", "width", "media_id"]
    assert table.schema.field("embedding").type == pa.list_(pa.float32(), 610)
    assert table["media_id"].to_pylist() == [gallery.ids[name] for name in NAMES]


@pytest.mark.parametrize("name", COLUMNS.names)
def test_to_arrow__each_column_alone(gallery: Gallery, name: str) -> None:
    """A column is the same whether others are read with it or not."""
    assert gallery.dataset.to_arrow([name])[name].equals(gallery.dataset.to_arrow()[name])


@pytest.mark.parametrize("columns", [["media_id", "colour"], ["cluster_5"], [""]])
def test_to_arrow__unknown_column(gallery: Gallery, columns: Any) -> None:
    """A column that does not exist is refused with the names of those that do."""
    with pytest.raises(InvalidInput, match="there are: media_id, image_filename"):
        gallery.dataset.to_arrow(columns)


def test_to_pandas__is_the_table(gallery: Gallery) -> None:
    """The DataFrame has the rows and columns of the table."""
    frame = gallery.dataset.to_pandas()
    assert list(frame.columns) == COLUMNS.names
    assert frame["image_filename"].tolist() == NAMES
    assert gallery.dataset.where([{"labels": {"op": "is", "value": "fur"}}]).to_pandas(["width"]).shape == (4, 1)


@pytest.mark.slow
def test_to_arrow__nothing_left(gallery: Gallery) -> None:
    """A view without media has the same columns and no rows."""
    view = gallery.dataset.where([{"any": []}])
    assert (view.to_arrow().schema, view.to_arrow().num_rows, view.count(), view.media_ids()) == (COLUMNS, 0, 0, [])
    assert (view.explore().clusters, view.duplicates(), view.issues().num_rows) == ([], [], 0)
    assert "0 media" in view._repr_html_()


def test_where__is_and(gallery: Gallery) -> None:
    """One filter after another leaves what passes both, as one filter of both parts does."""
    animal, duplicate = {"labels": {"op": "is", "value": "animal"}}, {"duplicates": {"op": "duplicates", "value": 0.96}}
    both = gallery.dataset.where([animal]).where([duplicate])
    assert gallery.names(both.media_ids()) == [ANIMALS[0], ANIMALS[2], ANIMALS[3]]
    assert both.media_ids() == gallery.dataset.where([animal, duplicate]).media_ids()
    assert both.explore() == gallery.dataset.where([duplicate]).explore(vql=[animal])


def test_where__leaves_the_view_as_it_was(gallery: Gallery) -> None:
    """A narrower view is another one; changing the list that a view was made of changes nothing."""
    labels = ["fur"]
    vql = [{"labels": {"op": "one_of", "value": labels}}]
    view = gallery.dataset.where(vql)
    view.where([{"issues": {"op": "issue", "value": "dark"}}])
    labels.append("town")
    vql.clear()
    assert gallery.names(view.media_ids()) == FURRY


@pytest.mark.slow
def test_where__is_lazy_and_sees_the_present(workspace: Workspace) -> None:
    """A filter is checked when it is made; the media are looked up when they are asked for."""
    dataset = workspace.create_dataset("d", embedded([[1, 0]], label=["x"]))
    view = dataset.where([{"labels": {"op": "is", "value": "x"}}])
    assert view.count() == 1
    with pytest.raises(InvalidFilter, match=r"\$\[0\]"):
        dataset.where([{"labels": {"op": "like", "value": "x"}}])


@pytest.mark.parametrize("vql", ["labels", {"labels": {}}, 5, [None], [[]], [{}], [{"labels": None}], [{"text": {}}]])
def test_where__unusable_filter(gallery: Gallery, vql: Any) -> None:
    """An invalid filter is refused with the path of the wrong element."""
    with pytest.raises(InvalidFilter) as raised:
        gallery.dataset.where(vql)
    assert raised.value.path.startswith("$")
    assert raised.value.path in str(raised.value)


@examples(25)
@given(first=FILTERS, second=FILTERS)
def test_where__laws(gallery: Gallery, first: list[Any], second: list[Any]) -> None:
    """For any filters: count, ids and table agree; AND intersects; a filter and its complement are all."""
    one, two = gallery.dataset.where(first), gallery.dataset.where(second)
    ids = one.media_ids()
    assert one.count() == len(ids) == len(set(ids)) == one.to_arrow(["width"]).num_rows
    assert ids == [media_id for media_id in gallery.dataset.where([]).media_ids() if media_id in set(ids)]
    assert set(one.where(second).media_ids()) == set(ids) & set(two.media_ids())
    rest = gallery.dataset.where([{"not": first}])
    assert set(rest.media_ids()) == set(gallery.ids.values()) - set(ids)
    assert sum(cluster.n_images for cluster in one.explore(level=3).clusters) == len(ids)


@pytest.mark.slow
@pytest.mark.only_soak
def test_to_arrow__large(workspace: Workspace) -> None:
    """A table of many blocks is whole and in order, with and without a filter."""
    table = grouped([1000] * 10)
    dataset = workspace.create_dataset("large", table.append_column("label", pa.array(["even", "odd"] * 5000)))
    assert dataset.to_arrow(["image_filename"])["image_filename"].to_pylist() == table["uri"].to_pylist()
    odd = dataset.where([{"labels": {"op": "is", "value": "odd"}}]).to_arrow(["image_filename", "labels"])
    assert odd["image_filename"].to_pylist() == table["uri"].to_pylist()[1::2]
    assert {tuple(labels) for labels in odd["labels"].to_pylist()} == {("odd",)}


@pytest.mark.slow
def test_to_arrow__paths_of_uris(workspace: Workspace, tmp_path: Path) -> None:
    """The path of a media item is where its file is; of one that is elsewhere, its uri."""
    uris = ["a/b.jpg", "/abs/c.jpg", "file:///with%20space/d.jpg", "s3://bucket/key/e.jpg"]
    table = pa.table({"uri": uris, "embedding": [[1.0, 0.0]] * 4})
    dataset = workspace.create_dataset("d", table)
    rows = dataset.to_arrow(["file_path", "image_filename"]).to_pylist()
    assert [row["file_path"] for row in rows] == [
        str(Path.cwd() / "a/b.jpg"),
        "/abs/c.jpg",
        "/with space/d.jpg",
        "s3://bucket/key/e.jpg",
    ]
    assert len({row["image_filename"] for row in rows}) == 4
    local = [{"type": "media", "media_ids": dataset.where([]).media_ids()[:3]}]  # there is no such bucket to ask
    result = dataset.export(tmp_path / "out.zip", include_images=True, media_selection=local)
    assert len(result.missing_images) == 3


@pytest.mark.slow
def test_split__by_labels(workspace: Workspace) -> None:
    """Each part has its share of each label, up to a group; copies stay together, and the parts are always the same."""
    counts = {"common": 300, "some": 50, "rare": 10, None: 40}
    labels = [label for label, count in counts.items() for _ in range(count)]
    vectors = np.random.default_rng(0).standard_normal((len(labels), 16)).astype(np.float32)
    vectors[1::2][:100] = vectors[::2][:100]  # a hundred pairs of copies
    dataset = workspace.create_dataset("d", embedded(vectors.tolist(), label=labels))
    shares = {"train": 0.7, "val": 0.2, "test": 0.1}
    parts = dataset.view.split(shares, stratify="labels")
    seen = {name: set(view.media_ids()) for name, view in parts.items()}
    assert sum(map(len, seen.values())) == len(set().union(*seen.values())) == len(labels)
    for label, count in counts.items():
        have = {
            name: sum(row["labels"] == ([label] if label else []) for row in view.rows(["labels"]))
            for name, view in parts.items()
        }
        assert all(abs(have[name] - share * count) <= 2 for name, share in shares.items()), (label, have)
    for group in dataset.duplicates():
        assert sum(bool(ids & set(group.media_ids)) for ids in seen.values()) == 1
    again = dataset.view.split(shares, stratify="labels")
    assert {name: set(view.media_ids()) for name, view in again.items()} == seen
    other = dataset.view.split(shares, seed=1, stratify="labels")
    assert set(other["test"].media_ids()) != seen["test"]
    with pytest.raises(InvalidInput, match="stratify must be 'labels'"):
        dataset.view.split(shares, stratify="label")
