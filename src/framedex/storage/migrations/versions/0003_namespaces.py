"""Namespaces of datasets, and the number of a dataset's objects.

SQLite cannot drop the constraint that names are unique, so the table is rebuilt, with enforcement of foreign keys off.
"""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

_KEPT = "id, name, status, progress, owned_by, created_at, head, n_images, n_videos, embedding_config, current_snapshot"
_N_OBJECTS = """
    (SELECT json_extract(summary, '$.objects.n_objects') FROM generations
     WHERE generations.id = datasets.head AND json_valid(summary)
     AND json_type(summary, '$.objects.n_objects') = 'integer')
"""


def upgrade() -> None:
    op.create_table(
        "datasets_rebuilt",
        sa.Column("id", sa.String(36), primary_key=True),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("progress", sa.Integer, nullable=False),
        sa.Column("owned_by", sa.String(255), nullable=False),
        sa.Column("created_at", sa.String(40), nullable=False),
        sa.Column("head", sa.String(36), nullable=True),
        sa.Column("n_images", sa.Integer, nullable=False),
        sa.Column("n_videos", sa.Integer, nullable=False),
        sa.Column("embedding_config", sa.JSON, nullable=True),
        sa.Column("current_snapshot", sa.String(36), nullable=True),
        sa.Column("namespace", sa.String(255), nullable=False, server_default=""),
        sa.Column("n_objects", sa.Integer, nullable=False, server_default="0"),
        sa.UniqueConstraint("namespace", "name"),
    )
    op.execute(
        f"INSERT INTO datasets_rebuilt ({_KEPT}, namespace, n_objects) "
        f"SELECT {_KEPT}, '', coalesce({_N_OBJECTS}, 0) FROM datasets"
    )
    op.drop_table("datasets")
    op.rename_table("datasets_rebuilt", "datasets")
