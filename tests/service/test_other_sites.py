"""Pages of other sites: no route that changes something serves them, and each answer says what browsers may do."""

from collections.abc import Iterator

import pytest
from fastapi.routing import APIRoute

from framedex import Dataset, Workspace
from framedex.hub import Hub
from framedex.service.actions import needs_of
from framedex.service.settings import ServiceSettings
from tests.gallery import fill
from tests.service.client import CLOSED, OWN, client_of
from tests.service.serving import Serving, serving
from tests.service.test_routes import routes_of_service
from tests.service.users import PASSWORD

SAFE = {"GET", "HEAD"}
CHANGING_GETS = {
    "/api/v1/api_credentials",
    "/api/v1/dataset/{dataset_id}/export_context_async",
    "/api/v1/ingestion/new_dataset",
    "/api/v1/ingestion/{dataset_id}/data_files",
    "/api/v1/process",
    "/api/v1/process/add_media",
}
"""Paths of the interface at which a GET changes something."""
REFUSED = (403, "Cross-site request refused")
FRIEND = "https://notebooks.example.com"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    """A service with a dataset."""
    folder = tmp_path_factory.mktemp("sites")
    with serving(folder) as running:
        running.workspace.create_dataset("pets", fill(folder / "images", 2), "gist")
        yield running


@pytest.fixture
def dataset(served: Serving) -> Dataset:
    """The dataset."""
    return served.workspace.dataset("pets")


def changing() -> Iterator[tuple[str, str, APIRoute]]:
    """Yield the methods and paths at which something is changed, with their routes."""
    for route in routes_of_service():
        for method in sorted(route.methods or set()):
            if method not in SAFE or (method == "GET" and needs_of(route.endpoint).changes):
                yield method, route.path, route


def test_changes__by_get() -> None:
    """The GETs that change something are those of the interface."""
    assert {path for method, path, _ in changing() if method == "GET"} == CHANGING_GETS


@pytest.mark.slow
@pytest.mark.parametrize("headers", [{"Sec-Fetch-Site": "cross-site"}, {"Origin": "https://evil.example"}])
def test_changes__of_another_site(served: Serving, dataset: Dataset, headers: dict[str, str]) -> None:
    """Each route that changes something refuses the pages of other sites, with a session and without log-ins."""
    ids = {"dataset_id": dataset.id, "media_id": dataset.view.media_ids()[0]}
    before, asked = dataset.journal(), 0
    for method, template, route in changing():
        path = template
        for name in route.param_convertors:
            path = path.replace(f"{{{name}}}", ids.get(name, "00000000-0000-4000-8000-000000000000"))
        for client in (served.ann, served.local):
            answer = client.request(method, path, headers=headers, params={"dataset_id": dataset.id})
            assert (answer.status_code, answer.json()["detail"]) == REFUSED, (method, path)
            asked += 1
    assert asked > 100
    assert dataset.journal() == before
    assert served.ann.get("/api/v1/me").status_code == 200, "the session goes on"


@pytest.mark.slow
def test_bodies__of_forms_of_other_sites(served: Serving) -> None:
    """A body of JSON that is said to be text, which a form of another site can send, is no body of JSON."""
    body = f'{{"current_password": "{PASSWORD}", "password": "another password"}}'
    for kind in ("text/plain", "application/x-www-form-urlencoded", ""):
        answer = served.ann.post("/api/v1/password", content=body, headers={**OWN, "Content-Type": kind})
        assert answer.status_code == 422, kind
    assert served.ann.log_in("ann").get("/api/v1/me").status_code == 200, "the password is the same"


@pytest.mark.slow
def test_sites__that_the_settings_name(workspace: Workspace, hub: Hub) -> None:
    """Only sites in the settings may read answers and change something; without the setting none may."""
    path, friend, other = "/api/v1/api_credentials", {"Origin": FRIEND}, {"Origin": f"{FRIEND}.evil.example"}
    with client_of(workspace, hub, CLOSED) as client:
        answer = client.log_in("ann").get(path, headers=friend)
        assert (answer.status_code, answer.json()["detail"]) == REFUSED
        assert "access-control-allow-origin" not in answer.headers
    with client_of(workspace, hub, ServiceSettings(disable_auth=False, cors_origins=(FRIEND,))) as client:
        answer = client.log_in("ann").get(path, headers=friend)
        assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (200, FRIEND)
        answer = client.get(path, headers=other)
        assert (answer.status_code, answer.json()["detail"]) == REFUSED
        assert "access-control-allow-origin" not in answer.headers
        asked = {**other, "Access-Control-Request-Method": "POST"}
        assert "access-control-allow-origin" not in client.options("/api/v1/logout", headers=asked).headers


@pytest.mark.slow
def test_headers__of_each_answer(served: Serving, dataset: Dataset) -> None:
    """Each answer says that its type is no guess, that no other site frames it, and to whom its URL is told."""
    preview = served.ann.get(f"/api/v1/explore/{dataset.id}").json()["clusters"][0]["previews"][0]
    paths = ["/api/v1/me", "/api/v1/openapi.json", "/api/v1/docs", "/api/v1/missing", "/api/v1/explore/x"]
    paths += ["/", f"/d/{dataset.id}", "/missing", preview["media_uri"], preview["media_thumb_uri"]]
    answers = [served.ann.get(path) for path in paths]
    answers += [
        served.nobody.get("/api/v1/datasets"),
        served.ann.post("/api/v1/logout", headers={"Origin": "https://evil.example"}),
        served.ann.get("/api/v1/me", headers={"Host": "a b"}),
        served.ann.post("/api/v1/login", content=b"{", headers={**OWN, "Content-Type": "application/json"}),
    ]
    for answer in answers:
        headers, path = answer.headers, answer.request.url.path
        assert headers["x-content-type-options"] == "nosniff", path
        assert headers["referrer-policy"] == "same-origin", path
        assert headers["x-frame-options"] == "SAMEORIGIN", path
        policy = headers["content-security-policy"]
        assert "frame-ancestors 'self'" in policy or policy.startswith("sandbox;"), (path, policy)
        assert not {"'unsafe-inline'", "'unsafe-eval'", "*"} & set(policy.split(" ")), (path, policy)
