"""The formats of a table: Markdown, CSV, LaTeX and HTML."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterable
from html import escape

from ._table import Entry, Table, layout

__all__ = ["markdown_text", "pipes", "to_csv", "to_html", "to_latex", "to_markdown", "write_csv"]

_WIDE = 8

_LATEX = {
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    **{character: f"\\{character}" for character in "&%$#_{}"},
    # At the start of a row, these two would be read as options of the end of the row before.
    "[": "{[}", "*": "{*}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", "–": "--", "’": "'",
    **{
        character: f"${command}$"
        for character, command in {
            "±": r"\pm", "−": "-", "×": r"\times", "≥": r"\geq", "≤": r"\leq", "≈": r"\approx",
            "√": r"\surd", "²": "^2", "³": "^3", "α": r"\alpha", "γ": r"\gamma", "λ": r"\lambda", "μ": r"\mu",
        }.items()
    },
}  # fmt: skip


def to_markdown(table: Table) -> str:
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


def to_csv(table: Table) -> str:
    """Give a table as data: one line per cell, numbers with all their digits."""
    records = []
    for line in table.lines:
        for column, cell in zip(table.columns, line.cells, strict=True):
            interval, published = cell.interval, cell.published
            numbers = [None] * 2 if interval is None else [interval.mean, interval.half_width]
            counts: list[int | str] = ["", ""]
            if cell.estimate is not None:
                counts = [0 if interval is None else interval.n, cell.estimate.n_failed]
            wanted = [None] * 2 if published is None else [published.mean, published.half_width]
            record = [*line.headings, column, *map(_exact, numbers), *counts, cell.text]
            records.append([*record, *map(_exact, wanted), cell.published_text, _exact(cell.difference)])
    head = [*table.headings, "column", "mean", "half_width", "n_seeds", "n_failed", "text"]
    return write_csv([*head, "published_mean", "published_half_width", "published_text", "difference"], records)


def to_latex(table: Table) -> str:
    """Set a table in LaTeX, for the packages booktabs and, if it is wide, graphicx."""
    head, body = layout(table)
    names = len(table.headings)
    # Many columns are wider than a page.
    fitted = (r"\resizebox{\textwidth}{!}{%", "}") if len(head) > _WIDE else ()
    lines = [
        rf"% Needs the package booktabs{', and graphicx for resizebox' if fitted else ''}.",
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{_latex(table.caption + _source(table))}}}",
        *fitted[:1],
        rf"\begin{{tabular}}{{{'l' * names}{'r' * (len(head) - names)}}}",
        r"\toprule",
        _ampersands(map(_latex, head)),
        r"\midrule",
    ]
    for entries in body:
        lines.append(_ampersands(
            rf"\textbf{{{_latex(entry.text)}}}" if entry.bold else _latex(entry.text) for entry in entries
        ))  # fmt: skip
    lines += [r"\bottomrule", r"\end{tabular}", *fitted[1:]]
    if table.note:
        lines += ["", r"\smallskip", rf"{{\footnotesize {_latex(table.note)}}}"]
    return "\n".join([*lines, r"\end{table}", ""])


def to_html(table: Table) -> str:
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
    note = f'<p class="note">{escape(table.note)}</p>' if table.note else ""
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


def _source(table: Table) -> str:
    return f" ({table.source} of the paper)" if table.source else ""


def _exact(value: float | None) -> str:
    return "" if value is None or math.isnan(value) else repr(float(value))


def markdown_text(text: str) -> str:
    """A text that Markdown leaves as it is."""
    escaped = re.sub(r"([\\`*_\[\]|#~$])", r"\\\1", text)
    return " ".join(escaped.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").split())


def pipes(texts: Iterable[str]) -> str:
    """A row of a Markdown table."""
    return f"| {' | '.join(texts)} |"


def _latex(text: str) -> str:
    return "".join(_LATEX.get(character, character) for character in " ".join(text.split()))


def _ampersands(texts: Iterable[str]) -> str:
    return " & ".join(texts) + r" \\"


def _html_cell(entry: Entry, is_heading: bool) -> str:
    tag = "th" if is_heading else "td"
    # Where a narrow page must break a cell, an interval keeps its sign.
    text = escape(entry.text).replace("± ", "±\u00a0")
    return f"<{tag}>{f'<b>{text}</b>' if entry.bold else text}</{tag}>"
