"""Results of stages are there for another run of the computation, until the machine is started again."""

import errno
import os
import time
from pathlib import Path

import numpy as np
import pytest

from framedex.core import stages as module
from framedex.core.stages import Stages, last_stage_time
from tests.failures import failing


def test_stages__keep_results(tmp_path: Path) -> None:
    """A result is computed once, also where another object asks for it, and again after it was removed."""
    calls = []

    def compute() -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        calls.append(1)
        return np.arange(3)

    assert Stages(tmp_path).get("first") is None
    for _ in range(2):
        np.testing.assert_array_equal(Stages(tmp_path).once("first", compute), [0, 1, 2])
    assert len(calls) == 1
    Stages(tmp_path).put("first", "another one")
    assert Stages(tmp_path).once("first", compute) == "another one"
    Stages(tmp_path).remove("first", "missing")
    Stages(tmp_path).once("first", compute)
    assert len(calls) == 2


def test_stages__that_fail_leave_nothing(tmp_path: Path) -> None:
    """A stage that raises is not complete, and one that cannot be written leaves no file."""
    with pytest.raises(ZeroDivisionError):
        Stages(tmp_path).once("first", lambda: 1 // 0)
    with pytest.raises(AttributeError):
        Stages(tmp_path).put("first", lambda: 1)
    assert list(tmp_path.iterdir()) == []


def test_stages__end_with_the_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing that was kept before the machine was started counts, as the files beside it may be incomplete."""
    assert last_stage_time(tmp_path) is None
    Stages(tmp_path).put("first", 1)
    assert time.time() - (last_stage_time(tmp_path) or 0) < 60
    monkeypatch.setattr(module, "_head", lambda: b"another one\n")
    assert Stages(tmp_path).get("first") is None
    assert last_stage_time(tmp_path) is None
    assert Stages(tmp_path).once("first", lambda: 2) == 2
    assert last_stage_time(tmp_path) is not None


def test_stages__are_not_kept_on_a_full_disk(tmp_path: Path) -> None:
    """The result is returned all the same; files that a crash of the machine cut off do not count."""
    with failing("framedex.core.stages.Stages.put", error=OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))):
        assert Stages(tmp_path).once("first", lambda: 1) == 1
    for content in (b"", b"\0" * 100, b"another time\n"):
        (tmp_path / "stage-first").write_bytes(content)
        assert Stages(tmp_path).get("first") is None
        assert last_stage_time(tmp_path) is None


def test_stages__elsewhere_count_in_the_same_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A system that does not name the time since it was started has results of this process alone."""
    monkeypatch.setattr(module, "_BOOT", tmp_path / "missing")
    Stages(tmp_path).put("first", 1)
    assert Stages(tmp_path).get("first") == 1
    monkeypatch.setattr(module, "_PROCESS", "another one")
    assert Stages(tmp_path).get("first") is None
