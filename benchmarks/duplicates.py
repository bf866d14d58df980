"""Near-duplicates: precision and recall of Framedex's ``gist`` beside imagededup's PHash, on the same files.

First the test images that come with families of edits, against the truth of their file names. Then eleven edits of
200 photos, with all other photos as distractors: each pair of files that come from one photo should be found, and no
other. Photos of one scene that the collections themselves hold count as errors in the raw figure, and are listed.
"""

import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse
from PIL import Image, ImageEnhance
from scipy.sparse.csgraph import connected_components

from common import (
    PHOTO_FOLDERS,
    RESULTS,
    arguments,
    environment,
    photos,
    ratio,
    require,
    run_worker,
    save,
    table,
    verdict,
)
from framedex import Dataset, Workspace
from framedex.records import DUPLICATE_LEVELS

SEED = 20240229
LEVEL = 0.96
PRECISION, RECALL = 0.99, 0.90
DISTANCES = range(13)  # of 64-bit hashes
DEFAULT_DISTANCE = 10  # imagededup's
FAMILY_FOLDERS = ("base_images", "mixed_images", "mixed_nested_images", "formats_images", "bridge-mods", "rotations")
FLIPPED = ("hflip", "flip", "rotat", "corrupt")  # in the names of images that are not expected to be found
# Pairs of originals that show one scene, as seen by eye among those that this benchmark lists.
SAME_SCENE = frozenset({("191003285_edd8d0cf58", "191003287_2915c11d8e")})  # two moments of one scene and camera
Mask = npt.NDArray[np.bool_]
Edit = Callable[[Image.Image], Image.Image]


def _same(image: Image.Image) -> Image.Image:
    return image


def _scaled(factor: float) -> Edit:
    return lambda image: image.resize((round(image.width * factor), round(image.height * factor)))


def _brighter(factor: float) -> Edit:
    return lambda image: ImageEnhance.Brightness(image).enhance(factor)


def _grey(image: Image.Image) -> Image.Image:
    return image.convert("L")


def _cropped(share: float) -> Edit:
    """Return an edit that cuts a share of the width and of the height off, half of it on each side."""

    def crop(image: Image.Image) -> Image.Image:
        x, y = round(image.width * share / 2), round(image.height * share / 2)
        return image.crop((x, y, image.width - x, image.height - y))

    return crop


# name: (edit, file suffix, quality)
EDITS: dict[str, tuple[Edit, str, int]] = {
    "half": (_scaled(0.5), ".jpg", 95),
    "double": (_scaled(2), ".jpg", 95),
    "jpeg30": (_same, ".jpg", 30),
    "jpeg60": (_same, ".jpg", 60),
    "jpeg90": (_same, ".jpg", 90),
    "png": (_same, ".png", 0),
    "webp": (_same, ".webp", 80),
    "brighter20": (_brighter(1.2), ".jpg", 95),
    "darker20": (_brighter(0.8), ".jpg", 95),
    "grey": (_grey, ".jpg", 95),
    "crop5": (_cropped(0.05), ".jpg", 95),
}
ORIGINAL = "original"


def main() -> None:
    """Measure, print and write."""
    parser = arguments(__doc__)
    parser.add_argument("--sources", type=int, default=200, help="photos that are edited, half of each collection")
    parser.add_argument("--distractors", type=int, default=None, help="at most so many unedited photos beside them")
    options = parser.parse_args()
    families = require(options.data, "duplicates")
    chosen, rest = _chosen(photos(options.data), options.sources)
    python = environment(options.peers, "imagededup")
    with tempfile.TemporaryDirectory(prefix="bench-duplicates-") as folder:
        on_families = _on_families(families, Path(folder) / "families")
        edited = _make_edits(chosen, rest[: options.distractors], Path(folder) / "edited")
        on_edits = _on_edits(python, edited)
    save("duplicates", {"families": on_families, "edits": on_edits})


# --- families -------------------------------------------------------------------------------------------------------


def _on_families(source: Path, folder: Path) -> dict[str, Any]:
    """Report what is found among the families of images, against the truth of their names."""
    folder.mkdir()
    for sub in (*FAMILY_FOLDERS, "."):
        for path in _files(source / sub, deep=sub != "."):
            shutil.copyfile(path, folder / "__".join(path.relative_to(source).parts))
    with tempfile.TemporaryDirectory() as work, Workspace(work) as workspace:
        found = _look(workspace.create_dataset("families", folder, encoder="gist"))
    family = np.unique([_family(name) for name in found.names], return_inverse=True)[1]
    same = family[:, None] == family[None, :]
    labels = found.groups[DUPLICATE_LEVELS.index(LEVEL)]
    figures = _figures(_grouped(labels), same)
    expected = np.array([not any(word in name for word in FLIPPED) for name in found.names])
    figures["recall_without_flips"] = _recall(_grouped(labels), same & expected[:, None] & expected[None, :])
    print(f"Families of images by file name: {len(found.names)} files that can be read, groups at {LEVEL}")
    print(table(["pairs found", "precision", "recall", "recall without flips and rotations"], [_family_row(figures)]))
    groups, missed = _family_groups(found, labels), _family_missed(found, labels, family)
    for group in groups:
        print("  group:", ", ".join(group))
    print("Missed members, with the similarity to the nearest of their family:")
    print(table(["file", "similarity"], missed))
    wrong = list(_wrong_pairs(found.names, found.similarity, _grouped(labels) & ~same))
    print(f"Pairs of different families in one group: {len(wrong)}")
    return {**figures, "groups": groups, "missed": missed, "wrong": wrong}


