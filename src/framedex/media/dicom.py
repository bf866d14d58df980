"""DICOM files: the first frame, by its window, read by pydicom. What a file says of a patient is not read.

Values are those after the modality transform, such as Hounsfield units, and the lowest one is white in MONOCHROME1
(DICOM PS3.3 2025, C.7.6.3.1.2, C.11.1 and C.11.2).
"""

import warnings
from dataclasses import dataclass
from io import BytesIO
from typing import Any

import numpy as np
import numpy.typing as npt

from framedex.errors import CannotDecode
from framedex.media.display_range import Range

_PREAMBLE, _MAGIC = 128, b"DICM"
_DEFLATED, _META = b"1.2.840.10008.1.2.1.99", 2048  # a transfer syntax; the bytes in which it is named
_TAGS = (
    "SOPClassUID", "SamplesPerPixel", "PhotometricInterpretation", "PlanarConfiguration", "NumberOfFrames", "Rows",
    "Columns", "BitsAllocated", "BitsStored", "HighBit", "PixelRepresentation", "PixelPaddingValue", "PixelData",
    "FloatPixelData", "DoubleFloatPixelData", "ExtendedOffsetTable", "ExtendedOffsetTableLengths",
    "RescaleSlope", "RescaleIntercept", "ModalityLUTSequence", "WindowCenter", "WindowWidth", "VOILUTFunction",
    "RedPaletteColorLookupTableDescriptor", "GreenPaletteColorLookupTableDescriptor",
    "BluePaletteColorLookupTableDescriptor", "RedPaletteColorLookupTableData", "GreenPaletteColorLookupTableData",
    "BluePaletteColorLookupTableData", "SegmentedRedPaletteColorLookupTableData",
    "SegmentedGreenPaletteColorLookupTableData", "SegmentedBluePaletteColorLookupTableData",
)  # fmt: skip
"""All that is read of a file: the description of its pixels, and nothing of a person."""


@dataclass(frozen=True)
class Description:
    """The description of the pixels in a file.

    Attributes:
        width, height: in pixels.
        frames: their number.
        dataset: of pydicom, with the fields of :data:`_TAGS`.
    """

    width: int
    height: int
    frames: int
    dataset: Any


@dataclass(frozen=True)
class DicomValues:
    """The values of the first frame.

    Attributes:
        values: after the modality transform, shape (H, W), or (H, W, 3) in the order RGB.
        bits: the number of bits of a value.
        window: the values that are black and white; None if the file names none.
        missing: the value beside the image; None if the file names none.
        is_inverted: whether the lowest value is white.
    """

    values: npt.NDArray[Any]
    bits: int
    window: Range | None
    missing: float | None
    is_inverted: bool


def is_dicom(data: bytes) -> bool:
    """Return whether a file that begins with some bytes is a DICOM file."""
    return data[_PREAMBLE : _PREAMBLE + len(_MAGIC)] == _MAGIC


def read_description(data: bytes) -> Description:
    """Return the description of the pixels in a DICOM file.

    Raises:
        CannotDecode: the file is damaged, has no image, or the extra is missing.
    """
    try:
        import pydicom
    except ImportError:
        raise CannotDecode("DICOM needs the extra: pip install 'framedex[dicom]'", "not_supported") from None
    if _DEFLATED in data[:_META]:  # its size is known only when it is unpacked
        raise CannotDecode("DICOM files that are packed as a whole (Deflate) are not supported", "not_supported")
    pydicom.config.settings.reading_validation_mode = pydicom.config.IGNORE
    warnings.filterwarnings("ignore", category=UserWarning, module=r"(pydicom\.|framedex\.media\.dicom)")
    try:
        dataset = pydicom.dcmread(BytesIO(data), specific_tags=list(_TAGS))
        size = int(dataset.get("Columns") or 0), int(dataset.get("Rows") or 0)
        frames = max(1, int(dataset.get("NumberOfFrames") or 1))
        has_pixels = bool({"PixelData", "FloatPixelData", "DoubleFloatPixelData"} & set(dataset.dir()))
    except Exception as error:  # of every kind
        raise CannotDecode(f"{type(error).__name__}: {error}") from None
    if size == (0, 0):
        raise CannotDecode("it is a DICOM file without an image", "not_supported")
    if not has_pixels:
        raise CannotDecode("its pixels are missing")
    return Description(*size, frames, dataset)


def decode_frame(description: Description) -> DicomValues:
    """Return the values of the first frame.

    Raises:
        CannotDecode: they are damaged, or coded in a way that is not read.
    """
    from pydicom.pixels import processing, utils

    dataset = description.dataset
    try:
        values = utils.pixel_array(dataset, index=0)
        bits = int(dataset.get("BitsStored") or 8 * values.dtype.itemsize)
        photometric = str(dataset.PhotometricInterpretation)
        if photometric == "PALETTE COLOR":
            values = processing.apply_color_lut(values, dataset)
            bits = 8 * values.dtype.itemsize
        elif values.ndim == 2 and _is_transformed(dataset):
            values = np.asarray(processing.apply_modality_lut(values, dataset), np.float64)
        return DicomValues(values, bits, _window(dataset), _missing(dataset), photometric == "MONOCHROME1")
    except (RuntimeError, NotImplementedError) as error:  # no decoder for a transfer syntax
        raise CannotDecode(" ".join(str(error).split()), "not_supported") from None
    except Exception as error:  # of every kind
        raise CannotDecode(f"{type(error).__name__}: {error}") from None


def _is_transformed(dataset: Any) -> bool:
    transform = float(dataset.get("RescaleSlope") or 1), float(dataset.get("RescaleIntercept") or 0)
    return transform != (1.0, 0.0) or "ModalityLUTSequence" in dataset


def _missing(dataset: Any) -> float | None:
    """Return the value that fills the frame beside the image, after the modality transform."""
    value = dataset.get("PixelPaddingValue")
    if not isinstance(value, int) or "ModalityLUTSequence" in dataset:
        return None
    return value * float(dataset.get("RescaleSlope") or 1) + float(dataset.get("RescaleIntercept") or 0)


def _window(dataset: Any) -> Range | None:
    """Return the first window of a file; of a sigmoid its linear part."""
    centre, width = (_first(dataset.get(name)) for name in ("WindowCenter", "WindowWidth"))
    if centre is None or width is None:
        return None
    if str(dataset.get("VOILUTFunction") or "LINEAR") == "LINEAR":
        centre, width = centre - 0.5, width - 1
    return (centre - width / 2, centre + width / 2) if width > 0 else None


def _first(value: Any) -> float | None:
    """Return the first of one or several numbers; None for none."""
    if value is None or value == "":
        return None
    numbers = np.atleast_1d(np.asarray(value, dtype=np.float64))
    return float(numbers[0]) if len(numbers) and np.isfinite(numbers[0]) else None
