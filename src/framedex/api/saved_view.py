"""Saved views: filters of a dataset under a name, with their results in each new batch of media."""

from framedex.api.view import View
from framedex.core.counts import counted
from framedex.operations import saved_views
from framedex.operations.context import Context
from framedex.records import Alert, EntityType, SavedViewRecord, ViewTrend
from framedex.render import html
from framedex.render.trend import trend_svg

_NAME_CHARACTERS = 32  # of a name, in the title of a plot


class Trend(ViewTrend):
    """The results of a saved view in each batch of media, oldest first. A notebook displays it as a plot.

    ``points`` has a point for each batch that was evaluated: the time of the addition, the number of results in the
    batch, and the number in this and all earlier batches.

    Examples:
        >>> ds.saved_view("dark images").trend()
        <framedex.Trend of 'dark images': 0 results in 0 batches>
    """

    @property
    def _words(self) -> str:
        return f"{counted(self.total_results, 'results')} in {counted(len(self.points), 'batches')}"

    def plot(self) -> str:
        """Return the trend as SVG text: a bar for each batch, and a line for the running total.

        Examples:
            >>> ds.saved_view("dark images").trend().plot()[:4]
            '<svg'
        """
        name = self.view_name if len(self.view_name) <= _NAME_CHARACTERS else f"{self.view_name[:_NAME_CHARACTERS]}…"
        return trend_svg(
            [(point.timestamp, point.count, point.cumulative) for point in self.points],
            title=f"{name}: {self._words}",
        )

    def __repr__(self) -> str:
        return f"<framedex.Trend of {self.view_name!r}: {self._words}>"

    def _repr_html_(self) -> str:
        last = "none yet" if self.last_results is None else f"{self.last_results:%Y-%m-%d %H:%M} UTC"
        return html.block(self.plot(), html.note(f"last results: {last}"))


class SavedView:
    """A saved view of a dataset: a name for filters, an order and a caption, which new media are compared with.

    Attributes:
        id: the UUID of the saved view.

    Examples:
        >>> saved = ds.save_view("cats", ds.where(vql.labels("cat")))
        >>> saved.view().count()
        9
    """

    def __init__(self, context: Context, dataset_id: str, view_id: str) -> None:
        self._context, self._dataset_id, self.id = context, dataset_id, view_id

    @property
    def record(self) -> SavedViewRecord:
        """The record: name, filters, totals, and whether alerts are on.

        Raises:
            NotFound: the saved view was deleted.

        Examples:
            >>> ds.saved_view("dark images").record.filters.vql
            [{'issues': {'op': 'issue', 'value': 'dark', 'mode': 'in', 'confidence_min': 0.0, 'confidence_max':
              1.0}}]
        """
        return saved_views.get_view(self._context, self._dataset_id, self.id)

    @property
    def name(self) -> str:
        """The name.

        Examples:
            >>> ds.saved_view("Dark Images").name
            'dark images'
        """
        return self.record.name

    def view(self) -> View:
        """Return the view, which reads the present state of the dataset; for ``VIDEOS``, the frames of the videos.

        A caption is searched by meaning where the dataset supports it, else for its words.

        Raises:
            NotFound: the saved view was deleted.
            InvalidFilter: the filter is not valid in this version of Framedex.
            InvalidInput: the column of the order does not exist any more.

        Examples:
            >>> [row["image_filename"] for row in ds.saved_view("dark images").view()]
            ['night.jpg']
        """
        record = self.record
        steps = saved_views.saved_steps(self._context, record)
        is_of_objects = record.filters.entity_type == EntityType.OBJECTS
        return View(self._context, self._dataset_id, steps, objects=is_of_objects)

    def trend(self) -> Trend:
        """Return the number of results in each batch of media that was added after the view was saved.

        Raises:
            NotFound: the saved view was deleted.
            InvalidInput: the view is not monitored.

        Examples:
            >>> task = ds.add_media("new")
            >>> ds.saved_view("dark images").trend()
            <framedex.Trend of 'dark images': 0 results in 1 batch>
        """
        return Trend.model_validate(saved_views.get_trend(self._context, self._dataset_id, self.id).model_dump())

    def alerts(self) -> list[Alert]:
        """Return the alerts of the view, oldest first.

        Examples:
            >>> saved = ds.save_view("cats", caption="cat")
            >>> task = ds.add_media("new")
            >>> [(each.batch, each.result_count) for each in saved.alerts()]
            [(1, 2)]
        """
        return list(saved_views.get_alerts(self._context, self._dataset_id, self.id))

    def set_alerting(self, enabled: bool) -> None:
        """Turn alerts on or off. Past alerts stay, and the trend continues.

        Args:
            enabled: whether batches with results raise an alert from now on.

        Raises:
            NotFound: the saved view was deleted.
            InvalidInput: the view is not monitored, or *enabled* is neither True nor False.
            ReadOnly: the workspace was opened read-only.

        Examples:
            >>> saved = ds.saved_view("dark images")
            >>> saved.set_alerting(False)
            >>> saved
            <framedex.SavedView 'dark images': 0 new results, alerts off>
        """
        saved_views.set_alerting(self._context, self._dataset_id, self.id, enabled=enabled)

    def rename(self, name: str) -> None:
        """Rename the view.

        Raises:
            NotFound: the saved view was deleted.
            InvalidInput: the name cannot be used.
            Conflict: another saved view of the dataset has that name.
            ReadOnly: the workspace was opened read-only.

        Examples:
            >>> saved = ds.saved_view("dark images")
            >>> saved.rename("night")
            >>> ds.views()
            [<framedex.SavedView 'night': 0 new results, alerts on>]
        """
        saved_views.rename_saved_view(self._context, self._dataset_id, self.id, name)

    def delete(self) -> None:
        """Delete the saved view with its trend and its alerts. The media stay.

        Raises:
            NotFound: it was deleted before.
            ReadOnly: the workspace was opened read-only.

        Examples:
            >>> ds.saved_view("dark images").delete()
            >>> ds.views()
            []
        """
        saved_views.delete_view(self._context, self._dataset_id, self.id)

    def __repr__(self) -> str:
        record = self.record
        alerts = "on" if record.alerting_enabled else "off"
        return f"<framedex.SavedView {record.name!r}: {counted(record.total_results, 'new results')}, alerts {alerts}>"
