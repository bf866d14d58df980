"""Parts of videos that are parts of other ones: found with start and end, and nothing that only looks alike."""

from pathlib import Path

import numpy as np
import pytest

from framedex import Dataset, InvalidInput, Workspace
from framedex.records import VideoCopy
from tests.clips import make_films, pan
from tests.gallery import fill
from tests.prepared import prepared
from tests.videos import write_video


def spans(copies: list[VideoCopy]) -> list[tuple[str, float, float, str, float, float]]:
    return [
        (each.path, each.start_s, each.end_s, each.other_path, each.other_start_s, each.other_end_s) for each in copies
    ]


def near(*seconds: float) -> list[object]:
    return [pytest.approx(each, abs=0.5) for each in seconds]


@pytest.fixture
def films(tmp_path: Path) -> Path:
    return make_films(tmp_path / "films")


@pytest.fixture
def dataset(workspace: Workspace, films: Path) -> Dataset:
    return prepared(workspace, "films", films, "gist")


class TestParts:
    """Parts that are found, and those that are not."""

    def test_clip__cropped_and_twice_as_fast(self, dataset: Dataset) -> None:
        """The clip has its start and end in both videos; a picture that stands still and black frames are no copies."""
        (found,) = dataset.video_copies()
        assert (found.path, found.other_path) == ("film.mp4", "reel.avi")
        seconds = (found.start_s, found.end_s, found.other_start_s, found.other_end_s)
        assert list(seconds) == near(3.3, 7.7, 5.0, 7.2)
        assert found.speed == pytest.approx(2, abs=0.25)
        assert 0.6 < found.similarity <= 1
        assert found.share == pytest.approx(4.4 / 12, abs=0.06)
        assert not found.mirrored

    @pytest.mark.slow
    def test_compilation__has_a_record_for_each_part(self, workspace: Workspace, tmp_path: Path) -> None:
        """Two clips of a film in another order, one of them mirrored, are two parts."""
        film = [*pan(11, 6), *pan(12, 6)]
        first, second = film[2:54], [np.ascontiguousarray(each[:, ::-1]) for each in film[65:105]]
        write_video(tmp_path / "films" / "film.mp4", film)
        write_video(tmp_path / "films" / "mixed.mp4", [*second, *pan(13, 3), *first])
        dataset = workspace.create_dataset("films", tmp_path / "films", "gist")
        found = dataset.video_copies()
        assert [each.mirrored for each in found] == [False, True]
        assert [list(each) for each in spans(found)] == [
            ["film.mp4", *near(0.2, 5.4), "mixed.mp4", *near(7.0, 12.2)],
            ["film.mp4", *near(6.5, 10.5), "mixed.mp4", *near(0.0, 4.0)],
        ]
        assert len(dataset.video_copies(limit=1)) == 1
        assert len(dataset.video_copies(min_seconds=4.7)) == 1

    @pytest.mark.slow
    def test_equal_files__are_copies_as_a_whole(self, workspace: Workspace, films: Path) -> None:
        """Equal files need not be read, and what one has of another video, the other one has, too."""
        (films / "again.mp4").write_bytes((films / "film.mp4").read_bytes())
        found = workspace.create_dataset("films", films, "gist").video_copies()
        names = [["again.mp4", "film.mp4"], ["again.mp4", "reel.avi"], ["film.mp4", "reel.avi"]]
        assert sorted(sorted([each.path, each.other_path]) for each in found) == names
        assert (found[0].similarity, found[0].share, found[0].end_s) == (1, 1, 12.0)


class TestConditions:
    """What a dataset may lack."""

    @pytest.mark.slow
    def test_view__compares_its_videos_alone(self, dataset: Dataset) -> None:
        """Without frames of one of the two videos nothing is found; an empty view has nothing."""
        reel = {"media": {"op": "is", "value": "video_frame"}}
        frames = dataset.where([reel])
        assert len(frames.video_copies()) == 1
        ids = [row["media_id"] for row in frames.to_arrow(["media_id", "video_name"]).to_pylist()
               if row["video_name"] != "reel.avi"]  # fmt: skip
        assert dataset.select(ids).video_copies() == []
        assert dataset.select([]).video_copies() == []

    @pytest.mark.slow
    def test_deleted__frames(self, dataset: Dataset) -> None:
        """The part is found by the frames that are left, and read from the file."""
        rows = dataset.where([]).to_arrow(["media_id", "video_name", "frame_number"]).to_pylist()
        gone = [row["media_id"] for row in rows if row["video_name"] == "film.mp4" and row["frame_number"] in (0, 40)]
        dataset.delete_media(gone)
        (found,) = dataset.video_copies()
        assert [found.start_s, found.end_s] == near(3.3, 7.7)

    @pytest.mark.slow
    def test_missing__file(self, dataset: Dataset, films: Path) -> None:
        """What cannot be read is not shown to be a copy, and counted; later it is compared again."""
        (films / "reel.avi").rename(films / "away")
        found = dataset.video_copies()
        assert (found, found.n_unread, found.n_left) == ([], 1, 0)
        assert repr(found) == "[]\n1 pair of videos not compared: a file cannot be read"
        (films / "away").rename(films / "reel.avi")
        assert len(dataset.video_copies()) == 1

    def test_no_videos(self, workspace: Workspace, tmp_path: Path) -> None:
        """Images alone have no parts of videos."""
        dataset = prepared(workspace, "images", fill(tmp_path / "in", 2), "gist")
        assert dataset.video_copies() == []

    @pytest.mark.slow
    def test_videos__without_frames(self, workspace: Workspace, tmp_path: Path) -> None:
        """A video that cannot be decoded is compared with nothing."""
        write_video(tmp_path / "in" / "film.mp4", pan(1, 4))
        (tmp_path / "in" / "broken.mp4").write_bytes((tmp_path / "in" / "film.mp4").read_bytes()[:2000])
        dataset = workspace.create_dataset("films", tmp_path / "in", "gist")
        assert dataset.video_copies() == []

    @pytest.mark.parametrize("seconds", [0, 0.5, float("nan"), 1e6, "3", True])
    def test_seconds__out_of_range(self, dataset: Dataset, seconds: float) -> None:
        """The length is a number from 1."""
        with pytest.raises(InvalidInput, match="min_seconds must be a number from 1 to 86,400"):
            dataset.video_copies(seconds)
