"""What a benchmark of search found, and what it advises."""

from framedex.checks import check_fraction
from framedex.records import Record


class SearchTiming(Record):
    """How one setting did.

    Attributes:
        selectivity: the share of the rows that the filter leaves; 1 for no filter.
        rows: how many it leaves.
        n_candidates: the setting: how many rows that may be answers are compared; None for exact search.
        is_default: whether searches do so by default.
        recall: the share of the true nearest that was found, 0 to 1.
        p50_ms, p95_ms, p99_ms: latencies, one query at a time.
        queries_per_s: one query at a time.
        parallel_queries_per_s: as many at a time as there are cores.
        filter_ms: what it takes once to prepare the filter's rows; part of no latency.
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
    """What was measured.

    Attributes:
        dataset_id: of the dataset.
        n_vectors, dimension: what was searched.
        k: how many nearest were asked for.
        queries, threads: how many queries; and how many at a time where they run in parallel.
        default_n_candidates: how many rows searches compare by default.
        build_s: making the index, from the dataset's table.
        open_s: opening it again.
        disk_bytes: of the index; 0 where it is small enough to be made in memory each time.
        memory_bytes: by which opening and searching with the default setting made the process grow; pages of files
            count, though the system takes them back when it needs them. None where the system does not say.
        exact_memory_bytes: the same after exact searches.
        rows: a row for each setting and selectivity, and one for exact search.
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
        """Return the least number of rows to compare that finds so much, whatever the filter.

        Args:
            recall: 0 to 1.

        Returns:
            one of the numbers that were measured; None if none of them is enough: then only exact search is.

        Raises:
            InvalidInput: *recall* is no share.
        """
        check_fraction("recall", recall)
        unfiltered = min(row.n_candidates for row in self.rows if row.n_candidates is not None and row.selectivity == 1)
        settings = sorted({row.n_candidates for row in self.rows if row.n_candidates is not None})
        return next((each for each in settings if each >= unfiltered and self.recall_of(each) >= recall), None)

    def recall_of(self, n_candidates: int) -> float:
        """Return the recall of a setting, with the filter for which it is the least.

        Where a sweep has not tried the setting, it counts what the next smaller one found: more rows find no less.
        """
        found: dict[float, tuple[int, float]] = {}
        for row in self.rows:
            if row.n_candidates is not None and row.n_candidates <= n_candidates:
                found[row.selectivity] = max(found.get(row.selectivity, (0, 0.0)), (row.n_candidates, row.recall))
        return min((recall for _, recall in found.values()), default=0.0)

    def advice(self, recall: float) -> str:
        """Return which setting to take for a wanted recall, in a sentence.

        Raises:
            InvalidInput: *recall* is no share.
        """
        best = self.best_for(recall)
        exact = next(row for row in self.rows if row.n_candidates is None)
        wanted = f"to find {recall:.4g} of the true nearest {self.k:,}"
        if best is None:
            return f"{wanted}, only exact search is enough: {exact.queries_per_s:,.0f} queries a second"
        tried = [row for row in self.rows if row.selectivity == 1 and 0 < (row.n_candidates or 0) <= best]
        row = max(tried, key=lambda row: row.n_candidates or 0)
        if best == self.default_n_candidates:
            setting = f"keep the default, which compares {best:,} rows"
        else:
            default = self.default_n_candidates
            enough = "finds enough, too" if self.recall_of(default) >= recall else "does not find enough"
            setting = f"compare {best:,} rows (the default, {default:,}, {enough})"
        return (
            f"{wanted}, {setting}: recall {self.recall_of(best):.4f} or better with each filter; "
            f"without one {row.queries_per_s:,.0f} queries a second, {row.p50_ms:.3g} ms each; "
            f"exact search does {exact.queries_per_s:,.0f}"
        )
