"""Several processes at one workspace: one reads while another writes, and one dies."""

import json
import os
import signal
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa

from framedex import Conflict, Dataset, Workspace
from framedex.records import DatasetStatus, TaskStatus
from framedex.storage import schema
from tests.gallery import SETTINGS, embedded, fill
from tests.growth import GROUPS, columns_of, families, part, summary_of
from tests.inside import catalog_of
from tests.processes import finish, start

WRITER = """
    import sys, framedex
    table = {"uri": [f"{n}.jpg" for n in range(200)], "embedding": [[float(n % 7), 1.0] for n in range(200)]}
    with framedex.Workspace(sys.argv[1]) as workspace:
        for number in range(12):
            workspace.create_dataset(f"new{number}", table)
            if number % 2:
                workspace.delete_dataset(f"new{number - 1}")
"""
READER = """
    import sys, framedex
    with framedex.Workspace(sys.argv[1], read_only=sys.argv[2] == "True") as workspace:
        print("ready", flush=True)
        rounds, seen = 0, set()
        sys.stdin.readline()
        while "new11" not in seen:
            dataset = workspace.dataset("first")
            assert dataset.count() == 3 and len(dataset.explore().clusters) == 3, dataset.info
            seen |= {info.display_name for info in workspace.datasets() if info.status_new == "READY"}
            rounds += 1
        print(rounds)
"""
CREATOR = """
    import sys, framedex
    from tests.gallery import Gate

    gate = Gate()
    workspace = framedex.Workspace(sys.argv[1])
    dataset = workspace.create_dataset("pets", sys.argv[2], gate, wait=False)
    assert gate.reached.wait(60)
    print(dataset.id, flush=True)
    sys.stdin.readline()
"""


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.slow
def test_reader__beside_a_writer(tmp_path: Path, read_only: bool) -> None:
    """While one process makes and deletes datasets, another one explores and counts without an error."""
    with Workspace(tmp_path) as workspace:
        workspace.create_dataset("first", embedded([[1, 0, 0], [0, 1, 0], [0, 0, 1]]))
        reader = start(READER, tmp_path, read_only)
        assert reader.stdout is not None
        assert reader.stdin is not None
        assert reader.stdout.readline() == "ready\n"
        reader.stdin.write("\n")
        reader.stdin.flush()
        finish(start(WRITER, tmp_path))
        assert int(finish(reader)) > 1
        assert len(workspace.datasets()) == 7


@pytest.mark.slow
def test_create_dataset__by_two_processes_at_once(tmp_path: Path) -> None:
    """Of processes that make datasets of one name at the same time one wins; the others get a Conflict."""
    Workspace(tmp_path).close()
    code = """
        import sys, framedex
        table = {"uri": ["a", "b"], "embedding": [[1.0, 0.0], [0.0, 1.0]]}
        with framedex.Workspace(sys.argv[1]) as workspace:
            print("ready", flush=True)
            sys.stdin.readline()
            for number in range(5):
                try:
                    workspace.create_dataset(f"pets{number}", table)
                    print("won")
                except framedex.Conflict:
                    print("conflict")
    """
    processes = [start(code, tmp_path) for _ in range(3)]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    outcomes = [finish(process).split() for process in processes]
    assert [sorted(outcome) for outcome in zip(*outcomes, strict=True)] == [["conflict", "conflict", "won"]] * 5
    with Workspace(tmp_path) as workspace:
        assert {info.status_new for info in workspace.datasets()} == {DatasetStatus.READY}
        assert len(list((tmp_path / "datasets").iterdir())) == len(workspace.datasets()) == 5


@pytest.mark.slow
def test_open__by_several_processes_at_once(tmp_path: Path) -> None:
    """Processes that open the same new folder at the same time all find one workspace there."""
    code = """
        import sys, framedex
        print("ready", flush=True)
        for line in sys.stdin:
            with framedex.Workspace(line.strip()) as workspace:
                print(len(workspace.datasets()), flush=True)
    """
    processes = [start(code) for _ in range(4)]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for number in range(6):
        for process in processes:
            assert process.stdin is not None
            process.stdin.write(f"{tmp_path / str(number)}\n")
            process.stdin.flush()
        for process in processes:
            assert process.stdout is not None
            process.stdout.readline()
    assert [finish(process) for process in processes] == [""] * 4
    for number in range(6):
        # Of two processes that close the catalog at the same moment, each leaves SQLite's log to the other.
        Workspace(tmp_path / str(number)).close()
        assert {entry.name for entry in (tmp_path / str(number)).iterdir()} == {
            "catalog.db", "catalog.db-reserve", "datasets", "framedex.toml",
        }  # fmt: skip


