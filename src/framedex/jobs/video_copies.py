"""Copies of parts of videos: pairs of frames that may show the same, lines through their times, and verification.

Frames of different videos are candidates by their copy descriptors and local features, as images are. Each pair of
videos with candidates on a line of time is then read again (:mod:`framedex.jobs.video_parts`), those with the most
frames on it first, as far as the budget goes. Frames without structure, as black ones, are left out.
"""

from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from framedex.analysis.copies import Candidates, OnDisk, Units, find_candidates
from framedex.analysis.time_lines import TimePairs, best_line
from framedex.core.arrays import Mask
from framedex.core.counts import counted
from framedex.core.progress import Progress, ShareProgress
from framedex.encoders.copy_descriptor import cells, layouts, poses, structure
from framedex.errors import InvalidInput
from framedex.executors import Executor, open_executor
from framedex.jobs.context import JobContext
from framedex.jobs.index.copies import LITTLE
from framedex.jobs.index.copy_descriptors import read_units, units_in_file
from framedex.jobs.index.resources import IndexResources
from framedex.jobs.index.shared_features import may_show_the_same
from framedex.jobs.video_frames import ComparedVideo
from framedex.jobs.video_parts import SharedPart, VideoPair, shared_parts
from framedex.storage.media import Media
from framedex.storage.media_rows import PANEL_DESCRIPTORS
from framedex.storage.spill import bytes_of, check_space, spill_folder
from framedex.storage.videos import VIDEOS, read_videos, videos_path

Rows = npt.NDArray[np.int64]
_COLUMNS = ("video_id", "path", "path_raw", "root", "batch", "content_hash", "duration_s")
_STAGE = "finding parts of videos"
_CANDIDATES, _CHOSEN = 0.4, 0.5  # shares of the work that are done after these stages
_LEAST_STRUCTURE = 0.5  # of a descriptor, from which a frame shows something
_DOUBTFUL, _NEAR = 0.7, 0.9  # similarity of candidates, and of those that need no local features
_FEW = 4096  # frames that are compared in memory in any case
_FRAME_BYTES, _FILE_BYTES = 11_000, 5200  # of memory, and of files, for a frame
_READ_MS, _LEAST_READ = 2000.0, 256  # cost of the verification of a pair of videos, and pairs that are always verified
_MOST_VOTES = 4096  # of a pair of videos, the most similar ones


@dataclass(frozen=True)
class FoundPart:
    """A part that two videos share, by their numbers in the table of videos."""

    video: int
    other: int
    part: SharedPart


@dataclass(frozen=True)
class FoundParts:
    """Parts that videos share.

    Attributes:
        videos: the rows of the table of videos.
        parts: the parts, the longest first.
        n_unread: the number of pairs of videos that could not be verified, because a file cannot be read.
        n_left: the number of those that no budget was left for.
    """

    videos: list[dict[str, Any]]
    parts: list[FoundPart]
    n_unread: int = 0
    n_left: int = 0

    @property
    def nbytes(self) -> int:
        """The bytes of the parts and rows, about."""
        return 1024 + 500 * len(self.parts) + 600 * len(self.videos)


def find_video_parts(
    job: JobContext, media: Media, allowed: frozenset[str] | None, *, min_seconds: float, progress: Progress
) -> FoundParts:
    """Return the parts that videos share.

    Args:
        job: the context of the dataset, in the state of the media.
        media: its media.
        allowed: the ids of the videos that are compared; None for all.
        min_seconds: the length of the shortest part, in the video in which it lasts longer.
        progress: called with the stage and the share that is done; raises to stop.

    Raises:
        InvalidInput: the dataset has no copy descriptors.
    """
    progress(_STAGE, 0.0)
    videos = read_videos(videos_path(media.table.path), media.generation.tables[VIDEOS], _COLUMNS).to_pylist()
    is_allowed = np.array([allowed is None or each["video_id"] in allowed for each in videos], bool)
    first = _first_of_equal(videos, is_allowed)
    search = _Search(job, media, videos, first, min_seconds, partial(progress, _STAGE))
    found = _of_equal(videos, first, min_seconds)
    verified, n_unread, n_left = search.run()
    for each in verified:
        found += _with_equal(each, first)
    found.sort(key=lambda each: (each.part.start - each.part.end, each.video, each.other, each.part.start))
    progress(_STAGE, 1.0)
    return FoundParts(videos, found, n_unread, n_left)


