"""Records of the Explore view: clusters, their previews, and counts of issues."""

from enum import StrEnum

from pydantic import ConfigDict, Field

from framedex.records.base import Record
from framedex.records.edits import FieldValue

CLUSTER_LEVELS = 5


class EntityType(StrEnum):
    """Kind of entity that Explore and exports work on."""

    IMAGES = "IMAGES"
    OBJECTS = "OBJECTS"
    VIDEOS = "VIDEOS"


class Preview(Record):
    """One media item of a cluster, as the interface shows it.

    ``copy_reason``, in JSON ``copy``, says how it is a verified copy of the image that was searched by, as ``cropped to
    25%``; None for other media.
    """

    model_config = ConfigDict(validate_by_name=True, validate_by_alias=True, serialize_by_alias=True)

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
    copy_reason: str | None = Field(default=None, alias="copy")

    def __hash__(self) -> int:
        """Return a hash that is equal for equal previews."""
        return hash(self.media_id)


class MediaIssue(Record):
    """An issue of a media item, with its confidence, 0 to 1."""

    issue_type: str
    confidence: float


class MediaItem(Preview):
    """All that is known of one media item or object.

    ``cluster_ids`` are those of the levels, the finest first; empty before the first index. ``error`` says why the file
    could not be decoded, and ``gaps`` what is damaged if it was decoded nevertheless. ``fault`` is the kind of these
    reasons: ``damaged``, ``not_supported``, ``over_limit`` or ``unreadable``; None for a sound file, and for one that
    an older version could not decode. ``file_size`` is in bytes, that of the video for a frame. ``shown_from`` and
    ``shown_to`` are the values that are shown black and white, of an image of more than 8 bits; None where values are
    shown as they are. ``n_pages`` is the number of pages or frames in its file, of which the first is shown, if
    there are several.
    """

    issues: list[MediaIssue]
    field_values: list[FieldValue]
    file_size: int | None
    cluster_ids: list[str]
    error: str | None
    fault: str | None = None
    gaps: str | None = None
    shown_from: float | None = None
    shown_to: float | None = None
    n_pages: int | None = None


class Cluster(Record):
    """One cluster of an Explore result; counts that do not apply are -1.

    ``name`` is the most frequent labels of the members with their shares; else words of captions and file names that
    set the members apart from the rest of the dataset; None without such words.
    """

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
    name: str | None = None


class ClusterCounts(Record):
    """The number of clusters of a level, and of the media in them: for videos, of their frames."""

    n_clusters: int
    n_media: int


class ExploreMetadata(Record):
    """Details of the computation of an Explore result."""

    used_duckdb: bool


class ExploreResult(Record):
    """A page of clusters, largest first.

    ``total_pages`` is the number of pages, ``current_page`` that of this page, from 0. ``notes`` say why there are no
    clusters: which names in the filters do not exist, and the nearest that do.
    """

    clusters: list[Cluster]
    metadata: ExploreMetadata
    total_pages: int = 0
    current_page: int = 0
    notes: list[str] = Field(default_factory=list)


class LabelCount(Record):
    """The number of images, or of objects, that have a label."""

    name: str
    count: int


class IssueSummary(Record):
    """The number of media with an issue, and the threshold that decides it.

    ``issue_type`` is the name of a type of :mod:`framedex.issue_types`. ``note`` is a warning if the issues of this
    type are uncertain in a dataset.
    """

    issue_type: str
    count: int
    threshold: float | None
    meaning: str
    note: str | None = None


class IssueLimit(Record):
    """The limit of an issue type in a dataset, in the unit of the type's value.

    ``limit`` decides: the user's if ``is_set``, else ``default``. None stands for no limit: no value is an issue.
    Values above the limit are an issue if ``above``, values below it otherwise; near-duplicates also at the limit.
    """

    issue_type: str
    limit: float | None
    default: float | None
    is_set: bool
    above: bool
    meaning: str


class ValueHistogram(Record):
    """The distribution of the values of an issue type.

    ``counts[i]`` is the number of values from ``edges[i]`` to below ``edges[i + 1]``; the last bin includes its end.
    ``missing`` is the number of media without a value, ``outside`` that of values in none of the bins. ``limit`` and
    ``above`` are those of :class:`IssueLimit`.
    """

    issue_type: str
    meaning: str
    edges: list[float]
    counts: list[int]
    missing: int
    outside: int
    limit: float | None
    above: bool
