"""What we export, the loaders of other libraries read: the same images, labels, captions and boxes."""

import io
import json
import os
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from framedex import Dataset, Workspace, vql
from tests.boxes import SHARED
from tests.extras import need
from tests.gallery import SETTINGS, Averages
from tests.image_files import encode, photo, write
from tests.videos import numbered, write_video

need("datasets", "datasets", "webdataset", "pycocotools", "torchvision")
pytestmark = pytest.mark.slow
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("HF_DATASETS_OFFLINE", "1")
SPLIT = {"train": vql.labels("cat"), "val": vql.labels("dog") & ~vql.labels("cat"), "test": ~vql.labels(["cat", "dog"])}
TURNED = b"Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0"


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dataset]:
    """Images whose names are odd for loaders, a turned JPEG and frames; labels, captions and boxes of some."""
    folder = tmp_path_factory.mktemp("loaders")
    names = ["test/ü 1.v2.png", "train_val/dev.png", "2.png"]
    for seed, name in enumerate(names):
        write(folder / "source" / name, photo(seed))
    (folder / "source" / "turned.jpg").write_bytes(encode(photo(9), "JPEG", exif=TURNED))
    write_video(folder / "source" / "clip.mp4", numbered(12))
    labels = dict(zip([*names, "turned.jpg"], ["cat", "dog", "dog", "cat"], strict=True))
    content = {
        "images": [{"id": n, "file_name": name, "labels": [labels[name]]} for n, name in enumerate(labels)],
        "categories": [{"id": 7, "name": "ear"}, {"id": 3, "name": "tail"}],
        "annotations": [
            {"id": 1, "image_id": 0, "category_id": 7, "bbox": [1.5, 2, 30, 20], "area": 600, "iscrowd": 0},
            {"id": 2, "image_id": 0, "category_id": 3, "bbox": [50, 60, 40, 30], "area": 1200, "iscrowd": 0},
            {"id": 3, "image_id": 2, "category_id": 3, "bbox": [5, 6, 7, 8], "area": 56, "iscrowd": 0},
        ],
    }  # fmt: skip
    (folder / "source" / "annotations.json").write_text(json.dumps(content))
    with Workspace(folder / "ws", settings=SETTINGS) as workspace:
        made = workspace.create_dataset("d", folder / "source", Averages())
        made.set_captions({made.media_id("2.png"): "line one\nline two"})
        yield made


def _unpacked(dataset: Any, folder: Path, format_: str, **options: Any) -> Path:
    dataset.export(folder / f"{format_}.zip", format_, **options)
    with zipfile.ZipFile(folder / f"{format_}.zip") as archive:
        archive.extractall(folder / format_)
    return folder / format_


def _load(folder: Path, kind: str, cache: Path, **options: Any) -> Any:
    import datasets

    datasets.disable_progress_bars()
    return datasets.load_dataset(kind, cache_dir=str(cache), **options)


def _expected(dataset: Dataset) -> dict[str, dict[str, Any]]:
    """Return what is known of each image, by its id."""
    columns = ["media_id", "labels", "caption", "image_filename", "file_path", "video_id"]
    rows = dataset.to_arrow(columns).to_pylist()
    boxes: dict[str, list[Any]] = {row["media_id"]: [] for row in rows}
    for each in dataset.objects.to_arrow(["parent_id", "bbox", "label"]).to_pylist():
        boxes[each["parent_id"]].append((each["bbox"], each["label"]))
    return {row["media_id"]: {**row, "boxes": boxes[row["media_id"]]} for row in rows}


def _is_same(image: Any, dataset: Dataset, media_id: str, *, is_frame: bool) -> bool:
    difference = np.abs(np.asarray(image.convert("RGB"), np.int16) - dataset.read(media_id))
    return bool(difference.max() <= 60 if is_frame else difference.max() == 0)  # frames are JPEGs in exports


