"""Measurement of recall and latency of a dataset's vector search, over a sweep of the number of candidates."""

import gc
import math
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from framedex.analysis.quantized_ivf import Selection
from framedex.core.arrays import Vectors
from framedex.core.checks import check_integer, is_fraction
from framedex.core.counts import counted
from framedex.core.progress import Progress
from framedex.errors import InvalidInput, NotIndexed
from framedex.search.searcher import Searcher
from framedex.search.timings import SearchTiming, SearchTimings
from framedex.search.vectors.folder import read_indices
from framedex.search.vectors.indices import VectorIndex, VectorIndices
from framedex.storage.disk import walk_files

SELECTIVITIES = (1.0, 0.5, 0.01, 0.0001)
NOISE = 0.25
"""Length of a query's noise relative to the row's vector: the cosine of query and row is about 0.97."""
_LEAST_COMPARED = 1024
_SAME = 1e-6  # similarities that differ by less are tied
_WARMING = 5  # untimed warm-up queries
_BUILT, _TRUE = 0.3, 0.5  # shares of the total progress


@dataclass(frozen=True)
class _Filtered:
    """The rows that pass a simulated filter.

    Attributes:
        selectivity: share of all rows.
        positions: positions of the rows in ``row_ids``.
        selection: the rows prepared for search; None for all rows.
        seconds: duration of the preparation.
    """

    selectivity: float
    positions: npt.NDArray[np.int64]
    selection: Selection | None
    seconds: float


def measure_search(
    searcher: Searcher,
    *,
    queries: int = 200,
    k: int = 10,
    selectivities: Sequence[float] = SELECTIVITIES,
    indices: Callable[[], VectorIndices] = VectorIndices,
    progress: Progress | None = None,
) -> SearchTimings:
    """Measure vector searches of a dataset; the dataset and its index stay unchanged.

    The index is built in a temporary folder. Queries are random vectors of the dataset with noise of a quarter of their
    length. Filters select random rows, at least *k*. Both are the same in each run. The sweep covers powers of two from
    1,024 candidates on, until recall is 1 or all rows are candidates, and the default.

    Args:
        searcher: the dataset's searcher.
        queries: number of queries.
        k: number of nearest rows per query.
        selectivities: shares of the rows that pass the filters; 1 for no filter. Shares with the same number of rows
            are measured once.
        indices: returns a new set of indices.
        progress: receives the progress; raises to stop.

    Raises:
        InvalidInput: an argument is outside of its range.
        NotIndexed: the dataset has no vectors.
    """
    _check(queries, k, selectivities)
    searcher.embedding  # noqa: B018 - raises where there are no vectors
    report = progress or (lambda _stage, _share: None)
    with tempfile.TemporaryDirectory(prefix="framedex-", ignore_cleanup_errors=True) as scratch:
        return _measured(searcher, Path(scratch), queries, k, selectivities, indices, report)


def _measured(
    searcher: Searcher,
    scratch: Path,
    queries: int,
    k: int,
    selectivities: Sequence[float],
    indices: Callable[[], VectorIndices],
    progress: Progress,
) -> SearchTimings:
    index, facts = _opened(searcher, scratch, indices, progress)
    before = facts.pop("before")
    vectors = _queries(index, queries)
    default = max(facts["n_candidates"] or len(index), 4 * k)
    for query in vectors:
        index.nearest(query, k, n_candidates=default)
    memory = _growth(before)
    positions = np.flatnonzero(~np.isnan(index.similarities(np.zeros_like(vectors[0]))))
    filters = list(_filters(index, positions, k, selectivities))
    lowest, seconds = _truth(index, vectors, filters, k, progress)
    rows = [_timing(filters[0], None, 1.0, seconds, _parallel(index.similarities, -vectors))]
    exact_memory = _growth(before)
    for number, each in enumerate(filters):
        sizes = _settings(len(each.positions), default, exhaustive=facts["n_candidates"] is None)
        rows += _sweep(index, vectors, each, lowest[number], sizes, default, k, _part(progress, number, len(filters)))
    return SearchTimings(
        dataset_id=searcher.media.dataset_id,
        n_vectors=len(positions),
        dimension=index.dimension,
        k=k,
        queries=queries,
        threads=os.cpu_count() or 1,
        default_n_candidates=min(default, len(positions)),
        build_s=facts["build_s"],
        open_s=facts["open_s"],
        disk_bytes=facts["disk_bytes"],
        memory_bytes=memory,
        exact_memory_bytes=exact_memory,
        rows=rows,
    )


