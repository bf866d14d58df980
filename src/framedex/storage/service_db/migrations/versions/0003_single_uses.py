"""Values that may be used once, in the place of log-ins that are under way."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.drop_table("oidc_logins")
    op.create_table(
        "single_uses",
        sa.Column("value_hash", sa.LargeBinary(32), nullable=False),
        sa.Column("expires_at", sa.String(40), nullable=False),
        sa.PrimaryKeyConstraint("value_hash"),
    )
    op.create_index(op.f("ix_single_uses_expires_at"), "single_uses", ["expires_at"], unique=False)
