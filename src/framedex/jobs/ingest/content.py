"""Content of a new dataset or an addition: images to encode, or a table with embeddings."""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

from framedex.annotations.label_index import Annotations
from framedex.annotations.parts import part_tags
from framedex.annotations.problems import Problems
from framedex.annotations.sources import (
    BoxSource,
    annotation_file_finder,
    find_box_sources,
    read_annotations,
    resolve_box_sources,
)
from framedex.core.allowed_folders import AllowedFolders, each_within
from framedex.core.assumed_roles import AssumedRole
from framedex.core.counts import counted
from framedex.core.progress import ShareProgress
from framedex.core.skipped import Skipped
from framedex.encoders import Encoder, check_weights, choose_encoder, weights_of
from framedex.errors import InvalidInput, NotRetryable
from framedex.jobs.ingest.uploads import UploadSource, upload_archive, upload_files, upload_images
from framedex.jobs.ingest.vectors import EmbeddingTable, is_vector_file, open_vectors
from framedex.media.archives import archive_path
from framedex.media.files import allowed_folders, object_store
from framedex.media.held_images import HeldImages, held_images, path_pairs
from framedex.media.list_sources import LIST_SUFFIXES, ListRow, ListSource, read_list
from framedex.media.open_sources import check_not_empty, open_source
from framedex.media.remote import invalid_uri, is_remote
from framedex.media.remote_sources import RemoteSource, open_remote, open_remote_rows
from framedex.media.row_sources import (
    RowSource,
    as_table,
    is_pattern,
    names_of,
    open_path_table,
    open_paths,
    open_pattern,
    path_column,
    rows_of_table,
)
from framedex.media.sources import FileSource, FolderSource, Source
from framedex.records import EmbeddingConfig
from framedex.settings import Settings, user_path
from framedex.storage.layout import Layout

_SHOWN_FILES = 20
PRECOMPUTED = "precomputed"
"""Name of the encoder in the embedding config of datasets with precomputed embeddings."""
ONE_SOURCE = "Exactly one media source must be provided (files, s3_uri or archive)"
"""The interface's error message; ours extends it."""
_EXTERNAL_ID = re.compile(r"[A-Za-z0-9_+=,.@:/-]{2,1224}")
"""Values of the parameter ExternalId of AssumeRole in the AWS STS API Reference."""


@dataclass(frozen=True)
class FilesInput:
    """Image and video files to decode and encode.

    Attributes:
        source: names the files.
        annotations: labels and captions by file name.
        encoder: computes the embeddings.
        reason: reason for this encoder.
        config: the JSON with which :func:`content_from_config` opens it in another process; None if that is impossible.
        boxes: annotation files with bounding boxes.
    """

    source: Source
    annotations: Annotations
    encoder: Encoder
    reason: str = "given in code"
    config: dict[str, Any] | None = None
    boxes: tuple[BoxSource, ...] = ()

    def lines(self, of_boxes: Problems) -> list[str]:
        """Return what was recognised of the source, what was not read to its end, and what was not recognised.

        Args:
            of_boxes: the problems of its boxes.
        """
        home = self.annotations.problems.folder or self.source.root  # copies of the files may lie elsewhere
        boxes = {os.path.relpath(each.path, home): None for each in self.boxes if not each.loose}
        known = [*self.annotations.sources, *(name for name in boxes if name not in (".", *self.annotations.sources))]
        unread = self.annotations.problems.unread | of_boxes.unread
        ignored = [name for name in self.annotations.ignored if name not in boxes]
        lines = {
            "read": [name for name in known if name not in unread],
            "not read, or only in part": [name for name in known if name in unread],
            "not recognised": ignored[:_SHOWN_FILES],
        }
        return [f"{words}: {', '.join(names)}" for words, names in lines.items() if names]


Content = FilesInput | EmbeddingTable


