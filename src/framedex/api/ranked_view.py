"""Ranked views: the results of a search."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from framedex.api.view import SHOWN, View
from framedex.browse.explore import file_name
from framedex.core.checks import check_fraction, check_integer
from framedex.errors import InvalidInput
from framedex.export.columns import export_batches, table_schema
from framedex.operations.context import Context
from framedex.operations.searches import open_searcher
from framedex.render import html
from framedex.search.queries import Query
from framedex.search.ranking import Ranking
from framedex.storage.condition import Condition
from framedex.storage.media import Media
from framedex.vql import Filter, parse

SCORES = pa.schema(
    [
        pa.field("relevance_score", pa.float32()),
        pa.field("relevance_score_type", pa.string()),
        pa.field("relevance", pa.float32()),
    ]
)
"""The columns that a ranked view adds to those of a view.

``relevance_score`` is a ``cosine_distance`` (0 best, 2 worst), a ``bm25`` score or a ``reciprocal_rank_fusion`` score
(higher is better). ``relevance``, 0 to 1, says how seldom something unrelated in this dataset would have such a score;
0.5 or more is a match, see :mod:`framedex.analysis.relevance`.
"""


class RankedView(View):
    """The results of a search, best first. The search runs when a method first needs it.

    A ranked view has all methods of a view. :meth:`where` filters before the ranking, so that the limit applies to the
    media that pass the filter.
    """

    def __init__(
        self,
        context: Context,
        dataset_id: str,
        vql: Filter,
        query: Query,
        *,
        limit: int | None,
        diversity: float = 0.0,
        relevance: float = 0.0,
        objects: bool = False,
    ) -> None:
        super().__init__(context, dataset_id, vql, objects=objects)
        check_integer("limit", limit, minimum=0, optional=True)
        check_fraction("diversity", diversity)
        check_fraction("relevance", relevance)
        if diversity and limit is None:
            raise InvalidInput("diversity needs a limit: without one, all media are returned anyway")
        self._query, self._limit = query, limit
        self._diversity, self._relevance = float(diversity), float(relevance)
        self._last: tuple[str, Ranking] | None = None

    def where(self, vql: Sequence[Any]) -> "RankedView":
        """Return the same search among the media that also pass another filter.

        Raises:
            InvalidFilter: the filter is invalid.
        """
        return self._narrowed(parse([*self._filter, *parse(vql)]), objects=self._objects)

    def _narrowed(self, vql: Filter, *, objects: bool) -> "RankedView":
        return self._limited(self._limit, vql, objects=objects)

    def _limited(self, limit: int | None, vql: Filter, *, objects: bool) -> "RankedView":
        """Return the same search with another limit and filter, among media or among objects."""
        return RankedView(
            self._context,
            self._dataset_id,
            vql,
            self._query,
            limit=limit,
            diversity=self._diversity,
            relevance=self._relevance,
            objects=objects,
        )

    def media_ids(self) -> list[str]:
        """Return the ids of the media, best first."""
        media = self._media()
        # Searches often follow each other, so all ids are cached; Lance takes milliseconds to read even a few.
        rows = media.take(self._ranking(media).row_ids.tolist(), ["media_id"], keep=True)
        ids: list[str] = rows["media_id"].to_pylist()
        return ids

    def to_arrow(self, columns: Sequence[str] | None = None) -> pa.Table:
        """Return a row for each media item, best first.

        Args:
            columns: as for :meth:`View.to_arrow`; also ``relevance_score``, ``relevance_score_type`` and ``relevance``,
                which are the last columns by default.

        Raises:
            InvalidInput: a column does not exist.
        """
        media = self._media()
        ranking = self._ranking(media)
        view_columns = (
            None
            if columns is None or isinstance(columns, str)
            else [each for each in columns if each not in SCORES.names]
        )
        schema = table_schema(media, columns if view_columns is None else view_columns or ["media_id"])
        table = pa.concat_tables([schema.empty_table(), *export_batches(media, ranking.row_ids, schema)])
        scores = {
            "relevance_score": pa.array(ranking.score, pa.float32()),
            "relevance_score_type": pa.repeat(pa.scalar(ranking.kind), len(ranking)),
            "relevance": pa.array(ranking.relevance, pa.float32()),
        }
        for field in SCORES:
            table = table.append_column(field, scores[field.name])
        return table if columns is None else table.select(list(columns))

    def _repr_html_(self) -> str:
        columns = ["media_id", "image_filename", "relevance_score", "relevance_score_type", "relevance"]
        count = SHOWN if self._limit is None else min(self._limit, SHOWN)
        shown = self._limited(count, self._filter, objects=self._objects)
        rows = shown.to_arrow(columns).to_pylist()
        if not rows:
            return html.block(html.note("nothing here matches"))
        jpegs = self.thumbnails([row["media_id"] for row in rows])
        return html.block(
            html.row(
                html.figure(jpeg, file_name(row["image_filename"]), _caption(row))
                for row, jpeg in zip(rows, jpegs, strict=True)
            )
        )

    def _ranking(self, media: Media) -> Ranking:
        key = media.generation.id
        if self._last is None or self._last[0] != key:
            searcher = open_searcher(self._context, media)
            rows = searcher.rows_of(super()._condition(media))
            ranking = self._query.run(searcher, rows, self._limit, self._diversity)
            self._last = key, ranking.only(np.flatnonzero(ranking.relevance >= self._relevance))
        return self._last[1]

    def _condition(self, media: Media) -> Condition:
        return self._ranking(media).condition()

    def _order(self, media: Media, _condition: Condition) -> Ranking | None:
        return self._ranking(media)


def _caption(row: dict[str, Any]) -> str:
    kind = row["relevance_score_type"].replace("_", " ")
    return f"{kind} {row['relevance_score']:.3f} · relevance {row['relevance']:.2f}"
