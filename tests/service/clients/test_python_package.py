"""The calls of the Python package of the original service, and what it reads in the answers."""

import io
import json
import zipfile
from typing import Any

import pytest

from tests.pauses import first_answer
from tests.service.client import Client

API = "/api/v1"


def without_type(headers: dict[str, str]) -> dict[str, str]:
    """Return the headers of a request whose body is a form."""
    return {name: value for name, value in headers.items() if name != "Content-Type"}


def finished(server: Client, headers: dict[str, str], dataset_id: str, started: dict[str, Any]) -> dict[str, Any]:
    """Return the status of an export once it has ended, polled as the package does."""
    assert started.get("status") not in (None, "REJECTED"), "the package takes these for no results"
    query = {"export_task_id": started["id"], "dataset_id": dataset_id}

    def ask() -> dict[str, Any]:
        return dict(server.get(f"{API}/dataset/{dataset_id}/export_status", params=query, headers=headers).json())

    return first_answer(ask, lambda status: status["status"] in ("COMPLETED", "FAILED", "REJECTED"))


def exported(server: Client, headers: dict[str, str], dataset_id: str, vql: list[Any]) -> list[dict[str, Any]]:
    """Return the items of an export: the package searches by exporting."""
    query = {"export_format": "json", "include_images": "False", "entity_type": "IMAGES", "vql": json.dumps(vql)}
    started = server.get(f"{API}/dataset/{dataset_id}/export_context_async", params=query, headers=headers).json()
    status = finished(server, headers, dataset_id, started)
    assert status["status"] == "COMPLETED", status
    archive = zipfile.ZipFile(io.BytesIO(server.get(status["download_uri"]).content))  # without credentials
    items: list[dict[str, Any]] = json.loads(archive.read("metadata.json"))["media_items"]
    return items


@pytest.mark.slow
def test_constructor__asks_for_health(server: Client, bearer: dict[str, str]) -> None:
    """The constructor needs an answer to this call, and some JSON in it."""
    answer = server.get(f"{API}/healthcheck", headers=bearer)
    assert (answer.status_code, answer.json()["status"]) == (200, "healthy")


@pytest.mark.slow
def test_datasets__have_what_is_read(server: Client, bearer: dict[str, str], dataset_id: str) -> None:
    """Lists and single datasets have each field that the package reads, and READY as the legacy status."""
    listed = server.get(f"{API}/datasets", headers=bearer).json()
    single = server.get(f"{API}/dataset/{dataset_id}", headers=bearer).json()
    fields = {"id", "created_by", "source_dataset_id", "owned_by", "display_name", "description", "preview_uri"}
    fields |= {"source_type", "source_uri", "created_at", "updated_at", "filename", "sample", "status", "n_images"}
    for record in (listed[0], single):
        assert fields <= set(record)
        assert (record["id"], record["status"], record["sample"]) == (dataset_id, "READY", False)
    assert server.get(f"{API}/dataset/00000000-0000-4000-8000-000000000000", headers=bearer).status_code == 404
    assert server.get(f"{API}/datasets/sample_data", headers=bearer).json() == []


@pytest.mark.slow
def test_creation__reads_the_message_of_an_error(server: Client, bearer: dict[str, str]) -> None:
    """A creation sends a form with empty fields; an error has a message."""
    form = {
        "dataset_name": "from a bucket",
        "vl_dataset_id": "",
        "bucket_path": "a-bucket-that-does-not-exist/folder",
        "uploaded_filename": "",
        "config_url": "",
        "pipeline_type": "",
    }
    answer = server.post(f"{API}/dataset", data=form, headers=without_type(bearer))
    assert answer.status_code == 400
    assert answer.json()["message"] == "Invalid object-storage URI or no media files found at the URI"
    assert "error" not in answer.json()


@pytest.mark.slow
def test_explore__without_parameters(server: Client, bearer: dict[str, str], dataset_id: str) -> None:
    """Explore needs no parameter and shows previews."""
    answer = server.get(f"{API}/explore/{dataset_id}", headers=bearer).json()
    assert answer["clusters"][0]["previews"][0]["media_id"]


@pytest.mark.slow
def test_export__at_once(server: Client, bearer: dict[str, str], dataset_id: str) -> None:
    """The direct export is the JSON itself."""
    body = server.get(f"{API}/dataset/{dataset_id}/export", params={"export_format": "json"}, headers=bearer).json()
    assert {"info", "media_items"} <= set(body)
    assert body["media_items"]


