"""Tasks over HTTP: the list and its filters, of what the user may see; abort and retry."""

import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from framedex import Dataset, Workspace
from framedex.hub import Hub
from framedex.records import TaskStatus, TaskType
from framedex.service.server_paths import without_folders
from framedex.storage import datasets, task_rows
from framedex.storage.schema import tasks
from tests.failures import failing
from tests.gallery import fill
from tests.inside import catalog_of
from tests.prepared import prepared
from tests.service.client import OWN, Client
from tests.service.users import OPERATOR
from tests.tasks.test_runner import submit

TASKS = "/api/v1/tasks"
NOWHERE = "00000000-0000-0000-0000-0000000000aa"


@pytest.fixture
def dataset(workspace: Workspace, tmp_path: Path) -> Dataset:
    """A dataset of three images."""
    return prepared(workspace, "pets", fill(tmp_path / "few", 3))


@pytest.mark.slow
def test_tasks__of_the_local_user(local: Client, dataset: Dataset) -> None:
    """The list has the fields of the interface, and its filters select."""
    page = local.get(TASKS).json()
    assert (page["total"], page["page"], page["page_size"]) == (1, 1, 20)
    (task,) = page["tasks"]
    assert task["dataset_id"] == dataset.id
    assert (task["task_type"], task["status"], task["dataset_status"]) == ("DATASET_CREATION", "COMPLETED", "READY")
    same = {
        "dataset_id": dataset.id,
        "dataset_name": "pets",
        "created_by": task["created_by"],
        "task_status": "COMPLETED",
    }
    assert local.get(TASKS, params=same).json() == page
    for name, value in (
        ("task_status", "FAILED"), ("task_type", "REINDEX"), ("dataset_id", NOWHERE), ("dataset_name", "cats"),
        ("created_by", "nobody"), ("start_time_from", "2100-01-01"), ("start_time_to", "2000-01-01T00:00:00Z"),
    ):  # fmt: skip
        assert local.get(TASKS, params={name: value}).json()["tasks"] == [], name
    assert local.get(f"{TASKS}/filters").json() == {
        "dataset_names": ["pets"],
        "dataset_ids": [dataset.id],
        "task_types": ["DATASET_CREATION"],
        "created_by": [task["created_by"]],
    }


@pytest.mark.slow
def test_tasks__are_sorted_and_paged(local: Client, workspace: Workspace, dataset: Dataset) -> None:
    """Tasks are sorted by a field, either way; the pages are all tasks, each once; values are those of a time."""
    kinds = [TaskType.REINDEX, TaskType.ENRICHMENT, TaskType.CUSTOM_METADATA, TaskType.REINDEX, TaskType.ENRICHMENT]
    with catalog_of(workspace).write() as connection:
        record = datasets.find_dataset(connection, dataset.id)
        for number, kind in enumerate(kinds):
            task_id = task_rows.insert_task(connection, record, task_type=kind, created_by=f"user{number}")
            task_rows.finish_task(connection, task_id, TaskStatus.COMPLETED)
            time = datetime(2020, 1, 1 + number, tzinfo=UTC)
            connection.execute(tasks.update().where(tasks.c.id == task_id).values(start_time=time))

    def values(name: str, **params: Any) -> list[Any]:
        return [each[name] for each in local.get(TASKS, params=params).json()["tasks"]]

    newest = values("task_id", page_size=50)
    assert values("start_time") == sorted(values("start_time"), reverse=True)
    assert values("task_id", sort_order="asc") == newest[::-1]
    assert values("task_type", sort_by="task_type", sort_order="asc") == sorted(values("task_type"))
    assert values("created_by", sort_by="created_by") == sorted(values("created_by"), reverse=True)
    pages = [values("task_id", page=page, page_size=5) for page in (1, 2, 3)]
    assert ([len(each) for each in pages], [each for page in pages for each in page]) == ([5, 1, 0], newest)
    bounds = {"start_time_from": "2020-01-02T00:00:00Z", "start_time_to": "2020-01-04T00:00:00Z"}
    assert values("created_by", **bounds) == ["user3", "user2", "user1"]
    assert local.get(f"{TASKS}/filters", params=bounds).json()["created_by"] == ["user1", "user2", "user3"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("dataset_id", "pets"),
        ("page", "0"),
        ("page", "one"),
        ("page_size", "4"),
        ("page_size", "51"),
        ("sort_by", "progress"),
        ("sort_order", "up"),
        ("task_status", "DONE"),
        ("task_type", "WORK"),
        ("start_time_from", "yesterday"),
    ],
)
def test_tasks__with_bad_parameters(local: Client, name: str, value: str) -> None:
    """A parameter out of range is a 422 with a sentence."""
    answer = local.get(TASKS, params={name: value})
    assert answer.status_code == 422, answer.text
    assert isinstance(answer.json()["detail"], str)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "value"), [("page_size", "5"), ("page_size", "50"), ("page", str(2**31))])
