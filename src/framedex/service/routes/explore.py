"""Explore: clusters of media by filters, texts and images."""

from functools import partial
from typing import Annotated, Any, Literal

from fastapi import Query, UploadFile
from pydantic import BaseModel

from framedex.access import Action
from framedex.records import EntityType, ExploreResult, LabelCount
from framedex.service.actions import needs, routes
from framedex.service.parameters import FileLinks, OpenedDataset, Service
from framedex.service.previews import OldExploreResult, old_page
from framedex.service.query_images import check_encoder, pixel_box, read_query, size_of_upload

router = routes("explore")

Level = Annotated[int, Query(ge=0, le=4)]
Page = Annotated[int, Query(ge=0, le=2**31 - 1)]
Vql = Annotated[str | None, Query(max_length=2**16)]
_Caption = Annotated[str | None, Query(max_length=10_000)]
_List = Annotated[str | None, Query(max_length=2**16)]


class ExplorationMetadata(BaseModel):
    """Counts of a level: clusters, media in them, and labels."""

    dataset_name: str
    clusters_count: int
    media_count: int
    labels: list[LabelCount]


class Anchor(BaseModel):
    """An image that was uploaded for a search."""

    anchor_media_id: str
    anchor_type: Literal["UPLOAD"] = "UPLOAD"


@router.get("/explore/{dataset_id}", response_model=OldExploreResult | ExploreResult)
@needs(Action.DATASET_VIEW, heavy=True)
def explore_dataset(
    dataset_id: str,
    dataset: OpenedDataset,
    links: FileLinks,
    entity_type: EntityType = EntityType.IMAGES,
    threshold: Level = 0,
    page_number: Page = 0,
    caption: _Caption = None,
    image_caption: _Caption = None,
    textual_similarity_threshold: Annotated[float | None, Query(ge=0, le=1)] = None,
    labels: _List = None,
    tags: _List = None,
    vql: Vql = None,
    anchor_media_id: Annotated[str | None, Query(max_length=100)] = None,
    anchor_type: Literal["UPLOAD", "MEDIA"] | None = None,
) -> Any:
    """Return a page of 100 clusters, largest first, or those with the best matches first."""
    search: dict[str, Any] = {
        "caption": caption or image_caption or None,
        "textual_similarity_threshold": textual_similarity_threshold,
        "labels": labels or None,
        "tags": tags or None,
        "anchor_media_id": anchor_media_id or None,
        "anchor_type": anchor_type,
    }
    linked = dataset.with_uris(links.of_media(dataset.id))
    page = linked.explore(entity_type, threshold, page_number, vql or None, **search)
    return page if image_caption is None else old_page(page)


@router.get("/explore/{dataset_id}/exploration_metadata")
@needs(Action.DATASET_VIEW, heavy=True)
def get_exploration_metadata(
    dataset_id: str,
    dataset: OpenedDataset,
    entity_type: EntityType = EntityType.IMAGES,
    threshold: Level = 0,
    vql: Vql = None,
) -> ExplorationMetadata:
    """Return the number of clusters of a level, of their media, and the labels."""
    view = dataset.objects if entity_type is EntityType.OBJECTS else dataset.view
    counts = view.count_clusters(entity_type, threshold, vql or None)
    labels = (view.where(vql) if vql else view).labels()
    return ExplorationMetadata(
        dataset_name=dataset.name, clusters_count=counts.n_clusters, media_count=counts.n_media, labels=labels
    )


@router.post("/dataset/{dataset_id}/search-image-similarity")
@needs(Action.DATASET_SEARCH_UPLOAD, heavy=True, body_limit="max_query_bytes")
def post_search_image_similarity(
    dataset_id: str,
    dataset: OpenedDataset,
    service: Service,
    file: UploadFile,
    entity_type: EntityType = EntityType.IMAGES,
    threshold: Level = 0,
    bounding_box: Annotated[str | None, Query(max_length=1000)] = None,
) -> Anchor:
    """Keep an image for searches by similarity for a day; its id is the anchor."""
    check_encoder(dataset)
    data = read_query(file, service.settings.max_query_bytes)
    box = pixel_box(bounding_box, partial(size_of_upload, data, service.workspace.settings))
    return Anchor(anchor_media_id=dataset.upload(data, bounding_box=box))
