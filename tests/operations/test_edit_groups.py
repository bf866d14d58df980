"""Edits of threads that wait for each other are committed together, each with its own step, user and error."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import pytest
import sqlalchemy as sa

from framedex import Conflict, Dataset, NotFound, Workspace, WorkspaceError
from framedex.operations import edits
from framedex.operations.edit_groups import EditGroup
from framedex.operations.short_edits import editing
from framedex.storage.leases import Lease
from tests.gallery import embedded
from tests.inside import catalog_of, context_of, layout_of, waiting_edits
from tests.pauses import wait_for_edits
from tests.prepared import prepared
from tests.processes import start
from tests.tuning import Tuning

N = 6


@pytest.fixture
def dataset(workspace: Workspace, tuning: Tuning) -> Dataset:
    """A dataset with the tag ``seen``, whose edits wait for others however slow the machine is."""
    tuning.edit_patience_s = 60
    dataset = prepared(workspace, "d", embedded([[1, 0], [0, 1]] * N))
    dataset.create_tag("seen")
    return dataset


@contextmanager
def waiting(dataset: Dataset, calls: list[Callable[[], object]]) -> Iterator[list[BaseException | None]]:
    """Yield the errors of some calls, None for success, each on a thread of its own, all waiting for their turn.

    They begin, one after another, when the block has ended.
    """
    errors: list[BaseException | None] = [None] * len(calls)

    def work(place: int) -> None:
        try:
            calls[place]()
        except Exception as error:
            errors[place] = error

    threads = [threading.Thread(target=work, args=(place,)) for place in range(len(calls))]
    turns = catalog_of(dataset).turns_of(dataset.id)
    with editing(context_of(dataset), dataset.id, "tag"):
        for place, thread in enumerate(threads):
            thread.start()
            wait_for_edits(dataset, place + 2)
        yield errors
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    assert waiting_edits(dataset) == 0
    assert turns.baton is None


def media_ids(dataset: Dataset) -> list[str]:
    """Return the ids of all media in the order of rows."""
    ids: list[str] = dataset.to_arrow(["media_id"]).column(0).to_pylist()
    return ids


def tags(dataset: Dataset, ids: list[str]) -> list[Callable[[], object]]:
    """Return calls that each tag a media item."""
    return [partial(dataset.tag, [each], "seen") for each in ids]


def commits(dataset: Dataset) -> int:
    """Return the number of the last commit of a dataset: that of its manifest."""
    folder = layout_of(dataset).dataset(dataset.id) / "manifest"
    return max(int(path.stem) for path in folder.glob("*.json"))


def tagged(dataset: Dataset, tag: str = "seen") -> set[str]:
    """Return the media with a tag."""
    return set(dataset.where([{"tags": {"op": "is", "value": tag}}]).media_ids())


@pytest.mark.slow
@pytest.mark.only_soak
def test_edits__committed_together(workspace: Workspace, dataset: Dataset) -> None:
    """Edits that wait are one commit; the journal has a step of each user, which is undone by itself."""
    ids, before = media_ids(dataset), commits(dataset)
    users = [workspace.acting_as(f"user-{number}@example.org").dataset("d") for number in range(N)]
    calls = [tags(users[place], [ids[place]])[0] for place in range(N)]
    calls[1] = lambda: users[1].set_labels([ids[1]], ["cat"])
    with waiting(dataset, calls) as errors:
        pass
    assert errors == [None] * N
    assert commits(dataset) == before + 1
    assert tagged(dataset) == {ids[place] for place in range(N) if place != 1}
    steps = dataset.journal()[:N]
    assert [(each.operation, each.created_by, each.n_media) for each in reversed(steps)] == [
        ("set_labels" if place == 1 else "tag", f"user-{place}@example.org", 1) for place in range(N)
    ]
    dataset.undo(steps[-1].step)
    dataset.undo(steps[-2].step)
    assert tagged(dataset) == {ids[place] for place in range(2, N)}
    assert not any(dataset.to_arrow(["labels"]).column(0).to_pylist())
    assert workspace.check().is_sound


@pytest.mark.slow
@pytest.mark.only_soak
def test_edits__refused_in_a_group(workspace: Workspace, dataset: Dataset) -> None:
    """An edit that is refused has its own error, and the others are committed."""
    ids = media_ids(dataset)
    missing = "00000000-0000-5000-8000-000000000000"
    calls = tags(dataset, ids[:N])
    calls[0] = calls[3] = lambda: dataset.tag([missing], "seen")
    calls[N - 1] = lambda: dataset.rename_tag("none", "other")
    with waiting(dataset, calls) as errors:
        pass
    assert [type(error) for error in errors] == [NotFound, *[type(None)] * 2, NotFound, type(None), NotFound]
    assert tagged(dataset) == {ids[place] for place in (1, 2, 4)}
    assert len([step for step in dataset.journal() if step.operation == "tag"]) == 3
    assert workspace.check().is_sound


def test_edits__failing_after_they_wrote(
    workspace: Workspace, dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a failing edit wrote into the tables is in no later edit of the group."""
    ids, step = media_ids(dataset), edits._tag_step

    def failing(operation: str, *arguments: object) -> object:
        if operation == "untag":
            raise Conflict("it was not meant")
        return step(operation, *arguments)  # type: ignore[arg-type] # passed on as they are

    dataset.tag(ids[:2], "seen")
    monkeypatch.setattr(edits, "_tag_step", failing)
    calls = tags(dataset, ids[2:N])
    calls.insert(2, lambda: dataset.untag(ids[:2], "seen"))
    with waiting(dataset, calls) as errors:
        pass
    assert [type(error) for error in errors] == [*[type(None)] * 2, Conflict, *[type(None)] * 2]
    assert tagged(dataset) == set(ids[:N])
    assert workspace.check().is_sound


