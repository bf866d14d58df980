"""Views that read one state of their dataset, whatever happens to it."""

from typing import Self

from framedex.api.view.view import View
from framedex.errors import InvalidInput
from framedex.operations.context import Context
from framedex.operations.steps import Steps
from framedex.storage.media import Media


class PinnedView(View):
    """A view that reads one state of its dataset."""

    _state: Media

    @classmethod
    def of(cls, context: Context, dataset_id: str, steps: Steps, state: Media, *, objects: bool) -> Self:
        """Return the view of a state."""
        view = cls(context, dataset_id, steps, objects=objects)
        view._state = state
        return view

    def _media(self) -> Media:
        return self._state

    def _with(self, steps: Steps) -> Self:
        return type(self).of(self._context, self._dataset_id, steps, self._state, objects=self._objects)

    def _of(self, entity_type: str) -> Self:
        if entity_type != self.entity_type:
            raise InvalidInput(f"these results are of {self.entity_type}, not of {entity_type}")
        return self
