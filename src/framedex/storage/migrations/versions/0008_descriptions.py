"""Descriptions of datasets."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    op.add_column("datasets", sa.Column("description", sa.Text, nullable=False, server_default=""))
