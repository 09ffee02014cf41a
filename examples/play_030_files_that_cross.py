"""
Three parties and an analyst, with nothing between them but files
=================================================================

Every step is a command that somebody would type, and runs in a process of its own under the user's own umask.  What
crosses from one directory to another is copied by ``send``, as an e-mail or a memory stick would: the public keys, the
signed project, the sealed anchor, a share of each party, and a model for each::

    python play_030_files_that_cross.py                                    # handwritten digits, from scikit-learn
    python play_030_files_that_cross.py ujiindoorloc --data-dir DIRECTORY  # where a phone is, from radio signals

With ``--keep-order`` the parties share their own rows, undefended and in the order of their tables.  Method and model
are named, so that predictions are those of ``datacollab.DataCollaborationClassifier`` to the last digit.  In life none
of that is a good idea.
"""

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

PARTIES = {"clinic-a": 0o077, "clinic-b": 0o022, "clinic-c": 0o002}
"""Each party's umask: what its other users may not do with new files."""

ANALYST_UMASK = 0o027

SIZES = ["--rows=100", "--columns=400"]
"""Sizes of the parties' tables.  In wider ones, PCA takes the leading directions by a random, secret method."""

TARGETS = {"digits": "digit", "ujiindoorloc": "latitude"}
RANGES = {"digits": ("0", "1"), "ujiindoorloc": ("-110", "100")}
"""Range of all columns but the target.  In UJIIndoorLoc 100 stands for an access point that was not received."""


def main() -> None:
    """Read the options, write the tables, and play all steps."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset", nargs="?", choices=["digits", "ujiindoorloc"], default="digits")
    parser.add_argument("--data-dir", type=Path, help="where the data set's files are")
    parser.add_argument("--output", type=Path, default=Path("exchange"), help="directory for the four directories")
    parser.add_argument("--keep-order", action="store_true", help="undefended, not shuffled; for comparisons only")
    options = parser.parse_args()
    if options.output.exists():
        sys.exit(f"{options.output} is there already; remove it, or choose another --output.")
    play(options.output, options.dataset, options.data_dir, shuffle=not options.keep_order)
    print(f"\nDone. Predictions: {options.output}/*/predictions.csv")


def play(output: Path, dataset: str, data_dir: Path | None, *, shuffle: bool) -> None:
    """All steps of the exchange, in order; the first party owns the project."""
    owner, *others = PARTIES

    def run(who: str, *command: str) -> None:
        """Run a command as one of the four, in its own directory."""
        print(f"{who}$ datacollab {' '.join(command)}", flush=True)
        subprocess.run(
            [sys.executable, "-m", "datacollab", *command],
            cwd=output / who,
            umask=PARTIES.get(who, ANALYST_UMASK),
            env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
            check=True,
        )

    def send(file: str, sender: str, *receivers: str, name: str = "") -> None:
        """Carry a file from one directory to others."""
        for receiver in receivers:
            shutil.copy(output / sender / file, output / receiver / (name or Path(file).name))

    # Every party has its table, and some rows are public.  The analyst has nothing.
    for who in ["outside", "analyst", *PARTIES]:
        (output / who).mkdir(parents=True)
    where = [] if data_dir is None else [f"--data-dir={data_dir.resolve()}"]
    run("outside", "data", "deal", dataset, ".", *(f"--party={party}" for party in PARTIES), *SIZES, *where)
    for party in PARTIES:
        send(f"{party}.csv", "outside", party, name="own.csv")

    # Everybody makes keys; the public half goes to the owner.
    for who in [*PARTIES, "analyst"]:
        run(who, "keys", "new", ".")
        if who != owner:
            send("public.key", who, owner, name=f"{who}.key")

    # The owner writes down what is agreed, from public rows, and signs it; and makes the anchor, sealed to the parties.
    send("public.csv", "outside", owner)
    members = [f"--party={party}={'public' if party == owner else party}.key" for party in PARTIES]
    agreed = ["--like=public.csv", f"--target={TARGETS[dataset]}", "--purpose=An example of an exchange of files."]
    rules = ["--range", *RANGES[dataset], "--anchor-rows=300", "--max-components=16", "--rows"]
    run(owner, "project", "new", "example", *agreed, *members, "--analyst=analyst.key", *rules, "-o", "project.toml")
    run(owner, "anchor", "seal", "public.csv", "--project=project.toml", "-o", "anchor.dcanchor")
    send("project.toml", owner, *others, "analyst")
    send("anchor.dcanchor", owner, *others)

    # Each party looks at what would leave, approves it, and shares once.
    for party in PARTIES:
        run(party, "party", "join", "project.toml", "anchor.dcanchor")
        adjust_policy(output / party / "policy.toml", shuffle=shuffle)
        undefended = [] if shuffle else ["--preset=none", "--undefended"]
        run(party, "party", "share", "own.csv", "--components=12", "--no-audit", "--approve", *undefended)
        send(f"outbox/{party}.dcshare", party, "analyst")

    # The analyst aligns the shares and trains one model, by default the one that predicts rows left out best.
    shares = [f"{party}.dcshare" for party in PARTIES]
    named = [] if shuffle else ["--method=kti", "--model=random-forest"]
    run("analyst", "analyst", "integrate", *shares, "--project=project.toml", "--seed=0", *named)
    run("analyst", "analyst", "export")

    # Each party installs its model, reads what collaboration brought, and predicts alone from now on.
    for party in PARTIES:
        send(f"outbox/{party}.dcmodel", "analyst", party)
        run(party, "party", "install", f"{party}.dcmodel")
        send("new.csv", "outside", party)
        run(party, "party", "predict", "new.csv", "-o", "predictions.csv")
        run(party, "party", "evaluate", "new.csv")


def adjust_policy(policy: Path, *, shuffle: bool) -> None:
    """Let shares leave whose risk was not measured, which takes its time; or in the order of the table too."""
    text = policy.read_text(encoding="utf-8").replace('audit = "required"', 'audit = "warn"')
    if not shuffle:
        text = text.replace("shuffle = true", "shuffle = false")
    policy.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
