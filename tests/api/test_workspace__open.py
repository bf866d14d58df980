"""Opening workspaces: what is one, what is not, and what only may be read."""

import os
import shutil
import sqlite3
from pathlib import Path

import pytest

from framedex import FormatTooNew, InvalidInput, ReadOnly, Workspace, WorkspaceError
from tests.environment import Environment
from tests.gallery import SETTINGS, Gallery, embedded
from tests.processes import run


def test_open__creates(tmp_path: Path) -> None:
    """A folder that does not exist, also below others that do not, or that is empty becomes a workspace."""
    (tmp_path / "empty").mkdir()
    for path in (tmp_path / "a" / "b" / "c", tmp_path / "empty"):
        with Workspace(path) as workspace:
            assert workspace.path == path
            assert workspace.datasets() == []
            assert workspace.tasks().tasks == []
        assert (path / "framedex.toml").read_text() == "format_version = 1\n"


@pytest.mark.slow
def test_open__again(tmp_path: Path) -> None:
    """Datasets exist when the workspace is opened again, also after it was moved."""
    with Workspace(tmp_path / "first") as workspace:
        workspace.create_dataset("d", embedded([[1, 0], [0, 1]]))
        clusters = workspace.dataset("d").explore()
    shutil.move(tmp_path / "first", tmp_path / "second")
    with Workspace(str(tmp_path / "second")) as workspace:
        assert workspace.dataset("d").explore() == clusters


def test_open__relative_and_home(in_tmp_path: Path, environment: Environment) -> None:
    """The folder may be relative to the working folder or to the home folder."""
    environment["HOME"] = str(in_tmp_path / "home")
    with Workspace("here") as here, Workspace("~/there") as there:
        assert here.path == in_tmp_path / "here"
        assert there.path == in_tmp_path / "home" / "there"


def test_open__file(tmp_path: Path) -> None:
    """A file cannot be a workspace, nor can a folder below it."""
    (tmp_path / "file").write_text("")
    with pytest.raises(WorkspaceError, match=r"file is a file"):
        Workspace(tmp_path / "file")
    with pytest.raises(WorkspaceError, match="file"):
        Workspace(tmp_path / "file" / "below")
    assert (tmp_path / "file").read_text() == ""


