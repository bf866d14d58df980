"""Videos of 24 kinds beside FFmpeg: which frames are right, which are said to be undecodable, which are wrong.

The files are made by the program ffmpeg, which is the oracle, too: each of its frames, with its time. A frame is right
if one of ours has its time and a mean difference of at most 2 of 255. It is *said* to be undecodable if we have none,
or mark ours as damaged and it differs. All others are wrong, also one at a time at which ffmpeg has none. OpenCV alone
has no marks. It is also measured what decoding of all frames to pixels costs, by each way to decode.
"""

import io
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from common import arguments, require, save, table

os.environ["OPENCV_FFMPEG_LOGLEVEL"] = "-8"
CLOSE = 2.0
_SOURCE = "-f lavfi -i testsrc2=s=320x240:r=30:d=6"
_DV = "-f lavfi -i testsrc2=s=720x576:r=25:d=2"
_TFF = "-vf setfield=tff -flags +ilme+ildct"
_X264 = "-c:v libx264 -pix_fmt"
_GOPS = f"{_SOURCE} {_X264} yuv420p -g 30"
_FILES = {
    "H.264": ("h264.mp4", f"{_SOURCE} {_X264} yuv420p"),
    "H.264 interlaced": ("h264i.mp4", f"{_SOURCE} {_TFF} {_X264} yuv420p"),
    "H.264 interlaced, of two fields": ("h264f.mkv", f"{_SOURCE} -vf interlace -flags +ilme+ildct {_X264} yuv420p"),
    "HEVC interlaced": ("hevci.mp4", f"{_SOURCE} -c:v libx265 -x265-params log-level=0:interlace=tff -pix_fmt yuv420p"),
    "MPEG-2 interlaced": ("mpeg2i.mkv", f"{_SOURCE} {_TFF} -c:v mpeg2video -q:v 3"),
    "MPEG-4 interlaced": ("mpeg4i.avi", f"{_SOURCE} {_TFF} -c:v mpeg4 -q:v 3"),
    "DV": ("dv.avi", f"{_DV} -vf setfield=bff -c:v dvvideo -pix_fmt yuv420p"),
    "ProRes interlaced": ("prores.mov", f"{_SOURCE} {_TFF} -c:v prores_ks -pix_fmt yuv422p10le"),
    "H.264 4:2:2": ("h264-422.mp4", f"{_SOURCE} {_X264} yuv422p"),
    "H.264 10 bit": ("h264-10.mp4", f"{_SOURCE} {_X264} yuv420p10le"),
    "HEVC 4:2:2 10 bit": ("hevc.mp4", f"{_SOURCE} -c:v libx265 -x265-params log-level=0 -pix_fmt yuv422p10le"),
    "H.264 BT.709": ("709.mp4", f"{_SOURCE} -vf scale=out_color_matrix=bt709 -colorspace bt709 {_X264} yuv420p"),
    "H.264 rotated": ("turned.mp4", "-i h264.mp4 -c copy -metadata:s:v rotate=90"),
    "H.264 variable rate": (
        "variable.mp4", f"{_SOURCE} -vf select=not(mod(n\\,3))+not(mod(n\\,7)) -vsync vfr {_X264} yuv420p",
    ),
    "H.264 from 3.5 s on": ("later.mkv", "-itsoffset 3.5 -i h264.mp4 -c copy"),
    "H.264 after its sound": (
        "sound.mp4", "-itsoffset 0.5 -i h264.mp4 -f lavfi -i sine=d=6 -map 0:v -map 1:a -c:v copy -c:a aac",
    ),
    "VP9": ("vp9.webm", f"{_SOURCE} -c:v libvpx-vp9 -b:v 500k -deadline realtime"),
    "H.264, cut at two thirds": ("cut.mp4", "-i h264.mp4 -c copy -movflags +faststart"),
    "H.264, 8 kB of zeros": ("hole.mp4", "-i h264.mp4 -c copy -movflags +faststart"),
    "H.264 of key frames, 8 kB of zeros": ("hole-keys.mp4", f"{_GOPS} -movflags +faststart"),
    "HEVC, 8 kB of zeros": (
        "hole-hevc.mp4", f"{_SOURCE} -c:v libx265 -x265-params log-level=0:keyint=30 -movflags +faststart",
    ),
    "VP9, cut at two thirds": ("cut.webm", "-i vp9.webm -c copy"),
    "VP9, 8 kB of zeros": ("hole.webm", "-i vp9.webm -c copy"),
    "FLV, 8 kB of zeros": ("hole.flv", f"{_SOURCE} -c:v flv1 -b:v 1M"),
}  # fmt: skip
"""The name of each file and the options of ffmpeg; those whose name begins with cut or hole are damaged afterwards."""
Frames = Iterator[tuple[float, Any, bool]]


def main() -> None:
    """Make the files, compare, print and write."""
    parser = arguments(__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="of the rates of decoding")
    parser.add_argument("--decode", choices=list(_WAYS), help="only decode the videos in this way")
    options = parser.parse_args()
    videos = sorted(require(options.data, "").rglob("*.mp4")) if options.decode else []
    if options.decode:
        decode(videos, _WAYS[options.decode])
        return
    with tempfile.TemporaryDirectory(prefix="bench-video-files-") as work:
        results = {}
        for kind, (name, how) in _FILES.items():
            path = _made(Path(work), name, how)
            results[kind] = _compared(path)
            print(f"{kind}: {results[kind]}", flush=True)
        rates = _rates(sorted(require(options.data, "videos").rglob("*.mp4")), options.rounds)
    header = ["file", "frames", "right", "said", "wrong", "OpenCV: right", "not there", "wrong"]
    rows = []
    for kind, each in results.items():
        ours, other = each["framedex"], each["opencv"]
        rows.append([kind, each["frames"], ours["right"], ours["left"], ours["wrong"], *other.values()])
    rows.append(["all", *(sum(row[column] for row in rows) for column in range(1, len(header)))])
    print(table(header, rows))
    print(table(["decoder", "frames/s", "processor s", "peak MiB"], rates))
    save("video_files", {"files": results, "rates": rates})