def test_imagefolder__by_torchvision(small: Dataset, tmp_path: Path) -> None:
    """ImageFolder reads each image of one label, unchanged, with the number of its class."""
    from framedex.encoders.torch_vision import import_torchvision

    import_torchvision()
    from torchvision.datasets import ImageFolder

    view = small.where(vql.labels(["cat", "dog"]))
    found = ImageFolder(_unpacked(view, tmp_path, "imagefolder"))
    assert found.classes == ["cat", "dog"]
    assert sorted(found.targets) == [0, 0, 1, 1]
    ours = view.to_torch(lambda image: image)
    assert sorted(ours.targets) == sorted(ours.class_to_idx[found.classes[each]] for each in found.targets)
    expected = {Path(row["image_filename"]).name: row for row in _expected(small).values()}
    for path, target in found.samples:
        about = expected[Path(path).name]
        assert about["labels"] == [found.classes[target]]
        assert Path(path).read_bytes() == Path(about["file_path"]).read_bytes()


@pytest.mark.parametrize("has_parts", [False, True])
def test_huggingface__by_datasets(small: Dataset, tmp_path: Path, has_parts: bool) -> None:
    """load_dataset reads all images with their labels, captions and boxes, whatever their names."""
    options = {"split": SPLIT} if has_parts else {}
    folder = _unpacked(small, tmp_path, "huggingface", **options)
    found = _load(folder, "imagefolder", tmp_path / "cache", data_dir=str(folder))
    assert set(found) == ({"train", "validation", "test"} if has_parts else {"train"})
    rows = [row for part in found.values() for row in part]
    expected = _expected(small)
    names = {row["image_filename"].replace("/", "-"): each for each, row in expected.items()}
    assert len(rows) == len(expected) == 6
    for path, row in zip([p for part in found.values() for p in _paths(part)], rows, strict=True):
        about = expected[names[path]]
        assert row["label"] == (about["labels"][0] if about["labels"] else None)
        assert row["text"] == (about["caption"] or "")
        found_boxes = list(zip(row["objects"]["bbox"], row["objects"]["categories"], strict=True))
        assert found_boxes == about["boxes"]
        assert _is_same(row["image"], small, about["media_id"], is_frame="clip" in path)


def _paths(part: Any) -> list[str]:
    import datasets

    return [Path(row["image"]["path"]).name for row in part.cast_column("image", datasets.Image(decode=False))]


@pytest.mark.parametrize("has_parts", [False, True])
def test_huggingface_parquet__by_datasets(small: Dataset, tmp_path: Path, has_parts: bool) -> None:
    """load_dataset reads the images in the file, with labels and categories as class labels."""
    options = {"split": SPLIT} if has_parts else {}
    folder = _unpacked(small, tmp_path, "huggingface_parquet", **options)
    found = _load(folder, "parquet", tmp_path / "cache", data_dir=str(folder))
    assert set(found) == (set(SPLIT) if has_parts else {"train"})
    expected = _expected(small)
    names = found["train"].features["labels"].feature.names
    rows = [row for part in found.values() for row in part]
    assert {row["media_id"] for row in rows} == set(expected)
    for row in rows:
        about = expected[row["media_id"]]
        assert [names[number] for number in row["labels"]] == about["labels"]
        assert row["caption"] == about["caption"]
        labels = [names[number] for number in row["objects"]["categories"]]
        assert list(zip(row["objects"]["bbox"], labels, strict=True)) == about["boxes"]
        is_frame = about["video_id"] is not None
        assert _is_same(row["image"], small, row["media_id"], is_frame=is_frame)


