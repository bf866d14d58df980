"""Decoding of files: for each image or video frame, its measures and the input of the encoder."""

import hashlib
import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from framedex.analysis.local_features import find_local_features
from framedex.core.arrays import Vectors
from framedex.core.assumed_roles import AssumedRole
from framedex.core.borders import BorderedImage
from framedex.core.suffixes import is_video
from framedex.encoders import Preparation
from framedex.encoders.copy_descriptor import describe, is_copy_descriptor, prepare_panels, prepare_whole
from framedex.errors import CannotDecode, Fault
from framedex.issue_types import is_built_in, measured_types
from framedex.jobs.ingest.measuring import SHORT_CALLS, Measures, measure_images
from framedex.jobs.ingest.read_ahead import Stream
from framedex.media.budget import Budget, PixelBudget, reserve_pixels
from framedex.media.decode import decode
from framedex.media.decoded_image import DecodedImage, decoded
from framedex.media.display_range import Range
from framedex.media.files import Reader, locate
from framedex.media.frame_sampling import Sampling, kept_frames
from framedex.media.sources import Item, Source
from framedex.media.video import Video
from framedex.settings import Settings
from framedex.storage.media_rows import COPY_DESCRIPTOR, LOCAL_FEATURES, PANEL_DESCRIPTORS

_PART = 2**20
_TOGETHER_PX = 4_000_000  # pixels of the images that are measured together; they use up to 3 bytes each


@dataclass(frozen=True)
class DecodedFile:
    """Result of decoding an image, or a frame of a video.

    Attributes:
        item: the file.
        size_bytes, modified_ns, digest: size, modification time and content hash; None if the file cannot be read.
        width, height, format: of the image, whose pixels are not stored; None if it cannot be decoded.
        shown: the values that are black and white; None for values as they are.
        pages: the number of pages or frames in the file of an image, of which the first is read.
        measures: quality measures.
        prepared: the input of an encoder with a model.
        vector: the embedding of the built-in encoder, which has none.
        of_copies: the copy descriptors of the image, if it is no embedding, and of its panels, by column; empty if the
            image cannot be decoded.
        error: reason why it cannot be decoded.
        fault: the kind of that reason.
        gaps: the decoder's description of damage; the pixels have gaps then.
        frame_number, frame_time_s: of a frame; None for an image file.
        share: share of the file that is decoded so far, 0 to 1.
    """

    item: Item
    size_bytes: int | None = None
    modified_ns: int | None = None
    digest: bytes | None = None
    width: int | None = None
    height: int | None = None
    format: str | None = None
    shown: Range | None = None
    pages: int = 1
    measures: Measures | None = None
    prepared: npt.NDArray[Any] | None = None
    vector: Vectors | None = None
    of_copies: Mapping[str, Vectors | None] = field(default_factory=dict)
    error: str | None = None
    fault: Fault | None = None
    gaps: str | None = None
    frame_number: int | None = None
    frame_time_s: float | None = None
    share: float = 1.0


@dataclass(frozen=True)
class DecodedVideo:
    """Properties of a decoded video; it follows its frames.

    Attributes:
        file: the item, size, time and hash of the video, and the error that ended decoding.
        container, codec, fps, width, height: of the video; None if unknown.
        duration_s: end of the last frame in seconds.
        frames, kept_frames: number of decoded and of kept frames.
    """

    file: DecodedFile
    container: str | None = None
    codec: str | None = None
    fps: float | None = None
    width: int | None = None
    height: int | None = None
    duration_s: float | None = None
    frames: int = 0
    kept_frames: int = 0


Decoded = DecodedFile | DecodedVideo
HasFrame = Callable[[Item, int], bool]
"""Returns whether the table has a frame, given its video and number."""


@dataclass(frozen=True)
class Places:
    """The places of a source's files.

    Attributes:
        roots: the source's root, and its other roots.
        role: the role to assume for reading objects.
    """

    roots: tuple[str, ...]
    role: AssumedRole | None = None

    @classmethod
    def of(cls, source: Source) -> "Places":
        """Return the places of a source's files."""
        return cls((source.root, *source.other_roots), source.role)

    def location(self, item: Item) -> str:
        """Return the location of an item: an absolute path, or a URI."""
        return item.location or locate(self.roots[item.part], item.path)


def is_video_item(item: Item) -> bool:
    """Return whether an item is a video, by the suffix of its name."""
    return is_video(item.path)


