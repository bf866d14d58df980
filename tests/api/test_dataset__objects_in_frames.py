"""Objects in frames of videos are read as those in images are, and know their time."""

from pathlib import Path

import numpy as np
import pytest

from framedex import Dataset, Workspace, vql
from tests.enrichers.onnx_detectors import head, saying
from tests.image_files import photo, write
from tests.prepared import prepared
from tests.videos import decoded, numbered, write_video


@pytest.fixture
def dataset(workspace: Workspace, tmp_path: Path) -> Dataset:
    """A dataset of an image and three frames, with a dog and a cat in each."""
    rows = {0: [10.0, 16.0, 8.0, 8.0, 0.0, 0.75], 3: [22.0, 17.0, 4.0, 2.0, 0.5, 0.0]}
    saying(workspace.path / "boxes.onnx", head("yolov8", rows, 2))
    (workspace.path / "boxes.names").write_text("cat\ndog\n")
    (workspace.path / "models.toml").write_text(
        '[boxes]\ntype = "OBJECT_DETECTION"\ndetector = "onnx:boxes.onnx"\nform = "yolov8"\n'
    )
    folder = tmp_path / "trips"
    write(folder / "0.png", photo(3, width=320, height=200))
    write_video(folder / "a.mp4", numbered(24, width=320, height=200), fps=8)
    return prepared(workspace, "trips", folder).enrich({"OBJECT_DETECTION": "boxes"})


@pytest.mark.slow
@pytest.mark.only_soak
def test_explore__counts_images_frames_and_videos(dataset: Dataset) -> None:
    """A cluster says in how many of each its objects are."""
    clusters = dataset.objects.explore(level=4).clusters
    assert sum(cluster.n_objects for cluster in clusters) == 8
    for cluster in clusters:
        parents = {shown.image_id for shown in cluster.previews}
        assert (cluster.type, cluster.n_images + cluster.n_frames) == ("OBJECTS", len(parents))
        assert cluster.n_videos == (1 if cluster.n_frames else 0)
    (dogs,) = dataset.explore("OBJECTS", vql=vql.labels("dog") & vql.media("image")).clusters
    assert (dogs.n_objects, dogs.n_images, dogs.n_frames, dogs.n_videos) == (1, 1, 0, 0)


@pytest.mark.slow
@pytest.mark.only_soak
def test_explore__previews_name_time_and_box(dataset: Dataset, tmp_path: Path) -> None:
    """The address of an object in a frame has both; that of the video has neither."""
    frames = vql.labels("dog") & vql.media("video_frame")
    shown = [each for cluster in dataset.explore("OBJECTS", vql=frames).clusters for each in cluster.previews]
    assert sorted(each.frame_timestamp or 0 for each in shown) == [0, 1, 2]
    for each in shown:
        assert each.type == "OBJECT"
        assert each.video_uri == (tmp_path / "trips/a.mp4").as_uri()
        assert each.image_uri == each.original_uri == f"{each.video_uri}#t={each.frame_timestamp:g}"
        assert each.media_uri == f"{each.image_uri}&xywh=60,60,80,80"
        assert each.bounding_box == [60, 60, 80, 80]


@pytest.mark.slow
def test_read__is_what_is_in_the_box_of_that_frame(dataset: Dataset, tmp_path: Path) -> None:
    """An object is cut out of the very frame it was found in."""
    columns = ["media_id", "frame_number", "bbox"]
    frames = dataset.objects.where(vql.media("video_frame")).to_arrow(columns).to_pylist()
    whole = decoded(tmp_path / "trips/a.mp4")
    for row in frames[-2:]:
        x, y, width, height = (int(each) for each in row["bbox"])
        assert np.array_equal(dataset.read(row["media_id"]), whole[row["frame_number"]][y : y + height, x : x + width])


def test_exact_duplicates__tell_frames_apart(dataset: Dataset) -> None:
    """Equal boxes in different frames of a video are not the same."""
    assert dataset.objects.duplicates(exact=True) == []
    assert dataset.where(vql.objects("dog", confidence_min=0.7)).count() == 4
