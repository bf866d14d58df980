"""Frames and times of videos in many codecs, beside those that they were made of; no memory is shown as pixels."""

import io
import threading
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from framedex.errors import CannotDecode
from framedex.media import ffmpeg
from framedex.media.video import Video
from tests.environment import Environment
from tests.made_videos import DV, INTERLACED, LONG, PROGRESSIVE, made_frames, made_times, made_video
from tests.processes import in_child, run
from tests.videos import numbered, write_video

LIMIT = 10**7
CLOSE = 3.0  # the mean difference of a frame that was encoded; frames of one video differ by more than 20

HASHES = """
import hashlib, io
from framedex.media.video import Video
from tests.made_videos import INTERLACED, LONG, PROGRESSIVE, made_video
for name in (*INTERLACED, *PROGRESSIVE):
    data = made_video(name)
    middle = len(data) // 2
    for content in (data, data[: middle] + bytes(3000) + data[middle + 3000 :], data[: len(data) * 2 // 3]):
        try:
            with Video(io.BytesIO(content), max_pixels=10**7) as video:
                while video.advance():
                    print(name, video.number, hashlib.sha256(video.pixels().tobytes()).hexdigest())
        except Exception as error:
            print(name, type(error).__name__)
"""


def opened(name: str, *, threads: int = 1) -> Video:
    return Video(io.BytesIO(made_video(name)), max_pixels=LIMIT, threads=threads)


@pytest.mark.parametrize("name", [*INTERLACED, *PROGRESSIVE])
def test_frames__are_those_of_the_file_at_their_times(name: str) -> None:
    """Each frame has the pixels and the time that the video was made with, whatever its codec and its fields."""
    with opened(name) as video:
        for number, (frame, time_s) in enumerate(zip(made_frames(name), made_times(name), strict=True)):
            assert video.advance()
            assert (video.number, video.is_damaged) == (number, False)
            assert video.time_s == pytest.approx(time_s, abs=1e-6)
            pixels = video.pixels()
            assert pixels.shape == frame.shape == (video.height, video.width, 3)
            assert np.abs(pixels.astype(int) - frame).mean() < CLOSE
        assert not video.advance()
        assert not str(video.damage)


@pytest.mark.parametrize("name", [*INTERLACED, LONG, "h264-later.mkv", "h264-variable.mp4", "h264-after-sound.mp4"])
def test_find__leads_to_the_frames_of_a_pass(name: str) -> None:
    """A frame that is found by its time has the pixels that it had in order, also after a seek."""
    frames = []
    with opened(name, threads=2) as video:
        while video.advance():
            frames.append((video.number, video.time_s, video.pixels()))
    with opened(name) as video:
        for number, time_s, pixels in (frames[-1], frames[0], frames[len(frames) // 2]):
            video.find(number, time_s)
            assert np.array_equal(video.pixels(), pixels)


def test_find__by_a_time_from_the_start_of_the_stream() -> None:
    """A time that was stored by an earlier version, counted from the first frame, leads to the same frame."""
    with opened("h264-after-sound.mp4") as video:
        video.find(7, 0.7)
        found = video.pixels()
        video.find(7, 1.2)
        assert np.array_equal(video.pixels(), found)


@pytest.mark.slow
def test_pixels__do_not_depend_on_memory(environment: Environment) -> None:
    """Whatever pattern the allocator fills memory with, the same pixels are shown, also of damaged files."""
    shown = []
    for pattern in ("165", "90"):
        environment["MALLOC_PERTURB_"] = pattern
        shown.append(run(HASHES, fresh=True).splitlines())
    assert shown[0] == shown[1]
    assert len(shown[0]) > 400


def test_libraries__of_another_version(monkeypatch: pytest.MonkeyPatch) -> None:
    """Libraries of another major version are not used; without any, a video says what it needs."""
    monkeypatch.setattr(ffmpeg, "_MAJORS", {name: major + 1 for name, major in ffmpeg._MAJORS.items()})
    ffmpeg._loaded.cache_clear()
    with pytest.raises(CannotDecode, match="videos need the libraries of FFmpeg 8"):
        opened(LONG)
    monkeypatch.undo()
    ffmpeg._loaded.cache_clear()


def test_codec__that_needs_hardware(tmp_path: Path) -> None:
    """A video in a codec that OpenCV's libraries do not decode names the codec."""
    path, name = write_video(tmp_path / "clip.mkv", numbered(3)), b"V_MPEG4/ISO/ASP"
    path.write_bytes(path.read_bytes().replace(name, b"V_AV1".ljust(len(name), b"\0")))
    with pytest.raises(CannotDecode, match="no decoder for av"), path.open("rb") as file:
        Video(file, max_pixels=LIMIT)


@pytest.mark.filterwarnings("ignore:lance is not fork-safe")
def test_fork__with_an_open_video() -> None:
    """The child of a fork opens a video of its own, and leaves that of its parent, whose threads it lacks."""
    video = opened(LONG, threads=2)
    assert video.advance()
    held = [video]

    def in_the_child() -> None:
        held.clear()
        with opened(LONG, threads=2) as own:
            assert own.advance()
            assert own.pixels().shape == (64, 96, 3)

    del video
    in_child(in_the_child)
    held[0].close()


def test_threads__with_videos_of_their_own() -> None:
    """Several threads decode at the same time, each its own video."""
    shown: list[int] = []

    def decode() -> None:
        with opened(DV) as video:
            while video.advance():
                shown.append(int(video.pixels().sum()))

    threads = [threading.Thread(target=decode) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(Counter(shown).values()) == [4, 4]
