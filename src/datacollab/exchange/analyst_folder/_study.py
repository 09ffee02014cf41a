"""A study's results as a file for spreadsheets and a page with pictures."""

from __future__ import annotations

import csv
import html
import io
from collections.abc import Mapping
from typing import Any

from ...agreement import Project
from ...study import ResultTable, StatisticResult, SurvivalResult
from ._pictures import balance, curves, histogram, interval

_OF_INTERVALS = " Lines are the intervals, each on its own scale; the upright one is at no effect."
_OF_BALANCE = " Circles are the balance from -1 to 1, hollow before and full after."
STUDY_FILES = ("study.csv", "study.html")
_STYLE = """
body{font:16px/1.45 system-ui,"DejaVu Sans",sans-serif;color:#1d2329;background:#fff;max-width:66rem;margin:1.5rem auto;
padding:0 1rem}h1{font-size:1.5rem}h2{font-size:1.2rem;margin-top:2rem}p{max-width:46rem}.note{color:#55606b;
font-size:.88rem}.look{border-left:4px solid #d55e00;padding-left:.8rem}.wide{overflow-x:auto}
table{border-collapse:collapse;font-size:.92rem;font-variant-numeric:tabular-nums}
th,td{padding:.25rem .9rem .25rem 0;text-align:left;vertical-align:top}thead th{border-bottom:2px solid #1d2329}
tbody .new>*{border-top:1px solid #c9d1d8}tbody th{font-weight:600}td{white-space:nowrap}svg{display:block}
.bar{fill:#0072b2}.noise{fill:#c9d1d8}.axis{stroke:#55606b}.hollow{fill:none;stroke:#0072b2;stroke-width:1.5}.line{stroke:#0072b2;stroke-width:2}
figure{margin:1rem 0}figure svg{width:100%;max-width:36rem;height:auto}
@media(max-width:40rem){th,td{padding-right:.55rem}table{font-size:.82rem}}
"""
_ENDS, _BALANCE = ("95 % low", "95 % high"), ("before", "after")


def study_files(results: Mapping[str, StatisticResult], project: Project) -> dict[str, bytes]:
    """Return the bytes of `STUDY_FILES`, by name."""
    text = io.StringIO(newline="")
    writer, parts = csv.writer(text), []
    for name, result in results.items():
        _write(writer, name, result.table())
        parts.append(_part(name, result, project))
    title = html.escape(f"{project.name}: the total of {len(project.parties)} parties")
    page = (
        "<!doctype html><html lang='en'><meta charset='utf-8'><meta name='viewport' content='width=device-width'>"
        f"<title>{title}</title><style>{_STYLE}</style><h1>{title}</h1>{''.join(parts)}</html>"
    )
    return dict(zip(STUDY_FILES, (text.getvalue().encode(), page.encode()), strict=True))


def _write(writer: Any, name: str, table: ResultTable) -> None:
    """Write a table's rows; the last column has the rows in equal parts of a range."""
    in_parts = {row: " ".join(f"{each:.0f}" for each in bars) for (row, _), bars in table.bars.items()}
    writer.writerow(["statistic", *table.heads, *(["rows in equal parts"] if in_parts else [])])
    for place, row in enumerate(table.rows):
        writer.writerow([name, *row, *([in_parts.get(place, "")] if in_parts else [])])


def _part(name: str, result: StatisticResult, project: Project) -> str:
    """Return the part of the page on one statistic."""
    heads, rows, note, bars, noise = result.printed()
    pictures = {place: histogram(heights, noise) for place, heights in bars.items()}
    if bars:
        note += " Small histograms span the declared range; grey bars are within the noise of none."
    for ends, draw, says in ((_ENDS, interval, _OF_INTERVALS), (_BALANCE, balance, _OF_BALANCE)):
        if set(ends) <= set(heads):
            low, high = map(heads.index, ends)
            pairs = ((place, row[low], row[high]) for place, row in enumerate(rows) if row[low] and row[high])
            pictures |= {(place, len(rows[0])): draw(float(one), float(other)) for place, one, other in pairs}
            note += says
    if any(column == len(heads) for _, column in pictures):
        heads, rows = (*heads, "picture"), [(*row, "") for row in rows]
    task = project.task
    units = {each.name: each.unit for each in project.columns} | {task.target or task.outcome or task.time: task.unit}
    shown = {name: f"{name} ({unit})" for name, unit in units.items() if unit}
    lines, above = list[str](), None
    for place, (first, *others) in enumerate(rows):
        cells = [html.escape(cell) + pictures.get((place, column), "") for column, cell in enumerate(others, start=1)]
        lines.append(
            f"<tr{' class=new' * (first != above)}><th scope='row'>"
            f"{'' if first == above else html.escape(shown.get(first, first))}</th>"
            f"{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"
        )
        above = first
    looks = (f"<p class='look'><strong>Look here first.</strong> {html.escape(each)}</p>" for each in result.cautions)
    columns = "".join(f"<th scope='col'>{html.escape(head)}</th>" for head in heads)
    table = f"<div class='wide'><table><thead><tr>{columns}</tr></thead><tbody>{''.join(lines)}</tbody></table></div>"
    if isinstance(result, SurvivalResult):
        table = (
            f"{curves(result, shown.get(task.time, task.time))}<details><summary>By interval</summary>{table}</details>"
        )
    return f"<h2>{html.escape(name.capitalize())}</h2>{''.join(looks)}{table}<p class='note'>{html.escape(note)}</p>"
