"""The choice of media to remove and to keep."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from framedex.analysis.keeping import LastCriterion, MemberFiles
from framedex.browse.preferences import FIRST, LARGEST, LAST_WINS, OLDEST, PREFERENCES
from framedex.cleanup.choice import EXACT, CandidateRows, CleanupRequest, KeepRule, choose_rows
from framedex.core.arrays import RowIds
from framedex.errors import InvalidInput
from framedex.storage.media_rows import STANDING
from framedex.storage.table_names import IN_BASKET, KEEPER, KeeperMark

ISSUES = ("blur", "dark")
MEASURES = ("width", "height", "acutance", "size_bytes", "modified_at", "damage", *STANDING, "duplicate_similarity")
MARKS = (IN_BASKET, KEEPER)

known = st.sampled_from([1.0, 2.0, 2.01, 5.0, np.nan])
rows = st.lists(
    st.fixed_dictionaries(
        {
            "key": st.integers(-1, 4),
            **dict.fromkeys(ISSUES, st.sampled_from([0.5, 1.0, np.nan, np.nan])),
            **dict.fromkeys(MEASURES[:-1], known),
            "duplicate_similarity": st.floats(0.96, 1),
            IN_BASKET: st.sampled_from([np.nan, np.nan, 1.0]),
            KEEPER: st.sampled_from([np.nan, np.nan, KeeperMark.LAST, KeeperMark.CHOSEN]),
            "name": st.sampled_from(["a", "b", "aa"]),
            "content": st.sampled_from(["x", "y", None]),
        }
    ),
    max_size=25,
)


def candidates_of(table: list[dict[str, Any]]) -> CandidateRows:
    """Return candidate rows; groups have several members."""
    keys = [row["key"] for row in table]

    def files(row_ids: RowIds) -> MemberFiles:
        chosen = [table[int(row_id) - 10] for row_id in row_ids]
        return MemberFiles.of([row["name"] for row in chosen], [row["content"] for row in chosen])

    return CandidateRows(
        np.arange(10, 10 + len(table), dtype=np.uint64),
        ISSUES,
        np.array([key if keys.count(key) > 1 else -1 for key in keys], dtype=np.int64),
        None,
        np.array([[row[issue] for issue in ISSUES] for row in table]).reshape(-1, 2),
        {name: np.array([row[name] for row in table], dtype=np.float64) for name in (*MEASURES, *MARKS)},
        files,
    )


def best_of(table: list[dict[str, Any]], members: list[int], request: CleanupRequest) -> tuple[int, list[str]]:
    """Return the best row to keep and the deciding criteria."""
    criteria = []
    for preference in request.preferences:
        values = {
            member: float(preference.values({name: np.array([table[member][name]]) for name in MEASURES})[0])
            for member in members
        }
        if not (finite := [value for value in values.values() if not np.isnan(value)]):
            continue
        minimum = max(finite) - abs(max(finite)) * preference.relative - preference.absolute
        left = [member for member in members if values[member] >= minimum]
        criteria += [preference.wins] if len(left) < len(members) else []
        members = left
    if len(members) == 1:
        return members[0], criteria
    content = table[members[0]]["content"]
    equal = [each for each in members if content is not None and table[each]["content"] == content] or members[:1]
    if request.keep is KeepRule.FIRST or len(equal) == 1:
        return members[0], [*criteria, FIRST]
    shortest = sorted(equal, key=lambda each: len(table[each]["name"]))
    is_only = len(table[shortest[0]]["name"]) < len(table[shortest[1]]["name"])
    if equal != members:
        is_first = shortest[0] == members[0]
        return shortest[0], [*criteria, FIRST if is_first else LAST_WINS[LastCriterion.EQUAL_NAME]]
    if is_only:
        return shortest[0], [*criteria, LAST_WINS[LastCriterion.NAME]]
    has_longer = len(table[shortest[-1]]["name"]) > len(table[shortest[0]]["name"])
    return shortest[0], [*criteria, *(["names"] if has_longer else []), FIRST]


@pytest.mark.slow
@given(rows, st.sampled_from([0.96, EXACT]), st.sampled_from(["best", "first", "oldest", "largest"]), st.booleans())
def test_choose_rows__law(table: list[dict[str, Any]], duplicates: float | str, keep: str, basket: bool) -> None:
    """Each group keeps a row: what people chose, else the best without an issue and outside the basket, if there is."""
    request = CleanupRequest.parse(duplicates, list(ISSUES), keep, basket)
    candidates = candidates_of(table)
    decision = choose_rows(candidates, request)
    flagged = [any(not np.isnan(row[issue]) for issue in ISSUES) for row in table]
    in_basket, chosen = ([row[name] == value for row in table] for name, value in zip(MARKS, (1, 2), strict=True))
    named = [flagged[index] or (basket and in_basket[index]) for index in range(len(table))]
    removed, kept, kept_index = list(named), [False] * len(table), [-1] * len(table)
    reasons: list[str | None] = [None] * len(table)
    for key in {int(key) for key in candidates.key if key >= 0}:
        members = [index for index, each in enumerate(candidates.key) if each == key]
        sound = [index for index in members if not flagged[index]]
        ranks = {each: (not chosen[each], not chosen[each] and flagged[each], not chosen[each] and in_basket[each])
                 for each in members}  # fmt: skip
        wanted = [each for each in members if ranks[each] == min(ranks.values())]
        for index in members:
            assert (decision.members[index], decision.sound[index]) == (len(members), len(sound))
            assert decision.unwanted[index] == sum(in_basket[each] for each in members)
        best, criteria = best_of(table, wanted, request)
        among = "of the best, " if len(criteria) > 1 else ""
        kept[best], reasons[best] = True, f"{among}it {criteria[-1]}" if criteria else ""
        for index in members:
            removed[index], kept_index[index] = True, best
    removed = [each and not kept[index] and not chosen[index] for index, each in enumerate(removed)]
    assert decision.named.tolist() == named
    assert decision.removed.tolist() == removed
    assert decision.kept.tolist() == kept
    assert decision.kept_index.tolist() == kept_index
    assert decision.reasons.take(pa.array(decision.reason, mask=decision.reason < 0)).to_pylist() == reasons


def test_parse__keep_rules() -> None:
    """Near-duplicates keep the best of the group, equal files the oldest; other rules decide as named."""
    assert CleanupRequest.parse(0.97, (), "best").preferences == PREFERENCES
    assert CleanupRequest.parse(EXACT, (), "best").preferences == (OLDEST,)
    assert CleanupRequest.parse(EXACT, (), "largest").preferences == (LARGEST,)
    assert CleanupRequest.parse(1, (), "oldest").preferences == (OLDEST,)
    assert CleanupRequest.parse(0.96, (), "first").preferences == ()
    assert CleanupRequest.parse(None, "blur", "best").issues == {"blur": 0.0}
    assert CleanupRequest.parse(None, {"blur": 0.7, "dark": 1}, "best").issues == {"blur": 0.7, "dark": 1.0}


@pytest.mark.parametrize(
    ("duplicates", "issues", "keep", "message"),
    [
        (None, (), "best", "name what to remove"),
        (None, {}, "best", "name what to remove"),
        (1.01, (), "best", r"\(if not 'exact' or 'near'\) must be a number from 0\.96 to 1, not 1\.01"),
        (float("nan"), (), "best", "not nan"),
        (True, (), "best", "not True"),
        (0.5, (), "best", "not 0.5: near-duplicates are known at the levels 0.96, 0.97"),
        ("nearly", (), "best", "not 'nearly'"),
        (0.99, ["blurred"], "best", "no issue 'blurred'; there are: blur"),
        (0.99, [7], "best", "no issue 7"),
        (0.99, [["blur"]], "best", r"no issue \['blur'\]"),
        (0.99, [{}], "best", "no issue {}"),
        (np.array([0.9, 0.99]), (), "best", r"duplicates \(if not 'exact' or 'near'\) must be a number"),
        (0.99, (), np.array(["best", "first"]), "keep must be one of"),
        (0.99, 7, "best", "issues must be a list of names"),
        (0.99, {"blur": 1.5}, "best", r"issues\['blur'\] must be a confidence from 0 to 1, not 1.5"),
        (0.99, {"blur": None}, "best", "not None"),
        (0.99, ["duplicates"], "best", "none of them would stay; use duplicates="),
        (0.99, (), "worst", "keep must be one of best, first, oldest, largest, not 'worst'"),
    ],
)
def test_parse__refuses(duplicates: Any, issues: Any, keep: Any, message: str) -> None:
    """Invalid arguments are named with the valid ones; the issue of all duplicates would keep none."""
    with pytest.raises(InvalidInput, match=message):
        CleanupRequest.parse(duplicates, issues, keep)
