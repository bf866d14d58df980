"""Sources of files that a program gives: a list of paths, a table with a column of paths, a pattern."""

import glob
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from framedex.core.allowed_folders import AllowedFolders
from framedex.core.skipped import Skipped
from framedex.core.suffixes import is_media
from framedex.core.table_rows import python_values
from framedex.errors import InvalidInput
from framedex.media.list_sources import ListRow, ListSource, list_columns
from framedex.settings import user_path

_ROWS = 4096
_MAGIC = frozenset("*?[")
_INDEX = "__index_level_"  # columns in which pandas stores its index


@dataclass
class RowSource(ListSource):
    """The distinct files of some rows, in their order. Relative paths are those of the working folder."""

    list_path: Path = field(default_factory=lambda: Path.cwd() / "rows")
    rows: Callable[[], Iterator[ListRow]] = field(default=lambda: iter(()), repr=False)

    def _read(self, skipped: Skipped) -> Iterator[ListRow]:
        return self.rows()

    def _named(self) -> str:
        return "the source"

    def _understood(self) -> str:
        return "A table of embeddings has the column embedding."


def is_pattern(source: Any) -> bool:
    """Return whether a source is a pattern such as ``photos/**/*.jpg``: a text that is not the name of a file."""
    return isinstance(source, str) and not _MAGIC.isdisjoint(source) and not os.path.lexists(user_path(source))


def open_pattern(pattern: str, allowed: AllowedFolders | None) -> RowSource:
    """Return the images and videos that a pattern matches, sorted; ``**`` stands for any folders.

    Raises:
        InvalidInput: nothing matches.
        Forbidden: a file is in no allowed folder.
    """
    base = os.fspath(user_path(pattern))
    names = sorted(name for name in glob.iglob(base, recursive=True) if is_media(name) and os.path.isfile(name))  # noqa: PTH113, PTH207
    if not names:
        raise InvalidInput(f"no image or video matches {pattern!r}; ** stands for any number of folders")
    return _checked(RowSource(rows=lambda: map(ListRow, names), allowed=allowed), names, allowed)


def open_paths(paths: Sequence[Any], allowed: AllowedFolders | None) -> RowSource:
    """Return the files of a list of paths.

    Raises:
        InvalidInput: the list is empty, or has something that is no path.
        Forbidden: a file is in no allowed folder.
    """
    names = names_of(paths)
    return _checked(RowSource(rows=lambda: map(ListRow, names), allowed=allowed), names, allowed)


def names_of(paths: Sequence[Any]) -> list[str]:
    """Return the paths, or the URIs, of a list as texts.

    Raises:
        InvalidInput: the list is empty, or has something that is no path.
    """
    if not paths:
        raise InvalidInput("a list of paths needs rows; it is empty")
    names = []
    for number, each in enumerate(paths):
        if not isinstance(each, str | os.PathLike) or isinstance(os.fspath(each), bytes):
            raise InvalidInput(f"a source that is a list has the paths of files; item {number} is {each!r:.80}")
        names.append(each if isinstance(each, str) and "://" in each else os.fspath(user_path(each)))
    return names


def _checked(source: RowSource, names: Iterable[str], allowed: AllowedFolders | None) -> RowSource:
    if allowed is not None:
        for name in names:
            allowed.check(os.path.abspath(name))  # noqa: PTH100 - keeps links
    source.check_found()
    if next(source.items(), None) is None:
        raise InvalidInput(
            "none of the rows has a path; a table of embeddings that lacks the column embedding is no source"
        )
    return source


def as_table(source: Any) -> pa.Table | None:
    """Return a table of Arrow, pandas, Polars or another library with Arrow's interface; None for anything else."""
    if isinstance(source, pa.Table):
        return source
    if not hasattr(source, "__arrow_c_stream__"):
        return None
    table = pa.table(source)
    return table.select([name for name in table.schema.names if not name.startswith(_INDEX)])


def path_column(table: pa.Table) -> str | None:
    """Return the column with the paths: the first of the usual names that exists, else the only column of texts."""
    texts = [each.name for each in table.schema if pa.types.is_string(each.type) or pa.types.is_large_string(each.type)]
    columns = list_columns(table.schema.names, texts[0] if len(texts) == 1 else None)
    return None if columns is None else columns.path


def open_path_table(table: pa.Table, path: str, allowed: AllowedFolders | None) -> RowSource:
    """Return the files of a table with a column of paths; other columns are labels, captions and further values.

    Raises:
        InvalidInput: a path is no text.
        Forbidden: a file is in no allowed folder.
    """
    rows = rows_of_table(table, path)
    return _checked(RowSource(rows=rows, allowed=allowed), (row.path for row in rows() if row.path), allowed)


def rows_of_table(table: pa.Table, path: str) -> Callable[[], Iterator[ListRow]]:
    """Return a function that yields the rows of a table with a column of paths."""
    columns = list_columns(table.schema.names, path)
    assert columns is not None, "a path column is given"

    def rows() -> Iterator[ListRow]:
        for start in range(0, len(table), _ROWS):
            block = table.slice(start, _ROWS)
            cells = [python_values(block[name].combine_chunks(), name, "the table") for name in block.schema.names]
            yield from (
                columns.row(dict(zip(block.schema.names, row, strict=True))) for row in zip(*cells, strict=True)
            )

    return rows
