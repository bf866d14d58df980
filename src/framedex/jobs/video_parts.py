"""Parts of two videos that show the same: their frames are read again, laid over each other and compared in time."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import pairwise

import cv2
import numpy as np
import numpy.typing as npt

from framedex.analysis.frame_motion import SIDE, FrameStack, MotionEvidence, alike_gains, laid_over
from framedex.analysis.registration import Difference, Grey, Matrix, least_difference, stretched
from framedex.analysis.time_lines import TimeLine, TimePairs, TimeRun, Times, best_line, best_run
from framedex.core.arrays import Mask, Pixels
from framedex.core.blas_threads import single_threaded_blas
from framedex.core.borders import BorderedImage, Box
from framedex.core.opencv_threads import single_threaded_opencv
from framedex.encoders.copy_descriptor import MIRRORED, describe, poses, prepare_whole
from framedex.errors import CannotDecode, NotFound, Unavailable
from framedex.jobs.index.compared_images import ReducedImage, keypoints_of
from framedex.jobs.index.copy_proofs import CopyProof
from framedex.jobs.index.image_layers import ImageLayer
from framedex.jobs.video_frames import FRAME_SIDE, ComparedVideo, FramesAtTimes
from framedex.media.decoded_image import reduced
from framedex.media.files import Reader
from framedex.media.row_images import open_video
from framedex.settings import Settings

_RATE, _OTHER_RATE = 6.0, 12.0  # frames a second that are compared
_LONG_S, _PART_S = 24.0, 8.0  # a longer part is compared at its ends and in its middle only
_MOST_STEP_S = 10.0  # between frames, that is made up for
_SURE = 0.6  # of the largest gain, from which no other placement is tried
_PROMISING = 2.0  # sum of gains, from which a placement is refined
_LAID_SIDE = 200  # pixels of the longer side at which frames are laid over each other
_REFINED = 2  # times that a placement is refined
_ANCHORS = 2  # pairs of frames that are laid over each other
_NEAR = 0.85  # similarity of descriptors, from which frames are also laid over each other as they are
_TRIED = 2  # lines that may fail for a pair of videos
_SPARE_S = 0.5  # seconds at an end of what was compared, within which a part may go on
_LEAST_SEEN = 0.1  # of the raster, that both videos show
_TRIMMED = 2  # pixels at the edges of what both show
_LEAST_SAME, _SHORT_S = 0.4, 3.0  # of the shortest part, or of 3 s, that moves alike
_MOST_OTHER = 0.35  # of that, what moves differently
_DESCRIBED_SIDE = 128  # pixels of the shorter side, as at ingestion
_MARGIN_S = 0.35  # by which a part may be shorter than asked for: the accuracy of its ends


@dataclass(frozen=True)
class VideoPair:
    """Two videos with pairs of frames that may show the same.

    Attributes:
        a, b: the videos.
        pairs: times of frames.
        min_seconds: the length of the shortest part.
        settings: limits.
    """

    a: ComparedVideo
    b: ComparedVideo
    pairs: TimePairs
    min_seconds: float
    settings: Settings


@dataclass(frozen=True)
class SharedPart:
    """A part of one video that is a part of another one.

    Attributes:
        start, end: seconds in the first video.
        other_start, other_end: seconds in the second one.
        similarity: the mean correlation of their frames, in [0, 1].
        is_mirrored: whether one of them is mirrored.
    """

    start: float
    end: float
    other_start: float
    other_end: float
    similarity: float
    is_mirrored: bool

    def repeats(self, other: "SharedPart") -> bool:
        """Return whether most of the part is in another one, in either video: it is the same one, shifted."""
        shared = min(self.end, other.end) - max(self.start, other.start)
        its = min(self.other_end, other.other_end) - max(self.other_start, other.other_start)
        return shared > (self.end - self.start) / 2 or its > (self.other_end - self.other_start) / 2

    def covers(self, pairs: TimePairs, step: float) -> Mask:
        """Return the pairs of times within the part, at most a step aside: bool, shape (P,)."""
        share = (pairs.times - self.start) / (self.end - self.start)
        others = self.other_start + share * (self.other_end - self.other_start)
        within = (pairs.times >= self.start - step) & (pairs.times <= self.end + step)
        return np.asarray(within & (np.abs(pairs.others - others) <= 1.5 * step))


def shared_parts(pair: VideoPair) -> list[SharedPart] | None:
    """Return the parts that two videos share, in the order of time; None where one of them cannot be read."""
    with single_threaded_opencv(), single_threaded_blas(), ExitStack() as opened:
        try:
            videos = [
                FramesAtTimes(
                    opened.enter_context(open_video(each.location, Reader(pair.settings, each.role), pair.settings)),
                    each,
                )
                for each in (pair.a, pair.b)
            ]
            return sorted(_parts(pair, *videos), key=lambda part: part.start)
        except (CannotDecode, NotFound, Unavailable):
            return None


def _parts(pair: VideoPair, a: "FramesAtTimes", b: "FramesAtTimes") -> Iterator[SharedPart]:
    """Yield parts: the line with the most votes is verified, then the best one of the other votes, and so on."""
    left, failed = pair.pairs, 0
    known: list[SharedPart] = []
    steps = pair.a.step, pair.b.step
    while failed < _TRIED and (line := best_line(left, step=steps[0], other_step=steps[1], least=1)) is not None:
        votes = left.take(line.covers(left, *steps))
        part = _Comparison(a, b, line, votes, pair.min_seconds).part()
        if part is None or any(part.repeats(each) for each in known):
            failed += 1
            left = left.take(~line.covers(left, *steps))
            continue
        known.append(part)
        yield part
        left = left.take(~part.covers(left, max(steps)) & ~line.covers(left, *steps))


@dataclass(frozen=True)
class _Layer:
    """Placement of the frames of one video upon those of another one.

    Attributes:
        size: height and width of the raster on which they are compared.
        matrix, other_matrix: transforms from its pixels to those of the frames.
        seen: bool, shape *size*: what both show.
        is_mirrored: whether the second video is mirrored before.
        between: the transform from the pixels of the first video to those of the second one.
    """

    size: tuple[int, int]
    matrix: Matrix
    other_matrix: Matrix
    seen: Mask
    is_mirrored: bool
    between: Matrix

    @classmethod
    def of(cls, a: ReducedImage, b: ReducedImage, matrix: Matrix, *, is_mirrored: bool) -> "_Layer | None":
        """Return the layer of two frames under a transform; None where they hardly have anything in common."""
        (height, width), (other_height, other_width) = a.shades.grey.shape, b.shades.grey.shape
        factor = min(1.0, SIDE / max(height, width))
        size = max(1, round(height * factor)), max(1, round(width * factor))
        to_frame = np.array(
            [
                [width / size[1], 0, width / size[1] / 2 - 0.5],
                [0, height / size[0], height / size[0] / 2 - 0.5],
                [0, 0, 1],
            ]
        )
        top, left, bottom, right = b.inner
        left, right = (other_width - right, other_width - left) if is_mirrored else (left, right)
        mine = cls(size, to_frame[:2], (matrix @ to_frame)[:2], np.ones(size, bool), is_mirrored, matrix)
        inner = _filled((height, width), a.inner), _filled((other_height, other_width), (top, left, bottom, right))
        seen = laid_over([inner[0]], mine.matrix, size)[0] > 250
        seen &= laid_over([inner[1]], mine.other_matrix, size)[0] > 250
        kernel = np.ones((2 * _TRIMMED + 1, 2 * _TRIMMED + 1), np.uint8)
        seen = cv2.erode(seen.astype(np.uint8), kernel, borderValue=0) > 0
        if np.count_nonzero(seen) < _LEAST_SEEN * seen.size:
            return None
        return replace(mine, seen=seen)

    def refined(self, pairs: list[tuple[Pixels, Pixels]]) -> "_Layer | None":
        """Return the placement that several pairs of frames of equal times have; None if they have none."""
        images = [(_image(frame), _image(other)) for frame, other in pairs]
        matrices = []
        for a, b in images:
            sizes = (a.shades.grey.shape[::-1], b.shades.grey.shape[::-1])
            found = _aligned(a, b, [ImageLayer(self.between, *sizes, is_mirrored=self.is_mirrored)])
            matrices += [] if found is None else [found.matrix]
        if not matrices:
            return None
        return _Layer.of(*images[0], np.median(matrices, axis=0), is_mirrored=self.is_mirrored)

    def stack(self, times: Times, frames: list[Grey]) -> FrameStack:
        """Return frames of the first video."""
        return FrameStack.of(times, laid_over(frames, self.matrix, self.size), self.seen)

    def other_stack(self, times: Times, frames: list[Grey]) -> FrameStack:
        """Return frames of the second video."""
        laid = laid_over(frames, self.other_matrix, self.size, is_mirrored=self.is_mirrored)
        return FrameStack.of(times, laid, self.seen)


def _filled(size: tuple[int, int], box: Box) -> Grey:
    image = np.zeros(size, np.uint8)
    image[box[0] : box[2], box[1] : box[3]] = 255
    return image


def _greys(frames: list[Pixels]) -> list[Grey]:
    return [np.asarray(cv2.cvtColor(each, cv2.COLOR_RGB2GRAY), np.uint8) for each in frames]


@dataclass(frozen=True)
class _Comparison:
    """Comparison of two videos around a line.

    Attributes:
        a, b: the videos.
        line: the line.
        votes: for it.
        min_seconds: the length of the shortest part.
    """

    a: FramesAtTimes
    b: FramesAtTimes
    line: TimeLine
    votes: TimePairs
    min_seconds: float

    @property
    def _reach(self) -> float:
        """The seconds in the second video by which the line may be wrong."""
        return min(max(self.a.listed.step, self.b.listed.step), _MOST_STEP_S) + 0.5

    @property
    def _pad(self) -> float:
        """The seconds before and after a line that are compared."""
        return self._reach + 0.5

    @property
    def _lines(self) -> list[TimeLine]:
        """The line, and that of equal speeds through its middle: a few votes tell little about the speed."""
        middle = (self.line.start + self.line.end) / 2
        offset = self.line.offset + (self.line.speed - 1) * middle
        return [self.line, replace(self.line, speed=1.0, offset=offset)]

    def part(self) -> SharedPart | None:
        """Return the part around the line that both videos show; None if it is not shown, or too short."""
        windows = _windows(self.line, self._pad)
        times, frames = self.a.read(windows, _RATE)
        if len(times) < 2 or not self._moves(times, frames):
            return None
        others = self.b.read(self._other_windows(windows), _OTHER_RATE)
        if len(others[0]) < 2:
            return None
        best: tuple[float, SharedPart, _Layer] | None = None
        for layer in self._layers((times, frames), others):
            found = self._refined(layer, (times, frames), others)
            if found is not None and (best is None or found[0] > best[0]):
                best = found
            if best is not None and best[0] >= _SURE * _RATE * (best[1].end - best[1].start):
                break
        return None if best is None else self._extended(best[1], best[2])

    def _refined(
        self, layer: _Layer, mine: tuple[Times, list[Pixels]], its: tuple[Times, list[Pixels]]
    ) -> tuple[float, SharedPart, _Layer] | None:
        """Return the gain of the part that a placement shows, the part, and the placement that its frames have.

        The frames that were laid over each other first may be of slightly different times, so that they are shifted.
        """
        found: tuple[float, SharedPart, _Layer] | None = None
        best = 0.0
        greys, other_greys = _greys(mine[1]), _greys(its[1])
        for _ in range(_REFINED + 1):
            stacks = layer.stack(mine[0], greys), layer.other_stack(its[0], other_greys)
            gains = alike_gains(*stacks, self.line.speed)
            ends = [line.at(mine[0][[0, -1]]) for line in self._lines]
            runs = [best_run(gains, mine[0], its[0], (float(a), float(b)), reach=self._reach) for a, b in ends]
            run = max(runs, key=lambda each: each.score)
            if run.score <= max(best, _PROMISING):
                break
            best = run.score
            refined = layer.refined([(mine[1][a], its[1][b]) for a, b in _spread(run)])
            if refined is None:  # frames of equal times do not show the same
                break
            part = self._shown(stacks, run, layer)
            found = found if part is None else (run.score, part, layer)
            layer = refined
        return found

    def _moves(self, times: Times, frames: list[Pixels]) -> bool:
        """Return whether so much moves that it can be compared, before the second video is read."""
        factor = SIDE / max(frames[0].shape[:2])
        small = [cv2.resize(each, None, fx=factor, fy=factor, interpolation=cv2.INTER_AREA) for each in _greys(frames)]
        stack = FrameStack.of(times, np.array(small, np.uint8), np.ones(small[0].shape[:2], bool))
        return stack.moving_s() >= self._least_same

    @property
    def _least_same(self) -> float:
        """The seconds that must move alike."""
        return _LEAST_SAME * min(self.min_seconds, _SHORT_S)

    def _other_windows(self, windows: list[tuple[float, float]]) -> list[tuple[float, float]]:
        around = np.array([-self._reach, self._reach])
        lines = [line.at(np.array(windows)) + around for line in self._lines]
        starts, ends = np.min(lines, axis=0)[:, 0], np.max(lines, axis=0)[:, 1]
        return _joined([(max(0.0, start), end) for start, end in zip(starts.tolist(), ends.tolist(), strict=True)])

    def _layers(self, mine: tuple[Times, list[Pixels]], its: tuple[Times, list[Pixels]]) -> Iterator[_Layer]:
        """Yield placements that pairs of frames with votes show."""
        for vote in self._anchors(mine[0]):
            place = int(np.abs(mine[0] - self.votes.times[vote]).argmin())
            near = np.flatnonzero(np.abs(its[0] - self.votes.others[vote]) <= self._reach)
            if not len(near):
                continue
            frame = mine[1][place]
            similarity = np.einsum(
                "d,pnd->pn", _described([frame])[0], poses(_described([its[1][each] for each in near.tolist()]))
            )
            pose, best = np.unravel_index(int(similarity.argmax()), similarity.shape)
            other = its[1][int(near[best])]
            is_near = bool(similarity.max() >= _NEAR)
            mirrored = bool(pose >= MIRRORED)
            if is_near:  # most copies show the whole, which a shift between frames of other times must not hide
                whole = _whole(frame, other, is_mirrored=mirrored)
                yield from () if whole is None else (whole,)
            layer = _layer(frame, other, is_near=is_near, is_mirrored=mirrored)
            if layer is None and mirrored:
                layer = _layer(frame, other, is_near=False, is_mirrored=False)
            if layer is not None:
                yield layer

    def _anchors(self, times: Times) -> list[int]:
        """Return the most similar votes for different frames among those that were read."""
        chosen: dict[float, int] = {}
        for vote in np.argsort(-self.votes.weights, kind="stable").tolist():
            time_s = float(self.votes.times[vote])
            if np.abs(times - time_s).min() <= 1 / _RATE:
                chosen.setdefault(time_s, vote)
        return list(chosen.values())[:_ANCHORS]

    def _shown(self, stacks: tuple[FrameStack, FrameStack], run: TimeRun, layer: _Layer) -> SharedPart | None:
        """Return the part of a run, if its motion shows that it is the same."""
        a, b = stacks
        rows = np.arange(run.first, run.last + 1)
        rows = rows[run.others[rows] >= 0]
        if len(rows) < 2:
            return None
        evidence = MotionEvidence.of(a.take(rows), b.take(run.others[rows]))
        if evidence.same_s < self._least_same or evidence.other_s > _MOST_OTHER * evidence.same_s:
            return None
        slope = (run.end_other - run.start_other) / (a.times[-1] - a.times[0])
        start, end = float(a.times[run.first]), float(a.times[run.last]) + 1 / _RATE
        part = _part_between(start, end, run.start_other + slope * (start - a.times[0]), slope, self.a, self.b)
        return SharedPart(*part, evidence.similarity, layer.is_mirrored)

    def _extended(self, part: SharedPart, layer: _Layer) -> SharedPart | None:
        """Return the part with what goes on before and after it; None if it is too short."""
        slope = (part.other_end - part.other_start) / (part.end - part.start)
        start = self._grown(part, layer, slope, forward=False)
        end = self._grown(part, layer, slope, forward=True)
        times = _part_between(start, end, part.other_start + slope * (start - part.start), slope, self.a, self.b)
        longest = max(times[1] - times[0], times[3] - times[2])
        if longest < self.min_seconds - _MARGIN_S:
            return None
        return SharedPart(*times, part.similarity, part.is_mirrored)

    def _grown(self, part: SharedPart, layer: _Layer, slope: float, *, forward: bool) -> float:
        """Return where a part ends, or starts, if it goes on beyond what was compared."""
        edge = part.end if forward else part.start
        compared = self.line.end if forward else self.line.start
        limit = compared + self._pad if forward else max(0.0, compared - self._pad)
        while abs(limit - edge) <= _SPARE_S:
            window = (edge, edge + _PART_S) if forward else (max(0.0, edge - _PART_S), edge)
            start_other = part.other_start + slope * (window[0] - part.start)
            spare = 0.5
            its = (max(0.0, start_other - spare), start_other + slope * (window[1] - window[0]) + spare)
            times, frames = self.a.read([window], _RATE)
            others, other_frames = self.b.read([its], _OTHER_RATE)
            if min(len(times), len(others)) < 2:
                return edge
            stacks = layer.stack(times, _greys(frames)), layer.other_stack(others, _greys(other_frames))
            gains = alike_gains(*stacks, slope)
            at = part.other_start + slope * (times[[0, -1]] - part.start)
            run = best_run(gains, times, others, (float(at[0]), float(at[1])), reach=0.25)
            begins = times[run.first] - window[0] if forward else window[1] - times[run.last]
            if run.last <= run.first or begins > _SPARE_S:
                return edge
            grown = float(times[run.last]) + 1 / _RATE if forward else float(times[run.first])
            if abs(grown - edge) < 1 / _RATE:
                return edge
            edge, limit = grown, window[1] if forward else window[0]
            if limit == 0.0 and not forward:
                return edge
        return edge


def _part_between(
    start: float, end: float, other_start: float, slope: float, a: FramesAtTimes, b: FramesAtTimes
) -> tuple[float, float, float, float]:
    """Return (start, end, start in the second video, its end), within both videos."""
    other_end = other_start + slope * (end - start)
    before, beyond = max(0.0, -other_start), max(0.0, other_end - b.listed.duration_s)
    start, other_start = start + before / slope, other_start + before
    end, other_end = end - beyond / slope, other_end - beyond
    if end > a.listed.duration_s:
        end, other_end = a.listed.duration_s, other_end - slope * (end - a.listed.duration_s)
    return start, end, other_start, other_end


def _windows(line: TimeLine, pad: float) -> list[tuple[float, float]]:
    """Return the stretches that are compared."""
    start, end = max(0.0, line.start - pad), line.end + pad
    if end - start <= _LONG_S:
        return [(start, end)]
    middle, half = (line.start + line.end) / 2, _PART_S / 2
    stretches = (start, line.start + _PART_S), (middle - half, middle + half), (line.end - _PART_S, end)
    return _joined([(max(0.0, low), high) for low, high in stretches])


def _joined(windows: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return ascending windows that do not overlap."""
    joined = windows[:1]
    for (_, before), (start, end) in pairwise(windows):
        if start <= max(before, joined[-1][1]):
            joined[-1] = joined[-1][0], max(end, joined[-1][1])
        else:
            joined.append((start, end))
    return joined


