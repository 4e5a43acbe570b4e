"""What Alembic runs: with a connection that `opening` or the tool gives it, or offline, to print the statements."""

from __future__ import annotations

from alembic import context

from stoker.tracking.store.schema import METADATA

if context.is_offline_mode():
    dialect = context.config.attributes["dialect"]
    context.configure(
        dialect_name=dialect, target_metadata=METADATA, literal_binds=True, transactional_ddl=False
    )
    context.run_migrations()
else:
    context.configure(
        connection=context.config.attributes["connection"],
        target_metadata=METADATA,
        transactional_ddl=False,
    )
    context.run_migrations()
