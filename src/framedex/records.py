"""The interface's resources, and ours beside them: plain records without behaviour."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from pydantic import BaseModel, ConfigDict


class DatasetStatus(StrEnum):
    """Status of a dataset (``status_new`` of the interface)."""

    READY = "READY"
    READ_ONLY = "READ ONLY"
    PARTIAL_INDEX = "PARTIAL INDEX"
    INDEXING = "INDEXING"
    ERROR = "ERROR"


class TaskType(StrEnum):
    """What a task does."""

    DATASET_CREATION = "DATASET_CREATION"
    MEDIA_ADDITION = "MEDIA_ADDITION"
    REINDEX = "REINDEX"
    MEDIA_DELETION = "MEDIA_DELETION"
    ENRICHMENT = "ENRICHMENT"
    CUSTOM_METADATA = "CUSTOM_METADATA"
    SNAPSHOT_RESTORE = "SNAPSHOT_RESTORE"
    SNAPSHOT_CLONE = "SNAPSHOT_CLONE"


class TaskStatus(StrEnum):
    """Where a task stands."""

    INITIALIZING = "INITIALIZING"
    RUNNING = "RUNNING"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    ABORTED = "ABORTED"

    @property
    def final(self) -> bool:
        """Whether nothing more will happen."""
        return self in (TaskStatus.COMPLETED, TaskStatus.FAILED, TaskStatus.ABORTED)


class EntityType(StrEnum):
    """What is explored."""

    IMAGES = "IMAGES"
    OBJECTS = "OBJECTS"
    VIDEOS = "VIDEOS"


CLUSTER_LEVELS = 5
DUPLICATE_LEVELS = (0.96, 0.97, 0.98, 0.985, 0.99, 0.995, 0.999, 1.0)


class Record(BaseModel):
    """Base of all records: immutable, no field but the documented ones."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class DatasetRecord(Record):
    """A dataset, as the interface's status endpoint returns it.

    ``progress`` is in percent, 0 to 100; ``created_at`` in UTC.
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


class TaskRecord(Record):
    """A task, as the interface returns it."""

    task_id: str
    dataset_id: str
    dataset_name: str
    dataset_status: str
    created_by: str
    task_type: TaskType
    status: TaskStatus
    status_message: str
    progress_percentage: int | None
    error_message: str | None
    start_time: datetime
    end_time: datetime | None


class TaskPage(Record):
    """A page of tasks, as the interface returns it; pages count from 1."""

    tasks: list[TaskRecord]
    total: int
    page: int
    page_size: int


class TaskFilters(Record):
    """What tasks can be filtered by: the values that occur, each once, sorted."""

    dataset_names: list[str]
    dataset_ids: list[str]
    task_types: list[str]
    created_by: list[str]


class SnapshotReason(StrEnum):
    """Why a snapshot was made."""

    MANUAL = "manual"
    CREATION = "creation"
    CLONE = "clone"


class Snapshot(Record):
    """A kept state of a dataset, as the interface returns it."""

    snapshot_id: str
    snapshot_name: str
    source_dataset_name: str
    created_at: datetime
    created_by: str
    n_images: int
    n_videos: int
    description: str
    reason: SnapshotReason
    training_model_id: str | None
    training_model_name: str | None
    is_current: bool
    is_restoring: bool


class Weights(Record):
    """What the vectors of a learned encoder depend on.

    ``path`` is the file of the model, and ``sha256`` the hash of its content in hexadecimal digits. ``settings`` are
    the other things that change vectors, by name and as text: how pictures are prepared, which output is taken, hashes
    of further files.
    """

    path: str
    sha256: str
    settings: dict[str, str] = {}


class EmbeddingConfig(Record):
    """How a dataset was indexed: the encoder, its dimension, and five ascending cosine distances.

    ``weights`` is what an encoder that was read from files stated about them, and None for others.
    Of videos ``frames_per_second`` frames are media, and with ``scene_changes`` the first ones of scenes, too.
    """

    encoder: str
    dimension: int
    thresholds: tuple[float, float, float, float, float]
    reason: str = ""
    weights: Weights | None = None
    frames_per_second: float = 1.0
    scene_changes: bool = False


class Preview(Record):
    """One picture of a cluster, as the interface shows it."""

    type: str
    media_id: str
    media_uri: str
    media_thumb_uri: str
    caption: str | None
    file_name: str
    relevance_score: float
    relevance_score_type: str
    width: int | None
    height: int | None
    image_id: str
    image_uri: str
    bounding_box: list[float] | None
    original_uri: str
    video_uri: str | None
    frame_timestamp: float | None
    labels: list[str] | None
    user_tags: list[str] | None


class Cluster(Record):
    """One cluster of an Explore result; counts that do not apply are -1."""

    cluster_id: str
    type: str
    n_images: int
    n_objects: int
    n_videos: int
    n_frames: int
    size_display_value: str
    formed_by: str
    similarity_threshold: str
    relevance_score: float
    relevance_score_type: str
    captions: list[str]
    previews: list[Preview]
    labels: list[str] | None
    user_tags: list[str] | None


class ExploreMetadata(Record):
    """How an Explore result was computed."""

    used_duckdb: bool


class ExploreResult(Record):
    """A page of clusters, largest first."""

    clusters: list[Cluster]
    metadata: ExploreMetadata


class DuplicateGroup(Record):
    """Pictures that are near-duplicates of each other at one of the eight levels.

    ``similarity`` is the highest cosine similarity of a member to any other picture of the dataset, in [-1, 1]; without
    a filter that one is in the group too. ``paths`` are relative to the source, ``file_names`` their last parts.
    Groups of equal files have these fields too; their threshold, similarity and confidence are 1.

    ``keep`` is the id of the member that is best to keep, and ``keep_reason`` says in words what decided: the largest
    (pixels), of these the sharpest (``sharpness``), the least compressed (bytes a pixel), the oldest (time of the last
    change, UTC), the first. Each of these leaves all members that are as good as the best of them, but for 1 % of the
    pixels, 0.02 of sharpness, 2 % of the bytes a pixel, 2 s; unknown values lose to known ones. Of a filtered group it
    is the best that is left. ``confidence`` that the group is one, in [0, 1], is the lowest similarity of a member to
    the picture that is most similar to it.
    """

    group_id: str
    threshold: float
    similarity: float
    media_ids: list[str]
    file_names: list[str]
    paths: list[str]
    keep: str
    keep_reason: str
    confidence: float


class DuplicateDecision(Record):
    """That no two of some media are duplicates of each other, whatever their similarity."""

    decision_id: str
    media_ids: list[str]
    decided_by: str
    decided_at: datetime


class Tag(Record):
    """A mark that people put on media, and how many have it."""

    tag_id: str
    name: str
    created_at: datetime
    created_by: str
    count: int


class FieldType(StrEnum):
    """What the values of a custom field are."""

    STRING = "string"
    FLOAT = "float"
    DATETIME = "datetime"
    ENUM = "enum"
    LINK = "link"


class Field(Record):
    """A custom field of a dataset; only those of type enum have options."""

    field_id: str
    field_name: str
    field_type: FieldType
    enum_options: list[str] | None
    is_multi: bool
    created_at: datetime
    created_by: str


class FieldValue(Record):
    """The value of a custom field at one media item: text, float or datetime (UTC), or a list of them."""

    field_name: str
    field_type: FieldType
    value: Any


class FieldError(Record):
    """Why a value did not go in, and which row it was in, counted from 0."""

    reason: str
    row_index: int


class FieldResult(Record):
    """How far a task of type CUSTOM_METADATA is, and what became of its rows.

    ``status`` is that of the task, but COMPLETED_WITH_ERRORS where rows failed; ``progress`` is in percent. At most 100
    errors are kept; ``error_count`` has them all.
    """

    task_id: str
    status: str
    progress: int
    inserted_rows: int
    error_count: int
    sample_errors: list[FieldError]


class IssueSummary(Record):
    """The number of media with an issue, and the limit that the issue was held against.

    ``issue_type`` is the name of a type of :mod:`framedex.issue_types`.
    """

    issue_type: str
    count: int
    threshold: float | None
    meaning: str


@dataclass(frozen=True)
class Condition:
    """A condition on the rows of the relation ``media``.

    Attributes:
        text: an SQL expression that is TRUE or FALSE for each row, never NULL.
        params: the values of ``$1``, ``$2``…
        columns: names of the columns that it reads, stored or of :mod:`framedex.path_columns`.
        searches: what was searched for, in the order of *relations*.
        relations: the rows that each search found, by the name of the relation that the text has for it. Conditions are
            compared by their searches, not by these.
    """

    text: str = "TRUE"
    params: tuple[Any, ...] = ()
    columns: frozenset[str] = frozenset()
    searches: tuple[Any, ...] = ()
    relations: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)


class ExportResult(Record):
    """What an export wrote.

    ``missing_images`` are the file paths of pictures that could not be read, or that a link leads out of their source
    to, and that are therefore not in the ZIP, the first 10,000 of them. ``message`` says in words what was written, how
    many could not be read or lie outside, and what the format does not hold. ``total_objects`` are in the media that
    were written.
    """

    path: str
    total_media_items: int
    total_objects: int = 0
    images: int
    missing_images: list[str]
    message: str


class ExportStatus(StrEnum):
    """Where an export stands."""

    PENDING = "PENDING"
    RUNNING = "RUNNING"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    REJECTED = "REJECTED"

    @property
    def final(self) -> bool:
        """Whether nothing more will happen."""
        return self not in (ExportStatus.PENDING, ExportStatus.RUNNING)


class ExportRecord(Record):
    """An export, as the interface returns it.

    ``progress`` is in percent, 0 to 100; ``entities_count`` is how many media it has, or objects where these were
    chosen, None until that is known; ``result_message`` says what was written, or what went wrong. ``download_uri`` is
    where the ZIP file is once it is COMPLETED.
    """

    id: str
    dataset_id: str
    created_at: datetime
    status: ExportStatus
    progress: int
    entities_count: int | None
    result_message: str
    download_uri: str | None


class CleanupSummary(Record):
    """What a clean-up plan removes.

    ``removed`` media go, ``kept`` stay in place of others of their groups; ``size_bytes`` is what the files of those
    that go take. ``counts`` says of how many an issue is the reason, by its name, or that they repeat others:
    ``duplicates``. Each is counted once.
    """

    removed: int
    kept: int
    size_bytes: int
    counts: dict[str, int]


class CleanupResult(Record):
    """What a clean-up did.

    ``removed`` media were removed; ``snapshot`` keeps the state before, None where nothing was to be removed. Where
    files were to be deleted, ``files_deleted`` were, and ``files_left`` were left alone: ``files_failed`` has the first
    thousand of these, each with the reason.
    """

    removed: int
    snapshot: Snapshot | None
    files_deleted: int
    files_left: int
    files_failed: list[tuple[str, str]]


class VacuumResult(Record):
    """What :meth:`framedex.Workspace.vacuum` freed.

    ``freed_bytes`` is what the disk has more now: files that a clone has, too, do not count. ``versions`` were of
    tables that stay; ``tables`` are in no kept state of their dataset; ``datasets`` had no record any more;
    ``thumbnails`` were of media that are gone; ``uploaded_bytes``, part of those freed, were in uploaded files that no
    kept state has; ``partial_files`` never became whole. ``skipped`` says by the name of a dataset why it, or the rest
    of it, was left alone.
    """

    freed_bytes: int
    versions: int
    tables: int
    datasets: int
    thumbnails: int
    uploaded_bytes: int
    partial_files: int
    skipped: dict[str, str]


class Finding(Record):
    """A fault that a check found: ``path`` is the file or folder, ``remedy`` what can be done about it."""

    path: str
    fault: str
    remedy: str
    repaired: bool = False


class CheckResult(Record):
    """What :meth:`framedex.Workspace.check` found.

    ``counts`` are of what was looked at: ``datasets, table versions, columns, uploaded files, cached files``.
    """

    findings: list[Finding]
    counts: dict[str, int]

    @property
    def is_sound(self) -> bool:
        """Whether nothing is wrong, or nothing any more."""
        return all(finding.repaired for finding in self.findings)


class RecoveryResult(Record):
    """What :meth:`framedex.Workspace.recover` brought back.

    ``datasets`` are the names of the datasets, oldest first, and ``snapshots`` counts theirs. ``kept_as`` are the files
    that the damaged catalog was moved to. ``left_out`` says in a line each what could not be brought back.
    """

    datasets: list[str]
    snapshots: int
    kept_as: list[str]
    left_out: list[str]


class Generation(Record):
    """The versions of a dataset's tables that belong together, and what was measured with them.

    ``n_images`` counts all media, frames of videos too.
    """

    id: str
    dataset_id: str
    tables: dict[str, int]
    n_images: int
    created_at: datetime
    summary: dict[str, Any]
    embedding_config: EmbeddingConfig | None = None

    @property
    def n_videos(self) -> int:
        """How many videos it has."""
        return int(self.summary.get("n_videos", 0))

    @property
    def n_pictures(self) -> int:
        """How many media are no parts of videos."""
        return self.n_images - int(self.summary.get("n_of_videos", 0))
