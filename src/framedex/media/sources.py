"""Sources of images and videos: a folder, a file, or a list. Each can be read repeatedly, in the same order."""

import csv
import os
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol
from urllib.parse import unquote_to_bytes, urlsplit

from framedex.annotations.formats import label_files
from framedex.annotations.labels import parse_labels, storable
from framedex.core.allowed_folders import AllowedFolders, each_within, within
from framedex.core.assumed_roles import AssumedRole
from framedex.core.left_out import HIDDEN_FILES, count_others, folder_reason, is_left_out, says_kind
from framedex.core.regular_files import open_binary, open_text, scan
from framedex.core.suffixes import IMAGE_SUFFIXES, VIDEO_SUFFIXES, is_media
from framedex.core.table_rows import csv_rows, parquet_rows
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
    skipped: Counter[str]

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
    """

    root: str
    skipped: Counter[str] = field(default_factory=Counter)
    allowed: AllowedFolders | None = None

    def items(self) -> Iterator[Item]:
        """Yield the files."""
        self.skipped = Counter()
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
                self.skipped[_LEADS_OUT] += 1
                return [], [], []
            status = os.stat(path)  # noqa: PTH116
            if (status.st_dev, status.st_ino) in seen:
                self.skipped["folders that a link leads back to"] += 1
                return [], [], []
            seen.add((status.st_dev, status.st_ino))
            with within(self.allowed), scan(path) as entries:
                for entry in entries:
                    self._sort_in(entry, path, files, folders, links, others, top=not folder)
                self._sort_others(path, files, others)
        except OSError as error:
            if not folder:
                raise InvalidInput(f"cannot read the folder {self.root!r}: {error.strerror}") from error
            self.skipped["folders that cannot be read"] += 1
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
            self.skipped[folder_reason(entry.name) if _is_folder(entry) else HIDDEN_FILES] += 1
            return
        if top and entry.name in label_files():
            return
        if self.allowed is not None and entry.is_symlink():
            path = os.path.join(folder, entry.name)  # noqa: PTH118
            if not self.allowed.contains(path):  # the name alone decides, so that nothing tells what is there
                if is_media(entry.name):
                    files.append(entry.name)  # reading it fails with the reason
                else:
                    self.skipped[_LEADS_OUT] += 1
                return
        if _is_folder(entry):
            (links if entry.is_symlink() else folders).append(entry.name)
        elif is_media(entry.name):
            files.append(entry.name)
        else:
            others.append(entry.name)

    def _sort_others(self, folder: str, files: list[str], others: list[str]) -> None:
        """Sort files without the suffix of an image or a video by their content, where the suffix says nothing."""
        for name in sorted(others):
            head = b"" if says_kind(name) else _head(os.path.join(folder, name))  # noqa: PTH118
            if _is_image(head):
                files.append(name)
            elif container_of(head) is not None:
                self.skipped[_UNNAMED_VIDEOS] += 1
            else:
                count_others(self.skipped, [name])


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
    skipped: Counter[str] = field(default_factory=Counter)
    allowed: AllowedFolders | None = None

    def items(self) -> Iterator[Item]:
        """Yield the file."""
        yield Item(self.name)


@dataclass
class ListSource(Source):
    """The distinct files of a ``.txt``, ``.csv`` or ``.parquet`` list, in its order.

    Paths are relative to the list's own folder, or absolute. A text list has one path on each line. The other formats
    have a path column (the first of ``PATH_COLUMNS`` that exists, else the first column), and may have the columns
    ``label`` or ``labels`` and ``caption``.
    """

    list_path: Path
    root: str = ""
    skipped: Counter[str] = field(default_factory=Counter)
    allowed: AllowedFolders | None = None

    def __post_init__(self) -> None:
        self.root = self._common_root()

    def items(self) -> Iterator[Item]:
        """Yield the files."""
        self.skipped = Counter()
        seen: set[int] = set()
        for path, labels, caption, _ in self._rows():
            if not path:
                self.skipped["rows without a path"] += 1
            elif (key := hash(path)) in seen:
                self.skipped["repeated entries"] += 1
            else:
                seen.add(key)
                yield Item(os.path.relpath(path, self.root) if self.root else path, labels, caption)

    def values(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Yield the path of each file with the values of the other columns, if the list has some."""
        for row in self._rows() if self.list_path.suffix.lower() != _TEXT else ():  # a text has no columns
            if row.path and row.values:
                yield os.path.relpath(row.path, self.root) if self.root else row.path, row.values

    def _common_root(self) -> str:
        """Return the deepest folder that contains all files. If the files move, only this root changes."""
        common: str | None = None
        for path in (row.path for row in self._rows() if row.path):
            folder = os.path.dirname(path)  # noqa: PTH120
            if common is None:
                common = folder
            elif folder != common:
                common = os.path.commonpath([common, folder])
        return common or str(self.list_path.parent)

    def _rows(self) -> Iterator["ListRow"]:
        folder = os.fspath(self.list_path.parent)
        for row in self._read():
            path = self._path_of(row.path) if row.path.startswith("file:") else row.path
            yield row._replace(path=path and os.path.normpath(os.path.join(folder, path)))  # noqa: PTH118

    def _read(self) -> Iterator["ListRow"]:
        """Return the rows as they are written."""
        return each_within(self.allowed, partial(read_list, self.list_path))

    def _path_of(self, uri: str) -> str:
        try:
            return os.fsdecode(unquote_to_bytes(urlsplit(uri).path))
        except ValueError as error:  # brackets that hold no IPv6 address
            raise InvalidInput(
                f"{self.list_path}: {uri!r} is no URI of a file, as file:///folder/a.jpg: {error}"
            ) from None


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


