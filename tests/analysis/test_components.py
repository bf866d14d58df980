"""Connected components equal those of SciPy."""

import hypothesis.strategies as st
import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from scipy.sparse import csgraph

from framedex.analysis.components import connected_components, spanning_forest


@given(data=st.data(), count=st.integers(1, 40))
def test_connected_components__are_those_of_scipy(data: st.DataObject, count: int) -> None:
    """Components and their numbers equal those of SciPy for any pairs."""
    nodes = st.integers(0, count - 1)
    pairs = np.array(data.draw(st.lists(st.tuples(nodes, nodes), max_size=60)), dtype=np.int64).reshape(-1, 2)
    links = scipy.sparse.coo_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(count, count))
    found, labels = connected_components(count, pairs[:, 0], pairs[:, 1])
    expected, expected_labels = csgraph.connected_components(links, directed=False)
    assert found == expected
    assert labels.dtype == np.int32
    assert labels.tolist() == expected_labels.tolist()


@pytest.mark.parametrize("shape", ["path", "shuffled path", "star", "zigzag"])
def test_connected_components__of_long_chains(shape: str) -> None:
    """A connected graph is one component, whatever its shape and the order of its nodes."""
    count = 50_000
    order = np.random.default_rng(0).permutation(count) if shape == "shuffled path" else np.arange(count)
    a, b = order[:-1], order[1:]
    if shape == "star":
        a, b = np.full(count - 1, count - 1), np.arange(count - 1)
    if shape == "zigzag":  # each odd place of the path has a higher number than all even ones
        order = np.stack([np.arange(count // 2), count // 2 + np.arange(count // 2)], axis=1).ravel()
        a, b = order[:-1], order[1:]
    found, labels = connected_components(count, a, b)
    assert found == 1
    assert not labels.any()


def test_connected_components__without_pairs() -> None:
    """Without pairs every node is a component; without nodes the result is empty."""
    nothing = np.empty(0, dtype=np.int64)
    assert connected_components(3, nothing, nothing)[1].tolist() == [0, 1, 2]
    assert connected_components(0, nothing, nothing)[0] == 0


@given(st.integers(1, 30), st.data())
def test_spanning_forest__connects_the_same_nodes_by_fewest_pairs(count: int, data: st.DataObject) -> None:
    """The chosen pairs connect what all pairs connect, and one pair less would not."""
    nodes = st.integers(0, count - 1)
    pairs = np.array(data.draw(st.lists(st.tuples(nodes, nodes), max_size=60)), dtype=np.int64).reshape(-1, 2)
    chosen = pairs[spanning_forest(count, pairs[:, 0], pairs[:, 1])]
    number, of_all = connected_components(count, pairs[:, 0], pairs[:, 1])
    _, of_chosen = connected_components(count, chosen[:, 0], chosen[:, 1])
    np.testing.assert_array_equal(of_chosen, of_all)
    assert len(chosen) == count - number
