"""Issues side by side: Framedex's flags against CleanVision's, on the photos and on bad images made from them.

The bad images are made with parameters spread so that some fall close to the limits. Both tools use their defaults.
CleanVision's flags count as the truth, which makes precision and recall figures of agreement. Blur, exposure,
information and size are measured otherwise on purpose; quality/blur.py compares them with what was done to the images.

Two known differences of definition are told apart. CleanVision calls grey only what is stored with one channel,
Framedex what looks grey, so that grey images stored as RGB count too. And duplicates are equal perceptual hashes
there, but similar descriptors here, which many of the edits keep: these flags are therefore also compared on a folder
without other edits than copies.
"""

import shutil
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageFilter, ImageOps

from common import arguments, environment, link_all, photos, ratio, run_worker, save, table, verdict
from framedex import Dataset, Workspace
from framedex.issue_types import IssueType, find_issue_type
from framedex.operations.context import open_media

AIM = 0.95
SEED = 20240229
QUALITY = 95
GREY = 3  # largest difference of channels, in grey levels, of an image that looks grey
Pixels = npt.NDArray[np.uint8]
Random = np.random.Generator


@dataclass(frozen=True)
class Kind:
    """An issue that both tools find.

    Attributes:
        name: in Framedex.
        peers: in CleanVision; any of them.
        reverse: CleanVision's score is 1 - the value.
    """

    name: str
    peers: tuple[str, ...]
    reverse: bool = False

    @property
    def rule(self) -> IssueType:
        """Framedex's rule: the value that it looks at, and its limit."""
        return find_issue_type(self.name)


KINDS = (
    Kind("dark", ("dark",)),
    Kind("odd_aspect_ratio", ("odd_aspect_ratio",)),
    Kind("grayscale", ("grayscale",)),
    Kind("duplicates", ("near_duplicates", "exact_duplicates")),
)
BY_PIXELS = ("grayscale",)  # kinds that differ by definition for grey images stored as RGB


@dataclass(frozen=True)
class Recipe:
    """How to make bad images.

    Attributes:
        make: (image, strength, random numbers) to an image.
        strengths: used in turn.
        versions: made of each photo.
        every: only each n-th photo is used.
        suffixes: formats, used in turn.
    """

    make: Callable[[Image.Image, float, Random], Image.Image]
    strengths: tuple[float, ...]
    versions: int = 2
    every: int = 1
    suffixes: tuple[str, ...] = (".jpg",)


def _blurred(image: Image.Image, strength: float, _: Random) -> Image.Image:
    """Blur by a Gaussian whose deviation is so many 64ths of the longer side."""
    return image.filter(ImageFilter.GaussianBlur(strength * max(image.size) / 64))


def _dark(image: Image.Image, strength: float, _: Random) -> Image.Image:
    return image.point(lambda value: value * strength)


def _bright(image: Image.Image, strength: float, _: Random) -> Image.Image:
    """Leave so large a share of each value's distance to white."""
    return image.point(lambda value: 255 - (255 - value) * strength)


def _flat(image: Image.Image, strength: float, random: Random) -> Image.Image:
    """Return one colour with noise of a standard deviation."""
    colour = random.integers(20, 236, 3)
    noise = random.normal(0, strength, (image.height, image.width, 3))
    return Image.fromarray(np.clip(np.rint(colour + noise), 0, 255).astype(np.uint8))


def _posterised(image: Image.Image, strength: float, _: Random) -> Image.Image:
    """Leave so many levels of each channel."""
    return image.point(lambda value: int(value * strength / 256) * 255 / (strength - 1))


def _narrow(image: Image.Image, strength: float, random: Random) -> Image.Image:
    """Cut out the whole width or height, the other side being so large a share of it."""
    if random.random() < 0.5:
        height = max(1, round(min(image.height, image.width * strength)))
        return image.crop((0, 0, min(image.width, round(height / strength)), height))
    width = max(1, round(min(image.width, image.height * strength)))
    return image.crop((0, 0, width, min(image.height, round(width / strength))))


def _sized(image: Image.Image, strength: float, _: Random) -> Image.Image:
    """Scale to a square root of the area, in pixels."""
    factor = strength / (image.width * image.height) ** 0.5
    return image.resize((max(1, round(image.width * factor)), max(1, round(image.height * factor))))


def _grey(image: Image.Image, _strength: float, _: Random) -> Image.Image:
    return image.convert("L")


def _grey_rgb(image: Image.Image, _strength: float, _: Random) -> Image.Image:
    return image.convert("L").convert("RGB")


