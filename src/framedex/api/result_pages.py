"""Explore pages and duplicate groups with thumbnails, for notebooks and reports."""

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from pydantic import PrivateAttr

from framedex.records import Cluster, DuplicateGroup, EntityType, ExploreResult
from framedex.render import html

SHOWN_SIDE = 160
"""The longer side of thumbnails on pages, in pixels."""
_SHOWN_CLUSTERS = 12
_SHOWN_MEMBERS = 8


class ThumbnailSource(Protocol):
    """A source of thumbnails: a view."""

    @property
    def entity_type(self) -> EntityType:
        """The type of the entities on the thumbnails."""

    def thumbnails(self, media_ids: Sequence[str], *, size: int = ...) -> list[bytes | None]:
        """Return JPEGs; None for images that cannot be decoded."""


class ExplorePage(ExploreResult):
    """An Explore result that a notebook displays with thumbnails. Its fields are those of the interface."""

    _view: ThumbnailSource = PrivateAttr()

    @classmethod
    def of(cls, result: ExploreResult, view: ThumbnailSource) -> "ExplorePage":
        """Return a result with the thumbnails of a view."""
        shown = cls(**dict(result))
        shown._view = view
        return shown

    def __eq__(self, other: object) -> bool:
        """Return whether two pages have equal contents; their views do not matter."""
        return isinstance(other, ExploreResult) and dict(self) == dict(other)

    __hash__ = None  # type: ignore[assignment] # a page holds lists, which have no hash

    def _repr_html_(self) -> str:
        shown = self.clusters[:_SHOWN_CLUSTERS]
        rest = len(self.clusters) - len(shown)
        return html.block(*cluster_cards(shown, self._view), html.note(f"and {rest} more on this page") if rest else "")


def cluster_cards(clusters: Sequence[Any], view: ThumbnailSource) -> list[str]:
    """Return a card with thumbnails for each cluster."""
    return [
        html.card(
            html.heading(
                _counted(cluster) + (f" · {', '.join(cluster.labels)}" if cluster.labels else ""),
                3,
            ),
            html.row(
                html.figure(jpeg, shown.file_name)
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
        return f"{cluster.n_objects:,} objects"
    parts = {"images": cluster.n_images, "frames": cluster.n_frames, "videos": cluster.n_videos}
    return ", ".join(f"{count:,} {name}" for name, count in parts.items() if count > 0) or "0 images"


class DuplicateGroups(list[DuplicateGroup]):
    """A list of duplicate groups that a notebook displays with thumbnails, the best member of each group first."""

    def __init__(self, groups: Iterable[DuplicateGroup], view: ThumbnailSource) -> None:
        super().__init__(groups)
        self._view = view

    def __reduce__(self) -> tuple[Any, ...]:
        """Return a plain list for copies and pickles, which cannot contain an open workspace."""
        return list, (list(self),)

    def _repr_html_(self) -> str:
        if not self:
            return html.block(html.note("no duplicates found"))
        shown = self[:_SHOWN_CLUSTERS]
        rest = len(self) - len(shown)
        cards = (duplicate_card(group, self._view) for group in shown)
        return html.block(*cards, html.note(f"and {rest:,} more groups") if rest else "")


def duplicate_card(group: DuplicateGroup, view: ThumbnailSource) -> str:
    """Return a card with the thumbnails of a group, first the best member to keep, with the reason."""
    names = dict(zip(group.media_ids, group.file_names, strict=True))
    others = [media_id for media_id in group.media_ids if media_id != group.keep]
    shown = [group.keep, *others[: _SHOWN_MEMBERS - 1]]
    rest = len(names) - len(shown)
    noun = "objects" if view.entity_type == EntityType.OBJECTS else "images"
    return html.card(
        html.heading(f"{len(names):,} {noun}, similarity up to {group.similarity:.4f}", 3),
        html.note(f"Keep {names[group.keep]}. {group.keep_reason} Confidence {group.confidence:.2f}."),
        html.row(
            html.figure(jpeg, names[media_id], "★ best to keep" if media_id == group.keep else "")
            for media_id, jpeg in zip(shown, view.thumbnails(shown), strict=True)
        ),
        html.note(f"and {rest:,} more") if rest else "",
    )
