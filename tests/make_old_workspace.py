"""Makes the small workspace that an earlier version of the code wrote, for the test that it can still be used.

    python tests/make_old_workspace.py tests/workspaces/aefb06e.tar.xz

To be run by the Python of an environment in which that version is installed, for the commit aefb06e that of a clone of
it. The script draws its own images, so it needs nothing of the tests. The archive holds:

- ``images/``: twelve images, one of them a copy, and one broken file; labels, captions and bounding boxes beside them,
- ``workspace/``: the dataset ``old``, with tags, a custom field, edited labels and captions, a cannot-link decision, a
  snapshot and edits after it, and ``old_cloned``, a clone of that snapshot,
- ``expected.json``: what the earlier version read from the workspace, by dataset.
"""

import argparse
import csv
import json
import shutil
import socket
import tarfile
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

socket.gethostname = lambda: "elsewhere"  # tasks name their machine; that of whoever made this is of no interest

import framedex  # noqa: E402 - the name of the machine comes first
from framedex.settings import Settings  # noqa: E402

COLUMNS = ("media_id", "image_filename", "labels", "caption", "tags", "rating", "cluster_3", "issues")
NAMES = [f"{number:02}.png" for number in range(12)]
COPY = ("00.png", "11.png")
BROKEN = "broken.jpg"
BOXES = [("00.png", 4, 6, 40, 30, "car"), ("01.png", 10, 5, 30, 40, "dog"), ("01.png", 50, 20, 30, 30, "car")]


def draw(number: int) -> Image.Image:
    """Return an image of 96 × 72 pixels, with ellipses of its own."""
    rng = np.random.default_rng(number)
    image = Image.new("RGB", (96, 72), tuple(int(value) for value in rng.integers(60, 200, 3)))
    pen = ImageDraw.Draw(image)
    for _ in range(9):
        x, y, width, height = (int(value) for value in rng.integers((0, 0, 8, 8), (80, 60, 40, 40)))
        pen.ellipse((x, y, x + width, y + height), fill=tuple(int(value) for value in rng.integers(0, 256, 3)))
    image = image.filter(ImageFilter.GaussianBlur(0.8))
    return Image.eval(image, lambda value: value // 14) if number == 5 else image


def make_images(folder: Path) -> None:
    """Write the images, and what is known of them."""
    folder.mkdir()
    for number, name in enumerate(NAMES):
        draw(0 if name == COPY[1] else number).save(folder / name)
    (folder / BROKEN).write_bytes(b"\xff\xd8\xff\xe0 this is no image")
    with (folder / "image_annotations.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["filename", "label", "caption"])
        table.writerows([name, "even" if number % 2 == 0 else "odd", ""] for number, name in enumerate(NAMES))
    with (folder.parent / "boxes.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["filename", "col_x", "row_y", "width", "height", "label"])
        table.writerows(BOXES)


def read_dataset(dataset: Any) -> dict[str, Any]:
    """Return what the workspace says of a dataset, as JSON can hold it."""
    return {
        "rows": sorted(dataset.to_arrow(COLUMNS).to_pylist(), key=lambda row: str(row["image_filename"])),
        "objects": sorted(dataset.objects.media_ids()),
        "tags": {tag.name: tag.count for tag in dataset.tags()},
        "fields": [field.field_name for field in dataset.fields()],
        "decisions": [decision.media_ids for decision in dataset.duplicate_decisions()],
        "snapshots": {snapshot.snapshot_name: snapshot.description for snapshot in dataset.snapshots()},
    }


def make_workspace(home: Path) -> dict[str, Any]:
    """Make the workspace beside the images; return what it says of its datasets."""
    settings = Settings(threads=2, user="tester@example.org")
    with framedex.Workspace(home / "workspace", settings=settings) as workspace:
        dataset = workspace.create_dataset("old", home / "images", "gist", boxes=home / "boxes.csv")
        rows = dataset.to_arrow(["image_filename", "media_id"]).to_pylist()
        ids = {row["image_filename"]: row["media_id"] for row in rows}
        dataset.tag([ids["01.png"], ids["02.png"]], "keep")
        dataset.create_tag("unused")
        dataset.add_field("rating", "float", values={ids["01.png"]: 0.5, ids["03.png"]: 4.0})
        dataset.set_captions({ids["02.png"]: "a red ball on the grass", ids["04.png"]: "two boats at sea"})
        dataset.not_duplicates([ids[name] for name in COPY])
        kept = dataset.snapshot("kept", description="before the last edits")
        dataset.clone(kept)
        dataset.tag([ids["06.png"]], "late")
        dataset.set_labels({ids["03.png"]: ["odd", "late"]})
        dataset.set_field("rating", {ids["01.png"]: 1.0})
        dataset.thumbnail(ids["01.png"])
        dataset.search("ball").media_ids()
        dataset.similar(ids["01.png"]).media_ids()
        return {record.display_name: read_dataset(workspace.dataset(record.id)) for record in workspace.datasets()}


def main() -> None:
    """Make the archive."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("archive", type=Path)
    archive = parser.parse_args().archive
    home = Path(tempfile.mkdtemp())
    try:
        make_images(home / "images")
        expected = make_workspace(home)
        (home / "expected.json").write_text(json.dumps(expected, indent=1, default=str))
        with tarfile.open(archive, "w:xz", preset=9) as file:
            for name in ("expected.json", "images", "workspace"):
                file.add(home / name, name, filter=_of_nobody)
    finally:
        shutil.rmtree(home)
    print(f"{archive}: {archive.stat().st_size:,} bytes, made by {framedex.__file__}")


def _of_nobody(info: tarfile.TarInfo) -> tarfile.TarInfo:
    info.uid = info.gid = 0
    info.uname = info.gname = ""
    return info


if __name__ == "__main__":
    main()
