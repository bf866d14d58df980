"""The Alembic environment: runs migrations on the catalog's connection; it has no command-line mode."""

from alembic import context

from framedex.storage.schema import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
with context.begin_transaction():
    context.run_migrations()
