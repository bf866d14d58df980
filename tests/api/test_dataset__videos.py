"""Videos in datasets: their frames are media, from ingestion to export."""

import io
import json
import threading
import zipfile
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq
import pytest

from framedex import Aborted, CannotDecode, Dataset, InvalidInput, NotFound, TaskFailed, Workspace
from framedex.core.ids import frame_id, media_id
from framedex.encoders import register
from framedex.records import CleanupResult
from framedex.storage import datasets, tables
from framedex.storage.media_rows import OF_VIDEOS
from framedex.storage.table_versions import Table
from framedex.storage.videos import SCHEMA, open_videos
from tests.buckets import Service
from tests.gallery import Averages, fill
from tests.image_files import photo
from tests.inside import catalog_of, layout_of, stored_media
from tests.made_videos import FPS, LONG, LONG_COUNT, made_frames, made_times, made_video
from tests.prepared import prepared
from tests.tuning import Tuning
from tests.videos import as_sound, decoded, index_first, numbered, write_video

SHOWN = ["image_filename", "media_type", "video_name", "frame_number", "frame_timestamp"]


@pytest.fixture
def films(tmp_path: Path) -> Path:
    """A folder with a video of 3.5 s, another of 2 s, and two images before and after them."""
    folder = tmp_path / "films"
    fill(folder, 2)
    (folder / "000.png").rename(folder / "0.png")
    (folder / "001.png").rename(folder / "zebra.png")
    write_video(folder / "clip.mp4", numbered(35))
    write_video(folder / "deep" / "other.avi", numbered(20, seed=5))
    return folder


@pytest.fixture
def dataset(workspace: Workspace, films: Path) -> Dataset:
    return prepared(workspace, "films", films, "gist")


def rows(dataset: Dataset, **where: Any) -> list[dict[str, Any]]:
    view = dataset.where([where]) if where else dataset.where([])
    found: list[dict[str, Any]] = view.to_arrow(["media_id", "file_path", "width", "height", *SHOWN]).to_pylist()
    return found


def videos(dataset: Dataset) -> list[dict[str, Any]]:
    media = stored_media(dataset)
    table = open_videos(media.table.path, media.generation.tables)
    found: list[dict[str, Any]] = [] if table is None else table.scan(SCHEMA.names).read_all().to_pylist()
    return found


def shown(jpeg: bytes) -> npt.NDArray[np.float64]:
    return np.asarray(cv2.imdecode(np.frombuffer(jpeg, np.uint8), cv2.IMREAD_COLOR_RGB), dtype=np.float64)


def frames_of(dataset: Dataset, name: str) -> list[int]:
    return [row["frame_number"] for row in rows(dataset) if row["video_name"] == name]


