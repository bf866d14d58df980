"""Positions of rows in a table by id."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from framedex.storage.row_positions import positions_of

_IDS = st.lists(st.one_of(st.integers(0, 60), st.integers(2**32, 2**32 + 60)), unique=True, max_size=80).map(sorted)


@given(_IDS, st.data())
def test_places__lead_to_the_ids(ids: list[int], data: st.DataObject) -> None:
    wanted = data.draw(st.lists(st.sampled_from(ids), max_size=120)) if ids else []
    found = positions_of(np.array(ids, np.uint64), np.array(wanted, np.uint64))
    assert found is not None
    assert [ids[place] for place in found] == wanted


@given(_IDS, st.integers(0, 2**33), st.integers(0, 20))
def test_places__of_an_id_that_is_not_there(ids: list[int], strange: int, others: int) -> None:
    wanted = [*ids[:others], strange]
    found = positions_of(np.array(ids, np.uint64), np.array(wanted, np.uint64))
    assert (found is None) == (strange not in ids)


def test_places__few_of_many() -> None:
    ids = np.concatenate([np.arange(1000), 2**32 + np.arange(0, 1000, 3)]).astype(np.uint64)
    assert positions_of(ids, ids[[5, 1200, 5]]).tolist() == [5, 1200, 5]  # type: ignore[union-attr]
    assert positions_of(ids, np.array([2**32 + 1], np.uint64)) is None
