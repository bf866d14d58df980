"""Local features: images that show the same share them, other images do not."""

from collections.abc import Callable

import cv2
import numpy as np
import numpy.typing as npt
import pytest

from framedex.analysis.local_features import (
    AGREEING,
    BITS,
    LOCAL_FEATURE,
    MOST,
    SIDE,
    agreeing_features,
    find_local_features,
)
from tests.image_files import detailed

Grey = npt.NDArray[np.uint8]


def scene(seed: int) -> Grey:
    """Return a greyscale photo: uint8, shape (240, 320)."""
    return np.asarray(cv2.cvtColor(detailed(seed), cv2.COLOR_RGB2GRAY), np.uint8)


def turned(grey: Grey, degrees: float) -> Grey:
    """Return an image turned about its centre, over its own edges."""
    height, width = grey.shape
    matrix = cv2.getRotationMatrix2D((width / 2, height / 2), degrees, 1.0)
    return np.asarray(cv2.warpAffine(grey, matrix, (width, height), borderMode=cv2.BORDER_REFLECT), np.uint8)


EDITS: dict[str, Callable[[Grey], Grey]] = {
    "as it is": lambda grey: grey,
    "mirrored": lambda grey: grey[:, ::-1],
    "upside down": lambda grey: grey[::-1],
    "quarter turn": np.rot90,
    "turned by 20°": lambda grey: turned(grey, 20),
    "mirrored and turned by 200°": lambda grey: turned(grey[:, ::-1], 200),
    "half size": lambda grey: np.asarray(cv2.resize(grey, (160, 120), interpolation=cv2.INTER_AREA), np.uint8),
    "cropped to half": lambda grey: grey[30:200, 40:266],
    "beside another one": lambda grey: np.hstack([grey, scene(99)]),
    "darker": lambda grey: (grey * 0.5).astype(np.uint8),
}


@pytest.mark.parametrize("name", EDITS)
def test_agreeing__with_an_edit(name: str) -> None:
    """Edits of an image agree with it, in either order."""
    edited = np.ascontiguousarray(EDITS[name](scene(1)))
    a, b = find_local_features(scene(1)), find_local_features(edited)
    assert agreeing_features(a, b) >= AGREEING
    assert agreeing_features(b, a) >= AGREEING


def test_agreeing__with_other_images() -> None:
    """Different images do not agree."""
    found = [find_local_features(scene(seed)) for seed in range(12)]
    agreeing = [agreeing_features(found[i], found[j]) for i in range(12) for j in range(i)]
    assert sum(each >= AGREEING for each in agreeing) <= 1


def test_agreeing__but_moved() -> None:
    """Equal codes at unlike places do not agree: parts that lie elsewhere are no placement of the image."""
    found = find_local_features(scene(1))
    moved = found.copy()
    moved["x"], moved["y"] = np.random.default_rng(0).integers(0, 190, (2, len(found)))
    assert agreeing_features(found, found) == len(found)
    assert agreeing_features(found, moved) < len(found) / 4


def test_find__fields() -> None:
    """Fields lie within their ranges, and features are spread over the image."""
    found = find_local_features(scene(3))
    assert found.dtype == LOCAL_FEATURE
    assert 50 < len(found) <= MOST
    assert found["x"].max() < SIDE
    assert found["y"].max() < SIDE * 240 / 320
    assert (found["code"] >> np.uint64(BITS) == 0).all()
    quarters = set(zip((found["x"] > SIDE / 2).tolist(), (found["y"] > SIDE * 3 / 8).tolist(), strict=True))
    assert len(quarters) == 4
    assert found["code"].std() > 0


def test_find__in_part_of_the_image() -> None:
    """A busy part does not take all features, so that the rest of the image keeps some."""
    grey = scene(4)
    grey[:100, :100] = np.random.default_rng(0).integers(0, 2, (100, 100), np.uint8) * 255
    found = find_local_features(grey)
    is_busy = (found["x"] < 60) & (found["y"] < 60)
    assert is_busy.mean() < 0.5


@pytest.mark.parametrize("grey", [np.zeros((1, 1), np.uint8), np.zeros((300, 400), np.uint8), scene(0)[:20]])
def test_find__nothing(grey: Grey) -> None:
    """Images that are too small or show nothing have no features, and agree with none."""
    found = find_local_features(grey)
    assert found.shape == (0,)
    assert agreeing_features(found, find_local_features(scene(0))) == 0


def test_find__does_not_depend_on_memory() -> None:
    """A view of a larger array has the features of its copy."""
    grey = scene(5)
    part = grey[20:, 20:]
    assert find_local_features(part).tobytes() == find_local_features(np.ascontiguousarray(part)).tobytes()
