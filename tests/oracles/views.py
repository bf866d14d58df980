"""The meaning of views in plain Python: a view is a list of rows, and each step makes another list of it."""

import hashlib
import math
from collections.abc import Callable, Sequence
from typing import Any

Row = dict[str, Any]
Rows = list[Row]


def where(rows: Rows, passes: Callable[[Row], bool]) -> Rows:
    """Return the rows that pass, in their order."""
    return [row for row in rows if passes(row)]


def sort_by(rows: Rows, column: str, *, descending: bool = False) -> Rows:
    """Return rows in the order of a column: ties by their number, and rows without a value last."""
    in_order = sorted(rows, key=lambda row: row["number"])
    missing = [row for row in in_order if is_missing(row[column])]
    others = [row for row in in_order if not is_missing(row[column])]
    others = others[::-1] if descending else others  # reversed twice, ties keep their order
    others.sort(key=lambda row: row[column])
    return [*(others[::-1] if descending else others), *missing]


def is_missing(value: Any) -> bool:
    """Return whether a value is none that can be sorted."""
    return value is None or (isinstance(value, float) and math.isnan(value))


def sample(rows: Rows, n: int, *, seed: int) -> Rows:
    """Return the rows with the smallest hashes, in their order."""
    chosen = sorted(rows, key=lambda row: (random_key(row, seed), row["number"]))[:n]
    numbers = {row["number"] for row in chosen}
    return [row for row in rows if row["number"] in numbers]


def random_key(row: Row, seed: int) -> str:
    """Return the hash that orders a row in samples: of the seed, the path and the box, without missing parts."""
    parts = [str(seed), row["path"], *map(str, row.get("bbox") or ())]
    return hashlib.md5("/".join(parts).encode(), usedforsecurity=False).hexdigest()


def select(rows: Rows, ids: Sequence[str]) -> Rows:
    """Return the rows with some ids, in the order of the ids."""
    by_id = {row["media_id"]: row for row in rows}
    return [by_id[each] for each in dict.fromkeys(ids)]
