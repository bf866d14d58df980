"""The image files of an export: unchanged copies of image files, and video frames as JPEGs."""

import os
from collections import Counter, deque
from collections.abc import Generator, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from io import BytesIO
from typing import Any, BinaryIO

from framedex.annotations.output import IMAGES
from framedex.core.arrays import Pixels
from framedex.core.assumed_roles import AssumedRole
from framedex.core.counts import counted
from framedex.core.progress import ShareProgress
from framedex.core.suffixes import is_video
from framedex.errors import CannotDecode
from framedex.export.contents import ExportContents
from framedex.export.frames import Frames
from framedex.export.image_names import Names
from framedex.export.links import LeftOut, check_inside
from framedex.export.locations import display_path
from framedex.export.zip_writer import ZipWriter
from framedex.media.budget import shared_budget
from framedex.media.decode import decode_pixels
from framedex.media.files import Reader
from framedex.media.metadata_removal import without_metadata
from framedex.media.remote import is_remote
from framedex.media.row_images import cut_out, png, range_of
from framedex.settings import Settings
from framedex.storage.media import Media
from framedex.storage.media_rows import BOX

_PART = 2**20
MAX_MISSING = 10_000
"""Maximum number of missing images that are listed by path; a dataset may have a million of them."""


@dataclass
class CopyResult:
    """The result of copying images.

    Attributes:
        count: the number of copied images.
        failed: the number of images that could not be read.
        left_out: the numbers of images left out, by reason.
        missing: the paths of the first failed and left-out images.
    """

    count: int = 0
    failed: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    missing: list[str] = field(default_factory=list)

    @property
    def total(self) -> int:
        """The number of images so far, copied or not."""
        return self.count + self.failed + self.left_out.total()

    def miss(self, path: str, error: CannotDecode) -> None:
        """Count an image that could not be read, or that was left out."""
        if isinstance(error, LeftOut):
            self.left_out[error.reason] += 1
        else:
            self.failed += 1
        if len(self.missing) < MAX_MISSING:
            self.missing.append(path)


def write_images(
    archive: ZipWriter, contents: ExportContents, names: Names, progress: ShareProgress, *, folder: str = IMAGES
) -> CopyResult:
    """Copy the image files into a folder of the archive; return the counts and the missing paths.

    Raises:
        Unavailable: images are in a bucket that cannot be reached or read.
    """
    copied, sources = CopyResult(), _Sources(contents.settings)
    with closing(sources.frames), closing(_ahead(_images(contents, names), sources)) as images:
        for image, fetched in images:
            try:
                with sources.open(image, fetched) as (modified_s, content):
                    limit = _max_bytes(image, contents.settings)
                    name = folder + image.name
                    if contents.options.strip_metadata and not image.is_encoded_here:
                        _copy(archive, name, None, _stripped(content, limit))
                    else:
                        _copy(archive, name, modified_s, content, max_bytes=limit)
                copied.count += 1
            except CannotDecode as error:
                copied.miss(display_path(image.path_shown), error)
            progress(copied.total / max(contents.total, 1))
    sources.check_any_read()
    return copied


def image_files(
    contents: ExportContents, rows: Iterator[dict[str, Any]], copied: CopyResult, progress: ShareProgress
) -> Iterator[tuple[dict[str, Any], bytes]]:
    """Yield some rows with the content of their image files, as :func:`write_images` copies them.

    Args:
        contents: the selection that is exported.
        rows: with the columns of :attr:`framedex.storage.media.Media.location`, and ``error``.
        copied: counts the images; rows whose image cannot be read are left out.
        progress: called with the fraction that is done.

    Raises:
        Unavailable: images are in a bucket that cannot be reached or read.
    """
    sources, media = _Sources(contents.settings), contents.media
    with closing(sources.frames), closing(_ahead((_image(media, row, "") for row in rows), sources)) as images:
        for image, fetched in images:
            limit = contents.settings.max_file_bytes
            try:
                with sources.open(image, fetched) as (_, content):
                    if contents.options.strip_metadata and not image.is_encoded_here:
                        content = _stripped(content, limit)  # noqa: PLW2901 - the file to read
                    data = content.read(limit + 1)
                if len(data) > limit:
                    raise _TooLarge(f"the file has more than {counted(limit, 'bytes')}")
            except CannotDecode as error:
                copied.miss(display_path(image.path_shown), error)
            else:
                copied.count += 1
                yield dict(image.row), data
            progress(copied.total / max(contents.total, 1))
    sources.check_any_read()


