"""Which copy to keep: how often the original wins among its edits.

Each group is a photo and nine edits of it: brightness × 1.3, contrast stretched, sharpened, quality 40, quality 98,
half size, twice the size, a watermark, a border. The edits are saved at several qualities; the original is the file as
it came, or saved anew at quality 90. The largest file, and the most pixels (then the largest file), are the rules that
other tools offer.

Then pairs of a photo and one copy that was turned, mirrored or only recompressed, of photos as they came and of small
ones (a third of the size, saved at quality 80, and their copies made from that).

Then pairs of a photo and one copy: of another size, another part, another exposure, or with one of the 28 edits by
which copies are measured. A group for which Framedex is not sure counts neither as kept nor as wrong.
"""

import argparse
import collections
import io
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import parents  # noqa: F401 - makes the modules of the benchmarks importable
from halves import HALVES, half
from image_edits import EDITS
from PIL import Image, ImageEnhance, ImageFilter, ImageOps

from common import arguments, save, table, verdict
from framedex import Workspace
from framedex.records import DuplicateGroup

SEED, LEAST_SIDE = 4, 200
AIM = 0.95
# (quality of the edits, quality at which the original is saved anew or None for the file as it came)
CASES = ((92, None), (95, None), (75, None), (92, 90))
ORIGINAL, NOT_SURE = "original", "not sure"
SMALL, SMALL_QUALITY = 3, 80  # times smaller than the photo, and how it is saved
# (turn or None, quality of the copy) of each kind of pair
TURNS: Mapping[str, Image.Transpose | None] = {
    "as it was": None,
    "mirrored": Image.Transpose.FLIP_LEFT_RIGHT,
    "turned by 90°": Image.Transpose.ROTATE_90,
    "turned by 180°": Image.Transpose.ROTATE_180,
}
PAIR_QUALITIES = (40, 60, 75, 92)
MOST_WRONG = 0.01  # share of the groups found, in each kind


def _resized(x: float, y: float = 0) -> Callable[[Image.Image], Image.Image]:
    return lambda image: image.resize(
        (round(image.width * x), round(image.height * (y or x))), Image.Resampling.LANCZOS
    )


def _square(side: int) -> Callable[[Image.Image], Image.Image]:
    return lambda image: image.resize((side, side), Image.Resampling.LANCZOS)


def _part(left: float, top: float, right: float, bottom: float) -> Callable[[Image.Image], Image.Image]:
    return lambda image: image.crop(
        (round(image.width * left), round(image.height * top), round(image.width * right), round(image.height * bottom))
    )


# One copy beside its photo.
COPIES: Mapping[str, Callable[[Image.Image], Image.Image]] = {
    "same size": lambda image: image,
    "300²": _square(300),
    "224²": _square(224),
    "half": _resized(0.5),
    "three quarters": _resized(0.75),
    "double": _resized(2),
    "enlarged by 5 %": _resized(1.05),
    "crop of 81 %": _part(0.05, 0.05, 0.95, 0.95),
    "crop of 49 %": _part(0.2, 0.1, 0.9, 0.8),
    "darkened": lambda image: ImageEnhance.Brightness(image).enhance(0.6),
    "overexposed": lambda image: ImageEnhance.Brightness(image).enhance(1.6),
}
SINGLES: Mapping[str, tuple[Callable[[Image.Image], Image.Image], Sequence[int]]] = {
    **{kind: (made, (60, 95)) for kind, made in COPIES.items()},
    **{kind: (made, (quality,)) for kind, (made, quality) in EDITS.items()},
}
"""Each kind of single copies: how it is made, and the qualities at which it is saved."""


def main() -> None:
    """Measure, print and write."""
    parser = arguments(__doc__)
    parser.add_argument("--groups", type=int, default=40)
    parser.add_argument("--singles", type=int, default=80, help="photos with one copy of each further kind")
    parser.add_argument("--kinds", nargs="+", choices=SINGLES, help="kinds of single copies; by default all")
    parser.add_argument("--parts", nargs="+", choices=_PARTS, default=list(_PARTS))
    parser.add_argument("--halves", nargs="+", choices=HALVES, default=[HALVES[1]])
    options = parser.parse_args()
    for part in options.parts:
        rows = [row for name in options.halves for row in _PARTS[part](options, name)]
        print(table(tuple(rows[0]), [[_cell(value) for value in row.values()] for row in rows]))
        reported = [row for row in rows if row["half"] == options.halves[-1]]
        if part == "groups":
            print(verdict("the original is kept", reported[0]["kept"], AIM))
        else:
            worst = max(value for row in reported for name, value in row.items() if name.startswith("wrong"))
            print(verdict(f"the largest share of wrong ones in a kind of {part}", worst, MOST_WRONG, at_most=True))
        save(f"quality-keep-{part}", {"rows": rows})


