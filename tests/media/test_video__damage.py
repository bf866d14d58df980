"""Damage of videos: what is lost is named, and what is left is shown."""

import io
from pathlib import Path

import numpy as np
import pytest

from framedex.media.video import Video
from tests.made_videos import FPS, LONG, LONG_COUNT, LONG_KEYS, made_frames, made_times, made_video
from tests.videos import decoded, numbered, write_video

CLOSE = 3.0
HOLE = 3000


def passed(content: bytes) -> tuple[Video, dict[float, tuple[np.ndarray, bool]]]:
    """Return a closed video after a pass, and its frames by their times, each with whether it is damaged."""
    with Video(io.BytesIO(content), max_pixels=10**7) as video:
        frames = {}
        while video.advance():
            frames[round(video.time_s, 3)] = video.pixels(), video.is_damaged
        return video, frames


def holed(content: bytes, place: int, size: int = HOLE) -> bytes:
    return content[:place] + bytes(size) + content[place + size :]


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.3, 0.5, 0.7])
def test_hole__costs_the_frames_that_need_its_bytes(share: float) -> None:
    """Frames before a hole, and after the next key frame, are shown as they are; those between are named."""
    content = made_video(LONG)
    video, frames = passed(holed(content, int(len(content) * share)))
    damaged = [place for place, (_, is_damaged) in frames.items() if is_damaged]
    truth = dict(zip((round(each, 3) for each in made_times(LONG)), made_frames(LONG), strict=True))
    lost = sorted(truth.keys() - frames.keys())
    assert lost
    for place, (pixels, is_damaged) in frames.items():
        assert is_damaged or np.abs(pixels.astype(int) - truth[place]).mean() < CLOSE
    touched = [round(place * FPS) for place in (*lost, *damaged)]
    assert max(touched) // LONG_KEYS - min(touched) // LONG_KEYS <= 1
    assert f"frame {touched[0]}" in str(video.damage) or f"frames {touched[0]} to" in str(video.damage)
    assert "cannot be decoded" in str(video.damage)
    assert (video.number, video.decoded_frames) == (LONG_COUNT - 1, LONG_COUNT - len(lost))


def test_find__after_a_hole() -> None:
    """A frame after a hole is found by its time, and by its number, in which lost frames count."""
    content = made_video(LONG)
    content = holed(content, len(content) // 2)
    _, frames = passed(content)
    wanted = max(frames)
    for time_s in (wanted, wanted + 0.01):
        with Video(io.BytesIO(content), max_pixels=10**7) as video:
            video.find(LONG_COUNT - 1, time_s)
            assert np.array_equal(video.pixels(), frames[wanted][0])


@pytest.mark.parametrize("suffix", [".mp4", ".avi", ".mkv", ".webm"])
@pytest.mark.parametrize("share", [0.4, 0.7])
def test_end__is_named_in_seconds(suffix: str, share: float, tmp_path: Path) -> None:
    """A video that ends early gives its frames, and says after how many of how many seconds it ends."""
    content = made_video(LONG)
    if suffix != ".mp4":
        content = write_video(tmp_path / f"clip{suffix}", numbered(LONG_COUNT)).read_bytes()
    video, frames = passed(content[: int(len(content) * share)])
    assert f"it ends after {max(frames) + 1 / FPS:.2f} of 6.00 s: truncated" in str(video.damage)
    assert 10 < len(frames) < LONG_COUNT - 5


@pytest.mark.parametrize("suffix", [".avi", ".mkv"])
def test_gap__in_a_container_without_an_index_of_all_frames(suffix: str, tmp_path: Path) -> None:
    """Where the reader jumps over bytes in which it finds no frame, the seconds without frames are named."""
    path = write_video(tmp_path / f"clip{suffix}", numbered(LONG_COUNT))
    truth = decoded(path)
    content = path.read_bytes()
    video, frames = passed(holed(content, len(content) // 2, 6000))
    assert len(frames) < LONG_COUNT
    assert "frames are missing between" in str(video.damage)
    before = float(str(video.damage).partition("between ")[2].split()[0])
    for place, (pixels, is_damaged) in frames.items():
        if not is_damaged and round(place, 2) != before:  # its data may end in the hole, which MJPEG does not tell
            assert np.abs(pixels.astype(int) - truth[round(place * FPS)]).mean() < CLOSE
    assert f"({before:.2f}" in str(video.damage)


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".mp4", ".mov", ".avi", ".mkv", ".webm"])
def test_intact_video__has_no_damage(suffix: str, tmp_path: Path) -> None:
    """Of an intact video nothing is said, also if bytes follow that are none of it."""
    path = write_video(tmp_path / f"clip{suffix}", numbered(20))
    for content in (path.read_bytes(), path.read_bytes() + bytes(100)):
        video, frames = passed(content)
        assert not str(video.damage)
        assert not any(is_damaged for _, is_damaged in frames.values())


def test_descriptions__name_few_runs() -> None:
    """A description of much damage stays short, and counts what it leaves out."""
    content = bytearray(made_video(LONG))
    begin = content.index(b"mdat") + 1000
    for place in range(begin, len(content) - 100, 1500):
        content[place : place + 60] = bytes(60)
    video, _ = passed(bytes(content))
    assert " more " in str(video.damage)
    assert len(str(video.damage)) < 700
