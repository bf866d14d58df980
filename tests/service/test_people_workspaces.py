"""Workspaces of users and organizations over HTTP: each rule of the interface."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from framedex import Workspace
from framedex.access import Role
from framedex.hub import Hub
from framedex.service.settings import RunMode, ServiceSettings
from tests.service.client import OWN, Client, client_of
from tests.service.serving import Serving, serving
from tests.service.users import OPERATOR, PASSWORD

API = "/api/v1"
DEFAULT = "00000000-0000-0000-0000-000000000001"
NOWHERE = "00000000-0000-4000-8000-0000000000aa"
READS = (
    "workspaces", f"workspaces/{DEFAULT}", "workspace/members", "workspace/settings/access", "organizations",
    f"organizations/{DEFAULT}",
)  # fmt: skip


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    """A service whose users nothing changes, and a workspace of users to which none of them belongs."""
    with serving(tmp_path_factory.mktemp("workspaces")) as running:
        organization = running.hub.tenants.create_organization(OPERATOR, "Birds")
        running.hub.tenants.create(OPERATOR, "owls", organization_id=organization.id)
        yield running


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Serving]:
    """A service with users of its own."""
    with serving(tmp_path) as running:
        yield running


def user_ids(hub: Hub) -> dict[str, str]:
    """Return the ids of the users by name."""
    return {user.username: user.id for user in hub.users.page(OPERATOR)[0]}


def roles(client: Client) -> dict[str, str]:
    """Return the roles of the members by name."""
    return {each["username"]: each["role"] for each in client.get(f"{API}/workspace/members").json()["members"]}


def put_role(client: Client, user_id: str, role: str, **more: Any) -> tuple[int, str]:
    """Change the role of a member; return the status and the sentence of an error."""
    url = f"{API}/workspace/members/{user_id}/role"
    answer = client.put(url, json={"role": role, **more}, headers=OWN)
    return answer.status_code, str(answer.json().get("detail", ""))


@pytest.mark.slow
def test_workspaces__are_those_of_the_caller(served: Serving) -> None:
    """The list has the workspaces that the caller belongs to, with what the caller may do there."""
    permissions = {}
    for name in ("ann", "eve", "vic"):
        listed = getattr(served, name).get(f"{API}/workspaces").json()["workspaces"]
        assert [(each["id"], each["name"], each["organization_id"]) for each in listed] == [
            (DEFAULT, "Default Workspace", DEFAULT)
        ]
        assert listed[0].keys() == {"id", "organization_id", "name", "created_at", "updated_at", "permissions"}
        permissions[name] = listed[0]["permissions"]
    names = ("can_view", "can_manage_members", "can_edit_roles", "can_create_dataset")
    assert permissions == {
        "ann": dict(zip(names, (True, True, True, True), strict=True)),
        "eve": dict(zip(names, (True, False, False, True), strict=True)),
        "vic": dict(zip(names, (True, False, False, False), strict=True)),
    }


def test_workspaces__of_an_organization(served: Serving) -> None:
    """The list can be that of one organization; a text that is no id is a 422."""
    for organization, count in ((DEFAULT, 1), (NOWHERE, 0)):
        answer = served.vic.get(f"{API}/workspaces", params={"organization_id": organization})
        assert len(answer.json()["workspaces"]) == count
    assert served.vic.get(f"{API}/workspaces", params={"organization_id": "x"}).status_code == 422


def test_workspace__of_members_only(served: Serving) -> None:
    """A workspace is shown to its members; that of others is not found, like one that does not exist.

    What is no id is an invalid value in a query, and nothing in a path.
    """
    assert served.vic.get(f"{API}/workspaces/{DEFAULT}").json()["permissions"]["can_view"] is True
    owls = next(each.id for each in served.hub.tenants.visible(OPERATOR) if each.name == "owls")
    assert served.ann.get(f"{API}/workspaces/x").status_code == 404
    for path in ("workspace/members", "workspace/settings/access"):
        assert served.ann.get(f"{API}/{path}", params={"workspace_id": "x"}).status_code == 422
    for workspace_id in (owls, NOWHERE):
        for path, query in ((f"workspaces/{workspace_id}", {}), ("workspace/members", {"workspace_id": workspace_id})):
            answer = served.ann.get(f"{API}/{path}", params=query)
            assert (answer.status_code, answer.json()["detail"]) == (404, "Workspace not found"), (path, query)


def test_members__of_a_workspace(served: Serving) -> None:
    """The members have their names, addresses and roles; without an id they are those of the primary workspace."""
    for query in ({}, {"workspace_id": DEFAULT}):
        body = served.vic.get(f"{API}/workspace/members", params=query).json()
        assert body["total"] == len(body["members"]) == 3
        assert [(each["username"], each["email"], each["role"]) for each in body["members"]] == [
            ("ann", "ann@example.org", "admin"),
            ("eve", "eve@example.org", "editor"),
            ("vic", "vic@example.org", "viewer"),
        ]
        names = {"user_id", "username", "email", "firstName", "lastName", "role", "created_at"}
        assert all(each.keys() == names for each in body["members"])


def test_access__to_the_settings(served: Serving) -> None:
    """Members have access, admins may manage, and for others the answer is no, with 200."""
    url = f"{API}/workspace/settings/access"
    found = {name: getattr(served, name).get(url).json() for name in ("ann", "eve", "vic")}
    assert found == {
        "ann": {"can_access": True, "can_manage": True, "role": "admin"},
        "eve": {"can_access": True, "can_manage": False, "role": "editor"},
        "vic": {"can_access": True, "can_manage": False, "role": "viewer"},
    }
    owls = next(each.id for each in served.hub.tenants.visible(OPERATOR) if each.name == "owls")
    for client, workspace_id, status in (
        (served.vic, owls, 200),
        (served.vic, NOWHERE, 200),
        (served.ann, owls, 200),
        (served.ann, NOWHERE, 404),  # who manages users may know which workspaces exist
    ):
        answer = client.get(url, params={"workspace_id": workspace_id})
        assert answer.status_code == status
        if status == 200:
            assert answer.json() == {"can_access": False, "can_manage": False, "role": None}


def test_organizations__of_the_workspaces_of_the_caller(served: Serving) -> None:
    """The organizations are those of the caller's workspaces; another one is not found."""
    listed = served.vic.get(f"{API}/organizations").json()["organizations"]
    assert [(each["id"], each["name"]) for each in listed] == [(DEFAULT, "Default Organization")]
    assert served.vic.get(f"{API}/organizations/{DEFAULT}").json() == listed[0]
    assert listed[0].keys() == {"id", "name", "created_at", "updated_at"}
    birds = next(each.id for each in served.hub.tenants.organizations(OPERATOR) if each.name == "Birds")
    for organization_id in (birds, NOWHERE, "x"):
        answer = served.ann.get(f"{API}/organizations/{organization_id}")
        assert (answer.status_code, answer.json()["detail"]) == (404, "Organization not found")


