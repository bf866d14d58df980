"""Lists of tasks as the interface has them, and tasks of other processes."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from framedex import Aborted, Conflict, InvalidInput, NotFound, NotRetryable, TaskFailed, Workspace
from framedex.records import DatasetStatus, TaskPage, TaskStatus, TaskType
from framedex.storage import datasets, task_rows
from framedex.storage.schema import tasks
from tests.gallery import SETTINGS, embedded, fill
from tests.growth import part, status_of
from tests.inside import catalog_of
from tests.processes import finish, start

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
def busy(workspace: Workspace) -> Workspace:
    """A workspace with 24 tasks of three datasets, an hour apart."""
    with catalog_of(workspace).write() as connection:
        for number, name in enumerate(["ants", "bees", "cats"]):
            record = datasets.find_dataset(connection, datasets.insert_dataset(connection, name, owned_by="me"))
            for turn in range(8):
                place = 3 * turn + number
                kind = TaskType.DATASET_CREATION if turn == 0 else TaskType.MEDIA_ADDITION
                task_id = task_rows.insert_task(connection, record, task_type=kind, created_by=f"user{place % 2}")
                status = TaskStatus.FAILED if place % 4 == 0 else TaskStatus.COMPLETED
                task_rows.finish_task(connection, task_id, status)
                row = tasks.update().where(tasks.c.id == task_id)
                connection.execute(row.values(start_time=NOON + timedelta(hours=place)))
    return workspace


def hours(page: TaskPage) -> list[int]:
    """Return when the tasks of a page began, in hours after noon."""
    return [round((task.start_time - NOON) / timedelta(hours=1)) for task in page.tasks]


def test_tasks__pages_make_the_whole(busy: Workspace) -> None:
    """The newest come first; the pages together are all tasks, each once; a page behind the last is empty."""
    first = busy.tasks()
    assert (first.total, first.page, first.page_size, hours(first)) == (24, 1, 20, [*range(23, 3, -1)])
    assert hours(busy.tasks(page=2)) == [3, 2, 1, 0]
    assert (busy.tasks(page=3).tasks, busy.tasks(page=3).total) == ([], 24)
    for size in (5, 7, 50):
        pages = [busy.tasks(page=number, page_size=size) for number in range(1, 6)]
        assert [hour for page in pages for hour in hours(page)] == [*range(23, -1, -1)]


@pytest.mark.slow
@pytest.mark.parametrize("column", ["status", "task_type", "dataset_name", "dataset_id", "created_by", "start_time"])
def test_tasks__sorted(busy: Workspace, column: str) -> None:
    """They can be sorted by each field, either way, and pages of equal values have no gaps."""
    ascending = busy.tasks(sort_by=column, sort_order="asc", page_size=50)
    values = [getattr(task, column) for task in ascending.tasks]
    assert values == sorted(values)
    falling = busy.tasks(sort_by=column, page_size=50)
    assert [getattr(task, column) for task in falling.tasks] == sorted(values, reverse=True)
    parts = [busy.tasks(sort_by=column, sort_order="asc", page=number, page_size=5) for number in range(1, 6)]
    assert [task for page in parts for task in page.tasks] == ascending.tasks


@pytest.mark.slow
@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"dataset_name": "bees"}, [*range(1, 24, 3)]),
        ({"task_type": "DATASET_CREATION"}, [0, 1, 2]),
        ({"task_type": TaskType.MEDIA_ADDITION, "dataset_name": "ants"}, [*range(3, 24, 3)]),
        ({"status": "FAILED"}, [*range(0, 24, 4)]),
        ({"created_by": "user1", "status": "COMPLETED"}, [*range(1, 24, 2)]),
        ({"created_by": "nobody"}, []),
        ({"start_time_from": "2026-03-01T14:00:00Z", "start_time_to": NOON + timedelta(hours=4)}, [2, 3, 4]),
        ({"start_time_from": "2026-03-02T11:00:00+01:00"}, [22, 23]),
        ({"start_time_to": "2026-03-01T12:30:00"}, [0]),
        ({"dataset_id": None, "status": None}, [*range(24)]),
    ],
)
def test_tasks__filtered(busy: Workspace, query: dict[str, Any], expected: list[int]) -> None:
    """Filters combine; bounds of time are included; times without a zone are UTC."""
    page = busy.tasks(**query, sort_order="asc", page_size=50)
    assert (hours(page), page.total) == (expected, len(expected))


def test_tasks__of_a_dataset(busy: Workspace) -> None:
    """A dataset's id picks its tasks."""
    record = busy.dataset("cats").info
    assert {task.dataset_name for task in busy.tasks(dataset_id=record.id).tasks} == {"cats"}


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ({"page": 0}, "page must be a whole number from 1, not 0"),
        ({"page": 1.5}, "page must be"),
        ({"page": True}, "page must be"),
        ({"page_size": 4}, "page_size must be a whole number from 5 to 50, not 4"),
        ({"page_size": 51}, "from 5 to 50, not 51"),
        ({"page_size": "20"}, "page_size must be"),
        ({"sort_by": "end_time"}, "sort_by must be one of start_time, .*, not 'end_time'"),
        ({"sort_order": "up"}, "sort_order must be one of asc, desc, not 'up'"),
        ({"task_type": "CREATION"}, "task_type must be one of DATASET_CREATION, .*, not 'CREATION'"),
        ({"status": "DONE"}, "status must be one of INITIALIZING, .*, not 'DONE'"),
        ({"start_time_from": "yesterday"}, "start_time_from must be a time as in .*, not 'yesterday'"),
        ({"start_time_to": 5}, "start_time_to must be a time"),
        ({"dataset_name": 3}, "dataset_name must be text, not 3"),
        ({"name": "ants"}, "cannot be filtered by 'name'; there are: dataset_id, dataset_name"),
    ],
)
def test_tasks__wrong_query(busy: Workspace, query: dict[str, Any], message: str) -> None:
    """A value outside of its range is an error that says what would be right."""
    with pytest.raises(InvalidInput, match=message):
        busy.tasks(**query)


