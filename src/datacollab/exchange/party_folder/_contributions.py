"""What columns did to a model's answers, by the names of the project's columns, and as a table."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._require import require
from ..._typing import FloatArray
from ...bundle import write_atomically
from ...errors import ExchangeError
from ...party import ColumnEffects, Explanation
from ..project import Column, Project

__all__ = [
    "ANSWER",
    "BASE",
    "OUTPUT",
    "ROW",
    "Explained",
    "check_figure",
    "columns_of_matrix",
    "contribution_names",
    "entries_of",
    "number_effects",
    "one_output",
]

ROW, OUTPUT, BASE, ANSWER = "row", "class", "base_value", "answer"
FIGURES = (".png", ".pdf", ".svg")
CATEGORY = "a category: its columns of zeros and ones change together, and steps are of one column"


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Explained:
    """Shapley values of rows of a table, in the project's columns.

    Attributes
    ----------
    explanation : Explanation
        `feature_names` are the project's columns; a category counts as one, whatever columns of zeros and ones it
        became.
    rows : ndarray of shape (n_explained,)
        Which rows of the table were explained, counted from 1, the header not included.
    n_rows : int
        Of the table.
    model : str
        What kind of model h is.
    adjusted : dict
        How many entries of the table the project's rules made something else.
    """

    explanation: Explanation
    rows: NDArray[np.intp]
    n_rows: int
    model: str
    adjusted: dict[str, Any] = field(default_factory=dict)

    @property
    def not_identified(self) -> tuple[str, ...]:
        """Columns that the collaboration representation does not tell from others."""
        found = self.explanation
        return tuple(name for name, told in zip(found.feature_names, found.identified, strict=True) if not told)

    def frame(self, kept: Any) -> Any:
        """A data frame with a line for each explained row, and of several classes for each row and class.

        Parameters
        ----------
        kept : DataFrame of n_explained rows
            What stands beside the position of the row, such as an identifier; may have no columns.
        """
        pandas, found = require("pandas", "cli"), self.explanation
        names = contribution_names(found.feature_names)
        parts = []
        for name, values, base in _by_output(found):
            columns = {ROW: self.rows} | {each: kept[each].array for each in kept.columns}
            columns |= {} if name is None else {OUTPUT: [name] * len(values)}
            columns |= {BASE: np.full(len(values), base), ANSWER: base + values.sum(axis=1)}
            parts.append(pandas.DataFrame(columns | dict(zip(names, values.T, strict=True))))
        return pandas.concat(parts, ignore_index=True).sort_values(ROW, kind="stable", ignore_index=True)

    def save_figure(self, path: Path) -> None:
        """Draw the most important columns into a file that is closed to others; it shows private entries."""
        names = self.explanation.output_names
        axes = self.explanation.plot_beeswarm(None if names is None else names[-1])
        drawn = io.BytesIO()
        figure: Any = axes.figure
        figure.savefig(drawn, format=path.suffix.lower()[1:], dpi=144)
        write_atomically(path, drawn.getvalue(), mode=0o600)

    def __repr__(self) -> str:
        return f"Explained({len(self.rows)} of {self.n_rows} rows, {self.explanation!r})"


def contribution_names(columns: Sequence[str]) -> list[str]:
    """What the project's columns are called in the table of contributions.

    Examples
    --------
    >>> from datacollab.exchange.party_folder._contributions import contribution_names
    >>> contribution_names(["age", "ward"])
    ['contribution_age', 'contribution_ward']
    """
    return [f"contribution_{name}" for name in columns]


def columns_of_matrix(project: Project) -> dict[str, list[int]]:
    """Positions in the project's matrix of what each of its columns became."""
    return {column.name: list(places) for column, places in _places(project)}


def entries_of(project: Project, X: FloatArray) -> Any:
    """Rows of the matrix as a table of the project's columns, for figures: categories are texts again."""
    entries: dict[str, Any] = {}
    for column, places in _places(project):
        if column.kind == "number":
            entries[column.name] = X[:, places[0]]
        else:
            entries[column.name] = np.asarray(column.levels)[X[:, places[0] : places[0] + len(column.levels)].argmax(1)]
    return require("pandas", "cli").DataFrame(entries)


def one_output(found: Explanation, output: str | None) -> Explanation:
    """The explanation of one class; of two the second where none is named, as the other's is its negative."""
    names = found.output_names
    if names is None:
        return found
    if output is None and len(names) != 2:
        return found
    place = len(names) - 1 if output is None else names.index(output)
    return replace(
        found,
        values=found.values[:, :, [place]],
        base_values=np.asarray(found.base_values)[[place]],
        output_names=(names[place],),
    )


def number_effects(project: Project, found: ColumnEffects) -> ColumnEffects:
    """Effects under the names of the project's columns, with categories among those that are refused.

    Parameters
    ----------
    project : Project
    found : ColumnEffects
        Of the numbers, in the project's order.
    """
    numbers = [column.kind == "number" for column in project.columns]

    def spread(values: NDArray[Any]) -> NDArray[Any]:
        result = np.zeros(len(numbers), dtype=bool) if values.dtype == bool else np.full(len(numbers), np.nan)
        result[numbers] = values
        return result

    reasons = iter(found.reasons)
    names = ("effect", "se", "low", "high", "identified", "r2", "leakage", "steps")
    arrays: dict[str, Any] = {name: spread(getattr(found, name)) for name in names}
    return replace(
        found,
        names=tuple(column.name for column in project.columns),
        reasons=tuple(next(reasons) if is_number else CATEGORY for is_number in numbers),
        **arrays,
    )


def check_figure(figure: Path, others: Sequence[Path], *, force: bool) -> None:
    """Refuse a place for a figure, or a machine that draws none, before any work is done.

    Raises
    ------
    ValueError
        When it is another file of the command, or of no kind that is drawn.
    FileNotFoundError
        When there is no such folder.
    ExchangeError
        ALREADY_THERE.
    MissingExtraError
        When matplotlib is not installed.
    """
    require("matplotlib.figure", "plots")
    if figure.suffix.lower() not in FIGURES:
        raise ValueError(f"A figure ends in one of {', '.join(FIGURES)}; got {figure.name!r}.")
    if not figure.parent.is_dir():
        raise FileNotFoundError(f"There is no folder {figure.parent} for {figure.name}. Make it first.")
    if figure.resolve() in [other.resolve() for other in others]:
        raise ValueError(f"{figure} is the table, or the file of contributions; name another file for the figure.")
    if figure.exists() and not force:
        raise ExchangeError("ALREADY_THERE", f"{figure} exists. Name another file, or overwrite it with --force.")


def _places(project: Project) -> Iterator[tuple[Column, range]]:
    start = 0
    for column in project.columns:
        yield column, range(start, start + column.n_features)
        start += column.n_features


def _by_output(found: Explanation) -> Iterator[tuple[str | None, FloatArray, float]]:
    if found.output_names is None:
        yield None, found.values, float(found.base_values)
        return
    for place, name in enumerate(found.output_names):
        yield name, found.values[:, :, place], float(found.base_values[place])
