"""Deletions of datasets that have begun."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    op.create_table(
        "deletions",
        sa.Column("dataset_id", sa.String(36), primary_key=True),
        sa.Column("user_id", sa.String(36), nullable=True),
        sa.Column("begun_at", sa.String(40), nullable=False),
    )
