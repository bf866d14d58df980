"""User accounts that made datasets."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    op.add_column("datasets", sa.Column("creator_id", sa.String(36), nullable=True))
