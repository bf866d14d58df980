"""What a dataset is made of, or gets more of: pictures to encode, or a table that brings embeddings."""

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

from framedex.annotations.label_index import Annotations
from framedex.annotations.sources import BoxSource, find_box_sources, read_annotations, resolve_box_sources
from framedex.encoders import Encoder, check_weights, choose_encoder, weights_of
from framedex.errors import InvalidInput, NotRetryable
from framedex.jobs.ingest.uploads import UploadSource, upload_archive, upload_files
from framedex.jobs.ingest.vectors import VectorSource, is_vector_file, open_vectors
from framedex.media.remote import BucketAccess, ObjectStore, invalid_uri, is_remote
from framedex.media.remote_sources import open_remote
from framedex.media.sources import FileSource, FolderSource, Source, open_source
from framedex.progress import ShareProgress
from framedex.records import EmbeddingConfig
from framedex.settings import Settings, user_path
from framedex.storage.layout import Layout

PRECOMPUTED = "precomputed"
"""The encoder's name in the embedding config of datasets whose embeddings came with a table."""
ONE_SOURCE = "Exactly one media source must be provided (files, s3_uri or archive)"
"""The message of the interface, which knows no paths; ours goes on after it."""


@dataclass(frozen=True)
class FilesInput:
    """Pictures to be decoded and encoded.

    Attributes:
        source: names them.
        annotations: labels and captions by file name.
        encoder: makes the embeddings.
        reason: why that one.
        config: what :func:`content_from_config` needs to open the same in another process, as JSON; None where that is
            not possible.
        boxes: files with boxes in the pictures.
    """

    source: Source
    annotations: Annotations
    encoder: Encoder
    reason: str = "given in code"
    config: dict[str, Any] | None = None
    boxes: tuple[BoxSource, ...] = ()


Content = FilesInput | VectorSource


@dataclass(frozen=True)
class AdditionRequest:
    """What was given to be added: exactly one of the first four.

    Attributes:
        path: a folder, a picture, a list file, a Parquet file or a table with embeddings, or the URI of objects.
        files: paths, pairs (name, bytes), and binary files with a name.
        archive: path of an archive.
        s3_uri: URI of a folder or a manifest.
        assume_role: role to assume for reading objects.
    """

    path: Any = None
    files: Any = None
    archive: Any = None
    s3_uri: Any = None
    assume_role: str | None = None

    def __post_init__(self) -> None:
        """Check what was given.

        Raises:
            InvalidInput: none or more than one source was, or a role that is none or not for objects.
        """
        names = ("path", "files", "s3_uri", "archive")
        given = [name for name in names if getattr(self, name) is not None]
        if len(given) != 1:
            raise InvalidInput(f"{ONE_SOURCE}, or path as the first argument; given: {', '.join(given) or 'none'}")
        role = self.assume_role
        if role is None:
            return
        if not isinstance(role, str) or not role.startswith("arn:"):
            raise InvalidInput(
                f"assume_role must be the ARN of a role, as arn:aws:iam::123456789012:role/name, not {role!r}"
            )
        if self.s3_uri is None and not _is_uri(self.path):
            raise InvalidInput("assume_role is for s3_uri; what lies on this machine needs no role")


