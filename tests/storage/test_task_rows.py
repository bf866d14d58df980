"""Rows of tasks, and detection of tasks whose process died."""

import subprocess
import sys
from datetime import timedelta

import pytest
import sqlalchemy as sa

from framedex.errors import Aborted, Conflict, NotFound
from framedex.records import DatasetStatus, TaskStatus, TaskType
from framedex.storage import datasets, task_rows
from framedex.storage.catalog import Catalog
from framedex.storage.owners import LEASE, this_process
from framedex.storage.schema import tasks
from framedex.storage.task_rows import TaskQuery


def insert(connection: sa.Connection, name: str) -> tuple[str, str]:
    """Add a dataset with a task and return both ids."""
    dataset_id = datasets.insert_dataset(connection, name, owned_by="me")
    record = datasets.find_dataset(connection, dataset_id)
    creation = TaskType.DATASET_CREATION
    return dataset_id, task_rows.insert_task(connection, record, task_type=creation, created_by="me")


def age(connection: sa.Connection, task_id: str, seconds: float) -> None:
    """Set a task's last heartbeat back in time."""
    then = datasets.now() - timedelta(seconds=seconds)
    connection.execute(tasks.update().where(tasks.c.id == task_id).values(heartbeat_at=then))


def test_task__from_start_to_end(catalog: Catalog) -> None:
    """A task starts, stores its progress and ends, with its times."""
    with catalog.write() as connection:
        dataset_id, task_id = insert(connection, "pets")
        started = task_rows.get_task(connection, task_id)
        assert (started.dataset_id, started.dataset_name, started.created_by) == (dataset_id, "pets", "me")
        assert (started.status, started.task_type) == (TaskStatus.INITIALIZING, TaskType.DATASET_CREATION)
        assert (started.progress_percentage, started.end_time, started.error_message) == (None, None, None)
        assert started.dataset_status == "INDEXING"
        task_rows.update_progress(connection, task_id, 10, "too early")
        assert task_rows.get_task(connection, task_id).progress_percentage is None
        task_rows.update_task(connection, task_id, status=TaskStatus.RUNNING)
        task_rows.update_progress(connection, task_id, 42, "reading images")
        running = task_rows.get_task(connection, task_id)
        assert (running.progress_percentage, running.status_message) == (42, "reading images")
        assert task_rows.is_busy(connection, dataset_id)
        task_rows.finish_task(connection, task_id, TaskStatus.COMPLETED, progress_percentage=100)
        done = task_rows.get_task(connection, task_id)
        assert (done.status, done.progress_percentage) == (TaskStatus.COMPLETED, 100)
        assert done.end_time is not None
        assert done.end_time >= done.start_time
        assert not task_rows.is_busy(connection, dataset_id)
        task_rows.update_progress(connection, task_id, 50, "late")
        assert task_rows.get_task(connection, task_id) == done


def test_running__says_what_is_under_way(catalog: Catalog) -> None:
    """The type of a waiting or running task is returned for its own dataset only, until it ends."""
    with catalog.write() as connection:
        dataset_id, task_id = insert(connection, "pets")
        other, _ = insert(connection, "other")
        task_rows.finish_task(connection, task_id, TaskStatus.COMPLETED)
        assert task_rows.running(connection, dataset_id) is None
        record = datasets.find_dataset(connection, dataset_id)
        addition = task_rows.insert_task(connection, record, task_type=TaskType.MEDIA_ADDITION, created_by="me")
        for status in (TaskStatus.INITIALIZING, TaskStatus.RUNNING):
            task_rows.update_task(connection, addition, status=status)
            assert task_rows.running(connection, dataset_id) == TaskType.MEDIA_ADDITION
        assert task_rows.running(connection, other) == TaskType.DATASET_CREATION
        task_rows.finish_task(connection, addition, TaskStatus.FAILED)
        assert task_rows.running(connection, dataset_id) is None


def test_get__unknown(catalog: Catalog) -> None:
    """The error for an unknown id names it."""
    with catalog.read() as connection, pytest.raises(NotFound, match="no task 'x'"):
        task_rows.get_task(connection, "x")


def test_list__newest_first_and_by_dataset(catalog: Catalog) -> None:
    """All tasks, or those of one dataset, are listed newest first."""
    with catalog.write() as connection:
        pairs = [insert(connection, name) for name in ("a", "b", "c")]
        assert [each.task_id for each in task_rows.list_tasks(connection)] == [task for _, task in pairs[::-1]]
        dataset_id, task_id = pairs[1]
        assert [each.task_id for each in task_rows.list_tasks(connection, TaskQuery({"dataset_id": dataset_id}))] == [
            task_id
        ]
        assert task_rows.list_tasks(connection, TaskQuery({"dataset_id": "x"})) == []


