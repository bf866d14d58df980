"""Labels and captions as people edit them: what follows from labels is as if they had been there from the start."""

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from framedex import Conflict, Dataset, InvalidInput, NotFound, Workspace
from tests.analysis.arrays import unit
from tests.gallery import SETTINGS, Gate, fill
from tests.growth import columns_of, families, part, summary_of
from tests.inside import stored_media
from tests.laws import examples
from tests.prepared import prepared

JUDGED = ("labels", "suggested_label", "label_support", "label_distance", "issue_mislabels", "issue_label_outlier")
ROWS = 60


def crowds(*, seed: int = 0) -> Any:
    """Return rows of three tight crowds in turn."""
    rng = np.random.default_rng(seed)
    centres = unit(rng.normal(size=(3, 8)))
    return unit(centres[np.arange(ROWS) % 3] + 0.05 * rng.normal(size=(ROWS, 8)))


@pytest.fixture
def dataset(workspace: Workspace) -> Dataset:
    """A dataset of three crowds, each with its label."""
    return prepared(workspace, "d", part(crowds(), label=[f"crowd {row % 3}" for row in range(ROWS)]))


def all_ids(dataset: Dataset) -> list[str]:
    return dataset.where([]).media_ids()


def labels_of(dataset: Dataset) -> list[list[str]]:
    labels: list[list[str]] = dataset.to_arrow(["labels"])["labels"].to_pylist()
    return labels


def assert_same(left: Dataset, right: Dataset) -> None:
    """Check that two datasets of the same rows say the same of labels."""
    mine, theirs = columns_of(left, JUDGED), columns_of(right, JUDGED)
    for name in JUDGED[:2]:
        assert mine[name] == theirs[name]
    for name in JUDGED[2:]:
        one, other = (np.array(columns[name], dtype=np.float64) for columns in (mine, theirs))
        np.testing.assert_allclose(one, other, atol=1e-6, err_msg=name)


@pytest.mark.slow
def test_labels__a_wrong_one_is_found_at_once(dataset: Dataset) -> None:
    """A label that does not fit becomes an issue with a suggestion, and a corrected one is an issue no more."""
    ids = all_ids(dataset)
    assert len(dataset.issues("mislabels")) == 0
    dataset.set_labels({ids[4]: ["crowd 2"]})
    (found,) = dataset.issues("mislabels").to_pylist()
    assert (found["media_id"], found["suggested_label"]) == (ids[4], "crowd 1")
    assert labels_of(dataset)[4] == ["crowd 2"]
    dataset.set_labels(ids[4], "crowd 1")
    assert len(dataset.issues("mislabels")) == 0


LABELS = st.lists(
    st.tuples(
        st.integers(0, ROWS - 1),
        st.one_of(st.none(), st.lists(st.sampled_from(("a", "b", "crowd 0", "crowd 1")), max_size=3)),
    ),
    max_size=30,
)


@pytest.mark.slow
@examples(8)
@given(LABELS, st.booleans())
def test_labels__edited_are_as_if_they_had_been_there(
    tmp_path_factory: pytest.TempPathFactory, edits: list[tuple[int, list[str] | None]], crowded: bool
) -> None:
    """After an edit, the issues of labels equal those of a dataset created with these labels."""
    rows = crowds() if crowded else families(ROWS)
    with Workspace(tmp_path_factory.mktemp("labels") / "workspace", settings=SETTINGS) as workspace:
        edited = workspace.create_dataset("edited", part(rows, label=[f"crowd {row % 3}" for row in range(ROWS)]))
        ids = all_ids(edited)
        edited.set_labels({ids[row]: labels for row, labels in edits})
        labels = pa.array([each or None for each in labels_of(edited)], pa.list_(pa.string()))
        fresh = workspace.create_dataset("fresh", part(rows, label=labels))
        assert_same(edited, fresh)
        assert summary_of(edited) == summary_of(fresh)
        assert edited.where([]).issue_summaries() == fresh.where([]).issue_summaries()


@pytest.mark.parametrize(
    ("given_labels", "expected"),
    [
        (["a", "b"], ["a", "b"]),
        ("a", ["a"]),
        ("[a, b]", ["a", "b"]),
        (["b", " b ", "a"], ["b", "a"]),
        ([7, 8.5], ["7", "8.5"]),
        (["half \ud800"], ["half ?"]),
        ([], []),
        (None, []),
        ([""], []),
    ],
)
@pytest.mark.slow
@pytest.mark.only_soak
def test_labels__by_the_rules_of_ingestion(dataset: Dataset, given_labels: Any, expected: list[str]) -> None:
    """Labels are written as in the tables that a dataset is made of."""
    ids = all_ids(dataset)
    dataset.set_labels({ids[0]: given_labels})
    dataset.set_labels(ids[2:4], given_labels)
    assert labels_of(dataset)[:5] == [expected, ["crowd 1"], expected, expected, ["crowd 1"]]
    assert columns_of(dataset, ["labels"])["labels"][0] == (expected or None)


