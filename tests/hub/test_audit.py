"""The audit, and the deletion of what is not needed any more."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from framedex import Error, Forbidden, Workspace
from framedex.access import ANONYMOUS, Role
from framedex.errors import NotAuthenticated
from framedex.hub import Hub
from tests.gallery import fill
from tests.hub.people import OPERATOR, PASSWORD, Clock, add_user, log_in


@pytest.mark.slow
def test_audit__has_who_did_what(hub: Hub) -> None:
    """Each change of users, roles, sharing and keys, and each log-in, is noted with its user and its target."""
    ann, bob = add_user(hub, "ann", "admin"), add_user(hub, "bob", "editor")
    actor = hub.sessions.actor(hub.sessions.log_in("ann", PASSWORD, ip="192.0.2.1").token)
    with pytest.raises(NotAuthenticated):
        hub.sessions.log_in("bob", "wrong one", ip="192.0.2.2")
    dataset = hub.datasets.create(actor, "pets")
    hub.datasets.share(actor, dataset.id, "bob")
    hub.datasets.unshare(actor, dataset.id, "bob")
    hub.credentials.get(actor)
    hub.users.change(actor, bob.id, username="rob")
    hub.users.reset_password(actor, bob.id, "temporary one")
    hub.tenants.set_role(actor, bob.id, Role.VIEWER)
    hub.users.delete(actor, bob.id)
    hub.datasets.delete(actor, dataset.id)
    entries = list(reversed(hub.audit(OPERATOR)))
    assert [(each.action, each.user_id, each.outcome) for each in entries] == [
        ("users.create", OPERATOR.user_id, "done"),
        ("users.create", OPERATOR.user_id, "done"),
        ("log_in", ann.id, "done"),
        ("log_in", None, "refused"),
        ("dataset.create", ann.id, "done"),
        ("dataset.share viewer", ann.id, "done"),
        ("dataset.unshare", ann.id, "done"),
        ("credentials.create", ann.id, "done"),
        ("users.change", ann.id, "done"),
        ("users.reset_password", ann.id, "done"),
        ("tenant.set_role viewer", ann.id, "done"),
        ("users.delete", ann.id, "done"),
        ("dataset.delete", ann.id, "done"),
    ]
    assert [each.ip for each in entries if each.action == "log_in"] == ["192.0.2.1", "192.0.2.2"]
    assert entries[3].target == bob.id
    assert {each.dataset_id for each in entries if each.action.startswith("dataset")} == {dataset.id}
    assert entries[-2].target == bob.id  # also of a user who is gone


def test_audit__has_refusals(hub: Hub) -> None:
    """An attempt without the right is noted; that of nobody, and a failed change, are not."""
    add_user(hub, "ann", "editor")
    ann = log_in(hub, "ann")
    before = len(hub.audit(OPERATOR))
    dataset = hub.datasets.create(OPERATOR, "pets")
    for call in (
        lambda: hub.users.create(ann, "bob", PASSWORD),
        lambda: hub.datasets.delete(ann, dataset.id),
        lambda: hub.users.create(ANONYMOUS, "bob", PASSWORD),
        lambda: hub.users.create(OPERATOR, "ann", PASSWORD),
    ):
        with pytest.raises(Error):
            call()
    entries = hub.audit(OPERATOR)[: -before - 1]
    assert [(each.action, each.target, each.user_id, each.outcome) for each in entries] == [
        ("dataset.delete", dataset.id, ann.user_id, "refused"),
        ("users.write", "bob", ann.user_id, "refused"),
    ]


@pytest.mark.slow
def test_audit__has_saved_views(hub: Hub, workspace: Workspace, tmp_path: Path) -> None:
    """A saved view that is created, whose alerts are turned off or on, or that is deleted, is noted with its id."""
    workspace.create_dataset("pets", fill(tmp_path / "images", 2), "gist")
    dataset_id = workspace.datasets()[0].id
    ann = add_user(hub, "ann", "admin")
    actor = log_in(hub, "ann")
    before = len(hub.audit(OPERATOR))
    view = hub.views.create(actor, dataset_id, "all")
    hub.views.set_alerting(actor, dataset_id, view.id, enabled=False)
    hub.views.set_alerting(actor, dataset_id, view.id.upper(), enabled=True)
    hub.views.delete(actor, dataset_id, view.id)
    for call in (
        lambda: hub.views.create(actor, dataset_id, ""),
        lambda: hub.views.set_alerting(actor, dataset_id, view.id, enabled=True),
        lambda: hub.views.delete(actor, dataset_id, view.id),
    ):
        with pytest.raises(Error):
            call()
    entries = list(reversed(hub.audit(OPERATOR)[:-before]))
    assert [each.action for each in entries] == ["view.create", "view.alerting off", "view.alerting on", "view.delete"]
    assert {(each.user_id, each.dataset_id, each.target) for each in entries} == {(ann.id, dataset_id, view.id)}


def test_audit__who_may(hub: Hub) -> None:
    """The audit is shown to the admin of the default tenant, in pages."""
    add_user(hub, "ann", "admin")
    add_user(hub, "bob", "editor")
    assert [each.action for each in hub.audit(log_in(hub, "ann"), limit=1, offset=1)] == ["users.create"]
    with pytest.raises(Forbidden):
        hub.audit(log_in(hub, "bob"))
    with pytest.raises(NotAuthenticated):
        hub.audit(ANONYMOUS)


def test_sweep__deletes_what_is_not_needed(hub: Hub, clock: Clock) -> None:
    """Entries of the audit go after 90 days, ended sessions and old failures at once; users and homes stay."""
    clock.time = datetime.now(UTC)
    user = add_user(hub, "ann", "editor")
    dataset = hub.datasets.create(log_in(hub, "ann"), "pets")
    with pytest.raises(NotAuthenticated):
        hub.sessions.log_in("ann", "wrong one")
    clock.move(days=89)
    hub.sweep()
    assert len(hub.audit(OPERATOR)) == 4
    clock.move(days=2)
    hub.sweep()
    assert hub.audit(OPERATOR) == []
    with hub._database.read() as connection:
        for table in ("sessions", "login_failures"):
            assert connection.exec_driver_sql(f"SELECT count(*) FROM {table}").scalar() == 0
    assert hub.users.get(OPERATOR, user.id) == user.model_copy(
        update={"last_access": round((clock.time - timedelta(days=91)).timestamp() * 1000)}
    )
    assert hub.datasets.members(OPERATOR, dataset.id)[0].email == "ann"
