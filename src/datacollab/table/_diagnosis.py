"""A column's contents: numbers or categories, words for missing entries, and entries that may be something else.

A draft and a party's check ask the same function.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy

from .._entries import check_choice, join_names
from .._frames import MOST_OUTSIDE, label_text, relax
from .._typing import FloatArray
from ._values import (
    POINT,
    UNDECIDED,
    NotNumericError,
    Numbers,
    as_numbers,
    check_no_dates,
    find_readings,
    is_missing_word,
    shapes_of,
)

_FEWEST_ROWS = 20
"""Below that, nobody can tell record numbers and constants."""
FEWEST_OF_LEVEL = 10
"""In the total, of each class and level; with fewer in the public rows, it may be rare at the parties."""
_RARE = 0.02
"""Part of the rows in which a number far outside may be a slip of the pen; in more rows it is meant."""
_MOSTLY = 0.8
"""Part of numbers from which other entries are faults."""
_MOST_SENTINELS = 0.2
"""The largest part of numbers that stand for missing; with more, they are likely to be meant."""
_FAR_OFF = 10
"""In widths of all other numbers."""
_TOO_FINE = "it is left out; put broader ones in its place, such as regions for towns"
MOST_CATEGORIES = 50
"""Of a column that is drafted; each is a column of the matrix."""
_LEAST_EVEN = 0.05
"""Level of the Kolmogorov-Smirnov test, above which numbers are spread evenly."""
_MOST_SKIPPED = 1000
"""Numbers for each row, beyond which no sample of running numbers is spread."""
_ANOTHER = "has another whole number in every row"
_CODE = re.compile(r"[+-]?0\d+", re.ASCII)
_MARKED = re.compile(r"[+-]?\d+([.,]\d+)+", re.ASCII)
SENTINEL = re.compile(r"-?(9+|8+|7+|9+[678])|-1", re.ASCII)
_DATE = re.compile(
    r"(\d{4}[-/]\d{1,2}[-/]\d{1,2}|\d{1,2}[./-]\d{1,2}[./-](\d{4}|\d{2}))([T ]\d{1,2}:\d{2}.*)?"
    r"|(19|20)\d\d[wmqh]\d{1,2}",
    re.ASCII,
)
"""Days, and the weeks, months, quarters and halves of years that Stata counts."""
_DAYS = re.compile(r"(19|20)\d\d(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])", re.ASCII)
_UNNAMED = re.compile(r"(Unnamed: \d+|__index_level_\d+__|)(_level_\d+)?")
_IDENTIFIER = re.compile(r"(^|[_\W])(id|ids|pid|mrn|nr|no|record|patient|case|fall|index)([_\W]|$)", re.IGNORECASE)
_SURE_IDENTIFIER = re.compile(r"(^|[_\W])(id|ids|pid|mrn|record)([_\W]|$)", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class Answers:
    """The owner's answers on columns, by their names: kinds, words for missing, and entries that are not changed.

    Words under the name "" are for all columns.
    """

    kinds: Mapping[str, str] = field(default_factory=dict)
    missing: Mapping[str, Collection[str]] = field(default_factory=dict)
    keep: Mapping[str, Collection[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, kind in self.kinds.items():
            check_choice(f"Column {name!r}, kind", kind, ("number", "category"))

    def words(self, answer: str, name: str) -> set[str]:
        """Return the words of the answer "missing" or "keep" for a column, as `relax` spells them."""
        by_column: Mapping[str, Collection[str]] = getattr(self, answer)
        return {relax(each) for key in (name, "") for each in by_column.get(key, ())}


@dataclass(frozen=True, kw_only=True)
class ColumnFinding:
    """Something about a column that its owner should know, or is asked."""

    column: str
    kind: str
    found: str
    """The end of a sentence that begins with the column."""
    done: str
    """The consequence, and the option that changes it."""
    meaning: str = ""
    """A possible meaning, as a condition; empty if there is no question to a party."""
    asks: bool = False
    """Whether there are two readings, and the owner has to say which."""

    @property
    def sentence(self) -> str:
        """In one line."""
        return f"Column {self.column!r} {self.found}: {self.done}."


@dataclass(frozen=True, kw_only=True, eq=False)
class Diagnosis:
    """The contents of a column."""

    kind: str
    """"number", "category", "" if nothing can be made of it, or "left out"."""
    numbers: FloatArray = field(default_factory=lambda: np.empty(0), repr=False)
    """All entries, missing ones as NaN; of a category none."""
    levels: Counter[str] = field(default_factory=Counter, repr=False)
    """How often each category occurs, spelt as it mostly is."""
    share_of_others: float = 0.0
    """The share of entries, in other tables of the kind, that may well be none of these categories."""
    missing_words: tuple[str, ...] = ()
    n_rows: int = 0
    n_missing: int = 0
    findings: tuple[ColumnFinding, ...] = ()


@dataclass(frozen=True, kw_only=True, eq=False)
class _Entries:
    """A column's entries in words for missing ones, numbers and others; all texts are keys of `counts`."""

    name: str
    kind: str | None
    """As the owner says; None if nobody has said it."""
    values: FloatArray
    """All entries as numbers, NaN for missing and others, shape (n_rows,)."""
    are_strings: bool
    """Whether every entry is a string, as where somebody has saved numbers as text."""
    counts: Counter[str]
    words: set[str]
    """Entries that mean missing."""
    own_words: set[str]
    """Those of them that nobody has named."""
    others: set[str]
    """Entries that are neither words nor numbers."""
    codes: set[str]
    """Entries with leading zeros."""
    keep: set[str]
    """Entries that are not changed, as `relax` spells them."""

    @property
    def n_rows(self) -> int:
        return len(self.values)

    @property
    def part_of_numbers(self) -> float:
        """Numbers, as a part of all entries that are no words."""
        n_present = self.count(self.counts.keys() - self.words)
        return (n_present - self.count(self.others)) / max(1, n_present)

    def count(self, texts: Iterable[str]) -> int:
        """Return the number of rows with one of the texts."""
        return sum(self.counts[each] for each in texts)

    def tell(self, kind: str, found: str, done: str, **further: Any) -> ColumnFinding:
        """Return a finding on this column."""
        return ColumnFinding(column=self.name, kind=kind, found=found, done=done, **further)


