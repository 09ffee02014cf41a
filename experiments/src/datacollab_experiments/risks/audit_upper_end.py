"""Whether an audit's upper ends are above the success of the strongest attackers, in 20 runs.

    python -m datacollab_experiments.risks.audit_upper_end [--data-dir DIR] [--seeds 2] [--datasets diabetes ...]
    python -m datacollab_experiments.risks.audit_upper_end --report-only

A party of 60 rows is audited as before a share leaves, with public rows of its own choice as strangers.  Then the
attackers of `reference_attacks` are let loose on the very share, among strangers that the audit never saw.  A run
that is stopped goes on where it was.  MNIST, UJIIndoorLoc (floors left out: the latitude),
diabetes, and two tables with categories, whas500 and attrition, which want the extra `pays`.  About an hour.
"""

import argparse
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import datacollab as dc
from datacollab.errors import DataCollabWarning
from datacollab.party import Microaggregation
from datacollab.risk.attacks import wilson_interval
from datacollab.risk.audit import AuditResult, audit

from ..harness import Found, Outcome, Scored, Study, Task, attempt, cell_id, markdown, run_study, study_options
from ..pays.tables import Array, Table, load_table
from ..solvers.mnist_parties import data_directory
from .reference_attacks import AttackedShare, strongest

DATASETS = ("mnist", "ujiindoorloc", "diabetes", "whas500", "attrition")
N_OWN = 60
N_ANCHORS = 130
N_PUBLIC = 120
N_STRANGERS = 130
N_COLUMNS = 8
# Of 520 columns with units of their own, fewer anchor rows do not determine f.
MORE_ANCHORS = {"ujiindoorloc": 700}
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
        return published._replace(target=target[published.own_rows])


# Data sets that are no classification.
TASKS = {"ujiindoorloc": "regression", "diabetes": "regression"}
WAYS = {"classification": ("undefended", "means of 5"), "regression": ("means of 5", "means of 5, own targets")}


def make_party(way: str, anchor: Array, n_columns: int, standardize: bool, seed: int) -> dc.Party:
    random = np.random.RandomState([seed, 1])
    defences: dict[str, Sequence[Any]] = {
        "undefended": (),
        "means of 5": (Microaggregation(5),),
        "means of 5, own targets": (OwnTargets(5),),
    }
    f = dc.obfuscator("pca", n_columns, standardize=standardize)
    return dc.Party("a", f, fit_on=anchor, defences=defences[way], random_state=random)


@dataclass(frozen=True)
class Held:
    """One figure of an audit beside the attackers' success, each with its attack."""

    upper: float
    by: str
    reached: float
    attack: str

    @property
    def holds(self) -> bool:
        """Whether the upper end is above the attackers' success, but for rounding."""
        return self.upper >= self.reached - 1e-9


@dataclass(frozen=True)
class AuditRun:
    """One run: figures by name, and seconds of CPU of the audit."""

    dataset: str
    way: str
    seed: int
    figures: dict[str, Held]
    seconds: float


