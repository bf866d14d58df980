"""The Explore result: clusters of the filtered media, or of their objects, with previews."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pyarrow as pa

from framedex.browse.cluster_names import cluster_names
from framedex.browse.cluster_pages import ClusterPage, cluster_page
from framedex.browse.media_uris import MediaUris
from framedex.core.checks import check_integer
from framedex.core.ids import Kind, group_id
from framedex.errors import InvalidInput
from framedex.records import CLUSTER_LEVELS, Cluster, ClusterCounts, EntityType, ExploreMetadata, ExploreResult, Preview
from framedex.search.ranking import COSINE_DISTANCE, Ranking
from framedex.settings import NO_STEMS
from framedex.storage.condition import Condition
from framedex.storage.definitions import TAGS, tag_names, tags_of
from framedex.storage.media import Media
from framedex.storage.media_rows import BOX, NO_EMBEDDING, VIDEO_FRAME
from framedex.storage.objects import is_empty_object_view

PAGE_CLUSTERS = 100
PREVIEWS = 9
_TOP = 10
_GATHERED = 200_000  # rows
COLUMNS = ("media_id", "caption", "labels", "width", "height")
"""The columns of a preview, beside those of the location, the tags and the parent."""
_OF_VIDEOS, _PARENT = ("kind", "video_id", "frame_number"), "parent_id"
Ask = Callable[[str], pa.Table]
Counts = dict[Any, tuple[int, int, int]]
"""Numbers of images, frames and videos by cluster, for the members or for the media that contain them."""


def explore(
    media: Media,
    condition: Condition,
    *,
    entity_type: str,
    level: int,
    page_number: int,
    uris: MediaUris,
    ranking: Ranking | None = None,
    language: str = NO_STEMS,
) -> ExploreResult:
    """Return one page of the clusters of the media that meet a condition, largest first.

    Ties are in the order of their first media. A cluster contains only media that meet the condition. With a ranking,
    the cluster with the best member comes first, and previews are the best members, best first.

    Args:
        media: the media, or for ``OBJECTS`` the objects, to explore.
        condition: the condition that media must meet.
        entity_type: ``IMAGES``; ``OBJECTS``; ``VIDEOS``, for one cluster per video with its frames that meet the
            condition.
        level: clustering level, 0 (finest) to 4; ignored for videos.
        page_number: from 0; a page has 100 clusters.
        uris: the URIs of previews.
        ranking: a ranking of all media that meet the condition, or None.
        language: the language of captions, for the names of clusters.

    Raises:
        InvalidInput: an argument is outside of its range.
    """
    check_arguments(entity_type, level, page_number)
    of_videos = entity_type == EntityType.VIDEOS
    clusters: list[Cluster] = []
    total = 0
    if media.has_videos or not of_videos:
        page = cluster_page(
            media,
            condition,
            "video_id" if of_videos else f"cluster_{level}",
            first=page_number * PAGE_CLUSTERS,
            count=PAGE_CLUSTERS,
            ranking=ranking,
        )
        clusters = _clusters(media, condition, level, page, ranking, uris, language) if page.numbers else []
        total = page.total
    return ExploreResult(
        clusters=clusters,
        metadata=ExploreMetadata(used_duckdb=True),
        total_pages=-(-total // PAGE_CLUSTERS),
        current_page=page_number,
    )


def _clusters(
    media: Media,
    condition: Condition,
    level: int,
    page: ClusterPage,
    ranking: Ranking | None,
    uris: MediaUris,
    language: str,
) -> list[Cluster]:
    """Return the clusters of a page that is not empty."""
    kind = COSINE_DISTANCE if ranking is None else ranking.kind
    run = _asker(media, condition, page)
    names = tag_names(tags_of(media)).to_pylist()
    row_ids, scores = page.first_members(PREVIEWS)
    copies = {} if ranking is None else ranking.copies
    previews = _previews(media, row_ids, names, uris, scores, kind, copies)
    labels = _most_frequent(run, "labels")
    tags = _most_frequent(run, TAGS) if TAGS in media.table.schema.names else {}
    counts = _counts(media, run, page)
    cluster_name = cluster_names(media, page, labels, language)
    return [
        _cluster(
            media.dataset_id,
            level,
            number,
            size=size,
            n_objects=-1 if media.parents is None else size,
            counts=counts[number],
            previews=members,
            labels=_values(labels.get(number)),
            tags=_tag_names(_values(tags.get(number)), names),
            name=name,
            score=score[0],
            kind=kind,
        )
        for number, size, members, score, name in zip(
            page.numbers, page.sizes, previews, scores, cluster_name, strict=True
        )
    ]


def check_arguments(entity_type: str, level: int, page_number: int) -> None:
    """Check the arguments of :func:`explore`.

    Raises:
        InvalidInput: an argument is outside of its range.
    """
    check_entity_type(entity_type)
    check_integer("level", level, minimum=0, maximum=CLUSTER_LEVELS - 1)
    check_integer("page_number", page_number, minimum=0, maximum=2**31)


def check_entity_type(entity_type: str) -> None:
    """Check an entity type.

    Raises:
        InvalidInput: the entity type does not exist.
    """
    if entity_type not in list(EntityType):
        raise InvalidInput(f"entity_type must be one of {', '.join(EntityType)}, not {entity_type!r}")


def _asker(media: Media, condition: Condition, page: ClusterPage) -> Ask:
    """Return a function that runs statements over the members of a page's clusters, with the column ``number``.

    Few members, as at the finer levels, are read only once.
    """
    useful = ("labels", TAGS, *_OF_VIDEOS, _PARENT)
    columns = [name for name in useful if name in media.table.schema.names]
    if len(page.row_ids) > _GATHERED:
        # Safe to insert: video ids are UUIDs made here, and cluster numbers are integers.
        numbers = ", ".join(map(repr, page.numbers))
        members = f"SELECT *, {page.level} AS number FROM chosen WHERE {page.level} IN ({numbers})"
        every = list(dict.fromkeys([page.level, *columns]))
        return lambda text: media.query(text.format(members=members), condition, every, keep=True)
    rows = media.take(page.row_ids.tolist(), columns, keep=True).append_column("number", pa.array(page.owners()))
    return lambda text: media.sql.query(text.format(members="SELECT * FROM members"), (), {"members": rows})


def _counts(media: Media, run: Ask, page: ClusterPage) -> Counts:
    """Return the numbers of images, frames and videos by cluster, for members or the media that contain them."""
    members = "{members}"
    if media.parents is not None:  # each media item once, which is faster than count(DISTINCT …)
        columns = ", ".join(["number", _PARENT, *(_OF_VIDEOS if media.has_videos else ())])
        members = f"SELECT DISTINCT {columns} FROM ({{members}})"
    elif not media.has_videos:
        return {number: (size, -1, -1) for number, size in zip(page.numbers, page.sizes, strict=True)}
    counted = "count(*) AS i, -1 AS f, -1 AS v"
    if media.has_videos:
        counted = "count(*) - count(kind) AS i, count(frame_number) AS f, count(DISTINCT video_id) AS v"
    text = f"SELECT number, {counted} FROM ({members}) GROUP BY number"
    return {row["number"]: (row["i"], row["f"], row["v"]) for row in run(text).to_pylist()}


def _most_frequent(run: Ask, column: str) -> dict[Any, list[tuple[Any, int]]]:
    """Return the most frequent values of a list column, and their counts, by cluster; none for clusters without any."""
    results: dict[Any, list[tuple[Any, int]]] = defaultdict(list)
    text = (
        f"SELECT number, value, count(*) AS n FROM (SELECT number, unnest({column}) AS value FROM ({{members}})) "
        "GROUP BY ALL ORDER BY number, n DESC, value"
    )
    for row in run(text).to_pylist():
        if len(values := results[row["number"]]) < _TOP:
            values.append((row["value"], row["n"]))
    return results


def _values(counted: list[tuple[Any, int]] | None) -> list[Any] | None:
    """Return values without their counts."""
    return [value for value, _ in counted] if counted else None


def _tag_names(tags: list[int] | None, names: list[str | None]) -> list[str] | None:
    """Return the names of tags by their numbers; None without tags."""
    return [name for number in tags if (name := names[number]) is not None] if tags else None


def _previews(
    media: Media,
    groups: list[list[int]],
    names: list[str | None],
    uris: MediaUris,
    scores: list[list[float]],
    kind: str,
    copies: Mapping[int, str],
) -> Iterable[list[Preview]]:
    flat = [row_id for group in groups for row_id in group]
    columns = [*COLUMNS, *media.location, *({TAGS, _PARENT} & set(media.table.schema.names))]
    rows = iter(media.take(flat, columns, keep=True).to_pylist())
    return [
        [
            preview(media, next(rows), names, uris, score=score, kind=kind, copy=copies.get(row_id))
            for row_id, score in zip(group, own, strict=True)
        ]
        for group, own in zip(groups, scores, strict=True)
    ]


def preview(
    media: Media,
    row: dict[str, Any],
    names: list[str | None],
    uris: MediaUris,
    *,
    score: float = 0.0,
    kind: str = COSINE_DISTANCE,
    copy: str | None = None,
) -> Preview:
    """Return a row in the form of the interface; *names* are the tag names by number."""
    is_object, own = media.parents is not None, uris.of(media, row)
    return Preview(
        type="OBJECT" if is_object else "VIDEO_FRAME" if row.get("kind") == VIDEO_FRAME else "IMAGE",
        media_id=row["media_id"],
        media_uri=own.media,
        media_thumb_uri=own.thumbnail,
        caption=row["caption"],
        file_name=file_name(row["path"]),
        relevance_score=score,
        relevance_score_type=kind,
        width=row["width"],
        height=row["height"],
        image_id=row[_PARENT if is_object else "media_id"],
        image_uri=own.image,
        bounding_box=[row[name] for name in BOX] if is_object else None,
        original_uri=own.original,
        video_uri=own.video,
        frame_timestamp=row.get("frame_time_s"),
        labels=row["labels"],
        user_tags=_tag_names(row.get(TAGS), names),
        copy_reason=copy,
    )


def count_clusters(media: Media, condition: Condition, *, entity_type: str, level: int) -> ClusterCounts:
    """Return the number of clusters that :func:`explore` has on all pages, and of the media in them.

    Args:
        media: the media, or for ``OBJECTS`` the objects.
        condition: the condition that media must meet.
        entity_type: as for :func:`explore`.
        level: clustering level, 0 (finest) to 4; ignored for videos.

    Raises:
        InvalidInput: an argument is outside of its range.
    """
    check_arguments(entity_type, level, 0)
    of_videos = entity_type == EntityType.VIDEOS
    if is_empty_object_view(media) or (of_videos and not media.has_videos):
        return ClusterCounts(n_clusters=0, n_media=0)
    column = "video_id" if of_videos else f"cluster_{level}"
    text = f"SELECT count(DISTINCT {column}) AS n_clusters, count({column}) AS n_media FROM chosen"
    return ClusterCounts(**media.query(text, condition, [column]).to_pylist()[0])


def file_name(path: str) -> str:
    """Return the last component of a path or URI."""
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
    name: str | None,
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
        captions=list(dict.fromkeys(preview.caption for preview in previews if preview.caption)),
        previews=previews,
        labels=labels,
        user_tags=tags,
        name=name,
    )
