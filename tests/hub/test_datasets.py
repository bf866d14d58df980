"""Datasets of users: who sees them, to whom they belong, creation, deletion and sharing."""

from pathlib import Path
from typing import Any

import pytest

from framedex import Conflict, Error, Forbidden, InvalidInput, NotFound, Workspace
from framedex.access import ANONYMOUS, Action, Actor, Role, local_actor
from framedex.core.ids import new_id
from framedex.errors import NotAuthenticated
from framedex.hub import Hub
from framedex.storage.service_db.database import DEFAULT_ID
from tests.failures import failing
from tests.hub.people import OPERATOR, Provider, add_user, log_in
from tests.inside import catalog_of, context_of, hub_context


@pytest.fixture
def birds(multi: Hub) -> str:
    """The id of a second tenant."""
    return multi.tenants.create(OPERATOR, "birds").id


@pytest.fixture
def ann(multi: Hub) -> Actor:
    """An editor of the default tenant."""
    add_user(multi, "ann", "editor", email="ann@example.org")
    return log_in(multi, "ann")


@pytest.fixture
def bob(multi: Hub, birds: str) -> Actor:
    """An editor of the second tenant."""
    add_user(multi, "bob", "editor", tenant_id=birds)
    return log_in(multi, "bob")


def names(hub: Hub, actor: Actor) -> list[str]:
    """Return the names of the datasets that an actor sees."""
    return [record.display_name for record in hub.datasets.visible(actor)]


def members(hub: Hub, dataset_id: str) -> list[tuple[str, str]]:
    """Return with whom a dataset is shared."""
    return [(member.email, member.role) for member in hub.datasets.members(OPERATOR, dataset_id)]


def test_create__belongs_to_the_actor(multi: Hub, ann: Actor, bob: Actor, birds: str) -> None:
    """A dataset is in the tenant that the actor joined first, whose members see it; others do not."""
    multi.tenants.add_member(OPERATOR, birds, "ann", Role.EDITOR)
    here, there = multi.datasets.create(ann, "pets"), multi.datasets.create(bob, "pets")
    assert (here.namespace, there.namespace) == ("", birds)
    assert members(multi, here.id) == [("ann@example.org", "owner")]
    assert multi.datasets.record(ann, here.id).owned_by == "ann@example.org"
    assert multi.datasets.subject(bob, there.id).owner_id == bob.user_id
    assert [record.id for record in multi.datasets.visible(bob)] == [there.id]
    assert {record.id for record in multi.datasets.visible(log_in(multi, "ann"))} == {here.id, there.id}
    third = multi.datasets.create(log_in(multi, "ann"), "owls", tenant_id=birds)
    assert third.namespace == birds
    with pytest.raises(Conflict, match="'pets'"):
        multi.datasets.create(bob, "pets")


def test_create__who_may(multi: Hub, ann: Actor, birds: str) -> None:
    """Viewers, strangers and users without a tenant create nothing; a refusal leaves no dataset."""
    add_user(multi, "vic")
    for actor, tenant_id, kind in (
        (log_in(multi, "vic"), None, Forbidden),
        (ann, birds, Forbidden),
        (ann, "nowhere", Forbidden),
        (Actor(ann.user_id), None, Forbidden),
        (ANONYMOUS, None, NotAuthenticated),
        (OPERATOR, "nowhere", NotFound),
    ):
        with pytest.raises(kind):
            multi.datasets.create(actor, "pets", tenant_id=tenant_id)
    assert names(multi, OPERATOR) == []
    multi.datasets.create(local_actor("me"), "mine")
    multi.datasets.create(OPERATOR, "ours", tenant_id=birds)
    assert names(multi, OPERATOR) == ["ours", "mine"]
    assert names(multi, ann) == ["mine"]


@pytest.mark.slow
def test_create__from_files_of_the_server(workspace: Workspace, folder: Path) -> None:
    """Folders of the server need the role of the hub, by default that of an admin; drafts and buckets do not."""
    with Hub(workspace) as hub:
        add_user(hub, "ann", "editor")
        add_user(hub, "cleo", "admin")
        ann, cleo = log_in(hub, "ann"), log_in(hub, "cleo")
        sources: list[tuple[Any, dict[str, Any]]] = [
            (str(folder), {}),
            (folder, {}),
            ("s3://b/f", {"boxes": str(folder)}),
        ]
        for source, options in sources:
            with pytest.raises(Forbidden, match="folders of the server"):
                hub.datasets.create(ann, "pets", source, **options)
        assert names(hub, OPERATOR) == []
        dataset = hub.datasets.create(cleo, "pets", folder, encoder="gist", wait=True)
        assert (dataset.count(), dataset.info.owned_by) == (6, "cleo")
        assert hub.datasets.record(cleo, dataset.id).status_new == "READY"
    with Hub(workspace, ingest_path_role=Role.EDITOR) as hub:
        hub.datasets.create(log_in(hub, "ann"), "dogs", folder, encoder="gist", wait=True)


