"""Verification of copies by keypoints: whether one image, or a part of it, is seen in another one.

Keypoints and binary descriptors are ORB (E. Rublee et al., "ORB: an efficient alternative to SIFT or SURF", ICCV 2011).
Matches that pass the ratio test (D. Lowe, IJCV 60(2), 2004) must agree on one turn, scale and shift (RANSAC). Small
images, which have hardly any keypoints, are compared as a whole by their thumbnails.
"""

from dataclasses import dataclass, field
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from framedex.core.borders import Box, cropped, inner_box

SIDE = 320
"""Pixels of the longer side of the images in which keypoints are found."""
MOST = 800
"""The maximum number of keypoints of an image."""
THUMBNAIL = 16
"""Pixels a side of the thumbnails by which small images are compared."""
_LEAST_SIDE = 32  # pixels
_RATIO = 0.8
_LEAST_MATCHES = 12
_LEAST_SHARE = 0.3  # of the matches that agree
_LEAST_SPREAD = 0.01  # of the area of each image that the agreeing matches span
_LEAST_SPAN = 0.025  # of the area that the images would share: equal captions and logos span less
_LEAST_DENSITY = 0.08  # of the keypoints in that area; where only a caption agrees, the others find no match
_LEAST_SCALE, _MOST_SCALE = 0.15, 6.0
_TOLERANCE = 4.0  # pixels
_ATTEMPTS = 500
_SMALL = 96  # pixels of the longer side of images that have hardly any keypoints
_SAME_STEPS = 0.95  # correlation of the steps in the thumbnails of two images that are the same
_FEW_STEPS = 40.0  # length of the steps, in grey levels, of a thumbnail that shows something
_FAST = 10  # difference of grey levels of a corner
_Matrix = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Keypoints:
    """Keypoints of an image.

    Attributes:
        points: float32, shape (K, 2): x and y in an image of at most 320 pixels a side.
        descriptors: uint8, shape (K, 32).
        width, height: of that image.
        inner: the share of its area within uniform borders, in (0, 1].
        parts: top, left, bottom and right of the parts that may be images of their own, in pixels of that image.
        thumbnail: uint8, shape (16, 16): that image with its borders.
    """

    points: npt.NDArray[np.float32]
    descriptors: npt.NDArray[np.uint8]
    width: int
    height: int
    inner: float = 1.0
    parts: tuple[Box, ...] = ()
    thumbnail: npt.NDArray[np.uint8] = field(default_factory=lambda: np.zeros((THUMBNAIL, THUMBNAIL), np.uint8))


@dataclass(frozen=True)
class SharedView:
    """The part of two images that shows the same.

    Attributes:
        scale: the size of the second image's content as a multiple of the first one's, in pixels of the keypoints.
        turn: the angle, in degrees in [-180, 180), by which it is turned clockwise.
        share, other_share: the part of the area of the first and of the second image, in [0, 1].
        box, other_box: the bounding box of that part in the first and in the second image, in pixels of the keypoints.
        matrix: float64, shape (2, 3): the transform from the first to the second image, in pixels of the keypoints.
    """

    scale: float
    turn: float
    share: float
    other_share: float
    box: Box
    other_box: Box
    matrix: _Matrix = field(repr=False, compare=False)


def find_keypoints(grey: npt.NDArray[np.uint8]) -> Keypoints:
    """Return the keypoints of a greyscale image, outside of its uniform borders.

    Args:
        grey: uint8, shape (H, W), any size; larger ones than 320 pixels a side are reduced.
    """
    grey = to_keypoint_size(grey)
    box, thumbnail = inner_box(grey), _thumbnail(grey)
    if min(box[2] - box[0], box[3] - box[1]) < _LEAST_SIDE:
        none = np.empty((0, 2), np.float32), np.empty((0, 32), np.uint8)
        return Keypoints(*none, grey.shape[1], grey.shape[0], thumbnail=thumbnail)
    points, descriptors = _detector().detectAndCompute(np.ascontiguousarray(cropped(grey, box)), None)
    places = np.array([each.pt for each in points], dtype=np.float32).reshape(-1, 2) + np.array(
        [box[1], box[0]], dtype=np.float32
    )
    found = np.empty((0, 32), np.uint8) if descriptors is None else np.asarray(descriptors, np.uint8)
    inner = (box[2] - box[0]) * (box[3] - box[1]) / grey.size
    return Keypoints(places[:MOST], found[:MOST], grey.shape[1], grey.shape[0], inner, thumbnail=thumbnail)


