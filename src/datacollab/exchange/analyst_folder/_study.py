"""A study's results as a file for spreadsheets and a page with pictures."""

from __future__ import annotations

import csv
import html
import io
from collections.abc import Mapping
from typing import Any

from ..._typing import FloatArray
from ...study import ResultTable, StatisticResult
from ..project import Project

__all__ = ["STUDY_FILES", "study_files"]

STUDY_FILES = ("study.csv", "study.html")
_STYLE = """
body{font:16px/1.45 system-ui,"DejaVu Sans",sans-serif;color:#1d2329;background:#fff;max-width:66rem;margin:1.5rem auto;
padding:0 1rem}h1{font-size:1.5rem}h2{font-size:1.2rem;margin-top:2rem}p{max-width:46rem}.note{color:#55606b;
font-size:.88rem}.look{border-left:4px solid #d55e00;padding-left:.8rem}.wide{overflow-x:auto}
table{border-collapse:collapse;font-size:.92rem;font-variant-numeric:tabular-nums}
th,td{padding:.25rem .9rem .25rem 0;text-align:left;vertical-align:top}thead th{border-bottom:2px solid #1d2329}
tbody .new>*{border-top:1px solid #c9d1d8}tbody th{font-weight:600}td{white-space:nowrap}svg{display:block}
.bar{fill:#0072b2}.noise{fill:#c9d1d8}.axis{stroke:#55606b}.line{stroke:#0072b2;stroke-width:2}
figure{margin:1rem 0}figure svg{max-width:100%;height:auto}
@media(max-width:40rem){th,td{padding-right:.55rem}table{font-size:.82rem}}
"""
_ENDS = ("95 % low", "95 % high")
_WIDE, _HIGH = 120, 26
"""Width and height of small pictures."""


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
    pictures = {place: _histogram(heights, noise) for place, heights in bars.items()}
    if bars:
        note += " Small histograms span the declared range; grey bars are within the noise of none."
    if set(_ENDS) <= set(heads):
        low, high = map(heads.index, _ENDS)
        drawn = {(place, len(heads)): _interval(float(row[low]), float(row[high])) for place, row in enumerate(rows)}
        pictures, heads, rows = pictures | drawn, (*heads, "interval"), [(*row, "") for row in rows]
        note += " Lines are the intervals, each on its own scale; the upright one is at no effect."
    units = _units(project)
    lines, before = [], None
    for place, (first, *others) in enumerate(rows):
        cells = [html.escape(cell) + pictures.get((place, column), "") for column, cell in enumerate(others, start=1)]
        lines.append(
            f"<tr{' class=new' * (first != before)}><th scope='row'>"
            f"{'' if first == before else html.escape(units.get(first, first))}</th>"
            f"{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"
        )
        before = first
    looks = (f"<p class='look'><strong>Look here first.</strong> {html.escape(each)}</p>" for each in result.cautions)
    columns = "".join(f"<th scope='col'>{html.escape(head)}</th>" for head in heads)
    return (
        f"<h2>{html.escape(name.capitalize())}</h2>{''.join(looks)}<div class='wide'><table><thead><tr>{columns}</tr>"
        f"</thead><tbody>{''.join(lines)}</tbody></table></div><p class='note'>{html.escape(note)}</p>"
    )


def _units(project: Project) -> dict[str, str]:
    """Return names with units, by name, of columns and targets that have one."""
    task = project.task
    units = {each.name: each.unit for each in project.columns} | {task.target or task.outcome or task.time: task.unit}
    return {name: f"{name} ({unit})" for name, unit in units.items() if unit}


def _histogram(heights: FloatArray, noise: float) -> str:
    """Return a small histogram as SVG."""
    scale, width = _HIGH / max(float(heights.max()), 1.0), _WIDE // len(heights)
    drawn = "".join(
        f"<rect class='{'bar' if n > 2 * noise else 'noise'}' x='{width * place}' y='{_HIGH - n * scale:.1f}' "
        f"width='{width - 1}' height='{n * scale:.1f}'/>"
        for place, n in enumerate(heights.clip(0).tolist())
    )
    label = f"rows in equal parts: {' '.join(f'{n:.0f}' for n in heights.clip(0))}"
    return _svg(label, f"{drawn}<path class='axis' d='M0 {_HIGH + 0.5}H{width * len(heights)}'/>")


def _interval(low: float, high: float) -> str:
    """Return an interval as SVG, with no effect in the middle and the farther end at an edge."""
    scale = (_WIDE / 2 - 4) / max(abs(low), abs(high), 1e-300)
    ends = [_WIDE / 2 + scale * end for end in (low, (low + high) / 2, high)]
    middle = _HIGH / 2
    drawn = (
        f"<path class='axis' d='M{_WIDE / 2} 2V{_HIGH}'/><path class='line' d='M{ends[0]:.1f} {middle}H{ends[2]:.1f}'/>"
        f"<circle class='bar' cx='{ends[1]:.1f}' cy='{middle}' r='4'/>"
    )
    return _svg(f"interval from {low:g} to {high:g}", drawn)


def _svg(label: str, drawn: str) -> str:
    return f"<svg role='img' aria-label='{label}' width='{_WIDE}' height='{_HIGH + 1}'>{drawn}</svg>"
