"""A table of estimates, before it is set in any format."""

import math
from dataclasses import dataclass, field, replace

from ..claims import Estimate, Interval, PublishedValue, standardise_difference

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
