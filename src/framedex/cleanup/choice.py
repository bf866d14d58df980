"""The choice of media to remove, as duplicates or for an issue, and of media to keep in their place."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from framedex.analysis.keeping import LastCriterion, MemberFiles, best_members
from framedex.browse.duplicates import check_similarity
from framedex.browse.equal_files import exact_key, read_files
from framedex.browse.frame_groups import FIRST_NUMBER, FrameGroups
from framedex.browse.preferences import (
    LARGEST,
    LAST_WINS,
    OF_NEAR,
    OLDEST,
    PREFERENCES,
    Preference,
    is_sure,
    measured,
    with_best_copies,
)
from framedex.core.arrays import Mask, RowIds
from framedex.core.checks import check_flag, check_fraction
from framedex.core.counts import counted
from framedex.errors import Conflict, InvalidInput
from framedex.issue_types import CORRUPTED, FAULTS, find_issue_type
from framedex.issue_types import DUPLICATES as DUPLICATE_ISSUE
from framedex.storage.condition import Condition
from framedex.storage.media import Media
from framedex.storage.media_rows import DUPLICATES, NEAR, STANDING
from framedex.storage.table_names import IN_BASKET, KEEPER, KeeperMark
from framedex.storage.table_versions import ROW_ID
from framedex.vql import duplicate_level, group_column

EXACT = "exact"
"""The value that selects files of equal content instead of a similarity."""
_MEASURES = (
    "width", "height", "acutance", "size_bytes", "modified_at", "duplicate_similarity", "damage", *STANDING,
    IN_BASKET, KEEPER, DUPLICATES[0],
)  # fmt: skip
_NONE = -1
_UNDECIDED = frozenset(each.name for each in FAULTS.values()) - {CORRUPTED.name}
"""Issues of files that are not decoded and may be in order."""

Numbers = npt.NDArray[np.int64]
Values = npt.NDArray[np.float64]


class KeepRule(StrEnum):
    """A rule for the member of a duplicate group to keep."""

    BEST = "best"
    FIRST = "first"
    OLDEST = "oldest"
    LARGEST = "largest"


@dataclass(frozen=True)
class CleanupRequest:
    """The request for a clean-up plan.

    Attributes:
        duplicates: the minimum similarity of duplicates, 0.96 to 1; ``exact`` for equal files; ``near`` for all that
            are alike, copies or not; or None.
        issues: the minimum confidence by issue type.
        keep: the rule for the member of a duplicate group to keep.
        basket: whether the media in the basket are removed, too.
        unsure: whether duplicates are removed where it is not sure which one is the original, too.
        within_videos: whether frames of one video that are alike are duplicates, too.
    """

    duplicates: float | str | None
    issues: Mapping[str, float]
    keep: KeepRule
    basket: bool = False
    unsure: bool = False
    within_videos: bool = False

    @classmethod
    def parse(
        cls,
        duplicates: Any,
        issues: Any,
        keep: Any,
        basket: Any = False,
        unsure: Any = False,
        within_videos: Any = False,
    ) -> "CleanupRequest":
        """Return the request of the arguments of :meth:`framedex.Dataset.plan_cleanup`.

        Raises:
            InvalidInput: an argument cannot be used, or nothing is named that could be removed.
        """
        check_flag("basket", basket)
        check_flag("unsure", unsure)
        check_flag("within_videos", within_videos)
        min_confidences = _min_confidences(issues)
        if duplicates is None and not min_confidences and not basket:
            raise InvalidInput(
                "name what to remove: duplicates (a similarity, 'exact' or 'near'), issues (their names), the basket "
                "(True), or several of these"
            )
        if not isinstance(keep, str) or keep not in list(KeepRule):
            raise InvalidInput(f"keep must be one of {', '.join(KeepRule)}, not {keep!r}")
        if duplicates is not None and not (isinstance(duplicates, str) and duplicates in (EXACT, NEAR)):
            check_similarity("duplicates (if not 'exact' or 'near')", duplicates)
        if within_videos and (duplicates is None or isinstance(duplicates, str)):
            raise InvalidInput(
                f"within_videos goes with a similarity of duplicates, 0.96 to 1, not with duplicates={duplicates!r}"
            )
        return cls(duplicates, min_confidences, KeepRule(keep), basket, unsure, within_videos)

    @property
    def preferences(self) -> tuple[Preference, ...]:
        """The criteria for the member to keep, in order; for members that remain see :class:`LastCriterion`."""
        match self.keep:
            case KeepRule.BEST:
                # Equal files differ only in their age and their names.
                return (OLDEST,) if self.duplicates == EXACT else OF_NEAR if self.duplicates == NEAR else PREFERENCES
            case KeepRule.LARGEST:
                return (LARGEST,)
            case KeepRule.OLDEST:
                return (OLDEST,)
            case KeepRule.FIRST:
                return ()


def _min_confidences(issues: Any) -> dict[str, float]:
    names = [issues] if isinstance(issues, str) else issues
    if not isinstance(names, Mapping | Sequence):
        raise InvalidInput(f"issues must be a list of names, or the least confidence by name, not {issues!r}")
    for name in names:
        find_issue_type(name)
    minima = dict(names) if isinstance(names, Mapping) else dict.fromkeys(names, 0.0)
    for name, minimum in minima.items():
        if name == DUPLICATE_ISSUE.name:
            raise InvalidInput(
                "the issue 'duplicates' includes all members of each group, so that none of them would stay; "
                "use duplicates=0.96, or another similarity, instead"
            )
        if name in _UNDECIDED:
            raise InvalidInput(
                f"files with the issue {name!r} may be in order, so no clean-up removes them; delete_media(ds.where("
                f"vql.issues({name!r}))) takes them out of the dataset, and leaves the files"
            )
        check_fraction(f"issues[{name!r}]", minimum, "a confidence")
    return {name: float(minimum) for name, minimum in minima.items()}


@dataclass(frozen=True)
class CandidateRows:
    """The N rows with an issue, in a duplicate group or in the basket, in row order.

    Attributes:
        row_ids: uint64, shape (N,).
        issues: the requested issues for which the dataset has a column.
        key: int64, shape (N,): the number of the row's group; -1 for no group.
        keys: content hashes of the groups, by their numbers; None if groups have no hash.
        confidence: float64, shape (N, I): the confidence of each issue, 0 to 1; NaN for issues that the row lacks.
        columns: the measures by name, each float64, shape (N,); among them the basket and the :class:`KeeperMark`.
        files: returns the files of rows by their ids.
    """

    row_ids: RowIds
    issues: tuple[str, ...]
    key: Numbers
    keys: pa.Array | None
    confidence: Values
    columns: dict[str, Values]
    files: Callable[[RowIds], MemberFiles]

    @property
    def stays(self) -> Mask:
        """Rows that no rule removes as duplicates: bool, shape (N,).

        A person chose them; or they stand for frames of their video that an earlier clean-up removed, and that need not
        be like the frames that they are like themselves.
        """
        mark = self.columns[KEEPER]
        return np.asarray((mark == KeeperMark.CHOSEN) | ((mark == KeeperMark.LAST) & (self.key >= FIRST_NUMBER)))

    @classmethod
    def read(cls, media: Media, condition: Condition, request: CleanupRequest) -> "CandidateRows":
        """Return the rows that meet a condition and have a requested issue, are in the basket or share a group.

        Raises:
            Conflict: damage is requested, and an older version did not tell it from contents that it could not read.
        """
        if CORRUPTED.name in request.issues:
            _check_faults(media, condition)
        # A dataset that was indexed before an issue type was added has no column for it.
        issues = tuple(issue for issue in request.issues if f"issue_{issue}" in media.table.schema.names)
        confidences, (group, group_columns) = [f"issue_{issue}" for issue in issues], _group_key(media, request)
        stored = [name for name in _MEASURES if name in media.table.schema.names]  # older tables lack some
        columns = sorted({*stored, *confidences, *group_columns})
        source, alike = "chosen", "NULL::REAL"
        if request.within_videos and media.has_videos:
            assert request.duplicates is not None, "the flag goes with a similarity"
            frames = FrameGroups.of(media, condition, duplicate_level(request.duplicates))
            condition = replace(condition, relations={**condition.relations, "frames": frames.rows()})
            source, group, alike = f"chosen LEFT JOIN frames USING ({ROW_ID})", "frame_group", "frame_similarity"
        text = f"SELECT {ROW_ID}, {', '.join(columns)}, {alike} AS alike, {_shared(group)} AS key FROM {source}"
        tests = " OR ".join(f"{column} IS NOT NULL" for column in ["key", *confidences])
        if request.basket and IN_BASKET in stored:
            tests += f" OR {IN_BASKET}"
        rows = media.query(f"SELECT * FROM ({text}) WHERE {tests} ORDER BY {ROW_ID}", condition, columns)
        key, keys = _numbered(rows["key"].combine_chunks(), request)
        confidence = np.full((len(rows), len(issues)), np.nan)
        for number, issue in enumerate(issues):
            values = measured(rows[f"issue_{issue}"])
            # The table has confidences in single precision, so the minimum must have it, too.
            is_enough = values >= np.float32(request.issues[issue])
            confidence[is_enough, number] = values[is_enough]
        unknown = np.full(len(rows), np.nan)
        measures = {name: measured(rows[name]) if name in stored else unknown for name in _MEASURES}
        measures["duplicate_similarity"] = np.fmax(measures["duplicate_similarity"], measured(rows["alike"]))
        return cls(rows[ROW_ID].to_numpy(), issues, key, keys, confidence, measures, partial(read_files, media))


def _check_faults(media: Media, condition: Condition) -> None:
    """Check that all rows with an error say whether their file is damaged.

    Raises:
        Conflict: an older version wrote some, which did not tell damage from contents that it could not read.
    """
    columns = [name for name in ("error", "fault") if name in media.table.schema.names]
    unnamed = "fault IS NULL" if "fault" in columns else "TRUE"
    text = f"SELECT count(*) AS count FROM chosen WHERE error IS NOT NULL AND {unnamed}"
    if count := media.query(text, condition, columns)["count"][0].as_py():
        raise Conflict(
            f"an older version could not decode {counted(count, 'files')}, and did not tell damage from formats that "
            "it did not know: reindex first, which reads them again"
        )


def _group_key(media: Media, request: CleanupRequest) -> tuple[str | None, tuple[str, ...]]:
    """Return an SQL expression that is equal for the members of a group, and the columns that it uses."""
    if request.duplicates is None:
        return None, ()
    if request.duplicates == EXACT:
        return exact_key(media)
    column = group_column(request.duplicates)
    if column not in media.table.schema.names:  # of an older version, which knew no others that are alike
        column = DUPLICATES[0]
    return column, (column,)


def _shared(column: str | None) -> str:
    """Return an SQL expression for the values of a column that several rows share; null for other values."""
    if column is None:
        return "NULL::INTEGER"
    return f"CASE WHEN {column} IS NOT NULL AND count(*) OVER (PARTITION BY {column}) > 1 THEN {column} END"


def _numbered(keys: pa.Array, request: CleanupRequest) -> tuple[Numbers, pa.Array | None]:
    if request.duplicates != EXACT:
        return np.asarray(keys.cast(pa.int64()).fill_null(_NONE).to_numpy(zero_copy_only=False)), None
    coded = pc.dictionary_encode(keys)
    return np.asarray(coded.indices.cast(pa.int64()).fill_null(_NONE).to_numpy(zero_copy_only=False)), coded.dictionary


@dataclass(frozen=True)
class CleanupDecision:
    """The decisions about the N candidate rows.

    Attributes:
        named: bool, shape (N,): whether an issue or the basket names the row for removal.
        removed: bool, shape (N,): whether the row is removed.
        kept: bool, shape (N,): whether the row is kept in place of other members of its group.
        kept_index: int64, shape (N,): the index of the kept row of the same group; -1 for none.
        members: int64, shape (N,): the number of members of the row's group; 0 without a group.
        sound: int64, shape (N,): the number of members without an issue; 0 without a group.
        unwanted: int64, shape (N,): the number of members in the basket; 0 without a group.
        exact: bool, shape (N,): whether the group has files of equal content.
        cohesion: float64, shape (N,): the minimum over the group's members of the similarity to the nearest image.
        reasons: texts with the criterion that decided which member is kept.
        reason: int64, shape (N,): the number of the text of a kept row; -1 for other rows.
        n_unsure: the number of groups that lose no duplicates, because it is not sure which member is the original.
    """

    named: Mask
    removed: Mask
    kept: Mask
    kept_index: Numbers
    members: Numbers
    sound: Numbers
    unwanted: Numbers
    exact: Mask
    cohesion: Values
    reasons: pa.Array
    reason: Numbers
    n_unsure: int


def choose_rows(rows: CandidateRows, request: CleanupRequest) -> CleanupDecision:
    """Return the decisions about candidate rows.

    Rows with an issue and, if requested, those in the basket are removed. Each group keeps one row: one that a person
    chose; else one without an issue; of these, or if there is none of all, one that is not in the basket. Further rows
    that a person chose stay, too. Groups of which it is not sure which row is the original lose no duplicates, unless
    the request names them.
    """
    count = len(rows.row_ids)
    has_issue: Mask = np.any(~np.isnan(rows.confidence), axis=1)
    in_basket, is_chosen = rows.columns[IN_BASKET] > 0, rows.stays
    named = has_issue | in_basket if request.basket else has_issue
    grouped = np.flatnonzero(rows.key >= 0)
    _, group, sizes = np.unique(rows.key[grouped], return_inverse=True, return_counts=True)
    best, reasons, codes, sure = best_of_groups(grouped, group, len(sizes), rows, request)
    sure |= request.unsure
    kept = np.zeros(count, dtype=bool)
    kept[best] = True
    kept_index, members, sound, unwanted = (np.full(count, value, dtype=np.int64) for value in (_NONE, 0, 0, 0))
    kept_index[grouped], members[grouped] = best[group], sizes[group]
    sound[grouped] = np.bincount(group, weights=~has_issue[grouped], minlength=len(sizes))[group]
    unwanted[grouped] = np.bincount(group, weights=in_basket[grouped], minlength=len(sizes))[group]
    is_exact = request.duplicates == EXACT
    similarity = np.ones(count) if is_exact else rows.columns["duplicate_similarity"]
    minimum = np.full(len(sizes), np.inf)
    np.minimum.at(minimum, group, similarity[grouped])
    cohesion = np.full(count, np.nan)
    cohesion[grouped] = minimum[group]
    reason = np.full(count, _NONE, dtype=np.int64)
    reason[best] = codes
    is_copy = np.zeros(count, dtype=bool)
    is_copy[grouped] = sure[group]
    removed = (named | is_copy) & ~kept & ~is_chosen
    loses = np.zeros(len(sizes), dtype=bool)
    loses[group[~(named | kept | is_chosen)[grouped]]] = True
    exact = np.full(count, is_exact)
    return CleanupDecision(
        named, removed, kept, kept_index, members, sound, unwanted, exact, cohesion, reasons, reason,
        int(np.count_nonzero(loses & ~sure)),
    )  # fmt: skip


def best_of_groups(
    index: Numbers, group: Numbers, n_groups: int, rows: CandidateRows, request: CleanupRequest
) -> tuple[Numbers, pa.Array, Numbers, Mask]:
    """Return the row to keep of each of G groups, the texts of the reasons, the number of each group's reason.

    And whether each of these rows is shown to be the original: bool, shape (G,).

    Args:
        index: int64, shape (M,): the indices of the members among the candidate rows, ascending.
        group: int64, shape (M,): their groups, 0 to G - 1.
        n_groups: G.
        rows: the candidate rows.
        request: the request.
    """
    has_issue = np.any(~np.isnan(rows.confidence[index]), axis=1)
    in_basket, is_chosen = rows.columns[IN_BASKET][index] > 0, rows.stays[index]
    rank = np.where(is_chosen, 0, 1 + 2 * has_issue + in_basket)
    best_rank = np.full(n_groups, np.iinfo(np.int64).max)
    np.minimum.at(best_rank, group, rank)
    is_candidate = rank == best_rank[group]
    candidates, owner = index[is_candidate], group[is_candidate]
    order = np.argsort(owner, kind="stable")
    return _best(candidates[order], np.bincount(owner, minlength=n_groups), rows, request)


def _best(
    candidates: Numbers, sizes: Numbers, rows: CandidateRows, request: CleanupRequest
) -> tuple[Numbers, pa.Array, Numbers, Mask]:
    """Return the best candidate of each group; see :func:`best_of_groups`.

    Args:
        candidates: int64: indices of the candidates, group by group, ascending within each group.
        sizes: int64: the number of candidates of each group, 1 or more.
        rows: all candidate rows.
        request: the request.
    """
    preferences = request.preferences
    last = len(preferences) + 1
    if not preferences or not len(sizes):
        best, decided = candidates[np.cumsum(sizes) - sizes], np.where(sizes > 1, last, 0)
        return best, *_reason_texts(preferences, decided * 2), np.ones(len(sizes), dtype=bool)
    columns = {name: values[candidates] for name, values in rows.columns.items()}

    def files(members: Numbers) -> MemberFiles:
        return rows.files(rows.row_ids[candidates[members]])

    if preferences == OF_NEAR:
        columns = with_best_copies(columns, np.repeat(np.arange(len(sizes)), sizes), PREFERENCES, files)
    result = best_members(sizes, [each.criterion(columns) for each in preferences], np.arange(len(candidates)), files)
    before = np.concatenate([sizes[:, None], result.left[:, :-1], result.compared[:, None]], axis=1)
    decides = np.concatenate([(result.left == 1) & (before[:, :-1] > 1), result.left[:, -1:] > 1], axis=1)
    decided = np.where(decides.any(axis=1), decides.argmax(axis=1) + 1, 0)
    compared = np.take_along_axis(before, np.maximum(decided - 1, 0)[:, None], axis=1)[:, 0]
    decided += np.where(decided == last, result.last, 0)
    # A rule that a person named needs no evidence.
    is_rule = preferences not in (PREFERENCES, OF_NEAR)
    sure = np.ones(len(sizes), dtype=bool) if is_rule else is_sure(result, preferences, columns)
    return candidates[result.best], *_reason_texts(preferences, decided * 2 + (compared < sizes)), sure


def _reason_texts(preferences: Sequence[Preference], codes: Numbers) -> tuple[pa.Array, Numbers]:
    """Return the texts of the codes that occur, and the number of the text of each code.

    A code is twice the number of the criterion that decided, from 1 on, after the preferences each
    :class:`LastCriterion`, 0 for a group of one; and one more if other criteria had left out members before.
    """
    distinct, numbers = np.unique(codes, return_inverse=True)
    predicates = [*(each.wins for each in preferences), *(LAST_WINS[each] for each in LastCriterion)]
    texts = [
        f"{'of the best, ' if code % 2 else ''}it {predicates[code // 2 - 1]}" if code else ""
        for code in distinct.tolist()
    ]
    return pa.array(texts, pa.string()), numbers
