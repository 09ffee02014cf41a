"""Tables and targets as Python has them: frames and arrays of any library, checked; and which spellings are one."""

from __future__ import annotations

import datetime
import math
import numbers
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ._require import require
from ._typing import FloatArray
from .errors import AgreementError

MISSING = -1
UNKNOWN = -2
MOST_OUTSIDE = 0.05
"""The largest share of a column's entries that may be outside of what was agreed; one entry always may."""
_DECIMAL = re.compile(r"[+-]?\d+(\.\d+)?", re.ASCII)
_NUMBERS = "biuf"
_DATES = (datetime.date, datetime.time, datetime.timedelta)
_MOST_WHOLE = 2.0**53
"""Whole numbers below this are exact as floating-point numbers."""


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
    # Records have a mask for each field, and are checked field by field later.
    if isinstance(values, np.ma.MaskedArray) and not entries.dtype.names:
        mask = np.ma.getmaskarray(values)
        if mask.any():
            # Whole numbers and texts have no NaN.
            entries = entries.astype(np.float64 if entries.dtype.kind in _NUMBERS else object)
            entries[mask] = np.nan
    if entries.dtype.kind != "O":
        return entries
    missing = are_missing(entries)
    known = entries[~missing]
    whole = not missing.any()
    if all(isinstance(each, bool | np.bool_) for each in known) and whole:
        return entries.astype(np.bool_)
    if all(isinstance(each, Real | np.bool_ | Decimal) for each in known):
        are_integers = whole and all(isinstance(each, int | np.integer) for each in known)
        numbers = np.full(entries.shape, np.nan)
        numbers[~missing] = known.astype(np.float64)
        # Larger whole numbers are not exact as floating-point numbers, and neighbours would become one class.
        if are_integers and (np.abs(numbers) < _MOST_WHOLE).all():
            return numbers.astype(np.int64)
        return numbers
    if whole:
        return entries
    return np.where(missing, np.nan, entries)


def came_by_party(X: Any) -> bool:
    """Return whether there is a table for each party: in a mapping, or in a list of frames, or of arrays, as tables."""
    is_list = isinstance(X, list | tuple) and any(len(getattr(each, "shape", ())) == 2 for each in X)
    # Some sparse arrays are mappings.
    return is_list or (isinstance(X, Mapping) and not hasattr(X, "shape"))


def plain_table(X: Any, what: str, error: type[ValueError] = AgreementError) -> Any:
    """Return a frame of pandas or polars, or an array, with NaN for gaps; anything else stays as it is.

    An Arrow table becomes a frame of pandas.  Categories and dates stay.  Raise `error`, in words that begin with
    `what`, if columns have no names of their own, or an array holds records or complex numbers.
    """
    # A lazy frame of polars.
    if hasattr(X, "collect"):
        raise error(f"{what} is a query that was not run. Call .collect() on it first.")
    if came_by_party(X):
        raise error(
            f"{what} is a {type(X).__name__} of {len(X)} tables or columns; expected one table. Join tables, make a "
            "frame of columns, and give rows and targets, as `sample` returns them, apart. Only fit takes several."
        )
    libraries = {base.__module__.partition(".")[0] for base in type(X).__mro__}
    # Arrow's protocol is one that pandas and polars speak as well, and these need no detour.
    if hasattr(X, "__arrow_c_stream__") and not libraries & {"pandas", "polars"}:
        if not hasattr(X, "to_pandas"):
            X = require("pyarrow", "tables").table(X)
        X = X.to_pandas()
    if not hasattr(X, "columns"):
        return _plain_array(X, what, error) if isinstance(X, np.ndarray | list | tuple) else X
    names = list(X.columns)
    if getattr(X.columns, "nlevels", 1) > 1:
        raise error(f"{what} has column names of several levels. Give each column one name.")
    if doubled := sorted({str(name) for name, n in Counter(names).items() if n > 1}):
        raise error(f"{what} has {len(doubled)} names for several columns each: {doubled[:5]}. Rename or drop these.")
    # Of polars, gaps are None in each type, and columns have one type.
    if not hasattr(X, "iloc"):
        return X
    # Objects, and types whose gaps are neither None nor NaN.
    types = {name: (dtype.name, type(getattr(dtype, "na_value", None)).__name__) for name, dtype in X.dtypes.items()}
    changed = [name for name, type_ in types.items() if {*type_} & {"object", "NAType"}]
    if not changed:
        return X
    # A shallow copy: the caller's frame stays as it is, and unchanged columns take no memory.
    plain = X.copy(deep=False)
    for name in changed:
        plain[name] = plain_column(X[name])
    return plain


def _plain_array(X: Any, what: str, error: type[ValueError]) -> Any:
    try:
        array = np.asanyarray(X)
        # In a list of lists, NumPy makes texts of numbers beside texts.
        if array.dtype.kind in "US" and not isinstance(X, np.ndarray):
            array = np.array(X, dtype=object)
    except ValueError:
        raise error(f"{what} must be a table: rows of equally many entries, or a frame.") from None
    if array.dtype.names is not None:
        raise error(f"{what} is an array of records. Give a frame, such as pandas.DataFrame makes of it.")
    if array.dtype.kind == "c":
        raise error(f"Complex data not supported: {what} must be a table of real numbers and categories.")
    if array.ndim != 2 or not (isinstance(array, np.ma.MaskedArray) or array.dtype.kind == "O") or not array.size:
        return X
    columns = [plain_column(column) for column in array.T]
    # Stacked as they are, numbers beside texts would become texts.
    if any(column.dtype.kind not in _NUMBERS for column in columns):
        columns = [column.astype(object) for column in columns]
    return np.column_stack(columns)


