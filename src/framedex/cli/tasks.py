"""Commands that list tasks, wait for them, abort them and run them again."""

from typing import TYPE_CHECKING, Annotated

import typer

import framedex
from framedex.cli.options import JsonOption, WorkspaceOption, open_workspace
from framedex.cli.output import print_json, print_table, say
from framedex.errors import InvalidInput, NotFound

if TYPE_CHECKING:
    from framedex.records import TaskRecord


_TaskArgument = Annotated[str, typer.Argument(help="Id of a task, or name of a dataset for its last one.")]


def tasks(
    dataset: Annotated[
        list[str] | None, typer.Option("--dataset", help="Name or id of a dataset; only its tasks. Repeatable.")
    ] = None,
    status: Annotated[str | None, typer.Option(help="Only tasks of this status, such as FAILED.")] = None,
    page: Annotated[int, typer.Option(help="Number of the page, from 1.")] = 1,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the tasks of the workspace or of some datasets, newest first, 50 on a page."""
    with open_workspace(workspace) as ws:
        ids = [ws.dataset(name).id for name in dataset] if dataset else None
        listed = ws.tasks(datasets=ids, status=status, page=page, page_size=50)
        if as_json:
            print_json({**listed.model_dump(mode="json"), "total_pages": listed.total_pages})
            return
        rows = [
            (
                task.dataset_name,
                task.task_type,
                task.status,
                task.error_message or task.status_message,
                task.created_by,
                f"{task.start_time:%Y-%m-%d %H:%M}",
                task.task_id,
            )
            for task in listed.tasks
        ]
        print_table(("dataset", "type", "status", "message", "user", "started (UTC)", "id"), rows)
        if listed.total_pages > 1:
            say(f"page {listed.page} of {listed.total_pages}")


def retry(
    task: Annotated[
        str | None,
        typer.Argument(help="Id of a failed or aborted task, or name of a dataset for its last one."),
    ] = None,
    interrupted: Annotated[
        bool, typer.Option("--interrupted", help="Instead of TASK: all tasks whose process ended.")
    ] = False,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run a failed or aborted task again, from its last checkpoint, and wait for its end."""
    from framedex.render.progress import progress_bar

    if (task is None) != interrupted:
        raise InvalidInput("give either TASK or --interrupted")
    with open_workspace(workspace) as ws:
        if task is None:
            again = ws.retry_interrupted()
        else:
            again = [ws.task(_task_id(ws, task))]
            again[0].retry()
        with progress_bar("Retrying") as progress:
            records = [each.wait(progress=progress) for each in again]
        left = ws.interrupted_tasks() if task is None else []
        if as_json:
            print_json(records if task is None else records[0])
            return
        for record in records:
            _show(record, as_json=False)
        for record in left:
            say(f"{record.dataset_name}: {record.task_type} task {record.task_id} cannot be retried here")
        if task is None and not records and not left:
            say("no task was interrupted")


def wait(task: _TaskArgument, workspace: WorkspaceOption = None, as_json: JsonOption = False) -> None:
    """Wait for the end of a task of this process or another one; Ctrl-C ends the waiting alone."""
    from framedex.render.progress import progress_bar

    with open_workspace(workspace) as ws, progress_bar("Waiting") as progress:
        record = ws.task(_task_id(ws, task)).wait(progress=progress)
    _show(record, as_json=as_json)


def abort(task: _TaskArgument, workspace: WorkspaceOption = None, as_json: JsonOption = False) -> None:
    """Abort a task; what it has not committed is dropped, and `framedex retry` continues it."""
    with open_workspace(workspace) as ws:
        record = ws.task(_task_id(ws, task)).abort()
    _show(record, as_json=as_json)


def _show(record: "TaskRecord", *, as_json: bool) -> None:
    if as_json:
        print_json(record)
    else:
        say(f"{record.dataset_name}: {record.task_type} task {record.task_id} is {record.status}")


def _task_id(workspace: "framedex.Workspace", given: str) -> str:
    """Return a task's id from itself, or from the name or id of the dataset that the task changed last.

    Raises:
        NotFound: there is neither a task nor a dataset of that name, or the dataset has no task.
    """
    try:
        return workspace.task(given).id
    except NotFound:
        pass
    try:
        last = workspace.dataset(given).last_task
    except NotFound as error:
        raise NotFound(f"no task {given!r}, and {error}") from None
    if last is None:
        raise NotFound(f"dataset {given!r} has no task")
    return last.task_id
