"""The tables of the service's database.

Times are UTC. Names of users and e-mail addresses are compared by their *keys*: normalised (NFKC) and case-folded.
Ids of datasets have no foreign key, because datasets are in the catalog, another file.
"""

from typing import Any

import sqlalchemy as sa

from framedex.access import RealmRole, Role
from framedex.storage.schema import Timestamp

metadata = sa.MetaData()


def _among(column: str, values: Any) -> sa.CheckConstraint:
    return sa.CheckConstraint(f"{column} IN ({', '.join(repr(str(each)) for each in values)})")


def _tenant(*, primary_key: bool = False) -> sa.Column[str]:
    key = sa.ForeignKey("tenants.id", ondelete="CASCADE")
    return sa.Column("tenant_id", sa.String(36), key, primary_key=primary_key, nullable=False)


def _user(name: str = "user_id", *, primary_key: bool = False, **options: Any) -> sa.Column[str]:
    key = sa.ForeignKey("users.id", ondelete="CASCADE")
    return sa.Column(name, sa.String(36), key, primary_key=primary_key, nullable=False, **options)


def _former_user(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.String(36), sa.ForeignKey("users.id", ondelete="SET NULL"), nullable=True)


organizations = sa.Table(
    "organizations",
    metadata,
    sa.Column("id", sa.String(36), primary_key=True),
    sa.Column("name", sa.String(255), nullable=False, unique=True),
    sa.Column("created_at", Timestamp, nullable=False),
    sa.Column("updated_at", Timestamp, nullable=True),
)

tenants = sa.Table(
    "tenants",
    metadata,
    sa.Column("id", sa.String(36), primary_key=True),
    sa.Column("organization_id", sa.String(36), sa.ForeignKey("organizations.id", ondelete="RESTRICT"), nullable=False),
    sa.Column("name", sa.String(255), nullable=False),
    sa.Column("created_at", Timestamp, nullable=False),
    sa.Column("updated_at", Timestamp, nullable=True),
    sa.UniqueConstraint("organization_id", "name"),
)

users = sa.Table(
    "users",
    metadata,
    sa.Column("id", sa.String(36), primary_key=True),
    sa.Column("username", sa.String(255), nullable=False),
    sa.Column("username_key", sa.Text, nullable=False, unique=True),
    sa.Column("email", sa.String(320), nullable=True),
    sa.Column("email_key", sa.Text, nullable=True, unique=True),
    sa.Column("first_name", sa.String(255), nullable=True),
    sa.Column("last_name", sa.String(255), nullable=True),
    sa.Column("enabled", sa.Boolean, nullable=False),
    # An argon2id string; null for accounts of an identity provider, and for the local user.
    sa.Column("password_hash", sa.Text, nullable=True),
    sa.Column("password_temporary", sa.Boolean, nullable=False),
    sa.Column("created_at", Timestamp, nullable=False),
    sa.Column("last_access", Timestamp, nullable=True),
    # Sessions of a lower number have ended.
    sa.Column("epoch", sa.Integer, nullable=False),
)

identities = sa.Table(
    "identities",
    metadata,
    sa.Column("issuer", sa.Text, primary_key=True),
    sa.Column("subject", sa.Text, primary_key=True),
    _user(index=True),
)

user_roles = sa.Table(
    "user_roles",
    metadata,
    _user(primary_key=True),
    sa.Column("role", sa.String(32), primary_key=True),
    _among("role", RealmRole),
)

memberships = sa.Table(
    "memberships",
    metadata,
    _tenant(primary_key=True),
    _user(primary_key=True),
    sa.Column("role", sa.String(16), nullable=False),
    sa.Column("is_primary", sa.Boolean, nullable=False),
    sa.Column("created_at", Timestamp, nullable=False),
    _among("role", Role),
    sa.Index("one_primary_tenant", "user_id", unique=True, sqlite_where=sa.text("is_primary")),
)

dataset_homes = sa.Table(
    "dataset_homes",
    metadata,
    sa.Column("dataset_id", sa.String(36), primary_key=True),
    sa.Column("tenant_id", sa.String(36), sa.ForeignKey("tenants.id", ondelete="RESTRICT"), nullable=False, index=True),
    sa.Column("owner_id", sa.String(36), sa.ForeignKey("users.id", ondelete="SET NULL"), nullable=True, index=True),
    sa.Column("created_at", Timestamp, nullable=False),
)

grants = sa.Table(
    "grants",
    metadata,
    sa.Column("dataset_id", sa.String(36), primary_key=True),
    _user(primary_key=True, index=True),
    sa.Column("role", sa.String(16), nullable=False),
    _former_user("granted_by"),
    sa.Column("created_at", Timestamp, nullable=False),
    _among("role", (Role.VIEWER, Role.EDITOR)),
)

sessions = sa.Table(
    "sessions",
    metadata,
    # The public id, which administrators see; the cookie has a token of which only the hash is stored.
    sa.Column("id", sa.String(36), primary_key=True),
    sa.Column("token_hash", sa.LargeBinary(32), nullable=False, unique=True),
    _user(index=True),
    sa.Column("epoch", sa.Integer, nullable=False),
    sa.Column("ip", sa.String(45), nullable=False),
    sa.Column("user_agent", sa.String(200), nullable=False),
    sa.Column("start", Timestamp, nullable=False),
    sa.Column("last_access", Timestamp, nullable=False),
    sa.Column("expires_at", Timestamp, nullable=False),
    # The id of the session at the identity provider, which may end it.
    sa.Column("provider_session", sa.Text, nullable=True, index=True),
)