def _described(frames: list[Pixels]) -> npt.NDArray[np.float32]:
    images = [BorderedImage(reduced(each, _DESCRIBED_SIDE)) for each in frames]
    return describe(np.stack([prepare_whole(each) for each in images]))


def _layer(frame: Pixels, other: Pixels, *, is_near: bool, is_mirrored: bool) -> _Layer | None:
    """Return how one frame lies upon another one, as copies of images are shown; None if it does not."""
    mine, its = keypoints_of(frame, is_mirrored=False), keypoints_of(other, is_mirrored=is_mirrored)
    proof = CopyProof.of_keypoints(mine, its, is_mirrored=is_mirrored)
    layers = [ImageLayer(None, is_mirrored=is_mirrored)] if is_near else []
    layers += [] if proof is None else [ImageLayer.of(proof)]
    a, b = _image(frame), _image(other)
    found = _aligned(a, b, layers)
    return None if found is None else _Layer.of(a, b, found.matrix, is_mirrored=is_mirrored)


def _whole(frame: Pixels, other: Pixels, *, is_mirrored: bool) -> _Layer | None:
    """Return the placement of one frame as a whole, within its borders, upon another one."""
    a, b = _image(frame), _image(other)
    top, left, bottom, right = b.inner
    width = b.shades.grey.shape[1]
    left, right = (width - right, width - left) if is_mirrored else (left, right)
    return _Layer.of(a, b, stretched(a.inner, (top, left, bottom, right)), is_mirrored=is_mirrored)


