"""The tables of the catalog, which hold all small transactional data."""

from datetime import UTC, datetime

import sqlalchemy as sa

from framedex.storage.row_values import stored_time


class Timestamp(sa.types.TypeDecorator[datetime]):
    """A time in UTC, stored as ISO 8601 text so that SQLite preserves its order and its time zone."""

    impl = sa.String(40)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: sa.Dialect) -> str | None:
        """Return the text to store."""
        return None if value is None else value.astimezone(UTC).isoformat(timespec="microseconds")

    def process_result_value(self, value: str | None, dialect: sa.Dialect) -> datetime | None:
        """Return the time of a stored text; raise WrongValue if it is none."""
        return None if value is None else stored_time(value)


BLOBS_ROOT = "blobs:"
"""The source root of uploaded media."""

metadata = sa.MetaData()

datasets = sa.Table(
    "datasets",
    metadata,
    sa.Column("id", sa.String(36), primary_key=True),
    sa.Column("name", sa.String(255), nullable=False),
    sa.Column("status", sa.String(16), nullable=False),
    sa.Column("progress", sa.Integer, nullable=False, default=0),
    sa.Column("owned_by", sa.String(255), nullable=False),
    sa.Column("created_at", Timestamp, nullable=False),
    sa.Column("head", sa.String(36), nullable=True),
    sa.Column("n_images", sa.Integer, nullable=False, default=0),
    sa.Column("n_videos", sa.Integer, nullable=False, default=0),
    sa.Column("embedding_config", sa.JSON, nullable=True),
    sa.Column("current_snapshot", sa.String(36), nullable=True),
    # Names are unique within a namespace; the default namespace is empty.
    sa.Column("namespace", sa.String(255), nullable=False, default="", server_default=""),
    sa.Column("n_objects", sa.Integer, nullable=False, default=0, server_default="0"),
    sa.Column("description", sa.Text, nullable=False, default="", server_default=""),
    # The dataset that a clone or an enriched dataset was made of; no foreign key, as that one may be deleted.
    sa.Column("source_dataset_id", sa.String(36), nullable=True),
    # The user account that made the dataset, in the service's database; null for datasets of the library.
    sa.Column("creator_id", sa.String(36), nullable=True),
    sa.UniqueConstraint("namespace", "name"),
)

generations = sa.Table(
    "generations",
    metadata,
    sa.Column("id", sa.String(36), primary_key=True),
    sa.Column("dataset_id", sa.ForeignKey("datasets.id", ondelete="CASCADE"), nullable=False, index=True),
    sa.Column("tables", sa.JSON, nullable=False),
    sa.Column("n_images", sa.Integer, nullable=False),
    sa.Column("created_at", Timestamp, nullable=False),
    sa.Column("summary", sa.JSON, nullable=False),
    sa.Column("embedding_config", sa.JSON, nullable=True),
)

snapshots = sa.Table(
    "snapshots",
    metadata,
    sa.Column("id", sa.String(36), primary_key=True),
    sa.Column("dataset_id", sa.ForeignKey("datasets.id", ondelete="CASCADE"), nullable=False, index=True),
    # The snapshot retains this generation; see snapshot_rows.prune_generations.
    sa.Column("generation", sa.String(36), nullable=False),
    sa.Column("name", sa.String(400), nullable=False),
    sa.Column("description", sa.Text, nullable=False),
    sa.Column("created_at", Timestamp, nullable=False),
    sa.Column("created_by", sa.String(255), nullable=False),
    sa.Column("reason", sa.String(16), nullable=False),
    sa.Column("n_images", sa.Integer, nullable=False),
    sa.Column("n_videos", sa.Integer, nullable=False),
    sa.Column("training_model_id", sa.String(36), nullable=True),
    sa.Column("training_model_name", sa.String(255), nullable=True),
    sa.Column("deleted_at", Timestamp, nullable=True),
)

