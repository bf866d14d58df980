"""The ends of JPEG files: whether the data of all rows is there, and how many rows are.

A copy that was interrupted, a download into a file of the final size, or a failing memory card leaves a file that ends
early, often filled with zeros. Coded data has no checksum, and a decoder takes zeros for coefficients.
"""

import re
from collections.abc import Iterator

import numpy as np
import simplejpeg

from framedex.core.arrays import Pixels
from framedex.media.jpeg import Header, without_application_data

END_OF_IMAGE = b"\xff\xd9"
MIN_ZEROS, SPARED = 16, 2
"""The least number of zeros at the end of coded data that may be filling, and how many are left out to see if it is."""
_MARKER = re.compile(rb"\xff[^\x00\xd0-\xd7\xff]")  # in coded data
_SCAN = 0xDA
_COEFFICIENTS = 64
_OTHER_DATA = bytes(range(1, 255)) * 8


def trailing_zeros(data: bytes) -> int:
    """Return the number of zeros at the end of some data."""
    return len(data) - len(data.rstrip(b"\0"))


def warning_of(data: bytes, header: Header) -> str | None:
    """Return the first warning of libjpeg about the coded data of a JPEG; None if it is in order.

    The end marker may be missing. Warnings about the header alone do not count.
    """
    try:
        _decode(data, header, strict=True)
    except ValueError as error:
        return None if str(error).startswith("Invalid SOS parameters") else str(error)
    return None


def ends_early(data: bytes, header: Header) -> bool:
    """Return whether a JPEG without an end marker lacks coded data, or has zeros in its place.

    Zeros at the end are data if the image needs all of them, as that of a uniform image may.
    """
    if warning_of(data, header) is not None or _lacks_scans(data, header):
        return True
    return trailing_zeros(data) >= MIN_ZEROS and warning_of(data[:-SPARED], header) is None


def how_early(data: bytes, header: Header) -> str:
    """Return in words how much of the image is there in a JPEG that ends early."""
    coded = data.rstrip(b"\0") if trailing_zeros(data) >= MIN_ZEROS else data
    scans = sum(marker == _SCAN for marker, _ in _markers(coded, header.end))
    if scans > 1:
        return f"it ends early, in scan {scans}: 100 % of the rows are there, with less detail"
    return f"it ends early: {100 * _share(coded, header):.0f} % of the image is there"


def _share(coded: bytes, header: Header) -> float:
    """Return the share of the rows that do not depend on what follows the coded data, 0 to 1."""
    try:
        end, other = (_decode(coded + each, header) for each in (b"", _OTHER_DATA))
    except ValueError:
        return 0.0
    differ = np.flatnonzero((end != other).reshape(len(end), -1).any(axis=1))
    return 1.0 if not len(differ) else float(differ[0] / len(end))


def _decode(data: bytes, header: Header, *, strict: bool = False) -> Pixels:
    """Return the pixels at the lowest resolution, which has a row for each row of blocks.

    libjpeg warns of unknown versions and colours in application data, which coded data does not need.
    """
    data = without_application_data(data, header) + END_OF_IMAGE
    bands = "CMYK" if header.components == 4 else "GRAY"
    return np.asarray(simplejpeg.decode_jpeg(data, bands, min_height=1, min_width=1, strict=strict), dtype=np.uint8)


def _markers(data: bytes, at: int) -> Iterator[tuple[int, bytes]]:
    """Yield the marker and the content of each segment from a position on; the content that is there of the last."""
    while (match := _MARKER.search(data, at)) is not None:
        start = match.start()
        size = int.from_bytes(data[start + 2 : start + 4], "big")
        yield data[start + 1], data[start + 4 : start + 2 + size]
        at = start + 2 + size


def _lacks_scans(data: bytes, header: Header) -> bool:
    """Return whether a coefficient of a component was not sent, or not in full precision."""
    precise: dict[int, set[int]] = {}
    for marker, content in _markers(data, header.end):
        if marker != _SCAN:
            continue
        count = content[0] if content else 0
        if len(content) < 4 + 2 * count:
            return True
        first, last, precision = content[1 + 2 * count : 4 + 2 * count]
        if not header.progressive:
            first, last, precision = 0, _COEFFICIENTS - 1, 0
        if precision & 15 == 0:
            for component in content[1 : 1 + 2 * count : 2]:
                precise.setdefault(component, set()).update(range(first, last + 1))
    return len(precise) < header.components or any(len(each) < _COEFFICIENTS for each in precise.values())
