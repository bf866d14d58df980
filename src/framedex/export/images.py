"""The image files of an export: unchanged copies of image files, and video frames as JPEGs."""

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

from framedex.annotations.output import IMAGES
from framedex.errors import CannotDecode
from framedex.export.contents import ExportContents
from framedex.export.frames import Frames
from framedex.export.image_names import Names
from framedex.export.links import LeadsOutside, check_inside
from framedex.export.locations import display_path
from framedex.export.zip_writer import ZipWriter
from framedex.media.files import Reader
from framedex.media.remote import is_remote
from framedex.progress import ShareProgress
from framedex.settings import Settings

_PART = 2**20
MAX_MISSING = 10_000
"""Maximum number of missing images that are listed by path; a dataset may have a million of them."""


@dataclass
class CopyResult:
    """The result of copying images.

    Attributes:
        count: the number of copied images.
        failed: the number of images that could not be read.
        outside: the number of images left out because a link leads out of their source to a file that is not indexed.
        missing: the paths of the first failed and left-out images.
    """

    count: int = 0
    failed: int = 0
    outside: int = 0
    missing: list[str] = field(default_factory=list)

    def miss(self, path: str, *, outside: bool = False) -> None:
        """Count an image that could not be read, or that was left out because it lies outside of its source."""
        self.failed += not outside
        self.outside += outside
        if len(self.missing) < MAX_MISSING:
            self.missing.append(path)


def write_images(archive: ZipWriter, chosen: ExportContents, names: Names, progress: ShareProgress) -> CopyResult:
    """Copy the image files into the archive; return the counts and the missing paths.

    Raises:
        Unavailable: images are in a bucket that cannot be reached or read.
    """
    copied, door = CopyResult(), _Sources(chosen.settings)
    with closing(door.frames), closing(_ahead(_images(chosen, names), door)) as pictures:
        for picture, fetched in pictures:
            try:
                with door.open(picture, fetched) as (modified_s, content):
                    _copy(archive, IMAGES + picture.name, modified_s, content)
                copied.count += 1
            except CannotDecode as error:
                copied.miss(display_path(picture.shown), outside=isinstance(error, LeadsOutside))
            progress((copied.count + copied.failed + copied.outside) / max(chosen.total, 1))
    door.check_any_read()
    return copied


@dataclass(frozen=True)
class _Image:
    """An image to copy.

    Attributes:
        name: its name in the archive.
        shown: its path for messages.
        location: its path or URI.
        root: the folder of its source; None without a folder, or if no link can lead out of it.
        role_arn: the role for reading it.
        row: the stored values of its row.
        frame: number and time of a video frame; None for an image file.
    """

    name: str
    shown: str
    location: str | None
    root: str | None
    role_arn: str | None
    row: Mapping[str, Any]
    frame: tuple[int, float] | None = None


def _images(chosen: ExportContents, names: Names) -> Iterator[_Image]:
    media = chosen.media
    for block in chosen.places(lambda _share: None):
        for row, name in zip(block.to_pylist(), names(media, block).to_pylist(), strict=True):
            number = row.get("frame_number")
            frame = None if number is None else (number, row["frame_time_s"])
            root = None if row["root"] is None else media.roots[row["root"]]
            yield _Image(
                name,
                media.shown_path(row),
                media.location_of(row),
                root if root is not None and os.path.isabs(root) else None,  # noqa: PTH117 - any bytes
                media.role_of(row),
                row,
                frame,
            )


_Fetched = Future[tuple[int | None, bytes]] | None


class _Sources:
    """Access to files and objects. Objects are fetched ahead of the writer, because each takes long to arrive."""

    def __init__(self, settings: Settings) -> None:
        self._settings, self.frames = settings, Frames(settings)
        self._readers: dict[str | None, Reader] = {}
        self.window = settings.s3_connections

    def fetch(self, pool: ThreadPoolExecutor, picture: _Image) -> _Fetched:
        """Begin to fetch an object. Local files and videos of frames are opened later."""
        if picture.location is None or picture.frame is not None or not is_remote(picture.location):
            return None
        return pool.submit(self._reader(picture).read, picture.location)

    @contextmanager
    def open(self, picture: _Image, fetched: _Fetched) -> Iterator[tuple[float | None, BinaryIO]]:
        """Yield (time of the last change in seconds since 1970, content).

        Raises:
            CannotDecode: the image has no readable location, is not a regular file, or lies outside of its source.
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

    def _check(self, picture: _Image, file: BinaryIO) -> None:
        check_inside(file, str(picture.location), picture.root, picture.row, self._settings)

    def check_any_read(self) -> None:
        """Check that at least one object could be read.

        Raises:
            Unavailable: all objects failed.
        """
        for reader in self._readers.values():
            reader.check_any_read()

    def _reader(self, picture: _Image) -> Reader:
        if picture.role_arn not in self._readers:
            self._readers[picture.role_arn] = Reader(self._settings, picture.role_arn)
        return self._readers[picture.role_arn]


def _ahead(pictures: Iterator[_Image], door: _Sources) -> Generator[tuple[_Image, _Fetched], None, None]:
    waiting: deque[tuple[_Image, _Fetched]] = deque()
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
    except (OverflowError, ValueError, OSError):  # file times may be outside the range of datetime
        return datetime.min


def _parts(picture: BinaryIO) -> Iterator[bytes]:
    try:
        while data := picture.read(_PART):
            yield data
    except OSError as error:
        raise CannotDecode(f"cannot be read: {error}") from None
