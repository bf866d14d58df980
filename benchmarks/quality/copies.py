"""Copies: which of the 28 edits of photos each tool finds, which untouched photos it confuses, and what finding costs.

For each edit, a folder holds all originals of a half and the edited photos, so that no other edit connects the two.
Framedex groups them with its built-in encoder and with MobileNetV2, at each level; fastdup, PDQ and pHash pair the same
files. Then different photos in equal frames, untouched photos, and sets of which a third are copies, and half are
mirrored and turned ones, show false pairs and the processor time of the verification by its budget.
"""

import argparse
import io
import os
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt
import parents  # noqa: F401 - makes the modules of the benchmarks importable
from halves import HALVES, half, photos_of
from image_edits import EDITS, Edit, collage, original, phone_frame, screenshot
from PIL import Image

from common import PINS, RESULTS, arguments, environment, run_worker, save, table, verdict
from framedex import Dataset, Workspace
from framedex.records import DUPLICATE_LEVELS
from framedex.settings import Settings

WORKERS = Path(__file__).with_name("copies_workers.py")
MODEL = "models/mobilenetv2-12-int8.onnx"
QUALITY, SEED, SAME = 90, 14, 0.999
TURNED = ("mirror", "flip_v", "rot90")  # copies that keypoints alone show
BUDGETS_MS = (0.0, 3.0, 5.0, 8.0, 10.0, 30.0)
AIMS = {"gist": 0.95, "MobileNetV2": 0.97}
PEERS = {"fastdup": "fastdup", "pdq": "pdqhash", "phash": "pdqhash"}


def main() -> None:
    """Measure, print and write."""
    options = _options()
    halves: dict[str, Any] = {}
    for name in options.halves:
        photos = [original(Image.open(path)) for path in half(options.data, name)]
        halves[name] = _half(options, name, photos)
    budgets = _budgets(options)
    save("quality-copies", {"edited": options.edited, "halves": halves, "budgets": budgets})


def _options() -> argparse.Namespace:
    parser = arguments(__doc__)
    parser.add_argument("--edited", type=int, default=60, help="photos of a half that are edited")
    parser.add_argument("--halves", nargs="+", choices=HALVES, default=[HALVES[1]])
    parser.add_argument("--encoders", nargs="+", choices=sorted(AIMS), default=sorted(AIMS))
    parser.add_argument("--budgets", nargs="*", type=float, default=list(BUDGETS_MS), help="ms an image")
    parser.add_argument("--tools", nargs="*", choices=sorted(PEERS), default=sorted(PEERS))
    options = parser.parse_args()
    assert set(PEERS.values()) <= PINS.keys(), "each tool has an environment"
    return options


def _half(options: argparse.Namespace, name: str, photos: Sequence[Image.Image]) -> dict[str, Any]:
    edited = sorted(np.random.default_rng(SEED).choice(len(photos), options.edited, replace=False).tolist())
    with tempfile.TemporaryDirectory(prefix="bench-") as work:
        folder = Path(work) / "edits"
        originals = [_jpeg(photo, QUALITY) for photo in photos]
        others = [original(Image.open(path)) for path in photos_of(options.data, "photos/flickr8k-1000")[: len(photos)]]
        for kind, (edit, quality) in EDITS.items():
            place = folder / kind
            place.mkdir(parents=True)
            for number, data in enumerate(originals):
                (place / f"o{number:04d}.jpg").write_bytes(data)
            for number in edited:
                # A collage's other photo is shown by no other image.
                made = (collage(others[number]) if kind == "collage_half" else edit)(photos[number])
                (place / f"o{number:04d}__edit.jpg").write_bytes(_jpeg(made, quality))
        rows: dict[str, dict[str, Any]] = {}
        for tool in options.tools:
            python = environment(options.peers, PEERS[tool])
            answer = run_worker(python, tool, folder, script=WORKERS).result
            for threshold in next(iter(answer["edits"].values())):
                found = {kind: each[threshold] for kind, each in answer["edits"].items()}
                recall = {kind: each["found"] / options.edited for kind, each in found.items()}
                false = max(each["false"] for each in found.values())
                rows[f"{tool} {threshold}"] = _row(recall, false, answer["seconds"])
        for encoder in options.encoders:
            rows |= _framedex(options, folder, encoder, options.edited)
            mean = rows[f"{encoder} 0.96"]["mean"]
            print(verdict(f"{name}: mean recall with {encoder}", mean, AIMS[encoder]))
        frames = _frames(Path(work), photos)
    _print(name, rows, frames, len(photos))
    return {"rows": rows, "frames": frames, "photos": len(photos)}


