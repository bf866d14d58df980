"""Issues by kind of content: how many ordinary, sharp pictures of eight kinds are flagged, and how many blurred ones.

Pages, forms, masks, drawings, codes, screenshots and things on white are made from a seed (contents.py), with photos of
a half in some of them; each half has its own seed. All are written as files and ingested. Limits were chosen on the
tuning half.
"""

import tempfile
from collections import Counter
from functools import partial
from pathlib import Path

import cv2
import numpy as np
import parents  # noqa: F401
from blur import flags
from contents import KINDS, Pixels, pictures
from damages import Damage, defocus, fitted, gaussian, motion
from halves import HALVES, half

from common import arguments, save, table, verdict
from framedex import Workspace
from framedex.settings import load_settings

BLURRED: dict[str, Damage] = {
    "gaussian 3": partial(gaussian, sigma=3),
    "gaussian 5": partial(gaussian, sigma=5),
    "defocus 6": partial(defocus, radius=6),
    "motion 21": partial(motion, length=21),
}
ISSUES = ("blur", "bright", "dark", "low_information")
COLUMNS = ("kind", "pictures", *ISSUES, *BLURRED, "content")
LARGEST, QUALITY = 700, 90
OF_PHOTOS = ("photo", "product")


def write(pixels: Pixels, path: Path, *, lossy: bool) -> None:
    """Write a picture as JPEG or PNG."""
    path.parent.mkdir(parents=True, exist_ok=True)
    suffix, options = (".jpg", [cv2.IMWRITE_JPEG_QUALITY, QUALITY]) if lossy else (".png", [])
    cv2.imwrite(str(path.with_suffix(suffix)), cv2.cvtColor(pixels, cv2.COLOR_RGB2BGR), options)


def write_all(folder: Path, photos: list[Path], seed: int) -> None:
    """Write the pictures of all kinds, each in a folder of its own, and their blurred versions."""
    shown = [fitted(np.asarray(cv2.imread(str(each), cv2.IMREAD_COLOR_RGB), np.uint8), LARGEST) for each in photos]
    for kind in KINDS:
        for number, pixels in enumerate(pictures(kind, shown, seed)):
            write(pixels, folder / kind / f"{number}", lossy=kind in OF_PHOTOS)
            for name, damage in BLURRED.items():
                random = np.random.default_rng((seed, number))
                write(damage(fitted(pixels), random), folder / f"{kind} {name}" / f"{number}", lossy=True)


def rows_of(workspace: Workspace, folder: Path) -> list[tuple[object, ...]]:
    """Return a row for each kind: shares of ordinary pictures with each issue, and of blurred ones with blur."""
    counts, issues = flags(workspace, "all", folder)
    contents: dict[str, Counter[str]] = {}
    for row in workspace.dataset("all").to_arrow(["path", "content"]).to_pylist():
        contents.setdefault(Path(row["path"]).parent.name, Counter())[row["content"]] += 1

    def share(issue: str, name: str) -> float:
        return issues.get(issue, Counter())[name] / counts[name]

    return [
        (
            kind,
            counts[kind],
            *(share(issue, kind) for issue in ISSUES),
            *(share("blur", f"{kind} {name}") for name in BLURRED),
            ", ".join(f"{content} {count}" for content, count in contents[kind].most_common()),
        )
        for kind in KINDS
    ]


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--halves", nargs="+", choices=HALVES, default=list(HALVES))
    parser.add_argument("--pictures", type=int, default=150, help="of each kind, at most")
    options = parser.parse_args()
    result: dict[str, object] = {}
    for name in options.halves:
        with tempfile.TemporaryDirectory(prefix="bench-") as work:
            folder = Path(work) / "images"
            write_all(folder, half(options.data, name)[: options.pictures], seed=HALVES.index(name) + 1)
            with Workspace(
                Path(work) / "ws", settings=load_settings().model_copy(update={"copy_budget_ms": 0})
            ) as workspace:
                rows = rows_of(workspace, folder)
        print(f"\n{name} half\n" + table(COLUMNS, rows))
        result[name] = [dict(zip(COLUMNS, row, strict=True)) for row in rows]
        for kind, _, *shares, _ in rows:
            values = [float(str(each)) for each in shares]
            for issue, value in zip(ISSUES, values, strict=False):
                if issue != "dark":
                    print(verdict(f"{name}: {kind} with the issue {issue}", value, 0.01, at_most=True))
            print(verdict(f"{name}: blurred {kind} found", float(np.mean(values[len(ISSUES) :])), 0.95))
    save("quality-content", result)


if __name__ == "__main__":
    main()