RECIPES = {
    "blur": Recipe(_blurred, (0.2, 0.35, 0.5, 0.7, 1.0, 1.5, 2.5), versions=3),
    "dark": Recipe(_dark, (0.05, 0.1, 0.2, 0.25, 0.3, 0.33, 0.36, 0.4, 0.5)),
    "bright": Recipe(_bright, (0.01, 0.03, 0.05, 0.06, 0.07, 0.09, 0.12, 0.25)),
    "flat": Recipe(_flat, (0.0, 0.3, 0.5, 0.6, 0.65, 0.7, 0.8, 1.2, 2.0), suffixes=(".png", ".jpg")),
    "posterised": Recipe(_posterised, (2, 3, 4, 5, 6, 8), suffixes=(".png", ".png", ".jpg"), versions=1),
    "narrow": Recipe(_narrow, (0.15, 0.25, 0.3, 0.33, 0.345, 0.355, 0.37, 0.4, 0.5), versions=1),
    "sized": Recipe(_sized, (16, 32, 60, 800, 1000, 1200, 1300, 1500, 2000), versions=1, every=3),
    "grey": Recipe(_grey, (1,), versions=1, suffixes=(".jpg", ".png")),
    "greyrgb": Recipe(_grey_rgb, (1,), versions=1, suffixes=(".jpg", ".png")),
}


def main() -> None:
    """Make the images, let both tools judge them, print and write how far they agree."""
    parser = arguments(__doc__)
    parser.add_argument("--sources", type=int, default=200, help="photos that bad images are made from")
    parser.add_argument("--shown", type=int, default=12, help="differences of each kind that are printed")
    options = parser.parse_args()
    originals = photos(options.data)
    python = environment(options.peers, "cleanvision")
    random = np.random.default_rng(SEED)
    sources = [originals[place] for place in np.sort(random.choice(len(originals), options.sources, replace=False))]
    result: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="bench-issues-") as folder:
        bad = link_all(originals, Path(folder) / "bad")
        _make_bad(sources, bad)
        result["photos_and_bad"] = _compare_folder(python, bad, options.shown, KINDS)
        copies = link_all(originals, Path(folder) / "copies")
        _make_copies(sources, copies)
        result["photos_and_copies"] = _compare_folder(python, copies, options.shown, KINDS[-1:])
    _print_verdicts(result)
    save("issues", result)


def _make_bad(sources: list[Path], folder: Path) -> None:
    """Write all recipes' images, and copies, of the sources."""
    with ThreadPoolExecutor(2) as pool:
        for _ in pool.map(lambda numbered: _make_all(*numbered, folder), enumerate(sources)):
            pass
    _make_copies(sources[::4], folder)


