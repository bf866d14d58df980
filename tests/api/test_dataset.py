"""Reading a dataset: images, thumbnails, embeddings; and what it holds while it changes."""

import io
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from framedex import CannotDecode, Dataset, InvalidInput, NotFound, Workspace
from framedex.images.thumbnails import thumbnail_uri
from framedex.jobs.index.index import index
from framedex.operations.context import open_media
from framedex.storage import datasets
from framedex.storage.generation import Summary
from framedex.storage.table_versions import Table
from tests.gallery import ANIMALS, BROKEN, COPIES, NAMES, TOWNS, Gallery, embedded
from tests.image_files import oriented, photo, quadrants, write
from tests.inside import context_of, layout_of, stored_media
from tests.prepared import prepared


@pytest.mark.slow
@pytest.mark.only_soak
def test_embeddings__unit_length(gallery: Gallery) -> None:
    """There is a vector of unit length for each image that could be decoded, in the order of the table."""
    ids, vectors = gallery.dataset.embeddings()
    assert gallery.names(ids) == [name for name in NAMES if name not in BROKEN]
    assert vectors.shape == (len(ids), gallery.dataset.embedding_config.dimension)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


@pytest.mark.slow
def test_embeddings__are_what_the_groups_say(gallery: Gallery) -> None:
    """The dot product of two vectors is their similarity: one for copies, high for edits, low for others."""
    ids, vectors = gallery.dataset.embeddings()
    at = {name: place for place, name in enumerate(gallery.names(ids))}
    similarity = vectors @ vectors.T
    assert similarity[at[COPIES[0]], at[COPIES[1]]] == pytest.approx(1, abs=1e-5)
    assert similarity[at[ANIMALS[2]], at["near/small.jpg"]] > 0.96
    assert similarity[at[ANIMALS[2]], at[TOWNS[2]]] < 0.9


@pytest.mark.slow
def test_read__rgb_and_upright(workspace: Workspace, tmp_path: Path) -> None:
    """An image is read as RGB pixels, the way it is meant to be seen."""
    (tmp_path / "p").mkdir()
    for orientation in (1, 3, 6, 8):
        (tmp_path / "p" / f"{orientation}.png").write_bytes(oriented(quadrants(), orientation, "PNG"))
    dataset = workspace.create_dataset("d", tmp_path / "p")
    for media_id in dataset.where([]).media_ids():
        pixels = dataset.read(media_id)
        assert pixels.dtype == np.uint8
        np.testing.assert_array_equal(pixels, quadrants())
    sizes = dataset.to_arrow(["width", "height"]).to_pylist()
    assert sizes == [{"width": 64, "height": 48}] * 4


@pytest.mark.slow
def test_read__agrees_with_the_table(gallery: Gallery) -> None:
    """Images have the size that the table has."""
    for row in gallery.dataset.to_arrow(["media_id", "width", "height"]).to_pylist():
        if row["width"] is not None:
            assert gallery.dataset.read(row["media_id"]).shape == (row["height"], row["width"], 3)
    np.testing.assert_array_equal(gallery.dataset.read(gallery.ids[TOWNS[0]]), photo(50, width=200, height=150))


@pytest.mark.slow
@pytest.mark.parametrize("media_id", ["", "no-such-id", "' OR 1=1 --", "\udcff", "a\0b", "../x", 5, None])
def test_read__unknown_media(gallery: Gallery, media_id: Any) -> None:
    """A media item that does not exist is an error that names it."""
    for ask in (gallery.dataset.read, gallery.dataset.thumbnail):
        with pytest.raises(NotFound) as raised:
            ask(media_id)
        assert repr(media_id) in str(raised.value)


@pytest.mark.slow
def test_thumbnail__does_not_leave_the_cache(workspace: Workspace, folder: Path) -> None:
    """An id that is a path leads to no file, even where one lies."""
    dataset = prepared(workspace, "d", folder)
    media_id = dataset.where([]).media_ids()[0]
    dataset.thumbnail(media_id)
    (workspace.path / "cache" / "secret-256.jpg").write_bytes(b"secret")
    with pytest.raises(NotFound):
        dataset.thumbnail("../../secret")
    with pytest.raises(NotFound):
        dataset.thumbnail(f"../{dataset.id}/{media_id[:2]}/{media_id}")


def test_read__broken_file(gallery: Gallery) -> None:
    """A file that is no image is refused with the reason."""
    for ask in (gallery.dataset.read, gallery.dataset.thumbnail):
        with pytest.raises(CannotDecode, match=r"broken/empty\.jpg' cannot be shown: the file is empty"):
            ask(gallery.ids["broken/empty.jpg"])


