"""
What giving up smoking does to weight, by files
===============================================

Every step is a command that somebody would type, in a directory of the clinic's or the analyst's own; ``send`` carries
files, as an e-mail would.  The clinics hold 400 smokers each, of whom a quarter had given up by 1982 (the table of
Hernán and Robins' textbook)::

    pip install 'datacollab[oracles,exchange,cli]'     # the table is in the package causaldata
    python play_140_effect_by_files.py

What leaves a clinic is the default: means of five rows of one arm, treatments and outcomes.  Risks are above the usual
limits, which ``party check`` shows and those who answer for the data have to accept.  With ``--undefended`` the rows'
own representations leave.  The last lines show the estimate beside what each clinic could say by itself.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd

from datacollab.effects import doubly_robust, effect_folds, with_parties

CLINICS = ("augusta", "boise", "concord")
COLUMNS = ["age", "sex", "race", "smokeintensity", "smokeyrs", "wt71", "exercise", "active"]


def main() -> None:
    """Read the options, deal the table, and play all steps."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=Path("effect"), help="directory for all directories")
    parser.add_argument("--undefended", action="store_true", help="share the rows' own representations")
    options = parser.parse_args()
    if find_spec("causaldata") is None:
        print("The table is in the package causaldata: pip install 'datacollab[oracles,exchange,cli]'")
        return
    if options.output.exists():
        sys.exit(f"{options.output} is there already; remove it, or choose another --output.")
    deal(options.output)
    play(options.output, undefended=options.undefended)
    tell(options.output)


def deal(output: Path) -> None:
    """A directory for each, and their tables: 400 smokers at each clinic, and 366 public rows."""
    from causaldata import nhefs_complete

    table = nhefs_complete.load_pandas().data.sample(frac=1.0, random_state=0)
    columns = table[COLUMNS].astype(float).assign(quit=table["qsmk"].astype(int), gain=table["wt82_71"].round(2))
    ends = [0, 400, 800, 1200, len(columns)]
    for who, (first, last) in zip([*CLINICS, "public"], pairwise(ends), strict=True):
        (output / who).mkdir(parents=True)
        columns.iloc[first:last].to_csv(output / who / "table.csv", index=False)
    (output / "analyst").mkdir()


def play(output: Path, *, undefended: bool) -> None:
    """All steps of the exchange, in order; the first clinic owns the project."""
    owner, *others = CLINICS

    def run(who: str, *command: str) -> None:
        """Run a command as one of the four, in its own directory."""
        print(f"\n{who}$ datacollab {' '.join(command)}", flush=True)
        subprocess.run(
            [sys.executable, "-m", "datacollab", *command],
            cwd=output / who,
            env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
            check=True,
        )

    def send(file: str, sender: str, *receivers: str, name: str = "") -> None:
        """Carry a file from one directory to others."""
        for receiver in receivers:
            shutil.copy(output / sender / file, output / receiver / (name or Path(file).name))

    # Everybody makes keys; the public half goes to the owner, as do the public rows.
    for who in [*CLINICS, "analyst"]:
        run(who, "keys", "new", ".")
        if who != owner:
            send("public.key", who, owner, name=f"{who}.key")
    send("table.csv", "public", owner, name="public.csv")

    # The owner writes down what is agreed: as many components as there are columns, so that none is lost.
    members = [f"--party={each}={'public' if each == owner else each}.key" for each in CLINICS]
    agreed = ["--treatment=quit", "--outcome=gain", "--purpose=What giving up smoking does to weight."]
    rules = ["--like=public.csv", "--anchor-rows=300", f"--max-components={len(COLUMNS)}"]
    run(owner, "project", "new", "smoking", *rules, *agreed, *members, "--analyst=analyst.key")
    run(owner, "anchor", "seal", "public.csv")
    send("project.toml", owner, *others, "analyst")
    send("anchor.dcanchor", owner, *others)

    # Each clinic shares once.  The audit attacks the share first, which takes minutes and is left out here.
    way = [f"--components={len(COLUMNS)}", *(["--preset=none", "--undefended"] if undefended else [])]
    for who in CLINICS:
        run(who, "party", "join", "project.toml", "anchor.dcanchor")
        run(who, "party", "share", "table.csv", "--no-audit", "--approve", *way)
        send(f"outbox/{who}.dcshare", who, "analyst")

    # The analyst estimates.
    run("analyst", "analyst", "init", "project.toml")
    shares = [f"{who}.dcshare" for who in CLINICS]
    run("analyst", "analyst", "effect", *shares, "--seed=0")


def tell(output: Path) -> None:
    """The estimate beside that of each clinic, their average, and that of all rows in one place."""
    tables = {who: pd.read_csv(output / who / "table.csv") for who in CLINICS}
    effect = json.loads((output / "analyst" / "effect.json").read_text(encoding="utf-8"))
    alone = {who: of_raw_rows(table) for who, table in tables.items()}
    values, errors = np.transpose(list(alone.values()))
    weights = errors**-2.0
    found = {
        "three, by files": (effect["estimate"], effect["standard_error"]),
        **{f"{who} alone": each for who, each in alone.items()},
        "average of the three": (weights @ values / weights.sum(), weights.sum() ** -0.5),
        "all rows in one place": of_raw_rows(pd.concat(tables, names=["clinic"]).reset_index("clinic")),
    }
    print("\nKilogrammes gained by giving up smoking, and 95 % interval")
    for name, (value, error) in found.items():
        print(f"{name:24} {value:5.2f}  {value - 1.96 * error:5.2f} to {value + 1.96 * error:5.2f}")


def of_raw_rows(table: pd.DataFrame) -> tuple[float, float]:
    """Estimate and standard error of the same method."""
    treatment, rows = table["quit"].to_numpy(), np.arange(len(table))
    clinic = table["clinic"].to_numpy(dtype=str) if "clinic" in table else None
    folds = effect_folds(treatment, rows, 5, 0, party=clinic)
    found = doubly_robust(with_parties(table[COLUMNS].to_numpy(), clinic), treatment, table["gain"].to_numpy(), folds)
    return found.value, found.standard_error(rows)


if __name__ == "__main__":
    main()