def _check(queries: int, k: int, selectivities: Any) -> None:
    for name, value in (("queries", queries), ("k", k)):
        check_integer(name, value, minimum=1)
    if not isinstance(selectivities, Sequence) or isinstance(selectivities, str) or not len(selectivities):
        raise InvalidInput(f"selectivities must be a list of shares, not {selectivities!r}")
    for share in selectivities:
        if not is_fraction(share) or not share:
            raise InvalidInput(f"a selectivity is a share above 0, up to 1 for no filter, not {share!r}")


def _opened(
    searcher: Searcher, scratch: Path, indices: Callable[[], VectorIndices], progress: Progress
) -> tuple[VectorIndex, dict[str, Any]]:
    """Return an index that was built in a folder and reopened, with its build and open times and sizes."""
    start = time.perf_counter()
    made = indices().open(
        searcher.media, folder=scratch, progress=lambda stage, share: progress(f"index: {stage}", _BUILT * share)
    )
    build_s, dimension = time.perf_counter() - start, made.dimension
    stored = read_indices(scratch, column="embedding", dimension=dimension)
    n_candidates = stored[0].n_candidates if stored else None
    del made, stored
    gc.collect()
    before, start = _resident(), time.perf_counter()
    index = indices().open(searcher.media, folder=scratch)
    return index, {
        "before": before,
        "build_s": build_s,
        "open_s": time.perf_counter() - start,
        "n_candidates": n_candidates,
        "disk_bytes": sum(status.st_size for _, status in walk_files(scratch)),
    }


def _queries(index: VectorIndex, count: int) -> Vectors:
    """Return vectors of random rows with noise: float32, shape (count, D), unit length."""
    random = np.random.default_rng(0)
    samples: list[Vectors] = []
    for position in random.permutation(len(index.row_ids)):
        if len(samples) == count:
            break
        if (vector := index.vector(int(index.row_ids[position]))) is not None:
            samples.append(vector)
    if not samples:
        raise NotIndexed("no media of this dataset has a vector: none could be decoded")
    vectors = np.stack([samples[number % len(samples)] for number in range(count)])
    noise = random.standard_normal(vectors.shape).astype(np.float32)
    noise *= NOISE / np.maximum(np.linalg.norm(noise, axis=1, keepdims=True), 1e-12)
    moved = vectors + noise
    return np.asarray(moved / np.maximum(np.linalg.norm(moved, axis=1, keepdims=True), 1e-12), np.float32)


def _filters(
    index: VectorIndex, positions: npt.NDArray[np.int64], k: int, selectivities: Sequence[float]
) -> Iterator[_Filtered]:
    """Yield the simulated filters, largest share first; the first one is no filter."""
    random, counts = np.random.default_rng(1), {len(positions)}
    yield _Filtered(1.0, positions, None, 0.0)
    for share in sorted(selectivities, reverse=True):
        count = min(max(math.ceil(share * len(positions)), k), len(positions))
        if count in counts:
            continue
        counts.add(count)
        selected = np.sort(random.choice(positions, count, replace=False))
        start = time.perf_counter()
        selection = index.select(index.row_ids[selected])
        yield _Filtered(share, selected, selection, time.perf_counter() - start)