@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")  # webdataset leaves them to the collector
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_webdataset__by_its_readers(small: Dataset, tmp_path: Path) -> None:
    """Webdataset and datasets read each sample; names with dots and folders part no sample."""
    import webdataset

    view = small.where(vql.labels(["cat", "dog"]))
    folder = _unpacked(view, tmp_path, "webdataset")
    classes = json.loads((folder / "classes.json").read_text())
    pipeline = webdataset.WebDataset(str(folder / "data-000000.tar"), shardshuffle=False)
    rows = list(pipeline)
    expected = _expected(small)
    assert len(rows) == 4
    for row in rows:
        about = json.loads(row["json"])
        assert classes[int(row["cls"])] == expected[about["media_id"]]["labels"][0]
        assert row["txt"].decode() == (expected[about["media_id"]]["caption"] or "")
        assert [(each["bbox"], each["label"]) for each in about["objects"]] == expected[about["media_id"]]["boxes"]
        data = row.get("png") or row["jpg"]
        assert data == Path(expected[about["media_id"]]["file_path"]).read_bytes()
        Image.open(io.BytesIO(data)).verify()
    own = [each for each in view.ids if each != small.media_id("turned.jpg")]
    (tmp_path / "pngs").mkdir()
    pngs = _unpacked(small.select(own), tmp_path / "pngs", "webdataset")
    found = _load(pngs, "webdataset", tmp_path / "cache", data_files={"train": str(pngs / "data-000000.tar")})
    assert len(found["train"]) == 3
    assert found["train"][0]["png"].size == (160, 120)


@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared images are not here")
def test_coco__by_pycocotools_and_torchvision(tmp_path: Path) -> None:
    """Real annotations come back from COCO and VOC exports by the loaders that trainers use."""
    from framedex.encoders.torch_vision import import_torchvision

    import_torchvision()
    from torchvision.datasets import CocoDetection, VOCDetection

    with Workspace(tmp_path / "ws", settings=SETTINGS) as workspace:
        dataset = workspace.create_dataset("d", SHARED / "raccoon-voc", Averages())
        expected: dict[str, list[Any]] = {
            Path(row["image_filename"]).name: [] for row in dataset.to_arrow(["image_filename"]).to_pylist()
        }
        for each in dataset.objects.to_arrow(["image_filename", "bbox", "label"]).to_pylist():
            expected[Path(each["image_filename"]).name].append((each["bbox"], each["label"]))
        coco = _unpacked(dataset, tmp_path, "coco", include_images=True)
        voc = _unpacked(dataset, tmp_path, "voc", include_images=True, split={"train": 1.0})
    found = CocoDetection(str(coco), str(coco / "annotations.json"))
    names = {each["id"]: each["name"] for each in found.coco.loadCats(found.coco.getCatIds())}
    for key in found.ids:
        name = Path(found.coco.loadImgs(key)[0]["file_name"]).name
        own = found.coco.loadAnns(found.coco.getAnnIds(key))
        assert [(each["bbox"], names[each["category_id"]]) for each in own] == expected[name]
    assert len(found) == len(expected)
    layout = tmp_path / "root" / "VOCdevkit" / "VOC2012"
    layout.mkdir(parents=True)
    folders = {"images": "JPEGImages", "annotations": "Annotations", "ImageSets": "ImageSets"}
    for ours, theirs in folders.items():
        (voc / ours).rename(layout / theirs)
    pairs = VOCDetection(str(tmp_path / "root"), image_set="train")
    assert len(pairs) == len(expected)
    for number in range(len(pairs)):
        about = pairs.parse_voc_xml(pairs_root(pairs.annotations[number]))["annotation"]
        boxes = [
            (
                [float(each["bndbox"]["xmin"]) - 1, float(each["bndbox"]["ymin"]) - 1,
                 float(each["bndbox"]["xmax"]) - float(each["bndbox"]["xmin"]) + 1,
                 float(each["bndbox"]["ymax"]) - float(each["bndbox"]["ymin"]) + 1],
                each["name"],
            )
            for each in about.get("object", [])
        ]  # fmt: skip
        assert boxes == expected[about["filename"]]


def pairs_root(path: str) -> Any:
    from xml.etree.ElementTree import parse

    return parse(path).getroot()


