"""Near-duplicate groups that also join frames of one video, which are computed on request."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from framedex.analysis.alike_runs import alike_runs
from framedex.analysis.components import connected_components
from framedex.core.arrays import RowIds
from framedex.records import DUPLICATE_LEVELS
from framedex.storage.condition import Condition
from framedex.storage.copy_pairs import read_descriptors
from framedex.storage.media import Media
from framedex.storage.media_rows import DUPLICATES
from framedex.storage.table_versions import ROW_ID

_ROUNDING = 1e-6
FIRST_NUMBER = 1 << 31
"""The first number of groups that are computed on request; stored groups have lower ones."""


@dataclass(frozen=True)
class FrameGroups:
    """The N members of near-duplicate groups of images and frames, in row order.

    Frames of one video are in a group if any two of them are alike; such groups and the stored ones that share a member
    are one group.

    Attributes:
        row_ids: uint64, shape (N,).
        key: int64, shape (N,): the number of the group; that of the stored group if it is one.
        similarity: float64, shape (N,): to the most similar other image or frame, of its own video, too.
    """

    row_ids: RowIds
    key: npt.NDArray[np.int64]
    similarity: npt.NDArray[np.float64]

    @classmethod
    def of(cls, media: Media, condition: Condition, level: int) -> "FrameGroups":
        """Return the groups of the media that meet a condition, one video at a time, at a level of similarity."""
        names = ["video_id", DUPLICATES[level], "original", "duplicate_similarity"]
        rows = media.table.scan(names, row_ids=True).read_all()
        row_ids = rows[ROW_ID].to_numpy()
        group = rows[DUPLICATES[level]].fill_null(-1).to_numpy()
        is_chosen = np.isin(row_ids, media.row_ids(condition))
        similarity = rows["duplicate_similarity"].fill_null(-1).to_numpy().copy()
        pairs = [_stored(group, is_chosen)]
        has_vector = rows["original"].is_valid().to_numpy()
        encoded = rows["video_id"].combine_chunks().dictionary_encode().indices
        video = encoded.fill_null(-1).to_numpy(zero_copy_only=False)
        order = np.flatnonzero(is_chosen & (video >= 0) & has_vector)
        order = order[np.argsort(video[order], kind="stable")]
        by_video = np.split(order, np.flatnonzero(np.diff(video[order])) + 1)
        least = DUPLICATE_LEVELS[level] - _ROUNDING
        pairs += [_alike(media, frames, least, similarity) for frames in by_video if len(frames) > 1]
        a, b = (np.concatenate([each[end] for each in pairs]) for end in (0, 1))
        component = connected_components(len(row_ids), a, b)[1]
        members = np.flatnonzero(is_chosen & (np.bincount(component)[component] > 1))
        if not len(members):
            return cls(row_ids[members], members, similarity[members].astype(np.float64))
        _, first, inverse = np.unique(component[members], return_index=True, return_inverse=True)
        stored = group[members]
        is_stored = (stored == stored[first][inverse]) & (stored >= 0)
        is_whole = np.bincount(inverse, ~is_stored, len(first)) == 0
        key = np.where(is_whole, stored[first], FIRST_NUMBER + members[first])[inverse].astype(np.int64)
        return cls(row_ids[members], key, similarity[members].astype(np.float64))

    def lists(self, limit: int | None) -> pa.Table:
        """Return the groups as ``key``, ``row_ids`` and ``similarity``, largest first; ties by their first members."""
        order = np.argsort(self.key, kind="stable")
        parts = np.split(order, np.flatnonzero(np.diff(self.key[order])) + 1) if len(order) else []
        parts.sort(key=lambda part: (-len(part), int(part[0])))
        parts = parts[:limit]
        keys = [int(self.key[part[0]]) for part in parts]
        lists = pa.array([self.row_ids[part].tolist() for part in parts], pa.list_(pa.uint64()))
        values = pa.array([self.similarity[part].tolist() for part in parts], pa.list_(pa.float64()))
        return pa.table({"key": pa.array(keys, pa.int64()), "row_ids": lists, "similarity": values})

    def rows(self) -> pa.Table:
        """Return a row for each member, with the columns ``_rowid``, ``frame_group`` and ``frame_similarity``."""
        return pa.table({ROW_ID: self.row_ids, "frame_group": self.key, "frame_similarity": self.similarity})


def _stored(group: npt.NDArray[np.int32], is_chosen: npt.NDArray[np.bool_]) -> tuple[npt.NDArray[np.int64], ...]:
    """Return pairs of rows that connect the members of each stored group."""
    members = np.flatnonzero(is_chosen & (group >= 0))
    members = members[np.argsort(group[members], kind="stable")]
    same = group[members[1:]] == group[members[:-1]]
    return members[:-1][same], members[1:][same]


def _alike(
    media: Media, frames: npt.NDArray[np.int64], least: float, similarity: npt.NDArray[np.float32]
) -> tuple[npt.NDArray[np.int64], ...]:
    """Return pairs of the frames of a video that connect the members of each group of frames that are all alike.

    Frames without a copy descriptor, in a dataset that has them, are in no pair.

    Args:
        media: the media.
        frames: ascending rows.
        least: the minimum similarity.
        similarity: float32, shape (rows,): raised to the similarity of each frame to the most similar other one.
    """
    described, vectors = read_descriptors(media.table, frames)
    frames = frames[described]
    first, nearest = alike_runs(vectors, least)
    similarity[frames] = np.maximum(similarity[frames], nearest)
    joins = np.flatnonzero(first != np.arange(len(frames)))
    return frames[joins], frames[first[joins]]
