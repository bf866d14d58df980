"""Uploads: files and archives that are copied to a dataset's blob store before ingestion."""

import json
import os
import re
import shutil
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO

from framedex.annotations.formats import box_files, label_files
from framedex.annotations.label_index import Annotations
from framedex.annotations.parts import part_of
from framedex.annotations.sources import BoxSource, find_box_sources, read_annotations
from framedex.core.allowed_folders import AllowedFolders, OwnPath
from framedex.core.counts import counted
from framedex.core.forks import cached_property
from framedex.core.left_out import MASK_FOLDERS, count_others, file_reason
from framedex.core.progress import ShareProgress
from framedex.core.skipped import Skipped
from framedex.core.suffixes import is_media, is_video
from framedex.errors import InvalidInput
from framedex.media.archives import (
    ArchiveLimits,
    ArchiveMember,
    BrokenMember,
    clean_name,
    is_mask,
    open_archive,
)
from framedex.media.files import allowed_folders
from framedex.media.held_images import METADATA, HeldImages
from framedex.media.sources import Item, Source
from framedex.settings import Settings, user_path
from framedex.storage.blobs import DIGEST_BYTES, Upload, blob_path, upload_folder, uploaded
from framedex.storage.schema import BLOBS_ROOT

_PART = 2**20
_LAYOUT = "layout"  # the folder of an upload for the annotation files of an archive
_PLAIN = re.compile(r"(?!\.|(?i:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\.|$))[^<>:\"|?*\\]*[^<>:\"|?*\\. ]")
_MAX_NAME = 255  # bytes
_OF_LAYOUTS = frozenset(
    ("images", "labels", "annotations", "jpegimages", "data", "vocdevkit", *map(str.lower, MASK_FOLDERS))
)
REPEATED = "repeated names, of which the last one counts"
"""Reason for skipping files of an upload: equal content of one name, equal paths, and annotation files of one name."""


@dataclass
class UploadSource(Source):
    """Files of one upload: copies in the blob store, and local files that stay where they are.

    Attributes:
        dataset: folder of the dataset.
        upload_id: the upload.
        root: the blob store; or, if all files stay where they are, their deepest common folder.
        other_roots: that common folder, if only some files stay.
        folder: of the upload, with the annotation files.
    """

    dataset: Path
    upload_id: str
    skipped: Skipped = field(default_factory=Skipped)
    root: str = BLOBS_ROOT
    other_roots: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self.folder = upload_folder(self.dataset, self.upload_id)
        home, any_blob = _common_folder(self.folder)
        if any_blob:
            self.other_roots = () if home is None else (home,)
        else:
            self.root = home or self.root
        self._home, self._part = home or "", 1 if any_blob else 0

    def items(self) -> Iterator[Item]:
        """Yield the files in the order of the request."""
        for name, digest in uploaded(self.folder):
            if digest is None:
                yield Item(os.path.relpath(name, self._home), part=self._part)
            else:
                yield Item(name, location=OwnPath(blob_path(self.dataset, digest, name)), digest=digest)

    def annotations(self, class_folders: bool | None = None) -> Annotations:
        """Return the labels and captions of the annotation files in an archive.

        Args:
            class_folders: whether the folders in the archive are classes; None to decide.

        Raises:
            InvalidInput: there are no folders that could be the classes that are asked for.
        """
        is_tree = self.annotation_folder != self.folder
        chosen = class_folders if is_tree or class_folders else False
        annotations = read_annotations(str(self.annotation_folder), class_folders=chosen)
        if not is_tree:  # beside them the folder has the lists of the upload alone
            annotations.ignored.clear()
        return annotations

    def boxes(self) -> list[BoxSource]:
        """Return the annotation files with bounding boxes in an archive."""
        return find_box_sources(self.annotation_folder)

    def count_unread(self, is_read: Callable[[str], bool]) -> None:
        """Count the files of an archive that look like annotations, but are not read, as files that are left out.

        Args:
            is_read: whether the file at a path in the archive is read as annotations.
        """
        skipped, known = Skipped(self.skipped, self.skipped.examples), (*label_files(), *box_files())
        for name in _annotation_files(self.folder):
            if name in known or is_read(name):
                continue
            if (reason := file_reason(name)) is not None:
                skipped.note(reason, name)
            else:
                count_others(skipped, [name])
        self.skipped = skipped

    @cached_property
    def annotation_folder(self) -> Path:
        """The folder with the annotation files; of an archive a temporary one, with an empty file for each image.

        Readers of layouts look for folders of images and for names in them. The folder lives as long as the source.
        """
        layout = self.folder / _LAYOUT
        if not layout.is_dir():
            return self.folder
        tree = TemporaryDirectory(prefix="framedex-")
        weakref.finalize(self, tree.cleanup)
        root = Path(tree.name)
        shutil.copytree(layout, root, dirs_exist_ok=True)
        for name, digest in uploaded(self.folder):
            if digest is not None:
                with suppress(OSError):  # a name that is a folder, too, or too long for this disk
                    (root / name).parent.mkdir(parents=True, exist_ok=True)
                    (root / name).touch()
        return root


