"""A table of estimates, its cells, and its formats: Markdown, CSV and HTML."""

import csv
import io
import math
import re
import tomllib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from pathlib import Path

from datacollab._by_name import OBFUSCATORS as ENTRIES

from ..claims import (
    Estimate,
    Interval,
    PublishedValue,
    estimate,
    find_published,
    in_order,
    published_values,
    standardise_difference,
)
from ..paper import BASELINES, METHODS, Condition, Row

NOTHING = "–"
SHARE_DECIMALS = 3


@dataclass(frozen=True)
class TableCell:
    """A number or a word, and the published one in its place.

    Attributes
    ----------
    text : str
        Stands in the cell if there is no estimate.
    published_text : str
        A published word, which stands in the cell likewise.
    best : bool
        Whether the cell is set in bold.
    """

    estimate: Estimate | None = None
    text: str = ""
    published: PublishedValue | None = None
    published_text: str = ""
    best: bool = False

    @property
    def interval(self) -> Interval | None:
        """Interval of the estimate, where rows gave one."""
        if self.estimate is None:
            return None
        return self.estimate.interval

    @property
    def difference(self) -> float:
        """Measured less published in pooled standard errors; NaN where that cannot be had."""
        if self.interval is None or self.published is None:
            return math.nan
        return standardise_difference(self.interval, self.published)


@dataclass(frozen=True)
class Line:
    """One row of a table: its headings, its cells, and how many decimals they have (None: three digits)."""

    headings: tuple[str, ...]
    cells: tuple[TableCell, ...]
    decimals: int | None = SHARE_DECIMALS


@dataclass(frozen=True)
class ReportTable:
    """The table of one file.

    Attributes
    ----------
    source : str
        Label of the table or figure in the paper, or "".
    headings : tuple of str
        Headings of the columns that name the rows.
    note : str
        How to read it.
    """

    name: str
    experiment: str
    caption: str
    source: str
    headings: tuple[str, ...]
    columns: tuple[str, ...]
    lines: tuple[Line, ...] = field(repr=False)
    note: str = ""


@dataclass(frozen=True)
class Entry:
    """A piece of text in the grid of a table."""

    text: str
    bold: bool = False
    muted: bool = False


def mark_best(line: Line, candidates: list[bool], *, lower: bool = False) -> Line:
    """Mark the cells whose printed mean is the best among the candidates, ties included."""
    printed = {
        position: number(cell.interval.mean, line.decimals)
        for position, (cell, candidate) in enumerate(zip(line.cells, candidates, strict=True))
        if candidate and cell.interval is not None
    }
    # One number alone is no best.
    if len(printed) < 2:
        return line
    # Printed numbers are compared, so that ties look like ties.
    best = (min if lower else max)(printed.values(), key=float)
    cells = (replace(cell, best=printed.get(position) == best) for position, cell in enumerate(line.cells))
    return replace(line, cells=tuple(cells))


def number(value: float, decimals: int | None) -> str:
    """A number with so many decimals, or with three digits."""
    if decimals is not None:
        # Rounded first, since a negative number may round to a zero that should have no sign.
        return f"{round(value, decimals) + 0.0:.{decimals}f}"
    if abs(value) >= 100:
        return f"{value:.0f}"
    return f"{value:.3g}"


def with_half_width(mean: float, half_width: float | None, decimals: int | None) -> str:
    """Mean ± half width, or the mean alone where there is no interval.

    Numbers of three decimals are shares, of 0 to 1; an interval that is wider than that is told by its ends.
    """
    if half_width is None or math.isnan(half_width):
        return number(mean, decimals)
    if decimals == SHARE_DECIMALS and half_width > 0.5 and 0 <= mean <= 1:
        low = max(mean - half_width, 0.0)
        high = min(mean + half_width, 1.0)
        return f"{number(mean, decimals)} ({low:.3g} to {high:.3g})"
    spread = f"{half_width:.2g}" if decimals is None else number(half_width, decimals)
    return f"{number(mean, decimals)} ± {spread}"


def layout(table: ReportTable) -> tuple[list[str], list[list[Entry]]]:
    """Set a table as a grid: a head, and rows of entries of the same length.

    Where anything was published, lines are followed by the published values, and by the differences if those have
    intervals.  The number of seeds, and of failed rows if there are any, stand at the end.
    """
    numeric = any(cell.estimate is not None for line in table.lines for cell in line.cells)
    compared = any(_is_compared(line) for line in table.lines)
    failures = any(_n_failed(line) for line in table.lines)
    # A column that would be empty in all lines is left out.
    head = [*table.headings, *[""][:compared], *table.columns, *["seeds"][:numeric], *["failed"][:failures]]
    body = []
    for line in table.lines:
        measured = [Entry(heading) for heading in line.headings]
        measured += [Entry("measured")][:compared]
        measured += [Entry(_format_estimate(cell, line.decimals), cell.best) for cell in line.cells]
        measured += [Entry(_seeds(line))][:numeric]
        measured += [Entry(str(_n_failed(line) or ""))][:failures]
        body.append(measured)
        if _is_compared(line):
            for label, texts in (
                ("published", [_format_published(cell, line.decimals) for cell in line.cells]),
                ("difference", [_difference(cell) for cell in line.cells]),
            ):
                # A line of published words has no differences.
                if not any(texts):
                    continue
                entries = [Entry("", muted=True)] * len(line.headings) + [Entry(label, muted=True)]
                entries += [Entry(text, muted=True) for text in texts]
                body.append(entries + [Entry("", muted=True)] * (len(head) - len(entries)))
    return head, body


