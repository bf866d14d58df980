"""Files and images of single media: details, thumbnails of several sizes, JPEGs of full size, files as they are."""

import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from framedex import Dataset, Workspace
from framedex.errors import CannotDecode, InvalidInput, NotFound
from tests.gallery import SETTINGS, fill
from tests.image_files import encode, photo
from tests.objects import scenes
from tests.videos import numbered, write_video


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    """Images with objects, a large image, a video, and a broken file."""
    folder = tmp_path_factory.mktemp("files")
    scenes(folder / "source", 2)
    (folder / "source/large.png").write_bytes(encode(photo(1, width=900, height=600)))
    (folder / "source/broken.jpg").write_text("no image")
    write_video(folder / "source/clip.mp4", numbered(20))
    return Workspace(folder / "ws", settings=SETTINGS).create_dataset("files", folder / "source")


def size_of(jpeg: bytes) -> tuple[int, int]:
    """Return the size of a JPEG."""
    with Image.open(io.BytesIO(jpeg)) as image:
        assert image.format == "JPEG"
        return image.size


@pytest.mark.slow
@pytest.mark.only_soak
def test_thumbnail__of_several_sizes(dataset: Dataset) -> None:
    """Each size is made once and kept; smaller images are not enlarged."""
    media_id = dataset.media_id("large.png")
    for size in (64, 256, 512, 1024):
        assert dataset.cached_thumbnail(media_id, size) is None
        made = dataset.thumbnail(media_id, size)
        assert size_of(made) == (min(size, 900), round(min(size, 900) * 2 / 3))
        assert dataset.cached_thumbnail(media_id, size) == made == dataset.thumbnail(media_id, size)
    object_id = dataset.objects.ids[0]
    assert size_of(dataset.thumbnail(object_id, 32)) == (32, 32)
    assert dataset.cached_thumbnail(object_id, 32) is not None


@pytest.mark.slow
@pytest.mark.only_soak
@pytest.mark.parametrize("size", [15, 4097, 1.5, "256", None])
def test_thumbnail__of_other_sizes(dataset: Dataset, size: object) -> None:
    """A size is an integer from 16 to 4096."""
    with pytest.raises(InvalidInput, match="size"):
        dataset.thumbnail(dataset.media_id("large.png"), size)  # type: ignore[arg-type] # a wrong size


def test_jpeg__has_the_full_size(dataset: Dataset) -> None:
    """Images, frames and crops become JPEGs of their size."""
    assert size_of(dataset.jpeg(dataset.media_id("large.png"))) == (900, 600)
    assert size_of(dataset.jpeg(dataset.media_id("clip.mp4"))) == (160, 120)
    assert size_of(dataset.jpeg(dataset.objects.ids[0])) == (48, 48)
    with pytest.raises(CannotDecode):
        dataset.jpeg(dataset.media_id("broken.jpg"))


@pytest.mark.slow
def test_open_file__has_the_bytes(dataset: Dataset) -> None:
    """The file of an item is that of its image or video, as it is."""
    with dataset.open_file(dataset.media_id("large.png")) as file:
        assert file.content.read() == encode(photo(1, width=900, height=600))
        assert (file.name, file.format, file.is_video, file.is_part, file.error) == (
            "large.png",
            "png",
            False,
            False,
            None,
        )
    with dataset.open_file(dataset.media_id("clip.mp4")) as file:
        assert (file.name, file.is_video, file.is_part) == ("clip.mp4", True, True)
        assert file.size_bytes == len(file.content.read())
    with dataset.open_file(dataset.objects.ids[0]) as file:
        assert (file.name, file.is_part) == ("000.png", True)
    with dataset.open_file(dataset.media_id("broken.jpg")) as file:
        assert file.error is not None


@pytest.mark.slow
def test_open_file__that_is_gone(tmp_path: Path) -> None:
    """A file that is gone, or that a link now leads elsewhere, is not found; what says so names no path."""
    source = fill(tmp_path / "source", 2)
    with Workspace(tmp_path / "ws", settings=SETTINGS) as workspace:
        dataset = workspace.create_dataset("gone", source)
        (source / "000.png").unlink()
        (tmp_path / "other.png").write_bytes(encode(photo(9)))
        (source / "001.png").unlink()
        (source / "001.png").symlink_to(tmp_path / "other.png")
        for name in ("000.png", "001.png"):
            with pytest.raises(NotFound, match=r"^Media file not found$"):
                dataset.open_file(dataset.media_id(name))
        with pytest.raises(NotFound):
            dataset.open_file("nothing")


