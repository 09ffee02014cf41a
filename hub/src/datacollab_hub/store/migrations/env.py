"""The frame of Alembic's steps: on the given connection, in its transaction."""

from __future__ import annotations

from alembic import context
from sqlalchemy import Connection

__all__: list[str] = []


def _run(connection: Connection) -> None:
    # SQLite changes few things in place, so Alembic copies the table.
    context.configure(connection=connection, render_as_batch=connection.dialect.name == "sqlite")
    context.run_migrations()


# Whoever imports this file as any other has no configuration there.
if getattr(context, "config", None) is not None:
    _run(context.config.attributes["connection"])
