"""Temporary files are gone after success, failure and the end of the process, and are not begun without space."""

import errno
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from framedex.errors import WorkspaceError
from framedex.storage.spill import remove_spills, spill_folder

_LEFT = """
import os, sys
from pathlib import Path
from framedex.storage.spill import spill_folder
with spill_folder(Path(sys.argv[1]), 0, "a test") as folder:
    (folder / "file").write_bytes(b"12345")
    print("ready", flush=True)
    sys.stdin.read()
"""


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


def test_spill_folder__needs_space(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without enough space nothing is made, and the error names what is needed and what is free."""
    usage: Any = type("Usage", (), {"free": 1000 * 2**20})
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: usage)
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
    command = [sys.executable, "-c", _LEFT, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        assert remove_spills(tmp_path) == 0
        assert len([each for each in tmp_path.iterdir() if each.is_dir()]) == 1
        process.kill()
    assert remove_spills(tmp_path) == 5
    assert list(tmp_path.iterdir()) == []
    assert remove_spills(tmp_path / "missing") == 0
