"""What one look at a file gives: a picture's measures and the encoder's input, or those of the frames of a video."""

import hashlib
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from framedex.analysis.quality import measure
from framedex.encoders import Encoder, decode_side_px
from framedex.errors import CannotDecode
from framedex.jobs.ingest.read_ahead import Stream
from framedex.media.decode import Picture, PixelBudget, decode, decoded, reserve_pixels
from framedex.media.files import Reader, locate
from framedex.media.frame_sampling import Sampling, kept_frames
from framedex.media.sources import Item, Source
from framedex.media.video import Video
from framedex.settings import Settings
from framedex.suffixes import is_video

_PART = 2**20


@dataclass(frozen=True)
class DecodedImage:
    """What one look at a picture, or at a frame of a video, gives.

    Attributes:
        item: the file.
        size_bytes, modified_ns, digest: its size, its time and the hash of its content; None where it cannot be read.
        width, height, format: of the picture; its pixels are not kept. None where it cannot be decoded.
        measures: quality measures.
        prepared: the encoder's input.
        error: why it cannot be decoded.
        frame_number, frame_time_s: of a frame; None of a picture.
        share: how much of the file is decoded then, 0 to 1.
    """

    item: Item
    size_bytes: int | None = None
    modified_ns: int | None = None
    digest: bytes | None = None
    width: int | None = None
    height: int | None = None
    format: str | None = None
    measures: dict[str, float | None] | None = None
    prepared: npt.NDArray[Any] | None = None
    error: str | None = None
    frame_number: int | None = None
    frame_time_s: float | None = None
    share: float = 1.0


@dataclass(frozen=True)
class DecodedVideo:
    """What is known of a video once it was decoded; it comes behind its frames.

    Attributes:
        file: of the video: its item, size, time and hash, and the reason for which it gave no or too few frames.
        container, codec, fps, width, height: of the video; None where they are not known.
        duration_s: to the end of the last frame, in seconds.
        frames, kept_frames: how many were decoded and kept.
    """

    file: DecodedImage
    container: str | None = None
    codec: str | None = None
    fps: float | None = None
    width: int | None = None
    height: int | None = None
    duration_s: float | None = None
    frames: int = 0
    kept_frames: int = 0


Seen = DecodedImage | DecodedVideo
HasFrame = Callable[[Item, int], bool]
"""Whether the frame of a number is in the table already."""


def location_of(source: Source, item: Item) -> str:
    """Return where the bytes of a source's item are: an absolute path, or an object's URI."""
    return item.location or locate((source.root, *source.other_roots)[item.part], item.path)


def is_video_item(item: Item) -> bool:
    """Return whether an item is a video, by its name."""
    return is_video(item.path)


