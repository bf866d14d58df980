"""Which copy to keep: how often the original wins among its edits.

Each group is a photo and nine edits of it: brightness × 1.3, contrast stretched, sharpened, quality 40, quality 98,
half size, twice the size, a watermark, a border. The edits are saved at several qualities; the original is the file as
it came, or saved anew at quality 90. The largest file, and the most pixels (then the largest file), are the rules that
other tools offer.

Then pairs of a photo and one copy that was turned, mirrored or only recompressed, of photos as they came and of small
ones (a third of the size, saved at quality 80, and their copies made from that).
"""

import collections
import io
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import parents  # noqa: F401 - makes the modules of the benchmarks importable
from halves import HALVES, half
from image_edits import EDITS
from PIL import Image, ImageEnhance, ImageFilter, ImageOps

from common import arguments, save, table, verdict
from framedex import Workspace

SEED, LEAST_SIDE = 4, 200
AIM = 0.95
# (quality of the edits, quality at which the original is saved anew or None for the file as it came)
CASES = ((92, None), (95, None), (75, None), (92, 90))
ORIGINAL = "original"
SMALL, SMALL_QUALITY = 3, 80  # times smaller than the photo, and how it is saved
# (turn or None, quality of the copy) of each kind of pair
TURNS: Mapping[str, Image.Transpose | None] = {
    "as it was": None,
    "mirrored": Image.Transpose.FLIP_LEFT_RIGHT,
    "turned by 90°": Image.Transpose.ROTATE_90,
    "turned by 180°": Image.Transpose.ROTATE_180,
}
PAIR_QUALITIES = (40, 60, 75, 92)


def main() -> None:
    """Measure, print and write."""
    parser = arguments(__doc__)
    parser.add_argument("--groups", type=int, default=40)
    parser.add_argument("--halves", nargs="+", choices=HALVES, default=[HALVES[1]])
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for name in options.halves:
        for quality, anew in CASES:
            rows.append(_measured(options.data, name, options.groups, quality, anew))
    heads = ("half", "edits at", "original", "groups", "kept", "largest file", "most pixels", "found", "others kept")
    print(table(heads, [[str(value) if isinstance(value, dict) else value for value in row.values()] for row in rows]))
    pairs = [each for name in options.halves for each in _pairs(options.data, name, options.groups)]
    heads = ("half", "copies", "quality", "found", "kept", "found, small", "kept, small")
    print(table(heads, [list(row.values()) for row in pairs]))
    first = next(row for row in rows if row["half"] == options.halves[-1])
    print(verdict("the original is kept", first["kept"], AIM))
    of_pairs = [row[kept] for row in pairs if row["half"] == options.halves[-1] for kept in ("kept", "kept_small")]
    print(verdict("the original is kept in pairs", sum(of_pairs) / len(of_pairs), AIM))
    save("quality-keep", {"rows": rows, "pairs": pairs})


def _pairs(data: Path, name: str, groups: int) -> list[dict[str, Any]]:
    """Return, for each kind of pair, the shares of pairs that are found and of those found that keep the original."""
    rows = []
    for turn, transpose in TURNS.items():
        for quality in PAIR_QUALITIES:
            row: dict[str, Any] = {"half": name, "copies": turn, "quality": quality}
            for smaller, suffix in ((1, ""), (SMALL, "_small")):
                with tempfile.TemporaryDirectory(prefix="bench-") as work:
                    folder = Path(work) / "photos"
                    count = _write_pairs(data, name, folder, groups, transpose, quality, smaller)
                    kept, _ = _kept(folder)
                row[f"found{suffix}"] = len(kept) / count
                row[f"kept{suffix}"] = kept.count(ORIGINAL) / max(1, len(kept))
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
        name_of_copy = "copy" if int(number) % 2 else "the copy"  # half of the copies are first in order
        (folder / f"{number}__{name_of_copy}.jpg").write_bytes(_jpeg(copy, quality))
        count += 1
    return count


def _kept(folder: Path) -> tuple[list[str], int]:
    """Return (the kind that is kept of each group that is of one photo, the members of all groups)."""
    with Workspace(folder.parent / "ws") as workspace:
        groups = list(workspace.create_dataset("keep", folder, "gist").duplicates())
    kept = [
        _kind(group.file_names[group.media_ids.index(group.keep)])
        for group in groups
        if len({_number(each) for each in group.file_names}) == 1
    ]
    return kept, sum(len(group.file_names) for group in groups)


def _measured(data: Path, name: str, groups: int, quality: int, anew: int | None) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="bench-") as work:
        folder = Path(work) / "photos"
        chosen = _write(data, name, folder, groups, quality, anew)
        kept, members = _kept(folder)
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


if __name__ == "__main__":
    main()
