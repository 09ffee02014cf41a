"""Run one experiment of each method of the family, draw by draw, and write one table beside the papers' figures."""

import argparse
import csv
import os
import sys
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from statistics import median
from types import ModuleType

from ..harness import Found, ModuleTask, Study, markdown, module_tasks, run_study, study_options, write_rows
from ..pays.results import Difference, student
from .dealing import FamilyRow, Scores

# Modules, each with `measure`, `ROWS` and a docstring for the page, in the order of the report.
MEMBERS = ("alignment", "feddcl", "nri", "privacy", "clustering", "cox", "quasi", "shapley")
VERDICTS = {"held": ("Seen here", "meets"), "not held": ("Not seen here", "misses"), "open": ("Open", "leaves open")}
_SOURCES = (
    "Of these papers, abstracts could be read, and one table of a public repository; no other printed number was to be "
    "had. So each claim is a bound that we set by the words of an abstract. Failing it says something of the "
    "experiment that is described below. Of DC-COX, not even the abstract could be read, and the claims are ours."
)
_COMMAND = "python -m datacollab_experiments.family --data-dir DIR --copy-to docs/results/family"


def write_report(found: Found[ModuleTask], folder: Path) -> Path:
    """Write every figure, and their page."""
    rows = []
    for task, results in found:
        for result in results.values():
            for name, value in result.scores.items():
                data, method, measure = name.split("|")
                figure = {"member": task.name, "data": data, "method": method, "measure": measure}
                rows.append({**figure, "seed": task.seed, "value": value})
    small = any(task.options["small"] for task, _ in found)
    folder.mkdir(parents=True, exist_ok=True)
    write_rows(rows, folder / "rows.csv")
    page = folder / "README.md"
    page.write_text(report_text(scores_of(folder / "rows.csv"), small=small), encoding="utf-8")
    return page


def scores_of(path: Path) -> dict[ModuleType, Scores]:
    """Return the figures of a file of rows, by member."""
    scores: dict[str, dict[tuple[str, str, str], dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
    with path.open(encoding="utf-8", newline="") as stream:
        for row in csv.DictReader(stream):
            scores[row["member"]][row["data"], row["method"], row["measure"]][int(row["seed"])] = float(row["value"])
    return {_module(member): of for member, of in scores.items()}


def report_text(found: Mapping[ModuleType, Scores], *, small: bool) -> str:
    """Return the page of members' scores: verdicts, one table, the experiments, and references."""
    rows: list[tuple[FamilyRow, Scores]] = [(row, scores) for module, scores in found.items() for row in module.ROWS]
    papers = list(dict.fromkeys(row.paper for row, _ in rows))
    judged: dict[str, Counter[str]] = defaultdict(Counter)
    caveats: dict[str, list[str]] = defaultdict(list)
    lines = []
    for row, scores in rows:
        words = []
        for claim, difference, verdict in row.verdicts(scores):
            judged[row.method][verdict] += 1
            if verdict == "not held" and row.caveat not in caveats[verdict]:
                caveats[verdict].append(row.caveat)
            words.append(f"{verdict}: {claim.says} ({_words(difference)})")
        means = [_words(student(list(row.values(scores, name).values()))) for name in (row.method, "Local", "Central")]
        ours = list(row.values(scores, row.method).values())
        means.insert(1, _number(median(ours)) if ours else "–")
        number = f"[{papers.index(row.paper) + 1}](#references)"
        lines.append([row.method, number, row.data, row.measure, row.printed, *means, "; ".join(words)])
    found_of = sum(judged.values(), Counter())
    counts = []
    for verdict, (name, verb) in VERDICTS.items():
        of = [f"{method} {verb} {n[verdict]} of {n.total()}." for method, n in judged.items() if n[verdict]]
        if of:
            counts.append(" ".join([f"- **{name}.**", *of, *filter(None, caveats[verdict])]))
    n_draws = max((len(values) for scores in found.values() for values in scores.values()), default=0)
    title = "# Other methods of the family" + ": smoke, digits in place of MNIST" * small
    head = ["method", "paper", "data", "measure", "printed", "ours", "median", "Local", "Central", "claims"]
    parts = [
        title,
        f"Of {found_of.total()} claims about the family's other methods, {found_of['held']} are seen on public data, "
        f"{found_of['not held']} are not, and {found_of['open']} stay open. A claim is one bound on one table. "
        "The lists count by method, and the [table](#what-was-found) has each claim.",
        "\n".join(counts),
        _SOURCES,
        f"Means of {n_draws} draws with 95 % intervals (Student's); beside claims, of the differences in each draw. "
        "A claim is seen (held) if all of its interval is within the bound, not seen if all of it is beyond, and else "
        "open. Each is judged alone, over draws from the same tables. "
        '"Median" is that of ours over draws. [All figures](rows.csv) come from this command, with MNIST in DIR and '
        "the extra `pays` (`pip install -e 'experiments[pays]'`). Seeds fix all but the seconds.",
        f"```console\n$ {_COMMAND}\n```",
        "## What was found",
        markdown(head, lines),
        *(f"## {str(module.__doc__).strip()}".replace(".\n\n", "\n\n", 1) for module in found),
        "## References",
        "\n".join(f"{number}. {paper}" for number, paper in enumerate(papers, start=1)),
    ]
    return "\n\n".join(parts) + "\n"


def _words(found: Difference) -> str:
    if found.mean != found.mean:
        return "–"
    return f"{_number(found.mean)} [{_number(found.low)}, {_number(found.high)}]"


def _number(value: float) -> str:
    if 0 < abs(value) < 5e-4:
        return f"{value:.2e}"
    return f"{value:.3f}"


def _module(member: str) -> ModuleType:
    return import_module(f".{member}", __package__)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog=f"python -m {__package__}", description=__doc__)
    parser.add_argument("--member", action="append", choices=MEMBERS, help="only these; may be repeated")
    parser.add_argument(
        "--preset", choices=("full", "smoke"), default="full", help="smoke: small, on scikit-learn's data"
    )
    parser.add_argument("--data-dir", help="where MNIST is")
    options = study_options(parser, Path("output/family")).parse_args(arguments)
    if options.data_dir:
        os.environ["DATACOLLAB_DATA"] = options.data_dir
    small = options.preset == "smoke"
    members = options.member or MEMBERS
    tasks = module_tasks(str(__package__), members, 2 if small else 10, beside=["dealing"], small=small)
    return run_study(Study(name="family", tasks=tasks, write_report=write_report), options)


if __name__ == "__main__":
    sys.exit(main())