@pytest.mark.slow
def test_management__only_where_it_is_enabled(served: Serving) -> None:
    """Without log-ins and on a hosted platform each route answers 403; nobody learns it before a log-in."""
    cloud = ServiceSettings(disable_auth=False, run_mode=RunMode.CLOUD)
    with client_of(served.workspace, served.hub, cloud) as hosted:
        hosted.log_in("ann")
        for client in (served.local, hosted):
            answers = [client.get(f"{API}/{path}") for path in READS]
            answers.append(client.put(f"{API}/workspace/members/{NOWHERE}/role", json={"role": "x"}, headers=OWN))
            assert {(each.status_code, each.json()["detail"]) for each in answers} == {
                (403, "User management is not enabled")
            }
    for path in READS:
        assert served.nobody.get(f"{API}/{path}").status_code == 401


def test_management__after_the_password_was_chosen(fresh: Serving) -> None:
    """A user with a temporary password must choose another one first."""
    fresh.hub.users.reset_password(OPERATOR, user_ids(fresh.hub)["vic"], PASSWORD)
    fresh.vic.cookies.clear()
    fresh.vic.log_in("vic")
    for path in READS:
        answer = fresh.vic.get(f"{API}/{path}")
        assert (answer.status_code, answer.json()["detail"]) == (403, "Password change required"), path


@pytest.mark.slow
def test_role__is_changed_by_admins_only(fresh: Serving) -> None:
    """An admin changes the role of a member and gets the member; editors and viewers get 403."""
    ids = user_ids(fresh.hub)
    url = f"{API}/workspace/members/{ids['vic']}/role"
    answer = fresh.ann.put(url, json={"role": "editor"}, headers=OWN)
    assert (answer.status_code, answer.json()["username"], answer.json()["role"]) == (200, "vic", "editor")
    for client in (fresh.eve, fresh.vic):
        for role in ("viewer", "owner"):  # the right comes before the values
            assert put_role(client, ids["ann"], role) == (403, "Only administrators of a workspace may change roles")
    assert roles(fresh.ann) == {"ann": "admin", "eve": "editor", "vic": "editor"}


