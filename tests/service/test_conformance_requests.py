"""The requests of the interface: method, path, status of success, parameters and bodies, in the description."""

import json
from pathlib import Path
from typing import Any

import pytest

DOCUMENT = Path(__file__).parents[2] / "docs" / "openapi.json"
_DATASET = "/api/v1/dataset/{dataset_id}"
_INGESTION = "/api/v1/ingestion/{dataset_id}"
_SNAPSHOT = _DATASET + "/snapshot"
_VIEWS = _DATASET + "/views"
_NOTIFICATIONS = "/api/v1/notifications"
_METADATA = "/api/v1/datasets/{dataset_id}/custom_metadata"
_MANAGE = "/api/v1/manage/{dataset_id}"
_USERS = "/api/v1/keycloak/admin/users"
_ENTITY = "entity_type:IMAGES|OBJECTS|VIDEOS='IMAGES'"
_IMAGES = f"include_images:boolean=False {_ENTITY}"
REQUESTS: list[tuple[str, str, int, str, str]] = [
    ("GET", "/api/v1/api_credentials", 200, "", ""),
    ("GET", _DATASET, 200, "", ""),
    ("DELETE", _DATASET, 200, "", ""),
    ("GET", "/api/v1/datasets", 200, "", ""),
    ("POST", "/api/v1/dataset", 200, "", "dataset_name:string! bucket_path:string?"),
    ("GET", "/api/v1/ingestion/new_dataset", 200, "dataset_name:string=''", ""),
    ("GET", f"{_INGESTION}/data_files", 200, "", ""),
    ("POST", f"{_INGESTION}/data_files/{{transaction_id}}", 202, "", "files:[file]"),
    ("POST", f"{_INGESTION}/process_files/{{transaction_id}}", 202, "", ""),
    (
        "POST",
        f"{_DATASET}/add_media",
        202,
        "",
        "s3_uri:string? files:[file] archive:file auto_reindex:boolean=False assume_role:string? "
        "batch_n_videos:integer? batch_n_images:integer? batch_n_objects:integer? use_spot:boolean?",
    ),
    ("POST", f"{_DATASET}/reindex", 202, "", ""),
    ("GET", "/api/v1/process", 200, "path:string='' name:string=''", ""),
    ("GET", "/api/v1/process/add_media", 200, "dataset_id:string='' path:string=''", ""),
    ("GET", "/api/v1/enrichment/{dataset_id}/list_models", 200, "", ""),
    ("GET", "/api/v1/enrichment/{dataset_id}/context", 200, "", ""),
    ("POST", f"{_DATASET}/enrich_dataset", 200, "", "enrichment_models:object!"),
    (
        "GET",
        "/api/v1/explore/{dataset_id}",
        200,
        f"caption:string? image_caption:string? {_ENTITY} threshold:integer[0..4]=0 "
        "textual_similarity_threshold:number[0..1]? page_number:integer[0..2147483647]=0 labels:string? tags:string? "
        "vql:string? anchor_media_id:string? anchor_type:UPLOAD|MEDIA?",
        "",
    ),
    ("GET", "/api/v1/explore/{dataset_id}/exploration_metadata", 200, f"{_ENTITY} threshold:integer[0..4]=0", ""),
    (
        "POST",
        f"{_DATASET}/search-image-similarity",
        200,
        f"{_ENTITY} threshold:integer[0..4]=0 bounding_box:string?",
        "file:file!",
    ),
    ("GET", f"{_DATASET}/search_media_metadata/id", 200, "original_media_uri:string!", ""),
    ("GET", f"{_DATASET}/media/id", 200, "original_media_uri:string!", ""),
    ("GET", f"{_DATASET}/media/{{media_id}}/duplicates", 200, "", ""),
    (
        "GET",
        f"{_DATASET}/export_context_async",
        200,
        f"file_name:string? export_format:string! {_IMAGES} vql:string?",
        "",
    ),
    (
        "POST",
        f"{_DATASET}/export_entities_async",
        200,
        f"export_format:string='json' {_IMAGES}",
        "media_selection:[object]!",
    ),
    ("GET", f"{_DATASET}/export_status", 200, "export_task_id:string!", ""),
    ("GET", _SNAPSHOT, 200, "", ""),
    ("POST", _SNAPSHOT, 200, "", "name:string? description:string?"),
    ("PATCH", f"{_SNAPSHOT}/{{snapshot_id}}", 200, "", "name:string? description:string?"),
    ("POST", f"{_SNAPSHOT}/{{snapshot_id}}/restore", 202, "", ""),
    ("POST", f"{_SNAPSHOT}/{{snapshot_id}}/clone", 202, "", ""),
    ("DELETE", f"{_SNAPSHOT}/{{snapshot_id}}", 200, "", ""),
    (
        "POST",
        _VIEWS,
        200,
        f"{_ENTITY} threshold:number[0..1]=0 caption:string? vql:string?",
        "name:string!",
    ),
    ("GET", _VIEWS, 200, "", ""),
    ("DELETE", f"{_VIEWS}/{{view_id}}", 200, "", ""),
    ("GET", f"{_VIEWS}/{{view_id}}/trend", 200, "", ""),
    ("POST", f"{_VIEWS}/{{view_id}}/alerting", 200, "", "request:Alerting!"),
    (
        "GET",
        _NOTIFICATIONS,
        200,
        "limit:integer[1..100]=20 offset:integer[0..4611686018427387904]=0 unread_only:boolean=False "
        "dataset_id:string?",
        "",
    ),
    ("GET", f"{_NOTIFICATIONS}/stream", 200, "dataset_id:string?", ""),
    ("GET", f"{_NOTIFICATIONS}/unread-count", 200, "dataset_id:string?", ""),
    ("POST", f"{_NOTIFICATIONS}/{{notification_id}}/read", 200, "", ""),
    ("POST", f"{_NOTIFICATIONS}/read-all", 200, "dataset_id:string?", ""),
    (
        "GET",
        "/api/v1/tasks",
        200,
        "dataset_id:string? dataset_name:string? created_by:string? start_time_from:string? start_time_to:string? "
        "task_type:TaskType? task_status:TaskStatus? "
        "sort_by:start_time|status|task_type|dataset_name|dataset_id|created_by='start_time' "
        "sort_order:asc|desc='desc' "
        "page:integer[1..2147483648]=1 page_size:integer[5..50]=20",
        "",
    ),
    ("GET", "/api/v1/tasks/filters", 200, "start_time_from:string? start_time_to:string?", ""),
    ("POST", "/api/v1/tasks/{task_id}/abort", 200, "", ""),
    ("POST", "/api/v1/tasks/{task_id}/retry", 200, "", ""),
    ("PUT", f"{_MANAGE}/invite", 200, "", "grant_to_user_email:string! role:viewer|editor='viewer'"),
    ("GET", f"{_MANAGE}/share", 200, "", ""),
    ("DELETE", f"{_MANAGE}/share", 200, "email:string!", ""),
    ("POST", f"{_DATASET}/share", 200, "", "user_email:string!"),
    (
        "GET",
        _USERS,
        200,
        "search:string='' max_results:integer[1..1000]=100 first:integer[0..2147483648]=0",
        "",
    ),
    ("GET", f"{_USERS}/{{user_id}}", 200, "", ""),
    (
        "POST",
        _USERS,
        201,
        "",
        "username:string! password:string! firstName:string! lastName:string! enabled:boolean=True "
        "workspace_role:Role='viewer'",
    ),
    ("PATCH", f"{_USERS}/{{user_id}}", 200, "", "username:string? enabled:boolean?"),
    ("DELETE", f"{_USERS}/{{user_id}}", 200, "", ""),
    ("POST", f"{_USERS}/{{user_id}}/reset-password", 200, "", "password:string!"),
    ("POST", f"{_USERS}/{{user_id}}/logout", 200, "", ""),
    ("GET", f"{_USERS}/{{user_id}}/sessions", 200, "", ""),
    ("PUT", f"{_USERS}/{{user_id}}/roles", 200, "", "roles:[string]!"),
    ("GET", "/api/v1/workspaces", 200, "organization_id:string?", ""),
    ("GET", "/api/v1/workspaces/{workspace_id}", 200, "", ""),
    ("GET", "/api/v1/workspace/members", 200, "workspace_id:string?", ""),
    ("PUT", "/api/v1/workspace/members/{member_user_id}/role", 200, "", "role:Role! workspace_id:string?"),
    ("GET", "/api/v1/workspace/settings/access", 200, "workspace_id:string?", ""),
    ("GET", "/api/v1/organizations", 200, "", ""),
    ("GET", "/api/v1/organizations/{organization_id}", 200, "", ""),
    ("GET", "/api/v1/admin/settings", 200, "key:string?", ""),
    ("POST", "/api/v1/admin/settings", 200, "", "key:string! value:any!"),
    (
        "POST",
        f"{_METADATA}/tasks",
        200,
        "",
        "field_name:string! field_type:string! enum_options:[string]? is_multi:boolean=False",
    ),
    ("POST", f"{_METADATA}/tasks/{{task_id}}", 200, "", "[]"),
    ("GET", f"{_METADATA}/tasks/{{task_id}}/status", 200, "", ""),
    ("GET", f"{_METADATA}/schema", 200, "", ""),
    ("GET", "/api/v1/datasets/{dataset_id}/image/{media_id}/custom_metadata", 200, "", ""),
]
"""Method, path, status, and parameters of the query and the body: ``!`` is required, ``?`` may be null."""
_FORMS = {"add_media", "data_files/{transaction_id}", "search-image-similarity", "views"}
"""Ends of paths whose bodies are forms; other bodies are JSON."""


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    """The description of the service."""
    found: dict[str, Any] = json.loads(DOCUMENT.read_text(encoding="utf-8"))
    return found


