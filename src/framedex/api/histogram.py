"""Histograms of values that a notebook displays with their limit."""

from framedex.core.counts import counted
from framedex.records import ValueHistogram
from framedex.render import html
from framedex.render.histogram import histogram_svg


class Histogram(ValueHistogram):
    """The distribution of the values of an issue type. A notebook displays it as a plot with a line at the limit.

    ``counts[i]`` is the number of values from ``edges[i]`` to below ``edges[i + 1]``; the last bin includes its end.
    ``missing`` is the number of media without a value, ``outside`` that of values in none of the bins. ``limit`` is the
    current limit of the issue type (None for none): values above it are an issue if ``above``, else values below it.

    Examples:
        >>> histogram = ds.histogram("dark", bins=[0, 0.3, 1])
        >>> histogram
        <framedex.Histogram of 'dark': 32 values in 2 bins, limit 0.32, issue below>
        >>> histogram.counts, histogram.missing
        ([1, 31], 1)
    """

    @classmethod
    def of(cls, histogram: ValueHistogram) -> "Histogram":
        """Return a histogram in a form that can be displayed.

        Examples:
            >>> framedex.Histogram.of(ds.histogram("dark", bins=5))
            <framedex.Histogram of 'dark': 32 values in 5 bins, limit 0.32, issue below>
        """
        return cls.model_validate(histogram.model_dump())

    @property
    def total(self) -> int:
        """The number of values in the bins.

        Examples:
            >>> ds.histogram("dark").total
            32
        """
        return sum(self.counts)

    @property
    def limit_words(self) -> str:
        """The limit in words: ``limit 0.29, issue below``; empty without a limit.

        Examples:
            >>> ds.histogram("dark").limit_words
            'limit 0.32, issue below'
        """
        return "" if self.limit is None else f"limit {self.limit:.4g}, issue {'above' if self.above else 'below'}"

    def plot(self) -> str:
        """Return the histogram as SVG text.

        Examples:
            >>> ds.histogram("dark").plot()[:4]
            '<svg'
        """
        return histogram_svg(
            self.edges,
            self.counts,
            title=f"{self.issue_type}: {counted(self.total, 'values')}",
            x_label=self.meaning,
            limit=None if self.limit is None else (self.limit, self.limit_words),
        )

    def __repr__(self) -> str:
        limit = f", {self.limit_words}" if self.limit is not None else ""
        values, bins = counted(self.total, "values"), counted(len(self.counts), "bins")
        return f"<framedex.Histogram of {self.issue_type!r}: {values} in {bins}{limit}>"

    def _repr_html_(self) -> str:
        others = (("without a value", self.missing), ("outside of the bins", self.outside))
        words = [self.limit_words or "no limit", *(f"{count:,} {text}" for text, count in others if count)]
        return html.block(self.plot(), html.note(" · ".join(words)))
