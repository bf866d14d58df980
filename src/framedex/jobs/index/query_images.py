"""An image from outside a dataset, in the place of a source of images that are compared."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from framedex.analysis.registration import SIDE
from framedex.core.arrays import Mask, Pixels
from framedex.core.progress import ShareProgress
from framedex.executors import Executor
from framedex.jobs.index.compared_images import Keys, ReducedImage, keypoints_of
from framedex.jobs.index.keypoint_cache import KeypointCache, key_of

Rows = npt.NDArray[np.int64]
_NO_FOLDER = Path("/dev/null/keypoints")  # its keypoints are kept in memory


@dataclass(frozen=True)
class QuerySource:
    """An image that is no row of a dataset.

    Attributes:
        pixels: uint8, shape (H, W, 3), RGB, at least at the size at which images are compared.
        size: width and height of the whole image.
        content: the hash of its file, or of its pixels where it is no file.
        frame: the number of the frame, for a frame of a video file.
        is_damaged: whether a part of it could not be decoded.
        first: its number among the rows of all sources.
    """

    pixels: Pixels
    size: tuple[int, int]
    content: bytes
    frame: int | None = None
    is_damaged: bool = False
    first: int = 0

    @contextmanager
    def opened(self) -> Iterator["QueryImages"]:
        """Yield the image as one that is compared."""
        yield QueryImages(self)


class QueryImages:
    """The image of a source of one image; see :class:`framedex.jobs.index.compared_images.ComparedImages`.

    Args:
        source: the image.

    Attributes:
        first: its number.
        end: the number behind it.
        cache: its keypoints.
        unread: no numbers, as the image was read.
    """

    def __init__(self, source: QuerySource) -> None:
        self._source, self.first, self.end = source, source.first, source.first + 1
        self.cache, self.unread = KeypointCache(_NO_FOLDER), set[int]()

    def read_keypoints(self, rows: Rows, is_mirrored: Mask, _executor: Executor, _progress: ShareProgress) -> Keys:
        """Return the keys of the keypoints of the image, and of its mirror image where that is asked for."""
        keys: Keys = {}
        for row, flag in zip(rows.tolist(), is_mirrored.tolist(), strict=True):
            for each in (False, True)[: 1 + int(flag)]:
                keys[row, each] = key_of(self._source.content, self._source.frame, mirrored=each)
        missing = {key: place for place, key in keys.items() if key not in self.cache}
        self.cache.put({key: keypoints_of(self._source.pixels, is_mirrored=flag) for key, (_, flag) in missing.items()})
        return keys

    def read_reduced(self, rows: Rows, _executor: Executor, side: int = SIDE) -> dict[int, ReducedImage]:
        """Return the image at a reduced size, by number."""
        source = self._source
        image = ReducedImage.of(source.pixels, source.size, is_damaged=source.is_damaged, side=side)
        return dict.fromkeys(rows.tolist(), image)

    def contents(self, rows: Rows) -> dict[int, bytes]:
        """Return a key of the content, by number."""
        return dict.fromkeys(rows.tolist(), key_of(self._source.content, self._source.frame, mirrored=False))
