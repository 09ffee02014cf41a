"""One run: fill, poll at a rate, upload, poll without pause, and say what came of it."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .client import Pool
from .crowd import Party, new_places, open_places
from .polling import Tally, poll_at_rate, poll_without_pause
from .report import machine, shown_polls, shown_uploads
from .server import Hub, postgresql, running_hub
from .uploading import Uploads, check_uploads, upload_shares
from .watching import Costs, resident_bytes

__all__ = ["measured"]

_EVERY = 10.0
_MIB = 2**20


@dataclass
class _Run:
    """What is known of a run so far, which is what is reported when it is interrupted."""

    options: argparse.Namespace
    hub: Hub
    database: tuple[str, int]
    told: Callable[[str], None]
    result: dict[str, Any]
    total: int = 0
    hub_mib: list[tuple[float, float]] = field(default_factory=list)

    def costs(self) -> Costs:
        return Costs.now(self.hub.pid, self.database[1])

    async def watched(self, work: Awaitable[None], progress: Callable[[float], str]) -> None:
        """Do something, and say every ten seconds how far it is."""
        loop = asyncio.get_running_loop()
        begun, task = loop.time(), asyncio.ensure_future(work)
        try:
            while not (await asyncio.wait({task}, timeout=_EVERY))[0]:
                self.hub_mib.append((round(loop.time(), 1), round(resident_bytes(self.hub.pid) / _MIB, 1)))
                self.told(progress(loop.time() - begun))
            await task
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task


def measured(options: argparse.Namespace, programs: Path, result: dict[str, Any], told: Callable[[str], None]) -> None:
    """Run it all; figures are put into ``result`` as they come.

    Raises
    ------
    KeyboardInterrupt
    """
    more = ["--workers", str(options.workers)] if options.workers > 1 else []
    result |= {"machine": machine(programs), "polls": {}, "total": 0, "is_whole": False}
    with tempfile.TemporaryDirectory(prefix="hub_load") as folder, postgresql(programs) as database:
        data, log = Path(folder) / "hub", Path(folder) / "hub.log"
        with running_hub(data, database[0], log, more) as hub:
            run = _Run(options, hub, database, told, result)
            try:
                asyncio.run(_all(run, data))
            finally:
                result |= {"total": run.total, "hub_mib": run.hub_mib}


async def _all(run: _Run, data: Path) -> None:
    options = run.options
    pool = Pool(run.hub.host, run.hub.port, options.connections)
    places = new_places(options.projects, options.parties_per_project)
    parties = [party for place in places for party in place.parties]
    run.told(f"{len(places)} projects with {len(parties)} parties are made.")
    run.total += await open_places(pool, places, data, run.database[0])
    await _at_rate(run, pool, parties)
    if options.uploads:
        await _uploads(run, pool, parties[:: max(1, len(parties) // options.uploads)][: options.uploads])
    if options.total > run.total:
        await _without_pause(run, pool, parties, options.total - run.total)
    run.result["is_whole"] = True
    pool.close()


async def _at_rate(run: _Run, pool: Pool, parties: list[Party]) -> None:
    options, tally, before = run.options, Tally(), run.costs()
    work = poll_at_rate(pool, parties, tally, rate=options.rate, seconds=options.seconds, seed=options.seed)

    def progress(seconds: float) -> str:
        return f"At {options.rate:g}/s: {_so_far(tally)}; {_left(options.seconds - seconds)}"

    await _tallied(run, "at_a_rate", work, progress, tally, before)


async def _without_pause(run: _Run, pool: Pool, parties: list[Party], n_requests: int) -> None:
    options, tally, before = run.options, Tally(), run.costs()
    work = poll_without_pause(
        pool, parties, tally, n_requests=n_requests, at_once=options.connections // 2, seed=options.seed + 1
    )

    def progress(seconds: float) -> str:
        left = (n_requests - tally.n_asked) * seconds / max(tally.n_asked, 1)
        return f"Without pause: {_so_far(tally)} of {n_requests}; {_left(left)}"

    await _tallied(run, "without_pause", work, progress, tally, before)


async def _tallied(
    run: _Run, name: str, work: Awaitable[None], progress: Callable[[float], str], tally: Tally, before: Costs
) -> None:
    try:
        await run.watched(work, progress)
    finally:
        run.total += tally.n_asked
        run.result["polls"][name] = shown_polls(tally, run.costs() - before)


async def _uploads(run: _Run, pool: Pool, parties: list[Party]) -> None:
    options, found, before = run.options, Uploads(), run.costs()
    n_bytes = round(options.upload_mb * 1_000_000)

    async def work() -> None:
        await upload_shares(pool, parties, found, n_bytes=n_bytes, n_at_once=options.at_once)
        await check_uploads(pool, found, n_at_once=options.at_once)

    def progress(seconds: float) -> str:
        n_done = len(found.accepted) + len(found.failed)
        if n_done == len(parties):
            return f"Uploads: {found.n_equal} of {len(found.accepted)} fetched and compared."
        left = (len(parties) - n_done) * seconds / max(n_done, 1)
        return f"Uploads: {n_done} of {len(parties)}, {len(found.failed)} failed; {_left(left)}, and the comparison"

    try:
        await run.watched(work(), progress)
    finally:
        run.total += found.n_asked
        run.result["uploads"] = shown_uploads(found, run.costs() - before, len(parties))


def _so_far(tally: Tally) -> str:
    latest = sorted(tally.seconds[-5000:])
    slow = f", p99 lately {1000 * latest[int(len(latest) * 0.99)]:.0f} ms" if latest else ""
    return f"{tally.n_asked} asked, {tally.errors.total()} errors{slow}"


def _left(seconds: float) -> str:
    return f"{max(0.0, seconds) / 60:.1f} minutes left"