class FileDecoder:
    """Looks at files; used by several threads at once.

    Args:
        source: names the files.
        encoder: prepares them for encoding.
        settings: limits.
        sampling: which frames of videos are kept.
        has_frame: whether a frame is there already; it is then left out.
    """

    def __init__(
        self, source: Source, encoder: Encoder, settings: Settings, sampling: Sampling, has_frame: HasFrame
    ) -> None:
        self.source, self.encoder, self.settings = source, encoder, settings
        self.sampling, self.has_frame = sampling, has_frame
        self.reader = Reader(settings, source.role_arn)
        self.budget = PixelBudget(settings.pixels_in_flight)
        self.detail = decode_side_px(encoder)

    def examine_all(self, items: Iterable[Item]) -> list[Seen]:
        """Look at pictures."""
        return [self.examine(item) for item in items]

    def examine(self, item: Item) -> DecodedImage:
        """Read, decode, measure and prepare one picture; all that is large is let go before returning."""
        try:
            modified_ns, data = self.reader.read(location_of(self.source, item))
        except CannotDecode as error:
            return DecodedImage(item, error=str(error))
        found: dict[str, Any] = {
            "size_bytes": len(data),
            "modified_ns": modified_ns if item.modified_ns is None else item.modified_ns,
            "digest": hashlib.blake2b(data, digest_size=16).digest(),
        }
        try:
            picture = decode(data, max_pixels=self.settings.max_pixels, detail=self.detail, budget=self.budget)
        except CannotDecode as error:
            return DecodedImage(item, **found, error=str(error))
        return DecodedImage(item, **found, **self._look(picture))

    def examine_video(self, item: Item, stream: Stream[Seen]) -> None:
        """Hand over what is kept of a video, frame by frame, and then what is known of it as a whole."""
        file = DecodedImage(item)
        try:
            with self.reader.open(location_of(self.source, item)) as (modified_s, content):
                file = self._identified(item, modified_s, content, stream)
                with Video(content, max_pixels=self.settings.max_pixels, threads=self.settings.threads) as video:
                    stream.put(self._frames(file, video, stream))
        except CannotDecode as error:
            stream.put(DecodedVideo(replace(file, error=str(error))))

    def _identified(self, item: Item, modified_s: float | None, content: Any, stream: Stream[Seen]) -> DecodedImage:
        digest, size = hashlib.blake2b(digest_size=16), 0
        modified_ns = _modified_ns(content, modified_s) if item.modified_ns is None else item.modified_ns
        try:
            while part := content.read(_PART):
                digest.update(part)
                size += len(part)
                stream.check()
        except OSError as error:
            raise CannotDecode(f"cannot be read: {error.strerror or error}") from None
        return DecodedImage(item, size, modified_ns, digest.digest())

    def _frames(self, file: DecodedImage, video: Video, stream: Stream[Seen]) -> DecodedVideo:
        """Hand over the kept frames of a video; return what is known of it then.

        Raises:
            CannotDecode: it has no frames that can be decoded.
        """

        def progress(_time_s: float) -> None:
            stream.check()

        kept, error = 0, None
        try:
            for number in kept_frames(video, self.sampling, progress=progress):
                if not self.has_frame(file.item, number):
                    stream.put(self._frame(file, video))
                kept += 1
        except CannotDecode as reason:
            error = str(reason)
        error = error or video.reason_short()
        if not kept:
            raise CannotDecode(error or "it has no frames")
        return DecodedVideo(
            replace(file, error=error),
            video.container,
            video.codec or None,
            video.fps or None,
            video.width,
            video.height,
            video.time_s + (1 / video.fps if video.fps else 0.0),
            video.number + 1,
            kept,
        )

    def _frame(self, file: DecodedImage, video: Video) -> DecodedImage:
        with reserve_pixels(self.budget, video.width * video.height):
            picture = decoded(video.pixels(), detail=self.detail, file_format=video.codec)
        share = min(video.time_s / video.duration_s, 1.0) if video.duration_s else 0.0
        seen = self._look(picture)
        return replace(file, **seen, frame_number=video.number, frame_time_s=video.time_s, share=share)

    def _look(self, picture: Picture) -> dict[str, Any]:
        return {
            "width": picture.width,
            "height": picture.height,
            "format": picture.format,
            "measures": measure(
                picture.pixels,
                width=picture.width,
                height=picture.height,
                sample=picture.sample,
                bands=picture.bands,
            ),
            "prepared": self.encoder.prepare(picture.pixels),
        }


def _modified_ns(content: Any, modified_s: float | None) -> int | None:
    """Return the time of the last change of an open file, in nanoseconds since 1970: seconds would be rounded."""
    try:
        return os.fstat(content.fileno()).st_mtime_ns
    except OSError:  # held in memory, as objects are
        return None if modified_s is None else int(modified_s * 1e9)


def stack_inputs(examined: Iterable[DecodedImage]) -> npt.NDArray[Any] | None:
    """Return the encoder's inputs of those that have one; None if none has."""
    prepared = [each.prepared for each in examined if each.prepared is not None]
    return np.stack(prepared) if prepared else None
