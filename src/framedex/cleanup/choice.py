"""Which media go because they repeat others or have an issue, and which stay in their place."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from framedex.analysis.keeping import best_members
from framedex.arrays import Mask, RowIds
from framedex.browse.duplicates import check_similarity, exact_key
from framedex.browse.preferences import OLDEST, PREFERENCES, Preference
from framedex.checks import check_fraction
from framedex.errors import InvalidInput
from framedex.issue_types import DUPLICATES, find_issue_type
from framedex.storage.condition import Condition
from framedex.storage.media import Media
from framedex.storage.tables import ROW_ID
from framedex.vql import duplicate_level

EXACT = "exact"
"""In place of a similarity: files of equal content."""
_MEASURES = ("width", "height", "sharpness", "size_bytes", "modified_at", "duplicate_similarity")
_NONE = -1

Numbers = npt.NDArray[np.int64]
Values = npt.NDArray[np.float64]


class KeepRule(StrEnum):
    """Which member of a group of duplicates stays."""

    BEST = "best"
    FIRST = "first"
    OLDEST = "oldest"
    LARGEST = "largest"


@dataclass(frozen=True)
class CleanupRequest:
    """What is to go.

    Attributes:
        duplicates: a similarity 0.96 to 1 from which media repeat each other, ``exact`` for equal files, or None.
        issues: by issue, the least confidence from which media go.
        keep: which of a group of duplicates stays.
    """

    duplicates: float | str | None
    issues: Mapping[str, float]
    keep: KeepRule

    @classmethod
    def parse(cls, duplicates: Any, issues: Any, keep: Any) -> "CleanupRequest":
        """Return what the arguments of :meth:`framedex.Dataset.plan_cleanup` ask for.

        Raises:
            InvalidInput: one cannot be used, or nothing is asked for.
        """
        given = _limits(issues)
        if duplicates is None and not given:
            raise InvalidInput(
                "say what is to go: duplicates (a similarity, or 'exact'), issues (their names), or both"
            )
        if not isinstance(keep, str) or keep not in list(KeepRule):
            raise InvalidInput(f"keep must be one of {', '.join(KeepRule)}, not {keep!r}")
        if duplicates is not None and not (isinstance(duplicates, str) and duplicates == EXACT):
            check_similarity("duplicates (if not 'exact')", duplicates)
        return cls(duplicates, given, KeepRule(keep))

    @property
    def preferences(self) -> tuple[Preference, ...]:
        """What decides which of a group stays; what is left then is taken in the order of ingestion."""
        match self.keep:
            case KeepRule.BEST:
                # What is inside of equal files is equal, so their age alone is compared.
                return (OLDEST,) if self.duplicates == EXACT else PREFERENCES
            case KeepRule.LARGEST:
                return PREFERENCES[:1]
            case KeepRule.OLDEST:
                return (OLDEST,)
            case KeepRule.FIRST:
                return ()


def _limits(issues: Any) -> dict[str, float]:
    given = [issues] if isinstance(issues, str) else issues
    if not isinstance(given, Mapping | Sequence):
        raise InvalidInput(f"issues must be a list of names, or the least confidence by name, not {issues!r}")
    for name in given:
        find_issue_type(name)
    limits = dict(given) if isinstance(given, Mapping) else dict.fromkeys(given, 0.0)
    for name, least in limits.items():
        if name == DUPLICATES.name:
            raise InvalidInput(
                "the issue 'duplicates' is of all that repeat each other, and none of them would stay; "
                "use duplicates=0.96, or another similarity, instead"
            )
        check_fraction(f"issues[{name!r}]", least, "a confidence")
    return {name: float(least) for name, least in limits.items()}


@dataclass(frozen=True)
class CandidateRows:
    """The N rows that have an issue, or are in a group, in row order.

    Attributes:
        row_ids: uint64, shape (N,).
        issues: the wanted issues that the dataset knows.
        key: int64, shape (N,): the number of the group; -1 for none.
        keys: what stands for the groups, by their numbers: hashes of contents; None if that is the number itself.
        confidence: float64, shape (N, I): of each issue that the row has, 0 to 1; NaN for none.
        columns: float64, shape (N,): measures by name.
    """

    row_ids: RowIds
    issues: tuple[str, ...]
    key: Numbers
    keys: pa.Array | None
    confidence: Values
    columns: dict[str, Values]

    @classmethod
    def read(cls, media: Media, condition: Condition, wanted: CleanupRequest) -> "CandidateRows":
        """Return the rows that meet a condition and have a wanted issue, or are in a group with another such row."""
        # A dataset that was indexed before an issue was known has no column of it.
        issues = tuple(issue for issue in wanted.issues if f"issue_{issue}" in media.table.schema.names)
        held, (group, looked_at) = [f"issue_{issue}" for issue in issues], _group_key(media, wanted)
        columns = sorted({*_MEASURES, *held, *looked_at})
        text = f"SELECT {ROW_ID}, {', '.join(columns)}, {_shared(group)} AS key FROM chosen"
        tests = " OR ".join(f"{column} IS NOT NULL" for column in ["key", *held])
        rows = media.query(f"SELECT * FROM ({text}) WHERE {tests} ORDER BY {ROW_ID}", condition, columns)
        key, keys = _numbered(rows["key"].combine_chunks(), wanted)
        confidence = np.full((len(rows), len(issues)), np.nan)
        for place, issue in enumerate(issues):
            values = _floats(rows[f"issue_{issue}"])
            # The table's confidences are of single precision, and so is what they are held against.
            at_least = values >= np.float32(wanted.issues[issue])
            confidence[at_least, place] = values[at_least]
        measures = {name: _floats(rows[name]) for name in _MEASURES}
        return cls(rows[ROW_ID].to_numpy(), issues, key, keys, confidence, measures)


def _group_key(media: Media, wanted: CleanupRequest) -> tuple[str | None, tuple[str, ...]]:
    """Return what the members of a group share, as an SQL expression, and the columns that it looks at."""
    if wanted.duplicates is None:
        return None, ()
    if wanted.duplicates == EXACT:
        return exact_key(media)
    column = f"duplicate_{duplicate_level(float(wanted.duplicates))}"
    return column, (column,)


def _shared(column: str | None) -> str:
    """Return what of a column several rows share, as an SQL expression; null for other values."""
    if column is None:
        return "NULL::INTEGER"
    return f"CASE WHEN {column} IS NOT NULL AND count(*) OVER (PARTITION BY {column}) > 1 THEN {column} END"


def _numbered(keys: pa.Array, wanted: CleanupRequest) -> tuple[Numbers, pa.Array | None]:
    if wanted.duplicates != EXACT:
        return np.asarray(keys.cast(pa.int64()).fill_null(_NONE).to_numpy(zero_copy_only=False)), None
    coded = pc.dictionary_encode(keys)
    return np.asarray(coded.indices.cast(pa.int64()).fill_null(_NONE).to_numpy(zero_copy_only=False)), coded.dictionary


def _floats(column: pa.ChunkedArray) -> Values:
    if pa.types.is_timestamp(column.type):
        return np.asarray(column.cast(pa.int64()).to_numpy(), dtype=np.float64) / 1e6
    return np.asarray(column.to_numpy(), dtype=np.float64)


@dataclass(frozen=True)
class CleanupDecision:
    """What becomes of the N rows that were found.

    Attributes:
        goes, stays: bool, shape (N,): removed; kept of a group of which others go.
        kept: int64, shape (N,): the place of the row that stays of the same group; -1 for none.
        members, whole: int64, shape (N,): how many the row's group has, and how many of them have no issue; 0 for none.
        alike: float64, shape (N,): the least similarity of a member of the group to what is most similar to it.
        words: why the best of a group is it, by code.
        word: int64, shape (N,): the code of those that stay; -1 for others.
    """

    goes: Mask
    stays: Mask
    kept: Numbers
    members: Numbers
    whole: Numbers
    alike: Values
    words: pa.Array
    word: Numbers


def choose_rows(found: CandidateRows, wanted: CleanupRequest) -> CleanupDecision:
    """Return what becomes of the rows that were found.

    Those that have an issue go. Of each group one row stays that has none; if all have, none does.
    """
    count = len(found.row_ids)
    has_issue: Mask = np.any(~np.isnan(found.confidence), axis=1)
    grouped = np.flatnonzero(found.key >= 0)
    _, group, sizes = np.unique(found.key[grouped], return_inverse=True, return_counts=True)
    whole = np.bincount(group, weights=~has_issue[grouped], minlength=len(sizes)).astype(np.int64)
    order = np.lexsort((grouped, group))
    candidates = grouped[order][~has_issue[grouped[order]]]
    best, words, word = _best(candidates, whole[whole > 0], found, wanted)
    kept_of = np.full(len(sizes), _NONE, dtype=np.int64)
    kept_of[whole > 0] = best
    stays = np.zeros(count, dtype=bool)
    stays[best] = True
    kept, members, without = (np.full(count, value, dtype=np.int64) for value in (_NONE, 0, 0))
    kept[grouped], members[grouped], without[grouped] = kept_of[group], sizes[group], whole[group]
    similarity = found.columns["duplicate_similarity"] if wanted.duplicates != EXACT else np.ones(count)
    least = np.full(len(sizes), np.inf)
    np.minimum.at(least, group, similarity[grouped])
    alike = np.full(count, np.nan)
    alike[grouped] = least[group]
    codes = np.full(count, _NONE, dtype=np.int64)
    codes[best] = word
    goes = has_issue | ((found.key >= 0) & (kept >= 0) & ~stays)
    return CleanupDecision(goes, stays, kept, members, without, alike, words, codes)


def _best(
    candidates: Numbers, sizes: Numbers, found: CandidateRows, wanted: CleanupRequest
) -> tuple[Numbers, pa.Array, Numbers]:
    """Return which rows stay of the groups, what may have decided in words, and what did, by code.

    Args:
        candidates: int64, ascending within each group, one group after another.
        sizes: int64, how many each group has, 1 or more.
        found: what was found.
        wanted: what is to go.
    """
    chosen = wanted.preferences
    words = pa.array([_words(chosen, code) for code in range(2 << len(chosen))], pa.string())
    starts = np.cumsum(sizes) - sizes
    if not chosen or not len(sizes):
        return candidates[starts], words, (sizes > 1).astype(np.int64)
    columns = {name: values[candidates] for name, values in found.columns.items()}
    kept = best_members(sizes, [each.criterion(columns) for each in chosen], np.arange(len(candidates)))
    before = np.concatenate([sizes[:, None], kept.left[:, :-1]], axis=1)
    narrowed = (kept.left < before).astype(np.int64)
    code = (kept.left[:, -1] > 1).astype(np.int64) + narrowed @ (2 << np.arange(len(chosen)))
    return candidates[kept.best], words, code


def _words(chosen: Sequence[Preference], code: int) -> str:
    """Return what a code says: bit 0 that the order of ingestion decided at last, the others which preference did."""
    parts = [each.wins for place, each in enumerate(chosen) if code >> (place + 1) & 1]
    return ", ".join([*parts, *(["first in order"] if code & 1 else [])])
