"""Shares of a few megabytes, many at a time, and a look at whether all of them are there afterwards."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from datacollab.bundle import digest, pack

from .client import Pool
from .crowd import Party, Place, at_once, send

__all__ = ["Uploads", "check_uploads", "upload_shares"]


@dataclass
class Uploads:
    """What came of uploads.

    Attributes
    ----------
    accepted : dict of Party to str
        SHA-256 of the share that the hub said it has.
    failed : list of str
        What was wrong with the others.
    n_bytes, n_asked : int
    seconds : float
        From the first request to the last answer.
    longest : float
        Seconds that one share took.
    n_listed_once, n_equal : int
        Of those accepted: listed by the hub exactly once; given back to the analyst byte by byte.
    """

    accepted: dict[Party, str] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)
    n_bytes: int = 0
    n_asked: int = 0
    seconds: float = 0.0
    longest: float = 0.0
    n_listed_once: int = 0
    n_equal: int = 0


async def upload_shares(pool: Pool, parties: Sequence[Party], found: Uploads, *, n_bytes: int, n_at_once: int) -> None:
    """Each party sends a share of random bytes, once."""
    loop = asyncio.get_running_loop()
    begun = loop.time()

    async def one(party: Party) -> int:
        data = await asyncio.to_thread(_share, party, n_bytes)
        sent = loop.time()
        try:
            n_asked = await send(pool, party, party.place.path, "share", data)
        except (RuntimeError, TimeoutError, OSError) as error:
            found.failed.append(f"{type(error).__name__}: {error}")
            return 0
        found.accepted[party] = digest(data)
        found.n_bytes += len(data)
        found.n_asked += n_asked
        found.longest = max(found.longest, loop.time() - sent)
        found.seconds = loop.time() - begun
        party.n_files += 1
        return n_asked

    await at_once(n_at_once, one, parties)


def _share(party: Party, n_bytes: int) -> bytes:
    facts = {"project_digest": party.place.project.digest, "party": party.name}
    return pack("datacollab.share", facts, {"sealed.bin": os.urandom(n_bytes)}, key=party.key)


async def check_uploads(pool: Pool, found: Uploads, *, n_at_once: int) -> None:
    """List each project's shares and fetch every one, as its analyst."""
    places = list(dict.fromkeys(party.place for party in found.accepted))
    listed: Counter[tuple[str, str]] = Counter()

    async def look(place: Place) -> int:
        answer = await pool.ask(place.analyst, "GET", f"{place.path}/files")
        listed.update((each["sender"], each["sha256"]) for each in answer.json()["files"] if each["kind"] == "share")
        return 1

    async def fetch(party: Party) -> int:
        sha256 = found.accepted[party]
        answer = await pool.ask(party.place.analyst, "GET", f"{party.place.path}/files/{sha256}", patience=120)
        found.n_listed_once += listed[party.fingerprint, sha256] == 1
        found.n_equal += answer.status == 200 and digest(answer.body) == sha256
        return 1

    found.n_asked += sum(await at_once(n_at_once, look, places))
    found.n_asked += sum(await at_once(n_at_once, fetch, list(found.accepted)))
