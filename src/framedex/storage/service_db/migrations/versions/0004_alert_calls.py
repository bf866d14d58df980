"""Alerts that are to be passed to a command or a URL of the operator."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    op.create_table(
        "alert_calls",
        sa.Column("id", sa.String(36), primary_key=True),
        sa.Column("target", sa.String(16), primary_key=True),
        sa.Column("body", sa.JSON, nullable=False),
        sa.Column("created_at", sa.String(40), nullable=False),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("next_at", sa.String(40), nullable=True),
    )
    op.create_index("ix_alert_calls_next_at", "alert_calls", ["next_at"], unique=False)
