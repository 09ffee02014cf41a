"""The page of a report: everything on it, and nothing from outside."""

import base64
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path

from ..claims import QUOTAS, Verdict, in_order
from ..paper import Row
from ._figures import Plot
from ._table import TEXTS, ReportTable, markdown_text, pipes, to_html

# Verdicts, and the class of the page's style for them.
_KINDS = {"holds": "holds", "does not hold": "fails", "undecided": "open", "not run": "missing"}

# Verdicts by preset of hyperparameters; all of the same claims in the same order.
Verdicts = Mapping[str, Sequence[Verdict]]


def count_verdicts(verdicts: Sequence[Verdict]) -> str:
    """How many claims have which verdict, in words."""
    counts = Counter(verdict.verdict for verdict in verdicts)
    return ", ".join(f"{kind} {counts[kind]}" for kind in _KINDS if counts[kind]) or "no claims"


def claims_markdown(verdicts: Verdicts) -> str:
    """All claims at a glance, then each with its test and its evidence."""
    lines = ["# Claims of the paper, tested on these rows", ""]
    lines += [f"- {markdown_text(preset)}: {count_verdicts(found)}" for preset, found in verdicts.items()]
    lines += ["", pipes(["claim", *map(markdown_text, verdicts)]), pipes(["---"] * (1 + len(verdicts)))]
    by_claim = _run(verdicts)
    for found in by_claim:
        lines.append(pipes([markdown_text(found[0].claim.sentence), *(verdict.verdict for verdict in found)]))
    for found in by_claim:
        claim = found[0].claim
        lines += ["", f"## {markdown_text(claim.id)}", ""]
        lines += [f"{markdown_text(claim.sentence)} ({markdown_text(claim.source)})", ""]
        lines += [f"Test: {markdown_text(claim.test)}", ""]
        for preset, verdict in zip(verdicts, found, strict=True):
            evidence = markdown_text(verdict.evidence)
            lines.append(f"- {markdown_text(preset)}: **{verdict.verdict}** ({_count_seeds(verdict)}). {evidence}")
    return "\n".join(lines) + "\n"


