"""Kill, cut and fill again and again while shares cross a hub; a run that was interrupted goes on with what is left."""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from .disk import kind_of_disks
from .faults import KILLS, OTHERS, happened
from .processes import find_programs
from .report import page, table
from .world import World

_OTHERS_PER_KILLS = 50
"""Each other fault happens once in so many kills, and once at least."""


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m hub_faults", description=__doc__)
    parser.add_argument("--times", type=int, default=200, help="kills (default 200)")
    parser.add_argument("--others", type=int, help="of each other fault (default: one in 50 kills, at least one)")
    parser.add_argument("--sqlite", action="store_true", help="on SQLite instead of PostgreSQL")
    parser.add_argument("--mebibytes", type=float, nargs=2, default=(2.0, 9.0), metavar=("FROM", "TO"))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, default=Path("output/faults.json"))
    parser.add_argument("--minutes", type=float, help="stop after so many; the same command goes on later")
    parser.add_argument("--report-only", action="store_true", help="play nothing")
    parser.add_argument("--copy-to", type=Path, help="where the page goes, as README.md")
    return parser.parse_args(arguments)


def planned(times: int, others: int | None, seed: int, *, sqlite: bool) -> list[str]:
    """The faults in their order."""
    kills = [name for name in KILLS if not (sqlite and name.startswith("database"))]
    each = max(1, times // _OTHERS_PER_KILLS) if others is None else others
    plan = [kills[number % len(kills)] for number in range(times)] + list(OTHERS) * each
    random.Random(seed).shuffle(plan)
    return plan


def main(arguments: Sequence[str] | None = None) -> int:
    options = parsed(arguments)
    programs = None if options.sqlite else find_programs()
    if not options.sqlite and programs is None:
        print("PostgreSQL's programs are not found; --sqlite does without.", file=sys.stderr)
        return 2
    plan = planned(options.times, options.others, options.seed, sqlite=options.sqlite)
    settings = {"plan": plan, "mebibytes": list(options.mebibytes), "seed": options.seed}
    with tempfile.TemporaryDirectory() as place:
        settings["disks"] = kind_of_disks(Path(place))
    done = _read(options.output, settings)
    if len(done["rows"]) < len(plan) and not options.report_only:
        _go_on(plan, options, programs, done)
    print(table(done["rows"]))
    for found in done["found"]:
        print(", ".join(f"{name}: {number}" for name, number in found.items()))
    if options.copy_to is not None:
        options.copy_to.mkdir(parents=True, exist_ok=True)
        asked = [word for word in arguments or sys.argv[1:] if word != "--report-only"]
        words = {
            "command": "PYTHONPATH=benchmarks python -m hub_faults " + " ".join(asked),
            "machine": f"{os.cpu_count()} cores beside other work, Python {platform.python_version()}",
            "database": "SQLite" if options.sqlite else "PostgreSQL",
        }
        (options.copy_to / "README.md").write_text(page(settings | words, done["rows"], done["found"]), "utf-8")
    bad = [row for row in done["rows"] if not row["whole"]]
    wrong = any(found[name] for found in done["found"] for name in ("lost", "twice", "half", "unknown"))
    return 1 if bad or wrong or any(row["taken"] for row in done["rows"]) else 0


def _go_on(plan: list[str], options: argparse.Namespace, programs: Path | None, done: dict[str, Any]) -> None:
    """In a world of its own, whose shares are all looked at once more in the end."""
    start, first = time.monotonic(), len(done["rows"])
    root = Path(tempfile.mkdtemp(prefix="hub-faults"))
    world = World(root, len(plan) - first, programs, done["settings"]["disks"])
    try:
        for number in range(first, len(plan)):
            spent = time.monotonic() - start
            if options.minutes is not None and spent > 60 * options.minutes:
                break
            minutes = spent / max(1, number - first) * (len(plan) - number) / 60
            left = f" (about {minutes:.0f} min left)" if number > first else ""
            print(f"{number + 1}/{len(plan)} {plan[number]}{left}", file=sys.stderr, flush=True)
            chance = random.Random(f"{options.seed} {number}")
            folder = world.party(number - first, chance, options.mebibytes)
            done["rows"].append(asdict(happened(plan[number], world, folder, chance)))
            _write(options.output, done)
        world.line.begin()
        done["found"].append(world.found())
        _write(options.output, done)
    except BaseException:
        world.close()
        print(f"What was there then lies in {root}.", file=sys.stderr)
        raise
    world.close()
    shutil.rmtree(root)


def _read(path: Path, settings: dict[str, Any]) -> dict[str, Any]:
    """What an earlier run of the same settings has done."""
    if path.exists():
        found = json.loads(path.read_text(encoding="utf-8"))
        if found["settings"] == settings:
            return dict(found)
    return {"settings": settings, "rows": [], "found": []}


def _write(path: Path, done: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    part.write_text(json.dumps(done, indent=1) + "\n", encoding="utf-8")
    part.replace(path)


if __name__ == "__main__":
    sys.exit(main())