def open_content(source: Any, encoder: str | Encoder, settings: Settings) -> Content:
    """Return what a folder, a picture, a list file, a Parquet file, a table or the URI of objects holds.

    Args:
        source: what is opened.
        encoder: for pictures.
        settings: how buckets are reached.

    Raises:
        InvalidInput: it holds nothing to make a dataset of, or the encoder cannot be used for it.
        Unavailable: it is in a bucket that cannot be reached.
    """
    if _is_uri(source):
        return _of_uri(source, encoder, settings, None)
    path = user_path(source) if isinstance(source, str | os.PathLike) else None
    if path is None or is_vector_file(path):
        if encoder != "auto":
            raise InvalidInput(f"a table brings its own embeddings; leave the encoder at 'auto' instead of {encoder!r}")
        config = None if path is None else {"kind": "vectors", "path": _absolute(path)}
        return replace(open_vectors(source if path is None else path), config=config)
    chosen, reason = choose_encoder(encoder, settings)
    files = open_source(path)
    if next(iter(files.items()), None) is None:
        seen = ", ".join(f"{count} {reason}" for reason, count in files.skipped.items())
        raise InvalidInput(f"no pictures in {str(path)!r}" + (f"; it holds {seen}" if seen else "; it is empty"))
    is_folder = isinstance(files, FolderSource)
    annotations = read_annotations(files.root) if is_folder else Annotations()
    boxes = tuple(find_box_sources(files.root)) if is_folder else ()
    config = {"kind": _KINDS.get(type(files), "list"), "path": _absolute(path)}
    return FilesInput(files, annotations, chosen, reason, _for_all(config, encoder), boxes)


def _absolute(path: Path) -> str:
    return os.path.abspath(path)  # noqa: PTH100 - keeps links, unlike resolve


def _for_all(config: dict[str, Any], encoder: str | Encoder) -> dict[str, Any] | None:
    """Return a config for other processes; an encoder that was given in code and has no weights is not there."""
    return config if isinstance(encoder, str) or weights_of(encoder) is not None else None


_KINDS: dict[type, str] = {FolderSource: "folder", FileSource: "file"}


def _is_uri(source: Any) -> bool:
    return isinstance(source, str) and is_remote(source)


def _of_uri(uri: Any, encoder: str | Encoder, settings: Settings, role_arn: str | None) -> FilesInput:
    if not isinstance(uri, str):
        raise invalid_uri(f"an object-storage URI is a text, s3://bucket/folder, not {type(uri).__name__}")
    chosen, reason = choose_encoder(encoder, settings)
    store = ObjectStore(BucketAccess.of(settings, role_arn))
    source = open_remote(uri, store, max_bytes=settings.max_file_bytes, role_arn=role_arn)
    config = {"kind": "s3", "uri": uri, "role_arn": role_arn}
    return FilesInput(source, source.annotations, chosen, reason, _for_all(config, encoder))


def _of_upload(source: UploadSource, dataset_id: str, encoder: str, settings: Settings) -> FilesInput:
    chosen, reason = choose_encoder(encoder, settings)
    config = {
        "kind": "blobs", "dataset_id": dataset_id, "upload_id": source.upload_id, "skipped": dict(source.skipped),
    }  # fmt: skip
    return FilesInput(source, source.annotations(), chosen, reason, config, tuple(source.boxes()))


def open_more(
    given: AdditionRequest,
    config: EmbeddingConfig,
    *,
    dataset_id: str,
    layout: Layout,
    settings: Settings,
    progress: ShareProgress = lambda _share: None,
) -> Content:
    """Return what is to be added to a dataset that was indexed with *config*.

    What is uploaded is in the dataset's blob store then, durably.

    Args:
        given: what to open.
        config: how the dataset was indexed.
        dataset_id: the dataset.
        layout: where its blob store is.
        settings: limits, and how buckets are reached.
        progress: called with the share of an upload that is done; raises to stop.

    Raises:
        InvalidInput: it holds nothing, or its embeddings would not compare with those of the dataset.
        Unavailable: it is in a bucket that cannot be reached.
        WorkspaceError: the blob store cannot be written.
    """
    uri = given.path if _is_uri(given.path) else given.s3_uri
    local = given.path if uri is None else None
    path = user_path(local) if isinstance(local, str | os.PathLike) else None
    brings = local is not None and (path is None or is_vector_file(path))
    _check_kind(config, brings=brings)
    if brings:
        return _fitting(open_content(local, "auto", settings), config)
    encoder_for_images(config, settings)
    if path is not None:
        return open_content(path, config.encoder, settings)
    if uri is not None:
        return _of_uri(uri, config.encoder, settings, given.assume_role)
    home = layout.dataset(dataset_id)
    if given.archive is not None:
        return _of_upload(upload_archive(given.archive, home, settings, progress), dataset_id, config.encoder, settings)
    return _of_upload(upload_files(given.files, home, settings, progress), dataset_id, config.encoder, settings)