def _first_of_equal(videos: list[dict[str, Any]], is_allowed: Mask) -> Rows:
    """Return the first video with the content of each one; -1 for those that are not compared: shape (V,)."""
    first: dict[bytes, int] = {}
    found = np.full(len(videos), -1, np.int64)
    for number in np.flatnonzero(is_allowed).tolist():
        key = videos[number]["content_hash"]
        found[number] = number if key is None else first.setdefault(key, number)
    return found


def _of_equal(videos: list[dict[str, Any]], first: Rows, min_seconds: float) -> list[FoundPart]:
    """Return each video as a whole with the first one of equal content."""
    found = []
    for number in np.flatnonzero((first >= 0) & (first != np.arange(len(first)))).tolist():
        duration = float(videos[number]["duration_s"] or 0.0)
        if duration >= min_seconds:
            part = SharedPart(0.0, duration, 0.0, duration, 1.0, is_mirrored=False)
            found.append(FoundPart(int(first[number]), number, part))
    return found


def _with_equal(found: FoundPart, first: Rows) -> Iterator[FoundPart]:
    """Yield a part of two videos for each pair of videos with their contents."""
    for video in np.flatnonzero(first == found.video).tolist():
        for other in np.flatnonzero(first == found.other).tolist():
            yield FoundPart(video, other, found.part) if video < other else _turned(found.part, video, other)


def _turned(part: SharedPart, video: int, other: int) -> FoundPart:
    return FoundPart(
        other,
        video,
        SharedPart(part.other_start, part.other_end, part.start, part.end, part.similarity, part.is_mirrored),
    )


@dataclass(frozen=True)
class _SampledFrames:
    """The frames of the compared videos.

    Attributes:
        rows: int64, shape (N,), ascending: their rows in the media table.
        video: int64, shape (N,): the numbers of their videos.
        numbers: int64, shape (N,): their numbers within the videos.
        times: float64, shape (N,): seconds in the videos.
        order: int64, shape (N,): the frames, video by video, in the order of time.
    """

    rows: Rows
    video: Rows
    numbers: Rows
    times: npt.NDArray[np.float64]
    order: Rows

    @classmethod
    def of(cls, media: Media, videos: list[dict[str, Any]], first: Rows) -> "_SampledFrames":
        ids, start = pa.array([each["video_id"] for each in videos], pa.string()), 0
        parts: list[tuple[npt.NDArray[Any], ...]] = []
        is_compared = np.append(first == np.arange(len(first)), False)
        for batch in media.table.scan(["video_id", "frame_number", "frame_time_s"]):
            video = pc.index_in(batch.column(0), value_set=ids).fill_null(-1).to_numpy(zero_copy_only=False)
            rows = np.flatnonzero(is_compared[video] & batch.column(1).is_valid().to_numpy(zero_copy_only=False))
            numbers, times = (batch.column(each).take(pa.array(rows)).to_numpy(zero_copy_only=False) for each in (1, 2))
            parts.append((rows + start, video[rows].astype(np.int64), numbers.astype(np.int64), times))
            start += batch.num_rows
        empty = np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float64)
        rows, video, numbers, times = (np.concatenate(each) for each in zip(empty, *parts, strict=True))
        return cls(rows, video, numbers, times, np.lexsort((times, video)))

    def of_video(self, number: int) -> tuple[Rows, npt.NDArray[np.float64]]:
        """Return the numbers and the times of a video's frames, ascending."""
        low, high = np.searchsorted(self.video, [number, number + 1], sorter=self.order).tolist()
        places = self.order[low:high]
        return self.numbers[places], self.times[places]


