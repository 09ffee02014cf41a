"""The base of a report: rows, failures and software."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape

from ..claims import in_order
from ..paper import Row

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
