"""The numbers that the paper prints."""

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any


@dataclass(frozen=True, kw_only=True)
class PublishedValue:
    """One cell of a table of the paper.

    Attributes
    ----------
    table : str
        LaTeX label of the table; for a number in the text, of the figure or table beside it.
    obfuscator : str or None
        None where the value does not depend on it.
    n_components, n_parties : int or None
        None where the table does not vary it.
    name : str
        Name of the method; "reconstruction" for reconstruction accuracies.
    half_width : float or None
        Half the 95 % confidence interval of the mean; None where none is printed.
    attack : str or None
        The attack with the highest reconstruction accuracy, whose value this is.
    """

    table: str
    dataset: str
    obfuscator: str | None = None
    n_components: int | None = None
    n_parties: int | None = None
    name: str
    measure: str
    mean: float
    half_width: float | None = None
    attack: str | None = None
    n_trials: int


@cache
def published_values() -> tuple[PublishedValue, ...]:
    """Every number of the paper that a run can be held against, in the order of its tables."""
    text = resources.files(__package__).joinpath("published.toml").read_text(encoding="utf-8")
    return tuple(value for table in tomllib.loads(text)["table"] for value in _values_of(table))


def find_published(
    table: str,
    *,
    dataset: str,
    name: str,
    obfuscator: str | None = None,
    n_components: int | None = None,
    n_parties: int | None = None,
) -> PublishedValue | None:
    """Look up the printed counterpart of one condition's number.

    Parameters
    ----------
    obfuscator, n_components, n_parties : optional
        Settings of the condition.  Those that the printed value does not depend on may have any value.

    Returns
    -------
    PublishedValue or None
        None where the paper prints none.
    """
    wanted = {"obfuscator": obfuscator, "n_components": n_components, "n_parties": n_parties}
    for value in published_values():
        if (value.table, value.dataset, value.name) == (table, dataset, name) and all(
            getattr(value, axis) in (None, of_condition) for axis, of_condition in wanted.items()
        ):
            return value
    return None


def _values_of(table: dict[str, Any]) -> Iterator[PublishedValue]:
    """Cells of one entry of the file: rows x blocks x columns."""
    for row in table["row"]:
        where = {axis: row[axis] for axis in ("dataset", "obfuscator") if axis in row}
        for block, cells in zip(table["blocks"], row["cells"], strict=True):
            for column, cell in zip(table["columns"], cells, strict=True):
                # Cells have a mean, and where they are printed a half width and an attack.
                numbers = dict(zip(("mean", "half_width", "attack"), cell, strict=False))
                yield PublishedValue(
                    table=table["label"], n_trials=table["n_trials"], **where, **block, **column, **numbers
                )
