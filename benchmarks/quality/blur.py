"""Blur, exposure and lack of information: which damaged and untouched photos Framedex flags, on both halves.

The damaged versions of each photo (see damages.py) are written as JPEGs of quality 90, ingested like any folder, and
counted by the issue that they should have. CleanVision's flags at its defaults, on the same files, stand beside.
"""

import tempfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import cv2
import numpy as np
import parents  # noqa: F401
from damages import BLURRED, BRIGHT, EMPTY, MILD, Damage, fitted
from halves import FOLDERS, HALVES, half, photos_of

from common import arguments, environment, run_worker, save, table, verdict
from framedex import Workspace

# issue: CleanVision's name, the damages that it should find
ISSUES = {
    "blur": ("blurry", {**BLURRED, **MILD}),
    "bright": ("light", BRIGHT),
    "low_information": ("low_information", EMPTY),
}
AIMS = {kind: 0.8 if "," in kind else 0.95 for kind in BLURRED}  # with noise or a frame, and without
COLUMNS = ("issue", "kind", "images", "framedex", "cleanvision")
SEED, QUALITY = 14, 90
OTHERS = ("photos/microscopy", "photos/flickr8k-1000")


def write(photos: list[Path], damages: Mapping[str, Damage], folder: Path) -> None:
    """Write damaged versions of photos, each kind in a folder of its own."""
    for kind, damage in damages.items():
        random = np.random.default_rng(SEED)
        (folder / kind).mkdir(parents=True)
        for number, photo in enumerate(photos):
            pixels = fitted(cv2.imread(str(photo), cv2.IMREAD_COLOR_RGB))
            bad = cv2.cvtColor(damage(pixels, random), cv2.COLOR_RGB2BGR)
            cv2.imwrite(str(folder / kind / f"{number}-{photo.stem}.jpg"), bad, [cv2.IMWRITE_JPEG_QUALITY, QUALITY])


def link_untouched(photos: list[Path], folder: Path, source: str) -> None:
    """Link photos into a folder named after their source."""
    place = folder / f"untouched {source.removesuffix('/images').rpartition('/')[2]}"
    place.mkdir()
    for photo in photos:
        (place / photo.name).symlink_to(photo)


def flags(workspace: Workspace, name: str, folder: Path) -> tuple[Counter[str], dict[str, Counter[str]]]:
    """Return the number of images of each sub-folder, and of those with each issue."""
    dataset = workspace.create_dataset(name, folder, "gist")
    kinds = Counter(_kind(row["image_filename"]) for row in dataset.to_arrow(["image_filename"]).to_pylist())
    issues: dict[str, Counter[str]] = {}
    for row in dataset.issues().to_pylist():
        issues.setdefault(row["issue_type"], Counter())[_kind(row["path"])] += 1
    return kinds, issues


def _kind(name: str) -> str:
    return Path(name).parent.name


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--without-peers", action="store_true", help="do not run CleanVision")
    parser.add_argument("--halves", nargs="+", choices=HALVES, default=list(HALVES))
    options = parser.parse_args()
    result: dict[str, object] = {}
    for name in options.halves:
        photos = half(options.data, name)
        with tempfile.TemporaryDirectory(prefix="bench-") as work:
            folder = Path(work) / "images"
            for _, damages in ISSUES.values():
                write(photos, damages, folder)
            for source in FOLDERS:
                link_untouched(half(options.data, name, (source,)), folder, source)
            for source in OTHERS if name == HALVES[1] else ():
                link_untouched(photos_of(options.data, source), folder, source)
            with Workspace(Path(work) / "ws") as workspace:
                kinds, issues = flags(workspace, "all", folder)
            peer = {} if options.without_peers else _cleanvision(options.peers, folder)
        rows = []
        for issue, (theirs, damages) in ISSUES.items():
            for kind in [*damages, *(each for each in kinds if each.startswith("untouched"))]:
                found, count = issues.get(issue, Counter())[kind], kinds[kind]
                other = peer[theirs][kind] / count if peer else None
                rows.append((issue, kind, count, found / count, other))
        print(f"\n{name} half\n" + table(COLUMNS, rows))
        result[name] = [dict(zip(COLUMNS, row, strict=True)) for row in rows]
        if name == HALVES[1]:
            _judge(rows)
    save("quality-blur", result)


def _judge(rows: list[tuple[str, str, int, float, float | None]]) -> None:
    shares = {(issue, kind): share for issue, kind, _, share, _ in rows}
    for kind, aim in AIMS.items():
        print(verdict(f"recall of {kind}", shares["blur", kind], aim))
    untouched = [row for row in rows if row[0] == "blur" and row[1].startswith("untouched")]
    photos = [row for row in untouched if "microscopy" not in row[1]]
    false = sum(row[2] * row[3] for row in photos) / sum(row[2] for row in photos)
    print(verdict("untouched photos with the issue blur", false, 0.01, at_most=True))
    print(verdict("of the microscopy", sum(row[2] * row[3] for row in untouched if row not in photos), 1, at_most=True))


def _cleanvision(peers: Path, folder: Path) -> dict[str, Counter[str]]:
    """Return CleanVision's flags: by issue, the number of images of each sub-folder."""
    result = run_worker(environment(peers, "cleanvision"), "cleanvision_flags", folder).result
    return {issue: Counter(map(_kind, paths)) for issue, paths in result["flags"].items()}


if __name__ == "__main__":
    main()
