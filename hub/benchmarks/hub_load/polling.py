"""Parties that ask how their project stands and what lies in their inbox."""

from __future__ import annotations

import asyncio
import random
from array import array
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from .client import Pool
from .crowd import Party

__all__ = ["Tally", "poll_at_rate", "poll_without_pause"]


@dataclass
class Tally:
    """What came of requests.

    Attributes
    ----------
    seconds : array of float
        Of each that was answered as it has to be, from when it was due.
    errors : Counter of str
        The others, by what was wrong.
    begun, ended : float
        By the event loop's clock; ``ended`` is the last answer.
    """

    seconds: array[float] = field(default_factory=lambda: array("d"))
    errors: Counter[str] = field(default_factory=Counter)
    begun: float = 0.0
    ended: float = 0.0

    @property
    def n_asked(self) -> int:
        return len(self.seconds) + self.errors.total()

    @property
    def per_second(self) -> float:
        """Right answers a second."""
        return len(self.seconds) / max(self.ended - self.begun, 1e-9)


async def poll_at_rate(
    pool: Pool, parties: Sequence[Party], tally: Tally, *, rate: float, seconds: float, seed: int
) -> None:
    """Requests that come when they come (a Poisson process), whether those before them are answered or not.

    A request is late from the moment at which it was due: one that the client itself sends late, because the hub holds
    all connections or because the machine is busy, counts as waiting.
    """
    loop, draws = asyncio.get_running_loop(), random.Random(seed)
    tally.begun = due = loop.time()
    asked: set[asyncio.Task[None]] = set()
    try:
        while (due := due + draws.expovariate(rate)) < tally.begun + seconds:
            await asyncio.sleep(max(0.0, due - loop.time()))
            task = asyncio.create_task(_poll(pool, draws.choice(parties), draws.random() < 0.5, due, tally))
            asked.add(task)
            task.add_done_callback(asked.discard)
        await asyncio.gather(*asked)
    finally:
        for task in asked:
            task.cancel()


async def poll_without_pause(
    pool: Pool, parties: Sequence[Party], tally: Tally, *, n_requests: int, at_once: int, seed: int
) -> None:
    """As many requests, each sent when the one before it on its connection is answered: what the hub can do."""
    loop, draws, left = asyncio.get_running_loop(), random.Random(seed), iter(range(n_requests))
    tally.begun = loop.time()

    async def one_by_one() -> None:
        for _ in left:
            await _poll(pool, draws.choice(parties), draws.random() < 0.5, loop.time(), tally)

    async with asyncio.TaskGroup() as group:
        for _ in range(at_once):
            group.create_task(one_by_one())


async def _poll(pool: Pool, party: Party, is_inbox: bool, due: float, tally: Tally) -> None:
    path = party.place.path
    try:
        answer = await pool.ask(party, "GET", f"{path}/files" if is_inbox else path)
    except (TimeoutError, OSError) as error:
        tally.errors[type(error).__name__] += 1
        return
    tally.ended = asyncio.get_running_loop().time()
    if answer.status != 200:
        tally.errors[str(answer.status)] += 1
    elif not _is_right(answer.body, party, is_inbox):
        tally.errors["wrong answer"] += 1
    else:
        tally.seconds.append(tally.ended - due)


def _is_right(body: bytes, party: Party, is_inbox: bool) -> bool:
    """Whether an inbox lists as many files as lie there, and how a project stands is told of the right one."""
    if is_inbox:
        return body.count(b'"sha256":') == party.n_files
    return party.place.path.rpartition("/")[2].encode() in body
