"""Management of users over HTTP: each rule of the interface."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from framedex import Workspace
from framedex.access import Role
from framedex.hub import Hub
from framedex.service.settings import RunMode, ServiceSettings
from framedex.storage.service_db import accounts
from tests.failures import failing
from tests.hub.people import Provider
from tests.service.client import OWN, Client, client_of
from tests.service.serving import Serving, serving
from tests.service.users import OPERATOR, PASSWORD

URL = "/api/v1/keycloak/admin/users"
NOWHERE = "00000000-0000-4000-8000-0000000000aa"
NEW = {"username": "bob", "password": PASSWORD, "firstName": "Bob", "lastName": "Hall"}
ALL_ROLES = ["manage-users", "view-users", "query-users", "query-groups"]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    """A service whose users nothing changes."""
    with serving(tmp_path_factory.mktemp("users")) as running:
        yield running


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Serving]:
    """A service with users of its own."""
    with serving(tmp_path) as running:
        yield running


def user_ids(hub: Hub) -> dict[str, str]:
    """Return the ids of the users by name."""
    return {user.username: user.id for user in hub.users.page(OPERATOR)[0]}


def send(client: Client, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    """Send a request; return the status, and the body or the sentence of an error."""
    answer = client.request(method, URL + path, headers=OWN, **({} if body is None else {"json": body}))
    return answer.status_code, answer.json()["detail"] if answer.is_error else answer.json()


def requests_for(user_id: str) -> list[tuple[str, str, Any]]:
    """Return a request of each kind about a user: method, path and body."""
    return [
        ("GET", f"/{user_id}", None),
        ("GET", f"/{user_id}/sessions", None),
        ("PATCH", f"/{user_id}", {"enabled": True}),
        ("DELETE", f"/{user_id}", None),
        ("POST", f"/{user_id}/reset-password", {"password": PASSWORD}),
        ("POST", f"/{user_id}/logout", None),
        ("PUT", f"/{user_id}/roles", {"roles": []}),
    ]


def log_in(client: Client, name: str, password: str = PASSWORD) -> tuple[int, Any]:
    """Log in; return the status and the answer."""
    answer = client.post("/api/v1/login", json={"username": name, "password": password}, headers=OWN)
    return answer.status_code, answer.json()


@pytest.mark.slow
def test_management__only_where_it_is_enabled(shared: Serving) -> None:
    """Without log-ins and on a hosted platform each request answers 403, whoever asks."""
    cloud = ServiceSettings(disable_auth=False, run_mode=RunMode.CLOUD)
    requests = [("GET", "", None), ("POST", "", {}), *requests_for(NOWHERE)]
    with client_of(shared.workspace, shared.hub, cloud) as hosted:
        hosted.log_in("ann")
        for client in (shared.local, hosted):
            assert {send(client, *each) for each in requests} == {(403, "User management is not enabled")}


@pytest.mark.slow
def test_management__needs_the_roles(fresh: Serving) -> None:
    """Reading needs view-users or manage-users, changing manage-users; the other roles grant nothing."""
    ids = user_ids(fresh.hub)
    requests = [("GET", "", None), ("POST", "", {}), *requests_for(NOWHERE)]
    assert {send(fresh.nobody, *each)[0] for each in requests} == {401}
    for roles in ([], ["query-users", "query-groups"]):
        fresh.hub.users.set_roles(OPERATOR, ids["eve"], roles)
        fresh.eve.log_in("eve")
        assert {send(fresh.eve, *each) for each in requests} == {(403, "Insufficient roles")}
    fresh.hub.users.set_roles(OPERATOR, ids["eve"], ["view-users"])
    fresh.eve.log_in("eve")
    for method, path, body in [("GET", "", None), *requests_for(ids["vic"])]:
        expected = 200 if method == "GET" else 403
        assert send(fresh.eve, method, path, body)[0] == expected, (method, path)
    fresh.hub.users.set_roles(OPERATOR, ids["eve"], ["manage-users"])
    fresh.eve.log_in("eve")
    for method, path, body in requests_for(user_ids(fresh.hub)["vic"]):
        if method != "DELETE":
            assert send(fresh.eve, method, path, body)[0] == 200, (method, path)
    assert send(fresh.eve, "DELETE", f"/{ids['vic']}")[0] == 200


@pytest.mark.slow
def test_user__that_does_not_exist(shared: Serving) -> None:
    """Each request about a user who does not exist is a 404, whatever the form of the id."""
    for user_id in (NOWHERE, "x", "00000000-0000-0000-0000-000000000000", "%F0%9F%A6%89"):
        for method, path, body in requests_for(user_id):
            assert send(shared.ann, method, path, body) == (404, "User not found"), (method, path)


def test_users__are_listed_by_name(shared: Serving) -> None:
    """The list has all users by username with their number; a search looks in usernames and names."""
    status, body = send(shared.ann, "GET", "")
    assert status == 200
    assert ([each["username"] for each in body["users"]], body["total"]) == (["ann", "eve", "vic"], 3)
    names = {"id", "username", "firstName", "lastName", "enabled", "createdTimestamp", "roles", "lastAccess"}
    assert all(each.keys() == names for each in body["users"])
    ann = body["users"][0]
    assert (ann["roles"], ann["enabled"], ann["firstName"], ann["lastName"]) == (ALL_ROLES, True, None, None)
    assert 10**12 < ann["createdTimestamp"] <= ann["lastAccess"] < 10**13
    for search, found in (("AN", ["ann"]), ("v", ["eve", "vic"]), ("example.org", []), ("", ["ann", "eve", "vic"])):
        page = shared.ann.get(URL, params={"search": search}).json()
        assert ([each["username"] for each in page["users"]], page["total"]) == (found, len(found))
    assert send(shared.ann, "GET", f"/{ann['id'].upper()}") == (200, ann)


def test_users__in_pages(shared: Serving) -> None:
    """A page has 1 to 1,000 users, 100 by default, from any offset; the total counts the users before paging."""
    pages = [shared.ann.get(URL, params={"max_results": 1, "first": first}).json() for first in range(4)]
    assert [[each["username"] for each in page["users"]] for page in pages] == [["ann"], ["eve"], ["vic"], []]
    assert {page["total"] for page in pages} == {3}
    queries: list[dict[str, Any]] = [
        {"max_results": 0},
        {"max_results": 1001},
        {"max_results": "x"},
        {"first": -1},
        {"first": "x"},
    ]
    assert {shared.ann.get(URL, params=query).status_code for query in queries} == {422}
    for query in ({"max_results": 1}, {"max_results": 1000}, {"first": 0}):
        assert shared.ann.get(URL, params=query).status_code == 200


@pytest.mark.slow
def test_create__a_viewer_by_default(fresh: Serving) -> None:
    """A new user has the given names, may log in, and is a viewer of the workspace without further roles."""
    status, user = send(fresh.ann, "POST", "", NEW)
    assert (status, user["username"], user["firstName"], user["lastName"]) == (201, "bob", "Bob", "Hall")
    assert (user["enabled"], user["roles"], user["lastAccess"]) == (True, [], None)
    assert send(fresh.ann, "GET", f"/{user['id']}") == (200, user)
    assert log_in(fresh.nobody, "bob")[1]["must_change_password"] is False
    members = fresh.ann.get("/api/v1/workspace/members").json()["members"]
    assert {each["username"]: each["role"] for each in members}["bob"] == "viewer"


@pytest.mark.slow
def test_create__with_a_role(fresh: Serving) -> None:
    """A new editor is one at once; a new admin takes the place of the caller, whose request is still answered."""
    assert send(fresh.ann, "POST", "", {**NEW, "workspace_role": "editor"})[0] == 201
    status, user = send(fresh.ann, "POST", "", {**NEW, "username": "cleo", "workspace_role": "admin"})
    assert (status, user["roles"]) == (201, ALL_ROLES)
    assert send(fresh.ann, "GET", "")[0] == 401
    members = {each.username: each.role for each in fresh.hub.tenants.members(OPERATOR)}
    assert members == {"ann": "editor", "bob": "editor", "cleo": "admin", "eve": "editor", "vic": "viewer"}


@pytest.mark.slow
def test_create__that_is_disabled(fresh: Serving) -> None:
    """A user can be created disabled, and then cannot log in until enabled."""
    _, user = send(fresh.ann, "POST", "", {**NEW, "enabled": False})
    assert user["enabled"] is False
    assert log_in(fresh.nobody, "bob")[0] == 401
    assert send(fresh.ann, "PATCH", f"/{user['id']}", {"enabled": True})[1]["enabled"] is True
    assert log_in(fresh.nobody, "bob")[0] == 200


@pytest.mark.parametrize(
    "change",
    [
        {"username": "bo"}, {"username": "x" * 256}, {"username": "bob hall"}, {"username": "bob\u00a0hall"},
        {"username": None}, {"password": "short12"}, {"password": "x" * 1025}, {"password": None},
        {"firstName": ""}, {"firstName": "x" * 256}, {"firstName": None}, {"lastName": ""}, {"lastName": "x" * 256},
        {"lastName": None}, {"enabled": "perhaps"}, {"workspace_role": "owner"},
    ],
    ids=str,
)  # fmt: skip
def test_create__values_that_are_refused(shared: Serving, change: dict[str, Any]) -> None:
    """A value out of its limits, or one that is missing, is a 422, and nobody is created."""
    body = {name: value for name, value in {**NEW, **change}.items() if value is not None}
    assert send(shared.ann, "POST", "", body)[0] == 422
    assert shared.hub.users.count() == 3


def test_create__at_the_limits(fresh: Serving) -> None:
    """The shortest and the longest names and passwords are accepted."""
    for size, username, password in ((1, "bob", "x" * 8), (255, "y" * 255, "x" * 1024)):
        body = {"username": username, "password": password, "firstName": "x" * size, "lastName": "x" * size}
        assert send(fresh.ann, "POST", "", body)[0] == 201


@pytest.mark.slow
def test_create__name_that_is_taken(fresh: Serving) -> None:
    """A username is unique, whatever the case, among new and renamed users: 400."""
    for name in ("vic", "VIC"):
        assert send(fresh.ann, "POST", "", {**NEW, "username": name}) == (400, f"Username '{name}' is already taken")
        answer = send(fresh.ann, "PATCH", f"/{user_ids(fresh.hub)['eve']}", {"username": name})
        assert answer == (400, f"Username '{name}' is already taken")
    assert fresh.hub.users.count() == 3


@pytest.mark.slow
def test_management__of_users_with_a_higher_role(fresh: Serving) -> None:
    """Who manages users and is no admin makes none, and takes over the account of none: 403."""
    ids = user_ids(fresh.hub)
    fresh.hub.users.set_roles(OPERATOR, ids["vic"], ["manage-users"])
    fresh.vic.log_in("vic")
    refused = "Only who has at least the role of a user in each workspace of the user may create or change the account"
    for method, path, body in requests_for(ids["eve"])[2:] + requests_for(ids["ann"])[4:]:
        assert send(fresh.vic, method, path, body) == (403, refused), (method, path)
    for role in ("editor", "admin"):
        assert send(fresh.vic, "POST", "", {**NEW, "workspace_role": role}) == (403, refused)
    assert send(fresh.vic, "POST", "", NEW)[0] == 201


@pytest.fixture
def provided(workspace: Workspace) -> Iterator[tuple[Client, Hub, Provider]]:
    """A client of an admin of a service whose accounts live at an identity provider, the hub, and the provider."""
    provider, settings = Provider(), ServiceSettings(disable_auth=False)
    with Hub(workspace, provider=provider) as hub, client_of(workspace, hub, settings) as client:
        hub.users.create_first_admin(PASSWORD, "ann")
        yield client.log_in("ann"), hub, provider


def test_create__is_all_or_nothing(provided: tuple[Client, Hub, Provider]) -> None:
    """If a step fails at the provider or in the database, nothing is left of the user, and the answer is 500."""
    client, hub, provider = provided
    provider.failing = {"create"}
    assert send(client, "POST", "", NEW) == (500, "Internal server error")
    provider.failing = set()

    with failing("framedex.storage.service_db.accounts.put_identity", error=OSError("out of order")):
        assert send(client, "POST", "", NEW) == (500, "Internal server error")
    assert (provider.accounts, hub.users.count()) == ({}, 1)
    assert send(client, "POST", "", NEW)[0] == 201


@pytest.mark.slow
def test_user__by_either_id(provided: tuple[Client, Hub, Provider]) -> None:
    """The id is that of the identity provider, where the account lives there; the service's own id is accepted, too."""
    client, hub, provider = provided
    _, created = send(client, "POST", "", NEW)
    own, subject = user_ids(hub)["bob"], next(iter(provider.accounts))
    assert created["id"] == subject != own
    for user_id in (own, own.upper(), subject):
        assert send(client, "GET", f"/{user_id}")[1]["id"] == subject
        assert send(client, "PATCH", f"/{user_id}", {"enabled": True})[1]["id"] == subject
        assert send(client, "PUT", f"/{user_id}/roles", {"roles": []})[1]["id"] == subject
    listed = send(client, "GET", "")[1]["users"]
    assert [each["id"] for each in listed] == [user_ids(hub)["ann"], subject]
    assert send(client, "DELETE", f"/{subject}")[0] == 200
    assert (provider.accounts, list(user_ids(hub))) == ({}, ["ann"])


