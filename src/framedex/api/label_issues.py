"""Labelled media in the order of the evidence against their labels, with the estimated rate of wrong labels."""

from typing import TYPE_CHECKING, Generic

import pyarrow as pa

from framedex.api.data_frames import as_pandas
from framedex.api.label_suggestions import Source
from framedex.browse.explore import file_name
from framedex.core.checks import check_integer
from framedex.core.counts import counted
from framedex.render import html

if TYPE_CHECKING:
    import pandas as pd

LABEL_ISSUE_COLUMNS = pa.schema(
    [
        pa.field("media_id", pa.string()),
        pa.field("path", pa.string()),
        pa.field("label", pa.string()),
        pa.field("suggested_label", pa.string()),
        pa.field("probability", pa.float32()),
        pa.field("expected_precision", pa.float32()),
    ]
)
"""The columns of :meth:`LabelIssues.to_arrow`."""
CLASS_COLUMNS = pa.schema(
    [
        pa.field("label", pa.string()),
        pa.field("n_media", pa.int64()),
        pa.field("n_wrong", pa.float64()),
        pa.field("rate", pa.float64()),
    ]
)
"""The columns of :meth:`LabelIssues.classes`."""
_SHOWN = 24


class LabelIssues(Generic[Source]):
    """All labelled media, those with probably wrong labels first, and an estimate of how many labels are wrong.

    It stays as it is while the dataset changes.

    Args:
        table: a row for each media item, with the columns :data:`LABEL_ISSUE_COLUMNS`.
        rate: the estimated share of wrong labels, 0 to 1.
        interval: the ends of an interval around it.
        notes: sentences about the estimate.
        view: all media of the dataset.

    Examples:
        >>> ds.label_issues()
        <framedex.LabelIssues: 24 labelled media; about 1 wrong label, 4% (1% to 20%)>
    """

    def __init__(
        self, table: pa.Table, rate: float, interval: tuple[float, float], notes: list[str], view: Source
    ) -> None:
        self._table, self.rate, self.interval, self.notes, self._view = table, rate, interval, notes, view

    def __len__(self) -> int:
        """Return the number of labelled media."""
        return len(self._table)

    @property
    def n_wrong(self) -> int:
        """The estimated number of media with a wrong label.

        Examples:
            >>> issues = ds.label_issues()
            >>> issues.n_wrong == round(issues.rate * len(issues))
            True
        """
        return round(self.rate * len(self))

    def to_arrow(self) -> pa.Table:
        """Return a row for each labelled media item, those with probably wrong labels first.

        Media whose labels are right by decision are left out.

        Returns:
            A table: ``media_id``; ``path`` within the source; ``label``, of several the one with least evidence;
            ``suggested_label``; ``probability`` that the label is wrong, 0 to 1; ``expected_precision``, 0 to 1, the
            expected share of wrong labels among this row and all before.

        Examples:
            >>> ds.label_issues().to_arrow().column_names
            ['media_id', 'path', 'label', 'suggested_label', 'probability', 'expected_precision']
        """
        return self._table

    def to_pandas(self) -> "pd.DataFrame":
        """Return :meth:`to_arrow` as a DataFrame.

        Raises:
            MissingDependency: pandas is not installed.

        Examples:
            >>> ds.label_issues().to_pandas()[["path", "label", "suggested_label"]].head(1)
                    path label suggested_label
            0  dog-8.jpg   cat             dog
        """
        return as_pandas(self._table)

    def classes(self) -> pa.Table:
        """Return how many labels of each class are probably wrong, the highest rates first.

        Returns:
            A table: ``label``; ``n_media``, media with it in :meth:`to_arrow`; ``n_wrong``, the sum of their
            probabilities; ``rate``, the mean.

        Examples:
            >>> ds.label_issues().classes().select(["label", "n_media"]).to_pylist()
            [{'label': 'cat', 'n_media': 9}, {'label': 'dog', 'n_media': 7}, {'label': 'bird', 'n_media': 8}]
        """
        grouped = self._table.group_by("label").aggregate([("probability", "sum"), ("probability", "count")])
        wrong, count = grouped["probability_sum"].to_numpy(), grouped["probability_count"].to_numpy()
        table = pa.table([grouped["label"], *map(pa.array, (count, wrong, wrong / count))], schema=CLASS_COLUMNS)
        return table.sort_by([("rate", "descending"), ("label", "ascending")])

    def view(self, limit: int | None = None) -> Source:
        """Return the first media as a view, as many as there are wrong labels by the estimate.

        Args:
            limit: the number of media instead.

        Raises:
            InvalidInput: the limit is no count.
            NotFound: one of them was deleted.

        Examples:
            >>> [row["image_filename"] for row in ds.label_issues().view(1)]
            ['dog-8.jpg']
        """
        check_integer("limit", limit, minimum=0, optional=True)
        count = self.n_wrong if limit is None else limit
        return self._view.select(self._table["media_id"].slice(0, count).to_pylist())

    def _summary(self) -> str:
        low, high = self.interval
        return (
            f"{counted(len(self), 'labelled media')}; about {counted(self.n_wrong, 'wrong labels')}, {self.rate:.0%} "
            f"({low:.0%} to {high:.0%})"
        )

    def __repr__(self) -> str:
        return "\n".join([f"<framedex.LabelIssues: {self._summary()}>", *self.notes])

    def _repr_html_(self) -> str:
        shown = self._table.slice(0, min(_SHOWN, max(self.n_wrong, 1))).to_pylist()
        jpegs = self._view.thumbnails([row["media_id"] for row in shown])
        return html.block(
            html.note(self._summary()),
            *map(html.note, self.notes),
            html.row(
                html.figure(
                    jpeg,
                    file_name(row["path"]),
                    f"{row['label']} → {row['suggested_label']} ({row['probability']:.2f})",
                )
                for row, jpeg in zip(shown, jpegs, strict=True)
            ),
        )
