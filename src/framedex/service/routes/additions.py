"""Additions of media to a dataset, and the rebuild of its index."""

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import Request, Response
from fastapi.concurrency import run_in_threadpool
from pydantic import BaseModel, Field

from framedex.access import Action
from framedex.api.dataset import Dataset
from framedex.core.allowed_folders import OwnPath
from framedex.core.suffixes import ARCHIVE_SUFFIXES, is_media
from framedex.errors import InvalidInput
from framedex.jobs.ingest.content import ONE_SOURCE
from framedex.media.remote import INVALID_URI, is_remote
from framedex.service.actions import needs, routes
from framedex.service.errors import Refusal
from framedex.service.forms import FILE, FILES, form_body, parse_fields
from framedex.service.parameters import CurrentActor, OpenedDataset, Service
from framedex.service.sources import check_bucket, check_role, reading_source
from framedex.service.staging import ARCHIVE, StagedForm, last_part, staged_form
from framedex.service.state import ServiceState

router = routes("additions")

_Count = Annotated[int, Field(ge=0)] | None
_ADDITION = ("add_media_enabled", "Add media feature is not enabled")


class AdditionFields(BaseModel):
    """The fields of an addition beside files; the numbers and ``use_spot`` are for other installations."""

    s3_uri: str | None = None
    auto_reindex: bool = False
    assume_role: str | None = None
    batch_n_videos: _Count = None
    batch_n_images: _Count = None
    batch_n_objects: _Count = None
    use_spot: bool | None = None


def _form_schema() -> dict[str, Any]:
    return form_body({**AdditionFields.model_json_schema()["properties"], "files": FILES, ARCHIVE: FILE})


@router.post("/dataset/{dataset_id}/add_media", status_code=202, response_class=Response, openapi_extra=_form_schema())
@needs(Action.DATASET_EDIT, feature=_ADDITION, invalid_status=400, body_limit="max_upload_bytes")
async def add_media(
    service: Service, actor: CurrentActor, dataset: OpenedDataset, request: Request, dataset_id: str
) -> Response:
    """Add media from exactly one source: ``files``, an ``archive``, or a folder or manifest in a bucket, ``s3_uri``."""
    workspace, checks = service.workspace, {"files": _check_media, ARCHIVE: _check_archive}
    async with staged_form(request, workspace.path, workspace.settings, files=checks) as form:
        fields = parse_fields(AdditionFields, _texts(form))
        tenant_id = service.hub.datasets.subject(actor, dataset_id).tenant_id
        source = _source(service, fields, form, tenant_id)
        async with service.heavy:
            await run_in_threadpool(_start, dataset, fields, source, form)
    return Response(status_code=202)


@router.post("/dataset/{dataset_id}/reindex", status_code=202, response_class=Response)
@needs(Action.DATASET_EDIT, invalid_status=400)
def reindex_dataset(dataset: OpenedDataset, dataset_id: str) -> Response:
    """Start to rebuild the index of a dataset to which media were added."""
    dataset.reindex(wait=False)
    return Response(status_code=202)


def _check_media(name: str) -> None:
    if not is_media(last_part(name)):
        raise InvalidInput(f"Unsupported file format: {last_part(name)!r}")


def _check_archive(name: str) -> None:
    if not last_part(name).lower().endswith(ARCHIVE_SUFFIXES):
        raise InvalidInput(f"an archive is a {', '.join(ARCHIVE_SUFFIXES)} file, not {last_part(name)!r}")


def _texts(form: StagedForm) -> dict[str, str]:
    """Return the fields of a form that are no files.

    Raises:
        Refusal: a field for files has a text, which stands for no file.
    """
    for name in ("files", ARCHIVE):
        if form.fields.pop(name, ""):
            raise Refusal(422, f"Invalid value for {name!r}: it takes files, not text")
    return form.fields


def _source(service: ServiceState, fields: AdditionFields, form: StagedForm, tenant_id: str) -> Mapping[str, Any]:
    """Return the source of an addition, as arguments of the library.

    A role is assumed with the id of the tenant as its external id. So a role whose trust policy requires that id cannot
    be used by other tenants, which know its ARN.

    Raises:
        Refusal: there is not exactly one source, or it may not be used.
    """
    files, archives = form.files.get("files", []), form.files.get(ARCHIVE, [])
    if len(archives) + bool(files) + (fields.s3_uri is not None) != 1:
        raise Refusal(400, ONE_SOURCE)
    arn = check_role(service, fields.assume_role)
    role = {"assume_role": arn, "external_id": arn and tenant_id}
    if fields.s3_uri is not None:
        if not is_remote(fields.s3_uri):
            raise Refusal(400, INVALID_URI)
        return {"s3_uri": check_bucket(service, fields.s3_uri), **role}
    if archives:
        return {"archive": OwnPath(archives[0].path), **role}
    return {"files": [(last_part(file.name), file) for file in files], **role}


def _start(dataset: Dataset, fields: AdditionFields, source: Mapping[str, Any], form: StagedForm) -> None:
    try:
        with reading_source(fields.s3_uri):
            dataset.add_media(**source, auto_reindex=fields.auto_reindex, wait=False)
    except InvalidInput as error:
        if not (archives := form.files.get(ARCHIVE)):
            raise
        shown = str(error).replace(str(archives[0].path), last_part(archives[0].name))
        raise type(error)(shown) from None
