"""Links out of a source folder: their targets are exported only if they are images of the dataset."""

import zipfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from framedex import Dataset, Workspace
from framedex.records import ExportResult
from tests.image_files import photo, write
from tests.prepared import prepared
from tests.videos import numbered, write_video

SECRET = b"root:secret"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A source folder with two images."""
    for number in range(2):
        write(tmp_path / "source" / f"{number}.png", photo(number))
    return tmp_path / "source"


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """A folder outside of the source."""
    folder = tmp_path / "elsewhere"
    write(folder / "image.png", photo(7))
    (folder / "secret").write_bytes(SECRET)
    return folder


def exported(dataset: Dataset, path: Path) -> tuple[ExportResult, dict[str, bytes]]:
    """Export a dataset with its images; return the message, and the images by name."""
    result = dataset.export(path, include_images=True)
    with zipfile.ZipFile(path) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    return result, {name.removeprefix("images/"): data for name, data in files.items() if name.startswith("images/")}


@pytest.mark.slow
def test_outside__what_is_no_image_stays(workspace: Workspace, source: Path, elsewhere: Path, tmp_path: Path) -> None:
    """A link to a file that is not an image is left out, and the message says so."""
    (source / "link.jpg").symlink_to(elsewhere / "secret")
    (source / "folder").symlink_to(elsewhere)
    (elsewhere / "more.png").write_bytes(SECRET)
    result, images = exported(workspace.create_dataset("d", source), tmp_path / "out.zip")
    assert SECRET not in b"".join(images.values())
    assert set(images) == {"0.png", "1.png", "folder/image.png"}
    assert result.missing_images == [str(source / "link.jpg"), str(source / "folder/more.png")]
    assert "2 left out: a link leads out of their source folder" in result.message
    assert "could not be read" not in result.message


@pytest.mark.slow
def test_outside__linked_images_are_exported(
    workspace: Workspace, source: Path, elsewhere: Path, tmp_path: Path
) -> None:
    """Images that are linked into a source, one by one or as a folder, are exported."""
    (source / "link.png").symlink_to(elsewhere / "image.png")
    (source / "folder").symlink_to(elsewhere)
    result, images = exported(workspace.create_dataset("d", source), tmp_path / "out.zip")
    assert images["link.png"] == images["folder/image.png"] == (elsewhere / "image.png").read_bytes()
    assert (result.images, result.missing_images, result.message) == (4, [], "4 media, 4 images")


def changed_target(link: Path, elsewhere: Path) -> None:
    (elsewhere / "image.png").write_bytes(SECRET)


def changed_link(link: Path, elsewhere: Path) -> None:
    link.unlink()
    link.symlink_to(elsewhere / "secret")


def file_that_becomes_a_link(link: Path, elsewhere: Path) -> None:
    changed_link(link.with_name("0.png"), elsewhere)


@pytest.mark.slow
@pytest.mark.parametrize("change", [changed_target, changed_link, file_that_becomes_a_link])
def test_outside__what_has_changed_stays(
    workspace: Workspace, source: Path, elsewhere: Path, tmp_path: Path, change: Callable[[Path, Path], None]
) -> None:
    """A link whose target is no longer the indexed image is left out."""
    (source / "link.png").symlink_to(elsewhere / "image.png")
    dataset = prepared(workspace, "d", source)
    change(source / "link.png", elsewhere)
    result, images = exported(dataset, tmp_path / "out.zip")
    assert SECRET not in b"".join(images.values())
    assert len(result.missing_images) == 1
    assert "1 left out" in result.message


@pytest.mark.slow
def test_outside__another_image_than_was_indexed_stays(
    workspace: Workspace, source: Path, elsewhere: Path, tmp_path: Path
) -> None:
    """An image that replaced the indexed image outside of the source is left out."""
    (source / "link.png").symlink_to(elsewhere / "image.png")
    dataset = workspace.create_dataset("d", source)
    write(elsewhere / "image.png", photo(8))
    _, images = exported(dataset, tmp_path / "out.zip")
    assert set(images) == {"0.png", "1.png"}


@pytest.mark.slow
def test_outside__broken_files_within_the_source_are_exported(
    workspace: Workspace, source: Path, tmp_path: Path
) -> None:
    """Files of the source are exported unchanged, also through a link, and if the source is a link."""
    (source / "broken.png").write_bytes(SECRET)
    (source / "sub").mkdir()
    (source / "sub/link.png").symlink_to(source / "broken.png")
    (tmp_path / "alias").symlink_to(source)
    _, images = exported(workspace.create_dataset("d", tmp_path / "alias"), tmp_path / "out.zip")
    assert images["broken.png"] == images["sub/link.png"] == SECRET


@pytest.mark.slow
def test_outside__lists_of_links_are_exported(
    workspace: Workspace, source: Path, elsewhere: Path, tmp_path: Path
) -> None:
    """A link in a list, or as the source itself, is exported if its target is an image."""
    (source / "link.png").symlink_to(elsewhere / "image.png")
    (tmp_path / "list.txt").write_text("source/link.png\nsource/0.png\n")
    of_list = exported(workspace.create_dataset("list", tmp_path / "list.txt"), tmp_path / "list.zip")
    of_file = exported(workspace.create_dataset("file", source / "link.png"), tmp_path / "file.zip")
    assert set(of_list[1]) == {"link.png", "0.png"}
    assert set(of_file[1]) == {"link.png"}


def test_outside__datasets_that_brought_embeddings(
    workspace: Workspace, source: Path, elsewhere: Path, tmp_path: Path
) -> None:
    """A dataset with imported embeddings exports the target of a link only if it is an image."""
    (source / "link.png").symlink_to(elsewhere / "image.png")
    (source / "secret.png").symlink_to(elsewhere / "secret")
    names = ["0.png", "link.png", "secret.png"]
    table = pa.table({"uri": names, "embedding": [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]})
    pq.write_table(table, source / "table.parquet")
    dataset = workspace.create_dataset("d", source / "table.parquet")
    _, images = exported(dataset, tmp_path / "out.zip")
    assert set(images) == {"0.png", "link.png"}


@pytest.mark.slow
def test_outside__frames_of_another_video_stay(
    workspace: Workspace, source: Path, elsewhere: Path, tmp_path: Path
) -> None:
    """Frames of a linked video are exported, and left out if the link leads to another video."""
    write_video(elsewhere / "one.mp4", numbered(20))
    (source / "link.mp4").symlink_to(elsewhere / "one.mp4")
    dataset = workspace.create_dataset("d", source)
    assert len(exported(dataset, tmp_path / "before.zip")[1]) > 2
    write_video(elsewhere / "two.mp4", numbered(20, seed=5))
    (source / "link.mp4").unlink()
    (source / "link.mp4").symlink_to(elsewhere / "two.mp4")
    assert set(exported(dataset, tmp_path / "after.zip")[1]) == {"0.png", "1.png"}


@pytest.mark.parametrize("make", ["list", "table"])
def test_outside__what_a_list_names_is_an_image(
    workspace: Workspace, source: Path, elsewhere: Path, tmp_path: Path, make: str
) -> None:
    """Lists and tables name any file of the machine; those that are no images stay there."""
    (source / "link.jpg").symlink_to(elsewhere / "secret")
    (source / "image-without-suffix").write_bytes((source / "0.png").read_bytes())
    (source / "broken.png").write_bytes(b"broken")
    paths = [
        str(source / "0.png"), str(elsewhere / "secret"), str(source / "link.jpg"),
        str(source / "image-without-suffix"), str(source / "broken.png"),
    ]  # fmt: skip
    if make == "list":
        (tmp_path / "list.txt").write_text("\n".join(paths))
        dataset = workspace.create_dataset("d", tmp_path / "list.txt")
    else:
        vectors = pa.FixedSizeListArray.from_arrays(pa.array([1.0, 0.0] * len(paths), pa.float32()), 2)
        dataset = workspace.create_dataset("d", pa.table({"uri": paths, "embedding": vectors}))
    result, images = exported(dataset, tmp_path / "out.zip")
    assert SECRET not in images.values()
    assert {Path(name).name.partition("-")[0].partition(".")[0] for name in images} == {"0", "image", "broken"}
    assert len(result.missing_images) == 2
    assert "2 left out: never decoded, not named as an image" in result.message
