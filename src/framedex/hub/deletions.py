"""Deletions of datasets: from the catalog, then from the service's database, also if the process is killed between."""

from contextlib import suppress
from datetime import timedelta
from typing import Any

from framedex.access import Actor
from framedex.errors import Error, NotFound, WorkspaceError
from framedex.hub.context import HubContext
from framedex.storage.datasets import now
from framedex.storage.service_db import audit, homes
from framedex.storage.service_db.deletions import begin_deletion, begun_deletions, end_deletion

_LONGEST = timedelta(hours=1)
"""A deletion that has not reached the catalog by then never will."""


def delete_in_two_steps(context: HubContext, actor: Actor, dataset_id: str) -> None:
    """Delete a dataset, and then what is stored about it; note it in the audit.

    Raises:
        Forbidden: the settings do not allow deleting datasets.
        NotFound: there is no such dataset.
        Conflict: a task of the dataset is running.
    """
    is_begun = False
    with suppress(WorkspaceError):  # a full disk, on which datasets can be deleted
        with context.database.write() as connection:
            begin_deletion(connection, dataset_id, actor.user_id)
        is_begun = True
    try:
        context.workspace.delete_dataset(dataset_id)
    except NotFound:  # another process was faster, and ends what has begun
        raise
    except Error:
        with suppress(WorkspaceError), context.database.write() as connection:
            end_deletion(connection, dataset_id)
        raise
    with context.database.write() as connection:
        if end_deletion(connection, dataset_id) or not is_begun:
            _note(connection, dataset_id, actor.user_id)


def finish_deletions(context: HubContext) -> int:
    """Finish deletions that only the catalog has, because their processes were killed; return their number."""
    with context.database.read() as connection:
        begun = begun_deletions(connection)
    if not begun:
        return 0
    existing = {record.id for record in context.workspace.datasets(all_namespaces=True)}
    gone = [each for each in begun if each.dataset_id not in existing]
    former = [each for each in begun if each.dataset_id in existing and each.begun_at < now() - _LONGEST]
    with context.database.write() as connection:
        for each in former:
            end_deletion(connection, each.dataset_id)
        for each in gone:
            if end_deletion(connection, each.dataset_id):
                _note(connection, each.dataset_id, each.user_id)
    return len(gone)


def _note(connection: Any, dataset_id: str, user_id: str | None) -> None:
    homes.forget_dataset(connection, dataset_id)
    audit.insert_entry(connection, user_id, "dataset.delete", dataset_id=dataset_id)
