"""Leases: the right of one process to write the tables of a dataset."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    op.create_table(
        "leases",
        sa.Column("dataset_id", sa.String(36), sa.ForeignKey("datasets.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("token", sa.String(36), nullable=False, unique=True),
        sa.Column("owner", sa.String(255), nullable=False),
        sa.Column("operation", sa.String(64), nullable=False),
        sa.Column("since", sa.String(40), nullable=False),
        sa.Column("heartbeat_at", sa.String(40), nullable=False),
    )
