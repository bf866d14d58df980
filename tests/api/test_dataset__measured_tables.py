"""Tables of embeddings whose images are measured later."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from framedex import Dataset, InvalidInput, Workspace
from framedex.cli import main
from framedex.records import DatasetStatus
from tests.gallery import fill
from tests.image_files import detailed, write

NAMES = ["dark.png", "sharp.png", "copy.jpg"]
MEASURED = ["width", "height", "file_size_bytes", "blur", "dark", "is_dark_issue"]


@pytest.fixture
def images(tmp_path: Path) -> Path:
    """A folder with a dark image, a sharp one, and a copy of that."""
    folder = tmp_path / "images"
    write(folder / "dark.png", (detailed(1) // 16).astype(np.uint8))
    write(folder / "sharp.png", detailed(2))
    write(folder / "copy.jpg", detailed(2), quality=80)
    return folder


def table_of(uris: list[str], **columns: Any) -> pa.Table:
    """Return a table of embeddings, each far from the others."""
    vectors = np.eye(len(uris), 8, dtype=np.float32)
    return pa.table({"uri": uris, "embedding": pa.array(list(vectors), pa.list_(pa.float32(), 8)), **columns})


def rows_of(dataset: Dataset, *columns: str) -> dict[str, dict[str, Any]]:
    """Return some columns of all rows, by the names of the files."""
    rows = dataset.where([]).to_arrow(columns=["file_path", *columns]).to_pylist()
    return {Path(row.pop("file_path")).name: row for row in rows}


@pytest.mark.slow
def test_reindex__reads_no_image_unasked(workspace: Workspace, images: Path) -> None:
    """A table that brings the sizes of its images has a value made of them; their files are not read for the others."""
    sizes = {"width": [160, 160, 160], "height": [120, 120, 120]}
    dataset = workspace.create_dataset("table", table_of([str(images / name) for name in NAMES], **sizes))
    before = rows_of(dataset, "odd_aspect_ratio", *MEASURED)
    assert before["dark.png"]["odd_aspect_ratio"] == 0.75
    dataset.reindex(thresholds=(0.1, 0.2, 0.3, 0.4, 0.5))
    assert rows_of(dataset, "odd_aspect_ratio", *MEASURED) == before
    assert len(dataset.duplicates()) == 0


@pytest.mark.slow
def test_reindex__measures_images(workspace: Workspace, images: Path) -> None:
    """Size, quality, issues and copies are those of a dataset of the images; the embeddings stay."""
    uris = [str(images / name) for name in NAMES] + [str(images / "gone.png"), "https://example.org/x.png"]
    dataset = workspace.create_dataset("table", table_of(uris))
    expected = rows_of(workspace.create_dataset("images", images, "gist"), *MEASURED)
    before = dataset.embeddings()[1]
    assert all(value in (None, False) for row in rows_of(dataset, *MEASURED).values() for value in row.values())
    assert len(dataset.duplicates()) == 0
    task = dataset.reindex(measure_images=True)
    assert "2 images could not be read to be measured" in task.record.status_message
    found = rows_of(dataset, *MEASURED)
    assert {name: found[name] for name in NAMES} == expected
    assert found["dark.png"]["is_dark_issue"]
    assert all(value in (None, False) for name in ("gone.png", "x.png") for value in found[name].values())
    assert [sorted(Path(path).name for path in group.paths) for group in dataset.duplicates()] == [
        ["copy.jpg", "sharp.png"]
    ]
    np.testing.assert_array_equal(dataset.embeddings()[1], before)
    assert dataset.where([{"quality": {"of": "blur", "op": "missing"}}]).count() == 2
    assert workspace.check().findings == []


@pytest.mark.slow
@pytest.mark.only_soak
def test_reindex__measures_what_was_added(workspace: Workspace, images: Path) -> None:
    """Rows that are added later are measured by another call; sizes that the table brought stay."""
    dataset = workspace.create_dataset("table", table_of([str(images / "dark.png")], width=[7], height=[9]))
    dataset.reindex(measure_images=True)
    first = rows_of(dataset, *MEASURED)["dark.png"]
    assert (first["width"], first["height"]) == (7, 9)
    assert first["dark"] is not None
    dataset.add_media(table_of([str(images / name) for name in NAMES[1:]]), auto_reindex=True)
    assert dataset.info.status_new is DatasetStatus.READY
    assert rows_of(dataset, *MEASURED)["sharp.png"]["blur"] is None
    dataset.reindex(measure_images=True)
    found = rows_of(dataset, *MEASURED)
    assert found["dark.png"] == first
    assert all(row["blur"] is not None for row in found.values())


def test_reindex__refuses_to_measure_images_again(workspace: Workspace, images: Path) -> None:
    """Datasets of images are measured when they are read."""
    dataset = workspace.create_dataset("images", images, "gist")
    with pytest.raises(InvalidInput, match="are measured already"):
        dataset.reindex(measure_images=True)


@pytest.mark.slow
def test_reindex__measure_images_on_the_command_line(
    workspace: Workspace, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command tells how many images could not be read."""
    folder = fill(tmp_path / "few", 1)
    workspace.create_dataset("table", table_of([str(folder / "000.png"), str(folder / "none.png")]))
    with pytest.raises(SystemExit) as exit_:
        main(["reindex", "table", "--measure-images", "--workspace", str(workspace.path)])
    assert exit_.value.code == 0
    out = capsys.readouterr().out.splitlines()
    assert out[0].startswith("table: 2 images indexed in ")
    assert out[1] == (
        "1 image could not be read to be measured; its row keeps the values it had, without a copy descriptor"
    )
