"""Parts that workers write: the same rows as on threads, whatever happens to a worker, and nothing is left behind."""

import logging
import os
import re
import sys
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from framedex import Workspace
from framedex.annotations.label_index import Annotations, ImageLabels
from framedex.encoders.gist import Gist
from framedex.errors import Aborted, Unavailable
from framedex.executors import ProcessExecutor, forked
from framedex.jobs.ingest import parts
from framedex.jobs.ingest.ingest import Checkpoint, Ingested
from framedex.jobs.ingest.parts import part_size
from framedex.settings import PROCESSES, THREADS, Settings
from framedex.storage import tables
from framedex.storage.fragments import Fragment
from framedex.storage.id_index import IdIndex
from framedex.storage.media_rows import copy_schema
from framedex.storage.table_checks import unreferenced_files
from framedex.storage.table_files import remove_leftovers
from framedex.storage.table_versions import Table
from tests.executors import work
from tests.failures import failing
from tests.gallery import SETTINGS
from tests.image_files import photo, write
from tests.inside import stored_media
from tests.jobs.ingest import part_workers
from tests.jobs.ingest.test_ingest import rows_of, run
from tests.pauses import wait_until
from tests.tuning import Tuning
from tests.videos import numbered, write_video

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="processes are started as on POSIX")
COPIES = copy_schema(Gist.dimension, is_embedding=True)
ON_THREADS = Settings(executor=THREADS, threads=2)
IN_PARTS = Settings(executor=PROCESSES, processes=2, threads=2)
IN_ONE = Settings(executor=PROCESSES, processes=1, threads=2)
Fragments = list[tuple[int, int]]


def labels() -> Annotations:
    """Return labels and captions of some images, and of a file that is not there."""
    annotations = Annotations()
    for number in range(0, 74, 3):
        name = f"{number:03}.png"
        annotations.add(ImageLabels(name, ("cat", f"label {number}"), f"caption {number}" if number % 2 else None))
    annotations.add(ImageLabels("missing.png", ("dog",)))
    return annotations


