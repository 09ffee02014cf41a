"""The claims of the paper beside the verdicts of the rows."""

from collections import Counter
from collections.abc import Mapping, Sequence
from html import escape

from ..claims import QUOTAS, Verdict
from ._render import markdown_text, pipes

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
            lines.append(f"- {markdown_text(preset)}: **{verdict.verdict}** ({_seeds(verdict)}). {evidence}")
    return "\n".join(lines) + "\n"


def claims_html(verdicts: Verdicts) -> str:
    """One row per claim, the presets side by side."""
    heads = "".join(f"<th>{escape(preset)} hyperparameters</th>" for preset in verdicts)
    rows = []
    for found in _run(verdicts):
        claim = found[0].claim
        cells = "".join(
            f'<td><span class="verdict {_KINDS.get(verdict.verdict, "open")}">{escape(verdict.verdict)}</span>'
            f"<small>{_seeds(verdict)}. {escape(verdict.evidence)}</small></td>"
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


def _seeds(verdict: Verdict) -> str:
    if verdict.n_seeds < verdict.most_seeds:
        return f"{verdict.n_seeds} to {verdict.most_seeds} seeds"
    if verdict.n_seeds == 1:
        return "1 seed"
    return f"{verdict.n_seeds} seeds"
