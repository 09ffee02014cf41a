"""A study's results as a file for spreadsheets and a page with pictures."""

from __future__ import annotations

import csv
import html
import io
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...agreement import Project
from ...study import ModelValidationResult, ResultTable, StatisticResult, SurvivalResult
from ._pictures import balance, calibration, curves, histogram, interval

_OF_INTERVALS = " Lines are the intervals, each on its own scale; the upright one is at no effect."
_OF_RATIOS = " Lines are the intervals, all on one scale of logarithms; the upright one is at a ratio of 1."
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
_ENDS = ("95 % low", "95 % high")
_ENDS_OF_RATIO = ("low", "high")
_BALANCE = ("before", "after")


def study_files(results: Mapping[str, StatisticResult], project: Project) -> dict[str, bytes]:
    """Return the bytes of `STUDY_FILES`, by name."""
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    parts = []
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
    heads = ["statistic", *table.heads]
    rows = [[name, *row] for row in table.rows]
    if in_parts:
        heads.append("rows in equal parts")
        rows = [[*row, in_parts.get(place, "")] for place, row in enumerate(rows)]
    writer.writerows([heads, *rows])


def _part(name: str, result: StatisticResult, project: Project) -> str:
    """Return the part of the page on one statistic."""
    heads, rows, note, bars, noise = result.article_table()
    pictures = {place: histogram(heights, noise) for place, heights in bars.items()}
    if bars:
        note += " Small histograms span the declared range; grey bars are within the noise of none."
    # Intervals have a column of pictures of their own, after all others.
    beside, words = _pictures_beside(heads, rows)
    if beside:
        pictures |= {(place, len(heads)): picture for place, picture in beside.items()}
        heads = (*heads, "picture")
        rows = [(*row, "") for row in rows]
    names = _names_with_units(project)
    looks = (f"<p class='look'><strong>Look here first.</strong> {html.escape(each)}</p>" for each in result.cautions)
    columns = "".join(f"<th scope='col'>{html.escape(head)}</th>" for head in heads)
    table = (
        f"<div class='wide'><table><thead><tr>{columns}</tr></thead><tbody>{_body(rows, pictures, names)}</tbody>"
        "</table></div>"
    )
    if isinstance(result, SurvivalResult):
        time = project.task.time
        table = f"{curves(result, names.get(time, time))}<details><summary>By interval</summary>{table}</details>"
    if isinstance(result, ModelValidationResult):
        table = calibration(result) + table
    note = html.escape(note + words)
    return f"<h2>{html.escape(name.capitalize())}</h2>{''.join(looks)}{table}<p class='note'>{note}</p>"


def _pictures_beside(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> tuple[dict[int, str], str]:
    """Return pictures of intervals or of balance by row, for a column of their own, and words about them."""
    pictures: dict[int, str] = {}
    words = ""
    for ends, draw, says in ((_ENDS, interval, _OF_INTERVALS), (_BALANCE, balance, _OF_BALANCE)):
        if set(ends) <= set(heads):
            low, high = map(heads.index, ends)
            drawable = ((place, row[low], row[high]) for place, row in enumerate(rows) if row[low] and row[high])
            pictures |= {place: draw(float(one), float(other)) for place, one, other in drawable}
            words += says
    # A statistic that is refused has one column.
    if heads[1:2] in (("odds ratio",), ("rate ratio",)):
        low, high = map(heads.index, _ENDS_OF_RATIO)
        shown = {place: row for place, row in enumerate(rows) if row[low] and row[high]}
        logs = {place: np.log([float(row[low]), float(row[high])]) for place, row in shown.items()}
        # Ratios are compared with each other, so that all lines have one scale.
        farthest = max((float(np.abs(each).max()) for each in logs.values()), default=0.0)
        pictures |= {place: interval(float(each[0]), float(each[1]), farthest) for place, each in logs.items()}
        words += _OF_RATIOS
    return pictures, words


def _names_with_units(project: Project) -> dict[str, str]:
    task = project.task
    # A project has one target, one outcome, or one time.
    units = {each.name: each.unit for each in project.columns} | {task.target or task.outcome or task.time: task.unit}
    return {name: f"{name} ({unit})" for name, unit in units.items() if unit}


def _body(rows: Sequence[Sequence[str]], pictures: Mapping[tuple[int, int], str], names: Mapping[str, str]) -> str:
    """Return the lines of a table; the first name of several lines stands once."""
    lines: list[str] = []
    above = None
    for place, (first, *others) in enumerate(rows):
        cells = [html.escape(cell) + pictures.get((place, column), "") for column, cell in enumerate(others, start=1)]
        head = ""
        style = ""
        # A name stands at the first of its lines alone.
        if first != above:
            head = html.escape(names.get(first, first))
            style = " class=new"
        cells = [f"<td>{cell}</td>" for cell in cells]
        lines.append(f"<tr{style}><th scope='row'>{head}</th>{''.join(cells)}</tr>")
        above = first
    return "".join(lines)