def _made(folder: Path, name: str, how: str) -> Path:
    path = folder / name
    subprocess.run(["ffmpeg", "-v", "error", "-y", *how.split(), name], check=True, cwd=folder)
    data = path.read_bytes()
    if name.startswith("cut"):
        path.write_bytes(data[: len(data) * 2 // 3])
    if name.startswith("hole"):
        path.write_bytes(data[: len(data) // 2] + bytes(8192) + data[len(data) // 2 + 8192 :])
    return path


def _compared(path: Path) -> dict[str, Any]:
    truth = _truth(path)
    return {"frames": len(truth), "framedex": _counts(truth, _ours(path)), "opencv": _counts(truth, _opencv(path))}


def _truth(path: Path) -> dict[float, Any]:
    """Return the frames of ffmpeg by their times from the start of the file."""
    show = ["-show_entries", "format=start_time", "-show_entries", "frame=best_effort_timestamp_time", "-of", "json"]
    command = ["ffprobe", "-v", "quiet", *show, "-select_streams", "v:0", str(path)]
    found = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    begin_s = float(found["format"]["start_time"])
    times = [float(each["best_effort_timestamp_time"]) - begin_s for each in found["frames"]]
    command = ["ffmpeg", "-v", "quiet", "-i", str(path), "-map", "0:v:0", "-vsync", "0", "-f", "rawvideo"]
    data = subprocess.run([*command, "-pix_fmt", "rgb24", "-"], capture_output=True, check=True).stdout
    pixels = np.frombuffer(data, np.uint8).reshape(len(times), -1)
    return {round(time_s, 3): frame for time_s, frame in zip(times, pixels, strict=True)}


def _ours(path: Path) -> Frames:
    from framedex.media.video import Video

    with Video(io.BytesIO(path.read_bytes()), max_pixels=10**8, threads=2) as video:
        while video.advance():
            # ffmpeg writes the pixels of DV as they are stored, wider than high.
            yield video.time_s, (video._stream if path.name == "dv.avi" else video).pixels(), video.is_damaged


def _opencv(path: Path) -> Frames:
    capture = cv2.VideoCapture(str(path))
    while capture.grab():
        ok, frame = capture.retrieve()
        if ok:
            yield capture.get(cv2.CAP_PROP_POS_MSEC) / 1000, cv2.cvtColor(frame, cv2.COLOR_BGR2RGB), False


def _counts(truth: dict[float, Any], frames: Frames) -> dict[str, int]:
    """Return the numbers of frames that are right, left out or marked as damaged, and wrong."""
    right = wrong = 0
    for time_s, pixels, is_damaged in frames:
        other = truth.get(round(time_s, 3))
        is_right = other is not None and bool(np.abs(pixels.reshape(-1).astype(int) - other).mean() <= CLOSE)
        right += is_right
        wrong += not is_right and not is_damaged
    return {"right": right, "left": max(len(truth) - right - wrong, 0), "wrong": wrong}


def _rates(videos: list[Path], rounds: int) -> list[list[Any]]:
    """Return the rate, the processor time and the peak memory of each way to decode all frames to pixels."""
    results: dict[str, list[Any]] = {name: [] for name in _WAYS}
    for name in (*_WAYS,) * rounds:
        command = [sys.executable, __file__, "--decode", name, "--data", str(videos[0].parent)]
        out = subprocess.run(command, capture_output=True, text=True, check=False)
        if out.returncode == 0:
            results[name].append(json.loads(out.stdout))
    best = {name: min(each) for name, each in results.items() if each}
    return [[name, frames / seconds, processor_s, peak] for name, (processor_s, seconds, frames, peak) in best.items()]


def decode(videos: list[Path], way: Callable[[Path], int]) -> None:
    """Decode all frames of videos; print processor time, time, frames and peak memory in MiB, without programs."""
    started = time.perf_counter()
    frames = sum(map(way, videos))
    seconds = time.perf_counter() - started
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    processor_s = sum(each.ru_utime + each.ru_stime for each in used)
    (peak,) = re.findall(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    print(json.dumps([processor_s, seconds, frames, int(peak) / 1024]))


def _decode_pyav(path: Path) -> int:
    import av

    with av.open(str(path)) as container:
        return sum(frame.to_ndarray(format="rgb24").shape[2] == 3 for frame in container.decode(video=0))


def _decode_program(path: Path) -> int:
    capture, count = cv2.VideoCapture(str(path)), 0
    size = int(capture.get(cv2.CAP_PROP_FRAME_WIDTH) * capture.get(cv2.CAP_PROP_FRAME_HEIGHT)) * 3
    command = ["ffmpeg", "-v", "quiet", "-threads", "2", "-i", str(path), "-map", "0:v:0", "-f", "rawvideo"]
    with subprocess.Popen([*command, "-pix_fmt", "rgb24", "-"], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        while len(process.stdout.read(size)) == size:
            count += 1
    return count


_WAYS: dict[str, Callable[[Path], int]] = {
    "Framedex": lambda path: sum(1 for _ in _ours(path)),
    "OpenCV": lambda path: sum(1 for _ in _opencv(path)),
    "PyAV": _decode_pyav,
    "ffmpeg": _decode_program,
}

if __name__ == "__main__":
    main()
