"""TIFF files that Pillow does not read, by OpenCV: one band of any type, three bands of more than 8 bits or floats."""

from dataclasses import dataclass
from io import BytesIO
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from framedex.errors import CannotDecode
from framedex.media.file_ends import check_strips

SIGNATURES = (b"II*\0", b"MM\0*")
_WIDTH, _HEIGHT, _BITS, _COMPRESSION, _BANDS, _KIND = 256, 257, 258, 259, 277, 339
_KINDS = {1: "unsigned", 2: "signed", 3: "float", 5: "complex", 6: "complex"}
_ORIENTATION = 274


@dataclass(frozen=True)
class Directory:
    """The description of the first image of a file.

    Attributes:
        width, height: stored size in pixels.
        orientation: as in Exif, 1 to 8.
        words: the kind of its values, for messages.
    """

    width: int
    height: int
    orientation: int
    words: str

    @property
    def displayed_size(self) -> tuple[int, int]:
        """The displayed size (width, height), after orientation."""
        return (self.height, self.width) if self.orientation >= 5 else (self.width, self.height)


def read_directory(data: bytes) -> Directory:
    """Return the description of the image in a TIFF file.

    Raises:
        CannotDecode: the file is damaged, or a part is missing.
    """
    from PIL import TiffImagePlugin

    try:
        tags = TiffImagePlugin.ImageFileDirectory_v2(data[:8])
        file = BytesIO(data)
        file.seek(tags.next)
        tags.load(file)
        width, height = int(tags[_WIDTH]), int(tags[_HEIGHT])
        bits, kinds = _values(tags.get(_BITS, 1)), _values(tags.get(_KIND, 1))
        bands, compression = int(tags.get(_BANDS, 1)), int(tags.get(_COMPRESSION, 1))
        orientation = int(tags.get(_ORIENTATION, 1))
        check_strips(tags, data)
    except CannotDecode:
        raise
    except Exception as error:  # values of every kind
        raise CannotDecode(f"its directory is damaged ({type(error).__name__}: {error})") from None
    kind = _KINDS.get(kinds[0], f"kind {kinds[0]}")
    words = f"{bands} band{'s' * (bands > 1)} of {bits[0]} bits ({kind}), compression {compression}"
    return Directory(width, height, orientation, words)


def _values(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


def decode_values(data: bytes, directory: Directory) -> npt.NDArray[Any]:
    """Return the values of the first image as stored: shape (H, W), or (H, W, 3) in the order RGB.

    Raises:
        CannotDecode: OpenCV does not read them either.
    """
    try:
        values = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_UNCHANGED)
    except cv2.error:
        values = None
    if values is None or values.shape[:2] != (directory.height, directory.width):
        raise CannotDecode(f"TIFF files with {directory.words}, are not supported", "not_supported")
    if values.ndim == 3:
        if values.shape[2] not in (1, 3):
            raise CannotDecode(f"TIFF files with {directory.words}, are not supported", "not_supported")
        values = values[..., ::-1] if values.shape[2] == 3 else values[..., 0]
    return np.asarray(values)
