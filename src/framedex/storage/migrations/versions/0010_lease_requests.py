"""Requests for leases, which processes get in this order."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    op.create_table(
        "lease_requests",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column(
            "dataset_id", sa.String(36), sa.ForeignKey("datasets.id", ondelete="CASCADE"), nullable=False, index=True
        ),
        sa.Column("owner", sa.String(255), nullable=False),
    )
