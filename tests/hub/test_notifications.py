"""Notifications: who hears of an alert, what is hidden, and what a kill between the two files leaves."""

import signal
from pathlib import Path
from typing import Any

import pytest

from framedex import Dataset, InvalidInput, NotFound, Workspace, vql
from framedex.access import ANONYMOUS, Actor, Role, local_actor
from framedex.core.ids import batch_id, new_id
from framedex.errors import Forbidden, NotAuthenticated, WorkspaceError
from framedex.hub import Hub
from framedex.storage import alert_queue
from framedex.storage.layout import SERVICE_DB_NAME
from framedex.storage.service_db.database import DEFAULT_ID
from tests.api.test_dataset__saved_views import labelled
from tests.failures import failing
from tests.gallery import SETTINGS
from tests.growth import THRESHOLDS
from tests.hub.people import OPERATOR, Clock, add_user, log_in
from tests.inside import catalog_of
from tests.laws import rest_slow
from tests.prepared import prepared
from tests.processes import finish, start

LOCAL = local_actor("me")
ROLES = {"ann": "admin", "eve": "editor", "emil": "editor", "vic": "viewer", "vera": "viewer"}


@pytest.fixture
def people(hub: Hub) -> dict[str, Actor]:
    """An admin, two editors and two viewers, logged in."""
    for name, role in ROLES.items():
        add_user(hub, name, role)
    return {name: log_in(hub, name) for name in ROLES}


@pytest.fixture
def dataset(workspace: Workspace) -> Dataset:
    """A dataset of ten media with the labels a and b, without an owner."""
    return prepared(workspace, "pets", labelled(0, "ababababaa"), thresholds=THRESHOLDS)


def heard(hub: Hub, people: dict[str, Actor]) -> dict[str, list[int]]:
    """Deliver, and return the counts of new results in each user's notifications, oldest first."""
    hub.notifications.deliver()
    found = {}
    for name, actor in {**people, "local": LOCAL}.items():
        page = hub.notifications.search(actor, limit=100)
        if page.notifications:
            found[name] = [each.metadata.result_count for each in reversed(page.notifications)]
    return found


@pytest.mark.slow
def test_notification__has_the_values_of_the_interface(hub: Hub, dataset: Dataset, clock: Clock) -> None:
    """A notification names its view, its dataset and its batch, and is unread."""
    view = hub.views.create(LOCAL, dataset.id, "a", vql=vql.labels("a"))
    dataset.add_media(labelled(10, "aa"))
    assert hub.notifications.deliver() == 1
    page = hub.notifications.search(LOCAL)
    (found,) = page.notifications
    assert (page.total, page.has_more) == (1, False)
    assert found.model_dump(exclude={"id"}) == {
        "user_id": LOCAL.user_id, "entity_type": "saved_view", "entity_id": view.id, "title": "",
        "message": "2 new results of 'a' in 'pets'", "dataset_id": dataset.id, "created_at": clock(), "read_at": None,
        "metadata": {
            "batch_id": batch_id(dataset.id, 1), "is_alert": True, "view_name": "a", "dataset_name": "pets",
            "result_count": 2,
        },
    }  # fmt: skip
    assert hub.notifications.deliver() == 0


@pytest.mark.slow
def test_recipients__owner_grants_and_who_saved_the_view(hub: Hub, dataset: Dataset, people: dict[str, Actor]) -> None:
    """The owner, those with whom the dataset is shared, and the user who saved the view hear of alerts; others not."""
    hub.datasets.adopt(dataset.id, DEFAULT_ID, people["eve"].user_id)
    hub.datasets.share(people["eve"], dataset.id, "vic")
    hub.views.create(people["emil"], dataset.id, "all")
    dataset.add_media(labelled(10, "a"))
    assert heard(hub, people) == {"eve": [1], "vic": [1], "emil": [1], "local": [1]}
    hub.datasets.unshare(people["eve"], dataset.id, "vic")
    hub.users.change(OPERATOR, str(people["emil"].user_id), enabled=False)
    dataset.add_media(labelled(12, "aa"))
    del people["emil"]
    assert heard(hub, people) == {"eve": [1, 2], "vic": [1], "local": [1, 2]}


@pytest.mark.slow
def test_recipients__of_a_dataset_without_an_owner(hub: Hub, dataset: Dataset, people: dict[str, Actor]) -> None:
    """The admins of its tenant stand in for the owner; batches without results and alerts that are off are none."""
    view = hub.views.create(LOCAL, dataset.id, "a", vql=vql.labels("a"))
    dataset.add_media(labelled(10, "b"))
    assert [each.count for each in hub.views.trend(LOCAL, dataset.id, view.id).points] == [0]
    assert heard(hub, people) == {}
    dataset.add_media(labelled(12, "a"))
    assert heard(hub, people) == {"ann": [1], "local": [1]}
    assert hub.views.set_alerting(people["eve"], dataset.id, view.id, enabled=False) is False
    dataset.add_media(labelled(14, "aaa"))
    assert heard(hub, people) == {"ann": [1], "local": [1]}


