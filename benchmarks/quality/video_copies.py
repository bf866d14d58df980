"""Parts of videos: which planted clips are found, at which precision, and how exact their starts and ends are.

Videos are made of photos, of which the halves have different ones. Clips of 3 to 8 s are edited and planted into other
videos. Beside them are videos that only look alike: one scene taken twice, one room with something else that moves,
fixed cameras at other times, still pictures, black frames and equal title cards. Real videos, edited as a whole as the
test videos of ThreatExchange are, and a part of each, are a second set.
"""

import argparse
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import parents  # noqa: F401 - makes the modules of the benchmarks importable
from halves import HALVES, SEED, half
from video_shots import (
    EDITS,
    FPS,
    WHOLE_EDITS,
    Frames,
    Path2D,
    at_speed,
    black,
    noisy,
    pan,
    read_frames,
    read_photo,
    still,
    studio,
    title,
    write_frames,
)

from common import arguments, median, ratio, save, table, verdict
from framedex import Workspace
from framedex.records import VideoCopy
from framedex.settings import Settings

_HOSTS = ("photos/flickr8k-1000",)
_REAL = {
    "tuning": ("bottle-detection.mp4", "near-duplicates/chair-22-sd-grey-bar.mp4"),
    "reporting": (
        "car-detection.mp4",
        "near-duplicates/doorknob-hd-no-bar.mp4",
        "near-duplicates/pattern-sd-grey-bar.mp4",
    ),
}
_FIXED = {"tuning": "bottle-detection.mp4", "reporting": "car-detection.mp4"}
_OVERLAP = 0.5  # intersection over union with what was planted, in both videos
_RECALL, _PRECISION = 0.9, 1.0


@dataclass(frozen=True)
class Clip:
    """A part of a video in another one: the names of both, and seconds in both."""

    name: str
    other: str
    span: tuple[float, float]
    other_span: tuple[float, float]
    kind: str
    is_planted: bool = True


def main() -> None:
    """Measure, print and write."""
    parser = arguments(__doc__, peers=False)
    parser.add_argument("--halves", nargs="+", choices=HALVES, default=[HALVES[1]])
    parser.add_argument("--clips", type=int, default=60)
    parser.add_argument("--sets", nargs="+", choices=("made", "real"), default=["made", "real"])
    parser.add_argument("--rate", type=float, default=1.0, help="frames a second that are sampled")
    parser.add_argument("--work", type=Path, help="folder that keeps the videos")
    options = parser.parse_args()
    results: dict[str, Any] = {}
    for name in options.halves:
        for kind in options.sets:
            with tempfile.TemporaryDirectory(prefix="bench-videos-") as folder:
                work = Path(folder) if options.work is None else options.work / f"{name}-{kind}"
                work.mkdir(parents=True, exist_ok=True)
                made = (_made if kind == "made" else _real)(options, name, work)
                results[f"{name} {kind}"] = _measured(options, work, made, f"{name} half, {kind} videos")
    save("quality-video-copies", {"clips": options.clips, "results": results})


def _made(options: argparse.Namespace, name: str, folder: Path) -> list[Clip]:
    """Write the videos with planted clips, and those that look alike; return what is planted."""
    random = np.random.default_rng(SEED)
    photos = iter(random.permutation(np.array(half(options.data, name), object)).tolist())
    hosts = iter(random.permutation(np.array(half(options.data, name, _HOSTS), object)).tolist())
    originals = [_shots(photos, 3, random) for _ in range(min(24, options.clips))]
    for number, frames in enumerate(originals):
        write_frames(folder / f"original-{number:02d}.mp4", frames)
    clips = [_plant(folder, number, originals, hosts, random) for number in range(options.clips)]
    for one, other in combinations(clips, 2):
        if (shared := _shared(one, other)) is not None:
            clips.append(shared)
    _look_alikes(options, name, folder, photos, hosts, random)
    return clips


def _shots(photos: Iterator[Path], count: int, random: np.random.Generator) -> Frames:
    frames: Frames = []
    for _ in range(count):
        frames += pan(read_photo(next(photos)), Path2D.random(random), random.uniform(4, 6))
    return frames