@dataclass(frozen=True)
class AdditionRequest:
    """Arguments of an addition: exactly one of the first four is set.

    Attributes:
        path: a folder, an image, a list file, a Parquet file or a table with embeddings, or a URI.
        files: paths, pairs (name, bytes), and binary files with a name.
        archive: path of an archive.
        s3_uri: URI of a folder or a manifest.
        assume_role: role to assume for reading remote objects.
        external_id: value that the trust policy of the role may require.
        class_folders: whether the folders in a folder are classes; None to decide.
        interpolate: whether boxes between key frames of tracks are read, too.
    """

    path: Any = None
    files: Any = None
    archive: Any = None
    s3_uri: Any = None
    assume_role: str | None = None
    external_id: str | None = None
    class_folders: bool | None = None
    interpolate: bool = False

    def __post_init__(self) -> None:
        """Check the arguments.

        Raises:
            InvalidInput: not exactly one source is set, or the role is invalid or not for remote objects.
        """
        names = ("path", "files", "s3_uri", "archive")
        request = [name for name in names if getattr(self, name) is not None]
        if len(request) != 1:
            raise InvalidInput(f"{ONE_SOURCE}, or path as the first argument; given: {', '.join(request) or 'none'}")
        role = self.assume_role
        if role is None:
            if self.external_id is not None:
                raise InvalidInput("external_id is for assume_role; no role is given")
            return
        if self.external_id is not None and not _is_external_id(self.external_id):
            raise InvalidInput(
                "external_id must be a text of 2 to 1,224 letters, digits and characters of _+=,.@:/-, "
                f"not {self.external_id!r}"
            )
        if not isinstance(role, str) or not role.startswith("arn:"):
            raise InvalidInput(
                f"assume_role must be the ARN of a role, as arn:aws:iam::123456789012:role/name, not {role!r}"
            )
        if self.s3_uri is None and not _is_uri(self.path):
            raise InvalidInput("assume_role is for s3_uri; what lies on this machine needs no role")

    @property
    def role(self) -> AssumedRole | None:
        """The role to assume for reading remote objects; None for no role."""
        return None if self.assume_role is None else AssumedRole(self.assume_role, self.external_id)


def _is_external_id(value: object) -> bool:
    return isinstance(value, str) and _EXTERNAL_ID.fullmatch(value) is not None


def open_content(
    source: Any, encoder: str | Encoder, settings: Settings, *, class_folders: bool | None = None
) -> Content:
    """Open a folder, an image, a list file, a list or a table of paths, a pattern, a table of embeddings or a URI.

    Args:
        source: the source.
        encoder: encoder for images.
        settings: access to buckets.
        class_folders: whether the folders in a folder are classes; None to decide.

    Raises:
        InvalidInput: it contains no media, or the encoder cannot be used for it.
        Forbidden: it is in no allowed folder or bucket.
        Unavailable: it is in a bucket that cannot be reached.
    """
    _check_named(source)
    if _is_uri(source):
        return _open_uri(source, encoder, settings, None)
    allowed = allowed_folders(settings)
    if (rows := _open_rows(source, allowed)) is not None:
        encoder_object, reason = choose_encoder(encoder, settings)
        return FilesInput(rows, _list_annotations(rows), encoder_object, reason, _pattern_config(source, encoder))
    path = user_path(source) if isinstance(source, str | os.PathLike) else None
    if path is not None and allowed is not None:
        allowed.check(path)
    if path is None or is_vector_file(path, allowed):
        if encoder != "auto":
            raise InvalidInput(f"a table brings its own embeddings; leave the encoder at 'auto' instead of {encoder!r}")
        config = None if path is None else {"kind": "vectors", "path": _absolute(path)}
        return replace(open_vectors(source if path is None else path, allowed), config=config)
    return _open_files(path, allowed, choose_encoder(encoder, settings), encoder, class_folders)


def _check_named(source: Any) -> None:
    """Check that a path is not empty, which would be the working directory.

    Raises:
        InvalidInput: it is.
    """
    if isinstance(source, str) and not source.strip():
        raise InvalidInput(f"a source is the path of a folder, an image or a list; {source!r} names none")


def _open_files(
    path: Path,
    allowed: AllowedFolders | None,
    chosen: tuple[Encoder, str],
    encoder: str | Encoder,
    class_folders: bool | None,
) -> FilesInput:
    """Open a folder, an image, a video or a list file."""
    files = _open_remote_list(path, allowed) or open_source(path, allowed)
    check_not_empty(files, path)
    boxes: tuple[BoxSource, ...] = ()
    if isinstance(files, FolderSource):
        annotations = read_annotations(files.root, allowed, class_folders=class_folders)
        boxes = tuple(find_box_sources(files.root, allowed=allowed))
        files.is_annotation = annotation_file_finder(files.root, annotations.sources, boxes)
    else:
        annotations = _list_annotations(files) if isinstance(files, ListSource | RemoteSource) else Annotations()
    config: dict[str, Any] = {"kind": _KINDS.get(type(files), "list"), "path": _absolute(path)}
    if class_folders is not None:
        config["class_folders"] = class_folders
    return FilesInput(files, annotations, *chosen, _portable_config(config, encoder), boxes)