@pytest.mark.slow
def test_edits__of_a_commit_that_fails(workspace: Workspace, dataset: Dataset) -> None:
    """A commit that fails changes nothing, all its edits raise, and later ones succeed."""
    ids, catalog, before = media_ids(dataset), catalog_of(dataset), len(dataset.journal())
    failing = "CREATE TRIGGER failing BEFORE INSERT ON journal BEGIN SELECT RAISE(FAIL, 'not today'); END"
    with catalog.write() as connection:
        connection.execute(sa.text(failing))
    with waiting(dataset, tags(dataset, ids[:N])) as errors:
        pass
    assert [type(error) for error in errors] == [WorkspaceError] * N
    assert len({id(error) for error in errors}) == N
    assert tagged(dataset) == set()
    with catalog.write() as connection:
        connection.execute(sa.text("DROP TRIGGER failing"))
    dataset.tag(ids[:2], "seen")
    assert (tagged(dataset), len(dataset.journal())) == (set(ids[:2]), before + 1)
    assert workspace.check().is_sound


@pytest.mark.slow
def test_edits__beside_other_operations(workspace: Workspace, dataset: Dataset) -> None:
    """Operations that read the catalog, or start a task, see the edits that were requested before them."""
    ids, counts = media_ids(dataset), list[int]()

    def reindex() -> None:
        task = dataset.reindex(thresholds=(0.1, 0.2, 0.3, 0.4, 0.6), wait=False)
        assert task is not None
        counts.append(len(tagged(dataset)))
        task.wait(60)

    calls: list[Callable[[], object]] = [
        lambda: dataset.tag(ids[:2], "seen"),
        dataset.undo,
        dataset.redo,
        lambda: dataset.tag(ids[2:4], "seen"),
        reindex,
    ]
    with waiting(dataset, calls) as errors:
        pass
    assert errors == [None] * len(calls)
    assert counts == [4]
    assert [(each.operation, each.undone_at) for each in dataset.journal()[:2]] == [("tag", None)] * 2
    assert workspace.check().is_sound


