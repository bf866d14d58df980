"""Labels that are suggested for media without any: they are listed, accepted and refused."""

from typing import Annotated, Any

from fastapi import Query, Request
from pydantic import BaseModel, Field

from framedex.access import Action
from framedex.errors import InvalidInput
from framedex.hub.actions import MOST_IDS
from framedex.records import LabelDecision
from framedex.service.actions import needs, routes
from framedex.service.arrow import ARROW, ARROW_ANSWER, arrow_response, wants_arrow
from framedex.service.parameters import OpenedDataset

router = routes("quality")

_ONE = "/dataset/{dataset_id}/labels/missing"
_MOST_JSON_ROWS, _MOST_ARROW_ROWS = 500, 100_000


class MissingLabel(BaseModel):
    """A label for a media item without any, its calibrated confidence, and its share of the neighbours' votes."""

    media_id: str
    path: str
    label: str
    confidence: float
    share: float


class Reliability(BaseModel):
    """The number of held-out media with at least a confidence, and the share of them with the label, null for none."""

    minimum: float
    n_media: int
    share_right: float | None
    n_suggested: int


class MissingLabels(BaseModel):
    """Some of the suggested labels, the most confident first; ``total`` is the number of all."""

    total: int
    offset: int
    reliability: list[Reliability]
    rows: list[MissingLabel]


class AcceptedLabels(BaseModel):
    """The lowest confidence of labels that are accepted."""

    minimum: Annotated[float, Field(ge=0, le=1)] = 0.9


class LabelledMedia(BaseModel):
    """The number of media that got labels."""

    count: int


class RefusedLabels(BaseModel):
    """The media for which no label fits; null for all with suggestions."""

    ids: Annotated[list[str], Field(max_length=MOST_IDS)] | None = None


@router.get(_ONE, response_model=MissingLabels, responses=ARROW_ANSWER)
@needs(Action.DATASET_VIEW, heavy=True)
def get_missing_labels(
    dataset_id: str,
    dataset: OpenedDataset,
    request: Request,
    offset: Annotated[int, Query(ge=0, le=2**31)] = 0,
    limit: Annotated[int, Query(ge=1, le=_MOST_ARROW_ROWS)] = 100,
) -> Any:
    """Return labels for the media without any, from the votes of their neighbours.

    Up to 500 come as JSON, with how often those of held-out media were right; or up to 100,000 as an Arrow stream.
    """
    as_arrow = wants_arrow(request)
    if not as_arrow and limit > _MOST_JSON_ROWS:
        raise InvalidInput(f"limit is 1 to {_MOST_JSON_ROWS} for JSON, not {limit}; {ARROW} takes more")
    found = dataset.suggest_labels()
    table = found.to_arrow().slice(offset, limit)
    if as_arrow:
        return arrow_response(table.schema, [table], {"Vary": "Accept"})
    reliability = [
        Reliability(**{**row, "share_right": row["share_right"] if row["n_media"] else None})
        for row in found.reliability().to_pylist()
    ]
    rows = [MissingLabel(**row) for row in table.to_pylist()]
    return MissingLabels(total=len(found), offset=offset, reliability=reliability, rows=rows)


@router.post(_ONE + "/accept")
@needs(Action.DATASET_EDIT, heavy=True)
def accept_missing_labels(dataset_id: str, dataset: OpenedDataset, body: AcceptedLabels) -> LabelledMedia:
    """Set the suggested labels of at least a confidence, as one step of the journal."""
    return LabelledMedia(count=dataset.suggest_labels().accept(body.minimum))


@router.post(_ONE + "/refuse")
@needs(Action.DATASET_EDIT, heavy=True)
def refuse_missing_labels(dataset_id: str, dataset: OpenedDataset, body: RefusedLabels) -> LabelDecision:
    """Store that no label fits media, so that none is suggested for them again."""
    return dataset.suggest_labels().refuse(body.ids)
