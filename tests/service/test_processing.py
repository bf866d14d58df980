"""Folders of the server as sources over HTTP: who may name them, which, and the forms of the request."""

from pathlib import Path

import pytest

from framedex import Workspace
from framedex.access import Role
from framedex.hub import Hub
from framedex.service.settings import RunMode, ServiceSettings
from tests.gallery import SETTINGS, fill
from tests.pauses import wait_until
from tests.prepared import prepared
from tests.service.client import Client, client_of
from tests.service.users import OPERATOR, PASSWORD

API = "/api/v1"
NOT_ENABLED = "Ingestion from server folders is not enabled"
INVALID = {"status": "error", "detail": "Invalid path specified", "message": "Invalid path specified"}


@pytest.mark.slow
def test_process__starts_a_creation(local: Client, workspace: Workspace, tmp_path: Path) -> None:
    """GET and POST start the creation of a dataset, with parameters in the query or in a form."""
    folder = str(fill(tmp_path / "few", 2))
    first = local.get(f"{API}/process", params={"path": folder, "name": "a", "serve_mode": "x"}).json()
    assert (first["status"], first["message"], first["name"]) == ("success", "Dataset processing started", "a")
    local.post(f"{API}/process", params={"path": folder, "name": "b"})
    local.post(f"{API}/process", data={"path": folder, "name": "c"})
    names = {each.display_name: each.id for each in workspace.datasets()}
    assert set(names) == {"a", "b", "c"}
    assert names["a"] == first["dataset_id"]
    wait_until(lambda: {each.status_new for each in workspace.datasets()} == {"READY"})
    taken = local.get(f"{API}/process", params={"path": folder, "name": "a"})
    assert (taken.status_code, taken.json()["status"], taken.json()["code"]) == (409, "error", "conflict")


def test_process__refuses_all_wrong_paths_alike(local: Client, workspace: Workspace, tmp_path: Path) -> None:
    """One sentence answers each path that cannot be used; a missing parameter is named."""
    for path in ("few", "~/few", "../few", "/nowhere/at/all", "/a\0b", "file:///etc", "/" + "x" * 5000):
        answer = local.get(f"{API}/process", params={"path": path, "name": "a"})
        assert answer.status_code == 400, path
        assert INVALID.items() <= answer.json().items(), path
    for query, name in (({"name": "a"}, "path"), ({"path": "/tmp"}, "name"), ({}, "path")):
        answer = local.get(f"{API}/process", params=query)
        assert (answer.status_code, answer.json()["detail"]) == (400, f"Field '{name}' is required")
        assert answer.json()["status"] == "error"
    (tmp_path / "empty").mkdir()
    assert local.get(f"{API}/process", params={"path": str(tmp_path / "empty"), "name": "a"}).status_code == 400
    assert local.get(f"{API}/process", params={"path": str(tmp_path), "name": "a/b"}).status_code == 400
    assert workspace.datasets() == []


@pytest.mark.slow
def test_process__adds_media(local: Client, workspace: Workspace, tmp_path: Path) -> None:
    """Media of a folder are added to a dataset; its id is in the query."""
    dataset = workspace.create_dataset("pets", fill(tmp_path / "few", 2))
    url, more = f"{API}/process/add_media", str(fill(tmp_path / "more", 1, first_seed=300))
    answer = local.get(url, params={"dataset_id": dataset.id, "path": more}).json()
    assert answer == {
        "status": "success",
        "message": "Media addition started",
        "dataset_id": dataset.id,
        "name": "pets",
    }
    wait_until(lambda: dataset.info.status_new == "PARTIAL INDEX")
    assert dataset.info.n_images == 3
    again = local.post(url, params={"dataset_id": dataset.id}, data={"path": more})
    assert again.status_code == 200
    wait_until(lambda: dataset.running_task is None)
    for query, name in (({"path": more}, "dataset_id"), ({"dataset_id": dataset.id}, "path")):
        missing = local.get(url, params=query)
        assert (missing.status_code, missing.json()["detail"]) == (400, f"Field '{name}' is required")
    wrong = local.get(url, params={"dataset_id": dataset.id, "path": "more"})
    assert INVALID.items() <= wrong.json().items()
    unknown = local.get(url, params={"dataset_id": "x", "path": more})
    assert (unknown.status_code, unknown.json()["status"]) == (404, "error")
    workspace.change_settings(add_media_enabled=False)
    disabled = local.get(url, params={"dataset_id": dataset.id, "path": more})
    assert (disabled.status_code, disabled.json()["detail"]) == (403, "Add media feature is not enabled")
    workspace.change_settings(add_media_enabled=None)