def test_tasks__at_the_limits(local: Client, name: str, value: str) -> None:
    """The limits themselves are allowed."""
    assert local.get(TASKS, params={name: value}).status_code == 200


def test_tasks__hides_those_of_other_datasets(open_client: Client, hub: Hub, dataset: Dataset) -> None:
    """A user who may not view a dataset sees none of its tasks, not even as a value of a filter."""
    hub.datasets.adopt(dataset.id, _other_tenant(hub), None)
    open_client.log_in("vic")
    assert open_client.get(TASKS).json()["total"] == 0
    assert open_client.get(f"{TASKS}/filters").json()["dataset_names"] == []
    task_id = dataset.last_task.task_id if dataset.last_task is not None else ""
    hidden = open_client.post(f"{TASKS}/{task_id}/abort", headers=OWN)
    missing = open_client.post(f"{TASKS}/00000000-0000-0000-0000-0000000000aa/abort", headers=OWN)
    assert (hidden.status_code, hidden.json()["detail"]) == (404, "Task not found")
    assert (missing.status_code, missing.json()["detail"]) == (404, "Task not found")


def test_tasks__of_a_deleted_dataset(open_client: Client, hub: Hub, workspace: Workspace, dataset: Dataset) -> None:
    """Of a deleted dataset, the admin sees all tasks, others those that they started."""
    workspace.acting_as("eve@example.org").dataset(dataset.id).clone(wait=True)
    copy = next(each for each in workspace.datasets() if each.id != dataset.id)
    for each in (dataset.id, copy.id):
        workspace.delete_dataset(each)
    seen = {}
    for name in ("ann", "eve", "vic"):
        seen[name] = [task["dataset_name"] for task in open_client.log_in(name).get(TASKS).json()["tasks"]]
    assert seen == {"ann": ["pets (cloned)", "pets"], "eve": ["pets (cloned)"], "vic": []}


def test_abort_and_retry__of_tasks_that_ended(open_client: Client, dataset: Dataset) -> None:
    """A viewer may do neither; an editor learns that a completed task can be neither aborted nor retried."""
    assert dataset.last_task is not None
    task_id = dataset.last_task.task_id
    open_client.log_in("vic")
    assert open_client.get(TASKS).json()["total"] == 1
    assert open_client.post(f"{TASKS}/{task_id}/abort", headers=OWN).status_code == 403
    assert open_client.post(f"{TASKS}/{task_id}/retry", headers=OWN).status_code == 403
    open_client.log_in("eve")
    assert open_client.post(f"{TASKS}/{task_id}/abort", headers=OWN).status_code == 409
    retried = open_client.post(f"{TASKS}/{task_id}/retry", headers=OWN)
    assert (retried.status_code, retried.json()["code"]) == (400, "not_retryable")


def test_abort__in_the_commit_phase(local: Client, workspace: Workspace) -> None:
    """A task that commits is not aborted: that is a conflict with a sentence, and the task completes."""
    started, go = threading.Event(), threading.Event()

    def commit(_connection: Any) -> None:
        started.set()
        assert go.wait(60)

    task = submit(workspace, "committing", lambda _report: commit)
    assert started.wait(60)
    try:
        answer = local.post(f"{TASKS}/{task.id}/abort")
    finally:
        go.set()
    assert (answer.status_code, answer.json()["code"]) == (409, "conflict")
    assert "commit phase" in answer.json()["detail"]
    assert task.wait(60).status == "COMPLETED"


