"""Making datasets, from everything that can be a source."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from framedex import Conflict, Encoder, Forbidden, InvalidInput, NotFound, TaskFailed, Workspace
from framedex.records import DatasetStatus, TaskStatus
from tests.gallery import NAMES, SETTINGS, Averages, Faulty, Gallery, embedded
from tests.image_files import photo, write
from tests.problems import unusable


def files_of(workspace: Workspace, name: str) -> list[str]:
    paths: list[str] = workspace.dataset(name).to_arrow(["image_filename"])["image_filename"].to_pylist()
    return paths


def test_create_dataset__folder(gallery: Gallery) -> None:
    """Each image of a folder, and nothing else, becomes a media item, in the order of the names."""
    assert files_of(gallery.workspace, "gallery") == NAMES
    assert gallery.dataset.skipped == {"other files (.txt)": 1, "hidden files": 1}


def test_create_dataset__record(gallery: Gallery) -> None:
    """The finished dataset's record says what the interface's status endpoint says."""
    info = gallery.dataset.info
    assert set(info.model_dump()) == {
        "id", "display_name", "status", "status_new", "progress", "owned_by", "created_at", "n_images", "n_videos",
        "n_objects", "description", "created_by", "updated_at", "source_type", "source_uri", "source_dataset_id",
    }  # fmt: skip
    assert (info.display_name, info.status, info.status_new, info.progress) == ("gallery", "READY", "READY", 100)
    assert (info.n_images, info.n_videos, info.n_objects) == (len(NAMES), 0, 0)
    assert info.owned_by == "tester@example.org"
    assert info.created_at.utcoffset() is not None


@pytest.mark.slow
def test_create_dataset__string_and_path(workspace: Workspace, folder: Path) -> None:
    """A source may be given as text or as a Path."""
    assert (
        workspace.create_dataset("text", str(folder)).count() == workspace.create_dataset("path", folder).count() == 6
    )


def text_list(where: Path, paths: list[Path]) -> Path:
    (where / "list.txt").write_text("\n".join(map(str, paths)) + "\n")
    return where / "list.txt"


def csv_list(where: Path, paths: list[Path]) -> Path:
    pa.csv.write_csv(pa.table({"label": ["x"] * len(paths), "path": list(map(str, paths))}), where / "list.csv")
    return where / "list.csv"


def parquet_list(where: Path, paths: list[Path]) -> Path:
    pq.write_table(pa.table({"path": list(map(str, paths))}), where / "list.parquet")
    return where / "list.parquet"


@pytest.mark.slow
@pytest.mark.only_soak
@pytest.mark.parametrize("write_list", [text_list, csv_list, parquet_list])
def test_create_dataset__list(
    workspace: Workspace, folder: Path, tmp_path: Path, write_list: Callable[[Path, list[Path]], Path]
) -> None:
    """A list of paths in any of the three formats gives its images, in its order."""
    paths = sorted(folder.iterdir())[::-1][:4]
    dataset = workspace.create_dataset("listed", write_list(tmp_path, paths))
    assert dataset.to_arrow(["file_path"])["file_path"].to_pylist() == list(map(str, paths))


@pytest.mark.slow
def test_create_dataset__list_with_missing_paths(workspace: Workspace, folder: Path, tmp_path: Path) -> None:
    """A path of a list that leads nowhere becomes an unreadable media item with the reason, and the others are kept."""
    source = text_list(tmp_path, [folder / "000.png", folder / "gone.png", folder / "001.png"])
    dataset = workspace.create_dataset("listed", source)
    assert dataset.count() == 3
    assert [(row["file_name"], row["issue_type"]) for row in dataset.issues("unreadable").to_pylist()] == [
        ("gone.png", "unreadable")
    ]
    assert "No such file" in dataset.issues("unreadable")["reason"][0].as_py()


def test_create_dataset__list_of_missing_paths_only(workspace: Workspace, tmp_path: Path) -> None:
    """A list of which no path leads anywhere is refused: it was misunderstood, or its files are elsewhere."""
    with pytest.raises(InvalidInput, match=r"none of the files exists that .* names.*a\.png'; '.*b\.png'"):
        workspace.create_dataset("listed", text_list(tmp_path, [tmp_path / "a.png", tmp_path / "b.png"]))
    assert list(workspace.datasets()) == []


@pytest.mark.slow
@pytest.mark.only_soak
@pytest.mark.parametrize("kind", ["arrow", "parquet", "pandas", "dict"])
def test_create_dataset__embeddings(workspace: Workspace, tmp_path: Path, kind: str) -> None:
    """A table brings its own embeddings, sizes, captions and labels, in whatever form it comes."""
    table = embedded(
        [[3, 0, 0], [0, 0, 2], [0, 5, 0]],
        width=[10, 20, None],
        height=[30, 5, None],
        caption=["one", None, "three"],
        label=["cat", '["dog", "pup"]', None],
    )
    source: Any = table
    if kind == "parquet":
        source = tmp_path / "vectors.parquet"
        pq.write_table(table, source)
    elif kind == "pandas":
        import pandas as pd

        source = pd.DataFrame(table.to_pydict())  # which holds sizes as floats, as one is missing
    elif kind == "dict":
        source = table.to_pydict()
    dataset = workspace.create_dataset("vectors", source)
    rows = dataset.to_arrow(["image_filename", "width", "height", "caption", "labels", "embedding"]).to_pylist()
    assert [tuple(row.values()) for row in rows] == [
        ("0.jpg", 10, 30, "one", ["cat"], [1, 0, 0]),
        ("1.jpg", 20, 5, None, ["dog", "pup"], [0, 0, 1]),
        ("2.jpg", None, None, "three", [], [0, 1, 0]),
    ]
    assert dataset.embedding_config.encoder == "precomputed"


def test_create_dataset__embeddings_beside_images(workspace: Workspace, folder: Path) -> None:
    """Relative uris of a Parquet file are files beside it, which can be read."""
    table = pa.table({"uri": ["000.png", str(folder / "001.png"), "https://example.org/2.png"]})
    pq.write_table(table.append_column("embedding", pa.array(np.eye(3).tolist())), folder / "vectors.parquet")
    dataset = workspace.create_dataset("vectors", folder / "vectors.parquet")
    first, second, third = dataset.where([]).media_ids()
    np.testing.assert_array_equal(dataset.read(first), photo(100))
    np.testing.assert_array_equal(dataset.read(second), photo(101))
    with pytest.raises(NotFound, match=r"https://example\.org/2\.png"):
        dataset.read(third)
    assert dataset.explore().clusters[2].previews[0].media_uri == "https://example.org/2.png"


def test_create_dataset__annotations(gallery: Gallery) -> None:
    """Labels and captions of the file beside the images are those of the media of these names."""
    rows = {
        row["image_filename"]: row
        for row in gallery.dataset.to_arrow(["image_filename", "labels", "caption"]).to_pylist()
    }
    assert rows["animals/00.jpg"]["labels"] == ["animal", "fur"]
    assert rows["animals/07.jpg"] == {"image_filename": "animals/07.jpg", "labels": ["animal"], "caption": None}
    assert rows["towns/03.png"]["caption"] == "a street, number 03"
    assert rows["bad/grey.png"]["labels"] == []


@pytest.mark.slow
def test_create_dataset__coco(workspace: Workspace, folder: Path) -> None:
    """COCO annotations give objects, labels and captions; those of files that are not there are counted."""
    content = {
        "images": [{"id": 1, "file_name": "000.png"}, {"id": 2, "file_name": "gone.png"}],
        "categories": [{"id": 7, "name": "boat"}, {"id": 8, "name": "sail"}],
        "annotations": [
            {"image_id": 1, "category_id": 7},
            {"image_id": 1, "category_id": 8, "bbox": [1, 2, 3, 4]},
            {"image_id": 1, "caption": "at sea"},
            {"image_id": 2, "category_id": 7},
        ],
    }
    (folder / "annotations.json").write_text(json.dumps(content))
    dataset = workspace.create_dataset("coco", folder)
    row = dataset.to_arrow(["labels", "caption"]).to_pylist()[0]
    assert row == {"labels": ["boat"], "caption": "at sea"}
    assert dataset.objects.to_arrow(["label"])["label"].to_pylist() == ["sail"]
    assert dataset.skipped["annotations without an image"] == 1


@pytest.mark.slow
def test_create_dataset__unusable_annotations(workspace: Workspace, folder: Path) -> None:
    """Annotations that cannot be understood are problems of the dataset, which name the file."""
    (folder / "annotations.json").write_text("{")
    dataset = workspace.create_dataset("coco", folder)
    (problem,) = unusable(dataset)
    assert problem.startswith("annotations.json: 'annotations.json': is no JSON object that can be read")
    assert dataset.skipped["parts of annotations that cannot be used as they are"] == 1


@pytest.mark.slow
def test_create_dataset__encoder_by_name_and_object(workspace: Workspace, folder: Path) -> None:
    """An encoder may be named or given; the dataset says which it was and why."""
    named = workspace.create_dataset("named", folder, "gist").embedding_config
    chosen = workspace.create_dataset("chosen", folder).embedding_config
    given = workspace.create_dataset("given", folder, Averages()).embedding_config
    assert (named.encoder, named.reason) == ("gist", "chosen by name")
    assert chosen.encoder == "gist"
    assert chosen.reason.startswith("auto")
    assert (given.encoder, given.dimension, given.thresholds) == ("averages", 48, Averages.thresholds)
    assert workspace.dataset("given").embeddings()[1].shape == (6, 48)


def test_create_dataset__unknown_encoder(workspace: Workspace, folder: Path) -> None:
    """An encoder that does not exist is an error that names it and those that do."""
    with pytest.raises(InvalidInput, match=r"'resnet'.*gist"):
        workspace.create_dataset("d", folder, "resnet")
    no_encoder: Any = 5
    with pytest.raises(InvalidInput, match="5 is no encoder"):
        workspace.create_dataset("d", folder, no_encoder)
    assert workspace.datasets() == []


def test_encoder__is_a_protocol() -> None:
    """An encoder need not inherit from anything."""
    assert isinstance(Averages(), Encoder)
    assert not isinstance(5, Encoder)


@pytest.mark.slow
def test_create_dataset__thresholds(workspace: Workspace) -> None:
    """Clusters are cut at the thresholds that were given: a wide one joins what the default keeps apart."""
    table = embedded([[1, 0], [0.8, 0.6], [0, 1]])
    fine = workspace.create_dataset("fine", table, thresholds=[0.01, 0.02, 0.03, 0.04, 0.05])
    coarse = workspace.create_dataset("coarse", table, thresholds=(0.01, 0.25, 0.5, 1.5, 2))
    assert [len(fine.explore(level=level).clusters) for level in range(5)] == [3, 3, 3, 3, 3]
    assert [len(coarse.explore(level=level).clusters) for level in range(5)] == [3, 2, 2, 1, 1]
    assert coarse.embedding_config.thresholds == (0.01, 0.25, 0.5, 1.5, 2.0)


@pytest.mark.parametrize(
    "thresholds",
    [[], [0.1] * 5, [0.1, 0.2, 0.3, 0.4], [0.5, 0.4, 0.3, 0.2, 0.1], [0, 0.1, 0.2, 0.3, 0.4],
     [0.1, 0.2, 0.3, 0.4, 2.1], [0.1, 0.2, 0.3, 0.4, float("nan")], ["a", "b", "c", "d", "e"], 5],
)  # fmt: skip
def test_create_dataset__unusable_thresholds(workspace: Workspace, thresholds: Any) -> None:
    """Thresholds that are not five ascending distances are refused, and nothing is made."""
    with pytest.raises(InvalidInput, match="five ascending"):
        workspace.create_dataset("d", embedded([[1, 0]]), thresholds=thresholds)
    assert workspace.datasets() == []


@pytest.mark.slow
def test_create_dataset__not_waiting(workspace: Workspace, folder: Path) -> None:
    """With wait=False the dataset is there at once, indexing, and its task leads to READY."""
    dataset = workspace.create_dataset("later", folder, wait=False)
    assert dataset.task is not None
    assert dataset.info.status_new in (DatasetStatus.INDEXING, DatasetStatus.READY)
    assert dataset.task.wait(60).status is TaskStatus.COMPLETED
    assert dataset.info.status_new is DatasetStatus.READY
    assert dataset.count() == 6


@pytest.mark.slow
def test_create_dataset__name_taken(workspace: Workspace, folder: Path) -> None:
    """A name belongs to one dataset; the second one changes nothing of the first."""
    first = workspace.create_dataset("pets", folder)
    with pytest.raises(Conflict, match="'pets'"):
        workspace.create_dataset("pets", folder)
    assert [info.id for info in workspace.datasets()] == [first.id]
    assert first.count() == 6


def test_create_dataset__without_changing_the_source(workspace: Workspace, folder: Path) -> None:
    """Images stay where and as they are."""
    before = {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.iterdir()}
    workspace.create_dataset("d", folder)
    workspace.delete_dataset("d")
    assert {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.iterdir()} == before


@pytest.mark.slow
def test_dataset__by_name_and_id(workspace: Workspace, folder: Path) -> None:
    """A dataset is found by its name or its id; what is not there is named in the error, with what is."""
    made = workspace.create_dataset("pets", folder)
    assert workspace.dataset("pets").id == workspace.dataset(made.id).id == made.id
    with pytest.raises(NotFound, match=r"'cats'.*'pets'"):
        workspace.dataset("cats")


@pytest.mark.slow
def test_datasets__newest_first(workspace: Workspace) -> None:
    """Datasets are listed from the newest to the oldest."""
    for name in ("a", "c", "b"):
        workspace.create_dataset(name, embedded([[1, 0]]))
    assert [info.display_name for info in workspace.datasets()] == ["b", "c", "a"]


@pytest.mark.slow
def test_delete_dataset__leaves_nothing(workspace: Workspace, folder: Path) -> None:
    """After a deletion the name is free and no file of the dataset is left; the task's record stays."""
    dataset = workspace.create_dataset("pets", folder)
    dataset.thumbnail(dataset.where([]).media_ids()[0])
    workspace.delete_dataset("pets")
    assert workspace.datasets() == []
    assert not [path for path in workspace.path.rglob("*") if dataset.id in str(path)]
    with pytest.raises(NotFound):
        dataset.count()
    assert [(task.dataset_name, task.dataset_status) for task in workspace.tasks().tasks] == [("pets", "DELETED")]
    assert workspace.create_dataset("pets", folder).count() == 6


