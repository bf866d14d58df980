"""Datasets of each executor: the same rows, copies and standings bit for bit."""

import sys
from collections import Counter
from concurrent.futures import Future
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from framedex import Dataset, Workspace
from framedex.executors import ProcessExecutor
from framedex.executors.resources import Need
from framedex.settings import PROCESSES, THREADS
from framedex.storage.copy_pairs import read_pairs
from tests.api.test_dataset__copies import cut, edited, framed, mirrored, turned
from tests.gallery import VERIFYING
from tests.growth import columns_of
from tests.image_files import detailed, write
from tests.inside import stored_media
from tests.tuning import Tuning

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="processes are started as on POSIX")
CHANGES = (cut, mirrored, turned, framed, edited)
STEPS = {"taken_poses", "_similarities", "_compared", "registered_pairs", "_proofs", "_RemoteRows", "RemoteWriter"}
"""The work that runs on executors, by the names of functions and classes."""


@pytest.fixture
def images(tmp_path: Path) -> Path:
    """A folder of images and of copies of them, and a file that is no image."""
    folder = tmp_path / "images"
    for number in range(8):
        original = detailed(number)
        write(folder / f"{number:02}.png", original)
        write(folder / f"{number:02}-copy.jpg", CHANGES[number % len(CHANGES)](original))
    (folder / "broken.jpg").write_bytes(b"no image")
    return folder


def content_of(dataset: Dataset) -> tuple[dict[str, Any], list[Any]]:
    """Return the columns of a dataset that do not name it, and its copies."""
    media = stored_media(dataset)
    pairs = read_pairs(media.table, media.generation.tables)
    names = [name for name in media.table.schema.names if name not in ("media_id", "added_at")]
    return columns_of(dataset, names), [] if pairs is None else [getattr(pairs, each.name) for each in fields(pairs)]


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """The steps that processes did, with their numbers of items."""
    found = Counter[str]()

    hand_over = ProcessExecutor._hand_over

    def noted(self: ProcessExecutor, function: Any, item: Any, need: Need) -> "Future[Any]":
        function_ = getattr(function, "func", function)
        found[getattr(function_, "__name__", type(function_).__name__)] += 1
        return hand_over(self, function, item, need)

    monkeypatch.setattr(ProcessExecutor, "_hand_over", noted)
    return found


@pytest.mark.slow
def test_dataset__in_processes(images: Path, tmp_path: Path, tuning: Tuning, steps: Counter[str]) -> None:
    """All columns and all copies are those of threads."""
    tuning.executor_images = 0
    found = []
    for name in (THREADS, PROCESSES):
        settings = VERIFYING.model_copy(update={"executor": name, "processes": 1, "copy_budget_ms": 500.0})
        with Workspace(tmp_path / name, settings=settings) as workspace:
            found.append(content_of(workspace.create_dataset("all", images, "gist")))
        assert (steps == Counter()) == (name == THREADS)
    (rows, pairs), (other_rows, other_pairs) = found
    assert repr(rows) == repr(other_rows)  # also where there is no number
    assert len(pairs[0]) >= 5
    for mine, its in zip(pairs, other_pairs, strict=True):
        np.testing.assert_array_equal(mine, its)
    assert set(steps) == STEPS
