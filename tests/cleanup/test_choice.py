"""Which media go, and which stay in their place."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from framedex.browse.preferences import OLDEST, PREFERENCES
from framedex.cleanup.choice import EXACT, CandidateRows, CleanupRequest, choose_rows
from framedex.errors import InvalidInput

ISSUES = ("blur", "dark")
MEASURES = ("width", "height", "sharpness", "size_bytes", "modified_at", "duplicate_similarity")

known = st.sampled_from([1.0, 2.0, 2.01, 5.0, np.nan])
rows = st.lists(
    st.fixed_dictionaries(
        {
            "key": st.integers(-1, 4),
            **dict.fromkeys(ISSUES, st.sampled_from([0.5, 1.0, np.nan, np.nan])),
            **dict.fromkeys(MEASURES[:-1], known),
            "duplicate_similarity": st.floats(0.96, 1),
        }
    ),
    max_size=25,
)


def found_of(table: list[dict[str, Any]]) -> CandidateRows:
    """Return rows as they are found: of groups, those that have several members."""
    keys = [row["key"] for row in table]
    return CandidateRows(
        np.arange(10, 10 + len(table), dtype=np.uint64),
        ISSUES,
        np.array([key if keys.count(key) > 1 else -1 for key in keys], dtype=np.int64),
        None,
        np.array([[row[issue] for issue in ISSUES] for row in table]).reshape(-1, 2),
        {name: np.array([row[name] for row in table], dtype=np.float64) for name in MEASURES},
    )


def best(table: list[dict[str, Any]], members: list[int], wanted: CleanupRequest) -> tuple[int, list[str]]:
    """Return which of some rows is best to keep, and what decided, one preference after another."""
    decided = []
    for preference in wanted.preferences:
        values = {
            member: float(preference.values({name: np.array([table[member][name]]) for name in MEASURES})[0])
            for member in members
        }
        if not (there := [value for value in values.values() if not np.isnan(value)]):
            continue
        least = max(there) - abs(max(there)) * preference.relative - preference.absolute
        left = [member for member in members if values[member] >= least]
        decided += [preference.wins] if len(left) < len(members) else []
        members = left
    return members[0], [*decided, *(["first in order"] if len(members) > 1 else [])]


@given(rows, st.sampled_from([0.96, EXACT]), st.sampled_from(["best", "first", "oldest", "largest"]))
def test_decide__law(table: list[dict[str, Any]], duplicates: float | str, keep: str) -> None:
    """What has an issue goes; of each group one stays that has none, the best of those, unless all have one."""
    wanted = CleanupRequest.parse(duplicates, list(ISSUES), keep)
    found = found_of(table)
    decided = choose_rows(found, wanted)
    flagged = [any(not np.isnan(row[issue]) for issue in ISSUES) for row in table]
    goes, stays, kept = list(flagged), [False] * len(table), [-1] * len(table)
    words: list[str | None] = [None] * len(table)
    for key in {int(key) for key in found.key if key >= 0}:
        members = [place for place, each in enumerate(found.key) if each == key]
        whole = [place for place in members if not flagged[place]]
        for place in members:
            assert (decided.members[place], decided.whole[place]) == (len(members), len(whole))
        if not whole:
            continue
        chosen, why = best(table, whole, wanted)
        stays[chosen], words[chosen] = True, ", ".join(why)
        for place in members:
            goes[place], kept[place] = place != chosen, chosen
    assert decided.goes.tolist() == goes
    assert decided.stays.tolist() == stays
    assert decided.kept.tolist() == kept
    assert decided.words.take(pa.array(decided.word, mask=decided.word < 0)).to_pylist() == words
    # What stays for its group never goes for being a duplicate, and each group has one of them at most.
    assert not (decided.goes & decided.stays).any()


def test_parse__what_stays() -> None:
    """The best of near-duplicates is that of the groups; of equal files the oldest; else what is asked for."""
    assert CleanupRequest.parse(0.97, (), "best").preferences == PREFERENCES
    assert CleanupRequest.parse(EXACT, (), "best").preferences == (OLDEST,)
    assert CleanupRequest.parse(EXACT, (), "largest").preferences == PREFERENCES[:1]
    assert CleanupRequest.parse(1, (), "oldest").preferences == (OLDEST,)
    assert CleanupRequest.parse(0.96, (), "first").preferences == ()
    assert CleanupRequest.parse(None, "blur", "best").issues == {"blur": 0.0}
    assert CleanupRequest.parse(None, {"blur": 0.7, "dark": 1}, "best").issues == {"blur": 0.7, "dark": 1.0}


@pytest.mark.parametrize(
    ("duplicates", "issues", "keep", "message"),
    [
        (None, (), "best", "say what is to go"),
        (None, {}, "best", "say what is to go"),
        (1.01, (), "best", r"\(if not 'exact'\) must be a similarity from 0\.96 to 1, not 1\.01"),
        (float("nan"), (), "best", "not nan"),
        (True, (), "best", "not True"),
        (0.5, (), "best", "not 0.5: near-duplicates are known at the levels 0.96, 0.97"),
        ("near", (), "best", "not 'near'"),
        (0.99, ["blurred"], "best", "no issue 'blurred'; there are: blur"),
        (0.99, [7], "best", "no issue 7"),
        (0.99, [["blur"]], "best", r"no issue \['blur'\]"),
        (0.99, [{}], "best", "no issue {}"),
        (np.array([0.9, 0.99]), (), "best", r"duplicates \(if not 'exact'\) must be a similarity"),
        (0.99, (), np.array(["best", "first"]), "keep must be one of"),
        (0.99, 7, "best", "issues must be a list of names"),
        (0.99, {"blur": 1.5}, "best", r"issues\['blur'\] must be a confidence from 0 to 1, not 1.5"),
        (0.99, {"blur": None}, "best", "not None"),
        (0.99, ["duplicates"], "best", "none of them would stay; use duplicates="),
        (0.99, (), "worst", "keep must be one of best, first, oldest, largest, not 'worst'"),
    ],
)
def test_parse__refuses(duplicates: Any, issues: Any, keep: Any, message: str) -> None:
    """What cannot be used is named, with what would be right; the issue of all duplicates would leave none."""
    with pytest.raises(InvalidInput, match=message):
        CleanupRequest.parse(duplicates, issues, keep)