def claims_html(verdicts: Verdicts) -> str:
    """One row per claim, the presets side by side."""
    heads = "".join(f"<th>{escape(preset)} hyperparameters</th>" for preset in verdicts)
    rows = []
    for found in _run(verdicts):
        claim = found[0].claim
        cells = "".join(
            f'<td><span class="verdict {_KINDS.get(verdict.verdict, "open")}">{escape(verdict.verdict)}</span>'
            f"<small>{_count_seeds(verdict)}. {escape(verdict.evidence)}</small></td>"
            for verdict in found
        )
        about = f"{escape(claim.source)}. {escape(claim.compared)} <b>{escape(claim.quota)}</b>"
        rows.append(f"<tr><td>{escape(claim.sentence)}<small>{about}</small></td>{cells}</tr>")
    rules = "".join(f"<li><b>{quota}</b>: {escape(rule)}</li>" for quota, rule in QUOTAS.items())
    return (
        f'<ul class="note">{rules}</ul><div class="wide"><table class="claims">'
        f"<thead><tr><th>claim</th>{heads}</tr></thead>"
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def _run(verdicts: Verdicts) -> list[tuple[Verdict, ...]]:
    """Verdicts by claim, without claims that nothing was run for."""
    by_claim = zip(*verdicts.values(), strict=True)
    return [found for found in by_claim if any(verdict.verdict != "not run" for verdict in found)]


def _count_seeds(verdict: Verdict) -> str:
    if verdict.n_seeds < verdict.most_seeds:
        return f"{verdict.n_seeds} to {verdict.most_seeds} seeds"
    if verdict.n_seeds == 1:
        return "1 seed"
    return f"{verdict.n_seeds} seeds"


# Experiments that reports know, in their order, with headings.
EXPERIMENTS = {
    "rq1": "RQ1: KTI against linear integration",
    "rq2": "RQ2: graphs and centring",
    "rq3": "RQ3: quantity and quality of anchors",
    "rq4": "RQ4: accuracy and reconstruction",
    "rq4-risks": "RQ4 extended: utility and risk",
    "rq4-risks-table": "RQ4 extended to a table",
    "regression": "Regression",
    "slice": "Regression: slice localisation",
    "illustration": "Illustration: graphs and centring",
}

_MOST_FAILURES = 30


def summary_html(rows: Mapping[str, Sequence[Row]]) -> str:
    """Return one line per experiment: conditions, seeds, rows and failures."""
    lines = []
    for name in [*(name for name in EXPERIMENTS if name in rows), *(name for name in rows if name not in EXPERIMENTS)]:
        of_experiment = rows[name]
        n_failed = sum(row.error is not None for row in of_experiment)
        texts = [
            name,
            ", ".join(sorted({row.condition.dataset for row in of_experiment})),
            ", ".join(sorted({row.condition.hyperparameters for row in of_experiment})),
            ", ".join(in_order(row.name for row in of_experiment)),
            str(len({row.condition for row in of_experiment})),
            _seeds({row.seed for row in of_experiment}),
            str(len(of_experiment)),
            str(n_failed),
        ]
        lines.append("<tr>" + "".join(f"<td>{escape(text)}</td>" for text in texts) + "</tr>")
    heads = (
        "experiment",
        "data sets",
        "hyperparameters",
        "methods and attacks",
        "conditions",
        "seeds",
        "rows",
        "failed",
    )
    return (
        '<div class="wide"><table class="summary">'
        f"<thead><tr>{''.join(f'<th>{head}</th>' for head in heads)}</tr></thead>"
        f"<tbody>{''.join(lines)}</tbody></table></div>"
    )


def failures_html(rows: Mapping[str, Sequence[Row]]) -> str:
    """Which methods failed where, how often, and why; the commonest first."""
    counts: dict[tuple[str, str, str], int] = {}
    for name, part in rows.items():
        for row in part:
            if row.error is not None:
                key = (name, row.name, row.error)
                counts[key] = counts.get(key, 0) + 1
    if not counts:
        return "<p>No row failed.</p>"
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    items = "".join(
        f"<li>{escape(experiment)}, {escape(name)}: {count} × {escape(error)}</li>"
        for (experiment, name, error), count in ordered[:_MOST_FAILURES]
    )
    left = len(ordered) - _MOST_FAILURES
    more = ""
    if left > 0:
        more = f"<p>And {left} more kinds of failure; see <code>rows.csv</code>.</p>"
    return f"<h3>Failed rows, left out of all means</h3><ul>{items}</ul>{more}"


def software_html(rows: Mapping[str, Sequence[Row]]) -> str:
    """Versions and commits that the rows come from."""
    every = [row for part in rows.values() for row in part]
    versions: dict[str, set[str]] = {}
    for row in every:
        for library, version in row.versions.items():
            versions.setdefault(library, set()).add(version)
    texts = [f"{library} {' and '.join(sorted(found))}" for library, found in sorted(versions.items())]
    commits = sorted({row.commit for row in every if row.commit})
    if commits:
        texts.append(f"commit{'s' * (len(commits) > 1)} {', '.join(commits)}")
    if texts:
        return f'<p class="note">Computed with {escape(", ".join(texts))}.</p>'
    return ""


def _seeds(numbers: Iterable[int]) -> str:
    """How many seeds and which, such as "6 (0-4, 7)"."""
    ordered = sorted(numbers)
    starts = [n for n, before in zip(ordered, [None, *ordered], strict=False) if before is None or n != before + 1]
    ends = [n for n, after in zip(ordered, [*ordered[1:], None], strict=False) if after is None or n != after - 1]
    ranges = ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in zip(starts, ends, strict=True))
    return f"{len(ordered)} ({ranges})"


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
