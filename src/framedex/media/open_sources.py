"""Opening of a source by its path."""

import os
from pathlib import Path

from framedex.core.allowed_folders import AllowedFolders, within
from framedex.core.left_out import says_kind
from framedex.core.regular_files import open_binary
from framedex.core.suffixes import IMAGE_SUFFIXES, VIDEO_SUFFIXES, is_media
from framedex.errors import InvalidInput
from framedex.media.list_sources import LIST_SUFFIXES, ListSource
from framedex.media.sources import FileSource, FolderSource, Source, begin_of, begins_image
from framedex.settings import user_path


def open_source(source: str | os.PathLike[str], allowed: AllowedFolders | None = None) -> Source:
    """Return the source at a path: a folder, an image, a video or a list file.

    Args:
        source: the path.
        allowed: the folders from which files may be read; None for any.

    Raises:
        InvalidInput: the path does not exist, or is none of these.
        Forbidden: the path is in no allowed folder.
    """
    path = Path(os.path.abspath(user_path(source)))  # noqa: PTH100 - keeps links, unlike resolve
    if allowed is not None:
        allowed.check(path)
    try:
        if path.is_dir():
            return FolderSource(os.fspath(path), allowed=allowed)
        if path.is_file() and (path.suffix.lower() in LIST_SUFFIXES or is_media(path.name)):
            with within(allowed), open_binary(path):
                pass
            if is_media(path.name):
                return FileSource(os.fspath(path.parent), path.name, allowed=allowed)
            return ListSource(path, allowed=allowed)
        with within(allowed):
            if path.is_file() and not says_kind(path.name) and begins_image(begin_of(os.fspath(path))):
                return FileSource(os.fspath(path.parent), path.name, allowed=allowed)
        exists = path.exists()
    except OSError as error:
        raise InvalidInput(f"cannot read {str(path)!r}: {error.strerror}") from error
    if not exists:
        lists = ", ".join(LIST_SUFFIXES)
        what = f"a folder, an image, a video, an archive (.zip, .tar, .tgz) or a list ({lists})"
        raise InvalidInput(f"there is nothing at {str(path)!r}; a source is {what}")
    suffixes = ", ".join(sorted(IMAGE_SUFFIXES)), ", ".join(sorted(VIDEO_SUFFIXES))
    what = f"a folder, an image ({suffixes[0]}), a video ({suffixes[1]}) or a list ({', '.join(LIST_SUFFIXES)})"
    raise InvalidInput(f"{str(path)!r} is not {what}")


def check_not_empty(source: Source, path: Path) -> None:
    """Check that a source has an image or a video, and that one of the files of a list exists.

    Args:
        source: the source.
        path: its path, for the message.

    Raises:
        InvalidInput: it has none, or none exists.
    """
    if next(iter(source.items()), None) is None:
        skipped = ", ".join(f"{count} {reason}" for reason, count in source.skipped.items())
        raise InvalidInput(f"no images in {str(path)!r}" + (f"; it holds {skipped}" if skipped else "; it is empty"))
    if isinstance(source, ListSource):
        source.check_found()
