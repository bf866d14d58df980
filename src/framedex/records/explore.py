"""Records of the Explore view: clusters, their previews, and counts of issues."""

from enum import StrEnum

from framedex.records.base import Record

CLUSTER_LEVELS = 5


class EntityType(StrEnum):
    """Kind of entity that Explore and exports work on."""

    IMAGES = "IMAGES"
    OBJECTS = "OBJECTS"
    VIDEOS = "VIDEOS"


class Preview(Record):
    """One media item of a cluster, as the interface shows it."""

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
    """Details of the computation of an Explore result."""

    used_duckdb: bool


class ExploreResult(Record):
    """A page of clusters, largest first."""

    clusters: list[Cluster]
    metadata: ExploreMetadata


class IssueSummary(Record):
    """The number of media with an issue, and the threshold that decides it.

    ``issue_type`` is the name of a type of :mod:`framedex.issue_types`. ``note`` is the reason why a dataset lists no
    media with this issue; None if they are listed.
    """

    issue_type: str
    count: int
    threshold: float | None
    meaning: str
    note: str | None = None
