"""Datasets from images that a program holds, and from Parquet files that hold them."""

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from framedex import Dataset, InvalidInput, Workspace
from framedex.media.held_images import held_images
from tests.extras import need
from tests.gallery import Averages
from tests.image_files import photo

Pixels = npt.NDArray[np.uint8]
IMAGES = [photo(number)[:40, :50] for number in range(4)]


def png(pixels: Pixels) -> bytes:
    """Return pixels as a PNG of Pillow."""
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG")
    return buffer.getvalue()


def pixels_of(dataset: Dataset) -> list[Pixels]:
    """Return the stored images in the order of the rows."""
    return [dataset.read(each) for each in dataset.view.media_ids()]


def labels(dataset: Dataset) -> list[tuple[str, list[str]]]:
    """Return the names and labels of all images."""
    return [(row["image_filename"], row["labels"] or []) for row in dataset.view.rows(["image_filename", "labels"])]


class Pairs:
    """A dataset of pairs (image, class number), as those of torchvision."""

    classes = ("cat", "dog")

    def __init__(self, items: list[Any]) -> None:
        self.items = items

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, number: int) -> tuple[Any, int]:
        return self.items[number], number % 2


class Samples(Pairs):
    """A dataset that knows its files, as ImageFolder."""

    def __init__(self, folder: Path) -> None:
        super().__init__([])
        self.classes = ["cat", "dog"]  # type: ignore[assignment] # a list, as there
        self.samples = [(str(path), number % 2) for number, path in enumerate(sorted(folder.iterdir()))]


def hugging_face() -> Any:
    """Return a dataset of Hugging Face with an image, a class, a text, a number and an object in each row."""
    need("datasets", "datasets")
    from datasets import ClassLabel, Features, Image, Sequence, Value
    from datasets import Dataset as Rows

    features = {
        "image": Image(),
        "label": ClassLabel(names=["cat", "dog"]),
        "text": Value("string"),
        "score": Value("float32"),
        "objects": {
            "bbox": Sequence(Sequence(Value("float32"), length=4)),
            "categories": Sequence(ClassLabel(names=["head", "tail"])),
        },
    }
    rows = {
        "image": [{"bytes": png(each), "path": None} for each in IMAGES],
        "label": [0, 1, None, 0],
        "text": ["a", "b", "c", "d"],
        "score": [0.5, 1.5, 2.5, 3.5],
        "objects": [{"bbox": [[1, 2, 3, 4]], "categories": [1]}] * 4,
    }
    return Rows.from_dict(rows, features=Features(features))


def check_hugging_face(dataset: Dataset, order: list[int]) -> None:
    """Check that a dataset has the rows of that dataset in some order."""
    names = [["cat"], ["dog"], [], ["cat"]]
    assert [each for _, each in labels(dataset)] == [names[number] for number in order]
    assert all((a == IMAGES[b]).all() for a, b in zip(pixels_of(dataset), order, strict=True))
    captions = [row["caption"] for row in dataset.view.rows(["caption"])]
    assert captions == ["abcd"[number] for number in order]
    assert list(dataset.objects.rows(["label", "bbox"])) == [{"label": "tail", "bbox": [1, 2, 3, 4]}] * len(order)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ([Image.fromarray(each) for each in IMAGES], [("000000.png", []), ("000001.png", [])]),
        (list(IMAGES), [("000000.png", []), ("000001.png", [])]),
        (np.stack(IMAGES), [("000000.png", []), ("000001.png", [])]),
        ([png(each) for each in IMAGES], [("000000.png", []), ("000001.png", [])]),
        (
            [("b/x.png", IMAGES[0]), ("x.png", IMAGES[1]), ("y", IMAGES[2])],
            [("x.png", []), ("x-1.png", []), ("y.png", [])],
        ),
        ([(each, "cat") for each in IMAGES], [("000000.png", ["cat"]), ("000001.png", ["cat"])]),
        (Pairs([Image.fromarray(each) for each in IMAGES]), [("000000.png", ["cat"]), ("000001.png", ["dog"])]),
    ],
    ids=["pillow", "arrays", "stack", "files", "named", "pairs", "classes"],
)
def test_held__images(source: Any, expected: list[tuple[str, list[str]]]) -> None:
    """Pillow images, arrays and encoded files keep their pixels, their order, their names and their classes."""
    found = held_images(source, None)
    assert found is not None
    images = list(found)
    assert [(each.name, [each.row["label"]] if "label" in each.row else []) for each in images][
        : len(expected)
    ] == expected
    for each, pixels in zip(images, IMAGES, strict=False):
        assert (np.asarray(Image.open(io.BytesIO(each.content))) == pixels).all()


