"""Sources of images and videos: a folder, a file, or a list. Each can be read repeatedly, in the same order."""

import os
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol
from urllib.parse import unquote_to_bytes, urlsplit

from framedex.annotations.formats import box_files, label_files
from framedex.annotations.labels import parse_labels, storable
from framedex.core.allowed_folders import AllowedFolders, each_within, within
from framedex.core.assumed_roles import AssumedRole
from framedex.core.delimited import LINES, TextLayout, delimited_rows, is_path, read_layout, row_of
from framedex.core.left_out import HIDDEN_FILES, count_others, folder_reason, is_left_out, says_kind
from framedex.core.name_forms import FilePlaces
from framedex.core.regular_files import may_read, open_binary, scan
from framedex.core.skipped import Skipped
from framedex.core.suffixes import IMAGE_SUFFIXES, VIDEO_SUFFIXES, is_media
from framedex.core.table_rows import parquet_rows
from framedex.errors import InvalidInput
from framedex.media.containers import HEAD, container_of
from framedex.media.decode import begins_like_image
from framedex.settings import user_path

PATH_COLUMNS = (
    "path", "file", "filename", "file_name", "file_path", "filepath", "image", "image_path", "image_filename",
    "uri", "media_uri", "url", "img", "img_path",
)  # fmt: skip


@dataclass(frozen=True)
class Item:
    """One file to ingest.

    Attributes:
        path: the path relative to the source's root; undecodable bytes are surrogate escapes.
        labels: the image's labels in the source.
        caption: the image's caption in the source.
        location: the location of the bytes, if it differs from the path below the root.
        part: 0 for the source's root; 1 and up for its other roots.
        size_bytes: the size, if the source has it.
        modified_ns: the modification time in nanoseconds since 1970, if the source has it.
        digest: the BLAKE2b hash of the content, 16 bytes, of an uploaded file, whose path is a name and no place.
    """

    path: str
    labels: tuple[str, ...] = ()
    caption: str | None = None
    location: str | None = None
    part: int = 0
    size_bytes: int | None = None
    modified_ns: int | None = None
    digest: bytes | None = None


class Source(Protocol):
    """Files to ingest, relative to a root. Only mixed uploads have several roots.

    Attributes:
        root: the absolute path of a folder, the URI of a folder, or the blob store.
        other_roots: additional roots.
        allowed: the folders from which files may be read; None for any.
        role: the role to assume for reading objects.
        skipped: the numbers of entries skipped by the last iteration, by reason.
    """

    root: str
    other_roots: tuple[str, ...] = ()
    allowed: AllowedFolders | None = None
    role: AssumedRole | None = None
    skipped: Skipped

    def items(self) -> Iterator[Item]:
        """Yield the files in a stable order, without loading the whole list into memory."""
        ...


_LEADS_OUT = "links that lead out of the folders that may be read"
_LEAST = 16  # bytes that tell the formats of images
_UNNAMED_VIDEOS = "videos without the suffix of a video"


@dataclass
class FolderSource(Source):
    """The images and videos below a folder, folder by folder, sorted by name; linked folders come last.

    Hidden files and folders are skipped, and folders that systems make. Links are followed; each folder is entered
    once, so that loops end, and by its own path where it has one below the root. Folders outside of the allowed ones
    are not entered. Files whose suffix names no other kind of file are images if they begin like one.

    Attributes:
        is_annotation: whether a path below the root is that of a file of annotations, which is none of the other files.
    """

    root: str
    skipped: Skipped = field(default_factory=Skipped)
    allowed: AllowedFolders | None = None
    is_annotation: Callable[[str], bool] = field(default=lambda _path: False, repr=False, compare=False)

    def items(self) -> Iterator[Item]:
        """Yield the files."""
        self.skipped = Skipped()
        yield from self._walk("", seen=set())

    def _walk(self, folder: str, seen: set[tuple[int, int]]) -> Iterator[Item]:
        pending, linked = [folder], deque[str]()
        while pending or linked:
            current = pending.pop() if pending else linked.popleft()
            files, folders, links = self._list(current, seen)
            prefix = f"{current}/" if current else ""
            yield from (Item(prefix + name) for name in files)
            pending.extend(prefix + name for name in reversed(folders))
            linked.extend(prefix + name for name in links)

    def _list(self, folder: str, seen: set[tuple[int, int]]) -> tuple[list[str], list[str], list[str]]:
        """Return the sorted names of the images and videos, of the subfolders, and of the linked ones of one folder."""
        path = os.path.join(self.root, folder)  # noqa: PTH118 - names may be any bytes
        files: list[str] = []
        folders: list[str] = []
        links: list[str] = []
        others: list[str] = []
        try:
            if not self._is_allowed(path) and folder:
                self.skipped.note(_LEADS_OUT, folder)
                return [], [], []
            status = os.stat(path)  # noqa: PTH116
            if (status.st_dev, status.st_ino) in seen:
                self.skipped.note("folders that a link leads back to", folder)
                return [], [], []
            seen.add((status.st_dev, status.st_ino))
            with within(self.allowed), scan(path) as entries:
                for entry in entries:
                    self._sort_in(entry, path, files, folders, links, others, top=not folder)
                self._sort_others(path, files, others)
        except OSError as error:
            if not folder:
                raise InvalidInput(f"cannot read the folder {self.root!r}: {error.strerror}") from error
            self.skipped.note("folders that cannot be read", folder)
            return [], [], []
        # Lists of names, not of entries, because a single folder may have millions of files.
        return sorted(files), sorted(folders), sorted(links)

    def _is_allowed(self, path: str) -> bool:
        return self.allowed is None or self.allowed.contains(path)

    def _sort_in(
        self,
        entry: os.DirEntry[str],
        folder: str,
        files: list[str],
        folders: list[str],
        links: list[str],
        others: list[str],
        *,
        top: bool,
    ) -> None:
        if is_left_out(entry.name):
            reason = folder_reason(entry.name) if _is_folder(entry) else HIDDEN_FILES
            self.skipped.note(reason, self._shown(folder, entry.name))
            return
        if top and entry.name in (*label_files(), *box_files()):
            return
        if self.allowed is not None and entry.is_symlink():
            path = os.path.join(folder, entry.name)  # noqa: PTH118
            if not self.allowed.contains(path):  # the name alone decides, so that nothing tells what is there
                if is_media(entry.name):
                    files.append(entry.name)  # reading it fails with the reason
                else:
                    self.skipped.note(_LEADS_OUT, self._shown(folder, entry.name))
                return
        if _is_folder(entry):
            (links if entry.is_symlink() else folders).append(entry.name)
        elif is_media(entry.name):
            files.append(entry.name)
        else:
            others.append(entry.name)

    def _shown(self, folder: str, name: str) -> str:
        return os.path.relpath(os.path.join(folder, name), self.root)  # noqa: PTH118

    def _sort_others(self, folder: str, files: list[str], others: list[str]) -> None:
        """Sort files without the suffix of an image or a video by their content, where the suffix says nothing."""
        for name in sorted(others):
            if self.is_annotation(self._shown(folder, name)):
                continue
            head = b"" if says_kind(name) else _head(os.path.join(folder, name))  # noqa: PTH118
            if _is_image(head):
                files.append(name)
            elif container_of(head) is not None:
                self.skipped.note(_UNNAMED_VIDEOS, self._shown(folder, name))
            else:
                count_others(self.skipped, [self._shown(folder, name)])


