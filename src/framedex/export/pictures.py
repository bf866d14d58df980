"""The pictures of an export: the bytes of their files, as they are, and frames of videos as JPEGs."""

import os
from collections import deque
from collections.abc import Generator, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from io import BytesIO
from typing import Any, BinaryIO

from framedex.annotations.written import IMAGES
from framedex.errors import CannotDecode
from framedex.export.chosen import Chosen
from framedex.export.frames import Frames
from framedex.export.outside import LeadsOutside, check_inside
from framedex.export.picture_names import Names
from framedex.export.places import shown_text
from framedex.export.zip_writer import ZipWriter
from framedex.media.files import Reader
from framedex.media.remote import is_remote
from framedex.progress import ShareProgress
from framedex.settings import Settings

_PART = 2**20
MOST_MISSING = 10_000
"""Of pictures that cannot be read so many are named; a dataset may have a million that are elsewhere."""


@dataclass
class Copied:
    """What was copied.

    Attributes:
        count: how many pictures.
        failed: how many could not be read.
        outside: how many were left out because a link leads out of their source, and not to an image that was indexed.
        missing: the paths of the first ones of both.
    """

    count: int = 0
    failed: int = 0
    outside: int = 0
    missing: list[str] = field(default_factory=list)

    def miss(self, path: str, *, outside: bool = False) -> None:
        """Note that a picture could not be read, or was left out because it lies outside of its source."""
        self.failed += not outside
        self.outside += outside
        if len(self.missing) < MOST_MISSING:
            self.missing.append(path)


def write_pictures(archive: ZipWriter, chosen: Chosen, names: Names, progress: ShareProgress) -> Copied:
    """Copy the pictures' files into the archive; return how many, and which cannot be read.

    Raises:
        Unavailable: some are in a bucket that cannot be reached, or lets nothing be read any more.
    """
    copied, door = Copied(), _Door(chosen.settings)
    with closing(door.frames), closing(_ahead(_pictures(chosen, names), door)) as pictures:
        for picture, fetched in pictures:
            try:
                with door.open(picture, fetched) as (modified_s, content):
                    _copy(archive, IMAGES + picture.name, modified_s, content)
                copied.count += 1
            except CannotDecode as error:
                copied.miss(shown_text(picture.shown), outside=isinstance(error, LeadsOutside))
            progress((copied.count + copied.failed + copied.outside) / max(chosen.total, 1))
    door.check_any_read()
    return copied


@dataclass(frozen=True)
class _Picture:
    """One that is copied.

    Attributes:
        name: in the archive.
        shown: how its file is called.
        location: where that is.
        root: the folder of its source; None if it has none, or no link can lead out of it.
        role_arn: the role to read it.
        row: what ingestion found.
        frame: number and time of a frame of a video.
    """

    name: str
    shown: str
    location: str | None
    root: str | None
    role_arn: str | None
    row: Mapping[str, Any]
    frame: tuple[int, float] | None = None


def _pictures(chosen: Chosen, names: Names) -> Iterator[_Picture]:
    media = chosen.media
    for block in chosen.places(lambda _share: None):
        for row, name in zip(block.to_pylist(), names(media, block).to_pylist(), strict=True):
            number = row.get("frame_number")
            frame = None if number is None else (number, row["frame_time_s"])
            root = None if row["root"] is None else media.roots[row["root"]]
            yield _Picture(
                name,
                media.shown_path(row),
                media.location_of(row),
                root if root is not None and os.path.isabs(root) else None,  # noqa: PTH117 - any bytes
                media.role_of(row),
                row,
                frame,
            )


_Fetched = Future[tuple[int | None, bytes]] | None


class _Door:
    """Opens files, and fetches objects ahead of the writer: each takes long to come and little to write."""

    def __init__(self, settings: Settings) -> None:
        self._settings, self.frames = settings, Frames(settings)
        self._readers: dict[str | None, Reader] = {}
        self.window = settings.s3_connections

    def fetch(self, pool: ThreadPoolExecutor, picture: _Picture) -> _Fetched:
        """Begin to fetch an object; a file waits until it is opened, and a video of which frames are wanted, too."""
        if picture.location is None or picture.frame is not None or not is_remote(picture.location):
            return None
        return pool.submit(self._reader(picture).read, picture.location)

    @contextmanager
    def open(self, picture: _Picture, fetched: _Fetched) -> Iterator[tuple[float | None, BinaryIO]]:
        """Yield (time of the last change in seconds since 1970, content).

        Raises:
            CannotDecode: it is nowhere, no regular file, cannot be read, or lies outside of its source.
        """
        if picture.location is None:
            raise CannotDecode("neither a local file nor an object in a bucket")
        if picture.frame is not None:
            reader, check = self._reader(picture), partial(self._check, picture)
            changed_s, jpeg = self.frames.jpeg(reader, picture.location, *picture.frame, check=check)
            yield changed_s, BytesIO(jpeg)
            return
        if fetched is not None:
            modified_ns, data = fetched.result()
            yield (None if modified_ns is None else modified_ns / 1e9), BytesIO(data)
            return
        with self._reader(picture).open(picture.location) as (modified_s, content):
            self._check(picture, content)
            yield modified_s, content

    def _check(self, picture: _Picture, file: BinaryIO) -> None:
        check_inside(file, str(picture.location), picture.root, picture.row, self._settings)

    def check_any_read(self) -> None:
        """Check that not all objects failed.

        Raises:
            Unavailable: they did.
        """
        for reader in self._readers.values():
            reader.check_any_read()

    def _reader(self, picture: _Picture) -> Reader:
        if picture.role_arn not in self._readers:
            self._readers[picture.role_arn] = Reader(self._settings, picture.role_arn)
        return self._readers[picture.role_arn]


def _ahead(pictures: Iterator[_Picture], door: _Door) -> Generator[tuple[_Picture, _Fetched], None, None]:
    waiting: deque[tuple[_Picture, _Fetched]] = deque()
    with ThreadPoolExecutor(door.window, thread_name_prefix="framedex-export-fetch") as pool:
        try:
            for picture in pictures:
                waiting.append((picture, door.fetch(pool, picture)))
                if len(waiting) >= door.window:
                    yield waiting.popleft()
            while waiting:
                yield waiting.popleft()
        finally:
            pool.shutdown(cancel_futures=True)


def _copy(archive: ZipWriter, name: str, modified_s: float | None, content: BinaryIO) -> None:
    with archive.member(name, modified=_local_time(modified_s)) as member:
        for data in _parts(content):
            member.write(data)


def _local_time(seconds: float | None) -> datetime | None:
    if seconds is None:
        return None
    try:
        return datetime.fromtimestamp(seconds)
    except (OverflowError, ValueError, OSError):  # file systems hold times that calendars do not
        return datetime.min


def _parts(picture: BinaryIO) -> Iterator[bytes]:
    try:
        while data := picture.read(_PART):
            yield data
    except OSError as error:
        raise CannotDecode(f"cannot be read: {error}") from None
