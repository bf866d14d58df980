"""Parts of a view of a service, and its results there."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class ViewParts:
    """The parts of a view, in the order in which they apply: ids, filter, search, order, window."""

    ids: tuple[str, ...] | None = None
    vql: tuple[Any, ...] = ()
    search: tuple[tuple[str, Any], ...] | None = None
    region: tuple[float, float, float, float] | None = None
    sort: tuple[str, bool] | None = None
    start: int = 0
    stop: int | None = None

    @property
    def is_windowed(self) -> bool:
        """True if rows were left out by their position."""
        return self.start > 0 or self.stop is not None

    def body(self, entity_type: str) -> dict[str, Any]:
        """Return the request for results of the view without its window."""
        box = self.region
        return {
            "ids": None if self.ids is None else list(self.ids),
            "vql": list(self.vql) or None,
            "search": None if self.search is None else dict(self.search),
            "region": None if box is None else {"x": box[0], "y": box[1], "width": box[2], "height": box[3]},
            "sort": None if self.sort is None else {"column": self.sort[0], "descending": self.sort[1]},
            "entity_type": entity_type,
        }


@dataclass(frozen=True)
class OpenedResults:
    """Results of a view: their id, the state, and the positions of the view's rows among them."""

    rid: str
    generation: str
    start: int
    stop: int
