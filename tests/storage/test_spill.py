"""Temporary files are gone after success, failure and the end of the process, and are not begun without space."""

import errno
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from framedex.core.stages import Stages
from framedex.errors import WorkspaceError
from framedex.storage.spill import remove_spills, spill_folder

_LEFT = """
import os, sys
from pathlib import Path
from framedex.core.stages import Stages
from framedex.storage.spill import spill_folder
with spill_folder(Path(sys.argv[1]), 0, "a test", key=sys.argv[2]) as folder:
    (folder / "file").write_bytes(b"12345")
    if sys.argv[3] == "with a stage":
        Stages(folder).put("first", 1)
    print("ready", flush=True)
    sys.stdin.read()
"""


def _leave(parent: Path, key: str, stage: str) -> None:
    """Let a process be killed within a spill folder."""
    command = [sys.executable, "-c", _LEFT, str(parent), key, stage]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        process.kill()


def _fail_within(parent: Path, error: Exception) -> None:
    with spill_folder(parent, 10, "a test") as folder:
        (folder / "file").touch()
        raise error


def test_spill_folder__is_gone_after_the_block(tmp_path: Path) -> None:
    """After success and after an error, nothing is left."""
    with spill_folder(tmp_path / "spill", 10, "a test") as folder:
        (folder / "file").touch()
        assert remove_spills(tmp_path / "spill") == 0
        assert (folder / "file").exists()
    with pytest.raises(ZeroDivisionError):
        _fail_within(tmp_path / "spill", ZeroDivisionError())
    assert list((tmp_path / "spill").iterdir()) == []


def test_spill_folder__needs_space(tmp_path: Path, set_free_space: Callable[[int], None]) -> None:
    """Without enough space nothing is made, and the error names what is needed and what is free."""
    set_free_space(1000 * 2**20)
    begins = spill_folder(tmp_path, 900 * 2**20, "the index")
    with pytest.raises(WorkspaceError, match=r"the index needs 1,\d+,\d+,\d+ bytes .* 1,048,576,000 are free"):
        begins.__enter__()
    assert list(tmp_path.iterdir()) == []


def test_spill_folder__that_is_full(tmp_path: Path) -> None:
    """A disk that is full within the block is an error of ours; other errors stay as they are."""
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    of_numpy = OSError("Not enough free space to write 24 bytes after offset 128")
    for error, is_full in ((full, True), (of_numpy, True), (OSError(errno.EIO, os.strerror(errno.EIO)), False)):
        with pytest.raises(WorkspaceError if is_full else OSError) as caught:
            _fail_within(tmp_path, error)
        assert (type(caught.value) is WorkspaceError) == is_full
        assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.name != "posix", reason="other systems have no such locks")
def test_remove_spills__of_killed_processes_alone(tmp_path: Path) -> None:
    """The files of a process that runs stay; those of one that was killed are removed, and counted."""
    command = [sys.executable, "-c", _LEFT, str(tmp_path), "", "without one"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        assert remove_spills(tmp_path) == 0
        assert len([each for each in tmp_path.iterdir() if each.is_dir()]) == 1
        process.kill()
    assert remove_spills(tmp_path) == 5
    assert list(tmp_path.iterdir()) == []
    assert remove_spills(tmp_path / "missing") == 0


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not name the time since they were started")
def test_spill_folder__goes_on_from_stages(tmp_path: Path) -> None:
    """What a killed process left is there for the same task if a stage was complete, and for no other one."""
    _leave(tmp_path, "a" * 32, "with a stage")
    _leave(tmp_path, "b" * 32, "without one")
    with spill_folder(tmp_path, 10, "a test", key="c" * 32) as folder:
        assert list(folder.iterdir()) == []
        assert [each.name for each in tmp_path.iterdir() if each.is_dir() and each != folder] == ["a" * 32]
    with spill_folder(tmp_path, 10, "a test", key="a" * 32) as folder:
        assert (folder / "file").read_bytes() == b"12345"
        assert Stages(folder).get("first") == 1
        assert remove_spills(tmp_path) == 0
        with spill_folder(tmp_path, 10, "the same test, meanwhile", key="a" * 32) as other:
            assert other != folder
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not name the time since they were started")
def test_remove_spills__keeps_stages_for_a_while(tmp_path: Path, set_free_space: Callable[[int], None]) -> None:
    """Stages stay for as long as is asked, unless another task needs their space."""
    _leave(tmp_path, "a" * 32, "with a stage")
    assert remove_spills(tmp_path, kept_s=3600) == 0
    assert remove_spills(tmp_path, kept_s=1e-9) > 5
    _leave(tmp_path, "a" * 32, "with a stage")
    set_free_space(300 * 2**20)
    with spill_folder(tmp_path, 44 * 2**20 + 5, "the same task", key="a" * 32) as folder:
        assert (folder / "file").exists(), "the file counts as space that is there"
    _leave(tmp_path, "a" * 32, "with a stage")
    with pytest.raises(WorkspaceError, match="another task needs"):
        spill_folder(tmp_path, 60 * 2**20, "another task", key="b" * 32).__enter__()
    assert [each for each in tmp_path.iterdir() if each.is_dir()] == []