@pytest.mark.slow
def test_recipients__in_another_tenant(multi: Hub, workspace: Workspace) -> None:
    """Who saved a view hears nothing once the dataset is hidden; the dataset of a namespace is that of its tenant."""
    tenant = multi.tenants.create(OPERATOR, "birds")
    add_user(multi, "bob", "admin", tenant_id=tenant.id)
    add_user(multi, "vic", "viewer")
    people = {name: log_in(multi, name) for name in ("bob", "vic")}
    dataset = workspace.in_namespace(tenant.id).create_dataset("owls", labelled(0, "abab"), thresholds=THRESHOLDS)
    multi.datasets.share(OPERATOR, dataset.id, "vic", Role.EDITOR)
    multi.views.create(people["vic"], dataset.id, "mine")
    dataset.add_media(labelled(10, "a"))
    assert heard(multi, people) == {"bob": [1], "vic": [1], "local": [1]}
    multi.datasets.unshare(OPERATOR, dataset.id, "vic")
    dataset.add_media(labelled(12, "a"))
    assert heard(multi, people) == {"bob": [1, 1], "local": [1, 1]}


@pytest.mark.slow
def test_hidden__what_a_user_may_no_longer_view(hub: Hub, dataset: Dataset, people: dict[str, Actor]) -> None:
    """Notifications of a hidden dataset are in no list and no count, and cannot be marked; they return with it."""
    hub.datasets.adopt(dataset.id, DEFAULT_ID, people["vera"].user_id)
    hub.views.create(LOCAL, dataset.id, "all")
    dataset.add_media(labelled(10, "a"))
    hub.notifications.deliver()
    vera = people["vera"]
    (found,) = hub.notifications.search(vera).notifications
    other = hub.tenants.create_organization(OPERATOR, "others")
    tenant = hub.tenants.create(OPERATOR, "others", organization_id=other.id)
    hub.datasets.adopt(dataset.id, tenant.id, None)
    for dataset_id in (None, dataset.id):
        assert hub.notifications.search(vera, dataset_id=dataset_id).total == 0
        assert hub.notifications.count_unread(vera, dataset_id) == 0
        assert hub.notifications.read_all(vera, dataset_id) == 0
        assert hub.notifications.after(vera, 0, dataset_id) == []
    with pytest.raises(NotFound, match="Notification not found"):
        hub.notifications.read(vera, found.id)
    hub.datasets.adopt(dataset.id, DEFAULT_ID, vera.user_id)
    assert hub.notifications.count_unread(vera) == 1


@pytest.mark.slow
def test_read__once(hub: Hub, dataset: Dataset, people: dict[str, Actor]) -> None:
    """A notification is read by its user, once; its id has any case."""
    hub.views.create(LOCAL, dataset.id, "all")
    dataset.add_media(labelled(10, "a"))
    hub.notifications.deliver()
    ann = people["ann"]
    (found,) = hub.notifications.search(ann).notifications
    for actor, notification_id in ((people["eve"], found.id), (LOCAL, found.id), (ann, new_id()), (ann, "x")):
        with pytest.raises(NotFound, match="Notification not found"):
            hub.notifications.read(actor, notification_id)
    hub.notifications.read(ann, found.id.upper())
    (after,) = hub.notifications.search(ann).notifications
    assert after.read_at is not None
    with pytest.raises(NotFound, match="Notification not found"):
        hub.notifications.read(ann, found.id)
    assert hub.notifications.count_unread(LOCAL) == 1


