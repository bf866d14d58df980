"""Selective exports: media and objects by id, and clusters without some of their members."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from framedex.core.arrays import RowIds
from framedex.core.counts import counted
from framedex.core.ids import Kind, parse_group_id
from framedex.errors import InvalidInput, NotFound
from framedex.export.objects import media_of, objects_in
from framedex.records import CLUSTER_LEVELS, EntityType
from framedex.storage.condition import Condition
from framedex.storage.media import Media
from framedex.storage.objects import objects_of


def select(entities: Media, selection: Sequence[Mapping[str, Any]]) -> RowIds:
    """Return the distinct row ids of a ``media_selection``, in row order.

    A selection may name both media and objects. If media are exported, an object selects the media item that contains
    it. If objects are exported, a media item selects all objects in it.

    Args:
        entities: the exported media, or the exported objects.
        selection: elements ``{"type": "media", "payload": {"media_ids": […]}}`` or ``{"type": "cluster", "payload":
            {"cluster_id": …, "cluster_filters": {"entity_type": …}, "exclude_media_ids": […]}}``. The payload's fields
            may also be beside ``type``. Ids are those of media or of objects. ``entity_type`` is ``OBJECTS`` for a
            cluster of objects; by default it is the type that is exported.

    Raises:
        InvalidInput: an element is malformed.
        NotFound: a media item, an object or a cluster does not exist.
    """
    if isinstance(selection, str | Mapping) or not isinstance(selection, Sequence):
        raise InvalidInput(f"media_selection must be a list of elements, not {type(selection).__name__}")
    parts = [_element(entities, element, f"media_selection[{position}]") for position, element in enumerate(selection)]
    return np.unique(np.concatenate(parts)) if parts else np.empty(0, dtype=np.uint64)


def _element(entities: Media, element: Any, path: str) -> RowIds:
    if not isinstance(element, Mapping):
        raise InvalidInput(f"{path} must be an object with 'type' and 'payload', not {element!r}")
    payload = element.get("payload", element)
    if not isinstance(payload, Mapping):
        raise InvalidInput(f"{path}.payload must be an object, not {payload!r}")
    match element.get("type"):
        case "media":
            return _by_media_ids(entities, _ids(payload, "media_ids", path))
        case "cluster":
            return _by_cluster(entities, payload, path)
        case other:
            raise InvalidInput(f"{path}.type must be 'media' or 'cluster', not {other!r}")


def _ids(payload: Mapping[str, Any], name: str, path: str) -> list[str]:
    value = payload.get(name)
    if not isinstance(value, list | tuple) or not all(isinstance(each, str) for each in value):
        raise InvalidInput(f"{path}.{name} must be a list of ids, not {value!r}")
    return list(value)


def _by_media_ids(entities: Media, ids: list[str]) -> RowIds:
    """Return the rows of the exported entities for ids of media and objects."""
    rows, existing = _existing_rows(entities, ids)
    other = _other(entities)
    if other is not None and len(existing) < len(set(ids)):
        other_rows, other_existing = _existing_rows(other, [each for each in ids if each not in existing])
        rows, existing = np.union1d(rows, _as(entities, other, other_rows)), existing | other_existing
    missing = [each for each in dict.fromkeys(ids) if each not in existing]
    if missing:
        raise NotFound(f"{counted(len(missing), 'media ids', 'are')} not in this dataset, the first is {missing[0]!r}")
    return rows


def _existing_rows(entities: Media, ids: list[str]) -> tuple[RowIds, set[str]]:
    """Return the rows with the given ids, and the ids that exist."""
    candidates = [each for each in ids if each.isascii()]  # ids are ASCII; other text may not be valid as a parameter
    condition = Condition("list_contains($1::VARCHAR[], media_id)", (candidates,), frozenset({"media_id"}))
    if len(candidates) > 100:
        condition = Condition("media_id IN (SELECT unnest($1::VARCHAR[]))", (candidates,), frozenset({"media_id"}))
    rows = entities.row_ids(condition)
    if len(rows) == len(set(ids)):
        return rows, set(ids)
    return rows, set(entities.query("SELECT media_id FROM chosen", condition, ["media_id"])["media_id"].to_pylist())


def _other(entities: Media) -> Media | None:
    """Return the objects if media are given, or the media if objects are; None for a dataset without objects."""
    return objects_of(entities) if entities.parents is None else entities.parents


def _as(entities: Media, other: Media, rows: RowIds) -> RowIds:
    """Return the rows of the media that contain objects, or of the objects that media contain."""
    return media_of(other, rows) if entities.parents is None else objects_in(entities, rows)


def _by_cluster(entities: Media, payload: Mapping[str, Any], path: str) -> RowIds:
    filters = payload.get("cluster_filters") or {}
    exported = EntityType.IMAGES if entities.parents is None else EntityType.OBJECTS
    entity_type = filters.get("entity_type", exported) if isinstance(filters, Mapping) else None
    if entity_type not in list(EntityType):
        expected = f"an object with an 'entity_type' of {', '.join(EntityType)}"
        raise InvalidInput(f"{path}.cluster_filters must be {expected}, not {filters!r}")
    cluster_id = payload.get("cluster_id")
    if not isinstance(cluster_id, str):
        raise InvalidInput(f"{path}.cluster_id must be the id of a cluster, not {cluster_id!r}")
    is_own = (entity_type == EntityType.OBJECTS) == (entities.parents is not None)
    clustered = entities if is_own else _other(entities)
    if clustered is None:
        raise NotFound(f"no cluster {cluster_id} in this dataset")
    members = _members(clustered, cluster_id)
    excluded = [] if payload.get("exclude_media_ids") is None else _ids(payload, "exclude_media_ids", path)
    members = np.setdiff1d(members, _by_media_ids(clustered, excluded)) if excluded else members
    return members if is_own else _as(entities, clustered, members)


def _members(clustered: Media, cluster_id: str) -> RowIds:
    level, number = parse_group_id(clustered.dataset_id, Kind.CLUSTER, cluster_id)
    column = f"cluster_{level}"
    # An id can encode more levels than exist.
    members = np.empty(0, dtype=np.uint64)
    if level < CLUSTER_LEVELS:
        members = clustered.row_ids(Condition(f"{column} = $1", (number,), frozenset({column})))
    if not len(members):
        raise NotFound(f"no cluster {cluster_id} in this dataset")
    return members