def count_words(counts: Mapping[str, int], texts: Iterable[str]) -> str:
    """Return texts and how often each occurs, the most frequent first."""
    return join_names([f"{text!r} ({counts[text]} times)" for text in sorted(texts, key=lambda text: -counts[text])])


def entry_text(entry: object) -> str | None:
    """Return an entry as text; None if it is missing or blank."""
    # NaN differs from itself.
    if entry is None or type(entry).__name__ in ("NAType", "NaTType") or entry != entry:
        return None
    text = label_text(entry)
    return text if text.strip() else None


def diagnose(
    name: str, entries: Any, answers: Answers | None = None, *, limits: tuple[float, float] | None = None
) -> Diagnosis:
    """Return a diagnosis of a column, a Series; its words quote entries, and so are for the owner of the table.

    `limits` are a range that people gave: numbers inside are no codes for missing entries.
    """
    answers = answers or Answers()
    is_asked = name not in answers.kinds
    if is_asked and _UNNAMED.fullmatch(name):
        return _leave_out(name, "unnamed", "has no name of its own", "it is an index as a rule, and left out")
    try:
        check_no_dates(entries)
    except NotNumericError as error:
        return Diagnosis(kind="", findings=(_ask_dates(name, error.kind),))
    column = _read_entries(name, entries, answers)
    # Nothing can be learnt from a column without entries, and parties may fill it.
    if is_asked and not column.counts:
        return _leave_out(name, "empty", "is empty", "it is left out")
    # Categories come before questions: codes and frequent texts have one reading.
    question = _ask_strange(column)
    if _is_category(column, question):
        return _diagnose_category(column)
    if question is not None:
        return Diagnosis(kind="", findings=(question,))
    return _diagnose_numbers(column, limits)


def _read_entries(name: str, entries: Any, answers: Answers) -> _Entries:
    """Read a column's entries, and tell words for missing ones from numbers and others."""
    missing = answers.words("missing", name)
    keep = answers.words("keep", name)
    is_text = getattr(entries.dtype, "kind", "O") not in "biuf"
    values = np.empty(0)
    texts: list[str | None] = []
    if is_text:
        texts = [entry_text(entry) for entry in entries.tolist()]
        counts = Counter(text for text in texts if text is not None)
    else:
        values = as_numbers(entries)
        counts = Counter({label_text(float(each)): int(n) for each, n in _count_values(values)})
    # The owner's words hold for numbers as well, such as 999.
    words = {each for each in counts if relax(each) in missing}
    if is_text:
        words |= {each for each in counts if is_missing_word(each) and relax(each) not in keep}
        numbers = _read_numbers(counts.keys() - words)
        others = counts.keys() - words - numbers.keys()
        values = np.array([numbers.get(text or "", math.nan) for text in texts])
    else:
        others = set()
        values = np.where(np.isin(values, [float(each) for each in words]), math.nan, values)
    return _Entries(
        name=name,
        kind=answers.kinds.get(name),
        values=values,
        are_strings=is_text and all(isinstance(each, str) for each in entries.dropna()),
        counts=counts,
        words=words,
        own_words={each for each in words if relax(each) not in missing},
        others=others,
        codes={each for each in counts.keys() - words if _CODE.fullmatch(each)},
        keep=keep,
    )


