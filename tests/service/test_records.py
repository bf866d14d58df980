"""The resources of the interface: their fields, types and values, in the description and in real answers."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from framedex import Dataset
from tests.enrichments import Hues, register_models
from tests.gallery import fill
from tests.objects import scenes
from tests.pauses import first_answer, wait_until
from tests.service.client import OWN, Client
from tests.service.serving import Serving, serving

API = "/api/v1"
DOCUMENT = Path(__file__).parents[2] / "docs" / "openapi.json"
LABELS = "filename,label,caption\n000.png,cat,a cat\n001.png,dog,\n"


@dataclass(frozen=True)
class Resource:
    """A resource of the interface.

    Attributes:
        schema: its name in the description.
        fields: types by field: ``text``, ``uuid``, ``time``, ``integer``, ``number``, ``boolean``, ``object``, or the
            name of another schema; ``[…]`` for an array, and ``?`` behind it where null is allowed.
        added: fields of ours beside those of the interface.
        nullable: fields that are null for a media item that cannot be read, where the interface has the type alone.
        values: some values that a field may have.
    """

    schema: str
    fields: dict[str, str]
    added: frozenset[str] = frozenset()
    nullable: frozenset[str] = frozenset()
    values: dict[str, tuple[str, ...]] = field(default_factory=dict)


def resource(schema: str, fields: str, *, added: str = "", nullable: str = "", **values: str) -> Resource:
    """Return a resource whose fields are written as ``name:type``, separated by blanks."""
    return Resource(
        schema,
        dict(each.split(":") for each in fields.split()),
        frozenset(added.split()),
        frozenset(nullable.split()),
        {name: tuple(text.split("|")) for name, text in values.items()},
    )


_TYPES = "CAPTION_IMAGES|OBJECT_DETECTION|CAPTION_OBJECTS|MULTIMODEL_IMAGE_ENCODING|IMAGE_TAGGING"
RESOURCES = {
    "dataset": resource(
        "DatasetStatusModel",
        "id:uuid display_name:text status:text status_new:DatasetStatus progress:integer owned_by:text "
        "created_at:time n_images:integer n_videos:integer",
        added="description created_by updated_at n_objects source_type source_uri source_dataset_id preview_uri "
        "filename sample fatal_error_msg permissions",
        status_new="READY|READ ONLY|PARTIAL INDEX|INDEXING|ERROR",
    ),
    "enrichment model": resource(
        "EnrichmentModel",
        "id:text name:text type:EnrichmentType status:ModelStatus vendor:text description:text "
        "dependencies:[EnrichmentType]?",
        type=_TYPES,
        status="Active|Coming Soon",
    ),
    "enrichment context": resource(
        "EnrichmentContextModel",
        "enrichment_context_id:uuid status:EnrichmentStatus dataset_enrichment_models:AppliedModels",
        added="context_id",
        status="NEW",
    ),
    "applied models": resource("AppliedModels", "enrichment_models:object"),
    "enriched dataset": resource("EnrichedDataset", "dataset_id:uuid", added="id"),
    "snapshot": resource(
        "Snapshot",
        "snapshot_id:uuid snapshot_name:text source_dataset_name:text created_at:time created_by:text "
        "n_images:integer n_videos:integer description:text reason:SnapshotReason training_model_id:uuid? "
        "training_model_name:text? is_current:boolean is_restoring:boolean",
        reason="manual|creation|clone",
    ),
    "saved view": resource(
        "SavedViewModel",
        "id:uuid dataset_id:uuid name:text created_at:time created_by:ViewAuthor filters:SavedViewFilters "
        "stats:ViewStats monitoring_enabled:boolean monitoring_started_at:time alerting_enabled:boolean "
        "total_results:integer last_results:time?",
        added="evaluation_error",
    ),
    "author of a view": resource("ViewAuthor", "user_id:uuid email:text name:text"),
    "filters of a view": resource("SavedViewFilters", "entity_type:text threshold:text caption:text? vql:[object]"),
    "stats of a view": resource("ViewStats", "n_images:integer n_objects:integer n_video_frames:integer"),
    "list of views": resource("SavedViewList", "views:[SavedViewModel]"),
    "trend": resource("ViewTrendModel", "points:[TrendPointModel] total_results:integer last_results:time?"),
    "trend point": resource(
        "TrendPointModel", "timestamp:time batch_id:uuid count:integer cumulative:integer", added="batch"
    ),
    "alerting": resource("AlertingState", "alerting_enabled:boolean"),
    "notification": resource(
        "Notification",
        "id:uuid user_id:uuid entity_type:text entity_id:uuid title:text message:text? metadata:NotificationMetadata "
        "dataset_id:uuid? created_at:time read_at:time?",
    ),
    "metadata of a notification": resource(
        "NotificationMetadata", "batch_id:uuid is_alert:boolean view_name:text dataset_name:text result_count:integer"
    ),
    "page of notifications": resource(
        "NotificationPage", "notifications:[Notification] total:integer has_more:boolean"
    ),
    "unread count": resource("UnreadCount", "count:integer"),
    "read mark": resource("ReadMark", "ok:boolean"),
    "read marks": resource("ReadMarks", "ok:boolean count:integer"),
    "task": resource(
        "TaskRecord",
        "task_id:uuid dataset_id:uuid dataset_name:text dataset_status:text created_by:text task_type:TaskType "
        "status:TaskStatus status_message:text progress_percentage:integer? error_message:text? start_time:time "
        "end_time:time?",
        task_type="DATASET_CREATION|MEDIA_ADDITION|REINDEX|ENRICHMENT|CUSTOM_METADATA|SNAPSHOT_RESTORE|SNAPSHOT_CLONE",
        status="INITIALIZING|RUNNING|COMPLETED|FAILED|ABORTED",
    ),
    "page of tasks": resource("TaskPage", "tasks:[TaskRecord] total:integer page:integer page_size:integer"),
    "task filters": resource(
        "TaskFilters", "dataset_names:[text] dataset_ids:[uuid] task_types:[text] created_by:[text]"
    ),
    "explore result": resource(
        "ExploreResult", "clusters:[Cluster] metadata:ExploreMetadata", added="total_pages current_page notes"
    ),
    "explore metadata": resource("ExploreMetadata", "used_duckdb:boolean"),
    "cluster": resource(
        "Cluster",
        "cluster_id:uuid type:text n_images:integer similarity_threshold:text relevance_score:number "
        "relevance_score_type:text captions:[text] previews:[Preview] labels:[text]? user_tags:[text]? "
        "n_objects:integer n_videos:integer n_frames:integer size_display_value:text formed_by:text",
        added="name",
    ),
    "preview": resource(
        "Preview",
        "type:text media_id:uuid media_uri:text media_thumb_uri:text caption:text? file_name:text "
        "relevance_score:number relevance_score_type:text width:integer height:integer image_id:uuid image_uri:text "
        "bounding_box:[number]? original_uri:text video_uri:text? frame_timestamp:number? labels:[text]? "
        "user_tags:[text]?",
        added="copy",
        nullable="width height",
    ),
    "exploration metadata": resource(
        "ExplorationMetadata", "dataset_name:text clusters_count:integer media_count:integer labels:[LabelCount]"
    ),
    "label count": resource("LabelCount", "name:text count:integer"),
    "anchor": resource("Anchor", "anchor_media_id:uuid anchor_type:text"),
    "export status": resource(
        "ExportRecord",
        "id:uuid dataset_id:uuid created_at:time status:ExportStatus progress:integer entities_count:integer? "
        "result_message:text download_uri:text?",
        status="PENDING|RUNNING|COMPLETED|FAILED|REJECTED",
    ),
    "api credentials": resource("ApiCredentials", "api_key:text api_secret:text message:text"),
    "new dataset": resource("DraftAnswer", "dataset_id:uuid"),
    "transaction": resource("TransactionAnswer", "trans_id:integer"),
    "processing": resource("ProcessingStarted", "status:text message:text dataset_id:uuid name:text"),
    "deletion": resource("Message", "message:text"),
    "metadata task": resource("MetadataTask", "task_id:uuid status:text"),
    "metadata result": resource(
        "FieldResult",
        "task_id:uuid status:text progress:integer inserted_rows:integer error_count:integer "
        "sample_errors:[FieldError]",
    ),
    "metadata error": resource("FieldError", "reason:text row_index:integer"),
    "metadata field": resource(
        "FieldSchema",
        "field_name:text field_type:FieldType enum_options:[text]? is_multi:boolean",
        added="field_id",
        field_type="string|float|datetime|enum|link",
    ),
    "metadata value": resource("FieldValue", "field_name:text field_type:FieldType value:any"),
}
_PLAIN = {"string": "text", "integer": "integer", "number": "number", "boolean": "boolean", "object": "object"}


@pytest.fixture(scope="module")
def schemas() -> dict[str, Any]:
    """The schemas of the description."""
    found: dict[str, Any] = json.loads(DOCUMENT.read_text(encoding="utf-8"))["components"]["schemas"]
    return found


def type_of(schema: dict[str, Any]) -> str:
    """Return the type of a field in the words of :class:`Resource`."""
    if "anyOf" in schema:
        kinds = [each for each in schema["anyOf"] if each != {"type": "null"}]
        assert len(kinds) == 1, schema
        return type_of(kinds[0]) + "?" * (len(kinds) < len(schema["anyOf"]))
    if "$ref" in schema:
        return str(schema["$ref"].rsplit("/", 1)[-1])
    if schema.get("type") == "array":
        return f"[{type_of(schema['items'])}]"
    if schema.get("format") == "date-time":
        return "time"
    return _PLAIN[schema["type"]] if "type" in schema else "any"


@pytest.mark.parametrize("name", RESOURCES)
def test_description__has_the_fields_of_the_interface(name: str, schemas: dict[str, Any]) -> None:
    """A schema has the fields of its resource, with their types and nulls; further fields are listed above."""
    expected, properties = RESOURCES[name], schemas[RESOURCES[name].schema]["properties"]
    assert set(properties) - set(expected.fields) == expected.added
    types = {each: type_of(properties[each]) for each in expected.fields}
    described = {each: kind.replace("uuid", "text") for each, kind in expected.fields.items()}
    assert types == {each: kind + "?" * (each in expected.nullable) for each, kind in described.items()}
    for each, values in expected.values.items():
        enum = schemas[type_of(properties[each])]
        assert set(values) <= set(enum.get("enum", ())), each


def is_of_type(value: Any, kind: str, schemas: dict[str, Any]) -> bool:
    """Return whether a value of an answer has a type."""
    if kind.endswith("?"):
        return value is None or is_of_type(value, kind[:-1], schemas)
    if kind.startswith("["):
        return isinstance(value, list) and all(is_of_type(each, kind[1:-1], schemas) for each in value)
    if kind in schemas:
        return value in schemas[kind]["enum"] if "enum" in schemas[kind] else isinstance(value, dict)
    match kind:
        case "uuid":
            return isinstance(value, str) and str(UUID(value)) == value
        case "time":
            return isinstance(value, str) and value.endswith("Z") and datetime.fromisoformat(value).tzinfo is not None
        case "integer":
            return isinstance(value, int) and not isinstance(value, bool)
        case "number":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "any":
            return True
        case _:
            return isinstance(value, {"text": str, "boolean": bool, "object": dict}[kind])


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, list[Any]]]:
    """Answers of a service by the name of the resource, of images, a frame or an object where it has several."""
    folder = tmp_path_factory.mktemp("records")
    source = fill(folder / "source", 3)
    (source / "image_annotations.csv").write_text(LABELS)
    (source / "003.png").write_text("no image")
    with serving(folder) as running:
        register_models(running.workspace, Hues())
        dataset = running.workspace.create_dataset("pets", source)
        dataset.tag(dataset.view.media_ids()[:1], "keep")
        scenes(folder / "things", 1)
        things = running.workspace.create_dataset("things", folder / "things")
        watched = running.workspace.create_dataset("watched", fill(folder / "watched", 2))
        views = views_of(running.local, watched, fill(folder / "more", 1, first_seed=900))
        running.hub.notifications.deliver()
        views |= notifications_of(running.local)
        yield {**answers_of(running, dataset.id, things.id, source), **views}


def has_ended(export: dict[str, Any]) -> bool:
    """Return whether an export has ended."""
    return export["status"] not in ("PENDING", "RUNNING")


def answers_of(served: Serving, dataset_id: str, things_id: str, source: Path) -> dict[str, list[Any]]:
    """Ask for each resource, as the local user and as one who is logged in."""
    client, base = served.local, f"{API}/dataset/{dataset_id}"

    def get(path: str, /, **params: Any) -> Any:
        answer = client.get(path, params=params)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def post(path: str, **body: Any) -> Any:
        answer = client.post(path, **body)
        assert answer.status_code == 200, answer.text
        return answer.json()

    found: dict[str, list[Any]] = {"dataset": [get(base), *get(f"{API}/datasets")]}
    media_id = get(f"{API}/explore/{dataset_id}")["clusters"][0]["previews"][0]["media_id"]
    found["snapshot"] = [post(f"{base}/snapshot"), *get(f"{base}/snapshot")]
    export = get(f"{base}/export_context_async", file_name="a", export_format="json")
    state = first_answer(partial(get, f"{base}/export_status", export_task_id=export["id"]), has_ended)
    found["export status"] = [export, state]
    objects = f"{API}/dataset/{things_id}/export_context_async"
    found["export status"].append(get(objects, file_name="b", export_format="json", entity_type="OBJECTS"))
    pages = [get(f"{API}/explore/{each}", entity_type=kind) for each, kind in
             ((dataset_id, "IMAGES"), (things_id, "OBJECTS"))]  # fmt: skip
    found["explore result"] = pages
    found["explore metadata"] = [page["metadata"] for page in pages]
    found["cluster"] = [cluster for page in pages for cluster in page["clusters"]]
    found["preview"] = [preview for cluster in found["cluster"] for preview in cluster["previews"]]
    found["exploration metadata"] = [get(f"{API}/explore/{dataset_id}/exploration_metadata")]
    found["label count"] = found["exploration metadata"][0]["labels"]
    image = {"file": ("a.png", (source / "000.png").read_bytes())}
    found["anchor"] = [post(f"{base}/search-image-similarity", files=image)]
    found["enrichment model"] = get(f"{API}/enrichment/{dataset_id}/list_models")
    found["enrichment context"] = [get(f"{API}/enrichment/{dataset_id}/context")]
    tasks = f"{API}/datasets/{dataset_id}/custom_metadata/tasks"
    found["metadata task"] = [post(tasks, json={"field_name": "weight", "field_type": "float"})]
    task = f"{tasks}/{found['metadata task'][0]['task_id']}"
    rows = [{"media_id": media_id, "value": 1.5}, {"media_id": media_id, "value": "heavy"}]
    found["metadata task"].append(post(task, json=rows))
    wait_until(lambda: get(f"{task}/status")["status"].startswith("COMPLETED"))
    found["metadata result"] = [get(f"{task}/status")]
    found["metadata error"] = found["metadata result"][0]["sample_errors"]
    found["metadata field"] = get(f"{API}/datasets/{dataset_id}/custom_metadata/schema")
    found["metadata value"] = get(f"{API}/datasets/{dataset_id}/image/{media_id}/custom_metadata")
    copy = post(f"{base}/enrich_dataset", json={"enrichment_models": {"MULTIMODEL_IMAGE_ENCODING": "hues"}})
    found["enriched dataset"] = [copy]
    wait_until(lambda: get(f"{API}/dataset/{copy['dataset_id']}")["status_new"] == "READY")
    found["enrichment context"].append(get(f"{API}/enrichment/{copy['dataset_id']}/context"))
    found["applied models"] = [each["dataset_enrichment_models"] for each in found["enrichment context"]]
    found["new dataset"] = [get(f"{API}/ingestion/new_dataset", dataset_name="draft")]
    found["transaction"] = [get(f"{API}/ingestion/{found['new dataset'][0]['dataset_id']}/data_files")]
    found["processing"] = [get(f"{API}/process", path=str(source), name="more")]
    found["page of tasks"] = [get(f"{API}/tasks")]
    found["task"] = found["page of tasks"][0]["tasks"]
    found["task filters"] = [get(f"{API}/tasks/filters")]
    found["deletion"] = [client.delete(f"{API}/dataset/{found['new dataset'][0]['dataset_id']}").json()]
    found["api credentials"] = [served.ann.get(f"{API}/api_credentials", headers=OWN).json()]
    return found


def views_of(client: Client, dataset: Dataset, more: Path) -> dict[str, list[Any]]:
    """Ask for each resource of saved views, before an addition of media and after it."""
    url = f"{API}/dataset/{dataset.id}/views"
    view = client.post(url, data={"name": "all"}).json()
    trend = f"{url}/{view['id']}/trend"
    trends = [client.get(trend).json()]
    dataset.add_media(more)
    trends.append(client.get(trend).json())
    lists = [client.get(url).json()]
    views = [view, *lists[0]["views"]]
    return {
        "saved view": views,
        "author of a view": [each["created_by"] for each in views],
        "filters of a view": [each["filters"] for each in views],
        "stats of a view": [each["stats"] for each in views],
        "list of views": lists,
        "trend": trends,
        "trend point": trends[1]["points"],
        "alerting": [client.post(f"{url}/{view['id']}/alerting", json={"request": {"enabled": True}}).json()],
    }


def notifications_of(client: Client) -> dict[str, list[Any]]:
    """Ask for each resource of notifications, before and after they are read."""
    url = f"{API}/notifications"
    pages, counts = [client.get(url).json()], [client.get(f"{url}/unread-count").json()]
    mark = client.post(f"{url}/{pages[0]['notifications'][0]['id']}/read").json()
    marks = [client.post(f"{url}/read-all").json()]
    pages.append(client.get(url).json())
    found = [each for page in pages for each in page["notifications"]]
    return {
        "notification": found,
        "metadata of a notification": [each["metadata"] for each in found],
        "page of notifications": pages,
        "unread count": counts,
        "read mark": [mark],
        "read marks": marks,
    }


@pytest.mark.slow
def test_records__of_real_answers(answers: dict[str, list[Any]], schemas: dict[str, Any]) -> None:
    """Each answer has the fields of its resource and those that are added, with values of their types."""
    assert answers.keys() == RESOURCES.keys()
    for name, records in answers.items():
        expected = RESOURCES[name]
        assert records, name
        for record in records:
            assert record.keys() == expected.fields.keys() | expected.added, name
            for each, kind in expected.fields.items():
                allowed = kind + "?" * (each in expected.nullable)
                assert is_of_type(record[each], allowed, schemas), (name, each, record[each])


@pytest.mark.slow
def test_records__values(answers: dict[str, list[Any]]) -> None:
    """Values that the interface fixes: counts that do not apply, percent, empty texts, and what ended."""
    (first, *_) = answers["dataset"]
    assert (first["status_new"], first["progress"]) == ("READY", 100)
    assert {task["end_time"] is None for task in answers["task"] if task["status"] == "COMPLETED"} == {False}
    assert all(0 <= task["progress_percentage"] <= 100 for task in answers["task"] if task["progress_percentage"])
    newest = answers["snapshot"][0]
    assert (newest["description"], newest["reason"], newest["is_current"]) == ("", "manual", True)
    assert newest["training_model_id"] is newest["training_model_name"] is None
    images, objects = ([c for c in answers["cluster"] if c["type"] == kind] for kind in ("IMAGES", "OBJECTS"))
    assert {cluster["n_objects"] for cluster in images} == {-1}
    assert all(cluster["n_objects"] > 0 for cluster in objects)
    assert {preview["type"] for preview in answers["preview"]} == {"IMAGE", "OBJECT"}
    assert answers["enrichment context"][0]["status"] == "NEW"
    assert answers["applied models"] == [
        {"enrichment_models": {}},
        {"enrichment_models": {"MULTIMODEL_IMAGE_ENCODING": "hues"}},
    ]
    started, state, of_objects = answers["export status"]
    assert (started["entities_count"], of_objects["entities_count"]) == (4, 3)
    assert (started["status"], started["download_uri"], state["status"]) == ("PENDING", None, "COMPLETED")
    assert state["download_uri"]
