"""The merge of two datasets into a new one."""

from typing import Annotated

from pydantic import BaseModel, Field

from framedex.access import Action
from framedex.service.actions import needs, routes
from framedex.service.parameters import CurrentActor, OpenedDataset, Service

router = routes("datasets")


class MergeRequest(BaseModel):
    """The other dataset, by its id, and the name of the new one."""

    other: Annotated[str, Field(max_length=1000)]
    name: Annotated[str, Field(max_length=1000)]


class MergedDataset(BaseModel):
    """The id of a dataset that is being made of two others."""

    id: str


@router.post("/dataset/{dataset_id}/merge", status_code=202)
@needs(Action.DATASET_CLONE, heavy=True)
def post_merge(
    dataset_id: str, service: Service, actor: CurrentActor, dataset: OpenedDataset, body: MergeRequest
) -> MergedDataset:
    """Start to create a dataset with the media of a dataset and of another one.

    Both need embeddings of the same encoder. The actor may copy both.
    """
    return MergedDataset(id=service.hub.copies.merge(actor, dataset.id, body.other, body.name).id)
