"""The first catalog: datasets, generations, source roots, tasks."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "datasets",
        sa.Column("id", sa.String(36), primary_key=True),
        sa.Column("name", sa.String(255), nullable=False, unique=True),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("progress", sa.Integer, nullable=False),
        sa.Column("owned_by", sa.String(255), nullable=False),
        sa.Column("created_at", sa.String(40), nullable=False),
        sa.Column("head", sa.String(36), nullable=True),
        sa.Column("n_images", sa.Integer, nullable=False),
        sa.Column("n_videos", sa.Integer, nullable=False),
        sa.Column("embedding_config", sa.JSON, nullable=True),
    )
    op.create_table(
        "generations",
        sa.Column("id", sa.String(36), primary_key=True),
        sa.Column(
            "dataset_id",
            sa.String(36),
            sa.ForeignKey("datasets.id", ondelete="CASCADE"),
            nullable=False,
            index=True,
        ),
        sa.Column("tables", sa.JSON, nullable=False),
        sa.Column("n_images", sa.Integer, nullable=False),
        sa.Column("created_at", sa.String(40), nullable=False),
        sa.Column("summary", sa.JSON, nullable=False),
    )
    op.create_table(
        "source_roots",
        sa.Column("dataset_id", sa.String(36), sa.ForeignKey("datasets.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("number", sa.Integer, primary_key=True),
        sa.Column("path", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "tasks",
        sa.Column("id", sa.String(36), primary_key=True),
        sa.Column("dataset_id", sa.String(36), nullable=False, index=True),
        sa.Column("dataset_name", sa.String(255), nullable=False),
        sa.Column("created_by", sa.String(255), nullable=False),
        sa.Column("task_type", sa.String(32), nullable=False),
        sa.Column("status", sa.String(16), nullable=False, index=True),
        sa.Column("status_message", sa.Text, nullable=False),
        sa.Column("progress_percentage", sa.Integer, nullable=True),
        sa.Column("error_message", sa.Text, nullable=True),
        sa.Column("start_time", sa.String(40), nullable=False),
        sa.Column("end_time", sa.String(40), nullable=True),
        sa.Column("owner", sa.String(255), nullable=False),
        sa.Column("heartbeat_at", sa.String(40), nullable=False),
    )
