"""Figures of a run, and the page that shows them."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from .polling import Tally
from .uploading import Uploads
from .watching import Costs

__all__ = ["machine", "page", "shown_polls", "shown_uploads"]

_MIB = 2**20
_PAGE = """# The hub under load

{state}{n_parties:,} parties in {projects:,} projects, each with a key of its own, poll a hub on PostgreSQL over
{connections} connections. Half of the requests ask how the project stands, half for the inbox; each is signed anew.
The client, the hub (processes: {workers}) and the database server share one machine ({cpu}, {cores} cores).
{total:,} requests were made in one run:

```console
$ {command}
```

| | answered | errors | a second | p50 | p95 | p99 | longest | CPU: hub | PostgreSQL | client | all |
| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
{rows}

Latencies are in milliseconds, from the moment at which a request was due; CPU in milliseconds a request. "At a rate"
sends {rate:g} requests a second, at random moments, for {seconds:g} seconds. "Without pause" sends the next one on a
connection when the last one is answered.

{sent}
Memory of the hub's processes in MiB, from beginning to end: {memory}.

Python {python}, PostgreSQL {postgresql}, FastAPI {fastapi}, uvicorn {uvicorn}, SQLAlchemy {SQLAlchemy},
psycopg {psycopg}. Load of the machine before the run: {load_before}.
"""
_SENT = """Uploads: {accepted:,} of {wanted:,} shares of {upload_mb:g} MB were accepted, {at_once} at a time,
in {seconds:.0f} seconds ({mib_per_second} MiB a second; the longest took {longest_seconds} seconds). {listed_once:,}
are listed exactly once, and {equal_bytes:,} came back with the very bytes. CPU seconds, fetching them all included:
{cpu}.
"""


def machine(programs: Path) -> dict[str, Any]:
    """Where a run was made."""
    cpu = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    return {
        "cpu": cpu[0].partition(": ")[2] if cpu else platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "load_before": round(os.getloadavg()[0], 2),
        "python": platform.python_version(),
        "postgresql": programs.parent.name,
        **{name: version(name) for name in ("fastapi", "uvicorn", "SQLAlchemy", "psycopg")},
    }


def shown_polls(tally: Tally, costs: Costs) -> dict[str, Any]:
    """Rates, latencies and costs of requests."""
    seconds = np.asarray(tally.seconds)
    cuts = np.percentile(seconds, (50, 95, 99, 100)) if len(seconds) else [None] * 4
    return {
        "answered": len(seconds),
        "errors": dict(tally.errors),
        "seconds": round(tally.ended - tally.begun, 2),
        "per_second": round(tally.per_second, 2),
        "ms": {
            name: None if cut is None else round(1000 * float(cut), 2)
            for name, cut in zip(("p50", "p95", "p99", "max"), cuts, strict=True)
        },
        "cpu_ms_a_request": _cpu(costs, 1000 / max(tally.n_asked, 1)),
    }


def shown_uploads(found: Uploads, costs: Costs, n_wanted: int) -> dict[str, Any]:
    """What became of uploads, how fast, and at what cost."""
    return {
        "wanted": n_wanted,
        "accepted": len(found.accepted),
        "failed": found.failed[:10],
        "listed_once": found.n_listed_once,
        "equal_bytes": found.n_equal,
        "mib": round(found.n_bytes / _MIB, 1),
        "seconds": round(found.seconds, 2),
        "mib_per_second": round(found.n_bytes / _MIB / max(found.seconds, 1e-9), 2),
        "longest_seconds": round(found.longest, 2),
        "cpu_seconds": _cpu(costs, 1.0),
    }


def _cpu(costs: Costs, scale: float) -> dict[str, float]:
    found = {"hub": costs.hub * scale, "postgresql": costs.database * scale, "client": costs.client * scale}
    return {name: round(value, 3) for name, value in (found | {"all": sum(found.values())}).items()}


def page(result: Mapping[str, Any]) -> str:
    """The page in Markdown."""
    asked = result["asked"]
    more = {
        "command": result["command"],
        "total": result["total"],
        "n_parties": asked["projects"] * asked["parties_per_project"],
        "state": "" if result["is_whole"] else "**The run was interrupted; these are the figures until then.**\n\n",
        "rows": "\n".join(_row(name, each) for name, each in result["polls"].items()),
        "sent": _sent(result.get("uploads"), asked),
        "memory": _memory(result["hub_mib"]),
    }
    return _PAGE.format(**{**asked, **result["machine"], **more})


def _row(name: str, polls: Mapping[str, Any]) -> str:
    cells = [name.replace("_", " "), f"{polls['answered']:,}", sum(polls["errors"].values()), polls["per_second"]]
    cells += [polls["ms"][cut] for cut in ("p50", "p95", "p99", "max")]
    cells += [polls["cpu_ms_a_request"][who] for who in ("hub", "postgresql", "client", "all")]
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


def _sent(found: Mapping[str, Any] | None, asked: Mapping[str, Any]) -> str:
    if found is None:
        return ""
    cpu = ", ".join(f"{who} {seconds:.0f}" for who, seconds in found["cpu_seconds"].items())
    return _SENT.format(**{**asked, **found, "cpu": cpu})


def _memory(samples: Sequence[tuple[float, float]]) -> str:
    """About ten of the samples."""
    step = max(1, len(samples) // 10)
    return ", ".join(f"{mib:.0f}" for _, mib in samples[::step]) or "not measured"