@pytest.mark.slow
def test_pages__newest_first(hub: Hub, workspace: Workspace, dataset: Dataset) -> None:
    """Pages have up to 100 notifications, of all datasets or of one, also of unread ones alone."""
    other = workspace.create_dataset("others", labelled(20, "abab"), thresholds=THRESHOLDS)
    for name in ("one", "two", "three"):
        dataset.save_view(name)
    other.save_view("other")
    dataset.add_media(labelled(10, "a"))
    other.add_media(labelled(30, "ab"))
    hub.notifications.deliver()
    found = hub.notifications.search(LOCAL).notifications
    names = [each.metadata.view_name for each in found]
    assert names == ["other", "three", "two", "one"]
    page = hub.notifications.search(LOCAL, limit=2, offset=1)
    assert ([each.id for each in page.notifications], page.total, page.has_more) == (
        [found[1].id, found[2].id], 4, True,
    )  # fmt: skip
    assert hub.notifications.search(LOCAL, limit=2, offset=2).has_more is False
    assert hub.notifications.search(LOCAL, dataset_id=other.id).total == 1
    assert hub.notifications.search(LOCAL, dataset_id=new_id()).total == 0
    hub.notifications.read(LOCAL, found[0].id)
    assert hub.notifications.search(LOCAL, unread_only=True).total == hub.notifications.count_unread(LOCAL) == 3
    assert hub.notifications.count_unread(LOCAL, other.id) == 0
    assert hub.notifications.read_all(LOCAL, dataset.id) == 3
    assert hub.notifications.read_all(LOCAL) == hub.notifications.count_unread(LOCAL) == 0
    assert hub.notifications.search(LOCAL).total == 4
    for wrong in ({"limit": 0}, {"limit": 101}, {"limit": "x"}, {"offset": -1}):
        arguments: Any = wrong
        with pytest.raises(InvalidInput):
            hub.notifications.search(LOCAL, **arguments)


@pytest.mark.slow
def test_after__continues_a_stream(hub: Hub, dataset: Dataset) -> None:
    """What came after a notification is read by its number; without one, only what comes from now on."""
    dataset.save_view("all")
    dataset.add_media(labelled(10, "a"))
    hub.notifications.deliver()
    (first,) = hub.notifications.search(LOCAL).notifications
    newest = hub.notifications.number_of(LOCAL, None)
    dataset.add_media(labelled(12, "aa"))
    hub.notifications.deliver()
    start = hub.notifications.number_of(LOCAL, first.id.upper())
    assert start == newest
    ((number, found),) = hub.notifications.after(LOCAL, start)
    assert (found.metadata.result_count, number > start) == (2, True)
    assert hub.notifications.after(LOCAL, number) == []
    assert hub.notifications.number_of(LOCAL, new_id()) == number
    assert [each.metadata.result_count for _, each in hub.notifications.after(LOCAL, 0, limit=1)] == [1]


def test_access__needs_a_log_in(hub: Hub, people: dict[str, Actor]) -> None:
    """Nobody, and who has to change a password first, sees nothing."""
    hub.users.reset_password(OPERATOR, str(people["vic"].user_id), "correct horse 2")
    temporary = hub.sessions.actor(hub.sessions.log_in("vic", "correct horse 2").token)
    for actor, error in ((ANONYMOUS, NotAuthenticated), (temporary, Forbidden)):
        for call in (
            hub.notifications.search, hub.notifications.count_unread, hub.notifications.read_all,
            lambda actor: hub.notifications.read(actor, "x"),
        ):  # fmt: skip
            with pytest.raises(error):
                call(actor)


@pytest.mark.slow
def test_deletion__of_views_and_datasets(hub: Hub, workspace: Workspace, dataset: Dataset) -> None:
    """A deleted view takes the alerts that wait, and no notification; a deleted dataset takes both."""
    gone, _ = dataset.save_view("gone"), dataset.save_view("stays")
    dataset.add_media(labelled(10, "a"))
    hub.notifications.deliver()
    dataset.add_media(labelled(12, "a"))
    hub.views.delete(LOCAL, dataset.id, gone.id)
    assert hub.notifications.deliver() == 1
    names = [each.metadata.view_name for each in hub.notifications.search(LOCAL).notifications]
    assert names == ["stays", "stays", "gone"]
    dataset.add_media(labelled(13, "a"))
    assert hub.notifications.deliver() == 1
    assert hub.notifications.search(LOCAL).notifications[0].metadata.view_name == "stays"
    dataset.add_media(labelled(14, "a"))
    workspace.change_settings(delete_dataset_enabled=True)
    workspace.delete_dataset(dataset.id)
    assert hub.notifications.deliver() == 0
    assert hub.notifications.search(LOCAL).total == 0
    hub.datasets.sweep()
    with hub._database.read() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM notifications").scalar() == 0


@pytest.mark.slow
def test_queue__without_users(tmp_path: Path) -> None:
    """Without a database of users no alert waits, whatever waited before."""
    with Workspace(tmp_path / "ws", settings=SETTINGS) as workspace:
        dataset = workspace.create_dataset("pets", labelled(0, "abab"), thresholds=THRESHOLDS)
        dataset.save_view("all")
        dataset.add_media(labelled(10, "a"))
        assert queued(workspace) == 0
        with Hub(workspace):
            dataset.add_media(labelled(12, "a"))
            assert queued(workspace) == 1
        (tmp_path / "ws" / SERVICE_DB_NAME).unlink()
        dataset.add_media(labelled(14, "a"))
        assert queued(workspace) == 0


