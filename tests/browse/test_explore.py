"""The Explore result: pages of clusters of filtered media, in the interface's form."""

import inspect
import uuid
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from framedex import Dataset, ExplorePage, InvalidFilter, InvalidInput, View, Workspace
from framedex.api.view import ExploreSearch
from framedex.records import Cluster
from tests.gallery import ANIMALS, BROKEN, COPIES, FURRY, NAMES, NEAR, SETTINGS, TOWNS, Gallery, embedded, grouped

CLUSTER_FIELDS = {
    "cluster_id", "type", "n_images", "similarity_threshold", "relevance_score", "relevance_score_type", "captions",
    "previews", "labels", "user_tags",  # the interface
    "n_objects", "n_videos", "n_frames", "size_display_value", "formed_by", "name",  # beyond it
}  # fmt: skip
PREVIEW_FIELDS = {
    "type", "media_id", "media_uri", "media_thumb_uri", "caption", "file_name", "relevance_score",
    "relevance_score_type", "width", "height",  # the interface
    "image_id", "image_uri", "bounding_box", "original_uri", "video_uri", "frame_timestamp", "labels",
    "user_tags", "copy",  # beyond it
}  # fmt: skip


def members(dataset: Dataset, level: int) -> dict[str, frozenset[str]]:
    """Return the media ids of each cluster of a level, by its id, from the table."""
    rows = dataset.to_arrow(["media_id", f"cluster_{level}"]).to_pylist()
    clusters: dict[str, set[str]] = {}
    for row in rows:
        clusters.setdefault(row[f"cluster_{level}"], set()).add(row["media_id"])
    return {cluster_id: frozenset(ids) for cluster_id, ids in clusters.items()}


def all_pages(view: View | Dataset, level: int) -> Iterator[Cluster]:
    for number in range(100):
        clusters = view.explore(level=level, page_number=number).clusters
        if not clusters:
            return
        assert len(clusters) <= 100
        yield from clusters


def cluster_of(clusters: list[Cluster], gallery: Gallery, name: str) -> Cluster:
    return next(c for c in clusters if gallery.ids[name] in [preview.media_id for preview in c.previews])


def test_explore__fields(gallery: Gallery) -> None:
    """A page, a cluster and a preview have the fields of the interface, the page its place among all and notes."""
    page = gallery.dataset.explore().model_dump()
    assert set(page) == {"clusters", "metadata", "total_pages", "current_page", "notes"}
    assert page["metadata"] == {"used_duckdb": True}
    for cluster in page["clusters"]:
        assert set(cluster) == CLUSTER_FIELDS
        for preview in cluster["previews"]:
            assert set(preview) == PREVIEW_FIELDS


def test_explore__types(gallery: Gallery) -> None:
    """Fields have the types of the interface; counts that do not apply are -1."""
    cluster = cluster_of(gallery.dataset.explore(level=2).clusters, gallery, COPIES[0])
    assert cluster.cluster_id == str(uuid.UUID(cluster.cluster_id))
    assert (cluster.type, cluster.formed_by, cluster.similarity_threshold) == ("IMAGES", "SIMILARITY", "2")
    assert (cluster.n_images, cluster.n_objects, cluster.n_videos, cluster.n_frames) == (3, -1, -1, -1)
    assert (cluster.size_display_value, cluster.relevance_score_type) == ("3", "cosine_distance")
    preview = cluster.previews[0]
    assert (preview.type, preview.file_name, preview.width, preview.height) == ("IMAGE", "00.jpg", 160, 120)
    assert preview.media_id == preview.image_id == gallery.ids[ANIMALS[0]]
    assert preview.media_uri == preview.image_uri == preview.original_uri
    assert (preview.bounding_box, preview.video_uri, preview.frame_timestamp) == (None, None, None)


def test_explore__survives_json(gallery: Gallery) -> None:
    """A page goes through JSON unchanged."""
    page = gallery.dataset.explore(level=1)
    assert ExplorePage.model_validate_json(page.model_dump_json()) == page


