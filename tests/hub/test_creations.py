"""Creations of datasets, and deletions of users, whose processes are killed in between: the next opening ends them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from framedex import Error, Workspace
from framedex.access import Role
from framedex.hub import Hub
from tests.gallery import fill
from tests.hub.people import OPERATOR, PASSWORD, Clock, Provider, add_user, log_in, roles
from tests.inside import hub_context
from tests.processes import start

_KILLED = """
import os, signal, sys
from framedex import Workspace
from framedex.hub import Hub
from framedex.storage.service_db import homes

def die(*_arguments, **_values):
    os.kill(os.getpid(), signal.SIGKILL)

with Workspace(sys.argv[1]) as workspace, Hub(workspace, ingest_path_role="editor") as hub:
    actor, kind = hub.sessions.actor_of_user(sys.argv[2]), sys.argv[3]
    homes.put_home = die
    if kind == "draft":
        hub.datasets.create(actor, "new")
    elif kind == "from a folder":
        hub.datasets.create(actor, "new", sys.argv[4], encoder="gist", wait=True)
    else:
        hub.copies.clone(actor, sys.argv[5])
print("it was not killed")
"""


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["draft", "from a folder", "clone"])
def test_creation__killed_is_of_its_user(workspace: Workspace, tmp_path: Path, kind: str) -> None:
    """A dataset whose process was killed before its owner was stored has that owner, and an entry in the audit."""
    folder = fill(tmp_path / "images", 2)
    with Hub(workspace, ingest_path_role=Role.EDITOR) as hub:
        add_user(hub, "ann", "admin")
        eve = add_user(hub, "eve", "editor")
        first = hub.datasets.create(log_in(hub, "eve"), "first", folder, encoder="gist", wait=True)
    process = start(_KILLED, workspace.path, eve.id, kind, folder, first.id)
    out, _ = process.communicate(timeout=120)
    assert (process.returncode, out) == (-9, "")
    with Workspace(workspace.path) as again, Hub(again) as hub:
        (made,) = (each for each in again.datasets() if each.id != first.id)
        assert [(each.email, each.role) for each in hub.datasets.members(OPERATOR, made.id)] == [("eve", "owner")]
        entries = hub.trail.page(OPERATOR, action="dataset.create", dataset_id=made.id).entries
        assert [(each.username, each.outcome) for each in entries] == [("eve", "done")]
        hub.sweep()
        assert len(hub.trail.page(OPERATOR, action="dataset.create", dataset_id=made.id).entries) == 1
        assert again.check().findings == []


def _die(*_: object) -> None:
    raise SystemExit


@contextmanager
def killed_after_failures() -> Iterator[pytest.MonkeyPatch]:
    """Let deletions of users that fail not be taken back, as if the process was killed then; yield further patches."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("framedex.hub.users.Users._keep", lambda *_: None)
        yield patch


def interrupted(hub: Hub, name: str) -> str:
    """Create a dataset of a user whose owner is not stored, as if the process was killed; return its id."""
    actor = log_in(hub, name)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("framedex.hub.datasets._store_creation", _die)
        patch.setattr("framedex.hub.datasets._discard", lambda *_: None)
        with pytest.raises(SystemExit):
            hub.datasets.create(actor, "new")
    return hub_context(hub).workspace.dataset("new").id


def owners(hub: Hub, dataset_id: str) -> list[str]:
    """Return the address of the owner of a dataset, if it has one."""
    return [each.email for each in hub.datasets.members(OPERATOR, dataset_id) if each.role == "owner"]


def test_creation__is_of_its_user_before_it_is_finished(hub: Hub) -> None:
    """The user owns the dataset for all who ask, also before the owner is stored; a share does not hide it."""
    add_user(hub, "eve", "editor", email="eve@example.org")
    dataset_id = interrupted(hub, "eve")
    eve = log_in(hub, "eve")
    assert hub.datasets.record(eve, dataset_id).owned_by == "eve@example.org"
    assert [each.owned_by for each in hub.datasets.visible(eve)] == ["eve@example.org"]
    assert hub.datasets.subject(eve, dataset_id).owner_id == eve.user_id
    hub.sweep()
    assert owners(hub, dataset_id) == ["eve@example.org"]


