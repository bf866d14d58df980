"""No pipe that lies where a file is expected holds anything up: each is refused, named or left out."""

import os
import re
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from framedex import Error, Workspace, vql
from tests.gallery import fill
from tests.image_files import encode, photo
from tests.laws import rest_slow

YOLO = "names: [cat, dog]\n"


def ends(call: Callable[[], object]) -> BaseException | None:
    """Check that a call ends, and return what it raised: an error of ours, or nothing."""
    raised = list[BaseException]()

    def run() -> None:
        try:
            call()
        except Error as error:
            raised.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(60)
    assert not thread.is_alive(), "it waits for the pipe"
    return raised[0] if raised else None


IN_A_SOURCE = [
    "Annotations/000.xml", "000.xml", "labels/000.txt", "000.txt", "classes.txt", "data.yaml", "annotations.json",
    "image_annotations.csv", "image_annotations.parquet", "object_annotations.csv", "object_annotations.parquet",
    "pipe.jpg", "pipe.mp4", "labels/classes.txt",
]  # fmt: skip


@pytest.mark.parametrize("name", rest_slow(IN_A_SOURCE, 4))
@pytest.mark.slow
def test_pipe__in_a_source(workspace: Workspace, tmp_path: Path, name: str) -> None:
    """A source folder with a pipe among images and annotations is read, or refused with the name of the pipe."""
    folder = fill(tmp_path / "images", 3)
    pipe = folder / name
    pipe.parent.mkdir(exist_ok=True)
    os.mkfifo(pipe)
    if name.endswith("000.txt"):
        (folder / "data.yaml").write_text(YOLO)
    raised = ends(lambda: workspace.create_dataset("pets", folder))
    if raised is None:
        dataset = workspace.dataset("pets")
        assert dataset.count() in (3, 4)
        assert ends(lambda: dataset.add_media(folder)) is None
    else:
        assert pipe.name in str(raised)


def calls(workspace: Workspace, folder: Path) -> dict[str, Callable[[Path], object]]:
    """Return what takes the path of a file, by the name that the file must have."""
    dataset = workspace.create_dataset("pets", folder)
    return {
        "list.txt": lambda path: workspace.create_dataset("new", path),
        "list.csv": lambda path: workspace.create_dataset("new", path),
        "list.parquet": lambda path: workspace.create_dataset("new", path),
        "image.jpg": lambda path: dataset.add_media(files=[str(path)]),
        "query.jpg": dataset.similar,
        "archive.zip": lambda path: dataset.add_media(archive=path),
        "archive.tar.gz": lambda path: dataset.add_media(archive=path),
        "boxes.json": dataset.add_objects,
        "boxes.csv": dataset.add_objects,
        "boxes.parquet": dataset.add_objects,
        "model.onnx": lambda path: workspace.create_dataset("new", folder, f"onnx:{path}"),
        "detector.onnx": lambda path: dataset.enrich({"OBJECT_DETECTION": f"onnx:{path}"}),
    }


@pytest.mark.slow
def test_pipe__given_by_its_path(workspace: Workspace, tmp_path: Path) -> None:
    """Wherever the path of a file may be given a pipe is refused, or its row says that it is no file."""
    for name, call in calls(workspace, fill(tmp_path / "images", 3)).items():
        os.mkfifo(tmp_path / name)
        raised = ends(lambda call=call, name=name: call(tmp_path / name))  # type: ignore[misc]
        if raised is None:
            assert name == "image.jpg"
    (unreadable,) = workspace.dataset("pets").issues("unreadable").to_pylist()
    assert "not a regular file" in str(unreadable)


@pytest.mark.slow
def test_pipe__as_the_list_of_models(workspace: Workspace, tmp_path: Path) -> None:
    """A list of models that is a pipe is refused by its name."""
    dataset = workspace.create_dataset("pets", fill(tmp_path / "images", 3))
    os.mkfifo(workspace.path / "models.toml")
    raised = ends(lambda: dataset.enrich({"OBJECT_DETECTION": "mine"}))
    assert raised is not None
    assert "models.toml" in str(raised)


def test_pipe__as_a_workspace(tmp_path: Path) -> None:
    """A workspace whose marker or catalog is a pipe is refused."""
    for name in ("framedex.toml", "catalog.db"):
        Workspace(tmp_path / name).close()
        (tmp_path / name / name).unlink()
        os.mkfifo(tmp_path / name / name)
        assert ends(lambda name=name: Workspace(tmp_path / name)) is not None  # type: ignore[misc]


def test_long_line_of_a_list(workspace: Workspace, tmp_path: Path) -> None:
    """A line that is longer than any path is none of a file, and is not read whole."""
    (tmp_path / "list.txt").write_bytes(b"a.jpg\n" + b"x" * 10_000_000 + b"\n")
    raised = ends(lambda: workspace.create_dataset("pets", tmp_path / "list.txt"))
    assert re.search("none of the files exists that .*list.txt", str(raised))
    assert len(str(raised)) < 1000


@pytest.mark.slow
def test_pipe__in_the_cache_of_thumbnails(workspace: Workspace, tmp_path: Path) -> None:
    """A thumbnail is made again where the cache has a pipe in its place."""
    dataset = workspace.create_dataset("pets", fill(tmp_path / "images", 3))
    (media_id, *_) = dataset.where([]).media_ids()
    before = dataset.thumbnail(media_id)
    (path,) = (workspace.path / "cache" / "thumbnails").glob(f"*/*/{media_id}-*.jpg")
    path.unlink()
    os.mkfifo(path)
    after = list[bytes]()
    assert ends(lambda: after.append(dataset.thumbnail(media_id))) is None
    assert after == [before]
    assert path.is_file()


@pytest.mark.slow
def test_pipe__as_an_uploaded_file(workspace: Workspace, tmp_path: Path) -> None:
    """An uploaded file that was replaced by a pipe is refused where it is read, and left out of an export."""
    dataset = workspace.create_dataset("pets", fill(tmp_path / "images", 3))
    dataset.add_media(files=[("up.png", encode(photo(7)))])
    (path,) = workspace.path.glob("datasets/*/blobs/*/*")
    path.unlink()
    os.mkfifo(path)
    (media_id,) = dataset.where(vql.file_name("is", "up.png")).media_ids()
    assert ends(lambda: dataset.read(media_id)) is not None
    ends(lambda: dataset.export(tmp_path / "pets.zip", include_images=True))
