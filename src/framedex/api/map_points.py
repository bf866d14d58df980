"""The points of a map as a page draws them: a few bytes each, in random order, with colours and names."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from framedex.api.comparison import CHANGES
from framedex.api.dataset import Dataset
from framedex.api.view import PinnedView
from framedex.core.checks import check_integer
from framedex.core.forks import cached_property
from framedex.errors import InvalidInput
from framedex.operations.maps import PlacedRows
from framedex.operations.states import PRESENT
from framedex.records import CLUSTER_LEVELS, EntityType, Snapshot
from framedex.storage.media import EVERYTHING, Media
from framedex.storage.objects import is_empty_object_view
from framedex.storage.table_names import IN_BASKET

Codes = npt.NDArray[np.uint8]
MOST_NAMES = 24
"""The maximum number of values that have a colour of their own; the others share one."""
OTHER, LAST = 255, 254
"""The code of values without a colour of their own, and the code of the largest number. 0 means no value."""
_STEPS = 65_535


@dataclass(frozen=True)
class MapColours:
    """The colours of points by the values of a column.

    Attributes:
        codes: uint8, shape (N,): of texts and truth values the number of the name, from 1; 255 for the other ones. Of
            numbers 1 for *low* to 254 for *high*. 0 for no value.
        names: the most frequent values of a column of texts or truth values, with their counts; empty for numbers.
        low, high: the smallest and the largest number; None for other columns.
    """

    codes: Codes
    names: list[tuple[str, int]]
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class MapLabel:
    """The name of a cluster on the map, where most of its members are."""

    cluster_id: str
    name: str | None
    size: int
    x: float
    y: float


class MapPoints:
    """The points of a dataset's map, in one state of the dataset.

    Any number of the first points is a fair sample of all. The order is that of a generator of random numbers, and is
    the same for the same rows of the same map.

    Args:
        dataset: the dataset.
        entity_type: ``IMAGES`` or ``OBJECTS``.

    Raises:
        NotFound: there is no map of the present index.
        Conflict: the dataset has no index yet.
        InvalidInput: the entity type is another one.
    """

    def __init__(self, dataset: Dataset, entity_type: str = EntityType.IMAGES) -> None:
        if entity_type not in (EntityType.IMAGES, EntityType.OBJECTS):
            raise InvalidInput(f"the points of a map are IMAGES or OBJECTS, not {entity_type!r}")
        self._dataset, self._objects = dataset, entity_type == EntityType.OBJECTS
        self._media: Media
        self._placed: PlacedRows
        self._media, self._placed = dataset.placed_media(objects=self._objects)
        self._view = PinnedView.of(dataset._context, dataset.id, (), self._media, objects=self._objects)
        seed = int(self._placed.key[:16] or "0", 16)
        self._order = np.random.default_rng(seed).permutation(len(self._placed.row_ids))

    def __len__(self) -> int:
        """Return the number of points."""
        return len(self._order)

    @property
    def generation(self) -> str:
        """The id of the state."""
        return self._media.generation.id

    @property
    def total(self) -> int:
        """The number of all rows of the state."""
        return 0 if is_empty_object_view(self._media) else self._media.table.count()

    @property
    def bounds(self) -> tuple[float, float, float, float]:
        """The left, lower, right and upper end of the square that holds all points, in the coordinates of the map."""
        if not len(self):
            return 0.0, 0.0, 1.0, 1.0
        low, high = self._placed.places.min(axis=0), self._placed.places.max(axis=0)
        middle, side = (low + high).astype(np.float64) / 2, max(float((high - low).max()), 1e-6)
        left, lower = (middle - side / 2).tolist()
        return left, lower, left + side, lower + side

    @cached_property
    def positions(self) -> npt.NDArray[np.uint32]:
        """The position of each point among all rows in the order of ingestion: uint32, shape (N,)."""
        if not len(self):
            return np.empty(0, np.uint32)
        rows = self._media.row_ids(EVERYTHING)
        return np.searchsorted(rows, self._placed.row_ids).astype(np.uint32)[self._order]

    @property
    def places(self) -> npt.NDArray[np.uint16]:
        """The place of each point within :attr:`bounds`: uint16, shape (N, 2), 0 for the left and the lower end."""
        left, lower, right, _ = self.bounds
        scaled = (self._placed.places - np.array([left, lower], np.float32)) * np.float32(_STEPS / (right - left))
        return np.asarray(np.clip(scaled.round(), 0, _STEPS).astype(np.uint16)[self._order])

    def colours(self, column: str) -> MapColours:
        """Return the colours of the points by a column of :meth:`framedex.View.to_arrow`; of lists the first value.

        The column ``in_basket`` says whether a media item is in the basket.

        Raises:
            InvalidInput: the column does not exist, or has no values that can be told apart by colours.
        """
        if not len(self):
            return MapColours(np.empty(0, np.uint8), [])
        values = self._in_basket() if column == IN_BASKET else self._view.to_arrow([column])[column].combine_chunks()
        values = _first_values(values).take(pa.array(self.positions))
        kind = values.type
        if pa.types.is_string(kind) or pa.types.is_boolean(kind):
            return _of_names(values.cast(pa.string()))
        if pa.types.is_floating(kind) or pa.types.is_integer(kind):
            return _of_numbers(np.asarray(pc.fill_null(values.cast(pa.float64()), np.nan)))
        raise InvalidInput(f"points cannot be coloured by {column!r}: its values are of type {kind}")

    def _in_basket(self) -> pa.Array:
        """Return whether rows are in the basket; a table has the column once something was put into it."""
        if IN_BASKET not in self._media.table.schema.names:
            return pa.array(np.zeros(self.total, np.bool_))
        values = self._media.values_at(self._media.row_ids(EVERYTHING), IN_BASKET)
        return pc.fill_null(values, fill_value=False)

    def changes(self, before: Snapshot | str, after: Snapshot | str = PRESENT) -> MapColours:
        """Return the colours of the points by what happened to the media between two states.

        An item with several changes has the colour of the first one in the order of
        :data:`framedex.api.comparison.CHANGES`; one without any has none. Removed media are on no map.

        Args:
            before: the earlier state, as for :meth:`framedex.Dataset.compare`.
            after: the later one.

        Raises:
            InvalidInput: the points are objects.
            NotFound: there is no such state, or it was freed.
        """
        if self._objects:
            raise InvalidInput("states are compared by media, not by objects")
        found = self._dataset.compare(before, after)
        codes = np.zeros(len(self), np.uint8)
        names: list[tuple[str, int]] = []
        rows = self._placed.row_ids[self._order]
        for change in CHANGES:
            if change == "removed" or not found.counts[change]:
                continue
            view = found.view(change)
            changed = np.isin(rows, view._selection(self._media).row_ids()) & (codes == 0)
            names.append((change, int(changed.sum())))
            codes[changed] = len(names)
        return MapColours(codes, names)

    def labels(self, level: int) -> list[MapLabel]:
        """Return the names of the 100 largest clusters of a level, each at the median place of its members.

        Args:
            level: 0 (finest) to 4.

        Raises:
            InvalidInput: the level is out of range.
        """
        check_integer("level", level, minimum=0, maximum=CLUSTER_LEVELS - 1)
        if not len(self):
            return []
        column = f"cluster_{level}"
        ids = self._view.to_arrow([column])[column].combine_chunks().dictionary_encode()
        codes = np.asarray(ids.indices.fill_null(-1))[self.positions]
        number = {each: code for code, each in enumerate(ids.dictionary.to_pylist())}
        order = np.argsort(codes, kind="stable")
        starts = np.searchsorted(codes[order], np.arange(len(number) + 1))
        places = self._placed.places[self._order]
        found = []
        for cluster in self._view.explore(self._view.entity_type, level).clusters:
            code = number.get(cluster.cluster_id, -1)
            members = order[starts[code] : starts[code + 1]] if code >= 0 else order[:0]
            if len(members):
                x, y = np.median(places[members], axis=0).tolist()
                size = cluster.n_objects if self._objects else len(members)
                found.append(MapLabel(cluster.cluster_id, cluster.name, size, x, y))
        return found


def _first_values(values: Any) -> Any:
    """Return the first value of each list, null for empty ones; other values stay."""
    if not pa.types.is_list(values.type):
        return values
    lengths = np.asarray(pc.fill_null(pc.list_value_length(values), 0))
    starts = np.concatenate([[0], np.cumsum(lengths)[:-1]]).astype(np.int64)
    return pc.list_flatten(values).take(pa.array(starts, mask=lengths == 0))


def _of_names(values: Any) -> MapColours:
    coded = values.dictionary_encode()
    counts = np.bincount(np.asarray(coded.indices.drop_null()), minlength=len(coded.dictionary))
    texts = coded.dictionary.to_pylist()
    best = sorted(range(len(texts)), key=lambda each: (-counts[each], texts[each]))[:MOST_NAMES]
    code_of = np.full(len(texts) + 1, OTHER, np.uint8)
    code_of[-1] = 0
    code_of[best] = np.arange(1, len(best) + 1)
    codes = code_of[np.asarray(coded.indices.fill_null(-1))]
    return MapColours(codes, [(texts[each], int(counts[each])) for each in best])


def _of_numbers(values: npt.NDArray[np.float64]) -> MapColours:
    held = np.isfinite(values)
    codes = np.zeros(len(values), np.uint8)
    if not held.any():
        return MapColours(codes, [])
    low, high = float(values[held].min()), float(values[held].max())
    share = (values[held] - low) / (high - low) if high > low else np.zeros(int(held.sum()))
    codes[held] = 1 + np.round(share * (LAST - 1)).astype(np.uint8)
    return MapColours(codes, [], low, high)