def _thumbnail(grey: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    return np.asarray(cv2.resize(grey, (THUMBNAIL, THUMBNAIL), interpolation=cv2.INTER_AREA), dtype=np.uint8)


def to_keypoint_size(grey: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Return a greyscale image at the size in which keypoints are found: uint8, at most 320 pixels a side."""
    factor = SIDE / max(grey.shape)
    if factor >= 1:
        return grey
    size = (max(1, round(grey.shape[1] * factor)), max(1, round(grey.shape[0] * factor)))
    return np.asarray(cv2.resize(grey, size, interpolation=cv2.INTER_AREA), dtype=np.uint8)


def _detector() -> Any:
    detector: Any = cv2.ORB
    return detector.create(MOST, fastThreshold=_FAST)  # not shared: it is not safe between threads


def shared_view(a: Keypoints, b: Keypoints) -> SharedView | None:
    """Return the part that two images share; None if there is no proof of one.

    Images of at most 96 pixels a side have hardly any keypoints. They are also compared as a whole.
    """
    view = _view_of_keypoints(a, b)
    if view is None and min(max(a.width, a.height), max(b.width, b.height)) <= _SMALL and _are_equal(a, b):
        matrix = np.array([[b.width / a.width, 0, 0], [0, b.height / a.height, 0]])
        boxes = (0, 0, a.height, a.width), (0, 0, b.height, b.width)
        return SharedView(b.width / a.width, 0.0, 1.0, 1.0, *boxes, matrix)
    return view


def _are_equal(a: Keypoints, b: Keypoints) -> bool:
    """Return whether the thumbnails of two images have the same steps between neighbouring pixels."""
    if min(a.width, a.height, b.width, b.height) < THUMBNAIL:
        return False
    mine, other = _steps(a.thumbnail), _steps(b.thumbnail)
    lengths = float(np.linalg.norm(mine)), float(np.linalg.norm(other))
    return min(lengths) >= _FEW_STEPS and float(mine @ other) >= _SAME_STEPS * lengths[0] * lengths[1]


def _steps(thumbnail: npt.NDArray[np.uint8]) -> npt.NDArray[np.float32]:
    pixels = thumbnail.astype(np.float32)
    return np.concatenate([np.diff(pixels, axis=0).ravel(), np.diff(pixels, axis=1).ravel()])


def _view_of_keypoints(a: Keypoints, b: Keypoints) -> SharedView | None:
    if min(len(a.points), len(b.points)) < _LEAST_MATCHES:
        return None
    distance, nearest = cv2.batchDistance(
        a.descriptors, b.descriptors, dtype=cv2.CV_32S, normType=cv2.NORM_HAMMING, K=2, mask=None, update=0
    )
    matched = np.flatnonzero(distance[:, 0] < _RATIO * distance[:, 1])
    if len(matched) < _LEAST_MATCHES:
        return None
    mine, other = a.points[matched], b.points[nearest[matched, 0]]
    found, agreeing = cv2.estimateAffinePartial2D(
        mine, other, method=cv2.RANSAC, ransacReprojThreshold=_TOLERANCE, maxIters=_ATTEMPTS
    )
    if agreeing is None or not agreeing.any():
        return None
    matrix, inliers = np.asarray(found, np.float64), np.asarray(agreeing).ravel() > 0
    scale = float(np.hypot(matrix[0, 0], matrix[1, 0]))
    if inliers.sum() < max(_LEAST_MATCHES, _LEAST_SHARE * len(matched)) or not _LEAST_SCALE <= scale <= _MOST_SCALE:
        return None
    spreads = _spread(mine[inliers], a), _spread(other[inliers], b)
    if min(spreads) < _LEAST_SPREAD:
        return None
    view = view_of(matrix, (a.width, a.height), (b.width, b.height))
    if spreads[0] < _LEAST_SPAN * view.share or spreads[1] < _LEAST_SPAN * view.other_share:
        return None
    inverse = np.asarray(cv2.invertAffineTransform(matrix), np.float64)
    seen = min(_count_within(a, matrix, b), _count_within(b, inverse, a))
    return view if inliers.sum() >= _LEAST_DENSITY * seen else None


def _count_within(image: Keypoints, matrix: _Matrix, other: Keypoints) -> int:
    """Return the number of keypoints of an image that a transform puts into another image."""
    places = image.points @ matrix[:, :2].T + matrix[:, 2]
    return int(np.count_nonzero((places >= 0).all(axis=1) & (places < (other.width, other.height)).all(axis=1)))


def _spread(points: npt.NDArray[np.float32], image: Keypoints) -> float:
    return float(cv2.contourArea(cv2.convexHull(points))) / (image.width * image.height)


def view_of(matrix: _Matrix, size: tuple[int, int], other_size: tuple[int, int]) -> SharedView:
    """Return what two images share under a transform.

    Args:
        matrix: float64, shape (2, 3): the transform from the first to the second image.
        size: width and height of the first one.
        other_size: those of the second one.
    """
    width, height = size
    scale = float(np.hypot(matrix[0, 0], matrix[1, 0]))
    corners = np.array([[0, 0, 1], [width, 0, 1], [width, height, 1], [0, height, 1]], np.float64)
    common = _clipped(corners @ matrix.T, *other_size)
    area = float(cv2.contourArea(common))
    common = common[:, None] if area > 0 else np.zeros((1, 1, 2), np.float32)
    turn = float(np.degrees(np.arctan2(matrix[1, 0], matrix[0, 0])))
    return SharedView(
        scale,
        -180.0 if turn >= 180 else turn,
        min(1.0, area / (width * height * scale**2)),
        min(1.0, area / (other_size[0] * other_size[1])),
        _bounds(cv2.transform(common, cv2.invertAffineTransform(matrix))),
        _bounds(common),
        matrix,
    )


def _clipped(corners: npt.NDArray[np.float64], width: int, height: int) -> npt.NDArray[np.float32]:
    """Return the corners of the part of a convex polygon that is within an image: float32, shape (N, 2).

    ``cv2.intersectConvexConvex`` gives wrong areas where edges nearly coincide, as those of an image and its copy.
    Source: I. E. Sutherland & G. W. Hodgman, "Reentrant polygon clipping", 1974.
    """
    for axis, limit, sign in ((0, 0, 1), (0, width, -1), (1, 0, 1), (1, height, -1)):
        inside = sign * (corners[:, axis] - limit)
        kept = []
        for this, after, here, there in zip(
            corners, np.roll(corners, -1, axis=0), inside, np.roll(inside, -1), strict=True
        ):
            kept += [this] if here >= 0 else []
            kept += [this + (after - this) * (here / (here - there))] if (here >= 0) != (there >= 0) else []
        corners = np.array(kept, np.float64).reshape(-1, 2)
    return corners.astype(np.float32) if len(corners) else np.zeros((1, 2), np.float32)


def _bounds(corners: Any) -> Box:
    points = np.asarray(corners).reshape(-1, 2)
    (left, top), (right, bottom) = np.rint(points.min(axis=0)).tolist(), np.rint(points.max(axis=0)).tolist()
    return int(top), int(left), int(bottom), int(right)