def _cell(value: Any) -> Any:
    return str(value) if isinstance(value, dict) else value


def _singles(options: argparse.Namespace, name: str) -> list[dict[str, Any]]:
    """Return, for each kind of copy and quality, what happens to the photos with one such copy."""
    rows = []
    for kind, (made, qualities) in SINGLES.items():
        for quality in qualities if not options.kinds or kind in options.kinds else ():
            with tempfile.TemporaryDirectory(prefix="bench-") as work:
                folder, count = Path(work) / "photos", 0
                for number, raw in _chosen(options.data, name, options.singles, folder):
                    copy = _jpeg(made(Image.open(io.BytesIO(raw)).convert("RGB")), quality)
                    (folder / f"{number}__{ORIGINAL}.jpg").write_bytes(raw)
                    (folder / f"{number}__{_name_of_copy(number)}.jpg").write_bytes(copy)
                    count += 1
                groups = _groups(folder)
            sure = [group for group in groups if group.is_sure]
            wrong = [group for group in sure if _kept_kind(group) != ORIGINAL]
            row = {"half": name, "copy": kind, "quality": quality, "photos": count, "found": len(groups)}
            shares = {"kept": len(sure) - len(wrong), "wrong": len(wrong), "not sure": len(groups) - len(sure)}
            row |= {share: number / max(1, len(groups)) for share, number in shares.items()}
            instead = collections.Counter(group.keep_reason.partition(":")[0] for group in wrong)
            rows.append({**row, "instead": dict(instead.most_common())})
    return rows


def _name_of_copy(number: str) -> str:
    return "copy" if int(number) % 2 else "the copy"  # half of the copies are first in order


def _pairs(options: argparse.Namespace, name: str) -> list[dict[str, Any]]:
    """Return, for each kind of pair, the shares of pairs that are found and of those found that keep the original."""
    rows = []
    for turn, transpose in TURNS.items():
        for quality in PAIR_QUALITIES:
            row: dict[str, Any] = {"half": name, "copies": turn, "quality": quality}
            for smaller, suffix in ((1, ""), (SMALL, ", small")):
                with tempfile.TemporaryDirectory(prefix="bench-") as work:
                    folder = Path(work) / "photos"
                    count = _write_pairs(options.data, name, folder, options.groups, transpose, quality, smaller)
                    kept = _kept(_groups(folder))
                row[f"found{suffix}"] = len(kept) / count
                row[f"kept{suffix}"] = kept.count(ORIGINAL) / max(1, len(kept))
                row[f"not sure{suffix}"] = kept.count(NOT_SURE) / max(1, len(kept))
                row[f"wrong{suffix}"] = 1 - row[f"kept{suffix}"] - row[f"not sure{suffix}"]
            rows.append(row)
    return rows


