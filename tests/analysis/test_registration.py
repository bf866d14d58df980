"""Registration of two images: what counts as the same, as covered and as different."""

from collections.abc import Callable

import cv2
import numpy as np
import numpy.typing as npt
import pytest

from framedex.analysis.registration import Difference, Judgement, Shades, least_difference, quarters_of, stretched
from tests.image_files import detailed

Grey = npt.NDArray[np.uint8]
Pixels = npt.NDArray[np.uint8]
Edit = Callable[[Grey], Grey]


def scene(seed: int = 0) -> Grey:
    """Return a greyscale photo: uint8, shape (240, 320)."""
    return np.asarray(cv2.cvtColor(detailed(seed), cv2.COLOR_RGB2GRAY), np.uint8)


def page(seed: int) -> Grey:
    """Return a page of words: bars of random lengths on the same grid of lines."""
    random = np.random.default_rng(seed)
    grey = np.full((560, 400), 255, np.uint8)
    for top in range(30, 530, 14):
        left = 30
        while left < 340:
            wide = int(random.integers(8, 50))
            grey[top : top + 7, left : min(left + wide, 370)] = 40
            left += wide + 6
    return grey


def shadow(seed: int = 0) -> Grey:
    """Return a picture of soft shapes, as an X-ray shows."""
    random = np.random.default_rng(seed)
    coarse = random.integers(60, 190, (7, 7)).astype(np.uint8)
    soft: Grey = np.asarray(cv2.resize(coarse, (320, 320), interpolation=cv2.INTER_CUBIC), np.uint8)
    return soft


def compared(a: Grey, b: Grey, quarters: int = 0) -> Difference:
    """Return the difference of two images that are laid over each other as a whole."""
    whole = stretched((0, 0, *a.shape), (0, 0, *b.shape), quarters)
    found = least_difference(Shades(a, a), Shades(b, b), [whole])
    assert found is not None
    return found


def saved(quality: int) -> Edit:
    """Return the edit that compresses an image as JPEG."""

    def edit(grey: Grey) -> Grey:
        _, content = cv2.imencode(".jpg", grey, [cv2.IMWRITE_JPEG_QUALITY, quality])
        return np.asarray(cv2.imdecode(content, cv2.IMREAD_GRAYSCALE), np.uint8)

    return edit


def noisy(grey: Grey) -> Grey:
    noise = np.random.default_rng(1).normal(0, 10, grey.shape)
    return np.clip(grey + noise, 0, 255).astype(np.uint8)


def resized(factor: float) -> Edit:
    return lambda grey: np.asarray(cv2.resize(grey, None, fx=factor, fy=factor, interpolation=cv2.INTER_AREA), np.uint8)


def tilted(grey: Grey) -> Grey:
    height, width = grey.shape
    matrix = cv2.getRotationMatrix2D((width / 2, height / 2), 1, 1)
    return np.asarray(cv2.warpAffine(grey, matrix, (width, height), borderMode=cv2.BORDER_REPLICATE), np.uint8)


EDITS: dict[str, Edit] = {
    "equal": lambda grey: grey,
    "jpeg": saved(40),
    "half size": resized(0.5),
    "blurred": lambda grey: np.asarray(cv2.GaussianBlur(grey, (0, 0), 1.2), np.uint8),
    "noise": noisy,
    "brighter, with white that is cut off": lambda grey: np.clip(grey * 1.4, 0, 255).astype(np.uint8),
    "darker": lambda grey: (grey * 0.5).astype(np.uint8),
    "tilted by 1°": tilted,
    "inner part": lambda grey: np.ascontiguousarray(grey[3:-3, 4:-4]),
}


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS.keys())
@pytest.mark.parametrize("original", [scene(), page(1), shadow()], ids=["photo", "page", "soft"])
def test_difference__of_a_copy(original: Grey, edit: Edit) -> None:
    """What is done to a whole image leaves a copy, on photos, pages and soft pictures."""
    found = compared(original, edit(original))
    assert found.judgement is Judgement.COPY
    assert found.changed <= 0.004


@pytest.mark.parametrize("quarters", [1, 2, 3])
def test_difference__of_a_turned_page(quarters: int) -> None:
    """A turned page is a copy under the transform of this turn alone."""
    turned = np.ascontiguousarray(np.rot90(page(1), -quarters))
    assert compared(page(1), turned, quarters).judgement is Judgement.COPY
    assert quarters_of(stretched((0, 0, 560, 400), (0, 0, *turned.shape), quarters)) == quarters
    whole = stretched((0, 0, 560, 400), (0, 0, *turned.shape))
    wrong = least_difference(Shades(page(1), page(1)), Shades(turned, turned), [whole])
    assert wrong is None or wrong.judgement is Judgement.DIFFERENT


