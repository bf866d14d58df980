"""Labels that are probably wrong, ranked."""

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from framedex.analysis.label_noise import Evidence
from framedex.api.label_issues import LABEL_ISSUE_COLUMNS, LabelIssues
from framedex.api.view import View
from framedex.errors import InvalidInput
from framedex.jobs.label_noise import RankedLabels, rank_labels
from framedex.operations.context import Context, check_indexed, open_media
from framedex.render.progress import progress_bar
from framedex.storage.media import Media

_COMBINED = "combined"
_METHODS = (_COMBINED, *Evidence)


class DatasetLabelIssues:
    """Labels that are probably wrong."""

    _context: Context
    id: str

    def label_issues(self, method: str = _COMBINED, *, probabilities: Any = None) -> LabelIssues[View]:
        """Return all labelled media, those with probably wrong labels first, and how many labels are wrong.

        No evidence uses the media item's own label. Neighbours vote; a linear model on the embeddings is fitted to the
        labels of all others; a model of yours gives probabilities. The rate of wrong labels is measured where the
        evidence is most certain. Media that are not labelled, not indexed or without an embedding are left out.

        Args:
            method: ``neighbours``, ``head`` (the linear model), ``probabilities``, or ``combined``: all of them, as far
                as there are probabilities.
            probabilities: of a model that was not trained on these media, as from cross-validation: a table of Arrow or
                pandas with the column ``media_id`` and, for each label, a column with its name, 0 to 1.

        Raises:
            InvalidInput: an argument cannot be used, fewer than 20 media have labels, or all have the same.
            Conflict: the dataset has no index yet.

        Examples:
            >>> ds.label_issues("neighbours")
            <framedex.LabelIssues: 24 labelled media; about 1 wrong label, 4% (1% to 20%)>
        """
        if method not in _METHODS:
            raise InvalidInput(f"method is {', '.join(_METHODS)}, not {method!r:.80}")
        table = None if probabilities is None else _probabilities(probabilities)
        if table is None and method == Evidence.PROBABILITIES:
            raise InvalidInput("the method 'probabilities' needs probabilities")
        evidence = frozenset(Evidence if method == _COMBINED else {Evidence(method)})
        media = open_media(self._context, self.id)
        check_indexed(self._context, media)
        key = "label issues", media.generation.id, *sorted(evidence)
        ranking: _Ranking | None = self._context.selections.get(key) if table is None else None
        if ranking is None:
            with progress_bar("Ranking labels", late=True) as bar:
                show = bar or (lambda _stage, _share: None)
                ranking = _ranking(media, rank_labels(media, evidence, table, lambda share: show("labels", share)))
            if table is None:
                self._context.selections.put(key, ranking, weight=1024 + ranking.table.nbytes)
        return LabelIssues(*ranking, View(self._context, self.id))


class _Ranking(NamedTuple):
    table: pa.Table
    rate: float
    interval: tuple[float, float]
    notes: list[str]


_UNCERTAIN = (
    "the rate may be much too high: {contradicted:.0%} of the labels are contradicted, many without certainty, as by "
    "an encoder that separates the labels badly; another encoder or the probabilities of a classifier help"
)


def _probabilities(given: Any) -> pa.Table:
    """Return probabilities as a table.

    Raises:
        InvalidInput: they are no table with ids of media.
    """
    try:
        table = pa.Table.from_pandas(given, preserve_index=False) if hasattr(given, "iloc") else pa.table(given)
    except (TypeError, ValueError, pa.ArrowException) as error:
        raise InvalidInput(f"probabilities are a table of Arrow or pandas, not {type(given).__name__}") from error
    if "media_id" not in table.column_names:
        raise InvalidInput("probabilities need the column 'media_id'")
    return table


def _ranking(media: Media, ranked: RankedLabels) -> _Ranking:
    noise = ranked.noise
    precision = np.cumsum(noise.probability, dtype=np.float64) / np.arange(1, len(noise.probability) + 1)
    arrays = [
        *(media.values_at(ranked.row_ids, name) for name in ("media_id", "path")),
        *(ranked.names.take(pa.array(codes)) for codes in (noise.code, noise.suggested)),
        pa.array(noise.probability),
        pa.array(precision.astype(np.float32)),
    ]
    kinds = LABEL_ISSUE_COLUMNS.types
    table = pa.table([each.cast(kind) for each, kind in zip(arrays, kinds, strict=True)], schema=LABEL_ISSUE_COLUMNS)
    notes = [_UNCERTAIN.format(contradicted=noise.contradicted)] if noise.is_uncertain else []
    return _Ranking(table, noise.rate, (noise.low, noise.high), notes)
