"""Custom metadata over HTTP: a field in two steps, rows that fail alone, and the values of a media item."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from framedex import Dataset, Workspace
from framedex.access import Role
from framedex.hub import Hub
from framedex.hub.metadata import KEPT
from framedex.service.settings import ServiceSettings
from tests.gallery import fill
from tests.inside import hub_context, layout_of
from tests.pauses import all_threads_busy, wait_until
from tests.prepared import prepared
from tests.service.client import LOCAL, Client, client_of
from tests.service.users import OPERATOR, PASSWORD

NOWHERE = "00000000-0000-0000-0000-0000000000aa"
FLOAT = {"field_name": "weight", "field_type": "float"}


@pytest.fixture
def dataset(workspace: Workspace, tmp_path: Path) -> Dataset:
    """A dataset of three images."""
    return prepared(workspace, "pets", fill(tmp_path / "few", 3))


def url(dataset: Dataset, rest: str = "") -> str:
    """Return the path of the tasks of custom metadata, or of one of them."""
    return f"/api/v1/datasets/{dataset.id}/custom_metadata/tasks{rest}"


def ended(client: Client, path: str, **options: Any) -> dict[str, Any]:
    """Return the progress of a task once it has ended."""
    wait_until(lambda: client.get(f"{path}/status", **options).json()["status"] not in ("INIT", "RUNNING"))
    result: dict[str, Any] = client.get(f"{path}/status", **options).json()
    return result


@pytest.mark.slow
def test_metadata__in_two_steps(open_client: Client, dataset: Dataset) -> None:
    """An editor defines a field, and sends its values; wrong rows fail alone."""
    eve = open_client.bearer("eve")
    first, second, _ = dataset.view.media_ids()
    task = open_client.post(url(dataset), json=FLOAT, headers=eve).json()
    assert task == {"task_id": task["task_id"], "status": "INIT"}
    path = url(dataset, f"/{task['task_id']}")
    waiting = open_client.get(f"{path}/status", headers=eve).json()
    nothing = {"progress": 0, "inserted_rows": 0, "error_count": 0, "sample_errors": []}
    assert waiting == {**task, **nothing}
    assert dataset.fields() == []
    rows = [
        {"media_id": first, "value": 1.5}, {"media_id": second, "value": "x"}, {"media_id": NOWHERE, "value": 1}, 7,
        {"media_id": first, "value": 2}, {"media_id": second}, None, {"media_id": second, "value": 2, "more": 1},
    ]  # fmt: skip
    sent = open_client.post(path, json=rows, headers=eve)
    assert (sent.status_code, sent.json()["task_id"]) == (200, task["task_id"])
    result = ended(open_client, path, headers=eve)
    assert (result["status"], result["progress"]) == ("COMPLETED_WITH_ERRORS", 100)
    assert (result["inserted_rows"], result["error_count"]) == (2, 6)
    assert [each["row_index"] for each in result["sample_errors"]] == [1, 2, 3, 4, 5, 6]
    again = open_client.post(path, json=rows, headers=eve)
    assert (again.status_code, again.json()["code"]) == (409, "conflict")
    assert dataset.last_task is not None
    assert (dataset.last_task.task_id, dataset.last_task.created_by) == (task["task_id"], "eve@example.org")
    vic = open_client.bearer("vic")
    (field,) = open_client.get(f"/api/v1/datasets/{dataset.id}/custom_metadata/schema", headers=vic).json()
    assert field == {
        "field_id": field["field_id"], "field_name": "weight", "field_type": "float", "enum_options": None,
        "is_multi": False,
    }  # fmt: skip
    image = f"/api/v1/datasets/{dataset.id}/image"
    values = open_client.get(f"{image}/{first}/custom_metadata", headers=vic).json()
    assert values == [{"field_name": "weight", "field_type": "float", "value": 1.5}]
    for media_id in (NOWHERE, "x", first[:-1] + "z"):
        answer = open_client.get(f"{image}/{media_id}/custom_metadata", headers=vic)
        assert (answer.status_code, answer.json()["detail"]) == (404, "Media not found")
    assert open_client.post(url(dataset), json=FLOAT, headers=eve).status_code == 409
    for path_of_viewer in (url(dataset), path):
        assert open_client.post(path_of_viewer, json=FLOAT, headers=vic).status_code == 403


def test_metadata__values_as_a_file(local: Client, dataset: Dataset) -> None:
    """The values may come as the file of a form; options of an enum and lists are kept."""
    first, *_ = dataset.view.media_ids()
    spec = {"field_name": "who", "field_type": "enum", "enum_options": ["ann", "x" * 20], "is_multi": True}
    path = url(dataset, f"/{local.post(url(dataset), json=spec).json()['task_id']}")
    content = json.dumps([{"media_id": first, "value": ["ann"]}])
    for wrong in ({"values": ("a.json", content)}, {"files[]": ("a.json", content)}):
        assert local.post(path, files=wrong).status_code == 422
    assert local.post(path, files={"file": ("a.json", content)}).status_code == 200
    assert ended(local, path)["status"] == "COMPLETED"
    assert dataset.field_values(first)[0].value == ["ann"]
    assert not list((layout_of(dataset).root / "service-uploads").iterdir())


def test_metadata__bodies_that_are_no_array(local: Client, dataset: Dataset) -> None:
    """What is no JSON array is refused, and the field still waits for its values."""
    path = url(dataset, f"/{local.post(url(dataset), json=FLOAT).json()['task_id']}")
    for body in (b"", b"{}", b"7", b"null", b'[{"media_id": ', b"[1]]", b"\xff\xfe", b"[" * 100_000, b"[1,]"):
        answer = local.post(path, content=body, headers={"Content-Type": "application/json"})
        assert answer.status_code == 422, body[:20]
        assert "service-uploads" not in answer.text
    assert local.get(f"{path}/status").json()["status"] == "INIT"
    assert local.post(path, json=[]).status_code == 200
    assert ended(local, path)["status"] == "COMPLETED"


@pytest.mark.slow
def test_metadata__definitions_that_are_refused(local: Client, workspace: Workspace, dataset: Dataset) -> None:
    """A definition follows the rules of the library, at once; so does the state of the dataset."""
    enum = {"field_name": "who", "field_type": "enum"}
    spec: Any
    for spec in (
        {}, {"field_name": "a"}, {"field_name": "", "field_type": "float"}, {"field_name": "x" * 256, **enum},
        {"field_name": "a", "field_type": "number"}, enum, {**enum, "enum_options": []},
        {**enum, "enum_options": ["x" * 21]}, {**enum, "enum_options": ["a", "a"]}, {**enum, "enum_options": "ab"},
        {**FLOAT, "enum_options": ["a"]}, {**FLOAT, "is_multi": 5}, {**FLOAT, "field_name": "labels"}, [],
    ):  # fmt: skip
        assert local.post(url(dataset), json=spec).status_code == 422, spec
    assert local.post(url(dataset), json={**FLOAT, "field_name": "x" * 255}).status_code == 200
    draft = workspace.create_draft("draft")
    assert local.post(url(draft), json=FLOAT).status_code == 409
    first = local.post(url(dataset), json=FLOAT).json()["task_id"]
    second = local.post(url(dataset), json=FLOAT).json()["task_id"]
    with all_threads_busy(workspace):
        assert local.post(url(dataset, f"/{first}"), json=[]).json()["status"] == "RUNNING"
        assert local.post(url(dataset), json={**FLOAT, "field_name": "b"}).status_code == 409
        assert local.post(url(dataset, f"/{second}"), json=[]).status_code == 409
    assert ended(local, url(dataset, f"/{first}"))["status"] == "COMPLETED"
    assert local.post(url(dataset, f"/{second}"), json=[]).status_code == 409
    assert [field.field_name for field in dataset.fields()] == ["weight"]


def test_metadata__tasks_of_others(open_client: Client, workspace: Workspace, hub: Hub, dataset: Dataset) -> None:
    """A task of another dataset, one of another type and one that does not exist are the same."""
    ann, other = open_client.bearer("ann"), workspace.create_draft("other")
    task_id = open_client.post(url(dataset), json=FLOAT, headers=ann).json()["task_id"]
    assert dataset.last_task is not None
    for of, found in ((other, task_id), (dataset, dataset.last_task.task_id), (dataset, NOWHERE), (dataset, "x")):
        for answer in (
            open_client.post(url(of, f"/{found}"), json=[], headers=ann),
            open_client.get(url(of, f"/{found}/status"), headers=ann),
        ):
            assert (answer.status_code, answer.json()["detail"]) == (404, "Custom metadata task not found")
    tenant = hub.tenants.create(OPERATOR, "others")
    hub.users.create(OPERATOR, "oto", PASSWORD, role=Role.ADMIN, tenant_id=tenant.id)
    oto = open_client.bearer("oto")
    for path in (url(dataset, f"/{task_id}/status"), f"/api/v1/datasets/{dataset.id}/custom_metadata/schema"):
        assert open_client.get(path, headers=oto).json()["detail"] == "Dataset not found"
        assert open_client.get(path).status_code == 401


@pytest.mark.slow
def test_metadata__definitions_wait_a_day(workspace: Workspace, dataset: Dataset) -> None:
    """A definition without values is forgotten after 24 hours; values that were sent stay."""
    with Hub(workspace) as hub:
        local = OPERATOR
        old = hub.metadata.define(local, dataset.id, "old", "float")
        filled = hub.metadata.define(local, dataset.id, "filled", "float")
        hub.metadata.fill(local, dataset.id, filled, [])
        wait_until(lambda: dataset.running_task is None)
        present = hub_context(hub).clock()
    with Hub(workspace, clock=lambda: present + KEPT + timedelta(minutes=1)) as later:
        with client_of(workspace, later, LOCAL) as client:
            assert client.post(url(dataset, f"/{old}"), json=[]).status_code == 404
            assert client.get(url(dataset, f"/{filled}/status")).json()["status"] == "COMPLETED"
        later.sweep()
        assert later.metadata.status(OPERATOR, dataset.id, filled).status == "COMPLETED"


def test_metadata__limit_of_the_body(workspace: Workspace, hub: Hub, dataset: Dataset) -> None:
    """A body beyond the limit is refused; up to it, it is read."""
    with client_of(workspace, hub, ServiceSettings(max_metadata_bytes=100)) as client:
        path = url(dataset, f"/{client.post(url(dataset), json=FLOAT).json()['task_id']}")
        headers = {"Content-Type": "application/json"}
        assert client.post(path, content=b"[" + b" " * 99 + b"]", headers=headers).status_code == 413
        assert client.post(path, content=b"[" + b" " * 98 + b"]", headers=headers).status_code == 200
        assert ended(client, path)["status"] == "COMPLETED"
