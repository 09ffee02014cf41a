"""The page of a report: everything on it, and nothing from outside."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from html import escape

from ..paper import Row
from ._claims_text import Verdicts, claims_html, count_verdicts
from ._drawing import Plot
from ._render import to_html
from ._summary import EXPERIMENTS, failures_html, software_html, summary_html
from ._table import ReportTable

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #222; max-width: 80rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.7rem; } h2 { font-size: 1.3rem; margin-top: 3rem; border-bottom: 2px solid #ddd; }
nav a { margin-right: 1.2rem; } a { color: #0b5394; }
table { border-collapse: collapse; margin: 1.2rem 0 .4rem; font-size: .81rem; font-variant-numeric: tabular-nums; }
caption { text-align: left; font-weight: 600; padding-bottom: .3rem; }
th, td { padding: .22rem .5rem; text-align: right; border-bottom: 1px solid #ddd; white-space: nowrap; }
thead th { border-bottom: 2px solid #888; vertical-align: bottom; }
tbody th { text-align: left; font-weight: 400; }
thead th:first-child, .claims th, .claims td, .summary th, .summary td { text-align: left; white-space: normal; }
.claims td { vertical-align: top; width: 30%; } .claims td:first-child { width: 40%; }
.claims small { display: block; color: #555; }
tr.muted td, tr.muted th { color: #666; font-size: .93em; border-bottom-color: #eee; }
.wide { overflow-x: auto; } img { max-width: 100%; } figure { margin: 1.5rem 0; }
.note, figcaption { color: #555; font-size: .88rem; margin-top: 0; }
code { background: #f3f3f3; padding: 0 .25rem; overflow-wrap: anywhere; }
.verdict { font-weight: 600; padding: 0 .4rem; border: 1px solid; border-radius: .3rem; }
.holds { color: #00664b; } .fails { color: #a33c00; } .open, .missing { color: #555; }
@page { size: A4 landscape; margin: 12mm; }
@media print { .wide { overflow: visible; } table, .note { font-size: .62rem; }
  th, td { padding: .1rem .3rem; white-space: normal; }
  figure, tr { break-inside: avoid; } h2, caption { break-after: avoid; } }
"""


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
    sections = {"summary": ("Summary", _summary(rows, verdicts)), "reading": ("How to read this", _READING)}
    for name, content in results.items():
        sections[f"experiment-{name}"] = (EXPERIMENTS.get(name, name), _INTRODUCTIONS.get(name, "") + content)
    if verdicts:
        sections["claims"] = ("Claims of the paper", _CLAIMS + claims_html(verdicts))
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


# Introductions to the figures of an experiment.
_INTRODUCTIONS = {
    "rq4": """<p><b>The attack.</b> Somebody knows, of three classes (0, 1 and 2), the anchor's original rows and what
each party made of them, and from these pairs learns a way back: by linear regression (LR), by a small neural network
(MLP), or by inverting a linear estimate of f_k (PINV). It is tried on rows of the parties that belong to the other
classes. A judge, trained on other original rows, names the class of each reconstruction; <b>reconstruction
accuracy</b> is how often that is the original's. With seven classes under attack, a judge that always says the same
has 1/7 = .143, or 0 if it says one of the leaked classes.</p>
<p><b>It is the paper's measure, and not one of privacy.</b> These attacks are weak ones, so a low number shows that
they failed, not that the rows are safe. The analyst sees the targets anyway. And a reconstruction of the wrong class
can still be nearer to its own original than to any other: which record it is may be told when its class is not.</p>""",
    "rq4-risks": """<p><b>The paper's measure beside others, on the same trials.</b> Reconstruction accuracy asks for
the class of a row, which is shared anyway; what matters is whether somebody can tell whose row it is. The audit asks
that: it puts the party's shared rows together with the originals (linkage, with strangers among them in the open
world), tells who is in the table at all (membership), and reconstructs what the class leaves open (R2c). Compare each
with what the labels alone give.</p>""",
}

_CLAIMS = """<p class="note">What the paper concludes from its experiments, in words of our own, tested on the rows
of this report. <b>holds</b> and <b>does not hold</b>: shown at the 5 % level, by tests that are paired by seed.
<b>undecided</b>: the rows show neither. <b>not run</b>: there is nothing to compare. Each claim says what is
compared, and ends with how many of the comparisons must come out:</p>"""

_READING = """<p><b>Numbers</b> are means over seeds, ± half the width of their 95 % confidence interval (Student's
t), or its ends where it is wider than from 0 to 1, as two seeds can make it. A seed draws the parties' rows, the
anchor and the test rows. One seed has no interval. Failed rows are counted,
and never averaged. <b>Published</b> numbers stand below ours where the paper prints any; the <b>difference</b> is
ours less theirs in pooled standard errors, the root of the sum of both squared. With five seeds, one cell in eight is
beyond ±2 by chance alone, and one in twenty with thirty; a difference beyond chance may have any cause, a different
library version or a different reading of the text among them.</p>
<p><b>Local</b>: every party alone, on its own raw rows. <b>Local+Public</b>: the same, with the real public rows
behind the anchor, and their targets, added. <b>Central</b>: all raw rows of the parties in one place, which is what
privacy forbids. All others integrate what obfuscators let through.</p>
<p><b>Hyperparameters</b>: "paper" has γ = λ = μ = 1 for KTI and maps new rows by umap-learn's own transform;
"recommended" is this library's choice, with the width of the kernel from the anchors and UMAP row by row.
Baselines depend on neither, and linear methods only through UMAP.</p>
<p><b>Seconds</b> are wall times on the machine at hand, and differ between runs; their growth with the number of
anchors is what compares.</p>"""