def _annotation_files(upload: Path) -> list[str]:
    """Return the paths of what may be annotations in an archive, sorted, given the folder of its upload."""
    home = upload / _LAYOUT
    return sorted(each.relative_to(home).as_posix() for each in home.rglob("*") if each.is_file())


def _common_folder(upload: Path) -> tuple[str | None, bool]:
    """Return the deepest common folder of files that stay, and whether there are files in the blob store."""
    common, any_blob = None, False
    for name, digest in uploaded(upload):
        folder = os.path.dirname(name)  # noqa: PTH120 - names may be any bytes
        if digest is not None:
            any_blob = True
        elif common is None:
            common = folder
        elif folder != common:
            common = os.path.commonpath([common, folder])
    return common, any_blob


def upload_archive(
    archive: Any, dataset: Path, settings: Settings, progress: ShareProgress, *, has_contents: bool = True
) -> UploadSource:
    """Copy the images of an archive, and what may be annotations, to the blob store.

    Files that cannot be taken are left out and counted, see :func:`framedex.media.archives.open_archive`.

    Args:
        archive: path of a ``.zip``, ``.tar``, ``.tar.gz`` or ``.tgz`` file.
        dataset: folder of the dataset.
        settings: limits.
        progress: called with the share that is done; raises to stop.
        has_contents: whether the contents of images are copied; without them the upload has their names alone.

    Raises:
        InvalidInput: the archive cannot be opened, its contents exceed a limit, or it has no images.
        Forbidden: it is in no allowed folder.
        WorkspaceError: the blob store cannot be written.
    """
    if not isinstance(archive, str | os.PathLike):
        raise InvalidInput(f"archive must be the path of a file, not {type(archive).__name__}")
    path, skipped = user_path(archive), Skipped()
    allowed = None if isinstance(archive, OwnPath) else allowed_folders(settings)
    limits = ArchiveLimits(settings.max_file_bytes, settings.max_archive_bytes, settings.max_archive_ratio)
    images = 0
    home = _top_folder(member.name for member in open_archive(path, limits, Skipped(), allowed))
    with Upload(dataset) as upload:
        (upload.folder / _LAYOUT).mkdir()
        for member in open_archive(path, limits, skipped, allowed):
            name = member.name.removeprefix(home)
            with suppress(BrokenMember):
                if is_mask(name) or not is_media(name):
                    _write_annotations(upload.folder, name, member, skipped)
                else:
                    if has_contents:
                        upload.add(name, member.parts)
                    else:
                        upload.add_stored(name, images.to_bytes(DIGEST_BYTES, "big"))
                    images += 1
            progress(member.done)
        if not images:
            count_others(skipped, _annotation_files(upload.folder))
            raise InvalidInput(f"no images in the archive {str(path)!r}{_contents_text(skipped)}")
        return _settle(upload, dataset, +skipped)


def _top_folder(names: Iterable[str]) -> str:
    """Return the folder with all files of an archive, with a slash, if it is the home of a layout; else ``""``.

    It is one if files that may be annotations are below it, or folders of parts alone, and if it is no part of a layout
    itself, such as ``train``.
    """
    tops: set[str] = set()
    has_annotations, has_parts = False, True
    for name in names:
        first, _, rest = name.partition("/")
        tops.add(first if rest else "")
        has_annotations = has_annotations or is_mask(name) or not is_media(name)
        has_parts = has_parts and "/" in rest and part_of(rest.partition("/")[0]) is not None
        if len(tops) > 1:
            return ""
    top = next(iter(tops), "")
    is_home = (has_annotations or has_parts) and part_of(top) is None and top.lower() not in _OF_LAYOUTS
    return f"{top}/" if top and is_home else ""