def _read_numbers(texts: Collection[str]) -> dict[str, float]:
    """Return the texts that are numbers in the one reading that the reader of tables finds for them all."""
    candidates = sorted(texts)
    reading = POINT
    if candidates:
        reading = find_readings({"": shapes_of(np.array(candidates, dtype=object))}, usual=None)[""]
    if reading == UNDECIDED:
        # Those with a mark are then no numbers.
        candidates = [each for each in candidates if not _MARKED.fullmatch(each.strip())]
        reading = POINT
    # Each text by itself, so that one text among numbers does not hide them.
    shapes = {each: shapes_of(np.array([each], dtype=object)) for each in candidates}
    numeric = [each for each in candidates if Numbers(shapes[each], reading, is_declared=False).is_number]
    column = Numbers(set().union(*(shapes[each] for each in numeric)), reading, is_declared=False)
    values = column.convert(np.array(numeric, dtype=object)).astype(float)
    # Codes are numbers only where somebody says so.
    return dict(zip(numeric, values, strict=True)) | {each: float(each) for each in texts if _CODE.fullmatch(each)}


def _count_values(numbers: FloatArray) -> Iterable[tuple[float, int]]:
    values, counts = np.unique(numbers[~np.isnan(numbers)], return_counts=True)
    return zip(values.tolist(), counts.tolist(), strict=True)


def _leave_out(name: str, kind: str, found: str, done: str, meaning: str = "") -> Diagnosis:
    done = f"{done} (--as {name or 'NAME'}=number or category takes it)"
    finding = ColumnFinding(column=name, kind=kind, found=found, done=done, meaning=meaning)
    return Diagnosis(kind="left out", findings=(finding,))


def _leave_out_constant(name: str) -> Diagnosis:
    return _leave_out(name, "constant", "has one entry in all rows", "it tells no rows apart, and is left out")


def _ask_dates(name: str, noun: str) -> ColumnFinding:
    done = f"make it a number, such as an age in years, or leave it out with --without {name}"
    return ColumnFinding(column=name, kind="dates", found=f"holds {noun}", done=done, asks=True)


def _ask_strange(column: _Entries) -> ColumnFinding | None:
    """Return a question on entries that are no numbers, if nearly all others are, or if they are dates."""
    if column.kind == "category" or not column.others:
        return None
    name = column.name
    part = column.part_of_numbers
    n_dates = column.count(each for each in column.others if _DATE.fullmatch(each.strip()))
    # Dates among mostly numbers are slips; among texts they are the column's kind.
    if n_dates >= _MOSTLY * column.count(column.others) and part < _MOSTLY:
        return _ask_dates(name, "dates")
    words = count_words(column.counts, column.others)
    if part > 0 and all(_MARKED.fullmatch(each.strip()) for each in column.others):
        found = f"has numbers whose mark may separate decimals or thousands: {words}"
        done = f"write them without, or leave it out with --without {name}"
        return column.tell("no numbers", found, done, asks=True)
    # Among few numbers, texts are categories.
    if part < _MOSTLY and column.kind is None:
        return None
    found = f"has entries that are no numbers: {words}"
    done = f"--missing '{name}=WORD' takes a word as missing, --as {name}=category all as categories"
    return column.tell("no numbers", found, done, asks=True)


def _is_category(column: _Entries, question: ColumnFinding | None) -> bool:
    """Return whether a column holds categories: as its owner says, by its codes, or as its texts are no numbers."""
    if column.kind is not None:
        return column.kind == "category"
    if column.others:
        return bool(column.codes) or question is None
    # Numbers that somebody has saved as text are meant as text.
    return bool(column.codes) or (column.are_strings and not column.words)


