"""Suggestions of labels for a dataset's media without any."""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from framedex.api.label_suggestions import (
    MINIMA,
    RELIABILITY_COLUMNS,
    SUGGESTION_COLUMNS,
    LabelSuggestions,
    SuggestionEdits,
)
from framedex.api.view import View
from framedex.errors import InvalidInput
from framedex.jobs.label_suggestions import FoundLabels, find_labels
from framedex.operations import edits as editing
from framedex.operations.context import Context, check_indexed, open_media
from framedex.operations.decisions import decide_no_label_fits
from framedex.render.progress import progress_bar
from framedex.storage.media import Media

_SETTABLE = "labels"


class DatasetSuggestions:
    """Suggestions of labels."""

    _context: Context
    id: str

    def suggest_labels(self, like: str = _SETTABLE) -> LabelSuggestions[View]:
        """Return labels for the media without any, from the votes of their neighbours.

        The votes are those that find mislabels. Each suggestion has a confidence that is calibrated on the labelled
        media: each of these is held out, its neighbours vote, and the confidence of a share of votes is the frequency
        with which labels with such a share are right. So it holds for media like the labelled ones;
        :meth:`LabelSuggestions.reliability` says how well. An item gets its best label, and others that are more likely
        right than wrong. Media of which :meth:`LabelSuggestions.refuse` said that no label fits get none.

        Args:
            like: the values that are suggested: ``labels``.

        Raises:
            InvalidInput: there are other values to suggest, or fewer than 20 media have labels and labelled neighbours.
            Conflict: the dataset has no index yet.

        Examples:
            >>> ds.suggest_labels()
            <framedex.LabelSuggestions: 8 labels for 8 media>
        """
        if like != _SETTABLE:
            raise InvalidInput(f"like is 'labels', not {like!r:.80}: only labels are suggested")
        media = open_media(self._context, self.id)
        check_indexed(self._context, media)
        key = "suggested labels", media.generation.id
        found: FoundLabels | None = self._context.selections.get(key)
        if found is None:
            with progress_bar("Suggesting labels", late=True) as bar:
                show = bar or (lambda _stage, _share: None)
                found = find_labels(media, lambda share: show("votes", share))
            self._context.selections.put(key, found, weight=found.nbytes)
        edits = SuggestionEdits(self._accept, lambda ids: decide_no_label_fits(self._context, self.id, ids))
        return LabelSuggestions(_table(media, found), _reliability(found), View(self._context, self.id), edits)

    def _accept(self, labels: Mapping[str, list[str]], _minimum: float) -> int:
        """Set labels of those media that exist and have none."""
        media = open_media(self._context, self.id)
        rows = media.find_row_ids(list(labels))
        stored = media.take(list(rows.values()), ["media_id", "labels"]).to_pylist() if rows else []
        values = {row["media_id"]: labels[row["media_id"]] for row in stored if not row["labels"]}
        if values:
            editing.set_value(self._context, self.id, _SETTABLE, values, None, "set_labels")
        return len(values)


def _table(media: Media, found: FoundLabels) -> pa.Table:
    columns = [media.values_at(found.row_ids, name) for name in ("media_id", "path")]
    suggested = found.suggested
    arrays = [*columns, found.names, pa.array(suggested.confidence), pa.array(suggested.share)]
    kinds = SUGGESTION_COLUMNS.types
    table = pa.table([each.cast(kind) for each, kind in zip(arrays, kinds, strict=True)], schema=SUGGESTION_COLUMNS)
    order = np.lexsort((np.arange(len(table)), -suggested.share, -suggested.confidence))
    return table.take(pa.array(order))


def _reliability(found: FoundLabels) -> pa.Table:
    held, right = found.suggested.held_out, found.suggested.are_right
    unique, inverse = np.unique(found.row_ids, return_inverse=True)
    highest = np.zeros(len(unique), np.float32)
    np.maximum.at(highest, inverse, found.suggested.confidence)
    rows = []
    for minimum in MINIMA:
        chosen = held >= np.float32(minimum)
        share = float(right[chosen].mean()) if chosen.any() else float("nan")
        rows.append((minimum, int(chosen.sum()), share, int((highest >= np.float32(minimum)).sum())))
    columns = zip(*rows, strict=True)
    return pa.table(
        [pa.array(each, kind) for each, kind in zip(columns, RELIABILITY_COLUMNS.types, strict=True)],
        schema=RELIABILITY_COLUMNS,
    )
