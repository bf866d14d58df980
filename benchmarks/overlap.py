"""The overlap of two datasets: time and memory of the candidates for copies, against comparing all pairs.

The descriptors are clustered vectors (``vectors.py``) of the dimension of the copy descriptor; 1 % of the rows of the
second set are copies of rows of the first one with a little noise, at a similarity of 0.97 to 0.9999. The search of
candidates is that of ``ds.overlap``: in all poses that the images take, and as they are. Comparing all pairs is one
matrix product, block by block, as they are only, on all cores. Keypoints are not measured here: their cost is a budget
for each image.
"""

import resource
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from common import arguments, save, table
from framedex.analysis.copies import Units, find_candidates
from framedex.encoders.copy_descriptor import DIMENSION, cells, layouts, poses
from vectors import Clustered, Vectors, unit

BLOCK = 4096
COPIES = 0.01


def main() -> None:
    """Measure, print and write."""
    parser = arguments(__doc__, peers=False, data=False)
    parser.add_argument("--rows", type=int, default=100_000, help="of each of the two sets")
    options = parser.parse_args()
    units, planted = _sets(options.rows)
    before = _peak_mib()
    found, ours_s = _timed(
        lambda: find_candidates(Units(units, np.arange(len(units))), poses, layouts, cells, split=options.rows)
    )
    peak = _peak_mib()
    pairs = set(zip(found.a.tolist(), found.b.tolist(), strict=True))
    recall = sum(pair in pairs for pair in planted) / len(planted)
    best, all_s = _timed(lambda: _nearest(units[options.rows :], units[: options.rows]))
    exact = sum(best[b - options.rows] == a for a, b in planted) / len(planted)
    rows = [
        ("candidates of ds.overlap", ours_s, f"{recall:.4f}", peak - before),
        ("all pairs, as they are only", all_s, f"{exact:.4f}", ""),
    ]
    print(f"\n{options.rows:,} × {options.rows:,} descriptors of {DIMENSION} values; {before:.0f} MiB before\n")
    print(table(("", "s", "recall of planted copies", "MiB more"), rows))
    print(f"\nratio of times: {all_s / ours_s:.2f}; pairs: {len(pairs):,}")
    save("overlap", {"rows": options.rows, "ours_s": ours_s, "all_s": all_s, "recall": recall, "mib": peak - before})


def _sets(rows: int) -> tuple[Vectors, list[tuple[int, int]]]:
    """Return the vectors of both sets, one after another, and the planted pairs."""
    random = np.random.default_rng(1)
    both = np.concatenate(list(Clustered(2 * rows, DIMENSION).blocks()))[random.permutation(2 * rows)]
    count = int(rows * COPIES)
    a, b = random.choice(rows, count, replace=False), rows + random.choice(rows, count, replace=False)
    similarity = random.uniform(0.97, 0.9999, count)
    noise = unit(random.normal(size=(count, DIMENSION)))
    tangent = np.sqrt(1 / similarity**2 - 1)[:, None]
    both[b] = unit(both[a] + tangent * noise)
    return both, list(zip(a.tolist(), b.tolist(), strict=True))


def _nearest(queries: Vectors, rows: Vectors) -> npt.NDArray[np.int64]:
    best = np.empty(len(queries), np.int64)
    for start in range(0, len(queries), BLOCK):
        part = queries[start : start + BLOCK]
        scores = np.full(len(part), -np.inf, np.float32)
        for low in range(0, len(rows), BLOCK):
            products = part @ rows[low : low + BLOCK].T
            column = products.argmax(axis=1)
            value = products[np.arange(len(part)), column]
            better = value > scores
            best[start : start + len(part)][better], scores[better] = column[better] + low, value[better]
    return best


def _timed(call: Callable[[], Any]) -> tuple[Any, float]:
    start = time.perf_counter()
    result = call()
    return result, time.perf_counter() - start


def _peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    main()
