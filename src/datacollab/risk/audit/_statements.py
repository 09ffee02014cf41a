"""What an audit presumes, and what it leaves open, in sentences."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from ._attacks import SHADOWS
from ._findings import Finding
from ._known_targets import told_by_targets
from ._levels import LEAKS, LEVELS
from ._scenario import Scenario

__all__ = ["assumptions", "not_tested"]


def assumptions(scenario: Scenario) -> tuple[str, ...]:
    """What has to be kept in mind when the figures are read."""
    n = len(scenario.groups[0])
    disclosed = "Targets" if scenario.share.anchor_rows is None else "What a model made here predicts for anchor rows"
    sentences = [
        f"Closed world: the attacker holds the originals of {n} records and knows that they are among those shared. "
        "Rates depend on this number.",
        f"{disclosed} and the number of rows are disclosed by the protocol; only what goes beyond them is counted.",
    ]
    if scenario.outsiders is not None:
        sentences.append(
            f"Open world: {len(scenario.decoys)} records of strangers stand among the candidates; the attacker holds "
            "none of them."
        )
    if scenario.public is None:
        sentences.append(
            "No public rows were given besides the anchor; leaked anchor rows tell the attacker what others are like."
        )
    else:
        sentences.append(
            f"The attacker holds {len(scenario.public)} public rows of the same kind"
            + ("." if scenario.public_target is None else ", with targets.")
        )
    told = told_by_targets(scenario)
    if told > 0:
        sentences.append(
            f"{100 * told:.0f} % of the rows leave with their record’s own target, which no other shared row has: "
            "whoever knows a record’s target finds its row by that alone. Figures count this only where the attack’s "
            "name says that labels are known."
        )
    if (scenario.scale != 1).any():
        sentences.append("Columns are compared in units of their standard deviation.")
    return tuple(sentences)


def not_tested(
    scenario: Scenario,
    levels: Collection[str],
    findings: Iterable[Finding],
    left: Collection[str],
    attacks: Collection[str] | None = None,
) -> tuple[str, ...]:
    """What a reader might think was tried, and was not."""
    findings = list(findings)
    found = {finding.level for finding in findings}
    metrics = {finding.metric for finding in findings}
    sentences = [f"{name} ({level.title}): not asked for." for name, level in LEVELS.items() if name not in levels]
    wanting = {
        "T0": "public rows that are not the anchor’s",
        "T1": "anchor rows enough to leak a part of them",
        "T2f": "public rows that are not the anchor’s, and rows that nobody holds",
        "T3": "public rows that are not the anchor’s",
        "T4": "files that would leave",
    }
    sentences += [
        f"{name} ({LEVELS[name].title}): {_why_not(name, attacks, wanting.get(name, 'more rows'))}."
        for name in levels
        if name not in found and not any(each.startswith(f"{name}:") for each in left)
    ]
    if left:
        sentences.append(f"The time was up before {len(left)} attacks: {'; '.join(sorted(left))}.")
    if "T3" in found:
        sentences.append("T3 was played with one made-up party and KTI's defaults, not with the actual parties.")
    if not any(metric.startswith("attribute ") for metric in metrics):
        sentences.append("Inference of single attributes: no attribute was named.")
    if scenario.outsiders is None:
        sentences.append("Membership: needs rows of the same kind that nobody holds.")
    if scenario.control_representation is None:
        sentences.append(
            "Whether the obfuscator remembers its training rows: single other rows could not be put beside them."
        )
    if found & {"T2"}:
        sentences += _not_remade(scenario, {finding.attack for finding in findings})
    sentences.append("Attacks not known today, several shares of the same rows, and side information about a person.")
    return tuple(sentences)


def _why_not(level: str, attacks: Collection[str] | None, wanting: str) -> str:
    """Why a level was not tried: its attacks were not asked for, or lacked something."""
    made = {*LEVELS[level].attacks, *(("membership",) if level in LEAKS else ())}
    asked = made if attacks is None else made & set(attacks)
    if not asked:
        return "none of its attacks was asked for"
    return f"needs {'rows of the same kind that nobody holds' if asked == {'membership'} else wanting}"


def _not_remade(scenario: Scenario, attacks: Collection[str]) -> list[str]:
    """Why shares of the same kind were not made, where they were not."""
    if scenario.recipe is None or SHADOWS in attacks or scenario.outsiders is None:
        return []
    return [
        f"{SHADOWS.capitalize()}: not asked for, or there are fewer rows with targets than twice the table's, or more "
        "than 3,000 rows in the table."
    ]
