"""Previews with the URIs of this service, and the forms of them that old clients read."""

from typing import TypeVar

from framedex.records import Cluster, ExploreResult, MediaItem, Preview
from framedex.service.links import Links

Shown = TypeVar("Shown", bound=Preview)


class OldMedia(Preview):
    """A media item with the keys that clients of ``image_caption`` read, too."""

    id: str
    preview: str
    filename: str


class OldCluster(Cluster):
    """A cluster with the keys that clients of ``image_caption`` read, too."""

    id: str
    entity_type: str
    size: int
    representative_id: str | None
    media: list[OldMedia]


class OldExploreResult(ExploreResult):
    """A page of clusters for clients of ``image_caption``."""

    clusters: list[OldCluster]  # type: ignore[assignment] # each is a cluster, too


def linked_item(item: MediaItem, dataset_id: str, links: Links) -> MediaItem:
    """Return a media item with URIs of this service."""
    return _linked(item, dataset_id, links)


def linked_page(page: ExploreResult, dataset_id: str, links: Links) -> ExploreResult:
    """Return a page of clusters with URIs of this service."""
    clusters = [
        cluster.model_copy(update={"previews": [_linked(each, dataset_id, links) for each in cluster.previews]})
        for cluster in page.clusters
    ]
    return ExploreResult(**{**dict(page), "clusters": clusters})


def old_page(page: ExploreResult) -> OldExploreResult:
    """Return a page of clusters with the keys that clients of ``image_caption`` read, too."""
    return OldExploreResult(**{**dict(page), "clusters": [_old_cluster(each) for each in page.clusters]})


def _linked(preview: Shown, dataset_id: str, links: Links) -> Shown:
    own, image = preview.media_id, preview.image_id
    media_uri = links.media(dataset_id, own, "file")
    changes = {
        "media_uri": media_uri,
        "media_thumb_uri": links.media(dataset_id, own, "thumbnail"),
        "image_uri": media_uri if own == image else links.media(dataset_id, image, "file"),
        "video_uri": None if preview.video_uri is None else links.media(dataset_id, image, "video"),
        "original_uri": preview.source_path,
    }
    return preview.model_copy(update=changes)


def _old_cluster(cluster: Cluster) -> OldCluster:
    media = [
        OldMedia(**dict(each), id=each.media_id, preview=each.media_thumb_uri, filename=each.file_name)
        for each in cluster.previews
    ]
    return OldCluster(
        **dict(cluster),
        id=cluster.cluster_id,
        entity_type=cluster.type,
        size=int(cluster.size_display_value),
        representative_id=media[0].id if media else None,
        media=media,
    )
