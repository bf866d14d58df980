"""Sizes of files on disk, and the bytes that their removal frees."""

import os
from pathlib import Path

import pytest

from framedex.storage import disk


def test_walk_files__follows_no_links(tmp_path: Path) -> None:
    """All files at any depth are found; a link counts as a file, also one to a folder; a missing folder has none."""
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "x").write_bytes(b"12345")
    (tmp_path / "a" / "loop").symlink_to(tmp_path)
    found = {path.relative_to(tmp_path).as_posix(): status.st_size for path, status in disk.walk_files(tmp_path)}
    assert found.keys() == {"a/b/x", "a/loop"}
    assert found["a/b/x"] == 5
    assert list(disk.walk_files(tmp_path / "missing")) == []


def test_entries__of_folders_and_others(tmp_path: Path) -> None:
    """Entries of a folder are sorted, and its direct files are listed; a missing folder and a file have no entries."""
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "deep").touch()
    (tmp_path / "c").write_bytes(b"12")
    (tmp_path / "a").write_bytes(b"1")
    (tmp_path / "d").symlink_to("c")
    assert [path.name for path in disk.entries(tmp_path)] == ["a", "b", "c", "d"]
    assert [(path.name, status.st_size) for path, status in disk.files_in(tmp_path)] == [("a", 1), ("c", 2)]
    assert disk.entries(tmp_path / "missing") == disk.entries(tmp_path / "a") == []
    assert list(disk.files_in(tmp_path / "missing")) == []


def test_remove__counts_what_comes_free(tmp_path: Path) -> None:
    """Removing a file with another hard link frees nothing; removing a missing file frees nothing and is no error."""
    kept, gone = tmp_path / "kept", tmp_path / "gone"
    for folder in (kept, gone):
        folder.mkdir()
    (gone / "own").write_bytes(bytes(10))
    (gone / "shared").write_bytes(bytes(100))
    os.link(gone / "shared", kept / "shared")
    assert disk.remove_file(gone / "shared") == 0
    assert disk.remove_file(gone / "shared") == 0
    assert disk.remove_tree(gone) == 10
    assert disk.remove_tree(gone) == 0
    assert disk.remove_file(kept / "shared") == 100


def test_freed_since(tmp_path: Path) -> None:
    """Files removed since the measurement count; new files do not."""
    (tmp_path / "a").write_bytes(bytes(7))
    (tmp_path / "b").write_bytes(bytes(5))
    before = disk.measure_folder(tmp_path)
    (tmp_path / "a").unlink()
    (tmp_path / "new").write_bytes(bytes(50))
    assert disk.freed_since(before, tmp_path) == 7


def test_set_aside__is_recognised(tmp_path: Path) -> None:
    """A file that is set aside is gone from its path, and its new path is recognised."""
    folder = tmp_path / "tags.lance"
    folder.mkdir()
    aside = disk.set_aside(folder)
    assert not folder.exists()
    assert aside.is_dir()
    assert disk.is_aside(aside)
    assert not any(map(disk.is_aside, (folder, tmp_path / ".hidden", tmp_path / "x.removed")))


def test_remove_file__that_cannot_go(tmp_path: Path) -> None:
    """A file that cannot be removed raises an error."""
    with pytest.raises(OSError, match=r"."):
        disk.remove_file(tmp_path)
