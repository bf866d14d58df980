"""An index for pages of a user's notifications."""

from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.create_index("notifications_of_user", "notifications", ["user_id", "number"], unique=False)
