"""Values that may be used once. Each function takes an open connection of the service's database."""

from datetime import datetime

import sqlalchemy as sa

from framedex.storage.service_db.schema import single_uses


def use(connection: sa.Connection, value_hash: bytes, expires_at: datetime) -> bool:
    """Note the use of a value; return whether it was the first.

    Args:
        connection: of the service's database.
        value_hash: a hash of the value, 32 bytes.
        expires_at: the time after which the value is refused for its age, so that nothing need be known of it.
    """
    query = sa.select(single_uses.c.value_hash).where(single_uses.c.value_hash == value_hash)
    if connection.execute(query).first() is not None:
        return False
    connection.execute(single_uses.insert().values(value_hash=value_hash, expires_at=expires_at))
    return True


def delete_expired(connection: sa.Connection, now: datetime) -> int:
    """Delete the values that are refused for their age; return their number."""
    return int(connection.execute(single_uses.delete().where(single_uses.c.expires_at < now)).rowcount)
