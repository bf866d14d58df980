"""Saved views of datasets, as the users of a hub see them."""

from collections.abc import Collection
from typing import Any

from framedex.access import LOCAL_USER_ID, Action, Actor
from framedex.api.dataset import Dataset
from framedex.errors import InvalidInput, NotFound
from framedex.hub.actors import own_id
from framedex.hub.context import HubContext
from framedex.hub.datasets import Datasets
from framedex.hub.trail import Trail
from framedex.operations import saved_views
from framedex.operations.steps import Filtered
from framedex.records import EntityType, SavedViewRecord, ViewAuthor, ViewTrend
from framedex.storage.service_db import accounts
from framedex.vql import parse

_NOT_FOUND = "View not found"


class SavedViews:
    """The saved views of a workspace as the users of a hub see them.

    Args:
        context: the open parts of the hub.
        datasets: the datasets of the hub.
        trail: the audit.
    """

    def __init__(self, context: HubContext, datasets: Datasets, trail: Trail) -> None:
        self._context, self._datasets, self._trail = context, datasets, trail

    def open(self, actor: Actor, dataset_id: str, view_id: str, action: Action) -> Dataset:
        """Return the dataset of a saved view, after a check of what is to be done with the view.

        Args:
            actor: who asks.
            dataset_id: the dataset.
            view_id: the view; if it does not exist, nobody made it.
            action: what is to be done with it.

        Raises:
            NotAuthenticated: nobody is logged in.
            NotFound: there is no such dataset, or the actor must not learn of it.
            Forbidden: the actor may not do it.
        """
        dataset = self._datasets.open(actor, dataset_id)
        record = self._find(dataset_id, view_id)
        is_own = record is not None and record.creator_id is not None and record.creator_id == own_id(actor)
        subject = self._datasets.subject(actor, dataset_id, is_own=is_own)
        self._context.require(actor, action, subject, target=view_id)
        return dataset

    def create(
        self,
        actor: Actor,
        dataset_id: str,
        name: str,
        *,
        vql: Any = None,
        caption: str | None = None,
        threshold: float | None = None,
        entity_type: str = EntityType.IMAGES,
    ) -> SavedViewRecord:
        """Save a view under a name.

        Args:
            actor: who does it.
            dataset_id: the dataset.
            name: 1 to 255 characters, unique in the dataset regardless of case.
            vql: the filter, as objects or as JSON text; it is evaluated once. None for all.
            caption: a text that results have to match; None for all.
            threshold: the smallest similarity to the caption, 0 to 1; None or 0 for the default.
            entity_type: ``IMAGES``, ``OBJECTS`` or ``VIDEOS``.

        Raises:
            NotFound: there is no such dataset, or the actor must not learn of it.
            Forbidden: the actor may not edit the dataset.
            InvalidInput: the name or another argument cannot be used.
            InvalidFilter: the filter does not suit the dataset.
            Conflict: a view has that name, the dataset has 200 views, or nothing to show yet.
        """
        dataset = self._datasets.open(actor, dataset_id, Action.VIEW_CREATE)
        steps = () if vql is None else (Filtered(parse(vql)),)
        try:
            view = saved_views.save_view(
                dataset._context,
                dataset_id,
                name,
                steps,
                entity_type=str(entity_type),
                caption=caption,
                threshold=threshold,
                creator_id=own_id(actor),
            )
        except NotFound as error:  # a media item in the filter
            raise InvalidInput(str(error)) from None
        self._trail.note(actor, "view.create", dataset_id=dataset_id, target=view.id)
        return view

    def of_dataset(self, actor: Actor, dataset_id: str) -> list[SavedViewRecord]:
        """Return the saved views of a dataset, newest first.

        Raises:
            NotFound: there is no such dataset, or the actor must not learn of it.
        """
        dataset = self._datasets.open(actor, dataset_id)
        return saved_views.get_views(dataset._context, dataset_id)

    def authors(self, views: Collection[SavedViewRecord]) -> dict[str, ViewAuthor]:
        """Return the users who saved views, by the id of the view."""
        with self._context.database.read() as connection:
            rows = accounts.users_of(connection, {each.creator_id for each in views if each.creator_id is not None})
        return {each.id: _author(each, rows.get(each.creator_id or "")) for each in views}

    def trend(self, actor: Actor, dataset_id: str, view_id: str) -> ViewTrend:
        """Return the results of a saved view in each batch, oldest first.

        Raises:
            NotFound: there is no such dataset or view, or the actor must not learn of it.
            InvalidInput: the view is not monitored.
        """
        dataset, view = self._existing(actor, dataset_id, view_id, Action.DATASET_VIEW)
        return saved_views.get_trend(dataset._context, dataset_id, view.id)

    def set_alerting(self, actor: Actor, dataset_id: str, view_id: str, *, enabled: bool) -> bool:
        """Turn the alerts of a saved view on or off, and return whether they are on.

        Raises:
            NotFound: there is no such dataset or view, or the actor must not learn of it.
            Forbidden: the actor may not edit the dataset.
            InvalidInput: the view is not monitored.
        """
        dataset, view = self._existing(actor, dataset_id, view_id, Action.VIEW_ALERTING)
        is_on = saved_views.set_alerting(dataset._context, dataset_id, view.id, enabled=enabled).alerting_enabled
        self._trail.note(actor, f"view.alerting {'on' if is_on else 'off'}", dataset_id=dataset_id, target=view.id)
        return is_on

    def delete(self, actor: Actor, dataset_id: str, view_id: str) -> None:
        """Delete a saved view with its trend; notifications stay.

        Raises:
            NotFound: there is no such dataset or view, or the actor must not learn of it.
            Forbidden: the actor may not edit the dataset, and did not save the view.
        """
        dataset, view = self._existing(actor, dataset_id, view_id, Action.VIEW_DELETE)
        saved_views.delete_view(dataset._context, dataset_id, view.id)
        self._trail.note(actor, "view.delete", dataset_id=dataset_id, target=view.id)

    def _existing(self, actor: Actor, dataset_id: str, view_id: str, action: Action) -> tuple[Dataset, SavedViewRecord]:
        dataset = self.open(actor, dataset_id, view_id, action)
        if (view := self._find(dataset_id, view_id)) is None:
            raise NotFound(_NOT_FOUND)
        return dataset, view

    def _find(self, dataset_id: str, view_id: str) -> SavedViewRecord | None:
        """Return a saved view by its id, in any case; names find nothing."""
        views = saved_views.get_views(self._context.workspace._context, dataset_id)
        return next((each for each in views if each.id == view_id.lower()), None)


def _author(view: SavedViewRecord, row: Any) -> ViewAuthor:
    if row is None:
        return ViewAuthor(user_id=view.creator_id or LOCAL_USER_ID, email=view.created_by, name=view.created_by)
    full_name = " ".join(part for part in (row.first_name, row.last_name) if part)
    return ViewAuthor(user_id=row.id, email=row.email or row.username, name=full_name or row.username)
