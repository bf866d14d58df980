"""The map of a dataset: places, the task that makes it, regions as filters, and what stays when the dataset changes."""

import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from framedex import Aborted, Conflict, Dataset, InvalidFilter, InvalidInput, NotFound, ReadOnly, Workspace, vql
from framedex.analysis import layout
from framedex.operations.maps import inside
from framedex.records import DatasetStatus, TaskStatus, TaskType
from framedex.tasks import Task
from tests.gallery import BROKEN, NAMES, SETTINGS, make_gallery
from tests.growth import THRESHOLDS, families, ids_of, part, status_of
from tests.inside import layout_of
from tests.objects import scenes
from tests.pauses import all_threads_busy
from tests.prepared import prepared
from tests.tuning import Tuning
from tests.videos import numbered, write_video

ROWS = families(80)
REGION = [(0.0, -1e6), (1e6, -1e6), (1e6, 1e6), (0.0, 1e6)]
"""The right half of a map."""


@pytest.fixture
def dataset(workspace: Workspace) -> Dataset:
    """A dataset of some families of vectors, and a row without one."""
    return prepared(workspace, "pets", part([*ROWS[:60], None]), thresholds=THRESHOLDS)


def places(found: pa.Table) -> dict[str, tuple[float, float]]:
    """Return the places on a map by id."""
    columns = (found[name].to_pylist() for name in ("media_id", "x", "y"))
    return {media_id: (x, y) for media_id, x, y in zip(*columns, strict=True)}


def files(dataset: Dataset) -> list[Path]:
    """Return the stored maps of a dataset."""
    return sorted(layout_of(dataset).maps(dataset.id).glob("*"))


def maps_made(workspace: Workspace) -> int:
    """Return how many tasks have made maps."""
    return sum(each.task_type is TaskType.MAP for each in workspace.tasks(page_size=50).tasks)


@pytest.mark.slow
@pytest.mark.only_soak
def test_map__places_of_all_with_an_embedding(workspace: Workspace, dataset: Dataset) -> None:
    """Each item with an embedding has a place; a task makes the map once, and the dataset is READY all the time."""
    found = dataset.map()
    assert found.column_names == ["media_id", "x", "y"]
    assert found.schema.types == [pa.string(), pa.float32(), pa.float32()]
    ids = ids_of(dataset)
    assert found["media_id"].to_pylist() == [ids[f"{number}.jpg"] for number in range(60)]
    assert np.isfinite(np.asarray(found["x"])).all()
    assert dataset.map() == found
    assert maps_made(workspace) == 1
    assert status_of(dataset) is DatasetStatus.READY
    assert len(files(dataset)) == 1


def test_map__equal_media_have_one_place(workspace: Workspace) -> None:
    """Rows with the same vector lie on each other, and others do not."""
    dataset = workspace.create_dataset("twins", part([*ROWS[:30], *ROWS[:5]]), thresholds=THRESHOLDS)
    found = np.stack([np.asarray(dataset.map()[name]) for name in "xy"], axis=1)
    np.testing.assert_array_equal(found[:5], found[30:])
    assert len(np.unique(found, axis=0)) == 30


@pytest.mark.slow
@pytest.mark.only_soak
@pytest.mark.parametrize("rows", [1, 2, 3])
def test_map__few(workspace: Workspace, rows: int) -> None:
    """A dataset of few media has a map, too."""
    dataset = workspace.create_dataset("few", part([*ROWS[:rows], None]), thresholds=THRESHOLDS)
    assert dataset.map().num_rows == rows
    assert dataset.where(vql.map_region(REGION)).count() <= rows


@pytest.mark.slow
def test_map__of_other_entities(workspace: Workspace, tmp_path: Path) -> None:
    """Objects have a map of their own; a video is at the mean place of its frames."""
    scenes(tmp_path / "scenes", 4)
    media = workspace.create_dataset("scenes", tmp_path / "scenes")
    objects = media.map("OBJECTS")
    assert set(objects["media_id"].to_pylist()) == set(media.objects.media_ids())
    assert media.objects.where(vql.map_region(REGION)).count() == int((np.asarray(objects["x"]) > 0).sum())
    assert media.map().num_rows == media.view.count()
    assert media.map("VIDEOS").num_rows == 0
    write_video(tmp_path / "films" / "a.webm", numbered(20))
    write_video(tmp_path / "films" / "b.webm", numbered(20, seed=3))
    films = workspace.create_dataset("films", tmp_path / "films")
    assert films.map("OBJECTS").num_rows == 0
    assert films.objects.where(vql.map_region(REGION)).count() == 0
    frames = places(films.map())
    videos = places(films.map("VIDEOS"))
    rows = films.view.to_arrow(["media_id", "video_id"]).to_pylist()
    assert set(videos) == {row["video_id"] for row in rows}
    for video, place in videos.items():
        of_frames = [frames[row["media_id"]] for row in rows if row["video_id"] == video]
        assert place == pytest.approx(np.mean(of_frames, axis=0), abs=1e-4)
    with pytest.raises(InvalidInput, match="entity_type must be one of"):
        films.map("FILMS")


