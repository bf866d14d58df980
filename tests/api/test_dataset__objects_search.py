"""Searches among objects, and from objects to images and back."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from framedex import Dataset, InvalidInput, NotFound, Workspace, vql
from framedex.api.view import SCORES
from framedex.cli import main
from tests.gallery import SETTINGS
from tests.image_files import photo, write
from tests.things import CARS, DARK, THINGS, make_things, pixels_of

WHOLE = "6.png"
"""An image that shows what is in the boxes of the cars, and nothing else."""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("search")


@pytest.fixture(scope="module")
def dataset(home: Path) -> Iterator[Dataset]:
    folder = make_things(home / "images")
    write(folder / WHOLE, photo(100, width=80, height=60))
    with Workspace(home / "workspace", settings=SETTINGS) as workspace:
        yield workspace.create_dataset("street", folder)


def media(dataset: Dataset, name: str) -> str:
    (found,) = dataset.where(vql.file_name("is", name)).media_ids()
    return found


def boxes(dataset: Dataset, filtered: vql.Expression) -> list[str]:
    return dataset.objects.where(filtered).media_ids()


@pytest.mark.slow
@pytest.mark.only_soak
def test_similar__objects_like_an_object(dataset: Dataset) -> None:
    """The nearest come first: the object itself and its copies, with their distances."""
    cars = boxes(dataset, vql.labels("car"))
    found = dataset.similar(cars[1], 4, entity_type="OBJECTS")
    assert set(found.media_ids()[:3]) == set(cars)
    table = found.to_arrow()
    assert table.schema.names == [*dataset.objects.to_arrow().schema.names, *SCORES.names]
    assert table["relevance_score"].to_pylist()[:3] == pytest.approx([0, 0, 0], abs=1e-3)
    assert table["label"].to_pylist()[:3] == ["car"] * 3
    assert repr(found).endswith(": 4 objects>")
    assert found._repr_html_().count("<img") == 4
    dogs = found.where(vql.labels("dog"))
    assert set(dogs.to_arrow(["label"])["label"].to_pylist()) == {"dog"}


@pytest.mark.slow
def test_similar__between_images_and_objects(dataset: Dataset) -> None:
    """An object finds the image that shows the same, and that image finds the objects."""
    cars = boxes(dataset, vql.labels("car"))
    assert dataset.similar(cars[0], 1).media_ids() == [media(dataset, WHOLE)]
    assert set(dataset.similar(media(dataset, WHOLE), 3, entity_type="OBJECTS").media_ids()) == set(cars)
    assert dataset.similar(pixels_of("1.png"), 1, bounding_box=(200, 100, 80, 60)).media_ids() == [
        media(dataset, WHOLE)
    ]
    assert set(dataset.similar(dataset.read(cars[0]), 3, entity_type="OBJECTS").media_ids()) == set(cars)


@pytest.mark.slow
@pytest.mark.only_soak
def test_similar__a_part_of_an_object(dataset: Dataset) -> None:
    """A box within an object counts from the corner of its crop."""
    (car, *_) = boxes(dataset, vql.labels("car"))
    height, width = dataset.read(car).shape[:2]
    part = {"x": 0, "y": 0, "width": width, "height": height}
    whole = dataset.similar(car, None, entity_type="OBJECTS").to_arrow(["relevance_score"])
    boxed = dataset.similar(car, None, entity_type="OBJECTS", bounding_box=part).to_arrow(["relevance_score"])
    assert np.allclose(whole["relevance_score"].to_numpy(), boxed["relevance_score"].to_numpy(), atol=2e-3)


@pytest.mark.slow
def test_explore__anchors_of_both_kinds(dataset: Dataset) -> None:
    """An object, a media item and an upload order clusters of images and of objects."""
    cars = boxes(dataset, vql.labels("car"))
    upload = dataset.upload(cars[0])
    for anchor, kind in ((cars[0], "MEDIA"), (media(dataset, WHOLE), "MEDIA"), (upload, "UPLOAD")):
        first = dataset.explore("OBJECTS", 0, anchor_media_id=anchor, anchor_type=kind).clusters[0]
        assert {shown.media_id for shown in first.previews} == set(cars)
        assert first.relevance_score == pytest.approx(0, abs=1e-3)
        first = dataset.explore("IMAGES", 0, anchor_media_id=anchor, anchor_type=kind).clusters[0]
        assert [shown.media_id for shown in first.previews] == [media(dataset, WHOLE)]
    with pytest.raises(NotFound, match="no media"):
        dataset.explore("OBJECTS", anchor_media_id=dataset.id)


def test_where__similarity_to_either_kind(dataset: Dataset) -> None:
    """In filters, too, an object or a media item says what is alike."""
    cars = boxes(dataset, vql.labels("car"))
    for anchor in (cars[0], media(dataset, WHOLE)):
        alike = vql.similarity("media", anchor, 0.01)
        assert set(boxes(dataset, alike)) == set(cars)
        assert dataset.where(alike).media_ids() == [media(dataset, WHOLE)]


def test_search__words_of_objects(dataset: Dataset) -> None:
    """Objects are found by their labels and the names of the files; the labels of images are not theirs."""
    found = dataset.search("cat", entity_type="OBJECTS")
    assert set(found.media_ids()) == set(boxes(dataset, vql.labels("cat")))
    assert dataset.search("cat").media_ids() == []
    assert dataset.search("street", entity_type="OBJECTS").count() == 0
    assert dataset.search("street").count() == 6
    assert dataset.search("cat").explore("OBJECTS").clusters[0].labels == ["cat"]
    assert dataset.explore("OBJECTS", caption="dog").clusters[0].labels == ["dog"]


def test_search__same_words_again_after_an_edit_of_media(dataset: Dataset) -> None:
    """A tag on images changes nothing of what is known of objects, and is seen by the filters."""
    dataset.tag(dataset.where(vql.file_name("is", DARK.image)), "night")
    found = dataset.search("cat OR dog", entity_type="OBJECTS").where(vql.tags("night"))
    assert set(found.to_arrow(["label"])["label"].to_pylist()) == {"cat"}


@pytest.mark.parametrize("entity_type", ["VIDEOS", "objects", None])
def test_search__unusable_entity_type(dataset: Dataset, entity_type: str) -> None:
    """The error names the valid queries."""
    with pytest.raises(InvalidInput, match="IMAGES or OBJECTS"):
        dataset.search("cat", entity_type=entity_type)
    with pytest.raises(InvalidInput, match="IMAGES or OBJECTS"):
        dataset.similar(dataset.id, entity_type=entity_type)


@pytest.fixture
def run(dataset: Dataset, home: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Run a command on the workspace, which succeeds, and return its output."""

    def call(*arguments: str) -> str:
        with pytest.raises(SystemExit) as exit_:
            main([*arguments, "--workspace", str(home / "workspace")])
        assert not exit_.value.code
        return capsys.readouterr().out

    return call


