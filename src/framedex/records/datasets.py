"""Records of datasets and of their configuration."""

from datetime import datetime
from enum import StrEnum

from pydantic import Field

from framedex.records.base import Record
from framedex.records.duplicates import DUPLICATE_LEVELS


class DatasetStatus(StrEnum):
    """Status of a dataset (``status_new`` of the interface). A DRAFT has no media yet; files are uploaded to it."""

    DRAFT = "DRAFT"
    READY = "READY"
    READ_ONLY = "READ ONLY"
    PARTIAL_INDEX = "PARTIAL INDEX"
    INDEXING = "INDEXING"
    ERROR = "ERROR"


class SourceType(StrEnum):
    """Location of the media that a dataset was created from: a bucket, this machine, or the workspace itself."""

    BUCKET = "BUCKET"
    LOCAL = "LOCAL"
    UPLOAD = "UPLOAD"


class DatasetRecord(Record):
    """A dataset, as the interface's status endpoint returns it.

    ``status`` is the older field: NEW for a draft, UPLOADING for a draft to which files were uploaded, otherwise the
    same. ``progress`` is in percent, 0 to 100. ``created_at`` is in UTC, and so is ``updated_at``, the time of the last
    commit; None before the first one. ``source_uri`` is the folder of the media, or its URI; None for uploads.
    ``source_dataset_id`` is the dataset that a clone or an enriched dataset was made of; older copies have None.
    """

    id: str
    display_name: str
    status: str
    status_new: DatasetStatus
    progress: int
    owned_by: str
    created_at: datetime
    n_images: int
    n_videos: int
    n_objects: int = 0
    description: str = ""
    created_by: str
    updated_at: datetime | None
    source_type: SourceType
    source_uri: str | None
    source_dataset_id: str | None


class TextSearches(Record):
    """The kinds of text searches that can find something in a dataset: in labels, in captions, and by meaning."""

    labels: bool
    captions: bool
    semantic: bool


class Weights(Record):
    """The identity of a model's weights: all that its vectors or captions depend on.

    ``path`` is the file of the model; ``sha256`` is the hash of its content, in hexadecimal digits. ``settings`` holds
    every other setting that changes the output, by name and as text: the preprocessing of images, the chosen output,
    the hashes of further files.
    """

    path: str
    sha256: str
    settings: dict[str, str] = Field(default_factory=dict)


class EmbeddingConfig(Record):
    """The configuration of a dataset's index: the encoder, its dimension, and five ascending cosine distances.

    ``weights`` is the identity of an encoder's files, and None for an encoder without files. ``frames_per_second`` and
    ``scene_changes`` say which frames of videos become media: that many a second, and the first frame of each scene.
    ``display_range`` has the values that are shown black and white in images of more than 8 bits; None where each image
    has its own.

    ``copy_descriptor`` names the descriptor whose cosine similarity the eight levels of near-duplicates are limits of,
    as listed in ``duplicate_thresholds``; None for the embeddings themselves. It is the same for every encoder of
    images, so a level means the same for each.
    """

    encoder: str
    dimension: int
    thresholds: tuple[float, float, float, float, float]
    reason: str = ""
    weights: Weights | None = None
    frames_per_second: float = 1.0
    scene_changes: bool = False
    display_range: tuple[float, float] | None = None
    copy_descriptor: str | None = None
    duplicate_thresholds: tuple[float, ...] = DUPLICATE_LEVELS


class StoredTable(Record):
    """A table of a dataset on disk, in the Lance format, which other programs may read.

    ``version`` is that of the present state. ``has_edits`` says that values of some rows are in files beside the table,
    which other programs do not see; ``Workspace.vacuum(older_than_s=0)`` writes them into it.
    """

    name: str
    path: str
    version: int
    has_edits: bool
