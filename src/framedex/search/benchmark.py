"""How good and how fast searches of a dataset are, over a sweep of how many rows they compare."""

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
from framedex.arrays import Vectors
from framedex.checks import check_integer, is_fraction
from framedex.errors import InvalidInput, NotIndexed
from framedex.progress import Progress
from framedex.search.searcher import Searcher
from framedex.search.timings import SearchTiming, SearchTimings
from framedex.search.vectors.folder import read_indices
from framedex.search.vectors.indices import VectorIndex, VectorIndices
from framedex.storage.disk import files_below

SELECTIVITIES = (1.0, 0.5, 0.01, 0.0001)
NOISE = 0.25
"""The length of the noise that a query has, of the length of the row's vector: its cosine to the row is about 0.97."""
_LEAST_COMPARED = 1024
_SAME = 1e-6  # two similarities of that difference are a tie
_WARMING = 5  # queries that are not timed
_BUILT, _TRUE = 0.3, 0.5  # shares of the whole work


@dataclass(frozen=True)
class _Filtered:
    """Rows that a filter leaves.

    Attributes:
        selectivity: the share of all rows.
        places: of the rows, in the order of ``row_ids``.
        selection: what a search needs to know of them; None for all rows.
        seconds: it took to make that.
    """

    selectivity: float
    places: npt.NDArray[np.int64]
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
    """Measure searches of a dataset by vector; nothing of the dataset or its index is touched.

    An index is made in a folder of its own. Queries are vectors of the dataset, chosen at random, each with noise of a
    quarter of its length; filters leave rows at random, at least *k* (both the same each time). Settings are powers of
    two from 1,024 on, until recall is 1 or all rows are compared, and the default.

    Args:
        searcher: of the dataset.
        queries: how many.
        k: how many nearest to look for.
        selectivities: shares of the rows that filters leave; 1 for no filter. Those that leave as many as another are
            left out.
        indices: returns what makes the index.
        progress: hears how far it is; raises to stop.

    Raises:
        InvalidInput: an argument is outside of its range.
        NotIndexed: there are no vectors.
    """
    _check(queries, k, selectivities)
    searcher.embedding  # noqa: B018 - raises where there are no vectors
    said = progress or (lambda _stage, _share: None)
    with tempfile.TemporaryDirectory(prefix="framedex-", ignore_cleanup_errors=True) as scratch:
        return _measured(searcher, Path(scratch), queries, k, selectivities, indices, said)


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
    asked = _queries(index, queries)
    default = max(facts["n_candidates"] or len(index), 4 * k)
    for query in asked:
        index.nearest(query, k, n_candidates=default)
    memory = _growth(before)
    places = np.flatnonzero(~np.isnan(index.similarities(np.zeros_like(asked[0]))))
    filters = list(_filters(index, places, k, selectivities))
    least, seconds = _truth(index, asked, filters, k, progress)
    rows = [_timing(filters[0], None, 1.0, seconds, _parallel(index.similarities, -asked))]
    exact_memory = _growth(before)
    for number, each in enumerate(filters):
        sizes = _settings(len(each.places), default, exhaustive=facts["n_candidates"] is None)
        rows += _sweep(index, asked, each, least[number], sizes, default, k, _part(progress, number, len(filters)))
    return SearchTimings(
        dataset_id=searcher.media.dataset_id,
        n_vectors=len(places),
        dimension=index.dimension,
        k=k,
        queries=queries,
        threads=os.cpu_count() or 1,
        default_n_candidates=min(default, len(places)),
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
    """Return an index that was made in a folder, and opened again, with what was found out."""
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
        "disk_bytes": sum(status.st_size for _, status in files_below(scratch)),
    }


def _queries(index: VectorIndex, count: int) -> Vectors:
    """Return vectors of rows at random, with noise: float32, shape (count, D), unit length."""
    random = np.random.default_rng(0)
    held: list[Vectors] = []
    for place in random.permutation(len(index.row_ids)):
        if len(held) == count:
            break
        if (vector := index.vector(int(index.row_ids[place]))) is not None:
            held.append(vector)
    if not held:
        raise NotIndexed("no media of this dataset has a vector: none could be decoded")
    vectors = np.stack([held[number % len(held)] for number in range(count)])
    noise = random.standard_normal(vectors.shape).astype(np.float32)
    noise *= NOISE / np.maximum(np.linalg.norm(noise, axis=1, keepdims=True), 1e-12)
    moved = vectors + noise
    return np.asarray(moved / np.maximum(np.linalg.norm(moved, axis=1, keepdims=True), 1e-12), np.float32)


