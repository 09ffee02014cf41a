"""The page of a report: everything on it, and nothing from outside."""

import base64
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

from ..paper import Row
from ._cells import TEXTS
from ._claims_text import Verdicts, claims_html, count_verdicts
from ._drawing import Plot
from ._render import to_html
from ._summary import EXPERIMENTS, failures_html, software_html, summary_html
from ._table import ReportTable

_STYLE = Path(__file__).with_name("style.css").read_text(encoding="utf-8")


def report_page(
    rows: Mapping[str, Sequence[Row]],
    tables: Sequence[ReportTable],
    plots: Sequence[Plot],
    drawn: Mapping[str, bytes],
    verdicts: Verdicts,
    *,
    title: str,
    command: str,
    notes: Sequence[str],
) -> str:
    """Write the page."""
    experiments = [*EXPERIMENTS, *(name for name in rows if name not in EXPERIMENTS)]
    results = {
        name: content for name in experiments if (content := _results(name, rows.get(name, ()), tables, plots, drawn))
    }
    sections = {"summary": ("Summary", _summary(rows, verdicts)), "reading": ("How to read this", TEXTS["reading"])}
    for name, content in results.items():
        sections[f"experiment-{name}"] = (EXPERIMENTS.get(name, name), TEXTS["introductions"].get(name, "") + content)
    if verdicts:
        sections["claims"] = ("Claims of the paper", TEXTS["claims"] + claims_html(verdicts))
    if notes:
        items = "".join(f"<li>{escape(note)}</li>" for note in notes)
        sections["deviations"] = ("Known deviations from the paper", f"<ul>{items}</ul>")
    links = "".join(f'<a href="#{escape(key)}">{escape(heading)}</a> ' for key, (heading, _) in sections.items())
    body = "".join(
        f'<section><h2 id="{escape(key)}">{escape(heading)}</h2>{content}</section>'
        for key, (heading, content) in sections.items()
    )
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title><style>{_STYLE}</style></head><body>
<h1>{escape(title)}</h1>
<nav>{links}</nav>
{body}
<p class="note">Reproduce with <code>{escape(command)}</code></p>
</body></html>
"""


def _summary(rows: Mapping[str, Sequence[Row]], verdicts: Verdicts) -> str:
    counts = "".join(
        f"<li>Claims with {escape(preset)} hyperparameters: {escape(count_verdicts(found))}.</li>"
        for preset, found in verdicts.items()
    )
    return f"{summary_html(rows)}<ul>{counts}</ul>{failures_html(rows)}{software_html(rows)}"


def _results(
    name: str, rows: Sequence[Row], tables: Sequence[ReportTable], plots: Sequence[Plot], drawn: Mapping[str, bytes]
) -> str:
    """Figures and tables of an experiment; empty where there are neither rows nor figures."""
    figures = "".join(
        f'<figure><img alt="{escape(plot.caption)}" src="data:image/svg+xml;base64,'
        f'{base64.b64encode(drawn[plot.name]).decode("ascii")}"><figcaption>{escape(plot.caption)}</figcaption></figure>'
        for plot in plots
        if plot.experiment == name
    )
    content = figures + "".join(to_html(table) for table in tables if table.experiment == name)
    if rows and not content and name not in EXPERIMENTS:
        return (
            '<p class="note">No table is made for this experiment; its rows are in <code>rows.csv</code>. Which tables '
            f"an experiment gets goes by its name, that of its file: one of {escape(', '.join(EXPERIMENTS))}.</p>"
        )
    return content
