"""Decoding in processes: the same rows as on threads, whatever happens to a process."""

import logging
import os
import signal
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from framedex.encoders.gist import Gist
from framedex.errors import Aborted, Unavailable
from framedex.executors import ProcessExecutor
from framedex.settings import PROCESSES, THREADS, Settings
from framedex.storage.media_rows import copy_schema
from tests.image_files import BLUE, GREEN, RED, flat, photo, write
from tests.jobs.fakes import Colours, PortableColours, StopAt, end_on_green
from tests.jobs.ingest.test_ingest import by_name, rows_of, run
from tests.tuning import Tuning

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="processes are started as on POSIX")
COPIES = copy_schema(Gist.dimension, is_embedding=True)


def in_processes_of(number: int, **options: Any) -> Settings:
    """Return settings for decoding in a number of processes."""
    return Settings(executor=PROCESSES, processes=number, threads=2, **options)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of photos, one of them with two panels, a large image, and files that are broken."""
    path = tmp_path / "images"
    for number in range(40):
        write(path / f"{number:03}.{'jpg' if number % 2 else 'png'}", photo(number, width=60 + number, height=50))
    write(path / "040.jpg", np.hstack([photo(5) // 3, 170 + photo(6) // 3]))
    write(path / "041.png", flat((9, 9, 9), width=900, height=900))
    (path / "042.jpg").write_bytes(b"no image")
    (path / "043.jpg").write_bytes(b"")
    (path / "044.jpg").symlink_to("nowhere")
    return path


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The ids of processes that have worked, in the order of the chunks."""
    found: list[int] = []
    run = ProcessExecutor._run

    def noted(self: ProcessExecutor, function: Any, item: Any) -> Any:
        result = run(self, function, item)
        found.extend(self.pids)
        return result

    monkeypatch.setattr(ProcessExecutor, "_run", noted)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("encoder", [Gist, PortableColours])
def test_rows__are_those_of_threads(folder: Path, tmp_path: Path, encoder: Any, started: list[int]) -> None:
    """Every column has the very same values: paths, hashes, measures, embeddings, descriptors and reasons."""
    copies = COPIES if encoder is Gist else copy_schema(Gist.dimension, is_embedding=False)
    on_threads = run(
        folder, tmp_path / "1.lance", encoder=encoder(), settings=Settings(executor=THREADS), of_copies=copies
    )
    rows = rows_of(tmp_path / "1.lance", on_threads)
    assert (not started, on_threads.rows) == (True, 45)
    small = in_processes_of(2, pixels_in_flight=500_000)  # so that the large image waits for its turn
    in_both = run(folder, tmp_path / "2.lance", encoder=encoder(), settings=small, of_copies=copies)
    assert rows_of(tmp_path / "2.lance", in_both) == rows
    assert started
    assert os.getpid() not in started


@pytest.mark.slow
def test_few_images__start_no_process(folder: Path, tmp_path: Path, started: list[int]) -> None:
    """By default, what is done before processes could start is done on threads."""
    assert run(folder, tmp_path / "media.lance", encoder=Gist(), settings=Settings(processes=2)).rows == 45
    assert started == []


@pytest.mark.slow
@pytest.mark.parametrize("encoder", [Gist, PortableColours])
def test_many_images__start_processes(
    folder: Path, tmp_path: Path, started: list[int], tuning: Tuning, encoder: Any
) -> None:
    """By default, processes start after a number of images; the rows are in order, and those of threads."""
    tuning.decoded_in_processes = 1000
    for number in range(1000, 6000):
        (folder / f"{number}.jpg").hardlink_to(folder / "001.jpg")
    ingested = run(folder, tmp_path / "media.lance", encoder=encoder(), settings=Settings(processes=2))
    assert started
    rows = rows_of(tmp_path / "media.lance", ingested)
    names = [row["path"] for row in rows]
    assert (len(names), names) == (5045, sorted(names))
    values = [{**row, "path": None, "media_id": None} for row in rows[45:]]
    assert values == values[:1] * 5000


def test_encoder__of_this_process(folder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """An encoder that cannot be used in other processes prepares images on threads, which is said."""
    caplog.set_level(logging.WARNING, "framedex")
    encoder = Colours()
    assert run(folder, tmp_path / "media.lance", encoder=encoder, settings=in_processes_of(2)).rows == 45
    assert encoder.prepared == 42
    assert caplog.messages == [
        "images are decoded on threads, not in processes: the encoder 'colours' has no `preparer`"
    ]


@pytest.mark.only_soak
@pytest.mark.slow
def test_image__that_ends_its_process(tmp_path: Path) -> None:
    """It is a broken image with its size and hash; the images of its chunk are as always."""
    for name, colour in {"a.png": RED, "b.png": GREEN, "c.png": BLUE}.items():
        write(tmp_path / "images" / name, flat(colour))
    encoder = PortableColours(partial(end_on_green, by=int(signal.SIGSEGV)))
    table = tmp_path / "media.lance"
    ingested = run(tmp_path / "images", table, encoder=encoder, settings=in_processes_of(1))
    found = by_name(rows_of(table, ingested))
    assert found["b.png"]["error"] == "its decoding ended the process (signal SIGSEGV)"
    assert found["b.png"]["size_bytes"] == (tmp_path / "images" / "b.png").stat().st_size
    assert [row["error"] for row in found.values()].count(None) == 2
    again = run(tmp_path / "images", tmp_path / "2.lance", settings=Settings(executor=THREADS))
    assert by_name(rows_of(tmp_path / "2.lance", again))["b.png"]["content_hash"] == found["b.png"]["content_hash"]


@pytest.mark.slow
def test_process__that_is_killed_each_time(tmp_path: Path) -> None:
    """Where memory is short, for example, the run fails, and no image is taken for a broken one."""
    write(tmp_path / "images" / "b.png", flat(GREEN))
    encoder = PortableColours(partial(end_on_green, by=int(signal.SIGKILL)))
    with pytest.raises(Unavailable, match=r"signal SIGKILL; if memory is short, .* \(FRAMEDEX_PROCESSES\)"):
        run(tmp_path / "images", tmp_path / "media.lance", encoder=encoder, settings=in_processes_of(1))


@pytest.mark.slow
def test_process__that_is_killed_once(folder: Path, tmp_path: Path, started: list[int]) -> None:
    """The images of a process that was killed are decoded by another one."""
    killed: list[int] = []

    def kill(_share: float) -> None:
        if started and not killed:
            killed.append(started[0])
            os.kill(started[0], signal.SIGKILL)

    for number in range(100, 400):
        (folder / f"{number}.jpg").hardlink_to(folder / "001.jpg")
    ingested = run(
        folder, tmp_path / "media.lance", encoder=PortableColours(), settings=in_processes_of(2), progress=kill
    )
    rows = by_name(rows_of(tmp_path / "media.lance", ingested))
    assert (len(killed), len(rows)) == (1, 345)
    assert sorted(name for name, row in rows.items() if row["error"]) == ["042.jpg", "043.jpg", "044.jpg"]


@pytest.mark.slow
def test_abort__ends_the_processes(folder: Path, tmp_path: Path, started: list[int]) -> None:
    """Stopping a run leaves no process."""
    with pytest.raises(Aborted):
        run(
            folder, tmp_path / "media.lance", encoder=PortableColours(), settings=in_processes_of(2),
            progress=StopAt(0.5),
        )  # fmt: skip
    assert started
    assert not any(Path(f"/proc/{pid}").exists() for pid in started)
