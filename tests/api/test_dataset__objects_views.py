"""Objects are read as media are: as a view, in Explore, and by all that is said of them."""

import io
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from framedex import Dataset, InvalidInput, NotFound, Workspace
from framedex.export.columns import OF_BOXES
from tests.gallery import SETTINGS
from tests.image_files import photo, write
from tests.inside import layout_of
from tests.things import CARS, DARK, IMAGES, SAME, THINGS, Thing, make_things, pixels_of


@dataclass(frozen=True)
class Street:
    """A dataset with objects, and the ids of its media and objects."""

    workspace: Workspace
    dataset: Dataset
    media: dict[str, str]
    ids: dict[Thing, str]


@pytest.fixture(scope="module")
def street(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Street]:
    folder = tmp_path_factory.mktemp("street")
    with Workspace(folder / "workspace", settings=SETTINGS) as workspace:
        dataset = workspace.create_dataset("street", make_things(folder / "images"))
        rows = dataset.to_arrow(["image_filename", "media_id"]).to_pylist()
        media = {row["image_filename"]: row["media_id"] for row in rows}
        columns = ["media_id", "parent_id", "label", "bbox", "confidence"]
        ids = {}
        for row in dataset.objects.to_arrow(columns).to_pylist():
            name = next(name for name, media_id in media.items() if media_id == row["parent_id"])
            x, y, width, height = row["bbox"]
            ids[Thing(name, x, y, width, height, row["label"], row["confidence"])] = row["media_id"]
        yield Street(workspace, dataset, media, ids)


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dataset]:
    """Yield a dataset without objects."""
    folder = tmp_path_factory.mktemp("bare")
    for number in range(3):
        write(folder / f"images/{number}.png", photo(number))
    with Workspace(folder / "workspace", settings=SETTINGS) as workspace:
        yield workspace.create_dataset("bare", folder / "images")


@pytest.mark.slow
def test_objects__are_all_boxes(street: Street) -> None:
    """Each box is an object with its label, place and confidence, in the order of the images."""
    assert street.ids.keys() == set(THINGS)
    objects = street.dataset.objects
    assert objects.count() == len(objects.media_ids()) == len(set(objects.media_ids())) == len(THINGS)
    assert not set(objects.media_ids()) & set(street.media.values())


@pytest.mark.slow
def test_objects__have_the_columns_of_media_and_of_boxes(street: Street) -> None:
    """A row says where the image is, how large the crop, and where the box; and can be asked for by column."""
    table = street.dataset.objects.to_arrow()
    assert table.schema.names == [*street.dataset.to_arrow().schema.names, *OF_BOXES.names]
    row = next(row for row in table.to_pylist() if row["media_id"] == street.ids[THINGS[2]])
    assert (row["image_filename"], row["label"], row["labels"]) == ("1.png", "dog", ["dog"])
    assert (row["bbox"], row["width"], row["height"]) == ([4.5, 6.25, 50.5, 40.5], 51, 41)
    assert (row["parent_id"], row["confidence"], row["source"]) == (street.media["1.png"], 0.6, "csv")
    assert street.dataset.objects.to_arrow(["bbox", "media_id"]).schema.names == ["bbox", "media_id"]
    assert street.dataset.objects.to_pandas(["label"])["label"].tolist() == table["label"].to_pylist()
    with pytest.raises(InvalidInput, match="no columns"):
        street.dataset.to_arrow(["parent_id"])


@pytest.mark.slow
def test_objects__clusters_in_explore(street: Street) -> None:
    """A cluster counts its objects and the images that they are in; a preview is an object in its image."""
    page = street.dataset.explore("OBJECTS", level=0)
    assert page == street.dataset.objects.explore()
    assert sum(cluster.n_objects for cluster in page.clusters) == len(THINGS)
    cars = page.clusters[0]
    assert (cars.type, cars.n_objects, cars.n_images, cars.n_videos, cars.n_frames) == ("OBJECTS", 3, 3, -1, -1)
    assert (cars.size_display_value, cars.labels, cars.formed_by) == ("3", ["car"], "SIMILARITY")
    shown = next(each for each in cars.previews if each.image_id == street.media["1.png"])
    assert (shown.type, shown.media_id, shown.file_name) == ("OBJECT", street.ids[CARS[1]], "1.png")
    assert (shown.bounding_box, shown.width, shown.height) == ([200, 100, 80, 60], 80, 60)
    assert shown.media_uri == f"{shown.image_uri}#xywh=200,100,80,60"
    assert shown.image_uri == shown.original_uri
    assert shown.image_uri.endswith("/images/1.png")
    assert (shown.labels, shown.video_uri, shown.frame_timestamp) == (["car"], None, None)
    box = shown.bounding_box
    alike = street.dataset.similar(shown.image_id, bounding_box=box, max_distance=1e-3, entity_type="OBJECTS")
    assert shown.media_id in alike.media_ids()
    assert set(alike.media_ids()) <= {street.ids[thing] for thing in (*CARS, SAME[1])}


