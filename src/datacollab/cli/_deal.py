"""Dealing a data set out into CSV files: a table for each party, public rows, and new ones."""

from __future__ import annotations

from pathlib import Path

__all__ = ["deal"]

PUBLIC, NEW = "public", "new"

_NAMES = {
    "digits": ("pixel", "digit"),
    "mnist": ("pixel", "digit"),
    "fashion-mnist": ("pixel", "garment"),
    "ujiindoorloc": ("wap", "latitude"),
    "slice-localization": ("value", "location"),
}


def deal(
    name: str,
    output: Path,
    *,
    parties: list[str],
    n_per_party: int,
    n_public: int,
    n_new: int,
    n_columns: int | None = None,
    data_dir: Path | None = None,
    seed: int | None = 0,
) -> tuple[dict[Path, int], str]:
    """Write one CSV file per party, ``public.csv`` and ``new.csv``, without a row in common.

    Parameters
    ----------
    name : str
        Of a data set.
    output : Path
    parties : list of str
        Become the names of files.
    n_per_party, n_public, n_new : int
        Rows of each table.
    n_columns : int, optional
        Columns to keep: those that vary most.
    data_dir : Path, optional
    seed : int or None

    Returns
    -------
    written : dict of Path to int
        Files, and their rows.
    target : str
        Column of the target.

    Raises
    ------
    ValueError
        When the data set has too few rows, or a file is there already.
    """
    import numpy as np

    from .._validation import require
    from ..datasets import load

    pandas = require("pandas", "cli")
    sizes = dict.fromkeys(parties, n_per_party) | {PUBLIC: n_public, NEW: n_new}
    if len(sizes) < len(parties) + 2:
        raise ValueError(f"Parties need names of their own, other than {PUBLIC!r} and {NEW!r}; got {parties!r}.")
    files = {output / f"{table}.csv": n_rows for table, n_rows in sizes.items()}
    there = [str(file) for file in files if file.exists()]
    if there:
        raise ValueError(f"{', '.join(there)}: there already. Remove them, or choose another directory.")
    X, y = load(name, data_dir=data_dir)
    if sum(sizes.values()) > len(y):
        raise ValueError(f"{sum(sizes.values())} rows are wanted, and {name} has {len(y)}. Ask for fewer.")
    feature, target = _NAMES.get(name, ("x", "y"))
    width = len(str(X.shape[1]))
    columns = [f"{feature}_{number:0{width}d}" for number in range(1, X.shape[1] + 1)]
    kept = np.sort(np.argsort(-X.var(axis=0), kind="stable")[:n_columns])
    order = np.random.default_rng(seed).permutation(len(y))
    output.mkdir(parents=True, exist_ok=True)
    start = 0
    for file, n_rows in files.items():
        rows = order[start : start + n_rows]
        table = pandas.DataFrame(X[np.ix_(rows, kept)], columns=[columns[position] for position in kept])
        table[target] = y[rows]
        file.write_text(table.to_csv(index=False), encoding="utf-8", newline="")
        start += n_rows
    return files, target
