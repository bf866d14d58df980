"""Duplicate groups under cannot-link constraints: items that a user has marked as no duplicates of each other."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import combinations, product

import numpy as np
import numpy.typing as npt

from framedex.analysis.neighbour_lists import NeighbourGraph

Pairs = tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], npt.NDArray[np.float32]]
"""(row, other row, similarity) of pairs of distinct rows."""

_Node = tuple[int, ...]
"""Items of one distinct row that always stay in the same group."""


def separate_groups(
    groups: npt.NDArray[np.int32],
    similarity: npt.NDArray[np.float32],
    graph: NeighbourGraph,
    pairs: Pairs,
    inverse: npt.NDArray[np.int64],
    cannot_link: Sequence[npt.NDArray[np.int64]],
    levels: Sequence[float],
) -> None:
    """Split groups, in place, that contain two items of a cannot-link set.

    Such a group is rebuilt from its most similar pair on, by single linkage, without the pairs that would put two items
    of a set into one group (cannot-link constraints: K. Wagstaff & C. Cardie, 2000).

    Args:
        groups: int32, shape (N, L): the component of each item at each level, nested; changed in place.
        similarity: float32, shape (N,): similarity to the most similar other item; changed in place for constrained
            items, to the most similar item that they may be linked with, or -1 if none is known.
        graph: neighbours of the distinct rows.
        pairs: pairs of distinct rows; they include all pairs that connect the components.
        inverse: int64, shape (N,): the distinct row of each item.
        cannot_link: sets of two or more items, int64.
        levels: the minimum similarity of each level, ascending.
    """
    constrained = np.unique(np.concatenate(cannot_link))
    affected = np.unique(groups[constrained, 0])
    items = np.flatnonzero(np.isin(groups[:, 0], affected))
    sets: dict[int, set[int]] = defaultdict(set)
    for number, members in enumerate(cannot_link):
        for item in members.tolist():
            sets[item].add(number)
    nodes = _nodes(items, inverse, sets)
    edges = sorted(_edges(nodes, pairs, np.unique(inverse[items])), key=lambda edge: (-edge[0], edge[1], edge[2]))
    _set_similarity(similarity, edges, sets)
    for item in constrained.tolist():
        similarity[item] = max(similarity[item], _listed_similarity(sets[item], graph, int(inverse[item]), nodes, sets))
    forest = _Forest([node for each in nodes.values() for node in each], sets)
    first_free = int(groups.max()) + 1
    level = len(levels) - 1
    for score, a, b in edges:
        while level >= 0 and score < levels[level]:
            _write_groups(groups, level, forest, first_free)
            level -= 1
        if level < 0:
            break
        forest.join(a, b)
    for remaining_level in range(level, -1, -1):
        _write_groups(groups, remaining_level, forest, first_free)


def _nodes(
    items: npt.NDArray[np.int64], inverse: npt.NDArray[np.int64], sets: dict[int, set[int]]
) -> dict[int, list[_Node]]:
    """Return the nodes of each distinct row: one for each constrained item, and one for all other items."""
    of_row: dict[int, list[int]] = defaultdict(list)
    for item, row in zip(items.tolist(), inverse[items].tolist(), strict=True):
        of_row[row].append(item)
    return {
        row: [*([unconstrained] if (unconstrained := tuple(item for item in members if item not in sets)) else [])]
        + [(item,) for item in members if item in sets]
        for row, members in of_row.items()
    }


def _edges(
    nodes: dict[int, list[_Node]], pairs: Pairs, rows: npt.NDArray[np.int64]
) -> Iterator[tuple[float, _Node, _Node]]:
    """Yield (similarity, node, node) for copies, at similarity 1, and for the pairs of the rows."""
    for each in nodes.values():
        yield from ((1.0, a, b) for a, b in combinations(each, 2))
    inside = np.isin(pairs[0], rows) & np.isin(pairs[1], rows)
    for row, other, score in zip(*(part[inside].tolist() for part in pairs), strict=True):
        yield from ((score, a, b) for a, b in product(nodes[row], nodes[other]))


def _set_similarity(
    similarity: npt.NDArray[np.float32], edges: Sequence[tuple[float, _Node, _Node]], sets: dict[int, set[int]]
) -> None:
    """Set the similarity of constrained items to the most similar item that they may be linked with."""
    similarity[list(sets)] = -1
    for score, a, b in edges:
        if sets.get(a[0], set()).isdisjoint(sets.get(b[0], set())):
            for node in (a, b):
                if node[0] in sets:
                    similarity[node[0]] = max(similarity[node[0]], score)


def _listed_similarity(
    own: set[int], graph: NeighbourGraph, row: int, nodes: dict[int, list[_Node]], sets: dict[int, set[int]]
) -> float:
    """Return a row's similarity to its nearest listed row that has an item it may be linked with; -1 for none."""
    for other, score in zip(graph.rows[row].tolist(), graph.similarity[row].tolist(), strict=True):
        # Rows without nodes have no constrained items.
        if other not in nodes or any(own.isdisjoint(sets.get(node[0], ())) for node in nodes[other]):
            return float(score)
    return -1.0


class _Forest:
    """Disjoint-set forest of nodes; each group has the cannot-link sets of its items."""

    def __init__(self, nodes: Sequence[_Node], sets: dict[int, set[int]]) -> None:
        self.parent = {node: node for node in nodes}
        self._sets = {node: set(sets.get(node[0], ())) for node in nodes}

    def find(self, node: _Node) -> _Node:
        """Return the representative node of a node's group."""
        while self.parent[node] != node:
            self.parent[node] = self.parent[self.parent[node]]
            node = self.parent[node]
        return node

    def join(self, a: _Node, b: _Node) -> None:
        """Join two groups, unless they contain two items of a cannot-link set."""
        a, b = self.find(a), self.find(b)
        if a != b and self._sets[a].isdisjoint(self._sets[b]):
            self.parent[b] = a
            self._sets[a] |= self._sets[b]


def _write_groups(groups: npt.NDArray[np.int32], level: int, forest: _Forest, first_free: int) -> None:
    """Write the groups of a forest at one level, with new group numbers."""
    numbers: dict[_Node, int] = {}
    for node in forest.parent:
        number = numbers.setdefault(forest.find(node), first_free + len(numbers))
        groups[list(node), level] = number