class TestIngestion:
    """From files to rows."""

    @pytest.mark.slow
    def test_rows__by_file_and_then_by_frame(self, dataset: Dataset) -> None:
        """Frames stand where their video does, each with its number and time."""
        found = [tuple(row[name] for name in SHOWN) for row in rows(dataset)]
        assert found == [
            ("0.png", "image", None, None, None),
            *((f"clip_frame_{10 * n:06d}.jpg", "video_frame", "clip.mp4", 10 * n, float(n)) for n in range(4)),
            ("zebra.png", "image", None, None, None),
            *((f"deep/other_frame_{10 * n:06d}.jpg", "video_frame", "other.avi", 10 * n, float(n)) for n in range(2)),
        ]
        assert dataset.skipped == {}

    def test_counts__of_images_and_videos(self, dataset: Dataset) -> None:
        """Frames are no images in the dataset's record, nor in that of a snapshot."""
        kept = dataset.snapshot("now")
        assert (dataset.info.n_images, dataset.info.n_videos, dataset.count()) == (2, 2, 8)
        assert (kept.n_images, kept.n_videos) == (2, 2)

    def test_ids__are_computed(self, dataset: Dataset) -> None:
        """The id of a frame follows from the path of the video and the number."""
        ids = {row["image_filename"]: row["media_id"] for row in rows(dataset)}
        assert ids["clip_frame_000020.jpg"] == frame_id(dataset.id, "clip.mp4", 20)
        assert {row["video_id"] for row in videos(dataset)} == {
            media_id(dataset.id, "clip.mp4"), media_id(dataset.id, "deep/other.avi"),
        }  # fmt: skip

    def test_videos__have_rows(self, dataset: Dataset, films: Path) -> None:
        """The table of videos has the properties of each video."""
        clip, other = videos(dataset)
        assert {name: clip[name] for name in ("path", "container", "width", "height", "frames", "kept_frames")} == {
            "path": "clip.mp4", "container": "mp4", "width": 160, "height": 120, "frames": 35, "kept_frames": 4,
        }  # fmt: skip
        assert (clip["duration_s"], clip["fps"], clip["error"]) == (pytest.approx(3.5), 10.0, None)
        assert (other["container"], other["codec"]) == ("avi", "mjpg")
        assert clip["size_bytes"] == (films / "clip.mp4").stat().st_size

    @pytest.mark.slow
    @pytest.mark.only_soak
    def test_rate__holds_for_what_is_added(self, workspace: Workspace, films: Path, tmp_path: Path) -> None:
        """The rate that a dataset was made with is that of additions, too."""
        dataset = workspace.create_dataset("films", films / "clip.mp4", "gist", frames_per_second=2)
        dataset.add_media(write_video(tmp_path / "later.mp4", numbered(20, seed=3)))
        assert frames_of(dataset, "clip.mp4") == [0, 5, 10, 15, 20, 25, 30]
        assert frames_of(dataset, "later.mp4") == [0, 5, 10, 15]
        assert dataset.embedding_config.frames_per_second == 2

    @pytest.mark.slow
    def test_scenes__are_kept_on_request(self, workspace: Workspace, tmp_path: Path) -> None:
        """With scene changes the first frame of a scene is media."""
        scenes = [frame for seed in (1, 2) for frame in numbered(25, seed=seed)]
        path = write_video(tmp_path / "clip.avi", scenes)
        dataset = workspace.create_dataset("films", path, "gist", frames_per_second=0.1, scene_changes=True)
        assert frames_of(dataset, "clip.avi") == [0, 25]

    def test_rate__that_cannot_be_used(self, workspace: Workspace, films: Path) -> None:
        """A rate of nothing is refused, and leaves nothing."""
        with pytest.raises(InvalidInput, match="frames_per_second must be a number above 0, up to 1000, not 0"):
            workspace.create_dataset("films", films, frames_per_second=0)
        assert workspace.datasets() == []

    def test_broken__video_is_one_row_with_the_reason(self, workspace: Workspace, tmp_path: Path) -> None:
        """A file of sound alone is not supported; a truncated video is corrupted, on an item beside its frames."""
        as_sound(write_video(tmp_path / "in" / "sound.mp4", numbered(5)))
        cut = write_video(tmp_path / "in" / "cut.mp4", numbered(40))
        index_first(cut)
        cut.write_bytes(cut.read_bytes()[: cut.stat().st_size // 2])
        dataset = workspace.create_dataset("films", tmp_path / "in", "gist")
        errors = {row["path"]: row["error"] for row in videos(dataset)}
        assert "audio only" in errors["sound.mp4"]
        assert "it ends after 2.00 of 4.00 s" in errors["cut.mp4"]
        assert [row["image_filename"] for row in rows(dataset, media={"op": "is", "value": "video_frame"})] == [
            "cut_frame_000000.jpg", "cut_frame_000010.jpg",
        ]  # fmt: skip
        (cut_off,) = dataset.issues("corrupted").to_pylist()
        (broken,) = dataset.issues("not_supported").to_pylist()
        assert (cut_off["path"], cut_off["reason"]) == ("cut.mp4", errors["cut.mp4"])
        assert (broken["path"], dataset.info.n_images, dataset.info.n_videos) == ("sound.mp4", 0, 2)
        with pytest.raises(CannotDecode, match="audio only"):
            dataset.read(broken["media_id"])


def damaged_video(dataset: Dataset) -> tuple[str, str]:
    """Return what is said of the only video, and the id of the media item that says it."""
    (error,) = (row["error"] for row in videos(dataset))
    (found,) = (row["media_id"] for row in dataset.issues("corrupted").to_pylist() if row["reason"] == error)
    return error, found


class TestDamage:
    """A damaged video, whose frames are there."""

    @pytest.fixture
    def holed(self, workspace: Workspace, tmp_path: Path) -> Dataset:
        """A dataset of one video with a hole."""
        content = made_video(LONG)
        path = tmp_path / "in" / "clip.mp4"
        path.parent.mkdir()
        path.write_bytes(content[: len(content) // 2] + bytes(3000) + content[len(content) // 2 + 3000 :])
        return workspace.create_dataset("films", path.parent, "gist", frames_per_second=FPS)

    @pytest.mark.slow
    @pytest.mark.only_soak
    def test_issue__names_frames_and_seconds(self, holed: Dataset) -> None:
        """The issue says which frames are lost, and those that are kept after the hole are there."""
        error, of_video = damaged_video(holed)
        assert "cannot be decoded" in error
        with pytest.raises(CannotDecode, match=r"clip\.mp4' is damaged: frame"):
            holed.read(of_video)
        numbers: list[int | None] = [*frames_of(holed, "clip.mp4")]
        assert numbers.pop() is None
        assert (numbers[0], numbers[-1]) == (0, LONG_COUNT - 1)
        assert 40 < len(numbers) < LONG_COUNT
        damaged = {row["media_id"] for row in holed.issues("corrupted").to_pylist()}
        frames = rows(holed, media={"op": "is", "value": "video_frame"})
        truth = dict(zip((round(each, 3) for each in made_times(LONG)), made_frames(LONG), strict=True))
        for row in (row for row in frames if row["media_id"] not in damaged):
            pixels = holed.read(row["media_id"]).astype(int)
            assert np.abs(pixels - truth[round(row["frame_timestamp"], 3)]).mean() < 3

    def test_cleanup__keeps_the_file_of_frames(self, holed: Dataset, tmp_path: Path) -> None:
        """A clean-up of corrupted media takes the row of the video and its damaged frames, and leaves the file."""
        result = holed.plan_cleanup(issues=["corrupted"]).apply(delete_files=True)
        assert isinstance(result, CleanupResult)
        assert (result.files_deleted, result.files_left) == (0, 1)
        assert (tmp_path / "in" / "clip.mp4").exists()
        assert not holed.issues("corrupted").to_pylist()
        assert holed.count() == len(frames_of(holed, "clip.mp4")) > 30

    @pytest.mark.slow
    @pytest.mark.only_soak
    def test_repair__takes_the_issue_away(self, holed: Dataset, tmp_path: Path) -> None:
        """Once the file is whole, its frames are all there, and the row of its damage is gone."""
        (tmp_path / "in" / "clip.mp4").write_bytes(made_video(LONG))
        holed.add_media(tmp_path / "in", auto_reindex=True)
        assert not holed.issues("corrupted").to_pylist()
        assert (holed.count(), frames_of(holed, "clip.mp4")) == (LONG_COUNT, list(range(LONG_COUNT)))

    @pytest.mark.slow
    @pytest.mark.only_soak
    def test_clone__has_the_issue(self, holed: Dataset, tmp_path: Path) -> None:
        """A clone has the row; the same folder adds nothing to it; a removal is undone with it."""
        holed.snapshot("whole")
        copy = holed.clone()
        copy.add_media(tmp_path / "in")
        before, (_, of_video) = copy.count(), damaged_video(copy)
        assert before == holed.count()
        copy.delete_media([of_video])
        assert copy.count() == before - 1
        copy.undo()
        assert damaged_video(copy) == damaged_video(holed)


class TestAddition:
    """Videos that come later."""

    @pytest.mark.slow
    def test_again__adds_nothing(self, dataset: Dataset, films: Path) -> None:
        """The same videos are there already."""
        before = dataset.to_arrow()
        dataset.add_media(films)
        assert dataset.skipped == {"media that are there already": 4}
        assert dataset.to_arrow().equals(before)

    @pytest.mark.slow
    @pytest.mark.only_soak
    @pytest.mark.parametrize("anew", [False, True])
    def test_changed__video_replaces_its_frames(self, dataset: Dataset, films: Path, *, anew: bool) -> None:
        """A video that has changed has the frames that it has now, and no others."""
        first = rows(dataset, media={"op": "is", "value": "video_frame"})[0]["media_id"]
        dataset.tag([first], "start")
        write_video(films / "clip.mp4", numbered(15, seed=9))
        dataset.add_media(films, auto_reindex=anew)
        assert frames_of(dataset, "clip.mp4") == [0, 10]
        assert sorted((row["path"], row["kept_frames"]) for row in videos(dataset)) == [
            ("clip.mp4", 2), ("deep/other.avi", 2),
        ]  # fmt: skip
        assert (dataset.info.n_images, dataset.info.n_videos, dataset.count()) == (2, 2, 6)
        assert dataset.where([{"tags": {"op": "is", "value": "start"}}]).media_ids() == [first]

    @pytest.mark.slow
    def test_older__dataset_gets_the_columns(self, workspace: Workspace, folder: Path, films: Path) -> None:
        """A dataset whose tables are older than videos takes them; until then it is read as it is."""
        dataset = workspace.create_dataset("old", folder, "gist")
        path, head = layout_of(dataset).media(dataset.id), stored_media(dataset).generation
        version = tables.drop_columns(Table(path, head.tables["media"]), OF_VIDEOS.names)
        with catalog_of(dataset).write() as connection:
            datasets.commit_generation(
                connection, dataset.id, tables=head.tables | {"media": version}, n_images=head.n_images,
                config=dataset.embedding_config, summary=head.summary,
            )  # fmt: skip
        before = rows(dataset)
        assert dataset.where([{"media": {"op": "is", "value": "image"}}]).count() == 6
        dataset.add_media(films / "0.png")
        assert "kind" not in stored_media(dataset).table.schema.names
        dataset.add_media(films, auto_reindex=True)
        assert rows(dataset)[: len(before)] == before
        assert frames_of(dataset, "clip.mp4") == [0, 10, 20, 30]

    @pytest.mark.slow
    @pytest.mark.only_soak
    def test_uploads__are_read_from_the_workspace(self, workspace: Workspace, folder: Path, films: Path) -> None:
        """A video may come as bytes or in an archive; its frames are read from what is kept."""
        dataset = workspace.create_dataset("pets", folder, "gist")
        dataset.add_media(files=[("up/clip.mp4", (films / "clip.mp4").read_bytes())])
        with zipfile.ZipFile(films.parent / "x.zip", "w") as archive:
            archive.write(films / "deep" / "other.avi", "other.avi")
        dataset.add_media(archive=films.parent / "x.zip")
        (films / "clip.mp4").unlink()
        assert (frames_of(dataset, "clip.mp4"), frames_of(dataset, "other.avi")) == ([0, 10, 20, 30], [0, 10])
        workspace.vacuum(older_than_s=0)
        for row in rows(dataset, media={"op": "is", "value": "video_frame"}):
            assert dataset.read(row["media_id"]).shape == (120, 160, 3)

    @pytest.mark.slow
    def test_list__names_videos(self, workspace: Workspace, films: Path) -> None:
        """A list of paths may name videos beside images."""
        (films / "list.txt").write_text("clip.mp4\n0.png\n")
        dataset = workspace.create_dataset("listed", films / "list.txt", "gist")
        assert (dataset.count(), dataset.info.n_images, dataset.info.n_videos) == (5, 1, 1)

    @pytest.mark.slow
    def test_bucket__videos_stay_there(self, service: Service, tmp_path: Path) -> None:
        """Videos in a bucket are read from it, also when a frame is shown or exported."""
        clip = write_video(tmp_path / "clip.mp4", numbered(15))
        service.put("films/f/clip.mp4", clip.read_bytes())
        with Workspace(tmp_path / "far", settings=service.settings()) as workspace:
            dataset = workspace.create_dataset("far", "s3://films/f", "gist")
            assert frames_of(dataset, "clip.mp4") == [0, 10]
            last = rows(dataset)[1]
            assert last["file_path"] == "s3://films/f/clip.mp4"
            assert np.array_equal(dataset.read(last["media_id"]), decoded(clip)[10])
            assert dataset.export(tmp_path / "out.zip", include_images=True).images == 2
            dataset.add_media(s3_uri="s3://films/f")
            assert dataset.skipped == {"media that are there already": 1}


class TestLife:
    """States that are kept and brought back, and media that go."""

    @pytest.mark.slow
    @pytest.mark.only_soak
    def test_delete__all_frames_of_a_video(self, dataset: Dataset, films: Path) -> None:
        """A video whose last frame is deleted is gone, and can be added anew; with some frames it stays."""
        ids = [row["media_id"] for row in rows(dataset) if row["video_name"] == "clip.mp4"]
        dataset.delete_media(ids[:2])
        assert (dataset.info.n_videos, frames_of(dataset, "clip.mp4")) == (2, [20, 30])
        dataset.add_media(films)
        assert frames_of(dataset, "clip.mp4") == [20, 30]
        dataset.delete_media(ids[2:])
        assert (dataset.info.n_images, dataset.info.n_videos, dataset.count()) == (2, 1, 4)
        dataset.add_media(films)
        assert (dataset.info.n_videos, frames_of(dataset, "clip.mp4")) == (2, [0, 10, 20, 30])

    @pytest.mark.slow
    @pytest.mark.only_soak
    def test_restore__before_there_were_videos(self, workspace: Workspace, folder: Path, films: Path) -> None:
        """A state without videos comes back without them, and one with videos with them."""
        dataset = workspace.create_dataset("pets", folder, "gist")
        without = dataset.snapshot("without")
        dataset.add_media(films, auto_reindex=True)
        having = dataset.snapshot("with")
        dataset.restore(without)
        assert (dataset.info.n_images, dataset.info.n_videos, videos(dataset)) == (6, 0, [])
        dataset.add_media(films / "clip.mp4", auto_reindex=True)
        assert [row["path"] for row in videos(dataset)] == ["clip.mp4"]
        workspace.vacuum(older_than_s=0)
        dataset.restore(having)
        assert (dataset.info.n_images, dataset.info.n_videos, len(videos(dataset))) == (8, 2, 2)

    def test_clone__has_its_videos(self, workspace: Workspace, dataset: Dataset, films: Path) -> None:
        """A clone has the rows of videos, adds nothing of the same folder, and needs nothing of its source."""
        copy = dataset.clone()
        workspace.delete_dataset("films")
        copy.add_media(films)
        assert copy.skipped == {"media that are there already": 4}
        assert (copy.info.n_images, copy.info.n_videos, len(videos(copy))) == (2, 2, 2)

    @pytest.mark.slow
    @pytest.mark.only_soak
    def test_vacuum__leaves_the_videos(self, workspace: Workspace, dataset: Dataset, films: Path) -> None:
        """Old states of the table of videos go, the present one stays."""
        write_video(films / "third.mp4", numbered(10, seed=8))
        dataset.add_media(films)
        expected = videos(dataset)
        assert workspace.vacuum(older_than_s=0).versions > 0
        assert videos(dataset) == expected
        assert workspace.disk_usage().by_part["other tables"] > 0

    @pytest.mark.slow
    @pytest.mark.only_soak
    @pytest.mark.parametrize(("whole", "expected"), [(True, (4, 1, 0)), (False, (3, 0, 1))])
    def test_cleanup__deletes_the_file_of_a_video_once(
        self, dataset: Dataset, films: Path, whole: bool, expected: tuple[int, int, int]
    ) -> None:
        """A video's file goes when all its frames do, and stays where one of them does."""
        copy = films / "copy.mp4"
        copy.write_bytes((films / "clip.mp4").read_bytes())
        dataset.add_media(films, auto_reindex=True)
        if not whole:
            dataset.delete_media([rows(dataset, media={"op": "is", "value": "video_frame"})[0]["media_id"]])
        result = dataset.plan_cleanup(duplicates="exact", keep="first").apply(delete_files=True)
        assert isinstance(result, CleanupResult)
        assert (result.removed, result.files_deleted, result.files_left) == expected
        assert copy.exists() is not whole
        assert dataset.info.n_videos == (2 if whole else 3)


class TestReading:
    """Frames as images."""

    @pytest.mark.slow
    def test_read__is_the_very_frame(self, dataset: Dataset, films: Path) -> None:
        """A frame is read as it is decoded in order, at full size."""
        for row in rows(dataset, media={"op": "is", "value": "video_frame"}):
            expected = decoded(Path(row["file_path"]))[row["frame_number"]]
            assert np.array_equal(dataset.read(row["media_id"]), expected)

    def test_read__of_a_video_that_is_gone(self, dataset: Dataset, films: Path) -> None:
        """A missing video is named."""
        frame = rows(dataset, media={"op": "is", "value": "video_frame"})[0]
        (films / "clip.mp4").unlink()
        with pytest.raises(NotFound, match=r"clip\.mp4"):
            dataset.read(frame["media_id"])

    def test_thumbnail__of_a_frame(self, dataset: Dataset) -> None:
        """A frame has a thumbnail of its own."""
        frame = rows(dataset, media={"op": "is", "value": "video_frame"})[2]
        assert np.abs(shown(dataset.thumbnail(frame["media_id"])) - dataset.read(frame["media_id"])).mean() < 8

    @pytest.mark.parametrize(("kind", "count"), [("image", 2), ("video_frame", 6), ("video", 6)])
    def test_vql__by_kind(self, dataset: Dataset, kind: str, count: int) -> None:
        """Media are told by their kind."""
        assert dataset.where([{"media": {"op": "is", "value": kind}}]).count() == count

    def test_explore__counts_and_previews(self, dataset: Dataset, films: Path) -> None:
        """Clusters count images, frames and videos; the preview of a frame leads into its video."""
        clusters = [cluster for level in (0, 4) for cluster in dataset.explore(level=level).clusters]
        assert sum(c.n_images for c in clusters) == 2 * 2
        assert sum(c.n_frames for c in clusters) == 2 * 6
        frames = [shown for c in clusters for shown in c.previews if shown.type == "VIDEO_FRAME"]
        shown = next(each for each in frames if each.frame_timestamp == 2.0)
        assert shown.video_uri == (films / "clip.mp4").as_uri()
        assert shown.media_uri == f"{shown.video_uri}#t=2"
        images = [shown for c in clusters for shown in c.previews if shown.type == "IMAGE"]
        assert {(each.video_uri, each.frame_timestamp) for each in images} == {(None, None)}

    @pytest.mark.slow
    def test_explore__videos(self, dataset: Dataset) -> None:
        """Videos are clusters of their frames, the longest first."""
        page = dataset.explore(entity_type="VIDEOS")
        first, second = page.clusters
        frames = page.members(0)
        assert (frames.count(), {row["video_id"] for row in frames}) == (4, {first.cluster_id})
        assert dataset.cluster(first.cluster_id).ids == frames.ids
        assert (first.type, first.n_images, first.n_frames, first.n_videos) == ("VIDEOS", 0, 4, 1)
        assert [first.cluster_id, second.cluster_id] == [row["video_id"] for row in videos(dataset)]
        assert [shown.frame_timestamp for shown in first.previews] == [0, 1, 2, 3]
        name = first.previews[0].file_name
        for html in (page._repr_html_(), frames._repr_html_(), dataset.similar(frames.ids[2])._repr_html_()):
            assert f"{name} at 2.0 s" in html
        found = dataset.explore("VIDEOS", vql=[{"file_name": {"op": "is", "value": "other.avi"}}]).clusters
        assert [cluster.cluster_id for cluster in found] == [second.cluster_id]

    @pytest.mark.slow
    def test_explore__videos_where_there_are_none(self, workspace: Workspace, folder: Path) -> None:
        """A dataset of images has no clusters of videos."""
        dataset = workspace.create_dataset("pets", folder, "gist")
        assert dataset.explore("VIDEOS").clusters == []
        assert dataset.explore().clusters[0].n_frames == -1

    @pytest.mark.slow
    @pytest.mark.only_soak
    def test_exact__duplicates_of_a_copied_video(self, dataset: Dataset, films: Path) -> None:
        """Frames are equal where number and content are; those of one video are not."""
        (films / "copy.mp4").write_bytes((films / "clip.mp4").read_bytes())
        assert dataset.duplicates(exact=True) == []
        dataset.add_media(films)
        groups = dataset.duplicates(exact=True)
        assert [group.file_names for group in groups] == [["clip.mp4", "copy.mp4"]] * 4
        assert len({group.group_id for group in groups}) == 4
        dataset.reindex()
        assert len(dataset.plan_cleanup(duplicates="exact")) == 4


class TestExport:
    """Frames in exports."""

    @pytest.mark.slow
    def test_json__with_images(self, dataset: Dataset, tmp_path: Path) -> None:
        """An item says which frame of which video it is, and its image is that frame."""
        dataset.export(tmp_path / "out.zip", include_images=True)
        with zipfile.ZipFile(tmp_path / "out.zip") as archive:
            items = json.loads(archive.read("metadata.json"))["media_items"]
            item = next(each for each in items if each["file_name"] == "clip_frame_000020.jpg")
            jpeg = archive.read("images/clip_frame_000020.jpg")
        assert item["media_type"] == "video_frame"
        assert item["url"].endswith("/clip.mp4#t=2")
        info = next(each["properties"] for each in item["metadata_items"] if each["type"] == "video_info")
        assert info == {
            "video_name": "clip.mp4", "video_id": media_id(dataset.id, "clip.mp4"), "frame_number": 20,
            "frame_timestamp": 2.0,
        }  # fmt: skip
        assert np.abs(shown(jpeg) - dataset.read(item["media_id"])).mean() < 4
        assert {each["media_type"] for each in items} == {"image", "video_frame"}

    @pytest.mark.slow
    def test_parquet__columns(self, dataset: Dataset, tmp_path: Path) -> None:
        """The table says the same."""
        dataset.export(tmp_path / "out.zip", "parquet")
        with zipfile.ZipFile(tmp_path / "out.zip") as archive:
            table = pq.read_table(io.BytesIO(archive.read("metadata.parquet")))
        assert table.select(SHOWN).to_pylist() == [{name: row[name] for name in SHOWN} for row in rows(dataset)]

    def test_names__differ(self, workspace: Workspace, films: Path) -> None:
        """Videos that differ in the suffix, and an image that is called like a frame, have names of their own."""
        write_video(films / "clip.avi", numbered(5))
        (films / "0.png").rename(films / "clip_frame_000000.jpg")
        dataset = workspace.create_dataset("films", films, "gist")
        names = [row["image_filename"] for row in rows(dataset)]
        assert len(set(names)) == len(names)
        result = dataset.export(films.parent / "out.zip", include_images=True)
        assert (result.images, result.missing_images) == (len(names), [])

    @pytest.mark.slow
    def test_round_trip__of_frames_as_images(self, workspace: Workspace, dataset: Dataset, tmp_path: Path) -> None:
        """A dataset can be made of the frames that were exported."""
        dataset.export(tmp_path / "out.zip", "coco", include_images=True)
        with zipfile.ZipFile(tmp_path / "out.zip") as archive:
            archive.extractall(tmp_path / "out")
        again = workspace.create_dataset("again", tmp_path / "out", "gist")
        assert (again.info.n_images, again.info.n_videos) == (8, 0)


class TestDuplicates:
    """Videos that repeat each other."""

    @pytest.fixture
    def families(self, workspace: Workspace, tmp_path: Path) -> Dataset:
        """Two videos, each whole, as a part of it, and smaller at another rate; and one that is like none."""
        folder = tmp_path / "families"
        for seed in (1, 2):
            frames = [frame for scene in range(3) for frame in numbered(15, seed=10 * seed + scene)]
            write_video(folder / f"{seed}-whole.mp4", frames)
            write_video(folder / f"{seed}-part.avi", frames[12:])
            small = [np.asarray(cv2.resize(each, (128, 96)), dtype=np.uint8) for each in frames[::2]]
            write_video(folder / f"{seed}-small.mp4", small, fps=5)
        write_video(folder / "3-other.mp4", numbered(30, seed=77))
        return workspace.create_dataset("families", folder, "gist", frames_per_second=2)

    @pytest.mark.slow
    def test_groups__are_families(self, families: Dataset) -> None:
        """Videos of one family are a group, with the largest and longest as the best to keep."""
        groups = families.duplicates(entity_type="VIDEOS")
        assert {row["video_id"] for row in groups.members(0)} == set(groups[0].media_ids)
        assert groups.to_arrow().num_rows == 6
        parts = families.view.split({"train": 0.5, "val": 0.5})
        in_parts = [{row["video_id"] for row in part} for part in parts.values()]
        assert in_parts[0] & in_parts[1] == set()
        assert [sorted(group.file_names) for group in groups] == [
            ["1-part.avi", "1-small.mp4", "1-whole.mp4"], ["2-part.avi", "2-small.mp4", "2-whole.mp4"],
        ]  # fmt: skip
        for group in groups:
            kept = group.file_names[group.media_ids.index(group.keep)]
            assert (kept[1:], group.keep_reason) == (
                "-whole.mp4",
                "Of the 2 best, it is the longest.",
            )
            assert 0.96 <= group.confidence <= group.similarity <= 1
        assert families.duplicates(entity_type="VIDEOS", limit=1) == groups[:1]
        shown = groups._repr_html_()
        assert (shown.count("3 videos, similarity"), shown.count("<img")) == (2, 6)

    @pytest.mark.slow
    def test_groups__of_a_view(self, families: Dataset) -> None:
        """Of a view only its videos are compared."""
        view = families.where([{"file_name": {"op": "contains", "value": "part"}}])
        assert view.duplicates(entity_type="VIDEOS") == []

    @pytest.mark.slow
    def test_exact__copies_of_files(self, families: Dataset, tmp_path: Path) -> None:
        """Equal files are a group, whatever else is like them; the one with the shortest name is kept."""
        copy = tmp_path / "more" / "copy.mp4"
        copy.parent.mkdir()
        copy.write_bytes((tmp_path / "families" / "1-whole.mp4").read_bytes())
        families.add_media(copy.parent)
        (group,) = families.duplicates(exact=True, entity_type="VIDEOS")
        assert (group.file_names, group.similarity) == (["1-whole.mp4", "copy.mp4"], 1.0)
        assert (group.keep, group.keep_reason) == (group.media_ids[1], "It has the shortest file name.")
        assert "copy.mp4" in families.duplicates(entity_type="VIDEOS")[0].file_names

    @pytest.mark.slow
    @pytest.mark.only_soak
    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"similarity": 2}, "similarity must be a "),
            ({"limit": -1}, "limit"),
            ({"entity_type": "FILMS"}, "entity_type must be one of IMAGES, OBJECTS, VIDEOS, not 'FILMS'"),
        ],
    )
    def test_arguments__that_cannot_be_used(self, families: Dataset, options: dict[str, Any], message: str) -> None:
        """Wrong arguments are named."""
        with pytest.raises(InvalidInput, match=message):
            families.duplicates(**({"entity_type": "VIDEOS"} | options))

    def test_images__have_no_videos(self, workspace: Workspace, folder: Path) -> None:
        """A dataset of images has no groups of videos."""
        assert workspace.create_dataset("pets", folder, "gist").duplicates(entity_type="VIDEOS") == []

    @pytest.mark.slow
    def test_export__of_videos_alone(self, dataset: Dataset, tmp_path: Path) -> None:
        """An export can be of what is of videos."""
        assert dataset.export(tmp_path / "out.zip", entity_type="VIDEOS").total_media_items == 6


