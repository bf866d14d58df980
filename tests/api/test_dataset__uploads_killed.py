"""Uploads from several processes at once, and processes that are killed in the middle of a call or of a task."""

import os
import time
from pathlib import Path

import pytest

from framedex import Dataset, NotFound, UploadTransaction, Workspace
from framedex.encoders import register
from framedex.records import DatasetStatus, TaskStatus, UploadState
from tests.gallery import SETTINGS, Averages, fill
from tests.growth import columns_of, status_of
from tests.laws import rest_slow
from tests.processes import finish, run, start
from tests.uploading import blobs_of, drafted, home_of, lists_of, pairs, paths_of, state_of

SENDS = """
    import sys, framedex
    from tests.gallery import SETTINGS
    from tests.uploading import pairs

    with framedex.Workspace(sys.argv[1], settings=SETTINGS) as workspace:
        transaction = workspace.dataset("pets").find_upload(int(sys.argv[2]))
        first = int(sys.argv[3])
        print("ready", flush=True)
        sys.stdin.readline()
        for number in range(first, first + 8, 2):
            transaction.add(pairs(number, number + 1))
"""
DIES_IN_A_CALL = """
    import io, os, signal, sys, framedex
    from framedex.jobs.ingest.received import ReceivedFiles
    from framedex.operations import uploads
    from framedex.storage import upload_rows
    from tests.gallery import SETTINGS
    from tests.uploading import pairs

    def die(*arguments, **options):
        os.kill(os.getpid(), signal.SIGKILL)

    class Dies(io.BytesIO):
        read = die

    match sys.argv[3]:
        case "stored":
            uploads.append_files = die
        case "listed":
            upload_rows.update_upload = die
        case "committed":
            ReceivedFiles.release = die
    with framedex.Workspace(sys.argv[1], settings=SETTINGS) as workspace:
        transaction = workspace.dataset("pets").find_upload(int(sys.argv[2]))
        last = [("5.png", Dies())] if sys.argv[3] == "reading" else []
        transaction.add(pairs(3, 4) + last)
"""
DIES_IN_A_TASK = """
    import os, signal, sys, framedex
    from framedex.encoders import registry
    from framedex.operations import uploads, vacuum
    from framedex.storage import datasets
    from tests.gallery import SETTINGS, Averages

    def die(*arguments, **options):
        os.kill(os.getpid(), signal.SIGKILL)

    class Dies(Averages):
        encode_images = die

    commit = datasets.commit_generation
    match sys.argv[3]:
        case "collected":
            uploads._start = die
        case "started":
            uploads.start_task = die
        case "in commit":
            datasets.commit_generation = lambda *arguments, **options: (commit(*arguments, **options), die())
        case "committed":
            vacuum.AutoClean.__call__ = die
    encoder = Dies() if sys.argv[3] == "encoding" else Averages()
    registry.register("averages", lambda name: encoder)
    with framedex.Workspace(sys.argv[1], settings=SETTINGS) as workspace:
        transaction = workspace.dataset("pets").find_upload(int(sys.argv[2]))
        options = {"encoder": "averages"} if workspace.dataset("pets").info.status_new == "DRAFT" else {}
        transaction.process(wait=False, **options).wait()
"""


DIES_IN_A_DISCARD = """
    import os, signal, sys, framedex
    from framedex.operations import uploads
    from framedex.storage import upload_rows
    from tests.gallery import SETTINGS

    def die(*arguments, **options):
        os.kill(os.getpid(), signal.SIGKILL)

    remove = upload_rows.remove_upload_row
    match sys.argv[3]:
        case "marked":
            upload_rows.remove_upload_row = die
        case "removed":
            upload_rows.remove_upload_row = lambda *arguments: (remove(*arguments), die())
        case "committed":
            uploads.remove_discarded = die
        case "without its list":
            uploads._remove_file = lambda path: (path.unlink(), die())
    with framedex.Workspace(sys.argv[1], settings=SETTINGS) as workspace:
        workspace.dataset("pets").find_upload(int(sys.argv[2])).discard()
"""


@pytest.fixture(autouse=True)
def _averages() -> None:
    """The encoder of the killed processes, whole, by the same name."""
    register("averages", lambda _name: Averages())