def test_user__whose_account_is_at_two_providers(provided: tuple[Client, Hub, Provider]) -> None:
    """An id that two users have at different providers names neither of them."""
    client, hub, _ = provided
    ids = [send(client, "POST", "", {**NEW, "username": name})[1] and user_ids(hub)[name] for name in ("bob", "cleo")]
    with hub._database.write() as connection:
        for number, user_id in enumerate(ids):
            accounts.put_identity(connection, f"https://{number}.example.org", "same", user_id)
    assert send(client, "GET", "/same") == (404, "User not found")


@pytest.mark.slow
def test_change__of_the_name(fresh: Serving) -> None:
    """A user who is renamed logs in with the new name, and keeps the session and the datasets."""
    vic = user_ids(fresh.hub)["vic"]
    status, user = send(fresh.ann, "PATCH", f"/{vic}", {"username": "victor"})
    assert (status, user["username"], user["id"]) == (200, "victor", vic)
    assert fresh.vic.get("/api/v1/me").json()["username"] == "victor"
    assert [log_in(fresh.nobody, name)[0] for name in ("vic", "victor")] == [401, 200]
    for name in ("bob", "y" * 255):
        status, user = send(fresh.ann, "PATCH", f"/{vic}", {"username": name, "enabled": name == "bob"})
        assert (status, user["username"], user["enabled"]) == (200, name, name == "bob")
    assert log_in(fresh.nobody, name)[0] == 401