@dataclass(frozen=True)
class _Image:
    """An image to copy.

    Attributes:
        name: its name in the archive.
        path_shown: its path for messages.
        location: its path or URI.
        root: the folder of its source; None without a folder, or if no link can lead out of it.
        role: the role to assume for reading it.
        row: the stored values of its row.
        frame: number and time of a video frame; None for an image file.
        box: x, y, width and height in pixels of an object that is cut out; None for the whole image.
    """

    name: str
    path_shown: str
    location: str | None
    root: str | None
    role: AssumedRole | None
    row: Mapping[str, Any]
    frame: tuple[int, float] | None = None
    box: tuple[float, float, float, float] | None = None

    @property
    def is_encoded_here(self) -> bool:
        """True if the export encodes the image, so that its file says nothing beside its pixels."""
        return self.frame is not None or self.box is not None


def _images(contents: ExportContents, names: Names) -> Iterator[_Image]:
    """Yield the images that have a name: images, or in an export of crops the objects."""
    media = contents.shown
    for block in contents.locations(lambda _share: None):
        for row, name in zip(block.to_pylist(), names(media, block).to_pylist(), strict=True):
            if name is not None:
                yield _image(media, row, name)


def _image(media: Media, row: Mapping[str, Any], name: str) -> _Image:
    number = row.get("frame_number")
    root = None if row["root"] is None else media.roots[row["root"]]
    return _Image(
        name,
        media.shown_path(row),
        media.location_of(row),
        root if root is not None and os.path.isabs(root) else None,  # noqa: PTH117 - any bytes
        media.role_of(row),
        row,
        None if number is None else (number, row["frame_time_s"]),
        None if row.get(BOX[0]) is None else (row[BOX[0]], row[BOX[1]], row[BOX[2]], row[BOX[3]]),
    )


_Fetched = Future[tuple[int | None, bytes]] | None


class _Sources:
    """Access to files and objects. Objects are fetched ahead of the writer, because each takes long to arrive."""

    def __init__(self, settings: Settings) -> None:
        self._settings, self.frames = settings, Frames(settings)
        self._readers: dict[AssumedRole | None, Reader] = {}
        self._kept: tuple[Any, Pixels | None] = None, None
        self.window = settings.s3_connections

    def fetch(self, pool: ThreadPoolExecutor, image: _Image) -> _Fetched:
        """Begin to fetch an object. Local files and videos of frames are opened later."""
        if image.location is None or image.is_encoded_here or not is_remote(image.location):
            return None
        return pool.submit(self._reader(image).read, image.location)

    @contextmanager
    def open(self, image: _Image, fetched: _Fetched) -> Iterator[tuple[float | None, BinaryIO]]:
        """Yield (time of the last change in seconds since 1970, content).

        Raises:
            CannotDecode: the image has no readable location, is not a regular file, or lies outside of its source.
        """
        if image.location is None:
            raise CannotDecode("neither a local file nor an object in a bucket")
        if image.box is not None:
            yield None, BytesIO(png(cut_out(self._pixels(image), *image.box)))
            return
        if image.frame is not None:
            reader, check = self._reader(image), partial(self._check, image)
            changed_s, jpeg = self.frames.jpeg(reader, image.location, *image.frame, check=check)
            yield changed_s, BytesIO(jpeg)
            return
        if fetched is not None:
            modified_ns, data = fetched.result()
            yield (None if modified_ns is None else modified_ns / 1e9), BytesIO(data)
            return
        with self._reader(image).open(image.location) as (modified_s, content):
            self._check(image, content)
            yield modified_s, content

    def _pixels(self, image: _Image) -> Pixels:
        """Return the pixels of the image or frame that an object is in; those of the last one are kept."""
        assert image.location is not None, "it was checked"
        key = image.location, image.frame
        if key != self._kept[0]:
            if image.frame is not None:
                check = partial(self._check, image)
                pixels = self.frames.pixels(self._reader(image), image.location, *image.frame, check=check)[1]
            else:
                with self._reader(image).open(image.location) as (_, content):
                    self._check(image, content)
                    data = content.read(self._settings.max_file_bytes + 1)
                pixels = decode_pixels(
                    data,
                    max_pixels=self._settings.max_pixels,
                    budget=shared_budget(self._settings.pixels_in_flight),
                    display_range=range_of(image.row),
                )
            self._kept = key, pixels
        assert self._kept[1] is not None, "pixels were read"
        return self._kept[1]

    def _check(self, image: _Image, file: BinaryIO) -> None:
        check_inside(file, str(image.location), image.root, image.row, self._settings)

    def check_any_read(self) -> None:
        """Check that at least one object could be read.

        Raises:
            Unavailable: all objects failed.
        """
        for reader in self._readers.values():
            reader.check_any_read()

    def _reader(self, image: _Image) -> Reader:
        if image.role not in self._readers:
            self._readers[image.role] = Reader(self._settings, image.role)
        return self._readers[image.role]


