"""Small JPEGs of pictures."""

import cv2
import numpy as np

from framedex.arrays import Pixels

SIZE = 256


def thumbnail(pixels: Pixels, *, size: int = SIZE, quality: int = 80) -> bytes:
    """Return a JPEG whose longer side has at most *size* pixels.

    Args:
        pixels: uint8, shape (H, W, 3), RGB.
        size: pixels of the longer side; smaller pictures are not enlarged.
        quality: JPEG quality, 0 to 100.
    """
    height, width = pixels.shape[:2]
    scale = min(1.0, size / max(height, width))
    if scale < 1:
        target = (max(1, round(width * scale)), max(1, round(height * scale)))
        pixels = cv2.resize(pixels, target, interpolation=cv2.INTER_AREA).astype(np.uint8, copy=False)
    ok, encoded = cv2.imencode(".jpg", cv2.cvtColor(pixels, cv2.COLOR_RGB2BGR), [cv2.IMWRITE_JPEG_QUALITY, quality])
    assert ok, "JPEG encoding of an RGB array cannot fail"
    return encoded.tobytes()