@pytest.mark.slow
def test_change__of_a_user_who_is_disabled(fresh: Serving) -> None:
    """A disabled user is logged out, cannot log in, and has no use of an API key, until enabled again."""
    headers = fresh.nobody.bearer("vic")
    url = f"/{user_ids(fresh.hub)['vic']}"
    assert send(fresh.ann, "PATCH", url, {"enabled": False})[1]["enabled"] is False
    assert fresh.vic.get("/api/v1/me").status_code == 401
    assert fresh.nobody.get("/api/v1/me", headers=headers).status_code == 401
    assert log_in(fresh.nobody, "vic")[0] == 401
    assert send(fresh.ann, "PATCH", url, {"enabled": True})[1]["enabled"] is True
    assert fresh.vic.get("/api/v1/me").status_code == 401
    assert fresh.nobody.get("/api/v1/me", headers=headers).status_code == 200


def test_change__values_that_are_refused(shared: Serving) -> None:
    """Nothing to change and values out of their limits are a 422; the own account and the last admin stay enabled."""
    ids = user_ids(shared.hub)
    bodies: list[Any] = [
        {}, {"username": None}, {"username": "bo"}, {"username": "x" * 256}, {"username": "a b c"}, {"enabled": "x"},
    ]  # fmt: skip
    for body in bodies:
        assert send(shared.ann, "PATCH", f"/{ids['vic']}", body)[0] == 422, body
    assert send(shared.ann, "PATCH", f"/{ids['ann']}", {"enabled": False}) == (
        400, "You cannot disable your own account",
    )  # fmt: skip