def test_process__needs_allowed_folders_with_log_ins(open_client: Client, workspace: Workspace, tmp_path: Path) -> None:
    """With log-ins no folder may be read unless the settings name folders, whatever the role."""
    dataset = prepared(workspace, "pets", fill(tmp_path / "few", 2))
    query, ann = {"path": str(tmp_path / "few"), "name": "a"}, open_client.bearer("ann")
    answer = open_client.get(f"{API}/process", params=query, headers=ann)
    assert (answer.status_code, answer.json()["detail"], answer.json()["status"]) == (403, NOT_ENABLED, "error")
    added = {"dataset_id": dataset.id, "path": str(tmp_path / "few")}
    assert open_client.get(f"{API}/process/add_media", params=added, headers=ann).status_code == 403
    assert open_client.get(f"{API}/process", params=query).status_code == 401
    # Datasets of the library stay readable from their own folders.
    assert len(dataset.thumbnail(dataset.view.media_ids()[0])) > 0


@pytest.mark.slow
@pytest.mark.parametrize("role", [Role.ADMIN, Role.EDITOR])
def test_process__by_role_below_allowed_folders(tmp_path: Path, role: Role) -> None:
    """Below an allowed folder a role decides; links and lists lead nowhere else."""
    inside, outside = fill(tmp_path / "roots" / "in", 2), fill(tmp_path / "out", 2)
    (tmp_path / "roots" / "link").symlink_to(outside)
    (tmp_path / "roots" / "list.txt").write_text(f"{outside}/000.png\n")
    settings = SETTINGS.model_copy(update={"media_roots": (tmp_path / "roots",)})
    with Workspace(tmp_path / "ws", settings=settings) as workspace, Hub(workspace, ingest_path_role=role) as hub:
        for name, of in (("ann", Role.ADMIN), ("eve", Role.EDITOR), ("vic", Role.VIEWER)):
            hub.users.create(OPERATOR, name, PASSWORD, role=of, email=f"{name}@example.org")
        service = ServiceSettings(disable_auth=False, ingest_path_role=role)
        with client_of(workspace, hub, service) as client:
            ann, eve, vic = (client.bearer(name) for name in ("ann", "eve", "vic"))
            query = {"path": str(inside), "name": "a"}
            assert client.get(f"{API}/process", params=query, headers=vic).status_code == 403
            made = client.get(f"{API}/process", params=query, headers=eve)
            assert made.status_code == (200 if role is Role.EDITOR else 403)
            made = client.get(f"{API}/process", params={**query, "name": "b"}, headers=ann)
            status = client.get(f"{API}/dataset/{made.json()['dataset_id']}", headers=ann).json()
            assert (status["owned_by"], status["created_by"]) == ("ann@example.org", "ann@example.org")
            assert status["source_uri"] == str(inside)
            for path in (outside, tmp_path / "roots" / "link", tmp_path / "roots" / ".." / "out", tmp_path / "none"):
                answer = client.get(f"{API}/process", params={"path": str(path), "name": "c"}, headers=ann)
                assert answer.status_code == 400, path
                assert INVALID.items() <= answer.json().items()
            listed = {"path": str(tmp_path / "roots" / "list.txt"), "name": "listed"}
            assert client.get(f"{API}/process", params=listed, headers=ann).status_code == 200
            wait_until(lambda: all(each.status_new in ("READY", "ERROR") for each in workspace.datasets()))
            found = workspace.dataset("listed")
            assert found.info.status_new == "ERROR" or found.view.where([{"issues": {
                "op": "issue", "value": "unreadable", "mode": "in"}}]).count() == found.count()  # fmt: skip


def test_process__not_in_the_cloud_and_not_without_log_ins_elsewhere(
    workspace: Workspace, hub: Hub, tmp_path: Path
) -> None:
    """A hosted platform takes no folders; without log-ins only this machine may name any folder."""
    query = {"path": str(fill(tmp_path / "few", 2)), "name": "a"}
    with client_of(workspace, hub, ServiceSettings(run_mode=RunMode.CLOUD)) as client:
        assert client.get(f"{API}/process", params=query).json()["detail"] == NOT_ENABLED
    with client_of(workspace, hub, ServiceSettings(disable_auth=True), host="0.0.0.0") as client:
        assert client.get(f"{API}/process", params=query).json()["detail"] == NOT_ENABLED


def test_process__from_another_site(local: Client, tmp_path: Path) -> None:
    """A page of another site starts nothing, although GET does."""
    query = {"path": str(fill(tmp_path / "few", 2)), "name": "a"}
    answer = local.get(f"{API}/process", params=query, headers={"Sec-Fetch-Site": "cross-site"})
    assert (answer.status_code, answer.json()["detail"]) == (403, "Cross-site request refused")


def test_preview__of_a_list_of_the_server(local: Client, workspace: Workspace, tmp_path: Path) -> None:
    """A list is previewed as by the library, and no dataset is made; a path that cannot be used is refused as ever."""
    folder = fill(tmp_path / "few", 2)
    (folder / "list.csv").write_text("path;label\n000.png;dog\n")
    answer = local.get(f"{API}/process/preview", params={"path": str(folder / "list.csv")})
    assert answer.json() == workspace.preview(folder / "list.csv").model_dump(mode="json")
    wrong = local.get(f"{API}/process/preview", params={"path": "few"})
    assert (wrong.status_code, wrong.json() | INVALID) == (400, wrong.json())
    assert local.get(f"{API}/process/preview").json()["detail"] == "Field 'path' is required"
    assert workspace.datasets() == []