def _plant(
    folder: Path, number: int, originals: Sequence[Frames], hosts: Iterator[Path], random: np.random.Generator
) -> Clip:
    source = number % len(originals)
    kind = list(EDITS)[number % len(EDITS)]
    edit, speed = EDITS[kind]
    length = random.uniform(3, 8)
    start = random.uniform(0.3, len(originals[source]) / FPS - length - 0.3)
    first, count = round(start * FPS), round(length * FPS)
    part = at_speed(edit(originals[source][first : first + count]), speed)
    before, after = _shots(hosts, 1, random), _shots(hosts, 1, random)
    path = write_frames(folder / f"with-clip-{number:02d}.mp4", [*before, *part, *after])
    spans = (first / FPS, (first + count) / FPS), (len(before) / FPS, (len(before) + len(part)) / FPS)
    return Clip(f"original-{source:02d}.mp4", path.name, *spans, kind)


def _shared(one: Clip, other: Clip) -> Clip | None:
    """Return what two planted clips have in common."""
    start, end = max(one.span[0], other.span[0]), min(one.span[1], other.span[1])
    if one.name != other.name or end - start < 1:
        return None
    spans = []
    for each in (one, other):
        speed = (each.other_span[1] - each.other_span[0]) / (each.span[1] - each.span[0])
        spans.append(tuple(each.other_span[0] + speed * (time_s - each.span[0]) for time_s in (start, end)))
    return Clip(one.other, other.other, spans[0], spans[1], "both", is_planted=False)


def _look_alikes(
    options: argparse.Namespace,
    name: str,
    folder: Path,
    photos: Iterator[Path],
    hosts: Iterator[Path],
    random: np.random.Generator,
) -> None:
    for number in range(8):
        photo, things = read_photo(next(photos)), [read_photo(next(hosts)) for _ in range(2)]
        for take, thing in enumerate(things):
            frames = pan(photo, Path2D.random(random), random.uniform(5, 7))
            write_frames(folder / f"scene-{number}-{take}.mp4", [*frames, *_shots(hosts, 1, random)])
            frames = noisy(studio(photo, thing, 7, random), random)
            write_frames(folder / f"studio-{number}-{take}.mp4", [*_shots(hosts, 1, random), *frames])
            frames = studio(photo, things[0], 6, random)
            write_frames(folder / f"presenter-{number}-{take}.mp4", frames)
            frames = noisy(still(photo, 6), random)
            write_frames(folder / f"still-{number}-{take}.mp4", [*_shots(hosts, 1, random), *frames])
            frames = [*title("THE EVENING\nNEWS", 4), *black(3), *_shots(hosts, 1, random), *black(4)]
            write_frames(folder / f"titled-{number}-{take}.mp4", frames)
    frames, fps = read_frames(options.data / "videos" / _FIXED[name])
    size = len(frames) // 3
    for number in range(3):
        write_frames(folder / f"fixed-{number}.mp4", frames[number * size : (number + 1) * size], fps)


