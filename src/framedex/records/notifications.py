"""Records of notifications."""

from datetime import datetime

from framedex.records.base import Record


class NotificationMetadata(Record):
    """The alert of a notification: new results of a saved view in a batch of media."""

    batch_id: str
    is_alert: bool
    view_name: str
    dataset_name: str
    result_count: int


class Notification(Record):
    """A notification of a user. Times are in UTC; ``read_at`` is None if it is unread.

    ``entity_type`` is ``saved_view``, and ``entity_id`` the view, which may have been deleted since.
    """

    id: str
    user_id: str
    entity_type: str
    entity_id: str
    title: str
    message: str | None
    metadata: NotificationMetadata
    dataset_id: str | None
    created_at: datetime
    read_at: datetime | None


class NotificationPage(Record):
    """A page of notifications, newest first, with the number of all of them."""

    notifications: list[Notification]
    total: int
    has_more: bool