def _is_compared(line: Line) -> bool:
    return any(cell.published is not None or cell.published_text for cell in line.cells)


def _n_failed(line: Line) -> int:
    return sum(cell.estimate.n_failed for cell in line.cells if cell.estimate is not None)


def _seeds(line: Line) -> str:
    counts = [cell.interval.n for cell in line.cells if cell.interval is not None]
    if not counts:
        return "0"
    if min(counts) == max(counts):
        return str(counts[0])
    return f"{min(counts)} to {max(counts)}"


def _format_estimate(cell: TableCell, decimals: int | None) -> str:
    if cell.estimate is None:
        return cell.text or NOTHING
    if cell.interval is None:
        if cell.estimate.n_failed:
            return "failed"
        return NOTHING
    return with_half_width(cell.interval.mean, cell.interval.half_width, decimals)


def _format_published(cell: TableCell, decimals: int | None) -> str:
    if cell.published is None:
        return cell.published_text
    return with_half_width(cell.published.mean, cell.published.half_width, decimals)


def _difference(cell: TableCell) -> str:
    if math.isnan(cell.difference):
        return ""
    return f"{cell.difference:+.1f} SE".replace("-", "−")


def to_markdown(table: ReportTable) -> str:
    """Set a table in Markdown, with its caption above and its note below."""
    head, body = layout(table)
    names = len(table.headings)
    lines = [f"**{markdown_text(table.caption + _source(table))}**", ""]
    lines.append(pipes(markdown_text(name) for name in head))
    lines.append(pipes(["---"] * names + ["---:"] * (len(head) - names)))
    for entries in body:
        lines.append(pipes(f"**{markdown_text(entry.text)}**" if entry.bold else markdown_text(entry.text)
                            for entry in entries))  # fmt: skip
    if table.note:
        lines += ["", markdown_text(table.note)]
    return "\n".join(lines) + "\n"


def to_csv(table: ReportTable) -> str:
    """Give a table as data: one line per cell, numbers with all their digits."""
    records = []
    for line in table.lines:
        for column, cell in zip(table.columns, line.cells, strict=True):
            interval = cell.interval
            published = cell.published
            numbers: list[float | None] = [None, None]
            counts: list[int | str] = ["", ""]
            wanted: list[float | None] = [None, None]
            if cell.estimate is not None:
                counts = [0, cell.estimate.n_failed]
            if interval is not None:
                numbers = [interval.mean, interval.half_width]
                counts[0] = interval.n
            if published is not None:
                wanted = [published.mean, published.half_width]
            record = [*line.headings, column, *map(_exact, numbers), *counts, cell.text]
            records.append([*record, *map(_exact, wanted), cell.published_text, _exact(cell.difference)])
    head = [*table.headings, "column", "mean", "half_width", "n_seeds", "n_failed", "text"]
    return write_csv([*head, "published_mean", "published_half_width", "published_text", "difference"], records)


def to_html(table: ReportTable) -> str:
    """Set a table as an element of a page."""
    head, body = layout(table)
    names = len(table.headings)
    rows = "".join(
        f"<tr{' class=muted' if entries[-1].muted else ''}>"
        + "".join(_html_cell(entry, position < names) for position, entry in enumerate(entries))
        + "</tr>"
        for entries in body
    )
    heads = "".join(f"<th>{escape(name)}</th>" for name in head)
    note = ""
    if table.note:
        note = f'<p class="note">{escape(table.note)}</p>'
    return (
        f'<div class="wide"><table id="{escape(table.name)}"><caption>{escape(table.caption + _source(table))}'
        f"</caption><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>{note}"
    )


def write_csv(head: Iterable[str], records: Iterable[Iterable[object]]) -> str:
    """Set records as CSV, with the same line ends everywhere."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(head)
    writer.writerows(records)
    return buffer.getvalue()


def _source(table: ReportTable) -> str:
    if table.source:
        return f" ({table.source} of the paper)"
    return ""


def _exact(value: float | None) -> str:
    if value is None or math.isnan(value):
        return ""
    return repr(float(value))


def markdown_text(text: str) -> str:
    """A text that Markdown leaves as it is."""
    # Every character that Markdown gives a meaning.
    escaped = re.sub(r"([\\`*_\[\]|#~$])", r"\\\1", text)
    return " ".join(escaped.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").split())


def pipes(texts: Iterable[str]) -> str:
    """A row of a Markdown table."""
    return f"| {' | '.join(texts)} |"


def _html_cell(entry: Entry, is_heading: bool) -> str:
    tag = "td"
    if is_heading:
        tag = "th"
    # Where a narrow page must break a cell, an interval keeps its sign.
    text = escape(entry.text).replace("± ", "±\u00a0")
    if entry.bold:
        text = f"<b>{text}</b>"
    return f"<{tag}>{text}</{tag}>"


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
