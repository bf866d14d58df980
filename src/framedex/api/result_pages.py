"""Pages of Explore and groups of duplicates, as notebooks and reports show them: with pictures."""

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from pydantic import PrivateAttr

from framedex.records import Cluster, DuplicateGroup, EntityType, ExploreResult
from framedex.render import html

SHOWN_SIDE = 160
"""Pixels of the longer side of pictures on pages."""
_SHOWN_CLUSTERS = 12
_SHOWN_MEMBERS = 8


class ThumbnailSource(Protocol):
    """What has the pictures of a page: a view."""

    @property
    def entity_type(self) -> EntityType:
        """What they are of."""

    def thumbnails(self, media_ids: Sequence[str], *, size: int = ...) -> list[bytes | None]:
        """Return JPEGs; None for pictures that cannot be shown."""


class ExplorePage(ExploreResult):
    """An Explore result that a notebook shows with pictures. Its fields are those of the interface."""

    _view: ThumbnailSource = PrivateAttr()

    @classmethod
    def of(cls, result: ExploreResult, view: ThumbnailSource) -> "ExplorePage":
        """Return a result that can be shown."""
        shown = cls(clusters=result.clusters, metadata=result.metadata)
        shown._view = view
        return shown

    def __eq__(self, other: object) -> bool:
        """Return whether two pages say the same, whichever views they came from."""
        return isinstance(other, ExploreResult) and (self.clusters, self.metadata) == (other.clusters, other.metadata)

    __hash__ = None  # type: ignore[assignment] # a page holds lists, which have no hash

    def _repr_html_(self) -> str:
        shown = self.clusters[:_SHOWN_CLUSTERS]
        rest = len(self.clusters) - len(shown)
        return html.block(*cluster_cards(shown, self._view), html.note(f"and {rest} more on this page") if rest else "")


def cluster_cards(clusters: Sequence[Any], view: ThumbnailSource) -> list[str]:
    """Return a card with pictures for each cluster."""
    return [
        html.card(
            html.heading(
                _counted(cluster) + (f" · {', '.join(cluster.labels)}" if cluster.labels else ""),
                3,
            ),
            html.row(
                html.picture(jpeg, shown.file_name)
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
    """Return in words what a cluster holds."""
    if cluster.n_objects > 0:
        return f"{cluster.n_objects:,} objects"
    parts = {"images": cluster.n_images, "frames": cluster.n_frames, "videos": cluster.n_videos}
    return ", ".join(f"{count:,} {name}" for name, count in parts.items() if count > 0) or "0 images"


class DuplicateGroups(list[DuplicateGroup]):
    """Groups of duplicates, as a list that a notebook shows with pictures, the best of each group first."""

    def __init__(self, groups: Iterable[DuplicateGroup], view: ThumbnailSource) -> None:
        super().__init__(groups)
        self._view = view

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies and pickles are plain lists: an open workspace cannot go with them."""
        return list, (list(self),)

    def _repr_html_(self) -> str:
        if not self:
            return html.block(html.note("no duplicates found"))
        shown = self[:_SHOWN_CLUSTERS]
        rest = len(self) - len(shown)
        cards = (duplicate_card(group, self._view) for group in shown)
        return html.block(*cards, html.note(f"and {rest:,} more groups") if rest else "")


def duplicate_card(group: DuplicateGroup, view: ThumbnailSource) -> str:
    """Return a card with pictures of a group: first the one that is best to keep, and why."""
    names = dict(zip(group.media_ids, group.file_names, strict=True))
    others = [media_id for media_id in group.media_ids if media_id != group.keep]
    shown = [group.keep, *others[: _SHOWN_MEMBERS - 1]]
    rest = len(names) - len(shown)
    noun = "objects" if view.entity_type == EntityType.OBJECTS else "images"
    return html.card(
        html.heading(f"{len(names):,} {noun}, similarity up to {group.similarity:.4f}", 3),
        html.note(f"keep {names[group.keep]}: {group.keep_reason} (confidence {group.confidence:.2f})"),
        html.row(
            html.picture(jpeg, names[media_id], "★ best to keep" if media_id == group.keep else "")
            for media_id, jpeg in zip(shown, view.thumbnails(shown), strict=True)
        ),
        html.note(f"and {rest:,} more") if rest else "",
    )