@pytest.mark.slow
@pytest.mark.only_soak
def test_map_region__is_what_lies_inside(dataset: Dataset) -> None:
    """A region filters as plain Python does, alone, negated and with other conditions; the order stays."""
    found = places(dataset.map())
    right = [each for each in dataset.view.media_ids() if each in found and found[each][0] > 0]
    assert 0 < len(right) < 60
    region = vql.map_region(REGION)
    assert dataset.where(region).media_ids() == right
    assert dataset.where(~region).count() == 61 - len(right)
    assert dataset.where(region | vql.issues("corrupted")).count() >= len(right)
    dataset.tag(right[:3], "some")
    assert dataset.where(region & vql.tags("some")).media_ids() == right[:3]
    view = dataset.save_view("right", dataset.where(region))
    assert len(view.view()) == len(right)
    assert dataset.search("nothing", by="words").where(region).count() == 0


def test_map_region__of_an_l_and_a_star() -> None:
    """The inside of a polygon is that of the even-odd rule, wherever corners are."""
    step = np.arange(0.5, 6, 1)
    grid = np.stack(np.meshgrid(step, step), axis=-1).reshape(-1, 2).astype(np.float32)
    corner = np.array([[0, 0], [6, 0], [6, 2], [2, 2], [2, 6], [0, 6]], float)
    expected = (grid[:, 1] < 2) | (grid[:, 0] < 2)
    np.testing.assert_array_equal(inside(grid, corner), expected)
    np.testing.assert_array_equal(inside(grid, corner[::-1]), expected)
    angle = np.pi / 2 + np.arange(5) * 4 * np.pi / 5
    star = 3 + 3 * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    assert not inside(np.array([[3, 3]], np.float32), star)[0]  # enclosed twice
    assert inside(np.array([[3, 5]], np.float32), star)[0]
    assert not inside(grid[:0], star).any()


@pytest.mark.slow
def test_map_region__without_a_map(dataset: Dataset) -> None:
    """A region needs a map, and says so; what is no region is refused with its place in the filter."""
    with pytest.raises(NotFound, match=r"no map of the present index; make it with ds.map\(\)"):
        dataset.where(vql.map_region(REGION)).count()
    wrong: list[tuple[Any, str]] = [
        ([[0, 0], [1, 1]], "at least 3"),
        ([[0, 0], [1, 1], [2, float("nan")]], "finite"),
        ([[0, 0], [1, 1], [2, 1e7]], "less than or equal to 1000000"),
        ([[0, 0, 0]] * 3, "at most 2"),
        ("x", "tuple|list|number"),
        ([[0, 0]] * 2001, "at most 2000"),
        ([["a", 0]] * 3, "number"),
    ]
    for value, words in wrong:
        with pytest.raises(InvalidFilter, match=words):
            dataset.where([{"map_region": {"op": "inside", "value": value}}])


@pytest.mark.slow
@pytest.mark.only_soak
def test_map__while_the_dataset_changes(workspace: Workspace, dataset: Dataset) -> None:
    """Edits leave the map as it is; added media get places, and an index leaves the others about where they were."""
    before = places(dataset.map())
    dataset.tag(dataset.view.media_ids()[:2], "keep")
    assert places(dataset.map()) == before
    assert maps_made(workspace) == 1
    dataset.add_media(part(ROWS[60:63], 61), auto_reindex=False)
    assert status_of(dataset) is DatasetStatus.PARTIAL_INDEX
    between = places(dataset.map())
    dataset.reindex()
    after = places(dataset.map())
    assert maps_made(workspace) == 3
    assert len(between) == len(after) == 63
    moved = [np.subtract(after[each], before[each]) for each in before]
    width = np.ptp([*before.values()], axis=0).max()
    assert np.median(np.linalg.norm(moved, axis=1)) < 0.1 * width
    gone = [*before][:4]
    dataset.delete_media(gone)
    assert set(places(dataset.map())) == set(after) - set(gone)
    assert len(files(dataset)) <= 2


