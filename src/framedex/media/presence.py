"""The presence of the files below a source root: by their status, or by the listing of a bucket."""

import os
import stat
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from framedex.core.allowed_folders import OUTSIDE, AllowedFolders
from framedex.core.assumed_roles import AssumedRole
from framedex.core.regular_files import NOT_REGULAR
from framedex.errors import Forbidden, InvalidInput, Unavailable
from framedex.media.files import allowed_folders, locate, object_store
from framedex.media.remote import SCHEME, ObjectStore, is_remote
from framedex.settings import Settings

GONE = "it is not there"
"""The fault of a file that does not exist; any other fault says nothing about whether it exists."""
_ABSENT = (FileNotFoundError, NotADirectoryError)


class Look(NamedTuple):
    """The state of a file at its place.

    Attributes:
        size_bytes: the size; None without a file.
        modified_ns: the time of the last change in nanoseconds since 1970; None if unknown.
        fault: why it cannot be read, :data:`GONE` if it does not exist; None for a file that can be read.
    """

    size_bytes: int | None = None
    modified_ns: int | None = None
    fault: str | None = None


@dataclass
class Place:
    """The files below a source root, as they are now.

    Args:
        root: an absolute path, or the URI of a folder; no blob store.
        settings: allowed folders, and the access to buckets.
        role: the role to assume for listing a bucket.
    """

    root: str
    settings: Settings
    role: AssumedRole | None = None
    _allowed: AllowedFolders | None = field(init=False, repr=False)
    _store: ObjectStore | None = field(init=False, repr=False)
    _listings: dict[str, pa.Table | str] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        self._allowed = allowed_folders(self.settings)
        self._store = object_store(self.settings, self.role) if is_remote(self.root) else None

    def fault(self) -> str | None:
        """Return why nothing below the root can be found, in words; None if the folder or the bucket answers.

        A folder that is empty, as the mount point of a disk that is not there, answers.
        """
        if self._store is not None:
            # Of several buckets each answers for itself.
            store = self._store
            return None if self.root == SCHEME else _failure(lambda: store.check_listed(self.root))
        try:
            if self._allowed is not None:
                self._allowed.check(self.root)
            with os.scandir(self.root):
                return None
        except _ABSENT:
            return "there is no such folder"
        except OSError as error:
            return f"it cannot be read: {error.strerror}"
        except Forbidden:
            return f"it cannot be read: {OUTSIDE}"

    def look(self, paths: Sequence[str]) -> Iterator[Look]:
        """Yield what is at paths relative to the root, in their order.

        A bucket is listed at the first call.
        """
        if self._store is not None:
            yield from self._look_in_buckets(self._store, paths)
            return
        for path in paths:
            yield self._look_at(locate(self.root, path))

    def _look_at(self, location: str) -> Look:
        try:
            if self._allowed is not None and not self._allowed.contains(location):
                return Look(fault=f"it cannot be read: {OUTSIDE}")
            status = os.stat(location)  # noqa: PTH116 - names may be any bytes
        except _ABSENT:
            return Look(fault=GONE)
        except ValueError:  # a null character, which no file has in its name
            return Look(fault=GONE)
        except OSError as error:
            return Look(fault=f"it cannot be read: {error.strerror}")
        if not stat.S_ISREG(status.st_mode):
            return Look(fault=f"it cannot be read: {NOT_REGULAR}")
        fault = None if os.access(location, os.R_OK) else "it cannot be read: Permission denied"
        return Look(status.st_size, status.st_mtime_ns, fault)

    def _look_in_buckets(self, store: ObjectStore, paths: Sequence[str]) -> Iterator[Look]:
        if self.root != SCHEME:
            yield from _looks(self.objects(store, self.root), paths)
            return
        places = [path.partition("/") for path in paths]  # the bucket, and the key in it
        of_bucket = {
            bucket: _looks(self.objects(store, SCHEME + bucket), [key for each, _, key in places if each == bucket])
            for bucket in dict.fromkeys(bucket for bucket, _, _ in places)
        }
        for bucket, _, _ in places:
            yield next(of_bucket[bucket])

    def know(self, objects: pa.Table) -> None:
        """Take a listing of the root: the columns ``path``, relative to it, ``size_bytes`` and ``modified_ns``."""
        self._listings[self.root] = objects.rename_columns({"path": "key"})

    def objects(self, store: ObjectStore, uri: str) -> pa.Table | str:
        """Return the objects below a folder, which is listed once; or why they cannot be listed, in words."""

        def read() -> None:
            self._listings[uri] = store.list(uri)

        if uri not in self._listings and (failure := _failure(read)) is not None:
            self._listings[uri] = failure
        return self._listings[uri]


def _failure(read: Callable[[], object]) -> str | None:
    """Read a listing; return why it cannot be read, in words."""
    try:
        read()
    except (Forbidden, Unavailable) as error:
        return str(error)
    except InvalidInput as error:
        return "; ".join(getattr(error, "__notes__", ())) or str(error)
    return None


def _looks(objects: pa.Table | str, paths: Sequence[str]) -> Iterator[Look]:
    """Yield what a listing says of some keys."""
    if isinstance(objects, str):
        yield from (Look(fault=f"it cannot be read: {objects}") for _ in paths)
        return
    places = pc.index_in(pa.array(map(_text, paths), pa.string()), objects["key"].combine_chunks(), skip_nulls=True)
    found = objects.select(["size_bytes", "modified_ns"]).take(places)
    for size, modified_ns in zip(*(column.to_pylist() for column in found.columns), strict=True):
        yield Look(fault=GONE) if size is None else Look(size, modified_ns)


def _text(path: str) -> str | None:
    """Return a path as the key of an object; None for bytes that no key has."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return None
    return path