@pytest.mark.slow
def test_labels__of_a_view(dataset: Dataset) -> None:
    """All media of a view get the same labels."""
    dataset.set_labels(dataset.where([{"labels": {"op": "is", "value": "crowd 1"}}]), ["x", "y"])
    assert labels_of(dataset) == [["x", "y"] if row % 3 == 1 else [f"crowd {row % 3}"] for row in range(ROWS)]
    dataset.set_labels(dataset.where([]), [])
    assert labels_of(dataset) == [[]] * ROWS
    assert columns_of(dataset, JUDGED[1:]) == {name: [None] * ROWS for name in JUDGED[1:]}


def test_labels__that_cannot_be(dataset: Dataset) -> None:
    """Invalid labels are refused, and nothing changes."""
    ids, before = all_ids(dataset), stored_media(dataset).generation
    for wrong in ({"a": 1}, {"a"}, [["a"]], b"a"):
        with pytest.raises(InvalidInput, match="the labels of a media item are a list of texts"):
            dataset.set_labels({ids[0]: wrong})
        with pytest.raises(InvalidInput, match="the labels of a media item are a list of texts"):
            dataset.set_labels(ids, wrong)
    with pytest.raises(InvalidInput, match="needs the value of the selection"):
        dataset.set_labels(ids)
    with pytest.raises(InvalidInput, match="not both"):
        dataset.set_labels({ids[0]: ["a"]}, ["a"])
    with pytest.raises(NotFound, match="no media 'nobody'"):
        dataset.set_labels({ids[0]: ["a"], "nobody": ["b"]})
    with pytest.raises(InvalidInput, match="a media id is text, not 5"):
        dataset.set_labels({5: ["a"]})  # type: ignore[dict-item] # that is what is refused
    assert stored_media(dataset).generation == before


def mixed_up(rows: int = ROWS) -> list[str]:
    """Return labels of the crowds of which every third row of a crowd has that of the next crowd."""
    return [f"crowd {(row + (row // 3 % 3 == 0)) % 3}" for row in range(rows)]


@pytest.mark.slow
@pytest.mark.only_soak
def test_notes__where_neighbours_say_little_of_labels(workspace: Workspace) -> None:
    """The warning is with the issues, the counts and the report, and outlives additions, snapshots and deletions."""
    rows = crowds()
    dataset = workspace.create_dataset("d", part(rows[:45], label=mixed_up(45)))
    (note,) = dataset.issues().notes
    assert note.startswith(
        "some mislabels may be right labels: only 66 % of the labels agree with those of the nearest images"
    )
    assert "another model may help" in note
    assert dataset.issues("mislabels").notes == [note]
    assert dataset.issues("blur").notes == []
    assert repr(dataset.issues("mislabels")) == f"<IssueTable: no issues>\n{note}"
    assert note in dataset.issues("mislabels")._repr_html_()
    counts = {summary.issue_type: summary for summary in dataset.where([]).issue_summaries()}
    assert (counts["mislabels"].count, counts["mislabels"].note, counts["blur"].note) == (0, note, None)
    assert note in dataset.report(workspace.path / "report.html").read_text()
    kept = dataset.snapshot("before")
    dataset.add_media(part(rows[45:], 45, label=[f"crowd {row % 3}" for row in range(45, ROWS)]))
    assert dataset.issues("mislabels").notes == [note]
    dataset.delete_media(all_ids(dataset)[:9])
    assert dataset.issues("mislabels").notes == [note]
    dataset.reindex()
    assert dataset.issues("mislabels").notes != [note]
    dataset.restore(kept)
    assert dataset.issues("mislabels").notes == [note]


@pytest.mark.slow
@pytest.mark.only_soak
def test_notes__follow_the_labels(dataset: Dataset) -> None:
    """Labels that neighbours no longer share bring the reason, and corrected ones take it away."""
    ids = all_ids(dataset)
    assert dataset.issues().notes == []
    dataset.set_labels({media_id: [label] for media_id, label in zip(ids, mixed_up(), strict=True)})
    assert len(dataset.issues().notes) == 1
    dataset.set_labels({media_id: [f"crowd {row % 3}"] for row, media_id in enumerate(ids)})
    assert dataset.issues().notes == []
    dataset.set_labels({ids[4]: ["crowd 2"]})
    assert len(dataset.issues("mislabels")) == 1