def _diagnose_numbers(column: _Entries, limits: tuple[float, float] | None) -> Diagnosis:
    name = column.name
    numbers = column.values
    findings = []
    # Words that the owner has named need no telling.
    if own := column.own_words:
        found = f"has words among its numbers: {count_words(column.counts, own)}"
        done = f"read as missing (--as {name}=category takes them as categories)"
        findings.append(column.tell("words", found, done))
    codes = {each for each in _find_sentinels(numbers, limits) if relax(each) not in column.keep}
    if codes:
        findings.append(_tell_sentinels(column, codes))
        numbers = np.where(np.isin(numbers, [float(each) for each in codes]), math.nan, numbers)
    # A given range says what is possible, so nothing is far off.
    elif limits is None and (far := _find_far_off(numbers)) is not None:
        word = label_text(far)
        done = f"kept, so the range reaches it; a sum, or a decimal comma? --missing {name}={word} takes it as missing"
        findings.append(column.tell("far off", f"has {word} far outside the rest", done))
    if column.kind is None:
        if (record := _find_records(name, numbers)) is not None:
            # A model would learn the order of rows from record numbers.
            if _are_record_numbers(name, numbers):
                done = "it is a record number, and left out"
                return _leave_out(name, "records", record.found, done, record.meaning)
            findings.append(record)
        # A range that was given is another institution's, where the column may differ.
        is_constant = np.unique(numbers[np.isfinite(numbers)]).size == 1
        if is_constant and limits is None and column.n_rows >= _FEWEST_ROWS:
            return _leave_out_constant(name)
    return Diagnosis(
        kind="number",
        numbers=numbers,
        missing_words=tuple(sorted(column.words | codes)),
        n_rows=column.n_rows,
        n_missing=int(np.isnan(numbers).sum()),
        findings=tuple(findings),
    )


def _tell_sentinels(column: _Entries, codes: set[str]) -> ColumnFinding:
    return column.tell(
        "sentinels",
        f"has {count_words(column.counts, codes)} far outside the rest",
        f"read as missing (--keep {column.name}={min(codes)} takes it as a number)",
        meaning=f"{column.count(codes)} of {column.n_rows} entries that lie far outside all others stand for missing "
        "ones",
    )


def _find_sentinels(numbers: FloatArray, limits: tuple[float, float] | None) -> set[str]:
    """Return numbers such as 999 and -9 that lie farther outside of the rest than this is wide.

    Negative ones among numbers that are none are codes at any distance.
    """
    counts = {value: n for value, n in _count_values(numbers) if math.isfinite(value)}
    usual = [value for value in counts if not SENTINEL.fullmatch(label_text(value))]
    n_all = sum(counts.values())
    # One other value has no width that something could lie outside of.
    if n_all < _FEWEST_ROWS or len(usual) < 2:
        return set()
    low = min(usual)
    high = max(usual)

    def is_far(value: float) -> bool:
        if limits is not None and limits[0] <= value <= limits[1]:
            return False
        return (value < 0 <= low) or max(low - value, value - high) > high - low

    # Those nearest to the rest first, as 7, 8 and 9 may be its end.
    for value in sorted(counts.keys() - set(usual), key=lambda value: max(low - value, value - high)):
        if not is_far(value):
            low = min(low, value)
            high = max(high, value)
    codes = {value for value in counts if not low <= value <= high}
    if sum(counts[each] for each in codes) > _MOST_SENTINELS * n_all:
        return set()
    return set(map(label_text, codes))


def _find_far_off(numbers: FloatArray) -> float | None:
    """Return a number in few rows that lies many times as far from all others as these are apart."""
    values, counts = np.unique(numbers[np.isfinite(numbers)], return_counts=True)
    # Distances between fewer than three values say nothing.
    if counts.sum() < _FEWEST_ROWS or values.size < 3:
        return None
    for place, others in ((-1, values[:-1]), (0, values[1:])):
        gap = min(abs(values[place] - others[0]), abs(values[place] - others[-1]))
        if gap > _FAR_OFF * (others[-1] - others[0]) and counts[place] <= _RARE * counts.sum():
            return float(values[place])
    return None


def _find_records(name: str, numbers: FloatArray) -> ColumnFinding | None:
    """Return a finding on whole numbers that may be record numbers or days; it asks unless they may well be amounts."""
    found, meaning = _like_records(name, numbers)
    if not found:
        return None
    if found == _ANOTHER:
        # Whole numbers that all differ without being spread as running numbers are may well be amounts.
        done = f"taken as a number; if {meaning}, --without {name} leaves it out"
    else:
        done = f"--without {name} leaves it out, --as {name}=number takes it as a number"
    return ColumnFinding(column=name, kind="records", found=found, done=done, meaning=meaning, asks=found != _ANOTHER)