def test_explore__uris_lead_to_files(gallery: Gallery) -> None:
    """Image and thumbnail of each preview are existing files, before and after thumbnails were made."""
    for _ in range(2):
        previews = [p for cluster in gallery.dataset.explore().clusters for p in cluster.previews]
        for preview in previews:
            for uri in (preview.media_uri, preview.media_thumb_uri):
                assert uri.startswith("file:///")
                assert Path(unquote(uri.removeprefix("file://"))).is_file()
        gallery.dataset.thumbnail(gallery.ids[ANIMALS[0]])
    shown = cluster_of(gallery.dataset.explore().clusters, gallery, ANIMALS[0]).previews[0]
    assert shown.media_thumb_uri != shown.media_uri


@pytest.mark.slow
@pytest.mark.parametrize("level", range(5))
def test_explore__says_what_the_table_says(gallery: Gallery, level: int) -> None:
    """Ids and sizes of clusters equal those in the table's columns, and previews are members."""
    truth = members(gallery.dataset, level)
    clusters = gallery.dataset.explore(level=level).clusters
    assert {c.cluster_id: c.n_images for c in clusters} == {key: len(ids) for key, ids in truth.items()}
    for cluster in clusters:
        assert {preview.media_id for preview in cluster.previews} <= truth[cluster.cluster_id]


@pytest.mark.parametrize("level", range(5))
def test_explore__known_groups(gallery: Gallery, level: int) -> None:
    """Copies and near-duplicates share a cluster at every level; broken files have a cluster of their own."""
    clusters = members(gallery.dataset, level).values()
    by_name = [set(gallery.names(sorted(ids))) for ids in clusters]
    assert set(BROKEN) in by_name
    for group in [COPIES, *NEAR]:
        assert any(set(group) <= names for names in by_name)


def test_explore__nested(gallery: Gallery) -> None:
    """Each cluster lies within one of the next coarser level."""
    for level in range(4):
        coarser = members(gallery.dataset, level + 1).values()
        for ids in members(gallery.dataset, level).values():
            assert sum(ids <= others for others in coarser) == 1


def test_explore__broken_files(gallery: Gallery) -> None:
    """Undecodable files form one cluster, marked as such and without image sizes."""
    cluster = cluster_of(gallery.dataset.explore().clusters, gallery, BROKEN[0])
    assert (cluster.formed_by, cluster.n_images) == ("CORRUPTED", 3)
    assert {(preview.width, preview.height) for preview in cluster.previews} == {(None, None)}


@pytest.mark.slow
def test_explore__labels_most_frequent_first(workspace: Workspace) -> None:
    """Labels of a cluster are sorted by count, then by name, ten at most."""
    labels = ['["zebra", "horse"]', '["zebra", "ant"]', "zebra", "ant", str([f"rare{n:02}" for n in range(12)])]
    dataset = workspace.create_dataset("d", embedded([[1, 0]] * 5 + [[0, 1]], label=[*labels, None]))
    first, second = dataset.explore().clusters
    assert first.labels == ["zebra", "ant", "horse", *(f"rare{n:02}" for n in range(7))]
    assert second.labels is None


def test_explore__labels_of_the_filtered(gallery: Gallery) -> None:
    """Labels and captions are those of the filtered media."""
    clusters = gallery.dataset.where([{"labels": {"op": "is", "value": "town"}}]).explore().clusters
    assert {tuple(c.labels or ()) for c in clusters} == {("town",)}
    assert sorted(caption for c in clusters for caption in c.captions) == [
        f"a street, number {n:02}" for n in range(12)
    ]