def test_filters__have_the_values_that_occur(local: Client, workspace: Workspace, dataset: Dataset) -> None:
    """Names and ids of datasets, types and users occur once each, of all tasks or of those that began in a time."""
    draft = workspace.create_draft("draft")
    with catalog_of(workspace).write() as connection:
        for number, kind in enumerate((TaskType.REINDEX, TaskType.REINDEX, TaskType.ENRICHMENT)):
            record = datasets.find_dataset(connection, draft.id)
            task_id = task_rows.insert_task(connection, record, task_type=kind, created_by=f"user{number % 2}")
            task_rows.finish_task(connection, task_id, TaskStatus.COMPLETED)
            time = datetime(2020, 1, 1 + number, tzinfo=UTC)
            connection.execute(tasks.update().where(tasks.c.id == task_id).values(start_time=time))
    of_all = local.get(f"{TASKS}/filters").json()
    assert of_all == {
        "dataset_names": ["draft", "pets"],
        "dataset_ids": sorted([draft.id, dataset.id]),
        "task_types": ["DATASET_CREATION", "ENRICHMENT", "REINDEX"],
        "created_by": sorted(["user0", "user1", workspace.user]),
    }
    early = local.get(f"{TASKS}/filters", params={"start_time_to": "2020-01-02T00:00:00Z"}).json()
    assert early == {
        "dataset_names": ["draft"], "dataset_ids": [draft.id], "task_types": ["REINDEX"],
        "created_by": ["user0", "user1"],
    }  # fmt: skip
    between = {"start_time_from": "2020-01-03T00:00:00Z", "start_time_to": "2020-01-04"}
    assert local.get(f"{TASKS}/filters", params=between).json()["task_types"] == ["ENRICHMENT"]
    none = local.get(f"{TASKS}/filters", params={"start_time_from": "2100-01-01"}).json()
    assert none == {name: [] for name in of_all}


def test_retry__of_a_failed_task(local: Client, workspace: Workspace, dataset: Dataset) -> None:
    """A retried task is INITIALIZING in the answer, and completes."""
    with failing("framedex.operations.snapshots.restore", error=OSError("the disk is on fire")):
        task = dataset.restore("current", wait=False)
        with pytest.raises(Exception, match="on fire"):
            task.wait()
    listed = local.get(TASKS, params={"task_status": "FAILED"}).json()["tasks"]
    assert [each["task_id"] for each in listed] == [task.id]
    assert "on fire" in listed[0]["error_message"]
    assert local.post(f"{TASKS}/{task.id}/abort").status_code == 409
    answer = local.post(f"{TASKS}/{task.id}/retry")
    assert (answer.status_code, answer.json()["status"]) == (200, "INITIALIZING")
    assert answer.json()["error_message"] is None
    assert workspace.task(task.id).wait().status == "COMPLETED"


def test_tasks__needs_a_log_in(open_client: Client) -> None:
    """Nobody sees a task without a log-in."""
    assert open_client.get(TASKS).status_code == 401
    assert open_client.get(f"{TASKS}/filters").status_code == 401
    assert open_client.post(f"{TASKS}/x/abort", headers=OWN).status_code == 401


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("cannot read '/srv/photos of us/a.jpg': gone", "cannot read '…/a.jpg': gone"),
        ("cannot read /srv/photos/a.jpg: gone", "cannot read …/a.jpg: gone"),
        ("cannot read file:///srv/photos/a.jpg", "cannot read …/a.jpg"),
        ("s3://bucket/folder/a.jpg is missing", "s3://bucket/folder/a.jpg is missing"),
        ("photos/cats/a.jpg and 1/2 of 3/4", "photos/cats/a.jpg and 1/2 of 3/4"),
    ],
)
def test_without_folders__keeps_the_name_only(message: str, shown: str) -> None:
    """Absolute paths lose their folders; URIs of buckets, and paths within a source, stay."""
    assert without_folders(message) == shown


def _other_tenant(hub: Hub) -> str:
    organization = hub.tenants.create_organization(OPERATOR, "others")
    return hub.tenants.create(OPERATOR, "others", organization_id=organization.id).id
