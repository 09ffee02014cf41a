"""Attacks on a party's own data: the risk of what would leave."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import check_random_state

from ..._typing import FloatArray
from ...errors import DataCollabError, DataCollabWarning
from ...party import Party

if TYPE_CHECKING:
    from ...risk.audit import AuditResult


LEAST_ROWS = 50
"""With fewer rows none are kept apart: every interval would be too wide."""
_HELD, _APART = 0.6, 0.2
_REHEARSALS, _MANY_ROWS = 3, 1000
_OF_STRANGERS = ("open-world", "membership")
ATTACKS = (
    "kernel ridge and emulator, averaged",
    "forward emulator",
    "kernel ridge",
    "emulator",
    "linear regression",
    "subspace",
    "membership",
    "demixing",
    "shadow shares",
)
"""The strongest of those that an audit makes; the others find less, and take as long again."""
Progress = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class RiskFigures:
    """The strongest attack on each measure, at the upper end of its 95 % interval.

    Attributes
    ----------
    linkage : float or None
        Share of the shared rows that are linked right among about a hundred originals; None if not measured.
    reidentification : float or None
        Share that is re-identified with strangers among the originals.
    membership : float or None
        Area under the curve of membership inference.
    targets_alone : dict of str to float
        Figures of an attacker who knows the targets and nothing of the share.
    ratings : dict of str to str
        The audit's rating for each criterion.
    notes : tuple of str
        Why a figure is missing, in sentences.
    n_attacked : int
        Rows under attack.
    seconds : float
    complete : bool
        Whether every attack was made in time.
    """

    linkage: float | None
    reidentification: float | None
    membership: float | None
    targets_alone: dict[str, float] = field(default_factory=dict)
    ratings: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    n_attacked: int = 0
    seconds: float = 0.0
    complete: bool = True

    def of(self, name: str) -> float | None:
        """Return the figure "linkage", "reidentification" or "membership"."""
        return {"linkage": self.linkage, "reidentification": self.reidentification, "membership": self.membership}[name]


def risk_figures(
    party: Party,
    X: FloatArray,
    anchor_rows: FloatArray,
    *,
    y: NDArray[Any],
    anchor_target: NDArray[Any] | None = None,
    time_budget: float | None = None,
    random_state: int | np.random.RandomState | None = None,
    progress: Progress | None = None,
) -> RiskFigures:
    """Attack the share of a fitted party as an attacker does who holds the whole anchor.

    Linkage is measured on the share itself.  The other figures need rows of the same kind that are not in the share: a
    fresh party with three fifths of the rows stands for this one; of the others the attacker holds one half, and nobody
    the other half.  With fewer than 1,000 rows a figure would depend on who those few strangers are; so this is done
    three times, and the upper ends of each attack are averaged.
    """
    started = time.monotonic()
    random = check_random_state(random_state)
    known = {"anchor_target": anchor_target, "random_state": random, "progress": progress}

    def left() -> float | None:
        return None if time_budget is None else max(0.0, time_budget - (time.monotonic() - started))

    share, notes = _attempt("The share", lambda: _audit(party, X, anchor_rows, y, ["T2"], left(), known))
    rehearsals: list[AuditResult] = []
    if len(X) < LEAST_ROWS:
        notes += (
            f"Re-identification among strangers and membership are not measured with {len(X)} rows: {LEAST_ROWS} are "
            "needed to keep some apart.",
        )
    else:
        for _ in range(_REHEARSALS if len(X) < _MANY_ROWS else 1):
            made, more = _attempt("The rehearsal", lambda: _rehearsed(party, X, anchor_rows, y, left(), random, known))
            notes += tuple(note for note in more if note not in notes)
            rehearsals += [] if made is None else [made]
    rehearsal = rehearsals[0] if rehearsals else None
    results = [result for result in (share, *rehearsals) if result is not None]
    return RiskFigures(
        linkage=None if share is None else _worst([share], "linkage"),
        reidentification=_worst(rehearsals, "open-world re-identification"),
        membership=_worst(rehearsals, "membership AUC"),
        targets_alone=_baseline("linkage", share, "linkage")
        | _baseline("reidentification", rehearsal, "open-world re-identification"),
        ratings=_ratings(share, rehearsals),
        notes=notes,
        n_attacked=0 if share is None else share.n_attacked,
        seconds=time.monotonic() - started,
        complete=all(result.complete for result in results),
    )


def _audit(
    party: Party,
    X: FloatArray,
    anchor_rows: FloatArray,
    y: NDArray[Any],
    levels: Sequence[str],
    time_budget: float | None,
    known: dict[str, Any],
) -> AuditResult:
    from ...risk.audit import audit

    return audit(party, X, anchor_rows, y=y, levels=levels, attacks=ATTACKS, time_budget=time_budget, **known)


def _rehearsed(
    party: Party,
    X: FloatArray,
    anchor_rows: FloatArray,
    y: NDArray[Any],
    time_budget: float | None,
    random: np.random.RandomState,
    known: dict[str, Any],
) -> AuditResult:
    """Attack a party with a part of the rows; the attacker holds some of the others, and nobody the rest."""
    order = random.permutation(len(X))
    held, public, apart = np.split(order, [round(_HELD * len(X)), round((1 - _APART) * len(X))])
    defences = tuple(clone(defence) for defence in party.defences)
    stand_in = Party(
        party.name,
        clone(party.obfuscator),
        fit_on=party.fit_on,
        defences=defences,
        time_step=party.time_step,
        random_state=random,
    )
    stand_in.fit(X[held], y[held])
    others = {"public": X[public], "public_target": y[public], "control": X[apart], "control_target": y[apart]}
    return _audit(stand_in, X[held], anchor_rows, y[held], ["T2", "T2f"], time_budget, known | others)


def _attempt(what: str, make: Callable[[], AuditResult]) -> tuple[AuditResult | None, tuple[str, ...]]:
    """Return a result, or a sentence on why there is none."""
    try:
        with warnings.catch_warnings(), np.errstate(over="ignore", invalid="ignore"):
            # Rows kept back here say nothing about the share.
            warnings.simplefilter("ignore", DataCollabWarning)
            return make(), ()
    except DataCollabError as error:
        return None, (f"{what} could not be attacked: {error}",)
    except (ValueError, ArithmeticError) as error:
        # Its words may quote data.
        return None, (f"{what} could not be attacked ({type(error).__name__}).",)


def _worst(results: Sequence[AuditResult], metric: str) -> float | None:
    """Return the largest upper end of an attack; of each attack the mean over its audits."""
    uppers: dict[tuple[str, str, str], list[float]] = {}
    for result in results:
        for found in result.findings:
            if found.metric == metric and found.is_measured:
                uppers.setdefault((found.level, found.leak, found.attack), []).append(found.upper)
    return max((float(np.mean(values)) for values in uppers.values()), default=None)


def _baseline(name: str, result: AuditResult | None, metric: str) -> dict[str, float]:
    findings = () if result is None else result.findings
    values = [finding.baseline for finding in findings if finding.metric == metric and finding.baseline is not None]
    return {name: max(values)} if values else {}


def _ratings(share: AuditResult | None, rehearsals: Sequence[AuditResult]) -> dict[str, str]:
    """Return the share's own ratings, and those of the rehearsals' means for attacks that need strangers."""
    from ...risk.audit import mean_findings

    measured = ((finding for finding in rehearsal.findings if finding.is_measured) for rehearsal in rehearsals)
    of_strangers = [each for each in mean_findings(measured) if each.metric.startswith(_OF_STRANGERS)]
    basis = share or next(iter(rehearsals), None)
    if basis is None:
        return {}
    judged = replace(basis, findings=(*(share.findings if share is not None else ()), *of_strangers))
    return {criterion.name: criterion.rating for criterion in judged.all_criteria()}
