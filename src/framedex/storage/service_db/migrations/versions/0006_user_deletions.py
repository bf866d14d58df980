"""Deletions of users that have begun."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    op.create_table(
        "user_deletions",
        sa.Column("user_id", sa.String(36), primary_key=True),
        sa.Column("actor_id", sa.String(36), nullable=True),
        sa.Column("was_enabled", sa.Boolean, nullable=False),
        sa.Column("begun_at", sa.String(40), nullable=False),
    )
