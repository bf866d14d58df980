"""Application of a comparison of a dataset with its folders: the change of its rows, and what is added or removed."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from framedex.errors import Conflict
from framedex.jobs.edits.journal import NewStep
from framedex.jobs.ingest.content import AdditionRequest
from framedex.jobs.sync import change_files
from framedex.media.files import locate
from framedex.media.remote import is_remote
from framedex.operations.comparison import SyncPlan
from framedex.operations.context import Context, open_media
from framedex.operations.short_edits import editing
from framedex.storage import datasets
from framedex.storage.generation import SourceFolder
from framedex.storage.media import Media

OPERATION = "sync"
_TRIES = 3


def addition_of(context: Context, dataset_id: str, folder: SourceFolder) -> AdditionRequest:
    """Return the request that adds what is new in a folder of a dataset."""
    media = open_media(context, dataset_id)
    root = media.roots[folder.root]
    place = locate(root, folder.path) if folder.path else root
    if not is_remote(place):
        return AdditionRequest(path=place, class_folders=folder.class_folders, interpolate=folder.interpolate)
    role = media.generation.summary.role_of(folder.root)
    return AdditionRequest(s3_uri=f"{place}/", assume_role=role and role.arn, external_id=role and role.external_id)


def apply_sync(context: Context, dataset_id: str, plan: Callable[[], SyncPlan]) -> SyncPlan:
    """Write what a plan says of rows, as one step of the journal; return the plan.

    Args:
        context: the open workspace.
        dataset_id: the dataset.
        plan: compares the dataset with its folders.

    Raises:
        Conflict: the dataset was changed again and again while it was compared, or a task is in progress.
    """
    for _ in range(_TRIES):
        made = plan()
        changes = made.changes
        if not (changes.places or changes.missing or changes.back):
            return made
        with editing(context, dataset_id, OPERATION, alone=True) as edit:
            if (edit.job.head.id, edit.job.roots) != (made.head, made.roots_before):
                continue
            versions = change_files(edit.media(context), edit.job.head, changes, at=datasets.now())
            n_files = len({*changes.places, *changes.missing, *changes.back})

            def put_roots(connection: Any, made: SyncPlan = made) -> None:
                if tuple(datasets.get_roots(connection, dataset_id)) != made.roots_before:
                    raise Conflict("the sources of the dataset were relocated meanwhile; nothing was changed")
                if made.roots != made.roots_before:
                    datasets.put_roots(connection, dataset_id, made.roots)

            step = NewStep(OPERATION, n_files, is_state=True)
            edit.commit(versions, edit.job.head.summary, step=step, also=put_roots)
        return made
    raise Conflict("the dataset was changed while it was compared with its folders; try again. Nothing was changed")


def media_of_files(media: Media, file_ids: frozenset[str]) -> list[str]:
    """Return the ids of the media of some files: of images, and of the frames of videos."""
    names, chosen = ["media_id", *(["video_id"] if media.has_videos else [])], pa.array(file_ids, pa.string())
    found: list[str] = []
    for batch in media.table.scan(names) if file_ids else ():
        own = batch["media_id"]
        files = pc.coalesce(batch["video_id"], own) if media.has_videos else own
        found += own.filter(pc.is_in(files, value_set=chosen)).to_pylist()
    return found
