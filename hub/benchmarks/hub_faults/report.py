"""The page of a run: a row for each fault, and what was found in the end."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from .disk import FILE_SYSTEM, LIMIT
from .faults import KILLS, OTHERS

__all__ = ["page", "table"]

_DISKS = {
    FILE_SYSTEM: """A disk is full as a file system is: the hub's folder and the analyst's lie on one
each, in memory, that has no room left for some seconds (`ENOSPC`).""",
    LIMIT: """A disk is made full by the limit of the process (`RLIMIT_FSIZE`): no file
grows beyond 1 MiB for some seconds.""",
}
_FOUND = ("shares", "lost", "twice", "half", "unknown", "left over on the disk", "entries of the log")


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """A row for each fault that there were."""
    lines = [
        "| fault | times | struck in time | went on by itself | run again | share whole | copies, taken "
        "| median seconds |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for fault in (*KILLS, *OTHERS):
        own = [row for row in rows if row["fault"] == fault]
        if own:
            alone = sum(row["runs"] == 2 for row in own)
            copies = f"{sum(row['copies'] for row in own)}, {sum(row['taken'] for row in own)}"
            lines.append(
                f"| {fault} | {len(own)} | {sum(row['struck'] for row in own)} | {alone} | {len(own) - alone} | "
                f"{sum(row['whole'] for row in own)} | {copies if any(row['copies'] for row in own) else ''} | "
                f"{statistics.median(row['seconds'] for row in own):.1f} |"
            )
    return "\n".join(lines)


def page(settings: Mapping[str, Any], rows: Sequence[Mapping[str, Any]], found: Sequence[Mapping[str, int]]) -> str:
    """The page, as Markdown."""
    kills = sum(row["fault"] in KILLS for row in rows)
    sums = {name: sum(each[name] for each in found) for name in _FOUND}
    least, most = settings["mebibytes"]
    return f"""# Faults around a hub

Written by `{settings["command"]}`, on {settings["machine"]}.

A hub (`datacollab hub serve`) on {settings["database"]}, and clients (`datacollab remote push`, `remote pull`), each in
a process of its own, carry {len(rows)} shares of {least:g} to {most:g} MiB from a party each to the analyst. Something
happens to each on its way, at a moment drawn with seed {settings["seed"]}: {kills} times `kill -9`, and
{len(rows) - kills} times something else. Then the hub or the database is started again where it was killed, and a
command that failed is run again until it ends well.

{table(rows)}

"Struck in time" counts where the command had not ended before; "run again", where one of the two commands ended with
an error or was killed. {_DISKS[settings["disks"]]}
A copy is "taken" where the hub did what it asks after it had answered the first; of copies that come first or at once,
one of the two is the request, and the client signs anew. PostgreSQL runs
without waiting for the disk (`-F`): processes are killed, no power is cut.

In the end all shares of a run that was not broken off are fetched once more, the log's chain is checked, and what lies
on the disk is counted:

| {" | ".join(_FOUND)} |
| {" | ".join("---" for _ in _FOUND)} |
| {" | ".join(str(sums[name]) for name in _FOUND)} |

"Lost": not listed, or not `received` in the log. "Twice": listed or received more than once. "Half": other bytes than
were sent. "Left over": files of the hub that belong to no share, of uploads that were cut off as they ended; they take
room, and nobody is given them.
"""