def _like_records(name: str, numbers: FloatArray) -> tuple[str, str]:
    """Return the likeness of whole numbers to record numbers or days, and the condition; both empty without one."""
    present = numbers[np.isfinite(numbers)]
    # Record numbers are whole.
    if present.size < _FEWEST_ROWS or (present % 1 != 0).any():
        return "", ""
    values, counts = np.unique(present, return_counts=True)
    if all(_DAYS.fullmatch(label_text(float(each))) for each in values):
        return "holds whole numbers that are days as yyyymmdd", "these are dates"
    is_record = "it is a record number"
    if values.size == present.size == numbers.size:
        return _ANOTHER, is_record
    # Rows as they were written down: running numbers grow, or shrink in a reversed table.
    steps = np.diff(present)
    # Visits of one person may repeat its number, but half of the rows have one of their own.
    is_many = values.size >= max(_FEWEST_ROWS, present.size / 2)
    if is_many and ((steps >= 0).all() or (steps <= 0).all()):
        return "has whole numbers in order", is_record
    # Equally many rows of each number: a panel of records at up to five visits.
    is_dense = values.size >= _FEWEST_ROWS and counts.min() == counts.max() and values.size * 5 >= present.size
    if is_dense or (_IDENTIFIER.search(name) and is_many):
        return "has whole numbers as records have", is_record
    return "", ""


def _are_record_numbers(name: str, numbers: FloatArray) -> bool:
    """Return whether different whole numbers are surely record numbers: by name, or as running numbers are spread.

    Rows drawn from a table have running numbers that are spread evenly, which quantities seldom are.
    """
    if _SURE_IDENTIFIER.search(name):
        return True
    values = np.unique(numbers)
    if values.size < numbers.size:
        return False
    uniform = scipy.stats.uniform(loc=values[0], scale=values[-1] - values[0])
    evenly = scipy.stats.kstest(values, uniform.cdf).pvalue
    # Running numbers of a sample skip others, but not many times as many as it has rows.
    return bool(evenly > _LEAST_EVEN and values[-1] - values[0] < _MOST_SKIPPED * values.size)


def _is_free_text(levels: Counter[str]) -> bool:
    """Return whether most entries of a column stand in one row only, as names, identifiers and remarks do."""
    n_entries = sum(levels.values())
    n_once = sum(n == 1 for n in levels.values())
    is_other_everywhere = len(levels) == n_entries and n_entries > 2
    return is_other_everywhere or (len(levels) > MOST_CATEGORIES and n_once > n_entries / 2)


def _diagnose_category(column: _Entries) -> Diagnosis:
    name = column.name
    findings = []
    # Among other texts, leading zeros are no surprise.
    if column.codes and not column.others:
        done = f"read as text, never as a number (--as {name}=number)"
        findings.append(column.tell("codes", "has codes with leading zeros", done))
    frequent = _find_frequent_words(column)
    findings += _tell_words(column, frequent)
    words = column.words - frequent
    levels, merged = _merge_spellings(column, words)
    if merged:
        found = f"has spellings that differ by capital letters, blanks or Unicode alone, {join_names(merged)}"
        done = f"taken as one category each, at the parties as well (--keep '{name}=SPELLING' keeps one apart)"
        findings.append(column.tell("spellings", found, done))
    if column.kind is None and len(levels) == 1 and column.n_rows >= _FEWEST_ROWS:
        return _leave_out_constant(name)
    if column.kind is None and _is_free_text(levels):
        found = f"has {len(levels)} different texts in {column.n_rows} rows"
        return _leave_out(name, "free text", found, "it is an identifier or free text, and left out")
    n_present = sum(levels.values())
    n_left_out = 0
    if len(levels) > MOST_CATEGORIES:
        found = f"has {len(levels)} categories"
        kept = _keep_frequent(levels, are_all_asked_for=column.kind is not None)
        if len(kept) < 2:
            return _leave_out(name, "many", f"{found}, hardly any of them in {FEWEST_OF_LEVEL} rows", _TOO_FINE)
        n_left_out = n_present - kept.total()
        done = (
            f"the {len(kept)} most frequent are kept, and all others count as other "
            f"({100 * n_left_out / n_present:.0f} % of entries; most_unknown says how many may)"
        )
        findings.append(column.tell("many", found, done))
        levels = kept
    findings += _tell_rare(column, levels, n_present)
    # By Good and Turing, as many entries of another table are of categories that this one has never, as here of
    # categories that it has once (Good, Biometrika 40, 1953).
    n_others = n_left_out + sum(n == 1 for n in levels.values())
    return Diagnosis(
        kind="category",
        levels=levels,
        # By two of its standard deviations more, as few categories are seen once by chance.
        share_of_others=(n_others + 2 * math.sqrt(n_others)) / max(1, n_present),
        missing_words=tuple(sorted(words)),
        n_rows=column.n_rows,
        n_missing=column.n_rows - n_present,
        findings=tuple(findings),
    )


