"""Whether an audit's upper ends are above what the strongest attackers reach, in 40 runs.

    python benchmarks/audit_upper_end.py [--data-dir DIR] [--output FILE] [--seeds 2] [--datasets diabetes ...]
    python benchmarks/audit_upper_end.py --table

A party of 60 rows is audited as before a share leaves, with public rows of its own choice as strangers.  Then the
attackers of `reference_attacks` are let loose on the very share, among strangers that the audit never saw.  Results are
lines of a file; a run that is stopped goes on where it was.  MNIST, UJIIndoorLoc (floors left out: the latitude),
diabetes, and two tables with categories, whas500 and attrition, which want the extra `pays`.  About an hour.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from measuring import Row, append_row, markdown, read_rows
from mnist_parties import data_directory
from reference_attacks import World, strongest

import datacollab as dc
from datacollab.errors import DataCollabWarning
from datacollab.party import Microaggregation
from datacollab.risk.attacks import Rate
from datacollab.risk.audit import AuditResult, audit
from datacollab_experiments.pays.columns import Array
from datacollab_experiments.pays.tables import Table, load_table

DATASETS = ("mnist", "ujiindoorloc", "diabetes", "whas500", "attrition")
N_OWN, N_ANCHORS, N_PUBLIC, N_STRANGERS, N_COLUMNS = 60, 130, 120, 130, 8
MORE_ANCHORS = {"ujiindoorloc": 700}
"""Of 520 columns with units of their own, fewer anchor rows do not determine f."""
ATTACKS = (
    "kernel ridge",
    "emulator",
    "kernel ridge and emulator, averaged",
    "forward emulator",
    "membership",
    "demixing",
    "shadow shares",
    "subspace",
)
FIGURES = ("linkage", "membership AUC")


class OwnTargets(Microaggregation):
    """Means of groups beside each row's own target: not as the library shares them, and as a worse defence would."""

    def _defend(self, representation: Array, target: Any, *rest: Any) -> Any:
        published = super()._defend(representation, target, *rest)
        return replace(published, target=target[published.own_rows])


WAYS = {
    "classification": ("undefended", "means of 5", "private", "epsilon 4"),
    "regression": ("means of 5", "means of 5, own targets", "private", "epsilon 4"),
}


def make_party(way: str, anchor: Array, n_columns: int, standardize: bool, seed: int) -> dc.Party:
    random = np.random.RandomState([seed, 1])
    if way in ("private", "epsilon 4"):
        epsilon = 4.0 if way == "epsilon 4" else None
        return dc.Party.private(
            "a", anchor, n_components=n_columns, epsilon=epsilon, standardize=standardize, random_state=random
        )
    defences: dict[str, Sequence[Any]] = {
        "undefended": (),
        "means of 5": (Microaggregation(5),),
        "means of 5, own targets": (OwnTargets(5),),
    }
    f = dc.obfuscator("pca", n_columns, standardize=standardize)
    return dc.Party("a", f, fit_on=anchor, defences=defences[way], random_state=random)


def run(table: Table, way: str, seed: int) -> Row:
    """One audit, and the attacks that it has to be above."""
    order = np.random.RandomState([seed, 0]).permutation(len(table.y))
    n_anchors = MORE_ANCHORS.get(table.name, N_ANCHORS)
    parts = np.split(order, np.cumsum([N_OWN, n_anchors, N_PUBLIC, N_STRANGERS]))[:4]
    own, anchor, public, strangers = ((table.matrix(part, parts[1]), table.y[part]) for part in parts)
    n_columns = min(N_COLUMNS, own[0].shape[1] - 1)
    started = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataCollabWarning)
        warnings.simplefilter("ignore", UserWarning)
        party = make_party(way, anchor[0], n_columns, table.standardize, seed).fit(*own)
        result = audit(
            party,
            own[0],
            anchor[0],
            y=own[1],
            anchor_target=anchor[1],
            public=public[0],
            public_target=public[1],
            levels=("T2", "T2f"),
            attacks=ATTACKS,
            random_state=np.random.RandomState([seed, 2]),
        )
        audited = time.process_time() - started
        share, places = party.share_with_order(*anchor)
        world = World(
            own=own,
            anchor=anchor,
            public=public,
            strangers=strangers,
            party=party,
            share=share,
            places=places,
            random=np.random.RandomState([seed, 3]),
        )
        reached = strongest(world)
    row: Row = {"dataset": table.name, "way": way, "seed": seed, "CPU s of the audit": round(audited, 1)}
    for figure in FIGURES:
        upper, attack = upper_end(result, figure)
        row[figure] = {"upper": upper, "by": attack, "reached": reached[figure][0], "with": reached[figure][1]}
    return row | {"CPU s of the attacks": round(time.process_time() - started - audited, 1)}


def upper_end(result: AuditResult, metric: str) -> tuple[float, str]:
    found = [(one.upper, one.attack) for one in result.findings if one.metric == metric and one.is_measured]
    return max(found)


def holds(row: Row, figure: str) -> bool:
    """Whether the upper end is above what was reached, but for rounding."""
    return bool(row[figure]["upper"] >= row[figure]["reached"] - 1e-9)


def figures(rows: Sequence[Row]) -> list[list[str]]:
    """Per way of sharing: mean upper ends and what was reached, and how often the first was above."""
    cells = []
    names = list(dict.fromkeys(row["way"] for row in rows))
    for name in [*names, "all"]:
        some = [row for row in rows if name in ("all", row["way"])]
        line = [name, str(len(some))]
        for figure in FIGURES:
            upper, reached = (np.mean([row[figure][what] for row in some]) for what in ("upper", "reached"))
            line += [f"{reached:.2f}", f"{upper:.2f}", f"{sum(holds(row, figure) for row in some)}"]
        cells.append([*line, f"{np.mean([row['CPU s of the audit'] for row in some]):.0f}"])
    return cells


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-dir", type=Path, help="directory of MNIST and UJIIndoorLoc")
    parser.add_argument("--output", type=Path, default=Path("output/benchmarks/audit_upper_end.jsonl"))
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--datasets", nargs="+", choices=DATASETS, default=list(DATASETS))
    parser.add_argument("--table", action="store_true", help="only print what is there")
    options = parser.parse_args(arguments)
    done = {(row["dataset"], row["way"], row["seed"]) for row in read_rows(options.output)}
    for seed in range(options.seeds if not options.table else 0):
        for name in options.datasets:
            table = load_table(name, data_directory(options.data_dir))
            for way in WAYS[table.task]:
                if (name, way, seed) not in done:
                    print(f"{name}, {way}, seed {seed}", file=sys.stderr, flush=True)
                    append_row(options.output, run(table, way, seed))
    rows = [row for row in read_rows(options.output) if row["dataset"] in options.datasets]
    head = ["shared", "runs"]
    for figure in FIGURES:
        head += [f"{figure}, reached", "at most", "above in"]
    print(markdown([*head, "CPU s"], figures(rows)))
    above = sum(all(holds(row, figure) for figure in FIGURES) for row in rows)
    rate = Rate(above, len(rows))
    interval = f"95 % interval {rate.low:.2f} to {rate.high:.2f}"
    print(f"\nBoth upper ends above all attacks: {above} of {len(rows)} runs ({interval}).")
    for row in rows:
        for figure in FIGURES:
            if not holds(row, figure):
                print(f"below: {row['dataset']}, {row['way']}, seed {row['seed']}, {figure}: {row[figure]}")


if __name__ == "__main__":
    main()