def test_open__foreign_files(tmp_path: Path) -> None:
    """A folder that holds other things is not taken over, and stays as it is."""
    (tmp_path / "thesis.tex").write_text("precious")
    with pytest.raises(WorkspaceError, match="holds other files"):
        Workspace(tmp_path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["thesis.tex"]


@pytest.mark.parametrize("text", ["", "format_version = 'one'", "format_version = 0", "=", "\x00"])
def test_open__unreadable_version(tmp_path: Path, text: str) -> None:
    """A marker that names no version is an error that names the file."""
    (tmp_path / "framedex.toml").write_text(text)
    with pytest.raises(WorkspaceError, match=r"framedex\.toml"):
        Workspace(tmp_path)


def test_open__newer_format(tmp_path: Path) -> None:
    """A workspace of a newer version is refused with both versions, and nothing in it changes."""
    Workspace(tmp_path / "ws").close()
    (tmp_path / "ws" / "framedex.toml").write_text("format_version = 2\n")
    before = state(tmp_path / "ws")
    with pytest.raises(FormatTooNew, match=r"format version 2.* up to 1.*newer Framedex"):
        Workspace(tmp_path / "ws")
    assert state(tmp_path / "ws") == before


def test_open__newer_catalog(tmp_path: Path) -> None:
    """A catalog of a newer schema is refused as well."""
    Workspace(tmp_path).close()
    with sqlite3.connect(tmp_path / "catalog.db") as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    connection.close()
    with pytest.raises(FormatTooNew, match="9999"):
        Workspace(tmp_path)


def test_open__broken_catalog(tmp_path: Path) -> None:
    """A catalog that is no database is an error that names it, and stays as it is."""
    Workspace(tmp_path).close()
    (tmp_path / "catalog.db").write_bytes(b"no database" * 1000)
    with pytest.raises(WorkspaceError, match=r"catalog\.db is not a Framedex catalog"):
        Workspace(tmp_path)
    assert (tmp_path / "catalog.db").read_bytes() == b"no database" * 1000


def test_open__read_only_needs_a_workspace(tmp_path: Path) -> None:
    """Opening for reading makes nothing."""
    with pytest.raises(WorkspaceError, match="not a workspace"):
        Workspace(tmp_path, read_only=True)
    with pytest.raises(WorkspaceError, match="not a workspace"):
        Workspace(tmp_path / "gone", read_only=True)
    assert list(tmp_path.iterdir()) == []


def state(folder: Path) -> dict[str, tuple[int, int]]:
    """Return size and time of all files but the shared memory that SQLite's readers need."""
    return {
        str(path.relative_to(folder)): (path.stat().st_size, path.stat().st_mtime_ns)
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.endswith(("-shm", "-wal"))
    }


@pytest.mark.slow
@pytest.mark.only_soak
def test_read_only__reads_and_changes_nothing(gallery: Gallery, tmp_path: Path) -> None:
    """A workspace opened for reading answers everything, refuses changes and leaves all files as they are."""
    shutil.copytree(gallery.workspace.path, tmp_path / "ws")
    shutil.rmtree(tmp_path / "ws" / "cache", ignore_errors=True)
    before = state(tmp_path / "ws")
    with Workspace(tmp_path / "ws", read_only=True, settings=SETTINGS) as workspace:
        dataset = workspace.dataset("gallery")
        # Thumbnails may have been made in the original meanwhile, and here there are none.
        anew = {"media_thumb_uri": ""}
        shown, expected = (
            [[preview.model_copy(update=anew) for preview in cluster.previews] for cluster in page.clusters]
            for page in (dataset.explore(), gallery.dataset.explore())
        )
        assert shown == expected
        assert dataset.thumbnail(gallery.ids["animals/00.jpg"])
        dataset.report(tmp_path / "report.html")
        dataset.export(tmp_path / "out.zip", include_images=True)
        assert "data:image/jpeg" in dataset._repr_html_()
        with pytest.raises(ReadOnly, match="opened for reading"):
            workspace.create_dataset("d", embedded([[1, 0]]))
        with pytest.raises(ReadOnly, match="opened for reading"):
            workspace.delete_dataset("gallery")
    assert state(tmp_path / "ws") == before


@pytest.mark.slow
def test_read_only__export_into_nothing(gallery: Gallery, tmp_path: Path) -> None:
    """An error for a file that cannot be written has its path."""
    with pytest.raises(InvalidInput, match="gone"):
        gallery.dataset.report(tmp_path / "gone" / "report.html")


@pytest.mark.slow
def test_unwritable_folder__is_opened_for_reading(folder: Path, tmp_path: Path) -> None:
    """A workspace on a medium that cannot be written opens for reading by itself; one in such a place is refused."""
    with Workspace(tmp_path / "ws") as workspace:
        dataset = workspace.create_dataset("pets", folder)
        first = dataset.where([]).media_ids()[0]
    before = state(tmp_path / "ws")
    for path in [tmp_path / "ws", *(tmp_path / "ws").rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    out = run(
        """
        import sys, framedex
        workspace = framedex.Workspace(sys.argv[1])
        dataset = workspace.dataset("pets")
        print(dataset.count(), len(dataset.explore().clusters), len(dataset.thumbnail(sys.argv[2])) > 0)
        for attempt in (
            lambda: workspace.delete_dataset("pets"),
            lambda: workspace.create_dataset("d", {"uri": ["a"], "embedding": [[1.0]]}),
            lambda: framedex.Workspace(sys.argv[1] + "/datasets/new"),
            lambda: dataset.export(sys.argv[1] + "/out.zip"),
        ):
            try:
                attempt()
            except framedex.Error as error:
                print(type(error).__name__)
        """,
        tmp_path / "ws",
        first,
        unprivileged=True,
    )
    assert out.split() == ["6", "6", "True", "ReadOnly", "ReadOnly", "WorkspaceError", "InvalidInput"]
    assert state(tmp_path / "ws") == before


@pytest.mark.slow
def test_unreadable_source(tmp_path: Path) -> None:
    """A source folder that may not be read is an error; a file or folder within that may not be is passed over."""
    for name in ("shut", "open/shut"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "open" / "a.png").write_bytes(b"")
    for path in (tmp_path / "shut", tmp_path / "open" / "shut", tmp_path / "open" / "a.png"):
        path.chmod(0)
    out = run(
        """
        import sys, framedex
        workspace = framedex.Workspace(sys.argv[1] + "/ws")
        try:
            workspace.create_dataset("d", sys.argv[1] + "/shut")
        except framedex.InvalidInput as error:
            print("Permission denied" in str(error) and "shut" in str(error), len(workspace.datasets()))
        dataset = workspace.create_dataset("d", sys.argv[1] + "/open")
        print(dataset.issues("unreadable")["reason"].to_pylist(), dataset.skipped)
        """,
        tmp_path,
        unprivileged=True,
    )
    for path in (tmp_path / "shut", tmp_path / "open" / "shut"):
        path.chmod(0o755)
    assert out.splitlines() == [
        "True 0",
        "['cannot be read: Permission denied'] {'folders that cannot be read': 1}",
    ]


def test_close__twice_and_with_work(tmp_path: Path) -> None:
    """A workspace can be closed more than once, and its folder deleted afterwards."""
    workspace = Workspace(tmp_path / "ws")
    workspace.create_dataset("d", embedded([[1, 0]]))
    workspace.close()
    workspace.close()
    shutil.rmtree(workspace.path)
    assert not os.path.lexists(workspace.path)
