"""Locks of files are held by one process or thread at a time, also where their holder removes the file."""

import os
import threading
from pathlib import Path

import pytest

from framedex.core.file_locks import is_locked, locked, locked_if_free

pytestmark = pytest.mark.skipif(os.name != "posix", reason="other systems have no such locks")


def test_locked_if_free__does_not_wait(tmp_path: Path) -> None:
    """It yields whether it holds the lock."""
    path = tmp_path / "lock"
    with locked(path):
        assert is_locked(path)
        with locked_if_free(path) as is_held:
            assert not is_held
    with locked_if_free(path) as is_held:
        assert is_held
        assert is_locked(path)
    assert not is_locked(path)


def test_locked__makes_a_removed_file_again(tmp_path: Path) -> None:
    """Who waits for a file that its holder removes locks the file that others find, not the one that is gone."""
    path, waits, ends = tmp_path / "lock", threading.Event(), threading.Event()

    def wait() -> None:
        with locked(path):
            waits.set()
            ends.wait(60)

    thread = threading.Thread(target=wait)
    with locked(path):
        thread.start()
        assert not waits.wait(0.2)
        path.unlink()
    assert waits.wait(60)
    assert is_locked(path)
    ends.set()
    thread.join()
    assert not is_locked(path)
