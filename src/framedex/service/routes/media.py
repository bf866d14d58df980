"""Single media: look-ups, duplicates, details, and the bytes of images and videos."""

from functools import partial
from typing import Annotated, Any

from fastapi import Query, Request, Response, UploadFile
from fastapi.responses import PlainTextResponse

from framedex.access import Action
from framedex.core.ids import is_id
from framedex.errors import InvalidInput, NotFound
from framedex.records import Copy, MediaItem
from framedex.service.actions import needs, routes
from framedex.service.errors import Refusal
from framedex.service.media_files import (
    FileFormat,
    ThumbnailSize,
    image_response,
    thumbnail_response,
    video_response,
)
from framedex.service.parameters import FileLinks, OpenedDataset, Service
from framedex.service.query_images import pixel_box, read_query, size_of_item, size_of_upload

router = routes("media")

_DATASET = "/dataset/{dataset_id}"
_MEDIA = "/dataset/{dataset_id}/media/{media_id}"
_NOT_FOUND = "Media not found"
_ERROR = {"application/json": {"schema": {"$ref": "#/components/schemas/ErrorBody"}}}
_JSON_ERRORS: dict[int | str, dict[str, Any]] = {
    "4XX": {"description": "The request cannot be answered", "content": _ERROR},
    "5XX": {"description": "The service cannot answer at present", "content": _ERROR},
}
_Version = Annotated[str | None, Query(pattern="^[0-9a-f]{8}$")]


@router.get(_DATASET + "/search_media_metadata/id", response_class=PlainTextResponse, responses=_JSON_ERRORS)
@needs(Action.DATASET_VIEW)
def get_media_id(
    dataset_id: str, dataset: OpenedDataset, original_media_uri: Annotated[str, Query(max_length=8192)]
) -> str:
    """Return the id of the media item at a path within the source, or at the URI of an object."""
    if original_media_uri.startswith(("/", "file:", "~", ".")):  # where files of the server are is not told
        raise Refusal(404, _NOT_FOUND)
    try:
        return dataset.media_id(original_media_uri)
    except NotFound:
        raise Refusal(404, _NOT_FOUND) from None


@router.get(_DATASET + "/media/id", response_class=PlainTextResponse, responses=_JSON_ERRORS)
@needs(Action.DATASET_VIEW)
def get_media_id_by_alias(
    dataset_id: str, dataset: OpenedDataset, original_media_uri: Annotated[str, Query(max_length=8192)]
) -> str:
    """Return the same, at a second path of the interface."""
    return get_media_id(dataset_id, dataset, original_media_uri)


@router.get(_MEDIA + "/duplicates")
@needs(Action.DATASET_VIEW)
def get_duplicates_of_media(
    dataset_id: str,
    media_id: str,
    dataset: OpenedDataset,
    threshold: Annotated[float, Query(ge=0.96, le=1)] = 0.96,
) -> list[str]:
    """Return the ids of the near-duplicates of a media item, the most similar first."""
    if not is_id(media_id):  # the library takes paths, too
        raise Refusal(404, _NOT_FOUND)
    try:
        return [copy.media_id for copy in dataset.copies_of(media_id, threshold)]
    except NotFound:
        raise Refusal(404, _NOT_FOUND) from None


@router.post(_DATASET + "/copies")
@needs(Action.DATASET_SEARCH_UPLOAD, heavy=True, body_limit="max_query_bytes")
def post_copies(
    dataset_id: str,
    dataset: OpenedDataset,
    service: Service,
    file: UploadFile | None = None,
    media_id: Annotated[str | None, Query(max_length=100)] = None,
    similarity: Annotated[float, Query(ge=0.96, le=1)] = 0.96,
    bounding_box: Annotated[str | None, Query(max_length=1000)] = None,
) -> list[Copy]:
    """Return the copies of an image that is sent, or of a media item, or of a part of it; nothing is kept."""
    if file is not None and media_id is None:
        data = read_query(file, service.settings.max_query_bytes)
        box = pixel_box(bounding_box, partial(size_of_upload, data, service.workspace.settings))
        return list(dataset.copies_of(data, similarity, bounding_box=box))
    if file is not None or media_id is None:
        raise InvalidInput("send either an image as file, or name a media_id")
    if not is_id(media_id):  # the library takes paths, too
        raise Refusal(404, _NOT_FOUND)
    try:
        box = pixel_box(bounding_box, partial(size_of_item, dataset, media_id))
        return list(dataset.copies_of(media_id, similarity, bounding_box=box))
    except NotFound:
        raise Refusal(404, _NOT_FOUND) from None


@router.get(_MEDIA)
@needs(Action.DATASET_VIEW)
def get_media_item(dataset_id: str, media_id: str, dataset: OpenedDataset, links: FileLinks) -> MediaItem:
    """Return all that is known of a media item or an object."""
    try:
        return dataset.with_uris(links.of_media(dataset.id)).media_item(media_id)
    except NotFound:
        raise Refusal(404, _NOT_FOUND) from None


@router.get("/image/{image_id}")
@needs(Action.DATASET_VIEW)
def get_image(image_id: str, request: Request, links: FileLinks, dataset_id: str | None = None) -> MediaItem:
    """Return the same, of the dataset that the query names."""
    if dataset_id is None:
        raise Refusal(404, _NOT_FOUND)
    return get_media_item(dataset_id, image_id, request.state.dataset, links)


@router.get(_MEDIA + "/thumbnail", response_class=Response)
@needs(Action.DATASET_VIEW, signed=True)
async def get_thumbnail(
    dataset_id: str,
    media_id: str,
    request: Request,
    service: Service,
    dataset: OpenedDataset,
    size: ThumbnailSize = ThumbnailSize.MEDIUM,
    v: _Version = None,
) -> Response:
    """Return a JPEG of an item; with ``v``, the start of the content's hash, the browser keeps it."""
    return await thumbnail_response(request, service.heavy, dataset, media_id, size, v)


@router.get(_MEDIA + "/file", response_class=Response)
@needs(Action.DATASET_VIEW, signed=True)
async def get_media_file(
    dataset_id: str,
    media_id: str,
    request: Request,
    service: Service,
    dataset: OpenedDataset,
    file_format: Annotated[FileFormat | None, Query(alias="format")] = None,
    strip_metadata: bool = False,
) -> Response:
    """Return the image of an item: its file, or a JPEG where browsers do not show the format."""
    return await image_response(request, service.heavy, dataset, media_id, file_format, strip_metadata=strip_metadata)


@router.get(_MEDIA + "/video", response_class=Response)
@needs(Action.DATASET_VIEW, signed=True)
def get_video(dataset_id: str, media_id: str, request: Request, dataset: OpenedDataset) -> Response:
    """Return the video that a frame belongs to, as a whole or in ranges."""
    return video_response(request, dataset, media_id)
