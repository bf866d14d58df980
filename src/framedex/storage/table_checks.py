"""Checks of tables: versions that do not open, unreadable columns, unreferenced files."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from framedex.core.counts import counted
from framedex.core.regular_files import regular
from framedex.errors import Aborted
from framedex.storage.disk import walk_files
from framedex.storage.engine_calls import check_own_engine
from framedex.storage.overlay import Overlay
from framedex.storage.table_files import files_of, unlisted_edits
from framedex.storage.table_versions import Table

_ROWS = 2048  # of all columns of a file at once
_MOST_TEXT = 240
_PANIC = "PanicException"  # of the engine; it does not derive from Exception, and its module cannot be imported
_PLACE_IN_SOURCE = re.compile(r",? ?/[^ ,]*\.rs:\d+(:\d+)?")
_OF_ROWS = ("data", "_deletions")
_OF_VERSIONS = ("_versions", "_transactions", "_deletions")  # all that opening a version reads


def opening_fault(path: Path, version: int) -> str | None:
    """Return the reason why a version of a table cannot be opened; None if it can.

    Raises:
        WorkspaceError: this process cannot check tables, because it was forked.
    """
    check_own_engine()
    fault = engine_fault(lambda: _count(path, version))
    return None if fault is None else f"version {version} of the table {path.stem!r} cannot be opened: {fault}"


def reading_fault(path: Path, version: int) -> str | None:
    """Return the reason why a version of a table cannot be used: it cannot be opened, or a file of it is lost.

    Files are not read, except those with edited values.

    Raises:
        WorkspaceError: this process cannot check tables, because it was forked.
    """

    def look() -> None:
        for name in sorted(files_of(path, [version])):
            if not (path / name).is_file() or not (path / name).stat().st_size:
                raise FileNotFoundError(f"its file {name} is missing or empty")
        overlay = Table(path, version).overlay
        for layer in overlay.layers:
            overlay.verify(layer)

    if (fault := opening_fault(path, version)) is not None:
        return fault
    fault = engine_fault(look)
    return None if fault is None else f"version {version} of the table {path.stem!r} cannot be read: {fault}"


def check_regular(path: Path, *names: str) -> None:
    """Check that a table's folder holds regular files alone; the engine would wait for a named pipe for ever.

    Args:
        path: folder of the table.
        names: folders in it to check; all if none is given.

    Raises:
        OSError: a file is not regular.
    """
    for name in names or ("",):
        for file, _ in walk_files(path / name):
            regular(file)


def _count(path: Path, version: int) -> None:
    check_regular(path, *_OF_VERSIONS)
    _open(path, version).count_rows()


class ColumnReader:
    """A reader of all columns in versions of one table, which reads each file only once.

    Args:
        path: folder of the table.
        progress: called after each batch of rows; raises to stop.

    Raises:
        WorkspaceError: this process cannot check tables, because it was forked.

    Attributes:
        n_read: number of columns that were read; one that several versions share counts once.
    """

    def __init__(self, path: Path, progress: Callable[[], None]) -> None:
        check_own_engine()
        self._path, self._tell = path, progress
        self._sound: set[tuple[str, tuple[str, ...]]] = set()
        self.n_read = 0

    def faults(self, version: int) -> dict[str, str]:
        """Return error messages of unreadable columns by name; the version must open.

        An error that concerns all columns is stored once, under the name "".
        """
        dataset: Any = _open(self._path, version)
        faults: dict[str, str] = {}
        columns: dict[tuple[str, ...], list[str]] = {}
        if (fault := engine_fault(lambda: columns.update(self._unread(dataset)))) is not None:
            return {"": fault}
        for files, names in columns.items():
            faults |= self._column_faults(dataset, names, files)
        return faults | self._edit_faults(version)

    def _unread(self, dataset: Any) -> dict[tuple[str, ...], list[str]]:
        """Return the columns that were not read yet, by the files that they are in."""
        columns: dict[tuple[str, ...], list[str]] = {}
        for name, files in _columns(dataset):
            if (name, files) not in self._sound:
                columns.setdefault(files, []).append(name)
        return columns

    def _column_faults(self, dataset: Any, names: list[str], files: tuple[str, ...]) -> dict[str, str]:
        """Return error messages of unreadable columns of the same files: read together, or if that fails one by one."""
        fault = engine_fault(lambda: self._read(dataset, names, files))
        if fault is not None and len(names) > 1:
            return {key: text for name in names for key, text in self._column_faults(dataset, [name], files).items()}
        self.n_read += len(names)
        if fault is not None:
            return {names[0]: fault}
        self._sound.update((name, files) for name in names)
        return {}

    def _edit_faults(self, version: int) -> dict[str, str]:
        """Return error messages of unreadable edits, by the name of the column."""
        faults: dict[str, str] = {}
        overlays: list[Overlay] = []
        if (fault := engine_fault(lambda: overlays.append(Table(self._path, version).overlay))) is not None:
            return {"": fault}
        for layer in overlays[0].layers:
            key = "", (layer.file,)
            if key in self._sound:
                continue
            if (fault := engine_fault(lambda layer=layer: overlays[0].verify(layer))) is None:  # type: ignore[misc]
                self._sound.add(key)
            else:
                faults |= dict.fromkeys(layer.columns, fault)
        return faults

    def _read(self, dataset: Any, names: list[str], files: tuple[str, ...]) -> None:
        for file in files:
            regular(self._path / "data" / file)
        rows = 0
        for batch in dataset.scanner(
            columns=names, batch_size=_ROWS, batch_readahead=2, fragment_readahead=1
        ).to_batches():
            batch.validate(full=True)
            rows += batch.num_rows
            self._tell()
        if rows != dataset.count_rows():
            raise ValueError(f"it has {counted(rows, 'values')} for {counted(dataset.count_rows(), 'rows')}")


def unreferenced_files(path: Path) -> list[Path]:
    """Return the files of rows and edits that no version of a table references, as left by a killed writer.

    If the table's versions cannot be read, the result is empty.

    Raises:
        WorkspaceError: this process cannot check tables, because it was forked.
    """
    check_own_engine()
    tracked: set[str] = set()
    unlisted: set[str] = set()

    def read() -> None:
        check_regular(path)
        tracked.update(_tracked(path))
        unlisted.update(unlisted_edits(path))

    if engine_fault(read) is not None:
        return []
    files = (file for name in _OF_ROWS for file, _ in walk_files(path / name))
    untracked = [file for file in files if file.relative_to(path).as_posix() not in tracked]
    return sorted([*untracked, *(path / name for name in unlisted)])


def _tracked(path: Path) -> Iterator[str]:
    import lance

    for batch in lance.dataset(str(path)).tracked_files():
        yield from batch.column("path").unique().to_pylist()


def _open(path: Path, version: int) -> Any:
    import lance

    return lance.dataset(str(path), version=version)


def _columns(dataset: Any) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the columns of a version with their files."""
    for field in dataset.lance_schema.fields():
        yield field.name(), _files_with(dataset, field)


def _files_with(dataset: Any, field: Any) -> tuple[str, ...]:
    numbers = set(_numbers(field))
    return tuple(
        file.path
        for fragment in dataset.get_fragments()
        for file in fragment.metadata.files
        if numbers.intersection(file.fields)
    )


def _numbers(field: Any) -> list[int]:
    return [field.id(), *(number for child in field.children() for number in _numbers(child))]


def engine_fault(work: Callable[[], object]) -> str | None:
    """Run a function on tables and return its error in one line; None if it succeeds.

    Raises:
        Aborted: the function was aborted.
    """
    try:
        work()
    except Aborted:
        raise
    except Exception as error:
        return _line(error)
    except BaseException as error:
        if type(error).__name__ != _PANIC:
            raise
        return f"the engine failed: {_line(error)}"
    return None


def _line(error: BaseException) -> str:
    text = " ".join(_PLACE_IN_SOURCE.sub("", str(error)).split()) or type(error).__name__
    return text if len(text) <= _MOST_TEXT else f"{text[:_MOST_TEXT]}…"
