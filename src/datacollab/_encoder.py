"""Tables as numbers: an encoder of frames and arrays of any library, as scikit-learn has encoders."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import StandardScaler

from ._frames import MISSING, MOST_OUTSIDE, UNKNOWN, columns_of, label_finder, label_text, plain_table, spelt_otherwise
from ._notebooks import FittedUnseen
from ._typing import FloatArray
from .errors import AgreementError, DataCollabWarning


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
    unknown : {"warn", "refuse", "allow"}, default="warn"
        Treatment of a column that holds unknown categories in two rows or more, and in over 5 % of those without a
        gap.
    """

    def __init__(
        self,
        what: str = "The table",
        *,
        standardise: bool | None = None,
        unknown: Literal["warn", "refuse", "allow"] = "warn",
    ) -> None:
        self.what = what
        self.standardise = standardise
        self.unknown = unknown

    def fit(self, X: Any, y: Any = None, *, beside: Iterable[Any] = ()) -> Self:
        """Learn the columns of `X`, with the entries of all tables; shape (n_rows, n_features) each."""
        X = plain_table(X, self.what)
        first = columns_of(X, self.what, AgreementError)
        self.is_frame_ = hasattr(X, "columns")
        self.names_ = list(first)
        self.n_features_in_ = len(first)
        if self.is_frame_ and all(isinstance(name, str) for name in first):
            self.feature_names_in_ = np.array(self.names_, dtype=object)
        others = [self._columns(each) for each in beside]
        numbers = []
        self.places_ = []
        self.levels_ = []
        for place, name in enumerate(self.names_):
            parts = [each[name] for each in (first, *others)]
            if all(part.dtype.kind == "f" for part in parts):
                numbers.append(np.concatenate(parts))
                self.places_.append(place)
            else:
                texts = {text for part in parts for text in _as_texts(part)}
                known = sorted(text for text in texts if text is not None)
                # A gap may mean something, such as a test that nobody asked for: it is a category of its own.
                self.levels_.append([*known, None] if len(known) < len(texts) else known)
        self.categories_ = [place for place in range(self.n_features_in_) if place not in self.places_]
        self.are_flags_ = [bool(np.isin(each[~np.isnan(each)], (0, 1)).all()) for each in numbers]
        if numbers:
            # The median: a mean would follow typing errors, and a gap would then look like one.
            self._imputer = SimpleImputer(strategy="median", keep_empty_features=True)
            filled = self._imputer.fit_transform(np.column_stack(numbers))
            is_scaled = self.standardise
            if is_scaled is None:
                # Beside zeros and ones, numbers in their own units would count by these alone.
                is_scaled = bool(self.categories_)
            self._scaler = StandardScaler(with_mean=is_scaled, with_std=is_scaled).fit(filled)
        return self

    def transform(self, X: Any) -> FloatArray:
        """Return rows as numbers, shape (n_rows, n_encoded): columns of numbers come first.

        Raise AgreementError if columns are missing, hold other kinds of entries than in `fit`, or are refused for
        unknown categories.  If `unknown` is "warn", one DataCollabWarning names all columns that hold many of these.
        """
        columns = self._columns(X)
        outside: list[str] = []
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
            codes = _find_places(_as_texts(columns[self.names_[place]]), levels)
            n_unknown = int((codes == UNKNOWN).sum())
            n_known = int((codes >= 0).sum())
            # A misspelt entry or two are no other coding; gaps say nothing about the coding.
            if n_unknown > max(1, MOST_OUTSIDE * (n_unknown + n_known)):
                outside.append(
                    f"column {self.names_[place]!r} holds unknown categories in {n_unknown} of {len(codes)} rows"
                )
            parts.append((codes[:, None] == np.arange(len(levels))).astype(np.float64))
        found = (
            f"{self.what}: {', '.join(outside)}. Write them as in the table that columns were learnt from, such as the "
            "anchor, or add rows with these categories there: to an anchor, public ones."
        )
        if outside and self.unknown == "refuse":
            raise AgreementError(found)
        if outside and self.unknown == "warn":
            warnings.warn(f"{found} Until then they count as no known category.", DataCollabWarning, stacklevel=3)
        return np.hstack(parts)

    def settle(self, Z: FloatArray) -> FloatArray:
        """Return rows of numbers as the nearest ones that a table gives: one category each, and flags of 0 and 1."""
        Z = Z.copy()
        start = len(self.places_)
        for column in np.flatnonzero(self.are_flags_):
            # Where 0 and 1 lie once columns are scaled.
            ends = self._scaler.transform(np.tile([[0.0], [1.0]], start))[:, column]
            Z[:, column] = ends[np.abs(Z[:, [column]] - ends).argmin(axis=1)]
        for levels in self.levels_:
            block = Z[:, start : start + len(levels)]
            block[:] = np.eye(len(levels))[block.argmax(axis=1)]
            start += len(levels)
        return Z

    def decode(self, Z: FloatArray, like: Any) -> Any:
        """Return settled rows as a table like the plain one of `fit`."""
        columns = {}
        start = len(self.places_)
        # No scaler was fitted to no columns.
        numbers = self._scaler.inverse_transform(Z[:, :start]) if start else Z[:, :0]
        for place, entries, is_flag in zip(self.places_, numbers.T, self.are_flags_, strict=True):
            columns[place] = entries
            if is_flag:
                # Scaling back leaves 0 and 1 with rounding.
                columns[place] = np.round(entries)
        for place, levels in zip(self.categories_, self.levels_, strict=True):
            columns[place] = np.array(levels, dtype=object)[Z[:, start : start + len(levels)].argmax(axis=1)]
            start += len(levels)
        found = {name: columns[place] for place, name in enumerate(self.names_)}
        if not self.is_frame_:
            if not self.levels_:
                return np.column_stack(list(found.values()))
            # Stacked as they are, numbers beside texts would become texts.
            return np.column_stack([each.astype(object) for each in found.values()])
        if not hasattr(like, "iloc"):
            return type(like)(found)
        kept = {}
        for name, dtype in like.dtypes.items():
            # The declared categories, which may be numbers; texts stood for them here.
            if dtype.name == "category":
                names = {label_text(each): each for each in dtype.categories}
                found[name] = np.array([names.get(each) for each in found[name]], dtype=object)
            if dtype.name in ("category", "bool"):
                kept[name] = dtype
        return type(like)(found).astype(kept)

    @property
    def common_units(self) -> FloatArray | None:
        """Return standardised columns' own units, up to a common factor; None beside categories."""
        # Columns of zeros and ones have no units.
        if self.levels_:
            return None
        return np.asarray(self._scaler.scale_ / self._factor)

    @property
    def common_centre(self) -> FloatArray | None:
        """Return the mean in these units; None beside categories."""
        if self.levels_:
            return None
        return np.asarray(self._scaler.mean_ / self._factor)

    @property
    def _factor(self) -> float:
        return float(np.sqrt(np.mean(self._scaler.scale_**2)))

    def _columns(self, X: Any) -> dict[Any, NDArray[Any]]:
        """Return the columns that were learnt, of another table."""
        table = plain_table(X, self.what)
        if hasattr(table, "columns") != self.is_frame_:
            form = "a frame with column names" if self.is_frame_ else "an array"
            raise AgreementError(
                f"{self.what} must be {form}, as the table that columns were learnt from. Give all tables in one form."
            )
        if self.is_frame_:
            if missing := [name for name in self.names_ if name not in list(table.columns)]:
                raise AgreementError(
                    f"{self.what} lacks {len(missing)} columns: {missing[:10]!r}."
                    f"{spelt_otherwise(missing, list(table.columns))} The table that columns were learnt from, such as "
                    "the anchor, has them. Drop them there, or add or rename them here."
                )
            table = table[self.names_]
        columns = columns_of(table, self.what, AgreementError)
        if len(columns) != self.n_features_in_:
            raise AgreementError(f"{self.what} has {len(columns)} columns; expected {self.n_features_in_}.")
        return columns


def _as_texts(entries: NDArray[Any]) -> list[str | None]:
    if entries.dtype.kind == "O":
        return list(entries)
    # NaN alone differs from itself.
    return [None if each != each else label_text(each) for each in entries.tolist()]


def _find_places(entries: Sequence[str | None], levels: Sequence[str | None]) -> NDArray[np.intp]:
    """Return the places of entries among the levels, a negative one for those unknown."""
    known = [level for level in levels if level is not None]
    find = label_finder(known, relaxed=True)
    places = {level: place for place, level in enumerate(levels)}
    places |= {each: find(each) for each in {*entries} - {*places} if each is not None}
    return np.array([places.get(each, MISSING) for each in entries], dtype=np.intp)