def _head(path: str) -> bytes:
    """Return the first bytes of a regular file; nothing if it cannot be read."""
    try:
        with open_binary(path) as file:
            return file.read(HEAD)
    except OSError:
        return b""


def _is_image(head: bytes) -> bool:
    """Return whether a file that begins with some bytes is an image, and no text that begins like one: "Python …"."""
    is_binary = head[2:3].isspace() if head[:1] == b"P" else b"\0" in head
    return is_binary and len(head) >= _LEAST and begins_like_image(head)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link that leads to itself
        return False


@dataclass
class FileSource(Source):
    """A single image or video."""

    root: str
    name: str
    skipped: Skipped = field(default_factory=Skipped)
    allowed: AllowedFolders | None = None

    def items(self) -> Iterator[Item]:
        """Yield the file."""
        yield Item(self.name)


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

    for line, cells in delimited_rows(path, layout, broken, errors="surrogateescape"):
        first = cells[at] if at < len(cells) else ""
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


def open_source(source: str | os.PathLike[str], allowed: AllowedFolders | None = None) -> Source:
    """Return the source at a path: a folder, an image, a video or a list file.

    Args:
        source: the path.
        allowed: the folders from which files may be read; None for any.

    Raises:
        InvalidInput: the path does not exist, or is none of these.
        Forbidden: the path is in no allowed folder.
    """
    path = Path(os.path.abspath(user_path(source)))  # noqa: PTH100 - keeps links, unlike resolve
    if allowed is not None:
        allowed.check(path)
    try:
        if path.is_dir():
            return FolderSource(os.fspath(path), allowed=allowed)
        if path.is_file() and (path.suffix.lower() in LIST_SUFFIXES or is_media(path.name)):
            with within(allowed), open_binary(path):
                pass
            if is_media(path.name):
                return FileSource(os.fspath(path.parent), path.name, allowed=allowed)
            return ListSource(path, allowed=allowed)
        with within(allowed):
            if path.is_file() and not says_kind(path.name) and _is_image(_head(os.fspath(path))):
                return FileSource(os.fspath(path.parent), path.name, allowed=allowed)
        exists = path.exists()
    except OSError as error:
        raise InvalidInput(f"cannot read {str(path)!r}: {error.strerror}") from error
    if not exists:
        lists = ", ".join(LIST_SUFFIXES)
        what = f"a folder, an image, a video, an archive (.zip, .tar, .tgz) or a list ({lists})"
        raise InvalidInput(f"there is nothing at {str(path)!r}; a source is {what}")
    suffixes = ", ".join(sorted(IMAGE_SUFFIXES)), ", ".join(sorted(VIDEO_SUFFIXES))
    what = f"a folder, an image ({suffixes[0]}), a video ({suffixes[1]}) or a list ({', '.join(LIST_SUFFIXES)})"
    raise InvalidInput(f"{str(path)!r} is not {what}")


def check_not_empty(source: Source, path: Path) -> None:
    """Check that a source has an image or a video, and that one of the files of a list exists.

    Args:
        source: the source.
        path: its path, for the message.

    Raises:
        InvalidInput: it has none, or none exists.
    """
    if next(iter(source.items()), None) is None:
        skipped = ", ".join(f"{count} {reason}" for reason, count in source.skipped.items())
        raise InvalidInput(f"no images in {str(path)!r}" + (f"; it holds {skipped}" if skipped else "; it is empty"))
    if isinstance(source, ListSource):
        source.check_found()