def test_edits__wait_for_no_long_one(dataset: Dataset, tuning: Tuning) -> None:
    """An edit is committed while a later one that takes long is still at work."""
    tuning.edit_patience_s = 0.05
    ids, goes_on = media_ids(dataset), threading.Event()

    def take_long() -> None:
        with editing(context_of(dataset), dataset.id, "tag"):
            assert goes_on.wait(60)

    def tag() -> None:
        dataset.tag(ids[:2], "seen")
        assert not goes_on.is_set()
        goes_on.set()

    with waiting(dataset, [tag, take_long, lambda: dataset.tag(ids[2:3], "seen")]) as errors:
        pass
    assert errors == [None] * 3
    assert tagged(dataset) == set(ids[:3])


def test_edits__with_an_interrupt(dataset: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    """An interrupt of the thread that commits leaves no other thread waiting, and later edits succeed."""
    ids, write = media_ids(dataset), EditGroup._write
    interrupts = [KeyboardInterrupt()]

    def interrupted(group: EditGroup, *arguments: object, **options: object) -> None:
        if interrupts:
            raise interrupts.pop()
        write(group, *arguments, **options)  # type: ignore[arg-type] # passed on as they are

    monkeypatch.setattr(EditGroup, "_write", interrupted)
    caught = list[BaseException]()

    def tag(place: int) -> None:
        try:
            dataset.tag([ids[place]], "seen")
        except KeyboardInterrupt as error:
            caught.append(error)

    with waiting(dataset, [partial(tag, place) for place in range(3)]) as errors:
        pass
    assert len(caught) == 1
    assert [type(error) for error in errors] == [type(None), WorkspaceError, WorkspaceError]
    dataset.tag([ids[0]], "seen")
    assert tagged(dataset) == {ids[0]}


@pytest.mark.slow
def test_edits__with_a_lease_that_cannot_be_ended(dataset: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error at the end of the lease leaves no thread waiting; the edits are committed, and later ones succeed."""
    ids, end, failures = media_ids(dataset), Lease.end, [OSError("no end")]

    def ended(lease: Lease) -> None:
        is_last = lease._ended.is_set()
        end(lease)
        if failures and is_last:
            raise failures.pop()

    monkeypatch.setattr(Lease, "end", ended)
    with waiting(dataset, tags(dataset, ids[:3])) as errors:
        pass
    assert [str(error) for error in errors if error is not None] == ["no end"]
    dataset.tag([ids[3]], "seen")
    assert tagged(dataset) == set(ids[:4])


KILLED = """
    import os, sys, threading
    import framedex
    from framedex.operations.short_edits import editing
    from framedex.storage import datasets
    from tests.inside import context_of
    from tests.pauses import wait_for_edits
    from tests.tuning import Tuning

    Tuning().edit_patience_s = 60
    workspace = framedex.Workspace(sys.argv[1])
    dataset, put, count = workspace.dataset("d"), datasets.put_head, 0

    def put_head(*arguments):
        global count
        count += 1
        put(*arguments)
        if count == 3:
            os._exit(9)

    datasets.put_head = put_head
    ids = dataset.where([]).media_ids()
    threads = [threading.Thread(target=dataset.tag, args=([each], "seen")) for each in ids[:6]]
    with editing(context_of(dataset), dataset.id, "tag"):
        for number, thread in enumerate(threads):
            thread.start()
            wait_for_edits(dataset, number + 2)
    for thread in threads:
        thread.join()
"""


@pytest.mark.slow
def test_edits__killed_within_the_commit(workspace: Workspace, dataset: Dataset) -> None:
    """Nothing of a group whose process ends before the commit is visible, and the next edit succeeds."""
    before = len(dataset.journal())
    process = start(KILLED, workspace.path)
    process.communicate(timeout=120)
    assert process.returncode == 9
    assert (tagged(dataset), len(dataset.journal())) == (set(), before)
    ids = media_ids(dataset)
    dataset.tag(ids[:1], "seen")
    assert tagged(dataset) == set(ids[:1])
    assert workspace.check().is_sound
