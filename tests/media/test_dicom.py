"""DICOM files are shown by their window, as pydicom computes it, and nothing of a patient is read."""

import io
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from framedex.errors import CannotDecode
from framedex.media.decode import decode, read_size
from framedex.media.decoded_image import DecodedImage
from tests.extras import need

need("dicom", "pydicom")
import pydicom  # noqa: E402 - after the check that it is installed
from pydicom.pixels import processing  # noqa: E402

Values = npt.NDArray[Any]
MAX_PIXELS = 10**6


def written(values: Values, photometric: str = "MONOCHROME2", bits: int = 12, **tags: Any) -> bytes:
    """Return a DICOM file of frames: shape (H, W), (frames, H, W) or (H, W, 3)."""
    file = pydicom.dataset.Dataset()
    file.PatientName, file.PatientID, file.PatientBirthDate = "Doe^Jane", "123", "19700101"
    file.SOPClassUID, file.SOPInstanceUID = pydicom.uid.CTImageStorage, pydicom.uid.generate_uid()
    file.file_meta = pydicom.dataset.FileMetaDataset()
    file.file_meta.TransferSyntaxUID = pydicom.uid.ExplicitVRLittleEndian
    file.file_meta.MediaStorageSOPClassUID = file.SOPClassUID
    file.file_meta.MediaStorageSOPInstanceUID = file.SOPInstanceUID
    is_colour, size = photometric == "RGB", values.dtype.itemsize
    if values.ndim == 3 and not is_colour:
        file.NumberOfFrames = len(values)
    file.Rows, file.Columns = values.shape[:2] if is_colour else values.shape[-2:]
    file.SamplesPerPixel, file.PhotometricInterpretation = (3 if is_colour else 1), photometric
    if is_colour:
        file.PlanarConfiguration = 0
    file.BitsAllocated, file.BitsStored, file.HighBit = 8 * size, bits, bits - 1
    file.PixelRepresentation = int(values.dtype.kind == "i")
    file.PixelData = values.tobytes() + bytes(values.nbytes % 2)
    file["PixelData"].VR = "OW" if size > 1 else "OB"
    for name, value in tags.items():
        setattr(file, name, value)
    out = io.BytesIO()
    file.save_as(out, enforce_file_format=True)
    return out.getvalue()


def shown(data: bytes, **options: Any) -> DecodedImage:
    """Return the decoded image."""
    return decode(data, max_pixels=MAX_PIXELS, **options)


RAMP = np.arange(30 * 40, dtype=np.int16).reshape(30, 40)


@pytest.mark.parametrize("photometric", ["MONOCHROME1", "MONOCHROME2"])
@pytest.mark.parametrize("function", [None, "LINEAR", "LINEAR_EXACT"])
def test_dicom__window(photometric: str, function: str | None) -> None:
    """Values are rescaled, then shown by the first window; the lowest is white in MONOCHROME1."""
    tags = {"RescaleSlope": 2, "RescaleIntercept": -1024, "WindowCenter": [40, 50], "WindowWidth": [400, 99]}
    tags |= {} if function is None else {"VOILUTFunction": function}
    data = written(RAMP, photometric, 16, **tags)
    file = pydicom.dcmread(io.BytesIO(data))
    values = processing.apply_windowing(processing.apply_modality_lut(file.pixel_array, file), file)
    levels = (values - values.min()) / (values.max() - values.min()) * 255
    image = shown(data)
    found = image.pixels[..., 0].astype(float)
    assert np.abs((255 - found if photometric == "MONOCHROME1" else found) - levels).max() <= 0.51
    assert image.shown == ((-160.0, 240.0) if function == "LINEAR_EXACT" else (-160.0, 239.0))
    assert (image.format, image.bands, read_size(data, max_pixels=MAX_PIXELS)) == ("dicom", 1, (40, 30))


def test_dicom__without_a_window() -> None:
    """Without a window the rule of all values holds, and the padding beside the image is no part of it."""
    values = RAMP.copy()
    values[:10] = -2000
    image = shown(written(values, bits=16, PixelPaddingValue=-2000, RescaleSlope=1, RescaleIntercept=-1024))
    assert image.shown == pytest.approx(tuple(np.percentile(RAMP[10:] - 1024.0, (2, 98))))
    assert image.pixels[:10].max() == 0
    assert shown(written(values, bits=16), display_range=(0.0, 5.0)).shown == (0.0, 5.0)
    eight = np.arange(200, dtype=np.uint8).reshape(10, 20)
    np.testing.assert_array_equal(shown(written(eight, bits=8)).pixels[..., 1], eight)


def test_dicom__colours_and_frames() -> None:
    """Colours are shown as they are; of several frames the first is, and they are counted."""
    colours = np.random.default_rng(1).integers(0, 256, (30, 40, 3)).astype(np.uint8)
    np.testing.assert_array_equal(shown(written(colours, "RGB", 8)).pixels, colours)
    frames = np.stack([colours[..., 0], colours[..., 1]])
    several = shown(written(frames, bits=8))
    np.testing.assert_array_equal(several.pixels[..., 2], colours[..., 0])
    assert several.pages == 2


def test_dicom__says_nothing_of_a_patient() -> None:
    """Fields of the patient are not read."""
    from framedex.media import dicom

    assert not {"PatientName", "PatientID", "PatientBirthDate"} & set(
        dicom.read_description(written(RAMP)).dataset.dir()
    )


@pytest.mark.parametrize(
    ("data", "fault", "words"),
    [
        (written(RAMP)[:-500], "damaged", "pixel data"),
        (written(np.zeros((2000, 2000), np.uint8), bits=8), "over_limit", "FRAMEDEX_MAX_PIXELS"),
        (bytes(128) + b"DICM", "not_supported", "without an image"),
        (written(RAMP).replace(b"1.2.840.10008.1.2.1\0", b"1.2.840.10008.1.2.1.99"), "not_supported", "Deflate"),
        (written(RAMP).replace(b"1.2.840.10008.1.2.1\0", b"1.2.840.10008.1.2.9\0"), "not_supported", ""),
    ],
    ids=["cut off", "large", "nothing", "packed", "unknown"],
)
def test_dicom__that_is_not_shown(data: bytes, fault: str, words: str) -> None:
    """What is not shown has a reason."""
    with pytest.raises(CannotDecode, match=f"(?i){words}") as caught:
        shown(data)
    assert caught.value.fault == fault