@pytest.mark.slow
def test_delete_dataset__switched_off(tmp_path: Path, folder: Path) -> None:
    """If the settings forbid deletions, a failed creation still leaves nothing."""
    settings = SETTINGS.model_copy(update={"delete_dataset_enabled": False})
    with Workspace(tmp_path / "kept", settings=settings) as workspace:
        workspace.create_dataset("stays", folder)
        with pytest.raises(Forbidden, match="Delete dataset feature is not enabled"):
            workspace.delete_dataset("stays")
        with pytest.raises(TaskFailed, match="out of order"):
            workspace.create_dataset("fails", folder, Faulty())
        assert [record.display_name for record in workspace.datasets()] == ["stays"]


def test_delete_dataset__unknown(workspace: Workspace) -> None:
    """A dataset that does not exist cannot be deleted."""
    with pytest.raises(NotFound, match="'pets'"):
        workspace.delete_dataset("pets")


def test_repr__says_what_it_is(workspace: Workspace, folder: Path) -> None:
    """Workspace, dataset and view introduce themselves."""
    dataset = workspace.create_dataset("pets", folder)
    assert repr(workspace) == f"<framedex.Workspace {str(workspace.path)!r}: 1 dataset>"
    assert repr(dataset) == "<framedex.Dataset 'pets': 6 images, READY>"
    assert "6 media" in repr(dataset.where([]))


@pytest.mark.slow
def test_create_dataset__reads_each_image_once(workspace: Workspace, folder: Path) -> None:
    """A dataset is made of what the files were: changing them later changes nothing but what is read anew."""
    dataset = workspace.create_dataset("d", folder)
    before = dataset.to_arrow(None)
    for path in folder.iterdir():
        write(path, photo(999))
    assert dataset.to_arrow(None).equals(before)
    np.testing.assert_array_equal(dataset.read(dataset.where([]).media_ids()[0]), photo(999))