@pytest.mark.slow
def test_delete__gives_datasets_to_the_acting_admin(fresh: Serving) -> None:
    """The datasets of a deleted user go to the admin; the account, its sessions, keys and membership are gone."""
    draft = fresh.eve.get("/api/v1/ingestion/new_dataset", params={"dataset_name": "hers"}, headers=OWN).json()
    headers = fresh.nobody.bearer("eve")
    eve = user_ids(fresh.hub)["eve"]
    assert send(fresh.ann, "DELETE", f"/{eve}") == (200, {"message": "User deleted successfully"})
    assert fresh.ann.get(f"/api/v1/dataset/{draft['dataset_id']}").json()["owned_by"] == "ann@example.org"
    assert send(fresh.ann, "GET", f"/{eve}") == (404, "User not found")
    assert fresh.eve.get("/api/v1/me").status_code == 401
    assert fresh.nobody.get("/api/v1/me", headers=headers).status_code == 401
    assert log_in(fresh.nobody, "eve")[0] == 401
    assert fresh.ann.get("/api/v1/workspace/members").json()["total"] == 2
    assert send(fresh.ann, "POST", "", {**NEW, "username": "eve"})[0] == 201  # the name is free


@pytest.mark.slow
def test_delete__not_oneself_and_not_the_last_admin(fresh: Serving) -> None:
    """Nobody deletes the own account, and others who manage users do not delete the last admin: 400."""
    ids = user_ids(fresh.hub)
    assert send(fresh.ann, "DELETE", f"/{ids['ann']}") == (400, "You cannot delete your own account")
    fresh.hub.users.set_roles(OPERATOR, ids["eve"], ["manage-users"])
    fresh.eve.log_in("eve")
    assert send(fresh.eve, "DELETE", f"/{ids['ann']}") == (
        400, "The last admin cannot be deleted; promote another user first",
    )  # fmt: skip
    assert send(fresh.eve, "PATCH", f"/{ids['ann']}", {"enabled": False}) == (
        400, "The last admin cannot be disabled; promote another user first",
    )  # fmt: skip
    assert fresh.hub.users.count() == 3


