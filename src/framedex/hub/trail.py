"""The audit: who did what, for 90 days."""

import logging
from datetime import datetime, timedelta
from typing import Any

from framedex.access import Action, Actor
from framedex.core.checks import check_integer
from framedex.errors import WorkspaceError
from framedex.hub.admin_settings import SERVICE
from framedex.hub.context import HubContext
from framedex.operations.task_pages import parse_time
from framedex.records import AuditPage
from framedex.storage.service_db import audit

KEPT_DAYS = 90
"""The number of days for which the audit is kept."""


class Trail:
    """The audit of a hub: log-ins, users, roles, sharing, settings, exports, saved views, deletions, and refusals.

    Changes in the database of the service have their entries in the same transaction. Changes of datasets are in
    another file; their entries follow, so one is missing if the process is killed between the two. That of a deletion
    of a dataset is then added by the next hub of the workspace.

    Args:
        context: the open parts of the hub.
    """

    def __init__(self, context: HubContext) -> None:
        self._context = context

    def note(
        self,
        actor: Actor,
        action: str,
        *,
        dataset_id: str | None = None,
        target: str | None = None,
        connection: Any = None,
    ) -> None:
        """Add an entry about something that was done.

        Args:
            actor: who did it.
            action: what: a noun, a dot and a verb, up to 64 characters, such as ``snapshot.delete``.
            dataset_id: the dataset that it was done with.
            target: what it was done to; of a long text the beginning is kept.
            connection: of the transaction of the change in the database of the service. None for a change that is done
                already: then an entry that cannot be written is a warning in the log, as the change stays.
        """
        values: dict[str, Any] = {"dataset_id": dataset_id, "target": target}
        if connection is not None:
            audit.insert_entry(connection, actor.user_id, action, **values)
            return
        try:
            with self._context.database.write() as own:
                audit.insert_entry(own, actor.user_id, action, **values)
        except WorkspaceError as error:
            logging.getLogger("framedex.hub").warning("no entry of the audit for %s: %s", action, error)

    def page(
        self,
        actor: Actor,
        *,
        limit: int = 100,
        offset: int = 0,
        user_id: str | None = None,
        action: str | None = None,
        dataset_id: str | None = None,
        since: datetime | str | None = None,
        until: datetime | str | None = None,
    ) -> AuditPage:
        """Return a page of the entries, the newest first, and the number of all that were found.

        Args:
            actor: who asks.
            limit: of the page, 1 to 1,000.
            offset: of the page.
            user_id: the id of the user who did it; None for all, as for each further condition.
            action: the beginning of the action's name: ``users`` finds ``users.create``.
            dataset_id: the dataset.
            since: the earliest time, as a datetime or ISO 8601 text; UTC without a zone.
            until: the time before which it was done.

        Raises:
            Forbidden: the actor is no admin of the default tenant.
            InvalidInput: the limit, the offset or a time cannot be used.
        """
        self._context.require(actor, Action.ADMIN_SETTINGS, SERVICE)
        check_integer("limit", limit, minimum=1, maximum=1000)
        check_integer("offset", offset, minimum=0, maximum=2**62)
        begin, end = parse_time("since", since), parse_time("until", until)
        with self._context.database.read() as connection:
            entries, total = audit.list_entries(
                connection,
                limit=limit,
                offset=offset,
                user_id=user_id,
                action=action,
                dataset_id=dataset_id,
                since=begin,
                until=end,
            )
        return AuditPage(entries=entries, total=total)

    def sweep(self) -> int:
        """Delete entries that are older than 90 days; return their number."""
        with self._context.database.write() as connection:
            return audit.delete_old(connection, self._context.clock() - timedelta(days=KEPT_DAYS))