def columns_of(table: Any, what: str, error: type[ValueError]) -> dict[Any, NDArray[Any]]:
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
    # Whole numbers beside texts are codes, and decimals are measurements: of these no category can be made.
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
        # Sparse matrices and arrays of other libraries hold numbers alone.
        columns = [table] if isinstance(table, np.ndarray | list | tuple) else []
    plain = [plain_column(each) for each in columns]
    are_declared = any(_is_declared(each) for each in columns)
    return not are_declared and all(each.dtype.kind in "biufc" and not are_missing(each).any() for each in plain)


def _is_declared(column: Any) -> bool:
    return type(getattr(column, "dtype", None)).__name__ == "CategoricalDtype"


def equal_rows(X: FloatArray) -> NDArray[np.intp]:
    """Return a number for each row, the same for rows that are equal to the bit, shape (n_rows,)."""
    return np.asarray(np.unique(X, axis=0, return_inverse=True)[1], dtype=np.intp).ravel()


def row_keys(table: FloatArray) -> Iterator[bytes]:
    """Yield one hashable key per row; equal rows have equal keys."""
    # Adding zero turns -0.0 into 0.0, which compares equal to it but has other bytes.
    return ((row + 0.0).tobytes() for row in table)


def rows_among(rows: FloatArray, table: FloatArray) -> NDArray[np.bool_]:
    """Return for each of `rows` whether it equals some row of `table`, shape (n_rows,)."""
    keys = list(row_keys(rows))
    shared = set(keys).intersection(row_keys(table))
    return np.array([key in shared for key in keys], dtype=np.bool_)


def relax(text: str) -> str:
    """Return one text for all spellings that differ by capital letters, blanks or the form of Unicode alone."""
    return " ".join(unicodedata.normalize("NFC", text).casefold().split())


def spelt_otherwise(missing: Sequence[Any], found: Sequence[Any]) -> str:
    """Return a sentence on missing column names that are found in another spelling; "" if there are none.

    Examples
    --------
    >>> spelt_otherwise(["age", "ward"], ["Age ", "sex"])
    " There is 'Age ' for 'age'."
    """
    alike = {relax(str(name)): name for name in found}
    pairs = []
    for name in missing:
        if (there := alike.get(relax(str(name)))) is not None:
            pair = f"{there!r} for {name!r}"
            are_texts = isinstance(there, str) and isinstance(name, str)
            # The two look the same on every screen, so the difference has to be said.
            if are_texts and unicodedata.normalize("NFC", there) == unicodedata.normalize("NFC", name):
                pair += " (another form of Unicode: rename by unicodedata.normalize('NFC', name) in all tables)"
            pairs.append(pair)
    if not pairs:
        return ""
    return f" There is {', '.join(pairs[:10])}."


def label_finder(labels: Sequence[str | int], relaxed: bool) -> Callable[[object], int]:
    """Return a function to the position of an entry among the labels, `MISSING` for a blank, `UNKNOWN` for no label."""
    exact = {unicodedata.normalize("NFC", str(label)): position for position, label in enumerate(labels)}
    values: dict[str, int] = {}
    spellings: dict[str, int] = {}
    for position, label in enumerate(labels):
        # Labels of one value, such as "1" and "1.0", differ as text only.
        for found, key in ((values, _value(str(label))), (spellings, relax(str(label)))):
            # A spelling that two labels share stands for neither.
            found[key] = UNKNOWN if key in found else position

    def find(entry: object) -> int:
        if isinstance(entry, str) and not entry.strip():
            return MISSING
        text = unicodedata.normalize("NFC", label_text(entry))
        # From the strictest on: as written, then by value, then by spelling.
        position = exact.get(text, values.get(_value(text), UNKNOWN))
        if relaxed and position == UNKNOWN:
            return spellings.get(relax(text), UNKNOWN)
        return position

    return find


def label_text(entry: object) -> str:
    """Return an entry as the text of a label: whole numbers without a point, truth values as 1 and 0."""
    if isinstance(entry, numbers.Integral | np.bool_):
        return str(int(entry))
    if isinstance(entry, float | np.floating | Decimal) and math.isfinite(entry) and int(entry) == entry:
        return str(int(entry))
    return str(entry)


def _value(text: str) -> str:
    """Return one text for all spellings of a number or truth value; 01 is not 1, as leading zeros tell codes apart."""
    if text.lower() in ("true", "false"):
        return str(int(text.lower() == "true"))
    if not _DECIMAL.fullmatch(text):
        return text
    shorter = text.removeprefix("+")
    if "." in shorter:
        shorter = shorter.rstrip("0").rstrip(".")
    if shorter == "-0":
        return "0"
    return shorter