def killed(code: str, *arguments: object) -> None:
    """Run a process that ends itself by SIGKILL."""
    process = start(code, *arguments)
    _, error = process.communicate(timeout=120)
    assert process.returncode == -9, error


def made_old(folder: Path, seconds: float) -> None:
    """Set the times of all files of a folder back."""
    for path in folder.rglob("*"):
        os.utime(path, (time.time() - seconds,) * 2)


def found(workspace: Workspace, transaction: UploadTransaction) -> UploadTransaction:
    """Return a transaction in a workspace that was opened again."""
    return workspace.dataset("pets").find_upload(transaction.id)


@pytest.mark.slow
def test_add__from_many_processes(tmp_path: Path) -> None:
    """Calls of several processes at once all count, while others vacuum and check the workspace."""
    with Workspace(tmp_path / "w", settings=SETTINGS) as workspace:
        dataset, transaction = drafted(workspace)
        processes = [start(SENDS, workspace.path, transaction.id, 8 * place) for place in range(4)]
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n", process.communicate()[1]
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        while any(process.poll() is None for process in processes):
            workspace.vacuum(older_than_s=0)
            assert workspace.check().findings == []
        for process in processes:
            finish(process)
        assert transaction.record.n_files == 32
        assert lists_of(workspace, dataset) == [f"transactions/{transaction.id}.files"]
        workspace.vacuum(older_than_s=0)
        assert workspace.check().findings == []
        transaction.process(encoder="averages")
        assert paths_of(dataset) == sorted(f"{number}.png" for number in range(32))
        assert not columns_of(dataset, ["error"])["error"][0]


@pytest.mark.slow
@pytest.mark.parametrize("point", rest_slow(["listed", "reading", "stored", "committed"], 1))
def test_add__killed(tmp_path: Path, point: str) -> None:
    """A killed call counts as a whole or not at all; others go on, and vacuum removes what it left."""
    with Workspace(tmp_path / "w", settings=SETTINGS) as workspace:
        dataset, transaction = drafted(workspace, 1, 2)
    killed(DIES_IN_A_CALL, tmp_path / "w", transaction.id, point)
    counted = [3, 4] if point == "committed" else []
    with Workspace(tmp_path / "w", settings=SETTINGS) as workspace:
        assert workspace.check().findings == []
        again = found(workspace, transaction)
        assert again.record.n_files == 2 + len(counted)
        assert again.add(pairs(6)).n_files == 3 + len(counted)
        made_old(home_of(workspace, dataset) / "uploads", 7200)
        assert workspace.vacuum().skipped == {}
        assert lists_of(workspace, dataset) == [f"transactions/{transaction.id}.files"]
        assert len(blobs_of(workspace, dataset)) == 3 + len(counted)
        again.process(encoder="averages")
        assert paths_of(workspace.dataset("pets")) == sorted(f"{each}.png" for each in (1, 2, 6, *counted))
        assert workspace.check().findings == []


@pytest.mark.slow
@pytest.mark.parametrize("point", ["marked", "removed", "committed", "without its list"])
def test_discard__killed(tmp_path: Path, point: str) -> None:
    """A killed discard leaves the transaction as it was, or nothing of it; the next vacuum removes the rest."""
    with Workspace(tmp_path / "w", settings=SETTINGS) as workspace:
        dataset, transaction = drafted(workspace, 1, 2)
    killed(DIES_IN_A_DISCARD, tmp_path / "w", transaction.id, point)
    with Workspace(tmp_path / "w", settings=SETTINGS) as workspace:
        assert workspace.check().findings == []
        made_old(home_of(workspace, dataset) / "uploads", 7200)
        if point in ("marked", "removed"):
            again = found(workspace, transaction)
            assert again.record.n_files == 2
            assert workspace.vacuum().skipped == {}
            assert lists_of(workspace, dataset) == [f"transactions/{transaction.id}.files"]
            assert again.add(pairs(6)).n_files == 3
            again.discard()
        else:
            with pytest.raises(NotFound):
                found(workspace, transaction)
            assert len(blobs_of(workspace, dataset)) == 2
        workspace.vacuum(older_than_s=0)
        assert lists_of(workspace, dataset) == []
        assert workspace.check().findings == []


