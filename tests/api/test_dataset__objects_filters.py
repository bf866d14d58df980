"""Filters between objects and the media that they are in."""

from collections.abc import Iterator
from typing import Any

import pytest

from framedex import Dataset, InvalidFilter, Workspace, vql
from tests.gallery import SETTINGS
from tests.things import CARS, THINGS, make_things


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dataset]:
    """Yield a dataset in which ``1.png`` and ``2.png`` have a tag, and ``1.png`` a price."""
    folder = tmp_path_factory.mktemp("filters")
    with Workspace(folder / "workspace", settings=SETTINGS) as workspace:
        dataset = workspace.create_dataset("street", make_things(folder / "images"))
        dataset.tag(dataset.where(vql.file_name("is", "1.png") | vql.file_name("is", "2.png")), "keep")
        (priced,) = dataset.where(vql.file_name("is", "1.png")).media_ids()
        dataset.add_field("price", "float", values={priced: 5.0})
        yield dataset


def images(dataset: Dataset, filtered: Any) -> list[str]:
    """Return the names of the images that pass a filter."""
    names: list[str] = sorted(dataset.where(filtered).to_arrow(["image_filename"])["image_filename"].to_pylist())
    return names


def boxes(dataset: Dataset, filtered: Any) -> list[tuple[str, str]]:
    """Return (image, label) of the objects that pass a filter."""
    rows = dataset.objects.where(filtered).to_arrow(["image_filename", "label"]).to_pylist()
    return sorted((row["image_filename"], row["label"]) for row in rows)


@pytest.mark.parametrize(
    ("filtered", "expected"),
    [
        (vql.objects(), ["0.png", "1.png", "2.png", "3.png", "5.png"]),
        (~vql.objects(), ["4.png"]),
        (vql.objects("dog"), ["1.png", "2.png"]),
        (vql.objects("dog", min_count=2), ["2.png"]),
        (vql.objects(["dog", "car"], min_count=2), ["1.png", "2.png"]),
        (vql.objects("car", confidence_min=0.4), ["0.png", "1.png", "5.png"]),
        (vql.objects("car", confidence_min=0.5), ["0.png", "5.png"]),
        (vql.objects("cat", confidence_min=0.0), []),
        (vql.objects("lion"), []),
        (vql.objects([]), []),
        (vql.objects("dog") & vql.objects("car"), ["1.png"]),
        (vql.objects("dog") | vql.objects("cat"), ["1.png", "2.png", "3.png"]),
        (vql.objects("dog") & vql.tags("keep") & vql.field("price", "missing"), ["2.png"]),
        (vql.confidence("ge", 0.0), []),
        (vql.source("csv"), []),
    ],
)
def test_media__by_their_objects(dataset: Dataset, filtered: vql.Expression, expected: list[str]) -> None:
    """Images are found by what is in them."""
    assert images(dataset, filtered) == expected
    assert dataset.where(filtered).count() == len(expected)


def inside(*names: str) -> list[tuple[str, str]]:
    """Return (image, label) of all objects in some images."""
    return sorted((thing.image, thing.label) for thing in THINGS if thing.image in names)


@pytest.mark.parametrize(
    ("filtered", "expected"),
    [
        (vql.tags("keep"), inside("1.png", "2.png")),
        (~vql.tags("keep"), inside("0.png", "3.png", "5.png")),
        (vql.tags("untagged"), inside("0.png", "3.png", "5.png")),
        (vql.field("price", "gt", 4), inside("1.png")),
        (vql.field("price", "missing") & vql.tags("keep"), inside("2.png")),
        (vql.field("price", "gt", 4) | vql.labels("cat"), [("1.png", "car"), ("1.png", "dog"), *inside("3.png")]),
        (vql.objects("dog"), inside("1.png", "2.png")),
        (vql.objects("dog") & vql.labels("car"), [("1.png", "car")]),
        (
            ~(vql.objects("dog") & vql.labels("car")),
            [*inside("0.png"), ("1.png", "dog"), *inside("2.png", "3.png", "5.png")],
        ),
        (vql.confidence("lt", 0.9), [("1.png", "car"), ("1.png", "dog")]),
        (vql.confidence("between", [0.9, 1]), [("0.png", "car"), ("5.png", "car")]),
        (~vql.confidence("ge", 0), [*inside("2.png", "3.png")]),
        (vql.source(["coco", "csv"]) & vql.labels("car"), [("0.png", "car"), ("1.png", "car"), ("5.png", "car")]),
        (vql.source("coco"), []),
    ],
)
def test_objects__by_their_media(dataset: Dataset, filtered: vql.Expression, expected: list[tuple[str, str]]) -> None:
    """Tags, custom fields and further objects are those of the image; all else is said of the object."""
    assert boxes(dataset, filtered) == expected


def test_objects__explain(dataset: Dataset) -> None:
    """The explanation of a condition on images has the number of matching images."""
    shown = dataset.objects.where(vql.tags("keep") & vql.labels("dog")).explain()
    assert "parent_id IN (SELECT media_id FROM found_0)" in shown
    assert "found_0: 2 rows of media WHERE ((len(list_filter(tags" in shown
    assert "found_0: 2 rows of objects WHERE" in dataset.where(vql.objects("dog")).explain()
    assert "count(*) >= 2" in dataset.where(vql.objects(min_count=2)).explain()


def test_objects__unknown_fields_are_errors(dataset: Dataset) -> None:
    """The same as in a filter of media."""
    with pytest.raises(InvalidFilter, match="no custom field 'gone'") as caught:
        dataset.objects.where([{"field": {"name": "gone", "op": "missing"}}]).count()
    assert caught.value.path == "$[0].field.name"


@pytest.mark.slow
def test_objects__edits_show_at_once(dataset: Dataset) -> None:
    """A tag that is put on an image is at once that of the objects in it."""
    name = CARS[0].image
    dataset.tag(dataset.where(vql.file_name("is", name)), "new")
    assert boxes(dataset, vql.tags("new")) == inside(name)
    dataset.untag(dataset.where(vql.file_name("is", name)), "new")
    assert boxes(dataset, vql.tags("new")) == []
