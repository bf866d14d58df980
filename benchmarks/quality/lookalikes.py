"""Lookalikes: different pictures of one template, 20 kinds, of which a search for copies must join none.

Pages of one book, forms of one office, X-rays, screenshots of one program and others: ten pictures share a template.
Odd kinds tune limits and weights, even kinds report, and the halves have different seeds, so that nothing is reported
that was tuned on. First, each kind is grouped at each level, and the pairs that are joined are counted. Then every
second picture of a kind is edited as pages are (recompressed, half size, cropped margins, turned, scanned, PNG to
JPEG): an edited picture is found if its group has its original and no other picture. The share of those that are with
their original, alone or not, is beside it.

"Near" pictures, bursts of a photo and frames of a scene, are counted apart: those of one scene, and of different ones.
"""

import argparse
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import lookalikes_pictured as pictured
import lookalikes_printed as drawn
import numpy as np
import parents  # noqa: F401 - makes the modules of the benchmarks importable
from halves import HALVES, half
from image_edits import Edit, cropped, original
from PIL import Image
from printed import Pixels, scanned
from variants import SET, Variant

from common import arguments, save, table, verdict
from framedex import Dataset, Workspace
from framedex.records import DUPLICATE_LEVELS

KINDS: dict[str, tuple[Callable[[Variant], Pixels], str]] = {
    "pages": (drawn.page, ".png"),
    "forms": (drawn.form, ".png"),
    "X-rays": (pictured.x_ray, ".png"),
    "screenshots": (drawn.screenshot, ".png"),
    "star fields": (pictured.star_field, ".jpg"),
    "products": (pictured.product, ".jpg"),
    "line plots": (drawn.line_plot, ".png"),
    "scans": (drawn.scan, ".jpg"),
    "bar charts": (drawn.bar_chart, ".png"),
    "maps": (drawn.street_map, ".png"),
    "sheet music": (drawn.sheet_music, ".png"),
    "tables": (drawn.spreadsheet, ".png"),
    "CAD drawings": (drawn.cad_drawing, ".png"),
    "codes": (drawn.code, ".png"),
    "thermal": (pictured.thermal, ".jpg"),
    "depth maps": (pictured.depth_map, ".png"),
    "cells": (pictured.cells, ".jpg"),
    "slides": (drawn.slide, ".png"),
    "receipts": (drawn.receipt, ".png"),
    "fields and slices": (pictured.fields, ".jpg"),
}
"""Each kind: what makes a picture, and the files in which such pictures are kept."""
NEAR: dict[str, Callable[[Variant, Pixels], Pixels]] = {"bursts": pictured.burst, "frames": pictured.frame}
SEEDS = {"tuning": 46, "reporting": 47}
QUALITY = 92
AIM = 0.9


def kinds(name: str) -> list[str]:
    """Return the kinds of a half: the odd ones tune, the even ones report."""
    return list(KINDS)[HALVES.index(name) :: 2]


def pictures(kind: str, count: int, seed: int) -> list[Pixels]:
    """Return different pictures of a kind, ten of each template.

    Args:
        kind: one of :data:`KINDS`.
        count: number of pictures.
        seed: further pictures and templates are those of another seed.
    """
    number = list(KINDS).index(kind)
    return _different([KINDS[kind][0](Variant(seed, number, each)) for each in range(count)])