@pytest.mark.slow
def test_read__file_gone(workspace: Workspace, folder: Path) -> None:
    """A file that is gone is an error that names it; what was measured of it stays."""
    dataset = prepared(workspace, "d", folder)
    first = dataset.where([]).media_ids()[0]
    (folder / "000.png").unlink()
    with pytest.raises(NotFound, match=r"000\.png.*No such file"):
        dataset.read(first)
    with pytest.raises(NotFound, match=r"000\.png"):
        dataset.thumbnail(first)
    assert dataset.count() == 6
    assert "cannot be shown" in dataset._repr_html_()


@pytest.mark.slow
@pytest.mark.only_soak
def test_thumbnail__is_a_small_jpeg(workspace: Workspace, tmp_path: Path) -> None:
    """A thumbnail is a JPEG of the same shape whose longer side has at most 256 pixels; none is enlarged."""
    write(tmp_path / "p/0.png", photo(1, width=800, height=600))
    write(tmp_path / "p/1.png", photo(1, width=300, height=900))
    write(tmp_path / "p/2.png", photo(1, width=60, height=40))
    dataset = workspace.create_dataset("d", tmp_path / "p")
    sizes = []
    for media_id in dataset.where([]).media_ids():
        with Image.open(io.BytesIO(dataset.thumbnail(media_id))) as image:
            assert (image.format, image.mode) == ("JPEG", "RGB")
            sizes.append(image.size)
    assert sizes == [(256, 192), (85, 256), (60, 40)]


def test_thumbnail__shows_the_image(gallery: Gallery) -> None:
    """The thumbnail of an image that is small enough is that image, but for compression."""
    with Image.open(io.BytesIO(gallery.dataset.thumbnail(gallery.ids[TOWNS[1]]))) as image:
        shown = np.asarray(image).astype(int)
    assert np.abs(shown - gallery.dataset.read(gallery.ids[TOWNS[1]])).mean() < 5


def emptied(data: bytes) -> bytes:
    return b""


