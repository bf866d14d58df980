"""Groups of similar videos: near-duplicates by their frames, and equal files."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from framedex.analysis.components import connected_components
from framedex.analysis.keeping import Criterion, LastCriterion, MemberFiles, best_members
from framedex.analysis.video_similarity import Pairs, near_pairs, sample_frames, unique_pairs, video_similarity
from framedex.browse.explore import file_name
from framedex.browse.issues import check_limit
from framedex.browse.preferences import LAST_WINS, sentence
from framedex.core.checks import check_fraction
from framedex.core.ids import content_group_id
from framedex.records import DuplicateGroup
from framedex.storage.condition import Condition
from framedex.storage.media import EVERYTHING, Media
from framedex.storage.row_numbers import RowNumbers
from framedex.storage.stored_vectors import StoredVectors
from framedex.storage.videos import VIDEOS, read_videos, videos_path

_COLUMNS = ("video_id", "path", "content_hash", "width", "height", "duration_s")
_MARGIN = 0.05  # frames may be this much less similar than the threshold to make their videos candidates
_MOST_FRAMES = 4096  # compared frames per video, evenly spread

Numbers = npt.NDArray[np.int64]


def similar_videos(
    media: Media, condition: Condition, *, similarity: float, exact: bool, limit: int | None = None
) -> list[DuplicateGroup]:
    """Return the groups of similar videos, largest first; ties by their first members.

    The similarity of two videos is :func:`framedex.analysis.video_similarity.video_similarity`; a group is connected by
    pairs of at least the threshold. Candidates are pairs of videos with two frames that are neighbours in the dataset's
    graph, or in the graph of up to eight frames of each video. The first graph finds parts of long videos. The second
    finds videos with little motion, whose frames have only frames of the same video as neighbours.

    Args:
        media: the media to search.
        condition: only videos with a frame that meets it are included.
        similarity: minimum similarity in [0, 1].
        exact: return groups of equal files instead.
        limit: maximum number of groups.

    Raises:
        InvalidInput: the similarity is outside [0, 1], or the limit is not a count.
    """
    check_limit(limit)
    check_fraction("similarity", similarity, "a similarity")
    if not media.has_videos:
        return []
    videos = read_videos(videos_path(media.table.path), media.generation.tables[VIDEOS], _COLUMNS).to_pylist()
    if exact:
        return _grouped(media, videos, _equal(videos, _matching(media, condition, videos)), 1.0, limit)
    frames = _Frames.of(media, videos)
    candidates = _candidates(media, frames, min_similarity=similarity - _MARGIN)
    allowed = _matching(media, condition, videos)
    candidates = candidates[allowed[candidates].all(axis=1)]
    alike = frames.alike(candidates)
    selected = alike >= similarity
    return _grouped(media, videos, (candidates[selected], alike[selected]), similarity, limit)


@dataclass(frozen=True)
class _Frames:
    """The frames of V videos that have an embedding.

    Attributes:
        video: shape (rows of the media table,): number of each row's video; -1 for other rows.
        positions: positions of the frames' rows, video by video.
        counts: shape (V,): number of frames of each video.
        vectors: reads embeddings, by positions in *places* sorted by row.
    """

    video: npt.NDArray[np.int32]
    positions: Numbers
    counts: Numbers
    vectors: StoredVectors

    @classmethod
    def of(cls, media: Media, videos: list[dict[str, Any]]) -> "_Frames":
        number = pa.array([each["video_id"] for each in videos], pa.string())
        parts, has_vector = [np.empty(0, dtype=np.int32)], [np.empty(0, dtype=bool)]
        for batch in media.table.scan(["video_id", "frame_number"]):
            numbers = pc.index_in(batch.column(0), value_set=number)
            parts.append(numbers.fill_null(-1).to_numpy(zero_copy_only=False))
            has_vector.append(batch.column(1).is_valid().to_numpy(zero_copy_only=False))
        video = np.concatenate(parts)
        rows = np.flatnonzero(np.concatenate(has_vector) & (video >= 0))
        positions = rows[np.argsort(video[rows], kind="stable")]
        counts = np.bincount(video[rows], minlength=len(videos)).astype(np.int64)
        return cls(video, positions, counts, StoredVectors(media.table, np.sort(positions)))

    def take(self, indices: Numbers) -> npt.NDArray[np.float32]:
        """Return the embeddings at some positions of :attr:`places`."""
        return self.vectors.take(np.searchsorted(np.sort(self.positions), self.positions[indices]))

    def of_video(self, number: int) -> npt.NDArray[np.float32]:
        """Return the embeddings of a video: float32, shape (frames, D)."""
        start = int(self.counts[:number].sum())
        return self.take(start + sample_frames(self.counts[number : number + 1], _MOST_FRAMES))

    def alike(self, pairs: Pairs) -> npt.NDArray[np.float64]:
        """Return the similarities of pairs of videos; two videos are in memory at a time."""
        similarities = []
        for first, several in groupby(pairs.tolist(), key=lambda pair: pair[0]):
            frames = self.of_video(first)
            similarities += [video_similarity(frames, self.of_video(second)) for _, second in several]
        return np.array(similarities, dtype=np.float64)


def _candidates(media: Media, frames: _Frames, *, min_similarity: float) -> Pairs:
    """Return the pairs of videos to compare."""
    sample = sample_frames(frames.counts)
    pairs = [
        near_pairs(
            frames.take(sample), frames.video[frames.positions[sample]].astype(np.int64), min_similarity=min_similarity
        )
    ]
    row, numbers = 0, RowNumbers.of(media.table.overlay)
    for batch in media.table.scan(["original", "neighbours", "neighbour_similarity"]):
        pairs.append(_pairs_of(batch, frames.video, row, min_similarity, numbers))
        row += batch.num_rows
    rows = np.concatenate(pairs)
    return unique_pairs(rows[:, 0], rows[:, 1])


def _pairs_of(
    batch: pa.RecordBatch, video: npt.NDArray[np.int32], start: int, min_similarity: float, numbers: RowNumbers
) -> Pairs:
    """Return the pairs of videos of the rows in a batch with their neighbours and exact copies."""
    original = numbers.rows(batch.column(0).fill_null(-1).to_numpy(zero_copy_only=False))
    copies = np.flatnonzero(original >= 0)
    indices = np.flatnonzero(batch.column(1).is_valid().to_numpy(zero_copy_only=False))
    near = batch.column(1).take(pa.array(indices))
    k = near.type.list_size
    rows = numbers.rows(near.flatten().fill_null(-1).to_numpy(zero_copy_only=False))
    similarity = batch.column(2).take(pa.array(indices)).flatten().fill_null(-2).to_numpy(zero_copy_only=False)
    close = (rows >= 0) & (similarity >= min_similarity)
    one = np.concatenate([copies, np.repeat(indices, k)[close]]) + start
    other = np.concatenate([original[copies], rows[close]])
    first, second = video[one], video[other]
    valid = (first >= 0) & (second >= 0)
    return unique_pairs(first[valid], second[valid])


def _matching(media: Media, condition: Condition, videos: list[dict[str, Any]]) -> npt.NDArray[np.bool_]:
    """Return the mask of videos with media that meet a condition: bool, shape (V,)."""
    if condition == EVERYTHING:
        return np.ones(len(videos), dtype=bool)
    rows = media.query("SELECT DISTINCT video_id FROM chosen", condition, ["video_id"])
    ids = set(rows["video_id"].to_pylist())
    return np.array([each["video_id"] in ids for each in videos], dtype=bool)


def _equal(videos: list[dict[str, Any]], allowed: npt.NDArray[np.bool_]) -> tuple[Pairs, npt.NDArray[np.float64]]:
    """Return each video with the first one of equal content, and similarities of 1."""
    first: dict[bytes, int] = {}
    pairs = []
    for number, each in enumerate(videos):
        if allowed[number] and each["content_hash"] is not None:
            before = first.setdefault(each["content_hash"], number)
            pairs += [(before, number)] if before != number else []
    return np.array(pairs, dtype=np.int64).reshape(-1, 2), np.ones(len(pairs))


def _grouped(
    media: Media,
    videos: list[dict[str, Any]],
    alike: tuple[Pairs, npt.NDArray[np.float64]],
    threshold: float,
    limit: int | None,
) -> list[DuplicateGroup]:
    pairs, similarity = alike
    count, best = len(videos), np.full(len(videos), -1.0)
    for side in (0, 1):
        np.maximum.at(best, pairs[:, side], similarity)
    _, group = connected_components(count, pairs[:, 0], pairs[:, 1])
    members: dict[int, list[int]] = {}
    for number in np.unique(pairs).tolist():
        members.setdefault(int(group[number]), []).append(number)
    largest = sorted(members.values(), key=lambda each: (-len(each), each[0]))
    return [_group(media.dataset_id, videos, each, best, threshold) for each in largest[:limit]]


def _group(
    dataset_id: str, videos: list[dict[str, Any]], members: list[int], best: npt.NDArray[np.float64], threshold: float
) -> DuplicateGroup:
    keep, reason = _best(videos[number] for number in members)
    name = f"{VIDEOS} {threshold:g} {videos[members[0]]['video_id']}"
    paths = [videos[number]["path"] for number in members]
    return DuplicateGroup(
        group_id=content_group_id(dataset_id, name.encode()),
        threshold=threshold,
        similarity=min(float(best[members].max()), 1.0),
        media_ids=[videos[number]["video_id"] for number in members],
        file_names=[file_name(path) for path in paths],
        paths=paths,
        keep=keep["video_id"],
        keep_reason=reason,
        confidence=float(np.clip(best[members].min(), 0, 1)),
    )


def _best(videos: Iterable[dict[str, Any]]) -> tuple[dict[str, Any], str]:
    """Return the best video to keep, with the reason: the largest, then the longest, then by the last criteria."""
    members = list(videos)
    size = len(members)
    criteria = [Criterion(np.array([measure(each) for each in members])) for measure in _CRITERIA.values()]
    result = best_members(np.array([size]), criteria, np.arange(size), lambda tied: _files(members, tied))
    best, remaining = members[int(result.best[0])], size
    for predicate, left in zip(_CRITERIA, result.left[0].tolist(), strict=True):
        compared, remaining = remaining, left
        if remaining == 1 < compared:
            return best, f"{sentence(predicate, compared, size)}."
    return best, f"{sentence(LAST_WINS[LastCriterion(result.last[0])], int(result.compared[0]), size)}."


def _files(videos: list[dict[str, Any]], numbers: Numbers) -> MemberFiles:
    chosen = [videos[number] for number in numbers.tolist()]
    return MemberFiles.of([file_name(each["path"]) for each in chosen], [each["content_hash"] for each in chosen])


def _pixels(video: dict[str, Any]) -> float:
    return float((video["width"] or 0) * (video["height"] or 0))


def _seconds(video: dict[str, Any]) -> float:
    return float(video["duration_s"] or 0)


_CRITERIA = {"is the largest": _pixels, "is the longest": _seconds}
"""The criteria for the video to keep, by what the best one is."""