def test_create__a_source_that_cannot_be_used(multi: Hub, tmp_path: Path) -> None:
    """A source or a name that cannot be used leaves no dataset."""
    for name, source in (("pets", tmp_path / "missing"), ("a/b", None), ("", None)):
        with pytest.raises(InvalidInput):
            multi.datasets.create(OPERATOR, name, source)
    assert names(multi, OPERATOR) == []


@pytest.mark.parametrize("has_source", [False, True])
@failing("framedex.storage.service_db.homes.put_home", error=Error("the disk is full"))
def test_create__fails_in_the_middle(multi: Hub, bob: Actor, folder: Path, has_source: bool) -> None:
    """If the owner cannot be stored, the dataset is deleted again."""
    with Hub(hub_context(multi).workspace, is_multi=True, ingest_path_role=Role.EDITOR) as hub:
        with pytest.raises(Error, match="the disk is full"):
            hub.datasets.create(bob, "pets", folder if has_source else None)
        assert hub_context(hub).workspace.datasets(all_namespaces=True) == []


def test_create__killed_in_the_middle(multi: Hub, workspace: Workspace, ann: Actor, bob: Actor, birds: str) -> None:
    """A dataset whose owner was not stored yet is in the namespace of its tenant, and seen by its members alone."""
    dataset = workspace.in_namespace(birds).create_draft("pets")  # all that a killed process leaves
    assert names(multi, ann) == []
    assert names(multi, bob) == ["pets"]
    with pytest.raises(NotFound, match=r"^Dataset not found$"):
        multi.datasets.open(ann, dataset.id)
    multi.datasets.open(bob, dataset.id)
    multi.sweep()
    assert multi.datasets.subject(bob, dataset.id).tenant_id == birds
    with multi._database.read() as connection:
        homes = connection.exec_driver_sql("SELECT tenant_id, owner_id FROM dataset_homes").all()
    assert [tuple(row) for row in homes] == [(birds, None)]


def test_visible__datasets_of_the_library(multi: Hub, workspace: Workspace, ann: Actor, bob: Actor) -> None:
    """Datasets of the library belong to the default tenant, also those of a namespace that is no tenant's."""
    workspace.create_draft("pets")
    workspace.in_namespace("mine").create_draft("cats")
    assert names(multi, ann) == ["cats", "pets"]
    assert names(multi, bob) == []
    assert {record.owned_by for record in multi.datasets.visible(ann)} == {workspace.user}
    for nobody in (ANONYMOUS,):
        with pytest.raises(NotAuthenticated):
            multi.datasets.visible(nobody)


def test_open__hides_datasets_of_others(multi: Hub, ann: Actor, bob: Actor) -> None:
    """The answer for a dataset of another tenant is that for one that does not exist, also for its name."""
    dataset = multi.datasets.create(ann, "pets")
    calls: list[Any] = [
        multi.datasets.open,
        multi.datasets.record,
        lambda actor, each: multi.datasets.open(actor, each, Action.DATASET_EDIT),
        multi.datasets.members,
        lambda actor, each: multi.datasets.share(actor, each, "ann"),
        lambda actor, each: multi.datasets.unshare(actor, each, "ann"),
        multi.datasets.delete,
    ]
    for call in calls:
        answers = set()
        for each in (dataset.id, new_id(), "pets", "", "\ud800", dataset.id.upper()):
            with pytest.raises(NotFound) as error:
                call(bob, each)
            answers.add(str(error.value))
        assert answers == {"Dataset not found"}
        with pytest.raises(NotAuthenticated):
            call(ANONYMOUS, dataset.id)


def test_open__acts_as_the_actor(multi: Hub, ann: Actor) -> None:
    """What is made through a dataset names the actor."""
    dataset = multi.datasets.create(ann, "pets")
    assert context_of(multi.datasets.open(ann, dataset.id)).settings.user == "ann@example.org"