def _jpeg(image: Image.Image, quality: int) -> bytes:
    file = io.BytesIO()
    image.save(file, "JPEG", quality=quality)
    return file.getvalue()


def _framedex(options: argparse.Namespace, folder: Path, encoder: str, edited: int) -> dict[str, dict[str, Any]]:
    """Return recall by edit and false joins, for each level."""
    name = "gist" if encoder == "gist" else f"onnx:{(options.data / MODEL).resolve()}"
    recall: dict[float, dict[str, float]] = {level: {} for level in DUPLICATE_LEVELS}
    false = dict.fromkeys(DUPLICATE_LEVELS, 0)
    seconds = 0.0
    for place in sorted(folder.iterdir()):
        with tempfile.TemporaryDirectory(prefix="bench-") as work, Workspace(Path(work) / "ws") as workspace:
            started = time.perf_counter()
            dataset = workspace.create_dataset("copies", place, name)
            seconds += time.perf_counter() - started
            same = _same(dataset)
            for level in DUPLICATE_LEVELS:
                found, joined = _counted(dataset, level, same)
                recall[level][place.name] = found / edited
                false[level] = max(false[level], joined)
    return {f"{encoder} {level:g}": _row(recall[level], false[level], seconds) for level in DUPLICATE_LEVELS}


def _same(dataset: Dataset) -> set[frozenset[str]]:
    """Return pairs of originals that are the same photo: what is a near-duplicate at 0.999 without any doubt."""
    groups = [[name for name in group.file_names if "__" not in name] for group in dataset.duplicates(SAME)]
    return {frozenset((a, b)) for names in groups for a in names for b in names if a != b}


def _counted(dataset: Dataset, level: float, same: set[frozenset[str]]) -> tuple[int, int]:
    """Return the number of edited photos in a group with their original, and of originals joined with others."""
    found = joined = 0
    for group in dataset.duplicates(level):
        names = set(group.file_names)
        originals = sorted(name for name in names if "__" not in name)
        found += sum(f"{Path(name).stem}__edit.jpg" in names for name in originals)
        others = [name for name in originals[1:] if not any(frozenset((name, each)) in same for each in originals)]
        joined += len(others)
    return found, joined


def _row(recall: Mapping[str, float], false: int, seconds: float) -> dict[str, Any]:
    return {"recall": dict(recall), "mean": float(np.mean(list(recall.values()))), "false": false, "seconds": seconds}


def _frames(work: Path, photos: Sequence[Image.Image]) -> dict[str, dict[str, int]]:
    """Return the numbers of different photos in one frame that are joined, by frame and level."""
    result: dict[str, dict[str, int]] = {}
    framed: tuple[Callable[[Image.Image], Image.Image], ...] = (phone_frame, screenshot)
    for frame in framed:
        place = work / frame.__name__
        place.mkdir()
        for number, photo in enumerate(photos[:150]):
            (place / f"o{number:04d}.jpg").write_bytes(_jpeg(frame(photo), QUALITY))
        with Workspace(work / f"ws {frame.__name__}") as workspace:
            dataset = workspace.create_dataset("frames", place, "gist")
            same = _same(dataset)
            result[frame.__name__] = {f"{level:g}": _counted(dataset, level, same)[1] for level in DUPLICATE_LEVELS}
    return result


