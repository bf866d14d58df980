"""Sources of files that a program gives: a list of paths, a table with a column of paths, a pattern."""

import glob
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa

from framedex.annotations.labels import parse_labels
from framedex.core.allowed_folders import AllowedFolders
from framedex.core.suffixes import is_media
from framedex.core.table_rows import python_values
from framedex.errors import InvalidInput
from framedex.media.sources import PATH_COLUMNS, ListRow, ListSource
from framedex.settings import user_path

_ROWS = 4096
_MAGIC = frozenset("*?[")
_OF_IMAGES = ("label", "labels", "caption")
_INDEX = "__index_level_"  # columns in which pandas stores its index


@dataclass
class RowSource(ListSource):
    """The distinct files of some rows, in their order. Relative paths are those of the working folder."""

    list_path: Path = field(default_factory=lambda: Path.cwd() / "rows")
    rows: Callable[[], Iterator[ListRow]] = field(default=lambda: iter(()), repr=False)

    def _read(self) -> Iterator[ListRow]:
        return self.rows()


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
    if not paths:
        raise InvalidInput("a list of paths needs rows; it is empty")
    names = []
    for number, each in enumerate(paths):
        if not isinstance(each, str | os.PathLike) or isinstance(os.fspath(each), bytes):
            raise InvalidInput(f"a source that is a list has the paths of files; item {number} is {each!r:.80}")
        names.append(os.fspath(user_path(each)))
    return _checked(RowSource(rows=lambda: map(ListRow, names), allowed=allowed), names, allowed)


def _checked(source: RowSource, names: Sequence[str], allowed: AllowedFolders | None) -> RowSource:
    if allowed is not None:
        for name in names:
            allowed.check(os.path.abspath(name))  # noqa: PTH100 - keeps links
    items = source.items()
    home = next(items, None)
    while home is not None and not os.path.lexists(os.path.join(source.root, home.path)):  # noqa: PTH118
        home = next(items, None)
    if home is None:
        raise InvalidInput(
            f"none of the rows leads to a file, the first is {names[0] if names else ''!r:.200}; paths are relative to "
            f"{os.fspath(Path.cwd())!r}, and a table of embeddings that lacks embedding is none"
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
    by_name = {name.lower(): name for name in reversed(table.schema.names)}
    known = next((by_name[name] for name in PATH_COLUMNS if name in by_name), None)
    texts = [each.name for each in table.schema if pa.types.is_string(each.type) or pa.types.is_large_string(each.type)]
    return known or (texts[0] if len(texts) == 1 else None)


def open_path_table(table: pa.Table, path: str, allowed: AllowedFolders | None) -> RowSource:
    """Return the files of a table with a column of paths; other columns are labels, captions and further values.

    Raises:
        InvalidInput: a path is no text.
        Forbidden: a file is in no allowed folder.
    """
    by_name = {name.lower(): name for name in reversed(table.schema.names)}
    own = {key: by_name[key] for key in _OF_IMAGES if key in by_name}

    def rows() -> Iterator[ListRow]:
        for start in range(0, len(table), _ROWS):
            block = table.slice(start, _ROWS)
            columns = {
                name: python_values(block[name].combine_chunks(), name, "the table") for name in block.schema.names
            }
            for number in range(len(block)):
                row = {name: values[number] for name, values in columns.items()}
                yield _row(row, path, own)

    found = (row.path for row in rows() if row.path)
    return _checked(
        RowSource(rows=rows, allowed=allowed), list(found if allowed is not None else islice(found, 1)), allowed
    )


def _row(row: dict[str, Any], path: str, own: dict[str, str]) -> ListRow:
    name = row[path]
    if name is not None and not isinstance(name, str):
        raise InvalidInput(f"the column {path!r} has the paths of files, as texts; it has {name!r:.80}")
    others = {
        key: value for key, value in row.items() if key != path and key not in own.values() and not _is_missing(value)
    }
    caption = row[own["caption"]] if "caption" in own else None
    labels = parse_labels(row.get(own.get("label", own.get("labels", ""))))
    return ListRow(name or "", labels, None if _is_missing(caption) else str(caption), others)


def _is_missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and value != value)  # noqa: PLR0124 - NaN of pandas