def _truth(
    index: VectorIndex, queries: Vectors, filters: Sequence[_Filtered], k: int, progress: Progress
) -> tuple[list[list[float]], list[float]]:
    """Return the similarity of the k-th true neighbour, by filter and query; and the seconds of each exact search."""
    lowest: list[list[float]] = [[] for _ in filters]
    seconds = []
    for number, query in enumerate(queries):
        progress("exact search", _BUILT + (_TRUE - _BUILT) * number / len(queries))
        start = time.perf_counter()
        similarity = index.similarities(query)
        _last_of(similarity[filters[0].positions], k)
        seconds.append(time.perf_counter() - start)
        for values, each in zip(lowest, filters, strict=True):
            values.append(_last_of(similarity[each.positions], k))
    return lowest, seconds


def _last_of(similarity: Vectors, k: int) -> float:
    """Return the similarity of the k-th nearest row."""
    at = len(similarity) - min(k, len(similarity))
    return float(np.partition(similarity, at)[at])


def _settings(rows: int, default: int, *, exhaustive: bool) -> list[int]:
    if exhaustive:  # there is one cell, and all its rows are candidates
        return [rows]
    powers = [2**power for power in range(_LEAST_COMPARED.bit_length() - 1, rows.bit_length()) if 2**power < rows]
    return sorted({*powers, min(default, rows), rows})


def _sweep(
    index: VectorIndex,
    queries: Vectors,
    filtered: _Filtered,
    lowest: Sequence[float],
    settings: Sequence[int],
    default: int,
    k: int,
    progress: Progress,
) -> Iterator[SearchTiming]:
    """Yield the timing of each setting until recall is 1, and of the default in any case."""
    is_complete = False
    for number, n_candidates in enumerate(settings):
        is_default = n_candidates == min(default, len(filtered.positions))
        if is_complete and not is_default:
            continue
        progress(f"{n_candidates:,} of {counted(len(filtered.positions), 'rows')}", number / len(settings))

        def search(query: Vectors, n_candidates: int = n_candidates) -> Vectors:
            return index.nearest(query, k, filtered.selection, n_candidates=n_candidates)[1]

        for query in queries[:_WARMING]:
            search(query)
        hits, seconds = 0, []
        for query, bound in zip(queries, lowest, strict=True):
            start = time.perf_counter()
            similarity = search(query)
            seconds.append(time.perf_counter() - start)
            hits += int((similarity >= bound - _SAME).sum())
        recall = hits / (len(queries) * min(k, len(filtered.positions)))
        is_complete = is_complete or recall >= 1
        yield _timing(filtered, n_candidates, recall, seconds, _parallel(search, queries), is_default=is_default)


def _parallel(search: Callable[[Vectors], Any], queries: Vectors) -> float:
    """Return the number of queries per second with one thread per core.

    Exact search caches its last results, so each query must be new.
    """
    with ThreadPoolExecutor(os.cpu_count() or 1, thread_name_prefix="framedex-benchmark") as threads:
        start = time.perf_counter()
        for _ in threads.map(search, queries):
            pass
        return len(queries) / (time.perf_counter() - start)


def _timing(
    filtered: _Filtered,
    n_candidates: int | None,
    recall: float,
    seconds: Sequence[float],
    parallel: float,
    *,
    is_default: bool = False,
) -> SearchTiming:
    p50, p95, p99 = (float(1000 * each) for each in np.percentile(seconds, (50, 95, 99)))
    return SearchTiming(
        selectivity=filtered.selectivity,
        rows=len(filtered.positions),
        n_candidates=n_candidates,
        is_default=is_default,
        recall=recall,
        p50_ms=p50,
        p95_ms=p95,
        p99_ms=p99,
        queries_per_s=len(seconds) / sum(seconds),
        parallel_queries_per_s=parallel,
        filter_ms=1000 * filtered.seconds,
    )


def _part(progress: Progress, number: int, count: int) -> Progress:
    """Return a callback for the progress within one filter's sweep."""
    return lambda stage, share: progress(stage, _TRUE + (1 - _TRUE) * (number + share) / count)


def _resident() -> int | None:
    """Return the resident memory of the process in bytes; None if the system does not report it."""
    with suppress(OSError, ValueError, IndexError):
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return None


def _growth(before: int | None) -> int | None:
    now = _resident()
    return None if now is None or before is None else max(0, now - before)
