"""Only damage leads to the removal of a file: not a format that is not supported, a limit, or a file that is gone."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from framedex import Dataset, Workspace, vql
from framedex.errors import InvalidInput
from framedex.settings import Settings
from tests.image_files import encode, flat, photo, write
from tests.prepared import new_workspace

FAULTS = {
    "cut.jpg": ("damaged", "corrupted", "it ends early: "),
    "page.jpg": ("not_supported", "not_supported", "it is an HTML page"),
    "large.png": ("over_limit", "over_limit", "FRAMEDEX_MAX_PIXELS raises the limit"),
    "gone.png": ("unreadable", "unreadable", "cannot be read: No such file"),
}
SOUND = ("odd.png", "photo.jpg")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a file of each kind of fault, and sound ones."""
    folder = tmp_path / "images"
    write(folder / "photo.jpg", photo(1))
    (folder / "cut.jpg").write_bytes(encode(photo(2), "JPEG")[:2000])
    (folder / "page.jpg").write_text("<!DOCTYPE html><html></html>")
    write(folder / "large.png", flat((1, 2, 3), width=400, height=300))
    (folder / "gone.png").symlink_to(folder / "nowhere.png")
    png = encode(photo(3))
    (folder / "odd.png").write_bytes(png[:33] + b"\0\0\0\x09pHYs" + bytes(13) + png[33:])
    return folder


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    """A workspace that decodes small images."""
    with new_workspace(tmp_path, Settings(max_pixels=50_000)) as workspace:
        yield workspace


def item_of(dataset: Dataset, name: str) -> Any:
    """Return what is known of a file."""
    return dataset.media_item(dataset.media_id(name))


@pytest.mark.slow
def test_rows__say_what_is_wrong(workspace: Workspace, folder: Path) -> None:
    """Each file has the issue of its kind alone, with the reason, in issues, filters, counts and rows."""
    dataset = workspace.create_dataset("odd", folder, "gist")
    assert dataset.count() == len(FAULTS) + len(SOUND)
    for name, (fault, issue, words) in FAULTS.items():
        item = item_of(dataset, name)
        assert (item.fault, item.gaps, [each.issue_type for each in item.issues]) == (fault, None, [issue])
        assert words in (item.error or "")
        assert dataset.issues(issue)["path"].to_pylist() == [name]
        assert words in dataset.issues(issue)["reason"][0].as_py()
        assert dataset.where(vql.issues(issue)).media_ids() == [dataset.media_id(name)]
        assert dataset.to_arrow([f"is_{issue}_issue"])[f"is_{issue}_issue"].to_pylist().count(True) == 1
    for name in SOUND:
        item = item_of(dataset, name)
        assert (item.error, item.fault, item.gaps) == (None, None, None)
    assert {each.issue_type for each in dataset.view.issue_summaries() if each.count} >= {
        issue for _, issue, _ in FAULTS.values()
    }


@pytest.mark.slow
def test_rows__of_gaps(workspace: Workspace, tmp_path: Path) -> None:
    """A file that is decoded with gaps is damaged, and says how."""
    data = encode(photo(1), "JPEG", quality=95)
    middle = len(data) // 2
    write(tmp_path / "some" / "photo.jpg", photo(2))
    (tmp_path / "some" / "holed.jpg").write_bytes(data[:middle] + data[middle + 500 :])
    dataset = workspace.create_dataset("gaps", tmp_path / "some", "gist")
    item = item_of(dataset, "holed.jpg")
    assert (item.error, item.fault) == (None, "damaged")
    assert item.gaps is not None
    assert item.gaps.startswith("Corrupt JPEG data")
    assert dataset.issues("corrupted")["reason"].to_pylist() == [item.gaps]
    assert dataset.count() == len(dataset.embeddings()[0]) == 2


def test_cleanup__removes_damaged_files_alone(workspace: Workspace, folder: Path) -> None:
    """A clean-up by damage deletes the damaged file, and none of unknown content; by other faults it is refused."""
    (folder / "words.jpg").write_text("hello")
    dataset = workspace.create_dataset("odd", folder, "gist")
    for issue in ("not_supported", "over_limit", "unreadable"):
        with pytest.raises(InvalidInput, match=f"files with the issue '{issue}' may be in order"):
            dataset.plan_cleanup(issues=["corrupted", issue])
    result = dataset.plan_cleanup(issues=["corrupted"]).apply(delete_files=True)
    assert (result.removed, result.files_deleted, result.files_left) == (2, 1, 1)
    assert result.files_failed[0][1].startswith("it may be in order, but was not decoded: not an image")
    assert not (folder / "cut.jpg").exists()
    assert (folder / "words.jpg").exists()
    assert dataset.count() == len(FAULTS) + len(SOUND) - 1


def test_cleanup__leaves_files_that_may_be_in_order(workspace: Workspace, folder: Path) -> None:
    """Files that were not decoded stay, whatever else leads to their removal."""
    (folder / "same.jpg").write_bytes((folder / "page.jpg").read_bytes())
    dataset = workspace.create_dataset("odd", folder, "gist")
    result = dataset.plan_cleanup(duplicates="exact").apply(delete_files=True)
    assert (result.removed, result.files_deleted, result.files_left) == (1, 0, 1)
    assert "it may be in order, but was not decoded: it is an HTML page" in result.files_failed[0][1]
    assert (folder / "page.jpg").exists()
    assert (folder / "same.jpg").exists()


@pytest.mark.slow
def test_faults__stay_in_restores_clones_and_merges(workspace: Workspace, folder: Path, tmp_path: Path) -> None:
    """The kinds go with the rows: into restores, clones, merges, and past additions and a reindex."""
    dataset = workspace.create_dataset("odd", folder, "gist")
    before = dataset.snapshot("before")
    dataset.delete_media(dataset.where(vql.issues("not_supported")))
    dataset.restore(before)
    write(tmp_path / "more" / "other.png", photo(9))
    (tmp_path / "more" / "text.png").write_bytes(b"%PDF-1.7")
    dataset.add_media(tmp_path / "more")
    dataset.reindex()
    other = workspace.create_dataset("other", folder, "gist")
    for each in (dataset, dataset.clone(dataset.snapshot("after")), other.merge(dataset, "all")):
        counts = {row.issue_type: row.count for row in each.view.issue_summaries()}
        found = [counts[issue] for issue in ("corrupted", "over_limit", "unreadable", "not_supported")]
        assert found == [1, 1, 1, 2]