def test_owned_by__follows_the_owner(multi: Hub, ann: Actor, workspace: Workspace) -> None:
    """The hub shows the present owner, also after a rename, a transfer and a deletion; the catalog keeps the first."""
    dataset = multi.datasets.create(ann, "pets")
    add_user(multi, "cleo", "admin")
    cleo = log_in(multi, "cleo")

    def owner() -> set[str]:
        return {multi.datasets.record(cleo, dataset.id).owned_by, multi.datasets.visible(cleo)[0].owned_by}

    assert owner() == {"ann@example.org"}
    multi.tenants.set_role(cleo, ann.user_id or "", Role.VIEWER)
    assert owner() == {"cleo"}
    multi.users.change(OPERATOR, cleo.user_id or "", username="kleo")
    assert owner() == {"kleo"}
    multi.users.delete(cleo, ann.user_id or "")
    assert owner() == {"kleo"}
    assert workspace.dataset(dataset.id).info.owned_by == "ann@example.org"


@pytest.mark.slow
@pytest.mark.parametrize("address", ["bob", "BOB", "Bob@Example.org", "ｂｏｂ"])
def test_share__by_address_or_name_whatever_the_case(hub: Hub, address: str) -> None:
    """A dataset is shared with the account of an e-mail address or a username, in any case and form."""
    add_user(hub, "ann", "editor")
    add_user(hub, "cleo")
    user = hub.users.create(OPERATOR, "bob", "correct horse", email="bob@example.ORG")
    dataset = hub.datasets.create(log_in(hub, "ann"), "pets")
    hub.datasets.share(log_in(hub, "ann"), dataset.id, address)
    assert members(hub, dataset.id) == [("ann", "owner"), ("bob@example.ORG", "viewer")]
    hub.datasets.share(log_in(hub, "ann"), dataset.id, address, Role.EDITOR)
    assert members(hub, dataset.id)[1:] == [("bob@example.ORG", "editor")]
    assert hub.datasets.subject(log_in(hub, "bob"), dataset.id).grant is Role.EDITOR
    hub.datasets.unshare(log_in(hub, "ann"), dataset.id, address.swapcase())
    assert members(hub, dataset.id) == [("ann", "owner")]
    assert user.id not in {member.email for member in hub.datasets.members(OPERATOR, dataset.id)}


def test_share__opens_a_dataset_to_another_tenant(multi: Hub, ann: Actor, bob: Actor) -> None:
    """A grant lets a user of another tenant view, or also edit, one dataset and no other."""
    pets, cats = multi.datasets.create(ann, "pets"), multi.datasets.create(ann, "cats")
    multi.datasets.share(ann, pets.id, "bob")
    assert names(multi, bob) == ["pets"]
    with pytest.raises(Forbidden, match="do not have write access"):
        multi.datasets.open(bob, pets.id, Action.DATASET_EDIT)
    multi.datasets.share(ann, pets.id, "bob", Role.EDITOR)
    multi.datasets.open(bob, pets.id, Action.DATASET_EDIT)
    for action in (Action.DATASET_SHARE, Action.DATASET_DELETE, Action.DATASET_RENAME, Action.DATASET_CLONE):
        with pytest.raises(Forbidden):
            multi.datasets.open(bob, pets.id, action)
    with pytest.raises(NotFound):
        multi.datasets.open(bob, cats.id)
    multi.datasets.unshare(ann, pets.id, "bob")
    assert names(multi, bob) == []


def test_share__refusals(multi: Hub, ann: Actor, bob: Actor, workspace: Workspace) -> None:
    """Who may not share, an unknown account, the owner, a role that cannot be granted and the setting are refusals."""
    dataset = multi.datasets.create(ann, "pets")
    add_user(multi, "vic")
    with pytest.raises(Forbidden, match="Only the owner"):
        multi.datasets.share(log_in(multi, "vic"), dataset.id, "bob")
    with pytest.raises(Forbidden, match="User management is not enabled"):
        multi.datasets.share(local_actor("me"), dataset.id, "bob")
    for address in ("nobody@example.org", "local", "", "\ud800"):
        with pytest.raises(NotFound, match="No registered account has this e-mail address"):
            multi.datasets.share(ann, dataset.id, address)
    for call in (multi.datasets.share, multi.datasets.unshare):
        with pytest.raises(InvalidInput, match="owner of a dataset"):
            call(ann, dataset.id, "ANN")
    with pytest.raises(InvalidInput, match="viewer or an editor"):
        multi.datasets.share(ann, dataset.id, "bob", Role.ADMIN)
    with pytest.raises(NotFound, match="not shared with this account"):
        multi.datasets.unshare(ann, dataset.id, "bob")
    multi.datasets.share(ann, dataset.id, "vic")
    workspace.change_settings(dataset_share_enabled=False)
    with pytest.raises(Forbidden, match=r"^Dataset sharing is not enabled$"):
        multi.datasets.share(ann, dataset.id, "bob")
    multi.datasets.unshare(ann, dataset.id, "vic")
    assert members(multi, dataset.id) == [("ann@example.org", "owner")]