api_keys = sa.Table(
    "api_keys",
    metadata,
    sa.Column("key", sa.String(32), primary_key=True),
    _user(unique=True),
    # The secret is computed from the master key, the key and this number; it is not stored.
    sa.Column("version", sa.Integer, nullable=False),
    sa.Column("created_at", Timestamp, nullable=False),
    sa.Column("shown_at", Timestamp, nullable=True),
    sa.Column("revoked_at", Timestamp, nullable=True),
    sa.Column("last_used_at", Timestamp, nullable=True),
)

login_failures = sa.Table(
    "login_failures",
    metadata,
    # A hash of the name, because users type passwords there.
    sa.Column("username_hash", sa.LargeBinary(32), primary_key=True),
    sa.Column("ip", sa.String(45), primary_key=True),
    sa.Column("count", sa.Integer, nullable=False),
    sa.Column("last_at", Timestamp, nullable=False),
)

single_uses = sa.Table(
    "single_uses",
    metadata,
    # A hash of what may be used once: the state of a log-in, the id of a logout token.
    sa.Column("value_hash", sa.LargeBinary(32), primary_key=True),
    sa.Column("expires_at", Timestamp, nullable=False, index=True),
)

notifications = sa.Table(
    "notifications",
    metadata,
    # Streams continue after this number, so it is never used again.
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("id", sa.String(36), nullable=False, unique=True),
    _user(),
    sa.Column("entity_type", sa.String(32), nullable=False),
    sa.Column("entity_id", sa.String(36), nullable=False),
    sa.Column("batch_id", sa.String(36), nullable=False),
    sa.Column("title", sa.Text, nullable=False),
    sa.Column("message", sa.Text, nullable=True),
    sa.Column("metadata", sa.JSON, nullable=False),
    sa.Column("dataset_id", sa.String(36), nullable=True, index=True),
    sa.Column("created_at", Timestamp, nullable=False),
    sa.Column("read_at", Timestamp, nullable=True),
    sa.UniqueConstraint("user_id", "entity_id", "batch_id"),
    sa.Index("unread_notifications", "user_id", "read_at", "number"),
    sa.Index("notifications_of_user", "user_id", "number"),
    sqlite_autoincrement=True,
)

# Alerts for a command or a URL of the operator.
alert_calls = sa.Table(
    "alert_calls",
    metadata,
    sa.Column("id", sa.String(36), primary_key=True),
    sa.Column("target", sa.String(16), primary_key=True),
    sa.Column("body", sa.JSON, nullable=False),
    sa.Column("created_at", Timestamp, nullable=False),
    sa.Column("attempts", sa.Integer, nullable=False),
    # Null once it is done; the row stays for a time, so that it is not made again.
    sa.Column("next_at", Timestamp, nullable=True, index=True),
)

settings = sa.Table(
    "settings",
    metadata,
    sa.Column("key", sa.String(64), primary_key=True),
    sa.Column("value", sa.Text, nullable=False),
    _former_user("changed_by"),
    sa.Column("changed_at", Timestamp, nullable=False),
)

metadata_tasks = sa.Table(
    "metadata_tasks",
    metadata,
    # Also the id of the task that writes the values, once they were sent.
    sa.Column("id", sa.String(36), primary_key=True),
    sa.Column("dataset_id", sa.String(36), nullable=False, index=True),
    sa.Column("field", sa.JSON, nullable=False),
    _former_user("created_by"),
    sa.Column("created_at", Timestamp, nullable=False),
)

exports = sa.Table(
    "exports",
    metadata,
    sa.Column("export_id", sa.String(36), primary_key=True),
    sa.Column("dataset_id", sa.String(36), nullable=False, index=True),
    _former_user("user_id"),
    sa.Column("path", sa.LargeBinary, nullable=False),
    sa.Column("file_name", sa.Text, nullable=False),
    sa.Column("created_at", Timestamp, nullable=False),
    sa.Column("expires_at", Timestamp, nullable=False, index=True),
)

deletions = sa.Table(
    "deletions",
    metadata,
    sa.Column("dataset_id", sa.String(36), primary_key=True),
    # No foreign key, as in the audit, whose entry is made of the row.
    sa.Column("user_id", sa.String(36), nullable=True),
    sa.Column("begun_at", Timestamp, nullable=False),
)

user_deletions = sa.Table(
    "user_deletions",
    metadata,
    sa.Column("user_id", sa.String(36), primary_key=True),
    # No foreign keys: the audit's entry is made of the row, after the user.
    sa.Column("actor_id", sa.String(36), nullable=True),
    sa.Column("was_enabled", sa.Boolean, nullable=False),
    sa.Column("begun_at", Timestamp, nullable=False),
)

audit = sa.Table(
    "audit",
    metadata,
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("at", Timestamp, nullable=False, index=True),
    # No foreign key: what a user did stays known after the account was deleted.
    sa.Column("user_id", sa.String(36), nullable=True),
    sa.Column("action", sa.String(64), nullable=False),
    sa.Column("dataset_id", sa.String(36), nullable=True),
    sa.Column("target", sa.Text, nullable=True),
    sa.Column("ip", sa.String(45), nullable=True),
    sa.Column("outcome", sa.String(16), nullable=False),
    sqlite_autoincrement=True,
)