@pytest.mark.slow
def test_explore__pages(workspace: Workspace) -> None:
    """Pages have a hundred clusters, and each media item is in one cluster of one page.

    Pages beyond the last are empty.
    """
    sizes = [1 + number % 4 for number in range(250)]
    dataset = workspace.create_dataset("many", grouped(sizes))
    pages = [dataset.explore(page_number=number).clusters for number in range(4)]
    assert [len(page) for page in pages] == [100, 100, 50, 0]
    clusters = [cluster for page in pages for cluster in page]
    assert len({cluster.cluster_id for cluster in clusters}) == 250
    assert sum(cluster.n_images for cluster in clusters) == dataset.count() == sum(sizes)
    shown = Counter(preview.media_id for cluster in clusters for preview in cluster.previews)
    assert shown == Counter(dataset.where([]).media_ids())
    assert [cluster.n_images for cluster in clusters] == sorted(sizes, reverse=True)
    assert dataset.explore(page_number=2**31).clusters == []


@pytest.mark.slow
def test_explore__order_is_stable(workspace: Workspace) -> None:
    """Clusters of equal size are in the order of their first media, also after reopening the workspace."""
    dataset = workspace.create_dataset("many", grouped([2] * 130))
    pages = [dataset.explore(page_number=number) for number in range(2)]
    names = [preview.file_name for page in pages for cluster in page.clusters for preview in cluster.previews[:1]]
    assert names == [f"{number}.jpg" for number in range(130)]
    with Workspace(workspace.path, settings=SETTINGS) as again:
        assert [again.dataset("many").explore(page_number=number) for number in range(2)] == pages


def test_explore__previews_are_the_first_members(workspace: Workspace) -> None:
    """A cluster shows at most nine of its media: the first ones."""
    cluster = workspace.create_dataset("d", grouped([30])).explore().clusters[0]
    assert [preview.file_name for preview in cluster.previews] == [f"{number}.jpg" for number in range(9)]


def is_one_of(*labels: str) -> dict[str, Any]:
    return {"labels": {"op": "one_of", "value": list(labels)}}


def issue(name: str, **more: Any) -> dict[str, Any]:
    return {"issues": {"op": "issue", "value": name, **more}}


ALIKE = sorted({*COPIES, *NEAR[0], *NEAR[1]})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("vql", "names"),
    [
        ([], NAMES),
        ([is_one_of("fur")], FURRY),
        ([is_one_of("fur", "town")], [*FURRY, *TOWNS]),
        ([is_one_of("nothing")], []),
        ([{"labels": {"op": "is", "value": "animal"}}], ANIMALS),
        ([{"labels": {"op": "is_not", "value": "animal"}}], sorted({*NAMES} - {*ANIMALS})),
        ([{"labels": {"op": "not_one_of", "value": ["animal", "town"]}}], sorted({*NAMES} - {*ANIMALS, *TOWNS})),
        ([is_one_of("animal"), {"labels": {"op": "is_not", "value": "fur"}}], sorted({*ANIMALS} - {*FURRY})),
        ([issue("dark")], ["bad/dark.png"]),
        ([issue("dark", mode="in")], ["bad/dark.png"]),
        ([issue("dark", mode="out")], sorted({*NAMES} - {"bad/dark.png"})),
        ([issue("corrupted")], BROKEN),
        ([issue("corrupted", confidence_max=0.9)], []),
        ([issue("grayscale", confidence_min=0.95)], ["bad/grey.png"]),
        ([issue("grayscale", confidence_max=0.95)], ["bad/bright.png"]),
        ([issue("grayscale", confidence_max=0.95, mode="out")], sorted({*NAMES} - {"bad/bright.png"})),
        ([issue("odd_aspect_ratio")], ["bad/wide.png"]),
        ([issue("duplicates")], ALIKE),
        ([{"duplicates": {"op": "duplicates", "value": 0.96}}], ALIKE),
        ([{"duplicates": {"op": "duplicates", "value": 1}}], sorted(COPIES)),
        ([{"uniqueness": {"op": "uniqueness", "value": 0}}], sorted({*NAMES} - {*BROKEN})),
        ([{"any": [issue("dark"), is_one_of("fur")]}], [*FURRY, "bad/dark.png"]),
        ([{"any": []}], []),
        ([{"not": {"any": [is_one_of("animal"), is_one_of("town")]}}], sorted({*NAMES} - {*ANIMALS, *TOWNS})),
        ([{"not": [is_one_of("animal"), is_one_of("fur")]}], sorted({*NAMES} - {*FURRY})),
        ([{"not": {"uniqueness": {"op": "uniqueness", "value": 0}}}], BROKEN),
        ([{"id": 7, **is_one_of("fur")}], FURRY),
    ],
)  # fmt: skip
def test_explore__filters(gallery: Gallery, vql: list[Any], names: list[str]) -> None:
    """A filter limits the clusters of every level, the count, and the table to the matching media."""
    view = gallery.dataset.where(vql)
    assert gallery.names(view.media_ids()) == sorted(names)
    assert view.count() == len(names)
    for level in (0, 4):
        clusters = list(all_pages(view, level))
        shown = [preview.media_id for cluster in clusters for preview in cluster.previews]
        assert sorted(gallery.names(shown)) == sorted(names)
        assert [c.n_images for c in clusters] == sorted((c.n_images for c in clusters), reverse=True)
        assert gallery.dataset.explore(level=level, vql=vql).clusters == clusters
        assert {c.cluster_id for c in clusters} <= set(members(gallery.dataset, level))


