"""Rows of views: positions, ids, orders, members of groups, edits; each in the present state of the dataset."""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from framedex import DuplicateGroups, InvalidInput, NotFound, OutOfRange, RankedView, Workspace, vql
from framedex.api.ids import Ids
from framedex.api.view import reading
from framedex.browse.duplicates import Kept, kept_ids
from framedex.browse.embeddings import selected_vectors
from framedex.operations.sorting import sorted_rows
from framedex.settings import Settings
from framedex.storage.media import Media
from tests.gallery import BROKEN, COPIES, FURRY, NAMES, SETTINGS, Gallery, embedded, grouped
from tests.inside import context_of, without_reserved_names
from tests.objects import scenes
from tests.prepared import prepared
from tests.tuning import Tuning


def test_row__by_position(gallery: Gallery) -> None:
    """A position is that of a list: from the end if negative, and an error of its own, also an IndexError, outside."""
    view = gallery.dataset.view
    assert [view[at]["image_filename"] for at in (0, 5, -1)] == [NAMES[0], NAMES[5], NAMES[-1]]
    assert view[np.int64(2)]["media_id"] == gallery.ids[NAMES[2]]
    for at in (len(NAMES), -len(NAMES) - 1):
        with pytest.raises(OutOfRange, match=f"no row {at} in a view of {len(NAMES)} media") as raised:
            view[at]
        assert isinstance(raised.value, IndexError)


@pytest.mark.parametrize("key", ["media_id", 1.5, None, slice("a", None), slice(None, None, 0), (1, 2)])
def test_row__unusable_position(gallery: Gallery, key: Any) -> None:
    """What is no position is refused."""
    with pytest.raises(InvalidInput):
        gallery.dataset.view[key]


@pytest.mark.slow
@pytest.mark.only_soak
def test_rows__are_of_one_state(workspace: Workspace) -> None:
    """Rows that are yielded later are of the state at the beginning, too."""
    dataset = workspace.create_dataset("d", grouped([3000] * 4))
    rows = dataset.view.rows(["media_id", "tags"])
    first = next(rows)
    dataset.view.tag("later")
    rest = list(rows)
    assert [first["media_id"], *(row["media_id"] for row in rest)] == dataset.view.ids
    assert {tuple(row["tags"]) for row in rest} == {()}