def _find_frequent_words(column: _Entries) -> set[str]:
    """Return words for missing entries that nobody has named, and that are too frequent for that, or all there is."""
    if not column.counts.keys() - column.words:
        return column.own_words
    most = MOST_OUTSIDE * sum(column.counts.values())
    return {each for each in column.own_words if column.counts[each] > most}


def _tell_words(column: _Entries, frequent: set[str]) -> list[ColumnFinding]:
    """Return findings on words for missing entries: the frequent ones are categories."""
    findings = []
    for each in sorted(frequent):
        done = f"taken as a category (--missing '{column.name}={each}' as missing)"
        findings.append(column.tell("words", f"has {count_words(column.counts, [each])}", done))
    if seldom := column.own_words - frequent:
        done = f"read as missing (--keep '{column.name}={min(seldom)}' takes it as a category)"
        findings.append(column.tell("words", f"has {count_words(column.counts, seldom)}", done))
    return findings


def _merge_spellings(column: _Entries, words: set[str]) -> tuple[Counter[str], list[str]]:
    """Return how often each category occurs in any spelling, and in words which spellings were merged."""
    spellings: dict[str, list[str]] = {}
    for each in column.counts.keys() - words:
        spelling = relax(each)
        # An entry that is kept stands by itself.
        if spelling in column.keep:
            spelling = each
        spellings.setdefault(spelling, []).append(each)
    levels: Counter[str] = Counter()
    merged = []
    for alike in spellings.values():
        usual = max(alike, key=lambda text: (column.counts[text], text == text.strip(), text))
        # The project has one form of Unicode; parties' spellings are relaxed.
        plain = unicodedata.normalize("NFC", usual.strip())
        levels[plain] += column.count(alike)
        merged += [f"{other!r} as {plain!r}" for other in sorted(alike) if other != usual]
    return levels, merged


def _fewest_of_level(n_present: int) -> float:
    """Return how many rows a category needs not to be rare; in a small table, that is a small part of it."""
    return min(FEWEST_OF_LEVEL, MOST_OUTSIDE * n_present)


def _keep_frequent(levels: Counter[str], *, are_all_asked_for: bool) -> Counter[str]:
    """Return the most frequent categories, without rare ones unless the owner asked for this column.

    Of many rare categories, those are more frequent here by chance that are kept for their frequency.
    """
    least = 0.0 if are_all_asked_for else _fewest_of_level(levels.total())
    ordered = sorted(levels.items(), key=lambda each: (-each[1], each[0]))
    return Counter({level: n for level, n in ordered[:MOST_CATEGORIES] if n >= least})


def _tell_rare(column: _Entries, levels: Counter[str], n_present: int) -> list[ColumnFinding]:
    """Return a finding if few rows have a category."""
    rare = [each for each in levels if levels[each] < _fewest_of_level(n_present)]
    if not rare:
        return []
    found = f"has categories in fewer than {FEWEST_OF_LEVEL} rows, {count_words(levels, rare)}"
    done = "kept; if you remove it from the project file, it counts as other (most_unknown says how many may)"
    return [column.tell("rare", found, done)]


def column_questions(table: Any, names: Sequence[str], advice: str) -> list[str]:
    """Return a question for each column of numbers that may be something else; no entry is quoted.

    A measurement may look like that too, in a fine unit, so this is a reason to ask and not to refuse.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"record": range(501, 531), "age": [40, 50, 60] * 10})
    >>> column_questions(table, ["record", "age"], "leave it out")
    ["Column 'record' has another whole number in every row. If it is a record number, leave it out."]
    """
    questions = []
    for name in names:
        # Only numbers may be something else: texts were declared as categories.
        try:
            as_numbers(table[name])
        except NotNumericError:
            continue
        for each in diagnose(name, table[name]).findings:
            if each.kind == "records":
                questions.append(f"Column {name!r} {each.found}. If {each.meaning}, {advice}.")
            elif each.kind == "sentinels":
                questions.append(
                    f"Column {name!r}: if {each.meaning}, leave these empty, or name them in missing_words."
                )
    return questions
