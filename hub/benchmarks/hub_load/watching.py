"""What processes take of the machine, from /proc: Linux alone."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Costs", "cpu_seconds", "resident_bytes"]

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class Costs:
    """CPU seconds by who used them."""

    hub: float
    database: float
    client: float

    @classmethod
    def now(cls, hub: int, database: int) -> Costs:
        """Up to now, by the ids of the hub's process and of the database server's."""
        return cls(cpu_seconds(hub), cpu_seconds(database), cpu_seconds(os.getpid(), alone=True))

    def __sub__(self, other: Costs) -> Costs:
        return Costs(self.hub - other.hub, self.database - other.database, self.client - other.client)


def _stats() -> dict[int, list[int]]:
    """Fields of /proc/PID/stat after the name: parent, times, pages; processes end while one looks."""
    found = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                fields = (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()
            except OSError:
                continue
            found[int(folder.name)] = [int(fields[at]) for at in (1, 11, 12, 13, 14, 21)]
    return found


def _tree(root: int, stats: dict[int, list[int]]) -> set[int]:
    """A process and all that descend from it."""
    tree, size = {root} & stats.keys(), 0
    while len(tree) > size:
        size = len(tree)
        tree |= {pid for pid, (parent, *_) in stats.items() if parent in tree}
    return tree


def cpu_seconds(pid: int, *, alone: bool = False) -> float:
    """Of a process and its descendants, those that have ended included."""
    stats = _stats()
    if alone:
        return sum(stats[pid][1:3]) / _TICKS
    return sum(sum(stats[each][1:5]) for each in _tree(pid, stats)) / _TICKS


def resident_bytes(pid: int) -> int:
    """Memory of a process and its descendants; pages that they share count for each."""
    stats = _stats()
    return sum(stats[each][5] for each in _tree(pid, stats)) * _PAGE