@pytest.mark.slow
@pytest.mark.only_soak
def test_rows__are_few_at_a_time(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first row is there after one block of the table, whatever the number of rows."""
    dataset = workspace.create_dataset("d", grouped([5000] * 20))
    read = 0
    original = Media.take

    def counted(media: Media, row_ids: Any, *arguments: Any, **options: Any) -> pa.Table:
        nonlocal read
        read += len(row_ids)
        return original(media, row_ids, *arguments, **options)

    monkeypatch.setattr(Media, "take", counted)
    assert next(iter(dataset.view.sort_by("file_name").rows(["file_name"]))) == {"file_name": "0.jpg"}
    assert 0 < read < 50_000


def test_ids__are_a_sequence(gallery: Gallery) -> None:
    """The ids are a sequence of texts in order, which equals a list of them, and an Arrow array without a copy."""
    ids = gallery.dataset.view.ids
    expected = [gallery.ids[name] for name in NAMES]
    assert ids == expected
    assert list(ids) == expected
    assert ids != expected[1:]
    assert ids == gallery.dataset.view.ids
    assert (ids[0], ids[-1]) == (expected[0], expected[-1])
    assert ids[2:4] == expected[2:4]
    assert ids[::-2] == expected[::-2]
    assert expected[3] in ids
    assert "é" not in ids
    assert None not in ids
    assert pa.array(ids).equals(pa.array(expected))
    assert ids.to_arrow().to_pylist() == expected
    assert ids.index(expected[4]) == 4
    assert repr(ids).startswith(f"<{len(NAMES)} ids: {expected[0]!r}, ")
    with pytest.raises(IndexError):
        ids[len(ids)]
    assert Ids(pa.array([], pa.string())) == []


@pytest.mark.slow
def test_sort_by__reads_the_present(workspace: Workspace) -> None:
    """A sorted view that was read before an edit is sorted by the new values after it."""
    dataset = workspace.create_dataset("d", grouped([1] * 5))
    ids = dataset.view.media_ids()
    dataset.add_field("rank", "float", values={each: float(at) for at, each in enumerate(ids)})
    view = dataset.view.sort_by("rank", descending=True)
    assert view.ids == ids[::-1]
    dataset.set_field("rank", {ids[0]: 10.0, ids[1]: None})
    assert view.ids == [ids[0], *ids[:1:-1], ids[1]]
    assert view[0:1].ids == [ids[0]]


@pytest.mark.slow
@pytest.mark.only_soak
@pytest.mark.parametrize("cached", [0, 2**20, 2**29])
def test_sort_by__with_any_memory(tmp_path: Path, cached: int) -> None:
    """The rows are the same whether columns and row ids fit in the cache or not."""
    settings = Settings(**{**SETTINGS.model_dump(), "column_cache_bytes": cached})
    with Workspace(tmp_path / "workspace", settings=settings) as workspace:
        dataset = workspace.create_dataset("d", grouped([40] * 100))
        view = dataset.view.sort_by("file_name", descending=True)
        names = sorted((f"{number}.jpg" for number in range(4000)), reverse=True)
        assert [row["file_name"] for row in view[2000:2100].rows(["file_name"])] == names[2000:2100]
        assert view.to_arrow(["file_name"])["file_name"].to_pylist() == names


@pytest.mark.parametrize("column", ["colour", "tags", "embedding", "keep", "bbox", None, 5])
def test_sort_by__what_has_no_order(gallery: Gallery, column: Any) -> None:
    """A column that does not exist, or whose values have no order, is refused with the names of others."""
    with pytest.raises(
        InvalidInput, match="there are: file_name, path, content, shown_from, shown_to, n_pages, media_id"
    ):
        gallery.dataset.view.sort_by(column)


def test_sort_by__suggests_a_column(gallery: Gallery) -> None:
    """A misspelt column is refused with the most similar one."""
    with pytest.raises(InvalidInput, match="did you mean 'width'"):
        gallery.dataset.view.sort_by("widht")


@pytest.mark.parametrize(
    ("method", "arguments"),
    [
        ("limit", {"n": -1}),
        ("limit", {"n": 1.5}),
        ("first", {"n": "2"}),
        ("sample", {"n": 2, "seed": -1}),
        ("sample", {"n": True}),
        ("split", {"parts": {"train": 0.5}}),
        ("split", {"parts": {"train": 0.9, "val": 0.2}}),
        ("split", {"parts": {"train": vql.tags("a"), "val": vql.tags("b")}}),
        ("split", {"parts": {"a b": 1.0}}),
        ("split", {"parts": {}}),
        ("split", {"parts": {str(each): 1 / 101 for each in range(101)}}),
        ("split", {"parts": {"a": 1.0}, "seed": "x"}),
        ("sort_by", {"column": "width", "descending": "yes"}),
        ("select", {"ids": "one"}),
        ("select", {"ids": [1]}),
        ("select", {"ids": 5}),
    ],
)
def test_composition__bad_arguments(gallery: Gallery, method: str, arguments: dict[str, Any]) -> None:
    """Arguments that cannot be used are refused at once."""
    with pytest.raises(InvalidInput):
        getattr(gallery.dataset.view, method)(**arguments)


def test_select__unknown_ids(gallery: Gallery) -> None:
    """An id that is not in the dataset, or not in the view, is named."""
    known = gallery.ids[NAMES[0]]
    with pytest.raises(NotFound, match="no media 'nothing' in this view"):
        gallery.dataset.select([known, "nothing", "other"])
    with pytest.raises(NotFound, match="no media 'é"):
        gallery.dataset.select([known, "é\ud800"])
    with pytest.raises(NotFound, match=known):
        gallery.dataset.view[1:].select([known])
    assert gallery.dataset.select([]).count() == 0
    assert gallery.dataset.select([known, known]).ids == [known]


@pytest.mark.slow
def test_select__of_many(workspace: Workspace) -> None:
    """More ids than a filter may list are selected, in their order; what is deleted later leaves the view."""
    dataset = workspace.create_dataset("d", grouped([6000] * 2))
    ids = dataset.view.media_ids()
    view = dataset.select(ids[::-1])
    assert view.ids == ids[::-1]
    dataset.delete_media(ids[:3])
    assert view.ids == ids[:2:-1]


@pytest.mark.slow
def test_sample__is_the_same_everywhere(tmp_path: Path) -> None:
    """A seed selects the same files in another workspace; another seed selects others."""
    table = grouped([1] * 60)
    samples = []
    for name in ("one", "two"):
        with Workspace(tmp_path / name, settings=SETTINGS) as workspace:
            view = prepared(workspace, "d", table).view
            samples.append([row["path"] for row in view.sample(5, seed=7).rows(["path"])])
            assert samples[-1] != [row["path"] for row in view.sample(5, seed=8).rows(["path"])]
    paths = [f"{number}.jpg" for number in range(60)]
    chosen = sorted(paths, key=lambda path: hashlib.md5(f"7/{path}".encode(), usedforsecurity=False).digest())[:5]
    assert samples[0] == samples[1] == [path for path in paths if path in chosen]


def test_entity_type__of_ordered_views(gallery: Gallery) -> None:
    """A view with positions or ids is of its own entities only; filters apply to others, too."""
    view = gallery.dataset.view
    assert view.explore("OBJECTS").clusters == []
    with pytest.raises(InvalidInput, match="its entity type stays IMAGES"):
        view.limit(3).explore("OBJECTS")
    assert sum(cluster.n_images for cluster in view.limit(3).explore().clusters) == 3


@pytest.mark.slow
@pytest.mark.only_soak
def test_views__show_their_rows_alone(gallery: Gallery) -> None:
    """Issues, histograms, duplicates and exports of a limited view are those of its rows."""
    view = gallery.dataset.view
    copies = [each for each in NAMES if each in COPIES]
    ids = [gallery.ids[name] for name in copies[::-1]]
    chosen = gallery.dataset.select(ids)
    (group,) = chosen.duplicates()
    assert sorted(group.media_ids) == sorted(ids)
    assert chosen.limit(1).duplicates() == []
    assert chosen.histogram("blur", bins=2).total == len(ids)
    broken = view.sort_by("width").to_arrow(["image_filename"])["image_filename"].to_pylist()[-len(BROKEN) :]
    assert set(broken) == set(BROKEN)
    assert view[-1:].issues().num_rows == view[-1:].issues().to_arrow().num_rows
    assert "picked_rows: 1 row" in view[-1:].explain()
    assert "1 media" in view[-1:]._repr_html_()


def test_keep__is_that_of_the_groups(gallery: Gallery) -> None:
    """A row says which group it is in and whether it is the one to keep; outside of groups both are unknown."""
    table = gallery.dataset.to_arrow(["media_id", "duplicate_group_id", "keep", "is_duplicates_issue"])
    groups = gallery.dataset.duplicates()
    of = {each: group for group in groups for each in group.media_ids}
    for row in table.to_pylist():
        group = of.get(row["media_id"])
        assert row["duplicate_group_id"] == (None if group is None else group.group_id)
        assert row["keep"] == (None if group is None else group.keep == row["media_id"])
        assert row["is_duplicates_issue"] == (group is not None)
    assert gallery.dataset.view.limit(0).to_arrow(["keep"]).num_rows == 0


@pytest.mark.parametrize("few", [0, 1000], ids=["by the column", "by the rows"])
def test_keep__of_pages_of_a_large_table(
    gallery: Gallery, tuning: Tuning, monkeypatch: pytest.MonkeyPatch, few: int
) -> None:
    """The first pages find the members to keep of their own groups alone, and later ones those of all."""
    asked: list[int | None] = []

    def noted(media: Media, numbers: pa.Array | None = None) -> Kept:
        asked.append(None if numbers is None else len(numbers))
        return kept_ids(media, numbers)

    dataset = gallery.dataset
    expected = {row["media_id"]: row["keep"] for row in dataset.to_arrow(["media_id", "keep"]).to_pylist()}
    context_of(dataset).selections.clear()
    tuning.many_rows = 0
    monkeypatch.setattr(reading, "kept_ids", noted)
    tuning.rows_for_one = few
    found: dict[str, bool | None] = {}
    for start in range(0, len(expected), 3):
        table = dataset.view[start : start + 3].to_arrow(["media_id", "keep"])
        found |= {row["media_id"]: row["keep"] for row in table.to_pylist()}
    assert found == expected
    assert set(expected.values()) == {True, False, None}
    assert asked
    assert all(number is not None and number <= 2 for number in asked)


@pytest.mark.slow
def test_flags__are_those_of_the_issues(gallery: Gallery) -> None:
    """A flag is true where the table of issues has a row."""
    table = gallery.dataset.to_arrow()
    issues = gallery.dataset.issues().to_arrow().to_pylist()
    flagged = {(row["issue_type"], row["media_id"]) for row in issues}
    for row in table.to_pylist():
        for name in [each for each in row if each.startswith("is_")]:
            assert row[name] == ((name[3:-6], row["media_id"]) in flagged), name


@pytest.mark.slow
def test_to_arrow__has_custom_fields(workspace: Workspace) -> None:
    """Custom fields are columns by default; new ones cannot take the names of columns."""
    dataset = workspace.create_dataset("d", grouped([1] * 3))
    first = dataset.view.ids[0]
    dataset.add_field("price", "float", values={first: 2.5})
    assert dataset.to_arrow()["price"].to_pylist() == [2.5, None, None]
    assert [row["price"] for row in dataset.view] == [2.5, None, None]
    for name in ("keep", "duplicate_group_id", "is_blur_issue"):
        with pytest.raises(InvalidInput):
            dataset.add_field(name, "float")


@pytest.mark.slow
def test_to_arrow__beside_an_older_field(workspace: Workspace) -> None:
    """A custom field that had the name of a new column before stays what it is."""
    dataset = workspace.create_dataset("d", grouped([2, 1]))
    first = dataset.view.ids[0]
    with without_reserved_names():
        dataset.add_field("keep", "string", values={first: "yes"})
        dataset.add_field("relevance", "string", values={first: "no"})
    assert dataset.to_arrow()["keep"].to_pylist() == ["yes", None, None]
    assert dataset.to_arrow()["keep"].equals(dataset.to_arrow(["keep"])["keep"])
    assert dataset.view.sort_by("keep").ids[0] == first
    ranked = dataset.similar(first)
    assert ranked.to_arrow()["relevance"].type == pa.float32()
    assert ranked.to_arrow().column_names.count("relevance") == 1


def test_groups__as_a_table(gallery: Gallery) -> None:
    """The table of groups has a row for each member, in their order."""
    groups = gallery.dataset.duplicates()
    rows = groups.to_arrow().to_pylist()
    assert [row["media_id"] for row in rows] == [each for group in groups for each in group.media_ids]
    assert [row["path"] for row in rows] == [each for group in groups for each in group.paths]
    assert [row["reason"] for row in rows if row["keep"]] == ["kept"] * len(groups)
    assert {row["group_id"]: row["similarity"] for row in rows} == {each.group_id: each.similarity for each in groups}
    assert groups.to_pandas()["keep"].sum() == len(groups)
    assert DuplicateGroups([], gallery.dataset.view).to_arrow().schema == groups.to_arrow().schema


def test_groups__in_part(gallery: Gallery) -> None:
    """A slice of the groups is displayed as they are, with its members, and a position is a group."""
    groups = gallery.dataset.duplicates()
    part = groups[1:]
    assert isinstance(part, DuplicateGroups)
    assert [*part] == [*groups][1:]
    assert part.members(0).ids == groups[1].media_ids
    assert part._repr_html_().count("best to keep") == len(groups) - 1
    members = sum(len(group.media_ids) for group in groups)
    assert repr(groups) == f"<framedex.DuplicateGroups: {len(groups)} groups of {members} images>"
    assert "1 group of" in repr(groups[:1])


@pytest.mark.slow
def test_groups__members_as_views(gallery: Gallery) -> None:
    """The members of a duplicate group, and of a cluster, are views."""
    groups = gallery.dataset.duplicates()
    assert groups.members(0).ids == groups[0].media_ids == groups.members(groups[0]).ids
    with pytest.raises(OutOfRange):
        groups.members(len(groups))
    page = gallery.dataset.view.explore(level=2)
    for cluster in page.clusters:
        members = page.members(cluster)
        assert members.count() == cluster.n_images
        assert {each.media_id for each in cluster.previews} <= set(members.ids)
        assert gallery.dataset.cluster(cluster.cluster_id).ids == members.ids
        assert gallery.dataset.where([{"cluster": {"op": "is", "value": cluster.cluster_id}}]).ids == members.ids
    furry = gallery.dataset.where(vql.labels("fur")).explore(level=4)
    assert gallery.names([each for at in range(len(furry.clusters)) for each in furry.members(at).ids]) == FURRY
    with pytest.raises(NotFound, match="no cluster 'nothing'"):
        gallery.dataset.cluster("nothing")


def test_embeddings__of_views(gallery: Gallery) -> None:
    """Embeddings are those of the rows that have one, in the order of the view, in memory or in a file."""
    ids, vectors = gallery.dataset.embeddings()
    by_id = dict(zip(ids, vectors, strict=True))
    view = gallery.dataset.view.sort_by("file_name", descending=True)
    names, found = view.embeddings()
    assert names == [each for each in view.ids if each in by_id]
    assert found.dtype == np.float32
    assert np.array_equal(found, [by_id[each] for each in names])
    selected = view._selection(view._media())
    mapped_ids, mapped = selected_vectors(selected.media, selected.row_ids(), max_bytes=0)
    assert isinstance(mapped, np.memmap)
    assert mapped_ids == names
    assert np.array_equal(mapped, found)
    assert view.limit(0).embeddings()[1].shape == (0, found.shape[1])


@pytest.mark.slow
def test_edits__of_views(workspace: Workspace) -> None:
    """A tag is given to the rows of a view alone, and taken from them."""
    dataset = workspace.create_dataset("d", embedded([[1, 0]] * 6))
    ids = dataset.view.media_ids()
    assert dataset.view[1:4].tag("keep").count == 3
    assert dataset.where(vql.tags("keep")).ids == ids[1:4]
    assert dataset.where(vql.tags("keep")).limit(2).untag("keep").count == 1
    assert dataset.where(vql.tags("keep")).ids == ids[3:4]
    dataset.set_labels(dataset.select([ids[5], ids[0]]), ["ends"])
    assert dataset.where(vql.labels("ends")).ids == [ids[0], ids[5]]


@pytest.fixture(scope="module")
def street(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A dataset with objects."""
    home = tmp_path_factory.mktemp("street")
    scenes(home / "images", 4)
    with Workspace(home / "workspace", settings=SETTINGS) as workspace:
        yield workspace.create_dataset("street", home / "images", "gist")


def test_objects__of_a_view(street: Any) -> None:
    """The objects of a view are those in its media; a search among them is a search of the view."""
    last = street.view[-1:]
    assert {row["parent_id"] for row in last.objects.rows()} == set(last.ids)
    assert last.objects.count() == 3
    assert street.view.objects.ids == street.objects.ids
    assert street.objects.limit(2).objects.count() == 2
    cats = street.objects.where(vql.labels("cat"))
    query = cats.ids[0]
    ranked = cats.similar(query)
    assert isinstance(ranked, RankedView)
    assert set(ranked.ids) == set(cats.ids)
    assert ranked.ids[0] == query
    assert street.similar(query, entity_type="OBJECTS").where(vql.labels("cat")).ids == ranked.ids
    with pytest.raises(InvalidInput, match="view of objects"):
        cats.tag("keep")
    page = street.objects.explore(level=4)
    assert street.cluster(page.clusters[0].cluster_id).ids == page.members(0).ids
    assert page.members(0).entity_type == "OBJECTS"


def test_objects__that_are_none(gallery: Gallery) -> None:
    """A view of objects of a dataset without objects is empty, whatever its steps."""
    view = gallery.dataset.objects
    for empty in (
        view,
        view.sort_by("width"),
        view.sample(3),
        view[::-1],
        view.split({"a": 1.0})["a"],
        view.select([]),
    ):
        assert empty.ids == []
        assert list(empty) == []
        assert empty.embeddings()[0] == []
    assert gallery.dataset.view.limit(2).objects.ids == []


@pytest.mark.slow
@pytest.mark.only_soak
def test_report__of_a_view(street: Any, tmp_path: Path) -> None:
    """A report of a view counts its media and the objects in them."""
    text = street.view.limit(2).report(tmp_path / "view.html").read_text()
    assert "2 images" in text
    assert "6 objects" in text
    assert "images" in street.objects.report(tmp_path / "objects.html").read_text()


@pytest.mark.slow
def test_order__is_computed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages of a sorted view share its order until another process changes the dataset; its memory is bounded."""
    sorted_by: list[str] = []
    original = sorted_rows

    def counted(media: Media, rows: Any, field: pa.Field, **options: Any) -> Any:
        sorted_by.append(field.name)
        return original(media, rows, field, **options)

    monkeypatch.setattr("framedex.operations.steps.sorted_rows", counted)
    with Workspace(tmp_path / "workspace", settings=SETTINGS) as one, Workspace(tmp_path / "workspace") as other:
        dataset = one.create_dataset("d", grouped([1] * 300))
        ids = dataset.view.media_ids()
        dataset.add_field("rank", "float", values={each: float(-at) for at, each in enumerate(ids)})
        for start in (0, 100, 200):
            assert dataset.view.sort_by("rank")[start : start + 3].ids == ids[::-1][start : start + 3]
        assert sorted_by == ["rank"]
        other.dataset("d").set_field("rank", {ids[0]: -1000.0})
        assert dataset.view.sort_by("rank")[:2].ids == [ids[0], ids[-1]]
        assert sorted_by == ["rank"] * 2
        selections = context_of(one).selections
        monkeypatch.setattr(selections, "max_weight", 3 * 300 * 8)
        for column in ("width", "file_name", "path", "outliers", "blur"):
            dataset.view.sort_by(column)[0:1].count()
        assert selections.weight <= 3 * 300 * 8