@pytest.mark.parametrize("entity_type", ["images", "", "FILMS", 0])
def test_explore__unusable_entity_type(gallery: Gallery, entity_type: Any) -> None:
    """The error for an unknown entity type lists the valid ones."""
    with pytest.raises(InvalidInput, match=r"IMAGES, OBJECTS, VIDEOS, not "):
        gallery.dataset.explore(entity_type)


def test_explore__objects(gallery: Gallery) -> None:
    """A dataset without objects has no clusters of them."""
    assert gallery.dataset.explore("OBJECTS").clusters == []


@pytest.mark.parametrize("level", [-1, 5, 1.0, "1", None, True])
def test_explore__unusable_level(gallery: Gallery, level: Any) -> None:
    """A level that does not exist is refused with the range of those that do."""
    with pytest.raises(InvalidInput, match=r"level must be a whole number from 0 to 4"):
        gallery.dataset.explore(level=level)


@pytest.mark.parametrize("page_number", [-1, 0.5, "0", None, False, 2**31 + 1])
def test_explore__unusable_page(gallery: Gallery, page_number: Any) -> None:
    """A page number is an integer from 0."""
    with pytest.raises(InvalidInput, match=r"page_number must be a whole number"):
        gallery.dataset.explore(page_number=page_number)


def test_explore__unusable_filter(gallery: Gallery) -> None:
    """An invalid filter is refused with the path of the error."""
    with pytest.raises(InvalidFilter, match=r"\$\[1\]") as raised:
        gallery.dataset.explore(vql=[is_one_of("x"), {"colour": {}}])
    assert raised.value.path == "$[1]"


@pytest.mark.slow
def test_explore__cluster_ids_are_of_their_dataset(workspace: Workspace) -> None:
    """Cluster ids are unique, over all levels and over datasets of the same content."""
    datasets = [workspace.create_dataset(name, grouped([2, 1])) for name in ("a", "b")]
    ids = [c.cluster_id for dataset in datasets for level in range(5) for c in dataset.explore(level=level).clusters]
    assert len(ids) == len(set(ids)) == 2 * 5 * 2


def test_explore__arguments_are_typed(gallery: Gallery) -> None:
    """Type checkers reject misspelt arguments, as the call itself does."""
    with pytest.raises(TypeError, match="treshold"):
        gallery.dataset.explore(treshold=2)  # type: ignore[call-arg] # the ignore is used only if mypy sees it
    of_view = set(inspect.signature(View.explore).parameters)
    assert set(ExploreSearch.__annotations__) == of_view - {"self", "entity_type", "level", "page_number", "vql"}