def _open_remote_list(path: Path, allowed: AllowedFolders | None) -> RemoteSource | None:
    """Open a list on this machine whose paths are URIs of objects; None for another source."""
    if path.suffix.lower() not in LIST_SUFFIXES or not os.path.isfile(path):  # noqa: PTH113 - a name may be too long
        return None
    absolute = Path(_absolute(path))
    return open_remote_rows(
        os.fspath(path), lambda skipped: each_within(allowed, partial(read_list, absolute, skipped))
    )


def _pattern_config(source: Any, encoder: str | Encoder) -> dict[str, Any] | None:
    """Return the config of a pattern for other processes; None for a list or a table in memory."""
    config = {"kind": "pattern", "path": _absolute(user_path(source))} if isinstance(source, str) else None
    return None if config is None else _portable_config(config, encoder)


def _open_rows(source: Any, allowed: AllowedFolders | None) -> RowSource | RemoteSource | None:
    """Open a pattern, or a list or a table of paths or URIs; None for another source."""
    if is_pattern(source):
        return open_pattern(source, allowed)
    if (pairs := path_pairs(source)) is not None:
        return open_path_table(pairs, "path", allowed)
    if isinstance(source, list | tuple):
        names = names_of(source)
        return open_remote_rows("the list", lambda _: map(ListRow, names)) or open_paths(source, allowed)
    table = as_table(source)
    if table is None or "embedding" in table.schema.names or (column := path_column(table)) is None:
        return None
    rows = rows_of_table(table, column)
    return open_remote_rows("the table", lambda _: rows()) or open_path_table(table, column, allowed)


def _is_path_table(source: Any) -> bool:
    table = as_table(source)
    is_table = table is not None and "embedding" not in table.schema.names and path_column(table) is not None
    return is_table or path_pairs(source) is not None


def _list_annotations(source: ListSource | RemoteSource) -> Annotations:
    """Return the further values of the files of a list; a column ``split`` that names parts gives tags."""
    annotations = Annotations()
    for path, values in source.values():
        others = dict(values)
        split = next((name for name in others if name.lower() == "split"), None)
        tags = () if split is None else part_tags(str(others[split]))
        if tags and split is not None:
            del others[split]
        annotations.add_values(os.path.normpath(path), tags, others)
    if annotations.values:
        annotations.sources.append(
            f"columns {', '.join(annotations.values.columns)}" if annotations.values.columns else "splits"
        )
    return annotations


def _absolute(path: Path) -> str:
    return os.path.abspath(path)  # noqa: PTH100 - keeps links, unlike resolve


def _portable_config(config: dict[str, Any], encoder: str | Encoder) -> dict[str, Any] | None:
    """Return a config for other processes; None if the encoder is a Python object without weights."""
    return config if isinstance(encoder, str) or weights_of(encoder) is not None else None


_KINDS: dict[type, str] = {FolderSource: "folder", FileSource: "file"}


def _is_uri(source: Any) -> bool:
    return isinstance(source, str) and is_remote(source)


def _open_uri(uri: Any, encoder: str | Encoder, settings: Settings, role: AssumedRole | None) -> FilesInput:
    if not isinstance(uri, str):
        raise invalid_uri(f"an object-storage URI is a text, s3://bucket/folder, not {type(uri).__name__}")
    encoder_object, reason = choose_encoder(encoder, settings)
    store = object_store(settings, role)
    source = open_remote(uri, store, max_bytes=settings.max_file_bytes, role=role)
    annotations = _list_annotations(source) if source.rows else source.annotations
    config = {"kind": "s3", "uri": uri, "role_arn": role and role.arn, "external_id": role and role.external_id}
    portable = _portable_config(config, encoder)
    return FilesInput(source, annotations, encoder_object, reason, portable, source.boxes)


def open_stored_upload(
    source: UploadSource,
    dataset_id: str,
    encoder: str | Encoder,
    settings: Settings,
    *,
    class_folders: bool | None = None,
) -> FilesInput:
    """Open files that were uploaded to a dataset.

    Raises:
        InvalidInput: the encoder cannot be used, or an annotation file among the files is malformed.
    """
    encoder_object, reason = choose_encoder(encoder, settings)
    config: dict[str, Any] = {
        "kind": "blobs", "dataset_id": dataset_id, "upload_id": source.upload_id, "skipped": dict(source.skipped),
        "examples": source.skipped.examples,
    }  # fmt: skip
    if class_folders is not None:
        config["class_folders"] = class_folders
    annotations, boxes = source.annotations(class_folders), tuple(source.boxes())
    source.count_unread(annotation_file_finder(os.fspath(source.annotation_folder), annotations.sources, boxes))
    return FilesInput(source, annotations, encoder_object, reason, _portable_config(config, encoder), boxes)