@pytest.mark.slow
@pytest.mark.only_soak
def test_map__of_a_deletion_of_few(workspace: Workspace, tuning: Tuning) -> None:
    """Where a deletion writes only layers, the map stays; the deleted media are not on it."""
    tuning.written_rows = 100
    dataset = workspace.create_dataset("many", part(families(400)), thresholds=THRESHOLDS)
    before = places(dataset.map())
    gone = [*before][7]
    dataset.delete_media([gone])
    assert places(dataset.map()) == {each: place for each, place in before.items() if each != gone}
    assert maps_made(workspace) == 1


def test_start_map__one_task_for_all(workspace: Workspace, dataset: Dataset) -> None:
    """A second request gets the task of the first; edits and other tasks do not wait for it; an abort leaves no map."""
    with all_threads_busy(workspace):
        task = dataset.start_map()
        assert dataset.start_map().id == task.id
        assert dataset.start_map("OBJECTS").id != task.id
        dataset.tag(dataset.view.media_ids()[:1], "meanwhile")
        dataset.snapshot("meanwhile")
        assert status_of(dataset) is DatasetStatus.READY
        assert task.abort().status is TaskStatus.ABORTED
    assert status_of(dataset) is DatasetStatus.READY
    assert not files(dataset)
    task.retry()
    task.wait()
    assert len(files(dataset)) == 1
    assert task.record.task_type is TaskType.MAP


@pytest.mark.slow
def test_start_map__aborted_in_the_middle(
    workspace: Workspace, dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An abort while rows move ends the task soon; nothing is stored."""
    task: list[Task] = []
    descend = layout._descend

    def aborting(*arguments: Any) -> Any:
        for number, each in enumerate(descend(*arguments)):
            if number == 10:
                task[0]._run.progress.cancel()  # type: ignore[union-attr] # it runs here
            yield each

    monkeypatch.setattr(layout, "_descend", aborting)
    with all_threads_busy(workspace):
        task.append(dataset.start_map())
    with pytest.raises(Aborted):
        task[0].wait()
    assert task[0].status is TaskStatus.ABORTED
    assert not files(dataset)


@pytest.mark.slow
def test_map__read_only(workspace: Workspace, dataset: Dataset) -> None:
    """In a workspace that was opened for reading, a stored map is read, and a missing one made in memory."""
    found = dataset.map()
    with Workspace(workspace.path, read_only=True, settings=SETTINGS) as reading:
        assert reading.dataset("pets").map() == found
    shutil.rmtree(layout_of(dataset).map_cache)
    with Workspace(workspace.path, read_only=True, settings=SETTINGS) as reading:
        other = reading.dataset("pets")
        with pytest.raises(ReadOnly):
            other.start_map()
        with pytest.raises(NotFound):
            other.where(vql.map_region(REGION)).count()
        assert places(other.map()).keys() == places(found).keys()
        assert other.where(vql.map_region(REGION)).count() > 0
    assert not os.path.lexists(layout_of(dataset).map_cache)


@pytest.mark.slow
@pytest.mark.only_soak
def test_map__without_an_index(workspace: Workspace, tmp_path: Path) -> None:
    """A dataset that is being created has no map yet, in words."""
    workspace.create_dataset("first", part(ROWS[:3]))
    make_gallery(tmp_path / "gallery")
    with all_threads_busy(workspace):
        dataset = workspace.create_dataset("new", tmp_path / "gallery", wait=False)
        with pytest.raises(Conflict, match="nothing to show yet"):
            dataset.map()
    assert dataset.task is not None
    dataset.task.wait()
    assert dataset.map().num_rows == len(NAMES) - len(BROKEN)


@pytest.mark.slow
@pytest.mark.only_soak
def test_map__damaged_file(workspace: Workspace, dataset: Dataset) -> None:
    """A damaged file is made again, in another process or after the memory was freed."""
    found = dataset.map()
    files(dataset)[0].write_bytes(b"damaged")
    with Workspace(workspace.path, settings=SETTINGS) as other:
        assert other.dataset("pets").map()["media_id"] == found["media_id"]
        assert maps_made(other) == 2


def test_delete_dataset__while_a_map_is_made(workspace: Workspace, dataset: Dataset) -> None:
    """A map does not keep a dataset from being deleted; its task ends, and vacuum leaves nothing of it."""
    with all_threads_busy(workspace):
        task = dataset.start_map()
        workspace.delete_dataset("pets")
    with pytest.raises(NotFound):
        task.wait(timeout_s=30)
    assert task.status is TaskStatus.FAILED
    workspace.vacuum()
    assert not [*layout_of(dataset).map_cache.glob("*")]