@pytest.mark.slow
@pytest.mark.only_soak
def test_labels__of_added_media(workspace: Workspace) -> None:
    """Media that were added since the last index are judged too, and those added later find the edited labels."""
    rows = crowds()
    dataset = workspace.create_dataset("d", part(rows[:45], label=[f"crowd {row % 3}" for row in range(45)]))
    dataset.add_media(part(rows[45:], 45))
    ids = all_ids(dataset)
    edits = {ids[row]: [f"crowd {row % 3}"] for row in range(45, ROWS)}
    dataset.set_labels(edits | {ids[50]: ["crowd 0"], ids[0]: ["crowd 1"]})
    assert set(dataset.issues("mislabels")["media_id"].to_pylist()) == {ids[0], ids[50]}
    assert dataset.info.status_new == "PARTIAL INDEX"
    before = columns_of(dataset, JUDGED)
    dataset.reindex()
    after = columns_of(dataset, JUDGED)
    assert before["suggested_label"] == after["suggested_label"]
    assert before["labels"] == after["labels"]


@pytest.mark.slow
def test_labels__without_embeddings(workspace: Workspace, tmp_path: Path) -> None:
    """Broken files can have labels; nothing is said of them."""
    folder = tmp_path / "images"
    folder.mkdir()
    for number in range(2):
        (folder / f"{number}.jpg").write_bytes(b"no image")
    dataset = workspace.create_dataset("d", folder, "gist")
    dataset.set_labels(dataset.where([]), ["a"])
    assert labels_of(dataset) == [["a"], ["a"]]
    assert columns_of(dataset, ["label_support"])["label_support"] == [None, None]


@pytest.mark.slow
def test_labels__leave_the_rest(dataset: Dataset) -> None:
    """An edit of labels changes what is said of labels and nothing else."""
    names = [name for name in stored_media(dataset).table.schema.names if name not in JUDGED]
    before = columns_of(dataset, names)
    dataset.set_labels(dataset.where([]), ["a"])
    dataset.set_captions(dict.fromkeys(all_ids(dataset), "b"))
    names.remove("caption")
    assert columns_of(dataset, names) == {name: before[name] for name in names}


@pytest.mark.slow
def test_captions__set_and_taken_away(dataset: Dataset, tmp_path: Path) -> None:
    """A caption is text; None and blanks are none."""
    ids = all_ids(dataset)
    dataset.set_captions({ids[0]: "naïve, \"雪\"\n", ids[1]: " a ", ids[2]: "c"})  # fmt: skip
    dataset.set_captions({ids[2]: None, ids[3]: " \n", ids[4]: "half \ud800"})
    captions = dataset.to_arrow(["caption"])["caption"].to_pylist()
    assert captions[:5] == ["naïve, \"雪\"\n", " a ", None, None, "half ?"]  # fmt: skip
    assert captions[5:] == [None] * (ROWS - 5)
    assert dataset.explore().clusters[0].previews
    dataset.export(tmp_path / "out.zip")
    assert "naïve" in zipfile.ZipFile(tmp_path / "out.zip").read("metadata.json").decode()


def test_captions__that_cannot_be(dataset: Dataset) -> None:
    """Invalid captions are refused, and nothing changes."""
    ids, before = all_ids(dataset), stored_media(dataset).generation
    with pytest.raises(InvalidInput, match="a caption is text or None"):
        dataset.set_captions({ids[0]: "a", ids[1]: 5})  # type: ignore[dict-item] # that is what is refused
    with pytest.raises(NotFound, match="no media 'nobody'"):
        dataset.set_captions({ids[0]: "a", "nobody": "b"})
    with pytest.raises(InvalidInput, match="captions by media id, not list"):
        dataset.set_captions([ids[0]])  # type: ignore[arg-type] # that is what is refused
    assert stored_media(dataset).generation == before


@pytest.mark.slow
def test_edits__wait_for_no_task(workspace: Workspace, tmp_path: Path) -> None:
    """While a task works on the dataset its labels and captions stay as they are."""
    gate = Gate()
    dataset = workspace.create_dataset("d", fill(tmp_path / "images", 3), gate, wait=False)
    assert gate.reached.wait(60)
    with pytest.raises(Conflict, match="'set_labels' is blocked while DATASET_CREATION task is running"):
        dataset.set_labels(dataset.where([]), ["a"])
    with pytest.raises(Conflict, match="'set_captions' is blocked while DATASET_CREATION task is running"):
        dataset.set_captions({"any": "a"})
    gate.opened.set()
    assert dataset.task is not None
    dataset.task.wait()


def test_set_labels__null_characters(workspace: Workspace, folder: Path) -> None:
    """A label with a null character, which readers of exports take for an end, is refused; nothing is changed."""
    dataset = workspace.create_dataset("d", folder)
    for labels in ("a\0b", ["cat", "\0"]):
        with pytest.raises(InvalidInput, match="a label has no null characters; this is "):
            dataset.set_labels(dataset.where([]), labels)
    assert dataset.to_arrow(["labels"])["labels"].to_pylist() == [[]] * 6
