"""The data sets as parties would encode them: from declarations, and never from private rows."""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer, load_diabetes

from datacollab.datasets import load

from ..harness import arff_table, r_table

Array = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Column:
    """The declaration of a column, which everybody knows before there are rows.

    Attributes
    ----------
    low, high : float
        Declared range of a number; numbers outside are clipped to it.
    log : bool
        Whether a number is taken as log(1 + x): amounts over several powers of ten.
    levels : tuple of str
        Declared levels of a category; empty for a number.
    missing : bool
        Whether entries may be missing; these get an indicator.
    """

    name: str
    low: float = 0.0
    high: float = 1.0
    log: bool = False
    levels: tuple[str, ...] = ()
    missing: bool = False

    @property
    def middle(self) -> float:
        """The substitute of a missing number where there are no public rows."""
        if self.log:
            return float(np.expm1((np.log1p(self.low) + np.log1p(self.high)) / 2))
        return (self.low + self.high) / 2

    @property
    def width(self) -> int:
        """Columns of the matrix: one of a number or two levels, otherwise one a level; and the indicator."""
        return (len(self.levels) if len(self.levels) > 2 else 1) + self.missing


def fills(columns: Sequence[Column], public: pd.DataFrame) -> dict[str, float]:
    """Return substitutes of missing numbers: medians of the public rows, the declared middle where these have none."""
    medians = {column.name: public[column.name].median() for column in columns if column.missing and not column.levels}
    middles = {column.name: column.middle for column in columns}
    return {name: middles[name] if np.isnan(median) else float(median) for name, median in medians.items()}


def encode(columns: Sequence[Column], rows: pd.DataFrame, fill: Mapping[str, float]) -> Array:
    """Matrix of some rows, shape (n_rows, sum of widths).

    Numbers are centred at the middle of their range and divided by a quarter of it, so that scales are comparable
    without a look at private rows; categories are 0 and 1.

    Raises
    ------
    ValueError
        When a category has a level that was not declared, or an entry is missing that may not be.
    """
    return np.column_stack([_encode(column, rows[column.name], fill.get(column.name)) for column in columns])


def _encode(column: Column, values: pd.Series[Any], fill: float | None) -> Array:
    missing = values.isna().to_numpy()
    if missing.any() and not column.missing:
        raise ValueError(f"Column {column.name!r} has {missing.sum()} missing entries, but none were declared.")
    indicator = [missing.astype(float)][: column.missing]
    if not column.levels:
        if fill is None:
            fill = column.middle
        numbers = values.astype(float).fillna(fill).to_numpy()
        return np.column_stack([_standardise(column, numbers), *indicator])
    # A missing category has no level: all its columns are 0, and its indicator is 1.
    text = values.astype("string").fillna("").to_numpy(dtype=object)
    unknown = set(text[~missing]) - set(column.levels)
    if unknown:
        raise ValueError(f"Column {column.name!r} has {len(unknown)} levels that were not declared.")
    levels = column.levels
    # Of two levels one column says all.
    if len(levels) == 2:
        levels = levels[1:]
    return np.column_stack([*((text == level).astype(float) for level in levels), *indicator])


def _standardise(column: Column, numbers: Array) -> Array:
    low = column.low
    high = column.high
    # Private numbers beyond the declared range would tell that they are extreme.
    numbers = np.clip(numbers, low, high)
    if column.log:
        low = np.log1p(low)
        high = np.log1p(high)
        numbers = np.log1p(numbers)
    scaled: Array = (numbers - (low + high) / 2) / ((high - low) / 4)
    return scaled


def bounds(column: Column) -> Array:
    """Least and largest entry of a column's part of the matrix, shape (2, width)."""
    # Numbers are in quarters of their declared range, about its middle.
    ends = np.array([[-2.0], [2.0]])
    if column.levels:
        ends = np.array([[0.0], [1.0]]) * np.ones(column.width - column.missing)
    if column.missing:
        return np.column_stack([ends, [0.0, 1.0]])
    return ends