def _files(folder: Path, *, deep: bool) -> list[Path]:
    return sorted(path for path in (folder.rglob("*") if deep else folder.iterdir()) if path.is_file())


def _family(name: str) -> str:
    """Return what an image was made from, by its name."""
    folder, _, rest = name.rpartition("__")
    if name.startswith("alpha_channel_image"):
        return "ukbench00120"
    return "bridge" if folder in ("bridge-mods", "rotations") else rest.partition(".")[0].partition("_")[0]


def _family_row(figures: dict[str, Any]) -> list[Any]:
    return [figures[key] for key in ("found", "precision", "recall", "recall_without_flips")]


def _family_groups(found: "Found", labels: npt.NDArray[np.int64]) -> list[list[str]]:
    return [[found.names[row] for row in np.flatnonzero(labels == number)] for number in np.unique(labels[labels >= 0])]


def _family_missed(found: "Found", labels: npt.NDArray[np.int64], family: npt.NDArray[Any]) -> list[list[Any]]:
    """Return the files that share no group with most of their family, and how near they come to any of it."""
    missed: list[list[Any]] = []
    for number in np.unique(family):
        rows = np.flatnonzero(family == number)
        if len(rows) < 2:
            continue
        near = found.similarity[np.ix_(rows, rows)] - 4 * np.eye(len(rows), dtype=np.float32)
        grouped = labels[rows][labels[rows] >= 0]
        most = np.bincount(grouped).argmax() if len(grouped) else -2
        outside = np.flatnonzero(labels[rows] != most)
        missed.extend([found.names[rows[place]], float(near[place].max())] for place in outside)
    return missed


# --- edits ----------------------------------------------------------------------------------------------------------