@pytest.mark.slow
def test_password__is_temporary(fresh: Serving) -> None:
    """A reset ends all sessions; the new password opens one in which only another password can be chosen."""
    vic = user_ids(fresh.hub)["vic"]
    assert send(fresh.ann, "POST", f"/{vic}/reset-password", {"password": "temporary one"}) == (
        200, {"message": "Password reset successfully"},
    )  # fmt: skip
    assert fresh.vic.get("/api/v1/me").status_code == 401
    assert log_in(fresh.vic, "vic")[0] == 401
    assert log_in(fresh.vic, "vic", "temporary one")[1]["must_change_password"] is True
    for path in ("datasets", "tasks", "workspaces"):
        answer = fresh.vic.get(f"/api/v1/{path}")
        assert (answer.status_code, answer.json()["detail"]) == (403, "Password change required")
    change = {"current_password": "temporary one", "password": "another one"}
    assert fresh.vic.post("/api/v1/password", json=change, headers=OWN).status_code == 200
    assert fresh.vic.get("/api/v1/datasets").status_code == 200
    assert log_in(fresh.nobody, "vic", "another one")[1]["must_change_password"] is False


@pytest.mark.slow
def test_password__values_that_are_refused(fresh: Serving) -> None:
    """A password has 8 to 1,024 characters; the account of an identity provider has none here: 400."""
    vic = user_ids(fresh.hub)["vic"]
    for password in ("short12", "x" * 1025, None, 7):
        assert send(fresh.ann, "POST", f"/{vic}/reset-password", {"password": password})[0] == 422
    assert send(fresh.ann, "POST", f"/{vic}/reset-password", {"password": "x" * 8})[0] == 200
    with fresh.hub._database.write() as connection:
        accounts.update_user(connection, vic, password_hash=None)
    assert send(fresh.ann, "POST", f"/{vic}/reset-password", {"password": PASSWORD}) == (
        400, "The account of an identity provider has no password here",
    )  # fmt: skip