def uniform(columns: Sequence[Column], n_rows: int, generator: np.random.Generator) -> pd.DataFrame:
    """Rows from the declaration alone: numbers uniform on their (logarithmic) range, levels equally frequent.

    A tenth of a column that may have missing entries is missing.
    """
    made = {column.name: _draw_column(column, n_rows, generator) for column in columns}
    return pd.DataFrame(made)


def _draw_column(column: Column, n_rows: int, generator: np.random.Generator) -> pd.Series[Any]:
    if column.levels:
        drawn = pd.Series(generator.choice(np.array(column.levels, dtype=object), n_rows))
    elif column.log:
        drawn = pd.Series(np.expm1(generator.uniform(np.log1p(column.low), np.log1p(column.high), n_rows)))
    else:
        drawn = pd.Series(generator.uniform(column.low, column.high, n_rows))
    if column.missing:
        # The declaration says that entries may be missing, not how many: a tenth stands for it.
        return drawn.mask(generator.random(n_rows) < 0.1)
    return drawn


# Tables that nobody had looked at when the methods were made; named before anything was run on them.
UNSEEN = ("attrition", "mlc_churn", "hmda")

# Tables that neither `pays` nor the study of sums had used: that study looked at them once, with its rule.  Columns,
# ranges, levels and counts of rows were known.
FURTHER = ("credit", "telco", "email")

IMAGES = ("digits", "mnist", "fashion-mnist")

Task = Literal["classification", "regression"]


@dataclass(frozen=True, eq=False)
class Table:
    """A data set.

    Attributes
    ----------
    rows : DataFrame of shape (n_rows, n_columns)
    y : ndarray of shape (n_rows,)
        int64 classes from 0, or numbers.
    columns : tuple of Column
        Declarations; of images and the like one range for all.
    standardize : bool
        Whether f_k brings columns to mean 0 and variance 1 over its rows: where units differ and are not
        declared away.
    """

    name: str
    task: Task
    rows: Any
    y: NDArray[Any]
    columns: tuple[Column, ...]
    standardize: bool = False

    @property
    def metric(self) -> str:
        """The measure: "AUC" with two classes, "accuracy" with more, "RMSE" of numbers."""
        if self.task == "regression":
            return "RMSE"
        if len(np.unique(self.y)) == 2:
            return "AUC"
        return "accuracy"

    @property
    def width(self) -> int:
        if self.columns:
            return sum(column.width for column in self.columns)
        return int(self.rows.shape[1])

    def matrix(self, index: NDArray[np.intp], public: NDArray[np.intp]) -> Array:
        """Some rows, encoded by the declaration and, where entries are missing, the public rows."""
        if not self.columns:
            return np.asarray(self.rows[index], dtype=np.float64)
        return encode(self.columns, self.rows.iloc[index], fills(self.columns, self.rows.iloc[public]))

    def uniform(self, n_rows: int, generator: np.random.Generator) -> Array:
        """Rows made from declared ranges alone."""
        if not self.columns:
            return generator.uniform(0.0, 1.0, (n_rows, self.width))
        drawn = uniform(self.columns, n_rows, generator)
        return encode(self.columns, drawn, {})

    @property
    def bounds(self) -> Array:
        """Declared range of each column of the matrix, shape (2, width)."""
        if self.columns:
            return np.concatenate([bounds(column) for column in self.columns], axis=1)
        low, high = (-110.0, 100.0) if self.name == "ujiindoorloc" else (0.0, 1.0)
        return np.array([[low], [high]]) * np.ones(self.width)

    @property
    def target_range(self) -> tuple[float, float]:
        """Declared range of the numbers to predict: a site's extent, a scale's ends."""
        return float(self.y.min()), float(self.y.max())

    @property
    def fingerprint(self) -> str:
        """Tells versions of one table apart."""
        digest = hashlib.sha256(f"{self.rows.shape}{self.columns}".encode())
        digest.update(np.ascontiguousarray(self.y).tobytes())
        values = self.rows.iloc[::37].to_csv() if self.columns else np.ascontiguousarray(self.rows[::997]).tobytes()
        digest.update(values.encode() if isinstance(values, str) else values)
        return digest.hexdigest()[:16]


