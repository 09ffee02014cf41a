"""A study's results as a table and a page: counts, a description, a regression."""

from __future__ import annotations

import csv
import html
import io
import math
from collections.abc import Iterator, Sequence
from typing import Any

from ...sums import CountsResult, DescriptionResult, LeastSquaresResult
from ..project import Project

__all__ = ["STUDY_FILES", "study_files", "study_tables"]

STUDY_FILES = ("study.csv", "study.html")
_HEADS = {
    "counts": ("column", "level", "rows"),
    "description": ("column", "group", "level", "rows", "missing", "share", "mean", "sd", "q1", "median", "q3"),
    "least squares": ("column", "coefficient", "standard error", "95 % low", "95 % high", "p"),
}
_DIGITS = 4
_SMALL = 0.001
Table = tuple[tuple[str, ...], list[tuple[str, ...]], str]


def study_tables(results: Sequence[Any]) -> dict[str, Table]:
    """Return heads, rows and a note for each statistic, by its name."""
    tables: dict[str, Table] = {}
    rows: list[tuple[str, ...]]
    for result in results:
        if isinstance(result, CountsResult):
            rows = [(name, str(level), _count(n)) for name, each in result.counts.items() for level, n in each.items()]
            tables["counts"] = _HEADS["counts"], rows, _noisy(result.noise)
        elif isinstance(result, DescriptionResult):
            tables["description"] = _HEADS["description"], [*_described(result)], _note_of(result)
        elif isinstance(result, LeastSquaresResult):
            columns = (result.coefficients, result.errors, result.low, result.high)
            p_values = ["<0.001" if p < _SMALL else f"{p:.3f}" for p in result.p_values]
            each = zip(result.names, p_values, *columns, strict=True)
            rows = [(name, *map(_number, numbers), p) for name, p, *numbers in each]
            note = (
                f"Least squares with an intercept for each party, on about {result.n_rows:.0f} complete rows. Standard "
                "errors are classical: they suppose one variance of all residuals, and hold the noise of the total "
                f"(which made them up to {result.inflation.max():.2f} times as large)."
            )
            tables["least squares"] = _HEADS["least squares"], rows, note
    return tables


def _described(result: DescriptionResult) -> Iterator[tuple[str, ...]]:
    for each in result.entries:
        group = "all" if each.group is None else str(each.group)
        level = "" if each.level is None else str(each.level)
        figures = (each.share, each.mean, each.deviation, *each.quarters)
        yield (each.column, group, level, _count(each.n), _count(each.missing), *map(_number, figures))


def _note_of(result: DescriptionResult) -> str:
    noise = max(each.noise_of_n for each in result.entries)
    return f"{_noisy(noise)} Quartiles lie within agreed bins."


def _noisy(noise: float) -> str:
    return f"Counts have noise with a standard deviation of {noise:.1f} rows."


def _count(value: float) -> str:
    return str(max(0, round(value)))


def _number(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.{_DIGITS}g}"


def study_files(tables: dict[str, Table], project: Project) -> dict[str, bytes]:
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