def kill_while_creating(workspace: Path, images: Path) -> str:
    """Kill a process in the middle of making the dataset ``pets`` and return the dataset's id."""
    process = start(CREATOR, workspace, images)
    assert process.stdout is not None
    dataset_id = process.stdout.readline().strip()
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    return dataset_id


def let_heartbeats_grow_old(workspace: Workspace) -> None:
    with catalog_of(workspace).write() as connection:
        connection.execute(schema.tasks.update().values(heartbeat_at=datetime.now(UTC) - timedelta(minutes=5)))


@pytest.mark.slow
def test_killed_process__its_task_is_interrupted(tmp_path: Path, folder: Path) -> None:
    """After kill -9 the workspace opens; the task is FAILED at once, and its dataset ERROR."""
    dataset_id = kill_while_creating(tmp_path / "ws", folder)
    with Workspace(tmp_path / "ws", settings=SETTINGS) as workspace:
        (task,) = workspace.tasks().tasks
        assert (task.dataset_id, task.status, task.error_message) == (dataset_id, TaskStatus.FAILED, "interrupted")
        assert task.end_time is not None
        assert workspace.dataset("pets").info.status_new is DatasetStatus.ERROR
        with pytest.raises(Conflict, match="ERROR"):
            workspace.dataset("pets").explore()
        with pytest.raises(Conflict, match="'pets'"):
            workspace.create_dataset("pets", folder)
        workspace.delete_dataset("pets")
        assert list((workspace.path / "datasets").iterdir()) == []
        assert workspace.create_dataset("pets", folder).count() == 6


@pytest.mark.slow
def test_killed_process__of_another_machine(tmp_path: Path, folder: Path) -> None:
    """Only the heartbeat shows that a process on another machine is alive; until it is old, its task runs."""
    process = start(CREATOR, tmp_path / "ws", folder)
    assert process.stdout is not None
    process.stdout.readline()
    with Workspace(tmp_path / "ws", settings=SETTINGS) as workspace:
        with catalog_of(workspace).write() as connection:
            connection.execute(schema.tasks.update().values(owner="elsewhere:1:2:3"))
        process.kill()
        process.communicate()
        assert [task.status for task in workspace.tasks().tasks] == [TaskStatus.RUNNING]
        with pytest.raises(Conflict, match="INDEXING"):
            workspace.dataset("pets").explore()
        with pytest.raises(Conflict, match="under way"):
            workspace.delete_dataset("pets")
        let_heartbeats_grow_old(workspace)
        assert [task.error_message for task in workspace.tasks().tasks] == ["interrupted"]
        assert workspace.dataset("pets").info.status_new is DatasetStatus.ERROR


@pytest.mark.slow
def test_killed_process__is_noticed_at_opening(tmp_path: Path, folder: Path) -> None:
    """A task that was interrupted long ago is FAILED as soon as the workspace is opened, whatever is asked first."""
    kill_while_creating(tmp_path / "ws", folder)
    with Workspace(tmp_path / "ws") as workspace:
        let_heartbeats_grow_old(workspace)
    with Workspace(tmp_path / "ws") as workspace:
        assert [info.status_new for info in workspace.datasets()] == [DatasetStatus.ERROR]
        assert "ERROR" in repr(workspace.dataset("pets"))
        assert "ERROR" in workspace.dataset("pets")._repr_html_()


@pytest.mark.slow
def test_killed_process__other_datasets_are_whole(tmp_path: Path, folder: Path) -> None:
    """A process that dies harms no dataset that was finished before."""
    with Workspace(tmp_path / "ws", settings=SETTINGS) as workspace:
        kept = workspace.create_dataset("kept", folder).explore()
    kill_while_creating(tmp_path / "ws", fill(tmp_path / "more", 3))
    with Workspace(tmp_path / "ws", settings=SETTINGS) as workspace:
        assert workspace.dataset("kept").explore() == kept