def _ahead(images: Iterator[_Image], sources: _Sources) -> Generator[tuple[_Image, _Fetched], None, None]:
    waiting: deque[tuple[_Image, _Fetched]] = deque()
    with ThreadPoolExecutor(sources.window, thread_name_prefix="framedex-export-fetch") as pool:
        try:
            for image in images:
                waiting.append((image, sources.fetch(pool, image)))
                if len(waiting) >= sources.window:
                    yield waiting.popleft()
            while waiting:
                yield waiting.popleft()
        finally:
            pool.shutdown(cancel_futures=True)


def _copy(
    archive: ZipWriter, name: str, modified_s: float | None, content: BinaryIO, *, max_bytes: int | None = None
) -> None:
    size = content.seek(0, os.SEEK_END)
    content.seek(0)
    if max_bytes is not None and size > max_bytes:
        raise _TooLarge(f"the file has {counted(size, 'bytes')}, more than {max_bytes:,}")
    with archive.member(name, modified=_local_time(modified_s)) as member:
        for data in _parts(content):
            if member.size + len(data) > size:
                raise _Grew(f"the file had {counted(size, 'bytes')}, and grew while it was copied")
            member.write(data)


def _stripped(content: BinaryIO, max_bytes: int | None) -> BinaryIO:
    """Return an image file without what it says about the image, of which even the time of the file is a part.

    Raises:
        LeftOut: this cannot be removed, or the file is too large.
    """
    data = b"" if max_bytes is None else content.read(max_bytes + 1)
    if max_bytes is not None and len(data) > max_bytes:
        raise _TooLarge(f"the file has more than {counted(max_bytes, 'bytes')}")
    try:
        return BytesIO(without_metadata(data))
    except CannotDecode as error:
        raise _KeepsMetadata(str(error)) from None


class _KeepsMetadata(LeftOut):
    """A file of which the metadata cannot be removed."""

    reason = "what their files say about them (Exif, GPS) cannot be removed without decoding them"


def _max_bytes(image: _Image, settings: Settings) -> int | None:
    """Return the maximum size of an image; None for the file of a broken video, for which there is none."""
    return None if is_video(image.location or "") else settings.max_file_bytes


class _TooLarge(LeftOut):
    """A file that is larger than the setting."""

    reason = "they are larger than FRAMEDEX_MAX_FILE_BYTES"


class _Grew(LeftOut):
    """A file that another program is still writing."""

    reason = "they grew while they were copied"


def _local_time(seconds: float | None) -> datetime | None:
    if seconds is None:
        return None
    try:
        return datetime.fromtimestamp(seconds)
    except (OverflowError, ValueError, OSError):  # file times may be outside the range of datetime
        return datetime.min


def _parts(image: BinaryIO) -> Iterator[bytes]:
    try:
        while data := image.read(_PART):
            yield data
    except OSError as error:
        raise CannotDecode(f"cannot be read: {error}") from None
