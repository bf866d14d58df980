"""Deletions of datasets that are killed in between, or that fail, and what is left of each."""

from pathlib import Path

import pytest

from framedex import Forbidden, Workspace
from framedex.errors import NotFound, WorkspaceError
from framedex.hub import Hub
from framedex.storage.service_db import deletions
from tests.clock import turning
from tests.failures import failing
from tests.gallery import fill
from tests.hub.people import OPERATOR, add_user, log_in
from tests.processes import start

_KILLED = """
import os, shutil, signal, sys
from framedex import Workspace
from framedex.hub import Hub
from framedex.storage.catalog import Catalog
from tests.hub.people import OPERATOR

def die(*_arguments, **_values):
    os.kill(os.getpid(), signal.SIGKILL)

with Workspace(sys.argv[1]) as workspace, Hub(workspace) as hub:
    if sys.argv[2] == "before the catalog":
        Workspace.delete_dataset = die
    elif sys.argv[2] == "before its files":
        shutil.rmtree = die
    else:
        delete = Workspace.delete_dataset
        Workspace.delete_dataset = lambda *arguments: (delete(*arguments), die())
    hub.datasets.delete(hub.sessions.actor_of_user(sys.argv[3]), sys.argv[4])
print("it was not killed")
"""


def stored(hub: Hub, dataset_id: str) -> list[str]:
    """Return the tables in which something is stored about a dataset."""
    with hub._database.read() as connection:
        query = "SELECT count(*) FROM {} WHERE dataset_id = ?"
        names = ("dataset_homes", "grants", "deletions")
        return [name for name in names if connection.exec_driver_sql(query.format(name), (dataset_id,)).scalar()]


def noted(hub: Hub, dataset_id: str) -> list[tuple[str | None, str]]:
    """Return who deleted a dataset, as the audit has it."""
    entries = hub.trail.page(OPERATOR, action="dataset.delete", dataset_id=dataset_id).entries
    return [(each.username, each.outcome) for each in entries]


def count_begun(hub: Hub) -> int:
    """Return the number of deletions that have begun and not ended."""
    with hub._database.read() as connection:
        return len(deletions.begun_deletions(connection))


@pytest.mark.parametrize("place", ["before the catalog", "before its files", "before the users"])
@pytest.mark.slow
def test_killed__is_finished_at_the_next_opening(workspace: Workspace, tmp_path: Path, place: str) -> None:
    """The next start finds a dataset as before, or nothing of it, no folder either, and the entry of the audit."""
    with Hub(workspace) as hub:
        ann = add_user(hub, "ann", "admin")
        add_user(hub, "cleo")
        actor = log_in(hub, "ann")
        dataset = hub.datasets.create(actor, "pets", fill(tmp_path / "images", 2), encoder="gist", wait=True)
        hub.datasets.share(actor, dataset.id, "cleo")
    process = start(_KILLED, workspace.path, place, ann.id, dataset.id)
    out, _ = process.communicate(timeout=120)
    assert (process.returncode, out) == (-9, "")
    with Workspace(workspace.path) as again, Hub(again) as hub:
        folder = again.path / "datasets" / dataset.id
        if place == "before the catalog":
            assert (folder.exists(), stored(hub, dataset.id)) == (True, ["dataset_homes", "grants", "deletions"])
            assert noted(hub, dataset.id) == []
            hub.datasets.delete(log_in(hub, "ann"), dataset.id)
        assert (folder.exists(), stored(hub, dataset.id)) == (False, [])
        assert noted(hub, dataset.id) == [("ann", "done")]
        assert again.check().findings == []


def test_failed__leaves_nothing(hub: Hub, workspace: Workspace) -> None:
    """A deletion that is refused or fails has no entry of the audit, and nothing to finish."""
    add_user(hub, "ann", "admin")
    actor = log_in(hub, "ann")
    dataset = hub.datasets.create(actor, "pets")
    workspace.change_settings(delete_dataset_enabled=False)
    with pytest.raises(Forbidden):
        hub.datasets.delete(actor, dataset.id)
    workspace.change_settings(delete_dataset_enabled=None)
    assert (noted(hub, dataset.id), count_begun(hub)) == ([], 0)
    hub.datasets.delete(actor, dataset.id)
    with pytest.raises(NotFound):
        hub.datasets.delete(actor, dataset.id)
    assert (noted(hub, dataset.id), count_begun(hub)) == ([("ann", "done")], 0)


def test_finish__by_another_process_meanwhile(hub: Hub, workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sweep between the two steps of a deletion finishes it, and the audit has one entry."""
    add_user(hub, "ann", "admin")
    actor = log_in(hub, "ann")
    dataset = hub.datasets.create(actor, "pets")
    delete = Workspace.delete_dataset

    def sweep_after(self: Workspace, name_or_id: str) -> None:
        delete(self, name_or_id)
        hub.datasets.sweep()
        assert noted(hub, dataset.id) == [("ann", "done")]

    monkeypatch.setattr(Workspace, "delete_dataset", sweep_after)
    hub.datasets.delete(actor, dataset.id)
    assert (noted(hub, dataset.id), stored(hub, dataset.id)) == ([("ann", "done")], [])


def test_finish__forgets_what_never_reached_the_catalog(hub: Hub) -> None:
    """An attempt whose dataset is still there after an hour counts no more: a later deletion is not the user's."""
    dataset = hub.datasets.create(OPERATOR, "pets")
    with hub._database.write() as connection:
        deletions.begin_deletion(connection, dataset.id, "somebody")
    hub.datasets.sweep()
    assert count_begun(hub) == 1
    with turning() as clock:
        clock.turn(minutes=61)
        hub.datasets.sweep()
    assert (count_begun(hub), hub.datasets.record(OPERATOR, dataset.id).id) == (0, dataset.id)


@failing("framedex.hub.deletions.begin_deletion", error=WorkspaceError("the disk is full"))
def test_delete__on_a_full_disk(hub: Hub) -> None:
    """Where the attempt cannot be noted first, the dataset is deleted all the same, and then noted."""
    dataset = hub.datasets.create(OPERATOR, "pets")
    hub.datasets.delete(OPERATOR, dataset.id)
    assert stored(hub, dataset.id) == []
    assert [outcome for _, outcome in noted(hub, dataset.id)] == ["done"]
