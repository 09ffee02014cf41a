"""Bringing the database to this version of the program, or back, by Alembic."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util.exc import CommandError
from sqlalchemy import Engine, inspect

from datacollab.errors import ExchangeError

from ._database import transaction

__all__ = ["check_current", "current", "downgrade", "is_empty", "newest", "upgrade"]

_SCRIPTS = Path(__file__).parent / "migrations"


def upgrade(engine: Engine, revision: str = "head") -> None:
    """Bring an older or empty database to a revision; all of it, or nothing where the database can undo it."""
    _run(engine, revision, up=True)


def downgrade(engine: Engine, revision: str) -> None:
    """Bring a database back to an earlier revision, or to ``base``, which is nothing: all in it is lost then."""
    _run(engine, revision, up=False)


def current(engine: Engine) -> str | None:
    """The database's revision; None where it is empty."""
    with transaction(engine, reading=True) as connection:
        return MigrationContext.configure(connection).get_current_revision()


def is_empty(engine: Engine) -> bool:
    """Whether no hub has made its tables in a database yet."""
    return not inspect(engine).get_table_names()


@cache
def newest() -> str | None:
    """The revision that this version of the program works with."""
    return ScriptDirectory(str(_SCRIPTS)).get_current_head()


def check_current(engine: Engine) -> None:
    """Bring an empty database up, and refuse one of another version.

    Raises
    ------
    ExchangeError
        ``DATABASE_OUTDATED``.
    """
    found = current(engine)
    # Tables without a revision are another program's, and stay as they are.
    if found is None and is_empty(engine):
        upgrade(engine)
    elif found != newest():
        raise ExchangeError(
            "DATABASE_OUTDATED",
            f"The hub's database is of revision {found}; this version of the program works with {newest()}. Make a "
            "backup, then run `datacollab hub db upgrade`, or install the version that wrote it.",
        )


def _run(engine: Engine, revision: str, *, up: bool) -> None:
    config = Config()
    # Alembic expands percent signs, which a path may hold.
    config.set_main_option("script_location", str(_SCRIPTS).replace("%", "%%"))
    with transaction(engine) as connection:
        # The steps run in this transaction: where one fails, the database is as it was before.
        config.attributes["connection"] = connection
        try:
            if up:
                command.upgrade(config, revision)
            else:
                command.downgrade(config, revision)
        except CommandError:
            raise ExchangeError(
                "DATABASE_OUTDATED",
                "The database cannot be brought to that revision: this version of the program does not know it, or not "
                f"the one that it has. It knows up to {newest()}; install the version that wrote the database.",
            ) from None
