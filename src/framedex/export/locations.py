"""Locations of exported media and names of their images, computed for whole columns.

Nearly all rows are a path below a folder, which Arrow joins for thousands at a time. The other rows (names that are not
UTF-8, unusual URIs) are computed one by one, by the functions that locate single files.
"""

import os
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from framedex.annotations.output import column
from framedex.export.file_names import ODD, hash_names
from framedex.export.frame_names import with_frame_paths
from framedex.storage.media import LOCATION, Media, file_uri, shown_root, time_fragment

_SAFE = r"^[A-Za-z0-9_.\-~/]*$"
"""Texts that need no escapes in a URI, by the rules of ``urllib.parse.quote``."""
_FILE_URI = r"^file:///[^%?#\n\r\t]*$"
_UNCLEAN = r"(^|/)\.{0,2}(/|$)|://"
"""Paths with empty parts, with ``.`` or ``..`` as a part, or with a scheme."""
_SLASH, _DOT = b"/."
_FURTHER_SOURCE = "^source-[0-9]+/"
_SCHEME = r"(?s)^.*?://"
_SUFFIX_LETTERS = 16
_SUFFIX = rf"\.[^./]{{0,{_SUFFIX_LETTERS}}}$"
_ID_LETTERS = 8
MAX_BYTES = 255
"""Maximum length of a file or folder name in bytes; file systems reject longer names, so they are cut."""
_MAX_PATH_BYTES = 2000
_ROOM = 80  # bytes reserved for an id and a suffix

_LOCATION = ("path", "path_raw", "root")
Row = dict[str, Any]


def file_paths(media: Media, block: pa.Table) -> pa.Array:
    r"""Return absolute file paths, or URIs of files that are not local; bytes that are not UTF-8 become ``\xNN``.

    Args:
        media: the dataset's media, with the roots of the paths.
        block: rows with the columns ``LOCATION``.
    """
    path, raw, root = (column(block, name) for name in _LOCATION)
    folders = [display_path(shown_root(root)) for root in media.roots]
    paths = pc.binary_join_element_wise(_by_root(folders, block), path, "")
    if root.null_count:
        local_uri = pc.match_substring_regex(path, _FILE_URI)
        elsewhere = pc.if_else(local_uri, pc.utf8_slice_codeunits(path, len("file://")), path)
        odd = pc.and_not(pc.starts_with(path, "file:"), local_uri)
        paths = pc.if_else(pc.and_not(pc.is_null(root), odd), elsewhere, paths)
    if raw.null_count < len(raw):
        paths = pc.if_else(pc.is_null(raw), paths, None)
    return _completed(paths, block, LOCATION, lambda row: display_path(media.shown_path(row)))


def source_paths(media: Media, block: pa.Table) -> pa.Array:
    """Return what users of other machines may know of the files' locations: see :meth:`Media.source_path`."""
    prefixes = [shown_root(root) if root.startswith("s3://") else "" for root in media.roots]
    paths = pc.binary_join_element_wise(_by_root(prefixes, block), column(block, "path"), "")
    return _completed(paths, block, LOCATION, media.source_path)


def media_urls(media: Media, block: pa.Table) -> pa.Array:
    """Return the URLs of the items, after the pattern of :attr:`Media.media_url`."""
    before, _, after = str(media.media_url).partition("{media_id}")
    return pc.binary_join_element_wise(before, column(block, "media_id"), after, "")


def uris(media: Media, block: pa.Table) -> pa.Array:
    """Return the URIs of the files: ``file://…`` for local files; a frame's URI has its time in the video."""
    path, raw, root = (column(block, name) for name in _LOCATION)
    folders = [_uri_of_root(root) for root in media.roots]
    uris_ = pc.binary_join_element_wise(_by_root(folders, block), path, "")
    uris_ = pc.if_else(pc.match_substring_regex(path, _SAFE), uris_, None)
    if root.null_count:
        elsewhere = pc.if_else(pc.match_substring_regex(path, "^/|^file:"), None, path)
        below_all = pc.and_(pc.starts_with(path, "/"), pc.match_substring_regex(path, _SAFE))
        elsewhere = pc.if_else(below_all, pc.binary_join_element_wise("file://", path, ""), elsewhere)
        uris_ = pc.if_else(pc.is_null(root), elsewhere, uris_)
    if raw.null_count < len(raw):
        uris_ = pc.if_else(pc.is_null(raw), uris_, None)
    uris_ = _completed(uris_, block, LOCATION, media.uri_of)
    if not media.has_videos:
        return uris_
    times = column(block, "frame_time_s").to_pylist()
    ends = pa.array(["" if time is None else time_fragment(time) for time in times], pa.string())
    return pc.binary_join_element_wise(uris_, ends, "")


def _uri_of_root(root: str) -> str | None:
    """Return the URI before a path below a root; None if no prefix is enough, such as for uploaded files."""
    if os.path.isabs(root):  # noqa: PTH117 - any bytes
        return file_uri(shown_root(root))
    return shown_root(root) or None


def image_names(media: Media, block: pa.Table) -> pa.Array:
    """Return the images' names in the ``images/`` folder of an export: their distinct paths within the source.

    Images of further sources are below ``source-1`` and so on. A path that is not a valid name is changed, and gets a
    part of the media id to keep it distinct.

    Args:
        media: the dataset's media.
        block: rows with the columns ``media_id`` and those of :attr:`Media.location`.
    """
    if not media.has_videos:
        return _as_files(media, _image_names(media, block), block)
    block, shared = with_frame_paths(media, block)
    names = _image_names(media, block)
    names = names if shared is None else pc.if_else(shared, _with_ids(names, column(block, "media_id")), names)
    return _as_files(media, names, block)


