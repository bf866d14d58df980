"""A small dataset with known issues and duplicates: sample photographs of installed libraries, and edits of them."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from framedex.api.dataset import Dataset
from framedex.api.workspace import Workspace
from framedex.core.arrays import Pixels
from framedex.errors import Conflict, MissingDependency
from framedex.render import html

DATASET = "demo"
_SKIMAGE = {
    "astronaut": "people",
    "brick": "texture",
    "camera": "people",
    "chelsea": "animal",
    "coffee": "food",
    "coins": "objects",
    "grass": "texture",
    "gravel": "texture",
    "hubble_deep_field": "sky",
    "immunohistochemistry": "microscope",
    "moon": "sky",
    "page": "text",
    "retina": "medical",
    "rocket": "machine",
    "text": "text",
}
_SKLEARN = {"china.jpg": "building", "flower.jpg": "plant"}
_GREY = ("brick", "camera", "coins", "grass", "gravel", "moon", "page", "text")
_BLURRED = ("astronaut", "chelsea", "coffee", "coins", "flower", "rocket")
_DARKENED = ("china", "flower", "hubble_deep_field", "immunohistochemistry")
_TRUNCATED = ("retina", "rocket", "coffee")


@dataclass(frozen=True)
class Truth:
    """The planted issues and duplicates, by file name.

    Attributes:
        issues: the files by issue type.
        families: sets of files that are near-duplicates, made from one photograph.
    """

    issues: dict[str, set[str]]
    families: list[set[str]]


@dataclass(frozen=True)
class Outcome:
    """A row of the comparison of results with the truth.

    Attributes:
        what: an issue type, or near-duplicate pairs.
        planted: the number of planted instances.
        found: the number of planted instances in the results.
        others: other results: images with a natural issue, or false positives.
    """

    what: str
    planted: int
    found: int
    others: tuple[str, ...]


def photographs() -> Iterator[tuple[str, str, Pixels]]:
    """Yield the name, label and RGB pixels of the sample photographs of scikit-image and scikit-learn.

    Raises:
        MissingDependency: scikit-image or scikit-learn is not installed.
    """
    try:
        import skimage.data
        from sklearn.datasets import load_sample_image
    except ImportError:
        raise MissingDependency("the demo needs sample photographs: pip install 'framedex[demo]'") from None

    for name, label in _SKIMAGE.items():
        yield name, label, _rgb(getattr(skimage.data, name)())
    for name, label in _SKLEARN.items():
        yield Path(name).stem, label, _rgb(load_sample_image(name))


def _rgb(pixels: npt.NDArray[Any]) -> Pixels:
    grey = pixels.ndim == 2
    return np.ascontiguousarray(np.repeat(pixels[..., None], 3, axis=2) if grey else pixels[..., :3], dtype=np.uint8)


def make_images(folder: Path) -> Truth:
    """Write the photographs and their edits into *folder*; return the truth."""
    folder.mkdir(parents=True, exist_ok=True)
    truth = Truth({"blur": set(), "dark": set(), "corrupted": set(), "grayscale": set()}, [])
    labels = ["filename,label"]
    for name, label, pixels in photographs():
        family = {f"{name}.jpg", f"{name}-resized.jpg", f"{name}-recompressed.webp", f"{name}-copy.jpg"}
        _write(folder / f"{name}.jpg", pixels)
        (folder / f"{name}-copy.jpg").write_bytes((folder / f"{name}.jpg").read_bytes())
        height, width = pixels.shape[:2]
        half = np.asarray(cv2.resize(pixels, (width // 2, height // 2), interpolation=cv2.INTER_AREA), dtype=np.uint8)
        _write(folder / f"{name}-resized.jpg", half)
        _write(folder / f"{name}-recompressed.webp", pixels, quality=60)
        truth.families.append(family)
        _plant(folder, name, pixels, truth)
        if name in _GREY:
            edits = {f"{name}-blurred.jpg"} & truth.issues["blur"]
            truth.issues["grayscale"] |= family | edits
        labels += [f"{file},{label}" for file in sorted(family)]
    (folder / "image_annotations.csv").write_text("\n".join(labels) + "\n", encoding="utf-8")
    return truth


def _plant(folder: Path, name: str, pixels: Pixels, truth: Truth) -> None:
    """Write the edits with issues of a photograph."""
    if name in _BLURRED:
        blurred = cv2.GaussianBlur(pixels, (0, 0), max(pixels.shape) / 25)
        _write(folder / f"{name}-blurred.jpg", np.asarray(blurred, dtype=np.uint8))
        truth.issues["blur"].add(f"{name}-blurred.jpg")
    if name in _DARKENED:
        _write(folder / f"{name}-darkened.jpg", (pixels * 0.2).astype(np.uint8))
        truth.issues["dark"].add(f"{name}-darkened.jpg")
    if name in _TRUNCATED:
        whole = (folder / f"{name}.jpg").read_bytes()
        (folder / f"{name}-truncated.jpg").write_bytes(whole[: len(whole) // 2])
        truth.issues["corrupted"].add(f"{name}-truncated.jpg")


def _write(path: Path, pixels: Pixels, *, quality: int = 92) -> None:
    option = cv2.IMWRITE_WEBP_QUALITY if path.suffix == ".webp" else cv2.IMWRITE_JPEG_QUALITY
    ok, data = cv2.imencode(path.suffix, cv2.cvtColor(pixels, cv2.COLOR_RGB2BGR), [option, quality])
    assert ok, "encoding an RGB array cannot fail"
    path.write_bytes(data.tobytes())


def build_demo(workspace: Workspace) -> tuple[Dataset, Truth]:
    """Create the demo dataset in a workspace, replacing an earlier one; return the dataset and the truth.

    Raises:
        Conflict: the workspace has a dataset of this name that is not a demo.
    """
    folder = workspace.path / "demo-images"
    earlier = [record for record in workspace.datasets() if record.display_name == DATASET]
    if any(not _is_made_of(workspace.dataset(record.id), folder) for record in earlier):
        raise Conflict(f"{workspace.path} has a dataset {DATASET!r} that is not a demo; choose another workspace")
    truth = make_images(folder)
    for record in earlier:
        workspace.delete_dataset(record.id)
    return workspace.create_dataset(DATASET, folder), truth


def _is_made_of(dataset: Dataset, folder: Path) -> bool:
    try:
        paths = dataset.to_arrow(["file_path"])["file_path"].to_pylist()
    except Conflict:  # an interrupted demo without media
        return True
    return all(Path(path).parent == folder for path in paths)


def compare(dataset: Dataset, truth: Truth) -> list[Outcome]:
    """Return the comparison of the dataset's issues and duplicates with the truth."""
    outcomes = []
    for issue, planted in sorted(truth.issues.items()):
        files = set(dataset.issues(issue)["file_name"].to_pylist())
        outcomes.append(Outcome(issue, len(planted), len(planted & files), tuple(sorted(files - planted))))
    return [*outcomes, _compare_pairs(dataset, truth)]


def _compare_pairs(dataset: Dataset, truth: Truth) -> Outcome:
    planted = {pair for family in truth.families for pair in combinations(sorted(family), 2)}
    pairs = {pair for group in dataset.duplicates() for pair in combinations(sorted(set(group.file_names)), 2)}
    # Other edits of one photograph may be similar, too; they count neither as correct nor as wrong.
    wrong = sorted(pair for pair in pairs - planted if _source(pair[0]) != _source(pair[1]))
    return Outcome(
        "near-duplicate pairs", len(planted), len(planted & pairs), tuple(" = ".join(pair) for pair in wrong)
    )


def _source(file_name: str) -> str:
    return file_name.partition(".")[0].partition("-")[0]


def outcome_html(outcomes: list[Outcome]) -> str:
    """Return the comparison as an HTML table for the report."""
    rows = [(outcome.what, outcome.planted, outcome.found, ", ".join(outcome.others) or "none") for outcome in outcomes]
    header = ("fault", "planted", "found", "also found")
    return html.heading("Planted and found") + html.table(header, rows)
