"""Values that datasets of older versions lack: a rebuild of the index takes them from images and frames."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from framedex import Dataset, Workspace
from framedex.storage import datasets, tables
from framedex.storage.media_rows import CONTENT, COPY_DESCRIPTOR, LOCAL_FEATURES, PANEL_DESCRIPTORS
from framedex.storage.table_names import COPIES
from framedex.storage.table_versions import Table
from tests.enrichments import Hues
from tests.image_files import detailed, write
from tests.inside import catalog_of, stored_media
from tests.videos import write_video

COLUMNS = [COPY_DESCRIPTOR, PANEL_DESCRIPTORS, LOCAL_FEATURES]


@pytest.fixture
def workspace(verifying: Workspace) -> Workspace:
    """A workspace in which copies are verified."""
    return verifying


@pytest.fixture
def images(tmp_path: Path) -> Path:
    """A folder with images, a crop of one, and a video that shows another."""
    folder = tmp_path / "images"
    for number in range(4):
        write(folder / f"{number}.png", detailed(number))
    write(folder / "cropped.png", detailed(0)[40:200, 50:270])
    write(folder / "panels.png", np.hstack([detailed(5), detailed(6)]))
    write_video(folder / "video.mp4", [detailed(number) for number in (3, 8, 9)], fps=1)
    return folder


def without(dataset: Dataset, columns: list[str]) -> None:
    """Make the dataset one of a time when there were no such columns, and no copies."""
    media, config = stored_media(dataset), dataset.embedding_config
    versions = {name: version for name, version in media.generation.tables.items() if name != COPIES}
    versions["media"] = tables.drop_columns(Table(media.table.path, versions["media"]), columns)
    with catalog_of(dataset).write() as connection:
        datasets.commit_generation(
            connection,
            dataset.id,
            tables=versions,
            n_images=media.generation.n_images,
            config=config.model_copy(update={"copy_descriptor": None}),
            summary=media.generation.summary,
        )


def descriptors(dataset: Dataset) -> list[dict[str, Any]]:
    """Return the copy descriptors of all rows, by path and frame."""
    table = stored_media(dataset).table
    rows: list[dict[str, Any]] = table.scan(["path", "frame_number", *COLUMNS]).read_all().to_pylist()
    return rows


def groups(dataset: Dataset, *, within_videos: bool = False) -> list[list[tuple[str, str]]]:
    """Return the near-duplicate groups: path and reason of each member."""
    found = dataset.duplicates(within_videos=within_videos)
    return sorted(sorted(zip(each.paths, each.reasons, strict=True)) for each in found)


@pytest.mark.slow
@pytest.mark.only_soak
def test_rebuild__describes_images_and_frames(workspace: Workspace, images: Path) -> None:
    """The descriptors are those that ingestion writes, and so are the groups, with any encoder."""
    dataset = workspace.create_dataset("d", images, Hues())
    before, copies, with_frames = descriptors(dataset), groups(dataset), groups(dataset, within_videos=True)
    assert [[path for path, _ in group] for group in copies] == [["0.png", "cropped.png"], ["3.png", "video.mp4"]]
    without(dataset, COLUMNS)
    config = dataset.embedding_config
    assert dataset.reindex(thresholds=[each + 0.01 for each in config.thresholds]).record.status_message == "done"
    assert descriptors(dataset) == before
    assert (groups(dataset), groups(dataset, within_videos=True)) == (copies, with_frames)
    assert dataset.embedding_config.copy_descriptor == "gist"


@pytest.mark.slow
@pytest.mark.only_soak
def test_rebuild__with_an_addition_from_another_folder(workspace: Workspace, images: Path, tmp_path: Path) -> None:
    """An addition that rebuilds the index describes its own images, too."""
    dataset = workspace.create_dataset("d", images, Hues())
    without(dataset, COLUMNS)
    write(tmp_path / "more" / "mirrored.png", np.ascontiguousarray(detailed(2)[:, ::-1]))
    dataset.add_media(tmp_path / "more", auto_reindex=True)
    assert [("2.png", "kept"), ("mirrored.png", "mirrored")] in groups(dataset)
    assert all(row[COPY_DESCRIPTOR] is not None for row in descriptors(dataset))


@pytest.mark.slow
def test_frames__that_cannot_be_read_are_no_copies(workspace: Workspace, images: Path) -> None:
    """Frames without a descriptor are not joined with each other."""
    dataset = workspace.create_dataset("d", images, Hues())
    without(dataset, COLUMNS)
    (images / "video.mp4").unlink()
    config = dataset.embedding_config
    message = str(dataset.reindex(thresholds=[each + 0.01 for each in config.thresholds]).record.status_message)
    assert message.endswith("their rows keep the values they had, without a copy descriptor")
    assert [[path for path, _ in group] for group in groups(dataset, within_videos=True)] == [["0.png", "cropped.png"]]


@pytest.mark.slow
def test_rebuild__names_kinds_of_content(workspace: Workspace, tmp_path: Path) -> None:
    """Images get the kind of content that ingestion writes; one that is gone has none, and is no obstacle."""
    mask = np.zeros((300, 300, 3), np.uint8)
    mask[50:200, 80:250] = 255
    for name, pixels in (("photo", detailed(0)), ("mask", mask), ("gone", detailed(1)), ("flat", mask[:40])):
        write(tmp_path / "images" / f"{name}.png", pixels)
    dataset = workspace.create_dataset("d", tmp_path / "images", "gist")
    before = dict(zip(*dataset.to_arrow(["file_name", "content"]).to_pydict().values(), strict=True))
    assert before == {"photo.png": "photo", "mask.png": "mask", "gone.png": "photo", "flat.png": "other"}
    without(dataset, [CONTENT.name])
    (tmp_path / "images" / "gone.png").unlink()
    dataset.reindex(thresholds=[each + 0.01 for each in dataset.embedding_config.thresholds])
    after = dict(zip(*dataset.to_arrow(["file_name", "content"]).to_pydict().values(), strict=True))
    assert after == {**before, "gone.png": None}
