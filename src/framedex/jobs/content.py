"""What a dataset is made of, or gets more of: pictures to encode, or a table that brings embeddings."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from framedex.encoders import Encoder, choose_encoder
from framedex.errors import InvalidInput
from framedex.jobs.ingest_vectors import VectorSource, is_vector_file, open_vectors
from framedex.media.annotations import Annotations, read_annotations
from framedex.media.sources import FolderSource, Source, open_source
from framedex.records import EmbeddingConfig
from framedex.settings import user_path

PRECOMPUTED = "precomputed"
"""The encoder's name in the embedding config of datasets whose embeddings came with a table."""


@dataclass(frozen=True)
class FilesInput:
    """Pictures to be decoded and encoded."""

    source: Source
    annotations: Annotations
    encoder: Encoder
    reason: str = "given in code"


Content = FilesInput | VectorSource


def open_content(source: Any, encoder: str | Encoder) -> Content:
    """Return what a folder, a list file, a Parquet file or a table holds.

    Raises:
        InvalidInput: it holds nothing to make a dataset of, or the encoder cannot be used for it.
    """
    path = user_path(source) if isinstance(source, str | os.PathLike) else None
    if path is None or is_vector_file(path):
        if encoder != "auto":
            raise InvalidInput(f"a table brings its own embeddings; leave the encoder at 'auto' instead of {encoder!r}")
        return open_vectors(source if path is None else path)
    chosen, reason = choose_encoder(encoder)
    files = open_source(path)
    if next(iter(files.items()), None) is None:
        seen = ", ".join(f"{count} {reason}" for reason, count in files.skipped.items())
        raise InvalidInput(f"no pictures in {str(path)!r}" + (f"; it holds {seen}" if seen else "; it is empty"))
    annotations = read_annotations(files.root) if isinstance(files, FolderSource) else Annotations()
    return FilesInput(files, annotations, chosen, reason)


def open_more(source: Any, config: EmbeddingConfig) -> Content:
    """Return what is to be added to a dataset that was indexed with *config*.

    Raises:
        InvalidInput: it holds nothing, or its embeddings would not compare with those of the dataset.
    """
    path = user_path(source) if isinstance(source, str | os.PathLike) else None
    brings = path is None or is_vector_file(path)
    if brings and config.encoder != PRECOMPUTED:
        raise InvalidInput(f"this dataset was encoded by {config.encoder!r}; add pictures, not a table with embeddings")
    if not brings and config.encoder == PRECOMPUTED:
        raise InvalidInput("this dataset brought its embeddings; add a table with uri and embedding, not pictures")
    content = open_content(source, "auto" if brings else config.encoder)
    found = content.dimension if isinstance(content, VectorSource) else content.encoder.dimension
    if found != config.dimension:
        whose = "the table's" if brings else f"the encoder {config.encoder!r} makes"
        raise InvalidInput(f"{whose} embeddings have {found} values; those of this dataset have {config.dimension}")
    return content


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
