"""A cache of keypoints beside a dataset's tables: a file of records, by the content of the images."""

import hashlib
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from framedex.analysis.keypoints import MOST, THUMBNAIL, Keypoints
from framedex.core.lru_cache import LruCache

_FRACTION = 64  # of a pixel
_FILE = f"orb-320-{MOST}-parts-16.bin"
_MOST_PARTS = 5
_RECORD = np.dtype(
    [
        ("key", "S16"),
        ("count", "<u2"),
        ("width", "<u2"),
        ("height", "<u2"),
        ("inner", "<f4"),
        ("parts", "<u2", (_MOST_PARTS, 4)),
        ("thumbnail", "u1", (THUMBNAIL, THUMBNAIL)),
        ("check", "<u2"),
        ("points", "<u2", (MOST, 2)),
        ("descriptors", "u1", (MOST, 32)),
    ]
)
_ENTRY_BYTES = 160  # of a key and its place in memory
_KNOWN: LruCache[tuple[str, int], tuple[int, dict[bytes, int]]] = LruCache(32 * 2**20)
_CHECKED = [name for name in _RECORD.names or () if name != "check"]


def key_of(content: bytes, frame: int | None, *, mirrored: bool) -> bytes:
    """Return the key of an image: of the hash of its file, the number of the frame, and whether it was mirrored."""
    return hashlib.blake2b(content + f"{frame}{mirrored}".encode(), digest_size=16).digest().replace(b"\0", b"\1")


class KeypointCache:
    """Keypoints by key. Damaged or cut records are ignored and made again.

    Args:
        folder: of the dataset's cache; it may be missing, or not writable: then keypoints are kept in memory.
        max_bytes: size limit of the file; further keypoints are kept in memory until they are forgotten.
    """

    def __init__(self, folder: Path, max_bytes: int = 16 * 2**30) -> None:
        self._path, self._max_bytes = folder / _FILE, max_bytes
        self._places: dict[bytes, int] = {}
        self._memory: dict[bytes, Any] = {}
        self._records: Any = None
        self._file: Any = None

    def __enter__(self) -> Self:
        """Open the file."""
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            size = self._path.stat().st_size if self._path.exists() else 0
            self._file = self._path.open("r+b" if self._path.exists() else "w+b", buffering=0)
            self._file.truncate(size // _RECORD.itemsize * _RECORD.itemsize)
            self._map()
        except OSError:
            self._file = None
        if self._records is not None:
            self._places = self._known_places()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the file."""
        self._records = None
        if self._file is not None:
            self._file.close()

    def __contains__(self, key: bytes) -> bool:
        """Return whether there is an intact record of a key."""
        return self.get(key) is not None

    def get(self, key: bytes) -> Keypoints | None:
        """Return the keypoints of a key; None if they are missing or damaged."""
        record = self._memory.get(key)
        if record is None and (place := self._places.get(key)) is not None:
            if self._records is None or place >= len(self._records):
                self._map()
            record = self._records[place] if self._records is not None and place < len(self._records) else None
        if record is None or bytes(record["key"]) != key or int(record["check"]) != _check(record):
            return None
        count = int(record["count"])
        return Keypoints(
            record["points"][:count].astype(np.float32) / _FRACTION,
            np.ascontiguousarray(record["descriptors"][:count]),
            int(record["width"]),
            int(record["height"]),
            float(record["inner"]),
            tuple((top, left, bottom, right) for top, left, bottom, right in record["parts"].tolist() if bottom),
            np.array(record["thumbnail"]),
        )

    def put(self, made: Mapping[bytes, Keypoints]) -> None:
        """Store keypoints."""
        records = np.zeros(len(made), dtype=_RECORD)
        for record, (key, each) in zip(records, made.items(), strict=True):
            count = len(each.points)
            record["key"], record["count"], record["width"], record["height"] = key, count, each.width, each.height
            record["inner"], record["thumbnail"] = each.inner, each.thumbnail
            for place, part in enumerate(each.parts):
                record["parts"][place] = part
            record["points"][:count] = np.rint(each.points * _FRACTION)
            record["descriptors"][:count] = each.descriptors
            record["check"] = _check(record)
        if not self._append(records):
            self._memory |= dict(zip(made, records, strict=True))

    def _known_places(self) -> dict[bytes, int]:
        """Return a new dictionary of the places of all records of the file, by key.

        Those that were read before are kept in memory.

        A record is as large as some pages of memory, so to read the keys is to read the file. Records never change.
        """
        file, end = (str(self._path), os.fstat(self._file.fileno()).st_ino), len(self._records)
        start, known = _KNOWN.get(file) or (0, dict[bytes, int]())
        if start > end:  # another file has the number now
            start, known = 0, {}
        keys = np.ascontiguousarray(self._records["key"][start:]).tolist()
        places = known | {key: place for place, key in enumerate(keys, start)}
        if keys:
            _KNOWN.put(file, (end, places), weight=_ENTRY_BYTES * end)
            return dict(places)
        return places

    def forget(self) -> None:
        """Forget the keypoints that are kept in memory."""
        self._memory.clear()

    def _append(self, records: npt.NDArray[Any]) -> bool:
        if self._file is None:
            return False
        end = self._file.seek(0, 2)
        if end + records.nbytes > self._max_bytes:
            return False
        try:
            is_written = self._file.write(records.tobytes()) == records.nbytes
        except OSError:
            is_written = False
        if not is_written:  # the disk is full
            with suppress(OSError):
                self._file.truncate(end)
            return False
        first = end // _RECORD.itemsize
        self._places |= {key: first + place for place, key in enumerate(records["key"].tolist())}
        return True

    def _map(self) -> None:
        size = os.fstat(self._file.fileno()).st_size // _RECORD.itemsize  # the path may be gone
        self._records = np.memmap(self._file, dtype=_RECORD, mode="r", shape=(size,)) if size else None


def _check(record: Any) -> int:
    content = b"".join(record[name].tobytes() for name in _CHECKED)
    return int.from_bytes(hashlib.blake2b(content, digest_size=2).digest(), "little")
