"""The entries of a column of targets: which are missing, and classes that are rare or have two readings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

from .._entries import invalid, join_names, refuse_if
from .._frames import label_text, relax
from .._typing import FloatArray
from ._diagnosis import FEWEST_OF_LEVEL, SENTINEL, Answers, ColumnFinding, count_words, entry_text
from ._values import MISSING_WORDS, is_missing_word

_MOST_CLASSES = 10
"""Different whole numbers that are taken as classes, such as digits and grades; more are years, visits and the like."""
_FEWEST_AMOUNTS = 5
"""Different whole numbers below which they are classes, whatever their gaps."""
_RARE = 0.02
"""Part of the public rows below which a class may have few rows at the parties."""


def target_entries(
    name: str, entries: Any, answers: Answers, tell: Callable[[ColumnFinding], None] | None = None
) -> Any:
    """Return the entries of a target, missing ones as such.

    With `tell`, a finding counts the rows that have none, and entries with two readings are refused.  A target has no
    words of its own for missing entries: those are missing that are so to the reader of tables.
    """
    keep = answers.words("keep", name)
    missing = answers.words("missing", name)
    texts = [entry_text(entry) for entry in entries.tolist()]
    counts = Counter(text for text in texts if text is not None)
    known = {each for each in counts if each.strip() in MISSING_WORDS and relax(each) not in keep}
    # A word that only the owner knows would stay a class at the parties.
    strange = join_names(sorted(each for each in counts.keys() - known if relax(each) in missing))
    if strange:
        raise invalid(
            f"The target {name!r}", f"leave the entries empty that are {strange}: only tables' columns have words."
        )
    if tell is not None:
        # Words that somebody has named have one reading.
        words = {each for each in counts if is_missing_word(each) and relax(each) not in keep | missing}
        questions = [
            *_ask_words(name, counts, words, known),
            *_ask_spellings(name, counts.keys() - known - words, keep),
        ]
        refuse_if(questions, f"The target {name!r}", " ".join(questions))
        # Rows without a target still show how the other columns spread.
        n_without = len(texts) - sum(counts[each] for each in counts.keys() - known)
        if 0 < n_without < len(texts):
            found = f"has no entry in {n_without} of {len(texts)} rows"
            done = "all rows make the anchor, and those with an entry are labelled"
            tell(ColumnFinding(column=name, kind="labels", found=found, done=done))
    if not known:
        return entries
    return entries.where([text not in known for text in texts], None)


def _ask_words(name: str, counts: Counter[str], words: set[str], known: set[str]) -> list[str]:
    """Return a question if words may mean a class or none; the reader of tables takes the `known` ones as none."""
    if not words:
        return []
    way = "an empty entry instead of it takes"
    if words <= known:
        way = f"--missing '{name}={min(words)}' takes"
    done = f"{way} these rows as without a target, --keep '{name}={min(words)}' as a class"
    return [f"it has {count_words(counts, words)}: {done}."]


def _ask_spellings(name: str, texts: set[str], keep: set[str]) -> list[str]:
    """Return a question if spellings of one class differ."""
    alike: dict[str, list[str]] = {}
    for each in texts:
        alike.setdefault(relax(each), []).append(each)
    several = [each for spelling, each in alike.items() if len(each) > 1 and spelling not in keep]
    if not several:
        return []
    done = f"write them alike, or give --keep '{name}={several[0][0]}'"
    differ = "classes that differ by capital letters, blanks or Unicode alone"
    return [f"it has {differ}, {join_names(several[0])}: {done}."]


def are_amounts(numbers: FloatArray) -> bool:
    """Return whether whole numbers of a target are amounts rather than codes of classes, by their gaps.

    More than ten different ones are.  Fewer are if they thin out from 0 or 1 on, as counts do: 0, 1, 2, 4, 6, 34.
    """
    values, counts = np.unique(numbers, return_counts=True)
    if values.size > _MOST_CLASSES:
        return True
    # 9, 88 and 99 after 1, 2 and 3 mean no answer.
    is_usual = np.array([SENTINEL.fullmatch(label_text(each)) is None for each in values])
    values = values[is_usual]
    counts = counts[is_usual]
    # Counts begin at 0 or 1; codes as 101 and 201 do not.  Of fewer numbers anything may be meant.
    if values.size < _FEWEST_AMOUNTS or values[0] not in (0, 1):
        return False
    steps = np.diff(values)
    # Tens and the like are codes as well as ones are.
    steps = steps / np.gcd.reduce(steps.astype(np.int64))
    gaps = np.flatnonzero(steps > 1)
    # One gap may be between two sorts of codes, and a sum of few points may lack some.
    if gaps.size < 2 or values.size > (steps.sum() + 1) / 2:
        return False
    # Most rows of a count come before its first gap, and those of codes lie anywhere.
    first = gaps[0] + 1
    return bool(counts[first:].sum() <= counts[:first].sum())


def class_text(entry: object) -> str:
    """Return an entry as the text of a class; truth values by their words, so that predictions have these, too."""
    # Readers of tables have taken true and TRUE for True.
    return str(entry) if isinstance(entry, bool | np.bool_) else label_text(entry)


def rare_classes(name: str, entries: Any) -> ColumnFinding | None:
    """Return a finding if few rows have a class."""
    counts = Counter(map(class_text, entries.dropna()))
    few = [each for each in counts if counts[each] < max(FEWEST_OF_LEVEL, _RARE * sum(counts.values()))]
    if not few:
        return None
    found = f"has few rows of class {count_words(counts, few)}"
    done = 'if it is as rare at the parties, count first (statistics = ["counts"] in [sharing]), and merge'
    return ColumnFinding(column=name, kind="rare", found=found, done=done)
