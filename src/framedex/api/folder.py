"""A folder of images as a dataset: made, or found among those of a workspace and brought up to date."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from framedex.api.dataset import Dataset
from framedex.api.workspace import Workspace
from framedex.errors import Conflict, InvalidInput, MissingDependency, NotFound, Unavailable
from framedex.media.files import allowed_folders
from framedex.media.open_sources import open_source
from framedex.records import DatasetStatus, TaskType
from framedex.storage import task_rows
from framedex.storage.dataset_origins import FolderOrigin, folder_origins
from framedex.tasks import Task


class FolderStep(StrEnum):
    """The step by which the dataset of a folder comes up to date.

    Attributes:
        CREATE: a new dataset is made of the folder.
        ADD: files that are new or have changed are added to its dataset.
        CONTINUE: a task of its dataset that did not end continues from its last checkpoint.
        WAIT: a task of its dataset is in progress already.
    """

    CREATE = "create"
    ADD = "add"
    CONTINUE = "continue"
    WAIT = "wait"


@dataclass(frozen=True)
class OpenedFolder:
    """A folder whose dataset comes up to date.

    Attributes:
        dataset: the dataset.
        name: its name.
        step: the step that has begun.
        task: the task of this step in this process; None with ``WAIT``.
        task_type: the type of the task in progress.
        folder: the absolute path of the folder, as the dataset names it.
        below: its path below the source root of the dataset; empty for the root itself.
    """

    dataset: Dataset
    name: str
    step: FolderStep
    task: Task | None
    task_type: TaskType
    folder: Path
    below: str


class _Match(NamedTuple):
    """A dataset that has the files of a folder, the source root in which they are, and the path below that root."""

    dataset: Dataset
    root: str
    below: str


def open_folder(workspace: Workspace, folder: Path, name: str | None = None) -> OpenedFolder:
    """Start what brings the dataset of a folder up to date, in the background; make the dataset if there is none.

    The dataset of a folder is the newest that was made of it, or of the closest folder around it. Folders are the same
    if links lead to the same place.

    Args:
        workspace: the open workspace.
        folder: the folder.
        name: the name of the dataset; by default that of the folder for a new one.

    Raises:
        InvalidInput: the folder has no images, or the name cannot be used.
        Conflict: the name is taken by a dataset that was not made of the folder.
        Error: an interrupted creation cannot be continued.
    """
    path = Path(os.path.abspath(folder))  # noqa: PTH100 - keeps links, unlike resolve
    match = _find(workspace, path, name)
    if match is None:
        try:
            return _create(workspace, path, name or path.name)
        except Conflict:  # another process was faster
            match = _find(workspace, path, name)
            if match is None:
                raise
    return _update(workspace, match)


def count_files(workspace: Workspace, folder: Path) -> int:
    """Return the number of images and videos in a folder.

    Raises:
        InvalidInput: it cannot be read.
    """
    source = open_source(folder, allowed_folders(workspace.settings))
    return sum(1 for _ in source.items())


def _create(workspace: Workspace, path: Path, name: str) -> OpenedFolder:
    taken = next((each for each in workspace.datasets() if each.display_name == name), None)
    if taken is not None:
        of = f" of {taken.source_uri}" if taken.source_uri else ""
        raise Conflict(f"the name {name!r} is taken by another dataset{of}; choose another name")
    dataset = workspace.create_dataset(name, path, wait=False)
    return OpenedFolder(dataset, name, FolderStep.CREATE, dataset.task, TaskType.DATASET_CREATION, path, "")


def _update(workspace: Workspace, match: _Match) -> OpenedFolder:
    """Start what brings a dataset up to date, or continues what did not end."""
    dataset, info = match.dataset, match.dataset.info
    folder = Path(match.root, match.below)

    def opened(step: FolderStep, task: Task | None, task_type: TaskType) -> OpenedFolder:
        return OpenedFolder(dataset, info.display_name, step, task, task_type, folder, match.below)

    if (running := dataset.running_task) is not None:
        return opened(FolderStep.WAIT, None, running)
    if (task := _unfinished(workspace, dataset)) is not None:
        return opened(FolderStep.CONTINUE, task, task.record.task_type)
    try:
        task = dataset.add_media(folder, auto_reindex=True, wait=False)
    except Conflict:  # another process was faster
        if (running := dataset.running_task) is None:
            raise
        return opened(FolderStep.WAIT, None, running)
    return opened(FolderStep.ADD, task, TaskType.MEDIA_ADDITION)


def _unfinished(workspace: Workspace, dataset: Dataset) -> Task | None:
    """Continue the last task of a dataset if it did not end; return None if there is no such task.

    A creation continues whatever ended it. Another task that was interrupted is left as it is if it cannot continue.
    """
    last, is_created = dataset.last_task, dataset.info.status_new is not DatasetStatus.ERROR
    if last is None or (is_created and last.status_message != task_rows.INTERRUPTED):
        return None
    task = workspace.task(last.task_id)
    try:
        task.retry()
    except (InvalidInput, NotFound, Unavailable, MissingDependency):
        if not is_created:
            raise
        return None
    return task


def _find(workspace: Workspace, path: Path, name: str | None) -> _Match | None:
    """Return the dataset that has the files of a folder; None if there is none, or none of that name."""
    with workspace._read() as connection:
        origins = folder_origins(connection, workspace.namespace)
    matches = [(origin, root, below) for origin in origins for root, below in _places(origin, path)]
    if name is not None:
        named = next((each.id for each in workspace.datasets() if each.display_name == name), None)
        matches = [each for each in matches if each[0].dataset_id == named]
    if not matches:
        return None
    # The closest folder, then datasets that are no copies, then the newest: the order in which they come.
    origin, root, below = min(matches, key=lambda each: (len(Path(each[2]).parts), not each[0].is_own))
    return _Match(workspace.dataset(origin.dataset_id), root, below)


def _places(origin: FolderOrigin, path: Path) -> Iterator[tuple[str, str]]:
    """Yield the roots of a dataset in which a folder is, with its path below each."""
    for root in origin.folders:
        below = _below(Path(root), [path, Path(os.path.realpath(path))])
        if below is not None:
            yield root, below


def _below(root: Path, paths: Sequence[Path]) -> str | None:
    """Return the path below a root of the first path that is there, empty for the root; None if none is."""
    for base in (root, Path(os.path.realpath(root))):
        for path in paths:
            if path.is_relative_to(base):
                below = path.relative_to(base)
                return os.fspath(below) if below.parts else ""
    return None
