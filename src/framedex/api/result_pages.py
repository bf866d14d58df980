"""Explore pages and duplicate groups with thumbnails, for notebooks and reports."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Generic, Protocol, Self, SupportsIndex, TypeVar, overload

import numpy as np
import pyarrow as pa
from pydantic import PrivateAttr

from framedex import vql
from framedex.api.data_frames import as_pandas
from framedex.core.counts import counted
from framedex.errors import OutOfRange
from framedex.records import Cluster, DuplicateGroup, EntityType, ExploreResult
from framedex.render import html

if TYPE_CHECKING:
    import pandas as pd

Item = TypeVar("Item")
SHOWN_SIDE = 160
"""The longer side of thumbnails on pages, in pixels."""
_SHOWN_CLUSTERS = 12
_SHOWN_MEMBERS = 8
_NOUNS = {EntityType.IMAGES: "images", EntityType.OBJECTS: "objects", EntityType.VIDEOS: "videos"}


class ThumbnailSource(Protocol):
    """A source of thumbnails: a view."""

    @property
    def entity_type(self) -> EntityType:
        """The type of the entities on the thumbnails."""

    def thumbnails(self, media_ids: Sequence[str], *, size: int = ...) -> list[bytes | None]:
        """Return JPEGs; None for images that cannot be decoded."""


class MemberSource(ThumbnailSource, Protocol):
    """A source of members: a view."""

    def where(self, vql: Sequence[Any]) -> Self:
        """Return a view of the rows that also pass a filter."""

    def select(self, ids: Sequence[str]) -> Self:
        """Return a view of the rows with some ids."""

    def limit(self, n: int) -> Self:
        """Return a view of the first rows."""

    def media_ids(self) -> list[str]:
        """Return the ids of the rows."""


Source = TypeVar("Source", bound=MemberSource)


class ExplorePage(ExploreResult, Generic[Source]):
    """An Explore result that a notebook displays with thumbnails. Its fields are those of the interface.

    Examples:
        >>> page = ds.explore(level=2)
        >>> page.clusters[0].name, page.total_pages
        ('cat 80 %', 1)
    """

    _view: Source = PrivateAttr()

    @classmethod
    def of(cls, result: ExploreResult, view: Source) -> "ExplorePage[Source]":
        """Return a result with the thumbnails and the members of a view.

        Examples:
            >>> page = framedex.ExplorePage.of(ds.explore(level=2), ds.where(vql.tags("reviewed")))
            >>> page.members(0).count()
            3
        """
        shown = cls(**dict(result))
        shown._view = view
        return shown

    def members(self, cluster: Cluster | int) -> Source:
        """Return the members of a cluster as a view: all that pass the filters of the page, in its view's order.

        Args:
            cluster: a cluster of the page, or its position; of a page of videos, the members are the frames.

        Raises:
            OutOfRange: there is no cluster at the position.

        Examples:
            >>> ds.explore(level=2).members(0).labels()
            [LabelCount(name='cat', count=8)]
        """
        return self._view.where(vql.cluster(_at(self.clusters, cluster).cluster_id))

    def __eq__(self, other: object) -> bool:
        """Return whether two pages have equal contents; their views do not matter."""
        return isinstance(other, ExploreResult) and dict(self) == dict(other)

    __hash__ = None  # type: ignore[assignment] # a page holds lists, which have no hash

    def _repr_html_(self) -> str:
        shown = self.clusters[:_SHOWN_CLUSTERS]
        rest = len(self.clusters) - len(shown)
        return html.block(*cluster_cards(shown, self._view), html.note(f"and {rest} more on this page") if rest else "")


def shown_name(name: str, time_s: float | None) -> str:
    """Return the name of a file, with the time of a frame of a video."""
    return name if time_s is None else f"{name} at {time_s:.1f} s"


def cluster_cards(clusters: Sequence[Any], view: ThumbnailSource) -> list[str]:
    """Return a card with thumbnails for each cluster."""
    return [
        html.card(
            html.heading(
                _counted(cluster) + (f" · {cluster.name}" if cluster.name else ""),
                3,
            ),
            html.row(
                html.figure(jpeg, shown_name(shown.file_name, shown.frame_timestamp))
                for shown, jpeg in zip(
                    cluster.previews,
                    view.thumbnails([shown.media_id for shown in cluster.previews]),
                    strict=True,
                )
            ),
        )
        for cluster in clusters
    ]


def _counted(cluster: Cluster) -> str:
    """Return the contents of a cluster in words."""
    if cluster.n_objects > 0:
        return counted(cluster.n_objects, "objects")
    parts = {"images": cluster.n_images, "frames": cluster.n_frames, "videos": cluster.n_videos}
    return ", ".join(counted(count, nouns) for nouns, count in parts.items() if count > 0) or counted(0, "images")


GROUP_COLUMNS = pa.schema(
    [
        pa.field("group_id", pa.string()),
        pa.field("media_id", pa.string()),
        pa.field("file_name", pa.string()),
        pa.field("path", pa.string()),
        pa.field("keep", pa.bool_()),
        pa.field("reason", pa.string()),
        pa.field("keep_reason", pa.string()),
        pa.field("similarity", pa.float64()),
        pa.field("confidence", pa.float64()),
        pa.field("threshold", pa.float64()),
    ]
)
"""The columns of :meth:`DuplicateGroups.to_arrow`: ``reason`` is of the member, those after it are of the group."""


class DuplicateGroups(list[DuplicateGroup], Generic[Source]):
    """A list of duplicate groups that a notebook displays with thumbnails, the best member of each group first.

    Args:
        groups: the groups.
        view: the view of their members.
        of_videos: whether the members are videos.

    Examples:
        >>> groups = ds.duplicates(0.96)
        >>> groups[0].file_names, groups[0].similarity
        (['cat-1-copy.jpg', 'cat-1.jpg'], 1.0)
    """

    def __init__(self, groups: Iterable[DuplicateGroup], view: Source, *, of_videos: bool = False) -> None:
        super().__init__(groups)
        self._view, self._of_videos = view, of_videos

    @property
    def _entity_type(self) -> EntityType:
        return EntityType.VIDEOS if self._of_videos else self._view.entity_type

    @overload
    def __getitem__(self, position: SupportsIndex, /) -> DuplicateGroup: ...

    @overload
    def __getitem__(self, position: slice, /) -> "DuplicateGroups[Source]": ...

    def __getitem__(self, position: SupportsIndex | slice, /) -> "DuplicateGroup | DuplicateGroups[Source]":
        """Return a group, or some groups by a slice."""
        if isinstance(position, slice):
            return DuplicateGroups(super().__getitem__(position), self._view, of_videos=self._of_videos)
        return super().__getitem__(position)

    def members(self, group: DuplicateGroup | int) -> Source:
        """Return the members of a group as a view, in the order of ``media_ids``; of videos, their frames in row order.

        Args:
            group: a group of the list, or its position.

        Raises:
            OutOfRange: there is no group at the position.
            NotFound: a member is not in the view any more.

        Examples:
            >>> [row["image_filename"] for row in ds.duplicates().members(1)]
            ['garden-small.jpg', 'garden.jpg']
        """
        ids = _at(self, group).media_ids
        return self._view.where(vql.cluster(ids)) if self._of_videos else self._view.select(ids)

    def to_arrow(self) -> pa.Table:
        """Return a row for each member of each group, in the order of the groups and of their members.

        The columns are ``group_id, media_id, file_name, path, keep`` (whether it is the member to keep), ``reason``
        (how it is a copy of that member; null if unknown), and those of the group: ``keep_reason, similarity,
        confidence, threshold``.

        Examples:
            >>> ds.duplicates().to_arrow().select(["path", "keep", "reason"]).to_pylist()
            [{'path': 'cat-1-copy.jpg', 'keep': False, 'reason': 'same pixels'}, {'path': 'cat-1.jpg', 'keep': True,
              'reason': 'kept'}, {'path': 'garden-small.jpg', 'keep': False, 'reason': 'resized to 50%'},
              {'path': 'garden.jpg', 'keep': True, 'reason': 'kept'}]
        """
        sizes = [len(group.media_ids) for group in self]
        owner = pa.array(np.repeat(np.arange(len(sizes)), sizes), pa.int64())
        of_members: dict[str, list[Any]] = {
            "media_id": [each for group in self for each in group.media_ids],
            "file_name": [each for group in self for each in group.file_names],
            "path": [each for group in self for each in group.paths],
            "keep": [each == group.keep for group in self for each in group.media_ids],
            "reason": [reason for group in self for reason in _reasons(group)],
        }
        return pa.table(
            [
                pa.array(of_members[field.name], field.type)
                if field.name in of_members
                else pa.array([getattr(group, field.name) for group in self], field.type).take(owner)
                for field in GROUP_COLUMNS
            ],
            schema=GROUP_COLUMNS,
        )

    def to_pandas(self) -> "pd.DataFrame":
        """Return :meth:`to_arrow` as a DataFrame.

        Raises:
            MissingDependency: pandas is not installed.

        Examples:
            >>> ds.duplicates().to_pandas()[["path", "keep", "reason"]]
                           path   keep          reason
            0    cat-1-copy.jpg  False     same pixels
            1         cat-1.jpg   True            kept
            2  garden-small.jpg  False  resized to 50%
            3        garden.jpg   True            kept
        """
        return as_pandas(self.to_arrow())

    def __reduce__(self) -> tuple[Any, ...]:
        """Return a plain list for copies and pickles, which cannot contain an open workspace."""
        return list, (list(self),)

    def __repr__(self) -> str:
        """Return the number of groups and of their members."""
        members = counted(sum(len(group.media_ids) for group in self), _NOUNS[self._entity_type])
        return f"<framedex.DuplicateGroups: {counted(len(self), 'groups')} of {members}>"

    def _repr_html_(self) -> str:
        if not self:
            return html.block(html.note("no duplicates found"))
        shown = self[:_SHOWN_CLUSTERS]
        rest = len(self) - len(shown)
        source = _Videos(self._view) if self._of_videos else self._view
        cards = (duplicate_card(group, source) for group in shown)
        return html.block(*cards, html.note(f"and {counted(rest, 'more groups')}") if rest else "")


class _Videos:
    """The thumbnails of videos: the first frame of each that is in a view."""

    entity_type = EntityType.VIDEOS

    def __init__(self, view: MemberSource) -> None:
        self._view = view

    def thumbnails(self, media_ids: Sequence[str], *, size: int = SHOWN_SIDE) -> list[bytes | None]:
        """Return JPEGs; None for videos without a frame that can be decoded."""
        return [self._first(video_id, size) for video_id in media_ids]

    def _first(self, video_id: str, size: int) -> bytes | None:
        first = self._view.where(vql.cluster(video_id)).limit(1)
        return next(iter(first.thumbnails(first.media_ids(), size=size)), None)


def _reasons(group: DuplicateGroup) -> Sequence[str | None]:
    return group.reasons or [None] * len(group.media_ids)


def _at(items: Sequence[Item], item: Item | int) -> Item:
    """Return an item that is given by itself or by its position."""
    if not isinstance(item, int):
        return item
    try:
        return items[item]
    except IndexError:
        raise OutOfRange(f"no position {item} in a list of {len(items):,}") from None


def duplicate_card(group: DuplicateGroup, view: ThumbnailSource) -> str:
    """Return a card with the thumbnails of a group, first the best member to keep, with the reason."""
    names = dict(zip(group.media_ids, group.file_names, strict=True))
    others = [media_id for media_id in group.media_ids if media_id != group.keep]
    shown = [group.keep, *others[: _SHOWN_MEMBERS - 1]]
    rest = len(names) - len(shown)
    return html.card(
        html.heading(f"{counted(len(names), _NOUNS[view.entity_type])}, similarity up to {group.similarity:.4f}", 3),
        html.note(f"Keep {names[group.keep]}. {group.keep_reason} Confidence {group.confidence:.2f}."),
        html.row(
            html.figure(jpeg, names[media_id], "★ best to keep" if media_id == group.keep else "")
            for media_id, jpeg in zip(shown, view.thumbnails(shown), strict=True)
        ),
        html.note(f"and {rest:,} more") if rest else "",
    )
