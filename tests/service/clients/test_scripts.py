"""The calls of scripts and notebooks of the public documentation, and what they read in the answers."""

import io
import zipfile
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from framedex import Workspace
from framedex.hub import Hub
from framedex.service.settings import ServiceSettings
from tests.pauses import first_answer
from tests.service.client import LOCAL, OWN, Client, client_of

API = "/api/v1"
NOTEBOOK = {"Accept": "application/json, text/plain, */*"}


@pytest.mark.slow
def test_notebook__exports_without_credentials(workspace: Workspace, hub: Hub, server: Client, dataset_id: str) -> None:
    """On premises, without log-ins: the start has the whole record; the URI is put after the address of the server."""
    settings = ServiceSettings(relative_uris=True)
    with client_of(workspace, hub, settings) as local:
        query = {"file_name": "export.zip", "export_format": "parquet", "include_images": "true"}
        started = local.get(f"{API}/dataset/{dataset_id}/export_context_async", params=query, headers=NOTEBOOK).json()
        assert {"id", "status", "progress", "entities_count", "result_message", "download_uri"} <= set(started)
        uri = ended(local, dataset_id, started["id"])["download_uri"]
        assert uri.startswith("/cdn/")
        archive = zipfile.ZipFile(io.BytesIO(local.get("http://127.0.0.1:8765" + uri, headers=NOTEBOOK).content))
        table = pq.read_table(io.BytesIO(archive.read("metadata.parquet")))
        assert {"uniqueness_score", "image_filename"} <= set(table.column_names)
        images = {name.removeprefix("images/") for name in archive.namelist()}
        assert set(table["image_filename"].to_pylist()) <= images


def ended(client: Client, dataset_id: str, export_id: str) -> dict[str, Any]:
    """Return the status of an export once it has completed."""
    query = {"export_task_id": export_id}

    def ask() -> dict[str, Any]:
        return dict(client.get(f"{API}/dataset/{dataset_id}/export_status", params=query, headers=NOTEBOOK).json())

    status = first_answer(ask, lambda status: status["status"] in ("COMPLETED", "FAILED"))
    assert status["status"] == "COMPLETED", status
    return status


@pytest.mark.slow
def test_image_search__by_a_box(server: Client, bearer: dict[str, str], dataset_id: str) -> None:
    """A box in pixels, and then Explore with the anchor: its first cluster has previews with an absolute URI."""
    del bearer["Content-Type"]
    some = server.get(f"{API}/explore/{dataset_id}", headers=bearer).json()["clusters"][0]["previews"][0]
    image = server.get(some["media_uri"]).content
    answer = server.post(
        f"{API}/dataset/{dataset_id}/search-image-similarity",
        params={"entity_type": "IMAGES", "bounding_box": f"0,0,{some['width']},{some['height']}"},
        files={"file": ("query.jpg", image, "image/jpeg")},
        headers=bearer,
    )
    assert answer.status_code == 200
    query = {"entity_type": "IMAGES", "threshold": 0, **answer.json()}
    shown = server.get(f"{API}/explore/{dataset_id}", params=query, headers=bearer).json()["clusters"][0]["previews"]
    assert shown[0]["media_uri"].startswith("http://")
    assert server.get(shown[0]["media_uri"]).headers["Content-Type"].startswith("image/")
    assert not shown[0]["original_uri"].startswith("/")


@pytest.mark.slow
def test_captions__of_old_and_new_clients(server: Client, bearer: dict[str, str], dataset_id: str) -> None:
    """The old name of the parameter brings the old names of the fields; pages are counted."""
    query: dict[str, Any] = {
        "threshold": 0,
        "entity_type": "IMAGES",
        "page_number": 0,
        "textual_similarity_threshold": 1.0,
        "labels": "[cat,animal]",
    }
    for name in ("image_caption", "caption"):
        answer = server.get(f"{API}/explore/{dataset_id}", params={**query, name: "animal"}, headers=bearer)
        assert answer.status_code == 200, answer.text
        body = answer.json()
        assert body["total_pages"] >= 1
        for cluster in body["clusters"]:
            assert {"media_id", "media_uri", "caption", "relevance_score"} <= set(cluster["previews"][0])
            assert ("media" in cluster) == (name == "image_caption")
            for medium in cluster.get("media", []):
                assert {"id", "caption", "relevance_score"} <= set(medium)
    assert server.get(f"{API}/explore/{dataset_id}", params={"tags": "untagged"}, headers=bearer).status_code == 200
    about = server.get(f"{API}/explore/{dataset_id}/exploration_metadata", params=query, headers=bearer).json()
    assert about["dataset_name"] == "pets"
    assert {"name", "count"} == set(about["labels"][0])
    assert about["media_count"] > 0
    assert about["clusters_count"] > 0