@pytest.mark.parametrize(
    ("a", "b"),
    [(page(1), page(2)), (scene(0), scene(1)), (shadow(0), shadow(1))],
    ids=["pages of one grid", "photos", "soft pictures"],
)
def test_difference__of_different_pictures(a: Grey, b: Grey) -> None:
    """Different pictures are different, whatever they have in common."""
    found = least_difference(Shades(a, a), Shades(b, b), [stretched((0, 0, *a.shape), (0, 0, *b.shape))])
    assert found is None or found.judgement is Judgement.DIFFERENT


def test_difference__of_one_word() -> None:
    """A page on which a few words are others is another page, though nearly all is the same."""
    other = page(1)
    other[226:233, 60:200] = page(2)[226:233, 60:200]
    found = compared(page(1), other)
    assert (found.judgement, found.changed < 0.05) == (Judgement.DIFFERENT, True)


def test_difference__of_a_shade() -> None:
    """A soft spot of 25 grey levels that has no edge is a difference."""
    y, x = np.mgrid[:320, :320]
    spot = 25 * np.exp(-((x - 200) ** 2 + (y - 150) ** 2) / (2 * 9.0**2))
    found = compared(shadow(), np.clip(shadow() + spot, 0, 255).astype(np.uint8))
    assert found.judgement is Judgement.DIFFERENT
    assert 5 < found.shade < 25


def test_difference__of_a_covered_photo() -> None:
    """Something that is laid over a photo covers it; on a page it is a difference."""
    covered = scene()
    covered[180:220, 60:260] = 0
    found = compared(scene(), covered)
    assert (found.judgement, found.moved) == (Judgement.COVERED, False)
    assert found.changed == pytest.approx(40 * 200 / (240 * 320), abs=0.06)
    written_over = page(1)
    written_over[200:240, 60:260] = 0
    assert compared(page(1), written_over).judgement is Judgement.DIFFERENT


def test_difference__of_faint_stars() -> None:
    """Images without structure differ by small things; what is compressed again does not."""

    def sky(seed: int) -> Grey:
        random = np.random.default_rng(seed)
        stars = np.full((400, 400), 20.0, np.float32)
        stars[random.integers(0, 400, 30), random.integers(0, 400, 30)] += 400
        return np.asarray(cv2.GaussianBlur(stars, (0, 0), 1.5), np.uint8)

    whole = stretched((0, 0, 400, 400), (0, 0, 400, 400))
    same, other = (
        least_difference(Shades(sky(0), sky(0)), Shades(each, each), [whole]) for each in (saved(60)(sky(0)), sky(1))
    )
    assert same is not None
    assert same.judgement is Judgement.COPY
    assert other is None or other.judgement is Judgement.DIFFERENT


def test_difference__of_a_moved_thing() -> None:
    """A thing that is seen at another place was moved, so that the pictures are of one scene, and no copies."""
    ground, thing = scene(), scene(5)[40:100, 40:100]

    def picture(left: int) -> Grey:
        shown = ground.copy()
        shown[100:160, left : left + 60] = thing
        return shown

    found = compared(picture(40), picture(190))
    assert (found.judgement, found.moved) == (Judgement.DIFFERENT, True)


@pytest.mark.parametrize(("level", "judgement"), [(100, Judgement.COPY), (102, Judgement.COPY), (140, None)])
def test_difference__without_structure(level: int, judgement: Judgement | None) -> None:
    """Images without structure are copies where their grey levels are alike."""
    a, b = np.full((60, 80), 100, np.uint8), np.full((30, 40), level, np.uint8)
    found = least_difference(Shades(a, a), Shades(b, b), [stretched((0, 0, 60, 80), (0, 0, 30, 40))])
    assert (None if found is None else found.judgement) is judgement


def hue_turned(pixels: Pixels) -> Pixels:
    values = cv2.cvtColor(pixels, cv2.COLOR_RGB2HSV)
    values[..., 0] = (values[..., 0].astype(int) + 40) % 180
    return np.asarray(cv2.cvtColor(values, cv2.COLOR_HSV2RGB), np.uint8)


@pytest.mark.parametrize(
    ("seed", "edit"),
    [(0, hue_turned), (5, hue_turned), (8, lambda pixels: np.clip(pixels * [1.9, 1.4, 1.4], 0, 255).astype(np.uint8))],
    ids=["hue turned", "hue of strong colours turned", "channels clipped"],
)
def test_difference__of_other_colours(seed: int, edit: Callable[[Pixels], Pixels]) -> None:
    """A copy in other colours is one, though grey levels are turned round, or light is clipped in one channel alone."""
    a, b = Shades.of(detailed(seed)), Shades.of(edit(detailed(seed)))
    transforms = [stretched((0, 0, 240, 320), (0, 0, 240, 320))]
    found = least_difference(a, b, transforms)
    assert found is not None
    assert found.judgement is Judgement.COPY
    of_grey = least_difference(Shades(a.grey, a.grey), Shades(b.grey, b.grey), transforms)
    assert of_grey is not None
    assert of_grey.judgement is Judgement.DIFFERENT
