"""Users, workspaces of users, settings, the audit and sharing through the client."""

from datetime import UTC, datetime, timedelta

import pytest

from framedex import Client, Forbidden, InvalidInput, NotFound
from framedex.access import Role
from tests.service.client import BASE
from tests.service.users import PASSWORD


@pytest.fixture
def clients(keys: tuple[object, dict[str, tuple[str, str]]]) -> dict[str, Client]:
    """A client of each user of a service with log-ins: an admin, an editor and a viewer."""
    transport, found = keys
    return {name: Client(BASE, *pair, transport=transport) for name, pair in found.items()}


@pytest.mark.slow
def test_users__from_creation_to_deletion(clients: dict[str, Client]) -> None:
    """A user is created, found, renamed, disabled and deleted, by the names of the hub."""
    users = clients["ann"].users
    bob = users.create("bob", PASSWORD, first_name="Bob", last_name="Hall", role=Role.EDITOR)
    assert users.get(bob.id) == users.find("BOB") == users.find(bob.id) == bob
    found, total = users.page(search="hall", limit=1)
    assert (found, total, users.page(limit=1, offset=3)[1]) == ([bob], 1, 4)
    assert users.change(bob.id, username="rob").username == "rob"
    assert users.change(bob.id, enabled=False).enabled is False
    assert users.set_roles(bob.id, ["view-users", "owner"]).roles == ["view-users"]
    users.reset_password(bob.id, "temporary one")
    users.log_out(bob.id)
    assert users.sessions(bob.id) == []
    assert users.sessions(users.find("eve").id)[0].username == "eve"
    users.delete(bob.id)
    for call in (users.get, users.delete, users.log_out, users.find):
        with pytest.raises(NotFound, match="User not found"):
            call(bob.id)


@pytest.mark.slow
def test_users__refusals(clients: dict[str, Client]) -> None:
    """Refusals of the service are the library's errors."""
    users = clients["ann"].users
    with pytest.raises(InvalidInput, match="Username 'eve' is already taken"):
        users.create("eve", PASSWORD, first_name="E", last_name="E")
    with pytest.raises(InvalidInput, match="You cannot delete your own account"):
        users.delete(users.find("ann").id)
    with pytest.raises(InvalidInput, match="username, enabled, or both"):
        users.change(users.find("vic").id)
    with pytest.raises(Forbidden, match="Insufficient roles"):
        clients["vic"].users.page()


def test_tenants__and_their_members(clients: dict[str, Client]) -> None:
    """Tenants, members and organizations are listed, and an admin changes roles."""
    ann = clients["ann"].tenants
    tenant = ann.visible()[0]
    assert ann.get(tenant.id) == ann.find("Default Workspace") == ann.visible(organization_id=tenant.organization_id)[0]
    assert ann.organization(tenant.organization_id) == ann.organizations()[0]
    members = {each.username: each for each in ann.members()}
    assert {name: each.role for name, each in members.items()} == {"ann": "admin", "eve": "editor", "vic": "viewer"}
    assert ann.set_role(members["vic"].user_id, Role.EDITOR, tenant_id=tenant.id).role == "editor"
    assert ann.set_role(members["vic"].user_id, "viewer").role == "viewer"
    assert ann.members(tenant.id) == ann.members()
    access = clients["vic"].tenants.access(tenant.id)
    assert (access.can_access, access.can_manage, access.role) == (True, False, "viewer")
    with pytest.raises(Forbidden, match="Only administrators"):
        clients["eve"].tenants.set_role(members["vic"].user_id, "editor")
    with pytest.raises(InvalidInput, match="own role"):
        ann.set_role(members["ann"].user_id, "editor")
    with pytest.raises(NotFound, match="no workspace 'owls'"):
        ann.find("owls")


def test_admin_settings__hold_at_once(clients: dict[str, Client]) -> None:
    """Settings are read and changed as text; others than admins may not."""
    settings = clients["ann"].admin_settings
    assert settings.change("dataset-share-enabled", False) == "false"
    assert settings.get("DATASET_SHARE_ENABLED") == settings.values()["DATASET_SHARE_ENABLED"] == "false"
    with pytest.raises(Forbidden, match="Dataset sharing is not enabled"):
        clients["ann"].dataset("pets").share("eve")
    with pytest.raises(InvalidInput, match="Unknown setting 'x'"):
        settings.get("x")
    with pytest.raises(Forbidden):
        clients["eve"].admin_settings.values()


def test_share__and_the_audit(clients: dict[str, Client]) -> None:
    """A dataset is shared, and no longer; the audit has it."""
    pets = clients["ann"].dataset("pets")
    pets.share("vic@example.org", Role.EDITOR)
    assert [(each.email, each.role) for each in pets.members()] == [("vic@example.org", "editor")]
    assert clients["vic"].dataset("pets").create_tag("mine").name == "mine"
    pets.unshare("vic")
    assert pets.members() == []
    with pytest.raises(NotFound, match="No registered account"):
        pets.share("nobody@example.org")
    page = clients["ann"].audit(action="dataset", dataset_id=pets.id, limit=2)
    assert [(each.action, each.username) for each in page.entries] == [
        ("dataset.share viewer", "ann"), ("dataset.unshare", "ann"),
    ]  # fmt: skip
    assert page.total == 3
    assert clients["ann"].audit(since=datetime.now(UTC) + timedelta(days=1)).entries == []
    with pytest.raises(Forbidden):
        clients["vic"].audit()
