"""The faults: each happens while a party's share goes up, or comes down to the analyst; then both go on."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from subprocess import Popen

from .line import COPIES
from .processes import DAY, client
from .world import World

__all__ = ["KILLS", "OTHERS", "Outcome", "happened"]

_MOST_RUNS = 8
_LONGEST = 300.0


@dataclass(frozen=True)
class Outcome:
    """What became of one share.

    Attributes
    ----------
    fault : str
    struck : bool
        Whether the fault came before the command had ended.
    runs : int
        Of commands, until the share was with the analyst; two where none had to be run again.
    whole : bool
        Whether the very bytes were.
    copies, taken : int
        Requests that were sent a second time, and those of them that the hub took after it had taken the first.
    seconds : float
    """

    fault: str
    struck: bool
    runs: int
    whole: bool
    copies: int
    taken: int
    seconds: float


class _Round:
    """One share, from a party's folder to the analyst's."""

    def __init__(self, world: World, folder: Path, chance: random.Random) -> None:
        self.world, self.folder, self.chance = world, folder, chance
        self.share = next((folder / "outbox").iterdir())
        self.size = self.share.stat().st_size
        self.struck, self.runs, self.taken, self.copies = False, 0, 0, 0

    def command(self, verb: str, ahead: int = 0) -> Popen[bytes]:
        self.runs += 1
        folder = self.folder if verb == "push" else self.world.analyst
        return client(folder, verb, self.world.root / "clients.log", ahead)

    def until_done(self, verb: str, running: Popen[bytes] | None = None) -> None:
        """Run a command again until it ends well, as people would."""
        for _ in range(_MOST_RUNS):
            process = running or self.command(verb)
            running = None
            if process.wait(timeout=_LONGEST) == 0:
                return
        raise RuntimeError(f"{verb} of {self.folder.name} ends with {process.returncode} again and again.")

    def during(self, verb: str, strike: Callable[[Popen[bytes]], None]) -> None:
        """Run a command, and strike at a moment of it."""
        if verb == "pull":
            self.until_done("push")
        self.world.line.begin()
        way = "up" if verb == "push" else "down"
        # A quarter strikes after the last byte, when the hub puts the file together or the client checks it.
        at_end = self.chance.random() < 0.25
        moment = self.size if at_end else self.chance.uniform(0.0, 1.0) * self.size
        reached = self.world.line.reaches(way, int(moment))
        running = self.command(verb)
        while not reached.wait(0.02) and running.poll() is None:
            pass
        if at_end:
            time.sleep(self.chance.uniform(0.0, 0.2))
        self.struck = running.poll() is None
        strike(running)
        self.until_done(verb, running)
        if verb == "push":
            self.until_done("pull")

    def both(self) -> None:
        self.until_done("push")
        self.until_done("pull")


def _hub_killed(round_: _Round, verb: str) -> None:
    def strike(_: Popen[bytes]) -> None:
        round_.world.hub.kill()
        round_.world.line.target = round_.world.hub.start()

    round_.during(verb, strike)


def _database_killed(round_: _Round, verb: str) -> None:
    database = round_.world.database
    if database is None:
        raise ValueError("SQLite has no server.")

    def strike(_: Popen[bytes]) -> None:
        database.kill()
        database.start()

    round_.during(verb, strike)


def _client_killed(round_: _Round, verb: str) -> None:
    round_.during(verb, lambda running: running.kill())


def _line_cut(round_: _Round, verb: str) -> None:
    line, limit = round_.world.line, int(round_.chance.uniform(0.0, 1.0) * round_.size)
    if verb == "pull":
        round_.until_done("push")
    line.begin()
    line.cut = (limit, None) if verb == "push" else (None, limit)
    round_.until_done(verb)
    round_.struck = line.n_cut > 0
    if verb == "push":
        round_.until_done("pull")


def _copied(round_: _Round, when: str) -> None:
    line = round_.world.line
    line.begin()
    if when in COPIES:
        line.copies = when
    round_.both()
    if when == "replayed":
        line.replay(round_.chance.shuffle)
    round_.struck, round_.copies = bool(line.statuses), len(line.statuses)
    # A copy that comes first is the request, and the original is refused; that neither of two was left out and none
    # taken twice, the log tells in the end.
    comes_later = when in ("late", "replayed")
    round_.taken = sum(status < b"400" for status in line.statuses) if comes_later else 0


def _disk_full(round_: _Round, whose: str) -> None:
    """For some seconds; see `Disk`."""

    def strike(running: Popen[bytes]) -> None:
        process = running if whose == "client" else round_.world.hub.process
        if process is None or process.poll() is not None:
            return
        with round_.world.disks[whose].full(process.pid):
            time.sleep(round_.chance.uniform(0.5, 3.0))
            process.poll()

    round_.during("pull" if whose == "client" else "push", strike)


def _clock_wrong(round_: _Round, whose: str) -> None:
    ahead, world = round_.chance.choice([-DAY, DAY]), round_.world
    world.line.begin()
    if whose == "hub":
        world.hub.kill()
        world.line.target = world.hub.start(ahead)
    round_.struck = round_.command("push", ahead if whose == "client" else 0).wait(timeout=_LONGEST) != 0
    if whose == "hub":
        world.hub.kill()
        world.line.target = world.hub.start()
    round_.both()


_Fault = tuple[Callable[[_Round, str], None], str]
KILLS: dict[str, _Fault] = {
    "hub killed, upload": (_hub_killed, "push"),
    "hub killed, download": (_hub_killed, "pull"),
    "database killed, upload": (_database_killed, "push"),
    "database killed, download": (_database_killed, "pull"),
    "client killed, upload": (_client_killed, "push"),
    "client killed, download": (_client_killed, "pull"),
}
"""By what the table calls them; of SQLite those of the database are left out."""

OTHERS: dict[str, _Fault] = {
    "line cut upwards": (_line_cut, "push"),
    "line cut downwards": (_line_cut, "pull"),
    "a third of requests twice, the copy first": (_copied, "before"),
    "each request twice at once": (_copied, "beside"),
    "each request again after the next": (_copied, "late"),
    "all requests replayed in another order": (_copied, "replayed"),
    "hub's disk full": (_disk_full, "hub"),
    "client's disk full": (_disk_full, "client"),
    "hub's clock wrong by a day": (_clock_wrong, "hub"),
    "client's clock wrong by a day": (_clock_wrong, "client"),
}


def happened(name: str, world: World, folder: Path, chance: random.Random) -> Outcome:
    """Have a fault happen to a share, go on, and look at what came of it."""
    fault, how = (KILLS | OTHERS)[name]
    start = time.monotonic()
    round_ = _Round(world, folder, chance)
    fault(round_, how)
    came = world.analyst / "inbox" / round_.share.name
    whole = came.is_file() and came.read_bytes() == round_.share.read_bytes()
    for path in (came, round_.share):
        path.unlink(missing_ok=True)
    seconds = round(time.monotonic() - start, 2)
    return Outcome(name, round_.struck, round_.runs, whole, round_.copies, round_.taken, seconds)
