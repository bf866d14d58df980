"""The Alembic environment: runs migrations on the connection of the service's database, without a command-line mode."""

from alembic import context

from framedex.storage.service_db.schema import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
with context.begin_transaction():
    context.run_migrations()
