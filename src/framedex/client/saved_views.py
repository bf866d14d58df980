"""Saved views of a dataset of a service."""

from typing import Any

from framedex.client import calls
from framedex.client.connection import Connection
from framedex.client.parts import ViewParts
from framedex.client.view import ClientView
from framedex.core.counts import counted
from framedex.errors import InvalidInput, NotFound
from framedex.records import EntityType, SavedViewRecord, ViewTrend
from framedex.vql import media, parse, to_json


class ClientSavedView:
    """A saved view of a service; see :class:`framedex.SavedView`.

    Attributes:
        id: the UUID of the saved view.
    """

    def __init__(self, connection: Connection, dataset_id: str, view_id: str) -> None:
        self._connection, self._dataset_id, self.id = connection, dataset_id, view_id

    @property
    def record(self) -> SavedViewRecord:
        """The record: name, filters, totals, and whether alerts are on.

        Raises:
            NotFound: the saved view was deleted.
        """
        records = saved_view_records(self._connection, self._dataset_id)
        found = next((each for each in records if each.id == self.id), None)
        if found is None:
            raise NotFound(f"no saved view {self.id!r}")
        return found

    @property
    def name(self) -> str:
        """The name."""
        return self.record.name

    def view(self) -> ClientView:
        """Return the view of the filters, which reads the present state; for ``VIDEOS``, the frames of the videos.

        Raises:
            NotFound: the saved view was deleted.
            InvalidInput: it has a caption, which a view of a service does not search for as a filter.
        """
        filters = self.record.filters
        if filters.caption is not None:
            raise InvalidInput(f"this saved view has a caption; search for it: ds.search({filters.caption!r})")
        of_videos = to_json(parse(media("video_frame"))) if filters.entity_type == EntityType.VIDEOS else []
        parts = ViewParts(vql=(*filters.vql, *of_videos))
        return ClientView(self._connection, self._dataset_id, parts, objects=filters.entity_type == EntityType.OBJECTS)

    def trend(self) -> ViewTrend:
        """Return the number of results in each batch of media that was added after the view was saved.

        Raises:
            NotFound: the saved view was deleted.
            InvalidInput: the view is not monitored.
        """
        body = self._connection.json(calls.VIEW_TREND, dataset_id=self._dataset_id, view_id=self.id)
        return ViewTrend.model_validate({**body, "view_name": self.name})

    def set_alerting(self, enabled: bool) -> None:
        """Turn alerts on or off; see :meth:`framedex.SavedView.set_alerting`."""
        body = {"request": {"enabled": enabled}}
        self._connection.json(calls.VIEW_ALERTING, body=body, dataset_id=self._dataset_id, view_id=self.id)

    def delete(self) -> None:
        """Delete the saved view with its trend. The media and the notifications stay.

        Raises:
            NotFound: it was deleted before.
            Forbidden: the user may not edit the dataset, and did not save the view.
        """
        self._connection.json(calls.DELETE_VIEW, dataset_id=self._dataset_id, view_id=self.id)

    def __repr__(self) -> str:
        record = self.record
        alerts = "on" if record.alerting_enabled else "off"
        results = counted(record.total_results, "new results")
        return f"<framedex.ClientSavedView {record.name!r}: {results}, alerts {alerts}>"


def saved_view_records(connection: Connection, dataset_id: str) -> list[SavedViewRecord]:
    """Return the records of the saved views of a dataset, newest first."""
    body = connection.json(calls.VIEWS, dataset_id=dataset_id)
    return [saved_view_record(each) for each in body["views"]]


def saved_view_record(body: Any) -> SavedViewRecord:
    """Return the record in an answer about a saved view."""
    author, threshold = body["created_by"], body["filters"]["threshold"]
    filters = {**body["filters"], "threshold": threshold if float(threshold) else None}
    changes = {"created_by": author["email"], "creator_id": author["user_id"], "filters": filters}
    return SavedViewRecord.model_validate({**body, **changes})