@pytest.mark.slow
def test_given_up_task__commits_nothing(tmp_path: Path, folder: Path) -> None:
    """A task that was given up while its process slept does not commit when the process goes on."""
    code = """
        import sys, framedex
        from tests.gallery import Gate

        gate = Gate()
        with framedex.Workspace(sys.argv[1]) as workspace:
            dataset = workspace.create_dataset("pets", sys.argv[2], gate, wait=False)
            assert gate.reached.wait(60)
            print("waits", flush=True)
            sys.stdin.readline()
            gate.opened.set()
            try:
                dataset.task.wait()
            except framedex.Conflict as error:
                print("given up" in str(error), dataset.info.status_new)
    """
    process = start(code, tmp_path / "ws", folder)
    assert process.stdout is not None
    assert process.stdout.readline() == "waits\n"
    with Workspace(tmp_path / "ws") as workspace:
        # A heartbeat may come between; so the task is given up here as the scan of another process would.
        with catalog_of(workspace).write() as connection:
            connection.execute(schema.tasks.update().values(status=TaskStatus.FAILED, error_message="interrupted"))
            connection.execute(schema.datasets.update().values(status=DatasetStatus.ERROR))
        process.stdin.write("\n")  # type: ignore[union-attr] # start() makes the pipe
        assert finish(process).split() == ["True", "ERROR"]
        with catalog_of(workspace).read() as connection:
            assert connection.execute(sa.select(sa.func.count()).select_from(schema.generations)).scalar() == 0


@pytest.mark.slow
def test_interrupt__leaves_nothing(tmp_path: Path, folder: Path) -> None:
    """Ctrl-C while a dataset is made ends the wait with KeyboardInterrupt, aborts the task and leaves no dataset."""
    code = """
        import os, signal, sys, threading, framedex
        from tests.gallery import Gate
        from tests.inside import runner_of

        gate = Gate()

        def interrupt():
            assert gate.reached.wait(60)
            os.kill(os.getpid(), signal.SIGINT)
            (run,) = runner_of(workspace)._runs.values()
            assert run.progress.cancelled.wait(60)
            gate.opened.set()

        with framedex.Workspace(sys.argv[1]) as workspace:
            threading.Thread(target=interrupt).start()
            try:
                workspace.create_dataset("pets", sys.argv[2], gate)
            except KeyboardInterrupt as interrupt:
                print("interrupted", [task.status.value for task in workspace.tasks().tasks], workspace.datasets())
                print(*interrupt.__notes__)
    """
    out = finish(start(code, tmp_path / "ws", fill(folder, 80)))
    told = "The DATASET_CREATION of 'pets' was aborted: it has changed nothing."
    assert out.splitlines() == ["interrupted ['ABORTED'] []", told]
    assert list((tmp_path / "ws" / "datasets").iterdir()) == []


@pytest.mark.slow
def test_reader__beside_additions(tmp_path: Path) -> None:
    """While one process adds media and indexes them, another one sees whole additions only, each with its groups."""
    code = """
        import sys, framedex

        with framedex.Workspace(sys.argv[1], read_only=True) as workspace:
            dataset = workspace.dataset("d")
            print("ready", flush=True)
            rounds, seen = 0, 20
            while seen < 70 or dataset.info.status_new != "READY":
                table = dataset.to_arrow(["media_id", "cluster_id"])
                assert table["cluster_id"].null_count == 0
                assert table.num_rows >= seen and table.num_rows % 10 == 0, table.num_rows
                assert len(set(table["media_id"].to_pylist())) == table.num_rows
                seen = table.num_rows
                assert sum(cluster.n_images for cluster in dataset.explore().clusters) >= seen
                groups = dataset.duplicates()
                grouped = [one for group in groups for one in group.media_ids]
                assert len(set(grouped)) == len(grouped)
                rounds += 1
            print(rounds)
    """
    rows = families(70, dimension=4)
    with Workspace(tmp_path, settings=SETTINGS) as workspace:
        dataset = workspace.create_dataset("d", part(rows[:20]))
        reader = start(code, tmp_path)
        assert reader.stdout is not None
        assert reader.stdout.readline() == "ready\n"
        for first in range(20, 70, 10):
            dataset.add_media(part(rows[first : first + 10], first))
        dataset.not_duplicates(dataset.duplicates()[0].media_ids)
        dataset.reindex()
        assert int(finish(reader)) > 1