def near(kind: str, photos: Sequence[Pixels], seed: int) -> list[Pixels]:
    """Return ten pictures of one scene for each photo; *kind* is one of :data:`NEAR`."""
    number = len(KINDS) + list(NEAR).index(kind)
    return _different(
        [NEAR[kind](Variant(seed, number, each), photos[each // SET]) for each in range(SET * len(photos))]
    )


def _different(made: list[Pixels]) -> list[Pixels]:
    assert len({(each.shape, each.tobytes()) for each in made}) == len(made), "no two pictures have equal pixels"
    return made


def _scan(image: Image.Image) -> Image.Image:
    random = np.random.default_rng(image.width * 10_007 + image.height)
    return Image.fromarray(scanned(np.asarray(image), random, tilt=1, noise=3)).convert("L")


def _half_size(image: Image.Image) -> Image.Image:
    return image.resize((image.width // 2, image.height // 2), Image.Resampling.LANCZOS)


# name: (edit, ending of the file, quality of the JPEG)
EDITS_OF_PAGES: dict[str, tuple[Edit, str, int]] = {
    "jpeg60": (lambda image: image, ".jpg", 60),
    "half_size": (_half_size, ".png", 0),
    "margins": (cropped(0.03, 0.05, 0.04, 0.06), ".png", 0),
    "rot90": (lambda image: image.transpose(Image.Transpose.ROTATE_90), ".png", 0),
    "scanned": (_scan, ".jpg", 85),
    "png_to_jpeg90": (lambda image: image, ".jpg", 90),
}


def main() -> None:
    """Measure, print and write."""
    options = _options()
    halves: dict[str, Any] = {}
    for name in options.halves:
        chosen = [kind for kind in kinds(name) if not options.kinds or kind in options.kinds]
        rows = {kind: _measured(kind, options.count, SEEDS[name], options.edits) for kind in chosen}
        close = _near(options, name)
        _print(name, rows, close, options)
        halves[name] = {"kinds": rows, "near": close}
        if options.sheet:
            _sheet(options.data, name, chosen, options.sheet)
    save("quality-lookalikes", {"count": options.count, "halves": halves})


def _options() -> argparse.Namespace:
    parser = arguments(__doc__, peers=False)
    parser.add_argument("--count", type=int, default=40, help="pictures of a kind")
    parser.add_argument("--halves", nargs="+", choices=HALVES, default=[HALVES[1]])
    parser.add_argument("--kinds", nargs="*", choices=KINDS, default=[], help="these kinds of the halves alone")
    parser.add_argument("--edits", nargs="*", choices=EDITS_OF_PAGES, default=list(EDITS_OF_PAGES))
    parser.add_argument("--scenes", type=int, default=4, help="bursts, and scenes of frames")
    parser.add_argument("--sheet", type=Path, help="folder for a picture with some of each kind")
    return parser.parse_args()


def _measured(kind: str, count: int, seed: int, edits: Sequence[str]) -> dict[str, Any]:
    """Return the joined pairs of a kind by level, and the recall by edit and level."""
    made, suffix = pictures(kind, count, seed), KINDS[kind][1]
    row: dict[str, Any] = {"pairs": count * (count - 1) // 2, "recall": {}, "with_original": {}}
    with tempfile.TemporaryDirectory(prefix="bench-") as work:
        place = Path(work) / "files"
        place.mkdir()
        for number, pixels in enumerate(made):
            _save(Image.fromarray(pixels), place / f"o{number:04d}{suffix}", QUALITY)
        row["joined"] = {level: len(pairs) for level, pairs in _joined(place).items()}
        for edit in edits:
            change, ending, quality = EDITS_OF_PAGES[edit]
            copies = [place / f"o{number:04d}__edit{ending}" for number in range(0, count, 2)]
            for number, path in enumerate(copies):
                with Image.open(place / f"o{2 * number:04d}{suffix}") as image:
                    _save(change(image.convert("RGB")), path, quality)
            for level, (found, together) in _found(place).items():
                row["recall"].setdefault(edit, {})[level] = found / len(copies)
                row["with_original"].setdefault(edit, {})[level] = together / len(copies)
            for path in copies:
                path.unlink()
    return row


def _save(image: Image.Image, path: Path, quality: int) -> None:
    image.save(path, compress_level=1, quality=quality)


def _grouped(place: Path) -> Iterator[tuple[str, list[list[str]]]]:
    """Group the images of a folder; yield each level and the names of its groups."""
    with tempfile.TemporaryDirectory(prefix="bench-") as work, Workspace(Path(work) / "ws") as workspace:
        dataset: Dataset = workspace.create_dataset("lookalikes", place, "gist")
        for level in DUPLICATE_LEVELS:
            yield f"{level:g}", [sorted(group.file_names) for group in dataset.duplicates(level)]


def _joined(place: Path) -> dict[str, list[tuple[str, str]]]:
    """Return the pairs of images that are in one group, by level."""
    return {level: [pair for group in groups for pair in combinations(group, 2)] for level, groups in _grouped(place)}


def _found(place: Path) -> dict[str, tuple[int, int]]:
    """Return, by level, the numbers of edited images in a group with their original: with nothing else, and at all."""
    found: dict[str, tuple[int, int]] = {}
    for level, groups in _grouped(place):
        alone = together = 0
        for group in groups:
            originals = {Path(name).stem for name in group if "__" not in name}
            edited = {name.split("__")[0] for name in group if "__" in name}
            together += len(edited & originals)
            alone += len(group) == 2 and edited == originals
        found[level] = alone, together
    return found


def _near(options: argparse.Namespace, name: str) -> dict[str, Any]:
    """Return, for each kind of near pictures and level, the joined pairs of one scene, and of different scenes."""
    if not options.scenes:
        return {}
    paths = half(options.data, name)[: options.scenes]
    photos = [np.asarray(original(Image.open(path))) for path in paths]
    rows: dict[str, Any] = {}
    for kind in NEAR:
        with tempfile.TemporaryDirectory(prefix="bench-") as work:
            place = Path(work)
            for number, pixels in enumerate(near(kind, photos, SEEDS[name])):
                _save(Image.fromarray(pixels), place / f"s{number // SET:03d}_{number % SET:03d}.jpg", QUALITY)
            rows[kind] = {"pairs": len(photos) * SET * (SET - 1) // 2, "of_one": {}, "of_others": {}}
            for level, pairs in _joined(place).items():
                same = sum(a.split("_")[0] == b.split("_")[0] for a, b in pairs)
                rows[kind]["of_one"][level], rows[kind]["of_others"][level] = same, len(pairs) - same
    return rows


def _print(
    name: str, rows: Mapping[str, dict[str, Any]], close: Mapping[str, dict[str, Any]], options: argparse.Namespace
) -> None:
    levels = [f"{level:g}" for level in DUPLICATE_LEVELS]
    if rows:
        print(f"\nDifferent pictures that are joined, {name} half ({options.count} pictures of a kind): pairs by level")
        shown = [(kind, row["pairs"], *row["joined"].values()) for kind, row in rows.items()]
        print(table(("kind", "pairs", *levels), shown))
        print(
            verdict(
                "joined pairs at any level", sum(row["joined"][levels[0]] for row in rows.values()), 0, at_most=True
            )
        )
    if rows and options.edits:
        print(
            f"\nRecall of edited pictures at level {levels[0]} / share with their original, alone or not, {name} half"
        )
        means = [float(np.mean([row["recall"][edit][levels[0]] for row in rows.values()])) for edit in options.edits]
        cells = [
            [
                f"{row['recall'][edit][levels[0]]:.2f} / {row['with_original'][edit][levels[0]]:.2f}"
                for edit in options.edits
            ]
            for row in rows.values()
        ]
        print(table(("kind", *options.edits), [(kind, *each) for kind, each in zip(rows, cells, strict=True)]))
        for edit, mean in zip(options.edits, means, strict=True):
            print(verdict(f"recall of {edit}", mean, AIM))
    if close:
        print(f"\nNear pictures joined as copies, {name} half: pairs of one scene / of different ones, by level")
        shown = [
            (kind, row["pairs"], *(f"{row['of_one'][level]} / {row['of_others'][level]}" for level in levels))
            for kind, row in close.items()
        ]
        print(table(("kind", "pairs of one scene", *levels), shown))


def _sheet(data: Path, name: str, chosen: Sequence[str], folder: Path) -> None:
    """Draw six pictures of each kind of a half, four of the first template and two of the second."""
    side, places = 260, (0, 1, 3, 4, SET, SET + 1)
    photos = [np.asarray(original(Image.open(path))) for path in half(data, name)[:2]]
    rows = {kind: pictures(kind, SET + 2, SEEDS[name]) for kind in chosen}
    rows |= {kind: near(kind, photos, SEEDS[name]) for kind in NEAR}
    sheet = Image.new("RGB", (side * len(places), side * len(rows)), (128, 128, 128))
    for row, made in enumerate(rows.values()):
        for column, place in enumerate(places):
            image = Image.fromarray(made[place])
            image.thumbnail((side - 6, side - 6), Image.Resampling.LANCZOS)
            sheet.paste(image, (column * side, row * side))
    folder.mkdir(parents=True, exist_ok=True)
    sheet.save(folder / f"lookalikes-{name}.png")


if __name__ == "__main__":
    main()
