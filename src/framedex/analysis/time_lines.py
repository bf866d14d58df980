"""Lines through pairs of times: parts of two videos that run alike, from pairs of frames that may show the same.

Each pair of frames votes for the lines ``other = offset + speed * time`` through it: a Hough transform over offset and
speed, as in the temporal verification of M. Douze, H. Jégou & C. Schmid, "An image-based approach to video copy
detection with spatio-temporal post-filtering", IEEE Trans. Multimedia 12(4), 2010, which votes for the offset alone.
The best line is fitted to its votes again and again, which then need not lie on the grid of speeds.

Where two stretches of video are compared frame by frame, the run with the largest sum of gains is the part that both
have (J. Bentley, "Programming pearls: algorithm design techniques", CACM 27(9), 1984), on the line for which it is
largest.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from framedex.core.arrays import Mask

Times = npt.NDArray[np.float64]
LEAST_SPEED, MOST_SPEED = 0.4, 2.5
"""The speeds of lines: seconds of the second video for each second of the first one."""
_SPEEDS = np.array(sorted(np.exp2(np.arange(-8, 9) / 8), key=lambda speed: abs(np.log(speed))))
_TRIED = 6  # bins with the most votes, that are fitted
_FITS = 4
_GAP_STEPS, _GAP_S = 3.0, 3.0  # without votes, within a line
_FINE_S = 0.12  # seconds between the ends of lines that are compared first
_FINER = 4  # times, in each further turn
_TURNS = 2
_NEXT = 0.75  # of the time between two frames, up to which a frame stands for a time


@dataclass(frozen=True)
class TimePairs:
    """Pairs of times in two videos, at which frames may show the same.

    Attributes:
        times: float64, shape (P,): seconds in the first video.
        others: float64, shape (P,): seconds in the second one.
        weights: float64, shape (P,), above 0.
    """

    times: Times
    others: Times
    weights: Times

    def __len__(self) -> int:
        return len(self.times)

    def take(self, selected: Mask) -> "TimePairs":
        """Return the selected pairs: bool, shape (P,)."""
        return TimePairs(self.times[selected], self.others[selected], self.weights[selected])


@dataclass(frozen=True)
class TimeLine:
    """A line from the times of one video to those of another one, within the votes for it.

    Attributes:
        speed: seconds of the second video for each second of the first one.
        offset: the second in the second video at the start of the first one.
        start, end: the first and the last vote: seconds in the first video.
        support: the number of frames of the video that has fewer votes.
    """

    speed: float
    offset: float
    start: float
    end: float
    support: int

    def at(self, times: Times) -> Times:
        """Return the times in the second video."""
        return np.asarray(self.offset + self.speed * times, np.float64)

    def covers(self, pairs: TimePairs, step: float, other_step: float) -> Mask:
        """Return the pairs that lie on the line, within its ends: bool, shape (P,)."""
        within = (pairs.times >= self.start - step) & (pairs.times <= self.end + step)
        near = np.abs(self.at(pairs.times) - pairs.others) <= _tolerance(step, other_step)
        return np.asarray(within & near)


def best_line(pairs: TimePairs, *, step: float, other_step: float, least: int = 2) -> TimeLine | None:
    """Return the line with the most votes; None if none has *least* of different frames of both videos.

    Of lines with equally many votes, that with the larger sum of weights is the best one, then that whose speed is
    nearer to 1.

    Args:
        pairs: the votes.
        step: seconds between the frames of the first video.
        other_step: the same for the second one.
        least: the least number of frames of each video.
    """
    best: tuple[tuple[int, float], TimeLine] | None = None
    for speed, offset in _peaks(pairs, 2 * _tolerance(step, other_step)):
        found = _fitted(pairs, speed, offset, step, other_step)
        if found is not None and found[1].support >= least and (best is None or found[0] > best[0]):
            best = found
    return None if best is None else best[1]


def _tolerance(step: float, other_step: float) -> float:
    """Return the seconds in the second video that the nearest frames may lie apart."""
    return 0.75 * max(step, other_step) + 0.05


def _peaks(pairs: TimePairs, width: float) -> list[tuple[float, float]]:
    """Return the (speed, offset) of the fullest bins, those nearest to the speed 1 first of equally full ones."""
    found: list[tuple[int, int, float, float]] = []
    for rank, speed in enumerate(_SPEEDS.tolist()):
        offsets = pairs.others - speed * pairs.times
        for shift in (0.0, 0.5):
            number, place = np.unique(np.floor(offsets / width + shift).astype(np.int64), return_inverse=True)
            counts = np.minimum(*(_distinct(place, each, len(number)) for each in (pairs.times, pairs.others)))
            weights = np.bincount(place, pairs.weights, len(number))
            for each in np.lexsort((weights, counts))[-_TRIED:].tolist():
                middle = float(offsets[place == each].mean())
                found.append((int(counts[each]), -rank, float(weights[each]), middle))
    found.sort(key=lambda each: (each[0], each[2] + 1e-3 * each[1]), reverse=True)
    return [(float(_SPEEDS[-rank]), offset) for _, rank, _, offset in found[:_TRIED]]


def _distinct(place: npt.NDArray[np.integer], times: Times, count: int) -> npt.NDArray[np.int64]:
    """Return the number of different times in each bin."""
    _, number = np.unique(times, return_inverse=True)
    keys = np.unique(place.astype(np.int64) * (int(number.max(initial=0)) + 1) + number)
    return np.bincount(keys // (int(number.max(initial=0)) + 1), minlength=count)


def _fitted(
    pairs: TimePairs, speed: float, offset: float, step: float, other_step: float
) -> tuple[tuple[int, float], TimeLine] | None:
    """Return the rank and the line that is fitted to the votes near another line; None without votes."""
    tolerance = _tolerance(step, other_step)
    line: TimeLine | None = None
    rank = (0, 0.0)
    for _ in range(_FITS):
        near = pairs.take(np.abs(pairs.others - speed * pairs.times - offset) <= tolerance)
        run = near.take(_longest_run(near, max(step, other_step)))
        if not len(run):
            return None
        support = min(len(np.unique(run.times)), len(np.unique(run.others)))
        new_rank = support, float(run.weights.sum())
        if line is not None and new_rank < rank:
            break
        rank = new_rank
        start, end = float(run.times.min()), float(run.times.max())
        line = TimeLine(speed, offset, start, end, support)
        speed, offset = _line_of(run, speed, 4 * max(step, other_step))
    return None if line is None else (rank, line)


def _line_of(run: TimePairs, speed: float, least_span: float) -> tuple[float, float]:
    """Return the (speed, offset) with the least squares; the speed stays where the votes span too little for one."""
    weights = run.weights / run.weights.sum()
    mean, other_mean = float(weights @ run.times), float(weights @ run.others)
    centred = run.times - mean
    spread = float(weights @ centred**2)
    if np.ptp(run.times) >= least_span and spread > 0:
        speed = float(weights @ (centred * (run.others - other_mean))) / spread
        speed = float(np.clip(speed, LEAST_SPEED, MOST_SPEED))
    return speed, other_mean - speed * mean


def _longest_run(pairs: TimePairs, step: float) -> Mask:
    """Return the votes of the run with the most frames, in which no two neighbours lie far apart."""
    order = np.argsort(pairs.times, kind="stable")
    times = pairs.times[order]
    number = np.cumsum(np.diff(times, prepend=times[:1]) > _GAP_STEPS * step + _GAP_S)
    run = np.empty(len(order), np.int64)
    run[order] = number
    if not len(order):
        return np.zeros(0, bool)
    count = int(number[-1]) + 1
    frames = np.minimum(_distinct(run, pairs.times, count), _distinct(run, pairs.others, count))
    return np.asarray(run == int(frames.argmax()))


@dataclass(frozen=True)
class TimeRun:
    """A run of frames of one video that is found in another one.

    Attributes:
        first, last: the first and the last frame of the run.
        others: int64, shape (N,): the frame of the second video for each frame of the first one, -1 for none.
        start_other, end_other: the times in the second video at the first and the last of all frames of the first one.
        score: the sum of the gains.
    """

    first: int
    last: int
    others: npt.NDArray[np.int64]
    start_other: float
    end_other: float
    score: float


def best_run(
    gains: npt.NDArray[np.float32], times: Times, others: Times, ends: tuple[float, float], *, reach: float
) -> TimeRun:
    """Return the run with the largest sum of gains, on any of the lines near one.

    Args:
        gains: float32, shape (N, M): what is gained, or lost, where a frame of the first video is one of the second.
        times: float64, shape (N,), ascending, N ≥ 2: the times of the first frames.
        others: float64, shape (M,), ascending, M ≥ 1: the times of the second ones.
        ends: the times in the second video at the first and the last time.
        reach: the seconds by which these may be wrong.
    """
    middle, spacing = ends, min(_FINE_S, max(reach, 1e-3))
    best: TimeRun | None = None
    for _ in range(_TURNS + 1):
        around = np.arange(-np.ceil(reach / spacing), np.ceil(reach / spacing) + 1) * spacing
        starts, stops = (each.ravel() for each in np.meshgrid(middle[0] + around, middle[1] + around, indexing="ij"))
        speed = (stops - starts) / (times[-1] - times[0])
        kept = (speed >= LEAST_SPEED) & (speed <= MOST_SPEED)
        if kept.any():
            found = _best_of(gains, times, others, starts[kept], stops[kept])
            best = found if best is None or found.score > best.score else best
            middle = best.start_other, best.end_other
        reach, spacing = spacing, spacing / _FINER
    if best is None:
        return TimeRun(0, -1, np.full(len(times), -1), *ends, 0.0)
    return best


def _best_of(gains: npt.NDArray[np.float32], times: Times, others: Times, starts: Times, stops: Times) -> TimeRun:
    """Return the best run on lines that are given by their ends: shape (L,)."""
    share = (times - times[0]) / (times[-1] - times[0])
    places = _nearest(others, starts[:, None] + (stops - starts)[:, None] * share)
    # A frame for which the second video has none is neutral within a gap, and is lost otherwise.
    padded = np.append(gains, np.full((len(times), 1), -1, np.float32), axis=1)
    values = padded[np.arange(len(times)), places]
    total = np.zeros(len(starts))
    first = np.zeros(len(starts), np.int64)
    best, best_first, best_last = (np.full(len(starts), each) for each in (0.0, 0, -1))
    for place in range(len(times)):
        is_new = total <= 0
        first = np.where(is_new, place, first)
        total = np.where(is_new, 0.0, total) + values[:, place]
        better = total > best
        best, best_first = np.where(better, total, best), np.where(better, first, best_first)
        best_last = np.where(better, place, best_last)
    slant = np.abs((stops - starts) - np.median(stops - starts))
    line = int(np.lexsort((slant, -best))[0])
    matched = np.where(places[line] == len(others), -1, places[line])
    return TimeRun(
        int(best_first[line]),
        int(best_last[line]),
        matched,
        float(starts[line]),
        float(stops[line]),
        float(best[line]),
    )


def _nearest(times: Times, wanted: Times) -> npt.NDArray[np.int64]:
    """Return the nearest frame for each time, or the number of frames where none stands for it."""
    step = float(np.median(np.diff(times))) if len(times) > 1 else 1.0
    after = np.clip(np.searchsorted(times, wanted), 1, max(len(times) - 1, 1))
    after = np.minimum(after, len(times) - 1)
    before = np.maximum(after - 1, 0)
    nearest = np.where(wanted - times[before] <= times[after] - wanted, before, after)
    is_near = np.abs(times[nearest] - wanted) <= _NEXT * step
    return np.where(is_near, nearest, len(times)).astype(np.int64)