@pytest.mark.slow
def test_role__values_that_are_refused(fresh: Serving) -> None:
    """The own role, an unknown member, an unknown role and another workspace are refused, each with its status."""
    ids = user_ids(fresh.hub)
    assert put_role(fresh.ann, ids["ann"], "viewer") == (400, "You cannot change your own role")
    for user_id in (NOWHERE, "x"):
        assert put_role(fresh.ann, user_id, "viewer") == (404, "Member not found")
    assert put_role(fresh.ann, ids["vic"], "owner")[0] == 422
    assert put_role(fresh.ann, ids["vic"], "editor", workspace_id=NOWHERE) == (404, "Workspace not found")
    assert put_role(fresh.ann, ids["vic"], "editor", workspace_id="x")[0] == 422
    assert fresh.ann.put(f"{API}/workspace/members/{ids['vic']}/role", json={}, headers=OWN).status_code == 422
    assert roles(fresh.ann) == {"ann": "admin", "eve": "editor", "vic": "viewer"}


@pytest.mark.slow
def test_role__of_a_new_admin(fresh: Serving) -> None:
    """A new admin takes the place of the former, gets the roles of admins, and both are logged out."""
    ids = user_ids(fresh.hub)
    assert put_role(fresh.ann, ids["eve"], "admin") == (200, "")
    assert [client.get(f"{API}/me").status_code for client in (fresh.ann, fresh.eve, fresh.vic)] == [401, 401, 200]
    assert roles(fresh.vic) == {"ann": "editor", "eve": "admin", "vic": "viewer"}
    assert sorted(fresh.hub.users.get(OPERATOR, ids["eve"]).roles) == [
        "manage-users", "query-groups", "query-users", "view-users",
    ]  # fmt: skip
    assert fresh.hub.users.get(OPERATOR, ids["ann"]).roles == []


@pytest.mark.slow
def test_role__of_a_new_viewer(fresh: Serving) -> None:
    """A member who becomes a viewer keeps no grant above viewing, and the admin gets the datasets of the member."""
    ids = user_ids(fresh.hub)
    own = fresh.eve.get(f"{API}/ingestion/new_dataset", params={"dataset_name": "own"}, headers=OWN).json()
    other = fresh.ann.get(f"{API}/ingestion/new_dataset", params={"dataset_name": "other"}, headers=OWN).json()
    fresh.hub.datasets.share(OPERATOR, other["dataset_id"], "eve", Role.EDITOR)
    assert put_role(fresh.ann, ids["eve"], "viewer") == (200, "")
    assert fresh.eve.get(f"{API}/dataset/{own['dataset_id']}").json()["owned_by"] == "ann@example.org"
    members = fresh.hub.datasets.members(OPERATOR, other["dataset_id"])
    assert [(each.email, each.role) for each in members] == [
        ("ann@example.org", "owner"),
        ("eve@example.org", "viewer"),
    ]
    assert fresh.eve.post(f"{API}/dataset/{other['dataset_id']}/reindex", headers=OWN).status_code == 403


@pytest.mark.slow
def test_roles__in_several_workspaces(workspace: Workspace) -> None:
    """With many workspaces a member has a role in each, admins of one manage it alone, and there may be several."""
    settings = ServiceSettings(disable_auth=False)
    with Hub(workspace, is_multi=True) as hub, client_of(workspace, hub, settings) as client:
        owls = hub.tenants.create(OPERATOR, "owls").id
        for name in ("ada", "bob", "cleo"):
            hub.users.create(OPERATOR, name, PASSWORD, role=Role.ADMIN if name == "ada" else Role.VIEWER)
        hub.tenants.add_member(OPERATOR, owls, "bob", Role.ADMIN)
        hub.tenants.add_member(OPERATOR, owls, "cleo", Role.VIEWER)
        ids = user_ids(hub)
        client.log_in("bob")
        assert [each["name"] for each in client.get(f"{API}/workspaces").json()["workspaces"]] == [
            "Default Workspace", "owls",
        ]  # fmt: skip
        assert put_role(client, ids["cleo"], "editor")[0] == 403  # in the primary workspace
        assert put_role(client, ids["cleo"], "admin", workspace_id=owls) == (200, "")
        members = client.get(f"{API}/workspace/members", params={"workspace_id": owls}).json()["members"]
        assert {each["username"]: each["role"] for each in members} == {"bob": "admin", "cleo": "admin"}
        assert put_role(client, ids["ada"], "viewer", workspace_id=owls) == (404, "Member not found")
