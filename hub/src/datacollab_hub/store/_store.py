"""All that a hub keeps: a database and blobs."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Connection, Engine

from ._blobs import Blobs
from ._database import database_url, open_engines, transaction
from ._files import all_blobs
from ._migrating import check_current
from ._pairing import check_paired, pair
from ._uploading import drop_upload, old_uploads

__all__ = ["Store"]

# A week, so that an upload may rest over holidays.
_ABANDONED = 7 * 86_400
# A day: no request takes so long between a blob and its row.
_LEFT = 86_400


@dataclass(frozen=True)
class Store:
    """See the module.

    Attributes
    ----------
    engine : Engine
    blobs : Blobs
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
