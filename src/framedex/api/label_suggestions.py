"""Suggested labels of unlabelled media, to be accepted or refused."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Protocol, Self, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from framedex.api.data_frames import as_pandas
from framedex.api.result_pages import ThumbnailSource
from framedex.browse.explore import file_name
from framedex.core.checks import check_fraction
from framedex.core.counts import counted
from framedex.records import LabelDecision
from framedex.render import html

if TYPE_CHECKING:
    import pandas as pd

SUGGESTION_COLUMNS = pa.schema(
    [
        pa.field("media_id", pa.string()),
        pa.field("path", pa.string()),
        pa.field("label", pa.string()),
        pa.field("confidence", pa.float32()),
        pa.field("share", pa.float32()),
    ]
)
"""The columns of :meth:`LabelSuggestions.to_arrow`."""
RELIABILITY_COLUMNS = pa.schema(
    [
        pa.field("minimum", pa.float64()),
        pa.field("n_media", pa.int64()),
        pa.field("share_right", pa.float64()),
        pa.field("n_suggested", pa.int64()),
    ]
)
"""The columns of :meth:`LabelSuggestions.reliability`."""
MINIMA = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
"""The confidences of which the reliability is measured."""
_SHOWN = 24


class SelectableSource(ThumbnailSource, Protocol):
    """A view of media that can be selected by id."""

    def select(self, ids: Sequence[str]) -> Self:
        """Return a view of the rows with some ids."""


Source = TypeVar("Source", bound=SelectableSource)


@dataclass(frozen=True)
class SuggestionEdits:
    """The edits that suggestions lead to.

    Attributes:
        accept: sets labels by media id, those of at least a confidence, of media that have none yet; returns the number
            of these media.
        refuse: stores that no label fits some media.
    """

    accept: Callable[[Mapping[str, list[str]], float], int]
    refuse: Callable[[list[str]], LabelDecision]


class LabelSuggestions(Generic[Source]):
    """Labels for media without any, from the labels of their neighbours.

    It stays as it is while the dataset changes.

    Args:
        table: a row for each suggested label, with the columns :data:`SUGGESTION_COLUMNS`.
        reliability: what held-out labels show, with the columns :data:`RELIABILITY_COLUMNS`.
        view: all media of the dataset.
        edits: what accepts and refuses suggestions.

    Examples:
        >>> suggestions = ds.suggest_labels()
        >>> suggestions.count(0.9), suggestions.accept(0.9)
        (2, 2)
    """

    def __init__(self, table: pa.Table, reliability: pa.Table, view: Source, edits: SuggestionEdits) -> None:
        self._table, self._reliability, self._view, self._edits = table, reliability, view, edits

    def __len__(self) -> int:
        """Return the number of suggested labels."""
        return len(self._table)

    def count(self, minimum: float = 0.0) -> int:
        """Return the number of media with a suggested label of at least some confidence, 0 to 1.

        Examples:
            >>> ds.suggest_labels().count(minimum=0.9)
            2
        """
        return len(self._ids(minimum))

    def to_arrow(self) -> pa.Table:
        """Return a row for each suggested label, the most confident first.

        Returns:
            A table: ``media_id``; ``path`` within the source; ``label``; ``confidence``, 0 to 1, the frequency with
            which such labels of held-out media are right; ``share``, the share of the neighbours' votes. A media item
            has several rows if several labels are more likely right than wrong.

        Examples:
            >>> ds.suggest_labels().to_arrow().select(["path", "label"]).to_pylist()[:2]
            [{'path': 'cat-1-copy.jpg', 'label': 'cat'}, {'path': 'new-1.jpg', 'label': 'cat'}]
        """
        return self._table

    def to_pandas(self) -> "pd.DataFrame":
        """Return :meth:`to_arrow` as a DataFrame.

        Raises:
            MissingDependency: pandas is not installed.

        Examples:
            >>> ds.suggest_labels().to_pandas()[["path", "label"]].head(2)
                         path label
            0  cat-1-copy.jpg   cat
            1       new-1.jpg   cat
        """
        return as_pandas(self._table)

    def view(self, minimum: float = 0.0) -> Source:
        """Return the media with a suggested label of at least some confidence, the most confident first.

        Raises:
            InvalidInput: the confidence is no number from 0 to 1.
            NotFound: one of them was deleted.

        Examples:
            >>> [row["image_filename"] for row in ds.suggest_labels().view(minimum=0.9)]
            ['cat-1-copy.jpg', 'new-1.jpg']
        """
        return self._view.select(self._ids(minimum))

    def reliability(self) -> pa.Table:
        """Return how often labels of held-out media were right, by their confidence.

        Each labelled media item was held out, and its best label was suggested from the others. The confidences here
        are of a calibration on the other half of the media, so they were not fitted to the labels that judge them.

        Returns:
            A table: ``minimum``, a confidence; ``n_media``, the number of held-out media with at least that confidence;
            ``share_right``, the share of them that have the label, NaN for none; ``n_suggested``, the number of media
            with suggestions of that confidence.

        Examples:
            >>> ds.suggest_labels().reliability().column_names
            ['minimum', 'n_media', 'share_right', 'n_suggested']
        """
        return self._reliability

    def accept(self, minimum: float = 0.9) -> int:
        """Set the suggested labels of at least some confidence, as one step of the journal; return the number of media.

        Media that got labels meanwhile, and those that were deleted, are left out. ``ds.undo()`` takes all back.

        Args:
            minimum: the confidence, 0 to 1.

        Raises:
            InvalidInput: it is no such number.
            Conflict: a task is running.

        Examples:
            >>> ds.suggest_labels().accept(minimum=0.9)
            2
            >>> ds.media_item(ds.media_id("new-1.jpg")).labels
            ['cat']
        """
        labels: dict[str, list[str]] = {}
        for row in self._chosen(minimum).select(["media_id", "label"]).to_pylist():
            labels.setdefault(row["media_id"], []).append(row["label"])
        return self._edits.accept(labels, minimum) if labels else 0

    def refuse(self, media_ids: Sequence[str] | str | None = None) -> LabelDecision:
        """Store that no label fits some media, so that none is suggested for them again.

        It is a decision about labels, as :meth:`framedex.Dataset.label_is_right` stores one: it holds while they have
        no labels, and ``ds.withdraw_decision`` or ``ds.undo()`` take it back.

        Args:
            media_ids: ids of media; None for all with suggestions.

        Raises:
            InvalidInput: there are no media, or one of them has labels.
            NotFound: a media item does not exist.
            Conflict: a task is running.

        Examples:
            >>> decision = ds.suggest_labels().refuse(ds.media_id("night.jpg"))
            >>> ds.suggest_labels().count()
            7
        """
        ids = self._ids(0.0) if media_ids is None else [media_ids] if isinstance(media_ids, str) else list(media_ids)
        return self._edits.refuse(ids)

    def _chosen(self, minimum: float) -> pa.Table:
        check_fraction("minimum", minimum)
        return self._table.filter(pc.greater_equal(self._table["confidence"], np.float32(minimum)))

    def _ids(self, minimum: float) -> list[str]:
        found: list[str] = pc.unique(self._chosen(minimum)["media_id"]).to_pylist()
        return found

    def _summary(self) -> str:
        text = f"{counted(len(self), 'labels')} for {counted(self.count(), 'media')}"
        rows = [row for row in self._reliability.to_pylist() if row["n_media"]]
        sure = next((row for row in rows if row["minimum"] >= 0.9), rows[-1] if rows else None)
        if sure is None:
            return text
        return (
            f"{text}; of {sure['n_media']:,} held-out media with a confidence of {sure['minimum']:.2g} or more, "
            f"{sure['share_right']:.1%} have the label"
        )

    def __repr__(self) -> str:
        return f"<framedex.LabelSuggestions: {self._summary()}>"

    def _repr_html_(self) -> str:
        shown = self._table.slice(0, _SHOWN).to_pylist()
        jpegs = self._view.thumbnails([row["media_id"] for row in shown])
        return html.block(
            html.note(self._summary()),
            html.row(
                html.figure(jpeg, file_name(row["path"]), f"{row['label']} ({row['confidence']:.2f})")
                for row, jpeg in zip(shown, jpegs, strict=True)
            ),
        )
