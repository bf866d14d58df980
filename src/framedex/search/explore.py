"""The Explore result: clusters of the media that a filter leaves, with previews."""

from collections import defaultdict
from collections.abc import Callable, Iterable
from itertools import zip_longest
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

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
from framedex.search.ranking import COSINE_DISTANCE, RANKED, Ranking
from framedex.storage.definitions import TAGS, tag_names, tags_of
from framedex.storage.media import Media
from framedex.storage.media_rows import NO_EMBEDDING, VIDEO_FRAME
from framedex.storage.tables import ROW_ID

PAGE_CLUSTERS = 100
PREVIEWS = 9
_TOP = 10
_GATHERED = 200_000  # rows
_UNRANKED = "chosen", "size DESC, min(_rowid)"
_COLUMNS = ("media_id", "caption", "labels", "width", "height")
_OF_VIDEOS = ("kind", "video_id", "frame_number")
Ask = Callable[[str], pa.Table]
Counts = dict[Any, tuple[int, int, int]]
"""Pictures, frames and videos of clusters."""
ThumbnailUri = Callable[[str], str | None]
"""Returns the address of a media item's thumbnail, if there is one already."""


def explore(
    media: Media,
    condition: Condition,
    *,
    entity_type: str,
    threshold: int,
    page_number: int,
    thumbnail_uri: ThumbnailUri,
    ranking: Ranking | None = None,
) -> ExploreResult:
    """Return one page of the clusters of the media that meet a condition, largest first.

    Clusters of one size come in the order of their first media. A cluster holds only what meets the condition. With a
    ranking, the cluster with the best member comes first, and previews are the best members, the best first.

    Args:
        media: what is explored.
        condition: which of it.
        entity_type: ``IMAGES``; ``VIDEOS``: each cluster is a video, of the frames that meet the condition; ``OBJECTS``
            is valid, and a dataset without objects has no clusters of them.
        threshold: clustering level, 0 (finest) to 4; says nothing about videos.
        page_number: from 0; a page has 100 clusters.
        thumbnail_uri: where a thumbnail lies.
        ranking: of the media that meet the condition, all of them.

    Raises:
        InvalidInput: an argument is outside of its range.
    """
    check_arguments(entity_type, threshold, page_number)
    of_videos = entity_type == EntityType.VIDEOS
    if entity_type == EntityType.OBJECTS or (of_videos and not media.has_videos):
        return ExploreResult(clusters=[], metadata=ExploreMetadata(used_duckdb=True))
    level = "video_id" if of_videos else f"cluster_{threshold}"
    page = _page(media, condition, level, page_number, by_rank=ranking is not None)
    if not len(page):
        return ExploreResult(clusters=[], metadata=ExploreMetadata(used_duckdb=True))
    ask = _asker(media, condition, level, page)
    kind = COSINE_DISTANCE if ranking is None else ranking.kind
    numbers = page["number"].to_pylist()
    names = tag_names(tags_of(media)).to_pylist()
    row_ids, scores = _shown(ask, level, numbers, by_rank=ranking is not None)
    previews = _previews(media, row_ids, names, thumbnail_uri, scores, kind)
    labels = _most_frequent(ask, level, "labels")
    tags = _most_frequent(ask, level, TAGS) if TAGS in media.table.schema.names else {}
    counts = _counts(ask, level) if media.has_videos else {}
    clusters = [
        _cluster(
            media.dataset_id,
            threshold,
            number,
            size=size,
            counts=counts.get(number, (size, -1, -1)),
            previews=shown,
            labels=labels.get(number),
            tags=_named(tags.get(number), names),
            score=score[0],
            kind=kind,
        )
        for number, size, shown, score in zip(numbers, page["size"].to_pylist(), previews, scores, strict=True)
    ]
    return ExploreResult(clusters=clusters, metadata=ExploreMetadata(used_duckdb=True))


def check_arguments(entity_type: str, threshold: int, page_number: int) -> None:
    """Check the arguments of :func:`explore`.

    Raises:
        InvalidInput: one is outside of its range.
    """
    check_entity_type(entity_type)
    for name, value, limit in (
        ("threshold", threshold, CLUSTER_LEVELS - 1),
        ("page_number", page_number, 2**31),
    ):
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= limit:
            raise InvalidInput(f"{name} must be a whole number from 0 to {limit}, not {value!r}")


def check_entity_type(entity_type: str) -> None:
    """Check the name of a type of entities.

    Raises:
        InvalidInput: there is none of that name.
    """
    if entity_type not in list(EntityType):
        raise InvalidInput(f"entity_type must be one of {', '.join(EntityType)}, not {entity_type!r}")


def _page(media: Media, condition: Condition, level: str, page_number: int, *, by_rank: bool) -> pa.Table:
    """Return ``number`` and ``size`` of the clusters of a page."""
    source, order = (f"(chosen JOIN {RANKED} USING ({ROW_ID}))", "min(place)") if by_rank else _UNRANKED
    text = (
        f"SELECT {level} AS number, count(*) AS size FROM {source} WHERE {level} IS NOT NULL "
        f"GROUP BY number ORDER BY {order} LIMIT {PAGE_CLUSTERS} OFFSET {page_number * PAGE_CLUSTERS}"
    )
    return media.query(text, condition, [level], keep=True)


