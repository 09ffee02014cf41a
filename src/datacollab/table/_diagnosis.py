"""What a column of a table holds: numbers or categories, words for missing entries, and what may be something else.

A draft and a party's check ask the same function.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.stats import kstest, uniform

from .._entries import check_choice, invalid, join_names, refuse_if
from .._frames import MOST_OUTSIDE, label_text, relax
from .._typing import FloatArray
from ._numbers import MISSING_WORDS, POINT, UNDECIDED, Numbers, readings, shapes_of
from ._values import NotNumericError, as_numbers, is_missing_word

_FEWEST_ROWS = 20
"""Below that, nobody can tell record numbers and constants."""
FEWEST_OF_LEVEL = 10
"""In the total, of each class and level; with fewer in the public rows, it may be rare at the parties."""
_RARE = 0.02
"""Part of the public rows below which a class may have few rows at the parties."""
_MOSTLY, _MOST_SENTINELS = 0.8, 0.2
"""Part of numbers from which other entries are faults, and the largest part of numbers that stand for missing."""
_FAR_OFF = 10
"""In widths of all other numbers."""
MOST_CATEGORIES = 50
"""Of a column that is drafted; each is a column of the matrix."""
_LEAST_EVEN = 0.05
"""Level of the Kolmogorov-Smirnov test, above which numbers are spread evenly."""
_MOST_SKIPPED = 1000
_ANOTHER = "has another whole number in every row"
_CODE = re.compile(r"[+-]?0\d+", re.ASCII)
_MARKED = re.compile(r"[+-]?\d+([.,]\d+)+", re.ASCII)
_SENTINEL = re.compile(r"-?(9+|8+|7+|9+[678])|-1", re.ASCII)
_DATE = re.compile(
    r"(\d{4}[-/]\d{1,2}[-/]\d{1,2}|\d{1,2}[./-]\d{1,2}[./-](\d{4}|\d{2}))([T ]\d{1,2}:\d{2}.*)?", re.ASCII
)
_DAYS = re.compile(r"(19|20)\d\d(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])", re.ASCII)
_UNNAMED = re.compile(r"(Unnamed: \d+|__index_level_\d+__|)(_level_\d+)?")
_IDENTIFIER = re.compile(r"(^|[_\W])(id|ids|pid|mrn|nr|no|record|patient|case|fall|index)([_\W]|$)", re.IGNORECASE)
_SURE_IDENTIFIER = re.compile(r"(^|[_\W])(id|ids|pid|mrn|record)([_\W]|$)", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class Answers:
    """What the owner says of columns, by their names: kinds, words for missing, and entries that are not changed.

    Words under the name "" are for all columns.
    """

    kinds: Mapping[str, str] = field(default_factory=dict)
    missing: Mapping[str, Collection[str]] = field(default_factory=dict)
    keep: Mapping[str, Collection[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, kind in self.kinds.items():
            check_choice(f"Column {name!r}, kind", kind, ("number", "category"))

    def of(self, words: Mapping[str, Collection[str]], name: str) -> set[str]:
        """Return the words for a column, as `relax` spells them."""
        return {relax(each) for key in (name, "") for each in words.get(key, ())}


@dataclass(frozen=True, kw_only=True)
class Finding:
    """Something about a column that is said, or asked."""

    column: str
    kind: str
    found: str
    """What was found, as the end of a sentence that begins with the column."""
    done: str
    """What becomes of it, and the option that changes this."""
    meaning: str = ""
    """What it may be, as a condition; empty if there is no question to a party."""
    asks: bool = False
    """Whether there are two readings, and the owner has to say which."""

    @property
    def sentence(self) -> str:
        """In one line."""
        return f"Column {self.column!r} {self.found}: {self.done}."


@dataclass(frozen=True, kw_only=True, eq=False)
class Diagnosis:
    """What a column holds."""

    kind: str
    """"number", "category", "" if nothing can be made of it, or "left out"."""
    numbers: FloatArray = field(default_factory=lambda: np.empty(0), repr=False)
    """All entries, missing ones as NaN; of a category none."""
    levels: Counter[str] = field(default_factory=Counter, repr=False)
    """How often each category occurs, spelt as it mostly is."""
    missing_words: tuple[str, ...] = ()
    n_rows: int = 0
    n_missing: int = 0
    findings: tuple[Finding, ...] = ()


def _counted(counts: Mapping[str, int], texts: Iterable[str]) -> str:
    return join_names([f"{text!r} ({counts[text]} times)" for text in sorted(texts, key=lambda text: -counts[text])])


def diagnose(
    name: str, entries: Any, answers: Answers | None = None, *, limits: tuple[float, float] | None = None
) -> Diagnosis:
    """Tell what a column, a Series, holds; the words quote entries, and so are for the owner of the table.

    `limits` are a range that people gave: numbers inside are no codes for missing entries.
    """
    answers = answers or Answers()
    given = answers.kinds.get(name)
    if _UNNAMED.fullmatch(name) and given is None:
        return _left_out(name, "unnamed", "has no name of its own", "it is an index as a rule, and left out")
    kind = getattr(entries.dtype, "kind", "O")
    if kind in "Mmc":
        what = {"M": "dates", "m": "durations", "c": "complex numbers"}[kind]
        return Diagnosis(kind="", findings=(_dates(name, what),))
    if kind in "biuf":
        numbers = as_numbers(entries)
        counts = Counter({label_text(float(each)): int(n) for each, n in _uniques(numbers)})
    else:
        texts = [_text(entry) for entry in entries.tolist()]
        counts = Counter(text for text in texts if text is not None)
        numbers = np.empty(0)
    n_rows, n_entries = len(entries), sum(counts.values())
    if not n_entries and given is None:
        return _left_out(name, "empty", "is empty", "it is left out")
    keep, missing = answers.of(answers.keep, name), answers.of(answers.missing, name)
    words = {each for each in counts if relax(each) in missing}
    is_text = kind not in "biuf"
    if is_text:
        words |= {each for each in counts if is_missing_word(each) and relax(each) not in keep}
    rest = counts.keys() - words
    numeric = _read(rest) if is_text else dict.fromkeys(rest, math.nan)
    others, codes = rest - numeric.keys(), {each for each in rest if _CODE.fullmatch(each)}
    n_numbers, n_rest = (sum(counts[each] for each in part) for part in (numeric, rest))
    findings: list[Finding] = []
    asked = _strange(name, counts, others, n_numbers / max(1, n_rest), given)
    # Numbers that somebody has saved as text are meant as text.
    is_meant = is_text and not (words or others) and all(isinstance(each, str) for each in entries.dropna())
    if given == "category" or (given is None and (codes or is_meant)) or (asked is None and others):
        if codes and not others:
            done = f"read as text, never as a number (--as {name}=number)"
            findings.append(Finding(column=name, kind="codes", found="has codes with leading zeros", done=done))
        return _category(name, counts, words, missing, n_rows, given, keep, findings)
    if asked is not None:
        return Diagnosis(kind="", findings=(asked,))
    if is_text:
        numbers = np.array([math.nan if text is None else numeric.get(text, math.nan) for text in texts])
    else:
        numbers = np.where(np.isin(numbers, [float(each) for each in words]), math.nan, numbers)
    if own := {each for each in words if relax(each) not in missing}:
        done = f"read as missing (--as {name}=category takes them as categories)"
        found = f"has words among its numbers: {_counted(counts, own)}"
        findings.append(Finding(column=name, kind="words", found=found, done=done))
    codes = {each for each in _sentinels(numbers, limits) if relax(each) not in keep}
    if codes:
        n_codes = sum(counts[each] for each in codes)
        findings.append(
            Finding(
                column=name,
                kind="sentinels",
                found=f"has {_counted(counts, codes)} far outside the rest",
                done=f"read as missing (--keep {name}={min(codes)} takes it as a number)",
                meaning=f"{n_codes} of {n_rows} entries that lie far outside all others stand for missing ones",
            )
        )
        numbers = np.where(np.isin(numbers, [float(each) for each in codes]), math.nan, numbers)
    elif limits is None and (far := _far_off(numbers)) is not None:
        word = label_text(far)
        done = f"kept, so the range reaches it; a sum, or a decimal comma? --missing {name}={word} takes it as missing"
        findings.append(Finding(column=name, kind="far off", found=f"has {word} far outside the rest", done=done))
    if given is None and (like := _like_identifiers(name, numbers)) is not None:
        found, meaning = like
        if _are_record_numbers(name, numbers):
            return _left_out(name, "records", found, "it is a record number, and left out", meaning)
        done = f"--without {name} leaves it out, --as {name}=number takes it as a number"
        # Whole numbers that all differ without being spread as running numbers are may well be amounts.
        asks = found != _ANOTHER
        if not asks:
            done = f"taken as a number; if {meaning}, --without {name} leaves it out"
        findings.append(Finding(column=name, kind="records", found=found, done=done, meaning=meaning, asks=asks))
    present = numbers[np.isfinite(numbers)]
    if given is None and limits is None and n_rows >= _FEWEST_ROWS and np.unique(present).size == 1:
        return _constant(name)
    return Diagnosis(
        kind="number",
        numbers=numbers,
        missing_words=tuple(sorted(words | codes)),
        n_rows=n_rows,
        n_missing=int(np.isnan(numbers).sum()),
        findings=tuple(findings),
    )


def _read(texts: Collection[str]) -> dict[str, float]:
    """Return the texts that are numbers in the one reading that the reader of tables finds for them all."""
    found = sorted(texts)
    reading = readings({"": shapes_of(np.array(found, dtype=object))}, usual=None)[""] if found else POINT
    if reading == UNDECIDED:  # Those with a mark are then no numbers.
        found, reading = [each for each in found if not _MARKED.fullmatch(each.strip())], POINT
    shapes = {each: shapes_of(np.array([each], dtype=object)) for each in found}
    numeric = [each for each in found if Numbers(shapes[each], reading, is_declared=False).is_number]
    column = Numbers(set().union(*(shapes[each] for each in numeric)), reading, is_declared=False)
    values = column.converted(np.array(numeric, dtype=object)).astype(float)
    # Codes are numbers only where somebody says so.
    return dict(zip(numeric, values, strict=True)) | {each: float(each) for each in texts if _CODE.fullmatch(each)}


def _uniques(numbers: FloatArray) -> Iterable[tuple[float, int]]:
    values, counts = np.unique(numbers[~np.isnan(numbers)], return_counts=True)
    return zip(values.tolist(), counts.tolist(), strict=True)


def _text(entry: object) -> str | None:
    if entry is None or type(entry).__name__ in ("NAType", "NaTType") or entry != entry:
        return None
    text = label_text(entry)
    return text if text.strip() else None


def _left_out(name: str, kind: str, found: str, done: str, meaning: str = "") -> Diagnosis:
    done = f"{done} (--as {name or 'NAME'}=number or category takes it)"
    finding = Finding(column=name, kind=kind, found=found, done=done, meaning=meaning)
    return Diagnosis(kind="left out", findings=(finding,))


def _constant(name: str) -> Diagnosis:
    return _left_out(name, "constant", "has one entry in all rows", "it tells no rows apart, and is left out")


def _dates(name: str, what: str) -> Finding:
    done = f"make it a number, such as an age in years, or leave it out with --without {name}"
    return Finding(column=name, kind="dates", found=f"holds {what}", done=done, asks=True)


def _strange(name: str, counts: Counter[str], others: set[str], part: float, given: str | None) -> Finding | None:
    """Return a question on entries that are no numbers, if nearly all others are, or if they are dates."""
    if given == "category" or not others:
        return None
    n_others = sum(counts[each] for each in others)
    if sum(counts[each] for each in others if _DATE.fullmatch(each.strip())) >= _MOSTLY * n_others and part < _MOSTLY:
        return _dates(name, "dates")
    is_marked = part > 0 and all(_MARKED.fullmatch(each.strip()) for each in others)
    if part < _MOSTLY and given is None and not is_marked:
        return None
    found = f"has entries that are no numbers: {_counted(counts, others)}"
    done = f"--missing '{name}=WORD' takes a word as missing, --as {name}=category all as categories"
    if is_marked:
        found = f"has numbers whose mark may separate decimals or thousands: {_counted(counts, others)}"
        done = f"write them without, or leave it out with --without {name}"
    return Finding(column=name, kind="no numbers", found=found, done=done, asks=True)


def _sentinels(numbers: FloatArray, limits: tuple[float, float] | None) -> set[str]:
    """Return numbers such as 999 and -9 that lie farther outside of the rest than this is wide.

    Negative ones among numbers that are none are codes at any distance.
    """
    counts = {value: n for value, n in _uniques(numbers) if math.isfinite(value)}
    rest = [value for value in counts if not _SENTINEL.fullmatch(label_text(value))]
    n_all = sum(counts.values())
    if n_all < _FEWEST_ROWS or len(rest) < 2:
        return set()
    low, high = min(rest), max(rest)

    def is_far(value: float) -> bool:
        if limits is not None and limits[0] <= value <= limits[1]:
            return False
        return (value < 0 <= low) or max(low - value, value - high) > high - low

    # Those nearest to the rest first, as 7, 8 and 9 may be its end.
    for value in sorted(counts.keys() - set(rest), key=lambda value: max(low - value, value - high)):
        if not is_far(value):
            low, high = min(low, value), max(high, value)
    codes = {value for value in counts if not low <= value <= high}
    return set() if sum(counts[each] for each in codes) > _MOST_SENTINELS * n_all else set(map(label_text, codes))


def _far_off(numbers: FloatArray) -> float | None:
    """Return a number in few rows that lies many times as far from all others as these are apart."""
    values, counts = np.unique(numbers[np.isfinite(numbers)], return_counts=True)
    if counts.sum() < _FEWEST_ROWS or values.size < 3:
        return None
    for place, rest in ((-1, values[:-1]), (0, values[1:])):
        gap = min(abs(values[place] - rest[0]), abs(values[place] - rest[-1]))
        if gap > _FAR_OFF * (rest[-1] - rest[0]) and counts[place] <= _RARE * counts.sum():
            return float(values[place])
    return None


def _like_identifiers(name: str, numbers: FloatArray) -> tuple[str, str] | None:
    """Return what a column of whole numbers has of record numbers or days, and the condition that it is some."""
    present = numbers[np.isfinite(numbers)]
    if present.size < _FEWEST_ROWS or (present % 1 != 0).any():
        return None
    if all(_DAYS.fullmatch(label_text(float(each))) for each in np.unique(present)):
        return "holds whole numbers that are days as yyyymmdd", "these are dates"
    values, counts = np.unique(present, return_counts=True)
    is_record = "it is a record number"
    if values.size == present.size and present.size == numbers.size:
        return _ANOTHER, is_record
    steps, is_many = np.diff(present), values.size >= max(_FEWEST_ROWS, present.size / 2)
    if is_many and ((steps >= 0).all() or (steps <= 0).all()):
        return "has whole numbers in order", is_record
    is_dense = values.size >= _FEWEST_ROWS and counts.min() == counts.max() and values.size * 5 >= present.size
    if is_dense or (_IDENTIFIER.search(name) and is_many):
        return "has whole numbers as records have", is_record
    return None


def _are_record_numbers(name: str, numbers: FloatArray) -> bool:
    """Return whether different whole numbers are surely record numbers: by name, or as running numbers are spread.

    Rows drawn from a table have running numbers that are spread evenly, which quantities seldom are.
    """
    if _SURE_IDENTIFIER.search(name):
        return True
    values = np.unique(numbers)
    if values.size < numbers.size:
        return False
    evenly = kstest(values, uniform(loc=values[0], scale=values[-1] - values[0]).cdf).pvalue
    # Running numbers of a sample skip others, but not many times as many as it has rows.
    return bool(evenly > _LEAST_EVEN and values[-1] - values[0] < _MOST_SKIPPED * values.size)


def _is_free_text(levels: Counter[str]) -> bool:
    """Return whether most entries of a column stand in one row only, as names, identifiers and remarks do."""
    n_entries = sum(levels.values())
    n_once = sum(n == 1 for n in levels.values())
    is_other_everywhere = len(levels) == n_entries and n_entries > 2
    return is_other_everywhere or (len(levels) > MOST_CATEGORIES and n_once > n_entries / 2)


def _category(
    name: str,
    counts: Counter[str],
    words: set[str],
    missing: set[str],
    n_rows: int,
    given: str | None,
    keep: set[str],
    findings: list[Finding],
) -> Diagnosis:
    own, n_entries = {each for each in words if relax(each) not in missing}, sum(counts.values())
    often = {each for each in own if counts[each] > MOST_OUTSIDE * n_entries} if counts.keys() - words else own
    for each in sorted(often):
        found, done = f"has {_counted(counts, [each])}", f"taken as a category (--missing '{name}={each}' as missing)"
        findings.append(Finding(column=name, kind="words", found=found, done=done))
    if seldom := own - often:
        done = f"read as missing (--keep '{name}={min(seldom)}' takes it as a category)"
        findings.append(Finding(column=name, kind="words", found=f"has {_counted(counts, seldom)}", done=done))
    words = words - often
    levels: Counter[str] = Counter()
    spellings: dict[str, list[str]] = {}
    for each in counts.keys() - words:
        spellings.setdefault(each if relax(each) in keep else relax(each), []).append(each)
    merged = []
    for alike in spellings.values():
        usual = max(alike, key=lambda text: (counts[text], text == text.strip(), text))
        plain = unicodedata.normalize("NFC", usual.strip())
        levels[plain] += sum(counts[each] for each in alike)
        merged += [f"{other!r} as {plain!r}" for other in sorted(alike) if other != usual]
    if merged:
        done = f"taken as one category each, at the parties as well (--keep '{name}=SPELLING' keeps one apart)"
        found = f"has spellings that differ by capital letters, blanks or Unicode alone, {join_names(merged)}"
        findings.append(Finding(column=name, kind="spellings", found=found, done=done))
    if given is None and len(levels) == 1 and n_rows >= _FEWEST_ROWS:
        return _constant(name)
    if given is None and _is_free_text(levels):
        found = f"has {len(levels)} different texts in {n_rows} rows"
        return _left_out(name, "free text", found, "it is an identifier or free text, and left out")
    n_levels = sum(levels.values())
    if len(levels) > MOST_CATEGORIES:
        done = f"the {MOST_CATEGORIES} most frequent are kept, and all others count as other"
        findings.append(Finding(column=name, kind="many", found=f"has {len(levels)} categories", done=done))
        levels = Counter(dict(sorted(levels.items(), key=lambda each: (-each[1], each[0]))[:MOST_CATEGORIES]))
    rare = [each for each in levels if levels[each] < min(FEWEST_OF_LEVEL, MOST_OUTSIDE * n_levels)]
    if rare:
        done = "kept; if you remove it from the project file, it counts as other"
        found = f"has categories in fewer than {FEWEST_OF_LEVEL} rows, {_counted(levels, rare)}"
        findings.append(Finding(column=name, kind="rare", found=found, done=done))
    return Diagnosis(
        kind="category",
        levels=levels,
        missing_words=tuple(sorted(words)),
        n_rows=n_rows,
        n_missing=n_rows - n_levels,
        findings=tuple(findings),
    )


def target_entries(name: str, entries: Any, answers: Answers, tell: Callable[[Finding], None] | None) -> Any:
    """Return the entries of a target, missing ones as such, and tell what was found; refuse what has two readings.

    A target has no words of its own for missing entries: those are missing that are so to the reader of tables.
    """
    keep, missing = answers.of(answers.keep, name), answers.of(answers.missing, name)
    texts = [_text(entry) for entry in entries.tolist()]
    counts = Counter(text for text in texts if text is not None)
    known = {each for each in counts if each.strip() in MISSING_WORDS and relax(each) not in keep}
    if strange := join_names(sorted(each for each in counts.keys() - known if relax(each) in missing)):
        raise invalid(
            f"The target {name!r}", f"leave the entries empty that are {strange}: only tables' columns have words."
        )
    asked = []
    own = {each for each in counts if is_missing_word(each) and relax(each) not in keep | missing}
    if own:
        is_known = own <= known
        way = f"--missing '{name}={min(own)}' takes" if is_known else "an empty entry instead of it takes"
        done = f"{way} these rows as without a target, --keep '{name}={min(own)}' as a class"
        asked.append(f"it has {_counted(counts, own)}: {done}.")
    alike: dict[str, list[str]] = {}
    for each in counts.keys() - known - own:
        alike.setdefault(relax(each), []).append(each)
    if several := [each for key, each in alike.items() if len(each) > 1 and key not in keep]:
        done = f"write them alike, or give --keep '{name}={several[0][0]}'"
        asked.append(
            f"it has classes that differ by capital letters, blanks or Unicode alone, {join_names(several[0])}: {done}."
        )
    if tell is not None:
        refuse_if(asked, f"The target {name!r}", " ".join(asked))
        n_without = len(texts) - sum(counts[each] for each in counts.keys() - known)
        if 0 < n_without < len(texts):
            found = f"has no entry in {n_without} of {len(texts)} rows"
            done = "all rows make the anchor, and those with an entry are labelled"
            tell(Finding(column=name, kind="labels", found=found, done=done))
    return entries.where([text not in known for text in texts], None) if known else entries


def rare_classes(name: str, entries: Any) -> Finding | None:
    """Return a finding if few rows have a class."""
    counts = Counter(entries.dropna().map(label_text))
    few = [each for each in counts if counts[each] < max(FEWEST_OF_LEVEL, _RARE * sum(counts.values()))]
    done = 'if it is as rare at the parties, count first (statistics = ["counts"] in [sharing]), and merge'
    found = f"has few rows of class {_counted(counts, few)}"
    return Finding(column=name, kind="rare", found=found, done=done) if few else None


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
    found = []
    for name in names:
        try:
            as_numbers(table[name])
        except NotNumericError:
            continue
        for each in diagnose(name, table[name]).findings:
            if each.kind == "records":
                found.append(f"Column {name!r} {each.found}. If {each.meaning}, {advice}.")
            elif each.kind == "sentinels":
                found.append(f"Column {name!r}: if {each.meaning}, leave these empty, or name them in missing_words.")
    return found