@dataclass(frozen=True)
class _Votes:
    """Pairs of frames that may show the same, by the pair of their videos.

    Attributes:
        video, other: int64, shape (P,): the videos of each pair of videos.
        pairs: the times of their frames.
    """

    video: Rows
    other: Rows
    pairs: list[TimePairs]


@dataclass(frozen=True)
class _Search:
    """Search for parts; see :func:`find_video_parts`."""

    job: JobContext
    media: Media
    videos: list[dict[str, Any]]
    first: Rows
    min_seconds: float
    progress: ShareProgress

    def run(self) -> tuple[list[FoundPart], int, int]:
        """Return the verified parts, and the numbers of pairs of videos that were not read, or not tried."""
        frames = _SampledFrames.of(self.media, self.videos, self.first)
        if len(np.unique(frames.video)) < 2:
            return [], 0, 0
        if PANEL_DESCRIPTORS not in self.media.table.schema.names:
            raise InvalidInput(
                "parts of videos are found by copy descriptors, and this dataset has none: an old version made it; "
                "ds.reindex() computes them"
            )
        with open_executor(self.job.settings, is_little=len(frames.rows) < LITTLE) as executor:
            votes = self._votes(frames, executor)
            chosen, n_left = self._chosen(votes, frames)
            return *self._verified(votes, chosen, frames, executor), n_left

    def _votes(self, frames: _SampledFrames, executor: Executor) -> _Votes:
        """Return the pairs of frames of different videos that may show the same."""
        with ExitStack() as stack:
            positions, units, on_disk = self._units(frames, stack)
            owners = frames.video[np.searchsorted(frames.rows, positions)].astype(np.int32)
            found = find_candidates(
                units,
                poses,
                layouts,
                cells,
                owners=owners,
                least=_DOUBTFUL,
                on_disk=on_disk,
                executor=executor,
                progress=lambda share: self.progress(_CANDIDATES * share),
            )
            found = found.take(_shows_something(units, found))
        rows = positions[found.a], positions[found.b]
        kept = found.similarity >= _NEAR
        others = np.flatnonzero(~kept)
        kept[others] = may_show_the_same(
            [self.media.table], rows[0][others], rows[1][others], executor, partial(self.progress, _CANDIDATES)
        )
        return self._by_video(frames, rows[0][kept], rows[1][kept], found.similarity[kept])

    def _units(self, frames: _SampledFrames, stack: ExitStack) -> tuple[Rows, Units, OnDisk | None]:
        """Return the rows with a descriptor, and the descriptors: in a file where they do not fit into memory."""
        resources, count = IndexResources.of(self.job), len(frames.rows)
        if count <= _FEW or count * _FRAME_BYTES <= resources.memory_bytes:
            return *read_units(self.media.table, frames.rows), None
        purpose = f"the search for parts of {counted(len(self.videos), 'videos')}"
        folder = stack.enter_context(spill_folder(resources.spill, count * _FILE_BYTES, purpose))
        check = partial(self.progress, 0.0)
        positions, units = units_in_file(self.media.table, folder / "units", check=check, chosen=frames.rows)

        def check_more_space(needed: int) -> None:
            check_space(folder, bytes_of(folder) + needed, purpose)

        return positions, units, OnDisk(folder, resources.memory_bytes, resources.check_cost, check_more_space)

    def _by_video(self, frames: _SampledFrames, a: Rows, b: Rows, weights: npt.NDArray[np.float32]) -> _Votes:
        """Return pairs of rows by the pair of their videos, the lower one first."""
        places = np.searchsorted(frames.rows, a), np.searchsorted(frames.rows, b)
        swapped = frames.video[places[0]] > frames.video[places[1]]
        mine, its = np.where(swapped, places[1], places[0]), np.where(swapped, places[0], places[1])
        order = np.lexsort((-weights, frames.video[its], frames.video[mine]))
        mine, its, weights = mine[order], its[order], weights[order]
        keys = frames.video[mine] * len(self.videos) + frames.video[its]
        starts = np.flatnonzero(np.diff(keys, prepend=-1))
        pairs = [
            TimePairs(
                frames.times[mine[start:end][:_MOST_VOTES]],
                frames.times[its[start:end][:_MOST_VOTES]],
                weights[start:end][:_MOST_VOTES].astype(np.float64),
            )
            for start, end in zip(starts.tolist(), [*starts[1:].tolist(), len(keys)], strict=True)
        ]
        return _Votes(frames.video[mine[starts]], frames.video[its[starts]], pairs)

    def _chosen(self, votes: _Votes, frames: _SampledFrames) -> tuple[Rows, int]:
        """Return the pairs of videos that are verified, in their order, and how many are left."""
        steps = {number: self._step(frames, number) for number in np.union1d(votes.video, votes.other).tolist()}
        ranks = []
        for video, other, pairs in zip(votes.video.tolist(), votes.other.tolist(), votes.pairs, strict=True):
            single = len(pairs) == 1
            line = None if single else best_line(pairs, step=steps[video], other_step=steps[other])
            ranks.append((1 if line is None else line.support, float(pairs.weights.max())))
            self.progress(_CANDIDATES)
        order = sorted(range(len(ranks)), key=lambda each: ranks[each], reverse=True)
        budget = self.job.settings.copy_budget_ms * len(frames.rows) / _READ_MS
        chosen = order[: max(_LEAST_READ, int(budget))]
        return np.array(sorted(chosen), np.int64), len(order) - len(chosen)

    @staticmethod
    def _step(frames: _SampledFrames, number: int) -> float:
        times = frames.of_video(number)[1]
        return float(np.median(np.diff(times))) if len(times) > 1 else 1.0

    def _verified(
        self, votes: _Votes, chosen: Rows, frames: _SampledFrames, executor: Executor
    ) -> tuple[list[FoundPart], int]:
        """Return the verified parts, and the number of pairs of videos that could not be read."""
        found: list[FoundPart] = []
        n_unread, done = 0, 0

        def go_on() -> None:
            self.progress(_CHOSEN + (1 - _CHOSEN) * done / max(len(chosen), 1))

        tasks = self._tasks(votes, chosen, frames)
        with closing(executor.map(shared_parts, tasks, check=go_on)) as results:
            for pair, parts in zip(chosen.tolist(), results, strict=True):
                done += 1
                n_unread += parts is None
                found += [FoundPart(int(votes.video[pair]), int(votes.other[pair]), part) for part in parts or []]
        return found, n_unread

    def _tasks(self, votes: _Votes, chosen: Rows, frames: _SampledFrames) -> Iterator[VideoPair]:
        for pair in chosen.tolist():
            a, b = (self._video(int(each[pair]), frames) for each in (votes.video, votes.other))
            yield VideoPair(a, b, votes.pairs[pair], self.min_seconds, self.job.settings)

    def _video(self, number: int, frames: _SampledFrames) -> ComparedVideo:
        row = self.videos[number]
        numbers, times = frames.of_video(number)
        duration = float(row["duration_s"] or times[-1])
        return ComparedVideo(self.media.location_of(row) or "", self.media.role_of(row), numbers, times, duration)


def _shows_something(units: Units, found: Candidates) -> Mask:
    """Return the pairs of images that both have structure: bool, shape (P,)."""
    has_structure = np.empty(units.images, bool)
    for start in range(0, units.images, _FEW):
        some = np.asarray(units.vectors[start : min(start + _FEW, units.images)], np.float32)
        has_structure[start : start + len(some)] = structure(some) >= _LEAST_STRUCTURE
    return np.asarray(has_structure[found.a] & has_structure[found.b])
