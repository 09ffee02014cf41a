"""A study's results as a file for spreadsheets and a page."""

from __future__ import annotations

import csv
import html
import io
from collections.abc import Mapping

from ...study import ResultTable
from ..project import Project

__all__ = ["STUDY_FILES", "study_files"]

STUDY_FILES = ("study.csv", "study.html")


def study_files(tables: Mapping[str, ResultTable], project: Project) -> dict[str, bytes]:
    """Return the bytes of `STUDY_FILES`, by name."""
    text = io.StringIO(newline="")
    writer, parts = csv.writer(text), []
    for name, (heads, rows, note) in tables.items():
        writer.writerow(["statistic", *heads])
        writer.writerows([name, *row] for row in rows)
        cells = "".join(f"<th scope='col'>{html.escape(head)}</th>" for head in heads)
        body = "".join(f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
        parts.append(
            f"<h2>{html.escape(name.capitalize())}</h2><p>{html.escape(note)}</p>"
            f"<table><thead><tr>{cells}</tr></thead><tbody>{body}</tbody></table>"
        )
    title = html.escape(f"{project.name}: the total of {len(project.parties)} parties")
    cells = "td,th{padding:.2em .8em;text-align:left}tr{border-bottom:1px solid}"
    style = f"body{{font:16px sans-serif;margin:2em}}table{{border-collapse:collapse}}{cells}"
    page = (
        f"<!doctype html><html lang='en'><meta charset='utf-8'><title>{title}</title><style>{style}</style>"
        f"<h1>{title}</h1>{''.join(parts)}</html>"
    )
    return dict(zip(STUDY_FILES, (text.getvalue().encode(), page.encode()), strict=True))
