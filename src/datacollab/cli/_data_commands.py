"""``datacollab data``: real data sets, and dealing one out into CSV files."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from .. import datasets
from .._require import require
from ._command import choose_path
from ._output import Report

USUAL_PARTIES = ("hospital-a", "hospital-b", "hospital-c", "hospital-d", "hospital-e")


def list_(report: Report, data_dir: Path | None) -> None:
    found = datasets.available(data_dir=data_dir)
    report.facts = [{**asdict(dataset), "path": dataset.path and str(dataset.path)} for dataset in found]
    for each in found:
        size = f"{each.n_samples} x {each.n_features}"
        report.line(f"{each.name:<20} {each.task:<15} {size:<14} {each.megabytes:.0f} MB, {each.licence}")
        report.line(f"  {each.description}: {each.where}")


def fetch(report: Report, name: str, data_dir: Path | None) -> None:
    found = datasets.fetch(name, data_dir=data_dir)
    report.facts = {"path": str(found)}
    report.line(str(found))


def deal(
    report: Report,
    name: str,
    there: Path | None,
    output: Path | None,
    party: list[str] | None,
    rows: int,
    public: int,
    new: int,
    **options: Any,
) -> None:
    parties = party or list(USUAL_PARTIES)
    sizes = dict.fromkeys(parties, rows) | {PUBLIC: public, NEW: new}
    if len(sizes) < len(parties) + 2:  # Two of them would be one file.
        raise ValueError(f"Parties need names of their own, other than {PUBLIC!r} and {NEW!r}; got {parties!r}.")
    folder = choose_path(output, there, "--output / -o")
    files = {folder / f"{table}.csv": n_rows for table, n_rows in sizes.items()}
    target = _deal(name, files, **options)
    report.facts = {"files": {str(file): n_rows for file, n_rows in files.items()}, "target": target}
    for file, n_rows in files.items():
        report.line(f"{file}: {n_rows} rows")
    report.line(f"The target's column is {target!r}.")


PUBLIC = "public"
NEW = "new"
_NAMES = {
    "digits": ("pixel", "digit"),
    "mnist": ("pixel", "digit"),
    "fashion-mnist": ("pixel", "garment"),
    "ujiindoorloc": ("wap", "latitude"),
    "slice-localization": ("value", "location"),
}
"""Names of features, which get numbers, and of the target."""


def _deal(name: str, files: dict[Path, int], *, columns: int | None, data_dir: Path | None, seed: int) -> str:
    """Write files of so many rows each, without a row in common; return the target's column."""
    import numpy as np

    pandas = require("pandas", "cli")
    if there := [str(file) for file in files if file.exists()]:
        raise ValueError(f"{', '.join(there)}: there already. Remove them, or choose another directory.")
    X, y = datasets.load(name, data_dir=data_dir)
    # Without replacement: parties with rows in common would learn more than real ones.
    if (n_wanted := sum(files.values())) > len(y):
        raise ValueError(f"Expected at most the {len(y)} rows of {name}, got {n_wanted}. Ask for fewer.")
    feature, target = _NAMES.get(name, ("x", "y"))
    # Numbers of equal width, so that columns sort by them.
    width = len(str(X.shape[1]))
    names = [f"{feature}_{number:0{width}d}" for number in range(1, X.shape[1] + 1)]
    # The columns that vary most: pixels at the rim are zero in all rows.
    kept = np.sort(np.argsort(-X.var(axis=0), kind="stable")[:columns])
    order = np.random.default_rng(seed).permutation(len(y))
    start = 0
    for file, n_rows in files.items():
        rows = order[start : start + n_rows]
        table = pandas.DataFrame(X[np.ix_(rows, kept)], columns=[names[position] for position in kept])
        table[target] = y[rows]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(table.to_csv(index=False), encoding="utf-8", newline="")
        start += n_rows
    return target
