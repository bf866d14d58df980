"""Notifications: who hears of an alert, and what each user has read."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from framedex.access import LOCAL_USER_ID, Action, Actor, DatasetSubject, Via, allowed
from framedex.core.checks import check_integer
from framedex.core.counts import counted
from framedex.errors import NotFound
from framedex.hub.actors import actor_of_row, present_actor
from framedex.hub.alert_calls import AlertCalls
from framedex.hub.context import HubContext
from framedex.hub.datasets import Datasets
from framedex.records import Alert, Notification, NotificationPage
from framedex.storage import alert_queue
from framedex.storage.alert_queue import QueuedAlert
from framedex.storage.service_db import accounts, homes, notifications, tenants
from framedex.storage.service_db.notifications import Inbox

MOST_OF_PAGE = 100
"""The maximum number of notifications of a page."""
_NOT_FOUND = "Notification not found"
_AT_ONCE = 200


class Notifications:
    """The notifications of the users of a hub. Those of datasets that a user may no longer view are hidden.

    Args:
        context: the open parts of the hub.
        datasets: the datasets of the hub.
        calls: calls of the operator's own command or URL.
    """

    def __init__(self, context: HubContext, datasets: Datasets, calls: AlertCalls) -> None:
        self._context, self._datasets, self._calls = context, datasets, calls

    def search(
        self,
        actor: Actor,
        *,
        limit: int = 20,
        offset: int = 0,
        unread_only: bool = False,
        dataset_id: str | None = None,
    ) -> NotificationPage:
        """Return a page of an actor's notifications, newest first.

        Args:
            actor: who asks.
            limit: of the page, 1 to 100.
            offset: of the page.
            unread_only: leave out those that were read.
            dataset_id: those of one dataset; none if the actor may not view it. None for all.

        Raises:
            NotAuthenticated: nobody is logged in.
            InvalidInput: the limit or the offset is out of range.
        """
        check_integer("limit", limit, minimum=1, maximum=MOST_OF_PAGE)
        check_integer("offset", offset, minimum=0)
        inbox = self._inbox(actor, dataset_id)
        with self._context.database.read() as connection:
            found, total = notifications.list_notifications(
                connection, inbox, unread_only=unread_only, limit=limit, offset=offset
            )
        return NotificationPage(notifications=found, total=total, has_more=offset + len(found) < total)

    def count_unread(self, actor: Actor, dataset_id: str | None = None) -> int:
        """Return the number of an actor's notifications that were not read, of one dataset or of all."""
        inbox = self._inbox(actor, dataset_id)
        with self._context.database.read() as connection:
            return notifications.count_unread(connection, inbox)

    def read(self, actor: Actor, notification_id: str) -> None:
        """Mark a notification as read.

        Raises:
            NotFound: the actor has no such notification, or it was read before.
        """
        inbox = self._inbox(actor)
        with self._context.database.write() as connection:
            if not notifications.mark_read(connection, inbox, notification_id.lower()):
                raise NotFound(_NOT_FOUND)

    def read_all(self, actor: Actor, dataset_id: str | None = None) -> int:
        """Mark an actor's notifications as read, of one dataset or of all; return their number."""
        inbox = self._inbox(actor, dataset_id)
        with self._context.database.write() as connection:
            return notifications.mark_read(connection, inbox)

    def number_of(self, actor: Actor, notification_id: str | None) -> int:
        """Return the number of a notification of an actor, for :meth:`after`; by default that of the newest one."""
        with self._context.database.read() as connection:
            number = None
            if notification_id is not None and actor.user_id is not None:
                number = notifications.number_of(connection, actor.user_id, notification_id.lower())
            return notifications.last_number(connection) if number is None else number

    def after(
        self, actor: Actor, number: int, dataset_id: str | None = None, *, limit: int = MOST_OF_PAGE
    ) -> list[tuple[int, Notification]]:
        """Return an actor's notifications with greater numbers, oldest first, each with its number.

        What the actor may view is that of this moment, so that a stream follows changes of roles and grants.

        Raises:
            NotAuthenticated: the user was deleted or disabled meanwhile.
        """
        with self._context.database.read() as connection:
            actor = present_actor(connection, actor)
        inbox = self._inbox(actor, dataset_id)
        with self._context.database.read() as connection:
            return notifications.notifications_after(connection, inbox, number, limit=limit)

    def _inbox(self, actor: Actor, dataset_id: str | None = None) -> Inbox:
        """Return the notifications that an actor may see.

        Raises:
            NotAuthenticated: nobody is logged in.
            Forbidden: the password of the actor is temporary.
        """
        visible = {each.id for each in self._datasets.visible(actor)}
        assert actor.user_id is not None, "the actor is logged in"
        return Inbox(actor.user_id, visible if dataset_id is None else visible & {dataset_id})

    def deliver(self) -> int:
        """Send the alerts that wait to users as notifications; return the number of alerts.

        Notifications are stored before their alert is taken from the queue, and the database refuses a second one of
        the same batch. So a process that is killed in between loses and repeats nothing, and two may do it at once.
        """
        if self._context.workspace.read_only:
            return 0
        catalog, count = self._context.workspace._context.catalog, 0
        while True:
            with catalog.read() as connection:
                queued = alert_queue.queued_alerts(connection, limit=_AT_ONCE)
            if not queued:
                return count
            self._notify(queued)
            with catalog.write() as connection:
                alert_queue.remove_queued(connection, [each.alert for each in queued])
            self._calls.wake()
            count += len(queued)

    def _notify(self, queued: Iterable[QueuedAlert]) -> None:
        time = self._context.clock()
        with self._context.database.write() as connection:
            for alert, creator_id in queued:
                self._calls.put(connection, alert)
                for user_id in self._recipients(connection, alert, creator_id):
                    notifications.put_notification(connection, user_id, alert, message=_message(alert), time=time)

    def _recipients(self, connection: Any, alert: Alert, creator_id: str | None) -> list[str]:
        """Return the users who hear of an alert and may view its dataset, and the local user.

        These are the owner of the dataset, or else the admins of its tenant; those with whom it is shared; and who
        saved the view.
        """
        try:
            home = self._datasets.home(connection, alert.dataset_id)
        except NotFound:  # deleted meanwhile
            return []
        grants = homes.grants_for(connection, alert.dataset_id)
        owners = [home.owner_id] if home.owner_id is not None else tenants.admins_of(connection, home.tenant_id)
        candidates = {*owners, *grants, *([] if creator_id is None else [creator_id])}
        found = [LOCAL_USER_ID]
        for row in accounts.users_of(connection, candidates).values():
            actor = replace(actor_of_row(connection, row, Via.SESSION), password_is_temporary=False)
            subject = DatasetSubject(home.tenant_id, home.owner_id, grants.get(row.id))
            if row.enabled and allowed(actor, Action.DATASET_VIEW, subject):
                found.append(row.id)
        return found


def _message(alert: Alert) -> str:
    return f"{counted(alert.result_count, 'new results')} of {alert.view_name!r} in {alert.dataset_name!r}"