def _real(options: argparse.Namespace, name: str, folder: Path) -> list[Clip]:
    """Write real videos with edits; return what they share."""
    clips: list[Clip] = []
    for source in _REAL[name]:
        path = options.data / "videos" / source
        frames, fps = read_frames(path)
        whole = len(frames) / fps
        names = [write_frames(folder / f"{path.stem}-original.mp4", frames, fps).name]
        spans = [(0.0, whole)]
        for kind, edit in WHOLE_EDITS.items():
            edited = [np.asarray(edit(each), np.uint8) for each in frames]
            names.append(write_frames(folder / f"{path.stem}-{kind.replace(' ', '-')}.mp4", edited, fps).name)
            spans.append((0.0, whole))
        first = len(frames) // 5
        part = [cv2.convertScaleAbs(each, alpha=1.1, beta=10) for each in frames[first : first + len(frames) // 2]]
        names.append(write_frames(folder / f"{path.stem}-part.mp4", part, fps).name)
        spans.append((first / fps, (first + len(part)) / fps))
        for one, other in combinations(range(len(names)), 2):
            shared = max(spans[one][0], spans[other][0]), min(spans[one][1], spans[other][1])
            its = [(shared[0] - each[0], shared[1] - each[0]) for each in (spans[one], spans[other])]
            kind = names[other].removeprefix(f"{path.stem}-").removesuffix(".mp4")
            clips.append(Clip(names[one], names[other], its[0], its[1], kind, is_planted=one == 0))
    return clips


def _measured(options: argparse.Namespace, folder: Path, clips: list[Clip], words: str) -> dict[str, Any]:
    n_videos = len(list(folder.glob("*.mp4")))
    with (
        tempfile.TemporaryDirectory(prefix="bench-") as work,
        Workspace(Path(work) / "ws", settings=Settings(copy_budget_ms=0)) as workspace,
    ):
        dataset = workspace.create_dataset("videos", folder, "gist", frames_per_second=options.rate)
        started, processor = time.perf_counter(), time.process_time()
        copies = dataset.video_copies()
        seconds, processor = time.perf_counter() - started, time.process_time() - processor
        print(f"\n{words}: {n_videos} videos, {dataset.count():,} frames, {seconds:.1f} s")
    judged = [(each, _truth(each, clips)) for each in copies]
    wrong = [each for each, truth in judged if truth is None]
    planted = [each for each in clips if each.is_planted]
    found = {
        number: [copy for copy, truth in judged if truth is not None and truth == clip]
        for number, clip in enumerate(planted)
    }
    errors = [_errors(copies[0], planted[number]) for number, copies in found.items() if copies]
    rows = []
    for kind in dict.fromkeys(each.kind for each in planted):
        numbers = [number for number, each in enumerate(planted) if each.kind == kind]
        rows.append([kind, len(numbers), ratio(sum(bool(found[each]) for each in numbers), len(numbers))])
    print(table(["edit", "clips", "recall"], rows))
    recall = ratio(sum(map(bool, found.values())), len(planted))
    precision = ratio(len(copies) - len(wrong), len(copies))
    print(verdict("recall", recall, _RECALL))
    print(verdict("precision", precision, _PRECISION))
    for each in wrong:
        print(f"wrong: {each.path} {each.start_s:.1f}-{each.end_s:.1f}, {each.other_path} {each.other_start_s:.1f}-"
              f"{each.other_end_s:.1f}, {each.similarity:.2f}")  # fmt: skip
    for number, clip in enumerate(planted):
        if not found[number]:
            print(f"missed: {clip}")
    ends = [value for each in errors for value in each]
    if ends:
        print(f"error of starts and ends: median {median(ends):.2f} s, 95 % {np.quantile(ends, 0.95):.2f} s")
    return {
        "videos": n_videos,
        "seconds": seconds,
        "processor_s": processor,
        "recall": recall,
        "precision": precision,
        "kinds": rows,
        "errors_s": ends,
        "wrong": [each.model_dump() for each in wrong],
    }


def _truth(copy: VideoCopy, clips: list[Clip]) -> Clip | None:
    """Return what was planted where a copy was found."""
    for clip in clips:
        for ends in (_ends(copy), _ends(copy)[::-1]):
            (name, span), (other, other_span) = ends
            alike = min(_union(span, clip.span), _union(other_span, clip.other_span))
            if (name, other) == (clip.name, clip.other) and alike >= _OVERLAP:
                return clip
    return None


def _ends(copy: VideoCopy) -> list[tuple[str, tuple[float, float]]]:
    return [(copy.path, (copy.start_s, copy.end_s)), (copy.other_path, (copy.other_start_s, copy.other_end_s))]


def _union(span: tuple[float, float], other: tuple[float, float]) -> float:
    """Return the intersection of two spans over their union."""
    shared = max(0.0, min(span[1], other[1]) - max(span[0], other[0]))
    return shared / (span[1] - span[0] + other[1] - other[0] - shared)


def _errors(copy: VideoCopy, clip: Clip) -> list[float]:
    ends = _ends(copy) if copy.path == clip.name else _ends(copy)[::-1]
    spans = zip((each[1] for each in ends), (clip.span, clip.other_span), strict=True)
    return [abs(found - planted) for mine, its in spans for found, planted in zip(mine, its, strict=True)]


if __name__ == "__main__":
    main()
