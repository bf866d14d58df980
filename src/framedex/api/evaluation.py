"""The quality of detections against annotations, as tables and as views of the boxes behind them."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from framedex.api.data_frames import as_pandas
from framedex.api.result_pages import ThumbnailSource
from framedex.core.counts import counted
from framedex.core.empty import warn_empty
from framedex.errors import InvalidInput
from framedex.render import html

if TYPE_CHECKING:
    import pandas as pd

BoxKind = Literal["missing", "extra", "confused", "confused_predictions"]
"""Kinds of boxes: true ones that were not found; predictions without a true box; and both ends of confusions."""
QUALITY_COLUMNS = pa.schema(
    [
        pa.field("label", pa.string()),
        pa.field("n_truth", pa.int64()),
        pa.field("n_predictions", pa.int64()),
        pa.field("n_right", pa.int64()),
        pa.field("precision", pa.float64()),
        pa.field("recall", pa.float64()),
        pa.field("average_precision", pa.float64()),
    ]
)
"""The columns of :meth:`Evaluation.to_arrow`."""
CONFUSION_COLUMNS = pa.schema([("label", pa.string()), ("predicted", pa.string()), ("count", pa.int64())])
"""The columns of :meth:`Evaluation.confusions`."""
_SHOWN = 12
Source = TypeVar("Source", bound=ThumbnailSource)


class Evaluation(Generic[Source]):
    """The quality of predicted boxes against true ones. It stays as it is while the dataset changes.

    Args:
        table: a row for each label, with the columns :data:`QUALITY_COLUMNS`.
        confusions: a row for each pair of labels, with the columns :data:`CONFUSION_COLUMNS`.
        iou: the smallest IoU of a match.
        select: returns the boxes of a kind as a view of objects.

    Examples:
        >>> evaluation = ds.evaluate("annotated", "detected")
        >>> evaluation
        <framedex.Evaluation: precision 0.750, recall 0.600, mean average precision 0.668 of 2 labels at IoU
          0.5>
        >>> evaluation.iou, len(evaluation)
        (0.5, 2)
    """

    def __init__(self, table: pa.Table, confusions: pa.Table, iou: float, select: Callable[[BoxKind], Source]) -> None:
        self._table, self._confusions, self.iou, self._select = table, confusions, iou, select
        for note in self.notes:
            warn_empty(note)

    @property
    def notes(self) -> list[str]:
        """Sentences that say which figures are NaN, because there are no true boxes or no predictions.

        Examples:
            >>> ds.evaluate().notes
            []
        """
        lacking = {"n_truth": ("true boxes", "recall"), "n_predictions": ("predictions", "precision")}
        return [
            f"there are no {what}, so {figure} and mean average precision say nothing (nan)"
            for name, (what, figure) in lacking.items()
            if not pc.sum(self._table[name]).as_py()
        ]

    def __len__(self) -> int:
        """Return the number of labels."""
        return len(self._table)

    def to_arrow(self) -> pa.Table:
        """Return a row for each label of the true boxes or the predictions, in alphabetical order.

        Returns:
            A table: ``label``; ``n_truth``, true boxes without crowds; ``n_predictions``, predictions outside of
            crowds; ``n_right``, those with a match; ``precision`` and ``recall``, shares of the predictions and of the
            true boxes with a match, 0 to 1; ``average_precision`` of COCO at this IoU. NaN where there is nothing to
            divide by.

        Examples:
            >>> ds.evaluate().to_arrow().select(["label", "precision", "recall"]).to_pylist()
            [{'label': 'cat', 'precision': 0.6666666666666666, 'recall': 1.0}, {'label': 'dog', 'precision': 1.0,
              'recall': 0.3333333333333333}]
        """
        return self._table

    def to_pandas(self) -> "pd.DataFrame":
        """Return :meth:`to_arrow` as a DataFrame.

        Raises:
            MissingDependency: pandas is not installed.

        Examples:
            >>> ds.evaluate().to_pandas()[["label", "n_truth", "n_predictions", "n_right"]]
              label  n_truth  n_predictions  n_right
            0   cat        2              3        2
            1   dog        3              1        1
        """
        return as_pandas(self._table)

    @property
    def precision(self) -> float:
        """The share of all predictions with a match, 0 to 1; NaN without predictions.

        Examples:
            >>> ds.evaluate().precision
            0.75
        """
        return self._share("n_right", "n_predictions")

    @property
    def recall(self) -> float:
        """The share of all true boxes with a match, 0 to 1; NaN without true boxes.

        Examples:
            >>> ds.evaluate().recall
            0.6
        """
        return self._share("n_right", "n_truth")

    @property
    def mean_average_precision(self) -> float:
        """The mean average precision of the labels with true boxes, 0 to 1; NaN without any.

        Examples:
            >>> round(ds.evaluate().mean_average_precision, 3)
            0.668
        """
        values = self._table["average_precision"].to_numpy()
        values = values[np.isfinite(values)]
        return float(values.mean()) if len(values) else float("nan")

    def confusions(self) -> pa.Table:
        """Return how often a true box has a prediction of another label in its place, the most frequent pairs first.

        Returns:
            A table: ``label`` of the true box, ``predicted``, and ``count``. Both boxes are without a match of their
            own label, and their IoU is at least that of the evaluation.

        Examples:
            >>> ds.evaluate().confusions().to_pylist()
            [{'label': 'dog', 'predicted': 'cat', 'count': 1}]
        """
        return self._confusions

    def view(self, kind: BoxKind) -> Source:
        """Return boxes as a view of objects.

        Args:
            kind: ``missing``, true boxes without a match; ``extra``, predictions without one, the most confident first;
                ``confused``, true boxes with a prediction of another label in their places, and
                ``confused_predictions``, these predictions.

        Raises:
            InvalidInput: there is no such kind.

        Examples:
            >>> [(row["image_filename"], row["label"]) for row in ds.evaluate().view("confused")]
            [('dog-1.jpg', 'dog')]
        """
        return self._select(check_box_kind(kind))

    @property
    def missing(self) -> Source:
        """The true boxes without a match; see :meth:`view`.

        Examples:
            >>> [row["image_filename"] for row in ds.evaluate().missing]
            ['dog-1.jpg', 'dog-3.jpg']
        """
        return self._select("missing")

    @property
    def extra(self) -> Source:
        """The predictions without a match, the most confident first; see :meth:`view`.

        Examples:
            >>> [(row["image_filename"], row["label"]) for row in ds.evaluate().extra]
            [('dog-1.jpg', 'cat')]
        """
        return self._select("extra")

    def _share(self, part: str, whole: str) -> float:
        total = pc.sum(self._table[whole]).as_py() or 0
        return (pc.sum(self._table[part]).as_py() or 0) / total if total else float("nan")

    def _summary(self) -> str:
        return (
            f"precision {self.precision:.3f}, recall {self.recall:.3f}, mean average precision "
            f"{self.mean_average_precision:.3f} of {counted(len(self), 'labels')} at IoU {self.iou:g}"
        )

    def __repr__(self) -> str:
        return f"<framedex.Evaluation: {self._summary()}>"

    def _repr_html_(self) -> str:
        rows = self._table.sort_by([("n_truth", "descending")]).slice(0, _SHOWN).to_pylist()
        confused = self._confusions.slice(0, _SHOWN).to_pylist()
        return html.block(
            html.note(self._summary()),
            html.table(QUALITY_COLUMNS.names, ([_shown(row[name]) for name in QUALITY_COLUMNS.names] for row in rows)),
            html.note("most frequent confusions") if confused else "",
            html.table(CONFUSION_COLUMNS.names, ([*row.values()] for row in confused)) if confused else "",
        )


def check_box_kind(kind: Any) -> BoxKind:
    """Return a kind of boxes.

    Raises:
        InvalidInput: there is no such kind.
    """
    found: BoxKind | None = next((each for each in get_args(BoxKind) if each == kind), None)
    if found is None:
        raise InvalidInput(f"boxes are {', '.join(get_args(BoxKind))}, not {kind!r:.80}")
    return found


def _shown(value: Any) -> Any:
    return f"{value:.3f}" if isinstance(value, float) else value
