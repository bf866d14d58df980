"""Labels that are probably wrong, by pairs of present and suggested labels: those of a pair are accepted at once."""

from typing import Annotated

from fastapi import Query
from pydantic import BaseModel

from framedex.access import Action
from framedex.hub.label_proposals import label_pairs, mislabelled
from framedex.service.actions import needs, routes
from framedex.service.models_results import ResultsInfo
from framedex.service.parameters import CurrentActor, OpenedDataset, Service

router = routes("quality")

_DATASET = "/dataset/{dataset_id}"
_Confidence = Annotated[float, Query(ge=0, le=1)]
_Label = Annotated[str, Query(max_length=10_000)]
_WithoutTag = Annotated[str | None, Query(max_length=1000)]


class SuggestedLabel(BaseModel):
    """Present labels, the one that is suggested instead, the number of media, and the highest confidence of these."""

    labels: list[str]
    suggested_label: str
    count: int
    confidence: float


class SuggestedLabels(BaseModel):
    """Pairs of present and suggested labels, the largest first."""

    pairs: list[SuggestedLabel]


@router.get(_DATASET + "/labels/suggestions")
@needs(Action.DATASET_VIEW, heavy=True)
def suggestions_about_labels(
    dataset_id: str, dataset: OpenedDataset, confidence: _Confidence = 0.0, without_tag: _WithoutTag = None
) -> SuggestedLabels:
    """Return the pairs of present and suggested labels among probably wrong labels, the largest first.

    Media with ``without_tag`` are left out.
    """
    found = label_pairs(dataset, confidence, without_tag=without_tag)
    return SuggestedLabels(
        pairs=[
            SuggestedLabel(
                labels=list(pair.labels),
                suggested_label=pair.suggested_label,
                count=pair.n_media,
                confidence=pair.confidence,
            )
            for pair in found
        ]
    )


@router.get(_DATASET + "/labels/suggestion")
@needs(Action.DATASET_VIEW, heavy=True)
def suggestion_about_labels(
    dataset_id: str,
    dataset: OpenedDataset,
    service: Service,
    actor: CurrentActor,
    suggested_label: _Label,
    label: Annotated[list[_Label] | None, Query(max_length=1000)] = None,
    confidence: _Confidence = 0.0,
    without_tag: _WithoutTag = None,
) -> ResultsInfo:
    """Return the media of one pair of present labels and a suggested one as results, the worst first."""
    ids = mislabelled(dataset, label or [], suggested_label, confidence, without_tag=without_tag)
    results = service.hub.results.of_media(actor, dataset, ids)
    return ResultsInfo.of(results)
