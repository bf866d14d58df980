"""One of each thing of a dataset and of its user that a path or a query can name."""

from typing import Any

from framedex import Dataset
from framedex.hub import Hub
from tests.image_files import encode, photo
from tests.service.client import OWN, Client

NOT_IN_PATHS = {"anchor_media_id", "export_task_id"}
"""Ids that only queries name."""


def every_id(client: Client, hub: Hub, dataset: Dataset, name: str) -> dict[str, str]:
    """Return an id of each kind by the name of its parameter.

    Args:
        client: has the session of a user who owns the dataset.
        hub: the users.
        dataset: a dataset with media and without another thing.
        name: a name that each thing gets that has one.
    """
    base = f"/api/v1/dataset/{dataset.id}"
    me = client.get("/api/v1/me").json()

    def get(path: str, **params: str) -> Any:
        return _json(client.get(path, params=params, headers=OWN))

    def post(path: str, body: Any) -> Any:
        return _json(client.post(path, json=body, headers=OWN))

    media = dataset.view.media_ids()
    dataset.add_field("weight", "float")
    view = dataset.save_view(name)
    post(f"{base}/actions", {"action": "not_duplicates", "on": {"ids": media[:2]}, "args": {}})
    anchor = _json(client.post(f"{base}/search-image-similarity", files={"file": encode(photo(1))}, headers=OWN))
    export = get(f"{base}/export_context_async", file_name="x", export_format="json")["id"]
    tag = dataset.tag(media[:1], name).tag_id
    assert dataset.last_task is not None
    ids = {
        "dataset_id": dataset.id,
        "media_id": media[0],
        "image_id": media[0],
        "task_id": dataset.last_task.task_id,
        "snapshot_id": dataset.snapshots()[0].snapshot_id,
        "export_id": export,
        "export_task_id": export,
        "view_id": view.id,
        "tag": tag,
        "field": dataset.fields()[0].field_id,
        "decision_id": dataset.duplicate_decisions()[0].decision_id,
        "plan_id": post(f"{base}/cleanup/plan", {"duplicates": "exact"})["plan_id"],
        "rid": post(f"{base}/results", {"ids": media[:3]})["rid"],
        "transaction_id": str(get(f"/api/v1/ingestion/{dataset.id}/data_files")["trans_id"]),
        "enrichment_context_id": get(f"/api/v1/enrichment/{dataset.id}/context")["enrichment_context_id"],
        "anchor_media_id": anchor["anchor_media_id"],
        "session_id": get("/api/v1/sessions")[0]["id"],
        "workspace_id": me["workspace_id"],
        "member_user_id": me["user_id"],
        "organization_id": get("/api/v1/workspaces")["workspaces"][0]["organization_id"],
    }
    dataset.add_media(files=[("new.png", encode(photo(2)))])
    hub.notifications.deliver()
    ids["notification_id"] = get("/api/v1/notifications")["notifications"][0]["id"]
    return ids


def _json(answer: Any) -> Any:
    assert answer.status_code == 200, answer.text
    return answer.json()
