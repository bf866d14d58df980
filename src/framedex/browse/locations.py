"""The media item at a location: a path within a source, an absolute path, or a URI."""

import os
from collections.abc import Iterator
from urllib.parse import unquote_to_bytes, urlsplit

from framedex.errors import InvalidInput, NotFound
from framedex.media.files import below
from framedex.media.remote import is_remote
from framedex.settings import user_path
from framedex.storage.condition import Condition
from framedex.storage.media import Media, time_fragment
from framedex.storage.media_rows import text_of_path

_TIME = "#t="


def media_id_at(media: Media, location: str | os.PathLike[str]) -> str:
    """Return the id of the media item at a location; of several, that of the item that was ingested first.

    Args:
        media: the media of a dataset.
        location: the path within the source, or the name of an upload; an absolute path or one relative to the working
            directory; or a ``file:`` or ``s3:`` URI. For a frame, the URI of its video ends with ``#t=`` and the time
            in seconds; without a time, a video stands for its first frame.

    Raises:
        NotFound: the dataset has no media item there.
        InvalidInput: the location is no path.
    """
    if not isinstance(location, str | os.PathLike):
        raise InvalidInput(f"a location is a path or a URI, not {location!r}")
    text = os.fsdecode(location)
    for path, roots in _candidates(media, text):
        for each, fragment in _with_time(media, path):
            if (found := _find(media, each, roots, fragment)) is not None:
                return found
    raise NotFound(f"no media at {text!r} in this dataset")


def _candidates(media: Media, text: str) -> Iterator[tuple[str, list[int] | None]]:
    """Yield the paths that a row can have, with the numbers of their roots; None for any root or none."""
    yield text, None
    absolute = text
    if text.startswith("file:"):
        try:
            parts = urlsplit(text)
        except ValueError:  # brackets without an IPv6 address
            return
        absolute = os.fsdecode(unquote_to_bytes(parts.path)) + (f"#{parts.fragment}" if parts.fragment else "")
        yield absolute, None
    elif not is_remote(text):
        absolute = os.path.abspath(user_path(text))  # noqa: PTH100 - keeps links, as sources do
    for number, root in enumerate(media.roots):
        if is_remote(root) == is_remote(absolute) and (path := below(root, absolute)):
            yield path, [number]


def _with_time(media: Media, path: str) -> Iterator[tuple[str, str | None]]:
    """Yield a path as it is, and without the time of a frame, with that time."""
    yield path, None
    video, mark, _ = path.rpartition(_TIME)
    if mark and media.has_videos:
        yield video, path[len(video) :]


def _find(media: Media, path: str, roots: list[int] | None, fragment: str | None) -> str | None:
    try:
        text, raw = text_of_path(path)
    except UnicodeEncodeError:  # half of a surrogate pair that stands for no byte
        return None
    columns, tests = ["media_id", "path", "path_raw"], ["path = $1"]
    params: list[str | bytes] = [text]
    tests.append("path_raw IS NULL" if raw is None else "path_raw = $2")
    params += [] if raw is None else [raw]
    if roots is not None:
        columns.append("root")
        tests.append(f"coalesce(root IN ({', '.join(map(str, roots))}), FALSE)")
    if fragment is not None:
        columns.append("frame_time_s")
    condition = Condition(" AND ".join(tests), tuple(params), frozenset(columns))
    rows = media.query("SELECT * FROM chosen ORDER BY _rowid", condition, columns, keep=False)
    for row in rows.to_pylist():
        if fragment is None or (row["frame_time_s"] is not None and time_fragment(row["frame_time_s"]) == fragment):
            return str(row["media_id"])
    return None
