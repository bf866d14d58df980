"""The Explore result: clusters of the media that a filter leaves, or of the objects in them, with previews."""

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pyarrow as pa

from framedex.browse.cluster_pages import ClusterPage, cluster_page
from framedex.checks import check_integer
from framedex.errors import InvalidInput
from framedex.ids import Kind, group_id
from framedex.records import (
    CLUSTER_LEVELS,
    Cluster,
    Condition,
    EntityType,
    ExploreMetadata,
    ExploreResult,
    Preview,
)
from framedex.search.ranking import COSINE_DISTANCE, Ranking
from framedex.storage.definitions import TAGS, tag_names, tags_of
from framedex.storage.media import Media
from framedex.storage.media_rows import BOX, NO_EMBEDDING, VIDEO_FRAME
from framedex.storage.objects import object_uri

PAGE_CLUSTERS = 100
PREVIEWS = 9
_TOP = 10
_GATHERED = 200_000  # rows
_COLUMNS = ("media_id", "caption", "labels", "width", "height")
_OF_VIDEOS, _PARENT = ("kind", "video_id", "frame_number"), "parent_id"
Ask = Callable[[str], pa.Table]
Counts = dict[Any, tuple[int, int, int]]
"""Pictures, frames and videos by clusters: that these are of, or that their objects are in."""
ThumbnailUri = Callable[[str], str | None]
"""Returns the address of a media item's thumbnail, if there is one already."""


def explore(
    media: Media,
    condition: Condition,
    *,
    entity_type: str,
    level: int,
    page_number: int,
    thumbnail_uri: ThumbnailUri,
    ranking: Ranking | None = None,
) -> ExploreResult:
    """Return one page of the clusters of the media that meet a condition, largest first.

    Clusters of one size come in the order of their first media. A cluster holds only what meets the condition. With a
    ranking, the cluster with the best member comes first, and previews are the best members, the best first.

    Args:
        media: what is explored; of ``OBJECTS`` the objects.
        condition: which of it.
        entity_type: ``IMAGES``; ``OBJECTS``; ``VIDEOS``: each cluster is a video, of frames that meet the condition.
        level: clustering level, 0 (finest) to 4; says nothing about videos.
        page_number: from 0; a page has 100 clusters.
        thumbnail_uri: where a thumbnail lies.
        ranking: of the media that meet the condition, all of them.

    Raises:
        InvalidInput: an argument is outside of its range.
    """
    check_arguments(entity_type, level, page_number)
    of_videos = entity_type == EntityType.VIDEOS
    clusters: list[Cluster] = []
    if media.has_videos or not of_videos:
        page = cluster_page(
            media,
            condition,
            "video_id" if of_videos else f"cluster_{level}",
            first=page_number * PAGE_CLUSTERS,
            count=PAGE_CLUSTERS,
            ranking=ranking,
        )
        kind = COSINE_DISTANCE if ranking is None else ranking.kind
        clusters = _clusters(media, condition, level, page, kind, thumbnail_uri) if page.numbers else []
    return ExploreResult(clusters=clusters, metadata=ExploreMetadata(used_duckdb=True))


def _clusters(
    media: Media, condition: Condition, level: int, page: ClusterPage, kind: str, thumbnail_uri: ThumbnailUri
) -> list[Cluster]:
    """Return the clusters of a page that has some."""
    ask = _asker(media, condition, page)
    names = tag_names(tags_of(media)).to_pylist()
    row_ids, scores = page.shown(PREVIEWS)
    previews = _previews(media, row_ids, names, thumbnail_uri, scores, kind)
    labels = _most_frequent(ask, "labels")
    tags = _most_frequent(ask, TAGS) if TAGS in media.table.schema.names else {}
    counts = _counts(media, ask, page)
    return [
        _cluster(
            media.dataset_id,
            level,
            number,
            size=size,
            n_objects=-1 if media.parents is None else size,
            counts=counts[number],
            previews=shown,
            labels=labels.get(number),
            tags=_named(tags.get(number), names),
            score=score[0],
            kind=kind,
        )
        for number, size, shown, score in zip(page.numbers, page.sizes, previews, scores, strict=True)
    ]


def check_arguments(entity_type: str, level: int, page_number: int) -> None:
    """Check the arguments of :func:`explore`.

    Raises:
        InvalidInput: one is outside of its range.
    """
    check_entity_type(entity_type)
    check_integer("level", level, minimum=0, maximum=CLUSTER_LEVELS - 1)
    check_integer("page_number", page_number, minimum=0, maximum=2**31)


def check_entity_type(entity_type: str) -> None:
    """Check the name of a type of entities.

    Raises:
        InvalidInput: there is none of that name.
    """
    if entity_type not in list(EntityType):
        raise InvalidInput(f"entity_type must be one of {', '.join(EntityType)}, not {entity_type!r}")


def _asker(media: Media, condition: Condition, page: ClusterPage) -> Ask:
    """Return what runs statements over the members of the clusters of a page, with ``number`` for their clusters'.

    Where these are few, as they are at the finer levels, they are looked for once.
    """
    useful = ("labels", TAGS, *_OF_VIDEOS, _PARENT)
    columns = [name for name in useful if name in media.table.schema.names]
    if len(page.row_ids) > _GATHERED:
        # Ids of videos are UUIDs of our own, and cluster numbers are numbers.
        wanted = ", ".join(map(repr, page.numbers))
        members = f"SELECT *, {page.level} AS number FROM chosen WHERE {page.level} IN ({wanted})"
        every = list(dict.fromkeys([page.level, *columns]))
        return lambda text: media.query(text.format(members=members), condition, every, keep=True)
    found = media.take(page.row_ids.tolist(), columns, keep=True).append_column("number", pa.array(page.owners()))
    return lambda text: media.sql.query(text.format(members="SELECT * FROM members"), (), {"members": found})