def test_round_trips__of_layouts(small: Dataset, workspace: Workspace, tmp_path: Path) -> None:
    """What is exported for Hugging Face and ImageFolder comes back: labels, captions, boxes, and parts as tags."""
    folder = _unpacked(small, tmp_path, "huggingface", split=SPLIT)
    again = workspace.create_dataset("h", folder, Averages())
    parts = {row["media_id"]: name for name, rule in SPLIT.items() for row in small.where(rule).rows(["media_id"])}
    expected = {
        row["image_filename"].replace("/", "-"): (row["labels"], row["caption"], row["boxes"], parts[media_id])
        for media_id, row in _expected(small).items()
    }
    tags = {row["media_id"]: row["tags"] for row in again.view.rows(["media_id", "tags"])}
    found = {
        row["image_filename"].partition("/")[2]: (row["labels"], row["caption"], row["boxes"], *tags[media_id])
        for media_id, row in _expected(again).items()
    }
    assert found == expected
    labelled = small.where(vql.labels(["cat", "dog"]))
    classes = workspace.create_dataset("i", _unpacked(labelled, tmp_path, "imagefolder"), Averages())
    assert classes.layout == ["read: 2 folders as classes (cat, dog)"]
    names = [(Path(row["image_filename"]).name, row["labels"]) for row in labelled.rows(["image_filename", "labels"])]
    of_again = classes.view.rows(["image_filename", "labels"])
    assert sorted((Path(row["image_filename"]).name, row["labels"]) for row in of_again) == sorted(names)


@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared images are not here")
def test_yolo__by_the_rules_of_ultralytics(tmp_path: Path) -> None:
    """Each image of a part has its label file where Ultralytics looks, with lines that its check accepts."""
    import yaml

    with Workspace(tmp_path / "ws", settings=SETTINGS) as workspace:
        dataset = workspace.create_dataset("d", SHARED / "coco-yolo", Averages())
        folder = _unpacked(dataset, tmp_path, "yolo", include_images=True, split={"train": 0.75, "val": 0.25})
    config = yaml.safe_load((folder / "data.yaml").read_text())
    names = config["names"]
    assert list(names) == list(range(config["nc"]))
    source = yaml.safe_load((SHARED / "coco-yolo/config.yaml").read_text())["names"]
    found: dict[str, list[list[float]]] = {}
    for part in ("train", "val"):
        for image in sorted((folder / config[part]).rglob("*.jpg")):
            label = Path(str(image).replace("/images/", "/labels/")).with_suffix(".txt")
            lines = [line.split() for line in label.read_text().splitlines()] if label.exists() else []
            assert all(len(line) == 5 and 0 <= int(line[0]) < config["nc"] for line in lines)
            assert all(0 <= float(each) <= 1 for line in lines for each in line[1:])
            found[image.stem] = sorted([float(each) for each in line[1:]] for line in lines)
            own = SHARED / "coco-yolo/labels" / f"{image.stem}.txt"
            given = [line.split() for line in own.read_text().splitlines()] if own.exists() else []
            assert sorted(names[int(line[0])] for line in lines) == sorted(source[int(line[0])] for line in given)
            expected = sorted([float(each) for each in line[1:]] for line in given)
            assert np.allclose(found[image.stem], expected, atol=2e-6) if expected else not lines
    assert len(found) == 64
    assert sum(map(len, found.values())) == 542


def test_captions__by_torchvision(small: Dataset, tmp_path: Path) -> None:
    """CocoCaptions reads each line of a caption as a caption of its image."""
    from framedex.encoders.torch_vision import import_torchvision

    import_torchvision()
    from torchvision.datasets import CocoCaptions

    folder = _unpacked(small, tmp_path, "coco", include_images=True)
    found = CocoCaptions(str(folder), str(folder / "captions.json"))
    assert sorted(captions for _, captions in found if captions) == [["line one", "line two"]]
