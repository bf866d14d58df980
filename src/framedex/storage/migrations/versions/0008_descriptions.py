"""Descriptions of datasets, and the datasets that copies were made of."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    op.add_column("datasets", sa.Column("description", sa.Text, nullable=False, server_default=""))
    op.add_column("datasets", sa.Column("source_dataset_id", sa.String(36), nullable=True))
