"""Keyed codes of a table's entries as they are read, and whether two tables hold the same people."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import ECB
from numpy.typing import NDArray

from .._require import require
from .._typing import FloatArray

__all__ = ["TableCoder", "TableCodes"]

_Codes = NDArray[np.uint16]
_Pair = tuple[NDArray[Any], NDArray[Any]]
_NO_ENTRY = frozenset(("", "#n/a", "#na", "-nan", "<na>", "n/a", "na", "nan", "nat", "none", "null"))
_TRUTH = {"true": "1", "false": "0"}
_NUMBER, _TEXT, _MISSING = range(3)


class TableCoder:
    """Codes a table, batch by batch, so that no project makes old rows look new.

    A code is two bytes of a block cipher of an entry's plain form, under the institution's key.  Different entries have
    one code once in 65,536 times.  The plain form of a number is its first 13 digits without the place of the point: a
    project decides whether 1,500 is 1.5.  Texts are stripped and in small letters, missing entries are alike, and truth
    values are 1 and 0.  Columns that number rows or people are left out, as other people have the same numbers; the
    first batch tells.
    """

    def __init__(self, key: bytes) -> None:
        self._key = key
        # Each block stands for itself: equal entries have to have equal codes.
        self._cipher = Cipher(AES(key), ECB())
        self._n_rows = 0
        self._parts: dict[str, list[_Codes]] | None = None

    def add(self, frame: Any) -> None:
        """Code the next rows of a data frame as it was read; of columns with one name the first counts."""
        before = self._parts
        parts = dict[str, list[_Codes]]()
        # A frame gives its columns by their places much faster in a row than one by one.
        for name, (_, column) in zip(map(_plain_text, frame.columns), frame.items(), strict=True):
            if name not in parts and (before is None or name in before):
                forms, numbers = self._plain_forms(column)
                if before is not None or not _are_row_numbers(numbers):
                    plain = np.ascontiguousarray(forms, dtype="<i8")
                    sealed = self._cipher.encryptor().update(plain.ravel().data.cast("B"))
                    codes = np.frombuffer(sealed, dtype="<u2")[::8].astype(np.uint16)
                    parts[name] = [*(before or {}).get(name, ()), codes]
        self._parts = parts
        self._n_rows += len(frame)

    def table(self) -> TableCodes:
        """Return the codes of all rows so far."""
        parts = self._parts or {}
        # Column by column, or all codes would be in memory twice.
        for name, each in parts.items():
            parts[name] = [np.concatenate(each)]
        return TableCodes(self._n_rows, {name: whole for name, (whole,) in parts.items()})

    def _plain_forms(self, column: Any) -> tuple[NDArray[np.int64], FloatArray]:
        """Return the plain forms, shape (n_rows, 2), and the column's numbers; those within texts, if all are texts."""
        pandas = require("pandas", "cli")
        kind = column.dtype.kind
        if column.dtype == np.float64:
            numbers = column.to_numpy()
            return _number_forms(numbers), numbers
        if isinstance(column.dtype, pandas.StringDtype | pandas.CategoricalDtype):
            places, found = pandas.factorize(column.astype(object))
            has_gaps = bool((places < 0).any())
            entries = pandas.Series([*found, *[None] * has_gaps], dtype=object)
            if 2 * len(entries) < len(column):
                # Each text once; a missing entry has the last place.
                forms, numbers = self._plain_forms(entries)
                return forms[places], numbers[places]
        # Dates and complex numbers are texts, and so are short floats: 0.1 would become 0.10000000149.
        if kind in "Mmc" or (kind == "f" and column.dtype.itemsize < 8):
            column = column.astype(str)
        entries = column
        if column.dtype.kind not in "biuf":
            entries = column.astype(object)
        numbers = _as_numbers(entries)
        forms = _number_forms(numbers)
        others = np.flatnonzero(np.isnan(numbers) & column.notna().to_numpy())
        if others.size:
            places, found = pandas.factorize(column.iloc[others].map(str).astype(object))
            forms[others] = np.array([self._text_form(text) for text in map(_plain_text, found)])[places]
            if others.size == len(column):
                numbers = _as_numbers(pandas.Series([re.sub(r"\D", "", text) for text in found]))[places]
        return forms, numbers

    def _text_form(self, text: str) -> tuple[int, int]:
        if text in _NO_ENTRY:
            return 0, _MISSING
        try:
            # 1.500 and 1,500 are one number: a project says which sign is the point.
            number = float(_TRUTH.get(text, text.replace(",", "").replace(".", "")))
        except ValueError:
            data = text.encode("utf-8", "surrogatepass")
            hashed = hashlib.blake2b(data, digest_size=8, key=self._key, person=b"datacollab cell1").digest()
            return int.from_bytes(hashed, "little", signed=True), _TEXT
        return int(_digits(np.array([number]))[0]), _NUMBER


def _plain_text(entry: Any) -> str:
    return unicodedata.normalize("NFC", str(entry)).strip().casefold()


