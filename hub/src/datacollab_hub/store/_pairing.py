"""That a database and a place of blobs belong together: both hold the hub's id.

With another database, an empty one say, all blobs would look like nobody's, and be swept away.
"""

from __future__ import annotations

import secrets

from sqlalchemy import Connection, delete, insert, select

from datacollab.errors import ExchangeError

from ._blobs import Blobs
from ._files import all_blobs
from ._schema import hub

__all__ = ["check_paired", "pair", "pair_anew"]


def pair(connection: Connection, blobs: Blobs) -> None:
    """Mark a place of blobs that has no mark yet as this database's, and refuse one that is not.

    A place without a mark is new, or from before there were marks: then all that the database names lies there.

    Raises
    ------
    ExchangeError
        ``STORE_MISMATCH``.
    """
    if blobs.mark() is None:
        named = all_blobs(connection)
        there = blobs.names()
        # Blobs that are named and not there, or there and not named: another hub's place, or no disk.
        if not named <= there or (there and not named):
            raise _mismatch()
        blobs.set_mark(_id(connection))
    # Two hubs may have marked the place at the same moment: the one that stands now has it.
    check_paired(connection, blobs)


def check_paired(connection: Connection, blobs: Blobs) -> None:
    """Refuse a place of blobs that is not this database's.

    Raises
    ------
    ExchangeError
        ``STORE_MISMATCH``.
    """
    if blobs.mark() != _id(connection):
        raise _mismatch()


def pair_anew(connection: Connection, blobs: Blobs) -> None:
    """Give a hub another id, so that whatever database was here before is none of these blobs any more."""
    new = secrets.token_hex(16)
    connection.execute(delete(hub))
    connection.execute(insert(hub).values(id=new))
    blobs.set_mark(new)


def _id(connection: Connection) -> str:
    found = connection.execute(select(hub.c.id)).scalar()
    if found is None:
        raise _mismatch()
    return str(found)


def _mismatch() -> ExchangeError:
    return ExchangeError(
        "STORE_MISMATCH",
        "The hub's database and its place of blobs do not belong together: one of them is another hub's, is empty, or "
        "was lost. Nothing was removed. Look at --database and --blobs, and whether the disk is mounted; a hub that "
        "begins anew or is restored gets an empty place for blobs.",
    )
