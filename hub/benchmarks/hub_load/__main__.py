"""Put a hub under load: polling at a rate, uploads, and polling without pause, with a server and a hub of its own."""

from __future__ import annotations

import argparse
import json
import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .report import page
from .run import measured
from .server import find_programs

FILE = "result.json"


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m hub_load", description=__doc__)
    parser.add_argument("--seconds", type=float, default=600, help="of polling at a rate (default 600)")
    parser.add_argument("--rate", type=float, default=500, help="requests a second (default 500)")
    parser.add_argument(
        "--uploads", type=int, default=1000, help="shares that are sent then, one a party (default 1000)"
    )
    parser.add_argument("--upload-mb", type=float, default=5, help="megabytes of each (default 5)")
    parser.add_argument("--at-once", type=int, default=20, help="uploads at a time (default 20)")
    parser.add_argument("--total", type=int, default=1_000_000, help="requests in all; the rest comes without pause")
    parser.add_argument("--projects", type=int, default=100)
    parser.add_argument("--parties-per-project", type=int, default=10)
    parser.add_argument("--connections", type=int, default=64, help="open at once, as a proxy's (default 64)")
    parser.add_argument("--workers", type=int, default=1, help="processes of the hub (default 1)")
    parser.add_argument("--seed", type=int, default=0, help="of who asks for what, and when")
    parser.add_argument("--output", type=Path, default=Path("output/hub-load"), help="directory of the report")
    parser.add_argument("--copy-to", type=Path, help="where a copy goes when all of it was done")
    options = parser.parse_args(arguments)
    if options.uploads > options.projects * options.parties_per_project:
        parser.error("a party has one share: --uploads is at most --projects times --parties-per-project")
    return options


def main(arguments: Sequence[str] | None = None) -> int:
    options, programs = parsed(arguments), find_programs()
    if programs is None:
        print("PostgreSQL's programs are found neither in /usr/lib/postgresql nor on PATH.", file=sys.stderr)
        return 2
    asked = {name: value for name, value in vars(options).items() if name not in ("output", "copy_to")}
    words = sys.argv[1:] if arguments is None else list(arguments)
    result: dict[str, Any] = {"command": shlex.join(["python", "-m", "hub_load", *words]), "asked": asked}
    try:
        measured(options, programs, result, lambda line: print(line, flush=True))
    except KeyboardInterrupt:
        print("Interrupted; what was measured until now is in the report.", file=sys.stderr)
    options.output.mkdir(parents=True, exist_ok=True)
    (options.output / FILE).write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    (options.output / "README.md").write_text(page(result), encoding="utf-8")
    print(page(result))
    if not result["is_whole"]:
        return 130
    if options.copy_to is not None:
        options.copy_to.mkdir(parents=True, exist_ok=True)
        for name in (FILE, "README.md"):
            shutil.copy(options.output / name, options.copy_to / name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