def _as_numbers(column: Any) -> FloatArray:
    numbers = require("pandas", "cli").to_numeric(column, errors="coerce")
    return np.asarray(numbers.to_numpy(dtype=np.float64, na_value=np.nan))


def _number_forms(numbers: FloatArray) -> NDArray[np.int64]:
    forms = np.empty((len(numbers), 2), dtype=np.int64)
    forms[:, 0] = _digits(numbers)
    forms[:, 1] = np.where(np.isnan(numbers), _MISSING, _NUMBER)
    return forms


_N_DIGITS = 13
_LEAST_POWER = -290


def _decimal_scales() -> tuple[FloatArray, FloatArray]:
    """Return for each binary exponent of a float64 the power of ten within its numbers, and factors to 13 digits.

    The factors, shape (2048, 2), are for numbers below that power of ten, and from it on.
    """
    powers = np.full(2048, np.inf)
    factors = np.zeros((2048, 2))
    for place in range(1, 2047):
        least = 2.0 ** (place - 1023)
        exponent = int(f"{least:e}".partition("e")[2])
        if exponent > _LEAST_POWER:
            factors[place] = [float(f"1e{_N_DIGITS - 1 - each}") for each in (exponent, exponent + 1)]
            powers[place] = float(f"1e{exponent + 1}")
    return powers, factors


_POWERS, _FACTORS = _decimal_scales()


def _digits(numbers: FloatArray) -> NDArray[np.int64]:
    """Return the first 13 digits of each number with its sign; 0 if it is 0, too small, or none."""
    numbers = np.ascontiguousarray(numbers, dtype=np.float64)
    # The exponent tells the factor but for one power of ten; logarithms would take most of a share's time.
    exponents = (numbers.view(np.int64) >> 52) & 2047
    places = 2 * exponents + (np.abs(numbers) >= _POWERS[exponents])
    scaled = np.where(exponents < 2047, numbers, 0.0) * _FACTORS.ravel()[places]
    digits = np.rint(scaled).astype(np.int64)
    # Nines that were rounded up are the digits of a power of ten.
    digits[np.abs(digits) == 10**_N_DIGITS] //= 10
    return np.asarray(digits)


def _are_row_numbers(numbers: FloatArray) -> bool:
    """Return whether whole numbers count rows or people: few gaps, and nearly all occur equally often."""
    present = numbers[~np.isnan(numbers)]
    if (present != np.floor(present)).any():
        return False
    values, times = np.unique(present, return_counts=True)
    # Fewer than ten may be categories, and a fifth of the rows may have been left out.
    has_few_gaps = len(values) >= 10 and np.ptp(values) < 1.25 * len(values)
    return bool(has_few_gaps and np.mean(times == np.median(times)) >= 0.9)


@dataclass(frozen=True, eq=False)
class TableCodes:
    """Codes of a table's entries, to be compared with those of another table of the institution.

    Tables are compared over columns of one name in both or, if the header changed, with the same entries.  Any of them
    may have been corrected, derived anew, or filled with something else, so that sets of columns are tried.  A set says
    that rows are the same if both tables agree more than chance explains (`_is_no_chance`), and it tells rows apart: at
    least half of each table's are distinct in it, or it is all that one table has.  Sex and ward alone say nothing.
    """

    n_rows: int
    columns: Mapping[str, _Codes]
    """Shape (n_rows,) each, by name in small letters."""

    def __add__(self, other: TableCodes) -> TableCodes:
        """Return the codes of both tables' rows, in the columns that neither left out."""
        both = [name for name in self.columns if name in other.columns]
        columns = {name: np.concatenate([self.columns[name], other.columns[name]]) for name in both}
        return TableCodes(self.n_rows + other.n_rows, columns)

    def n_different(self, other: TableCodes, fewest: int) -> int | None:
        """Return how many rows only one table has, equal rows as often as they occur; None if `fewest`, or all new.

        It is counted in the largest set of columns in which fewer than `fewest` rows differ: a change of few rows
        counts, and a column that changed in more rows is another column.
        """
        sets = _agreeing_sets(self._pair_columns(other), lambda mine, others: np.abs(mine - others).sum() < fewest)
        for n_columns, mine, others in sets:
            if _is_no_chance(mine, others, has_all=n_columns == min(len(self.columns), len(other.columns))):
                return int(np.abs(mine - others).sum())
        return None

    def shares_rows(self, other: TableCodes) -> bool:
        """Return whether a row is in both tables, or half of one table's rows are if a column changed as a whole."""
        if not (pairs := self._pair_columns(other)):
            return False
        counts = _counts(*_row_keys(pairs))
        has_all = len(pairs) == min(len(self.columns), len(other.columns))
        if np.minimum(*counts).any() and (has_all or _distinct_part(*counts) >= _TELLS_APART):
            return True
        sets = _agreeing_sets(pairs, lambda *each: np.minimum(*each).sum() >= min(map(np.sum, each)) / 2, _MOST_ROWS)
        return any(_is_no_chance(mine, others) for _, mine, others in sets)

    def _pair_columns(self, other: TableCodes) -> list[_Pair]:
        """Return columns of one name in both tables, and others that have nearly all of their entries in common."""
        pairs = [(each, other.columns[name]) for name, each in self.columns.items() if name in other.columns]
        left = [(np.unique(each), each) for name, each in other.columns.items() if name not in self.columns]
        for mine in (each for name, each in self.columns.items() if name not in other.columns):
            entries = np.unique(mine)
            # Of a table that grew, the earlier entries are among the later ones.
            shared = [np.isin(entries, each).sum() / max(min(len(entries), len(each)), 1) for each, _ in left]
            # Fewer entries do not tell which column it is.
            if len(entries) >= _FEWEST_TELLING and max(shared, default=0.0) >= _SAME_COLUMN:
                pairs.append((mine, left.pop(int(np.argmax(shared)))[1]))
        return pairs