@pytest.mark.slow
def test_queue__survives_a_repair_of_the_catalog(hub: Hub, workspace: Workspace, dataset: Dataset) -> None:
    """Alerts that wait stay when the entry of their dataset is rebuilt; wrong rows are found and removed."""
    dataset.save_view("all")
    dataset.add_media(labelled(10, "a"))
    with catalog_of(workspace).write() as connection:
        connection.exec_driver_sql("UPDATE datasets SET created_at = 'x'")
    workspace.check(repair=True)
    assert queued(workspace) == 1
    with catalog_of(workspace).write() as connection:
        connection.exec_driver_sql("UPDATE alert_queue SET queued_at = 'never'")
    assert any("alert_queue" in each.fault for each in workspace.check().findings)
    workspace.check(repair=True)
    assert workspace.check().findings == []
    assert queued(workspace) == 0


def queued(workspace: Workspace) -> int:
    """Return the number of alerts that wait."""
    with catalog_of(workspace).read() as connection:
        return len(alert_queue.queued_alerts(connection, limit=100))


@pytest.mark.slow
def test_deliver__while_the_database_fails(hub: Hub, workspace: Workspace, dataset: Dataset) -> None:
    """Alerts wait until the notifications can be stored."""
    dataset.save_view("all")
    dataset.add_media(labelled(10, "a"))

    put = "framedex.storage.service_db.notifications.put_notification"
    with (
        failing(put, error=WorkspaceError("the disk is full")),
        pytest.raises(WorkspaceError, match="the disk is full"),
    ):
        hub.sweep()
    assert (hub.notifications.search(LOCAL).total, queued(workspace)) == (0, 1)
    hub.sweep()
    assert (hub.notifications.search(LOCAL).total, queued(workspace)) == (1, 0)


ADDS = """
    import os, signal, sys, framedex
    from framedex.hub import Hub
    from framedex.storage import alert_queue
    from framedex.storage.service_db import notifications
    from tests.api.test_dataset__saved_views import labelled
    from tests.gallery import SETTINGS

    def die(*arguments, **options):
        os.kill(os.getpid(), signal.SIGKILL)

    put = notifications.put_notification
    match sys.argv[2]:
        case "queued":
            Hub.sweep = die
        case "notifying":
            notifications.put_notification = lambda *given, **options: (put(*given, **options), die())
        case "notified":
            alert_queue.remove_queued = die
    with framedex.Workspace(sys.argv[1], settings=SETTINGS) as workspace, Hub(workspace) as hub:
        workspace.dataset("pets").add_media(labelled(10, "aab"))
        hub.sweep()
"""


@pytest.mark.slow
@pytest.mark.parametrize("moment", rest_slow(["notifying", "notified", "queued", "end"], 0, long=2))
def test_kill__loses_and_repeats_no_alert(tmp_path: Path, moment: str) -> None:
    """A process that is killed while it notifies leaves the rest to the next one; each user hears of a batch once."""
    folder = tmp_path / "ws"
    with Workspace(folder, settings=SETTINGS) as workspace, Hub(workspace) as hub:
        add_user(hub, "ann", "admin")
        dataset = workspace.create_dataset("pets", labelled(0, "abab"), thresholds=THRESHOLDS)
        for name in ("a", "b"):
            dataset.save_view(name, dataset.where(vql.labels(name)))
    process = start(ADDS, str(folder), moment)
    if moment == "end":
        finish(process)
    else:
        process.communicate(timeout=120)
        assert process.returncode == -signal.SIGKILL
    with Workspace(folder, settings=SETTINGS) as workspace, Hub(workspace) as hub:
        hub.sweep()
        for actor in (LOCAL, log_in(hub, "ann")):
            found = hub.notifications.search(actor).notifications
            assert [(each.metadata.view_name, each.metadata.result_count) for each in found] == [("b", 1), ("a", 2)]
        assert queued(workspace) == 0


@pytest.mark.slow
def test_read_only__shows_and_changes_nothing(tmp_path: Path) -> None:
    """A workspace that was opened for reading shows notifications, delivers none, and marks none."""
    folder = tmp_path / "ws"
    with Workspace(folder, settings=SETTINGS) as workspace, Hub(workspace) as hub:
        dataset = workspace.create_dataset("pets", labelled(0, "abab"), thresholds=THRESHOLDS)
        dataset.save_view("all")
        dataset.add_media(labelled(10, "a"))
        hub.notifications.deliver()
        dataset.add_media(labelled(12, "a"))
    with Workspace(folder, read_only=True, settings=SETTINGS) as workspace, Hub(workspace) as hub:
        assert hub.notifications.deliver() == 0
        (found,) = hub.notifications.search(LOCAL).notifications
        for change in (lambda: hub.notifications.read(LOCAL, found.id), lambda: hub.notifications.read_all(LOCAL)):
            with pytest.raises(WorkspaceError):
                change()
