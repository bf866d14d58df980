"""Layers of one image upon another one, and what differs where they lie over each other."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from framedex.analysis.keypoints import view_of
from framedex.analysis.part_placement import placement
from framedex.analysis.registration import SIDE, Difference, Judgement, Matrix, least_difference, quarters_of, stretched
from framedex.core.borders import Box
from framedex.core.opencv_threads import single_threaded_opencv
from framedex.jobs.index.compared_images import ReducedImage, panels_of
from framedex.jobs.index.copy_proofs import CopyProof

_TEXT = 0.25  # share of the most frequent grey level of pages, forms and tables
_MOST_DAMAGED, _LEAST_DETAIL = 0.7, 0.88  # share of a damaged image that is not seen, and the detail of the rest
_LEAST_BLOCKS = 12  # with structure, of a part that was looked for everywhere


@dataclass(frozen=True)
class ImageLayer:
    """Placement of one image upon another one.

    Attributes:
        matrix: the transform of keypoints; None to lay the image within its borders upon that of the other one.
        size, other_size: width and height of the images in which the keypoints lie.
        is_mirrored: whether the second image is mirrored.
        width: the share of the width of the second image that the first one takes, as a part of it; None where it is
            not looked for.
    """

    matrix: Matrix | None
    size: tuple[int, int] = (0, 0)
    other_size: tuple[int, int] = (0, 0)
    is_mirrored: bool = False
    width: float | None = None

    @classmethod
    def of(cls, proof: "CopyProof") -> "ImageLayer":
        """Return the layer that keypoints show."""
        return cls(proof.view.matrix, proof.size, proof.other_size, proof.is_mirrored)

    def transforms(self, a: ReducedImage, b: ReducedImage, other: Box) -> Iterator[Matrix]:
        """Yield transforms from the pixels of one image to those of another one, most likely ones first.

        Args:
            a: the first image.
            b: the second one.
            other: the part of the second one, which may be mirrored, within its borders.
        """
        if self.width is not None:
            found = placement(a.shades.grey, a.inner, b.shades.grey, b.inner, self.width)
            yield from () if found is None else (found,)
            return
        if self.matrix is None:
            yield stretched(a.inner, other)
            return
        to_a, to_b = (
            _scaling(size, image.shades.grey.shape[::-1]) for size, image in ((self.size, a), (self.other_size, b))
        )
        between = to_b @ np.vstack([self.matrix, [0.0, 0.0, 1.0]]) @ np.linalg.inv(to_a)
        yield between[:2]
        quarters = quarters_of(self.matrix)
        if quarters is not None:
            yield stretched(a.inner, other, quarters)
            yield stretched((0, 0, *a.shades.grey.shape), (0, 0, *b.shades.grey.shape), quarters)


def _scaling(size: tuple[int, int], other: tuple[int, ...]) -> Matrix:
    x, y = other[0] / size[0], other[1] / size[1]
    return np.array([[x, 0, 0.5 * x - 0.5], [0, y, 0.5 * y - 0.5], [0, 0, 1.0]])


@dataclass(frozen=True)
class LaidPair:
    """Two images that are laid over each other; None for one that cannot be read."""

    a: ReducedImage | None
    b: ReducedImage | None
    layer: ImageLayer


@dataclass(frozen=True)
class Registered:
    """The difference of two images that lie over each other.

    Attributes:
        difference: the difference.
        is_same: whether their size and pixels are equal.
        is_damaged: whether one of them is damaged.
        proof: what the place of the first image in the second one proves, where it was looked for.
        closer: the layer for a closer look; None for images that differ, or have no plain ground with something small.
    """

    difference: Difference
    is_same: bool
    is_damaged: bool
    proof: CopyProof | None = None
    closer: ImageLayer | None = None

    @property
    def judgement(self) -> Judgement:
        """The judgement; damage covers parts, which may look moved."""
        shown = self.difference
        is_covered = self.is_damaged and shown.changed <= _MOST_DAMAGED and shown.detail >= _LEAST_DETAIL
        return Judgement.COVERED if is_covered and shown.judgement is Judgement.DIFFERENT else shown.judgement


def registered_pairs(part: Sequence[LaidPair]) -> list[Registered | None]:
    """Return the differences of pairs; None where an image is missing, or nothing is alike."""
    with single_threaded_opencv():
        return [
            None if each.a is None or each.b is None else _registration(each.a, each.b, each.layer) for each in part
        ]


def _registration(a: ReducedImage, b: ReducedImage, layer: ImageLayer) -> Registered | None:
    shades, (top, left, bottom, right) = b.shades, b.inner
    if layer.is_mirrored:
        shades, width = shades.mirrored(), shades.grey.shape[1]
        left, right = width - right, width - left
    transforms = list(layer.transforms(a, b, (top, left, bottom, right)))
    side = max(SIDE, *a.shades.grey.shape)  # images are reduced already
    shown = least_difference(a.shades, shades, transforms, side) if transforms else None
    if shown is None or (layer.width is not None and shown.blocks < _LEAST_BLOCKS):
        return None
    is_same = a.size == b.size and all(map(np.array_equal, a.shades, shades))
    proof = None if layer.width is None else _proof_of_part(a, b, shown.matrix)
    (height, width), (other_height, other_width) = a.shades.grey.shape, shades.grey.shape
    may_be_text = shown.plain >= _TEXT and shown.judgement is not Judgement.DIFFERENT and not is_same
    sizes = (width, height), (other_width, other_height)
    closer = ImageLayer(shown.matrix, *sizes, layer.is_mirrored) if may_be_text else None
    return Registered(shown, is_same, a.is_damaged or b.is_damaged, proof, closer)


def _proof_of_part(a: ReducedImage, b: ReducedImage, matrix: Matrix) -> CopyProof:
    (height, width), (other_height, other_width) = (each.shades.grey.shape for each in (a, b))
    sizes = (width, height), (other_width, other_height)
    inner = a.inner_share, b.inner_share
    return CopyProof.of(view_of(matrix, *sizes), inner, (panels_of(a.shades.grey), panels_of(b.shades.grey)), sizes)
