"""Duplicate groups: near-duplicates and equal files."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from framedex.analysis.keeping import BestMembers, MemberFiles, Positions, Values, best_members
from framedex.browse.equal_files import exact_key, read_files
from framedex.browse.explore import file_name
from framedex.browse.frame_groups import FrameGroups
from framedex.browse.issues import check_limit
from framedex.browse.member_facts import facts_of
from framedex.browse.preferences import (
    BY_PEOPLE,
    DENSEST,
    OF_NEAR,
    OLDEST,
    PREFERENCES,
    Columns,
    Preference,
    is_sure,
    measured,
    reason,
    with_best_copies,
)
from framedex.core.arrays import RowIds
from framedex.core.ids import Kind, content_group_id, group_id
from framedex.errors import InvalidInput
from framedex.records import DUPLICATE_LEVELS, DuplicateGroup
from framedex.storage.condition import Condition
from framedex.storage.copy_pairs import CROPPED, reasons_of
from framedex.storage.media import Media
from framedex.storage.media_rows import DUPLICATES, NEAR, NEAR_SIMILARITY, STANDING
from framedex.storage.objects import is_empty_object_view
from framedex.storage.table_names import IN_BASKET, KEEPER
from framedex.vql import duplicate_level, group_column


def duplicates(
    media: Media,
    condition: Condition,
    *,
    similarity: float,
    limit: int | None = None,
    within_videos: bool = False,
    of: str | None = None,
) -> list[DuplicateGroup]:
    """Return the groups of near-duplicates at a similarity threshold, largest first; ties by their first members.

    Args:
        media: the media to search.
        condition: the condition that members must meet; groups with only one such member are left out.
        similarity: minimum cosine similarity in [0.96, 1], rounded up to the next of the eight levels.
        limit: maximum number of groups.
        within_videos: also group frames of one video with each other.
        of: the id of a media item, whose group alone is returned.

    Raises:
        InvalidInput: the similarity is outside [0.96, 1], or the limit is not a count.
        NotFound: there is no such media item.
    """
    check_limit(limit)
    check_similarity("similarity", similarity)
    level = duplicate_level(similarity)
    column = group_column(similarity)
    if of is not None:
        condition = _with_group_of(media, condition, column, of)
    if within_videos and media.has_videos and media.parents is None:
        groups = FrameGroups.of(media, condition, level).lists(limit)
    else:
        groups = _grouped(media, condition, (column, (column,)), limit)
    members = _Members.of(media, groups, (*_MEASURES, *_LEVELS))
    alike, starts = members.columns["duplicate_similarity"], members.edges[:-1]
    if "similarity" in groups.column_names:
        alike = pc.list_flatten(groups["similarity"]).to_numpy()
    return members.groups(
        _preferences(media),
        ids=[group_id(media.dataset_id, Kind.DUPLICATE_GROUP, level, number) for number in groups["key"].to_pylist()],
        threshold=DUPLICATE_LEVELS[level],
        similarity=np.minimum(np.maximum.reduceat(alike, starts), 1),
        confidence=np.clip(np.minimum.reduceat(alike, starts), 0, 1),
        done=reasons_of(media.table, media.generation.tables, members.media_ids) if media.parents is None else {},
    )


def near_images(
    media: Media, condition: Condition, *, limit: int | None = None, of: str | None = None
) -> list[DuplicateGroup]:
    """Return the groups of images that are alike and not all copies of each other, largest first.

    A group has the copies of its images, too. Objects, and rows of a table of vectors, are in none. The arguments are
    those of :func:`duplicates`.
    """
    check_limit(limit)
    copies = DUPLICATES[0]
    if NEAR not in media.table.schema.names:
        return []
    if of is not None:
        condition = _with_group_of(media, condition, NEAR, of)
    is_near = f"bool_or({copies} IS NULL) OR count(DISTINCT {copies}) > 1"
    groups = _grouped(media, condition, (NEAR, (NEAR, copies)), limit, having=is_near)
    members = _Members.of(media, groups, (*_MEASURES, *_LEVELS, copies))
    owner = np.repeat(np.arange(len(groups)), np.diff(members.edges))
    members = replace(members, columns=with_best_copies(members.columns, owner, _preferences(media), members.files))
    alike, starts = members.columns["duplicate_similarity"], members.edges[:-1]
    return members.groups(
        (*BY_PEOPLE, *OF_NEAR),
        ids=[_near_id(media, number) for number in groups["key"].to_pylist()],
        threshold=NEAR_SIMILARITY,
        similarity=np.minimum(np.maximum.reduceat(alike, starts), 1),
        confidence=np.clip(np.minimum.reduceat(alike, starts), 0, 1),
        done=reasons_of(media.table, media.generation.tables, members.media_ids),
    )


def _near_id(media: Media, number: int) -> str:
    return group_id(media.dataset_id, Kind.DUPLICATE_GROUP, duplicate_level(NEAR), number)


def _with_group_of(media: Media, condition: Condition, column: str, media_id: str) -> Condition:
    """Return the condition for the members of the group that contains a media item, too."""
    if is_empty_object_view(media):
        return condition
    number = media.find(media_id, [column])[column]
    return condition.with_equal(column, number) if number is not None else Condition("FALSE")


class Kept(NamedTuple):
    """The members to keep.

    Attributes:
        ids: their media ids.
        columns: the columns that they follow from.
    """

    ids: pa.Array
    columns: frozenset[str]


def kept_ids(media: Media, numbers: pa.Array | None = None) -> Kept:
    """Return the ids of the members to keep: one of each group of :func:`duplicates` at the lowest similarity.

    Args:
        media: the media, all of them, or the objects.
        numbers: the numbers of the groups; by default all.
    """
    column = DUPLICATES[0]
    if column not in media.table.schema.names or is_empty_object_view(media):
        return Kept(pa.array([], pa.string()), frozenset([column]))
    chosen = Condition()
    if numbers is not None:
        test = f"coalesce({column} IN (SELECT unnest($1::INTEGER[])), FALSE)"
        chosen = Condition(test, (numbers.to_pylist(),), frozenset({column}))
    groups = _grouped(media, chosen, (column, (column,)), None)
    row_ids = pc.list_flatten(groups["row_ids"]).to_numpy()
    sizes = pc.list_value_length(groups["row_ids"]).to_numpy().astype(np.int64)
    measures = _Measures(media, row_ids)
    criteria = [each.criterion(measures) for each in _preferences(media)]
    files = partial(_files_at, media, row_ids)
    best = best_members(sizes, criteria, row_ids.astype(np.int64), files).best
    columns = frozenset(["media_id", "path", *exact_key(media)[1], column, IN_BASKET, KEEPER, *measures])
    return Kept(_values_at(media, row_ids[best], "media_id"), columns)


def _values_at(media: Media, row_ids: RowIds, column: str) -> pa.Array:
    """Return the values of a column for rows given by id; those of few rows without reading the column."""
    if len(row_ids) * _FEW < media.table.count():
        return media.take(row_ids.tolist(), [column])[column].combine_chunks()
    return media.values_at(row_ids, column)


def _files_at(media: Media, row_ids: RowIds, members: Positions) -> MemberFiles:
    """Return the files of members at some positions among all rows of the groups."""
    return read_files(media, row_ids[members])


class _Measures(dict[str, Values]):
    """The measures of rows by name, float64, shape (N,), each read when it is first needed."""

    def __init__(self, media: Media, row_ids: npt.NDArray[np.uint64]) -> None:
        super().__init__()
        self._media, self._row_ids = media, row_ids

    def __missing__(self, name: str) -> Values:
        if name not in self._media.table.schema.names:  # older tables lack some
            return np.full(len(self._row_ids), np.nan)
        return measured(pa.chunked_array([_values_at(self._media, self._row_ids, name)]))


def _preferences(media: Media) -> Sequence[Preference]:
    if media.parents is None:
        return *BY_PEOPLE, *PREFERENCES
    # The size of a file does not describe an object in it, and people put no objects into the basket.
    return tuple(each for each in PREFERENCES if each != DENSEST)


def check_similarity(name: str, value: Any) -> None:
    """Check a similarity threshold for near-duplicates.

    Raises:
        InvalidInput: it is not a number from the lowest of the eight levels to 1.
    """
    lowest = DUPLICATE_LEVELS[0]
    if isinstance(value, bool) or not isinstance(value, int | float) or not lowest <= value <= 1:
        *levels, last = map(str, DUPLICATE_LEVELS)
        raise InvalidInput(
            f"{name} must be a number from {lowest} to 1, not {value!r}: near-duplicates are known at the levels "
            f"{', '.join(levels)} and {last}"
        )


def exact_duplicates(media: Media, condition: Condition, *, limit: int | None = None) -> list[DuplicateGroup]:
    """Return the groups of files with equal content, largest first; ties by their first members.

    For objects, members are equal boxes in files with equal content. Broken files are included. Media without read
    files, for example from a table with embeddings, are in no group.

    Args:
        media: the media to search.
        condition: the condition that members must meet; groups with only one such member are left out.
        limit: maximum number of groups.

    Raises:
        InvalidInput: the limit is not a count.
    """
    check_limit(limit)
    groups = _grouped(media, condition, exact_key(media), limit)
    ones = np.ones(len(groups))
    # Equal files have equal content, so only their age and their names are compared.
    return _Members.of(media, groups, ("modified_at", IN_BASKET, KEEPER)).groups(
        (*BY_PEOPLE, OLDEST),
        ids=[content_group_id(media.dataset_id, digest) for digest in groups["key"].to_pylist()],
        threshold=1.0,
        similarity=ones,
        confidence=ones,
    )


def _grouped(
    media: Media, condition: Condition, key: tuple[str, tuple[str, ...]], limit: int | None, *, having: str = "TRUE"
) -> pa.Table:
    """Return the values of an expression that occur in several rows, as ``key``, with their row ids in row order.

    *having* is a further condition of these rows together.
    """
    bound = "" if limit is None else f" LIMIT {limit}"
    text = (
        f"SELECT {key[0]} AS key, list(_rowid ORDER BY _rowid) AS row_ids FROM chosen WHERE {key[0]} IS NOT NULL "
        f"GROUP BY key HAVING count(*) > 1 AND ({having}) ORDER BY count(*) DESC, min(_rowid){bound}"
    )
    return media.query(text, condition, list(key[1]))


_NOTHING: Mapping[tuple[str, str], str] = MappingProxyType({})
_MEASURES = (
    "width", "height", "acutance", "size_bytes", "modified_at", "duplicate_similarity", "damage", *STANDING,
    IN_BASKET, KEEPER,
)  # fmt: skip
_FEW = 1000  # rows in a table for each row that is read by itself
_SAME_SHAPE = 0.03  # difference of two ratios of sides
_LEVELS = (DUPLICATES[1], DUPLICATES[-1])  # groups without copies that keypoints show, and groups of equal pixels
_NO_COPY = "alike, no copy"


@dataclass(frozen=True)
class _Members:
    """The members of G groups, one group after another, N in all.

    Attributes:
        media_ids: media ids of the members.
        paths: paths of the members.
        edges: position of the first member of each group, and N at the end: G + 1 integers.
        row_ids: uint64, shape (N,), ascending within each group.
        columns: float64, shape (N,), measures by name.
        files: returns the files of the members at some positions.
    """

    media_ids: list[str]
    paths: list[str]
    edges: npt.NDArray[np.int64]
    row_ids: npt.NDArray[np.uint64]
    columns: Columns
    files: Callable[[Positions], MemberFiles]

    @classmethod
    def of(cls, media: Media, groups: pa.Table, measures: Sequence[str]) -> "_Members":
        row_ids = pc.list_flatten(groups["row_ids"]).to_numpy()
        sizes = pc.list_value_length(groups["row_ids"]).to_numpy()
        stored = [name for name in measures if name in media.table.schema.names]  # older tables lack some
        rows = media.table.take(row_ids.tolist(), ["media_id", "path", *stored])
        unknown = np.full(len(rows), np.nan)
        return cls(
            rows["media_id"].to_pylist(),
            rows["path"].to_pylist(),
            np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]),
            row_ids,
            {name: measured(rows[name]) if name in stored else unknown for name in measures},
            partial(_files_at, media, row_ids),
        )

    def best(self, preferences: Sequence[Preference]) -> BestMembers:
        """Return the best member of each group, with the effect of each preference."""
        criteria = [preference.criterion(self.columns) for preference in preferences]
        return best_members(np.diff(self.edges), criteria, self.row_ids.astype(np.int64), self.files)

    def groups(
        self,
        preferences: Sequence[Preference],
        *,
        ids: Sequence[str],
        threshold: float,
        similarity: Values,
        confidence: Values,
        done: Mapping[tuple[str, str], str] = _NOTHING,
    ) -> list[DuplicateGroup]:
        """Return the records of the groups with the given ids, similarities and confidences.

        *done* is what was done to copies, by (id of the copy, id of the original).
        """
        decision = self.best(preferences)
        sure = is_sure(decision, preferences, self.columns).tolist()
        partners, has_facts = self._partners(done), STANDING[0] in self.columns
        parts = zip(
            ids,
            pairwise(self.edges.tolist()),
            decision.best.tolist(),
            similarity.tolist(),
            confidence.tolist(),
            strict=True,
        )
        return [
            DuplicateGroup(
                group_id=identifier,
                threshold=threshold,
                similarity=highest,
                media_ids=self.media_ids[start:end],
                file_names=[file_name(path) for path in self.paths[start:end]],
                paths=self.paths[start:end],
                keep=self.media_ids[best],
                keep_reason=reason(decision, number, end - start, preferences, self.columns, is_sure=sure[number]),
                is_sure=sure[number],
                confidence=lowest,
                reasons=[self._reason(member, best, done, partners) for member in range(start, end)],
                facts=[facts_of(self.columns, member) for member in range(start, end)] if has_facts else [],
            )
            for number, (identifier, (start, end), best, highest, lowest) in enumerate(parts)
        ]

    def _partners(self, done: Mapping[tuple[str, str], str]) -> dict[int, list[int]]:
        """Return the members with which each member is a pair of copies."""
        position = {media_id: place for place, media_id in enumerate(self.media_ids)} if done else {}
        partners: dict[int, list[int]] = {}
        for ends in done:
            one, other = (position[each] for each in ends)
            partners.setdefault(one, []).append(other)
            partners.setdefault(other, []).append(one)
        return partners

    def _reason(
        self, member: int, kept: int, done: Mapping[tuple[str, str], str], partners: Mapping[int, Sequence[int]]
    ) -> str:
        """Return how a member is a copy of the one that is kept."""
        if member == kept:
            return "kept"
        if DUPLICATES[0] in self.columns and not self._are_together(member, kept, DUPLICATES[0]):
            return _NO_COPY
        others = [kept]
        if not self._are_together(member, kept):
            # Two sets of near-duplicates are compared a few times only, so the pair may be with another one of the set.
            others += [each for each in partners.get(member, ()) if self._are_together(each, kept)]
        for other in others:
            ends = self.media_ids[member], self.media_ids[other]
            if (reason := done.get(ends)) is not None:
                return reason
            if (reason := done.get(ends[::-1])) is not None:
                return f"the original of what is kept, which is {reason}" if tells_original(reason) else reason
        if "width" not in self.columns:
            return "same file"
        size, kept_size = (np.array([self.columns[name][at] for name in ("width", "height")]) for at in (member, kept))
        return difference(size, kept_size, is_equal=self._are_together(member, kept, DUPLICATES[-1]))

    def _are_together(self, member: int, other: int, level: str = DUPLICATES[1]) -> bool:
        """Return whether two members are in one group of a level."""
        numbers = self.columns.get(level)
        return numbers is not None and bool(numbers[member] >= 0 and numbers[member] == numbers[other])


def difference(size: Values, other_size: Values, *, is_equal: bool) -> str:
    """Return how an image differs from another one that its descriptor shows to be a near-duplicate.

    Args:
        size: width and height in pixels; NaN if unknown.
        other_size: those of the other image.
        is_equal: whether their similarity is of the highest level.
    """
    if np.isfinite([size, other_size]).all() and not np.array_equal(size, other_size):
        x, y = size / other_size
        return f"resized to {x:.0%}" if abs(x / y - 1) < _SAME_SHAPE else f"{size[0]:.0f}×{size[1]:.0f}, reshaped"
    return "same pixels" if is_equal else "recompressed or edited"


def tells_original(reason: str) -> bool:
    """Return whether only one of two copies can be the original: a part, or one with something around it."""
    return any(word in reason for word in (CROPPED, "framed", "shown on"))
