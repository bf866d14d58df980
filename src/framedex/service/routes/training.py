"""Rows for training: what datasets of PyTorch and Hugging Face need beside the images, which are read one by one."""

from typing import Annotated

from fastapi import Query
from fastapi.responses import StreamingResponse

from framedex.access import Action
from framedex.service.actions import needs, routes
from framedex.service.arrow import ARROW_ANSWER, arrow_response
from framedex.service.parameters import CurrentActor, OpenedDataset, Service

router = routes("results")


@router.get("/dataset/{dataset_id}/results/{rid}/training", response_class=StreamingResponse, responses=ARROW_ANSWER)
@needs(Action.DATASET_VIEW, heavy=True)
def training_rows(
    dataset_id: str,
    rid: str,
    dataset: OpenedDataset,
    service: Service,
    actor: CurrentActor,
    target: Annotated[str | None, Query(max_length=1000)] = None,
    described: bool = False,
) -> StreamingResponse:
    """Return the rows of results that are images, as an Arrow stream with the class list of the dataset.

    The rows have ``media_id`` and, unless no target is asked for, ``target``: the labels, the objects, or the values of
    the column with that name. With ``described`` they have the columns of a dataset of Hugging Face instead.
    """
    view = service.hub.results.get(actor, dataset, rid).pinned()
    rows = view.described_table() if described else view.training_table(target)
    return arrow_response(rows.schema, [rows])
