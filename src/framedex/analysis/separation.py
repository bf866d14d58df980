"""Groups that keep items apart which somebody has decided are no duplicates of each other."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import combinations, product

import numpy as np
import numpy.typing as npt

from framedex.analysis.neighbours import Graph

Pairs = tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], npt.NDArray[np.float32]]
"""(row, other row, similarity) of pairs of distinct rows."""

_Node = tuple[int, ...]
"""Items of one distinct row that always stay together."""


def separated(
    groups: npt.NDArray[np.int32],
    similarity: npt.NDArray[np.float32],
    graph: Graph,
    pairs: Pairs,
    inverse: npt.NDArray[np.int64],
    cannot_link: Sequence[npt.NDArray[np.int64]],
    levels: Sequence[float],
) -> None:
    """Take groups apart, in place, that hold two items of a set of which no two belong together.

    Such a group is joined anew from its most similar pair on, as single linkage does, without the pairs that would
    bring two of those items together (constraints of the kind "cannot link": K. Wagstaff & C. Cardie, 2000).

    Args:
        groups: int32, shape (N, L): a component for each item and level, nested; changed where needed.
        similarity: float32, shape (N,): to the most similar other item; set to that of the most similar one that is not
            kept apart, or -1 where none is known, for the items that are named.
        graph: neighbours of the distinct rows.
        pairs: of distinct rows, those that connect the components among them.
        inverse: int64, shape (N,): the distinct row of each item.
        cannot_link: sets of items, int64, each of two or more.
        levels: the least similarity of each level, ascending.
    """
    named = np.unique(np.concatenate(cannot_link))
    affected = np.unique(groups[named, 0])
    items = np.flatnonzero(np.isin(groups[:, 0], affected))
    sets: dict[int, set[int]] = defaultdict(set)
    for number, members in enumerate(cannot_link):
        for item in members.tolist():
            sets[item].add(number)
    nodes = _nodes(items, inverse, sets)
    edges = sorted(_edges(nodes, pairs, np.unique(inverse[items])), key=lambda edge: (-edge[0], edge[1], edge[2]))
    _note_similarity(similarity, edges, sets)
    for item in named.tolist():
        similarity[item] = max(similarity[item], _listed(sets[item], graph, int(inverse[item]), nodes, sets))
    forest = _Forest([node for each in nodes.values() for node in each], sets)
    first_free = int(groups.max()) + 1
    place = len(levels) - 1
    for score, a, b in edges:
        while place >= 0 and score < levels[place]:
            _number(groups, place, forest, first_free)
            place -= 1
        if place < 0:
            break
        forest.join(a, b)
    for rest in range(place, -1, -1):
        _number(groups, rest, forest, first_free)


def _nodes(
    items: npt.NDArray[np.int64], inverse: npt.NDArray[np.int64], sets: dict[int, set[int]]
) -> dict[int, list[_Node]]:
    """Return the nodes of each distinct row: each named item by itself, and all others together."""
    of_row: dict[int, list[int]] = defaultdict(list)
    for item, row in zip(items.tolist(), inverse[items].tolist(), strict=True):
        of_row[row].append(item)
    return {
        row: [*([free] if (free := tuple(item for item in held if item not in sets)) else [])]
        + [(item,) for item in held if item in sets]
        for row, held in of_row.items()
    }


def _edges(
    nodes: dict[int, list[_Node]], pairs: Pairs, rows: npt.NDArray[np.int64]
) -> Iterator[tuple[float, _Node, _Node]]:
    """Yield (similarity, node, node): copies at 1, and the pairs of the rows."""
    for each in nodes.values():
        yield from ((1.0, a, b) for a, b in combinations(each, 2))
    inside = np.isin(pairs[0], rows) & np.isin(pairs[1], rows)
    for row, other, score in zip(*(part[inside].tolist() for part in pairs), strict=True):
        yield from ((score, a, b) for a, b in product(nodes[row], nodes[other]))


def _note_similarity(
    similarity: npt.NDArray[np.float32], edges: Sequence[tuple[float, _Node, _Node]], sets: dict[int, set[int]]
) -> None:
    """Set the similarity of the named items to that of the most similar one that they are not kept apart from."""
    similarity[list(sets)] = -1
    for score, a, b in edges:
        if sets.get(a[0], set()).isdisjoint(sets.get(b[0], set())):
            for node in (a, b):
                if node[0] in sets:
                    similarity[node[0]] = max(similarity[node[0]], score)


def _listed(own: set[int], graph: Graph, row: int, nodes: dict[int, list[_Node]], sets: dict[int, set[int]]) -> float:
    """Return the similarity of a row to the nearest listed one that holds an item of other sets, or of none."""
    for other, score in zip(graph.rows[row].tolist(), graph.similarity[row].tolist(), strict=True):
        # Rows without nodes hold no item that is named.
        if other not in nodes or any(own.isdisjoint(sets.get(node[0], ())) for node in nodes[other]):
            return float(score)
    return -1.0


class _Forest:
    """Disjoint groups of nodes that grow, each with the sets that its items belong to."""

    def __init__(self, nodes: Sequence[_Node], sets: dict[int, set[int]]) -> None:
        self.parent = {node: node for node in nodes}
        self._sets = {node: set(sets.get(node[0], ())) for node in nodes}

    def find(self, node: _Node) -> _Node:
        """Return the node that stands for a node's group."""
        while self.parent[node] != node:
            self.parent[node] = self.parent[self.parent[node]]
            node = self.parent[node]
        return node

    def join(self, a: _Node, b: _Node) -> None:
        """Join two groups, unless that would bring two items of a set together."""
        a, b = self.find(a), self.find(b)
        if a != b and self._sets[a].isdisjoint(self._sets[b]):
            self.parent[b] = a
            self._sets[a] |= self._sets[b]


def _number(groups: npt.NDArray[np.int32], place: int, forest: _Forest, first_free: int) -> None:
    """Write the groups of a forest at one level, with numbers that no other group has."""
    numbers: dict[_Node, int] = {}
    for node in forest.parent:
        number = numbers.setdefault(forest.find(node), first_free + len(numbers))
        groups[list(node), place] = number
