"""Proofs of copies: which one of two images is the copy, and what was done to it."""

from collections.abc import Sequence
from dataclasses import dataclass

from framedex.analysis.keypoints import Keypoints, SharedView, shared_view
from framedex.core.borders import Box
from framedex.storage.copy_pairs import CROPPED

_WHOLE = 0.97  # share of an image that counts as all of it
_FRAME = 0.08  # difference of shares of an image that trimming and compression make
_TURN = 1.5  # degrees that are a turn
_ALL = 0.9  # share of an image that another one shows as one of its parts
_SAME_BOX = 0.85  # intersection over union


@dataclass(frozen=True)
class CopyProof:
    """A proof of a copy.

    Attributes:
        view: what two images share.
        inner, other_inner: the shares of their areas within uniform borders.
        is_mirrored: whether the second one is mirrored.
        is_part, other_is_part: whether the first one is a part of the second one beside other content, as in a collage,
            and the other way round.
        size, other_size: width and height of the images in which the keypoints lie.
    """

    view: SharedView
    inner: float
    other_inner: float
    is_mirrored: bool
    is_part: bool
    other_is_part: bool
    size: tuple[int, int]
    other_size: tuple[int, int]

    @classmethod
    def of_keypoints(cls, mine: Keypoints, its: Keypoints, *, is_mirrored: bool) -> "CopyProof | None":
        """Return what keypoints prove; None for nothing."""
        if (view := shared_view(mine, its)) is None:
            return None
        sizes = (mine.width, mine.height), (its.width, its.height)
        return cls.of(view, (mine.inner, its.inner), (mine.parts, its.parts), sizes, is_mirrored=is_mirrored)

    @classmethod
    def of(
        cls,
        view: SharedView,
        inner: tuple[float, float],
        parts: tuple[Sequence[Box], Sequence[Box]],
        sizes: tuple[tuple[int, int], tuple[int, int]],
        *,
        is_mirrored: bool = False,
    ) -> "CopyProof":
        """Return what a view proves, given the shares within borders, the panels and the sizes of both images."""
        is_part = view.share >= _ALL and _is_one_of(view.other_box, parts[1])
        other_is_part = view.other_share >= _ALL and _is_one_of(view.box, parts[0])
        return cls(view, *inner, is_mirrored, is_part, other_is_part, *sizes)


def described(row: int, other: int, proof: CopyProof) -> tuple[int, int, str, float]:
    """Return (copy, original, what was done to the copy, the share of the copy that is not beside other content).

    The copy is the one that has a uniform frame around the original, shows it beside other content, or shows only a
    part of it.
    """
    view, done = proof.view, ["mirrored"] if proof.is_mirrored else []
    quarter = round(view.turn / 90) * 90
    if turn := abs(quarter if abs(view.turn - quarter) < _TURN else round(view.turn)):
        done.append(f"turned by {turn}°")
    if _is_frame(view.share, proof.inner):
        return row, other, ", ".join([*done, "framed"]), 1.0
    if _is_frame(view.other_share, proof.other_inner):
        return other, row, ", ".join([*done, "framed"]), 1.0
    if proof.is_part and view.other_share < _WHOLE:
        return other, row, ", ".join([*done, f"shown on {view.other_share:.0%} of a larger image"]), view.other_share
    if proof.other_is_part and view.share < _WHOLE:
        return row, other, ", ".join([*done, f"shown on {view.share:.0%} of a larger image"]), view.share
    smaller = min(view.share, view.other_share)
    if smaller >= _WHOLE:
        return row, other, ", ".join(done) or "edited", 1.0
    copy, original = (other, row) if view.share <= view.other_share else (row, other)
    return copy, original, ", ".join([*done, f"{CROPPED} {smaller:.0%}"]), 1.0


def _is_one_of(box: Box, parts: Sequence[Box]) -> bool:
    """Return whether a box is about one of the parts."""
    return any(_overlap(box, part) >= _SAME_BOX for part in parts)


def _overlap(a: Box, b: Box) -> float:
    """Return the intersection of two boxes over their union."""
    high = max(0, min(a[2], b[2]) - max(a[0], b[0]))
    wide = max(0, min(a[3], b[3]) - max(a[1], b[1]))
    areas = sum((bottom - top) * (right - left) for top, left, bottom, right in (a, b))
    return high * wide / max(1, areas - high * wide)


def _is_frame(share: float, inner: float) -> bool:
    """Return whether all of an image but its uniform borders is shared."""
    return inner < _WHOLE and share < _WHOLE and abs(share - inner) < _FRAME
