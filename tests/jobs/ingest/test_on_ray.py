"""Decoding by the workers of a Ray cluster: the same rows as on threads, whatever happens to a worker."""

import logging
import signal
import sys
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from framedex.encoders import choose_encoder
from framedex.encoders.gist import Gist
from framedex.errors import Aborted
from framedex.executors import RayExecutor
from framedex.executors.resources import Need
from framedex.jobs.ingest.ingest import batch_of
from framedex.settings import RAY, THREADS, Settings
from framedex.storage.media_rows import copy_schema
from framedex.storage.table_checks import unreferenced_files
from tests.encoders.onnx_models import classifier
from tests.image_files import GREEN, RED, flat, photo, write
from tests.jobs.fakes import Colours, PortableColours, end_on_green
from tests.jobs.ingest import part_workers
from tests.jobs.ingest.test_ingest import rows_of, run
from tests.jobs.ingest.test_parts import Until, filled, has_no_process
from tests.pauses import wait_until

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="processes are started as on POSIX")
COPIES = copy_schema(Gist.dimension, is_embedding=True)
ON_RAY = Settings(executor=RAY, pixels_in_flight=500_000)  # so that a large image waits for its turn


@pytest.fixture
def needs(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, float]]:
    """The functions that workers of Ray ran, with the GPUs that each item needed."""
    found: list[tuple[str, float]] = []
    hand_over = RayExecutor._hand_over

    def noted(self: RayExecutor, function: Any, item: Any, need: Need) -> "Future[Any]":
        found.append((type(function).__name__, need.gpus))
        return hand_over(self, function, item, need)

    monkeypatch.setattr(RayExecutor, "_hand_over", noted)
    return found


@pytest.mark.slow
def test_rows__are_those_of_threads(on_ray: None, tmp_path: Path, needs: list[tuple[str, float]]) -> None:
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
    assert decoded.rows == 43
    assert needs == [("RemoteWriter", 0), ("RemoteDecoder", 0)]  # a part, and few images


@pytest.mark.slow
def test_rows__of_parts(on_ray: None, tmp_path: Path) -> None:
    """Rows that workers write are those of threads; the part of a worker that was killed is written by another one."""
    folder = filled(tmp_path / "images")
    here = run(folder, tmp_path / "1.lance", encoder=Gist(), settings=Settings(executor=THREADS), of_copies=COPIES)
    with part_workers.working(writer=part_workers.OnceKilledWriter):
        there = run(folder, tmp_path / "2.lance", encoder=Gist(), settings=ON_RAY, of_copies=COPIES)
    assert rows_of(tmp_path / "2.lance", there) == rows_of(tmp_path / "1.lance", here)
    assert (tmp_path / "killed").exists()
    assert len(unreferenced_files(tmp_path / "2.lance")) == 1


@pytest.mark.slow
@part_workers.working(decoder=part_workers.WaitingDecoder)
def test_abort__of_parts(on_ray: None, tmp_path: Path) -> None:
    """It does not wait for the parts in progress, and their workers end."""
    folder = filled(tmp_path / "images", 30)
    with pytest.raises(Aborted):
        run(
            folder, tmp_path / "media.lance", encoder=Gist(), settings=ON_RAY,
            progress=Until(tmp_path, part_workers.abort),
        )  # fmt: skip
    wait_until(lambda: has_no_process(tmp_path))


@pytest.mark.slow
def test_model__on_a_gpu(on_ray: None, tmp_path: Path, needs: list[tuple[str, float]]) -> None:
    """Workers with a GPU load the encoder by its name; batches are in order, files that are broken have no vector."""
    folder = tmp_path / "images"
    for number in range(150):
        write(folder / f"{number:03}.png", flat((number, 250 - number, 40), width=20, height=20))
    (folder / "077.png").write_bytes(b"no image")
    encoder, _ = choose_encoder(f"onnx:{classifier(tmp_path / 'model.onnx')}")
    here = run(folder, tmp_path / "1.lance", encoder=encoder, settings=Settings(executor=THREADS))
    there = run(folder, tmp_path / "2.lance", encoder=encoder, settings=ON_RAY)
    assert rows_of(tmp_path / "2.lance", there) == rows_of(tmp_path / "1.lance", here)
    assert there.rows == 150
    assert needs.count(("RemoteEncoder", 1)) == -(-150 // batch_of(encoder)) > 1
    assert {name for name, _ in needs} == {"RemoteDecoder", "RemoteEncoder"}


@pytest.mark.only_soak
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
