"""Children of a fork read what their parent had open and are refused all writing; nothing hangs or crashes."""

import os
from pathlib import Path

import pytest

from framedex import Workspace
from tests.gallery import SETTINGS
from tests.processes import run

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked here")

START = """
    import os, sys, threading, warnings
    from pathlib import Path
    import framedex
    from tests.gallery import SETTINGS, Gate
    from tests.processes import in_child

    warnings.simplefilter("ignore")  # of forks beside threads, which is what is tried
    workspace = framedex.Workspace(sys.argv[1], settings=SETTINGS)

    def refused(*writes):
        for write in writes:
            try:
                write()
            except framedex.WorkspaceError as error:
                assert "was opened before a fork; open the workspace again in this process" in str(error), error
            else:
                raise AssertionError("it was not refused")
"""
READS = """
    dataset = workspace.create_dataset("pets", sys.argv[2], "gist")
    ids = dataset.to_arrow(["media_id"]).column(0).to_pylist()
    dataset.set_captions({ids[0]: "a red cat", ids[1]: "a dog"})
    ranked = dataset.similar(ids[0])

    def reads():
        return [
            dataset.count(), dataset.read(ids[1]).shape, dataset.thumbnail(ids[2])[:2], ranked.media_ids(),
            dataset.similar(ids[3]).media_ids(), dataset.where([{"labels": {"op": "is", "value": "x"}}]).count(),
            len(dataset.explore(level=2).clusters), dataset.to_arrow(["file_path"]).num_rows, dataset.tags(),
            len(dataset.duplicates()), dataset.embeddings()[1].shape, len(workspace.datasets()),
            len(workspace.tasks().tasks), dataset.last_task.status,
        ]

    before = reads()
"""


@pytest.mark.slow
def test_fork__reads_and_writes(tmp_path: Path, folder: Path) -> None:
    """All reads give in a child what they give in its parent, all writes raise, and the parent goes on."""
    code = """
    def work():
        assert reads() == before
        refused(
            lambda: dataset.tag(ids[:2], "seen"), lambda: dataset.set_labels(ids[:2], ["x"]), dataset.snapshot,
            lambda: dataset.delete_media(ids[:1]), lambda: dataset.add_media(sys.argv[2]), workspace.vacuum,
            lambda: dataset.reindex(thresholds=(0.02, 0.05, 0.1, 0.2, 0.5)), lambda: dataset.add_field("f", "float"),
            lambda: dataset.not_duplicates(ids[:2]), lambda: workspace.delete_dataset("pets"), dataset.clone,
            lambda: workspace.create_dataset("new", sys.argv[2], "gist"), dataset.restore,
        )
        assert reads() == before
        workspace.close()

    for _ in range(3):
        in_child(work)
        assert reads() == before
    dataset.tag(ids[:2], "seen")
    """
    run(START + READS + code, tmp_path / "ws", folder)
    with Workspace(tmp_path / "ws", settings=SETTINGS) as workspace:
        assert [(tag.name, tag.count) for tag in workspace.dataset("pets").tags()] == [("seen", 2)]


@pytest.mark.slow
def test_fork__while_other_threads_work(tmp_path: Path, folder: Path) -> None:
    """Locks that other threads hold at a fork do not block the child."""
    code = """
    ended = threading.Event()

    def work_on(number):
        while not ended.is_set():
            if number:
                reads()
            else:
                dataset.tag(ids[:2], "seen")

    def work():
        assert reads()[:8] == before[:8]
        refused(lambda: dataset.tag(ids[:2], "seen"))

    threads = [threading.Thread(target=work_on, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(4):
            in_child(work)
    finally:
        ended.set()
    for thread in threads:
        thread.join()
    assert [(tag.name, tag.count) for tag in dataset.tags()] == [("seen", 2)]
    """
    run(START + READS + code, tmp_path / "ws", folder)


@pytest.mark.only_soak
@pytest.mark.slow
def test_fork__opened_again(tmp_path: Path, folder: Path) -> None:
    """A child that opens the workspace again writes to it, as any process does; so does the parent meanwhile."""
    code = """
    def work():
        with framedex.Workspace(sys.argv[1], settings=SETTINGS) as again:
            dataset = again.dataset("pets")
            dataset.tag(ids[:1], "child")
            dataset.reindex(thresholds=(0.02, 0.05, 0.1, 0.2, 0.5))
        refused(lambda: workspace.dataset("pets").tag(ids[:1], "child"))

    in_child(work)
    dataset.tag(ids[:3], "parent")
    print([(tag.name, tag.count) for tag in dataset.tags()])
    """
    assert run(START + READS + code, tmp_path / "ws", folder).strip() == "[('child', 1), ('parent', 3)]"


@pytest.mark.slow
def test_fork__tasks_and_exports_of_the_parent(tmp_path: Path, folder: Path) -> None:
    """A child sees the tasks of its parent, and waits for them no longer than it wants to; they go on."""
    code = """
    gate = Gate()
    dataset = workspace.create_dataset("pets", sys.argv[2], gate, wait=False)
    gate.reached.wait()

    def work():
        assert dataset.task.status.value in ("RUNNING", "INITIALIZING")
        try:
            dataset.task.wait(0.1)
        except TimeoutError:
            pass
        else:
            raise AssertionError("it has ended")
        refused(dataset.task.abort)
        workspace.close()

    in_child(work)
    gate.opened.set()
    dataset.task.wait()
    assert dataset.count() == 6
    """
    run(START + code, tmp_path / "ws", folder)


@pytest.mark.slow
def test_fork__workers_that_load_images(tmp_path: Path, folder: Path) -> None:
    """Pools of forked processes, as loaders of training data use them, read images by the dataset of their parent."""
    code = """
    import multiprocessing

    def load(media_id):
        return int(dataset.read(media_id).sum())

    expected = [load(each) for each in ids]
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.map_async(load, ids).get(60) == expected
    """
    run(START + READS + code, tmp_path / "ws", folder)


@pytest.mark.only_soak
@pytest.mark.slow
def test_fork__workers_that_load_images_from_a_bucket(tmp_path: Path) -> None:
    """Children read objects by connections of their own, also while their parent and each other read."""
    code = """
    import multiprocessing
    from concurrent.futures import ThreadPoolExecutor
    from tests.buckets import Service
    from tests.image_files import encode, photo

    os.environ |= {"AWS_ACCESS_KEY_ID": "reader", "AWS_SECRET_ACCESS_KEY": "x", "AWS_EC2_METADATA_DISABLED": "true"}
    service = Service()
    for number in range(6):
        service.put(f"pets/{number}.png", encode(photo(number)))
    workspace = framedex.Workspace(sys.argv[1], settings=service.settings())
    dataset = workspace.create_dataset("pets", "s3://pets", "gist")
    ids = dataset.to_arrow(["media_id"]).column(0).to_pylist() * 5

    def load(media_id):
        return int(dataset.read(media_id).sum())

    expected = [load(each) for each in ids]
    with multiprocessing.get_context("fork").Pool(3) as pool, ThreadPoolExecutor(2) as threads:
        theirs = pool.map_async(load, ids, 1)
        assert list(threads.map(load, ids)) == expected
        assert theirs.get(60) == expected
    service.stop()
    """
    run(START + code, tmp_path / "ws")