class FileDecoder:
    """Decoder of a source's files; used by several threads at once.

    Args:
        places: where the files are.
        preparation: prepares images for encoding.
        settings: limits.
        sampling: selection of video frames.
        has_frame: returns whether a frame is in the table already; such frames are skipped.
        columns: names of the columns for finding copies that are written.
        budget: the limit of decoded pixels; by default that of the settings.
        display_range: the values that are shown black and white in images of more than 8 bits; None for those of each.
    """

    def __init__(
        self,
        places: Places,
        preparation: Preparation,
        settings: Settings,
        sampling: Sampling,
        has_frame: HasFrame,
        columns: Collection[str] = (),
        budget: Budget | None = None,
        display_range: Range | None = None,
    ) -> None:
        self.columns, self.display_range = columns, display_range
        self.places, self.preparation, self.settings = places, preparation, settings
        self.sampling, self.has_frame = sampling, has_frame
        self.reader = Reader(settings, places.role)
        self.budget = budget or PixelBudget(settings.pixels_in_flight)
        self.detail = preparation.side_px
        # Measures of plugins may take long, so they do not wait for each other.
        self._turn = SHORT_CALLS if all(map(is_built_in, measured_types())) else nullcontext()

    def decode_images(self, items: Iterable[Item]) -> list[Decoded]:
        """Read, decode, measure, describe and prepare images; their pixels are released before returning."""
        results: list[Decoded] = []
        group: list[tuple[DecodedFile, DecodedImage | None]] = []
        pixels = 0
        for item in items:
            file, image = self._read(item)
            group.append((file, image))
            pixels += 0 if image is None else image.width * image.height
            if pixels >= _TOGETHER_PX:
                results += self._measured(group)
                group, pixels = [], 0
        return results + self._measured(group)

    def _read(self, item: Item) -> tuple[DecodedFile, DecodedImage | None]:
        """Return a file and its image; None if it cannot be decoded."""
        file, data = self._identified(item)
        if data is None:
            return file, None
        try:
            return file, decode(
                data,
                max_pixels=self.settings.max_pixels,
                detail=self.detail,
                budget=self.budget,
                display_range=self.display_range,
            )
        except CannotDecode as error:
            return _refused(file, error), None

    def _identified(self, item: Item) -> tuple[DecodedFile, bytes | None]:
        """Return a file with its size, time and hash, and its content; None if it cannot be read."""
        try:
            modified_ns, data = self.reader.read(self.places.location(item))
        except CannotDecode as error:
            return _refused(DecodedFile(item), error), None
        modified_ns = modified_ns if item.modified_ns is None else item.modified_ns
        return DecodedFile(item, len(data), modified_ns, hashlib.blake2b(data, digest_size=16).digest()), data

    def broken(self, item: Item, error: str) -> DecodedFile:
        """Return a file whose decoding fails for a reason that does not tell whether it is in order."""
        return replace(self._identified(item)[0], error=error, fault="not_supported")

    def _measured(self, group: Sequence[tuple[DecodedFile, DecodedImage | None]]) -> list[Decoded]:
        """Return files with the measures of their images."""
        measured = iter(self._measure([image for _, image in group if image is not None]))
        return [file if image is None else replace(file, gaps=image.damage, **next(measured)) for file, image in group]

    def decode_video(self, item: Item, stream: Stream[Decoded]) -> None:
        """Put the kept frames of a video into a stream, followed by the properties of the video."""
        file = DecodedFile(item)
        try:
            with self.reader.open(self.places.location(item)) as (modified_s, content):
                file = self._hash_file(item, modified_s, content, stream)
                with Video(content, max_pixels=self.settings.max_pixels, threads=self.settings.threads) as video:
                    stream.put(self._frames(file, video, stream))
        except CannotDecode as error:
            stream.put(DecodedVideo(_refused(file, error)))

    def _hash_file(self, item: Item, modified_s: float | None, content: Any, stream: Stream[Decoded]) -> DecodedFile:
        digest, size = hashlib.blake2b(digest_size=16), 0
        modified_ns = _modified_ns(content, modified_s) if item.modified_ns is None else item.modified_ns
        try:
            while part := content.read(_PART):
                digest.update(part)
                size += len(part)
                stream.check()
        except OSError as error:
            raise CannotDecode(f"cannot be read: {error.strerror or error}", "unreadable") from None
        return DecodedFile(item, size, modified_ns, digest.digest())

    def _frames(self, file: DecodedFile, video: Video, stream: Stream[Decoded]) -> DecodedVideo:
        """Put the kept frames of a video into a stream; return the properties of the video.

        Raises:
            CannotDecode: no frame can be decoded.
        """

        def progress(_time_s: float) -> None:
            stream.check()

        kept = 0
        error: CannotDecode | None = None
        try:
            for number in kept_frames(video, self.sampling, progress=progress):
                if not self.has_frame(file.item, number):
                    stream.put(self._frame(file, video))
                kept += 1
        except CannotDecode as reason:
            error = reason
        if not kept:
            raise error or CannotDecode(str(video.damage) or "it has no frames that can be decoded")
        said = "; ".join(filter(None, map(str, (error or "", video.damage)))) or None
        fault: Fault = "damaged" if error is None else error.fault
        return DecodedVideo(
            replace(file, error=said, fault=fault if said else None),
            video.container,
            video.codec or None,
            video.fps or None,
            video.width,
            video.height,
            video.time_s + (1 / video.fps if video.fps else 0.0),
            video.decoded_frames,
            kept,
        )

    def _frame(self, file: DecodedFile, video: Video) -> DecodedFile:
        with reserve_pixels(self.budget, video.width * video.height):
            image = decoded(video.pixels(), detail=self.detail, file_format=video.codec)
        share = min(video.time_s / video.duration_s, 1.0) if video.duration_s else 0.0
        (measured,) = self._measure([image])
        gaps = "decoded with gaps" if video.is_damaged else None
        return replace(file, gaps=gaps, **measured, frame_number=video.number, frame_time_s=video.time_s, share=share)

    def _measure(self, images: Sequence[DecodedImage]) -> list[dict[str, Any]]:
        """Return the fields of :class:`DecodedFile` that depend on pixels; each is computed for all images in turn."""
        # The embedding can be the copy descriptor, of the part within known borders; older tables have both.
        is_embedding, is_column = is_copy_descriptor(self.preparation.name), COPY_DESCRIPTOR in self.columns
        bordered = [image.bordered for image in images]
        with self._turn:
            measures = measure_images(images)
            whole, panels = self._described(bordered, whole=is_embedding or is_column)
        # Few of its calls are short, so threads need not take turns.
        has_features = LOCAL_FEATURES in self.columns
        features = [find_local_features(each.inner_grey).tobytes() if has_features else None for each in bordered]
        nothing = [None] * len(images)
        prepared = nothing if is_embedding else [self.preparation.prepare(image.pixels) for image in images]
        of_copies = [
            {COPY_DESCRIPTOR: a if is_column else None, PANEL_DESCRIPTORS: b, LOCAL_FEATURES: c}
            for a, b, c in zip(whole, panels, features, strict=True)
        ]
        names = "width", "height", "format", "shown", "pages", "measures", "prepared", "vector", "of_copies"
        identity = ((image.width, image.height, image.format, image.shown, image.pages) for image in images)
        computed = zip(measures, prepared, whole if is_embedding else nothing, of_copies, strict=True)
        return [dict(zip(names, a + b, strict=True)) for a, b in zip(identity, computed, strict=True)]

    def _described(
        self, images: Sequence[BorderedImage], *, whole: bool
    ) -> tuple[list[Vectors | None], list[Vectors | None]]:
        """Return the copy descriptors of images, and of the panels of each.

        Args:
            images: the images.
            whole: whether they are described; their panels are, where the column is written.
        """
        inputs = [prepare_whole(each)[None] if whole else None for each in images]
        inputs += [prepare_panels(each) if PANEL_DESCRIPTORS in self.columns else None for each in images]
        given = [each for each in inputs if each is not None]
        described = describe(np.concatenate(given)) if given else np.empty((0, 0), np.float32)
        parts = iter(np.split(described, np.cumsum([len(each) for each in given])))
        vectors = [None if each is None else next(parts) for each in inputs]
        return [None if each is None else each[0] for each in vectors[: len(images)]], vectors[len(images) :]


def _refused(file: DecodedFile, error: CannotDecode) -> DecodedFile:
    return replace(file, error=str(error), fault=error.fault)


def _modified_ns(content: Any, modified_s: float | None) -> int | None:
    """Return the modification time of an open file in nanoseconds since 1970; seconds would be rounded."""
    try:
        return os.fstat(content.fileno()).st_mtime_ns
    except OSError:  # in memory, as remote objects are
        return None if modified_s is None else int(modified_s * 1e9)


def stack_inputs(decoded_images: Iterable[DecodedFile]) -> npt.NDArray[Any] | None:
    """Return the stacked encoder inputs of the images that have one; None if no image has one."""
    prepared = [each.prepared for each in decoded_images if each.prepared is not None]
    return np.stack(prepared) if prepared else None