def _contents_text(skipped: Skipped) -> str:
    """Return what an archive holds instead of images, with an example of each reason."""
    shown = [
        f"{count:,} {reason}" + "".join(f" ({each})" for each in skipped.examples.get(reason, [])[:1])
        for reason, count in skipped.items()
    ]
    return f"; it holds {', '.join(shown)}" if shown else ""


def _write_annotations(upload: Path, name: str, member: ArchiveMember, skipped: Skipped) -> None:
    """Write a file that may be annotations below the folder of an upload for them, if its name is a plain one.

    Raises:
        BrokenMember: it cannot be read; nothing stays of it.
    """
    parts = name.split("/")
    if not all(_PLAIN.fullmatch(part) and part.isprintable() and len(os.fsencode(part)) <= _MAX_NAME for part in parts):
        skipped.note("annotation files with odd names", name)
        return
    path, partial_file = upload.joinpath(_LAYOUT, *parts), upload / "annotations.partial"
    try:
        with partial_file.open("wb") as file:
            file.writelines(member.parts)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            is_repeated = path.exists()
            partial_file.replace(path)
        except OSError:  # a name that is a folder, too, or that is too long
            skipped.note("annotation files with odd names", name)
        else:
            skipped.update({REPEATED: 1} if is_repeated else {})
    finally:
        partial_file.unlink(missing_ok=True)


def _settle(upload: Upload, dataset: Path, skipped: Skipped) -> UploadSource:
    repeated = upload.settle()
    if repeated:
        skipped[REPEATED] += repeated
    return UploadSource(dataset, upload.id, skipped)


def upload_files(files: Any, dataset: Path, settings: Settings, progress: ShareProgress) -> UploadSource:
    """Register local files, and copy bytes and binary files to the blob store.

    Args:
        files: paths, pairs (name, bytes), and binary files with a ``name``. The name of a pair may have folders; of the
            name of a binary file the last part is used.
        dataset: folder of the dataset.
        settings: limits.
        progress: called with the share that is done; raises to stop.

    Raises:
        InvalidInput: a file cannot be used, or the list is empty; the message names the file.
        Forbidden: a path is in no allowed folder.
        WorkspaceError: the blob store cannot be written.
    """
    if isinstance(files, str | bytes | os.PathLike) or not isinstance(files, Sequence):
        raise InvalidInput(
            f"files must be a list of paths, (name, bytes) pairs or binary files, not {type(files).__name__}"
        )
    if not files:
        raise InvalidInput("files holds no images")
    allowed = allowed_folders(settings)
    with Upload(dataset) as upload:
        for number, each in enumerate(files):
            _add_file(upload, each, f"files[{number}]", settings, allowed)
            progress(number / len(files))
        return _settle(upload, dataset, Skipped())


def upload_images(images: HeldImages, dataset: Path, settings: Settings, progress: ShareProgress) -> UploadSource:
    """Write images that a program holds to the blob store, with their metadata in the layout of Hugging Face.

    Args:
        images: the images.
        dataset: folder of the dataset.
        settings: limits.
        progress: called with the share that is done; raises to stop.

    Raises:
        InvalidInput: there is none.
        WorkspaceError: the blob store cannot be written.
    """
    with Upload(dataset) as upload, ExitStack() as opened:
        metadata: dict[str, Any] = {}
        number, too_large = 0, Skipped()
        for image in images:
            try:
                upload.add(image.name, bounded_parts((image.content,), image.name, image.name, settings))
            except InvalidInput as error:
                too_large.note("images above a limit", str(error))
                continue
            part, _, name = image.name.rpartition("/")
            if part not in metadata:
                path = upload.folder / part / METADATA
                path.parent.mkdir(exist_ok=True)
                metadata[part] = opened.enter_context(path.open("w", encoding="utf-8"))
            metadata[part].write(json.dumps({**image.row, "file_name": name}) + "\n")
            number += 1
            progress(min(number / images.count, 1.0) if images.count else 0.0)
        opened.close()
        if not number:
            reasons = ", ".join(f"{count:,} {reason}" for reason, count in (images.skipped + too_large).items())
            raise InvalidInput(f"no images in {images.shown}" + (f"; it holds {reasons}" if reasons else ""))
        skipped = Skipped(images.skipped + too_large, {**images.skipped.examples, **too_large.examples})
        return _settle(upload, dataset, skipped)


