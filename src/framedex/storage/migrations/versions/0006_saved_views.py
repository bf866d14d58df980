"""Saved views and their trends."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    op.create_table(
        "saved_views",
        sa.Column("id", sa.String(36), primary_key=True),
        sa.Column("dataset_id", sa.String(36), sa.ForeignKey("datasets.id", ondelete="CASCADE"), nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("name_key", sa.Text, nullable=False),
        sa.Column("created_at", sa.String(40), nullable=False),
        sa.Column("created_by", sa.String(255), nullable=False),
        sa.Column("creator_id", sa.String(36), nullable=True),
        sa.Column("entity_type", sa.String(16), nullable=False),
        sa.Column("threshold", sa.Text, nullable=True),
        sa.Column("caption", sa.Text, nullable=True),
        sa.Column("vql", sa.Text, nullable=False),
        sa.Column("sort_column", sa.Text, nullable=True),
        sa.Column("is_descending", sa.Boolean, nullable=False),
        sa.Column("monitoring_enabled", sa.Boolean, nullable=False),
        sa.Column("monitoring_started_at", sa.String(40), nullable=False),
        sa.Column("first_batch", sa.Integer, nullable=False),
        sa.Column("first_alert", sa.Integer, nullable=False),
        sa.Column("alerting_enabled", sa.Boolean, nullable=False),
        sa.Column("n_images", sa.Integer, nullable=False),
        sa.Column("n_objects", sa.Integer, nullable=False),
        sa.Column("n_video_frames", sa.Integer, nullable=False),
        sa.Column("evaluation_error", sa.Text, nullable=True),
        sa.UniqueConstraint("dataset_id", "name_key"),
    )
    op.create_table(
        "trend_points",
        sa.Column("view_id", sa.String(36), sa.ForeignKey("saved_views.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("batch", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("timestamp", sa.String(40), nullable=False),
        sa.Column("count", sa.Integer, nullable=False),
        sa.Column("is_alert", sa.Boolean, nullable=False),
    )
