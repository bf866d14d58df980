"""Videos: frames a second from files to committed rows, beside bare decoding; and near-duplicates found by family.

Bare decoding is OpenCV's ``read`` of each frame of the same videos, one after another. Each round runs both, each in a
process of its own, and ratios are taken within a round. Families are those of the test videos by the first word of
their names, each with edits that are made here: a part, half the size at half the rate, brighter, and compressed more.
"""

import multiprocessing
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import combinations
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from common import arguments, median, ratio, require, save, table, verdict

SHARE = 0.7  # of the rate of bare decoding
_SIDE = 480  # pixels of the longer side of edited videos
_SECONDS = 12


def main() -> None:
    """Measure, print and write."""
    parser = arguments(__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--repeat", type=int, default=1, help="take each video so many times")
    options = parser.parse_args()
    videos = sorted(require(options.data, "videos").rglob("*.mp4"))
    with tempfile.TemporaryDirectory(prefix="bench-videos-") as work:
        source = Path(work) / "videos"
        source.mkdir()
        for copy in range(options.repeat):
            for path in videos:
                (source / f"{path.stem}-{copy}.mp4").symlink_to(path)
        rounds = [_round(source, Path(work)) for _ in range(options.rounds)]
        edited = Path(work) / "families"
        edited.mkdir()
        families = alone(find_families, _edit(videos, edited), Path(work) / "ws-families")
    _print(rounds, families)
    save("video", {"rounds": rounds, "families": families})


def _round(source: Path, work: Path) -> dict[str, Any]:
    bare = alone(decode_all, source, work)
    with tempfile.TemporaryDirectory(dir=work) as folder:
        ours = alone(index_all, source, Path(folder))
    print(f"bare {bare['seconds']:.2f} s, Framedex {ours['seconds']:.2f} s of {bare['frames']:,} frames", flush=True)
    return {"bare": bare, "framedex": ours, "share": bare["seconds"] / ours["seconds"]}


def alone(work: Callable[[Path, Path], dict[str, Any]], source: Path, folder: Path) -> dict[str, Any]:
    """Return the result of a function that runs in a fresh process."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(work, source, folder).result()


def decode_all(source: Path, _work: Path) -> dict[str, Any]:
    """Decode all frames of all videos to pixels."""
    started, frames = time.perf_counter(), 0
    for path in sorted(source.iterdir()):
        capture = cv2.VideoCapture(str(path), cv2.CAP_FFMPEG)
        while capture.read()[0]:
            frames += 1
    return {"seconds": time.perf_counter() - started, "frames": frames}


def index_all(source: Path, work: Path) -> dict[str, Any]:
    """Make a dataset of the videos, one frame a second."""
    import framedex

    with framedex.Workspace(work / "ws") as workspace:
        started = time.perf_counter()
        dataset = workspace.create_dataset("videos", source, "gist")
        return {"seconds": time.perf_counter() - started, "kept": dataset.count()}


def _edit(videos: list[Path], folder: Path) -> Path:
    for path in videos:
        frames, fps = _frames(path)
        half = [cv2.resize(each, None, fx=0.5, fy=0.5, interpolation=cv2.INTER_AREA) for each in frames[::2]]
        brighter = [cv2.convertScaleAbs(each, alpha=1.1, beta=12) for each in frames]
        _write(folder / f"{path.stem}-whole.mp4", frames, fps)
        _write(folder / f"{path.stem}-part.mp4", frames[len(frames) // 3 :], fps)
        _write(folder / f"{path.stem}-half.mp4", half, fps / 2)
        _write(folder / f"{path.stem}-brighter.mp4", brighter, fps)
        _write(folder / f"{path.stem}-compressed.avi", list(_compressed(frames)), fps)
    return folder


def _frames(path: Path) -> tuple[list[Any], float]:
    capture = cv2.VideoCapture(str(path))
    fps, frames = capture.get(cv2.CAP_PROP_FPS), []
    while len(frames) < _SECONDS * fps and (read := capture.read())[0]:
        scale = _SIDE / max(read[1].shape[:2])
        frames.append(cv2.resize(read[1], None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA))
    return frames, fps


def _compressed(frames: list[Any]) -> Iterator[Any]:
    for each in frames:
        yield cv2.imdecode(cv2.imencode(".jpg", each, [cv2.IMWRITE_JPEG_QUALITY, 15])[1], cv2.IMREAD_COLOR)


def _write(path: Path, frames: list[Any], fps: float) -> None:
    height, width = (side // 2 * 2 for side in frames[0].shape[:2])
    codec = cv2.VideoWriter.fourcc(*("MJPG" if path.suffix == ".avi" else "mp4v"))
    writer = cv2.VideoWriter(str(path), codec, fps, (width, height))
    for each in frames:
        writer.write(np.ascontiguousarray(each[:height, :width]))
    writer.release()


def find_families(source: Path, work: Path) -> dict[str, Any]:
    """Return precision and recall of pairs of videos in one group, by similarity."""
    import framedex

    with framedex.Workspace(work) as workspace:
        dataset = workspace.create_dataset("families", source, "gist")
        names = sorted(path.name for path in source.iterdir())
        wanted = {pair for pair in combinations(names, 2) if _family(pair[0]) == _family(pair[1])}
        found: dict[str, Any] = {"videos": len(names), "pairs": len(wanted)}
        for threshold in (0.9, 0.94, 0.96, 0.98, 0.99):
            started = time.perf_counter()
            groups = dataset.duplicates(threshold, entity_type="VIDEOS")
            pairs = {pair for group in groups for pair in combinations(sorted(group.file_names), 2)}
            found[f"{threshold:g}"] = {
                "precision": ratio(len(pairs & wanted), len(pairs)),
                "recall": ratio(len(pairs & wanted), len(wanted)),
                "seconds": time.perf_counter() - started,
            }
        return found


def _family(name: str) -> str:
    return name.partition("-")[0]


def _print(rounds: list[dict[str, Any]], families: dict[str, Any]) -> None:
    frames = rounds[0]["bare"]["frames"]
    rows = [
        [str(place), frames / each["bare"]["seconds"], frames / each["framedex"]["seconds"], each["share"]]
        for place, each in enumerate(rounds, 1)
    ]
    print(f"\nFrames a second, {frames:,} frames, {rounds[0]['framedex']['kept']:,} kept")
    print(table(["round", "bare decoding", "Framedex", "share"], rows))
    print(verdict("share of the rate of bare decoding", median(each["share"] for each in rounds), SHARE))
    print(f"\nPairs of one family, {families['videos']} videos, {families['pairs']} pairs")
    kinds = [(name, each) for name, each in families.items() if isinstance(each, dict)]
    rows = [[name, each["precision"], each["recall"], each["seconds"]] for name, each in kinds]
    print(table(["similarity", "precision", "recall", "seconds"], rows))


if __name__ == "__main__":
    main()