def test_task_filters__what_occurs(busy: Workspace) -> None:
    """The values that tasks of a time have, each once."""
    found = busy.task_filters()
    assert found.dataset_names == ["ants", "bees", "cats"]
    assert found.dataset_ids == sorted(record.id for record in busy.datasets())
    assert found.task_types == ["DATASET_CREATION", "MEDIA_ADDITION"]
    assert found.created_by == ["user0", "user1"]
    early = busy.task_filters(start_time_to=NOON + timedelta(hours=1))
    assert (early.dataset_names, early.task_types) == (["ants", "bees"], ["DATASET_CREATION"])
    assert busy.task_filters("2027-01-01").model_dump() == {
        "dataset_names": [], "dataset_ids": [], "task_types": [], "created_by": [],
    }  # fmt: skip


@pytest.mark.slow
def test_task__of_another_process(tmp_path: Path) -> None:
    """A task that another process runs can be looked at, waited for and aborted here."""
    outcomes = []
    with Workspace(tmp_path / "w", settings=SETTINGS) as workspace:
        dataset = workspace.create_dataset("pets", part([[1, 0], [0, 1]]))
        for aborts in (True, False):
            other = start(WAITER, tmp_path / "w", aborts)
            assert other.stdout is not None
            assert other.stdin is not None
            task = workspace.task(other.stdout.readline().strip())
            assert task.status is TaskStatus.RUNNING
            assert task.progress_percentage is not None
            assert status_of(dataset) is DatasetStatus.READ_ONLY
            with pytest.raises(TimeoutError, match=task.id):
                task.wait(0.01)
            with pytest.raises(NotRetryable, match="is RUNNING; only FAILED and ABORTED"):
                task.retry()
            if aborts:
                assert task.abort().status is TaskStatus.ABORTED
                with pytest.raises(Aborted):
                    task.wait()
                with pytest.raises(Conflict, match="cannot be aborted: it is ABORTED"):
                    task.abort()
            other.stdin.write("\n")
            other.stdin.flush()
            outcomes.append(finish(other).strip())
            if not aborts:
                assert task.wait(60).status is TaskStatus.COMPLETED
            assert status_of(dataset) is DatasetStatus.READY
    assert outcomes == ["Aborted", "done"]


WAITER = """
    import sys, framedex
    from tests.pauses import Pause, watched

    with framedex.Workspace(sys.argv[1]) as workspace:
        dataset = workspace.dataset("pets")
        pause = Pause("restoring")
        dataset.snapshots()
        dataset.restore("current")
        task = watched(workspace, lambda: dataset.restore("current", wait=False), pause)
        assert pause.reached.wait(60)
        print(task.id, flush=True)
        if sys.argv[2] == "True":  # until the request to stop has come
            from tests.pauses import run_of
            assert run_of(task).progress.cancelled.wait(60)
            pause.opened.set()
            sys.stdin.readline()
        else:
            sys.stdin.readline()
            pause.opened.set()
        try:
            task.wait(60)
            print("done")
        except framedex.Aborted:
            print("Aborted")
"""


@pytest.mark.slow
def test_task__whose_process_died(tmp_path: Path) -> None:
    """A task of a process that was killed is FAILED at the next look, the dataset usable; what waits for it is told."""
    with Workspace(tmp_path / "w", settings=SETTINGS) as workspace:
        dataset = workspace.create_dataset("pets", part([[1, 0], [0, 1]]))
        other = start(WAITER, tmp_path / "w", False)
        assert other.stdout is not None
        task = workspace.task(other.stdout.readline().strip())
        other.kill()
        other.communicate()
        with pytest.raises(TaskFailed, match="interrupted"):
            task.wait(60)
        assert (task.record.error_message, status_of(dataset)) == ("interrupted", DatasetStatus.READY)
        assert task.retry().status in (TaskStatus.INITIALIZING, TaskStatus.RUNNING, TaskStatus.COMPLETED)
        assert task.wait(60).status is TaskStatus.COMPLETED


def test_task__unknown(workspace: Workspace) -> None:
    """An id that is none is an error that names it."""
    with pytest.raises(NotFound, match="no task 'x'"):
        workspace.task("x")


def test_retry__of_a_source_that_only_its_process_had(tmp_path: Path) -> None:
    """A task whose source was an object of another process cannot be retried here, and says so."""
    with Workspace(tmp_path / "w", settings=SETTINGS) as workspace:
        bad = workspace.create_dataset("bad", embedded([[1, 0], [float("nan"), 0]]), wait=False)
        assert bad.task is not None
        with pytest.raises(InvalidInput):
            bad.task.wait(60)
        task_id = bad.task.id
    with Workspace(tmp_path / "w", settings=SETTINGS) as workspace:
        with pytest.raises(NotRetryable, match="an object of another process"):
            workspace.task(task_id).retry()
        fill(tmp_path / "p", 2)


def test_tasks__arguments_are_typed(workspace: Workspace) -> None:
    """A misspelt argument is found by type checkers, and refused with those that there are."""
    with pytest.raises(InvalidInput, match="tasks cannot be filtered by 'statuss'; there are: dataset_id"):
        workspace.tasks(statuss="FAILED")  # type: ignore[call-arg] # the ignore is used only if mypy sees it
