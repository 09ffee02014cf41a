"""The walkthrough (docs/walkthrough.md), again and again: accuracies, risks and time, as medians with their range.

    python -m datacollab_experiments.readings.walkthrough --runs 10 --output output/walkthrough

Every run is `datacollab demo --roles` in a new directory, which is kept; runs that are there are not done again.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

FIGURES = {
    "accuracy, pooled": r"^  accuracy, pooled +([\d.]+)",
    "accuracy, you and the public rows": r"^  accuracy, you and the public rows +([\d.]+)",
    "accuracy, you alone": r"^  accuracy, you alone +([\d.]+)",
    "accuracy, the collaboration's model": r"^  accuracy, the collaboration's model +([\d.]+)",
    "rows linked to their originals, at most (%)": r"^  rows linked to their originals +(\d+) %",
    "rows told among strangers, at most (%)": r"^  rows told among strangers +(\d+) %",
    "members told from others, at most (AUC)": r"^  members told from others \(AUC\) +([\d.]+)",
    "processor time of all commands (s)": r"^processor time: ([\d.]+)",
}
"""Of hospital A: the first line of a run that matches."""


def play(folder: Path) -> str:
    """What a run printed; it is run unless it was."""
    told = folder.with_suffix(".txt")
    if not told.exists():
        shutil.rmtree(folder, ignore_errors=True)  # of a run that was stopped
        before = _children()
        done = subprocess.run(
            [sys.executable, "-m", "datacollab", "demo", "--roles", "--output", str(folder)],
            env=os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "COLUMNS": "100"},
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        told.write_text(f"{done.stdout}processor time: {_children() - before:.1f}\n", encoding="utf-8")
    return told.read_text(encoding="utf-8")


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def summary(runs: list[str]) -> str:
    """A line for each figure: median, and from the least to the largest."""
    lines = [f"Over {len(runs)} runs, one thread each: median (least to largest)"]
    for name, pattern in FIGURES.items():
        found = [float(match[1]) for run in runs if (match := re.search(pattern, run, re.MULTILINE))]
        if not found:
            raise ValueError(f"No run printed {name!r}: {pattern!r} fits nothing. Look at what a run printed.")
        lines.append(f"  {name:45} {statistics.median(found):g} ({min(found):g} to {max(found):g})")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--output", type=Path, default=Path("output/walkthrough"))
    given = parser.parse_args()
    given.output.mkdir(parents=True, exist_ok=True)
    runs = []
    for number in range(1, given.runs + 1):
        runs.append(play(given.output / f"run-{number}"))
        print(f"run {number} of {given.runs}", file=sys.stderr)
    print(summary(runs))


if __name__ == "__main__":
    main()
