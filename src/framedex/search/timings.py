"""Results of a search benchmark, and the setting that they recommend."""

from framedex.core.checks import check_fraction
from framedex.core.counts import counted
from framedex.records import Record


class SearchTiming(Record):
    """The measurements of one setting.

    Attributes:
        selectivity: share of the rows that pass the filter; 1 for no filter.
        rows: number of rows that pass the filter.
        n_candidates: the setting: number of candidates that are compared; None for exact search.
        is_default: whether it is the default of searches.
        recall: share of the true nearest rows in the results, 0 to 1.
        p50_ms, p95_ms, p99_ms: latencies, one query at a time.
        queries_per_s: throughput with one query at a time.
        parallel_queries_per_s: throughput with one query per core at a time.
        filter_ms: time to prepare the filter's rows once; not part of the latencies.
    """

    selectivity: float
    rows: int
    n_candidates: int | None
    is_default: bool
    recall: float
    p50_ms: float
    p95_ms: float
    p99_ms: float
    queries_per_s: float
    parallel_queries_per_s: float
    filter_ms: float


class SearchTimings(Record):
    """The results of a benchmark.

    Attributes:
        dataset_id: id of the dataset.
        n_vectors, dimension: number and length of the vectors.
        k: number of nearest rows per query.
        queries, threads: number of queries, and of threads for the parallel measurement.
        default_n_candidates: default number of candidates.
        build_s: time to build the index from the dataset's table.
        open_s: time to reopen it.
        disk_bytes: size of the index; 0 if it is small enough to be built in memory each time.
        memory_bytes: growth of the process's memory by opening the index and searching with the default setting. It
            includes pages of files, which the system can reclaim. None if the system does not report it.
        exact_memory_bytes: the same after exact searches.
        rows: one row for each setting and selectivity, and one for exact search.
    """

    dataset_id: str
    n_vectors: int
    dimension: int
    k: int
    queries: int
    threads: int
    default_n_candidates: int
    build_s: float
    open_s: float
    disk_bytes: int
    memory_bytes: int | None
    exact_memory_bytes: int | None
    rows: list[SearchTiming]

    def best_for(self, recall: float) -> int | None:
        """Return the smallest number of candidates that reaches a recall with every filter.

        Args:
            recall: 0 to 1.

        Returns:
            One of the measured numbers; None if only exact search reaches the recall.

        Raises:
            InvalidInput: *recall* is not in [0, 1].

        Examples:
            >>> benchmark.best_for(0.9)
            32
        """
        check_fraction("recall", recall)
        unfiltered = min(row.n_candidates for row in self.rows if row.n_candidates is not None and row.selectivity == 1)
        settings = sorted({row.n_candidates for row in self.rows if row.n_candidates is not None})
        return next((each for each in settings if each >= unfiltered and self.recall_of(each) >= recall), None)

    def recall_of(self, n_candidates: int) -> float:
        """Return the lowest recall of a setting over the filters, with that filter.

        For a setting that a sweep did not measure, the next smaller one counts, because recall does not fall with more
        candidates.

        Examples:
            >>> benchmark.recall_of(32)
            1.0
        """
        recalls: dict[float, tuple[int, float]] = {}
        for row in self.rows:
            if row.n_candidates is not None and row.n_candidates <= n_candidates:
                recalls[row.selectivity] = max(recalls.get(row.selectivity, (0, 0.0)), (row.n_candidates, row.recall))
        return min((recall for _, recall in recalls.values()), default=0.0)

    def advice(self, recall: float) -> str:
        """Return a sentence that recommends a setting for the requested recall.

        Raises:
            InvalidInput: *recall* is not in [0, 1].

        Examples:
            >>> benchmark.advice(0.9)
            'to find 0.9 of the true nearest 10, keep the default, which compares 32 rows: ...'
        """
        best = self.best_for(recall)
        exact = next(row for row in self.rows if row.n_candidates is None)
        target = f"to find {recall:.4g} of the true nearest {self.k:,}"
        if best is None:
            return f"{target}, only exact search is enough: {exact.queries_per_s:,.0f} queries a second"
        tried = [row for row in self.rows if row.selectivity == 1 and 0 < (row.n_candidates or 0) <= best]
        row = max(tried, key=lambda row: row.n_candidates or 0)
        if best == self.default_n_candidates:
            setting = f"keep the default, which compares {counted(best, 'rows')}"
        else:
            default = self.default_n_candidates
            enough = "finds enough, too" if self.recall_of(default) >= recall else "does not find enough"
            setting = f"compare {counted(best, 'rows')} (the default, {default:,}, {enough})"
        return (
            f"{target}, {setting}: recall {self.recall_of(best):.4f} or better with each filter; "
            f"without one {row.queries_per_s:,.0f} queries a second, {row.p50_ms:.3g} ms each; "
            f"exact search does {exact.queries_per_s:,.0f}"
        )