CHANGES: dict[str, Callable[[Hub, str], object]] = {
    "a viewer": lambda hub, user_id: hub.tenants.set_role(OPERATOR, user_id, Role.VIEWER),
    "nobody": lambda hub, user_id: hub.users.delete(OPERATOR, user_id),
}


@pytest.mark.slow
@pytest.mark.parametrize("change", CHANGES)
def test_creation__of_a_user_who_may_no_more(hub: Hub, change: str) -> None:
    """A user who may create no datasets any more when the creation is finished does not own one by it."""
    user = add_user(hub, "eve", "editor")
    dataset_id = interrupted(hub, "eve")
    CHANGES[change](hub, user.id)
    hub.sweep()
    assert owners(hub, dataset_id) == []


def test_creation__of_a_name_is_of_no_user(workspace: Workspace, hub: Hub) -> None:
    """A dataset of the library is of no user, though one has the name for which it was made."""
    add_user(hub, "eve", "editor", email="eve@example.org")
    for name in ("eve", "eve@example.org"):
        dataset = workspace.acting_as(name).create_draft(name)
        hub.sweep()
        assert owners(hub, dataset.id) == []


def test_deletion__killed_is_finished(workspace: Workspace, clock: Clock, provider: Provider) -> None:
    """A deletion that ended before, or after, the provider's is finished by the next opening: the user is gone."""
    delete = Provider.delete
    for place in ("before", "after"):
        with Hub(workspace, provider=provider, clock=clock) as hub, killed_after_failures() as patch:
            user = add_user(hub, "ann", "editor")

            def killed(self: Provider, identity: str, place: str = place) -> None:
                if place == "after":
                    delete(self, identity)
                raise SystemExit

            patch.setattr(Provider, "delete", killed)
            with pytest.raises(SystemExit):
                hub.users.delete(OPERATOR, user.id)
            assert not hub.users.get(OPERATOR, user.id).enabled
        with Hub(workspace, provider=provider, clock=clock) as again:
            assert (again.users.count(), roles(again), provider.accounts) == (0, {}, {}), place
            entries = again.trail.page(OPERATOR, action="users.delete").entries
            assert [each.target for each in entries][:1] == [user.id]


def test_deletion__whose_provider_is_down(workspace: Workspace, clock: Clock, provider: Provider) -> None:
    """While the provider cannot be reached the hub opens all the same; a later sweep finishes the deletion."""
    with Hub(workspace, provider=provider, clock=clock) as hub, killed_after_failures():
        user = add_user(hub, "ann", "editor")
        provider.failing = {"delete"}
        with pytest.raises(Error):
            hub.users.delete(OPERATOR, user.id)
    with Hub(workspace, provider=provider, clock=clock) as again:
        assert not again.users.get(OPERATOR, user.id).enabled
        provider.failing = set()
        again.sweep()
        assert (again.users.count(), provider.accounts) == (0, {})


def test_deletion__that_would_leave_no_admin(workspace: Workspace, clock: Clock, provider: Provider) -> None:
    """A deletion is taken back if the other admin is none any more: the user is there and may log in."""
    with Hub(workspace, provider=provider, clock=clock, is_multi=True) as hub, killed_after_failures():
        user, other = add_user(hub, "ann", "admin"), add_user(hub, "bob", "admin")
        provider.failing = {"delete"}
        with pytest.raises(Error):
            hub.users.delete(OPERATOR, user.id)
        provider.failing = set()
        with hub._database.write() as connection:
            connection.exec_driver_sql("UPDATE memberships SET role = 'editor' WHERE user_id = ?", (other.id,))
    with Hub(workspace, provider=provider, clock=clock, is_multi=True) as again:
        assert again.users.get(OPERATOR, user.id).enabled
        assert len(provider.accounts) == 2


def test_deletion__of_another_attempt(workspace: Workspace, clock: Clock, provider: Provider) -> None:
    """A failed attempt after a killed one lets the user log in as before the first."""
    with Hub(workspace, provider=provider, clock=clock) as hub:
        user = add_user(hub, "ann", "editor")
        provider.failing = {"delete"}
        with killed_after_failures(), pytest.raises(Error):
            hub.users.delete(OPERATOR, user.id)
        with pytest.raises(Error):
            hub.users.delete(OPERATOR, user.id)
        assert hub.users.get(OPERATOR, user.id).enabled
        assert PASSWORD in str(provider.accounts)
