"""Decoding by the workers of a Ray cluster: the same rows as on threads, whatever happens to a worker."""

import logging
import signal
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from framedex.encoders.gist import Gist
from framedex.executors import RayExecutor
from framedex.settings import RAY, THREADS, Settings
from framedex.storage.media_rows import copy_schema
from tests.image_files import GREEN, RED, flat, photo, write
from tests.jobs.fakes import Colours, PortableColours, end_on_green
from tests.jobs.ingest.test_ingest import rows_of, run

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="processes are started as on POSIX")
COPIES = copy_schema(Gist.dimension, is_embedding=True)
ON_RAY = Settings(executor=RAY, pixels_in_flight=500_000)  # so that a large image waits for its turn


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of the chunks that the workers of Ray decoded."""
    found: list[int] = []
    call = RayExecutor.call

    def noted(self: RayExecutor, function: Any, item: Any) -> Any:
        found.append(len(item))
        return call(self, function, item)

    monkeypatch.setattr(RayExecutor, "call", noted)
    return found


@pytest.mark.slow
def test_rows__are_those_of_threads(on_ray: None, tmp_path: Path, calls: list[int]) -> None:
    """Every column has the very same values, for a large image and for files that are broken, too."""
    folder = tmp_path / "images"
    for number in range(40):
        write(folder / f"{number:03}.{'jpg' if number % 2 else 'png'}", photo(number, width=60 + number, height=50))
    write(folder / "041.png", flat((9, 9, 9), width=900, height=900))
    (folder / "042.jpg").write_bytes(b"no image")
    (folder / "044.jpg").symlink_to("nowhere")
    on_threads = run(
        folder, tmp_path / "1.lance", encoder=Gist(), settings=Settings(executor=THREADS), of_copies=COPIES
    )
    decoded = run(folder, tmp_path / "2.lance", encoder=Gist(), settings=ON_RAY, of_copies=COPIES)
    assert rows_of(tmp_path / "2.lance", decoded) == rows_of(tmp_path / "1.lance", on_threads)
    assert (decoded.rows, sum(calls)) == (43, 43)


@pytest.mark.slow
def test_image__that_ends_its_worker(on_ray: None, tmp_path: Path) -> None:
    """It is a broken image, as a process on this machine shows, whose end can be seen."""
    write(tmp_path / "images" / "b.png", flat(GREEN))
    encoder = PortableColours(partial(end_on_green, by=int(signal.SIGSEGV)))
    ingested = run(tmp_path / "images", tmp_path / "media.lance", encoder=encoder, settings=ON_RAY)
    [row] = rows_of(tmp_path / "media.lance", ingested)
    assert row["error"] == "its decoding ended the process (signal SIGSEGV)"


def test_encoder__of_this_process(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """An encoder that cannot be used in other processes prepares on threads, which is said; Ray is not started."""
    caplog.set_level(logging.WARNING, "framedex")
    write(tmp_path / "images" / "a.png", flat(RED))
    settings = Settings(executor="ray://127.0.0.1:1")
    assert run(tmp_path / "images", tmp_path / "media.lance", encoder=Colours(), settings=settings).rows == 1
    [message] = caplog.messages
    assert message.startswith("images are decoded on threads, not by the executor 'ray://127.0.0.1:1': the encoder ")