@pytest.mark.slow
def test_held__dataset_of_pairs(workspace: Workspace) -> None:
    """Such images become a dataset with their labels; more can be added; what cannot be stored is counted."""
    dataset = workspace.create_dataset("d", Pairs([*IMAGES[:2], np.zeros((3, 3), np.float32)]), Averages())
    assert labels(dataset) == [("000000.png", ["cat"]), ("000001.png", ["dog"])]
    assert [(each.reason, each.count) for each in dataset.problems] == [("images that cannot be stored", 1)]
    dataset.add_media([(IMAGES[2], "bird")])
    assert dataset.count() == 3
    assert (pixels_of(dataset)[0] == IMAGES[0]).all()


def test_held__nothing_to_store_leaves_nothing(workspace: Workspace) -> None:
    """If no image can be stored, the reason is an error, and there is no dataset."""
    with pytest.raises(InvalidInput, match="no images in a list of images; it holds 1 images that cannot be stored"):
        workspace.create_dataset("d", [np.zeros((3, 3, 3), np.float32)], Averages())
    assert list(workspace.datasets()) == []
    workspace.create_dataset("d", [IMAGES[0]], Averages())


@pytest.mark.slow
def test_hugging_face__dataset(workspace: Workspace) -> None:
    """Images, classes, texts, objects and further columns are read in the order of a shuffled dataset."""
    dataset = workspace.create_dataset("d", hugging_face().select([3, 1]), Averages())
    check_hugging_face(dataset, [3, 1])
    assert [(each.field_name, str(each.field_type)) for each in dataset.fields()] == [("score", "float")]
    assert dataset.problems == []


@pytest.mark.slow
def test_hugging_face__splits_are_tags(workspace: Workspace) -> None:
    """The splits of a DatasetDict are tags."""
    rows = hugging_face()
    from datasets import DatasetDict

    parts = DatasetDict(train=rows.select([0]), validation=rows.select([1]))
    dataset = workspace.create_dataset("d", parts, Averages())
    assert [(each.name, each.count) for each in dataset.tags()] == [("train", 1), ("val", 1)]


@pytest.mark.slow
def test_parquet__own_export_comes_back(workspace: Workspace, tmp_path: Path) -> None:
    """The export for Hugging Face with bytes is a source: labels, captions, objects, parts and pixels come back."""
    first = workspace.create_dataset("d", hugging_face(), Averages())
    first.export(tmp_path / "e.zip", format="huggingface_parquet")
    zipfile.ZipFile(tmp_path / "e.zip").extractall(tmp_path / "e")
    back = workspace.create_dataset("back", tmp_path / "e", Averages())
    check_hugging_face(back, [0, 1, 2, 3])
    assert workspace.create_dataset("file", next((tmp_path / "e").rglob("*.parquet")), Averages()).count() == 4


def test_parquet__without_the_features(workspace: Workspace, tmp_path: Path) -> None:
    """A column with bytes and a path is one of images; rows without bytes are counted, and no file is read for them."""
    (tmp_path / "secret.png").write_bytes(png(IMAGES[1]))
    cells = [{"bytes": png(IMAGES[0]), "path": "a.png"}, {"bytes": None, "path": str(tmp_path / "secret.png")}]
    (tmp_path / "p").mkdir()
    pq.write_table(pa.table({"picture": cells, "label": ["x", "y"]}), tmp_path / "p" / "train-00000-of-00001.parquet")
    dataset = workspace.create_dataset("d", tmp_path / "p", Averages())
    assert labels(dataset) == [("train/a.png", ["x"])]
    assert dataset.skipped == {"rows without an image": 1}