def _make_all(number: int, source: Path, folder: Path) -> None:
    random = np.random.default_rng((SEED, number))
    with Image.open(source) as opened:
        image = ImageOps.exif_transpose(opened).convert("RGB")
    for name, recipe in RECIPES.items():
        if number % recipe.every:
            continue
        first = number // recipe.every * recipe.versions
        for place in range(first, first + recipe.versions):
            strength = recipe.strengths[place % len(recipe.strengths)]
            # Formats change once all strengths had their turn, so that each strength meets each format.
            suffix = recipe.suffixes[place // len(recipe.strengths) % len(recipe.suffixes)]
            made = recipe.make(image, strength, random)
            made.save(folder / f"{name}~{strength:g}~{source.stem}{suffix}", quality=QUALITY)


def _make_copies(sources: list[Path], folder: Path) -> None:
    """Write an exact copy of each source and one that was compressed again."""
    for place, source in enumerate(sources):
        shutil.copyfile(source, folder / f"copy~exact~{source.stem}{source.suffix}")
        quality = (60, 75, 85, 95)[place % 4]
        with Image.open(source) as image:
            image.convert("RGB").save(folder / f"copy~q{quality}~{source.stem}.jpg", quality=quality)


@dataclass(frozen=True)
class Judged:
    """What a tool says of each file, for one kind of issue: by file name (value, whether it is an issue)."""

    values: dict[str, float]
    flagged: frozenset[str]


def _compare_folder(python: Path, folder: Path, shown: int, kinds: tuple[Kind, ...]) -> dict[str, Any]:
    """Compare both tools' flags on a folder; print and return the figures and the differences."""
    answer = run_worker(python, "cleanvision_scores", folder).result
    with tempfile.TemporaryDirectory(prefix="bench-") as work, Workspace(work) as workspace:
        dataset = workspace.create_dataset("issues", folder, encoder="gist")
        ours = {kind.name: judged for kind, judged in zip(kinds, _ours(dataset, kinds), strict=True)}
    theirs = {kind.name: _theirs(answer, kind) for kind in kinds}
    names = sorted(answer["names"])
    grey = frozenset(_grey_stored_as_colour(folder, names))
    found = {kind.name: _agreement(kind, names, ours[kind.name], theirs[kind.name], grey) for kind in kinds}
    print(f"\n{len(names):,} images in the folder {folder.name!r}; CleanVision's flags as the truth")
    _print_agreement(found)
    for kind in kinds:
        _print_differences(kind, found[kind.name]["differences"], shown)
    return {"images": len(names), "kinds": found}


def _ours(dataset: Dataset, kinds: tuple[Kind, ...]) -> Iterator[Judged]:
    media = open_media(dataset._context, dataset.id)
    for kind in kinds:
        columns = media.table.scan(["path", kind.rule.column, f"issue_{kind.name}"]).read_all().to_pydict()
        names = columns["path"]
        values = {name: _number(value) for name, value in zip(names, columns[kind.rule.column], strict=True)}
        flags = zip(names, columns[f"issue_{kind.name}"], strict=True)
        yield Judged(values, frozenset(name for name, sure in flags if sure is not None))


def _number(value: float | None) -> float:
    return float("nan") if value is None else float(value)


def _theirs(answer: dict[str, Any], kind: Kind) -> Judged:
    names, columns = answer["names"], answer["columns"]
    scores = columns[f"{kind.peers[0]}_score"]
    values = {name: 1 - score if kind.reverse else score for name, score in zip(names, scores, strict=True)}
    flagged = {
        name for peer in kind.peers for name, flag in zip(names, columns[f"is_{peer}_issue"], strict=True) if flag
    }
    return Judged(values, frozenset(flagged))


def _grey_stored_as_colour(folder: Path, names: list[str]) -> Iterator[str]:
    """Yield the names of the images that look grey and are stored with more than one channel."""
    for name in names:
        with Image.open(folder / name) as image:
            if image.mode == "L":
                continue
            pixels = np.asarray(image.convert("RGB"))
        spread = pixels.max(axis=2) - pixels.min(axis=2)
        if np.percentile(spread, 99) <= GREY:
            yield name


def _agreement(kind: Kind, names: list[str], ours: Judged, theirs: Judged, grey: frozenset[str]) -> dict[str, Any]:
    """Return precision and recall, raw and without explained files, how far values differ, and the differences."""
    explained = grey if kind.name in BY_PIXELS else frozenset()
    different = sorted(ours.flagged ^ theirs.flagged)
    found = {
        "cleanvision": len(theirs.flagged),
        "framedex": len(ours.flagged),
        **_precision_recall(ours.flagged, theirs.flagged),
        **{
            f"explained_{key}": value
            for key, value in _precision_recall(ours.flagged - explained, theirs.flagged - explained).items()
        },
    }
    if kind.name not in ("grayscale", "duplicates"):  # CleanVision has no value for these, or another quantity
        differences = np.array(
            [abs(min(ours.values[name], 1) - theirs.values[name]) for name in names if name not in explained]
        )
        found |= {
            "typical_difference": float(np.median(differences)),
            "p99_difference": float(np.quantile(differences, 0.99)),
        }
    found["differences"] = [
        {
            "file": name,
            "framedex_value": ours.values[name],
            "cleanvision_value": theirs.values[name],
            "flagged_by": "framedex" if name in ours.flagged else "cleanvision",
            "explained": name in explained,
        }
        for name in different
    ]
    return found


def _precision_recall(ours: frozenset[str], theirs: frozenset[str]) -> dict[str, float]:
    both = len(ours & theirs)
    return {"precision": ratio(both, len(ours)), "recall": ratio(both, len(theirs))}


def _print_agreement(found: dict[str, dict[str, Any]]) -> None:
    headers = [
        "kind",
        "CleanVision",
        "Framedex",
        "precision",
        "recall",
        "precision*",
        "recall*",
        "differ",
        "Δ50",
        "Δ99",
    ]
    keys = ("cleanvision", "framedex", "precision", "recall", "explained_precision", "explained_recall")
    rows = [
        [
            name,
            *(each[key] for key in keys),
            len(each["differences"]),
            each.get("typical_difference"),
            each.get("p99_difference"),
        ]
        for name, each in found.items()
    ]
    print(table(headers, rows))
    print("* without grey images stored as RGB; Δ50, Δ99: median and 99th percentile of how far the values differ")


def _print_differences(kind: Kind, differences: list[dict[str, Any]], shown: int) -> None:
    if not differences:
        return
    explained = sum(each["explained"] for each in differences)
    print(
        f"\n{kind.name}, limit {kind.rule.threshold:.3g}: {len(differences)} differences, {explained} of them explained"
    )
    rows = [
        [each["file"][:60], each["framedex_value"], each["cleanvision_value"], each["flagged_by"]]
        for each in sorted(differences, key=lambda each: each["explained"])[:shown]
    ]
    print(table(["file", "Framedex", "CleanVision", "flagged by"], rows))


def _print_verdicts(result: dict[str, Any]) -> None:
    print()
    for name, each in result["photos_and_bad"]["kinds"].items():
        if name == "duplicates":
            each = result["photos_and_copies"]["kinds"][name]  # noqa: PLW2901 - where only copies are duplicates
        worst = min(each["precision"], each["recall"])
        print(verdict(f"{name}: lower of precision and recall, raw", worst, AIM))
        if any(difference["explained"] for difference in each["differences"]):
            worst = min(each["explained_precision"], each["explained_recall"])
            print(verdict(f"{name}: the same without explained files", worst, AIM))


if __name__ == "__main__":
    main()
