"""Actions on media of a service, and images that are sent to it."""

import os
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from framedex.client import calls
from framedex.client.connection import Connection
from framedex.client.parts import ViewParts
from framedex.core.ids import is_id
from framedex.errors import InvalidInput, NotFound
from framedex.media.held_images import image_file
from framedex.records import Copy, EntityType, Tag
from framedex.settings import user_path

MOST_IDS = 10_000
"""The maximum number of ids in a view, or in an action."""
_FEW = 500


@runtime_checkable
class HasResults(Protocol):
    """A view with results in the service."""

    @property
    def rid(self) -> str:
        """The id of the results."""


def act(connection: Connection, dataset_id: str, action: str, selection: Any, **args: Any) -> dict[str, Any]:
    """Apply an action to a view, a media id or a sequence of ids; return the answer."""
    on: dict[str, Any] | None = None
    if isinstance(selection, HasResults):
        on = {"rid": selection.rid}
    elif selection is not None:
        ids = [selection] if isinstance(selection, str) else selection
        if isinstance(ids, Mapping) or not isinstance(ids, Sequence):
            raise InvalidInput(
                f"a selection must be a view, a media id or a sequence of media ids, not {type(selection).__name__}"
            )
        few = len(ids) <= _FEW and all(isinstance(each, str) for each in ids)
        on = {"ids": list(ids)} if few else {"rid": _rid_of(connection, dataset_id, list(ids))}
    body = {"action": action, "on": on, "args": args}
    answer: dict[str, Any] = connection.json(calls.ACTIONS, body=body, dataset_id=dataset_id)
    return answer


def tag_named(connection: Connection, dataset_id: str, name_or_id: str) -> Tag:
    """Return a tag by its name or id.

    Raises:
        NotFound: the dataset has no such tag.
    """
    for each in connection.json(calls.TAGS, dataset_id=dataset_id):
        if name_or_id in (each["name"], each["tag_id"]):
            return Tag.model_validate(each)
    raise NotFound(f"no tag {name_or_id!r} in this dataset")


def upload_query(connection: Connection, dataset_id: str, query: Any, box: Any) -> str:
    """Send an image to search by, or a part of it, as in :func:`copies_from_service`; return its anchor id."""
    answer = connection.send(
        calls.UPLOAD_QUERY,
        query={"bounding_box": _box_text(box)},
        files=[("file", _query_file(query))],
        dataset_id=dataset_id,
    )
    return str(answer.json()["anchor_media_id"])


def copies_from_service(connection: Connection, dataset_id: str, query: Any, similarity: float, box: Any) -> list[Copy]:
    """Return the copies of an image.

    Args:
        connection: to the service.
        dataset_id: the dataset.
        query: the id of a media item or an object; or an image that is sent: a path, bytes, an array or a Pillow image.
        similarity: the minimum similarity.
        box: the part of the image; None for all of it.
    """
    parameters = {"similarity": similarity, "bounding_box": _box_text(box)}
    if isinstance(query, str) and is_id(query):
        answer = connection.send(calls.COPIES, query={**parameters, "media_id": query}, dataset_id=dataset_id)
    else:
        files = [("file", _query_file(query))]
        answer = connection.send(calls.COPIES, query=parameters, files=files, dataset_id=dataset_id)
    return [Copy.model_validate(each) for each in answer.json()]


def pixels_of_box(box: Any) -> tuple[float, float, float, float]:
    """Return the x, y, width and height of a bounding box.

    Raises:
        InvalidInput: it has not four numbers.
    """
    numbers = [box[name] for name in ("x", "y", "width", "height")] if isinstance(box, Mapping) else list(box)
    if len(numbers) != 4:
        raise InvalidInput(f"a bounding box is (x, y, width, height) in pixels, not {box!r:.80}")
    x, y, width, height = (float(each) for each in numbers)
    return x, y, width, height


def _box_text(box: Any) -> str | None:
    return None if box is None else ",".join(map(str, pixels_of_box(box)))


def _query_file(query: Any) -> tuple[str, bytes]:
    """Return the name and the content of an image as a file.

    Raises:
        InvalidInput: it is none of these, or cannot be read.
    """
    path = user_path(query) if isinstance(query, str | os.PathLike) else None
    data = bytes(query) if isinstance(query, bytearray | memoryview) else query
    content = image_file(data if path is None else path)
    if not content:
        raise InvalidInput("an image to search by has no content")
    return "query" if path is None else path.name, content


def _rid_of(connection: Connection, dataset_id: str, ids: list[str]) -> str:
    if len(ids) > MOST_IDS:
        raise InvalidInput(f"up to {MOST_IDS:,} ids can be changed at a time, not {len(ids):,}; use a view for more")
    body = ViewParts(ids=tuple(ids)).body(EntityType.IMAGES)
    return str(connection.json(calls.RESULTS, body=body, dataset_id=dataset_id)["rid"])