def _counts(media: Media, ask: Ask, page: ClusterPage) -> Counts:
    """Return how many pictures, frames and videos clusters have, or their objects are in."""
    members = "{members}"
    if media.parents is not None:  # what they are in, each once; so it is faster than to count what is distinct
        columns = ", ".join(["number", _PARENT, *(_OF_VIDEOS if media.has_videos else ())])
        members = f"SELECT DISTINCT {columns} FROM ({{members}})"
    elif not media.has_videos:
        return {number: (size, -1, -1) for number, size in zip(page.numbers, page.sizes, strict=True)}
    counted = "count(*) AS i, -1 AS f, -1 AS v"
    if media.has_videos:
        counted = "count(*) - count(kind) AS i, count(frame_number) AS f, count(DISTINCT video_id) AS v"
    text = f"SELECT number, {counted} FROM ({members}) GROUP BY number"
    return {row["number"]: (row["i"], row["f"], row["v"]) for row in ask(text).to_pylist()}


def _most_frequent(ask: Ask, column: str) -> dict[Any, list[Any]]:
    """Return the most frequent values of a column of lists by cluster; clusters without any are not in it."""
    found: dict[Any, list[Any]] = defaultdict(list)
    text = (
        f"SELECT number, value, count(*) AS n FROM (SELECT number, unnest({column}) AS value FROM ({{members}})) "
        "GROUP BY ALL ORDER BY number, n DESC, value"
    )
    for row in ask(text).to_pylist():
        if len(values := found[row["number"]]) < _TOP:
            values.append(row["value"])
    return found


def _named(tags: list[int] | None, names: list[str | None]) -> list[str] | None:
    """Return the names of tags, given by their numbers; None where there are none."""
    return [name for number in tags if (name := names[number]) is not None] if tags else None


def _previews(
    media: Media,
    groups: list[list[int]],
    names: list[str | None],
    thumbnail_uri: ThumbnailUri,
    scores: list[list[float]],
    kind: str,
) -> Iterable[list[Preview]]:
    flat = [row_id for group in groups for row_id in group]
    columns = [*_COLUMNS, *media.location, *({TAGS, _PARENT} & set(media.table.schema.names))]
    rows = iter(media.take(flat, columns, keep=True).to_pylist())
    return [
        [preview(media, next(rows), names, thumbnail_uri, score=score, kind=kind) for score in own] for own in scores
    ]


def preview(
    media: Media,
    row: dict[str, Any],
    names: list[str | None],
    thumbnail_uri: ThumbnailUri,
    *,
    score: float = 0.0,
    kind: str = COSINE_DISTANCE,
) -> Preview:
    """Return a row as the interface shows it; *names* are those of tags, by number."""
    is_object = media.parents is not None
    picture_uri = media.uri_of(row)
    uri = object_uri(media, row) if is_object else picture_uri
    return Preview(
        type="OBJECT" if is_object else "VIDEO_FRAME" if row.get("kind") == VIDEO_FRAME else "IMAGE",
        media_id=row["media_id"],
        media_uri=uri,
        media_thumb_uri=thumbnail_uri(row["media_id"]) or uri,
        caption=row["caption"],
        file_name=file_name(row["path"]),
        relevance_score=score,
        relevance_score_type=kind,
        width=row["width"],
        height=row["height"],
        image_id=row[_PARENT if is_object else "media_id"],
        image_uri=picture_uri,
        bounding_box=[row[name] for name in BOX] if is_object else None,
        original_uri=picture_uri,
        video_uri=None if row.get("kind") is None else media.uri_of({**row, "frame_time_s": None}),
        frame_timestamp=row.get("frame_time_s"),
        labels=row["labels"],
        user_tags=_named(row.get(TAGS), names),
    )


def file_name(path: str) -> str:
    """Return the last part of a path or URI."""
    return path.rstrip("/").rpartition("/")[2] or path


def _cluster(
    dataset_id: str,
    level: int,
    number: int | str,
    *,
    size: int,
    n_objects: int,
    counts: tuple[int, int, int],
    previews: list[Preview],
    labels: list[str] | None,
    tags: list[str] | None,
    score: float,
    kind: str,
) -> Cluster:
    is_video = isinstance(number, str)
    return Cluster(
        cluster_id=number if isinstance(number, str) else group_id(dataset_id, Kind.CLUSTER, level, number),
        type=EntityType.VIDEOS if is_video else EntityType.IMAGES if n_objects < 0 else EntityType.OBJECTS,
        n_images=counts[0],
        n_objects=n_objects,
        n_videos=counts[2],
        n_frames=counts[1],
        size_display_value=str(size),
        formed_by="VIDEO" if is_video else "CORRUPTED" if number == NO_EMBEDDING else "SIMILARITY",
        similarity_threshold=str(level),
        relevance_score=score,
        relevance_score_type=kind,
        captions=list(dict.fromkeys(shown.caption for shown in previews if shown.caption)),
        previews=previews,
        labels=labels,
        user_tags=tags,
    )


def vectors(media: Media) -> tuple[list[str], Any]:
    """Return (media ids, float32 (N, D)) of the media that have an embedding, in row order."""
    positions, embeddings = media.table.vectors()
    ids = media.table.scan(["media_id"]).read_all().column(0).combine_chunks()
    return ids.take(pa.array(positions)).to_pylist(), np.asarray(embeddings)
