"""Of copies that were made from one file by anything that loses, that file stays, or the group is not sure."""

import io
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageOps

from framedex.analysis.keeping import MemberFiles, best_members
from framedex.browse.preferences import PREFERENCES, is_sure, reason
from framedex.jobs.index.standings import GroupMember, compare_members
from framedex.media.jpeg import Traits, read_header
from tests.analysis.test_fidelity import scene
from tests.analysis.test_registration import page
from tests.image_files import encode
from tests.laws import examples

_SIDES = (200, 152)
Loss = Callable[[Image.Image], Image.Image]


def resized(factor: float) -> Loss:
    """Return the resizing by a factor."""
    return lambda image: image.resize(
        (round(image.width * factor), round(image.height * factor)), Image.Resampling.BICUBIC
    )


def exposed(factor: float) -> Loss:
    """Return the exposure by a factor."""
    return lambda image: image.point(lambda value: min(255, round(value * factor)))


def turned(turn: Image.Transpose) -> Loss:
    """Return a turn or a mirroring."""
    return lambda image: image.transpose(turn)


def cut(share: float) -> Loss:
    """Return the crop to a share of the sides."""
    return lambda image: image.crop((4, 9, 4 + round(image.width * share), 9 + round(image.height * share)))


def framed(image: Image.Image) -> Image.Image:
    """Return an image within a white border."""
    return ImageOps.expand(image, 12, (255, 255, 255))


def captioned(image: Image.Image) -> Image.Image:
    """Return an image below a white band with a line of words."""
    new = Image.new("RGB", (image.width, image.height + 40), (255, 255, 255))
    new.paste(image, (0, 40))
    for left in range(8, image.width - 30, 30):
        new.paste((20, 20, 20), (left, 14, left + 22, 24))
    return new


def tinted(image: Image.Image) -> Image.Image:
    """Return an image in warmer colours."""
    red, green, blue = image.split()
    return Image.merge("RGB", (red.point(lambda value: value * 1.15), green, blue.point(lambda value: value * 0.8)))


LOSSES = st.one_of(
    st.just(lambda image: image),
    st.sampled_from([0.5, 0.6, 0.75, 1.05, 1.5, 2.0]).map(resized),
    st.sampled_from([0.5, 0.7, 1.3, 1.7]).map(exposed),
    st.sampled_from(list(Image.Transpose)).map(turned),
    st.sampled_from([0.6, 0.8, 0.9]).map(cut),
    st.sampled_from([framed, captioned, tinted]),
)


@cache
def original(seed: int, quality: int | None, *, is_page: bool = False) -> bytes:
    """Return the file of an original: a photo, or a page, whose white compression cuts off."""
    pixels = scene(seed, width=_SIDES[0], height=_SIDES[1])
    if is_page:
        pixels = np.repeat(page(seed)[:240, :240, None], 3, axis=2)
    return encode(pixels, "PNG") if quality is None else encode(pixels, "JPEG", quality=quality)


def kept(files: Sequence[bytes]) -> tuple[int, bool, str]:
    """Return the place of the file to keep, whether it is shown to be the original, and the reason."""
    members = []
    for file in files:
        pixels = np.asarray(Image.open(io.BytesIO(file)).convert("RGB"))
        header = read_header(file)
        members.append(GroupMember.of(pixels, Traits() if header is None else header.traits, 0.6))
    columns: dict[str, Any] = dict(compare_members(members))
    columns |= {name: np.zeros(len(files)) for name in ("acutance", "modified_at", "damage")}
    columns["width"] = np.array([each.fidelity.width for each in members], np.float64)
    columns["height"] = np.array([each.fidelity.height for each in members], np.float64)
    columns["size_bytes"] = np.array([len(file) for file in files], np.float64)
    decision = best_members(
        np.array([len(files)]),
        [each.criterion(columns) for each in PREFERENCES],
        np.arange(len(files)),
        lambda members: MemberFiles.of([""] * len(members), list(range(len(members)))),
    )
    sure = bool(is_sure(decision, PREFERENCES, columns)[0])
    return int(decision.best[0]), sure, reason(decision, 0, len(files), PREFERENCES, columns, is_sure=sure)


@pytest.mark.slow
@given(
    seed=st.integers(0, 2),
    quality=st.sampled_from([None, 60, 80, 90]),
    losses=st.lists(st.tuples(LOSSES, st.sampled_from([40, 60, 75, 85, 95])), min_size=1, max_size=3),
    place=st.integers(0, 3),
    is_page=st.booleans(),
)
@examples(100)
def test_originals__law(
    seed: int, quality: int | None, losses: list[tuple[Loss, int]], place: int, is_page: bool
) -> None:
    """The file from which all others were made stays, wherever it stands, or the group is not sure."""
    first = original(seed, quality, is_page=is_page)
    image = Image.open(io.BytesIO(first)).convert("RGB")
    files = [encode(np.asarray(loss(image)), "JPEG", quality=saved) for loss, saved in losses]
    place = min(place, len(files))
    files.insert(place, first)
    best, sure, words = kept(files)
    assert best == place or not sure, words


@pytest.mark.parametrize("losses", [[cut(0.8), exposed(0.6)], [captioned, resized(0.75)], [tinted, framed]])
@pytest.mark.parametrize("is_page", [False, True], ids=["photo", "page"])
def test_originals__of_some_copies(losses: list[Loss], is_page: bool) -> None:
    """A few examples of the law, for the quick suite."""
    first = original(2, 80, is_page=is_page)
    image = Image.open(io.BytesIO(first)).convert("RGB")
    files = [first, *(encode(np.asarray(loss(image)), "JPEG", quality=75) for loss in losses)]
    best, sure, words = kept(files)
    assert best == 0 or not sure, words


@pytest.mark.parametrize(
    "loss", [turned(Image.Transpose.ROTATE_90), resized(0.6), resized(1.05), exposed(0.6), cut(0.8), captioned, framed]
)
def test_originals__of_one_copy(loss: Loss) -> None:
    """The file from which one copy was made is shown to be the source."""
    first = original(0, 90)
    copy = encode(np.asarray(loss(Image.open(io.BytesIO(first)).convert("RGB"))), "JPEG", quality=60)
    for place, files in enumerate(([first, copy], [copy, first])):
        assert kept(files) == (place, True, "It is the source: the others were made from it or from another copy.")


def test_originals__saved_alike() -> None:
    """Nothing tells which of two files was saved first if both have one quality, and the reason says so."""
    first = original(1, 75)
    files = [first, encode(np.asarray(Image.open(io.BytesIO(first)).transpose(Image.Transpose.ROTATE_180)), "JPEG")]
    _, sure, words = kept(files)
    assert not sure
    assert words.startswith("Not sure which is the original, but ")
