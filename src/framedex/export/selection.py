"""What a selective export takes: media by id, and clusters without some of their media."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from framedex.errors import InvalidInput, NotFound
from framedex.ids import Kind, parse_group_id
from framedex.records import CLUSTER_LEVELS, Condition, EntityType
from framedex.storage.media import Media, RowIds


def select(media: Media, selection: Sequence[Mapping[str, Any]]) -> RowIds:
    """Return the ids of the rows that a ``media_selection`` names, each once, in row order.

    Args:
        media: what is exported.
        selection: elements ``{"type": "media", "payload": {"media_ids": […]}}`` or ``{"type": "cluster", "payload":
            {"cluster_id": …, "cluster_filters": {"entity_type": …}, "exclude_media_ids": […]}}``; the payload's fields
            may also stand beside ``type``.

    Raises:
        InvalidInput: an element is of another form.
        NotFound: a media item or a cluster does not exist.
    """
    if isinstance(selection, str | Mapping) or not isinstance(selection, Sequence):
        raise InvalidInput(f"media_selection must be a list of elements, not {type(selection).__name__}")
    parts = [_element(media, element, f"media_selection[{place}]") for place, element in enumerate(selection)]
    return np.unique(np.concatenate(parts)) if parts else np.empty(0, dtype=np.uint64)


def _element(media: Media, element: Any, path: str) -> RowIds:
    if not isinstance(element, Mapping):
        raise InvalidInput(f"{path} must be an object with 'type' and 'payload', not {element!r}")
    payload = element.get("payload", element)
    if not isinstance(payload, Mapping):
        raise InvalidInput(f"{path}.payload must be an object, not {payload!r}")
    match element.get("type"):
        case "media":
            return _by_media_ids(media, _ids(payload, "media_ids", path))
        case "cluster":
            return _by_cluster(media, payload, path)
        case other:
            raise InvalidInput(f"{path}.type must be 'media' or 'cluster', not {other!r}")


def _ids(payload: Mapping[str, Any], name: str, path: str) -> list[str]:
    value = payload.get(name)
    if not isinstance(value, list | tuple) or not all(isinstance(each, str) for each in value):
        raise InvalidInput(f"{path}.{name} must be a list of ids, not {value!r}")
    return list(value)


def _by_media_ids(media: Media, ids: list[str]) -> RowIds:
    asked = [each for each in ids if each.isascii()]  # what is no Unicode cannot be a parameter, nor an id
    condition = Condition("list_contains($1::VARCHAR[], media_id)", (asked,), frozenset({"media_id"}))
    if len(asked) > 100:
        condition = Condition("media_id IN (SELECT unnest($1::VARCHAR[]))", (asked,), frozenset({"media_id"}))
    found = media.row_ids(condition)
    if len(found) < len(set(ids)):
        known = set(media.query("SELECT media_id FROM chosen", condition, ["media_id"])["media_id"].to_pylist())
        missing = [each for each in dict.fromkeys(ids) if each not in known]
        raise NotFound(f"{len(missing)} media ids are not in this dataset, the first is {missing[0]!r}")
    return found


def _by_cluster(media: Media, payload: Mapping[str, Any], path: str) -> RowIds:
    filters = payload.get("cluster_filters") or {}
    entity_type = filters.get("entity_type", EntityType.IMAGES) if isinstance(filters, Mapping) else None
    if entity_type not in list(EntityType):
        wanted = f"an object with an 'entity_type' of {', '.join(EntityType)}"
        raise InvalidInput(f"{path}.cluster_filters must be {wanted}, not {filters!r}")
    cluster_id = payload.get("cluster_id")
    if not isinstance(cluster_id, str):
        raise InvalidInput(f"{path}.cluster_id must be the id of a cluster, not {cluster_id!r}")
    level, number = parse_group_id(media.dataset_id, Kind.CLUSTER, cluster_id)
    column = f"cluster_{level}"
    # The bits of an id that name the level reach further.
    if level >= CLUSTER_LEVELS or entity_type == EntityType.OBJECTS:
        raise NotFound(f"no cluster {cluster_id} in this dataset")
    members = media.row_ids(Condition(f"{column} = $1", (number,), frozenset({column})))
    if not len(members):
        raise NotFound(f"no cluster {cluster_id} in this dataset")
    excluded = [] if payload.get("exclude_media_ids") is None else _ids(payload, "exclude_media_ids", path)
    return np.setdiff1d(members, _by_media_ids(media, excluded)) if excluded else members