def _write_pairs(
    data: Path, name: str, folder: Path, groups: int, transpose: Image.Transpose | None, quality: int, smaller: int
) -> int:
    """Write the pairs; return their number."""
    count = 0
    for number, raw in _chosen(data, name, groups, folder):
        first, image = raw, Image.open(io.BytesIO(raw))
        if smaller > 1:
            size = (image.width // smaller, image.height // smaller)
            first = _jpeg(image.resize(size, Image.Resampling.LANCZOS), SMALL_QUALITY)
            image = Image.open(io.BytesIO(first))
        (folder / f"{number}__{ORIGINAL}.jpg").write_bytes(first)
        copy = image.convert("RGB") if transpose is None else image.transpose(transpose)
        (folder / f"{number}__{_name_of_copy(number)}.jpg").write_bytes(_jpeg(copy, quality))
        count += 1
    return count


def _groups(folder: Path) -> list[DuplicateGroup]:
    """Return the duplicate groups of a folder that are of one photo each."""
    with Workspace(folder.parent / "ws") as workspace:
        groups = list(workspace.create_dataset("keep", folder, "gist").duplicates())
    return [group for group in groups if len({_number(each) for each in group.file_names}) == 1]


def _kept(groups: Sequence[DuplicateGroup]) -> list[str]:
    """Return the kind that is kept of each group; "not sure" where Framedex is not."""
    return [_kept_kind(group) if group.is_sure else NOT_SURE for group in groups]


def _kept_kind(group: DuplicateGroup) -> str:
    return _kind(group.file_names[group.media_ids.index(group.keep)])


def _edited(options: argparse.Namespace, name: str) -> list[dict[str, Any]]:
    """Return, for each case, the share of the groups of ten that keep the original."""
    return [_measured(options.data, name, options.groups, *case) for case in CASES]


def _measured(data: Path, name: str, groups: int, quality: int, anew: int | None) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="bench-") as work:
        folder = Path(work) / "photos"
        chosen = _write(data, name, folder, groups, quality, anew)
        groups_found = _groups(folder)
        kept, members = _kept(groups_found), sum(len(group.file_names) for group in groups_found)
        sizes: Mapping[str, Callable[[Path], tuple[int, int]]] = {
            "largest": lambda path: (0, path.stat().st_size),
            "pixels": lambda path: (int(np.prod(Image.open(path).size)), path.stat().st_size),
        }
        rules = {
            rule: sum(_kind(max(folder.glob(f"{number}__*"), key=key).name) == ORIGINAL for number in chosen)
            / len(chosen)
            for rule, key in sizes.items()
        }
    others = collections.Counter(kind for kind in kept if kind != ORIGINAL)
    return {
        "half": name,
        "edits": f"quality {quality}",
        "original": "as it came" if anew is None else f"quality {anew}",
        "groups": len(chosen),
        "kept": kept.count(ORIGINAL) / len(chosen),
        **rules,
        "found": members / (10 * len(chosen)),
        "instead": dict(others.most_common()),
    }


def _write(data: Path, name: str, folder: Path, groups: int, quality: int, anew: int | None) -> list[str]:
    """Write the groups; return their numbers."""
    chosen = []
    for number, raw in _chosen(data, name, groups, folder):
        first, image = raw, Image.open(io.BytesIO(raw))
        if anew is not None:
            first = _jpeg(image, anew)
            image = Image.open(io.BytesIO(first))
        chosen.append(number)
        (folder / f"{number}__{ORIGINAL}.jpg").write_bytes(first)
        for kind, made in _edits(image.convert("RGB"), quality).items():
            (folder / f"{number}__{kind}.jpg").write_bytes(made)
    return chosen


def _chosen(data: Path, name: str, groups: int, folder: Path) -> Iterator[tuple[str, bytes]]:
    """Make a folder; yield (number, file) of photos of a half that are large enough."""
    folder.mkdir()
    photos, found = half(data, name), 0
    for place in np.random.default_rng(SEED).permutation(len(photos)):
        raw = photos[place].read_bytes()
        image = Image.open(io.BytesIO(raw))
        if image.format == "JPEG" and image.mode == "RGB" and min(image.size) >= LEAST_SIDE:
            yield f"{found:03d}", raw
            found += 1
            if found == groups:
                return


def _edits(image: Image.Image, quality: int) -> dict[str, bytes]:
    border = round(min(image.size) * 0.06)
    return {
        "brighter": _jpeg(ImageEnhance.Brightness(image).enhance(1.3), quality),
        "stretched": _jpeg(ImageOps.autocontrast(image, cutoff=1), quality),
        "sharpened": _jpeg(image.filter(ImageFilter.UnsharpMask(2, 150, 3)), quality),
        "quality 40": _jpeg(image, 40),
        "quality 98": _jpeg(image, 98),
        "half": _jpeg(image.resize((image.width // 2, image.height // 2), Image.Resampling.LANCZOS), quality),
        "double": _jpeg(image.resize((image.width * 2, image.height * 2), Image.Resampling.BICUBIC), quality),
        "watermark": _jpeg(EDITS["watermark"][0](image), quality),
        "bordered": _jpeg(ImageOps.expand(image, border, (255, 255, 255)), quality),
    }


def _jpeg(image: Image.Image, quality: int) -> bytes:
    file = io.BytesIO()
    image.save(file, "JPEG", quality=quality)
    return file.getvalue()


def _number(name: str) -> str:
    return name.split("__", maxsplit=1)[0]


def _kind(name: str) -> str:
    return Path(name).stem.split("__")[1]


_PARTS: Mapping[str, Callable[[argparse.Namespace, str], list[dict[str, Any]]]] = {
    "singles": _singles,
    "pairs": _pairs,
    "groups": _edited,
}

if __name__ == "__main__":
    main()