@pytest.mark.slow
def test_duplicates__by_location(server: Client, bearer: dict[str, str], dataset_id: str) -> None:
    """The id of an image by its location is text, at both paths; its copies are a list of ids."""
    preview = server.get(f"{API}/explore/{dataset_id}", headers=bearer).json()["clusters"][0]["previews"][0]
    query = {"original_media_uri": preview["original_uri"]}
    for path in ("search_media_metadata/id", "media/id"):
        answer = server.get(f"{API}/dataset/{dataset_id}/{path}", params=query, headers=bearer)
        assert answer.text == preview["media_id"]
    copies = server.get(f"{API}/dataset/{dataset_id}/media/{preview['media_id']}/duplicates", headers=bearer)
    assert isinstance(copies.json(), list)


@pytest.mark.slow
def test_profiler__posts_a_folder(workspace: Workspace, hub: Hub, tmp_path: Path, server: Client) -> None:
    """A folder of the server is a source on premises, by POST and by GET; errors say so in their status."""
    with client_of(workspace, hub, LOCAL) as local:
        query = {"path": str(tmp_path / "gallery"), "name": "profiled", "serve_mode": "x"}
        answer = local.post(f"{API}/process", params=query).json()
        assert {"status", "message", "dataset_id", "name"} <= set(answer)
        assert (answer["status"], answer["name"]) == ("success", "profiled")
        task = workspace.dataset(answer["dataset_id"]).last_task
        assert task is not None
        workspace.task(task.task_id).wait()
        wrong = local.get(f"{API}/process", params={"path": "relative", "name": "other"})
        assert wrong.status_code == 400
        assert (wrong.json()["status"], wrong.json()["message"]) == ("error", "Invalid path specified")


@pytest.mark.slow
def test_metadata__in_five_calls(server: Client, bearer: dict[str, str], dataset_id: str) -> None:
    """A custom field: its definition, its values as a bare array, the outcome, the schema, and the values."""
    media_id = server.get(f"{API}/explore/{dataset_id}", headers=bearer).json()["clusters"][0]["previews"][0][
        "media_id"
    ]
    path = f"{API}/datasets/{dataset_id}/custom_metadata"
    task = server.post(f"{path}/tasks", json={"field_name": "weight", "field_type": "float"}, headers=bearer).json()
    assert task["status"] == "INIT"
    rows = [{"media_id": media_id, "value": 2.5}, {"media_id": media_id, "value": "heavy"}]
    assert server.post(f"{path}/tasks/{task['task_id']}", json=rows, headers=bearer).status_code == 200
    ask = partial(server.get, f"{path}/tasks/{task['task_id']}/status", headers=bearer)
    status = first_answer(lambda: ask().json(), lambda status: status["status"].startswith("COMPLETED"))
    assert (status["status"], status["inserted_rows"], status["error_count"]) == ("COMPLETED_WITH_ERRORS", 1, 1)
    assert {"reason", "row_index"} <= set(status["sample_errors"][0])
    assert [field["field_name"] for field in server.get(f"{path}/schema", headers=bearer).json()] == ["weight"]
    values = server.get(f"{API}/datasets/{dataset_id}/image/{media_id}/custom_metadata", headers=bearer).json()
    assert values == [{"field_name": "weight", "field_type": "float", "value": 2.5}]


@pytest.mark.slow
def test_snapshots__and_tasks(server: Client, bearer: dict[str, str], dataset_id: str) -> None:
    """A snapshot without a body, its restore as 202, and the task of it."""
    path = f"{API}/dataset/{dataset_id}/snapshot"
    del bearer["Content-Type"]
    made = server.post(path, headers=bearer).json()
    assert made["snapshot_name"] == f"pets_snapshot_{made['snapshot_id']}"
    assert {"n_images", "reason", "is_current"} <= set(server.get(path, headers=bearer).json()[0])
    answer = server.post(f"{path}/{made['snapshot_id']}/restore", headers=bearer)
    assert (answer.status_code, answer.content) == (202, b"")
    tasks = server.get(f"{API}/tasks", params={"task_type": "SNAPSHOT_RESTORE"}, headers=bearer).json()
    assert tasks["tasks"][0]["status"] in ("INITIALIZING", "RUNNING", "COMPLETED")
    assert tasks["tasks"][0]["created_by"] == "eve@example.org"


@pytest.mark.slow
def test_errors__have_one_text(server: Client, bearer: dict[str, str], dataset_id: str) -> None:
    """Each error has one text in ``detail``, also those of the validation."""
    for path, status in (
        (f"{API}/dataset/no-id", 404),
        (f"{API}/explore/{dataset_id}?threshold=9", 422),
        (f"{API}/explore/{dataset_id}?vql=[", 422),
        (f"{API}/nothing", 404),
    ):
        answer = server.get(path, headers=bearer)
        assert answer.status_code == status, path
        assert isinstance(answer.json()["detail"], str)
        assert answer.json()["message"] == answer.json()["detail"]
        assert "error" not in answer.json()


@pytest.mark.slow
def test_credentials__of_a_session(server: Client) -> None:
    """A session's cookie brings the key, its secret and a message."""
    server.log_in("vic")
    answer = server.get(f"{API}/api_credentials", headers=OWN).json()
    assert answer.keys() == {"api_key", "api_secret", "message"}
