"""Scenes of videos of a dataset."""

import json
from pathlib import Path

import pytest

from framedex import CannotDecode, Dataset, InvalidInput, NotFound, Workspace
from framedex.cli.program import main
from tests.image_files import photo, write
from tests.prepared import prepared
from tests.videos import FPS, numbered, write_video

LENGTHS = 10, 15, 8


@pytest.fixture
def dataset(workspace: Workspace, tmp_path: Path) -> Dataset:
    """A video of three scenes, and an image."""
    folder = tmp_path / "media"
    frames = [frame for seed, count in enumerate(LENGTHS) for frame in numbered(count, seed=seed)]
    write_video(folder / "film.mp4", frames)
    write(folder / "image.png", photo(1))
    return prepared(workspace, "films", folder, "gist")


@pytest.mark.slow
def test_scenes__have_times_and_frames(
    workspace: Workspace, dataset: Dataset, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each scene begins where the one before ends; each sampled frame is in the scene of its time."""
    frames = {row["media_id"]: row["frame_timestamp"] for row in dataset.view if row["frame_timestamp"] is not None}
    scenes = dataset.scenes(dataset.media_id("film.mp4"))
    edges = [sum(LENGTHS[:number]) / FPS for number in range(len(LENGTHS) + 1)]
    assert [scene.start_s for scene in scenes] == pytest.approx(edges[:-1])
    assert [scene.end_s for scene in scenes] == pytest.approx(edges[1:])
    assert tuple(scene.n_frames for scene in scenes) == LENGTHS
    assert sorted(each for scene in scenes for each in scene.media_ids) == sorted(frames)
    for scene in scenes:
        assert all(scene.start_s - 1e-6 <= frames[each] < scene.end_s for each in scene.media_ids)
    with pytest.raises(SystemExit) as exit_:
        main(["scenes", "films", "film.mp4", "--json", "--workspace", str(workspace.path)])
    assert exit_.value.code == 0
    assert json.loads(capsys.readouterr().out) == [json.loads(scene.model_dump_json()) for scene in scenes]


@pytest.mark.slow
def test_scenes__without_sampled_frames(dataset: Dataset) -> None:
    """A scene of which no frame is in the dataset is there, too."""
    frame, *others = dataset.where([{"file_name": {"op": "is", "value": "film.mp4"}}]).media_ids()
    dataset.delete_media(others)
    assert [scene.media_ids for scene in dataset.scenes(frame)] == [[frame], [], []]


@pytest.mark.slow
def test_scenes__of_what_is_no_video(dataset: Dataset, tmp_path: Path) -> None:
    """An image, an unknown id, a video that is gone and one that is damaged are refused, each with its reason."""
    frame = dataset.media_id("film.mp4")
    with pytest.raises(InvalidInput, match=r"image.png' is not part of a video"):
        dataset.scenes(dataset.media_id("image.png"))
    with pytest.raises(NotFound, match="no media 'nothing'"):
        dataset.scenes("nothing")
    video = tmp_path / "media" / "film.mp4"
    video.write_bytes(b"no video")
    with pytest.raises(CannotDecode):
        dataset.scenes(frame)
    video.unlink()
    with pytest.raises(NotFound, match=r"film.mp4"):
        dataset.scenes(frame)