@pytest.mark.slow
@pytest.mark.only_soak
def test_objects__box_of_parts_of_pixels(street: Street) -> None:
    """The address names the whole pixels that are cut out; the box is as it was given."""
    clusters = street.dataset.objects.where([{"size": {"op": "is", "value": 51, "of": "width"}}]).explore().clusters
    (shown,) = clusters[0].previews
    assert shown.media_uri.endswith("#xywh=4,6,51,41")
    assert shown.bounding_box == [4.5, 6.25, 50.5, 40.5]


def test_objects__images_are_explored_as_before(street: Street) -> None:
    """Clusters of images count no objects."""
    clusters = street.dataset.explore(level=4).clusters
    assert {cluster.n_objects for cluster in clusters} == {-1}
    assert sum(cluster.n_images for cluster in clusters) == len(IMAGES)


@pytest.mark.slow
def test_objects__pages_are_the_whole(street: Street) -> None:
    """At each level every object is in one cluster, and the ids of clusters are those of the table."""
    for level in range(5):
        counts = Counter(street.dataset.objects.to_arrow([f"cluster_{level}"])[f"cluster_{level}"].to_pylist())
        clusters = street.dataset.objects.explore(level=level).clusters
        assert {cluster.cluster_id: cluster.n_objects for cluster in clusters} == counts
        images = {cluster.cluster_id for cluster in street.dataset.explore(level=level).clusters}
        assert not images & counts.keys()


def test_objects__filters_are_about_objects(street: Street) -> None:
    """A filter applies to the objects, regardless of the place where it is given."""
    dogs = [{"labels": {"op": "is", "value": "dog"}}]
    expected = {street.ids[thing] for thing in THINGS if thing.label == "dog"}
    dataset = street.dataset
    assert set(dataset.objects.where(dogs).media_ids()) == expected
    assert dataset.where(dogs).count() == 0
    for page in (
        dataset.objects.where(dogs).explore(level=4),
        dataset.where(dogs).explore("OBJECTS", level=4),
        dataset.explore("OBJECTS", 4, vql=dogs),
        dataset.explore("OBJECTS", 4, labels=["dog"]),
    ):
        assert sum(cluster.n_objects for cluster in page.clusters) == 3
        assert {label for cluster in page.clusters for label in cluster.labels or ()} == {"dog"}
    assert dataset.objects.where(dogs).explore("IMAGES").clusters == []


@pytest.mark.parametrize(
    ("element", "expected"),
    [
        ({"file_name": {"op": "is", "value": "2.png"}}, [thing for thing in THINGS if thing.image == "2.png"]),
        ({"size": {"op": "ge", "value": 100, "of": "width"}}, [thing for thing in THINGS if thing.width >= 100]),
        ({"issues": {"op": "issue", "value": "dark"}}, [DARK]),
        ({"duplicates": {"op": "duplicates", "value": 0.999}}, [*CARS, SAME[1]]),
        ({"media": {"op": "is", "value": "image"}}, THINGS),
        ({"batch": {"op": "is", "value": 0}}, THINGS),
        ({"batch": {"op": "is", "value": 1}}, []),
        ({"text": {"op": "fts", "value": "cat"}}, [thing for thing in THINGS if thing.label == "cat"]),
    ],
)
def test_objects__where(street: Street, element: dict[str, Any], expected: list[Thing]) -> None:
    """Tests look at the object's own row."""
    found = street.dataset.objects.where([element])
    assert set(found.media_ids()) == {street.ids[thing] for thing in expected}
    assert found.count() == len(expected)
    rest = street.dataset.objects.where([{"not": element}])
    assert rest.count() == len(THINGS) - len(expected)
    assert found.explain().startswith("SELECT _rowid FROM ")
    assert "FROM media" in found.explain()


def test_objects__near_duplicates(street: Street) -> None:
    """The same pixels in other places of other images are alike; how large the file is says nothing of them."""
    for groups in (street.dataset.objects.duplicates(0.999), street.dataset.duplicates(0.999, entity_type="OBJECTS")):
        (group,) = groups
        assert set(group.media_ids) == {street.ids[thing] for thing in (*CARS, SAME[1])}
        assert set(group.file_names) == {"0.png", "1.png", "5.png"}
        assert "compressed" not in group.keep_reason
        assert "3 objects" in groups._repr_html_()
    assert all(group.group_id != own.group_id for own in street.dataset.duplicates() for group in groups)


def test_objects__exact_duplicates(street: Street) -> None:
    """Equal boxes in files of equal content are one group; other boxes in them, and equal boxes elsewhere, are none."""
    (group,) = street.dataset.objects.duplicates(exact=True)
    assert set(group.media_ids) == {street.ids[thing] for thing in SAME}
    assert (group.threshold, group.similarity) == (1.0, 1.0)