def source_to_store(source: Any, settings: Settings) -> HeldImages | Path | None:
    """Return images that a program holds, or the path of an archive, which are stored first; None for other sources."""
    return archive_path(source) or held_images(source, allowed_folders(settings))


def store_images(
    images: Any,
    dataset_id: str,
    encoder: str | Encoder,
    *,
    layout: Layout,
    settings: Settings,
    progress: ShareProgress,
    class_folders: bool | None = None,
) -> FilesInput:
    """Write images that a program holds, or those of an archive, to the blob store of a dataset, and open them.

    Raises:
        InvalidInput: there are no images, the archive cannot be opened, or the encoder cannot be used.
        WorkspaceError: the blob store cannot be written.
    """
    upload: Any = upload_images if isinstance(images, HeldImages) else upload_archive
    source = upload(images, layout.dataset(dataset_id), settings, progress)
    return open_stored_upload(source, dataset_id, encoder, settings, class_folders=class_folders)


def open_addition(
    request: AdditionRequest,
    config: EmbeddingConfig,
    *,
    dataset_id: str,
    layout: Layout,
    settings: Settings,
    progress: ShareProgress = lambda _share: None,
) -> Content:
    """Open the media to add to a dataset that was indexed with *config*.

    Uploaded media are durably in the dataset's blob store when this returns.

    Args:
        request: the media.
        config: embedding config of the dataset.
        dataset_id: the dataset.
        layout: of the workspace.
        settings: limits, and access to buckets.
        progress: called with the share of an upload that is done; raises to stop.

    Raises:
        InvalidInput: there are no media, or their embeddings are incompatible with those of the dataset.
        Unavailable: they are in a bucket that cannot be reached.
        WorkspaceError: the blob store cannot be written.
    """
    _check_named(request.path)
    images = None if request.path is None else source_to_store(request.path, settings)
    if images is None and request.archive is not None:
        images = request.archive
    if images is not None:
        encoder_for_images(config, settings)
        return store_images(
            images, dataset_id, config.encoder, layout=layout, settings=settings, progress=progress,
            class_folders=request.class_folders,
        )  # fmt: skip
    uri = request.path if _is_uri(request.path) else request.s3_uri
    local = request.path if uri is None else None
    if local is not None and (is_pattern(local) or isinstance(local, list | tuple) or _is_path_table(local)):
        encoder_for_images(config, settings)
        return open_content(local, config.encoder, settings)
    path = user_path(local) if isinstance(local, str | os.PathLike) else None
    allowed = allowed_folders(settings)
    if path is not None and allowed is not None:
        allowed.check(path)
    has_embeddings = local is not None and (path is None or is_vector_file(path, allowed))
    _check_kind(config, has_embeddings=has_embeddings)
    if has_embeddings:
        return _check_compatible(open_content(local, "auto", settings), config)
    encoder_for_images(config, settings)
    if path is not None:
        return open_content(path, config.encoder, settings, class_folders=request.class_folders)
    if uri is not None:
        return _open_uri(uri, config.encoder, settings, request.role)
    files = upload_files(request.files, layout.dataset(dataset_id), settings, progress)
    return open_stored_upload(files, dataset_id, config.encoder, settings)


def with_boxes(content: Content, request: Any, settings: Settings) -> Content:
    """Return a content with further annotation files, besides those that were found with it.

    Raises:
        InvalidInput: the files have no boxes, or the content has no images.
        Forbidden: a file is in no allowed folder.
    """
    if not isinstance(content, FilesInput):
        raise InvalidInput("boxes are in images; a table brings its own embeddings")
    sources = resolve_box_sources(request, allowed_folders(settings))
    paths = list(dict.fromkeys(os.fspath(each.path) for each in sources))
    config = None if content.config is None else {**content.config, "boxes": paths}
    return replace(content, boxes=(*content.boxes, *sources), config=config)


def with_interpolation(content: Content, *, interpolate: bool) -> Content:
    """Return a content whose boxes between key frames of tracks are read, too, if *interpolate*."""
    if not interpolate or not isinstance(content, FilesInput):
        return content
    config = None if content.config is None else {**content.config, "interpolate": True}
    boxes = tuple(replace(each, interpolate=True) for each in content.boxes)
    return replace(content, boxes=boxes, config=config)