@pytest.mark.slow
@pytest.mark.only_soak
def test_cli__objects(dataset: Dataset, run: Callable[..., str]) -> None:
    """Commands that show what is in a dataset show objects, too."""
    assert f"{len(THINGS)} objects" in run("show", "street")
    assert json.loads(run("show", "street", "--json"))["n_objects"] == len(THINGS)
    clusters = json.loads(run("explore", "street", "--entity-type", "OBJECTS", "--json"))["clusters"]
    assert sum(cluster["n_objects"] for cluster in clusters) == len(THINGS)
    assert run("explore", "street", "--entity-type", "OBJECTS").lstrip().startswith("objects")
    near = ("--threshold", "0.999", "--entity-type", "OBJECTS", "--json")
    groups = json.loads(run("duplicates", "street", *near))
    assert [len(group["media_ids"]) for group in groups] == [3]
    assert len(json.loads(run("search", "street", "cat", "--entity-type", "OBJECTS", "--json"))) == 2
    (car, *_) = boxes(dataset, vql.labels("car"))
    rows = json.loads(run("similar", "street", car, "--entity-type", "OBJECTS", "--limit", "3", "--json"))
    assert {row["image_filename"] for row in rows} == {"5.png", *(thing.image for thing in CARS)}
    dark = json.loads(run("issues", "street", "--objects", "--type", "dark", "--json"))
    assert [row["issue_type"] for row in dark] == ["dark"]


def test_report__has_objects(dataset: Dataset, tmp_path: Path) -> None:
    """The page says how many there are, and shows groups and clusters of them."""
    page = dataset.report(tmp_path / "report.html").read_text("utf-8")
    assert f"{len(THINGS)} objects" in page
    assert "Clusters of objects at level 3" in page