@lru_cache(maxsize=3)
def load_table(name: str, data_dir: Path | None = None) -> Table:
    """A data set by its name.

    Raises
    ------
    ValueError
        When there is none of that name, or a file is another than expected.
    ImportError
        When the package that brings the data is not installed.
    """
    if name in ("digits", "mnist", "fashion-mnist", "ujiindoorloc"):
        return _from_library(name, data_dir)
    if name not in _READERS:
        raise ValueError(f"There is no data set {name!r}; there are {', '.join((*IMAGES, 'ujiindoorloc', *_READERS))}.")
    return _READERS[name]()


def read_declaration(name: str) -> tuple[dict[str, Any], tuple[Column, ...]]:
    """Return the entry of a table in tables.toml, and its columns."""
    entry = tomllib.loads((Path(__file__).parent / "tables.toml").read_text(encoding="utf-8"))[name]
    columns = tuple(
        _column(key, said, key in entry.get("log", ()), key in entry.get("missing", ()))
        for key, said in entry["columns"].items()
    )
    return entry, columns


def _column(name: str, said: list[Any], log: bool, missing: bool) -> Column:
    if isinstance(said[0], str):
        return Column(name=name, levels=tuple(said), missing=missing)
    low, high = said
    return Column(name=name, low=float(low), high=float(high), log=log, missing=missing)


def _from_library(name: str, data_dir: Path | None) -> Table:
    data = load(name, data_dir=data_dir)
    task: Task = data.task
    # Rows stay in single precision, which holds grey values and signal strengths exactly enough, in half the memory.
    return Table(name, task, data.X.astype(np.float32), data.y, (), standardize=name == "ujiindoorloc")


def _from_scikit_learn(name: str, rows: pd.DataFrame, y: NDArray[Any], task: Task) -> Table:
    return Table(name, task, rows, y, read_declaration(name)[1])


def _breast_cancer() -> Table:
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    return _from_scikit_learn("breast-cancer", X, y.to_numpy(np.int64), "classification")


def _diabetes() -> Table:
    X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    return _from_scikit_learn("diabetes", X, y.to_numpy(np.float64), "regression")


def _within(name: str, file: str, time: str, event: str, happened: str, days: int) -> Table:
    """Whether something happened within some days; who was lost to follow-up before is left out."""
    rows = arff_table(file)
    of_event = rows[event].eq(happened)
    # Rows lost before the horizon have no known outcome.
    known = of_event | (rows[time] > days)
    y = (of_event & (rows[time] <= days))[known].to_numpy(np.int64)
    columns = read_declaration(name)[1]
    kept = rows.loc[known, [column.name for column in columns]].reset_index(drop=True)
    return Table(name, "classification", kept, y, columns)


def _of_r(name: str) -> Table:
    """A table of an R package."""
    entry, columns = read_declaration(name)
    rows = r_table(entry["file"])
    y = rows[entry["target"]].astype(str).eq(entry["positive"]).to_numpy(np.int64)
    return Table(name, "classification", rows[[column.name for column in columns]], y, columns)


_READERS: dict[str, Callable[[], Table]] = {
    "breast-cancer": _breast_cancer,
    "diabetes": _diabetes,
    "whas500": lambda: _within("whas500", "whas500", "lenfol", "fstat", "1", 365),
    "flchain": lambda: _within("flchain", "flchain", "futime", "death", "dead", 1826),
    "gbsg2": lambda: _within("gbsg2", "GBSG2", "time", "cens", "1", 1096),
    **{name: partial(_of_r, name) for name in (*UNSEEN, *FURTHER)},
}
