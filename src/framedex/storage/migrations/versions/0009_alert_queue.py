"""Alerts that wait for the service, which notifies users."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    op.create_table(
        "alert_queue",
        sa.Column("view_id", sa.String(36), sa.ForeignKey("saved_views.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("batch", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("queued_at", sa.String(40), nullable=False),
    )
