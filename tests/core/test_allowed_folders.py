"""Files are read below allowed folders only, whatever links lead to them, also ones that are exchanged meanwhile."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from framedex.core import allowed_folders
from framedex.core.allowed_folders import OUTSIDE, AllowedFolders, OwnPath, each_within, within
from framedex.core.regular_files import (
    engine_file,
    has_file,
    has_folder,
    may_read,
    open_binary,
    read_bytes,
    read_text,
    scan,
)
from framedex.errors import Forbidden

SECRET = b"a secret"


@pytest.fixture(autouse=True, params=[True, False], ids=["by-descriptors", "by-paths"])
def _descriptors(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test runs also as on systems where files cannot be opened below the descriptor of a folder."""
    if request.param and not allowed_folders._HAS_FOLDER_DESCRIPTORS:
        pytest.skip("needs descriptors of folders")
    monkeypatch.setattr(allowed_folders, "_HAS_FOLDER_DESCRIPTORS", request.param)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """An allowed folder with a file, beside a secret file outside of it."""
    (tmp_path / "secret.txt").write_bytes(SECRET)
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets" / "a.txt").write_bytes(SECRET)
    (tmp_path / "root" / "deep" / "er").mkdir(parents=True)
    (tmp_path / "root" / "a.txt").write_bytes(b"a")
    (tmp_path / "root" / "deep" / "er" / "b.txt").write_bytes(b"b")
    (tmp_path / "root-beside").mkdir()
    (tmp_path / "root-beside" / "a.txt").write_bytes(SECRET)
    return tmp_path / "root"


def outside(root: Path) -> Iterator[Path]:
    """Yield paths that lead out of the root, to files that exist and to some that do not."""
    home = root.parent
    targets = {"to-file": "secret.txt", "to-nothing": "nothing.txt", "to-beside": "root-beside/a.txt"}
    for name, target in targets.items():
        (root / name).symlink_to(home / target)
        yield root / name
    (root / "to-folder").symlink_to(home / "secrets")
    (root / "relative").symlink_to("../secret.txt")
    (root / "chain").symlink_to("relative")
    yield from (root / "to-folder" / "a.txt", root / "to-folder" / "nothing.txt", root / "relative", root / "chain")
    yield from (
        home / "secret.txt",
        home / "nothing.txt",
        root / ".." / "secret.txt",
        root / "deep" / ".." / ".." / "secret.txt",
    )
    yield from (home / "root-beside" / "a.txt", Path("/etc/passwd"), Path("/proc/self/environ"), home)


def test_within__reads_what_is_below(root: Path) -> None:
    """Files and links within the folder are read; a root may be a link itself, or the file system's."""
    (root / "inner").symlink_to(root / "deep")
    (root.parent / "link").symlink_to(root)
    for allowed in (AllowedFolders([root]), AllowedFolders([root.parent / "link"]), AllowedFolders(["/"])):
        for base in (root, root.parent / "link"):
            with within(allowed):
                assert read_bytes(base / "a.txt", 9) == b"a"
                assert read_text(base / "inner" / "er" / "b.txt") == "b"
                assert has_file(base / "a.txt")
                assert not has_file(base / "missing.txt")
                assert has_folder(base / "inner")
                with scan(base / "inner") as entries:
                    assert [entry.name for entry in entries if entry.is_dir()] == ["er"]
                with engine_file(base / "a.txt") as opened:
                    assert not isinstance(opened, Path)
                    assert opened.read() == b"a"
                with pytest.raises(FileNotFoundError):
                    read_bytes(base / "missing.txt", 9)
                with pytest.raises(IsADirectoryError):
                    open_binary(base / "deep")


