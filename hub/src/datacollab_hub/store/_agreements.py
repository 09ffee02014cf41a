"""Every project file that held, so that people can see the changes."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, insert, select

from ._schema import agreements

__all__ = ["AgreementRow", "add_agreement", "agreement_text", "agreements_of"]


@dataclass(frozen=True)
class AgreementRow:
    """A revision of a project file; when it came is None where that was before the hub kept them."""

    revision: int
    digest: str
    received: int | None


def add_agreement(
    connection: Connection, project: str, *, revision: int, digest: str, agreement: bytes, now: float
) -> None:
    """Keep the very bytes that the owner signed."""
    values = {"project": project, "revision": revision, "digest": digest, "agreement": agreement}
    connection.execute(insert(agreements).values(**values, received=int(now)))


def agreements_of(connection: Connection, project: str) -> list[AgreementRow]:
    """All of a project, the first one first."""
    # Without the files themselves: a list of revisions would read megabytes.
    columns = [agreements.c[name] for name in AgreementRow.__dataclass_fields__]
    query = select(*columns).where(agreements.c.project == project).order_by(agreements.c.revision)
    return [AgreementRow(*row) for row in connection.execute(query)]


def agreement_text(connection: Connection, project: str, revision: int) -> bytes | None:
    """The bytes of one; None where there is none."""
    where = (agreements.c.project == project, agreements.c.revision == revision)
    return connection.execute(select(agreements.c.agreement).where(*where)).scalar()
