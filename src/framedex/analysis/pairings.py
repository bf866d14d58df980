"""Pairs of rows of two sets that belong to the same group, at most a few for each row."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from framedex.core.arrays import Vectors

MOST_PAIRS = 12
"""The number of pairs of a row that are kept: those with the most similar rows of the other set."""
_BLOCK = 1024  # rows compared at a time
_LOADED = 16384  # rows whose vectors are in memory, unless a group has more

Rows = npt.NDArray[np.int64]
Codes = npt.NDArray[np.integer]


def first_pairs(here: Codes, there: Codes) -> tuple[Rows, Rows]:
    """Return pairs of rows with equal codes: for each row of both sets, the first few rows of the other one.

    Args:
        here: int, shape (N,): codes; negative ones are equal to none.
        there: int, shape (M,).

    Returns:
        The rows of both ends, ascending; each pair once.
    """
    found = [_with_first(here, there), _with_first(there, here)[::-1]]
    return distinct_pairs(*(np.concatenate(ends) for ends in zip(*found, strict=True)))


def distinct_pairs(a: Rows, b: Rows) -> tuple[Rows, Rows]:
    """Return each pair once, in the order of the first ends, then of the second ones."""
    count = int(b.max(initial=0)) + 1
    keys = np.unique(a * count + b)
    return keys // count, keys % count


def _with_first(mine: Codes, others: Codes) -> tuple[Rows, Rows]:
    """Return the pairs of each row with the first few rows of the other set that have its code."""
    order = np.argsort(others, kind="stable")
    ordered = others[order]
    start, end = (np.searchsorted(ordered, mine, side=side) for side in ("left", "right"))
    counts = np.where(mine >= 0, np.minimum(end - start, MOST_PAIRS), 0)
    row = np.repeat(np.arange(len(mine)), counts)
    rank = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
    return row, order[start[row] + rank]


def closest_pairs(
    here: Codes, there: Codes, vectors: Callable[[Rows, Rows], tuple[Vectors, Vectors]]
) -> tuple[Rows, Rows, Vectors]:
    """Return pairs of rows with equal codes: for each row of both sets, the most similar few rows of the other one.

    Args:
        here: int, shape (N,): the group of each row; negative ones are in none.
        there: int, shape (M,).
        vectors: returns the vectors of rows of both sets, of unit length, given their numbers in ascending order; rows
            without a vector have zeros.

    Returns:
        The rows of both ends, and their cosine similarity; each pair once, in the order of the rows.
    """
    shared = np.intersect1d(here, there)
    shared = shared[shared >= 0]
    parts: list[tuple[Rows, Rows, Vectors]] = [(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float32))]
    members = [_members(each, shared) for each in (here, there)]
    first = 0
    while first < len(shared):
        last = first + 1
        while last < len(shared) and sum(starts[last + 1] - starts[first] for _, starts in members) <= _LOADED:
            last += 1
        (a, a_starts), (b, b_starts) = members
        mine, others = a[a_starts[first] : a_starts[last]], b[b_starts[first] : b_starts[last]]
        loaded = vectors(np.sort(mine), np.sort(others))
        for group in range(first, last):
            rows, columns = a[a_starts[group] : a_starts[group + 1]], b[b_starts[group] : b_starts[group + 1]]
            places = np.searchsorted(np.sort(mine), rows), np.searchsorted(np.sort(others), columns)
            parts += _closest(rows, columns, loaded[0][places[0]], loaded[1][places[1]])
        first = last
    row, column, score = (np.concatenate(each) for each in zip(*parts, strict=True))
    order = np.lexsort((column, row))
    row, column, score = row[order], column[order], score[order]
    new = np.diff(row, prepend=-1).astype(bool) | np.diff(column, prepend=-1).astype(bool)
    return row[new], column[new], score[new]


def _members(codes: Codes, shared: Codes) -> tuple[Rows, Rows]:
    """Return the rows of each shared group, one group after another, and where each begins and the last one ends."""
    rows = np.flatnonzero(np.isin(codes, shared))
    order = rows[np.argsort(codes[rows], kind="stable")]
    return order, np.append(np.searchsorted(codes[order], shared), len(order))


def _closest(rows: Rows, columns: Rows, mine: Vectors, others: Vectors) -> list[tuple[Rows, Rows, Vectors]]:
    """Return the pairs of each row with its most similar columns, and of each column with its most similar rows."""
    found = []
    for start in range(0, len(rows), _BLOCK):
        part = slice(start, start + _BLOCK)
        row, column, score = _best(mine[part], others)
        found.append((rows[part][row], columns[column], score))
    for start in range(0, len(columns), _BLOCK):
        part = slice(start, start + _BLOCK)
        column, row, score = _best(others[part], mine)
        found.append((rows[row], columns[part][column], score))
    return found


def _best(mine: Vectors, others: Vectors) -> tuple[Rows, Rows, Vectors]:
    scores = mine @ others.T
    kept = min(MOST_PAIRS, scores.shape[1])
    best = np.argsort(-scores, axis=1, kind="stable")[:, :kept]
    row = np.repeat(np.arange(len(mine)), kept)
    return row, best.ravel(), np.clip(np.take_along_axis(scores, best, axis=1).ravel(), -1, 1).astype(np.float32)