source_roots = sa.Table(
    "source_roots",
    metadata,
    sa.Column("dataset_id", sa.ForeignKey("datasets.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("path", sa.LargeBinary, nullable=False),
)

tasks = sa.Table(
    "tasks",
    metadata,
    sa.Column("id", sa.String(36), primary_key=True),
    # No foreign key: tasks of deleted datasets stay listed.
    sa.Column("dataset_id", sa.String(36), nullable=False, index=True),
    sa.Column("dataset_name", sa.String(255), nullable=False),
    sa.Column("created_by", sa.String(255), nullable=False),
    sa.Column("task_type", sa.String(32), nullable=False),
    sa.Column("status", sa.String(16), nullable=False, index=True),
    sa.Column("status_message", sa.Text, nullable=False, default=""),
    sa.Column("progress_percentage", sa.Integer, nullable=True),
    sa.Column("error_message", sa.Text, nullable=True),
    sa.Column("start_time", Timestamp, nullable=False),
    sa.Column("end_time", Timestamp, nullable=True),
    sa.Column("owner", sa.String(255), nullable=False),
    sa.Column("heartbeat_at", Timestamp, nullable=False),
    sa.Column("abort_requested", sa.Boolean, nullable=False, default=False, server_default=sa.false()),
    # The task's parameters, so that any process can retry it; null if only its own process can.
    sa.Column("config", sa.JSON, nullable=True),
    # The last checkpoint, from which the task can resume.
    sa.Column("resume", sa.JSON, nullable=True),
    # Results by row, for task types that report them.
    sa.Column("result", sa.JSON, nullable=True),
)

exports = sa.Table(
    "exports",
    metadata,
    sa.Column("id", sa.String(36), primary_key=True),
    sa.Column("dataset_id", sa.String(36), nullable=False, index=True),
    sa.Column("created_at", Timestamp, nullable=False),
    sa.Column("created_by", sa.String(255), nullable=False),
    sa.Column("status", sa.String(16), nullable=False, index=True),
    sa.Column("progress", sa.Integer, nullable=False, default=0),
    sa.Column("entities_count", sa.Integer, nullable=True),
    sa.Column("result_message", sa.Text, nullable=False, default=""),
    sa.Column("path", sa.LargeBinary, nullable=False),
    sa.Column("owner", sa.String(255), nullable=False),
    sa.Column("heartbeat_at", Timestamp, nullable=False),
)

leases = sa.Table(
    "leases",
    metadata,
    sa.Column("dataset_id", sa.ForeignKey("datasets.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("token", sa.String(36), nullable=False, unique=True),
    sa.Column("owner", sa.String(255), nullable=False),
    sa.Column("operation", sa.String(64), nullable=False),
    sa.Column("since", Timestamp, nullable=False),
    sa.Column("heartbeat_at", Timestamp, nullable=False),
)

lease_requests = sa.Table(
    "lease_requests",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),  # in the order of the requests
    sa.Column("dataset_id", sa.ForeignKey("datasets.id", ondelete="CASCADE"), nullable=False, index=True),
    sa.Column("owner", sa.String(255), nullable=False),
)

uploads = sa.Table(
    "uploads",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("dataset_id", sa.ForeignKey("datasets.id", ondelete="CASCADE"), nullable=False, index=True),
    sa.Column("created_by", sa.String(255), nullable=False),
    sa.Column("created_at", Timestamp, nullable=False),
    sa.Column("changed_at", Timestamp, nullable=False),
    sa.Column("n_files", sa.Integer, nullable=False, default=0),
    sa.Column("n_bytes", sa.Integer, nullable=False, default=0),
    # The length of the file list in the dataset's folder; further bytes are those of a call that did not end.
    sa.Column("list_bytes", sa.Integer, nullable=False, default=0),
    # The task that processes the files, and the upload that it reads; null while the transaction is open.
    sa.Column("task_id", sa.String(36), nullable=True, index=True),
    sa.Column("collected", sa.String(36), nullable=True),
    sqlite_autoincrement=True,  # an id is never used again
)

journal = sa.Table(
    "journal",
    metadata,
    sa.Column("dataset_id", sa.ForeignKey("datasets.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("step", sa.Integer, primary_key=True),
    sa.Column("operation", sa.String(64), nullable=False),
    sa.Column("created_by", sa.String(255), nullable=False),
    sa.Column("created_at", Timestamp, nullable=False),
    sa.Column("n_media", sa.Integer, nullable=False),
    # What was changed, but for values of media, which are in the file.
    sa.Column("change", sa.JSON, nullable=False),
    sa.Column("file", sa.String(64), nullable=True),
    sa.Column("digest", sa.String(64), nullable=True),
    sa.Column("n_bytes", sa.Integer, nullable=False),
    # The generation to which undoing it, or doing it again, returns; null for steps that keep values.
    sa.Column("generation", sa.String(36), nullable=True),
    # Why it cannot be undone; null if it can.
    sa.Column("reason", sa.Text, nullable=True),
    sa.Column("undone_by", sa.String(255), nullable=True),
    sa.Column("undone_at", Timestamp, nullable=True),
)

saved_views = sa.Table(
    "saved_views",
    metadata,
    sa.Column("id", sa.String(36), primary_key=True),
    sa.Column("dataset_id", sa.ForeignKey("datasets.id", ondelete="CASCADE"), nullable=False),
    sa.Column("name", sa.String(255), nullable=False),
    # The name without case, see naming.name_key.
    sa.Column("name_key", sa.Text, nullable=False),
    sa.Column("created_at", Timestamp, nullable=False),
    sa.Column("created_by", sa.String(255), nullable=False),
    sa.Column("creator_id", sa.String(36), nullable=True),
    sa.Column("entity_type", sa.String(16), nullable=False),
    sa.Column("threshold", sa.Text, nullable=True),
    sa.Column("caption", sa.Text, nullable=True),
    # A JSON array.
    sa.Column("vql", sa.Text, nullable=False),
    sa.Column("sort_column", sa.Text, nullable=True),
    sa.Column("is_descending", sa.Boolean, nullable=False, default=False),
    sa.Column("monitoring_enabled", sa.Boolean, nullable=False, default=True),
    sa.Column("monitoring_started_at", Timestamp, nullable=False),
    # Earlier batches are not evaluated; evaluations of batches before the second number raise no alert.
    sa.Column("first_batch", sa.Integer, nullable=False),
    sa.Column("first_alert", sa.Integer, nullable=False),
    sa.Column("alerting_enabled", sa.Boolean, nullable=False, default=True),
    # Results in all media at the last evaluation; -1 before the first one.
    sa.Column("n_images", sa.Integer, nullable=False, default=-1),
    sa.Column("n_objects", sa.Integer, nullable=False, default=-1),
    sa.Column("n_video_frames", sa.Integer, nullable=False, default=-1),
    sa.Column("evaluation_error", sa.Text, nullable=True),
    sa.UniqueConstraint("dataset_id", "name_key"),
)

trend_points = sa.Table(
    "trend_points",
    metadata,
    sa.Column("view_id", sa.ForeignKey("saved_views.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("batch", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("timestamp", Timestamp, nullable=False),
    sa.Column("count", sa.Integer, nullable=False),
    sa.Column("is_alert", sa.Boolean, nullable=False),
)

# Alerts of which users are to be notified.
alert_queue = sa.Table(
    "alert_queue",
    metadata,
    sa.Column("view_id", sa.ForeignKey("saved_views.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("batch", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("queued_at", Timestamp, nullable=False),
)
