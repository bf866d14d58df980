"""Identifiers: UUIDs that can be computed instead of stored."""

import hashlib
import uuid
from collections.abc import Mapping
from enum import IntEnum

from framedex.errors import NotFound


class Kind(IntEnum):
    """What a computed identifier names."""

    CLUSTER = 1
    DUPLICATE_GROUP = 2
    CONTENT_GROUP = 3


def new_id() -> str:
    """Return a random UUID in text form."""
    return str(uuid.uuid4())


def media_id(dataset_id: str, location: str) -> str:
    """Return the id of the media item at *location* in a dataset: the same on every call.

    A name-based UUID (RFC 9562, version 5) in the namespace of the dataset, so that ingesting the same
    file again finds the same id.
    """
    digest = bytearray(
        hashlib.sha1(uuid.UUID(dataset_id).bytes + location.encode("utf-8", "surrogateescape")).digest()[:16]  # noqa: S324 - RFC 9562
    )
    digest[6] = digest[6] & 0x0F | 0x50
    digest[8] = digest[8] & 0x3F | 0x80
    return str(uuid.UUID(bytes=bytes(digest)))


def frame_id(dataset_id: str, location: str, number: int) -> str:
    """Return the id of a frame of the video at *location*: as :func:`media_id`, and no file has the same."""
    return media_id(dataset_id, f"{location}\0\0{number}")


def object_id(dataset_id: str, parent_id: str, description: str) -> str:
    """Return the id of an object in a media item: as :func:`media_id`, and no file has the same.

    Args:
        dataset_id: the dataset.
        parent_id: the media item.
        description: what tells it from the others there.
    """
    return media_id(dataset_id, f"{parent_id}\0\0\0{description}")


def objects_dataset(dataset_id: str) -> str:
    """Return the id under which the objects of a dataset have their groups and caches; that of no dataset."""
    return media_id(dataset_id, "\0objects")


def group_prefix(dataset_id: str, kind: Kind, level: int) -> str:
    """Return the first 28 of the 36 characters of the ids of a dataset's groups of one kind and level.

    The last eight are the group's number in hexadecimal. A custom UUID (RFC 9562, version 8) that carries
    72 bits of the dataset's own id: a row of a table needs only a 32-bit number, and the id stays as long
    as the number does.
    """
    seed = hashlib.blake2b(dataset_id.encode(), digest_size=9).digest()
    head = seed[:6] + bytes([0x80 | level, kind, 0x80, *seed[6:]])
    text = str(uuid.UUID(bytes=head + bytes(4)))
    return text[:28]


def group_id(dataset_id: str, kind: Kind, level: int, number: int) -> str:
    """Return the id of group *number* (0 to 2³²-1)."""
    return f"{group_prefix(dataset_id, kind, level)}{number:08x}"


def content_group_id(dataset_id: str, content_hash: bytes) -> str:
    """Return the id of the files of a dataset that have that content: the same as long as there are any.

    A custom UUID (RFC 9562, version 8), built as those of :func:`group_prefix` but of 104 bits of a hash of both.
    """
    seed = hashlib.blake2b(content_hash, key=dataset_id.encode(), digest_size=13).digest()
    return str(uuid.UUID(bytes=seed[:6] + bytes([0x80, Kind.CONTENT_GROUP, 0x80, *seed[6:]])))


def parse_group_id(dataset_id: str, kind: Kind, text: str) -> tuple[int, int]:
    """Return (level, number) of a group's id.

    Raises:
        NotFound: the id is not one of this dataset's ids of that kind.
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
    """Return the id of a dataset with the models that it was enriched by: a name-based UUID, as :func:`media_id`."""
    return media_id(dataset_id, "\0".join(["enrichment", *(f"{kind}={models[kind]}" for kind in sorted(models))]))
