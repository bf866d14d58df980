"""The quality of detections against annotations, the boxes behind it, and faults of annotations."""

from typing import Annotated, Any

from fastapi import Query, Request
from pydantic import BaseModel

from framedex.access import Action
from framedex.analysis.object_faults import ObjectFault
from framedex.api.evaluation import BoxKind
from framedex.errors import InvalidInput
from framedex.service.actions import needs, routes
from framedex.service.arrow import ARROW, ARROW_ANSWER, arrow_response, wants_arrow
from framedex.service.models_results import ResultsInfo
from framedex.service.parameters import CurrentActor, OpenedDataset, Service

router = routes("quality")

_ONE = "/dataset/{dataset_id}/evaluation"
_Source = Annotated[str, Query(max_length=1000)]
_Iou = Annotated[float, Query(gt=0, le=1)]
_MOST_JSON_ROWS, _MOST_ARROW_ROWS = 500, 2_000_000


class DetectionQuality(BaseModel):
    """The quality of the predictions of a label; null where there is nothing to divide by."""

    label: str
    n_truth: int
    n_predictions: int
    n_right: int
    precision: float | None
    recall: float | None
    average_precision: float | None


class DetectionConfusion(BaseModel):
    """The number of true boxes of a label with a prediction of another one in their places."""

    label: str
    predicted: str
    count: int


class EvaluationResult(BaseModel):
    """The quality of predictions by label, in alphabetical order, and the confusions, the most frequent first.

    ``notes`` say which figures are missing because there are no boxes.
    """

    iou: float
    labels: list[DetectionQuality]
    confusions: list[DetectionConfusion]
    notes: list[str]


@router.get(_ONE)
@needs(Action.DATASET_VIEW, heavy=True)
def get_evaluation(
    dataset_id: str,
    dataset: OpenedDataset,
    truth: _Source = "annotated",
    predictions: _Source = "detected",
    iou: _Iou = 0.5,
) -> EvaluationResult:
    """Return the quality of predicted boxes against true ones, matched as COCO does.

    ``truth`` and ``predictions`` are ``annotated`` (objects of annotation files that have no confidence), ``detected``
    (all others), or a source: a format of annotations, or the id of a model.
    """
    found = dataset.evaluate(truth, predictions, iou)
    return EvaluationResult(
        iou=found.iou,
        labels=[
            DetectionQuality(**{name: _number(value) for name, value in row.items()})
            for row in found.to_arrow().to_pylist()
        ],
        confusions=[DetectionConfusion(**row) for row in found.confusions().to_pylist()],
        notes=found.notes,
    )


@router.get(_ONE + "/boxes")
@needs(Action.DATASET_VIEW, heavy=True)
def get_evaluation_boxes(
    dataset_id: str,
    dataset: OpenedDataset,
    service: Service,
    actor: CurrentActor,
    kind: BoxKind,
    truth: _Source = "annotated",
    predictions: _Source = "detected",
    iou: _Iou = 0.5,
) -> ResultsInfo:
    """Return the id of results: the true boxes that are missing, the extra predictions, or those that are confused."""
    view = dataset.evaluate(truth, predictions, iou).view(kind)
    name = f"evaluation {kind} {truth} {predictions} {iou} {view._media().generation.id}"
    results = service.hub.results.of_view(actor, dataset, view, name)
    return ResultsInfo.of(results)


class ObjectIssue(BaseModel):
    """A fault of an annotated box, with the prediction, or the box that a duplicate repeats, as evidence.

    ``object_id``, ``label`` and ``box`` are null for a missing box, and ``suggested_label`` and ``suggested_box`` where
    nothing else is suggested. Boxes are x, y, width and height.
    """

    kind: ObjectFault
    score: float
    object_id: str | None
    evidence_id: str | None
    image_id: str
    path: str
    label: str | None
    suggested_label: str | None
    box: list[float] | None
    suggested_box: list[float] | None


class RankedObjectIssues(BaseModel):
    """Some of the faults of boxes, those with the highest scores first; ``counts`` are those of all kinds."""

    total: int
    offset: int
    counts: dict[ObjectFault, int]
    rows: list[ObjectIssue]


@router.get("/dataset/{dataset_id}/objects/issues", response_model=RankedObjectIssues, responses=ARROW_ANSWER)
@needs(Action.DATASET_VIEW, heavy=True)
def get_object_issues(
    dataset_id: str,
    dataset: OpenedDataset,
    request: Request,
    truth: _Source = "annotated",
    predictions: _Source = "detected",
    kind: ObjectFault | None = None,
    offset: Annotated[int, Query(ge=0, le=2**31)] = 0,
    limit: Annotated[int, Query(ge=1, le=_MOST_ARROW_ROWS)] = 100,
) -> Any:
    """Return annotated boxes that are probably wrong by what a detector predicts, the surest first.

    ``truth`` and ``predictions`` are those of an evaluation. Up to 500 rows come as JSON, or up to 2,000,000 as an
    Arrow stream.
    """
    as_arrow = wants_arrow(request)
    if not as_arrow and limit > _MOST_JSON_ROWS:
        raise InvalidInput(f"limit is 1 to {_MOST_JSON_ROWS} for JSON, not {limit}; {ARROW} takes more")
    found = dataset.object_issues(truth, predictions)
    table = found.to_arrow(kind)
    part = table.slice(offset, limit)
    if as_arrow:
        return arrow_response(part.schema, [part], {"Vary": "Accept"})
    counts = {ObjectFault(name): count for name, count in found.counts().items()}
    rows = [ObjectIssue(**row) for row in part.to_pylist()]
    return RankedObjectIssues(total=len(table), offset=offset, counts=counts, rows=rows)


def _number(value: Any) -> Any:
    """Return a value, or None for NaN, which JSON has not."""
    return None if value != value else value  # noqa: PLR0124
