"""One more look at images: a result for each row, in order, each frame as it is found by itself, and bounded."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from framedex import Unavailable, Workspace
from framedex.jobs.ingest.image_pass import decode_rows
from framedex.jobs.ingest.image_runs import Row
from framedex.media.decoded_image import DecodedImage
from framedex.media.files import Reader
from framedex.media.row_images import read_row
from framedex.media.video import Video
from framedex.media.video_stream import VideoStream
from framedex.settings import Settings
from framedex.storage.media import Media
from tests.boxes import SHARED
from tests.buckets import Service
from tests.gallery import SETTINGS, fill
from tests.image_files import encode, photo, write
from tests.inside import stored_media
from tests.laws import examples, rest_slow
from tests.tuning import Tuning
from tests.videos import numbered, with_durations, write_video

SHARED_VIDEOS = sorted((SHARED.parent / "videos").rglob("*.mp4"))
THREADS = ("framedex-decode", "framedex-video")
Result = tuple[str, int | None, bytes | str]


def key(row: Row, said: bytes | str) -> Result:
    return row["path"], row.get("frame_number"), said


def seen(row: Row, image: DecodedImage) -> Result:
    return key(row, image.pixels.tobytes() + image.sample.tobytes())


def passed(media: Media, rows: Sequence[Row], detail: int | None = 64, limits: Settings = SETTINGS) -> Iterator[Result]:
    found = decode_rows(media, rows, seen, key, detail=detail, settings=limits)
    return (each for each in found if each is not None)


def one_by_one(media: Media, rows: Sequence[Row], detail: int | None = 64) -> list[Result]:
    """Return what each row gives that is read by itself."""
    found = []
    for row in rows:
        location = media.location_of(row)
        assert location is not None
        found.append(seen(row, read_row(row, location, Reader(SETTINGS), SETTINGS, detail)))
    return found


@dataclass(frozen=True)
class Films:
    """A dataset of images and videos.

    Attributes:
        media: what it has.
        rows: of them, in order.
    """

    media: Media
    rows: list[Row]


def films_in(workspace: Workspace, folder: Path, rate: float) -> Films:
    dataset = workspace.create_dataset("films", folder, "gist", frames_per_second=rate)
    media = stored_media(dataset)
    rows = chain.from_iterable(batch.to_pylist() for batch in media.table.scan([*media.location, "error"]))
    return Films(media, list(rows))


@pytest.fixture(scope="module")
def films(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Films]:
    """Images, a video of a variable frame rate, a long one, one of two frames, a broken one and a broken image."""
    home = tmp_path_factory.mktemp("films")
    folder = fill(home / "films", 20)
    clip = write_video(folder / "clip.mp4", numbered(60))
    with_durations(clip, [(place * 7 % 11 + 1) * 500 for place in range(60)])
    write_video(folder / "deep" / "long.avi", numbered(150, seed=3, width=48, height=32), fps=5)
    write_video(folder / "short.mkv", numbered(2, seed=4))
    (folder / "broken.mp4").write_bytes(b"no video")
    (folder / "broken.png").write_bytes(b"no image")
    with Workspace(home / "workspace", settings=SETTINGS) as workspace:
        yield films_in(workspace, folder, 100.0)


@dataclass
class Spy:
    """Counts what was opened and how many frames were decoded."""

    opened: int = 0
    grabbed: int = 0


@pytest.fixture
def spy(monkeypatch: pytest.MonkeyPatch) -> Spy:
    counts, lock = Spy(), threading.Lock()

    def counting(method: Callable[[Any], Any], name: str) -> Callable[[Any], Any]:
        def counted(video: Any) -> Any:
            with lock:
                setattr(counts, name, getattr(counts, name) + 1)
            return method(video)

        return counted

    monkeypatch.setattr(Video, "_opened", counting(Video._opened, "opened"))
    monkeypatch.setattr(VideoStream, "next", counting(VideoStream.next, "grabbed"))
    return counts


def frames_of(films: Films, name: str) -> list[Row]:
    return [row for row in films.rows if row["path"].endswith(name) and row["frame_number"] is not None]


class TestResults:
    """What is yielded."""

    @pytest.mark.slow
    @pytest.mark.only_soak
    def test_results__of_all_rows(self, films: Films) -> None:
        """Each row has its image, or the reason for which it has none, in the order of the rows."""
        found = list(passed(films.media, films.rows))
        assert [each[:2] for each in found] == [key(row, "")[:2] for row in films.rows]
        reasons = {path: said for path, _, said in found if isinstance(said, str)}
        assert reasons.keys() == {"broken.mp4", "broken.png"}
        assert reasons["broken.mp4"] == next(row["error"] for row in films.rows if row["path"] == "broken.mp4")
        shown = [row for row in films.rows if row["path"] not in reasons]
        assert [each for each in found if not isinstance(each[2], str)] == one_by_one(films.media, shown)

    @pytest.mark.slow
    @examples(15)
    @given(data=st.data(), detail=st.sampled_from([None, 16]))
    def test_results__of_rows_in_any_order(self, films: Films, data: st.DataObject, detail: int | None) -> None:
        """Rows may be left out, come again, or come in any order."""
        shown = [row for row in films.rows if row["error"] is None]
        places = data.draw(st.lists(st.integers(0, len(shown) - 1), max_size=60))
        rows = [shown[place] for place in (sorted(places) if data.draw(st.booleans()) else places)]
        assert list(passed(films.media, rows, detail)) == one_by_one(films.media, rows, detail)

    def test_results__of_runs_that_are_cut(self, films: Films, tuning: Tuning) -> None:
        """A video with more frames than one pass takes is taken up again."""
        tuning.video_frames = 20
        rows = frames_of(films, "clip.mp4")
        assert list(passed(films.media, rows)) == one_by_one(films.media, rows)

    def test_results__are_bounded_ahead(self, films: Films) -> None:
        """Rows are taken as they are needed."""
        taken = 0

        def rows() -> Iterator[Row]:
            nonlocal taken
            while True:
                taken += 1
                yield films.rows[0]

        with closing(decode_rows(films.media, rows(), seen, key, detail=64, settings=SETTINGS)) as results:
            for _ in range(50):
                next(results)
        assert taken <= 50 + 8 * 16

    @pytest.mark.slow
    @pytest.mark.only_soak
    def test_pixels__are_bounded_until_the_work_is_done(self, workspace: Workspace, tmp_path: Path) -> None:
        """While a large image is worked on, no other one is decoded that would not fit beside it."""
        for number in range(2):
            write(tmp_path / "large" / f"{number}.png", photo(number, width=1200, height=1000))
        large, both = films_in(workspace, tmp_path / "large", 1.0), threading.Barrier(2)

        def met(_row: Row, _image: DecodedImage) -> bool:
            try:
                both.wait(1.0)  # a second thread would be there in time
            except threading.BrokenBarrierError:  # from now on at once
                return False
            return True

        limits = Settings(threads=4, pixels_in_flight=2_000_000)
        rows = large.rows * 16  # enough for two threads
        found = decode_rows(large.media, rows, met, lambda _row, _why: True, detail=None, settings=limits)
        assert [each for each in found if each is not None] == [False] * 32


class TestOnePass:
    """Frames of a video are found without looking for each of them."""

    @pytest.mark.parametrize("name", ["clip.mp4", "long.avi"])
    def test_pass__decodes_each_frame_once(self, films: Films, spy: Spy, name: str) -> None:
        """A video is opened once, and as many frames are decoded as it has."""
        rows = frames_of(films, name)
        assert len(list(passed(films.media, rows))) == len(rows) > 50
        assert (spy.opened, spy.grabbed) == (1, len(rows))

    def test_pass__of_rows_that_come_again(self, films: Films, spy: Spy) -> None:
        """A frame that is asked for again is not looked for again."""
        rows = [row for row in frames_of(films, "clip.mp4") for _ in range(3)]
        assert len(list(passed(films.media, rows))) == 180
        assert (spy.opened, spy.grabbed) == (1, 60)

    def test_pass__of_few_frames(self, films: Films, spy: Spy) -> None:
        """Also a few frames of a video are found in one pass."""
        rows = frames_of(films, "clip.mp4")[10:20]
        wanted = one_by_one(films.media, rows)
        spy.opened = spy.grabbed = 0
        assert list(passed(films.media, rows)) == wanted
        assert (spy.opened, spy.grabbed) == (1, 20)

    @pytest.mark.slow
    def test_pass__where_times_lead_nowhere(self, films: Films, spy: Spy) -> None:
        """Where a frame is not found by its time it is found by itself, and the others in the pass again."""
        rows = [dict(row) for row in frames_of(films, "clip.mp4")]
        rows[30]["frame_time_s"] += 1e-4
        wanted = one_by_one(films.media, rows)
        spy.opened = spy.grabbed = 0
        assert list(passed(films.media, rows)) == wanted
        assert spy.opened == 2
        assert spy.grabbed < 2 * len(rows)

    @pytest.mark.slow
    @pytest.mark.only_soak
    @pytest.mark.skipif(not SHARED_VIDEOS, reason="the shared videos are not here")
    @pytest.mark.parametrize("path", rest_slow(SHARED_VIDEOS, 3, long=4), ids=lambda path: path.stem)
    def test_pass__of_real_videos(self, path: Path, workspace: Workspace, tmp_path: Path, spy: Spy) -> None:
        """In videos as cameras and editors make them, frames are those that are found one by one."""
        folder = tmp_path / "videos"
        folder.mkdir()
        (folder / path.name).symlink_to(path)
        found = films_in(workspace, folder, 4.0)
        spy.opened = 0
        result = list(passed(found.media, found.rows))
        assert (spy.opened, len(result)) == (1, len(found.rows))
        some = range(0, len(result), max(len(result) // 6, 1))  # frame by frame takes long
        assert [result[place] for place in some] == one_by_one(found.media, [found.rows[place] for place in some])


class TestFailures:
    """Videos that are gone or are others now, and threads that end."""

    @pytest.mark.slow
    @pytest.mark.only_soak
    def test_video__that_is_gone_or_broken(self, workspace: Workspace, tmp_path: Path) -> None:
        """All its frames have the reason; it is opened once."""
        folder = tmp_path / "films"
        first, second = (write_video(folder / name, numbered(40)) for name in ("a.mp4", "b.mp4"))
        found = films_in(workspace, folder, 10.0)
        first.unlink()
        second.write_bytes(bytes(1000))
        result = list(passed(found.media, found.rows))
        assert len(result) == 80
        assert all("No such file" in str(said) for path, _, said in result if path == "a.mp4")
        assert all("not a video" in str(said) for path, _, said in result if path == "b.mp4")

    @pytest.mark.slow
    @pytest.mark.only_soak
    def test_video__that_became_shorter(self, workspace: Workspace, tmp_path: Path) -> None:
        """Frames that are gone have the reason; those that are there are shown."""
        path = write_video(tmp_path / "films" / "clip.mp4", numbered(40))
        found = films_in(workspace, path.parent, 10.0)
        write_video(path, numbered(25))
        result = list(passed(found.media, found.rows))
        assert result[:25] == one_by_one(found.media, found.rows[:25])
        assert all("the video ends at" in str(said) for _, _, said in result[25:])

    @pytest.mark.parametrize("after", [1, 30])
    def test_closing__ends_the_threads(self, films: Films, after: int) -> None:
        """Whoever wants no more leaves no thread at work."""
        with closing(decode_rows(films.media, films.rows, seen, key, detail=64, settings=SETTINGS)) as results:
            for _ in range(after):
                next(results)
        assert not [thread for thread in threading.enumerate() if thread.name.startswith(THREADS)]

    def test_errors__of_the_work_come_through(self, films: Films) -> None:
        """What is wrong with the work is raised where it is used, and ends the threads."""

        def fails(row: Row, _image: DecodedImage) -> int:
            raise ZeroDivisionError(row["path"])

        with pytest.raises(ZeroDivisionError):
            list(decode_rows(films.media, films.rows, fails, lambda _row, _why: 0, detail=64, settings=SETTINGS))
        assert not [thread for thread in threading.enumerate() if thread.name.startswith(THREADS)]

    def test_waiting__lets_the_user_look(self, films: Films) -> None:
        """While the work on an image takes long, the user is asked now and then."""
        go_on = threading.Event()

        def waits(_row: Row, _image: DecodedImage) -> int:
            go_on.wait()
            return 1

        rows = [row for row in films.rows if row["error"] is None][:1]
        results = decode_rows(films.media, rows, waits, lambda _row, _why: 0, detail=64, settings=SETTINGS)
        assert next(results) is None
        go_on.set()
        assert [each for each in results if each is not None] == [1]

    @pytest.mark.slow
    @pytest.mark.only_soak
    def test_bucket__that_lets_nothing_be_read(self, service: Service, tmp_path: Path) -> None:
        """Where no object can be read, that is said before the last result is given away."""
        for number in range(3):
            service.put(f"pass/{number}.png", encode(photo(number)))
        limits = service.settings()
        with Workspace(tmp_path / "workspace", settings=limits) as workspace:
            dataset = workspace.create_dataset("bucket", "s3://pass", "gist")
            media = stored_media(dataset)
            rows = [{**row, "error": None} for row in media.table.scan(media.location).read_all().to_pylist()]
            assert len(list(passed(media, rows, limits=limits))) == 3
            with service.closed():
                results = passed(media, rows, limits=limits.model_copy(update={"s3_anonymous": True}))
                assert isinstance(next(results)[2], str)
                next(results)
                with pytest.raises(Unavailable, match="no object could be read: 3 objects failed"):
                    next(results)