def _as_files(media: Media, names: pa.Array, block: pa.Table) -> pa.Array:
    """Return names with a part of the media id where a name is no valid file name or may clash with another."""
    if media.name_clashes is None:
        return names
    odd = pc.match_substring_regex(names, ODD)
    if media.name_clashes:
        shared = np.isin(hash_names(names), np.array(list(media.name_clashes), np.int64))
        odd = pc.or_(odd, pa.array(shared))
    if not pc.any(odd, min_count=0).as_py():
        return names
    plain = pc.replace_substring_regex(names, ODD, "_")
    return pc.if_else(odd, _with_ids(plain, column(block, "media_id")), names)


def _image_names(media: Media, block: pa.Table) -> pa.Array:
    path = column(block, "path")
    names = path
    if not _all_surely_clean(block):
        clean = pc.and_(
            pc.invert(pc.match_substring_regex(path, f"{_UNCLEAN}|{_FURTHER_SOURCE}")),
            pc.and_(pc.is_null(column(block, "path_raw")), pc.less_equal(pc.binary_length(path), MAX_BYTES)),
        )
        other = pc.invert(clean)
        names = pc.replace_with_mask(path, other, _changed_names(block.filter(other)))
    if len(media.roots) < 2:
        return names
    # Names must not change when a source is added or removed. Images without a source have the id in their names.
    folders = _by_root(["", *(f"source-{number}/" for number in range(1, len(media.roots)))], block)
    return pc.coalesce(pc.binary_join_element_wise(folders, names, ""), names)


def _all_surely_clean(block: pa.Table) -> bool:
    """Return whether the bytes of all paths show that they are valid names. It takes a tenth of the time of a match."""
    path = column(block, "path")
    if not len(path) or block["path_raw"].null_count < len(block):
        return False
    _, offsets, content = path.buffers()
    ends = np.frombuffer(offsets, np.int32)[path.offset : path.offset + len(path) + 1]
    text = np.frombuffer(content, np.uint8)[: ends[-1]]
    lengths = np.diff(ends)
    if lengths.min() < 1 or lengths.max() > MAX_BYTES:
        return False
    first, last = text[ends[:-1]], text[ends[1:] - 1]
    if ((first == _SLASH) | (first == _DOT) | (last == _SLASH)).any():
        return False
    after = text[ends[0] + 1 :][np.flatnonzero(text[ends[0] :] == _SLASH)]  # within one path: no path ends with a slash
    inner = (after == _SLASH) | (after == _DOT)
    return not (inner.any() or pc.any(pc.starts_with(path, "source-")).as_py())


def _changed_names(block: pa.Table) -> pa.Array:
    path = column(block, "path")
    without_scheme = pc.utf8_ltrim(pc.replace_substring_regex(path, _SCHEME, ""), "/")
    shortened = pc.and_(
        pc.and_(pc.is_null(column(block, "path_raw")), pc.invert(pc.match_substring_regex(without_scheme, _UNCLEAN))),
        pc.and_(pc.not_equal(without_scheme, path), pc.less_equal(pc.binary_length(without_scheme), MAX_BYTES - _ROOM)),
    )
    names = pc.if_else(shortened, _with_ids(without_scheme, column(block, "media_id")), None)
    return _completed(names, block, (*LOCATION, "media_id"), _image_name)


def _with_ids(names: pa.Array, media_id: pa.Array) -> pa.Array:
    suffix = pc.replace_substring_regex(names, rf"(?s)^.*?({_SUFFIX[:-1]})?$", r"\1")
    stem = pc.replace_substring_regex(names, _SUFFIX, "")
    return pc.binary_join_element_wise(stem, "-", pc.utf8_slice_codeunits(media_id, 0, _ID_LETTERS), suffix, "")


def _image_name(row: Row) -> str:
    path = row["path"]
    parts = [part for part in (path.partition("://")[2] or path).split("/") if part not in ("", ".", "..")]
    name = "/".join(parts)
    fits = all(len(part.encode()) <= MAX_BYTES for part in parts) and len(name.encode()) <= _MAX_PATH_BYTES
    if name == path and row["path_raw"] is None and fits and not re.match(_FURTHER_SOURCE, path):
        return name
    # Other paths may have been shortened to the same name; the id keeps them distinct.
    return marked_name(name, row["media_id"])


def marked_name(name: str, media_id: str) -> str:
    """Return a name of limited length, with a part of the media id before its suffix."""
    stem, dot, suffix = name.rpartition(".")
    if not dot or "/" in suffix or len(suffix) > _SUFFIX_LETTERS:
        stem, dot, suffix = name, "", ""
    parts = [_cut(part) for part in stem.split("/")]
    while len(parts) > 1 and len("/".join(parts).encode()) > _MAX_PATH_BYTES:
        parts.pop(0)
    return f"{'/'.join(parts)}-{media_id[:_ID_LETTERS]}{dot}{suffix}"


def _cut(part: str) -> str:
    return part.encode()[: MAX_BYTES - _ROOM].decode("utf-8", "ignore")


def _by_root(values: Sequence[str | None], block: pa.Table) -> pa.Array:
    """Return a value for each row by the number of its source root; null for rows without a root."""
    return pa.array(values, pa.string()).take(column(block, "root"))


def _completed(values: pa.Array, block: pa.Table, columns: Sequence[str], of_row: Callable[[Row], str]) -> pa.Array:
    """Return values in which nulls are replaced by values computed row by row."""
    if not values.null_count:
        return values
    unknown = pc.is_null(values)
    rows = block.select(columns).filter(unknown).to_pylist()
    return pc.replace_with_mask(values, unknown, pa.array([of_row(row) for row in rows], pa.string()))


def display_path(path: str | os.PathLike[str]) -> str:
    r"""Return a path as text; bytes that are not UTF-8 become ``\xNN``."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")
