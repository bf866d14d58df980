"""Videos as streams of frames: numbers, times, sizes, and why some cannot be read."""

import io
import os
from pathlib import Path

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from framedex.errors import CannotDecode, InvalidInput
from framedex.media.frame_sampling import Sampling, kept_frames
from framedex.media.video import Video
from tests.image_files import Pixels, photo
from tests.laws import examples
from tests.tuning import Tuning
from tests.videos import (
    FPS,
    as_sound,
    decoded,
    index_first,
    numbered,
    time_scale,
    with_durations,
    with_matrix,
    write_video,
)

LIMIT = 10**7
COUNT = 40


IMAGE_HEADS = [
    b"\xff\xd8",
    b"\xff\xd8\xff\xe0",
    b"\xff\xd8\xff\xe0skip",
    b"II*\0skip",
    b"\x89PNG\r\n\x1a\n",
    b"BM" + bytes(60),
    b"RIFF\0\0\0\0WEBPVP8 ",
    b"P6\n9 9\n255\n",
    b"GIF89a\x10\0\x10\0",
    b"GIF89a\x10\0\x10\0" + bytes(178) + (b"G" + bytes(187)) * 20,
    b"\xff\x4f\xff\x51\0\x29",
]


class Counted(io.BytesIO):
    """A file that counts the bytes that are read from it."""

    def __init__(self, file: io.FileIO) -> None:
        super().__init__()
        self._from, self.count = file, 0

    def read(self, size: int | None = -1, /) -> bytes:
        """Read bytes, and count them."""
        data = self._from.read(-1 if size is None else size) or b""
        self.count += len(data)
        return data

    def seek(self, offset: int, whence: int = 0, /) -> int:
        """Move in the file."""
        return self._from.seek(offset, whence)

    def tell(self) -> int:
        """Return the position in the file."""
        return self._from.tell()


def opened(path: Path) -> Video:
    return Video(io.BytesIO(path.read_bytes()), max_pixels=LIMIT)


def times(path: Path) -> list[float]:
    with opened(path) as video:
        found = list[float]()
        while video.advance():
            assert video.number == len(found)
            found.append(video.time_s)
        return found


def kept(path: Path, sampling: Sampling) -> list[float]:
    with opened(path) as video:
        return [video.time_s for _ in kept_frames(video, sampling)]


@pytest.mark.slow
@pytest.mark.only_soak
@pytest.mark.parametrize("suffix", [".mp4", ".mov", ".m4v", ".avi", ".mkv", ".webm"])
def test_frames__of_each_container(suffix: str, tmp_path: Path) -> None:
    """Frames come in order with their times, as OpenCV decodes them, in RGB."""
    path = write_video(tmp_path / f"clip{suffix}", numbered(COUNT))
    with opened(path) as video:
        assert (video.container, video.width, video.height) == ("mp4" if suffix == ".m4v" else suffix[1:], 160, 120)
        for place, frame in enumerate(decoded(path)):
            assert video.advance()
            assert video.number == place
            assert video.time_s == pytest.approx(place / FPS)
            assert np.array_equal(video.pixels(), frame)
        assert not video.advance()
        assert not str(video.damage)


@pytest.mark.parametrize(("suffix", "codec"), [(".ts", "mp4v"), (".mpg", "PIM1"), (".m1v", "PIM1")])
def test_frames__of_streams_in_the_suffix_of_a_container(suffix: str, codec: str, tmp_path: Path) -> None:
    """Streams that a program gave the suffix of another container are read."""
    path = tmp_path / f"clip{suffix}"
    writer = cv2.VideoWriter(str(path), cv2.VideoWriter.fourcc(*codec), 25, (160, 120))
    for frame in numbered(COUNT):
        writer.write(frame)
    writer.release()
    with opened(path) as video:
        assert video.container == {".ts": "ts", ".mpg": "mpg", ".m1v": "es"}[suffix]
        assert video.advance()
        assert video.pixels().shape == (120, 160, 3)