def _filters(
    index: VectorIndex, places: npt.NDArray[np.int64], k: int, selectivities: Sequence[float]
) -> Iterator[_Filtered]:
    """Yield what the filters leave, the most first; no filter is always among them."""
    random, seen = np.random.default_rng(1), {len(places)}
    yield _Filtered(1.0, places, None, 0.0)
    for share in sorted(selectivities, reverse=True):
        count = min(max(math.ceil(share * len(places)), k), len(places))
        if count in seen:
            continue
        seen.add(count)
        chosen = np.sort(random.choice(places, count, replace=False))
        start = time.perf_counter()
        selection = index.select(index.row_ids[chosen])
        yield _Filtered(share, chosen, selection, time.perf_counter() - start)


def _truth(
    index: VectorIndex, queries: Vectors, filters: Sequence[_Filtered], k: int, progress: Progress
) -> tuple[list[list[float]], list[float]]:
    """Return the similarity of the last true answer, by filter and query; and how long each exact search took."""
    least: list[list[float]] = [[] for _ in filters]
    seconds = []
    for number, query in enumerate(queries):
        progress("exact search", _BUILT + (_TRUE - _BUILT) * number / len(queries))
        start = time.perf_counter()
        similarity = index.similarities(query)
        _last_of(similarity[filters[0].places], k)
        seconds.append(time.perf_counter() - start)
        for found, each in zip(least, filters, strict=True):
            found.append(_last_of(similarity[each.places], k))
    return least, seconds


def _last_of(similarity: Vectors, k: int) -> float:
    """Return the similarity of the k-th nearest."""
    at = len(similarity) - min(k, len(similarity))
    return float(np.partition(similarity, at)[at])


def _settings(rows: int, default: int, *, exhaustive: bool) -> list[int]:
    if exhaustive:  # there is one cell, and all of it is compared
        return [rows]
    powers = [2**power for power in range(_LEAST_COMPARED.bit_length() - 1, rows.bit_length()) if 2**power < rows]
    return sorted({*powers, min(default, rows), rows})


def _sweep(
    index: VectorIndex,
    queries: Vectors,
    filtered: _Filtered,
    least: Sequence[float],
    settings: Sequence[int],
    default: int,
    k: int,
    progress: Progress,
) -> Iterator[SearchTiming]:
    """Yield how each setting does, until one finds all; the default in any case."""
    found_all = False
    for number, n_candidates in enumerate(settings):
        is_default = n_candidates == min(default, len(filtered.places))
        if found_all and not is_default:
            continue
        progress(f"{n_candidates:,} of {len(filtered.places):,} rows", number / len(settings))

        def ask(query: Vectors, n_candidates: int = n_candidates) -> Vectors:
            return index.nearest(query, k, filtered.selection, n_candidates=n_candidates)[1]

        for query in queries[:_WARMING]:
            ask(query)
        hits, seconds = 0, []
        for query, lowest in zip(queries, least, strict=True):
            start = time.perf_counter()
            similarity = ask(query)
            seconds.append(time.perf_counter() - start)
            hits += int((similarity >= lowest - _SAME).sum())
        recall = hits / (len(queries) * min(k, len(filtered.places)))
        found_all = found_all or recall >= 1
        yield _timing(filtered, n_candidates, recall, seconds, _parallel(ask, queries), is_default=is_default)


def _parallel(ask: Callable[[Vectors], Any], queries: Vectors) -> float:
    """Return how many queries a second are answered when there are as many at a time as cores.

    Exact search keeps its last answers; what is asked twice must not be the same.
    """
    with ThreadPoolExecutor(os.cpu_count() or 1, thread_name_prefix="framedex-benchmark") as threads:
        start = time.perf_counter()
        for _ in threads.map(ask, queries):
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
        rows=len(filtered.places),
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
    """Return what is told of one filter's sweep."""
    return lambda stage, share: progress(stage, _TRUE + (1 - _TRUE) * (number + share) / count)


def _resident() -> int | None:
    """Return how much memory the process has; None where the system does not say."""
    with suppress(OSError, ValueError, IndexError):
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return None


def _growth(before: int | None) -> int | None:
    now = _resident()
    return None if now is None or before is None else max(0, now - before)