def cut(data: bytes) -> bytes:
    return data[: len(data) // 2]


def zeroed(data: bytes) -> bytes:
    return bytes(len(data))


def flipped(data: bytes) -> bytes:
    return data[:900] + bytes([data[900] ^ 64]) + data[901:]


@pytest.mark.slow
@pytest.mark.only_soak
@pytest.mark.parametrize("damaged", [emptied, cut, zeroed, flipped])
def test_cache__damaged_thumbnails_are_made_again(
    workspace: Workspace, folder: Path, damaged: Callable[[bytes], bytes]
) -> None:
    """A thumbnail that is not as it was written is never shown: it is made again, and stays whole from then on."""
    dataset = prepared(workspace, "d", folder)
    first = dataset.where([]).media_ids()[0]
    data = dataset.thumbnail(first)
    (path,) = (workspace.path / "cache" / "thumbnails").rglob("*.jpg")
    written = path.read_bytes()
    path.write_bytes(damaged(written))
    assert dataset.thumbnail(first) == data
    assert path.read_bytes() == written
    with Image.open(path) as image:
        assert image.size == (160, 120)
        image.load()


@pytest.mark.slow
def test_cache__damaged_thumbnail_of_a_file_that_is_gone(workspace: Workspace, folder: Path) -> None:
    """Without an intact thumbnail and a file there is a clear error; an empty thumbnail has no URI."""
    dataset = prepared(workspace, "d", folder)
    first = dataset.where([]).media_ids()[0]
    dataset.thumbnail(first)
    (path,) = (workspace.path / "cache" / "thumbnails").rglob("*.jpg")
    assert thumbnail_uri(layout_of(workspace).thumbnails(dataset.id), first) == path.as_uri()
    path.write_bytes(b"")
    (folder / "000.png").unlink()
    with pytest.raises(NotFound, match=r"000\.png"):
        dataset.thumbnail(first)
    assert thumbnail_uri(layout_of(workspace).thumbnails(dataset.id), first) is None


@pytest.mark.slow
def test_cache__thumbnails_without_a_seal(workspace: Workspace, folder: Path) -> None:
    """A whole JPEG that was cached without the hash behind it is still shown, also when the file is gone."""
    dataset = prepared(workspace, "d", folder)
    first = dataset.where([]).media_ids()[0]
    data = dataset.thumbnail(first)
    (path,) = (workspace.path / "cache" / "thumbnails").rglob("*.jpg")
    path.write_bytes(data)
    (folder / "000.png").unlink()
    assert dataset.thumbnail(first) == data


@pytest.mark.slow
def test_cache__may_be_deleted(workspace: Workspace, folder: Path) -> None:
    """Thumbnails are kept, and made again when the cache is gone, also between two calls."""
    dataset = prepared(workspace, "d", folder)
    first = dataset.where([]).media_ids()[0]
    data = dataset.thumbnail(first)
    (folder / "000.png").rename(folder / "moved")
    assert dataset.thumbnail(first) == data
    (folder / "moved").rename(folder / "000.png")
    shutil.rmtree(workspace.path / "cache")
    assert dataset.thumbnail(first) == data
    shutil.rmtree(workspace.path / "cache")
    preview = dataset.explore().clusters[0].previews[0]
    assert preview.media_thumb_uri == preview.media_uri


@pytest.mark.slow
def test_cache__that_cannot_be_written(workspace: Workspace, folder: Path) -> None:
    """A cache that cannot be written costs time and nothing else."""
    dataset = prepared(workspace, "d", folder)
    shutil.rmtree(workspace.path / "cache", ignore_errors=True)
    (workspace.path / "cache").write_text("a file where a folder should be")
    assert dataset.thumbnail(dataset.where([]).media_ids()[0])[:2] == b"\xff\xd8"
    assert "data:image/jpeg" in dataset._repr_html_()


@pytest.mark.slow
def test_cache__leaves_no_partial_files(workspace: Workspace, folder: Path) -> None:
    """The cache holds whole thumbnails only."""
    dataset = prepared(workspace, "d", folder)
    for media_id in dataset.where([]).media_ids():
        dataset.thumbnail(media_id)
    files = [path for path in (workspace.path / "cache" / "thumbnails").rglob("*") if path.is_file()]
    assert len(files) == 6
    assert {path.suffix for path in files} == {".jpg"}


def reindexed(workspace: Workspace, dataset: Dataset) -> Any:
    """Write a new version with one cluster for all and return what commits it."""
    context = context_of(workspace)
    media = open_media(context, dataset.id)
    table = Table(context.layout.media(dataset.id), media.generation.tables["media"])
    version = index(table, [1.5, 1.6, 1.7, 1.8, 1.9], progress=lambda _stage, _share: None).version

    def commit() -> None:
        with context.catalog.write() as connection:
            datasets.commit_generation(
                connection,
                dataset.id,
                tables={"media": version},
                n_images=4,
                config=dataset.embedding_config,
                summary=Summary(),
            )

    return commit


@pytest.mark.slow
def test_generations__what_is_not_committed_is_not_seen(workspace: Workspace) -> None:
    """A version that was written and not committed changes nothing; the commit changes all at once."""
    dataset = prepared(workspace, "d", embedded([[1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 1, 0]]))
    before = dataset.to_arrow()
    commit = reindexed(workspace, dataset)
    assert dataset.to_arrow().equals(before)
    assert [cluster.n_images for cluster in dataset.explore().clusters] == [2, 1, 1]
    commit()
    assert [cluster.n_images for cluster in dataset.explore().clusters] == [4]


@pytest.mark.slow
def test_generations__a_reader_keeps_its_own(workspace: Workspace) -> None:
    """Media that were opened before a commit stay as they were, for as long as they are held."""
    dataset = prepared(workspace, "d", embedded([[1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 1, 0]]))
    held = stored_media(dataset)
    before = held.table.scan(["media_id", "cluster_0"]).read_all()
    reindexed(workspace, dataset)()
    assert held.table.scan(["media_id", "cluster_0"]).read_all().equals(before)
    now = stored_media(dataset).table.scan(["media_id", "cluster_0"]).read_all()
    assert now["media_id"].equals(before["media_id"])
    assert not now["cluster_0"].equals(before["cluster_0"])


@pytest.mark.slow
def test_media_ids__stay_when_made_again(workspace: Workspace, folder: Path) -> None:
    """A media item is found under its id again after the workspace was closed; ids differ between datasets."""
    first, second = (workspace.create_dataset(name, folder).where([]).media_ids() for name in "ab")
    assert len({*first, *second}) == 12
    with Workspace(workspace.path) as again:
        assert again.dataset("a").where([]).media_ids() == first


def test_to_arrow__columns_that_are_a_text(gallery: Gallery) -> None:
    """The name of a column where a list is wanted is not taken for its letters."""
    with pytest.raises(
        InvalidInput, match=r"columns must be a list of names, as \['media_id'\], not the text 'media_id'"
    ):
        gallery.dataset.to_arrow("media_id")