@pytest.mark.slow
def test_logout__ends_all_sessions(fresh: Serving) -> None:
    """A log-out of a user ends all sessions, not those of others, and no API key."""
    headers = fresh.nobody.bearer("vic")
    second = fresh.nobody.log_in("vic")
    vic = user_ids(fresh.hub)["vic"]
    answer = send(fresh.ann, "POST", f"/{vic}/logout")
    assert answer == (200, {"message": "User logged out successfully"})
    assert [client.get("/api/v1/me").status_code for client in (fresh.vic, second, fresh.eve)] == [401, 401, 200]
    second.cookies.clear()
    assert second.get("/api/v1/me", headers=headers).status_code == 200
    assert log_in(fresh.vic, "vic")[0] == 200


@pytest.mark.slow
def test_sessions__of_a_user(fresh: Serving) -> None:
    """The sessions that have not ended are listed with their times, the newest first, and nothing that opens one."""
    fresh.nobody.log_in("vic")
    vic = user_ids(fresh.hub)["vic"]
    status, body = send(fresh.ann, "GET", f"/{vic}/sessions")
    assert (status, body["total"], len(body["sessions"])) == (200, 2, 2)
    names = {"id", "username", "ipAddress", "start", "lastAccess", "clients"}
    for each in body["sessions"]:
        assert each.keys() == names
        assert (each["username"], each["ipAddress"], each["clients"]) == ("vic", "127.0.0.1", {})
        assert 10**12 < each["start"] <= each["lastAccess"] < 10**13
    starts = [each["start"] for each in body["sessions"]]
    assert starts == sorted(starts, reverse=True)
    assert all(client.cookies["SESSION"] not in str(body) for client in (fresh.vic, fresh.nobody))
    fresh.nobody.cookies.clear()
    fresh.nobody.cookies.set("SESSION", body["sessions"][0]["id"])
    assert fresh.nobody.get("/api/v1/me").status_code == 401
    fresh.vic.post("/api/v1/logout", headers=OWN)
    assert send(fresh.ann, "GET", f"/{vic}/sessions")[1]["total"] == 1


@pytest.mark.slow
def test_roles__replace_those_before(fresh: Serving) -> None:
    """The list of roles replaces all before, and unknown names are ignored; a user whose roles change is logged out."""
    url = f"/{user_ids(fresh.hub)['vic']}/roles"
    for given, roles, status in (
        (["view-users", "owner", "", "MANAGE-USERS"], ["view-users"], 401),
        (["view-users", "view-users"], ["view-users"], 200),
        (["query-groups", "manage-users"], ["manage-users", "query-groups"], 401),
        ([], [], 401),
    ):
        answer, user = send(fresh.ann, "PUT", url, {"roles": given})
        assert (answer, user["roles"]) == (200, roles)
        assert fresh.vic.get("/api/v1/me").status_code == status
        fresh.vic.log_in("vic")
    for body in ({}, {"roles": "view-users"}, {"roles": [7]}, {"roles": None}):
        assert send(fresh.ann, "PUT", url, body)[0] == 422


@pytest.mark.slow
def test_roles__of_oneself(fresh: Serving) -> None:
    """Nobody takes the management of users from the own account, so that somebody has it; the others may go."""
    url = f"/{user_ids(fresh.hub)['ann']}/roles"
    for roles in ([], ["view-users"], ["nothing"]):
        answer = send(fresh.ann, "PUT", url, {"roles": roles})
        assert answer == (400, "You cannot remove your own administration roles")
    assert send(fresh.ann, "PUT", url, {"roles": ["manage-users"]})[1]["roles"] == ["manage-users"]


def test_create__in_the_workspace_of_the_caller(workspace: Workspace) -> None:
    """With many workspaces a new user is a member of the one that the caller joined first."""
    settings = ServiceSettings(disable_auth=False)
    with Hub(workspace, is_multi=True) as hub, client_of(workspace, hub, settings) as client:
        owls = hub.tenants.create(OPERATOR, "owls").id
        hub.users.create(OPERATOR, "ada", PASSWORD, role=Role.ADMIN, tenant_id=owls)
        assert send(client.log_in("ada"), "POST", "", NEW)[0] == 201
        assert [each.username for each in hub.tenants.members(OPERATOR, owls)] == ["ada", "bob"]
        assert hub.tenants.members(OPERATOR) == []
