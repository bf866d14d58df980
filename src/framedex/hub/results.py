"""Results of users: what a query selects, kept for random access."""

import hashlib
import time
from collections.abc import Callable, Sequence
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from framedex.access import Actor
from framedex.api.dataset import Dataset
from framedex.api.result_set import ResultSet
from framedex.api.view import View
from framedex.cleanup.plan import CleanupPlan
from framedex.core.ids import new_id
from framedex.errors import Gone, InvalidInput
from framedex.hub.kept import KeptValues
from framedex.records import EntityType

KEPT_S = 600.0
"""The number of seconds for which results and plans are kept after their last use."""
MOST = 16
"""The maximum number of results, and of plans, of a user."""
_MOST_WITHIN = 16
_MAX_BYTES = 256 * 2**20
_MAX_PLAN_BYTES = 512 * 2**20
_NAME_LENGTH = 32
_GONE = "These results are not kept any more; make them again"
_PLAN_GONE = "This plan is not kept any more; make it again"


class QueryPart(BaseModel):
    """Base class of the parts of a query; what it does not know is left out."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class SortOrder(QueryPart):
    """An order by a column, as for :meth:`framedex.View.sort_by`."""

    column: str
    descending: bool = False


class SearchQuery(QueryPart):
    """A search by a text, or by an image: exactly one of ``text`` and ``similar``.

    Attributes:
        text: as for :meth:`framedex.Dataset.search`.
        by: as there.
        similar: the id of a media item, of an object, or of an image that was uploaded.
        max_distance: as for :meth:`framedex.Dataset.similar`.
        limit: the maximum number of results; None for all.
        relevance: the minimum relevance, 0 to 1.
        diversity: 0 to 1.
    """

    text: str | None = None
    by: str = "auto"
    similar: str | None = None
    max_distance: float | None = None
    limit: int | None = Field(default=100, ge=0)
    relevance: float = 0.0
    diversity: float = 0.0


class Region(QueryPart):
    """A part of the image that is searched for, in pixels."""

    x: float
    y: float
    width: float
    height: float


class RowWindow(QueryPart):
    """Rows by their position, from ``start`` to before ``stop``; None for the end."""

    start: int = Field(default=0, ge=0)
    stop: int | None = Field(default=None, ge=0)


class RandomSample(QueryPart):
    """A number of random rows, as for :meth:`framedex.View.sample`."""

    n: int = Field(ge=0)
    seed: int = Field(default=0, ge=0)


class SplitPart(QueryPart):
    """One part of a split, as for :meth:`framedex.View.split`.

    Attributes:
        name: of the part.
        parts: the share of each part, 1 together.
        seed: as there.
        stratify: as there.
    """

    name: str
    parts: dict[str, float] = Field(max_length=100)
    seed: int = Field(default=0, ge=0)
    stratify: str | None = None


def _as_search(value: Any) -> Any:
    return {"text": value} if isinstance(value, str) else value


class ResultQuery(QueryPart):
    """A query: ids, then a filter, then a search, then an order, then a window, a sample, and a part of a split.

    Attributes:
        within: another query whose rows, in their order, are those that this one begins with; for a query of objects
            also one of images, which contain the objects. Up to 16 queries may be within one another.
        vql: the filter.
        search: the search; a text stands for a search by this text.
        region: the part of the image of ``search.similar``.
        sort: the order of the results.
        ids: only media with these ids, up to 10,000, in this order.
        window: the rows at some positions.
        sample: random rows.
        part: a part of a split.
        entity_type: ``IMAGES`` or ``OBJECTS``.
    """

    within: "ResultQuery | None" = None
    vql: list[Any] | None = None
    search: Annotated[SearchQuery | None, BeforeValidator(_as_search)] = None
    region: Region | None = None
    sort: SortOrder | None = None
    ids: list[str] | None = Field(default=None, max_length=10_000)
    window: RowWindow | None = None
    sample: RandomSample | None = None
    part: SplitPart | None = None
    entity_type: EntityType = EntityType.IMAGES

    def view(self, dataset: Dataset) -> View:
        """Return the view of a dataset that the query describes.

        Raises:
            InvalidFilter: the filter is invalid.
            InvalidInput: the search, the order or another part cannot be used.
            NotFound: what is searched for does not exist.
        """
        if self.depth > _MOST_WITHIN:
            raise InvalidInput(f"up to {_MOST_WITHIN} queries may be within one another, not {self.depth}")
        if self.entity_type is EntityType.VIDEOS:
            raise InvalidInput("results are of IMAGES or OBJECTS; explore shows VIDEOS")
        view = dataset.view if self.within is None else self.within.view(dataset)
        if self.entity_type is EntityType.OBJECTS:
            view = view.objects
        elif view.entity_type is EntityType.OBJECTS:
            raise InvalidInput("a query of IMAGES cannot be within one of OBJECTS")
        view = view if self.ids is None else view.select(self.ids)
        view = view if self.vql is None else view.where(self.vql)
        view = self._searched(view)
        view = view if self.sort is None else view.sort_by(self.sort.column, descending=self.sort.descending)
        view = view if self.window is None else view[self.window.start : self.window.stop]
        view = view if self.sample is None else view.sample(self.sample.n, seed=self.sample.seed)
        return view if (part := self.part) is None else _part(view, part)

    @property
    def depth(self) -> int:
        """The number of queries that are within one another, with this one."""
        return 1 if self.within is None else 1 + self.within.depth

    def _searched(self, view: View) -> View:
        search = self.search
        if search is None or (search.text is None) == (search.similar is None):
            if search is not None:
                raise InvalidInput("a search has either text or similar")
            if self.region is not None:
                raise InvalidInput("a region is a part of the image of search.similar")
            return view
        if search.text is not None:
            if self.region is not None:
                raise InvalidInput("a region is a part of the image of search.similar, not of a text")
            return view.search(
                search.text, search.limit, by=search.by, diversity=search.diversity, relevance=search.relevance
            )
        region = self.region
        return view.similar(
            search.similar,
            search.limit,
            max_distance=search.max_distance,
            bounding_box=None if region is None else (region.x, region.y, region.width, region.height),
            diversity=search.diversity,
            relevance=search.relevance,
        )


def _part(view: View, part: SplitPart) -> View:
    parts = view.split(part.parts, seed=part.seed, stratify=part.stratify)
    if part.name not in parts:
        raise InvalidInput(f"the part of a split is one of {', '.join(parts)}, not {part.name!r:.100}")
    return parts[part.name]


class Results:
    """The results and the clean-up plans of the users of a hub.

    A user has up to 16 results and 16 plans, each for ten minutes after its last use; together they take up to 256 MiB
    and 512 MiB. The same query in the same state of a dataset has the same id.

    Args:
        clock: returns a time in seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._sets = KeptValues[ResultSet](most=MOST, max_bytes=_MAX_BYTES, keep_s=KEPT_S, clock=clock)
        self._plans = KeptValues[CleanupPlan](most=MOST, max_bytes=_MAX_PLAN_BYTES, keep_s=KEPT_S, clock=clock)

    def open(self, actor: Actor, dataset: Dataset, query: ResultQuery) -> ResultSet:
        """Return the results of a query, whose ``name`` is their id.

        Raises:
            Conflict: the dataset has nothing to show yet.
            InvalidFilter: the filter is invalid.
            InvalidInput: another part of the query cannot be used.
            NotFound: what is searched for does not exist.
        """
        name = _name(dataset, dataset.generation, query)
        found = self._sets.get(_user(actor), f"{dataset.id}/{name}")
        if found is not None:
            return found
        return self._keep(actor, dataset, ResultSet(query.view(dataset), name), query)

    def of_media(self, actor: Actor, dataset: Dataset, ids: Sequence[str]) -> ResultSet:
        """Return results of media by their ids, in this order.

        Raises:
            NotFound: an id is not in the dataset.
        """
        return self._keep(actor, dataset, ResultSet(dataset.select(ids), new_id().replace("-", "")), None)

    def of_view(self, actor: Actor, dataset: Dataset, view: View, name: str) -> ResultSet:
        """Return the rows of a view as results; *name* is equal for equal rows of equal states."""
        rid = hashlib.sha256(f"{dataset.id}\n{dataset.generation}\n{name}".encode()).hexdigest()[:_NAME_LENGTH]
        found = self._sets.get(_user(actor), f"{dataset.id}/{rid}")
        return self._keep(actor, dataset, ResultSet(view, rid), None) if found is None else found

    def _keep(self, actor: Actor, dataset: Dataset, results: ResultSet, query: ResultQuery | None) -> ResultSet:
        if query is not None:  # the dataset may have changed before the results were read
            results.name = _name(dataset, results.generation, query)
        self._sets.put(_user(actor), f"{dataset.id}/{results.name}", results, weight=results.nbytes)
        return results

    def get(self, actor: Actor, dataset: Dataset, name: str) -> ResultSet:
        """Return results of the user by their id.

        Raises:
            Gone: they are not kept any more.
        """
        found = self._sets.get(_user(actor), f"{dataset.id}/{name}")
        if found is None:
            raise Gone(_GONE)
        return found

    def keep_plan(self, actor: Actor, dataset: Dataset, plan: CleanupPlan) -> str:
        """Keep a clean-up plan and return its id."""
        plan_id = new_id()
        self._plans.put(_user(actor), f"{dataset.id}/{plan_id}", plan, weight=plan.to_arrow().nbytes)
        return plan_id

    def plan(self, actor: Actor, dataset: Dataset, plan_id: str) -> CleanupPlan:
        """Return a clean-up plan of the user by its id.

        Raises:
            Gone: it is not kept any more.
        """
        found = self._plans.get(_user(actor), f"{dataset.id}/{plan_id}")
        if found is None:
            raise Gone(_PLAN_GONE)
        return found


def _name(dataset: Dataset, generation: str, query: ResultQuery) -> str:
    text = f"{dataset.id}\n{generation}\n{query.model_dump_json()}"
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_NAME_LENGTH]


def _user(actor: Actor) -> str:
    assert actor.user_id is not None, "the actor is logged in"
    return actor.user_id
