"""Actions on media of a service, and images that are sent to it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from framedex.client import calls
from framedex.client.connection import Connection
from framedex.client.parts import ViewParts
from framedex.errors import InvalidInput, NotFound
from framedex.records import EntityType, Tag

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


def upload_query(
    connection: Connection, dataset_id: str, query: Any, box: tuple[float, float, float, float] | None
) -> str:
    """Send an image to search by, and return its anchor id."""
    data = query if isinstance(query, bytes) else Path(query).read_bytes()
    name = "query" if isinstance(query, bytes) else Path(query).name
    answer = connection.send(
        calls.UPLOAD_QUERY,
        query={"bounding_box": None if box is None else ",".join(map(str, box))},
        files=[("file", (name, data))],
        dataset_id=dataset_id,
    )
    return str(answer.json()["anchor_media_id"])


def _rid_of(connection: Connection, dataset_id: str, ids: list[str]) -> str:
    if len(ids) > MOST_IDS:
        raise InvalidInput(f"up to {MOST_IDS:,} ids can be changed at a time, not {len(ids):,}; use a view for more")
    body = ViewParts(ids=tuple(ids)).body(EntityType.IMAGES)
    return str(connection.json(calls.RESULTS, body=body, dataset_id=dataset_id)["rid"])
