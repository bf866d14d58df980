"""Objects that fill their image come back from every format that holds boxes."""

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from framedex import Workspace
from tests.boxes import ANNOTATION_EXPORTS
from tests.gallery import Averages
from tests.image_files import photo, write

WHOLE = [0, 0, 160, 120]
NOTES: list[dict[str, Any]] = [
    {"bbox": WHOLE},
    {"bbox": WHOLE, "score": 0.5},
    {"segmentation": [[0, 0, 160, 0, 160, 120, 0, 120]]},
    {"bbox": [10, 20, 30, 40]},
]


CASES: list[tuple[str, dict[str, Any]]] = [(name, {}) for name in ANNOTATION_EXPORTS]
CASES += [("yolo", {"outlines": True}), ("yolo", {"include_images": True})]


@pytest.mark.slow
@pytest.mark.parametrize(("format_", "options"), CASES)
def test_export__objects_of_the_whole_image(
    workspace: Workspace, tmp_path: Path, format_: str, options: dict[str, Any]
) -> None:
    """They are objects in the source, in its export beside labels of the images, and in what is made of that."""
    folder = tmp_path / "source"
    write(folder / "images/a.png", photo(1), "PNG")
    notes = [{"id": at, "image_id": 1, "category_id": 1, **each} for at, each in enumerate(NOTES)]
    images = [{"id": 1, "file_name": "images/a.png", "width": 160, "height": 120}]
    content = {"images": images, "categories": [{"id": 1, "name": "cat"}], "annotations": notes}
    (folder / "annotations.json").write_text(json.dumps(content))
    dataset = workspace.create_dataset("d", folder, Averages())
    dataset.set_labels(dataset.view, ["cat", "photo"])
    dataset.export(tmp_path / "out.zip", format_, **options)
    with zipfile.ZipFile(tmp_path / "out.zip") as archive:
        archive.extractall(tmp_path / "out")
    if "include_images" not in options:
        write(tmp_path / "out/images/a.png", photo(1), "PNG")
    again = workspace.create_dataset("again", tmp_path / "out", Averages())
    for each in (dataset, again):
        found = sorted(each.objects.to_arrow(["bbox"])["bbox"].to_pylist(), reverse=True)
        assert [pytest.approx(box, abs=1e-9) for box in found] == [[10, 20, 30, 40], WHOLE, WHOLE, WHOLE]
        assert each.to_arrow(["labels"])["labels"].to_pylist() == [["cat", "photo"]]