def test_objects__issues(street: Street) -> None:
    """Issues are of what is in the box, and percentiles of objects among objects."""
    rows = street.dataset.objects.issues("dark").to_pylist()
    assert [row["media_id"] for row in rows] == [street.ids[DARK]]
    assert rows[0]["percentile"] == pytest.approx(100 * (len(THINGS) - 0.5) / len(THINGS), abs=7)
    counts = {each.issue_type: each.count for each in street.dataset.objects.issue_summaries()}
    assert (counts["dark"], counts["duplicates"]) == (1, 3)
    assert street.dataset.issues("dark").num_rows == 0


def test_objects__images_are_crops(street: Street) -> None:
    """An object is read, and shown small, as what is in its box; its thumbnail is then what Explore shows."""
    dataset, car = street.dataset, street.ids[CARS[1]]
    assert np.array_equal(dataset.read(car), pixels_of("1.png")[100:160, 200:280])
    assert dataset.read(street.media["1.png"]).shape == (240, 320, 3)
    small, missing = dataset.objects.thumbnails([car, street.media["1.png"]], size=40)
    assert small is not None
    assert missing is None
    assert Image.open(io.BytesIO(small)).size == (40, 30)
    assert dataset.thumbnail(car) == dataset.thumbnail(car)
    shown = [
        each for cluster in dataset.objects.explore().clusters for each in cluster.previews if each.media_id == car
    ]
    assert shown[0].media_thumb_uri.endswith(".jpg")
    with pytest.raises(NotFound):
        dataset.read(car[:-1] + ("0" if car[-1] != "0" else "1"))


def test_objects__are_shown(street: Street) -> None:
    """A notebook shows crops, and says that they are objects."""
    objects = street.dataset.objects
    assert repr(objects).endswith(f"{len(THINGS)} objects>")
    assert f"{len(THINGS)} objects" in objects._repr_html_()
    assert objects._repr_html_().count("<img") == len(THINGS)
    assert "3 objects" in objects.explore()._repr_html_()


def test_objects__are_what_a_view_of_them_exports(street: Street, tmp_path: Path) -> None:
    """Objects are exported by their view as by the name of their type, in the filter's choice."""
    cats = [{"labels": {"op": "is", "value": "cat"}}]
    for result in (
        street.dataset.objects.where(cats).export(tmp_path / "a.zip", "csv"),
        street.dataset.export(tmp_path / "b.zip", "csv", entity_type="OBJECTS", vql=cats),
    ):
        assert (result.total_objects, result.total_media_items) == (2, 1)


def test_objects__choose_no_media(street: Street) -> None:
    """Edits and deletions are of media; a view of objects is refused, and says what would be right."""
    for edit in (
        lambda: street.dataset.tag(street.dataset.objects, "x"),
        lambda: street.dataset.delete_media(street.dataset.objects),
    ):
        with pytest.raises(InvalidInput, match=r"vql\.objects"):
            edit()


@pytest.mark.slow
@pytest.mark.only_soak
def test_objects__of_a_dataset_without_any(bare: Dataset) -> None:
    """All is valid and empty."""
    objects = bare.objects
    some = bare.where([]).media_ids()[0]
    assert (objects.count(), objects.media_ids(), objects.to_arrow().num_rows) == (0, [], 0)
    assert set(OF_BOXES.names) <= set(objects.to_arrow().schema.names)
    assert objects.where([{"labels": {"op": "is_not", "value": "dog"}}]).count() == 0
    assert objects.where([{"text": {"op": "fts", "value": "dog"}}]).explore().clusters == []
    assert bare.explore("OBJECTS").clusters == bare.explore("OBJECTS", anchor_media_id=some).clusters == []
    assert bare.explore("OBJECTS", caption="dog").clusters == []
    assert bare.duplicates(entity_type="OBJECTS") == objects.duplicates(exact=True) == []
    assert objects.issues().num_rows == 0
    assert {each.count for each in objects.issue_summaries()} == {0}
    assert objects.thumbnails([some]) == [None]
    assert "0 objects" in objects._repr_html_()
    assert bare.similar(some, entity_type="OBJECTS").media_ids() == []
    assert bare.search("dog", None, entity_type="OBJECTS").media_ids() == []
    assert "FALSE" in objects.explain()


@pytest.mark.parametrize("path", ["vectors", "text", "thumbnails"])
def test_objects__of_a_dataset_without_any_leave_no_cache(bare: Dataset, path: str) -> None:
    """Nothing is kept of what is not there."""
    bare.search("dog", entity_type="OBJECTS").media_ids()
    bare.objects._repr_html_()
    cache = Path(layout_of(bare).root) / "cache" / path
    assert {each.name for each in cache.glob("*")} <= {bare.id}