@pytest.mark.slow
def test_media_item__has_all(dataset: Dataset) -> None:
    """The details of an item are those of its preview, with issues, clusters and values of fields."""
    dataset.add_field("stars", "float", values={dataset.media_id("large.png"): 3.0})
    item = dataset.media_item(dataset.media_id("large.png"))
    preview = next(
        each for cluster in dataset.explore().clusters for each in cluster.previews if each.media_id == item.media_id
    )
    assert {name: getattr(item, name) for name in type(preview).model_fields} == dict(preview) | {
        "media_thumb_uri": item.media_thumb_uri
    }
    assert item.error is None
    assert [(value.field_name, value.value) for value in item.field_values] == [("stars", 3.0)]
    assert len(item.cluster_ids) == 5
    assert [item.media_id in dataset.cluster(cluster).ids for cluster in item.cluster_ids] == [True] * 5
    broken = dataset.media_item(dataset.media_id("broken.jpg"))
    assert [issue.issue_type for issue in broken.issues] == ["corrupted"]
    assert broken.error
    crop = dataset.media_item(dataset.objects.ids[0])
    assert (crop.type, crop.bounding_box, crop.field_values) == ("OBJECT", [8.0, 8.0, 48.0, 48.0], [])
    with pytest.raises(NotFound):
        dataset.media_item("nothing")


def test_with_uris__of_a_server(dataset: Dataset) -> None:
    """Results name files as a server does, and no path of this machine; the dataset itself is not changed."""
    served = dataset.with_uris(lambda media_id, file: f"https://example.org/{media_id}/{file}")
    (preview,) = served.select([dataset.media_id("large.png")]).explore().clusters[0].previews
    item = served.media_item(preview.media_id)
    own = f"https://example.org/{preview.media_id}"
    for each in (preview, item):
        assert (each.media_uri, each.image_uri, each.media_thumb_uri) == (
            f"{own}/file",
            f"{own}/file",
            f"{own}/thumbnail",
        )
        assert (each.original_uri, each.video_uri) == ("large.png", None)
    crop = served.media_item(dataset.objects.ids[0])
    assert (crop.media_uri, crop.image_uri) == tuple(
        f"https://example.org/{each}/file" for each in (crop.media_id, crop.image_id)
    )
    assert crop.original_uri == dataset.media_item(crop.image_id).file_name
    assert dataset.media_item(preview.media_id).media_uri.startswith("file://")
    with pytest.raises(InvalidInput, match="make must be a function"):
        dataset.with_uris("https://example.org")  # type: ignore[arg-type] # bad input


@pytest.mark.slow
def test_count_clusters__equals_explore(dataset: Dataset) -> None:
    """The counts are those of all pages, for each type and level."""
    for entity_type in ("IMAGES", "OBJECTS", "VIDEOS"):
        for level in (0, 4):
            clusters = dataset.explore(entity_type, level).clusters
            counts = dataset.view.count_clusters(entity_type, level)
            assert counts.n_clusters == len(clusters)
            assert counts.n_media == sum(int(cluster.size_display_value) for cluster in clusters)
    with pytest.raises(InvalidInput):
        dataset.view.count_clusters("IMAGES", 5)


def test_count_export__counts_without_exporting(dataset: Dataset) -> None:
    """The count is that of the export, and the errors are those of its arguments."""
    ids = list(dataset.view.ids)
    selection = [{"type": "media", "payload": {"media_ids": ids[:2]}}]
    assert dataset.count_export() == len(ids)
    assert dataset.count_export(selection) == 2
    assert dataset.count_export(entity_type="OBJECTS") == dataset.objects.count()
    assert dataset.count_export(entity_type="VIDEOS") == 2
    assert dataset.view.limit(3).count_export() == 3
    assert dataset.count_export(vql=[{"ids": {"op": "is", "value": ids[0]}}]) == 1
    with pytest.raises(NotFound):
        dataset.count_export([{"type": "media", "payload": {"media_ids": ["nothing"]}}])


def test_read__equals_the_file(dataset: Dataset) -> None:
    """Pixels are those of the file."""
    assert np.array_equal(dataset.read(dataset.media_id("large.png")), photo(1, width=900, height=600))
