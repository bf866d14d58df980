"""Foundation of the methods of a view: the dataset, the steps, and their rows in the current state."""

from pathlib import Path
from typing import Self

from framedex.core.checks import check_integer
from framedex.errors import InvalidInput
from framedex.operations.context import Context, open_entities
from framedex.operations.searches import order_of
from framedex.operations.steps import Filtered, Searched, SelectedRows, Step, Steps, apply_steps
from framedex.records import EntityType
from framedex.search.ranking import Ranking
from framedex.storage.condition import Condition
from framedex.storage.media import Media


class ViewBase:
    """A lazy selection of a dataset's media, or of the objects in them.

    Args:
        context: the workspace.
        dataset_id: the dataset.
        steps: the filters, searches, orders and windows, in the order in which they apply.
        objects: whether the view is of objects.
    """

    def __init__(self, context: Context, dataset_id: str, steps: Steps = (), *, objects: bool = False) -> None:
        self._context, self._dataset_id, self._steps, self._objects = context, dataset_id, steps, objects

    @property
    def entity_type(self) -> EntityType:
        """The entity type: ``IMAGES`` (images and video frames) or ``OBJECTS``.

        Examples:
            >>> print(ds.view.entity_type, ds.objects.entity_type)
            IMAGES OBJECTS
        """
        return EntityType.OBJECTS if self._objects else EntityType.IMAGES

    @property
    def _noun(self) -> str:
        return "objects" if self._objects else "media"

    def _with(self, steps: Steps) -> Self:
        """Return a view of the same class with other steps."""
        return type(self)(self._context, self._dataset_id, steps, objects=self._objects)

    def _then(self, step: Step) -> Self:
        """Return the view after a further step."""
        return self._with((*self._steps, step))

    def _of(self, entity_type: str) -> Self:
        """Return the view with the same filters and searches for an entity type.

        Raises:
            InvalidInput: the view has other steps, which apply to its own entities.
        """
        if (entity_type == EntityType.OBJECTS) == self._objects:
            return self
        if not all(isinstance(step, Filtered | Searched) for step in self._steps):
            raise InvalidInput(
                f"this view was sorted, limited or selected by id, so its entity type stays {self.entity_type}; "
                "begin with ds.objects for a view of objects, or use view.objects for the objects in its media"
            )
        return type(self)(self._context, self._dataset_id, self._steps, objects=not self._objects)

    def _media(self) -> Media:
        """Open the current state of the media, or of the objects in them; during a creation, what it has read."""
        return open_entities(self._context, self._dataset_id, objects=self._objects, early=True)

    def _selection(self, media: Media) -> SelectedRows:
        """Return the rows of the view in a state of the dataset."""
        return apply_steps(self._context, media, self._steps)

    def _condition(self, media: Media) -> Condition:
        return self._selection(media).condition()

    def _order(self, selection: SelectedRows) -> Ranking | None:
        """Return the ranking of a search, in the order of the view; None if the view is no result of a search."""
        if selection.ranking is not None:
            return selection.ranking
        filters = tuple(element for step in self._steps if isinstance(step, Filtered) for element in step.vql)
        return order_of(self._context, selection.media, filters, selection.condition())

    def _thumbnails(self, media: Media) -> Path:
        return self._context.layout.thumbnails(media.dataset_id)


def check_count(name: str, value: int) -> int:
    """Return a number of rows.

    Raises:
        InvalidInput: it is no integer of at least 0.
    """
    check_integer(name, value, minimum=0)
    return int(value)
