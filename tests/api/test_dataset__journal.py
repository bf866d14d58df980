"""The journal: who edited what and when; steps are undone and done again, unless others touched the same since."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from framedex import Conflict, Dataset, InvalidInput, NotFound, Workspace
from framedex.storage import datasets
from tests.analysis.arrays import unit
from tests.clock import turning
from tests.gallery import SETTINGS
from tests.growth import part
from tests.image_files import encode, photo
from tests.inside import stored_media
from tests.laws import examples, rest_slow
from tests.prepared import prepared

ROWS = 12
STORED = ("labels", "caption", "tags", "tagged_at", "field_0", "field_1", "duplicate_0")


@pytest.fixture
def dataset(workspace: Workspace) -> Dataset:
    """A dataset of twelve rows with labels and a few copies."""
    return create(workspace)


def create(workspace: Workspace) -> Dataset:
    rows = unit(np.random.default_rng(0).normal(size=(ROWS, 8)))
    rows[6:9] = rows[:3]
    return prepared(workspace, "d", part(rows, label=[f"label {row % 3}" for row in range(ROWS)]))


def ids_of(dataset: Dataset) -> list[str]:
    return dataset.where([]).media_ids()


def state(dataset: Dataset) -> dict[str, Any]:
    """Return what people edited."""
    media = stored_media(dataset)
    names = [name for name in STORED if name in media.table.schema.names]
    columns: dict[str, Any] = media.table.scan(names).read_all().to_pydict()
    columns = {name: values for name, values in columns.items() if any(each is not None for each in values)}
    columns.pop("duplicate_0", None)
    columns["groups"] = sorted(sorted(group.media_ids) for group in dataset.duplicates())
    columns["tag names"] = {tag.name: tag.count for tag in dataset.tags()}
    columns["limits"] = {name: limit.limit for name, limit in dataset.limits.items()}
    columns["decisions"] = dataset.duplicate_decisions()
    columns["label decisions"] = dataset.label_decisions()
    columns["issues"] = [
        sorted(dataset.issues(name)["media_id"].to_pylist()) for name in ("mislabels", "label_outlier")
    ]
    columns["fields"] = dataset.fields()
    return columns


@pytest.mark.slow
def test_journal__says_who_did_what(workspace: Workspace, dataset: Dataset) -> None:
    """Each edit is a step, with its user, its time and the number of media that it changed."""
    ids = ids_of(dataset)
    begin = datasets.now()
    dataset.tag(ids[:3], "seen")
    workspace.acting_as("ann@example.org").dataset("d").set_labels(ids[:2], "label 0")
    second, first = dataset.journal()
    assert (first.step, first.operation, first.n_media) == (1, "tag", 3)
    assert (second.step, second.operation, second.n_media) == (2, "set_labels", 1)  # the other one had it
    assert (first.created_by, second.created_by) == (SETTINGS.user, "ann@example.org")
    assert begin <= first.created_at <= second.created_at <= datasets.now()
    assert dataset.journal(1) == [second]
    undone = workspace.acting_as("bob@example.org").dataset("d").undo()
    assert (undone.step, undone.undone_by) == (2, "bob@example.org")
    assert dataset.journal()[0] == undone


EDITS = {
    "tag": lambda dataset, ids: dataset.tag(ids[:3], "seen"),
    "tag again": lambda dataset, ids: dataset.tag(ids[2:5], "kept"),
    "untag": lambda dataset, ids: dataset.untag(ids[:2], "kept"),
    "set_labels": lambda dataset, ids: dataset.set_labels({ids[0]: ["new", "label 1"], ids[1]: []}),
    "set_captions": lambda dataset, ids: dataset.set_captions({ids[4]: "a caption", ids[5]: None}),
    "create_tag": lambda dataset, ids: dataset.create_tag("empty"),
    "rename_tag": lambda dataset, ids: dataset.rename_tag("kept", "renamed"),
    "delete_tag": lambda dataset, ids: dataset.delete_tag("kept"),
    "not_duplicates": lambda dataset, ids: dataset.not_duplicates([ids[0], ids[6]]),
    "withdraw_decision": lambda dataset, ids: dataset.withdraw_decision(dataset.duplicate_decisions()[0].decision_id),
    "set_limits": lambda dataset, ids: dataset.set_limits(outliers=0.3),
    "set_field": lambda dataset, ids: dataset.set_field("score", {ids[3]: 2.5, ids[7]: None}),
    "add_field": lambda dataset, ids: dataset.add_field("empty", "string", is_multi=True),
    "add_field with values": lambda dataset, ids: dataset.add_field(
        "note", "string", values={ids[2]: "x", ids[5]: "y"}
    ),
    "rename_field": lambda dataset, ids: dataset.rename_field("score", "points"),
    "delete_field": lambda dataset, ids: dataset.delete_field("score"),
    "label_is_right": lambda dataset, ids: dataset.label_is_right(ids[:5]),
    "withdraw_decision about labels": lambda dataset, ids: dataset.withdraw_decision(
        dataset.label_decisions()[0].decision_id
    ),
}
VALUE_EDITS = EDITS.keys() - {"delete_field"}  # which is undone only while nothing else was changed


def with_definitions(dataset: Dataset) -> list[str]:
    """Give the dataset what the edits need; return its ids."""
    ids = ids_of(dataset)
    dataset.tag(ids[:4], "kept")
    dataset.not_duplicates([ids[1], ids[7]])
    dataset.add_field("score", "float", values={ids[3]: 0.5})
    for chosen in (ids[6:9], ids[7:10]):
        dataset.label_is_right(chosen)
    return ids


@pytest.mark.slow
@pytest.mark.parametrize("name", rest_slow(EDITS, 0, long=6))
def test_undo__and_redo(dataset: Dataset, name: str) -> None:
    """An edit that is undone leaves the state before it, and one that is done again the state after it."""
    ids = with_definitions(dataset)
    before = state(dataset)
    EDITS[name](dataset, ids)
    after = state(dataset)
    assert after != before
    step = dataset.journal()[0].step
    for _ in range(2):
        assert dataset.undo().step == step
        assert state(dataset) == before
        assert dataset.redo().step == step
        assert state(dataset) == after
    with pytest.raises(Conflict, match="nothing to redo"):
        dataset.redo()


@pytest.mark.slow
@examples(30)
@given(
    st.lists(st.one_of(st.sampled_from(sorted(VALUE_EDITS)), st.sampled_from(["undo", "undo", "redo"])), max_size=12)
)
@pytest.mark.only_soak
def test_undo__of_any_sequence(tmp_path_factory: pytest.TempPathFactory, steps: list[str]) -> None:
    """Undoing steps one by one, the last first, leads back through the states, and redoing them forward again."""
    with Workspace(tmp_path_factory.mktemp("journal") / "workspace", settings=SETTINGS) as workspace:
        dataset = create(workspace)
        ids = with_definitions(dataset)
        done, undone = [state(dataset)], []
        for step in steps:
            if step == "undo" and len(done) > 1:
                dataset.undo()
                undone.append(done.pop())
            elif step == "redo" and undone:
                dataset.redo()
                done.append(undone.pop())
            elif step in VALUE_EDITS:
                try:
                    EDITS[step](dataset, ids)
                except (NotFound, Conflict, InvalidInput, IndexError):  # a tag, field or decision is gone or there
                    continue
                if undone or state(dataset) == done[-1]:  # what was undone may not be done again after another edit
                    return
                done.append(state(dataset))
            assert state(dataset) == done[-1]


def test_undo__of_an_earlier_step(dataset: Dataset) -> None:
    """A step is undone while later steps stay, if they did not touch the same values of the same media."""
    ids = ids_of(dataset)
    dataset.set_captions({ids[0]: "first", ids[1]: "first"})
    dataset.set_captions({ids[1]: "second"})
    dataset.set_captions({ids[2]: "third"})
    with pytest.raises(Conflict, match=r"step 1 .* cannot be undone: .*same media: step 2 \(set_captions by"):
        dataset.undo(1)
    dataset.undo(2)
    dataset.undo(1)
    assert dataset.to_arrow(["caption"])["caption"].to_pylist()[:3] == [None, None, "third"]
    with pytest.raises(Conflict, match="undone already"):
        dataset.undo(1)
    with pytest.raises(NotFound, match="no step 9"):
        dataset.undo(9)


def test_undo__of_deleted_media(dataset: Dataset) -> None:
    """A step is not undone in part: if one of its media was deleted, nothing changes."""
    ids = ids_of(dataset)
    dataset.set_captions({ids[0]: "first", ids[1]: "first"})
    dataset.delete_media(ids[0])
    with pytest.raises(Conflict, match="the dataset has 1 of its 2 media no longer"):
        dataset.undo(1)
    assert dataset.to_arrow(["caption"])["caption"].to_pylist()[0] == "first"


@pytest.mark.slow
def test_undo__of_a_deletion(workspace: Workspace, dataset: Dataset) -> None:
    """A deletion is undone by the state before it, and done again by the one after it."""
    ids = ids_of(dataset)
    dataset.set_captions({ids[0]: "kept"})
    before = state(dataset)
    dataset.delete_media(ids[3:6])
    after = state(dataset)
    workspace.vacuum()  # what undoing needs stays
    step = dataset.journal()[0]
    assert (step.operation, step.n_media) == ("delete_media", 3)
    for _ in range(2):
        assert dataset.undo().step == step.step
        assert (dataset.count(), state(dataset)) == (ROWS, before)
        assert dataset.redo().step == step.step
        assert (dataset.count(), state(dataset)) == (ROWS - 3, after)
    dataset.set_captions({ids[1]: "later"})
    with pytest.raises(Conflict, match="changed since; undo the later steps first"):
        dataset.undo(step.step)
    assert dataset.check().findings == []


def test_undo__of_a_tag_that_a_restore_removed(dataset: Dataset) -> None:
    """A tag that is made after a restore is another tag than one that the restore removed: undoing cannot mix them."""
    ids = ids_of(dataset)
    kept = dataset.snapshot("kept")
    dataset.tag(ids[0], "first")
    dataset.untag(ids[0], "first")
    dataset.restore(kept)
    dataset.tag(ids[1], "second")
    with pytest.raises(Conflict, match="a tag of these media was deleted"):
        dataset.undo(2)
    assert [(each.name, each.count) for each in dataset.tags()] == [("second", 1)]


def test_undo__of_a_field_that_a_restore_removed(dataset: Dataset) -> None:
    """A field that is made after a restore does not take values of one that the restore removed."""
    ids = ids_of(dataset)
    kept = dataset.snapshot("kept")
    dataset.add_field("first", "float", values={ids[0]: 1.0})
    dataset.set_field("first", {ids[0]: None})
    dataset.restore(kept)
    dataset.add_field("second", "float", values={ids[1]: 2.0})
    with pytest.raises(Conflict, match="do not exist any more"):
        dataset.undo(2)
    assert dataset.to_arrow(["second"])["second"].to_pylist()[:2] == [None, 2.0]


def test_redo__of_a_decision_about_deleted_media(dataset: Dataset) -> None:
    """A decision about media that are gone is not made again; that is a conflict, as for other steps."""
    ids = ids_of(dataset)
    dataset.not_duplicates(ids[3:5])
    dataset.undo()
    dataset.delete_media(ids[3])
    with pytest.raises(Conflict, match=r"step 1 .* cannot be redone: media of the decision"):
        dataset.redo(1)


@pytest.mark.parametrize("kind", ["duplicates", "labels"])
@pytest.mark.slow
def test_redo__of_a_decision_that_a_restore_brought_back(dataset: Dataset, kind: str) -> None:
    """A decision that was undone, and is back by a restore, is not made a second time."""
    ids = ids_of(dataset)
    dataset.set_labels({each: ["cat"] for each in ids[3:5]})
    made = dataset.not_duplicates(ids[3:5]) if kind == "duplicates" else dataset.label_is_right(ids[3:5])
    kept = dataset.snapshot("kept")
    dataset.undo()
    dataset.restore(kept)
    with pytest.raises(Conflict, match=r"step 2 .* cannot be redone: the decision is in the dataset already"):
        dataset.redo(2)
    decisions = dataset.duplicate_decisions() if kind == "duplicates" else dataset.label_decisions()
    assert decisions == [made]


@pytest.mark.slow
def test_redo__of_values_without_a_column(dataset: Dataset) -> None:
    """Values are set again where the media have none of the field, or of the basket, any more."""
    ids = ids_of(dataset)
    kept = dataset.snapshot("kept")
    dataset.basket.add(ids[2])
    dataset.undo()
    dataset.restore(kept)
    dataset.redo(1)
    assert dataset.basket.media_ids() == [ids[2]]
    dataset.add_field("score", "float")
    dataset.set_field("score", {ids[0]: 1.0})
    for _ in range(2):
        dataset.undo()
    for _ in range(2):
        dataset.redo()
    assert dataset.to_arrow(["score"])["score"].to_pylist()[:2] == [1.0, None]
    assert dataset.check().findings == []


def test_undo__of_a_renaming_to_the_same_name(dataset: Dataset) -> None:
    """A step that changed nothing can be undone, too."""
    dataset.create_tag("first")
    dataset.rename_tag("first", "first")
    assert dataset.undo().operation == dataset.redo().operation == "rename_tag"
    dataset.add_field("score", "float")
    dataset.rename_field("score", "score")
    assert dataset.undo().operation == dataset.redo().operation == "rename_field"


@pytest.mark.slow
def test_undo__of_a_restore(dataset: Dataset) -> None:
    """A restore is undone, too."""
    ids = ids_of(dataset)
    kept = dataset.snapshot("kept")
    dataset.set_captions({ids[0]: "after"})
    after = state(dataset)
    dataset.restore(kept)
    assert dataset.undo().operation == "restore"
    assert state(dataset) == after


def test_undo__of_what_vacuum_freed(workspace: Workspace, dataset: Dataset) -> None:
    """A vacuum of everything frees the state before a deletion; the journal says that it cannot be undone any more."""
    dataset.delete_media(ids_of(dataset)[3:6])
    workspace.vacuum(older_than_s=0)
    assert dataset.journal()[0].reason is not None
    with pytest.raises(Conflict, match="freed"):
        dataset.undo()
    assert dataset.count() == ROWS - 3


@pytest.mark.slow
def test_undo__of_a_cleanup(workspace: Workspace, dataset: Dataset) -> None:
    """A clean-up is undone by the state before it."""
    before = state(dataset)
    dataset.plan_cleanup(duplicates=0.96).apply()
    assert dataset.count() < ROWS
    assert dataset.undo().operation == "cleanup"
    assert state(dataset) == before


def test_undo__in_an_empty_journal(dataset: Dataset) -> None:
    """Without steps there is nothing to undo."""
    assert dataset.journal() == []
    with pytest.raises(Conflict, match="nothing to undo"):
        dataset.undo()


@pytest.mark.slow
def test_journal__is_bounded(tmp_path: Path) -> None:
    """Steps that are too old or too many are forgotten, with their files."""
    settings = SETTINGS.model_copy(update={"journal_bytes": 3000})
    with Workspace(tmp_path / "workspace", settings=settings) as workspace:
        dataset = create(workspace)
        ids = ids_of(dataset)
        for number in range(12):
            dataset.set_captions({ids[number]: f"caption {number}"})
        steps = [each.step for each in dataset.journal()]
        assert 1 <= len(steps) < 6
        assert steps[0] == 12
        folder = workspace.path / "datasets" / dataset.id / "journal"
        assert len(list(folder.iterdir())) == len(steps)
        with pytest.raises(NotFound):
            dataset.undo(1)


def test_journal__by_age(workspace: Workspace, dataset: Dataset) -> None:
    """A step is forgotten after some days, with the next edit."""
    dataset.create_tag("old")
    with turning() as clock:
        clock.turn(days=31)
        dataset.create_tag("new")
    assert [each.operation for each in dataset.journal()] == ["create_tag"]


def test_undo__of_a_damaged_file(workspace: Workspace, dataset: Dataset) -> None:
    """A step whose file is damaged cannot be undone, and says so; vacuum removes files that no step needs."""
    ids = ids_of(dataset)
    dataset.set_captions({ids[0]: "first"})
    folder = workspace.path / "datasets" / dataset.id / "journal"
    (file,) = folder.iterdir()
    stray = folder / "stray.arrow"
    stray.write_bytes(b"left by a killed process")
    workspace.vacuum(older_than_s=0)
    assert [each.name for each in folder.iterdir()] == [file.name]
    file.write_bytes(b"damaged")
    with pytest.raises(Exception, match="cannot be undone"):
        dataset.undo()
    assert dataset.to_arrow(["caption"])["caption"].to_pylist()[0] == "first"


@pytest.mark.slow
def test_journal__of_a_clone(dataset: Dataset) -> None:
    """A clone begins a journal of its own."""
    dataset.set_captions({ids_of(dataset)[0]: "first"})
    clone = dataset.clone(dataset.snapshot("kept"))
    assert clone.journal() == []
    clone.set_captions({ids_of(clone)[1]: "other"})
    clone.undo()
    assert clone.to_arrow(["caption"])["caption"].to_pylist()[:2] == ["first", None]


@pytest.mark.slow
def test_undo__of_a_field_that_changed_since(dataset: Dataset) -> None:
    """A field that got other values or another name since stays, and so does one whose name is in use again."""
    ids = ids_of(dataset)
    dataset.add_field("score", "float", values={ids[0]: 1.0})
    dataset.set_field("score", {ids[1]: 2.0})
    with pytest.raises(Conflict, match=r"step 1 .* a later edit gave the field 'score' values"):
        dataset.undo(1)
    dataset.undo(2)
    dataset.rename_field("score", "points")
    with pytest.raises(
        Conflict, match=r"step 1 \(add_field\) cannot be undone: the field 'score' was renamed or deleted"
    ):
        dataset.undo(1)
    dataset.undo(3)
    dataset.undo(1)
    assert dataset.fields() == []
    dataset.add_field("score", "string", values={ids[0]: "other"})
    with pytest.raises(Conflict, match=r"step 1 .* cannot be redone: another field is named 'score' now"):
        dataset.redo(1)
    assert [(each.field_name, each.field_type) for each in dataset.fields()] == [("score", "string")]
    assert dataset.field_values(ids[0])[0].value == "other"
    assert dataset.check().findings == []


def test_undo__of_a_renamed_field(dataset: Dataset) -> None:
    """A field returns to its former name unless it was renamed again, or another field has that name."""
    dataset.add_field("a", "float")
    dataset.rename_field("a", "b")
    dataset.add_field("a", "float")
    with pytest.raises(Conflict, match="another field is named 'a' now"):
        dataset.undo(2)
    dataset.rename_field("b", "c")
    with pytest.raises(Conflict, match="the field 'b' was renamed or deleted meanwhile"):
        dataset.undo(2)
    assert [each.field_name for each in dataset.fields()] == ["c", "a"]


@pytest.mark.slow
def test_undo__of_a_deleted_field(workspace: Workspace, dataset: Dataset) -> None:
    """A deleted field returns with its values, as long as nothing else was changed and its state was not freed."""
    ids = ids_of(dataset)
    dataset.add_field("score", "float", values={ids[0]: 1.0, ids[3]: 2.0})
    dataset.delete_field("score")
    step = dataset.journal()[0]
    assert (step.operation, step.n_media, step.reason) == ("delete_field", 2, None)
    workspace.vacuum()
    dataset.undo()
    assert dataset.field_values(ids[3])[0].value == 2.0
    dataset.redo()
    dataset.create_tag("later")
    with pytest.raises(Conflict, match=r"step 2 \(delete_field\) cannot be undone: the dataset was changed since"):
        dataset.undo(2)
    workspace.vacuum(older_than_s=0)
    with pytest.raises(Conflict, match="freed"):
        dataset.undo(2)
    assert dataset.check().findings == []


def test_changed_files__are_a_step(workspace: Workspace, folder: Path) -> None:
    """A step lists what images whose files changed have from before; undoing it brings the rows back."""
    dataset = prepared(workspace, "pets", folder)
    first, second = (dataset.media_id(name) for name in ("000.png", "001.png"))
    dataset.set_labels([first, second], "cat")
    dataset.tag(first, "kept")
    dataset.not_duplicates([first, second])
    before = dataset.to_arrow()
    (folder / "000.png").write_bytes(encode(photo(77), "PNG"))
    task = dataset.add_media(folder)
    assert "1 replaced, as their files have changed" in str(task.record.status_message)
    (step,) = dataset.journal(1)
    assert (step.operation, step.n_media) == ("replace_media", 1)
    (row,) = dataset.journal_values(step.step).to_pylist()
    assert (row["media_id"], row["before labels"], row["before tags"]) == (first, ["cat"], ["kept"])
    assert (row["before decisions"], row["before boxes"]) == (1, 0)
    assert row["before content_hash"] != row["after content_hash"]
    after = dataset.to_arrow()
    dataset.undo()
    assert dataset.to_arrow().equals(before)
    dataset.redo()
    assert dataset.to_arrow().equals(after)
    decided = next(each.step for each in dataset.journal() if each.operation == "not_duplicates")
    with pytest.raises(Conflict, match="keeps no values"):
        dataset.journal_values(decided)
    with pytest.raises(NotFound):
        dataset.journal_values(99)