def test_share__by_an_owner_who_lost_the_dataset(multi: Hub, ann: Actor) -> None:
    """Rights count when the grant is stored, not when the actor was read."""
    dataset = multi.datasets.create(ann, "pets")
    add_user(multi, "cleo", "admin")
    multi.tenants.set_role(OPERATOR, ann.user_id or "", Role.VIEWER)
    with pytest.raises(Forbidden):
        multi.datasets.share(ann, dataset.id, "cleo")


def test_delete__takes_the_home_and_the_grants(multi: Hub, ann: Actor, bob: Actor, workspace: Workspace) -> None:
    """The owner deletes a dataset; nothing about it is stored any more."""
    dataset = multi.datasets.create(ann, "pets")
    multi.datasets.share(ann, dataset.id, "bob", Role.EDITOR)
    with pytest.raises(Forbidden, match="may delete it"):
        multi.datasets.delete(bob, dataset.id)
    workspace.change_settings(delete_dataset_enabled=False)
    with pytest.raises(Forbidden, match="not enabled"):
        multi.datasets.delete(ann, dataset.id)
    workspace.change_settings(delete_dataset_enabled=None)
    multi.datasets.delete(ann, dataset.id)
    assert workspace.datasets(all_namespaces=True) == []
    with multi._database.read() as connection:
        for table in ("dataset_homes", "grants"):
            assert connection.exec_driver_sql(f"SELECT count(*) FROM {table}").scalar() == 0
    with pytest.raises(NotFound, match=r"^Dataset not found$"):
        multi.datasets.delete(ann, dataset.id)


def test_adopt__refusals(hub: Hub) -> None:
    """A dataset belongs to a tenant and an owner who exist."""
    with pytest.raises(NotFound, match="Workspace not found"):
        hub.datasets.adopt(new_id(), "nowhere", None)
    with pytest.raises(NotFound, match="User not found"):
        hub.datasets.adopt(new_id(), DEFAULT_ID, "nobody")


def test_sweep__forgets_deleted_datasets(multi: Hub, ann: Actor, workspace: Workspace) -> None:
    """Homes and grants of datasets that the library deleted go; those of others stay."""
    gone, kept = multi.datasets.create(ann, "gone"), multi.datasets.create(ann, "kept")
    add_user(multi, "cleo")
    for dataset in (gone, kept):
        multi.datasets.share(ann, dataset.id, "cleo")
    workspace.delete_dataset(gone.id)
    assert multi.datasets.sweep() == 1
    assert multi.datasets.sweep() == 0
    assert members(multi, kept.id) == [("ann@example.org", "owner"), ("cleo", "viewer")]


def test_sweep__keeps_datasets_that_are_made_meanwhile(
    multi: Hub, ann: Actor, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A dataset that is made while rows are swept keeps its owner."""
    listed = type(workspace).datasets

    def slow(self: Workspace, **options: bool) -> Any:
        records = listed(self, **options)
        if not created:
            created.append("")
            created.append(multi.datasets.create(ann, "new").id)
        return records

    created: list[str] = []
    monkeypatch.setattr(type(workspace), "datasets", slow)
    assert multi.datasets.sweep() == 0
    assert multi.datasets.subject(ann, created[1]).owner_id == ann.user_id


def test_sweep__keeps_what_only_the_catalog_has_lost(multi: Hub, ann: Actor, workspace: Workspace) -> None:
    """While the folder of a dataset is there, `framedex recover` may bring it back: its owner is kept."""
    dataset = multi.datasets.create(ann, "pets")
    (workspace.path / "datasets" / dataset.id).mkdir(parents=True, exist_ok=True)
    with catalog_of(workspace).write() as connection:
        connection.exec_driver_sql("DELETE FROM datasets")
    assert multi.datasets.sweep() == 0


def test_provider__has_no_part_in_datasets(hub_with_provider: Hub, provider: Provider) -> None:
    """Datasets of accounts of a provider are like others."""
    add_user(hub_with_provider, "ann", "editor")
    dataset = hub_with_provider.datasets.create(OPERATOR, "pets")
    hub_with_provider.datasets.share(OPERATOR, dataset.id, "ann")
    assert members(hub_with_provider, dataset.id) == [("ann", "viewer")]
    assert provider.calls == ["create"]
