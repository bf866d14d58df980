"""Groups of videos that repeat each other: near-duplicates by their frames, and equal files."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from framedex.analysis.components import connected_components
from framedex.analysis.video_similarity import Pairs, near_pairs, sampled, unique_pairs, video_similarity
from framedex.browse.explore import file_name
from framedex.browse.issues import check_limit
from framedex.checks import check_fraction
from framedex.ids import content_group_id
from framedex.records import Condition, DuplicateGroup
from framedex.storage.media import EVERYTHING, Media
from framedex.storage.tables import StoredVectors
from framedex.storage.videos import VIDEOS, read_videos, videos_path

_COLUMNS = ("video_id", "path", "content_hash", "width", "height", "duration_s")
_MARGIN = 0.05  # frames this much less alike than videos should be make their videos candidates
_MOST_FRAMES = 4096  # of a video that are compared, evenly spread

Numbers = npt.NDArray[np.int64]


def similar_videos(
    media: Media, condition: Condition, *, similarity: float, exact: bool, limit: int | None = None
) -> list[DuplicateGroup]:
    """Return the groups of videos that are alike, largest first, then in the order of their first members.

    Two videos are alike by :func:`framedex.analysis.video_similarity.video_similarity`; a group holds what is connected
    by pairs that are at least that similar. Compared are videos of which two frames are neighbours in the dataset's
    graph, or in that of up to eight frames of each video: the former finds parts of long videos, the latter videos that
    hardly move, whose own frames are all the neighbours that their frames have.

    Args:
        media: what is looked at.
        condition: videos count that have a frame which meets it.
        similarity: minimum similarity in [0, 1].
        exact: instead, groups of equal files.
        limit: at most so many groups.

    Raises:
        InvalidInput: the similarity is outside [0, 1], or the limit is no count.
    """
    check_limit(limit)
    check_fraction("similarity", similarity, "a similarity")
    if not media.has_videos:
        return []
    videos = read_videos(videos_path(media.table.path), media.generation.tables[VIDEOS], _COLUMNS).to_pylist()
    if exact:
        return _grouped(media, videos, _equal(videos, _chosen(media, condition, videos)), 1.0, limit)
    frames = _Frames.of(media, videos)
    candidates = _candidates(media, frames, least=similarity - _MARGIN)
    allowed = _chosen(media, condition, videos)
    candidates = candidates[allowed[candidates].all(axis=1)]
    alike = frames.alike(candidates)
    found = alike >= similarity
    return _grouped(media, videos, (candidates[found], alike[found]), similarity, limit)


@dataclass(frozen=True)
class _Frames:
    """The frames of V videos that have an embedding.

    Attributes:
        video: shape (rows of the media table,): the number of the video of each row; -1 for other rows.
        places: rows of the frames, those of one video after those of another.
        counts: shape (V,): how many frames each video has.
        vectors: reads embeddings, by places in *places* sorted by row.
    """

    video: npt.NDArray[np.int32]
    places: Numbers
    counts: Numbers
    vectors: StoredVectors

    @classmethod
    def of(cls, media: Media, videos: list[dict[str, Any]]) -> "_Frames":
        number = pa.array([each["video_id"] for each in videos], pa.string())
        parts, has_vector = [np.empty(0, dtype=np.int32)], [np.empty(0, dtype=bool)]
        for batch in media.table.scan(["video_id", "frame_number"]):
            found = pc.index_in(batch.column(0), value_set=number)
            parts.append(found.fill_null(-1).to_numpy(zero_copy_only=False))
            has_vector.append(batch.column(1).is_valid().to_numpy(zero_copy_only=False))
        video = np.concatenate(parts)
        rows = np.flatnonzero(np.concatenate(has_vector) & (video >= 0))
        places = rows[np.argsort(video[rows], kind="stable")]
        counts = np.bincount(video[rows], minlength=len(videos)).astype(np.int64)
        return cls(video, places, counts, StoredVectors(media.table, np.sort(places)))

    def take(self, places: Numbers) -> npt.NDArray[np.float32]:
        """Return the embeddings of some places among :attr:`places`."""
        return self.vectors.take(np.searchsorted(np.sort(self.places), self.places[places]))

    def of_video(self, number: int) -> npt.NDArray[np.float32]:
        """Return the embeddings of a video: float32, shape (frames, D)."""
        start = int(self.counts[:number].sum())
        return self.take(start + sampled(self.counts[number : number + 1], _MOST_FRAMES))

    def alike(self, pairs: Pairs) -> npt.NDArray[np.float64]:
        """Return how alike videos are; two are in memory at a time."""
        found = []
        for first, several in groupby(pairs.tolist(), key=lambda pair: pair[0]):
            one = self.of_video(first)
            found += [video_similarity(one, self.of_video(second)) for _, second in several]
        return np.array(found, dtype=np.float64)


def _candidates(media: Media, frames: _Frames, *, least: float) -> Pairs:
    """Return pairs of videos that are to be compared."""
    some = sampled(frames.counts)
    pairs = [near_pairs(frames.take(some), frames.video[frames.places[some]].astype(np.int64), least=least)]
    row = 0
    for batch in media.table.scan(["original", "neighbours", "neighbour_similarity"]):
        pairs.append(_pairs_of(batch, frames.video, row, least))
        row += batch.num_rows
    found = np.concatenate(pairs)
    return unique_pairs(found[:, 0], found[:, 1])


def _pairs_of(batch: pa.RecordBatch, video: npt.NDArray[np.int32], start: int, least: float) -> Pairs:
    """Return the pairs of videos that the rows of a batch make with their neighbours and with their exact copies."""
    original = batch.column(0).fill_null(-1).to_numpy(zero_copy_only=False)
    copies = np.flatnonzero(original >= 0)
    listed = np.flatnonzero(batch.column(1).is_valid().to_numpy(zero_copy_only=False))
    near = batch.column(1).take(pa.array(listed))
    k = near.type.list_size
    rows = near.flatten().fill_null(-1).to_numpy(zero_copy_only=False)
    similarity = batch.column(2).take(pa.array(listed)).flatten().fill_null(-2).to_numpy(zero_copy_only=False)
    close = (rows >= 0) & (similarity >= least)
    one = np.concatenate([copies, np.repeat(listed, k)[close]]) + start
    other = np.concatenate([original[copies], rows[close]])
    first, second = video[one], video[other]
    both = (first >= 0) & (second >= 0)
    return unique_pairs(first[both], second[both])


def _chosen(media: Media, condition: Condition, videos: list[dict[str, Any]]) -> npt.NDArray[np.bool_]:
    """Return which videos have media that meet a condition: bool, shape (V,)."""
    if condition == EVERYTHING:
        return np.ones(len(videos), dtype=bool)
    found = media.query("SELECT DISTINCT video_id FROM chosen", condition, ["video_id"])
    ids = set(found["video_id"].to_pylist())
    return np.array([each["video_id"] in ids for each in videos], dtype=bool)


def _equal(videos: list[dict[str, Any]], allowed: npt.NDArray[np.bool_]) -> tuple[Pairs, npt.NDArray[np.float64]]:
    """Return each video with the first one of the same content, and similarities of 1."""
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
    kept, reason = _best(videos[number] for number in members)
    named = f"{VIDEOS} {threshold:g} {videos[members[0]]['video_id']}"
    paths = [videos[number]["path"] for number in members]
    return DuplicateGroup(
        group_id=content_group_id(dataset_id, named.encode()),
        threshold=threshold,
        similarity=min(float(best[members].max()), 1.0),
        media_ids=[videos[number]["video_id"] for number in members],
        file_names=[file_name(path) for path in paths],
        paths=paths,
        keep=kept["video_id"],
        keep_reason=reason,
        confidence=float(np.clip(best[members].min(), 0, 1)),
    )


def _best(videos: Iterable[dict[str, Any]]) -> tuple[dict[str, Any], str]:
    """Return the video that is best to keep, and why: the largest, of these the longest, of these the first."""
    left, reason = list(videos), "first"
    for words, measure in (("largest", _pixels), ("longest", _seconds)):
        most = max(map(measure, left))
        better = [each for each in left if measure(each) == most]
        if len(better) < len(left) and reason == "first":
            reason = words
        left = better
    return left[0], reason


def _pixels(video: dict[str, Any]) -> float:
    return float((video["width"] or 0) * (video["height"] or 0))


def _seconds(video: dict[str, Any]) -> float:
    return float(video["duration_s"] or 0)
