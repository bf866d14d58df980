"""Upload transactions."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    op.create_table(
        "uploads",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column(
            "dataset_id",
            sa.String(36),
            sa.ForeignKey("datasets.id", ondelete="CASCADE"),
            nullable=False,
            index=True,
        ),
        sa.Column("created_by", sa.String(255), nullable=False),
        sa.Column("created_at", sa.String(40), nullable=False),
        sa.Column("changed_at", sa.String(40), nullable=False),
        sa.Column("n_files", sa.Integer, nullable=False),
        sa.Column("n_bytes", sa.Integer, nullable=False),
        sa.Column("list_bytes", sa.Integer, nullable=False),
        sa.Column("task_id", sa.String(36), nullable=True, index=True),
        sa.Column("collected", sa.String(36), nullable=True),
        sqlite_autoincrement=True,
    )