def _add_file(upload: Upload, file: Any, where: str, settings: Settings, allowed: AllowedFolders | None) -> None:
    """Add one file of a request to an upload."""
    name, content = _name_and_content(file, where)
    if content is None:
        if allowed is not None:
            allowed.check(name)
        upload.add_path(_check_file(name, where))
    else:
        upload.add(name, bounded_parts(content, name, f"{where} ({name!r})", settings))


def _name_and_content(file: Any, where: str) -> tuple[str, Iterable[bytes] | None]:
    """Return (name, content) of a file; (path, None) of a local file that stays where it is."""
    if isinstance(file, str | os.PathLike):
        return os.path.abspath(user_path(file)), None  # noqa: PTH100 - keeps links
    if isinstance(file, tuple | list) and len(file) == 2 and isinstance(file[0], str):
        name, content = file
        if isinstance(content, bytes | bytearray | memoryview):
            return _relative(name, where), (bytes(content),)
        if hasattr(content, "read"):
            return _relative(name, where), read_parts(content, f"{where} ({name!r})")
    name = getattr(file, "name", None)
    if hasattr(file, "read") and isinstance(name, str):
        return _relative(name.replace("\\", "/").rpartition("/")[2], where), read_parts(file, f"{where} ({name!r})")
    raise InvalidInput(
        f"{where} must be a path, a pair (name, bytes) or a binary file with a name, not {type(file).__name__}"
    )


def _relative(name: str, where: str) -> str:
    try:
        clean = clean_name(name)
        os.fsencode(clean)
    except InvalidInput as error:
        raise InvalidInput(f"{where}: {error}") from None
    except UnicodeEncodeError:
        raise InvalidInput(f"{where}: the name {name!r} has a lone surrogate, which no file name has") from None
    if not clean:
        raise InvalidInput(f"{where}: a file needs a name, not {name!r}")
    return clean


def _check_file(path: str, where: str) -> str:
    try:
        os.stat(path)  # noqa: PTH116 - names may be any bytes
    except (OSError, ValueError) as error:
        raise InvalidInput(f"{where}: cannot read {path!r}: {getattr(error, 'strerror', None) or error}") from None
    if os.path.isdir(path):  # noqa: PTH112
        raise InvalidInput(f"{where}: {path!r} is a folder; give it as path")
    return path


def read_parts(file: BinaryIO, where: str) -> Iterator[bytes]:
    """Yield the content of an open file, chunk by chunk.

    Args:
        file: the file, open for reading bytes.
        where: description of the file for messages.

    Raises:
        InvalidInput: the file cannot be read, or was opened as text.
    """
    try:
        for data in iter(partial(file.read, _PART), b""):
            if not isinstance(data, bytes):
                raise InvalidInput(f"{where} must be a file of bytes; it was opened as text")
            yield data
    except (OSError, ValueError) as error:
        if isinstance(error, InvalidInput):
            raise
        raise InvalidInput(f"{where} cannot be read: {error}") from error


def bounded_parts(parts: Iterable[bytes], name: str, where: str, settings: Settings) -> Iterator[bytes]:
    """Yield the chunks of a file as long as they are within the limit for an image, or for a video.

    Args:
        parts: the chunks.
        name: name of the file.
        where: description of the file for messages.
        settings: limits.

    Raises:
        InvalidInput: the file is larger.
    """
    max_bytes, setting = settings.max_file_bytes, "FRAMEDEX_MAX_FILE_BYTES"
    if is_video(name):
        max_bytes, setting = settings.max_video_bytes, "FRAMEDEX_MAX_VIDEO_BYTES"
    size = 0
    for data in parts:
        size += len(data)
        if size > max_bytes:
            raise InvalidInput(f"{where} has more than {counted(max_bytes, 'bytes')} ({setting})")
        yield data
