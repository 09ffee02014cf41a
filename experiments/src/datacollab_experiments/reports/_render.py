"""The formats of a table: Markdown, CSV and HTML."""

import csv
import io
import math
import re
from collections.abc import Iterable
from html import escape

from ._table import Entry, ReportTable, layout


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
