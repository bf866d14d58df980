"""The map: its points, their colours, the names of clusters on it, and the task that makes it."""

import hashlib
import re
import struct
from typing import Annotated, Any

from fastapi import Query, Request, Response

from framedex.access import Action
from framedex.api.dataset.maps import stored_map
from framedex.api.map_points import MapPoints
from framedex.errors import InvalidInput, NotFound
from framedex.operations.states import PRESENT
from framedex.records import EntityType, TaskRecord
from framedex.service.actions import needs, routes
from framedex.service.arrow import ARROW_ANSWER, arrow_response, wants_arrow
from framedex.service.models_map import MapColourNames, MapEntities, MapLabels, MapPlace
from framedex.service.parameters import OpenedDataset

router = routes("map")

_CACHED = "private, no-cache"
_BINARY = "application/octet-stream"
_ANSWER: dict[int | str, dict[str, Any]] = {
    200: {"content": {_BINARY: {"schema": {"type": "string", "format": "binary"}}}}
}
_TWO_ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {"content": {**_ANSWER[200]["content"], **ARROW_ANSWER[200]["content"]}}
}
_MAGIC = b"FDXMAP01"
_HEADER = struct.Struct("<8sII4d16x")
_COLOURS = struct.Struct("<I")
_Column = Annotated[str, Query(max_length=1000)]
_Level = Annotated[int, Query(ge=0, le=4)]


@router.post("/dataset/{dataset_id}/map", status_code=202)
@needs(Action.DATASET_VIEW, heavy=True)
def post_map(dataset_id: str, dataset: OpenedDataset, entity_type: EntityType = EntityType.IMAGES) -> TaskRecord:
    """Start to make the map of the present index, or return the task that makes it already.

    Videos are on the map of their frames, which is that of the images.
    """
    return dataset.start_map(entity_type).record


@router.get(
    "/dataset/{dataset_id}/map",
    response_class=Response,
    responses=_TWO_ANSWERS | {204: {"description": "There is no map, and none is required"}},
)
@needs(Action.DATASET_VIEW, heavy=True)
def get_map(
    dataset_id: str,
    dataset: OpenedDataset,
    request: Request,
    entity_type: EntityType = EntityType.IMAGES,
    required: bool = True,
) -> Response:
    """Return the points of the map; those of any beginning are a fair sample of all.

    While there is no map of the present index this is an error, or with ``required=false`` an empty answer (204).

    All numbers are little-endian. First 64 bytes: the text FDXMAP01, the number of points N and that of all rows
    (uint32), the left, lower, right and upper end of the square that holds the points (float64), and 16 bytes without
    meaning. Then x and y of each point (uint16, 0 to 65535 across the square), and at the end the position of each
    point among all rows in the order of ingestion (uint32), to which the mask of results refers.

    As an Arrow stream these are the rows of a table in Python, in the order of ingestion: ``media_id``, ``x``, ``y``;
    only so are there videos.
    """
    try:
        if wants_arrow(request):
            table = stored_map(dataset, entity_type)
            return arrow_response(table.schema, [table], {"Vary": "Accept"})
        points = MapPoints(dataset, entity_type)
    except NotFound:
        if required:
            raise
        return Response(status_code=204)
    header = _HEADER.pack(_MAGIC, len(points), points.total, *points.bounds)
    return _answer(request, b"".join([header, points.places.tobytes(), points.positions.tobytes()]), points)


@router.get("/dataset/{dataset_id}/map/colours", response_class=Response, responses=_ANSWER)
@needs(Action.DATASET_VIEW, heavy=True)
def get_map_colours(
    dataset_id: str,
    dataset: OpenedDataset,
    request: Request,
    column: _Column | None = None,
    before: _Column | None = None,
    after: _Column = PRESENT,
    entity_type: MapEntities = MapEntities.IMAGES,
) -> Response:
    """Return a byte for each point of the map, and what the bytes mean.

    The bytes are of the values of a column; or of what happened between two states, as for a comparison: the first
    change of an image that has several.

    First the number of bytes of a JSON text (uint32), then that text: ``names`` with their counts, or ``low`` and
    ``high`` of numbers. Then a byte for each point: 0 without a value; of names 1 for the first one, and 255 for those
    without a name; of numbers 1 for ``low`` to 254 for ``high``.
    """
    points = MapPoints(dataset, entity_type)
    if column is not None and before is None:
        found = points.colours(column)
    elif before is not None and column is None:
        found = points.changes(before, after)
    else:
        raise InvalidInput("colours are those of a column, or of the changes since a state: give column, or before")
    names = MapColourNames(names=found.names, low=found.low, high=found.high).model_dump_json().encode()
    return _answer(request, _COLOURS.pack(len(names)) + names + found.codes.tobytes(), points)


@router.get("/dataset/{dataset_id}/map/labels")
@needs(Action.DATASET_VIEW, heavy=True)
def get_map_labels(
    dataset_id: str, dataset: OpenedDataset, level: _Level = 2, entity_type: MapEntities = MapEntities.IMAGES
) -> MapLabels:
    """Return the names of the 100 largest clusters of a level, each at the median place of its members."""
    points = MapPoints(dataset, entity_type)
    labels = [
        MapPlace(cluster_id=each.cluster_id, name=each.name, size=each.size, x=each.x, y=each.y)
        for each in points.labels(level)
    ]
    return MapLabels(generation=points.generation, level=level, labels=labels)


def _answer(request: Request, body: bytes, points: MapPoints) -> Response:
    """Return bytes with an ETag of their content, so that after an edit nothing is sent again that stayed."""
    etag = f'"{hashlib.blake2b(body, digest_size=16).hexdigest()}"'
    headers = {"ETag": etag, "Cache-Control": _CACHED, "X-Generation": points.generation}
    if etag in re.split(r",\s*", request.headers.get("if-none-match", "")):
        return Response(status_code=304, headers=headers)
    return Response(body, media_type=_BINARY, headers=headers)
