"""Saved views of a dataset."""

from framedex.api.saved_view import SavedView
from framedex.api.view import View
from framedex.errors import InvalidInput
from framedex.operations import saved_views
from framedex.operations.context import Context
from framedex.records import Alert, EntityType


class DatasetViews:
    """Views that are saved under a name, and their alerts."""

    _context: Context
    id: str

    def save_view(
        self,
        name: str,
        view: View | None = None,
        *,
        caption: str | None = None,
        threshold: float | None = None,
        entity_type: str | None = None,
    ) -> SavedView:
        """Save a view under a name. Media that are added later are compared with it, batch by batch.

        A saved view consists of filters, an order, and a caption. Limits, samples, splits, selections by id and the
        results of searches cannot be saved, because it would not be clear which new media belong to them.

        Args:
            name: 1 to 255 characters, unique in the dataset regardless of case.
            view: a view of this dataset, as ``ds.where(…)`` or ``ds.objects.where(…)``; by default all media.
            caption: a text that results have to match, by meaning where the dataset supports it, else by words.
            threshold: the smallest similarity to the caption, 0 to 1; None or 0 for results with a relevance of at
                least 0.5, or with all words.
            entity_type: ``IMAGES``, ``OBJECTS``, or ``VIDEOS``, which counts videos with a frame that passes; by
                default that of the view.

        Returns:
            the saved view; alerts are on.

        Raises:
            InvalidInput: the name, the view or another argument cannot be used, or the dataset does not support the
                search.
            InvalidFilter: a filter does not suit the dataset.
            Conflict: a saved view has that name, the dataset has 200 saved views, or it has nothing to show yet.
            ReadOnly: the workspace was opened read-only.

        Examples:
            >>> ds.save_view("cats", ds.where(vql.labels("cat")))
            <framedex.SavedView 'cats': 0 new results, alerts on>
        """
        view = View(self._context, self.id) if view is None else view
        if not isinstance(view, View) or view._dataset_id != self.id:
            raise InvalidInput(f"a view of this dataset can be saved, as ds.where(…), not {view!r:.80}")
        kind = view.entity_type if entity_type is None else entity_type
        allowed = [EntityType.OBJECTS] if view.entity_type == EntityType.OBJECTS else ["IMAGES", "VIDEOS"]
        if kind not in allowed:
            raise InvalidInput(
                f"entity_type of this view must be {' or '.join(allowed)}, not {kind!r}; begin with ds.objects for a "
                "view of objects"
            )
        if threshold and caption is None:
            raise InvalidInput("threshold is the smallest similarity to a caption; give a caption with it")
        record = saved_views.save_view(
            self._context,
            self.id,
            name,
            view._steps,
            entity_type=str(kind),
            caption=caption,
            threshold=threshold,
        )
        return SavedView(self._context, self.id, record.id)

    def views(self) -> list[SavedView]:
        """Return the saved views, newest first.

        Examples:
            >>> ds.views()
            [<framedex.SavedView 'dark images': 0 new results, alerts on>]
        """
        records = saved_views.get_views(self._context, self.id)
        return [SavedView(self._context, self.id, record.id) for record in records]

    def saved_view(self, name_or_id: str) -> SavedView:
        """Return a saved view by its name, in any case, or by its id.

        Raises:
            NotFound: the dataset has no such view.

        Examples:
            >>> ds.saved_view("dark images").view().count()
            1
        """
        return SavedView(self._context, self.id, saved_views.get_view(self._context, self.id, name_or_id).id)

    def alerts(self) -> list[Alert]:
        """Return the alerts of all saved views, oldest first: batches with results, which were added after a view.

        Examples:
            >>> saved = ds.save_view("cats", caption="cat")
            >>> task = ds.add_media("new")
            >>> [(each.view_name, each.batch) for each in ds.alerts()]
            [('cats', 1)]
        """
        return list(saved_views.get_alerts(self._context, self.id))
