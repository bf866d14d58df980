"""Notifications of the user: list, number of unread ones, and marks of what was read."""

from typing import Annotated
from uuid import UUID

from fastapi import Query
from pydantic import BaseModel

from framedex.access import Action
from framedex.records import NotificationPage
from framedex.service.actions import needs, routes
from framedex.service.parameters import CurrentActor, Service

router = routes("notifications")

_MOST = 2**62


class UnreadCount(BaseModel):
    """The number of notifications that were not read."""

    count: int


class ReadMark(BaseModel):
    """The answer once a notification is marked as read."""

    ok: bool = True


class ReadMarks(BaseModel):
    """The answer once notifications are marked as read, with their number."""

    ok: bool = True
    count: int


def _text(dataset_id: UUID | None) -> str | None:
    return None if dataset_id is None else str(dataset_id)


@router.get("/notifications")
@needs(Action.OWN_ACCOUNT)
def get_notifications(
    service: Service,
    actor: CurrentActor,
    limit: Annotated[int, Query(ge=1, le=100)] = 20,
    offset: Annotated[int, Query(ge=0, le=_MOST)] = 0,
    unread_only: bool = False,
    dataset_id: UUID | None = None,
) -> NotificationPage:
    """Return a page of the own notifications, newest first; those of datasets that are hidden now are left out."""
    return service.hub.notifications.search(
        actor, limit=limit, offset=offset, unread_only=unread_only, dataset_id=_text(dataset_id)
    )


@router.get("/notifications/unread-count")
@needs(Action.OWN_ACCOUNT)
def get_unread_count(service: Service, actor: CurrentActor, dataset_id: UUID | None = None) -> UnreadCount:
    """Return the number of the own notifications that were not read."""
    return UnreadCount(count=service.hub.notifications.count_unread(actor, _text(dataset_id)))


@router.post("/notifications/{notification_id}/read")
@needs(Action.OWN_ACCOUNT)
def post_notification_read(notification_id: str, service: Service, actor: CurrentActor) -> ReadMark:
    """Mark a notification as read; one that was read before is not found."""
    service.hub.notifications.read(actor, notification_id)
    return ReadMark()


@router.post("/notifications/read-all")
@needs(Action.OWN_ACCOUNT)
def post_notifications_read(service: Service, actor: CurrentActor, dataset_id: UUID | None = None) -> ReadMarks:
    """Mark the own notifications as read: all of them, or those of one dataset."""
    return ReadMarks(count=service.hub.notifications.read_all(actor, _text(dataset_id)))