_TEXT = ".txt"
LIST_SUFFIXES = (_TEXT, ".csv", ".parquet")
_MAX_LINE = 2**16  # characters; the maximum path length of Linux is 4,096 bytes
_OF_IMAGES = ("label", "labels", "caption")
_SHOWN = 80  # characters of an invalid value in a message


def read_list(path: Path) -> Iterator[ListRow]:
    """Yield the path as written, the labels and the caption of each row of a list file.

    Raises:
        InvalidInput: the file cannot be read.
    """
    read = {".txt": _read_text, ".csv": _read_csv, ".parquet": _read_parquet}[path.suffix.lower()]
    for number, row in enumerate(read(path), 1):
        if len(row.path) >= _MAX_LINE:
            raise InvalidInput(
                f"{path}, row {number}: the path of a file has less than {_MAX_LINE:,} characters, and this one has "
                f"{len(row.path):,}: {row.path[:_SHOWN]!r}…"
            )
        yield row


def _read_text(path: Path) -> Iterator[ListRow]:
    with open_text(path, errors="surrogateescape", newline="\n") as file:
        for number, line in enumerate(iter(partial(file.readline, _MAX_LINE), ""), 1):
            if len(line) == _MAX_LINE:
                raise InvalidInput(
                    f"{path}, line {number}: each line must be the path of a file, and this one is too long"
                )
            if name := line.rstrip("\r\n"):
                yield ListRow(name)


def _read_csv(path: Path) -> Iterator[ListRow]:
    with open_text(path, errors="surrogateescape", newline="") as text:
        try:
            yield from _rows_of(row for _, row in csv_rows(text))
        except csv.Error as error:
            raise InvalidInput(f"{path}, {error}") from error


def _rows_of(rows: Iterator[list[str]]) -> Iterator[ListRow]:
    first = next(rows, None)
    if first is None:
        return
    header = [name.strip().lower() for name in first]
    if not set(header) & set(PATH_COLUMNS):
        header = ["path"]
        yield ListRow(first[0] if first else "")
        first = header
    at = {name: position for position, name in enumerate(header)}
    own = next(name for name in PATH_COLUMNS if name in at)
    others = {name.strip(): at[key] for name, key in zip(first, header, strict=True) if key not in (own, *_OF_IMAGES)}
    for row in rows:
        if any(row):
            yield _row_of(at, others, row)


def _row_of(at: dict[str, int], others: Mapping[str, int], row: Sequence[str]) -> ListRow:
    def cell(*names: str) -> str | None:
        position = next((at[name] for name in names if name in at), None)
        return row[position] if position is not None and position < len(row) and row[position] else None

    caption = cell("caption")
    values = {name: row[position] for name, position in others.items() if position < len(row) and row[position]}
    labels = parse_labels(cell("label", "labels"))
    return ListRow(cell(*PATH_COLUMNS) or "", labels, caption and storable(caption), values)


def _read_parquet(path: Path) -> Iterator[ListRow]:
    names: dict[str, str] = {}

    def choose(columns: Sequence[str]) -> list[str]:
        if not columns:
            raise InvalidInput(f"{path} has no columns; one must hold the paths of files")
        by_name = {name.lower(): name for name in columns}
        names["path"] = next((by_name[name] for name in PATH_COLUMNS if name in by_name), columns[0])
        names.update({key: by_name[key] for key in _OF_IMAGES if key in by_name})
        return list(columns)

    for row in parquet_rows(path, choose):
        value = row[names["path"]]
        if not isinstance(value, str):
            raise InvalidInput(f"{path}: column {names['path']!r} holds {repr(value)[:_SHOWN]}, not the path of a file")
        labels = parse_labels(row.get(names.get("label", names.get("labels", ""))))
        caption = row.get(names.get("caption", ""))
        others = {key: each for key, each in row.items() if key not in names.values() and each is not None}
        yield ListRow(value, labels, None if caption is None else str(caption), others)


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
    suffixes = ", ".join(sorted(IMAGE_SUFFIXES)), ", ".join(sorted(VIDEO_SUFFIXES))
    what = f"a folder, an image ({suffixes[0]}), a video ({suffixes[1]}) or a .txt, .csv or .parquet list"
    if not exists:
        raise InvalidInput(f"there is nothing at {str(path)!r}; a source is {what}")
    raise InvalidInput(f"{str(path)!r} is not {what}")


def check_not_empty(source: Source, path: Path) -> None:
    """Check that a source has an image or a video.

    Args:
        source: the source.
        path: its path, for the message.

    Raises:
        InvalidInput: it has none.
    """
    if next(iter(source.items()), None) is None:
        skipped = ", ".join(f"{count} {reason}" for reason, count in source.skipped.items())
        raise InvalidInput(f"no images in {str(path)!r}" + (f"; it holds {skipped}" if skipped else "; it is empty"))