def _aligned(a: ReducedImage, b: ReducedImage, layers: list[ImageLayer]) -> Difference | None:
    """Return the least difference of two frames in which most is aligned; None if there is no such one."""
    least: Difference | None = None
    for layer in layers:
        shades, (top, left, bottom, right) = b.shades, b.inner
        if layer.is_mirrored:
            shades, width = shades.mirrored(), shades.grey.shape[1]
            left, right = width - right, width - left
        transforms = list(layer.transforms(a, b, (top, left, bottom, right)))[:1]
        found = least_difference(a.shades, shades, transforms, _LAID_SIDE)
        if found is not None and found.is_aligned and (least is None or found.changed < least.changed):
            least = found
    return least


def _image(frame: Pixels) -> ReducedImage:
    return ReducedImage.of(frame, (frame.shape[1], frame.shape[0]), is_damaged=False, side=FRAME_SIDE)


def _spread(run: TimeRun) -> list[tuple[int, int]]:
    """Return some pairs of frames of a run, evenly spread."""
    rows = np.arange(run.first, run.last + 1)
    rows = rows[run.others[rows] >= 0]
    chosen = np.unique(np.linspace(0, len(rows) - 1, _ANCHORS + 1).round().astype(np.int64)) if len(rows) else rows
    return [(int(row), int(run.others[row])) for row in rows[chosen]]