def prepared(home: Path, kind: str) -> UploadTransaction:
    """Make a workspace whose dataset ``pets`` is a draft, or has media, with an open transaction."""
    with Workspace(home / "w", settings=SETTINGS) as workspace:
        folder = fill(home / "images", 3)
        if kind == "addition":
            dataset = workspace.create_dataset("pets", folder, "averages")
        else:
            dataset = workspace.create_draft("pets")
        transaction = dataset.open_upload()
        transaction.add(pairs(1, 2))
        transaction.add(pairs(2, 3))
        return transaction


def check_end(workspace: Workspace, transaction: UploadTransaction, kind: str) -> None:
    """Check that all files are in the dataset, once, and that nothing else is left."""
    dataset = workspace.dataset("pets")
    before = ["000.png", "001.png", "002.png"] if kind == "addition" else []
    assert paths_of(dataset) == sorted([*before, "1.png", "2.png", "3.png"])
    assert state_of(transaction) is UploadState.DONE
    assert status_of(dataset) is (DatasetStatus.PARTIAL_INDEX if before else DatasetStatus.READY)
    made_old(home_of(workspace, dataset) / "uploads", 7200)
    assert workspace.vacuum(older_than_s=0).skipped == {}
    assert lists_of(workspace, dataset) == []
    assert len(blobs_of(workspace, dataset)) == 3
    assert workspace.check().findings == []


TASKS = [(kind, point) for point in ("encoding", "started", "collected", "in commit", "committed")
         for kind in ("creation", "addition")]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "point"), rest_slow(TASKS, 2, several=True, long=6))
def test_process__killed(tmp_path: Path, kind: str, point: str) -> None:
    """A killed task is FAILED and can be retried by another process; before its start the transaction stays open."""
    transaction = prepared(tmp_path, kind)
    killed(DIES_IN_A_TASK, tmp_path / "w", transaction.id, point)
    with Workspace(tmp_path / "w", settings=SETTINGS) as workspace:
        again = found(workspace, transaction)
        dataset = workspace.dataset("pets")
        if point == "collected":
            assert state_of(again) is UploadState.OPEN
            again.process(**({"encoder": "averages"} if kind == "creation" else {}))  # type: ignore[arg-type]
        elif point == "committed":
            assert state_of(again) is UploadState.DONE
            assert dataset.last_task is not None
            assert dataset.last_task.status is TaskStatus.COMPLETED
        else:
            assert state_of(again) is UploadState.FAILED
            assert status_of(dataset) is (DatasetStatus.ERROR if kind == "creation" else DatasetStatus.READY)
            assert workspace.check().findings == []
            workspace.vacuum(older_than_s=60)
            record = dataset.last_task
            assert record is not None
            assert (record.status, record.error_message) == (TaskStatus.FAILED, "interrupted")
            task = workspace.task(record.task_id)
            task.retry()
            assert task.wait(60).status is TaskStatus.COMPLETED
        check_end(workspace, again, kind)


@pytest.mark.slow
def test_process__retried_by_another_process(tmp_path: Path) -> None:
    """A process that has nothing but the task's id completes the creation."""
    transaction = prepared(tmp_path, "creation")
    killed(DIES_IN_A_TASK, tmp_path / "w", transaction.id, "started")
    run(
        """
        import sys, framedex
        from framedex.encoders import registry
        from tests.gallery import SETTINGS, Averages

        registry.register("averages", lambda name: Averages())
        with framedex.Workspace(sys.argv[1], settings=SETTINGS) as workspace:
            task = workspace.task(workspace.dataset("pets").last_task.task_id)
            task.retry()
            task.wait(60)
        """,
        tmp_path / "w",
    )
    with Workspace(tmp_path / "w", settings=SETTINGS) as workspace:
        check_end(workspace, found(workspace, transaction), "creation")


def test_uploads__ids_are_never_used_again(tmp_path: Path) -> None:
    """A transaction that is gone is not mistaken for a later one, also after a restart."""
    with Workspace(tmp_path / "w", settings=SETTINGS) as workspace:
        dataset, transaction = drafted(workspace, 1)
        transaction.discard()
    with Workspace(tmp_path / "w", settings=SETTINGS) as workspace:
        again: Dataset = workspace.dataset("pets")
        assert again.open_upload().id > transaction.id
        with pytest.raises(NotFound):
            again.find_upload(transaction.id)
    assert dataset.id == again.id
