"""Comparisons of a dataset with its folders: rows follow their files, and what is gone is said and marked."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from framedex import Dataset, InvalidInput, NotFound, ReadOnly, Workspace, vql
from tests.buckets import Service
from tests.gallery import SETTINGS, fill
from tests.image_files import encode, photo, write
from tests.laws import examples, law_folder
from tests.prepared import new_workspace, prepared
from tests.videos import numbered, write_video

PHOTOS = [encode(photo(seed, width=64, height=48), "PNG") for seed in range(800, 812)]
"""Files with different content, and of different sizes."""


@pytest.fixture
def dataset(workspace: Workspace, folder: Path) -> Dataset:
    """A dataset of six images, each with a label: its number."""
    made = prepared(workspace, "pets", folder)
    for number, media_id in enumerate(list(made.view.media_ids())):
        made.set_labels(media_id, [str(number)])
    return made


def places(dataset: Dataset, *, only: Any = ()) -> dict[str, tuple[str, ...]]:
    """Return the labels of media by the names of their files."""
    rows = dataset.where(only).to_arrow(["image_filename", "labels"]).to_pylist()
    return {row["image_filename"]: tuple(row["labels"]) for row in rows}


def counts(result: Any) -> dict[str, int]:
    """Return the counts of a comparison that are not zero."""
    names = ("new", "changed", "moved", "missing", "back", "removed")
    return {name: getattr(result, name) for name in names if getattr(result, name)}


def content_of(dataset: Dataset, media_id: str) -> bytes:
    with dataset.open_file(media_id) as file:
        return file.content.read()


@pytest.mark.slow
def test_sync__nothing(dataset: Dataset) -> None:
    """A folder as it was leads to nothing, not even to a step of the journal."""
    steps = len(dataset.journal())
    assert counts(dataset.sync()) == {} == counts(dataset.sync(apply=True))
    assert len(dataset.journal()) == steps


@pytest.mark.slow
def test_sync__shown_first(dataset: Dataset, folder: Path) -> None:
    """Without a word nothing changes; the result names the files."""
    (folder / "000.png").rename(folder / "moved.png")
    (folder / "001.png").unlink()
    write(folder / "new.png", photo(900))
    before = places(dataset)
    found = dataset.sync()
    assert counts(found) == {"new": 1, "moved": 1, "missing": 1}
    assert not found.is_applied
    assert found.examples == {
        "new": [str(folder / "new.png")],
        "moved": [f"{folder / '000.png'} → {folder / 'moved.png'}"],
        "missing": [str(folder / "001.png")],
    }
    assert places(dataset) == before
    assert dataset.where(vql.missing()).count() == 0


@pytest.mark.slow
def test_sync__renamed_folder(dataset: Dataset, workspace: Workspace, folder: Path) -> None:
    """Rows move with their ids, tags, decisions, objects and basket, and an addition adds nothing afterwards."""
    ids = list(dataset.view.media_ids())
    dataset.tag(ids[:1], "kept")
    dataset.basket.add(ids[1:2])
    dataset.not_duplicates(ids[:2])
    view = dataset.save_view("two", dataset.where(vql.ids(ids[:2])))
    boxes = folder.parent / "boxes.csv"
    boxes.write_text("filename,col_x,row_y,width,height,label\n000.png,10,10,50,50,cat\n")
    dataset.add_objects(boxes)
    snapshot = dataset.snapshot("before")
    (folder / "below").mkdir()
    for path in list(folder.glob("*.png")):
        path.rename(folder / "below" / f"a-{path.name}")
    assert counts(dataset.sync(apply=True)) == {"moved": 6}
    assert list(dataset.view.media_ids()) == ids
    assert places(dataset)["below/a-003.png"] == ("3",)
    assert list(dataset.where(vql.tags("kept")).media_ids()) == ids[:1]
    assert list(dataset.basket.media_ids()) == ids[1:2]
    assert len(dataset.duplicate_decisions()) == 1
    assert view.view().count() == 2
    (box,) = dataset.objects.media_ids()
    assert content_of(dataset, box) == content_of(dataset, ids[0])
    dataset.add_media(folder)
    assert dataset.count() == 6
    assert counts(dataset.sync()) == {}
    dataset.restore(snapshot.snapshot_id)  # with the earlier places, at which nothing is
    assert counts(dataset.sync(apply=True)) == {"moved": 6}
    assert [content_of(dataset, each) for each in ids]


@pytest.mark.slow
def test_sync__undone(dataset: Dataset, folder: Path) -> None:
    """It is one step, which undo takes back and redo does again."""
    (folder / "000.png").rename(folder / "moved.png")
    (folder / "001.png").unlink()
    dataset.sync(apply=True)
    assert dataset.journal()[0].operation == "sync"
    assert dataset.journal()[0].n_media == 2
    dataset.undo()
    assert "000.png" in places(dataset)
    assert not dataset.where(vql.missing()).count()
    dataset.redo()
    assert "moved.png" in places(dataset)
    assert list(places(dataset, only=vql.missing())) == ["001.png"]


def test_sync__file_that_returns(dataset: Dataset, folder: Path) -> None:
    """A file that is back is not missing any more, after a comparison and after an addition."""
    for bring_back in (lambda: dataset.sync(apply=True), lambda: dataset.add_media(folder)):
        data = (folder / "001.png").read_bytes()
        (folder / "001.png").unlink()
        assert counts(dataset.sync(apply=True)) == {"missing": 1}
        assert [(each.file_path, each.is_gone) for each in dataset.missing()] == [(str(folder / "001.png"), True)]
        (folder / "001.png").write_bytes(data)
        bring_back()
        assert dataset.where(vql.missing()).count() == 0
        assert dataset.count() == 6


@pytest.mark.slow
def test_sync__removed(dataset: Dataset, folder: Path) -> None:
    """Media whose files are gone are removed by choice; undo brings them back."""
    (folder / "001.png").unlink()
    assert counts(dataset.sync(apply=True, remove=True)) == {"missing": 1, "removed": 1}
    assert "001.png" not in places(dataset)
    dataset.undo()
    assert list(places(dataset, only=vql.missing())) == ["001.png"]
    with pytest.raises(InvalidInput, match="apply=True"):
        dataset.sync(remove=True)


def test_sync__examples_are_in_order(dataset: Dataset, folder: Path) -> None:
    """Missing files are listed by name, in each run alike."""
    gone = [folder / f"{number:03d}.png" for number in range(5)]
    for path in gone:
        path.unlink()
    assert dataset.sync().examples["missing"] == list(map(str, gone))


def test_sync__added_after_it_moved(dataset: Dataset, folder: Path) -> None:
    """A file that was added at its new place before a sync leaves the row of the old one, which is said."""
    (folder / "001.png").rename(folder / "new.png")
    dataset.add_media(folder)
    result = dataset.sync()
    assert counts(result) == {"missing": 1}
    assert [each for each in result.notes if each.startswith("1 missing file has the content of other media")]


@pytest.mark.slow
def test_sync__swapped_files(dataset: Dataset, folder: Path) -> None:
    """Labels follow the pictures when two files change their names with each other."""
    (folder / "000.png").rename(folder / "t")
    (folder / "001.png").rename(folder / "000.png")
    (folder / "t").rename(folder / "001.png")
    assert counts(dataset.sync(apply=True)) == {"moved": 2}
    assert places(dataset)["000.png"] == ("1",)
    assert places(dataset)["001.png"] == ("0",)


def test_sync__file_over_another(dataset: Dataset, folder: Path) -> None:
    """A picture that takes the place of another keeps its labels; the other is missing, and never shows the first."""
    lost = (folder / "001.png").read_bytes()
    (folder / "000.png").rename(folder / "001.png")
    assert counts(dataset.sync(apply=True)) == {"moved": 1, "missing": 1}
    (missing,) = dataset.where(vql.missing()).media_ids()
    assert dataset.media_item(missing).labels == ["1"]
    with pytest.raises(NotFound):
        content_of(dataset, missing)
    assert counts(dataset.sync(apply=True)) == {"missing": 1}
    (folder / "back.png").write_bytes(lost)
    assert counts(dataset.sync(apply=True)) == {"moved": 1}
    assert content_of(dataset, missing) == lost
    assert not dataset.where(vql.missing()).count()


def test_sync__file_at_the_place_of_a_displaced_one(dataset: Dataset, folder: Path) -> None:
    """A file at the place of a displaced one is new once its row is deleted; the displaced row keeps its labels."""
    (folder / "000.png").rename(folder / "001.png")
    dataset.sync(apply=True)
    (missing,) = dataset.where(vql.missing()).media_ids()
    dataset.delete_media(next(each for each in dataset.view.media_ids() if dataset.media_item(each).labels == ["0"]))
    assert counts(dataset.sync(apply=True)) == {"new": 1, "missing": 1}
    assert list(dataset.where(vql.missing()).media_ids()) == [missing]
    assert dataset.media_item(missing).labels == ["1"]


@pytest.mark.slow
def test_sync__equal_files(workspace: Workspace, tmp_path: Path) -> None:
    """Of equal files the one that vanished is missing; the other one never takes its place."""
    folder = fill(tmp_path / "equal", 2)
    shutil.copy(folder / "000.png", folder / "copy.png")
    dataset = workspace.create_dataset("equal", folder)
    (folder / "copy.png").unlink()
    assert counts(dataset.sync(apply=True)) == {"missing": 1}
    assert list(places(dataset, only=vql.missing())) == ["copy.png"]


@pytest.mark.slow
def test_sync__clean_up(workspace: Workspace, tmp_path: Path) -> None:
    """A file that is gone is never the copy that a clean-up keeps in place of one that is there."""
    folder = fill(tmp_path / "equal", 1)
    for name in ("a.png", "b.png"):
        shutil.copy(folder / "000.png", folder / name)
    dataset = workspace.create_dataset("equal", folder)
    kept = next(
        row["path"]
        for row in dataset.plan_cleanup(duplicates="exact").to_arrow().to_pylist()
        if row["action"] == "keep"
    )
    (folder / Path(kept).name).unlink()
    dataset.sync(apply=True)
    rows = dataset.plan_cleanup(duplicates="exact").to_arrow().to_pylist()
    assert sorted(row["action"] for row in rows) == ["keep", "remove"]
    assert kept not in {row["path"] for row in rows}


def test_sync__unreachable_source(dataset: Dataset, folder: Path) -> None:
    """No file of a folder that is gone, or is empty as a mount point, is marked without an explicit word."""
    away = folder.rename(folder.with_name("away"))
    for is_mount_point in (False, True):
        if is_mount_point:
            folder.mkdir()
        else:
            with pytest.raises(InvalidInput, match=f"`framedex relocate {folder} NEW`"):
                dataset.add_media(folder / "000.png")
        found = dataset.sync(apply=True)
        assert counts(found) == {}
        assert [(each.source, each.files) for each in found.lost] == [(str(folder), 6)]
    assert counts(dataset.sync(apply=True, mark_lost=True)) == {"missing": 6}
    folder.rmdir()
    away.rename(folder)
    assert counts(dataset.sync(apply=True)) == {"back": 6}
    assert not dataset.where(vql.missing()).count()


def test_sync__empty_folder(workspace: Workspace, tmp_path: Path) -> None:
    """Files of a folder that is empty now are not marked without an explicit word, unless one of them has moved."""
    folder = fill(tmp_path / "photos", 1)
    disk = fill(folder / "disks/one/deep", 6, first_seed=40).parent
    dataset = prepared(workspace, "disks", folder)
    away = disk.rename(tmp_path / "away")
    disk.mkdir()
    found = dataset.sync(apply=True, remove=True)
    assert (counts(found), dataset.count()) == ({}, 7)
    assert [(each.source, each.files) for each in found.lost] == [(str(disk), 6)]
    assert "not mounted" in found.lost[0].reason
    shutil.copy(away / "deep/000.png", folder / "moved.png")
    assert counts(dataset.sync()) == {"moved": 1, "missing": 5}
    (folder / "moved.png").unlink()
    assert counts(dataset.sync(apply=True, mark_lost=True)) == {"missing": 6}
    assert counts(found := dataset.sync()) == {"missing": 6}
    assert not found.lost


def test_sync__further_folder(dataset: Dataset, folder: Path, tmp_path: Path) -> None:
    """Files are found in a further folder, whose other files stay out; later additions of it know them."""
    new = fill(tmp_path / "further", 1, first_seed=950)
    (folder / "002.png").rename(new / "found.png")
    assert counts(dataset.sync(apply=True, sources=[new])) == {"moved": 1}
    assert places(dataset)["source-1/found.png"] == ("2",)
    assert dataset.count() == 6
    dataset.add_media(new)
    assert dataset.count() == 7
    with pytest.raises(InvalidInput, match="no such folder"):
        dataset.sync(sources=[tmp_path / "nowhere"])


def test_sync__list_of_files(workspace: Workspace, folder: Path) -> None:
    """Of files that a list named, new files beside them are none of the dataset; that is said."""
    dataset = workspace.create_dataset("list", [folder / "000.png", folder / "001.png"])
    (folder / "001.png").unlink()
    found = dataset.sync()
    assert counts(found) == {"missing": 1}
    assert "not looked for" in found.notes[0]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_sync__unreadable_files(dataset: Dataset, folder: Path) -> None:
    """A file without read permission is counted by its reason, and is not missing."""
    (folder / "001.png").chmod(0)
    found = dataset.sync(apply=True)
    assert counts(found) == {}
    assert list(found.unreadable.values()) == [1]
    assert [each.is_gone for each in dataset.missing()] == [False]


def test_sync__file_that_became_a_folder(dataset: Dataset, folder: Path) -> None:
    """What is no file any more cannot be read, and says so."""
    (folder / "001.png").unlink()
    (folder / "001.png").mkdir()
    found = dataset.sync(apply=True)
    assert counts(found) == {}
    assert found.unreadable == {"it cannot be read: not a regular file": 1}


@pytest.mark.slow
def test_sync__videos(workspace: Workspace, tmp_path: Path) -> None:
    """All frames of a video move, vanish and return with it."""
    folder = fill(tmp_path / "mixed", 1)
    video = write_video(folder / "clip.mp4", numbered(20))
    dataset = workspace.create_dataset("mixed", folder)
    frames = list(dataset.where(vql.media("video_frame")).media_ids())
    pixels = [dataset.read(each).tolist() for each in frames]
    video.rename(folder / "renamed.mp4")
    assert counts(dataset.sync(apply=True)) == {"moved": 1}
    assert [dataset.read(each).tolist() for each in frames] == pixels
    dataset.add_media(folder)
    assert list(dataset.where(vql.media("video_frame")).media_ids()) == frames
    (folder / "renamed.mp4").unlink()
    assert counts(dataset.sync(apply=True)) == {"missing": 1}
    assert list(dataset.where(vql.missing()).media_ids()) == frames
    assert [each.media_id for each in dataset.missing()] == frames[:1]
    assert dataset.sync(apply=True, remove=True).removed == len(frames)
    assert dataset.count() == 1


def test_sync__bucket(service: Service, tmp_path: Path) -> None:
    """Objects move, vanish and are new as files are; an outage marks nothing."""
    images = [path.read_bytes() for path in sorted(fill(tmp_path / "local", 3).iterdir())]
    for number, data in enumerate(images):
        service.put(f"synced/photos/{number}.png", data)
    with new_workspace(tmp_path / "buckets", service.settings(copy_budget_ms=0)) as workspace:
        dataset = workspace.create_dataset("pets", "s3://synced/photos")
        service.client.delete_object(Bucket="synced", Key="photos/0.png")
        service.client.delete_object(Bucket="synced", Key="photos/1.png")
        service.put("synced/photos/below/moved.png", images[0])
        service.put("synced/photos/new.png", PHOTOS[0])
        with service.closed():
            found = dataset.sync(apply=True)
            assert counts(found) == {}
            assert found.lost[0].files == 3
        assert counts(dataset.sync(apply=True)) == {"new": 1, "moved": 1, "missing": 1}
        assert dataset.count() == 4
        assert counts(dataset.sync()) == {"missing": 1}


@pytest.mark.slow
def test_sync__clones_and_merges(dataset: Dataset, workspace: Workspace, folder: Path) -> None:
    """A clone and a merge of datasets with moved files know each file once, also by a later addition."""
    old = dataset.clone(dataset.snapshot("before").snapshot_id)
    (folder / "000.png").rename(folder / "moved.png")
    write(folder / "000.png", photo(901))
    assert counts(dataset.sync(apply=True)) == {"new": 1, "moved": 1}
    dataset.reindex()
    new = dataset.clone(dataset.snapshot("after").snapshot_id)
    for number, (first, second) in enumerate(((dataset, old), (old, dataset), (dataset, new))):
        merged = first.merge(second, f"merged {number}")
        merged.sync(apply=True)
        ids = list(merged.view.media_ids())
        assert len(set(ids)) == len(ids)
        merged.add_media(folder)
        assert merged.count() == len(ids)
        present = merged.where(vql.missing(False))
        assert sorted(present.to_arrow(["image_filename"])["image_filename"].to_pylist()) == sorted(
            path.name for path in folder.iterdir() if path.suffix == ".png"
        )


@pytest.mark.slow
def test_sync__read_only(dataset: Dataset, workspace: Workspace, folder: Path) -> None:
    """A workspace that was opened for reading is compared, and not changed."""
    (folder / "001.png").unlink()
    with Workspace(workspace.path, read_only=True, settings=SETTINGS) as opened:
        assert counts(opened.dataset("pets").sync()) == {"missing": 1}
        with pytest.raises(ReadOnly):
            opened.dataset("pets").sync(apply=True)


NAMES = [f"{number}.png" for number in range(5)] + ["below/5.png", "below/6.png"]
Change = Callable[[Path], None]


def _move(source: str, target: str) -> Change:
    def move(folder: Path) -> None:
        if (folder / source).exists():
            (folder / source).replace(folder / target)

    return move


def _swap(one: str, other: str) -> Change:
    def swap(folder: Path) -> None:
        if one != other and (folder / one).exists() and (folder / other).exists():
            (folder / one).rename(folder / "swapped")
            (folder / other).rename(folder / one)
            (folder / "swapped").rename(folder / other)

    return swap


def _put(name: str, number: int) -> Change:
    def put(folder: Path) -> None:
        (folder / name).unlink(missing_ok=True)
        (folder / name).write_bytes(PHOTOS[number])

    return put


def _delete(name: str) -> Change:
    return lambda folder: (folder / name).unlink(missing_ok=True)


names = st.sampled_from(NAMES)
changes = st.one_of(
    st.builds(_move, names, names),
    st.builds(_swap, names, names),
    st.builds(_put, names, st.integers(0, len(PHOTOS) - 1)),
    st.builds(_delete, names),
)


@given(rounds=st.lists(st.lists(changes, min_size=1, max_size=4), min_size=1, max_size=3))
@examples(25)
def test_sync__law(rounds: list[list[Change]]) -> None:
    """After it each file has one row, which shows it; labels follow the content; and it finds nothing further."""
    home = law_folder("sync")
    try:
        folder = home / "images"
        (folder / "below").mkdir(parents=True)
        for number, name in enumerate(NAMES[:4]):
            (folder / name).write_bytes(PHOTOS[number])
        (folder / "keep.png").write_bytes(PHOTOS[-1])  # so that the source is never empty
        with new_workspace(home / "workspace", SETTINGS) as workspace:
            dataset = prepared(workspace, "law", folder)
            for made in rounds:
                before = _rows(dataset, folder)
                for change in made:
                    change(folder)
                dataset.sync(apply=True)
                _check(dataset, folder, before)
    finally:
        shutil.rmtree(home)


def _files(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*.png")}


def _rows(dataset: Dataset, folder: Path) -> dict[str, bytes]:
    """Return the content of each media item whose file is there, by its id."""
    return {each: content_of(dataset, each) for each in dataset.where(vql.missing(False)).media_ids()}


def _check(dataset: Dataset, folder: Path, before: dict[str, bytes]) -> None:
    files, after = _files(folder), _rows(dataset, folder)
    present = dataset.where(vql.missing(False)).to_arrow(["media_id", "file_path"]).to_pylist()
    assert sorted(row["file_path"] for row in present) == sorted(files)
    assert all(after[row["media_id"]] == files[row["file_path"]] for row in present)
    contents = list(files.values())
    for media_id, content in before.items():
        if list(before.values()).count(content) == 1 and contents.count(content) == 1:
            assert after.get(media_id) == content, "a row follows its content"
    gone = {each for each in before if each not in after}
    assert gone <= set(dataset.where(vql.missing()).media_ids())
    again, count = dataset.sync(), dataset.count()
    assert not (again.new)
    assert not (again.changed)
    assert not (again.moved)
    assert not (again.back)
    dataset.add_media(folder)
    assert dataset.count() == count
    assert _rows(dataset, folder) == after


def test_check__source_files(dataset: Dataset, workspace: Workspace, folder: Path) -> None:
    """A check of files names those that are missing, with their content those that changed; without it neither."""
    prepared(workspace, "all pets", folder)
    before = (folder / "000.png").stat()
    data = bytearray((folder / "000.png").read_bytes())
    data[-20] ^= 1
    (folder / "000.png").write_bytes(data)
    os.utime(folder / "000.png", ns=(before.st_atime_ns, before.st_mtime_ns))
    (folder / "001.png").unlink()
    assert workspace.check().is_sound
    findings = workspace.check(files=True).findings
    assert [each.path for each in findings] == [str(folder / "001.png")] * 2
    assert [each.fault for each in findings] == [
        "is missing; dataset 'all pets' has it",
        "is missing; dataset 'pets' has it",
    ]
    assert "`framedex sync 'all pets'`" in findings[0].remedy
    workspace.delete_dataset("all pets")
    found = workspace.check(files=True, content=True)
    assert sorted(each.path for each in found.findings) == [str(folder / "000.png"), str(folder / "001.png")]
    assert (found.counts["source files"], found.counts["source files compared"]) == (6, 5)
    shutil.rmtree(folder)
    (finding,) = workspace.check(files=True).findings
    assert finding.path == str(folder)
    assert "6 files" in finding.fault
    assert "relocate" in finding.remedy
    with pytest.raises(InvalidInput, match="files=True"):
        workspace.check(content=True)


@pytest.mark.slow
def test_add_media__gone_files(dataset: Dataset, folder: Path) -> None:
    """An addition counts the files of its folder that the dataset has and that are gone."""
    (folder / "001.png").unlink()
    task = dataset.add_media(folder)
    assert dataset.skipped["files of it that are gone"] == 1
    assert "1 file is gone" in task.record.status_message