def _chosen(paths: Sequence[Path], count: int) -> tuple[list[Path], list[Path]]:
    """Return (photos to be edited, half of each collection and chosen by chance; the others)."""
    random = np.random.default_rng(SEED)
    chosen: set[Path] = set()
    for folder in PHOTO_FOLDERS:
        mine = [path for path in paths if path.parent.name == Path(folder).name]
        chosen |= {mine[place] for place in random.choice(len(mine), count // 2, replace=False)}
    return [path for path in paths if path in chosen], [path for path in paths if path not in chosen]


def _make_edits(chosen: Sequence[Path], rest: Sequence[Path], folder: Path) -> Path:
    """Write the edits, and link the originals beside them."""
    folder.mkdir()
    for path in (*chosen, *rest):
        (folder / f"{path.stem}~{ORIGINAL}{path.suffix}").symlink_to(path)
    with ThreadPoolExecutor(2) as pool:
        for _ in pool.map(lambda path: _edit_all(path, folder), chosen):
            pass
    return folder


def _edit_all(path: Path, folder: Path) -> None:
    with Image.open(path) as opened:
        image = opened.convert("RGB")
    for name, (edit, suffix, quality) in EDITS.items():
        edit(image).save(folder / f"{path.stem}~{name}{suffix}", **({"quality": quality} if quality else {}))


@dataclass(frozen=True)
class Found:
    """What a tool finds among files.

    Attributes:
        names: the files.
        similarity: shape (N, N); for PHash the negated distance, where it is small enough to be known.
        groups: shape (levels, N): numbers of groups; -1 for files without duplicates.
    """

    names: list[str]
    similarity: npt.NDArray[np.float32]
    groups: npt.NDArray[np.int64]


def _look(dataset: Dataset) -> Found:
    ids, vectors = dataset.embeddings()
    listed = dataset.to_arrow(["media_id", "image_filename"]).to_pydict()
    name_of = dict(zip(listed["media_id"], listed["image_filename"], strict=True))
    place = {media_id: row for row, media_id in enumerate(ids)}
    groups = np.full((len(DUPLICATE_LEVELS), len(ids)), -1, dtype=np.int64)
    for level, threshold in enumerate(DUPLICATE_LEVELS):
        for number, group in enumerate(dataset.duplicates(threshold)):
            groups[level, [place[media_id] for media_id in group.media_ids]] = number
    return Found([name_of[media_id] for media_id in ids], vectors @ vectors.T, groups)


def _hashed(answer: dict[str, Any], names: Sequence[str]) -> Found:
    """Return PHash's pairs for the same files, in the same order; groups are connected pairs, by distance."""
    place = {name: row for row, name in enumerate(names)}
    if set(place) != set(answer["names"]):
        raise SystemExit("imagededup and Framedex did not read the same files")
    similarity = np.full((len(names), len(names)), -65, dtype=np.float32)
    for name, other, distance in answer["pairs"]:
        similarity[place[name], place[other]] = similarity[place[other], place[name]] = -distance
    np.fill_diagonal(similarity, 0)
    groups = [
        connected_components(scipy.sparse.coo_array(similarity >= -distance), directed=False)[1]
        for distance in DISTANCES
    ]
    return Found(list(names), similarity, np.array(groups, dtype=np.int64))


def _on_edits(python: Path, folder: Path) -> dict[str, Any]:
    """Measure both tools on a folder of edits."""
    with tempfile.TemporaryDirectory() as work, Workspace(work) as workspace:
        gist = _look(workspace.create_dataset("edits", folder, encoder="gist"))
    phash = _hashed(run_worker(python, "phash_pairs", folder).result, gist.names)
    sources = np.unique([_source(name) for name in gist.names], return_inverse=True)[1]
    same = sources[:, None] == sources[None, :]
    like = same | _same_scene(gist.names)
    edited = len(gist.names) - len(set(sources.tolist()))
    print(
        f"\n{len(gist.names):,} files: {edited // len(EDITS)} photos with {len(EDITS)} edits each, the others unedited"
    )
    levels = {
        "gist": [(f"{level}", _figures_at(gist, level - 1e-6, place, same, like)) for place, level in _levels()],
        "phash": [(f"≤ {bits}", _figures_at(phash, -bits, bits, same, like)) for bits in DISTANCES],
    }
    for name, title in (("gist", "Framedex gist, by similarity"), ("phash", "imagededup PHash, by distance in bits")):
        _print_levels(title, levels[name])
    by_edit = _by_edit(gist, phash)
    _print_by_edit(by_edit)
    lookalikes = _lookalikes(gist, phash)
    _print_lookalikes(lookalikes)
    _print_verdicts(levels)
    _plot(levels)
    return {"files": len(gist.names), "levels": levels, "recall_by_edit": by_edit, "originals_alike": lookalikes}


def _levels() -> Iterable[tuple[int, float]]:
    return enumerate(DUPLICATE_LEVELS)


def _source(name: str) -> str:
    return name.partition("~")[0]


def _is_original(name: str) -> bool:
    return name.partition("~")[2].startswith(ORIGINAL)


def _same_scene(names: Sequence[str]) -> Mask:
    """Return which pairs of files come from two photos of one scene."""
    sources = np.array([_source(name) for name in names])
    mask = np.zeros((len(names), len(names)), dtype=bool)
    for one, other in SAME_SCENE:
        mask |= (sources == one)[:, None] & (sources == other)[None, :]
    return mask | mask.T


def _figures_at(found: Found, least: float, place: int, same: Mask, like: Mask) -> dict[str, dict[str, float]]:
    """Return the figures of pairs, and of groups, at one threshold."""
    pairs, grouped = found.similarity >= least, _grouped(found.groups[place])
    return {
        "pairs": {**_figures(pairs, same), "precision_scene": _figures(pairs, like)["precision"]},
        "groups": {**_figures(grouped, same), "precision_scene": _figures(grouped, like)["precision"]},
    }


def _grouped(labels: npt.NDArray[np.int64]) -> Mask:
    return (labels[:, None] == labels[None, :]) & (labels >= 0)[:, None]


def _count(mask: Mask) -> int:
    """Return the number of unordered pairs of different rows."""
    return (int(mask.sum()) - int(np.diagonal(mask).sum())) // 2


def _figures(predicted: Mask, truth: Mask) -> dict[str, float]:
    found = _count(predicted)
    return {"found": found, "precision": ratio(_count(predicted & truth), found), "recall": _recall(predicted, truth)}


def _recall(predicted: Mask, truth: Mask) -> float:
    return ratio(_count(predicted & truth), _count(truth))


def _by_edit(gist: Found, phash: Found) -> dict[str, dict[str, Any]]:
    """Return for each edit the shares of edited files that are found together with their original."""
    original = {_source(name): row for row, name in enumerate(gist.names) if _is_original(name)}
    group = gist.groups[DUPLICATE_LEVELS.index(LEVEL)]
    shares = {}
    for edit in EDITS:
        rows = [row for row, name in enumerate(gist.names) if Path(name.partition("~")[2]).stem == edit]
        firsts = [original[_source(gist.names[row])] for row in rows]
        similarity = gist.similarity[rows, firsts]
        shares[edit] = {
            "gist_pairs": float((similarity >= LEVEL - 1e-6).mean()),
            "gist_groups": float(((group[rows] == group[firsts]) & (group[rows] >= 0)).mean()),
            "phash_pairs": float((phash.similarity[rows, firsts] >= -DEFAULT_DISTANCE).mean()),
            "gist_least_similarity": float(similarity.min()),
            "least_similar": _source(gist.names[rows[int(similarity.argmin())]]),
        }
    return shares


def _lookalikes(gist: Found, phash: Found) -> list[dict[str, Any]]:
    """Return the pairs of different originals that either tool calls duplicates, for a look."""
    rows = np.array([row for row, name in enumerate(gist.names) if _is_original(name)])
    close = (gist.similarity >= LEVEL - 1e-6) | (phash.similarity >= -DEFAULT_DISTANCE)
    first, second = np.nonzero(np.triu(close[np.ix_(rows, rows)], 1))
    pairs = [
        {
            "one": _source(gist.names[rows[a]]),
            "other": _source(gist.names[rows[b]]),
            "similarity": float(gist.similarity[rows[a], rows[b]]),
            "phash_distance": _distance(phash.similarity[rows[a], rows[b]]),
        }
        for a, b in zip(first, second, strict=True)
    ]
    return sorted(pairs, key=lambda pair: -pair["similarity"])


def _distance(similarity: float) -> int | None:
    return None if similarity < -DISTANCES[-1] else int(-similarity)


def _wrong_pairs(names: Sequence[str], similarity: npt.NDArray[np.float32], wrong: Mask) -> Iterator[list[Any]]:
    for a, b in np.argwhere(np.triu(wrong, 1)):
        yield [names[a], names[b], float(similarity[a, b])]


def _print_levels(title: str, levels: Sequence[tuple[str, dict[str, dict[str, float]]]]) -> None:
    print(f"\n{title}")
    headers = [
        "threshold",
        "pairs",
        "precision",
        "precision*",
        "recall",
        "in groups",
        "precision",
        "precision*",
        "recall",
    ]
    keys = ("found", "precision", "precision_scene", "recall")
    print(
        table(
            headers, [[name, *(each[way][key] for way in ("pairs", "groups") for key in keys)] for name, each in levels]
        )
    )
    print("* pairs of photos that show one scene counted as right")


def _print_by_edit(shares: dict[str, dict[str, Any]]) -> None:
    print(f"\nShare of the edited files found with their original: gist at {LEVEL}, PHash at {DEFAULT_DISTANCE} bits")
    headers = ["edit", "gist pairs", "gist groups", "PHash pairs", "least similarity", "of"]
    print(table(headers, [[edit, *each.values()] for edit, each in shares.items()]))


def _print_lookalikes(pairs: Sequence[dict[str, Any]]) -> None:
    print(f"\nPairs of different photos that either calls duplicates, for a look: {len(pairs)}")
    rows = [
        [pair["one"], pair["other"], pair["similarity"], pair["phash_distance"], "yes" if _is_scene(pair) else ""]
        for pair in pairs[:40]
    ]
    print(table(["photo", "other photo", "gist", "PHash bits", "one scene"], rows))


def _is_scene(pair: dict[str, Any]) -> bool:
    return bool({(pair["one"], pair["other"]), (pair["other"], pair["one"])} & SAME_SCENE)


def _print_verdicts(levels: dict[str, list[tuple[str, dict[str, dict[str, float]]]]]) -> None:
    figures = dict(levels["gist"])[str(LEVEL)]
    print()
    for way, each in figures.items():
        print(verdict(f"precision of {way} at {LEVEL}, raw", each["precision"], PRECISION))
        print(verdict(f"precision of {way} at {LEVEL}, scenes right", each["precision_scene"], PRECISION))
        print(verdict(f"recall of {way} at {LEVEL}", each["recall"], RECALL))


def _plot(levels: dict[str, list[tuple[str, dict[str, dict[str, float]]]]]) -> None:
    """Draw precision over recall, where matplotlib is installed."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return
    figure = Figure(figsize=(7, 5), layout="constrained")
    axes = figure.add_subplot(xlabel="recall", ylabel="precision", title="Pairs of near-duplicates")
    for name, label in (("gist", "Framedex gist"), ("phash", "imagededup PHash")):
        points = [(text, each["pairs"]["recall"], each["pairs"]["precision"]) for text, each in levels[name]]
        axes.plot([point[1] for point in points], [point[2] for point in points], marker="o", label=label)
        for text, x, y in points:
            axes.annotate(text, (x, y), fontsize=7)
    axes.legend()
    RESULTS.mkdir(exist_ok=True)
    figure.savefig(RESULTS / "duplicates.png", dpi=120)


if __name__ == "__main__":
    main()
