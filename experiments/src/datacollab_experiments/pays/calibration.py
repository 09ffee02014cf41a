"""Whether the intervals that parties get hold the gain on rows that nobody has."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from .intervals import coverage
from .results import Measured

LOW = "low"
HIGH = "high"
VALUE = "value"
TRUTH = "truth"


@dataclass(frozen=True)
class PartyRun:
    """The interval that one party was told in one trial, and the truth."""

    trial: str
    low: float
    high: float
    value: float
    truth: float


def party_runs(measured: Sequence[Measured], belongs: Callable[[Measured], bool] = lambda each: True) -> list[PartyRun]:
    """All parties that were told something."""
    return [
        PartyRun(
            f"{each.setting.label} {seed}", *(each.benefits[key][seed][party] for key in (LOW, HIGH, VALUE, TRUTH))
        )
        for each in measured
        if belongs(each) and TRUTH in each.benefits
        for seed, parties in each.benefits[TRUTH].items()
        for party in parties
        if all(party in each.benefits.get(key, {}).get(seed, {}) for key in (LOW, HIGH, VALUE))
    ]


def calibration_text(measured: Sequence[Measured]) -> str:
    """Return coverage and bias of the gains that parties were told, over all runs and parts of them."""
    parts: list[tuple[str, Callable[[Measured], bool]]] = [
        ("all", lambda each: True),
        ("parties alike", lambda each: each.setting.split == "iid"),
        ("skewed parties", lambda each: each.setting.split != "iid"),
    ]
    lines = ["| party-runs | | coverage | told, mean | true, mean | told gain, true loss |", "|" + " --- |" * 6]
    for name, belongs in parts:
        runs = party_runs(measured, belongs)
        if not runs:
            continue
        held, n = coverage(*([getattr(run, key) for run in runs] for key in ("low", "high", "truth", "trial")))
        # The worst case: a party is told a sure gain, and loses.
        wrong = sum(run.low > 0 > run.truth for run in runs)
        told, true = (float(np.mean([getattr(run, key) for run in runs])) for key in ("value", "truth"))
        share = f"{held.mean:.3f} ({held.low:.3f} to {held.high:.3f})"
        lines.append(f"| {name} | {n} | {share} | {told:+.3f} | {true:+.3f} | {wrong} |")
    if len(lines) == 2:
        return "No party was told anything."
    return "\n".join(lines) + (
        "\n\nThe share of the parties' 95 % intervals that hold the difference on the test rows, with trials as "
        "observations. The test rows are everybody's: where parties are skewed, a party's own rows are others than "
        "these, and its interval is about its own."
    )
