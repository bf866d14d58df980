"""Datasets that are made once in a process of tests, and put into the workspace of each test that reads or edits them.

To create and index six images takes a hundred milliseconds of a processor; to copy the files and rows of a dataset that
was made before takes three. The workspace then has what it would have if another process had just created the dataset.
"""

import functools
import os
import pickle
import shutil
import sqlite3
import tempfile
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

import pyarrow as pa

from framedex import Dataset, Workspace
from framedex.encoders import Encoder
from framedex.settings import Settings
from framedex.storage import manifest
from framedex.storage.layout import Layout
from tests.inside import context_of, layout_of

Rows = dict[str, list[tuple[Any, ...]]]


@dataclass(frozen=True)
class _Original:
    """A dataset that was created.

    Attributes:
        dataset_id: its id, which all copies have.
        files: its folder.
        rows: those of all tables of its catalog, by table.
        source: the folder of which it was made; None for a table.
        times: modification times in ns of the files in that folder, by path within it.
    """

    dataset_id: str
    files: Path
    rows: Rows
    source: str | None
    times: Mapping[str, int]


class _Originals:
    """The datasets that were made in this process, below a folder that is deleted at its end."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="framedex-prepared-"))
        self._pid, self._made = os.getpid(), dict[bytes, _Original]()
        weakref.finalize(self, self._clean)

    def get(self, key: bytes, make: Callable[[Path], _Original]) -> _Original:
        """Return the original with a key, which is made in a new folder at the first call."""
        if key not in self._made:
            self._made[key] = make(self._folder / str(len(self._made)))
        return self._made[key]

    def _clean(self) -> None:
        if os.getpid() == self._pid:  # not in the child of a fork
            shutil.rmtree(self._folder, ignore_errors=True)


_originals: list[_Originals] = []


def prepared(
    workspace: Workspace, name: str, source: Path | pa.Table, encoder: str | Encoder = "auto", **options: Any
) -> Dataset:
    """Return a dataset as ``workspace.create_dataset`` does, of which the original was made by an earlier call.

    For tests of anything but the creation itself. All copies have the ids of the original, so a workspace takes one of
    them, and none again after its deletion.

    Args:
        workspace: open and writable.
        name: as for ``create_dataset``; so are the other arguments.
        source: a folder, or a table.
        encoder: a name, or an encoder that is made without arguments.
        **options: further arguments of ``create_dataset``.
    """
    settings = context_of(workspace).settings
    files = _files(source) if isinstance(source, Path) else {}
    table = source if isinstance(source, pa.Table) else None
    kind = encoder if isinstance(encoder, str) else type(encoder)
    described = [name, workspace.namespace, kind, sorted(options.items()), settings.model_dump()]
    content = {path: blake2b(file.read_bytes()).digest() for path, file in files.items()}
    key = blake2b(pickle.dumps([described, content, table])).digest()

    def make(folder: Path) -> _Original:
        with Workspace(folder, settings=settings) as home:
            own = home.in_namespace(workspace.namespace)
            dataset_id = own.create_dataset(name, source, encoder, **options).id
        times = {path: file.stat().st_mtime_ns for path, file in files.items()}
        layout = Layout(folder)
        return _Original(
            dataset_id, layout.dataset(dataset_id), _rows(layout.catalog), str(source) if files else None, times
        )

    if not _originals:
        _originals.append(_Originals())
    _adopt(layout_of(workspace), _originals[0].get(key, make), source)
    return workspace.dataset(name)


def new_workspace(folder: Path, settings: Settings) -> Workspace:
    """Return an open workspace without datasets in a folder that does not exist: a copy of an empty one."""
    Layout(folder).datasets.mkdir(parents=True)
    for name, content in _empty_files().items():
        (folder / name).write_bytes(content)
    return Workspace(folder, settings=settings)


@functools.cache
def _empty_files() -> dict[str, bytes]:
    """Return the files of a workspace without datasets, by name."""
    with tempfile.TemporaryDirectory() as folder:
        with Workspace(folder):
            pass
        return {path.name: path.read_bytes() for path in Path(folder).iterdir() if path.is_file()}


def _files(folder: Path) -> dict[str, Path]:
    """Return the files below a folder by their paths within it."""
    return {path.relative_to(folder).as_posix(): path for path in sorted(folder.rglob("*")) if path.is_file()}


def _rows(catalog: Path) -> Rows:
    """Return all rows of a catalog by table."""
    with sqlite3.connect(catalog) as connection:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        rows = {name: connection.execute(f"SELECT * FROM {name}").fetchall() for name in tables}
    connection.close()
    return {name: found for name, found in rows.items() if found and name not in ("alembic_version", "sqlite_sequence")}


def _adopt(layout: Layout, original: _Original, source: Path | pa.Table) -> None:
    """Put a dataset into a workspace: its files, then its rows."""
    folder = layout.dataset(original.dataset_id)
    shutil.copytree(original.files, folder)
    moved = str(source)
    if original.source is not None and moved != original.source:
        for path, time_ns in original.times.items():
            os.utime(Path(moved, path), ns=(time_ns, time_ns))
        for described in (folder / "manifest").glob("*.json"):
            manifest._write(described, _replaced(manifest._read(described), original.source, moved))
    with sqlite3.connect(layout.catalog) as connection:
        for table, rows in original.rows.items():
            places = ", ".join("?" * len(rows[0]))
            connection.executemany(
                f"INSERT INTO {table} VALUES ({places})",
                [[_replaced(value, original.source, moved) for value in row] for row in rows],
            )
    connection.close()


def _replaced(value: Any, old: str | None, new: str) -> Any:
    """Return a value with one path in the place of another one."""
    if old is None or old == new:
        return value
    match value:
        case str():
            return value.replace(old, new)
        case bytes():
            return value.replace(os.fsencode(old), os.fsencode(new))
        case dict():
            return {key: _replaced(each, old, new) for key, each in value.items()}
        case list():
            return [_replaced(each, old, new) for each in value]
        case _:
            return value
