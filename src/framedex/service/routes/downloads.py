"""The files of exports."""

from fastapi import Request, Response

from framedex.access import Action
from framedex.service.actions import needs, routes
from framedex.service.files import HOUR, content_response
from framedex.service.parameters import CurrentActor, OpenedDataset, Service

router = routes("exports", prefix="/cdn")


@router.get("/{dataset_id}/exports/{export_id}/{file_name}", response_class=Response)
@needs(Action.DATASET_EXPORT, signed=True)
def get_export_file(
    dataset_id: str,
    export_id: str,
    file_name: str,
    request: Request,
    service: Service,
    actor: CurrentActor,
    dataset: OpenedDataset,
) -> Response:
    """Return the ZIP file of an export, as a whole or in ranges."""
    path, name = service.hub.exports.path(actor, dataset.id, export_id)
    file = path.open("rb")
    size = file.seek(0, 2)
    return content_response(
        request, file, size=size, media_type="application/zip", etag=export_id, name=name, disposition="attachment",
        cache=HOUR,
    )  # fmt: skip