def written(name: str, schema: dict[str, Any], schemas: dict[str, Any], *, required: bool) -> str:
    """Return a parameter as the table has it."""
    kinds = [each for each in schema.get("anyOf", [schema]) if each != {"type": "null"}]
    text = f"{name}:{_kind(kinds[0], schemas)}" + "?" * (len(kinds) < len(schema.get("anyOf", kinds)))
    if schema.get("default") is not None:
        text += f"={schema['default']!r}"
    return text + "!" * required


def _kind(schema: dict[str, Any], schemas: dict[str, Any]) -> str:
    if "$ref" in schema:
        name = str(schema["$ref"].rsplit("/", 1)[-1])
        return "|".join(schemas[name]["enum"]) if name == "EntityType" else name
    if "enum" in schema:
        return "|".join(schema["enum"])
    if schema.get("type") == "array":
        return f"[{_kind(schema['items'], schemas)}]"
    if schema.get("format") == "binary" or "contentMediaType" in schema:
        return "file"
    bounds = f"[{schema['minimum']}..{schema['maximum']}]" if "maximum" in schema else ""
    return str(schema.get("type", "any")) + bounds


def fields_of(operation: dict[str, Any], schemas: dict[str, Any], kind: str) -> set[str]:
    """Return the fields of a body of a kind, as the table has them; ``[]`` for an array."""
    schema = operation["requestBody"]["content"][kind]["schema"]
    schema = next(each for each in schema.get("anyOf", [schema]) if each != {"type": "null"})
    schema = schemas[schema["$ref"].rsplit("/", 1)[-1]] if "$ref" in schema else schema
    if schema["type"] == "array":
        return {"[]"}
    needed = schema.get("required", ())
    return {written(name, each, schemas, required=name in needed) for name, each in schema["properties"].items()}


@pytest.mark.parametrize(("method", "path", "status", "query", "body"), REQUESTS, ids=lambda value: str(value)[:60])
def test_requests__are_those_of_the_interface(
    document: dict[str, Any], method: str, path: str, status: int, query: str, body: str
) -> None:
    """A request has the method, the status of success, and the parameters with their types, defaults and limits."""
    operation, schemas = document["paths"][path][method.lower()], document["components"]["schemas"]
    assert [each for each in operation["responses"] if each.startswith("2")] == [str(status)]
    parameters = {
        written(each["name"], each["schema"], schemas, required=each.get("required", False))
        for each in operation.get("parameters", ())
        if each["in"] == "query"
    }
    assert set(query.split()) <= parameters
    if body:
        kind = "multipart/form-data" if path.endswith(tuple(_FORMS)) else "application/json"
        assert set(body.split()) <= fields_of(operation, schemas, kind)
    else:
        assert "requestBody" not in operation


def test_paths__have_the_prefix(document: dict[str, Any]) -> None:
    """All paths begin with the version; the files of exports alone are behind the path that clients know."""
    others = [path for path in document["paths"] if not path.startswith("/api/v1/")]
    assert others == ["/cdn/{dataset_id}/exports/{export_id}/{file_name}"]
