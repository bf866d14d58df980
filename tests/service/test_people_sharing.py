"""Sharing over HTTP: each rule of the interface, and what those with whom a dataset is shared may do."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from framedex import Dataset
from framedex.access import Role
from framedex.core.ids import new_id
from framedex.service.settings import RunMode, ServiceSettings
from tests.gallery import fill
from tests.prepared import prepared
from tests.service.client import BASE, OWN, Client, client_of
from tests.service.serving import Serving, serving
from tests.service.users import OPERATOR, PASSWORD

API = "/api/v1"
UNKNOWN = "No registered account has this e-mail address"


@dataclass(frozen=True)
class World:
    """A service with a dataset of the editor, and users of another workspace.

    Attributes:
        served: the service.
        dataset: the dataset, which the editor owns.
        granted: clients of two users of another workspace: one with a grant to view, and one with a grant to edit.
        stranger: a client of a third user of that workspace, without a grant.
    """

    served: Serving
    dataset: Dataset
    granted: dict[str, Client]
    stranger: Client

    @property
    def manage(self) -> str:
        """The path of the dataset's sharing."""
        return f"{API}/manage/{self.dataset.id}"

    @property
    def url(self) -> str:
        """The path of the dataset."""
        return f"{API}/dataset/{self.dataset.id}"


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A service that the tests of this module share."""
    folder = tmp_path_factory.mktemp("sharing")
    with serving(folder) as served:
        hub = served.hub
        elsewhere = hub.tenants.create(OPERATOR, "elsewhere").id
        clients = []
        for name in ("gil", "gwen", "sam"):
            hub.users.create(
                OPERATOR, name, PASSWORD, role=Role.EDITOR, tenant_id=elsewhere, email=f"{name}@example.org"
            )
            client = Client(served.nobody.app, base_url=BASE, raise_server_exceptions=False, client=("127.0.0.1", 1))
            clients.append(client.log_in(name))
        dataset = prepared(served.workspace, "pets", fill(folder / "pets", 3), "gist")
        eve = next(user.id for user in hub.users.page(OPERATOR)[0] if user.username == "eve")
        hub.datasets.adopt(dataset.id, hub.tenants.get(OPERATOR).id, eve)
        gil, gwen, sam = clients
        yield World(served, dataset, {"viewer": gil, "editor": gwen}, sam)


@pytest.fixture
def world(template: World) -> World:
    """The service, with exactly the two grants, and no invitations of the last hour."""
    hub = template.served.hub
    with hub._database.write() as connection:
        for table in ("grants", "audit"):
            connection.exec_driver_sql(f"DELETE FROM {table}")
    for name, role in (("gil", Role.VIEWER), ("gwen", Role.EDITOR)):
        hub.datasets.share(OPERATOR, template.dataset.id, name, role)
    return template


def invite(client: Client, world: World, **body: Any) -> tuple[int, Any]:
    """Invite a user; return the status, and the body or the sentence of an error."""
    answer = client.put(f"{world.manage}/invite", json=body, headers=OWN)
    return answer.status_code, answer.json()["detail"] if answer.is_error else answer.json()


def members(world: World) -> dict[str, str]:
    """Return the roles of the members by address."""
    return {each["email"]: each["role"] for each in world.served.eve.get(f"{world.manage}/share").json()}


@pytest.mark.slow
def test_invite__gives_access(world: World) -> None:
    """An invitation gives a registered account access and answers null; a second one changes the role."""
    assert world.stranger.get(world.url).status_code == 404
    assert invite(world.served.eve, world, grant_to_user_email="SAM@example.org") == (200, None)
    assert world.stranger.get(world.url).status_code == 200
    assert members(world)["sam@example.org"] == "viewer"
    for role in ("editor", "editor", "viewer"):
        assert invite(world.served.ann, world, grant_to_user_email="sam", role=role) == (200, None)
        assert members(world)["sam@example.org"] == role


def test_invite__values_that_are_refused(world: World) -> None:
    """An unknown account is a 404, the owner a 400, and another role, no address and another body a 422."""
    assert invite(world.served.eve, world, grant_to_user_email="nobody@example.org") == (404, UNKNOWN)
    assert invite(world.served.ann, world, grant_to_user_email="eve")[0] == 400
    bodies: list[dict[str, Any]] = [
        {}, {"grant_to_user_email": ""}, {"grant_to_user_email": 7}, {"grant_to_user_email": "sam", "role": "owner"},
    ]  # fmt: skip
    for body in bodies:
        assert invite(world.served.eve, world, **body)[0] == 422, body
    assert members(world) == {
        "eve@example.org": "owner", "gil@example.org": "viewer", "gwen@example.org": "editor",
    }  # fmt: skip


def test_invite__by_owners_and_admins(world: World) -> None:
    """Owners and admins share a dataset, others who see it may not, and for the rest it does not exist."""
    body = {"grant_to_user_email": "nobody@example.org"}
    assert [invite(client, world, **body)[0] for client in (world.served.eve, world.served.ann)] == [404, 404]
    for client in (world.served.vic, *world.granted.values()):
        refusal = (403, "Only the owner of a dataset and administrators may share it")
        assert invite(client, world, **body) == refusal
    assert invite(world.stranger, world, **body) == (404, "Dataset not found")
    assert world.served.nobody.put(f"{world.manage}/invite", json=body, headers=OWN).status_code == 401
    answer = world.served.local.put(f"{world.manage}/invite", json=body)
    assert (answer.status_code, answer.json()["detail"]) == (403, "User management is not enabled")
    unknown = world.served.eve.put(f"{API}/manage/{new_id()}/invite", json=body, headers=OWN)
    assert (unknown.status_code, unknown.json()["detail"]) == (404, "Dataset not found")


def test_invite__is_switched_off(world: World) -> None:
    """Where sharing is not enabled nobody is invited; present sharing stays and can be ended."""
    world.served.workspace.change_settings(dataset_share_enabled=False)
    try:
        assert invite(world.served.eve, world, grant_to_user_email="sam") == (403, "Dataset sharing is not enabled")
        answer = world.served.eve.post(f"{world.url}/share", data={"user_email": "sam"}, headers=OWN)
        assert (answer.status_code, answer.json()["detail"]) == (403, "Dataset sharing is not enabled")
        assert world.granted["viewer"].get(world.url).status_code == 200
        answer = world.served.eve.delete(f"{world.manage}/share", params={"email": "gil"}, headers=OWN)
        assert (answer.status_code, answer.content) == (200, b"null")
    finally:
        world.served.workspace.change_settings(dataset_share_enabled=None)


@pytest.mark.slow
def test_invite__at_most_thirty_times_an_hour(world: World) -> None:
    """Invitations say who has an account, so a user has 30 of them an hour; others are not affected."""
    for number in range(30):
        assert invite(world.served.eve, world, grant_to_user_email=f"{number}@example.org") == (404, UNKNOWN)
    answer = world.served.eve.put(f"{world.manage}/invite", json={"grant_to_user_email": "sam"}, headers=OWN)
    assert (answer.status_code, answer.json()["code"]) == (429, "rate_limited")
    assert 3500 < int(answer.headers["Retry-After"]) <= 3600
    assert "sam@example.org" not in members(world)
    assert invite(world.served.ann, world, grant_to_user_email="sam") == (200, None)
    with world.served.hub._database.write() as connection:
        connection.exec_driver_sql("UPDATE audit SET at = datetime(substr(at, 1, 19), '-1 hour') || substr(at, 20)")
    assert invite(world.served.eve, world, grant_to_user_email="sam") == (200, None)


def test_share__has_the_owner_first(world: World) -> None:
    """The list has e-mail addresses and roles, the owner first; who sees the dataset sees it."""
    for client in (world.served.eve, world.served.vic, *world.granted.values()):
        assert client.get(f"{world.manage}/share").json() == [
            {"email": "eve@example.org", "role": "owner"},
            {"email": "gil@example.org", "role": "viewer"},
            {"email": "gwen@example.org", "role": "editor"},
        ]
    answer = world.stranger.get(f"{world.manage}/share")
    assert (answer.status_code, answer.json()["detail"]) == (404, "Dataset not found")


def test_share__in_the_words_of_older_clients(world: World) -> None:
    """The address comes as a form, or as JSON, and the answers are those of an invitation."""
    url = f"{world.url}/share"
    assert world.served.eve.post(url, data={"user_email": "sam@example.org"}, headers=OWN).content == b"null"
    assert members(world)["sam@example.org"] == "viewer"
    for arguments, status in (
        ({"json": {"user_email": "sam"}}, 200),
        ({"files": {"user_email": (None, "sam")}}, 200),
        ({"data": {"user_email": "nobody@example.org"}}, 404),
        ({"data": {}}, 422),
        ({"json": []}, 422),
    ):
        assert world.served.eve.post(url, headers=OWN, **arguments).status_code == status, arguments
    assert world.granted["editor"].post(url, data={"user_email": "sam"}, headers=OWN).status_code == 403


@pytest.mark.slow
def test_share__is_ended(world: World) -> None:
    """Owners and admins end sharing, not for the owner; afterwards the dataset does not exist for the other."""

    def end(client: Client, address: str) -> tuple[int, Any]:
        answer = client.delete(f"{world.manage}/share", params={"email": address}, headers=OWN)
        return answer.status_code, answer.json()["detail"] if answer.is_error else answer.json()

    for client in (world.served.vic, *world.granted.values()):
        assert end(client, "gil")[0] == 403
    assert end(world.stranger, "gil") == (404, "Dataset not found")
    assert end(world.served.ann, "eve@example.org") == (400, "The owner of a dataset cannot be removed")
    for address in ("sam", "nobody@example.org"):
        assert end(world.served.eve, address) == (404, "The dataset is not shared with this account")
    assert world.served.eve.delete(f"{world.manage}/share", headers=OWN).status_code == 422
    assert end(world.served.eve, "GIL@example.org") == (200, None)
    assert world.granted["viewer"].get(world.url).status_code == 404
    assert members(world) == {"eve@example.org": "owner", "gwen@example.org": "editor"}


def test_lists__have_what_is_shared(world: World) -> None:
    """A shared dataset is in the lists of datasets, tasks and their filters of viewers and editors, of others not."""
    for client, is_there in (*((each, True) for each in world.granted.values()), (world.stranger, False)):
        listed = client.get(f"{API}/datasets").json()
        assert (world.dataset.id in [each["id"] for each in listed]) is is_there
        page = client.get(f"{API}/tasks").json()
        assert ({each["dataset_id"] for each in page["tasks"]} == {world.dataset.id}) is is_there
        assert (client.get(f"{API}/tasks/filters").json()["dataset_ids"] == [world.dataset.id]) is is_there
        assert page["total"] == len(page["tasks"])


@pytest.mark.slow
def test_viewers__read_only(world: World) -> None:
    """A grant to view lets a user explore, search and see tasks and snapshots, and change and export nothing."""
    client, dataset_id = world.granted["viewer"], world.dataset.id
    for path in (f"explore/{dataset_id}", f"dataset/{dataset_id}/snapshot", f"manage/{dataset_id}/share"):
        assert client.get(f"{API}/{path}").status_code == 200, path
    task = client.get(f"{API}/tasks").json()["tasks"][0]["task_id"]
    for method, path in (
        ("POST", f"dataset/{dataset_id}/reindex"),
        ("POST", f"dataset/{dataset_id}/add_media"),
        ("POST", f"dataset/{dataset_id}/snapshot"),
        ("POST", f"dataset/{dataset_id}/tags"),
        ("POST", f"dataset/{dataset_id}/actions"),
        ("GET", f"dataset/{dataset_id}/export_context_async"),
        ("GET", f"dataset/{dataset_id}/export"),
        ("POST", f"tasks/{task}/abort"),
        ("POST", f"tasks/{task}/retry"),
        ("PATCH", f"dataset/{dataset_id}"),
        ("DELETE", f"dataset/{dataset_id}"),
    ):
        assert client.request(method, f"{API}/{path}", headers=OWN).status_code == 403, path


@pytest.mark.slow
def test_editors__edit_and_export(world: World) -> None:
    """A grant to edit lets a user edit, abort and retry tasks, and export, but not rename, share, copy or delete."""
    client, dataset_id = world.granted["editor"], world.dataset.id
    assert client.post(f"{world.url}/tags", json={"name": "shared"}, headers=OWN).status_code == 200
    assert client.delete(f"{world.url}/tags/shared", headers=OWN).status_code == 200
    task = client.get(f"{API}/tasks").json()["tasks"][0]["task_id"]
    assert client.post(f"{API}/tasks/{task}/abort", headers=OWN).status_code == 409  # it has ended
    assert client.post(f"{API}/tasks/{task}/retry", headers=OWN).status_code == 400
    for method, path in (
        ("PATCH", f"dataset/{dataset_id}"),
        ("DELETE", f"dataset/{dataset_id}"),
        ("POST", f"dataset/{dataset_id}/snapshot/current/clone"),
        ("POST", f"dataset/{dataset_id}/enrich_dataset"),
    ):
        assert client.request(method, f"{API}/{path}", headers=OWN).status_code == 403, path


@pytest.mark.slow
def test_exports__of_oneself_and_for_owners(world: World) -> None:
    """An export is seen by who started it, by the owner and by admins; for others it does not exist."""
    query = {"file_name": "x", "export_format": "json"}
    url = f"{world.url}/export_context_async"
    export = world.granted["editor"].get(url, params=query, headers=OWN).json()
    status = {"export_task_id": export["id"]}
    clients = {**world.granted, "owner": world.served.eve, "admin": world.served.ann, "member": world.served.vic}
    seen = {name: each.get(f"{world.url}/export_status", params=status).status_code for name, each in clients.items()}
    assert seen == {"viewer": 404, "editor": 200, "owner": 200, "admin": 200, "member": 404}
    world.served.hub.datasets.unshare(OPERATOR, world.dataset.id, "gwen")
    assert clients["editor"].get(f"{world.url}/export_status", params=status).status_code == 404


def test_sharing__of_a_hosted_platform(world: World) -> None:
    """Sharing is no management of users: it is there where that is not."""
    settings = ServiceSettings(disable_auth=False, run_mode=RunMode.CLOUD)
    with client_of(world.served.workspace, world.served.hub, settings) as client:
        client.log_in("eve")
        assert invite(client, world, grant_to_user_email="sam") == (200, None)
