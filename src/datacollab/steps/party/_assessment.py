"""A draft of a data protection impact assessment, with the facts of a project, a policy and a release."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING

from ...agreement import Project
from ...by_sums.party import ATTACKERS, HEARD, INVENTED, LESS_NOISE, WORST_ROSTERS, SumsSummary, auc_text, promise
from ...by_sums.plan import fewest_rows
from ...folder.party import Policy
from ...sums import MeasuredMembership

if TYPE_CHECKING:
    from ...by_rows.party import ReleaseSummary

_TEMPLATE = Template(Path(__file__).with_name("assessment.md").read_text(encoding="utf-8"))
# The audit's limits above guessing, .05 and .20, as areas under the curve.
_AMBER = 0.55
_RED = 0.7
_MODEL = "the model, which reveals a little of its rows; also at all parties"
_OF_ROWS = (
    "The analyst gets what is listed above, each row with its target. With the anchor, which every party has, it "
    "can link rows to people whose records it knows. The figures below are for the analyst and one party together."
)
_DOES = (
    "files are signed and checked before use; a share is {sealed}; secret files are closed to other accounts; a log "
    "shows later changes; nothing leaves that the policy forbids or nobody approved"
)
_OF_SUMS = (
    "; masks that cancel only in the total; noise; a ledger that refuses most second totals over nearly the same rows"
)


def grade(auc: float) -> str:
    """Return the audit's rating of membership for a measured area under the curve.

    Examples
    --------
    >>> [grade(auc) for auc in (0.55, 0.56, 0.7, 0.71)]
    ['green', 'amber', 'amber', 'red']
    """
    # Rounded as it is shown, so that rating and figure agree.
    shown = round(auc, 2)
    if shown > _RED:
        return "red"
    if shown > _AMBER:
        return "amber"
    return "green"


def find_measured(measured: Sequence[MeasuredMembership], n_rows: int) -> tuple[str, MeasuredMembership]:
    """Return the measured total with this number of rows or the next smaller one, and how both compare.

    Examples
    --------
    >>> from datacollab.sums import membership_figures
    >>> find_measured(membership_figures(), 700)[0]
    'measured on public tables with 250 rows; more rows reveal less'
    """
    people = [each for each in measured if not each.rare]
    # The next smaller one reveals more, so that the figures err on the safe side.
    nearest = people[0]
    for each in people:
        if each.n_rows <= n_rows:
            nearest = each
    text = f"measured on public tables with {nearest.n_rows:,} rows"
    if nearest.n_rows < n_rows:
        text += "; more rows reveal less"
    elif nearest.n_rows > n_rows:
        text += "; fewer rows reveal more"
    return text, nearest


def membership_rows(measured: MeasuredMembership) -> list[tuple[str, str, str]]:
    """Return each attacker in words, with its area under the curve and the rating of that."""
    areas = {words: getattr(measured, name) for name, words in ATTACKERS.items()}
    return [(words, auc_text(area), grade(area)) for words, area in areas.items()]


def assessment(project: Project, policy: Policy, summary: SumsSummary | ReleaseSummary) -> str:
    """Fill the form of an assessment (Markdown) in, as far as project and summary tell.

    The summary is that of `PartyFolder.prepare`.
    """
    facts = {
        "project": project.name,
        "party": summary.party,
        "date": datetime.now(UTC).date().isoformat(),
        "purpose": _harmless(" ".join(project.purpose.split())),
        "task": _harmless(project.task.words),
        "revision": project.revision,
        "fingerprint": project.fingerprint,
        "deadline": project.deadline or "none",
        "n_rows": f"{summary.n_rows:,}",
        "columns": _harmless(f"{len(project.columns)}: {', '.join(each.name for each in project.columns)}"),
        "policy": policy.digest,
        "approvers": ", ".join(policy.approvers) or "anybody who can read the folder",
    }
    if isinstance(summary, SumsSummary):
        return _TEMPLATE.substitute(facts, **_of_sums(project, policy, summary))
    return _TEMPLATE.substitute(facts, **_of_rows(project, policy, summary))


def _members(analyst: str, fingerprint: str, others: Sequence[str]) -> dict[str, str]:
    return {
        "analyst": _harmless(f"{analyst}, key {fingerprint}"),
        "others": "\n".join(_harmless(f"- {each}") for each in others),
    }


def _of_sums(project: Project, policy: Policy, summary: SumsSummary) -> dict[str, str]:
    others = INVENTED if summary.n_unconfirmed else HEARD
    records = f"{summary.n_rows:,} records"
    if summary.n_public:
        records += f" and {summary.n_public} labelled public ones"
    how_often = "once"
    if project.sums.n_rounds > 1:
        how_often = f"the first of {project.sums.n_rounds} rounds' files, all of the same rows"
    risk = []
    if summary.epsilon is not None:
        risk.append(promise(summary.epsilon))
    if summary.of_study:
        scale = "On the audit's scale, here for means, an AUC above .55 is amber, and one above .70 red."
        risk += ["\n".join(["```text", *summary.study_lines(), "```"]), scale]
    else:
        risk += _risk_of_model(summary)
    # The project names the institutions.
    analyst = project.sums.entities.get("analyst", "[legal entity]")
    return {
        **_members(analyst, summary.analyst, summary.others),
        "made": "a study" if summary.of_study else "a model",
        "leaves": f"One file with {summary.n_numbers:,} numbers (about {summary.n_bytes:,} bytes), {how_often}: "
        f"{summary.statistic} over {records}, under masks. The total of all {summary.n_parties} parties "
        f"({summary.n_entities} institutions) has {summary.noise_words}."
        + "".join(f"\n- {each}" for each in summary.tells),
        "stays": "records, targets, sums of this party alone, keys, policy and log",
        "who": "\n\n".join([*summary.to_dict()["who"], others, *(f"Warning: {each}" for each in summary.sentences)]),
        "risk": "\n\n".join(risk),
        "measures": _DOES.format(sealed="encrypted for the analyst") + _OF_SUMS,
        "limits": f"at least {max(policy.min_rows, fewest_rows(project))} rows. There is no limit of risk for sums: "
        "[name] accepts the figures of section 4",
        "file": f"{summary.party}.dcsum",
        "product": "the study's result; also at those it is given to" if summary.of_study else _MODEL,
    }


def _risk_of_model(summary: SumsSummary) -> list[str]:
    """Return paragraphs on membership in the total that a model is made of."""
    how, measured = find_measured(summary.measured, summary.n_rows_together)
    how = f"The figures are {how}. {WORST_ROSTERS}"
    if summary.is_less_hidden:
        how += f" {LESS_NOISE}"
    rare = next(each for each in reversed(summary.measured) if each.rare)
    table = [f"| {words} | {auc} | {rating} |" for words, auc, rating in membership_rows(measured)]
    return [
        "**Can somebody tell whether a known person is in the total?** As an AUC: .50 is guessing, 1.00 is "
        f"certain. The total has at least {summary.n_rows_together:,} rows. {how} The "
        "rating is the audit's scale, here for means: above .55 amber, above .70 red.",
        "\n".join(["| attacker | AUC | rating |", "| --- | ---: | --- |", *table]),
        f"If ten people are of a class, among {rare.n_rows:,} rows: "
        + ", ".join(f"{words} {auc} ({rating})" for words, auc, rating in membership_rows(rare))
        + ". Of this project's classes, the smallest is expected to have [number] people in the total.",
    ]


def _of_rows(project: Project, policy: Policy, summary: ReleaseSummary) -> dict[str, str]:
    from ...by_rows.party import CRITERIA, FIGURES, figure_text, limit_text

    ratings = {} if summary.risk is None else summary.risk.ratings
    table = ["| at most, by the attacks tried | figure | limit | rating |", "| --- | ---: | ---: | --- |"]
    for name, words in FIGURES.items():
        measured = "not measured"
        if (figure := summary.figure(name)) is not None:
            measured = figure_text(name, figure)
        limit = "none"
        if name in summary.limits:
            limit = limit_text(name, summary.limits[name])
        rating = ratings.get(CRITERIA[name], "not measured")
        table.append(f"| {words} | {measured} | {limit} | {rating} |")
    sealed = "encrypted for the analyst" if project.seal_shares else "NOT encrypted"
    # A person fills in who is behind each key.
    parties = project.parties.items()
    others = [f"{name} ([legal entity]): {key.fingerprint}" for name, key in parties if name != summary.party]
    return {
        **_members("[legal entity]", summary.analyst, others),
        "made": "a model",
        "leaves": "".join(f"\n- {name}: {text}" for name, text in summary.facts()),
        "stays": ", ".join(summary.stays),
        "who": _OF_ROWS,
        "risk": "\n".join(table),
        "measures": _DOES.format(sealed=sealed),
        "limits": f"at least {policy.min_rows} rows; the limits of section 4, audit {policy.audit!r}",
        "file": f"{summary.party}.dcshare",
        "product": _MODEL,
    }


def _harmless(text: str) -> str:
    """Keep a text of the project from ending a cell, or from being markup."""
    # Column names are the parties' own words.
    return text.replace("|", "\\|").replace("<", "&lt;")