def encoder_for_images(config: EmbeddingConfig, settings: Settings) -> Encoder:
    """Return the encoder of a dataset.

    Raises:
        InvalidInput: the dataset has precomputed embeddings, or the encoder's weights have changed.
    """
    _check_kind(config, has_embeddings=False)
    return _check_compatible(choose_encoder(config.encoder, settings)[0], config)


def check_brings_embeddings(config: EmbeddingConfig) -> None:
    """Check that a dataset was made of a table of embeddings, whose images were not read.

    Raises:
        InvalidInput: it was made of images.
    """
    if config.encoder != PRECOMPUTED:
        raise InvalidInput("the images of this dataset are measured already: it was made of images")


def _check_kind(config: EmbeddingConfig, *, has_embeddings: bool) -> None:
    if has_embeddings and config.encoder != PRECOMPUTED:
        raise InvalidInput(f"this dataset was encoded by {config.encoder!r}; add images, not a table with embeddings")
    if not has_embeddings and config.encoder == PRECOMPUTED:
        raise InvalidInput("this dataset brought its embeddings; add a table with uri and embedding, not images")


_Candidate = TypeVar("_Candidate", Content, Encoder)


def _check_compatible(candidate: _Candidate, config: EmbeddingConfig) -> _Candidate:
    """Return a content or an encoder if its embeddings are compatible with those of a dataset.

    Raises:
        InvalidInput: the dimensions differ, or the encoder's weights have changed.
    """
    found = candidate.encoder.dimension if isinstance(candidate, FilesInput) else candidate.dimension
    if found != config.dimension:
        whose = "the table's" if isinstance(candidate, EmbeddingTable) else f"the encoder {config.encoder!r} makes"
        raise InvalidInput(
            f"{whose} embeddings have {counted(found, 'values')}; those of this dataset have {config.dimension}"
        )
    if not isinstance(candidate, EmbeddingTable):
        check_weights(candidate.encoder if isinstance(candidate, FilesInput) else candidate, config)
    return candidate


def content_from_config(
    config: Mapping[str, Any], embedding_config: EmbeddingConfig, layout: Layout, settings: Settings
) -> Content:
    """Open a content again, in this or another process.

    Args:
        config: of the content.
        embedding_config: of the dataset.
        layout: of the workspace.
        settings: limits, and access to buckets.

    Raises:
        InvalidInput: the source is empty or missing, or the encoder is unknown.
        NotFound: the uploaded files are missing.
        NotRetryable: a newer version of Framedex opened it.
        Unavailable: it is in a bucket that cannot be reached.
    """
    found = _open_from_config(config, embedding_config, layout, settings)
    found = with_boxes(found, config["boxes"], settings) if config.get("boxes") else found
    return with_interpolation(found, interpolate=config.get("interpolate", False))


def _open_from_config(
    config: Mapping[str, Any], embedding_config: EmbeddingConfig, layout: Layout, settings: Settings
) -> Content:
    encoder = embedding_config.encoder
    match config.get("kind"):
        case "vectors":
            return _check_compatible(open_content(Path(config["path"]), "auto", settings), embedding_config)
        case "folder" | "file" | "list":
            classes = config.get("class_folders")
            opened = open_content(Path(config["path"]), encoder, settings, class_folders=classes)
            return _check_compatible(opened, embedding_config)
        case "pattern":
            return _check_compatible(open_content(config["path"], encoder, settings), embedding_config)
        case "s3":
            arn = config["role_arn"]
            role = None if arn is None else AssumedRole(arn, config.get("external_id"))
            return _check_compatible(_open_uri(config["uri"], encoder, settings, role), embedding_config)
        case "blobs":
            dataset = layout.dataset(config["dataset_id"])
            skipped = Skipped(config["skipped"], config.get("examples"))
            source = UploadSource(dataset, config["upload_id"], skipped)
            opened = open_stored_upload(
                source, config["dataset_id"], encoder, settings, class_folders=config.get("class_folders")
            )
            return _check_compatible(opened, embedding_config)
        case kind:
            raise NotRetryable(f"media of the kind {kind!r} are not known to this Framedex")


def check_thresholds(thresholds: Sequence[float]) -> tuple[float, float, float, float, float]:
    """Return cluster thresholds in the form of the embedding config.

    Raises:
        InvalidInput: they are not five ascending cosine distances in (0, 2].
    """
    try:
        values = tuple(float(value) for value in thresholds)
    except (TypeError, ValueError):
        values = ()
    if len(values) != 5 or any(not a < b for a, b in pairwise((0.0, *values))) or values[-1] > 2:
        raise InvalidInput(f"thresholds must be five ascending cosine distances above 0, up to 2, not {thresholds!r}")
    return values
