"""The quality of detections against annotations, and the boxes behind it."""

from typing import Annotated, Any

from fastapi import Query
from pydantic import BaseModel

from framedex.access import Action
from framedex.api.evaluation import BoxKind
from framedex.service.actions import needs, routes
from framedex.service.models_results import ResultsInfo
from framedex.service.parameters import CurrentActor, OpenedDataset, Service

router = routes("quality")

_ONE = "/dataset/{dataset_id}/evaluation"
_Source = Annotated[str, Query(max_length=1000)]
_Iou = Annotated[float, Query(gt=0, le=1)]


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


def _number(value: Any) -> Any:
    """Return a value, or None for NaN, which JSON has not."""
    return None if value != value else value  # noqa: PLR0124