class Counting(Averages):
    """An encoder that counts what it encodes, and fails after so many batches."""

    encoded = 0
    left = 100

    def encode_images(self, batch: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
        type(self).left -= 1
        if type(self).left < 0:
            raise RuntimeError("out of order")
        Counting.encoded += len(batch)
        return super().encode_images(batch)


class TestStopping:
    """Work that ends early, and goes on."""

    @pytest.mark.slow
    @pytest.mark.parametrize("adding", [False, True])
    def test_resume__within_a_video(
        self, workspace: Workspace, folder: Path, films: Path, tuning: Tuning, *, adding: bool
    ) -> None:
        """A task that was stopped within a video goes on there: no frame is encoded twice, none is missing."""

        class Stops(Counting):
            left = 4

        register("averages", lambda _name: Stops())
        tuning.encoded_images = 1
        tuning.committed_rows = 1
        if adding:
            Counting.left = Stops.left = 100
            dataset = workspace.create_dataset("films", folder, "averages")
            Stops.left, Counting.encoded = 4, 0
            task = dataset.add_media(films, wait=False)
        else:
            Counting.encoded = 0
            dataset = workspace.create_dataset("films", films, "averages", wait=False)
            assert dataset.task is not None
            task = dataset.task
        with pytest.raises(TaskFailed):
            task.wait()
        Stops.left = 100
        task.retry()
        task.wait()
        assert Counting.encoded == 8
        assert frames_of(dataset, "clip.mp4") == [0, 10, 20, 30]
        assert frames_of(dataset, "other.avi") == [0, 10]
        assert [row["kept_frames"] for row in videos(dataset)] == [4, 2]
        assert dataset.skipped == {}

    @pytest.mark.slow
    def test_abort__between_frames(self, workspace: Workspace, tmp_path: Path) -> None:
        """A task that is aborted while it decodes a long video ends, and its threads with it."""
        path = write_video(tmp_path / "long.avi", [photo(1, width=320, height=240)] * 3000)
        dataset = workspace.create_dataset("films", path, "gist", frames_per_second=1e-6, wait=False)
        assert dataset.task is not None
        dataset.task.abort()
        with pytest.raises(Aborted):
            dataset.task.wait()
        assert not [thread for thread in threading.enumerate() if thread.name.startswith("framedex-video")]
