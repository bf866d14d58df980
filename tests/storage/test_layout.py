"""A folder becomes a workspace only if that harms nothing, and is opened only in a supported format."""

import multiprocessing
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from framedex.errors import FormatTooNew, WorkspaceError
from framedex.storage.layout import FORMAT_VERSION, MARKER, Layout, open_layout
from tests.environment import Environment


def contents(folder: Path) -> dict[str, bytes]:
    """Return all files below a folder with their content."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("name", ["new", "deep/er/new", "empty", "a b#c?%41é"])
def test_open__makes_a_workspace(tmp_path: Path, name: str) -> None:
    """A missing or empty folder becomes a workspace with the present format version."""
    (tmp_path / "empty").mkdir()
    layout = open_layout(tmp_path / name, read_only=False)
    assert layout == Layout(tmp_path / name)
    assert contents(layout.root) == {MARKER: f"format_version = {FORMAT_VERSION}\n".encode()}
    assert (layout.root / "datasets").is_dir()


def test_open__again_changes_nothing(tmp_path: Path) -> None:
    """An existing workspace is opened unchanged, for writing and for reading."""
    open_layout(tmp_path / "ws", read_only=False)
    before = contents(tmp_path)
    for read_only in (False, True):
        assert open_layout(str(tmp_path / "ws"), read_only=read_only).root == tmp_path / "ws"
    assert contents(tmp_path) == before


def test_open__paths_are_absolute(in_tmp_path: Path, environment: Environment) -> None:
    """Relative paths and the home folder's sign are resolved when the workspace is opened."""
    environment["HOME"] = str(in_tmp_path / "home")
    assert open_layout("ws", read_only=False).root == in_tmp_path / "ws"
    assert open_layout("~/ws", read_only=False).root == in_tmp_path / "home" / "ws"


def test_open__ignores_hidden_files(tmp_path: Path) -> None:
    """Hidden files of the system or of an interrupted creation do not prevent a workspace."""
    (tmp_path / ".DS_Store").touch()
    (tmp_path / f".{MARKER}.1.partial").write_text("format_ver")
    open_layout(tmp_path, read_only=False)


def test_open__refuses_other_peoples_folders(tmp_path: Path) -> None:
    """A folder with other files is refused and stays unchanged."""
    (tmp_path / "photo.jpg").write_bytes(b"x")
    with pytest.raises(WorkspaceError, match="holds other files"):
        open_layout(tmp_path, read_only=False)
    assert contents(tmp_path) == {"photo.jpg": b"x"}
    assert not (tmp_path / "datasets").exists()


def test_open__refuses_a_file(tmp_path: Path) -> None:
    """A file, and a path below a file, cannot be a workspace."""
    (tmp_path / "file").touch()
    for read_only in (False, True):
        with pytest.raises(WorkspaceError, match="is a file; a workspace is a folder"):
            open_layout(tmp_path / "file", read_only=read_only)
    with pytest.raises(WorkspaceError, match="cannot use"):
        open_layout(tmp_path / "file" / "ws", read_only=False)


@pytest.mark.parametrize("name", ["missing", "empty"])
def test_open__for_reading_makes_nothing(tmp_path: Path, name: str) -> None:
    """A folder that is not a workspace cannot be opened for reading, and does not become one."""
    (tmp_path / "empty").mkdir()
    with pytest.raises(WorkspaceError, match="is not a workspace"):
        open_layout(tmp_path / name, read_only=True)
    assert [path.name for path in tmp_path.iterdir()] == ["empty"]
    assert not list((tmp_path / "empty").iterdir())


def test_open__refuses_a_newer_format(tmp_path: Path) -> None:
    """A workspace of a newer version is refused with the advice to update."""
    (tmp_path / MARKER).write_text(f"format_version = {FORMAT_VERSION + 1}\nsomething = 'new'\n")
    for read_only in (False, True):
        with pytest.raises(FormatTooNew, match="install a newer Framedex"):
            open_layout(tmp_path, read_only=read_only)


@pytest.mark.parametrize(
    "marker",
    [
        b"",
        b"format_version",
        b"format_version = 'one'",
        b"format_version = 0",
        b"format_version = 1.0",
        b"\xff\xfe",
        b"\0",
        b"a=" + b"[" * 10_000,
    ],
    ids=range(8),
)
def test_open__refuses_a_broken_marker(tmp_path: Path, marker: bytes) -> None:
    """A truncated or invalid marker raises an error with its path."""
    (tmp_path / MARKER).write_bytes(marker)
    with pytest.raises(WorkspaceError, match=r"framedex\.toml") as caught:
        open_layout(tmp_path, read_only=False)
    assert not isinstance(caught.value, FormatTooNew)
    assert (tmp_path / MARKER).read_bytes() == marker


@pytest.mark.parametrize("name", ["x" * 10_000, "a\0b"])
def test_open__impossible_names(tmp_path: Path, name: str) -> None:
    """Names that no file system allows raise WorkspaceError."""
    with pytest.raises(WorkspaceError):
        open_layout(tmp_path / name, read_only=False)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="nothing is read-only for root")
def test_open__in_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    """No workspace is created in a read-only folder."""
    tmp_path.chmod(0o555)
    try:
        with pytest.raises(WorkspaceError, match="cannot use"):
            open_layout(tmp_path / "ws", read_only=False)
    finally:
        tmp_path.chmod(0o755)


def test_open__by_many_threads_at_once(tmp_path: Path) -> None:
    """Threads that create a workspace at once all open the first one."""
    for attempt in range(20):
        barrier, errors = threading.Barrier(4), list[BaseException]()
        root = tmp_path / str(attempt)

        def work(root: Path = root, barrier: threading.Barrier = barrier, errors: Any = errors) -> None:
            barrier.wait()
            try:
                open_layout(root, read_only=False)
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert errors == []
        assert sorted(path.name for path in root.iterdir()) == ["datasets", MARKER]


def _open_many(root: Path, barrier: Any, count: int) -> None:
    for attempt in range(count):
        barrier.wait()
        open_layout(root / str(attempt), read_only=False)


@pytest.mark.slow
def test_open__by_two_processes_at_once(tmp_path: Path) -> None:
    """Two processes that create the same workspace at once both open it."""
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(2)
    processes = [context.Process(target=_open_many, args=(tmp_path, barrier, 50)) for _ in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0, 0]


def test_layout__places(tmp_path: Path) -> None:
    """All paths are below the root, those of a dataset by its id."""
    layout = Layout(tmp_path)
    places = [layout.marker, layout.catalog, layout.dataset("x"), layout.media("x"), layout.thumbnails("x")]
    names = [str(place.relative_to(tmp_path)) for place in places]
    assert names == [MARKER, "catalog.db", "datasets/x", "datasets/x/media.lance", "cache/thumbnails/x"]
    assert layout.table("x", "media") == layout.media("x")
    assert layout.table("x", "cells").parent == layout.dataset("x")
