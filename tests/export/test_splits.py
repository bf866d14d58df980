"""Exports are divided for training: by shares, tags or labels, in the places where other tools look."""

import json
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from framedex import Dataset, InvalidInput, Workspace, vql
from tests.gallery import SETTINGS, Averages
from tests.image_files import photo, write

COUNT = 20
SHARES = {"train": 0.7, "val": 0.2, "test": 0.1}


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dataset]:
    """Twenty images with a box each, the last of them a copy; tagged and labelled by halves."""
    home = tmp_path_factory.mktemp("splits")
    names = [f"{number:02}.png" for number in range(COUNT)]
    for seed, name in enumerate(names):
        write(home / "images" / name, photo(0 if seed == COUNT - 1 else seed))
    content = {
        "images": [{"id": seed + 100, "file_name": name} for seed, name in enumerate(names)],
        "categories": [{"id": 4, "name": "cat"}],
        "annotations": [
            {"id": seed + 1, "image_id": seed + 100, "category_id": 4, "bbox": [8, 9, 30, 20]} for seed in range(COUNT)
        ],
    }
    (home / "images" / "annotations.json").write_text(json.dumps(content))
    with Workspace(home / "workspace", settings=SETTINGS) as workspace:
        dataset = workspace.create_dataset("pets", home / "images", Averages())
        ids = dataset.where([]).media_ids()
        dataset.tag(ids[:12], "train")
        dataset.tag(ids[12:15], "val")
        dataset.set_labels({each: ["day"] for each in ids[:10]})
        dataset.set_labels({each: ["night"] for each in ids[10:]})
        yield dataset


def files_of(dataset: Any, path: Path, format_: str, **options: Any) -> dict[str, bytes]:
    """Return the files of an export by name."""
    dataset.export(path / "out.zip", format_, **options)
    with zipfile.ZipFile(path / "out.zip") as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def parts_of(files: dict[str, bytes]) -> dict[str, str]:
    """Return the part of each image, by its file name."""
    return {name.split("/")[2]: name.split("/")[1] for name in files if name.startswith("images/")}


def check_sizes(sizes: Mapping[str, int]) -> None:
    """Check that parts have their shares of all images, up to one image, as two copies stay together."""
    assert sum(sizes.values()) == COUNT
    assert all(abs(sizes[part] - COUNT * share) <= 1 for part, share in SHARES.items())


@pytest.mark.slow
@pytest.mark.only_soak
def test_yolo__folders_of_the_parts(dataset: Dataset, tmp_path: Path) -> None:
    """Images and label files lie in folders of one name, which the class file names."""
    files = files_of(dataset, tmp_path, "yolo", include_images=True, split=SHARES)
    parts = parts_of(files)
    check_sizes(Counter(parts.values()))
    labels = {name for name in files if name.startswith("labels/")}
    assert labels == {f"labels/{part}/{name.replace('.png', '.txt')}" for name, part in parts.items()}
    assert files["data.yaml"].decode().splitlines()[:3] == [f"{part}: images/{part}" for part in SHARES]


@pytest.mark.slow
@pytest.mark.only_soak
def test_split__is_the_same_each_time(dataset: Dataset, tmp_path: Path) -> None:
    """Another export, in another format, divides the images equally; copies are in one part."""
    first = parts_of(files_of(dataset, tmp_path, "yolo", include_images=True, split=SHARES))
    again = parts_of(files_of(dataset, tmp_path, "coco", include_images=True, split=SHARES))
    assert first == again
    for share in (0.1, 0.35, 0.5, 0.65, 0.9):
        parts = parts_of(
            files_of(dataset, tmp_path, "coco", include_images=True, split={"train": share, "val": 1 - share})
        )
        assert parts["00.png"] == parts["19.png"]


@pytest.mark.slow
def test_split__of_views(dataset: Dataset, tmp_path: Path) -> None:
    """Parts are views, such as those of a split by labels; a view of another dataset or of objects is refused."""
    parts = dataset.view.split({"train": 0.8, "val": 0.2}, stratify="labels")
    files = files_of(dataset, tmp_path, "yolo", include_images=True, split=parts)
    names = {
        name: part for part, view in parts.items() for name in view.to_arrow(["file_name"])["file_name"].to_pylist()
    }
    assert parts_of(files) == names
    with pytest.raises(InvalidInput, match="objects"):
        dataset.export(tmp_path / "out.zip", "yolo", split={"train": dataset.objects, "val": parts["val"]})


def test_yolo__lists_of_images_without_image_files(dataset: Dataset, tmp_path: Path) -> None:
    """Without image files the parts are lists of the paths in the source, and label files stay where they fit."""
    files = files_of(dataset, tmp_path, "yolo", split={"train": vql.tags("train"), "val": vql.tags("val")})
    assert files["data.yaml"].decode().splitlines()[:2] == ["train: train.txt", "val: val.txt"]
    assert files["val.txt"].decode().split() == ["./12.png", "./13.png", "./14.png"]
    assert len(files["train.txt"].splitlines()) == 12
    assert len([name for name in files if name.startswith("labels/")]) == 15


