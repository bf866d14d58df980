"""Media of a dataset chosen by their likeness: copies in another dataset, and rows that cover the others; its card."""

from typing import Annotated, Any

from fastapi import Query, Request, Response
from pydantic import BaseModel

from framedex.access import Action
from framedex.api.view import View
from framedex.errors import InvalidInput
from framedex.service.actions import needs, routes
from framedex.service.arrow import ARROW, ARROW_ANSWER, arrow_response, wants_arrow
from framedex.service.parameters import CurrentActor, OpenedDataset, Service

router = routes("comparison")

_ONE = "/dataset/{dataset_id}"
_MOST_JSON_ROWS, _MOST_ARROW_ROWS = 500, 100_000
_Rid = Annotated[str | None, Query(max_length=1000)]
_MARKDOWN = "text/markdown"


class OverlapPair(BaseModel):
    """Two media of which one is a copy: their ids and paths within the sources, and what was done to the copy.

    ``copy`` is ``here`` or ``there``, the end that is the copy; null if unknown.
    """

    here_id: str
    there_id: str
    here_name: str
    there_name: str
    similarity: float
    copy_is: str | None
    reason: str


class OverlapRows(BaseModel):
    """Some of the pairs, the most similar first.

    ``total`` is the number of all pairs, ``count`` that of media here, ``other_count`` that of media there.
    """

    total: int
    count: int
    other_count: int
    offset: int
    rows: list[OverlapPair]


class CoveringMedia(BaseModel):
    """A media item, the number of those that it covers, and their mean and lowest similarity to it."""

    media_id: str
    n_covered: int
    mean_similarity: float | None
    lowest_similarity: float | None


class CoveringRows(BaseModel):
    """Media that cover a view best, in the order in which they add most."""

    n_covered: int
    n_without_embedding: int
    mean_similarity: float | None
    rows: list[CoveringMedia]


@router.get(_ONE + "/overlap", response_model=OverlapRows, responses=ARROW_ANSWER)
@needs(Action.DATASET_VIEW, heavy=True)
def get_overlap(
    dataset_id: str,
    dataset: OpenedDataset,
    service: Service,
    actor: CurrentActor,
    request: Request,
    other: Annotated[str, Query(max_length=1000)],
    similarity: Annotated[float, Query(ge=0, le=1)] = 0.96,
    exact: bool = False,
    rid: _Rid = None,
    other_rid: _Rid = None,
    offset: Annotated[int, Query(ge=0, le=2**31)] = 0,
    limit: Annotated[int, Query(ge=1, le=_MOST_ARROW_ROWS)] = 100,
) -> Any:
    """Return copies of media of a dataset, or of results, in another dataset or in its results.

    ``other`` is the id of the other dataset, which can be the same one. Up to 500 pairs come as JSON, or up to 100,000
    as an Arrow stream. The first answer takes the search; those that follow are read from its result.
    """
    as_arrow = wants_arrow(request)
    if not as_arrow and limit > _MOST_JSON_ROWS:
        raise InvalidInput(f"limit is 1 to {_MOST_JSON_ROWS} for JSON, not {limit}; {ARROW} takes more")
    there = service.hub.datasets.open(actor, other, Action.DATASET_VIEW)
    views = []
    for each, name in ((dataset, rid), (there, other_rid)):
        views.append(each.view if name is None else service.hub.results.get(actor, each, name).pinned())
    found = views[0].overlap(views[1], similarity, exact=exact)
    table = found.to_arrow().slice(offset, limit)
    if as_arrow:
        return arrow_response(table.schema, [table], {"Vary": "Accept"})
    columns = [{"copy": "copy_is"}.get(each, each) for each in table.column_names]
    rows = [OverlapPair(**row) for row in table.rename_columns(columns).to_pylist()]
    return OverlapRows(total=len(found), count=found.count(), other_count=found.other_count(), offset=offset, rows=rows)


@router.get(_ONE + "/diverse")
@needs(Action.DATASET_VIEW, heavy=True)
def get_diverse(
    dataset_id: str,
    dataset: OpenedDataset,
    service: Service,
    actor: CurrentActor,
    n: Annotated[int, Query(ge=0, le=10_000)],
    seed: Annotated[int, Query(ge=0, le=2**63)] = 0,
    rid: _Rid = None,
) -> CoveringRows:
    """Return the *n* media that cover a dataset, or results, best: each media item has a similar one among them."""
    view: View = dataset.view if rid is None else service.hub.results.get(actor, dataset, rid).pinned()
    found = view.diverse(n, seed=seed)
    rows = [
        CoveringMedia(**{name: _number(value) for name, value in row.items()}) for row in found.coverage().to_pylist()
    ]
    return CoveringRows(
        n_covered=found.n_covered,
        n_without_embedding=found.n_without_embedding,
        mean_similarity=_number(found.mean_similarity),
        rows=rows,
    )


def _number(value: Any) -> Any:
    """Return a value, or None for NaN, which JSON has not."""
    return None if value != value else value  # noqa: PLR0124


@router.get(
    _ONE + "/card",
    response_class=Response,
    responses={200: {"content": {_MARKDOWN: {"schema": {"type": "string"}}}}},
)
@needs(Action.DATASET_VIEW, heavy=True)
def get_card(dataset_id: str, dataset: OpenedDataset) -> Response:
    """Return the card of the dataset as Markdown: counts, sizes, labels, issues, copies, licences."""
    return Response(str(dataset.card()), media_type=f"{_MARKDOWN}; charset=utf-8")
