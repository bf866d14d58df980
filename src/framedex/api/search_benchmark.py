"""Benchmarks of a dataset's searches, with plots, tables and files."""

import os
from pathlib import Path
from typing import Any

import pyarrow as pa

from framedex.core.counts import counted
from framedex.errors import InvalidInput
from framedex.export.files import whole_file
from framedex.render import html
from framedex.render.plot import Line, line_plot
from framedex.render.sizes import bytes_text
from framedex.search.timings import SearchTiming, SearchTimings
from framedex.settings import user_path

_SUFFIXES = (".json", ".html", ".svg")
_RECALL = 0.95
HEADER = ("filter leaves", "compared", "recall", "p50 ms", "p95 ms", "p99 ms", "queries/s", "in parallel")


class SearchBenchmark(SearchTimings):
    """The recall and speed of searches of a dataset. A notebook displays it with a plot and a table.

    ``best_for(recall)`` returns the recommended setting, ``advice(recall)`` the same in a sentence. ``rows`` has the
    measurements, ``model_dump_json()`` all fields.

    Examples:
        >>> benchmark = ds.benchmark_search(queries=5)
        >>> benchmark.best_for(0.95), benchmark.n_vectors
        (32, 32)
    """

    @classmethod
    def of(cls, timings: SearchTimings) -> "SearchBenchmark":
        """Return measurements in a form that can be displayed.

        Examples:
            >>> framedex.SearchBenchmark.of(benchmark).n_vectors
            32
        """
        return cls.model_validate(timings.model_dump())

    def to_arrow(self) -> pa.Table:
        """Return a row for each setting and filter, exact search first, with the columns of :class:`SearchTiming`.

        Examples:
            >>> benchmark.to_arrow()["recall"].to_pylist()
            [1.0, 1.0, 1.0, 1.0]
        """
        schema = pa.schema(
            [
                pa.field(name, _ARROW[name] if name in _ARROW else pa.float64())
                for name in SearchTiming.model_fields
            ]
        )  # fmt: skip
        return pa.Table.from_pylist([row.model_dump() for row in self.rows], schema)

    def table(self) -> list[tuple[Any, ...]]:
        """Return the formatted rows, with the columns of :data:`HEADER`.

        Examples:
            >>> benchmark.table()[0][:3]
            ('no filter', 'all, exactly', '1.0000')
        """
        return [
            (
                _leaves(row),
                "all, exactly" if row.n_candidates is None else f"{row.n_candidates:,}{' (default)' * row.is_default}",
                f"{row.recall:.4f}",
                *(f"{each:.3g}" for each in (row.p50_ms, row.p95_ms, row.p99_ms)),
                f"{row.queries_per_s:,.0f}",
                f"{row.parallel_queries_per_s:,.0f}",
            )
            for row in self.rows
        ]

    @property
    def words(self) -> str:
        """The measured index and queries, in one line.

        Examples:
            >>> benchmark.words
            '32 vectors of 610; index built in ... s, ...; 5 queries for the nearest 10, parallel: ... at a time'
        """
        memory = "" if self.memory_bytes is None else f", {bytes_text(self.memory_bytes)} in memory"
        exact = "" if self.exact_memory_bytes is None else f" ({bytes_text(self.exact_memory_bytes)} with exact search)"
        return (
            f"{counted(self.n_vectors, 'vectors')} of {self.dimension:,}; index built in {self.build_s:.2f} s, "
            f"opened in {self.open_s:.2f} s, {bytes_text(self.disk_bytes)} on disk{memory}{exact}; "
            f"{counted(self.queries, 'queries')} for the nearest {self.k:,}, parallel: {self.threads:,} at a time"
        )

    def plot(self) -> str:
        """Return a plot of queries per second over recall, a line for each filter, as SVG text.

        Examples:
            >>> benchmark.plot()[:4]
            '<svg'
        """
        exact = [row for row in self.rows if row.n_candidates is None]
        swept = [row for row in self.rows if row.n_candidates is not None]
        lines = [
            _line(_leaves(rows[0]), rows)
            for selectivity in dict.fromkeys(row.selectivity for row in swept)
            if (rows := [row for row in swept if row.selectivity == selectivity])
        ]
        return line_plot(
            [*lines, _line("exact search", exact)],
            title=f"Search of {counted(self.n_vectors, 'vectors')}: recall and speed",
            x_label=f"recall@{self.k}",
            y_label="queries a second, one at a time",
            mark="default",
        )

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write a file and return its path: all data as .json, a page as .html, or the plot as .svg.

        Raises:
            InvalidInput: the path has another suffix, or the file cannot be written.

        Examples:
            >>> benchmark.save("searches.html").name
            'searches.html'
        """
        check_target(path)
        target = user_path(path)
        match target.suffix.lower():
            case ".json":
                content = self.model_dump_json(indent=2) + "\n"
            case ".html":
                content = html.page("Framedex search benchmark", *self._parts())
            case _:
                content = self.plot() + "\n"
        with whole_file(target) as file:
            file.write(content.encode())
        return target

    def __repr__(self) -> str:
        return f"<framedex.SearchBenchmark: {self.advice(_RECALL)}>"

    def _repr_html_(self) -> str:
        return html.block(*self._parts())

    def _parts(self) -> tuple[str, ...]:
        return (
            html.heading("Search benchmark"),
            html.note(self.words),
            html.note(self.advice(_RECALL)),
            self.plot(),
            html.table(HEADER, self.table()),
        )


_ARROW = {"rows": pa.int64(), "n_candidates": pa.int64(), "is_default": pa.bool_()}


def check_target(path: str | os.PathLike[str]) -> None:
    """Check the suffix of a benchmark's file, before the measurements.

    Raises:
        InvalidInput: the suffix is none of .json, .html and .svg.
    """
    if Path(path).suffix.lower() not in _SUFFIXES:
        raise InvalidInput(f"a benchmark must be saved as {', '.join(_SUFFIXES)}, not as {os.fspath(path)!r}")


def _leaves(row: SearchTiming) -> str:
    return "no filter" if row.selectivity == 1 else f"{100 * row.selectivity:g} %: {row.rows:,}"


def _line(name: str, rows: list[SearchTiming]) -> Line:
    points = [
        (
            row.recall,
            row.queries_per_s,
            f"{name}, {'exactly' if row.n_candidates is None else f'{row.n_candidates:,} compared'}: "
            f"recall {row.recall:.4f}, {row.queries_per_s:,.0f} queries a second",
        )
        for row in rows
    ]
    return Line(name, points, frozenset(index for index, row in enumerate(rows) if row.is_default))
