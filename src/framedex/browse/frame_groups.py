"""Near-duplicate groups that also join frames of one video, which are computed on request."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from framedex.analysis.components import connected_components
from framedex.analysis.neighbours import nearest, unique_rows
from framedex.core.masks import true_places
from framedex.records import DUPLICATE_LEVELS
from framedex.storage.condition import Condition
from framedex.storage.copy_pairs import read_descriptors
from framedex.storage.media import Media
from framedex.storage.media_rows import DUPLICATES
from framedex.storage.table_versions import ROW_ID

_ROUNDING = 1e-6
_FIRST_NUMBER = 1 << 31
"""The first number of groups that are computed on request; stored groups have lower ones."""


def groups_within_videos(media: Media, condition: Condition, level: int, limit: int | None) -> pa.Table:
    """Return near-duplicate groups as ``key``, ``row_ids`` and ``similarity``, largest first.

    Frames of one video are compared with each other, one video at a time, and joined with the stored groups. The
    similarity of each member is that to the most similar other image or frame, of its own video, too.

    Args:
        media: the media.
        condition: the condition that members must meet.
        level: number of the level of similarity.
        limit: maximum number of groups.
    """
    chosen = set(media.row_ids(condition).tolist())
    names = ["video_id", DUPLICATES[level], "original", "duplicate_similarity"]
    rows = media.table.scan(names, row_ids=True).read_all()
    row_ids = rows[ROW_ID].to_numpy()
    group = rows[DUPLICATES[level]].fill_null(-1).to_numpy()
    has_vector = rows["original"].is_valid().to_numpy()
    encoded = rows["video_id"].combine_chunks().dictionary_encode().indices
    video = encoded.fill_null(-1).to_numpy(zero_copy_only=False)
    is_chosen = np.isin(row_ids, np.array(sorted(chosen), dtype=row_ids.dtype))
    pairs = [_stored(group, is_chosen)]
    order = np.flatnonzero(is_chosen & (video >= 0) & has_vector)
    order = order[np.argsort(video[order], kind="stable")]
    by_video = np.split(order, np.flatnonzero(np.diff(video[order])) + 1)
    similarity = rows["duplicate_similarity"].fill_null(-1).to_numpy().copy()
    limit_of_pairs = DUPLICATE_LEVELS[level] - _ROUNDING
    pairs += [_near(media, frames, limit_of_pairs, similarity) for frames in by_video if len(frames) > 1]
    a, b = (np.concatenate([each[end] for each in pairs]) for end in (0, 1))
    component = connected_components(len(row_ids), a, b)[1]
    members = np.flatnonzero(is_chosen & (np.bincount(component)[component] > 1))
    members = members[np.argsort(component[members], kind="stable")]
    parts = [part for part in np.split(members, np.flatnonzero(np.diff(component[members])) + 1) if len(part) > 1]
    parts.sort(key=lambda part: (-len(part), int(part[0])))
    parts = parts[:limit]
    keys = [int(group[part[0]]) if (group[part] == group[part[0]]).all() and group[part[0]] >= 0
            else _FIRST_NUMBER + int(part[0]) for part in parts]  # fmt: skip
    lists = pa.array([row_ids[part].tolist() for part in parts], pa.list_(pa.uint64()))
    values = pa.array([similarity[part].tolist() for part in parts], pa.list_(pa.float64()))
    return pa.table({"key": pa.array(keys, pa.int64()), "row_ids": lists, "similarity": values})


def _stored(group: npt.NDArray[np.int32], is_chosen: npt.NDArray[np.bool_]) -> tuple[npt.NDArray[np.int64], ...]:
    """Return pairs of rows that connect the members of each stored group."""
    members = np.flatnonzero(is_chosen & (group >= 0))
    members = members[np.argsort(group[members], kind="stable")]
    same = group[members[1:]] == group[members[:-1]]
    return members[:-1][same], members[1:][same]


def _near(
    media: Media, frames: npt.NDArray[np.int64], limit: float, similarity: npt.NDArray[np.float32]
) -> tuple[npt.NDArray[np.int64], ...]:
    """Return pairs of frames of at least a similarity, among their nearest neighbours.

    Frames without a copy descriptor, in a dataset that has them, are in no pair.

    Args:
        media: the media.
        frames: ascending rows.
        limit: the similarity.
        similarity: float32, shape (rows,): raised to the similarity of each frame to the most similar other one.
    """
    described, vectors = read_descriptors(media.table, frames)
    frames = frames[described]
    if len(frames) < 2:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    first, inverse = unique_rows(vectors)
    graph = nearest(vectors[first])
    row, place = true_places(graph.similarity >= limit)
    copies = np.flatnonzero(first[inverse] != np.arange(len(frames)))
    nearest_one = graph.similarity.max(axis=1, initial=-1)
    nearest_one[np.bincount(inverse) > 1] = 1
    similarity[frames] = np.maximum(similarity[frames], nearest_one[inverse])
    return (
        np.concatenate([frames[first[row]], frames[copies]]),
        np.concatenate([frames[first[graph.rows[row, place]]], frames[first[inverse[copies]]]]),
    )