def test_task__outlives_its_dataset(catalog: Catalog) -> None:
    """Tasks of a deleted dataset stay listed."""
    with catalog.write() as connection:
        dataset_id, task_id = insert(connection, "pets")
        datasets.remove_dataset(connection, dataset_id)
        record = task_rows.get_task(connection, task_id)
    assert (record.dataset_name, record.dataset_status) == ("pets", "DELETED")


@pytest.mark.parametrize("status", [TaskStatus.INITIALIZING, TaskStatus.RUNNING])
def test_interrupted__old_heartbeats_fail(catalog: Catalog, status: TaskStatus) -> None:
    """A task without a recent heartbeat is failed as interrupted, and its dataset marked; others continue."""
    with catalog.write() as connection:
        dead_dataset, dead = insert(connection, "dead")
        alive_dataset, alive = insert(connection, "alive")
        for each in (dead, alive):
            task_rows.update_task(connection, each, status=status, owner="other-host:1:2:3")
        assert not task_rows.has_interrupted(connection)
        assert task_rows.fail_interrupted(connection) == 0
        age(connection, dead, LEASE.total_seconds() + 1)
        age(connection, alive, LEASE.total_seconds() - 5)
        assert task_rows.has_interrupted(connection)
        assert task_rows.fail_interrupted(connection) == 1
        assert not task_rows.has_interrupted(connection)
        record = task_rows.get_task(connection, dead)
        assert (record.status, record.error_message) == (TaskStatus.FAILED, "interrupted")
        assert record.end_time is not None
        assert record.dataset_status == "ERROR"
        assert datasets.find_dataset(connection, dead_dataset).status_new is DatasetStatus.ERROR
        assert task_rows.get_task(connection, alive).status is status
        assert datasets.find_dataset(connection, alive_dataset).status_new is DatasetStatus.INDEXING


@pytest.mark.parametrize("status", [TaskStatus.COMPLETED, TaskStatus.FAILED, TaskStatus.ABORTED])
def test_interrupted__what_is_done_stays_done(catalog: Catalog, status: TaskStatus) -> None:
    """A task that ended long ago is not failed as interrupted."""
    with catalog.write() as connection:
        _, task_id = insert(connection, "pets")
        task_rows.finish_task(connection, task_id, status)
        age(connection, task_id, 10**6)
        assert task_rows.fail_interrupted(connection) == 0
        assert task_rows.get_task(connection, task_id).status is status


def test_check_owned__refuses_what_was_given_up(catalog: Catalog) -> None:
    """Only the process that owns a running task can commit its result, and not after an abort request."""
    with catalog.write() as connection:
        _, task_id = insert(connection, "pets")
        task_rows.check_owned(connection, task_id)
        assert task_rows.is_own(connection, task_id)
        task_rows.request_abort(connection, task_id)
        assert task_rows.is_abort_requested(connection, task_id)
        with pytest.raises(Aborted):
            task_rows.check_owned(connection, task_id)
        task_rows.restart_task(connection, task_id)
        task_rows.check_owned(connection, task_id)
        task_rows.update_task(connection, task_id, owner="there:2:3:4")
        assert not task_rows.is_own(connection, task_id)
        with pytest.raises(Conflict, match="was given up"):
            task_rows.check_owned(connection, task_id)
        age(connection, task_id, 10**6)
        task_rows.fail_interrupted(connection)
        with pytest.raises(Conflict, match="given up as FAILED"):
            task_rows.check_owned(connection, task_id)
        with pytest.raises(Conflict, match="it is FAILED"):
            task_rows.request_abort(connection, task_id)


def test_interrupted__process_of_this_machine_is_gone(catalog: Catalog) -> None:
    """A task of a dead process of this machine is failed at once; one of another machine after its lease."""
    ended = subprocess.run(
        [sys.executable, "-c", "from framedex.storage.owners import this_process; print(this_process())"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    with catalog.write() as connection:
        (_, gone), (_, elsewhere), (_, own) = (insert(connection, name) for name in ("gone", "elsewhere", "own"))
        task_rows.update_task(connection, gone, owner=ended)
        host, pid, started, namespace = this_process().split(":", 3)
        for other in (f"other-host:1:2:{namespace}", f"{host}:1:2:pid:[1]", "from an older version:1"):
            task_rows.update_task(connection, elsewhere, owner=other)
            assert task_rows.get_task(connection, elsewhere).status is TaskStatus.INITIALIZING
        assert task_rows.fail_interrupted(connection) == 1
        assert task_rows.get_task(connection, gone).error_message == "interrupted"
        assert {task_rows.get_task(connection, each).status for each in (elsewhere, own)} == {TaskStatus.INITIALIZING}
        task_rows.update_task(connection, own, owner=f"{host}:{pid}:{int(started) - 1}:{namespace}")
        assert task_rows.fail_interrupted(connection) == 1  # the process id was reused
