"""Cells and lines that several tables share."""

import math
import re
import tomllib
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from datacollab._by_name import OBFUSCATORS as ENTRIES

from ..claims import PublishedValue, estimate, find_published, in_order, published_values
from ..paper import BASELINES, METHODS, Condition, Row
from ._table import Line, ReportTable, TableCell, mark_best

# How tables and figures call obfuscators.
OBFUSCATORS = {name: entry.title for name, entry in ENTRIES.items()}

# Texts of the page, and notes of tables.
TEXTS = tomllib.loads(Path(__file__).with_name("page.toml").read_text(encoding="utf-8"))

INTERVALS = "Mean ± half width of the 95 % interval (Student's t over seeds)."
_BOLD = "Bold: the best mean of a row among integration methods, ties included."
_PUBLISHED = "The published values have the paper's hyperparameters."
_DIFFERENCE = "Difference: measured less published, in pooled standard errors (SE)."
_SIZES = ("n_parties", "n_per_party", "n_anchors", "n_components", "n_neighbors")


def slug(text: str) -> str:
    """A text as part of a file name."""
    return re.sub(r"[^\w.+]+", "-", text, flags=re.ASCII).strip("-.") or "unnamed"


def by_name(rows: Iterable[Row]) -> dict[str, list[Row]]:
    """Rows of each method or attack, in the order of the paper."""
    rows = list(rows)
    return {name: [row for row in rows if row.name == name] for name in in_order(row.name for row in rows)}


def find_value(source: str, condition: Condition, name: str) -> PublishedValue | None:
    """Return the paper's printed value for a method under a condition, if there is one."""
    axes = {axis: getattr(condition, axis) for axis in ("dataset", "obfuscator", "n_components", "n_parties")}
    return find_published(source, name=name, **axes)


def cell(rows: Sequence[Row], measure: str, source: str = "") -> TableCell:
    """Estimate of one method or attack under one condition, beside the paper's printed value."""
    if not rows:
        return TableCell()
    return TableCell(estimate(rows, measure), published=find_value(source, rows[0].condition, rows[0].name))


def methods_line(
    headings: tuple[str, ...], names: Sequence[str], rows: Iterable[Row], measure: str, source: str
) -> Line:
    """All methods under one condition, the best integration methods marked."""
    methods = by_name(rows)
    cells = tuple(cell(methods.get(name, []), measure, source) for name in names)
    errors = measure == "rmse"
    line = Line(headings, cells, decimals=2 if errors else 3)
    return mark_best(line, [name not in BASELINES for name in names], lower=errors)


def methods_table(
    name: str, experiment: str, caption: str, source: str, headings: tuple[str, ...], columns: Sequence[str],
    lines: Sequence[Line], note: str = "",
) -> ReportTable:  # fmt: skip
    """Table of `methods_line` lines, with the note that explains them."""
    # A method of one's own has no hyperparameters of the paper's.
    own = [column for column in columns if column not in (*METHODS, *BASELINES)]
    about_own = ""
    if own:
        about_own = f"Not of the paper, with the same hyperparameters under every preset: {', '.join(own)}."
    note = join_sentences(INTERVALS, _BOLD, comparison_note(lines), note, about_own)
    return ReportTable(slug(name), experiment, caption, source, headings, tuple(columns), tuple(lines), note)


def comparison_note(lines: Iterable[Line]) -> str:
    """Explain published values and differences, where there are any."""
    cells = [cell for line in lines for cell in line.cells]
    published = any(cell.published is not None for cell in cells)
    different = any(not math.isnan(cell.difference) for cell in cells)
    return join_sentences(_PUBLISHED * published, _DIFFERENCE * different)


def join_sentences(*sentences: str) -> str:
    """Those sentences that are not empty."""
    return " ".join(filter(None, sentences))


def size_note(rows: Iterable[Row], varied: Collection[str] = ()) -> str:
    """Where sizes are not those of the published values, say so for each data set."""
    # The defaults of a condition are the paper's sizes.
    paper = Condition()
    published = {value.dataset for value in published_values()}
    found: dict[str, dict[str, set[int]]] = {}
    for row in rows:
        for size in _SIZES:
            value = getattr(row.condition, size)
            # Only data sets of the paper have published sizes to compare with.
            if row.condition.dataset in published and size not in varied and value != getattr(paper, size):
                found.setdefault(row.condition.dataset, {}).setdefault(size, set()).add(value)
    notes = []
    for dataset, sizes in sorted(found.items()):
        texts = (f"{size} {' or '.join(map(str, sorted(values)))} (paper: {getattr(paper, size)})"
                 for size, values in sizes.items())  # fmt: skip
        notes.append(f"Sizes on {dataset} are not the paper's, so published values cannot be compared with: "
                     f"{', '.join(texts)}.")  # fmt: skip
    return " ".join(notes)


def headings_of(dataset: str, obfuscator: str, *settings: int) -> tuple[str, ...]:
    """Headings of a line that belongs to a data set and an obfuscator."""
    return (dataset, OBFUSCATORS.get(obfuscator, obfuscator), *map(str, settings))
