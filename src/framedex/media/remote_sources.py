"""Sources of images in S3 buckets: a folder, or a manifest. The objects are listed once, when the source is opened."""

import posixpath
import re
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory, mkdtemp
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from framedex.annotations.formats import box_files, label_files
from framedex.annotations.label_index import Annotations
from framedex.annotations.sources import BoxSource, find_box_sources, read_annotations
from framedex.core.assumed_roles import AssumedRole
from framedex.core.left_out import HIDDEN_FILES, MASK_FILES, MASK_PATTERN, SYSTEM_FILES, SYSTEM_PATTERN, count_others
from framedex.core.skipped import EXAMPLES, Skipped
from framedex.core.suffixes import IMAGE_SUFFIXES, VIDEO_SUFFIXES, is_media
from framedex.errors import CannotDecode, InvalidInput
from framedex.media.list_sources import LIST_SUFFIXES, ListRow, read_list
from framedex.media.remote import ODD_KEY, SCHEME, ObjectStore, invalid_uri, split_uri
from framedex.media.sources import Item, Source

_HIDDEN = r"(^|/)\."
_OTHER_ROWS = "rows that are no s3:// URIs or relative paths of objects"
_ROWS = 8192
_ITEMS = pa.schema(
    [pa.field("path", pa.string()), pa.field("labels", pa.list_(pa.string())), pa.field("caption", pa.string())]
)