@pytest.mark.slow
def test_coco__a_file_for_each_part(dataset: Dataset, tmp_path: Path) -> None:
    """Beside the file of all images each part has one, with the same ids and the same categories."""
    files = files_of(dataset, tmp_path, "coco", split={"day": vql.labels("day"), "night": vql.labels("night")})
    whole, *parts = (json.loads(files[f"annotations{end}.json"]) for end in ("", "_day", "_night"))
    for key in ("images", "annotations"):
        assert [each for part in parts for each in part[key]] == whole[key]
        assert [len(part[key]) for part in parts] == [10, 10]
    assert all(part["categories"] == whole["categories"] for part in parts)
    assert [each["id"] for each in parts[1]["images"]] == [*range(110, 120)]


@pytest.mark.slow
def test_coco__captions_of_each_part(dataset: Dataset, tmp_path: Path) -> None:
    """Captions are divided with their images."""
    ids = dataset.where([]).media_ids()
    dataset.set_captions({ids[3]: "one\ntwo", ids[13]: "three"})
    files = files_of(dataset, tmp_path, "coco", split={"day": vql.labels("day"), "night": vql.labels("night")})
    dataset.set_captions({ids[3]: None, ids[13]: None})
    day, night = (json.loads(files[f"captions_{part}.json"])["annotations"] for part in ("day", "night"))
    assert [(each["id"], each["image_id"], each["caption"]) for each in day] == [(1, 103, "one"), (2, 103, "two")]
    assert [(each["id"], each["image_id"], each["caption"]) for each in night] == [(3, 113, "three")]


def test_voc__lists_of_the_parts(dataset: Dataset, tmp_path: Path) -> None:
    """The names of each part are in a list, without suffix."""
    files = files_of(dataset, tmp_path, "voc", include_images=True, split=SHARES)
    lists = {part: files[f"ImageSets/Main/{part}.txt"].decode().split() for part in SHARES}
    check_sizes({part: len(names) for part, names in lists.items()})
    assert {f"annotations/{name}.xml" for names in lists.values() for name in names} <= set(files)


@pytest.mark.slow
@pytest.mark.only_soak
def test_split__leaves_out_the_others(dataset: Dataset, tmp_path: Path) -> None:
    """Images in no part are left out with their objects; the message counts them."""
    result = dataset.export(
        tmp_path / "out.zip", "coco", True, split={"train": vql.tags("train"), "val": vql.tags("val")}
    )
    assert (result.total_media_items, result.total_objects, result.images) == (15, 15, 15)
    assert "; train 12, val 3; 5 media are in no part and left out" in result.message
    result = dataset.export(tmp_path / "out.zip", "coco", split={"train": 0.5})
    assert 9 <= result.total_media_items == result.total_objects <= 11
    objects = dataset.objects.export(tmp_path / "out.zip", "coco", split={"val": vql.tags("val")})
    assert (objects.total_media_items, objects.total_objects) == (3, 3)


@pytest.mark.parametrize(
    ("split", "message"),
    [
        ({}, "split must map the name of each part to its share"),
        ("train", "split must map the name of each part to its share"),
        ({"a/b": 1.0}, "named by letters"),
        ({"Train": 0.5, "train": 0.5}, "differ in more than case"),
        ({"train": 0.8, "val": 0.3}, "at most 1 together"),
        ({"train": 0, "val": 1}, "above 0"),
        ({"train": 0.8, "val": vql.tags("val")}, "either shares or filters"),
        ({"train": 0.8, "test": 0.2}, "needs the parts 'train' and 'val'"),
        ({"train": vql.tags("train"), "val": vql.labels("day")}, "10 images are in two parts of the split"),
    ],
)
def test_split__that_cannot_be_used(dataset: Dataset, tmp_path: Path, split: Any, message: str) -> None:
    """A wrong split is an error that says what would be right, and no file is left."""
    with pytest.raises(InvalidInput, match=message):
        dataset.export(tmp_path / "out.zip", "yolo", split=split)
    assert not (tmp_path / "out.zip").exists()


@pytest.mark.parametrize("format_", ["csv", "json", "parquet"])
def test_split__of_formats_without_parts(dataset: Dataset, tmp_path: Path, format_: str) -> None:
    """Other formats refuse a split."""
    with pytest.raises(InvalidInput, match=f"the format '{format_}' has no split; coco, yolo, voc, labelme"):
        dataset.export(tmp_path / "out.zip", format_, split=SHARES)


def test_undivided__below_a_folder_named_after_a_part(workspace: Workspace, tmp_path: Path) -> None:
    """Images of an export that is not divided come back without a part, whatever their folders are called."""
    content: dict[str, list[Any]] = {"images": [], "categories": [{"id": 1, "name": "cat"}], "annotations": []}
    for number, name in enumerate(["train/a.png", "Test2017/b.png", "trains/c.png"]):
        write(tmp_path / "images" / name, photo(number))
        content["images"].append({"id": number, "file_name": name})
        content["annotations"].append({"id": number, "image_id": number, "category_id": 1, "bbox": [8, 9, 30, 20]})
    (tmp_path / "images" / "annotations.json").write_text(json.dumps(content))
    dataset = workspace.create_dataset("pets", tmp_path / "images", Averages())
    dataset.export(tmp_path / "out.zip", "labelme", include_images=True)
    with zipfile.ZipFile(tmp_path / "out.zip") as archive:
        archive.extractall(tmp_path / "again")
    again = workspace.create_dataset("again", tmp_path / "again", Averages())
    assert again.tags() == []
    assert again.objects.count() == 3
