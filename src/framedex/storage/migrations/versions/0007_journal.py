"""The journal: the steps by which people edited a dataset."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    op.create_table(
        "journal",
        sa.Column("dataset_id", sa.String(36), sa.ForeignKey("datasets.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("step", sa.Integer, primary_key=True),
        sa.Column("operation", sa.String(64), nullable=False),
        sa.Column("created_by", sa.String(255), nullable=False),
        sa.Column("created_at", sa.String(40), nullable=False),
        sa.Column("n_media", sa.Integer, nullable=False),
        sa.Column("change", sa.JSON, nullable=False),
        sa.Column("file", sa.String(64), nullable=True),
        sa.Column("digest", sa.String(64), nullable=True),
        sa.Column("n_bytes", sa.Integer, nullable=False),
        sa.Column("generation", sa.String(36), nullable=True),
        sa.Column("reason", sa.Text, nullable=True),
        sa.Column("undone_by", sa.String(255), nullable=True),
        sa.Column("undone_at", sa.String(40), nullable=True),
    )