def test_times__of_a_variable_frame_rate(tmp_path: Path) -> None:
    """Each frame has the time that it is shown at, whatever the mean rate is."""
    path = write_video(tmp_path / "clip.mp4", numbered(COUNT))
    ticks = [(place % 5 + 1) * 900 for place in range(COUNT)]
    with_durations(path, ticks)
    starts = np.concatenate([[0], np.cumsum(ticks)[:-1]]) / time_scale(path)
    assert times(path) == pytest.approx(starts.tolist(), abs=1e-9)


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A video of a variable frame rate."""
    path = write_video(tmp_path_factory.mktemp("find") / "clip.mp4", numbered(90))
    with_durations(path, [(place * 7 % 11 + 1) * 500 for place in range(90)])
    return path


@pytest.fixture(scope="module")
def frames(clip: Path) -> list[Pixels]:
    """Its frames."""
    return decoded(clip)


class TestFind:
    """A frame that was seen is found again by its number and time."""

    @pytest.mark.slow
    @examples(25)
    @given(wanted=st.lists(st.integers(0, 89), min_size=1, max_size=4))
    def test_find__in_any_order(self, clip: Path, frames: list[Pixels], wanted: list[int]) -> None:
        """Frames found in any order have the pixels of a sequential pass."""
        stamps = times(clip)
        with opened(clip) as video:
            for number in wanted:
                video.find(number, stamps[number])
                assert np.array_equal(video.pixels(), frames[number])

    def test_find__without_a_time_that_leads_there(self, clip: Path, frames: list[Pixels]) -> None:
        """If no frame has the time, frames are counted."""
        with opened(clip) as video:
            video.find(33, times(clip)[33] + 1e-6)
            assert np.array_equal(video.pixels(), frames[33])

    def test_find__far_ahead_where_nothing_can_be_sought(self, tmp_path: Path, tuning: Tuning) -> None:
        """In a stream without a container, frames are found by decoding on, each only once."""
        path = tmp_path / "clip.m1v"
        writer = cv2.VideoWriter(str(path), cv2.VideoWriter.fourcc(*"PIM1"), 25, (160, 120))
        for frame in numbered(90):
            writer.write(frame)
        writer.release()
        stamps, frames = times(path), decoded(path)
        tuning.near_frames_s = 0.2
        with opened(path) as video:
            for number in (5, 40, 80):
                video.find(number, stamps[number])
                assert np.array_equal(video.pixels(), frames[number])
            assert video.decoded_frames == 81

    def test_find__a_frame_that_is_gone(self, clip: Path) -> None:
        """A frame beyond the end is an error that says where the end is."""
        with opened(clip) as video, pytest.raises(CannotDecode, match="frame 90 cannot be decoded; the video ends at"):
            video.find(90, 1000.0)


def test_rotation__is_undone(tmp_path: Path) -> None:
    """Frames are upright, and the size is theirs."""
    path = write_video(tmp_path / "clip.mp4", numbered(3))
    upright = decoded(path)[0]
    with_matrix(path, 0, 1, -1, 0)
    with opened(path) as video:
        assert video.advance()
        assert (video.width, video.height) == (120, 160)
        assert np.array_equal(video.pixels(), np.rot90(upright, -1))


@pytest.mark.parametrize(("a", "d", "size"), [(2, 1, (320, 120)), (1, 2, (160, 240))])
def test_pixels__are_square(a: float, d: float, size: tuple[int, int], tmp_path: Path) -> None:
    """Frames of pixels that are not square are stretched, never shrunk."""
    path = write_video(tmp_path / "clip.mp4", numbered(3))
    with_matrix(path, a, 0, 0, d)
    with opened(path) as video:
        assert video.advance()
        assert (video.width, video.height) == size
        assert video.pixels().shape == (size[1], size[0], 3)


class TestBroken:
    """Videos that give nothing, or less than they say."""

    @pytest.mark.parametrize(
        ("content", "reason"),
        [
            (b"", "the file is empty"),
            (bytes(5000), "not a video of a supported format"),
            (b"#EXTM3U\n#EXTINF:1,\n/etc/passwd\n", "not a video of a supported format"),
            (b"RIFF\0\0\0\0AVI " + bytes(400), "avi without a video stream"),
            (bytes([0, 0, 0, 16]) + b"ftypisom" + bytes(4), r"without its index \(moov\)"),
        ],
    )
    def test_content__that_is_no_video(self, content: bytes, reason: str) -> None:
        """Files that cannot be opened are refused with the reason."""
        with pytest.raises(CannotDecode, match=reason):
            Video(io.BytesIO(content), max_pixels=LIMIT)

    @pytest.mark.parametrize("head", IMAGE_HEADS)
    def test_image__named_as_a_video(self, head: bytes, tmp_path: Path) -> None:
        """A file that begins as an image is refused after its beginning: FFmpeg would read all of it into memory."""
        path = tmp_path / "clip.mp4"
        path.write_bytes(head)
        os.truncate(path, 16 << 20)
        with path.open("rb", buffering=0) as file:
            counted = Counted(file)
            with pytest.raises(CannotDecode, match="not a video"):
                Video(counted, max_pixels=LIMIT)
        assert counted.count < 1 << 20

    def test_video__of_sound_alone(self, tmp_path: Path) -> None:
        """A file without a video stream says so."""
        path = write_video(tmp_path / "clip.mp4", numbered(3))
        as_sound(path)
        with pytest.raises(CannotDecode, match="audio only"):
            opened(path)

    def test_video__without_frames(self, tmp_path: Path) -> None:
        """A video that nothing was written to is none."""
        with pytest.raises(CannotDecode, match="without a video stream"):
            opened(write_video(tmp_path / "clip.mp4", []))

    def test_index__that_is_cut_off(self, tmp_path: Path) -> None:
        """An index that lies at the end is missed when the end is."""
        path = write_video(tmp_path / "clip.mp4", numbered(COUNT))
        path.write_bytes(path.read_bytes()[:-200])
        with pytest.raises(CannotDecode, match="index"):
            opened(path)

    @pytest.mark.parametrize("suffix", [".mp4", ".avi"])
    def test_end__that_is_cut_off(self, suffix: str, tmp_path: Path) -> None:
        """A truncated video gives what it has, and says where it ends."""
        path = write_video(tmp_path / f"clip{suffix}", numbered(COUNT))
        if suffix == ".mp4":
            index_first(path)
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
        with opened(path) as video:
            while video.advance():
                pass
            assert 5 < video.number < COUNT - 5
            assert "of 4.00 s: truncated" in str(video.damage)

    def test_frames__that_are_too_large(self, tmp_path: Path) -> None:
        """Frames beyond the limit are refused before any is decoded."""
        path = write_video(tmp_path / "clip.mp4", numbered(3))
        with pytest.raises(CannotDecode, match="160×120 is more than 1,000 pixels"), path.open("rb") as file:
            Video(file, max_pixels=1000)


class TestSampling:
    """The sampling of frames."""

    @examples(25)
    @given(rate=st.floats(0.05, 200), data=st.data())
    def test_rate__law(self, rate: float, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
        """Of each period of presentation time the first frame is kept, and no other."""
        path = tmp_path_factory.mktemp("rate") / "clip.mp4"
        write_video(path, [photo(0, width=32, height=32)] * 20)
        with_durations(path, data.draw(st.lists(st.integers(100, 30_000), min_size=20, max_size=20)))
        stamps = times(path)
        periods = [int(stamp * rate + 1e-6) for stamp in stamps]
        first = [stamp for place, stamp in enumerate(stamps) if place == 0 or periods[place] > periods[place - 1]]
        assert kept(path, Sampling(rate)) == first

    def test_scenes__begin_where_the_image_changes(self, tmp_path: Path) -> None:
        """A cut is kept with its first frame; movement within a scene is none."""
        frames = [frame for seed in (1, 2, 3) for frame in numbered(22, seed=seed)]
        path = write_video(tmp_path / "clip.avi", frames)
        assert kept(path, Sampling(0.01, scene_changes=True)) == pytest.approx([0, 2.2, 4.4])
        assert kept(path, Sampling(0.01)) == [0]

    @pytest.mark.parametrize("rate", [0, -1, float("nan"), float("inf"), 1001, "1", True, None])
    def test_rate__that_cannot_be_used(self, rate: object) -> None:
        """A rate is a number above 0."""
        with pytest.raises(InvalidInput, match="frames_per_second must be a number above 0"):
            Sampling(rate)  # type: ignore[arg-type]

    def test_scene_changes__that_are_no_flag(self) -> None:
        """They are on or off."""
        with pytest.raises(InvalidInput, match="scene_changes must be True or False"):
            Sampling(1.0, 0.5)  # type: ignore[arg-type]