def _asker(media: Media, condition: Condition, level: str, page: pa.Table) -> Ask:
    """Return what runs statements over the chosen members of the clusters of a page.

    Where these are few, as they are at the finer levels, they are looked for once.
    """
    held = ("labels", TAGS, *_OF_VIDEOS)
    columns = list(dict.fromkeys([level, *(name for name in held if name in media.table.schema.names)]))
    # Ids of videos are UUIDs of our own, and cluster numbers are numbers.
    members = f"FROM chosen WHERE {level} IN ({', '.join(map(repr, page['number'].to_pylist()))})"
    if pc.sum(page["size"]).as_py() > _GATHERED:
        return lambda text: media.query(text.format(members=members), condition, columns, keep=True)
    found = media.query(f"SELECT {', '.join([*columns, ROW_ID])} {members}", condition, columns, keep=True)
    relations = {**condition.relations, "members": found}
    return lambda text: media.sql.query(text.format(members="FROM members"), (), relations)


def _shown(ask: Ask, level: str, numbers: list[int], *, by_rank: bool) -> tuple[list[list[int]], list[list[float]]]:
    """Return the row ids and scores of what is previewed of clusters."""
    if by_rank:
        shown = f"arg_min({ROW_ID}, place, {PREVIEWS}) AS row_ids, arg_min(score, place, {PREVIEWS}) AS scores"
        source = f"(SELECT {ROW_ID}, {level} {{members}}) JOIN {RANKED} USING ({ROW_ID})"
    else:
        shown, source = (
            f"min({ROW_ID}, {PREVIEWS}) AS row_ids, [0.0] AS scores",
            f"(SELECT {ROW_ID}, {level} {{members}})",
        )
    found = ask(f"SELECT {level} AS number, {shown} FROM {source} GROUP BY number").to_pylist()
    of = {row["number"]: row for row in found}
    return [of[number]["row_ids"] for number in numbers], [of[number]["scores"] for number in numbers]


def _counts(ask: Ask, level: str) -> Counts:
    """Return how many pictures, frames and videos clusters have."""
    text = (
        f"SELECT {level} AS number, count(*) - count(kind) AS images, count(frame_number) AS frames, "
        "count(DISTINCT video_id) AS videos {members} GROUP BY number"
    )
    return {row["number"]: (row["images"], row["frames"], row["videos"]) for row in ask(text).to_pylist()}


def _most_frequent(ask: Ask, level: str, column: str) -> dict[int, list[Any]]:
    """Return the most frequent values of a column of lists by cluster; clusters without any are not in it."""
    found: dict[int, list[Any]] = defaultdict(list)
    text = (
        f"SELECT number, value, count(*) AS n FROM (SELECT {level} AS number, unnest({column}) AS value {{members}}) "
        "GROUP BY ALL ORDER BY number, n DESC, value"
    )
    for row in ask(text).to_pylist():
        found[row["number"]] = [*found[row["number"]], row["value"]][:_TOP]
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
    columns = [*_COLUMNS, *media.location, *({TAGS} & set(media.table.schema.names))]
    rows = iter(media.take(flat, columns, keep=True).to_pylist())
    return [
        [
            preview(media, next(rows), names, thumbnail_uri, score=score, kind=kind)
            for _, score in zip_longest(group, own, fillvalue=0.0)
        ]
        for group, own in zip(groups, scores, strict=True)
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
    uri = media.uri_of(row)
    return Preview(
        type="VIDEO_FRAME" if row.get("kind") == VIDEO_FRAME else "IMAGE",
        media_id=row["media_id"],
        media_uri=uri,
        media_thumb_uri=thumbnail_uri(row["media_id"]) or uri,
        caption=row["caption"],
        file_name=file_name(row["path"]),
        relevance_score=score,
        relevance_score_type=kind,
        width=row["width"],
        height=row["height"],
        image_id=row["media_id"],
        image_uri=uri,
        bounding_box=None,
        original_uri=uri,
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
    threshold: int,
    number: int | str,
    *,
    size: int,
    counts: tuple[int, int, int],
    previews: list[Preview],
    labels: list[str] | None,
    tags: list[str] | None,
    score: float,
    kind: str,
) -> Cluster:
    is_video = isinstance(number, str)
    return Cluster(
        cluster_id=number if isinstance(number, str) else group_id(dataset_id, Kind.CLUSTER, threshold, number),
        type=EntityType.VIDEOS if is_video else EntityType.IMAGES,
        n_images=counts[0],
        n_objects=-1,
        n_videos=counts[2],
        n_frames=counts[1],
        size_display_value=str(size),
        formed_by="VIDEO" if is_video else "CORRUPTED" if number == NO_EMBEDDING else "SIMILARITY",
        similarity_threshold=str(threshold),
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
