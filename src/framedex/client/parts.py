"""Parts of a view of a service, its results there, and the record of its dataset."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from framedex.records import DatasetRecord


@dataclass(frozen=True)
class ViewParts:
    """The parts of a view, in the order in which they apply: ids, filter, search, order, window, sample, split.

    Attributes:
        within: the view that this one begins with, and its entity type; None for the dataset.
    """

    within: "tuple[ViewParts, str] | None" = None
    ids: tuple[str, ...] | None = None
    vql: tuple[Any, ...] = ()
    search: tuple[tuple[str, Any], ...] | None = None
    region: tuple[float, float, float, float] | None = None
    sort: tuple[str, bool] | None = None
    start: int = 0
    stop: int | None = None
    sample: tuple[int, int] | None = None
    part: tuple[str, tuple[tuple[str, float], ...], int, str | None] | None = None

    @property
    def is_whole(self) -> bool:
        """True if no rows were left out by their position, by a sample or by a split: further parts can be added."""
        return self.start == 0 and self.stop is None and self.sample is None and self.part is None

    def body(self, entity_type: str, *, window: bool = True) -> dict[str, Any]:
        """Return the request for results of the view.

        Args:
            entity_type: of the rows.
            window: whether the window is a part of it; else positions of its results are those of the view without it.
        """
        box, name = self.region, self.part
        is_cut = window and (self.start > 0 or self.stop is not None)
        return {
            "within": None if self.within is None else self.within[0].body(self.within[1]),
            "window": {"start": self.start, "stop": self.stop} if is_cut else None,
            "sample": None if self.sample is None else {"n": self.sample[0], "seed": self.sample[1]},
            "part": None
            if name is None
            else {"name": name[0], "parts": dict(name[1]), "seed": name[2], "stratify": name[3]},
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


def dataset_record(body: Mapping[str, Any]) -> DatasetRecord:
    """Return the record in an answer about a dataset."""
    return DatasetRecord.model_validate({name: body[name] for name in DatasetRecord.model_fields if name in body})
