"""Running the attacks of every threat level on one party, with their assumptions and gaps."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state

from ..._notebooks import class_names
from ..._threads import one_thread
from ..._validation import FloatArray
from ..._version import __version__
from ...errors import AgreementError, NoGuaranteeError
from ...party import Party
from ._findings import (
    ATTACKS,
    FORWARD,
    LEVELS,
    NEEDS,
    SAID,
    SHADOWS,
    WITH_LABELS,
    Finding,
    Record,
    mean_findings,
    rating_of,
)
from ._result import AuditResult
from ._scenario import Scenario, TargetedRows, make_scenario
from ._trials import Attribute, Outcome, Trial, Trials

_POINTED = ("re-identification@1", "open-world re-identification", "linkage", "open-world linkage")
"""Measures of attacks that point to a record."""


def _assumptions(scenario: Scenario) -> list[str]:
    """List the assumptions behind the figures."""
    n = len(scenario.groups[0])
    sentences = [SAID["closed_world"].format(n=n), SAID["targets"]]
    if scenario.outsiders is not None:
        sentences.append(SAID["open_world"].format(n=len(scenario.decoys)))
    if scenario.public is None:
        sentences.append(SAID["no_public"])
    elif scenario.public_target is None:
        sentences.append(SAID["public"].format(n=len(scenario.public)))
    else:
        sentences.append(SAID["public_with_targets"].format(n=len(scenario.public)))
    # A target that one row alone has, and shares as it is, finds the row whatever hides its features.
    if scenario.given_away > 0:
        sentences.append(SAID["given_away"].format(percent=100 * scenario.given_away))
    if (scenario.scale != 1).any():
        sentences.append(SAID["scaled"])
    return sentences


def _missing_need(level: str, attacks: Collection[str] | None) -> str:
    """Say why no attack of a level was made, in words that end a sentence."""
    asked = {*LEVELS[level].attacks}
    # Wherever f_k is estimated, distances to the share tell members from others as well.
    if FORWARD in asked:
        asked.add("membership")
    if attacks is not None:
        asked &= {*attacks}
    if not asked:
        return "none of its attacks was asked for"
    if asked == {"membership"}:
        return "needs rows of the same kind that nobody holds"
    return f"needs {NEEDS[level]}"


def _not_tested(
    scenario: Scenario,
    levels: Collection[str],
    findings: Collection[Finding],
    left: Collection[str],
    attacks: Collection[str] | None,
) -> list[str]:
    """List the gaps that a reader might overlook."""
    found = {finding.level for finding in findings}
    sentences = [f"{name} ({level.title}): not asked for." for name, level in LEVELS.items() if name not in levels]
    for name in levels:
        # Attacks that the clock left out are listed by name, below.
        if name not in found and not any(each.startswith(f"{name}:") for each in left):
            sentences.append(f"{name} ({LEVELS[name].title}): {_missing_need(name, attacks)}.")
    if left:
        sentences.append(f"The time was up before {len(left)} attacks: {'; '.join(sorted(left))}.")
    metrics = {finding.metric for finding in findings}
    names = {finding.attack for finding in findings}
    gaps = {
        "made_up": "T3" in found,
        "no_attribute": not any(metric.startswith("attribute ") for metric in metrics),
        "no_strangers": scenario.outsiders is None,
        "no_controls": scenario.control_representation is None,
        "no_shadows": "T2" in found and scenario.can_be_remade and SHADOWS not in names,
    }
    return [*sentences, *(SAID[name] for name, is_gap in gaps.items() if is_gap), SAID["never"]]


_WORST = 10
_LARGEST_MARGIN = 1e6
"""Records that are listed, and the margin of a row that was reconstructed exactly."""


def _check_attribute(name: str, attribute: object, n_columns: int) -> None:
    """Refuse an attribute that names no columns of the table by number."""
    # A function of the table can only be checked by its values, once there are some.
    if callable(attribute):
        return
    columns = np.asarray(attribute).ravel()
    if columns.dtype.kind not in "iu" or not len(columns) or not ((columns >= 0) & (columns < n_columns)).all():
        raise AgreementError(
            f"attributes[{name!r}] is {attribute!r}; expected a column's number from 0 to {n_columns - 1} in the table "
            "that f_k maps, the numbers of a category's one-hot columns, or a function of the table. Give one of these."
        )


def _check_names(levels: Collection[str] | None, attacks: Collection[str] | None) -> None:
    """Refuse levels and attacks that there are not."""
    if unknown := sorted(set(levels or ()) - set(LEVELS)):
        raise AgreementError(f"Unknown threat level {unknown[0]!r}; choose from {', '.join(LEVELS)}.")
    if isinstance(attacks, str):
        raise AgreementError(f"attacks={attacks!r} is one text; give a list of names, such as [{attacks!r}].")
    if unknown := sorted(set(attacks or ()) - set(ATTACKS)):
        raise AgreementError(f"Unknown attack {unknown[0]!r}; choose from {', '.join(ATTACKS)}.")


@one_thread
def audit(  # noqa: PLR0913
    party: Party,
    X: ArrayLike,
    anchor: ArrayLike,
    *,
    y: ArrayLike | None = None,
    anchor_target: ArrayLike | None = None,
    public: ArrayLike | None = None,
    public_target: ArrayLike | None = None,
    control: ArrayLike | None = None,
    control_target: ArrayLike | None = None,
    attributes: Mapping[str, Attribute] | None = None,
    artefacts: Mapping[str, Any] | None = None,
    levels: Collection[str] | None = None,
    attacks: Collection[str] | None = None,
    n_attacked: int = 500,
    n_seeds: int = 1,
    random_state: int | np.random.RandomState | None = None,
    time_budget: float | None = None,
    progress: Callable[[int, int, str], None] | None = None,
) -> AuditResult:
    """Attack a party's share with everything that an attacker may hold; runs at the party, and nothing leaves.

    Parameters
    ----------
    party : Party
        Fitted, with its defences.
    X : array-like or dataframe of shape (n_samples, n_features)
        The rows the party was fitted on, in the same order.
    anchor : array-like or dataframe of shape (n_anchors, n_features)
    y : array-like of shape (n_samples,), optional
        Targets of these rows, checked against those that are shared.  Needed only if rows are suppressed.
    anchor_target : array-like of shape (n_anchors,), optional
        Targets of the anchor rows, if all parties know them.
    public : array-like or dataframe of shape (n_public, n_features), optional
        Rows of the same kind that an attacker may hold.  Without them, no zero-leak attack is run.
    public_target : array-like of shape (n_public,), optional
    control : array-like or dataframe of shape (n_control, n_features), optional
        Rows of the same kind that nobody holds: success of an attack on them does not come from f_k's memory of its
        training rows.  By default a third of the public rows, at most 900, is kept apart.
    control_target : array-like of shape (n_control,), optional
    attributes : mapping of str to int, sequence of int or callable, optional
        Sensitive attributes: a column of `X`, the columns of a one-hot encoded category, or a function of the table.
    artefacts : mapping of str to object, optional
        Objects that would leave, such as a model; searched for stored rows (T4).
    levels, attacks : collection of str, optional
        Threat levels to try, of "T0", "T1", "T2", "T2f", "T3", "T4", and attacks to make, those that use labels
        included: "membership", or as in ``AuditResult.levels``.  By default all.
    n_attacked : int, default=500
        Rows under attack at most, in closed worlds of about 100.
    n_seeds : int, default=1
        How often leaks are drawn and attacks repeated; the result has the mean, with the values beside it.
    random_state : int, RandomState or None, default=None
    time_budget : float, optional
        Seconds after which no further attack is begun; the result then names the attacks left out.
    progress : callable, optional
        Called before each attack with how many were made, how many there are, and its name.

    Returns
    -------
    AuditResult
        With the bounds that the party's guarantee proves, if it has one, beside the findings.

    Raises
    ------
    AgreementError
        If tables do not fit each other, or a level or attack is unknown.

    Examples
    --------
    >>> import datacollab as dc
    >>> X, y = dc.datasets.load("digits")
    >>> party = dc.Party("hospital-a", dc.obfuscator("pca", n_components=8)).fit(X[:100], y[:100])
    >>> result = dc.audit(
    ...     party, X[:100], X[100:400], anchor_target=y[100:400], public=X[400:1200], public_target=y[400:1200],
    ...     levels=["T2"], random_state=0,
    ... )
    >>> result.headline("linkability").value > 0.9
    True
    """
    started = time.monotonic()
    random = check_random_state(random_state)
    _check_names(levels, attacks)
    for name, attribute in (attributes or {}).items():
        _check_attribute(name, attribute, np.shape(X)[1])
    asked = [level for level in LEVELS if levels is None or level in levels]
    held = TargetedRows(public, public_target)
    apart = TargetedRows(control, control_target)
    scenario = make_scenario(party, X, TargetedRows(anchor, anchor_target), held, apart, y, n_attacked, random)
    statement = None
    proven = {}
    with suppress(NoGuaranteeError):
        guarantee = party.guarantee(anchor)
        statement = guarantee.statement
        proven = {"membership AUC": guarantee.auc_at_most, "membership TPR": guarantee.tpr_at_most(0.01)}
    deadline = math.inf
    if time_budget is not None:
        deadline = started + time_budget
    trials = Trials(scenario, attributes or {}, artefacts or {}, random, deadline)
    made, left = _make_trials(trials, asked, attacks, n_seeds, deadline, progress)
    findings = mean_findings(outcome.findings for _, outcome in made)
    remarks = (remark for _, outcome in made for remark in outcome.remarks)
    return AuditResult(
        party=str(scenario.share.party),
        obfuscator=_description(party),
        n_rows=len(scenario.shared),
        n_attacked=len(scenario.X),
        n_candidates=len(scenario.groups[0]),
        n_open_candidates=len(scenario.groups[0]) + len(scenario.decoys),
        n_anchors=len(scenario.share.anchor_representation),
        n_components=scenario.Z.shape[1],
        findings=findings,
        levels=tuple(LEVELS[level] for level in asked),
        # To name single records would be an answer about them that the guarantee does not cover.
        worst_records=() if statement else _worst(scenario, made, findings),
        assumptions=(*_assumptions(scenario), *scenario.remarks, *remarks),
        not_tested=tuple(_not_tested(scenario, asked, findings, left, attacks)),
        seeds=tuple(range(n_seeds)),
        seconds=time.monotonic() - started,
        version=__version__,
        complete=not left,
        guarantee=statement,
        proven=proven,
    )


def _make_trials(
    trials: Trials,
    levels: Sequence[str],
    attacks: Collection[str] | None,
    n_seeds: int,
    deadline: float,
    progress: Callable[[int, int, str], None] | None,
) -> tuple[list[tuple[Trial, Outcome]], set[str]]:
    """Make the attacks that are asked for, with their outcomes, and name those that the deadline left out."""

    def is_asked(trial: Trial) -> bool:
        return attacks is None or trial.attack.removesuffix(WITH_LABELS) in attacks

    total = 0
    if progress is not None:
        total = n_seeds * trials.count(levels, is_asked)
    made: list[tuple[Trial, Outcome]] = []
    left: set[str] = set()
    # Trials draw as they come, so each is made before the next is asked for; one left out draws as well.
    for trial in (trial for _ in range(n_seeds) for level in levels for trial in trials.of(level)):
        name = f"{trial.level}: {trial.attack}"
        if not is_asked(trial):
            continue
        # Once one is left out all are: repetitions would otherwise differ in their attacks.
        if left or time.monotonic() > deadline:
            left.add(name)
            continue
        if progress is not None:
            # More may come than were counted, where an attack depends on another's outcome.
            progress(len(made), max(total, len(made) + 1), name)
        made.append((trial, trial.run()))
    return made, left


def _worst(
    scenario: Scenario, made: Iterable[tuple[Trial, Outcome]], findings: Iterable[Finding]
) -> tuple[Record, ...]:
    """List the records that the attacks of some level single out best, by the median over its attacks.

    Levels without an amber or red rate of records pointed to are left out: chance picks the records there.
    """
    telling = {each.level for each in findings if each.metric in _POINTED and rating_of(each) in ("amber", "red")}
    of_level: dict[str, list[FloatArray]] = {}
    for trial, outcome in made:
        if outcome.margins is not None and trial.level in telling:
            of_level.setdefault(trial.level, []).append(outcome.margins)
    if not of_level:
        return ()
    typical = np.stack([np.median(values, axis=0) for values in of_level.values()])
    best = typical.max(axis=0)
    strongest = typical.argmax(axis=0)
    return tuple(
        Record(
            index=int(scenario.index[row]),
            margin=min(float(best[row]), _LARGEST_MARGIN),
            level=list(of_level)[strongest[row]],
        )
        for row in np.argsort(-best, kind="stable")[:_WORST]
        if best[row] > 1
    )


def _description(party: Party) -> str:
    """Describe f_k by the name of its class, with the defences; no parameter, which may be a secret."""
    name = class_names(party.obfuscator).replace(", ", " and ")
    if party.fit_on is not None:
        name += " fitted on other rows than the party's, and rotated"
    return ", then ".join([name, *(type(defence).__name__ for defence in party.defences)])