def run(table: Table, way: str, seed: int) -> AuditRun:
    """Audit once, and run the attacks that it has to be above."""
    order = np.random.RandomState([seed, 0]).permutation(len(table.y))
    n_anchors = MORE_ANCHORS.get(table.name, N_ANCHORS)
    parts = np.split(order, np.cumsum([N_OWN, n_anchors, N_PUBLIC, N_STRANGERS]))[:4]
    # The attacker's strangers are none of the audit's: it must hold for people it never saw.
    own, anchor, public, strangers = ((table.matrix(part, parts[1]), table.y[part]) for part in parts)
    # One column fewer than the table, so that no map is a mere rotation.
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
        world = AttackedShare(
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
    figures = {figure: Held(*upper_end(result, figure), *reached[figure]) for figure in FIGURES}
    return AuditRun(table.name, way, seed, figures, audited)


def upper_end(result: AuditResult, metric: str) -> tuple[float, str]:
    # Figures that were not measured have no upper end to hold.
    found = [(one.upper, one.attack) for one in result.findings if one.metric == metric and one.is_measured]
    return max(found)


def figures(rows: Sequence[AuditRun]) -> list[list[str]]:
    """Per way of sharing: mean upper ends and attackers' success, and how often the first was above."""
    cells = []
    names = list(dict.fromkeys(row.way for row in rows))
    for name in [*names, "all"]:
        some = [row for row in rows if name in ("all", row.way)]
        line = [name, str(len(some))]
        for figure in FIGURES:
            held = [row.figures[figure] for row in some]
            reached = np.mean([one.reached for one in held])
            upper = np.mean([one.upper for one in held])
            line += [f"{reached:.2f}", f"{upper:.2f}", f"{sum(one.holds for one in held)}"]
        cells.append([*line, f"{np.mean([row.seconds for row in some]):.0f}"])
    return cells


@dataclass(frozen=True, kw_only=True)
class Run(Task):
    """One table shared in one way."""

    dataset: str
    way: str
    data_dir: Path | None

    @property
    def label(self) -> str:
        return f"{self.dataset}, {self.way}, seed {self.seed}"

    def measure(self) -> Iterator[Outcome]:
        """Audit, attack, and give each figure with the name of the attack that found it."""
        for cell in self.cells:
            yield attempt(cell, self._score)

    def _score(self) -> Scored:
        row = run(load_table(self.dataset, data_directory(self.data_dir)), self.way, self.seed)
        scores: dict[str, float] = {}
        for figure, held in row.figures.items():
            scores |= {f"{figure}|upper|{held.by}": held.upper, f"{figure}|reached|{held.attack}": held.reached}
        return scores, {"audit": row.seconds}, None


def tasks_of(options: argparse.Namespace) -> list[Run]:
    """One task for each table, way and seed."""
    tasks: list[Run] = []
    for seed in range(options.seeds):
        for dataset in options.datasets:
            for way in WAYS[TASKS.get(dataset, "classification")]:
                cells = {cell_id({"audit_upper_end": 1, "dataset": dataset, "way": way}): way}
                tasks.append(Run(seed=seed, cells=cells, dataset=dataset, way=way, data_dir=options.data_dir))
    return tasks


def rows_of(found: Found[Run]) -> Iterator[AuditRun]:
    """Return rows as the tables take them."""
    for task, results in found:
        for result in results.values():
            if result.error is None:
                told: dict[str, dict[str, tuple[float, str]]] = {figure: {} for figure in FIGURES}
                for name, value in result.scores.items():
                    figure, what, attack = name.split("|")
                    told[figure][what] = value, attack
                figures = {figure: Held(*each["upper"], *each["reached"]) for figure, each in told.items()}
                yield AuditRun(task.dataset, task.way, task.seed, figures, result.seconds["audit"])


def report_text(rows: Sequence[AuditRun]) -> str:
    """Return the table, how many runs hold, and those that do not."""
    head = ["shared", "runs"]
    for figure in FIGURES:
        head += [f"{figure}, reached", "at most", "above in"]
    above = sum(all(held.holds for held in row.figures.values()) for row in rows)
    # Wilson's interval, which is right for rates near one.
    low, high = wilson_interval(above, len(rows))
    lines = [markdown([*head, "CPU s"], figures(rows), numbers=True), ""]
    interval = f"95 % interval {low:.2f} to {high:.2f}"
    lines.append(f"Both upper ends above all attacks: {above} of {len(rows)} runs ({interval}).")
    for row in rows:
        for figure, held in row.figures.items():
            if not held.holds:
                lines.append(f"below: {row.dataset}, {row.way}, seed {row.seed}, {figure}: {held}")
    return "\n".join(lines)


def write(found: Found[Run], folder: Path) -> Path:
    """Write the page, and print it."""
    text = report_text(list(rows_of(found)))
    folder.mkdir(parents=True, exist_ok=True)
    page = folder / "README.md"
    page.write_text(text + "\n", encoding="utf-8")
    print(text)
    return page


def parser() -> argparse.ArgumentParser:
    result = argparse.ArgumentParser(
        prog="python -m datacollab_experiments.risks.audit_upper_end", description=str(__doc__).splitlines()[0]
    )
    study_options(result, Path("output/audit-upper-end"))
    result.add_argument("--data-dir", type=Path, help="directory of MNIST and UJIIndoorLoc")
    result.add_argument("--seeds", type=int, default=2)
    result.add_argument("--datasets", nargs="+", choices=DATASETS, default=list(DATASETS))
    return result


def main(arguments: list[str] | None = None) -> int:
    options = parser().parse_args(arguments)
    return run_study(Study(name="audit-upper-end", tasks=tasks_of(options), write_report=write), options)


if __name__ == "__main__":
    sys.exit(main())
