"""Pages of clusters in the form that old clients read."""

from framedex.records import Cluster, ExploreResult, Preview


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


def old_page(page: ExploreResult) -> OldExploreResult:
    """Return a page of clusters with the keys that clients of ``image_caption`` read, too."""
    return OldExploreResult(**{**dict(page), "clusters": [_old_cluster(each) for each in page.clusters]})


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
