"""The JSON export as the answer itself."""

import tempfile
from contextlib import suppress
from pathlib import Path

from fastapi import Response
from starlette.background import BackgroundTask
from starlette.responses import FileResponse

from framedex.api.dataset import Dataset
from framedex.core.counts import counted
from framedex.errors import Conflict, WorkspaceError
from framedex.hub.exports import check_exportable
from framedex.service.errors import Refusal

MOST_MEDIA = 50_000
"""The maximum number of media in an export that is the answer itself."""
_WAIT_S = 120.0


def direct_export(dataset: Dataset, export_format: str, folder: Path, media_url: str) -> Response:
    """Return a response with the JSON export of a dataset, sent from a temporary file.

    Args:
        dataset: the dataset.
        export_format: must be ``json``.
        folder: for the temporary file.
        media_url: the URL of a media item with ``{media_id}`` in the place of its id.

    Raises:
        Conflict: the dataset has no state that can be exported.
        WorkspaceError: the workspace cannot be written.
        Refusal: the dataset is too large, the format is another one, or other exports take too long.
    """
    if export_format != "json":
        raise Refusal(422, f"This export has the format 'json', not {export_format!r}; start one for other formats")
    check_exportable(dataset)
    if (count := dataset.count()) > MOST_MEDIA:
        raise Refusal(
            422, f"The dataset has {counted(count, 'media')}; more than {MOST_MEDIA:,} need an export that is started"
        )
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise WorkspaceError(f"cannot make {folder}: {error.strerror}") from None
    temporary = tempfile.TemporaryDirectory(dir=folder, prefix="direct-", ignore_cleanup_errors=True)
    path = Path(temporary.name) / "metadata.json"
    task = dataset.export(path, "json", wait=False, media_url=media_url)
    try:
        task.wait(_WAIT_S)
    except BaseException as error:
        with suppress(Conflict):
            task.abort()
        temporary.cleanup()
        if isinstance(error, TimeoutError):
            raise Refusal(503, "Other exports are under way; try again later") from None
        raise
    return FileResponse(path, media_type="application/json", background=BackgroundTask(temporary.cleanup))
