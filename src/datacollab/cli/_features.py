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
    n_free : int
        How many numbers tell a row: the zeros and ones of a category add up to one, and "other" is rare.
    adjusted : tuple of str
        What became of entries that are missing or unknown, a sentence for each table that has any.
    """

    matrices: dict[Path, FloatArray]
    positions: dict[str, int | list[int]]
    n_free: int
    adjusted: tuple[str, ...]


def encode(tables: Mapping[Path, Any], reference: Path, ignored: str) -> Features:
    """Encode tables alike; only a public one says which categories there are, and what is filled in.

    As in a project that is drafted from that table, the median or the most frequent category stands for a missing
    entry, and unknown categories count as "other", as long as they are exceptions.

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
        When columns differ in name or in kind, the reference has no entry of one, or too many entries are of
        categories that are unknown to it.
    """
    import numpy as np

    private = next(iter(tables))
    names = [name for name in tables[private].columns if name != ignored]
    for path, table in tables.items():
        _check_columns(path, private, list(table.columns.drop(ignored, errors="ignore")), names)
    unknown = dict.fromkeys(tables, 0)
    blocks: dict[Path, list[Any]] = {path: [] for path in tables}
    positions: dict[str, int | list[int]] = {}
    n_features = n_free = 0
    for name in names:
        known = tables[reference][name].dropna()
        if known.empty:
            raise ValueError(f"{reference}: column {name!r} is empty, so nothing can be filled in. Leave it out.")
        if _is_numeric(tables, name):
            positions[name], width = n_features, 1
            n_free += 1
            for path, table in tables.items():
                numbers = table[[name]].to_numpy(dtype=np.float64)
                blocks[path].append(np.where(np.isnan(numbers), float(np.median(known.to_numpy(float))), numbers))
        else:
            categories = sorted(known.unique(), key=str)
            usual = known.value_counts().index[0]
            filled = {path: table[name].where(table[name].notna(), usual) for path, table in tables.items()}
            for path, column in filled.items():
                unknown[path] += _n_unknown(column, categories, path, reference)
            encoded = {path: _one_hot(column, categories) for path, column in filled.items()}
            others = {path: 1.0 - block.sum(axis=1, keepdims=True) for path, block in encoded.items()}
            if any(other.any() for other in others.values()):
                encoded = {path: np.hstack([block, others[path]]) for path, block in encoded.items()}
            width = encoded[private].shape[1]
            positions[name] = list(range(n_features, n_features + width))
            n_free += max(1, len(categories) - 1)
            for path, block in encoded.items():
                blocks[path].append(block)
        n_features += width
    adjusted = (
        _adjusted(path, int(table[names].isna().sum().sum()), unknown[path], reference)
        for path, table in tables.items()
    )
    matrices = {path: np.hstack(block) for path, block in blocks.items()}
    return Features(matrices, positions, n_free, tuple(sentence for sentence in adjusted if sentence))


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
    # Truth values with gaps come as objects.
    kinds = {path: table[name].dropna().infer_objects().dtype.kind in "biuf" for path, table in tables.items()}
    if len(set(kinds.values())) > 1:
        numeric = listed(path for path, kind in kinds.items() if kind)
        others = listed(path for path, kind in kinds.items() if not kind)
        raise ValueError(
            f"Column {name!r} holds numbers in {numeric}, but not in {others}. Make it the same in all files."
        )
    return all(kinds.values())


def _n_unknown(column: Any, categories: list[Any], path: Path, reference: Path) -> int:
    """Entries of other categories, which may be exceptions only."""
    from ..exchange.project import MOST_OUTSIDE

    unknown = int((~column.isin(categories)).sum())
    if unknown > 1 and unknown > MOST_OUTSIDE * len(column):
        raise ValueError(
            f"{path}: column {column.name!r} has categories, in {unknown} of {len(column)} rows, that {reference} "
            f"lacks; more than {MOST_OUTSIDE:.0%} are no exceptions that could count as other. Give public rows with "
            "every category, or leave the column out, with --without, if it holds identifiers, dates or free text."
        )
    return unknown


def _one_hot(column: Any, categories: list[Any]) -> Any:
    import numpy as np

    return np.column_stack([(column == category).to_numpy(dtype=np.float64) for category in categories])


def _adjusted(path: Path, n_missing: int, n_unknown: int, reference: Path) -> str:
    parts = [f"{n_missing} missing entries became the median or the most frequent category of {reference}"] * (
        n_missing > 0
    ) + [f"{n_unknown} entries of categories that it lacks count as other"] * (n_unknown > 0)
    return f"{path}: {', and '.join(parts)}." if parts else ""