def with_boxes(content: Content, given: Any) -> Content:
    """Return a content with files of boxes that are given, beside those that were found with it.

    Raises:
        InvalidInput: there are no boxes, or the content is no pictures.
    """
    if not isinstance(content, FilesInput):
        raise InvalidInput("boxes are in pictures; a table brings its own embeddings")
    sources = resolve_box_sources(given)
    paths = list(dict.fromkeys(os.fspath(each.path) for each in sources))
    config = None if content.config is None else {**content.config, "boxes": paths}
    return replace(content, boxes=(*content.boxes, *sources), config=config)


def encoder_for_images(config: EmbeddingConfig, settings: Settings) -> Encoder:
    """Return the encoder of a dataset.

    Raises:
        InvalidInput: it brought its embeddings, or the encoder is not the same any more.
    """
    _check_kind(config, brings=False)
    return _fitting(choose_encoder(config.encoder, settings)[0], config)


def _check_kind(config: EmbeddingConfig, *, brings: bool) -> None:
    if brings and config.encoder != PRECOMPUTED:
        raise InvalidInput(f"this dataset was encoded by {config.encoder!r}; add pictures, not a table with embeddings")
    if not brings and config.encoder == PRECOMPUTED:
        raise InvalidInput("this dataset brought its embeddings; add a table with uri and embedding, not pictures")


_Fits = TypeVar("_Fits", Content, Encoder)


def _fitting(made: _Fits, config: EmbeddingConfig) -> _Fits:
    """Return a content or an encoder whose embeddings compare with those of a dataset.

    Raises:
        InvalidInput: they are of another length, or the encoder's weights have changed.
    """
    found = made.encoder.dimension if isinstance(made, FilesInput) else made.dimension
    if found != config.dimension:
        whose = "the table's" if isinstance(made, VectorSource) else f"the encoder {config.encoder!r} makes"
        raise InvalidInput(f"{whose} embeddings have {found} values; those of this dataset have {config.dimension}")
    if not isinstance(made, VectorSource):
        check_weights(made.encoder if isinstance(made, FilesInput) else made, config)
    return made


def content_from_config(
    config: Mapping[str, Any], embedding_config: EmbeddingConfig, layout: Layout, settings: Settings
) -> Content:
    """Return a content as it was opened before, perhaps by another process.

    Args:
        config: of that content.
        embedding_config: how its dataset is or will be indexed.
        layout: of the workspace.
        settings: limits, and how buckets are reached.

    Raises:
        InvalidInput: there is nothing any more, or the encoder is not known here.
        NotFound: what was uploaded is gone.
        NotRetryable: a newer version of Framedex opened it.
        Unavailable: it is in a bucket that cannot be reached.
    """
    found = _reopened(config, embedding_config, layout, settings)
    return with_boxes(found, config["boxes"]) if config.get("boxes") else found


def _reopened(
    config: Mapping[str, Any], embedding_config: EmbeddingConfig, layout: Layout, settings: Settings
) -> Content:
    encoder = embedding_config.encoder
    match config.get("kind"):
        case "vectors":
            return _fitting(open_content(Path(config["path"]), "auto", settings), embedding_config)
        case "folder" | "file" | "list":
            return _fitting(open_content(Path(config["path"]), encoder, settings), embedding_config)
        case "s3":
            return _fitting(_of_uri(config["uri"], encoder, settings, config["role_arn"]), embedding_config)
        case "blobs":
            dataset = layout.dataset(config["dataset_id"])
            source = UploadSource(dataset, config["upload_id"], Counter(config["skipped"]))
            return _fitting(_of_upload(source, config["dataset_id"], encoder, settings), embedding_config)
        case kind:
            raise NotRetryable(f"media of the kind {kind!r} are not known to this Framedex")


def check_thresholds(thresholds: Sequence[float]) -> tuple[float, float, float, float, float]:
    """Return cluster thresholds as the embedding config has them.

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