@dataclass
class RemoteSource(Source):
    """Objects below one folder of a bucket, or of several buckets.

    Attributes:
        uri: the URI that was opened.
        root: the URI of the folder to which the paths are relative.
        table: a row for each object, with ``path`` and other available fields of :class:`Item`; about 60 bytes a row.
        annotations: the contents of the annotation files in the folder.
        boxes: copies of the annotation files in the folder with bounding boxes, which last as long as the source.
        role: the role to assume for reading.
        rows: the paths of objects with the further values that a list gives.
    """

    uri: str
    root: str
    table: pa.Table
    skipped: Skipped
    annotations: Annotations = field(default_factory=Annotations)
    role: AssumedRole | None = None
    boxes: tuple[BoxSource, ...] = ()
    rows: Sequence[tuple[str, Mapping[str, Any]]] = ()

    def values(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Yield the path of each object of a list with the values of the other columns, if there are some."""
        yield from self.rows

    def items(self) -> Iterator[Item]:
        """Yield the objects."""
        for batch in self.table.to_batches(_ROWS):
            for row in batch.to_pylist():
                row["labels"] = tuple(row.get("labels") or ())
                yield Item(**row)


def open_remote(uri: str, store: ObjectStore, *, max_bytes: int, role: AssumedRole | None = None) -> RemoteSource:
    """Return the images below a folder or in a manifest, or a single image.

    Args:
        uri: ``s3://bucket/folder``, or an object with the suffix of a list (``.txt, .csv, .parquet``) or of an image.
        store: the reader of objects.
        max_bytes: the maximum size of a manifest.
        role: the role that *store* assumes.

    Raises:
        InvalidInput: the URI is invalid, or there are no images.
        Forbidden: the URI is in no allowed bucket.
        Unavailable: the service cannot be reached, or denies listing the folder.
    """
    bucket, key = split_uri(uri)
    store.check_allowed(uri)
    if not uri.endswith("/") and posixpath.splitext(key)[1].lower() in LIST_SUFFIXES:
        source = _open_manifest(f"{SCHEME}{bucket}/{key}", store, max_bytes)
    elif is_media(key) and store.exists(f"{SCHEME}{bucket}/{key}"):
        folder, _, name = f"{bucket}/{key}".rpartition("/")
        source = RemoteSource(uri, SCHEME + folder, pa.table({"path": pa.array([name])}), Skipped())
    else:
        source = _open_folder(f"{SCHEME}{bucket}/{key}".rstrip("/"), store, max_bytes)
    if not len(source.table):
        first = {reason: each[0] for reason, each in getattr(source.skipped, "examples", {}).items()}
        skipped = ", ".join(
            f"{count:,} {reason}" + (f", such as {first[reason]}" if reason in first else "")
            for reason, count in source.skipped.items()
        )
        raise invalid_uri(f"no images in {uri!r}" + (f"; it holds {skipped}" if skipped else "; it is empty"))
    source.uri, source.role = uri, role
    return source


def _open_folder(uri: str, store: ObjectStore, max_bytes: int) -> RemoteSource:
    objects = store.list(uri).rename_columns(["path", "size_bytes", "modified_ns"])
    skipped = Skipped()

    def take(pattern: str) -> pa.Table:
        nonlocal objects
        matches = pc.match_substring_regex(objects["path"], pattern)
        taken, objects = objects.filter(matches), objects.filter(pc.invert(matches))
        return taken

    reasons = {"objects with keys that are no paths": ODD_KEY, SYSTEM_FILES: SYSTEM_PATTERN, HIDDEN_FILES: _HIDDEN}
    reasons[MASK_FILES] = MASK_PATTERN
    for reason, pattern in reasons.items():
        taken = take(pattern)["path"]
        skipped.count(reason, len(taken), taken.slice(0, EXAMPLES).to_pylist())
    names = dict.fromkeys((*label_files(), *box_files()))
    annotation_files = take(f"^({'|'.join(map(re.escape, names))})$")["path"].to_pylist()
    images = take(_with_suffix(IMAGE_SUFFIXES | VIDEO_SUFFIXES))
    count_others(skipped, objects["path"].to_pylist())
    if not annotation_files:
        return RemoteSource(uri, uri, images, +skipped)
    copies = mkdtemp(prefix="framedex-")
    source = RemoteSource(uri, uri, images, +skipped)
    weakref.finalize(source, rmtree, copies, ignore_errors=True)
    for name in annotation_files:
        (Path(copies) / name).write_bytes(_read(f"{uri}/{name}", store, max_bytes))
    source.annotations, source.boxes = read_annotations(copies), tuple(find_box_sources(copies))
    return source


def _with_suffix(suffixes: frozenset[str]) -> str:
    return rf"(?i)[^/]({'|'.join(map(re.escape, sorted(suffixes)))})$"


def _read(uri: str, store: ObjectStore, max_bytes: int) -> bytes:
    try:
        return store.read(uri, max_bytes)[1]
    except CannotDecode as error:
        raise invalid_uri(f"{uri!r} {error}") from None


def _open_manifest(uri: str, store: ObjectStore, max_bytes: int) -> RemoteSource:
    """Return the distinct objects of a manifest, in its order.

    A row is the URI of an object, in any bucket, or a path relative to the manifest's own folder.
    """
    bucket, key = split_uri(uri)
    with TemporaryDirectory(prefix="framedex-") as folder:
        path = Path(folder) / f"list{posixpath.splitext(key)[1]}"
        path.write_bytes(_read(uri, store, max_bytes))
        try:
            if path.suffix.lower() == ".parquet" and "embedding" in pq.read_schema(path).names:
                raise InvalidInput(
                    f"{uri} brings embeddings; such a table is taken from a local file or as Arrow table"
                )
            return _of_rows(uri, posixpath.dirname(f"{bucket}/{key}"), partial(read_list, path))
        except (pa.ArrowException, OSError) as error:
            raise InvalidInput(f"cannot read {uri} as Parquet: {error}") from None
        except InvalidInput as error:
            raise InvalidInput(str(error).replace(str(path), uri)) from None


def open_remote_rows(shown: str, rows: Callable[[Skipped], Iterator[ListRow]]) -> RemoteSource | None:
    """Return the objects of a list on this machine, or in memory, that has URIs; None if its first path is no URI.

    Args:
        shown: the list, for messages.
        rows: returns the rows, and counts what it leaves out.

    """
    first = next((row.path for row in rows(Skipped()) if row.path), "")
    return _of_rows(shown, None, rows) if first.startswith(SCHEME) else None


def _of_rows(uri: str, home: str | None, rows: Callable[[Skipped], Iterator[ListRow]]) -> RemoteSource:
    manifest = _ManifestRows(home)
    table = pa.Table.from_batches(manifest.batches(rows(manifest.skipped)), _ITEMS)
    root = manifest.common or ""
    start = len(root) + 1 if root else 0
    relative = pc.utf8_slice_codeunits(table["path"], start)
    values = [(path[start:], each) for path, each in manifest.values]
    return RemoteSource(uri, SCHEME + root, table.set_column(0, "path", relative), manifest.skipped, rows=values)


class _ManifestRows:
    """The rows of a manifest, as paths ``bucket/key``.

    Attributes:
        common: the deepest folder that contains all rows so far; empty if they are in several buckets.
        skipped: the numbers of skipped rows by reason, with examples.
        values: the further values of rows that have some, with their paths.
    """

    def __init__(self, home: str | None) -> None:
        self._home, self._seen = home, set[int]()
        self.values: list[tuple[str, Mapping[str, Any]]] = []
        self.common: str | None = None
        self.skipped = Skipped()

    def batches(self, rows: Iterator[ListRow]) -> Iterator[pa.RecordBatch]:
        """Yield the rows with a path, in batches."""
        items = self._items(rows)
        while group := list(islice(items, _ROWS)):
            columns = [[getattr(item, name) for item in group] for name in _ITEMS.names]
            yield pa.record_batch([pa.array(c, f.type) for c, f in zip(columns, _ITEMS, strict=True)], schema=_ITEMS)

    def _items(self, rows: Iterator[ListRow]) -> Iterator[Item]:
        for name, labels, caption, values in rows:
            path = self._path(name)
            if path is None:
                self.skipped.note(_OTHER_ROWS, f"{name!r:.200}")
            elif not path:
                self.skipped["rows without a path"] += 1
            elif (key := hash(path)) in self._seen:
                self.skipped["repeated entries"] += 1
            else:
                self._seen.add(key)
                self._widen(posixpath.dirname(path))
                if values:
                    self.values.append((path, values))
                yield Item(path, labels, caption)

    def _path(self, name: str) -> str | None:
        """Return ``bucket/key`` of a row; an empty text for an empty one, and None for one of another kind."""
        if not name:
            return ""
        if "://" not in name and self._home is not None:
            return posixpath.normpath(posixpath.join(self._home, name))
        try:
            bucket, key = split_uri(name) if name.isprintable() else ("", "")
        except InvalidInput:
            return None
        return f"{bucket}/{key}" if key else None

    def _widen(self, folder: str) -> None:
        if self.common is None:
            self.common = folder
        elif folder != self.common:
            self.common = posixpath.commonpath([self.common, folder]) if self.common else ""
