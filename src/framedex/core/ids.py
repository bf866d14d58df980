"""Identifiers: UUIDs that can be computed instead of stored."""

import hashlib
import re
import uuid
from collections.abc import Mapping
from enum import IntEnum
from functools import lru_cache

from framedex.errors import NotFound

_UUID = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class Kind(IntEnum):
    """A kind of group with a computed identifier."""

    CLUSTER = 1
    DUPLICATE_GROUP = 2
    CONTENT_GROUP = 3


def new_id() -> str:
    """Return a random UUID in text form."""
    return str(uuid.uuid4())


def is_id(value: object) -> bool:
    """Return whether a value has the form of an id, and so may be part of a path: a UUID in lower case."""
    return isinstance(value, str) and _UUID.fullmatch(value) is not None


def media_id(dataset_id: str, location: str) -> str:
    """Return the id of the media item at *location* in a dataset.

    It is a name-based UUID (RFC 9562, version 5) in the namespace of the dataset, so ingesting the same file again
    results in the same id.
    """
    digest = bytearray(
        hashlib.sha1(_namespace(dataset_id) + location.encode("utf-8", "surrogateescape")).digest()[:16]  # noqa: S324 - RFC 9562
    )
    digest[6] = digest[6] & 0x0F | 0x50
    digest[8] = digest[8] & 0x3F | 0x80
    text = digest.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


@lru_cache(maxsize=16)
def _namespace(dataset_id: str) -> bytes:
    return uuid.UUID(dataset_id).bytes


def frame_id(dataset_id: str, location: str, number: int) -> str:
    """Return the id of a frame of the video at *location*, like :func:`media_id`; it differs from the ids of files."""
    return media_id(dataset_id, f"{location}\0\0{number}")


def object_id(dataset_id: str, parent_id: str, description: str) -> str:
    """Return the id of an object in a media item, like :func:`media_id`; it differs from the ids of files.

    Args:
        dataset_id: the dataset.
        parent_id: the media item.
        description: a text that is unique among the objects of the media item.
    """
    return media_id(dataset_id, f"{parent_id}\0\0\0{description}")


def objects_dataset(dataset_id: str) -> str:
    """Return the id for the groups and caches of a dataset's objects; it differs from the ids of datasets."""
    return media_id(dataset_id, "\0objects")


def batch_id(dataset_id: str, number: int) -> str:
    """Return the id of a batch: of the media that an addition brought, by its number from 0, the creation."""
    return str(uuid.uuid5(uuid.UUID(dataset_id), f"batch:{number}"))


def group_prefix(dataset_id: str, kind: Kind, level: int) -> str:
    """Return the first 28 of the 36 characters of the ids of a dataset's groups of one kind and level.

    The last eight characters are the group's number in hexadecimal. The id is a custom UUID (RFC 9562, version 8) with
    72 bits of a hash of the dataset's id. So tables store only a 32-bit number, and the id is as stable as the number.
    """
    seed = hashlib.blake2b(dataset_id.encode(), digest_size=9).digest()
    head = seed[:6] + bytes([0x80 | level, kind, 0x80, *seed[6:]])
    text = str(uuid.UUID(bytes=head + bytes(4)))
    return text[:28]


def group_id(dataset_id: str, kind: Kind, level: int, number: int) -> str:
    """Return the id of group *number* (0 to 2³²-1)."""
    return f"{group_prefix(dataset_id, kind, level)}{number:08x}"


def content_group_id(dataset_id: str, content_hash: bytes) -> str:
    """Return the id of the group of a dataset's files with the given content.

    It is a custom UUID (RFC 9562, version 8) like that of :func:`group_prefix`, with 104 bits of a hash of both.
    """
    seed = hashlib.blake2b(content_hash, key=dataset_id.encode(), digest_size=13).digest()
    return str(uuid.UUID(bytes=seed[:6] + bytes([0x80, Kind.CONTENT_GROUP, 0x80, *seed[6:]])))


def parse_group_id(dataset_id: str, kind: Kind, text: str) -> tuple[int, int]:
    """Return the level and the number of a group from its id.

    Raises:
        NotFound: the id does not belong to this dataset and kind.
    """
    try:
        raw = uuid.UUID(text).bytes
    except (ValueError, AttributeError, TypeError):
        raise NotFound(f"{text!r} is not a UUID") from None
    level, number = raw[6] & 0x0F, int.from_bytes(raw[12:], "big")
    if group_id(dataset_id, kind, level, number) != str(uuid.UUID(text)):
        raise NotFound(f"no {kind.name.lower().replace('_', ' ')} {text} in this dataset")
    return level, number


def context_id(dataset_id: str, models: Mapping[str, str]) -> str:
    """Return the id of an enrichment context (a dataset with its models): a UUID like that of :func:`media_id`."""
    return media_id(dataset_id, "\0".join(["enrichment", *(f"{kind}={models[kind]}" for kind in sorted(models))]))