def test_parquet__damaged_files_are_counted(tmp_path: Path) -> None:
    """Of files that are damaged, or lack the column of images, the others are read."""
    table = pa.table({"image": [{"bytes": png(IMAGES[0]), "path": "a.png"}], "label": ["x"]})
    for name in ("0", "1", "2"):
        pq.write_table(table, tmp_path / f"{name}.parquet")
    pq.write_table(table.select(["label"]), tmp_path / "1.parquet")
    (tmp_path / "2.parquet").write_bytes((tmp_path / "0.parquet").read_bytes()[:-20])
    images = held_images(tmp_path, None)
    assert images is not None
    assert [each.name for each in images] == ["a.png"]
    assert images.skipped == {"Parquet files that cannot be read to their end": 2}


def test_samples__stay_where_they_are(workspace: Workspace, folder: Path) -> None:
    """A dataset that knows its files is a list of paths with labels."""
    dataset = workspace.create_dataset("d", Samples(folder), Averages())
    assert labels(dataset)[:2] == [("000.png", ["cat"]), ("001.png", ["dog"])]
    assert [each.source for each in dataset.sources()] == [str(folder)]


def test_hugging_face__without_images(workspace: Workspace) -> None:
    """A dataset without a column of images is refused with its columns."""
    with pytest.raises(InvalidInput, match="has no column of images; its columns are text"):
        workspace.create_dataset("d", hugging_face().select_columns(["text"]))


@pytest.mark.slow
def test_preview__of_images_in_memory(workspace: Workspace) -> None:
    """The columns beside the images are shown with what they become, as the dataset has them."""
    preview = workspace.preview(hugging_face())
    assert (preview.kind, preview.files, preview.found, preview.rows[0][:3]) == (
        "images",
        4,
        None,
        ["000000.png", "cat", "a"],
    )
    uses = {each.name: str(each.becomes) for each in preview.columns}
    assert uses == {"path": "path", "label": "labels", "text": "caption", "score": "field", "objects": "boxes"}
    assert list(workspace.datasets()) == []


class Broken(Pairs):
    """A dataset whose first item cannot be decoded, as that of an image that is cut off."""

    def __getitem__(self, number: int) -> tuple[Any, int]:
        if not number:
            raise OSError("cannot identify image file 'a.jpg'")
        return super().__getitem__(number)


def test_held__items_that_cannot_be_read() -> None:
    """An item that cannot be decoded is counted, and the others keep their numbers and classes."""
    images = held_images(Broken(IMAGES[:3]), None)
    assert images is not None
    found = [(each.name, each.row) for each in images]
    assert found == [("000001.png", {"label": "dog"}), ("000002.png", {"label": "cat"})]
    assert images.skipped == {"images that cannot be stored": 1}
    assert "cannot identify image file" in images.skipped.examples["images that cannot be stored"][0]


def test_held__names_differ() -> None:
    """A name that was made for a repeated one is not that of another image."""
    images = held_images([(name, IMAGES[0]) for name in ("a-2.png", "a.png", "a.png")], None)
    assert images is not None
    assert len({each.name for each in images}) == 3


@pytest.mark.parametrize(
    ("column", "features"),
    [
        ([1, 2], {"image": {"_type": "Image"}}),
        (["a", "b"], {"image": {"_type": "Image"}}),
        ([{"bytes": 1, "path": 2}] * 2, {"image": {"_type": "Image"}}),
        ([{"bytes": b"x", "path": 2}] * 2, {"image": {"_type": "Image"}, "n": {"_type": "ClassLabel", "names": 5}}),
    ],
)
def test_parquet__features_that_lie(tmp_path: Path, column: list[Any], features: dict[str, Any]) -> None:
    """What a file says of its columns is checked: nothing of it raises an error of Python."""
    stored = json.dumps({"info": {"features": features}})
    table = pa.table({"image": column, "n": [0, 1]}).replace_schema_metadata({"huggingface": stored})
    pq.write_table(table, tmp_path / "a.parquet")
    images = held_images(tmp_path, None)
    assert images is not None
    assert len(list(images)) + images.skipped.total() == 2