def test_within__refuses_what_is_outside(root: Path) -> None:
    """Whatever is outside is refused with one sentence, whether it exists or not."""
    allowed = AllowedFolders([root])
    reads: list[Callable[[Path], object]] = [
        lambda path: read_bytes(path, 99), read_text, open_binary, engine_file, has_file, has_folder,
        lambda path: list(scan(path).__enter__()), allowed.check,
    ]  # fmt: skip
    for path in outside(root):
        for read in reads:
            with pytest.raises(Forbidden) as caught, within(allowed):
                read(path)
            assert str(caught.value) == f"{str(path)!r} cannot be read: {OUTSIDE}"
        assert not allowed.contains(path)
        with within(allowed):
            assert not may_read(path)


def test_within__nothing_is_allowed(root: Path) -> None:
    """Without any folder nothing is read."""
    with pytest.raises(Forbidden), within(AllowedFolders([])):
        read_bytes(root / "a.txt", 9)


def test_within__own_files(root: Path) -> None:
    """A file of our own is read anywhere; its path is text like any other."""
    own = OwnPath(root.parent / "secret.txt")
    with within(AllowedFolders([root])):
        assert read_bytes(own, 99) == SECRET
        with pytest.raises(Forbidden):
            has_file(str.__str__(own) + "")
    assert own == str(root.parent / "secret.txt")


def test_within__ends(root: Path) -> None:
    """The restriction ends with its block, also after an error, and one within another counts."""
    with within(AllowedFolders([root.parent])):
        with pytest.raises(Forbidden), within(AllowedFolders([root])):
            read_bytes(root.parent / "secret.txt", 99)
        assert read_bytes(root.parent / "secret.txt", 99) == SECRET
    assert read_bytes("/etc/hostname", 99) is not None
    with within(None):
        assert read_bytes(root.parent / "secret.txt", 99) == SECRET


def test_each_within__restricts_only_the_reader(root: Path) -> None:
    """A generator opens within the folders, and whoever takes its items is free in between."""

    def read() -> Iterator[bytes]:
        yield read_bytes(root / "a.txt", 9)
        yield read_bytes(root.parent / "secret.txt", 99)

    items = each_within(AllowedFolders([root]), read)
    assert next(items) == b"a"
    assert read_bytes(root.parent / "secret.txt", 99) == SECRET
    with pytest.raises(Forbidden):
        next(items)
    assert list(each_within(None, read)) == [b"a", SECRET]


@pytest.mark.parametrize("part", ["file", "folder"])
def test_within__a_link_that_comes_after_the_check(root: Path, monkeypatch: pytest.MonkeyPatch, part: str) -> None:
    """A file or a folder that becomes a link between check and opening is refused, with the same sentence."""
    path, resolve = root / "deep" / "er" / "b.txt", os.path.realpath
    changed = path if part == "file" else root / "deep"
    target = root.parent / "secret.txt" if part == "file" else root.parent / "other"
    (root.parent / "other" / "er").mkdir(parents=True)
    (root.parent / "other" / "er" / "b.txt").write_bytes(SECRET)

    def swap(given: str) -> str:
        real = resolve(given)
        if not changed.is_symlink():
            changed.rename(changed.with_name("moved"))
            changed.symlink_to(target)
        return real

    allowed = AllowedFolders([root])
    monkeypatch.setattr(os.path, "realpath", swap)
    with pytest.raises(Forbidden, match="it lies outside of the folders"), within(allowed):
        read_bytes(path, 99)
    assert read_bytes(path, 99) == SECRET


def test_within__a_pipe(root: Path) -> None:
    """A pipe below the folder is refused as elsewhere, without waiting for a writer."""
    os.mkfifo(root / "pipe")
    with pytest.raises(OSError, match="not a regular file"), within(AllowedFolders([root])):
        open_binary(root / "pipe")


@pytest.mark.skipif(not hasattr(os, "setresuid"), reason="needs another user")
def test_within__folders_that_can_be_entered_and_not_listed(root: Path) -> None:
    """A folder on the way needs no permission to be listed."""
    (root / "deep").chmod(0o311)
    try:
        with within(AllowedFolders([root])):
            assert read_bytes(root / "deep" / "er" / "b.txt", 9) == b"b"
    finally:
        (root / "deep").chmod(0o755)