def filled(path: Path, count: int = 74) -> Path:
    """Return a folder with some images, two names of one file, and files that are broken or cannot be read."""
    for number in range(12):
        write(path / f"{number:03}.png", photo(number, width=60 + number, height=50))
    for number in range(12, count):
        (path / f"{number:03}.png").hardlink_to(path / f"{number % 12:03}.png")
    (path / "020x.jpg").write_bytes(b"no image")
    (path / "040x.jpg").write_bytes(b"")
    (path / "060x.jpg").symlink_to("nowhere")
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of 77 files: two parts and a rest."""
    return filled(tmp_path / "images")


@pytest.fixture
def fragments(monkeypatch: pytest.MonkeyPatch) -> Fragments:
    """The number of fragments and of rows of each version that was made of parts."""
    found: Fragments = []
    append = tables.append_fragments

    def noted(path: Path, written: list[Fragment]) -> int:
        found.append((len(written), sum(each.rows for each in written)))
        return append(path, written)

    monkeypatch.setattr(tables, "append_fragments", noted)
    return found


@pytest.fixture
def expected(folder: Path, tmp_path: Path) -> list[dict[str, Any]]:
    """The rows of the folder, made on threads."""
    table = tmp_path / "threads.lance"
    ingested = run(folder, table, encoder=Gist(), annotations=labels(), settings=ON_THREADS, of_copies=COPIES)
    return rows_of(table, ingested)


def in_parts(folder: Path, table: Path, settings: Settings = IN_PARTS, **options: Any) -> Ingested:
    """Ingest a folder in parts."""
    options = {"annotations": labels(), "of_copies": COPIES, **options}
    return run(folder, table, encoder=Gist(), settings=settings, **options)


def has_no_process(tmp_path: Path) -> bool:
    """Return whether the processes that have begun are gone."""
    pids = [int(each.name.removeprefix("begun-")) for each in tmp_path.glob("begun-*")]
    return bool(pids) and not any(Path(f"/proc/{pid}").exists() for pid in pids)


@pytest.mark.slow
def test_rows__are_those_of_threads(
    folder: Path,
    tmp_path: Path,
    expected: list[dict[str, Any]],
    fragments: Fragments,
    tuning: Tuning,
) -> None:
    """Every column has the same values in the same order; parts, and rows that are made here, become one version."""
    tuning.first_commit_s = 600.0
    table, saved = tmp_path / "parts.lance", list[Checkpoint]()
    ingested = in_parts(folder, table, save_checkpoint=saved.append)
    assert rows_of(table, ingested) == expected
    assert (ingested.rows, ingested.unmatched) == (77, 1)
    assert fragments == [(3, 77)]
    assert saved == [Checkpoint(ingested.version, 77)]
    assert unreferenced_files(table) == []
    again = in_parts(folder, table, existing=IdIndex(Table(table, ingested.version)))
    assert (again.version, again.rows, again.present) == (0, 0, 77)


@pytest.mark.slow
@pytest.mark.skipif(not forked.has_forks(), reason="workers are forked on Linux alone")
def test_workers__are_forked_before_threads_start() -> None:
    """They call Lance themselves; the process that forked them has no thread but that of the memory of PyArrow."""
    with ProcessExecutor(2, modules=parts.MODULES) as made:
        made.call(work.check_engine, None)
        tasks = Path(f"/proc/{made.call(work.parent_of, None)}/task")
        names = {each.name: (each / "comm").read_text().strip() for each in tasks.iterdir()}
        assert made.call(work.is_imported, parts.__name__)
    names.pop(tasks.parent.name)
    assert set(names.values()) <= {"jemalloc_bg_thd"}


@pytest.mark.slow
def test_files__of_a_table_that_is_older(folder: Path, tmp_path: Path, expected: list[dict[str, Any]]) -> None:
    """Columns that the table lacks are added; its rows stay as they are."""
    table = tmp_path / "parts.lance"
    old = tmp_path / "old"
    write(old / "first.png", photo(99))
    first = run(old, table, encoder=Gist(), settings=ON_THREADS)
    (row,) = rows_of(table, first)
    ingested = in_parts(folder, table, existing=IdIndex(Table(table, first.version)))
    rows = rows_of(table, ingested)
    assert rows == [{**dict.fromkeys(expected[0]), **row}, *expected]


@pytest.mark.slow
def test_files__of_which_there_are_none(tmp_path: Path) -> None:
    """A table without rows is made."""
    (tmp_path / "images").mkdir()
    ingested = in_parts(tmp_path / "images", tmp_path / "parts.lance", IN_ONE)
    assert (ingested.rows, rows_of(tmp_path / "parts.lance", ingested)) == (0, [])


@pytest.mark.slow
def test_videos__among_images(folder: Path, tmp_path: Path, tuning: Tuning, fragments: Fragments) -> None:
    """They are read in this process; the rows are in the order of the files, also of few images between videos."""
    tuning.rows_before_video = 32
    for name in ("000v.mp4", "050v.mp4", "055v.mp4"):
        write_video(folder / name, numbered(12))
    there = run(folder, tmp_path / "1.lance", encoder=Gist(), settings=ON_THREADS, of_copies=COPIES)
    here = in_parts(folder, tmp_path / "2.lance", annotations=Annotations())
    assert rows_of(tmp_path / "2.lance", here) == rows_of(tmp_path / "1.lance", there)
    assert fragments


@pytest.mark.slow
@part_workers.working(decoder=part_workers.EndingDecoder)
def test_image__that_ends_its_process(folder: Path, tmp_path: Path, expected: list[dict[str, Any]]) -> None:
    """It is a broken image with its size and hash; all others of its part are as always."""
    write(folder / "050-crash.png", photo(7))
    table = tmp_path / "parts.lance"
    rows = rows_of(table, in_parts(folder, table))
    (broken,) = (row for row in rows if "crash" in row["path"])
    assert broken["error"] == "its decoding ended the process (signal SIGSEGV)"
    assert (broken["size_bytes"], broken["embedding"]) == ((folder / "050-crash.png").stat().st_size, None)
    assert [row for row in rows if row is not broken] == expected
    assert rows.index(broken) == [row["path"] for row in expected].index("050.png")


@pytest.mark.slow
@part_workers.working(decoder=part_workers.KilledDecoder)
def test_process__that_is_killed_each_time(folder: Path, tmp_path: Path) -> None:
    """Where memory is short, for example, the run fails, and no image is taken for a broken one."""
    with pytest.raises(Unavailable, match=r"signal SIGKILL; if memory is short, .* \(FRAMEDEX_PROCESSES\)"):
        in_parts(folder, tmp_path / "parts.lance", IN_ONE)


@pytest.mark.slow
@part_workers.working(writer=part_workers.OnceKilledWriter)
def test_process__that_is_killed_after_writing(folder: Path, tmp_path: Path) -> None:
    """Its part is written again by another one; the first file belongs to no version, and is removed by a vacuum."""
    settings = SETTINGS.model_copy(update={"executor": PROCESSES, "processes": 1})
    with Workspace(tmp_path / "workspace", settings=settings) as workspace:
        dataset = workspace.create_dataset("all", folder, "gist")
        assert (tmp_path / "killed").exists()
        assert dataset.where([]).count() == 77
        table = stored_media(dataset).table.path
        (orphan,) = unreferenced_files(table)
        os.utime(orphan, (0, 0))  # as if it had been there for long
        (finding,) = workspace.check().findings
        assert orphan.name in str(finding)
        workspace.vacuum()
        assert unreferenced_files(table) == []
        assert not workspace.check().findings
        assert dataset.where([]).count() == 77


@pytest.mark.slow
def test_addition__that_is_aborted(folder: Path, tmp_path: Path) -> None:
    """A vacuum removes the files of its parts; the dataset is as before, and the same files can be added then."""
    write(tmp_path / "first" / "first.png", photo(99))
    settings = SETTINGS.model_copy(update={"executor": PROCESSES, "processes": 1})
    with Workspace(tmp_path / "workspace", settings=settings) as workspace:
        dataset = workspace.create_dataset("all", tmp_path / "first", "gist")
        append = "framedex.storage.tables.append_fragments"
        with failing(append, error=Aborted("aborted on request")), pytest.raises(Aborted):
            dataset.add_media(folder)
        table = stored_media(dataset).table.path
        assert (len(unreferenced_files(table)) >= 1, dataset.where([]).count()) == (True, 1)
        workspace.vacuum()
        assert unreferenced_files(table) == []
        assert not workspace.check().findings
        dataset.add_media(folder)
        assert dataset.where([]).count() == 78
        assert unreferenced_files(table) == []


@pytest.mark.parametrize(
    ("writer", "reason"),
    [("ElsewhereWriter", r"this machine has no data/.* in the folder"), ("StrangerWriter", r"there is no table at .*")],
)
@pytest.mark.slow
def test_workers__that_do_not_share_the_folder(
    folder: Path, tmp_path: Path, expected: list[dict[str, Any]], writer: str,
    reason: str, caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    """They decode, and this process writes the rows, which is said once; a copy of the table there does not matter."""
    caplog.set_level(logging.WARNING, "framedex")
    table = tmp_path / "parts.lance"
    with part_workers.working(writer=getattr(part_workers, writer)):
        assert rows_of(table, in_parts(folder, table, IN_ONE)) == expected
    (message,) = caplog.messages
    assert message.startswith("rows are written by this process alone, not by its workers: ")
    assert re.search(reason, message)


class Until:
    """A progress that lets the workers go on, or stops the run, once it was called some times while they wait.

    Args:
        folder: has what the workers note.
        then: called then.
    """

    def __init__(self, folder: Path, then: Callable[[], object]) -> None:
        self.folder, self.then, self.calls_s = folder, then, list[float]()

    def __call__(self, _share: float) -> None:
        if any(self.folder.glob("begun-*")):
            self.calls_s.append(time.monotonic())
            if len(self.calls_s) == 3:
                self.then()


@pytest.mark.slow
@part_workers.working(decoder=part_workers.WaitingDecoder)
def test_progress__while_workers_are_at_work(folder: Path, tmp_path: Path, expected: list[dict[str, Any]]) -> None:
    """It is called again and again while no part is ready."""
    progress = Until(tmp_path, (tmp_path / "go").touch)
    table = tmp_path / "parts.lance"
    assert rows_of(table, in_parts(folder, table, IN_ONE, progress=progress)) == expected
    assert len(progress.calls_s) >= 3


@pytest.mark.slow
@part_workers.working(decoder=part_workers.WaitingDecoder)
def test_abort__ends_the_processes(folder: Path, tmp_path: Path) -> None:
    """Stopping a run does not wait for the parts in progress, and leaves no process."""
    with pytest.raises(Aborted):
        in_parts(folder, tmp_path / "parts.lance", progress=Until(tmp_path, part_workers.abort))
    assert has_no_process(tmp_path)


@pytest.mark.slow
def test_run__that_goes_on_after_an_abort(
    folder: Path, tmp_path: Path, expected: list[dict[str, Any]], tuning: Tuning
) -> None:
    """It begins after the last checkpoint; files of parts that were not committed are left, and can be removed."""
    tuning.committed_rows = 32
    saved, table = list[Checkpoint](), tmp_path / "parts.lance"

    def save(checkpoint: Checkpoint) -> None:
        saved.append(checkpoint)
        wait_until(lambda: unreferenced_files(table))  # the next part is written
        raise Aborted("aborted on request")

    with pytest.raises(Aborted):
        in_parts(folder, table, save_checkpoint=save)
    assert [each.rows for each in saved] == [32]
    assert unreferenced_files(table)
    version = tables.roll_back(table, saved[0].version)
    assert version is not None
    checkpoint = Checkpoint(version, 32)
    ingested = in_parts(folder, table, existing=IdIndex(Table(table, version)), checkpoint=checkpoint)
    assert rows_of(table, ingested) == expected
    assert (ingested.rows, ingested.present) == (77, 0)
    remove_leftovers(table)
    assert unreferenced_files(table) == []
    assert rows_of(table, ingested) == expected


@given(st.integers(1, 3_000_000), st.integers(1, 200))
def test_sizes__any_number_of_images_and_workers(total: int, workers: int) -> None:
    """They begin small, are multiples of 16 within their limits, and make few fragments of many images."""
    sizes = list[int]()
    while sum(sizes) < total:
        sizes.append(part_size(sum(sizes), total=total, workers=workers))
    assert sizes[:2] == [32, 32][: len(sizes)]
    assert all(size % 16 == 0 and size <= 4096 for size in sizes)
    assert all(later <= 2 * earlier for earlier, later in pairwise(sizes))
    beginning = 9  # parts with as many images as all before
    least = min(max(total // 64, 64), 2048) - 15
    assert all(size >= least for size in sizes[beginning:])
    assert len(sizes) <= beginning + total // least + 1