def _budgets(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Return recall, false joins and processor time by the budget of the verification."""
    rows = []
    with tempfile.TemporaryDirectory(prefix="bench-") as work:
        folder = Path(work)
        photos = [original(Image.open(path)) for path in half(options.data, HALVES[1])]
        untouched = [*photos, *(original(Image.open(path)) for path in photos_of(options.data, "photos/flickr8k-1000"))]
        untouched = untouched[-1000:]
        _write(folder / "untouched", untouched, ())
        _write(folder / "third", photos, tuple(EDITS.items()))
        _write(folder / "half", photos, [(kind, EDITS[kind]) for kind in TURNED], every=1)
        for budget in options.budgets:
            for name in ("untouched", "third", "half"):
                settings = Settings(copy_budget_ms=budget, threads=1)
                with Workspace(folder / f"ws {name} {budget}", settings=settings) as workspace:
                    started = time.process_time()
                    dataset = workspace.create_dataset(name, folder / name, "gist")
                    seconds = time.process_time() - started
                    count = len(os.listdir(folder / name))  # noqa: PTH208
                    same = _same(dataset)
                    found, joined = _counted_any(dataset, same)
                    copies = count - len({Path(each).stem.split("__")[0] for each in os.listdir(folder / name)})  # noqa: PTH208
                    recall = found / copies if copies else None
                    rows.append(
                        {
                            "budget_ms": budget, "set": name, "images": count, "recall": recall, "false": joined,
                            "ms": seconds / count * 1000,
                        }
                    )  # fmt: skip
    print("\nVerification by its budget (milliseconds of processor time an image, one thread)")
    print(
        table(("budget", "set", "images", "recall", "false joins", "ms an image"), [list(row.values()) for row in rows])
    )
    return rows


def _write(
    folder: Path, photos: Iterable[Image.Image], edits: Sequence[tuple[str, tuple[Edit, int]]], every: int = 2
) -> None:
    """Write photos, and one edit of every second one, or as many as told."""
    folder.mkdir()
    for number, photo in enumerate(photos):
        (folder / f"o{number:04d}.jpg").write_bytes(_jpeg(photo, QUALITY))
        if edits and number % every == 0:
            kind, (edit, quality) = edits[number // every % len(edits)]
            (folder / f"o{number:04d}__{kind}.jpg").write_bytes(_jpeg(edit(photo), quality))


def _counted_any(dataset: Dataset, same: set[frozenset[str]]) -> tuple[int, int]:
    found = joined = 0
    for group in dataset.duplicates():
        stems = [Path(name).stem.split("__")[0] for name in group.file_names]
        originals = sorted({name for name in group.file_names if "__" not in name})
        found += sum(
            "__" in name and f"{stem}.jpg" in originals for name, stem in zip(group.file_names, stems, strict=True)
        )
        joined += sum(not any(frozenset((name, each)) in same for each in originals) for name in originals[1:])
    return found, joined


def _print(name: str, rows: Mapping[str, dict[str, Any]], frames: Mapping[str, dict[str, int]], photos: int) -> None:
    shown = [key for key in rows if not any(key.endswith(f" {level:g}") for level in DUPLICATE_LEVELS[1:-1])]
    print(f"\nRecall by edit, {name} half ({photos} photos; {photos * (photos - 1) // 2:,} pairs of originals)")
    kinds = list(next(iter(rows.values()))["recall"])
    print(table(("edit", *shown), [(kind, *(rows[key]["recall"][kind] for key in shown)) for kind in kinds]))
    print(table(("tool and level", "mean recall", "false joins", "seconds"),
                [(key, row["mean"], row["false"], row["seconds"]) for key, row in rows.items()]))  # fmt: skip
    print("Different photos in one frame that are joined:", dict(frames))
    _draw(name, rows, shown, kinds)


def _draw(name: str, rows: Mapping[str, dict[str, Any]], shown: Sequence[str], kinds: Sequence[str]) -> None:
    """Draw recall by edit and tool as a grid of grey levels."""
    cell, left, top = 34, 150, 130
    width, height = left + cell * len(shown), top + cell // 2 * len(kinds)
    picture: npt.NDArray[np.uint8] = np.full((height, width, 3), 255, np.uint8)
    for row, kind in enumerate(kinds):
        cv2.putText(picture, kind, (4, top + row * 17 + 13), cv2.FONT_HERSHEY_SIMPLEX, 0.4, (0, 0, 0), 1, cv2.LINE_AA)
        for column, key in enumerate(shown):
            value = rows[key]["recall"][kind]
            colour = tuple(round(255 - value * part) for part in (180, 90, 220))
            at = (left + column * cell, top + row * 17)
            cv2.rectangle(picture, at, (at[0] + cell - 2, at[1] + 15), colour, -1)
            cv2.putText(
                picture,
                f"{value:.2f}",
                (at[0] + 3, at[1] + 11),
                cv2.FONT_HERSHEY_SIMPLEX,
                0.3,
                (0, 0, 0),
                1,
                cv2.LINE_AA,
            )
    heads: npt.NDArray[np.uint8] = np.full((width, top, 3), 255, np.uint8)  # turned to the left when it is put in
    for column, key in enumerate(shown):
        cv2.putText(
            heads, key, (4, left + column * cell + 20), cv2.FONT_HERSHEY_SIMPLEX, 0.4, (0, 0, 0), 1, cv2.LINE_AA
        )
    picture[:top] = np.transpose(heads, (1, 0, 2))[::-1]
    RESULTS.mkdir(exist_ok=True)
    cv2.imwrite(str(RESULTS / f"quality-copies-{name}.png"), cv2.cvtColor(picture, cv2.COLOR_RGB2BGR))


if __name__ == "__main__":
    main()
