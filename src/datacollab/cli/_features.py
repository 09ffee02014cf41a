"""Several tables with the same columns as matrices of numbers: categories become columns of zeros and ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ._tables import listed

if TYPE_CHECKING:
    from .._validation import FloatArray

__all__ = ["Features", "encode"]


@dataclass(frozen=True)
class Features:
    """Matrices of numbers, and where every column of the tables stands in them.

    Attributes
    ----------
    matrices : dict of Path to ndarray of shape (n_rows, n_features)
    positions : dict of str to int or list of int
        A column of numbers has one position, a category one per category.
    """

    matrices: dict[Path, FloatArray]
    positions: dict[str, int | list[int]]


def encode(tables: Mapping[Path, Any], reference: Path, ignored: str) -> Features:
    """Encode tables alike; only a public one says which categories there are.

    Parameters
    ----------
    tables : mapping of Path to DataFrame
        The first has the private rows, and the order of the columns.
    reference : Path
        The table whose categories are taken.
    ignored : str
        A column left out of every table: the target.

    Raises
    ------
    ValueError
        When columns differ in name or in kind, entries are missing, or a category is unknown to the reference.
    """
    import numpy as np

    private = next(iter(tables))
    names = [name for name in tables[private].columns if name != ignored]
    for path, table in tables.items():
        _check_columns(path, private, list(table.columns.drop(ignored, errors="ignore")), names)
        missing = int(table[names].isna().any(axis=1).sum())
        if missing:
            raise ValueError(
                f"{path} has missing entries in {missing} of {len(table)} rows. Impute them or drop these rows."
            )
    blocks: dict[Path, list[Any]] = {path: [] for path in tables}
    positions: dict[str, int | list[int]] = {}
    n_features = 0
    for name in names:
        if _is_numeric(tables, name):
            positions[name], width = n_features, 1
            for path, table in tables.items():
                blocks[path].append(table[[name]].to_numpy(dtype=np.float64))
        else:
            categories = sorted(tables[reference][name].unique(), key=str)
            positions[name], width = list(range(n_features, n_features + len(categories))), len(categories)
            for path, table in tables.items():
                blocks[path].append(_one_hot(table[name], categories, path, reference))
        n_features += width
    return Features({path: np.hstack(block) for path, block in blocks.items()}, positions)


def _check_columns(path: Path, private: Path, found: list[str], wanted: list[str]) -> None:
    lacking, further = [name for name in wanted if name not in found], [name for name in found if name not in wanted]
    if lacking:
        raise ValueError(
            f"{path} lacks columns that {private} has: {listed(lacking)}. Give the same columns in all files."
        )
    if further:
        raise ValueError(
            f"{path} has columns that {private} lacks: {listed(further)}. Give the same columns in all files."
        )


def _is_numeric(tables: Mapping[Path, Any], name: str) -> bool:
    kinds = {path: table[name].dtype.kind in "biuf" for path, table in tables.items()}
    if len(set(kinds.values())) > 1:
        numeric = listed(path for path, kind in kinds.items() if kind)
        others = listed(path for path, kind in kinds.items() if not kind)
        raise ValueError(
            f"Column {name!r} holds numbers in {numeric}, but not in {others}. Make it the same in all files."
        )
    return all(kinds.values())


def _one_hot(column: Any, categories: list[Any], path: Path, reference: Path) -> Any:
    import numpy as np

    unknown = int((~column.isin(categories)).sum())
    if unknown:
        raise ValueError(
            f"{path}: column {column.name!r} has categories, in {unknown} of {len(column)} rows, that {reference} "
            "lacks. Merge rare categories, drop identifiers, or give public rows with every category."
        )
    return np.column_stack([(column == category).to_numpy(dtype=np.float64) for category in categories])
