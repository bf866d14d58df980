"""Lists of files as sources: text with a path a line, tables of text, and Parquet."""

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple
from urllib.parse import unquote_to_bytes, urlsplit

from framedex.annotations.labels import parse_labels, storable
from framedex.core.allowed_folders import AllowedFolders, each_within
from framedex.core.delimited import LINES, TextLayout, delimited_rows, has_replaced_bytes, is_path, read_layout, row_of
from framedex.core.name_forms import FilePlaces
from framedex.core.regular_files import may_read
from framedex.core.skipped import Skipped
from framedex.core.table_rows import parquet_rows
from framedex.errors import InvalidInput
from framedex.media.sources import Item, Source

PATH_COLUMNS = (
    "path", "file", "filename", "file_name", "file_path", "filepath", "image", "image_path", "image_filename",
    "uri", "media_uri", "url", "img", "img_path",
)  # fmt: skip


@dataclass
class ListSource(Source):
    """The distinct files of a list, in its order: text or Parquet.

    Paths are relative to the list's own folder, or absolute; :class:`framedex.core.name_forms.FilePlaces` finds files
    by other forms of their names. The columns are those of :func:`list_columns`.
    """

    list_path: Path
    root: str = ""
    skipped: Skipped = field(default_factory=Skipped)
    allowed: AllowedFolders | None = None

    def __post_init__(self) -> None:
        self.root = self._common_root()

    def items(self) -> Iterator[Item]:
        """Yield the files."""
        self.skipped = Skipped()
        seen: set[int] = set()
        for path, labels, caption, _ in self._rows(self.skipped):
            if not path:
                self.skipped["rows without a path"] += 1
            elif (key := hash(path)) in seen:
                self.skipped["repeated entries"] += 1
            else:
                seen.add(key)
                yield Item(os.path.relpath(path, self.root) if self.root else path, labels, caption)

    def values(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Yield the path of each file with the values of the other columns, if the list has some."""
        for row in self._rows(Skipped()):
            if row.path and row.values:
                yield os.path.relpath(row.path, self.root) if self.root else row.path, row.values

    def check_found(self) -> None:
        """Check that at least one of the files exists, or may not be looked at.

        Raises:
            InvalidInput: none does; the message has the first rows as they were understood.
        """
        first: list[str] = []
        for row in self._rows(Skipped()):
            may_be_read = self.allowed is None or self.allowed.contains(row.path)
            if row.path and (not may_be_read or os.path.lexists(row.path)):  # reading what may not be read has a reason
                return
            if row.path and len(first) < _SHOWN_ROWS:
                labels = f" with the labels {', '.join(row.labels)}" if row.labels else ""
                first.append(f"{row.path!r:.200}{labels:.100}")
        if first:
            raise InvalidInput(
                f"none of the files exists that {self._named()} names; relative paths are those of "
                f"{os.fspath(self.list_path.parent)!r}. {self._understood()} The first rows: {'; '.join(first)}"
            )

    def _named(self) -> str:
        return repr(os.fspath(self.list_path))

    def _understood(self) -> str:
        """Return in a sentence how the list was read."""
        if self.list_path.suffix.lower() == PARQUET:
            return ""
        layout = list_layout(self.list_path)
        header = f"the header {', '.join(layout.header)!r:.200}" if layout.header else "no header"
        if layout.delimiter == LINES:
            return "It was read as one path a line."
        return f"It was read as {layout.encoding_name} with cells between {layout.delimiter_name} and {header}."

    def _common_root(self) -> str:
        """Return the deepest folder that contains all files. If the files move, only this root changes."""
        common: str | None = None
        for path in (row.path for row in self._rows(Skipped()) if row.path):
            folder = os.path.dirname(path)  # noqa: PTH120
            if common is None:
                common = folder
            elif folder != common:
                common = os.path.commonpath([common, folder])
        return common or str(self.list_path.parent)

    def _rows(self, skipped: Skipped) -> Iterator["ListRow"]:
        """Yield the rows with the absolute paths of files, within the folders that may be read."""
        return each_within(self.allowed, partial(self._placed_rows, skipped))

    def _placed_rows(self, skipped: Skipped) -> Iterator["ListRow"]:
        places = FilePlaces(os.fspath(self.list_path.parent))
        for row in self._read(skipped):
            try:
                path = (
                    os.fsdecode(unquote_to_bytes(urlsplit(row.path).path)) if row.path.startswith("file:") else row.path
                )
            except ValueError as error:  # brackets that hold no IPv6 address
                skipped.note(_NO_URI, f"{row.path!r:.80}: {error}")
                continue
            yield row._replace(path=path and places.place(path))

    def _read(self, skipped: Skipped) -> Iterator["ListRow"]:
        """Yield the rows as they are written."""
        return read_list(self.list_path, skipped)


class ListRow(NamedTuple):
    """A row of a list.

    Attributes:
        path: of the file, as written.
        labels: of the image.
        caption: of the image.
        values: of the other columns that have one, by name.
    """

    path: str
    labels: tuple[str, ...] = ()
    caption: str | None = None
    values: Mapping[str, Any] = MappingProxyType({})


class ListColumns(NamedTuple):
    """The columns of a list that have a meaning; the others are further values.

    Attributes:
        path: the name of the column with the paths.
        labels: with labels; None for none.
        caption: with captions; None for none.
    """

    path: str
    labels: str | None = None
    caption: str | None = None

    def row(self, cells: Mapping[str, Any]) -> ListRow:
        """Return a row of a table.

        Args:
            cells: the values by column; None and NaN are missing values.

        Raises:
            InvalidInput: the path is no text.
        """
        path = cells[self.path]
        if not isinstance(path, str | None):
            raise InvalidInput(f"column {self.path!r} holds {repr(path)[:_SHOWN]}, not the path of a file, a text")
        labels, caption = (None if name is None else cells.get(name) for name in (self.labels, self.caption))
        values = {name: each for name, each in cells.items() if name and name not in self and not is_blank(each)}
        return ListRow(path or "", parse_labels(labels), None if is_blank(caption) else storable(str(caption)), values)


def list_columns(names: Sequence[str], path: str | None = None) -> ListColumns | None:
    """Return the columns with a meaning: ``label`` or ``labels``, ``caption``, and the first of ``PATH_COLUMNS``.

    Args:
        names: of all columns, in any case.
        path: the column with the paths, if none has such a name.

    Returns:
        The columns; None if none has paths.
    """
    by_name = {name.strip().lower(): name for name in reversed(names)}
    own = next((by_name[name] for name in PATH_COLUMNS if name in by_name), path)
    labels = by_name.get("label", by_name.get("labels"))
    return None if own is None else ListColumns(own, labels, by_name.get("caption"))


def is_blank(value: Any) -> bool:
    """Return whether a cell has no value: None, an empty text, or NaN, as pandas has it."""
    return value is None or value == "" or (isinstance(value, float) and value != value)  # noqa: PLR0124 - NaN


PARQUET = ".parquet"
LIST_SUFFIXES = (".txt", ".csv", ".tsv", PARQUET)
_KNOWN_COLUMNS = frozenset((*PATH_COLUMNS, "label", "labels", "caption"))
_MAX_PATH = 2**16  # characters; the maximum path length of Linux is 4,096 bytes
_LABEL_WORDS = 3  # the most words of a label; a cell of more may be a caption
_LONG, _NO_URI = f"paths of {_MAX_PATH:,} characters or more", "rows that are no URI of a file, as file:///folder/a.jpg"
_SHOWN = 80  # characters of an invalid value in a message
_SHOWN_ROWS = 3


def read_list(path: Path, skipped: Skipped) -> Iterator[ListRow]:
    """Yield the path as written, the labels, the caption and further values of each row of a list file.

    Args:
        path: the file: text in any layout of :mod:`framedex.core.delimited`, or Parquet.
        skipped: counts what is left out, by reason.

    Raises:
        InvalidInput: the file cannot be read.
    """
    read = _read_parquet(path) if path.suffix.lower() == PARQUET else _read_text(path, skipped)
    for number, row in enumerate(read, 1):
        if len(row.path) < _MAX_PATH:
            yield row
        else:
            skipped.note(_LONG, f"{path.name}, row {number}: {row.path[:_SHOWN]!r}… has {len(row.path):,} characters")


def list_layout(path: Path) -> TextLayout:
    """Return the layout of a list that is text; Windows-1252 if a file has the name that this makes of its bytes.

    Raises:
        InvalidInput: the file cannot be read.
    """
    try:
        layout = read_layout(path, _KNOWN_COLUMNS, is_list=True)
        cells = (cell for row in layout.sample for cell in row if not cell.isascii() and is_path(cell))
        if any(_is_windows_name(os.fspath(path.parent), cell) for cell in cells):
            return read_layout(path, _KNOWN_COLUMNS, is_list=True, encoding=_WINDOWS)
    except OSError as error:
        raise InvalidInput(f"cannot read {os.fspath(path)!r}: {error.strerror}") from error
    return layout


_WINDOWS = "cp1252"


def _is_windows_name(folder: str, name: str) -> bool:
    if storable(name) == name:
        return False
    places, text = FilePlaces(folder), os.fsencode(name).decode(_WINDOWS, "replace")
    return not os.path.lexists(places.place(name)) and os.path.lexists(places.place(text))


def column_names(layout: TextLayout) -> list[str]:
    """Return the names of the columns of a list; an empty one for a column whose meaning is not known.

    Without a header, two columns are the path and the label, unless the second has more words than a label.
    """
    widths = Counter(map(len, layout.sample))
    width = max(widths, key=lambda each: (widths[each], each), default=1)
    if layout.header is not None:
        return [*layout.header, *[""] * (width - len(layout.header))]
    path, names = layout.path_column or 0, [""] * width
    names[path] = PATH_COLUMNS[0]
    others = [row[1 - path] for row in layout.sample if len(row) == 2 == width]
    if others and all(len(cell.split()) <= _LABEL_WORDS for cell in others):
        names[1 - path] = "label"
    return names


def text_columns(layout: TextLayout, names: Sequence[str]) -> ListColumns:
    """Return the columns with a meaning of a list that is text: of several named as paths, one that has some."""
    with_paths = {
        name
        for column, name in enumerate(names)
        if any(is_path(row[column]) for row in layout.sample if column < len(row))
    }
    own = [name for name in names if name.lower() not in PATH_COLUMNS or name in with_paths or not with_paths]
    first = next((name for name in names if name.lower() not in _KNOWN_COLUMNS), names[0])
    column = layout.path_column
    fallback = names[column] if column is not None and column < len(names) and names[column] else first
    columns = list_columns(own if list_columns(own) else names, fallback)
    assert columns is not None, "the fallback is a column"
    return columns


def _read_text(path: Path, skipped: Skipped) -> Iterator[ListRow]:
    layout = list_layout(path)
    names = column_names(layout)
    columns = text_columns(layout, names)
    if unnamed := sum(not name for name in names):
        more = "a second column that may have labels or captions" if len(names) == 2 else "columns that are not named"
        skipped.count(
            "columns without a name",
            unnamed,
            [f"{path.name} has {more}: a first line such as path{layout.delimiter}label names them"],
        )
    at = names.index(columns.path)

    def broken(fault: str) -> None:
        skipped.note("rows that are not CSV", f"{path.name}: {fault}")

    for line, cells in delimited_rows(path, layout, broken):
        first = cells[at] if at < len(cells) else ""
        if any(has_replaced_bytes(cell) for cell in cells) and not _is_file(path.parent, first):
            skipped.note("rows with bytes that are no text", f"{path.name}, line {line}")
        if cells[0].lstrip()[:1] == "#" and not _is_file(path.parent, first):
            skipped.note("comments", f"{path.name}, line {line}: {cells[0]:.80}")
        elif len(names) == 1 == len(cells):
            yield ListRow(first)
        elif any(cells):
            if not all(cell.isascii() or storable(cell) == cell for cell in cells if cell is not first):
                skipped.note("rows with bytes that are not UTF-8", f"{path.name}, line {line}: save the file as UTF-8")
            yield columns.row(row_of(names, cells))


def _is_file(folder: Path, name: str) -> bool:
    """Return whether a name that begins as a comment does is that of a file."""
    path = os.path.join(folder, name)  # noqa: PTH118 - names may be any bytes
    return is_path(name) and may_read(path) and os.path.lexists(path)


def _read_parquet(path: Path) -> Iterator[ListRow]:
    columns: list[ListColumns] = []

    def choose(names: Sequence[str]) -> Sequence[str]:
        if not names:
            raise InvalidInput(f"{path} has no columns; one must hold the paths of files")
        found = list_columns(names, names[0])
        assert found is not None, "the first column is the last choice"
        columns.append(found)
        return names

    for row in parquet_rows(path, choose):
        try:
            yield columns[0].row(row)
        except InvalidInput as error:
            raise InvalidInput(f"{path}: {error}") from None