# Different entries by which a column is known under another name.
_FEWEST_TELLING = 20
# Part of these that both tables have, if it is the same column.
_SAME_COLUMN = 0.9
# Part of a table's rows that are distinct in a set of columns that tells rows apart.
_TELLS_APART = 0.5
# The same part from which on chance makes hardly any equal rows.
_NEARLY_ALL = 0.9
# Sets that are tried, so that as many columns may have been shuffled.
_MOST_SETS = 8
# Rows that are compared where nothing is refused.
_MOST_ROWS = 4000


def _row_keys(pairs: Sequence[_Pair]) -> _Pair:
    """Return a key of each row of both tables: the sum of its codes, each times the odd number of its column."""
    # Odd numbers lose no bit of a code; their order is fixed, so that both tables have the same.
    factors = np.random.default_rng(0).integers(2**63, size=len(pairs), dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    mine, others = (np.stack(side, axis=1).astype(np.uint64) @ factors for side in zip(*pairs, strict=True))
    return mine, others


def _counts(mine: NDArray[Any], others: NDArray[Any]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return how many rows of each table are of each kind."""
    kinds = np.concatenate([mine, others])
    n_kinds = 2**16
    # Codes of two bytes number themselves.
    if kinds.dtype != np.uint16:
        _, kinds = np.unique(kinds, return_inverse=True)
        n_kinds = len(kinds)
    first, second = (np.bincount(each, minlength=n_kinds) for each in np.split(kinds, [len(mine)]))
    return first, second


def _agreeing_sets(
    pairs: Sequence[_Pair], agree: Callable[..., bool], most_rows: int | None = None
) -> Iterator[tuple[int, NDArray[np.intp], NDArray[np.intp]]]:
    """Yield sets of columns in which both tables agree: their number, and each table's rows of each kind.

    The first set has all columns that agree by themselves.  If it does not, as one was shuffled, say, each set begins
    with another column, and takes in those that keep it agreeing: with `most_rows`, in rows with some entries of its
    first column alone, the same ones in both tables.
    """
    alone = [pair for pair in pairs if agree(*_counts(*pair))]
    # Columns that tell rows apart best begin a set.
    alone.sort(key=lambda pair: -min(np.count_nonzero(each) for each in _counts(*pair)))
    if alone and agree(*(counts := _counts(*_row_keys(alone)))):
        yield len(alone), *counts
        return
    for place, first in enumerate(alone[:_MOST_SETS]):
        n_rows = max(map(len, first))
        mine, others = (each % -(-n_rows // (most_rows or n_rows)) == 0 for each in first)
        start, *candidates = [
            (each[mine], other[others]) for each, other in (first, *alone[:place], *alone[place + 1 :])
        ]
        chosen = [start]
        for pair in candidates:
            if agree(*_counts(*_row_keys([*chosen, pair]))):
                chosen.append(pair)
        yield len(chosen), *_counts(*_row_keys(chosen))


def _distinct_part(mine: NDArray[np.intp], others: NDArray[np.intp]) -> float:
    return float(min(np.count_nonzero(each) / max(each.sum(), 1) for each in (mine, others)))


def _is_no_chance(mine: NDArray[np.intp], others: NDArray[np.intp], *, has_all: bool = False) -> bool:
    """Return whether tables agree more than those of different people of one population would, in rows set apart.

    These would fall on both tables as if dealt: the squared deviation of a table's part of each kind of row from its
    part of all rows, by its variance, has mean 1, and the variance that the binomial distribution gives it.
    """
    distinct = _distinct_part(mine, others)
    part = mine.sum() / max(mine.sum() + others.sum(), 1)
    if not 0 < part < 1 or (distinct < _TELLS_APART and not has_all):
        return False
    # Of each kind of row, a table's number is binomial if rows fall on both tables by chance.
    sizes = (mine + others)[mine + others > 0]
    spread = part * (1 - part) * sizes
    deviations = (mine[mine + others > 0] - part * sizes) ** 2 / spread
    # Sets are chosen as they agree, so chance gets far; where nearly all rows are distinct it makes no equal ones.
    bound = 3 if has_all or distinct >= _NEARLY_ALL else 5
    return bool(np.sum(1 - deviations) > bound * np.sqrt(np.sum(2 + 1 / spread - 6 / sizes)))
