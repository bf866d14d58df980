"""Groups of media that repeat each other: near-duplicates and equal files."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from framedex.analysis.keeping import Values, best_members
from framedex.browse.explore import file_name
from framedex.browse.issues import check_limit
from framedex.browse.preferences import DENSEST, OLDEST, PREFERENCES, Columns, Preference, reason
from framedex.errors import InvalidInput
from framedex.ids import Kind, content_group_id, group_id
from framedex.records import DUPLICATE_LEVELS, Condition, DuplicateGroup
from framedex.storage.media import Media
from framedex.storage.media_rows import BOX
from framedex.storage.objects import is_empty_object_view
from framedex.vql import duplicate_level


def duplicates(
    media: Media, condition: Condition, *, similarity: float, limit: int | None = None
) -> list[DuplicateGroup]:
    """Return the groups of near-duplicates at a similarity, largest first, then in the order of their first members.

    Args:
        media: what is looked at.
        condition: which of it; groups of which one member is left are left out.
        similarity: minimum cosine similarity in [0.96, 1]; between two of the eight levels the stricter one is used.
        limit: at most so many groups.

    Raises:
        InvalidInput: the similarity is outside [0.96, 1], or the limit is no count.
    """
    check_limit(limit)
    check_similarity("similarity", similarity)
    level = duplicate_level(similarity)
    column = f"duplicate_{level}"
    found = _grouped(media, condition, (column, (column,)), limit)
    # What a file takes says nothing of an object in it.
    preferences = PREFERENCES if media.parents is None else tuple(each for each in PREFERENCES if each != DENSEST)
    measures = ("width", "height", "sharpness", "size_bytes", "modified_at", "duplicate_similarity")
    members = _Members.of(media, found, measures)
    alike, starts = members.columns["duplicate_similarity"], members.edges[:-1]
    return members.groups(
        preferences,
        ids=[group_id(media.dataset_id, Kind.DUPLICATE_GROUP, level, number) for number in found["key"].to_pylist()],
        threshold=DUPLICATE_LEVELS[level],
        similarity=np.minimum(np.maximum.reduceat(alike, starts), 1),
        confidence=np.clip(np.minimum.reduceat(alike, starts), 0, 1),
    )


def check_similarity(name: str, value: Any) -> None:
    """Check the similarity from which images are near-duplicates.

    Raises:
        InvalidInput: it is no number, or none from the lowest of the eight levels to 1.
    """
    least = DUPLICATE_LEVELS[0]
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= 1:
        *levels, last = map(str, DUPLICATE_LEVELS)
        raise InvalidInput(
            f"{name} must be a similarity from {least} to 1, not {value!r}: near-duplicates are known at the levels "
            f"{', '.join(levels)} and {last}"
        )


def exact_duplicates(media: Media, condition: Condition, *, limit: int | None = None) -> list[DuplicateGroup]:
    """Return the groups of files with equal content, largest first, then in the order of their first members.

    Of objects, groups of those with equal boxes in files with equal content. Broken files are among them. Media whose
    files were not read, as of a table that brings embeddings, are in none.

    Args:
        media: what is looked at.
        condition: which of it; groups of which one member is left are left out.
        limit: at most so many groups.

    Raises:
        InvalidInput: the limit is no count.
    """
    check_limit(limit)
    found = _grouped(media, condition, exact_key(media), limit)
    ones = np.ones(len(found))
    # What is inside of equal files is equal, so their age alone is compared.
    return _Members.of(media, found, ("modified_at",)).groups(
        (OLDEST,),
        ids=[content_group_id(media.dataset_id, digest) for digest in found["key"].to_pylist()],
        threshold=1.0,
        similarity=ones,
        confidence=ones,
    )


def exact_key(media: Media) -> tuple[str, tuple[str, ...]]:
    """Return what is equal for media of equal content, as an SQL expression, and the columns that it looks at.

    It is the hash of the file; of frames, which have that of their video, followed by the number; of objects, which
    have that of their media item, followed by the box.
    """
    key = "content_hash"
    columns: tuple[str, ...] = ("content_hash",)
    if media.has_videos:
        numbered = "content_hash || encode('#' || frame_number)"
        key = f"CASE WHEN frame_number IS NULL THEN content_hash ELSE {numbered} END"
        columns = (*columns, "frame_number")
    if media.parents is None or is_empty_object_view(media):
        return key, columns
    return f"({key}) || encode('@' || concat_ws(' ', {', '.join(BOX)}))", (*columns, *BOX)


def _grouped(media: Media, condition: Condition, key: tuple[str, tuple[str, ...]], limit: int | None) -> pa.Table:
    """Return the values of an expression that several rows share, as ``key``, with their ids in row order."""
    bound = "" if limit is None else f" LIMIT {limit}"
    text = (
        f"SELECT {key[0]} AS key, list(_rowid ORDER BY _rowid) AS row_ids FROM chosen WHERE {key[0]} IS NOT NULL "
        f"GROUP BY key HAVING count(*) > 1 ORDER BY count(*) DESC, min(_rowid){bound}"
    )
    return media.query(text, condition, list(key[1]))


@dataclass(frozen=True)
class _Members:
    """The members of G groups, one group after another, N in all.

    Attributes:
        media_ids: their ids.
        paths: their paths.
        edges: where each group starts, and N: G + 1 places.
        row_ids: uint64, shape (N,), ascending within each group.
        columns: float64, shape (N,), measures by name.
    """

    media_ids: list[str]
    paths: list[str]
    edges: npt.NDArray[np.int64]
    row_ids: npt.NDArray[np.uint64]
    columns: Columns

    @classmethod
    def of(cls, media: Media, found: pa.Table, measures: Sequence[str]) -> "_Members":
        row_ids = pc.list_flatten(found["row_ids"]).to_numpy()
        sizes = pc.list_value_length(found["row_ids"]).to_numpy()
        rows = media.table.take(row_ids.tolist(), ["media_id", "path", *measures])
        return cls(
            rows["media_id"].to_pylist(),
            rows["path"].to_pylist(),
            np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]),
            row_ids,
            {name: _numbers(rows[name]) for name in measures},
        )

    def groups(
        self,
        preferences: Sequence[Preference],
        *,
        ids: Sequence[str],
        threshold: float,
        similarity: Values,
        confidence: Values,
    ) -> list[DuplicateGroup]:
        """Return the records of the groups, whose ids, similarities and confidences are given."""
        criteria = [preference.criterion(self.columns) for preference in preferences]
        kept = best_members(np.diff(self.edges), criteria, self.row_ids.astype(np.int64))
        parts = zip(
            ids,
            pairwise(self.edges.tolist()),
            kept.best.tolist(),
            similarity.tolist(),
            confidence.tolist(),
            strict=True,
        )
        return [
            DuplicateGroup(
                group_id=identifier,
                threshold=threshold,
                similarity=most,
                media_ids=self.media_ids[start:end],
                file_names=[file_name(path) for path in self.paths[start:end]],
                paths=self.paths[start:end],
                keep=self.media_ids[best],
                keep_reason=reason(kept, number, end - start, preferences, self.columns),
                confidence=sure,
            )
            for number, (identifier, (start, end), best, most, sure) in enumerate(parts)
        ]


def _numbers(column: pa.ChunkedArray) -> Values:
    if pa.types.is_timestamp(column.type):
        return np.asarray(column.cast(pa.int64()).to_numpy(), dtype=np.float64) / 1e6
    return np.asarray(column.to_numpy(), dtype=np.float64)
