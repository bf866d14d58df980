"""Small videos of known frames in codecs that OpenCV does not write: interlaced, of 4:2:2 and 10 bit, and others.

``python -m tests.made_videos`` makes ``tests/made_videos.tar.xz`` again; it needs the program ffmpeg with
x264 and x265. The tests need none of these.
"""

import io
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import cv2
import numpy as np

from tests.image_files import Pixels

ARCHIVE = Path(__file__).with_suffix(".tar.xz")
COUNT = 12
"""Frames of a video."""
FPS = 10.0
LONG, LONG_COUNT, LONG_KEYS = "h264-key-frames.mp4", 60, 10
"""A longer video, the number of its frames, and the distance of its key frames; its index lies before its data."""
DV, DV_COUNT = "dv.avi", 2
_X264 = "-c:v libx264 -crf 4 -pix_fmt {} -x264-params log-level=0"
_X265 = "-c:v libx265 -crf 4 -pix_fmt {} -x265-params log-level=none"
_FIELDS = "-vf setfield=tff {} -flags +ilme+ildct"
_WIDTHS, _DV_STORED = {DV: 768}, 720  # the pixels of DV are wider than high
INTERLACED: Mapping[str, str] = {
    "h264.mp4": _FIELDS.format(_X264.format("yuv420p")),
    "h264-422-10.mkv": _FIELDS.format(_X264.format("yuv422p10le")),
    "hevc.mp4": _X265.format("yuv420p") + ":interlace=tff",
    "mpeg2.mkv": _FIELDS.format("-c:v mpeg2video -q:v 1 -pix_fmt yuv422p"),
    "mpeg4.avi": _FIELDS.format("-c:v mpeg4 -q:v 1"),
    "prores.mov": _FIELDS.format("-c:v prores_ks -pix_fmt yuv422p10le"),
    DV: "-vf setfield=bff -c:v dvvideo -pix_fmt yuv420p",
}
"""The options of ffmpeg for each interlaced video."""
PROGRESSIVE: Mapping[str, str] = {
    "h264-10.mp4": _X264.format("yuv420p10le"),
    "hevc-422-10.mp4": _X265.format("yuv422p10le"),
    "h264-709.mp4": f"-vf scale=out_color_matrix=bt709 -colorspace bt709 {_X264.format('yuv444p')}",
    "h264-full.mp4": f"-vf scale=out_range=pc -color_range pc {_X264.format('yuv420p')}",
    "h264-odd.mkv": f"-vf crop=91:63:0:0:exact=1 {_X264.format('yuv444p')}",
    "vp8.webm": "-c:v libvpx -qmin 0 -qmax 4 -crf 4 -b:v 4M -auto-alt-ref 1 -lag-in-frames 8",
    "h264-variable.mp4": f"-vf setpts=(N+floor(N/3)+0.01)/10/TB -vsync passthrough {_X264.format('yuv420p')}",
    "h264-later.mkv": f"{_X264.format('yuv420p')} -output_ts_offset 3.5",
    "h264-after-sound.mp4": (
        "-f lavfi -i sine=d=1.8 -map 0:v -map 1:a -c:a aac -b:a 16k -vf setpts=(N/10+0.501)/TB -vsync passthrough "
        + _X264.format("yuv420p")
    ),
    LONG: f"{_X264.format('yuv420p').replace('-crf 4', '-crf 14')}:keyint={LONG_KEYS}:scenecut=0 -movflags +faststart",
}
"""The options for each video of whole frames."""
_COUNTS = {LONG: LONG_COUNT, DV: DV_COUNT}
DELAY_S = 0.5  # of the video in h264-after-sound.mp4


def made_video(name: str) -> bytes:
    """Return the content of a video."""
    return _contents()[name]


def made_frames(name: str) -> list[Pixels]:
    """Return the frames that a video was made of: smooth, and all different."""
    width, height = _WIDTHS.get(name, 96), 576 if name == DV else 64
    rows, columns = np.mgrid[:height, :width]
    count = _COUNTS.get(name, COUNT)
    frames = []
    for number in range(count):
        phase = 2 * np.pi * number / COUNT * 1.4
        waves = (
            np.sin(phase + 2 * np.pi * columns / width),
            np.sin(phase + 2 * np.pi * rows / height),
            np.cos(phase + np.pi * (columns / width + rows / height)),
        )
        frames.append(np.stack([128 + 70 * each for each in waves], axis=-1).round().astype(np.uint8))
    return [each[:63, :91] for each in frames] if name == "h264-odd.mkv" else frames


def made_times(name: str) -> list[float]:
    """Return the presentation times of the frames of a video in seconds from the start of the file."""
    numbers = range(_COUNTS.get(name, COUNT))
    if name == "h264-variable.mp4":
        return [(number + number // 3) / FPS for number in numbers]
    begin_s = DELAY_S if name == "h264-after-sound.mp4" else 0.0
    return [begin_s + number / (25 if name == DV else FPS) for number in numbers]


@cache
def _contents() -> Mapping[str, bytes]:
    with tarfile.open(ARCHIVE) as archive:
        members = [(each.name, archive.extractfile(each)) for each in archive.getmembers()]
        return {name: file.read() for name, file in members if file is not None}


def make_videos(archive: Path) -> None:
    """Write all videos."""
    with tempfile.TemporaryDirectory() as folder, tarfile.open(archive, "w:xz", preset=9) as tar:
        for name, options in {**INTERLACED, **PROGRESSIVE}.items():
            member = tarfile.TarInfo(name)
            data = _encoded(name, options, Path(folder))
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))


def _encoded(name: str, options: str, folder: Path) -> bytes:
    frames = made_frames("" if name == "h264-odd.mkv" else name)
    if name == DV:
        frames = [np.asarray(cv2.resize(each, (_DV_STORED, 576)), dtype=np.uint8) for each in frames]
    height, width = frames[0].shape[:2]
    rate = "25" if name == DV else f"{FPS:g}"
    given = ["-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{width}x{height}", "-r", rate, "-i", "-"]
    command = ["ffmpeg", "-v", "error", "-y", *given, *options.split(), "-threads", "1", str(folder / name)]
    subprocess.run(command, input=b"".join(each.tobytes() for each in frames), check=True)
    return (folder / name).read_bytes()


if __name__ == "__main__":
    make_videos(Path(sys.argv[1]) if len(sys.argv) > 1 else ARCHIVE)
