"""CPU seconds of each command, on tables of two sizes: ``python -m datacollab_experiments.commands.costs``.

Three hospitals have mixed columns and a rare outcome; they share sums, and then rows. Every command is a process of
its own, and its time is that of the process and of its children, the start of Python included.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from datacollab.bundle import PublicKey

PARTIES = ("north", "south", "east")
MOST, MOST_TRIAL = 10.0, 30.0
"""CPU seconds that a command and a trial may take."""


def hospital(n_rows: int, seed: int) -> pd.DataFrame:
    """Make a table with ten columns of numbers, two of categories, gaps, and 14 % of ``died`` that are yes."""
    rng = np.random.default_rng(seed)
    numbers = rng.normal(size=(n_rows, 10)) @ np.linalg.qr(np.random.default_rng(0).normal(size=(10, 10)))[0]
    table = pd.DataFrame({f"lab_{i}": np.round(60 + 12 * numbers[:, i], 1) for i in range(10)})
    table["ward"] = rng.choice(["a", "b", "c", "d"], n_rows)
    table["sex"] = rng.choice(["f", "m"], n_rows)
    risk = numbers[:, 0] + 0.7 * numbers[:, 1] ** 2 + (table["ward"] == "d") + rng.logistic(size=n_rows)
    table["died"] = np.where(risk > np.quantile(risk, 0.86), "yes", "no")
    table.loc[rng.random(n_rows) < 0.02, "lab_3"] = np.nan
    return table


def costs(root: Path, n_rows: int, ways: Sequence[str] = ("sums", "rows")) -> Iterator[tuple[str, float, int]]:
    """Yield each command, its CPU seconds and its exit code; tables and folders are made in ``root``."""
    for place, name in enumerate((*PARTIES, "public", "new")):
        hospital({"public": 500, "new": n_rows}.get(name, n_rows), place).to_csv(root / f"{name}.csv", index=False)

    def run(label: str, *words: str) -> tuple[str, float, int]:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        ended = subprocess.run(
            [sys.executable, "-m", "datacollab", *words], cwd=root, capture_output=True, text=True, check=False
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        if ended.returncode not in (0, 12, 13, 14):
            sys.stderr.write(f"{label}: {ended.stderr}\n")
        return label, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, ended.returncode

    yield run("trial", "trial", "north.csv", "public.csv", "--target", "died")
    audit = ["--public", "new.csv", "--target", "died"]
    yield run("audit", "audit", "north.csv", "public.csv", *audit)
    yield run("audit --preset groups", "audit", "north.csv", "public.csv", *audit, "--preset", "groups")
    for way in ways:
        folders = {name: f"{way}-{name}" for name in (*PARTIES, "analyst")}
        yield run(f"{way}: keys new", "keys", "new", *folders.values())
        members = [word for name in PARTIES for word in ("--party", f"{name}={folders[name]}/public.key")]
        draft = ["--like", "public.csv", "--target", "died", "--purpose", "Costs.", *members]
        draft += ["--analyst", f"{folders['analyst']}/public.key", "-C", folders["north"], "-o", f"{way}.toml"]
        yield run(f"{way}: project new", "project", "new", "costs", *draft, *(["--rows"] if way == "rows" else []))
        seal = ["--project", f"{way}.toml", "-C", folders["north"], "-o", f"{way}.dcanchor"]
        yield run(f"{way}: anchor seal", "anchor", "seal", "public.csv", *seal)
        owner = ["--owner", f"{folders['north']}/public.key"]
        for name in PARTIES:
            joined = run(f"{way}: party join", "party", "join", f"{way}.toml", f"{way}.dcanchor", *owner, "-C",
                         folders[name])  # fmt: skip
            policy = root / folders[name] / "policy.toml"
            policy.write_text(policy.read_text().replace('audit = "required"', 'audit = "warn"'))
        yield joined
        yield run(f"{way}: party check", "party", "check", "north.csv", "-C", folders["north"])
        shares = []
        for name in PARTIES:
            given = [] if name == "north" else ["--no-audit"]
            if way == "sums":
                keys = [PublicKey.load(root / folders[other] / "public.key") for other in PARTIES if other != name]
                given = [f"--heard={key.fingerprint}" for key in keys]
            shared = run(f"{way}: party share", "party", "share", f"{name}.csv", "--approve", *given, "-C",
                         folders[name])  # fmt: skip
            if name == "north":
                yield shared
            shares.append(f"{folders[name]}/outbox/{name}.{'dcsum' if way == 'sums' else 'dcshare'}")
        yield run(f"{way}: analyst integrate", "analyst", "integrate", *shares, "--project", f"{way}.toml", "-C",
                  folders["analyst"])  # fmt: skip
        yield run(f"{way}: analyst export", "analyst", "export", "-C", folders["analyst"])
        model = f"{folders['analyst']}/outbox/north.dcmodel"
        yield run(f"{way}: party install", "party", "install", model, "-C", folders["north"])
        yield run(f"{way}: party predict", "party", "predict", "new.csv", "-o", f"{way}.csv", "-C", folders["north"])
        yield run(f"{way}: party evaluate", "party", "evaluate", "new.csv", "-C", folders["north"])


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; return 1 if a command took more than it may."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[120, 5000], help="rows of each hospital")
    parser.add_argument("--ways", nargs="+", default=["sums", "rows"], help="sums, rows")
    given = parser.parse_args(arguments)
    os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    too_long = 0
    print("| command | rows | CPU s | exit |\n| --- | ---: | ---: | ---: |", flush=True)
    for n_rows in given.rows:
        with tempfile.TemporaryDirectory() as root:
            for command, seconds, code in costs(Path(root), n_rows, given.ways):
                most = MOST_TRIAL if command == "trial" else MOST
                too_long += seconds > most
                print(f"| {command} | {n_rows} | {seconds:.1f}{' !' if seconds > most else ''} | {code} |", flush=True)
    return int(too_long > 0)


if __name__ == "__main__":
    sys.exit(main())
