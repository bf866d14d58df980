"""Media that are deleted leave everything; what is left is as if they had never been there, but for its clusters."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from framedex import Conflict, Dataset, InvalidInput, NotFound, Workspace
from framedex.jobs.index.finish import read_sums
from framedex.records import DatasetStatus, TaskStatus, TaskType
from framedex.storage.media_rows import CLUSTERS, DUPLICATES
from tests.analysis.arrays import same_partition, unit
from tests.gallery import SETTINGS, fill
from tests.growth import THRESHOLDS, columns_of, families, grown, ids_of, part, partition, status_of, summary_of
from tests.inside import stored_media
from tests.laws import examples
from tests.pauses import Pause, watched
from tests.prepared import prepared
from tests.tuning import tuned

SCORES = ("uniqueness", "outlier_distance", "duplicate_similarity", "issue_duplicates", "label_support")


def rows_left(dataset: Dataset, gone: list[int]) -> list[int]:
    """Delete rows by their numbers, and return the numbers of those that are left."""
    ids = columns_of(dataset, ["media_id"])["media_id"]
    dataset.delete_media([ids[row] for row in gone])
    left = [row for row in range(len(ids)) if row not in set(gone)]
    assert columns_of(dataset, ["media_id"])["media_id"] == [ids[row] for row in left]
    return left


def assert_graph_whole(dataset: Dataset) -> None:
    """Check that the kept graph names rows of the table, with their true similarities, and copies by the first."""
    columns = columns_of(dataset, ["embedding", "original", "neighbours", "neighbour_similarity"])
    vectors = {row: np.array(vector) for row, vector in enumerate(columns["embedding"]) if vector is not None}
    firsts = [row for row, first in enumerate(columns["original"]) if first == row]
    for row, first in enumerate(columns["original"]):
        assert (first is None) == (row not in vectors)
        if first is not None and first != row:
            assert first < row
            np.testing.assert_array_equal(vectors[first], vectors[row])
    for row in firsts:
        listed = [
            (other, near)
            for other, near in zip(
                columns["neighbours"][row] or [], columns["neighbour_similarity"][row] or [], strict=True
            )
            if other >= 0
        ]
        assert 2 * len(listed) >= min(20, len(firsts) - 1)
        assert {other for other, _ in listed} <= set(firsts) - {row}
        for other, near in listed:
            assert abs(float(vectors[row] @ vectors[other]) - near) < 2e-6


@pytest.mark.slow
@examples(25)
@given(st.integers(1, 70), st.integers(0, 20), st.floats(0, 1), st.booleans(), st.integers(0, 2**16))
def test_delete_media__law(
    tmp_path_factory: pytest.TempPathFactory, count: int, copies: int, share: float, all_anew: bool, seed: int
) -> None:
    """Duplicates and neighbours are those of the rows that are left, clusters lose members, later additions work."""
    rng = np.random.default_rng(seed)
    rows = families(count, seed=seed)
    rows = np.concatenate([rows, rows[rng.integers(0, count, copies)]])[rng.permutation(count + copies)]
    gone = np.flatnonzero(rng.random(len(rows)) < share).tolist()
    with tuned() as tuning:
        tuning.rebuilt_rows = 1000 if all_anew else 0
        tuning.stored_mean_rows = 2
        tuning.stored_means_share = 1.0
        with Workspace(tmp_path_factory.mktemp("law") / "w", settings=SETTINGS) as workspace:
            half = len(rows) // 2
            dataset = grown(workspace, rows, half, len(rows) - half) if half else grown(workspace, rows, len(rows))
            before, status = columns_of(dataset), status_of(dataset)
            left = rows_left(dataset, gone)
            assert (dataset.info.n_images, dataset.count(), status_of(dataset)) == (len(left), len(left), status)
            assert_graph_whole(dataset)
            found = columns_of(dataset)
            for name in CLUSTERS:
                assert found[name] == [before[name][row] for row in left]
            if left:
                fresh = workspace.create_dataset("fresh", part(rows[left]), thresholds=THRESHOLDS)
                anew = columns_of(fresh)
                for name in DUPLICATES:
                    assert same_partition(partition(found[name]), partition(anew[name]))
                near, wanted = (columns_of(each, ["duplicate_similarity"]) for each in (dataset, fresh))
                np.testing.assert_allclose(
                    np.array(near["duplicate_similarity"], float),
                    np.array(wanted["duplicate_similarity"], float),
                    atol=2e-6,
                )
            assert_sums_whole(dataset)
            dataset.add_media(part(families(7, seed=seed + 1), 1000))
            assert dataset.count() == len(left) + 7
            assert_graph_whole(dataset)
            dataset.reindex()
            assert (dataset.info.n_images, status_of(dataset)) == (len(left) + 7, DatasetStatus.READY)


def assert_sums_whole(dataset: Dataset) -> None:
    """Check that the kept sums of clusters are those of their members."""
    media = stored_media(dataset)
    sums = read_sums(media.table.path, media.generation)
    columns = columns_of(dataset, ["embedding", *CLUSTERS])
    if sums is None:
        return
    for key, weight, total in zip(sums.keys.tolist(), sums.weights.tolist(), sums.sums, strict=True):
        numbers = columns[CLUSTERS[key >> 32]]
        members = [np.array(columns["embedding"][row]) for row, number in enumerate(numbers) if number == key % 2**32]
        assert weight == len(members)
        np.testing.assert_allclose(total, np.sum(members, axis=0) if members else 0, atol=1e-4)


@pytest.mark.slow
def test_delete_media__scores_as_if_never_there(workspace: Workspace) -> None:
    """Scores of rows that had a deleted neighbour are those of a dataset that never had it; limits stay."""
    rows = families(300, seed=4)
    labels = [f"label {row % 4}" for row in range(300)]
    dataset = workspace.create_dataset("d", part(rows, label=labels), thresholds=THRESHOLDS)
    limits = summary_of(dataset)["issue_thresholds"]
    left = rows_left(dataset, list(range(40, 90)))
    fresh = workspace.create_dataset(
        "fresh", part(rows[left], label=[labels[row] for row in left]), thresholds=THRESHOLDS
    )
    assert summary_of(dataset)["issue_thresholds"] == limits
    found, anew = (columns_of(each, SCORES) for each in (dataset, fresh))
    for name in ("outlier_distance", "duplicate_similarity", "issue_duplicates", "label_support"):
        np.testing.assert_allclose(np.array(found[name], float), np.array(anew[name], float), atol=1e-4, err_msg=name)


@pytest.mark.slow
def test_delete_media__by_view_id_or_list(workspace: Workspace) -> None:
    """A view, an id and a list are deleted; an unknown id or another thing deletes nothing."""
    dataset = workspace.create_dataset("d", part(unit(np.eye(8)), label=["a", "b"] * 4), thresholds=THRESHOLDS)
    ids = ids_of(dataset)
    assert dataset.delete_media(dataset.where([{"labels": {"op": "is", "value": "b"}}])).status is TaskStatus.COMPLETED
    assert sorted(ids_of(dataset)) == ["0.jpg", "2.jpg", "4.jpg", "6.jpg"]
    dataset.delete_media(ids["0.jpg"])
    with pytest.raises(NotFound, match="no media 'nobody' in this dataset"):
        dataset.delete_media([ids["2.jpg"], "nobody"])
    with pytest.raises(NotFound, match=ids["0.jpg"]):
        dataset.delete_media(ids["0.jpg"])
    for wrong in (3, [4], {"a": 1}, None):
        with pytest.raises(InvalidInput, match="must be a view, an id or a list"):
            dataset.delete_media(wrong)  # type: ignore[arg-type]
    dataset.delete_media([ids["2.jpg"], ids["2.jpg"]])
    assert sorted(ids_of(dataset)) == ["4.jpg", "6.jpg"]
    assert {record.task_type for record in workspace.tasks().tasks} == {
        TaskType.DATASET_CREATION,
        TaskType.MEDIA_DELETION,
    }


@pytest.mark.slow
def test_delete_media__keeps_decisions(workspace: Workspace) -> None:
    """Media decided not to be duplicates stay in separate groups when another member is deleted."""
    near = unit(np.array([[1, 0.01, 0], [1, 0.02, 0], [1, 0, 0.01], [0, 0, 1]]))
    dataset = workspace.create_dataset("d", part(near), thresholds=THRESHOLDS)
    ids = ids_of(dataset)
    dataset.not_duplicates([ids["0.jpg"], ids["1.jpg"]])
    dataset.delete_media(ids["2.jpg"])
    assert dataset.duplicates() == []
    dataset.reindex(thresholds=THRESHOLDS)
    assert dataset.duplicates() == []


@pytest.mark.slow
def test_delete_media__files_stay(workspace: Workspace, folder: Path) -> None:
    """The images themselves are not touched, and can be added again."""
    dataset = prepared(workspace, "d", folder, "gist")
    files = sorted(path.name for path in folder.iterdir())
    dataset.delete_media(dataset.where([]))
    assert (dataset.count(), dataset.explore().clusters) == (0, [])
    assert sorted(path.name for path in folder.iterdir()) == files
    dataset.add_media(folder)
    assert dataset.count() == 6
    assert dataset.skipped == {}


def test_delete_media__one_task_at_a_time(workspace: Workspace) -> None:
    """While media are deleted nothing else changes the dataset, which shows all of them until that is done."""
    dataset = workspace.create_dataset("d", part(families(30)), thresholds=THRESHOLDS)
    some = dataset.where([]).media_ids()[:3]
    pause = Pause("writing")
    task = watched(workspace, lambda: dataset.delete_media(some, wait=False), pause)
    assert pause.reached.wait(60)
    assert (status_of(dataset), dataset.count()) == (DatasetStatus.READ_ONLY, 30)
    with pytest.raises(Conflict, match="Operation 'delete_media' is blocked while MEDIA_DELETION task is running"):
        dataset.delete_media(some)
    pause.opened.set()
    task.wait(60)
    assert (status_of(dataset), dataset.count()) == (DatasetStatus.READY, 27)


@pytest.mark.slow
def test_add_media__replaces_changed_files(workspace: Workspace, tmp_path: Path) -> None:
    """A file whose content has changed is read again in its place; one that was only touched is not."""
    folder = fill(tmp_path / "images", 6)
    dataset = prepared(workspace, "d", folder, "gist")
    ids = ids_of(dataset)
    before = dict(zip(*dataset.embeddings(), strict=True))
    dataset.tag([ids["001.png"], ids["004.png"]], "mine")
    dataset.set_labels({ids["001.png"]: ["cat"], ids["002.png"]: ["dog"]})
    dataset.set_captions({ids["003.png"]: "a text"})
    dataset.add_field("score", "float", values={ids["001.png"]: 0.5, ids["005.png"]: 1.0})
    edited = ["image_filename", "tags", "labels", "caption", "score"]
    rows = {row["image_filename"]: row for row in dataset.to_arrow(edited).to_pylist()}
    assert dataset.thumbnail(ids["001.png"]) != dataset.thumbnail(ids["004.png"])
    (folder / "001.png").write_bytes((folder / "004.png").read_bytes())
    (folder / "002.png").touch()
    (folder / "003.png").write_bytes(b"no image any more")
    dataset.add_media(folder)
    assert dataset.skipped == {"media that are there already": 4, "changed files, replaced": 2}
    assert (dataset.info.n_images, dataset.count(), ids_of(dataset)) == (6, 6, ids)
    after = dict(zip(*dataset.embeddings(), strict=True))
    np.testing.assert_array_equal(after[ids["001.png"]], before[ids["004.png"]])
    assert dataset.thumbnail(ids["001.png"]) == dataset.thumbnail(ids["004.png"])
    assert ids["003.png"] not in after
    assert {row["image_filename"]: row for row in dataset.to_arrow(edited).to_pylist()} == rows
    for name in ("000.png", "002.png", "004.png", "005.png"):
        np.testing.assert_array_equal(after[ids[name]], before[ids[name]])
    assert [sorted(group.paths) for group in dataset.duplicates(1.0)] == [["001.png", "004.png"]]
    assert_graph_whole(dataset)
    fill(tmp_path / "new", 1, first_seed=300)
    (folder / "003.png").write_bytes((tmp_path / "new" / "000.png").read_bytes())
    dataset.add_media(folder, auto_reindex=True)
    assert dataset.skipped == {"media that are there already": 5, "changed files, replaced": 1}
    assert len(dataset.embeddings()[0]) == dataset.count() == 6
    assert status_of(dataset) is DatasetStatus.READY