@pytest.mark.slow
def test_searches__by_export(server: Client, bearer: dict[str, str], dataset_id: str) -> None:
    """A search by captions is an export with a filter and without a name; captions have the name that is read."""
    items = exported(server, bearer, dataset_id, [{"text": {"op": "fts", "value": "animal", "threshold": 0.0}}])
    captions = [
        item["properties"]["caption"]
        for media in items
        for item in media["metadata_items"]
        if item["type"] == "caption"
    ]
    assert captions
    assert all("animal" in caption for caption in captions)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("value", "count"),
    [
        ({"op": "is", "value": ["cat", "animal"]}, 3),
        ({"op": "is", "value": ["cat", "dog"]}, 0),
        ({"op": "one_of", "value": ["cat", "dog"]}, 3),
    ],
)
def test_searches__by_labels(
    server: Client, bearer: dict[str, str], dataset_id: str, value: dict[str, Any], count: int
) -> None:
    """The package sends lists of labels: all of them for *is*, any of them for *one_of*."""
    assert len(exported(server, bearer, dataset_id, [{"labels": value}])) == count


@pytest.mark.slow
def test_searches__by_issues(server: Client, bearer: dict[str, str], dataset_id: str) -> None:
    """Issues with bounds of the confidence, which is a number; *normal* stands for no issue at all."""
    issue = {"op": "issue", "value": "duplicates", "mode": "in", "confidence_min": 0.0, "confidence_max": 1.0}
    for media in exported(server, bearer, dataset_id, [{"issues": issue}]):
        for item in media["metadata_items"]:
            if item["type"] == "issue":
                assert 0.0 <= item["properties"]["confidence"] <= 1.0
    normal = exported(server, bearer, dataset_id, [{"issues": {"op": "issue", "value": "normal", "mode": "in"}}])
    assert all(item["type"] != "issue" for media in normal for item in media["metadata_items"])
    assert normal


@pytest.mark.slow
def test_searches__by_an_image(server: Client, bearer: dict[str, str], dataset_id: str) -> None:
    """An image is uploaded without the kind of entity; its id is then a filter of an export."""
    preview = server.get(f"{API}/explore/{dataset_id}", headers=bearer).json()["clusters"][0]["previews"][0]
    image = server.get(preview["media_uri"]).content
    answer = server.post(
        f"{API}/dataset/{dataset_id}/search-image-similarity",
        params={"allow_deleted": "False"},
        files={"file": ("query.jpg", image, "image/jpeg")},
        headers=without_type(bearer),
    )
    assert answer.status_code == 200, answer.text
    assert answer.json()["anchor_type"] == "UPLOAD"
    similarity = {"op": "upload", "value": answer.json()["anchor_media_id"], "threshold": 0}
    items = exported(server, bearer, dataset_id, [{"similarity": similarity}])
    assert preview["media_id"] in {item["media_id"] for item in items}


@pytest.mark.slow
def test_features__of_text_searches(server: Client, bearer: dict[str, str], dataset_id: str) -> None:
    """Without this feature the package's searches by text return nothing, silently."""
    features = server.get(f"{API}/user_config", params={"dataset_id": dataset_id}, headers=bearer).json()["features"]
    options = next(each for each in features if each["feature_key"] == "TEXTUAL_SEARCH_IMAGE")["feature_options"]
    assert options["labels_search"] is True
    assert options["captions_search"] is True
    assert isinstance(options["semantic_search"], bool)


@pytest.mark.slow
def test_further_calls__are_answered(server: Client, bearer: dict[str, str], dataset_id: str) -> None:
    """Statistics, a single image, and the state of enrichments."""
    stats = server.get(f"{API}/dataset/{dataset_id}/stats", headers=bearer).json()
    assert stats["n_images"] > 0
    preview = server.get(f"{API}/explore/{dataset_id}", headers=bearer).json()["clusters"][0]["previews"][0]
    image = server.get(f"{API}/image/{preview['media_id']}", params={"dataset_id": dataset_id}, headers=bearer)
    assert image.json()["media_id"] == preview["media_id"]
    context = server.get(f"{API}/enrichment/{dataset_id}/context", headers=bearer).json()
    status = server.get(f"{API}/enrichment/{dataset_id}/{context['context_id']}/status", headers=bearer).json()
    assert (status["status"], status["progress"]) == ("NEW", 0)
