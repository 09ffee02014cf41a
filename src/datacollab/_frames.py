"""Tables and targets as Python has them: frames and arrays of any library, checked, and turned into numbers."""

from __future__ import annotations

import datetime
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from decimal import Decimal
from numbers import Real
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import StandardScaler

from ._labels import MISSING, MOST_OUTSIDE, UNKNOWN, label_finder, label_text
from ._notebooks import FittedUnseen
from ._require import require
from ._typing import FloatArray
from .errors import AgreementError, DataCollabWarning

__all__ = ["TableEncoder", "are_missing", "has_numbers_alone", "plain_column", "plain_table"]

_NUMBERS = "biuf"
_DATES = (datetime.date, datetime.time, datetime.timedelta)
_MOST_WHOLE = 2.0**53


def are_missing(entries: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which entries are None, NaN, NaT or NA of pandas, shape as given."""
    if entries.dtype.kind in "fcmM":
        return np.asarray(entries != entries)
    if entries.dtype.kind != "O":
        return np.zeros(entries.shape, dtype=np.bool_)
    # NaN differs from itself; NA of pandas compares to neither true nor false.
    found = [each is None or type(each).__name__ in ("NAType", "NaTType") or _differs(each) for each in entries.flat]
    return np.array(found, dtype=np.bool_).reshape(entries.shape)


def _differs(entry: Any) -> bool:
    return isinstance(entry, Real | Decimal | np.generic) and bool(entry != entry)


def plain_column(values: Any) -> NDArray[Any]:
    """Return a column, or targets, as a NumPy array; gaps are NaN, masked entries among them.

    Objects that are all numbers become numbers.
    """
    entries: NDArray[Any] = np.asarray(values)
    if (
        entries.dtype.kind in "US"
        and isinstance(values, list | tuple)
        and not all(isinstance(one, str) for one in values)
    ):
        entries = np.array(values, dtype=object)  # NumPy makes texts of numbers and NaN beside texts.
    mask = np.ma.getmaskarray(values) if isinstance(values, np.ma.MaskedArray) and not entries.dtype.names else None
    if mask is not None and mask.any():
        entries = entries.astype(np.float64 if entries.dtype.kind in _NUMBERS else object)
        entries[mask] = np.nan
    if entries.dtype.kind != "O":
        return entries
    missing = are_missing(entries)
    known, whole = entries[~missing], not missing.any()
    if all(isinstance(each, bool | np.bool_) for each in known) and whole:
        return entries.astype(np.bool_)
    if all(isinstance(each, Real | np.bool_ | Decimal) for each in known):
        are_integers = whole and all(isinstance(each, int | np.integer) for each in known)
        numbers = np.full(entries.shape, np.nan)
        numbers[~missing] = known.astype(np.float64)
        return numbers.astype(np.int64) if are_integers and (np.abs(numbers) < _MOST_WHOLE).all() else numbers
    return entries if whole else np.where(missing, np.nan, entries)


def plain_table(X: Any, what: str, error: type[ValueError] = AgreementError) -> Any:
    """Return a frame of pandas or polars, or an array, with NaN for gaps; what is neither stays as it is.

    An Arrow table becomes a frame of pandas.  Categories and dates stay.

    Raises
    ------
    ValueError
        Of type `error`, in words that begin with `what`: if columns have no names of their own, or an array holds
        records or complex numbers.
    """
    if hasattr(X, "collect"):
        raise error(f"{what} is a query that was not run. Call .collect() on it first.")
    libraries = {base.__module__.partition(".")[0] for base in type(X).__mro__}
    if hasattr(X, "__arrow_c_stream__") and not libraries & {"pandas", "polars"}:
        X = (X if hasattr(X, "to_pandas") else require("pyarrow", "tables").table(X)).to_pandas()
    if not hasattr(X, "columns"):
        return _plain_array(X, what, error) if isinstance(X, np.ndarray | list | tuple) else X
    names = list(X.columns)
    if getattr(X.columns, "nlevels", 1) > 1:
        raise error(f"{what} has column names of several levels. Give each column one name.")
    if doubled := sorted({str(name) for name, n in Counter(names).items() if n > 1}):
        raise error(f"{what} has {len(doubled)} names for several columns each: {doubled[:5]}. Rename or drop these.")
    if not hasattr(X, "iloc"):
        return X
    # Objects, and types whose gaps are neither None nor NaN.
    types = {name: (dtype.name, type(getattr(dtype, "na_value", None)).__name__) for name, dtype in X.dtypes.items()}
    changed = [name for name, type_ in types.items() if {*type_} & {"object", "NAType"}]
    plain = X.copy(deep=False) if changed else X
    for name in changed:
        plain[name] = plain_column(X[name])
    return plain


def _plain_array(X: Any, what: str, error: type[ValueError]) -> Any:
    try:
        array = np.asanyarray(X)
        array = np.array(X, dtype=object) if array.dtype.kind in "US" and not isinstance(X, np.ndarray) else array
    except ValueError:
        raise error(f"{what} must be a table: rows of equally many entries, or a frame.") from None
    if array.dtype.names is not None:
        raise error(f"{what} is an array of records. Give a frame, such as pandas.DataFrame makes of it.")
    if array.dtype.kind == "c":
        raise error(f"Complex data not supported: {what} must be a table of real numbers and categories.")
    if array.ndim != 2 or not (isinstance(array, np.ma.MaskedArray) or array.dtype.kind == "O") or not array.size:
        return X
    columns = [plain_column(column) for column in array.T]
    has_texts = any(column.dtype.kind not in _NUMBERS for column in columns)
    return np.column_stack([column.astype(object) for column in columns] if has_texts else columns)


def _columns_of(table: Any, what: str, error: type[ValueError]) -> dict[Any, NDArray[Any]]:
    """Return the columns of a plain table by their names, or places: numbers with NaN, or texts with None."""
    if sparse.issparse(table):
        table = table.toarray()
    if hasattr(table, "columns"):
        return {name: _entries(table[name], f"{what}: column {name!r}", error) for name in table.columns}
    array = np.asarray(table)
    if array.ndim != 2:
        raise error(f"{what} must be a table of rows and columns; got shape {array.shape}.")
    return {place: _entries(column, f"{what}: column {place}", error) for place, column in enumerate(array.T)}


def _entries(column: Any, what: str, error: type[ValueError]) -> NDArray[Any]:
    entries = plain_column(column)
    if entries.dtype.kind in _NUMBERS and not _is_declared(column):
        numbers = entries.astype(np.float64)
        if n_infinite := int(np.isinf(numbers).sum()):
            raise error(
                f"{what} holds infinity in {n_infinite} of {len(numbers)} rows. Correct these, or leave them out."
            )
        return numbers
    missing = are_missing(entries)
    known = entries[~missing]
    if entries.dtype.kind in "mM" or any(isinstance(each, _DATES) for each in known):
        raise error(f"{what} holds dates or times. Make a number of it, such as an age in years, or leave it out.")
    if any(isinstance(each, list | tuple | dict | set | np.ndarray) for each in known):
        raise error(f"{what} holds lists or records. Give one number or text for each row.")
    kinds = {type(each) for each in known if not isinstance(each, float) or each % 1}
    if not _is_declared(column) and any(issubclass(each, float) for each in kinds) and str in kinds:
        raise error(f"{what} holds numbers with decimals, and texts. Make gaps of the texts, or texts of all entries.")
    texts = np.full(len(entries), None, dtype=object)
    texts[~missing] = [label_text(each) for each in known.tolist()]
    return texts


def has_numbers_alone(table: Any) -> bool:
    """Return whether a plain table has no categories, dates and gaps; sparse and other arrays count as numbers."""
    if hasattr(table, "columns"):
        columns = [table[name] for name in table.columns]
    else:
        columns = [table] if isinstance(table, np.ndarray | list | tuple) else []
    plain = [plain_column(each) for each in columns]
    are_declared = any(_is_declared(each) for each in columns)
    return not are_declared and all(each.dtype.kind in "biufc" and not are_missing(each).any() for each in plain)


def _is_declared(column: Any) -> bool:
    return type(getattr(column, "dtype", None)).__name__ == "CategoricalDtype"


class TableEncoder(FittedUnseen, TransformerMixin, BaseEstimator):
    """A table as numbers: gaps are filled with the median, and categories are a column of zeros and ones each.

    A gap in a category is a category if there was one in `fit`.  Other categories are found as commands find those of a
    project, but for capital letters and blanks; those unknown in `fit` are zeros alone.

    Parameters
    ----------
    what : str, default="The table"
        Begins the words of errors.
    standardise : bool or None, default=None
        Whether numbers are brought to mean 0 and variance 1.  None does so beside categories.
    refuses_unknown : bool, default=False
        Whether a column is refused that holds unknown categories in two rows or more, and in over 5 % of those without
        a gap.  Otherwise there is a warning.
    """

    def __init__(
        self, what: str = "The table", *, standardise: bool | None = None, refuses_unknown: bool = False
    ) -> None:
        self.what = what
        self.standardise = standardise
        self.refuses_unknown = refuses_unknown

    def fit(self, X: Any, y: Any = None, *, beside: Iterable[Any] = ()) -> Self:
        """Learn the columns of `X`, with the entries of all tables; shape (n_rows, n_features) each."""
        X = plain_table(X, self.what)
        first = _columns_of(X, self.what, AgreementError)
        self.is_frame_, self.names_, self.n_features_in_ = hasattr(X, "columns"), list(first), len(first)
        if self.is_frame_ and all(isinstance(name, str) for name in first):
            self.feature_names_in_ = np.array(self.names_, dtype=object)
        others = [self._columns(each) for each in beside]
        numbers, self.places_, self.levels_ = [], [], []
        for place, name in enumerate(self.names_):
            parts = [each[name] for each in (first, *others)]
            if all(part.dtype.kind == "f" for part in parts):
                numbers.append(np.concatenate(parts))
                self.places_.append(place)
            else:
                texts = {text for part in parts for text in _as_texts(part)}
                known = sorted(text for text in texts if text is not None)
                self.levels_.append([*known, None] if len(known) < len(texts) else known)
        self.categories_ = [place for place in range(self.n_features_in_) if place not in self.places_]
        self.are_flags_ = [bool(np.isin(each[~np.isnan(each)], (0, 1)).all()) for each in numbers]
        if numbers:
            self._imputer = SimpleImputer(strategy="median", keep_empty_features=True)
            filled = self._imputer.fit_transform(np.column_stack(numbers))
            is_scaled = bool(self.categories_) if self.standardise is None else self.standardise
            self._scaler = StandardScaler(with_mean=is_scaled, with_std=is_scaled).fit(filled)
        return self

    def transform(self, X: Any) -> FloatArray:
        """Return rows as numbers, shape (n_rows, n_encoded): columns of numbers come first.

        Raises
        ------
        AgreementError
            If columns are missing, or hold other kinds of entries than in `fit`.

        Warns
        -----
        DataCollabWarning
            If a column holds many unknown categories, unless these are refused.
        """
        columns = self._columns(X)
        parts = list[FloatArray]()
        if self.places_:
            numbers = [columns[self.names_[place]] for place in self.places_]
            for place, entries in zip(self.places_, numbers, strict=True):
                if entries.dtype.kind != "f":
                    raise AgreementError(
                        f"{self.what}: column {self.names_[place]!r} holds texts. In the table that columns were "
                        "learnt from, such as the anchor, it holds numbers alone. Make numbers of them "
                        "(pandas.read_csv has decimal=',' for decimal commas), or leave the column out of both."
                    )
            parts.append(self._scaler.transform(self._imputer.transform(np.column_stack(numbers))))
        for place, levels in zip(self.categories_, self.levels_, strict=True):
            codes = self._codes(self.names_[place], _as_texts(columns[self.names_[place]]), levels)
            parts.append((codes[:, None] == np.arange(len(levels))).astype(np.float64))
        return np.hstack(parts)

    def _codes(self, name: Any, entries: Sequence[str | None], levels: Sequence[str | None]) -> NDArray[np.intp]:
        """Return the places of entries among the levels, a negative one for those unknown, unless these are many."""
        known = [level for level in levels if level is not None]
        find, places = label_finder(known, relaxed=True), {level: place for place, level in enumerate(levels)}
        places |= {each: find(each) for each in {*entries} - {*places} if each is not None}
        codes = np.array([places.get(each, MISSING) for each in entries], dtype=np.intp)
        n_unknown, n_known = int((codes == UNKNOWN).sum()), int((codes >= 0).sum())
        if n_unknown > max(1, MOST_OUTSIDE * (n_unknown + n_known)):
            found = (
                f"{self.what}: column {name!r} holds unknown categories in {n_unknown} of {len(entries)} rows. Write "
                "them as in the table that columns were learnt from, such as the anchor, or add rows with them there."
            )
            if self.refuses_unknown:
                raise AgreementError(found)
            warnings.warn(found, DataCollabWarning, stacklevel=4)
        return codes

    def settle(self, Z: FloatArray) -> FloatArray:
        """Return rows of numbers as the nearest ones that a table gives: one category each, and flags of 0 and 1."""
        Z, start = Z.copy(), len(self.places_)
        for column in np.flatnonzero(self.are_flags_):
            ends = self._scaler.transform(np.tile([[0.0], [1.0]], start))[:, column]
            Z[:, column] = ends[np.abs(Z[:, [column]] - ends).argmin(axis=1)]
        for levels in self.levels_:
            block = Z[:, start : start + len(levels)]
            block[:] = np.eye(len(levels))[block.argmax(axis=1)]
            start += len(levels)
        return Z

    def decode(self, Z: FloatArray, like: Any) -> Any:
        """Return settled rows as a table like the plain one of `fit`."""
        columns, start = {}, len(self.places_)
        numbers = self._scaler.inverse_transform(Z[:, :start]) if start else Z[:, :0]
        for place, entries, is_flag in zip(self.places_, numbers.T, self.are_flags_, strict=True):
            columns[place] = np.round(entries) if is_flag else entries
        for place, levels in zip(self.categories_, self.levels_, strict=True):
            columns[place] = np.array(levels, dtype=object)[Z[:, start : start + len(levels)].argmax(axis=1)]
            start += len(levels)
        found = {name: columns[place] for place, name in enumerate(self.names_)}
        if not self.is_frame_:
            return np.column_stack([each.astype(object) if self.levels_ else each for each in found.values()])
        kept = {}
        for name, dtype in like.dtypes.items() if hasattr(like, "iloc") else ():
            if dtype.name == "category":
                names = {label_text(each): each for each in dtype.categories}
                found[name] = np.array([names.get(each) for each in found[name]], dtype=object)
            if dtype.name in ("category", "bool"):
                kept[name] = dtype
        frame = type(like)(found)
        return frame.astype(kept) if kept else frame

    @property
    def common_units(self) -> FloatArray | None:
        """What brings standardised columns to their own units, but for a factor; None beside categories."""
        return None if self.levels_ else np.asarray(self._scaler.scale_ / self._factor)

    @property
    def common_centre(self) -> FloatArray | None:
        """The mean in these units; None beside categories."""
        return None if self.levels_ else np.asarray(self._scaler.mean_ / self._factor)

    @property
    def _factor(self) -> float:
        return float(np.sqrt(np.mean(self._scaler.scale_**2)))

    def _columns(self, X: Any) -> dict[Any, NDArray[Any]]:
        """Return the columns that were learnt, of another table."""
        table = plain_table(X, self.what)
        if hasattr(table, "columns") != self.is_frame_:
            raise AgreementError(
                f"{self.what} must be {'a frame with column names' if self.is_frame_ else 'an array'}, as the table "
                "that columns were learnt from. Give all tables in one form."
            )
        if self.is_frame_:
            if missing := [name for name in self.names_ if name not in list(table.columns)]:
                raise AgreementError(
                    f"{self.what} lacks {len(missing)} columns: {missing[:10]!r}. The table that columns were learnt "
                    "from, such as the anchor, has them. Drop them there, or add or rename them here."
                )
            table = table[self.names_]
        columns = _columns_of(table, self.what, AgreementError)
        if len(columns) != self.n_features_in_:
            raise AgreementError(f"{self.what} has {len(columns)} columns; expected {self.n_features_in_}.")
        return columns


def _as_texts(entries: NDArray[Any]) -> list[str | None]:
    if entries.dtype.kind == "O":
        return list(entries)
    return [None if each != each else label_text(each) for each in entries.tolist()]
