"""Files appear whole under their names, or not at all."""

import os
from contextlib import suppress
from pathlib import Path

import pytest

from framedex.core.atomic import SUFFIX, atomic_file, write_atomic


def names_in(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


@pytest.mark.parametrize("fsync", [False, True])
def test_atomic_file__appears_when_it_is_whole(tmp_path: Path, fsync: bool) -> None:
    """Until the end of the block, the older file is there; afterwards the new one, and nothing else."""
    (tmp_path / "a").write_bytes(b"old")
    with atomic_file(tmp_path / "a", fsync=fsync) as partial:
        partial.write_bytes(b"new")
        assert partial.name.endswith(SUFFIX)
        assert (tmp_path / "a").read_bytes() == b"old"
    assert (tmp_path / "a").read_bytes() == b"new"
    assert names_in(tmp_path) == ["a"]


@pytest.mark.parametrize("written", [True, False])
def test_atomic_file__is_given_up(tmp_path: Path, written: bool) -> None:
    """If the block raises, the older file stays, and nothing of the new one is left."""
    (tmp_path / "a").write_bytes(b"old")
    with suppress(KeyboardInterrupt), atomic_file(tmp_path / "a") as partial:
        if written:
            partial.write_bytes(b"half")
        raise KeyboardInterrupt
    assert (tmp_path / "a").read_bytes() == b"old"
    assert names_in(tmp_path) == ["a"]


def test_atomic_file__that_cannot_be_named(tmp_path: Path) -> None:
    """If the file cannot be renamed, the partial file is deleted, and the system's error is raised."""
    (tmp_path / "a").mkdir()
    with pytest.raises(OSError, match="directory"), atomic_file(tmp_path / "a") as partial:
        partial.write_bytes(b"new")
    assert names_in(tmp_path) == ["a"]


def test_atomic_file__of_two_writers(tmp_path: Path) -> None:
    """Two writers of one file do not share a partial file; the last one to end counts."""
    with atomic_file(tmp_path / "a") as first, atomic_file(tmp_path / "a") as second:
        assert first != second
        first.write_bytes(b"first")
        second.write_bytes(b"second")
    assert (tmp_path / "a").read_bytes() == b"first"


def test_atomic_file__by_a_link(tmp_path: Path) -> None:
    """Another way to give the name may leave an existing file, and the partial one goes all the same."""
    (tmp_path / "a").write_bytes(b"old")
    with (
        pytest.raises(FileExistsError),
        atomic_file(tmp_path / "a", put=os.link) as partial,
    ):
        partial.write_bytes(b"new")
    assert (tmp_path / "a").read_bytes() == b"old"
    assert names_in(tmp_path) == ["a"]


def test_write_atomic__bytes(tmp_path: Path) -> None:
    """Bytes are written in one call."""
    write_atomic(tmp_path / "a", b"content", fsync=True)
    assert (tmp_path / "a").read_bytes() == b"content"
    assert names_in(tmp_path) == ["a"]
