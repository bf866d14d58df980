"""Snapshots and exports; tasks that any process can stop, do again and go on with."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.add_column("datasets", sa.Column("current_snapshot", sa.String(36), nullable=True))
    op.add_column("generations", sa.Column("embedding_config", sa.JSON, nullable=True))
    op.execute(
        "UPDATE generations SET embedding_config = "
        "(SELECT embedding_config FROM datasets WHERE datasets.id = generations.dataset_id)"
    )
    op.add_column(
        "tasks", sa.Column("abort_requested", sa.Boolean, nullable=False, default=False, server_default=sa.false())
    )
    op.add_column("tasks", sa.Column("config", sa.JSON, nullable=True))
    op.add_column("tasks", sa.Column("resume", sa.JSON, nullable=True))
    op.add_column("tasks", sa.Column("result", sa.JSON, nullable=True))
    _create_snapshots()
    _create_exports()


def _create_snapshots() -> None:
    op.create_table(
        "snapshots",
        sa.Column("id", sa.String(36), primary_key=True),
        sa.Column(
            "dataset_id",
            sa.String(36),
            sa.ForeignKey("datasets.id", ondelete="CASCADE"),
            nullable=False,
            index=True,
        ),
        sa.Column("generation", sa.String(36), nullable=False),
        sa.Column("name", sa.String(400), nullable=False),
        sa.Column("description", sa.Text, nullable=False),
        sa.Column("created_at", sa.String(40), nullable=False),
        sa.Column("created_by", sa.String(255), nullable=False),
        sa.Column("reason", sa.String(16), nullable=False),
        sa.Column("n_images", sa.Integer, nullable=False),
        sa.Column("n_videos", sa.Integer, nullable=False),
        sa.Column("training_model_id", sa.String(36), nullable=True),
        sa.Column("training_model_name", sa.String(255), nullable=True),
        sa.Column("deleted_at", sa.String(40), nullable=True),
    )


def _create_exports() -> None:
    op.create_table(
        "exports",
        sa.Column("id", sa.String(36), primary_key=True),
        sa.Column("dataset_id", sa.String(36), nullable=False, index=True),
        sa.Column("created_at", sa.String(40), nullable=False),
        sa.Column("created_by", sa.String(255), nullable=False),
        sa.Column("status", sa.String(16), nullable=False, index=True),
        sa.Column("progress", sa.Integer, nullable=False),
        sa.Column("entities_count", sa.Integer, nullable=True),
        sa.Column("result_message", sa.Text, nullable=False),
        sa.Column("path", sa.LargeBinary, nullable=False),
        sa.Column("owner", sa.String(255), nullable=False),
        sa.Column("heartbeat_at", sa.String(40), nullable=False),
    )
