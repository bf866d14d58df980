"""Comparison of two states of a dataset, and trends over its snapshots."""

from typing import Annotated, Literal

from fastapi import Query, Request, Response
from pydantic import BaseModel, Field

from framedex.access import Action
from framedex.api.comparison import Change
from framedex.errors import InvalidInput
from framedex.records import StateCounts
from framedex.service.actions import needs, routes
from framedex.service.arrow import ARROW, ARROW_ANSWER, arrow_response, wants_arrow
from framedex.service.models_results import ResultsInfo
from framedex.service.parameters import CurrentActor, OpenedDataset, Service

router = routes("comparison")

_ONE = "/dataset/{dataset_id}/compare"
_MOST_JSON_ROWS, _MOST_ARROW_ROWS = 500, 100_000
_State = Annotated[str, Query(max_length=1000)]


class ComparisonCounts(BaseModel):
    """The number of media with each change between two states, and the generations of these states."""

    counts: dict[Change, int]
    before: str
    after: str


class ChangedMedia(BaseModel):
    """A change of a media item: the labels, tags, captions or issue types before and after; null for other changes."""

    media_id: str
    image_filename: str
    change: Change
    before: list[str] | None
    after: list[str] | None


class ComparisonRows(BaseModel):
    """Some of the media with a change; ``total`` is the number of all."""

    total: int
    offset: int
    rows: list[ChangedMedia]


class ComparisonBody(BaseModel):
    """Two states, and a change between them."""

    before: Annotated[str, Field(max_length=1000)]
    after: Annotated[str, Field(max_length=1000)] = "head"
    change: Literal["added", "replaced", "relabelled", "retagged", "recaptioned", "newly_flagged", "resolved"]


@router.get(_ONE)
@needs(Action.DATASET_VIEW, heavy=True)
def get_comparison(dataset_id: str, dataset: OpenedDataset, before: _State, after: _State = "head") -> ComparisonCounts:
    """Return the number of media with each change between two states.

    A state is the id or the name of a snapshot, ``current`` for the current snapshot, ``head`` for the present state,
    or the id of a generation, which is kept for ten minutes after it was replaced.
    """
    found = dataset.compare(before, after)
    earlier, later = found.generations
    return ComparisonCounts.model_validate({"counts": found.counts, "before": earlier, "after": later})


@router.get(_ONE + "/rows", response_model=ComparisonRows, responses=ARROW_ANSWER)
@needs(Action.DATASET_VIEW, heavy=True)
def get_comparison_rows(
    dataset_id: str,
    dataset: OpenedDataset,
    before: _State,
    change: Change,
    request: Request,
    after: _State = "head",
    offset: Annotated[int, Query(ge=0, le=2**31)] = 0,
    limit: Annotated[int, Query(ge=1, le=_MOST_ARROW_ROWS)] = 100,
) -> ComparisonRows | Response:
    """Return some of the media with a change between two states, in the order of ingestion.

    Up to 500 come as JSON, or up to 100,000 as an Arrow stream.
    """
    as_arrow = wants_arrow(request)
    if not as_arrow and limit > _MOST_JSON_ROWS:
        raise InvalidInput(f"limit is 1 to {_MOST_JSON_ROWS} for JSON, not {limit}; {ARROW} takes more")
    found = dataset.compare(before, after)
    table = found.to_arrow(change, offset=offset, limit=limit)
    if as_arrow:
        return arrow_response(table.schema, [table])
    rows = table.to_pylist()
    return ComparisonRows(total=found.counts[change], offset=offset, rows=[ChangedMedia(**row) for row in rows])


@router.post(_ONE + "/results")
@needs(Action.DATASET_VIEW, heavy=True)
def open_comparison_results(
    dataset_id: str, dataset: OpenedDataset, service: Service, actor: CurrentActor, body: ComparisonBody
) -> ResultsInfo:
    """Return the id of results: the media with a change that the dataset still has."""
    found = dataset.compare(body.before, body.after)
    results = service.hub.results.of_view(actor, dataset, found.view(body.change), found.name_of(body.change))
    return ResultsInfo.of(results)


@router.get("/dataset/{dataset_id}/trends")
@needs(Action.DATASET_VIEW, heavy=True)
def get_trends(dataset_id: str, dataset: OpenedDataset) -> list[StateCounts]:
    """Return the counts of media, issues and labels of each snapshot, oldest first, and of the present state."""
    return dataset.trends()
