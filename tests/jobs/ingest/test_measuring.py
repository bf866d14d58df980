"""Quality measures of decoded images: crops are measured as images are."""

from pathlib import Path

import cv2
import numpy as np
import pytest

from framedex import Workspace
from framedex.issue_types import find_valued_type, measure_columns
from framedex.jobs.ingest.measuring import measure_image
from framedex.media.decode import decode
from framedex.media.decoded_image import DecodedImage
from framedex.media.row_images import crop_image
from tests.image_files import Pixels, encode, photo, write
from tests.inside import stored_media
from tests.objects import rows_of, write_table

SIDE = 500


def grainy(seed: int) -> Pixels:
    """Return an image that looks blurred where it is reduced, and has fine detail in the closer look."""
    soft = cv2.GaussianBlur(photo(seed, width=SIDE, height=SIDE), (0, 0), 12)
    detail = np.random.default_rng(0).normal(0, 3, (SIDE, SIDE, 1))
    return np.asarray(np.clip(soft + detail, 0, 255), np.uint8)


PICTURES = [photo(3), photo(3, width=900, height=500), grainy(1)]


def decoded(pixels: Pixels, detail: int | None = None) -> DecodedImage:
    """Return the decoded file of an image."""
    return decode(encode(pixels), max_pixels=10**7, detail=detail)


@pytest.mark.slow
@pytest.mark.only_soak
@pytest.mark.parametrize("pixels", PICTURES)
def test_measure_image__at_full_size(pixels: Pixels) -> None:
    """An image at full size has the measures of the same file decoded at reduced size."""
    assert measure_image(decoded(pixels)) == measure_image(decoded(pixels, 128))


@pytest.mark.slow
def test_measure_image__of_a_crop() -> None:
    """A crop has the measures of an image of the same pixels; a blurred look is checked in the larger crop."""
    whole = decoded(np.hstack([photo(2, width=300, height=SIDE), grainy(1)]))
    measures = measure_image(crop_image(whole, 300, 0, SIDE, SIDE))
    assert measures == measure_image(decoded(grainy(1)))
    limit = find_valued_type("blur").threshold
    acutance = measures["acutance"]
    assert limit is not None
    assert isinstance(acutance, float)
    assert acutance > limit


def test_measure_image__of_a_crop_of_a_damaged_image() -> None:
    """Gaps of the image may be outside of the crop, which is not damaged."""
    data = encode(photo(1, width=300, height=200), "JPEG", quality=95)
    middle = len(data) // 2
    image = decode(data[:middle] + b"\xff\x00\x12\xff" + data[middle + 9 :], max_pixels=10**7)
    assert image.damage
    assert measure_image(image)["damage"] == 1
    assert measure_image(crop_image(image, 0, 0, 100, 50))["damage"] == 0


@pytest.mark.slow
def test_create__a_box_of_the_whole_image(workspace: Workspace, tmp_path: Path) -> None:
    """The object of a box around the whole image has the measures of the image."""
    folder = tmp_path / "images"
    write(folder / "a.png", grainy(1))
    write_table(folder / "object_annotations.csv", [("a.png", (0, 0, SIDE, SIDE), "cell")])
    dataset = workspace.create_dataset("d", folder, "gist")
    images = stored_media(dataset).table.scan(measure_columns()).read_all().to_pylist()
    assert rows_of(dataset, measure_columns()) == images
