"""All that a hub keeps: a database and blobs, which belong together."""

from __future__ import annotations

import secrets
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Connection, Engine, delete, insert, select

from datacollab.errors import ExchangeError

from ._blobs import Blobs
from ._database import check_current, database_url, open_engines, transaction
from ._files import all_blobs, drop_upload, old_uploads
from ._schema import hub


def pair(connection: Connection, blobs: Blobs) -> None:
    """Mark a place of blobs that has no mark yet as this database's, and refuse one that is not.

    A place without a mark is new, or from before there were marks: then all that the database names lies there.
    With another database, an empty one say, all blobs would look like nobody's, and be swept away.

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


# A week, so that an upload may rest over holidays.
_ABANDONED = 7 * 86_400
# A day: no request takes so long between a blob and its row.
_LEFT = 86_400


@dataclass(frozen=True)
class Store:
    """See the module.

    Attributes
    ----------
    readers : Engine, optional
        The engine of transactions that write nothing, where it is another one.
    """

    engine: Engine
    blobs: Blobs
    readers: Engine | None = None

    @classmethod
    def opened(cls, data: Path, *, database: str | None = None, blobs: str | None = None) -> Store:
        """Open a hub's folder, and make all that is missing.

        Parameters
        ----------
        data : Path
            Closed to all but its owner.
        database, blobs : str, optional
            Where they are, unless they are in the folder.

        Raises
        ------
        ExchangeError
            ``DATABASE_OUTDATED``, ``STORE_MISMATCH``.
        """
        store = cls.located(data, database=database, blobs=blobs)
        try:
            check_current(store.engine)
            store.pair()
        except BaseException:
            store.close()
            raise
        return store

    @classmethod
    def located(cls, data: Path, *, database: str | None = None, blobs: str | None = None) -> Store:
        """The same, whatever the revision of the database, and whether both belong together or not."""
        data.mkdir(parents=True, exist_ok=True, mode=0o700)
        # Also where the folder was there before.
        data.chmod(0o700)
        engine, readers = open_engines(database_url(data.absolute(), database))
        return cls(engine, Blobs(blobs or str(data.absolute() / "blobs")), readers)

    def reading(self) -> AbstractContextManager[Connection]:
        """A transaction that changes nothing."""
        return transaction(self.readers or self.engine, reading=True)

    def writing(self) -> AbstractContextManager[Connection]:
        """A transaction: all of it, or nothing."""
        return transaction(self.engine)

    def close(self) -> None:
        """Let go of the database."""
        for engine in (self.engine, self.readers):
            if engine is not None:
                engine.dispose()

    def pair(self) -> None:
        """Mark a new place of blobs as this database's, and refuse another's; before anything is done with both."""
        with self.writing() as connection:
            pair(connection, self.blobs)

    def check(self) -> None:
        """Raise unless database and blobs are there, of this version, and belong together."""
        check_current(self.engine)
        self.blobs.check()
        with self.reading() as connection:
            check_paired(connection, self.blobs)

    def tidy(self, now: float) -> None:
        """Forget uploads that nobody goes on with, and remove blobs that a kill left without a name.

        Raises
        ------
        ExchangeError
            ``DATABASE_OUTDATED``, ``STORE_MISMATCH``: in their place may lie others by now.
        """
        self.check()
        with self.writing() as connection:
            for upload in old_uploads(connection, now - _ABANDONED):
                drop_upload(connection, upload)
        with self.reading() as connection:
            # After old uploads were dropped, so that their parts go at once.
            keep = all_blobs(connection)
        self.blobs.sweep(keep, older_than=now - _LEFT)