CHANGER = """
    import sys, framedex
    from tests.growth import families, part
    from tests.pauses import Pause, watched

    workspace = framedex.Workspace(sys.argv[1])
    dataset = workspace.dataset("d")
    pause = Pause(sys.argv[3], float(sys.argv[4]))
    begin = dataset.reindex if sys.argv[2] == "reindex" else lambda wait: dataset.add_media(
        part(families(60)[45:], 45), wait=wait
    )
    workspace.create_dataset("other", part(families(2)))
    watched(workspace, lambda: begin(wait=False), pause)
    assert pause.reached.wait(60)
    print("waits", flush=True)
    sys.stdin.readline()
"""


def partly_indexed(workspace: Workspace, name: str) -> Dataset:
    """Return a dataset to which some of its 45 rows were added."""
    dataset = workspace.create_dataset(name, part(families(60)[:30]))
    dataset.add_media(part(families(60)[30:45], 30))
    return dataset


@pytest.mark.slow
@pytest.mark.parametrize(
    ("operation", "stage", "share"),
    [
        ("add_media", "reading vectors", 0.01),  # rows are appended
        ("add_media", "finding duplicates", 0.0),
        ("add_media", "writing", 1.0),  # all is written but the commit
        ("reindex", "clustering", 0.0),
        ("reindex", "writing", 1.0),
    ],
)
def test_killed_process__while_a_dataset_changes(tmp_path: Path, operation: str, stage: str, share: float) -> None:
    """After kill -9 the dataset is what it was before; the same change then ends as if there had been no first try."""
    with Workspace(tmp_path, settings=SETTINGS) as workspace:
        dataset = partly_indexed(workspace, "d")
        before = columns_of(dataset, [*GROUPS, "path", "uniqueness"])
    process = start(CHANGER, tmp_path, operation, stage, share)
    assert process.stdout is not None
    assert process.stdout.readline() == "waits\n", process.communicate()[1]
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    with Workspace(tmp_path, settings=SETTINGS) as workspace:
        dataset = workspace.dataset("d")
        assert dataset.info.status_new is DatasetStatus.PARTIAL_INDEX
        assert columns_of(dataset, [*GROUPS, "path", "uniqueness"]) == before
        task_type = "MEDIA_ADDITION" if operation == "add_media" else "REINDEX"
        calm = partly_indexed(workspace, "calm")
        for each in (dataset, calm):
            if operation == "add_media":
                each.add_media(part(families(60)[45:], 45))
            else:
                each.reindex()
        (interrupted,) = [task for task in workspace.tasks().tasks if task.status is TaskStatus.FAILED]
        assert (interrupted.task_type, interrupted.error_message) == (task_type, "interrupted")
        names = [*GROUPS, "path", "batch", "uniqueness", "outlier_distance", "neighbours"]
        assert columns_of(dataset, names) == columns_of(calm, names)
        assert summary_of(dataset) == summary_of(calm)
        assert dataset.info.status_new is calm.info.status_new


@pytest.mark.slow
def test_killed_process__its_dataset_is_what_its_head_supports(tmp_path: Path) -> None:
    """Once the sign of life is old, a dataset whose change was interrupted is as it was, and can be deleted."""
    with Workspace(tmp_path, settings=SETTINGS) as workspace:
        partly_indexed(workspace, "d")
    process = start(CHANGER, tmp_path, "reindex", "clustering", 0)
    assert process.stdout is not None
    assert process.stdout.readline() == "waits\n"
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    with Workspace(tmp_path, settings=SETTINGS) as workspace:
        let_heartbeats_grow_old(workspace)
        assert workspace.dataset("d").info.status_new is DatasetStatus.PARTIAL_INDEX
        workspace.delete_dataset("d")


@pytest.mark.slow
@pytest.mark.only_soak
def test_several__at_one_dataset() -> None:
    """While one process adds, another one reads, edits, deletes and restores: conflicts only, and whole states only."""
    script = Path(__file__).parent.parent / "benchmarks" / "several.py"
    command = [sys.executable, str(script), "run", "2", "3"]
    out = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    found = json.loads(out.splitlines()[-1])
    assert found["errors"] == []
    assert found["done"]["add"] >= 1
    assert found["done"]["read"] >= 1
