"""Ingestion of local files: a draft, transactions that take files, and the task that makes them a dataset."""

from fastapi import Request, Response
from fastapi.concurrency import run_in_threadpool
from pydantic import BaseModel

from framedex.access import Action
from framedex.api.dataset.uploads import UploadTransaction
from framedex.errors import Conflict
from framedex.jobs.ingest.received import check_format
from framedex.records import UploadState
from framedex.service.actions import needs, routes
from framedex.service.errors import Refusal
from framedex.service.forms import FILES, form_body
from framedex.service.parameters import CurrentActor, OpenedDataset, Service
from framedex.service.staging import last_part, staged_form

router = routes("ingestion")

_FILES_REQUIRED = "Field 'files' is required"


class DraftAnswer(BaseModel):
    """The id of a new dataset without files."""

    dataset_id: str


class TransactionAnswer(BaseModel):
    """The id of a new transaction."""

    trans_id: int


@router.get("/ingestion/new_dataset")
@needs(Action.TENANT_CREATE_DATASET, changes=True, invalid_status=400)
def create_draft_dataset(service: Service, actor: CurrentActor, dataset_name: str = "") -> DraftAnswer:
    """Create a dataset without files, to which files are uploaded; its status is DRAFT."""
    if not dataset_name:
        raise Refusal(400, "Field 'dataset_name' is required")
    return DraftAnswer(dataset_id=service.hub.datasets.create(actor, dataset_name).id)


@router.get("/ingestion/{dataset_id}/data_files")
@needs(Action.DATASET_EDIT, changes=True, invalid_status=400)
def open_transaction(dataset: OpenedDataset, dataset_id: str) -> TransactionAnswer:
    """Open a transaction that takes files; each call opens another one."""
    return TransactionAnswer(trans_id=dataset.open_upload().id)


@router.post(
    "/ingestion/{dataset_id}/data_files/{transaction_id}",
    status_code=202,
    response_class=Response,
    openapi_extra=form_body({"files": FILES}),
)
@needs(Action.DATASET_EDIT, invalid_status=400, body_limit="max_upload_bytes")
async def upload_data_files(
    service: Service, dataset: OpenedDataset, request: Request, dataset_id: str, transaction_id: int
) -> Response:
    """Add files to a transaction, all of them or none. The field is ``files``, once for each file."""
    workspace = service.workspace
    transaction = await run_in_threadpool(_taking_files, dataset, transaction_id)
    checks = {"files": lambda name: check_format(last_part(name))}
    async with staged_form(request, workspace.path, workspace.settings, files=checks) as form:
        files = form.files.get("files", [])
        if not files:
            raise Refusal(422, _FILES_REQUIRED)
        async with service.heavy:
            await run_in_threadpool(transaction.add, [(file.name, file) for file in files])
    return Response(status_code=202)


@router.post("/ingestion/{dataset_id}/process_files/{transaction_id}", status_code=202, response_class=Response)
@needs(Action.DATASET_EDIT, invalid_status=400, heavy=True)
def process_data_files(dataset: OpenedDataset, dataset_id: str, transaction_id: int) -> Response:
    """Start the task that makes the files of a transaction part of the dataset."""
    dataset.find_upload(transaction_id).process(wait=False)
    return Response(status_code=202)


def _taking_files(dataset: OpenedDataset, transaction_id: int) -> UploadTransaction:
    """Return a transaction that is open, before the body of a request is read.

    Raises:
        NotFound: the dataset has no such transaction.
        Conflict: it takes no files any more.
    """
    transaction = dataset.find_upload(transaction_id)
    if (state := transaction.state) is not UploadState.OPEN:
        raise Conflict(
            f"Transaction {transaction_id} is already "
            + ("being processed" if state is UploadState.PROCESSING else "processed; open another one")
        )
    return transaction
