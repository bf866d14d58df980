"""Sources of images and videos: a folder, and a file. Each can be read repeatedly, in the same order."""

import os
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

from framedex.annotations.formats import box_files, label_files
from framedex.core.allowed_folders import AllowedFolders, within
from framedex.core.assumed_roles import AssumedRole
from framedex.core.left_out import HIDDEN_FILES, count_others, folder_reason, is_left_out, says_kind
from framedex.core.regular_files import open_binary, scan
from framedex.core.skipped import Skipped
from framedex.core.suffixes import is_media
from framedex.errors import InvalidInput
from framedex.media.containers import HEAD, container_of
from framedex.media.decode import begins_like_image


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
        is_annotation: whether a path below the root is that of a file of annotations, which is none of the other files,
            or with a slash behind it that of a folder of such.
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
            shown, is_folder = self._shown(folder, entry.name), _is_folder(entry)
            if not is_folder or not self.is_annotation(f"{shown}/"):
                self.skipped.note(folder_reason(entry.name) if is_folder else HIDDEN_FILES, shown)
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
            head = b"" if says_kind(name) else begin_of(os.path.join(folder, name))  # noqa: PTH118
            if begins_image(head):
                files.append(name)
            elif container_of(head) is not None:
                self.skipped.note(_UNNAMED_VIDEOS, self._shown(folder, name))
            else:
                count_others(self.skipped, [self._shown(folder, name)])


def begin_of(path: str) -> bytes:
    """Return the first bytes of a regular file; nothing if it cannot be read."""
    try:
        with open_binary(path) as file:
            return file.read(HEAD)
    except OSError:
        return b""


def begins_image(head: bytes) -> bool:
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
