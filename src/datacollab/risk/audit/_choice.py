"""The most useful way of sharing within a party's limits, from its own data alone."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state
from sklearn.utils.validation import _num_samples

from ..._validation import check_single_targets, require
from ...errors import AgreementError, DataCollabError, DataCollabWarning
from ...party import Defence, GaussianNoise, Microaggregation, obfuscator
from ._assess import Assessment, Option, Risk, is_numeric_target, local_utility, risk_of
from ._attacks import AVERAGED_NAME, FORWARD
from ._frontier_plot import frontier_axes
from ._run import audit
from ._scenario import split_public

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Choice", "RiskLimits", "choose", "defended_options", "options_for"]

DIMENSIONS = (4, 8, 16, 32)
_ATTACKS = (
    AVERAGED_NAME,
    FORWARD,
    "kernel ridge",
    "emulator",
    "linear regression",
    "Procrustes",
    "subspace",
    "membership",
    "demixing",
    "shadow shares",
)
_LEVELS = ("T0", "T2", "T2f")
_DEFENCES: dict[str, tuple[Defence, str]] = {
    "groups of 3": (Microaggregation(3), "Means of at least 3 rows of one class instead of the rows."),
    "groups of 5": (Microaggregation(5), "Means of at least 5 rows of one class instead of the rows."),
    "groups of 10": (Microaggregation(10), "Means of at least 10 rows of one class instead of the rows."),
    "noise 1 sd": (GaussianNoise(1.0), "Normal noise as large as each column's standard deviation."),
}
_POOLS = ("public", "public_target", "control", "control_target")


@dataclass(frozen=True, kw_only=True)
class RiskLimits:
    """What a party is willing to risk, at the upper end of each 95 % interval; None where there is no limit.

    Attributes
    ----------
    linkage : float or None, default=0.25
        Share of the records linked right among about a hundred candidates.
    reidentification : float or None, default=0.09
        Share of the records told among about a thousand; .09 is what European and Canadian medicines agencies accept
        for published clinical data.
    membership : float or None, default=0.7
        Area under the curve of telling members from others.

    Notes
    -----
    An interval for a hundred records is some .1 wide, and labels alone link as many records as there are classes, so
    that limits much below .2 cannot be met by any way of sharing from small parties with many classes.
    """

    linkage: float | None = 0.25
    reidentification: float | None = 0.09
    membership: float | None = 0.7


@dataclass(frozen=True, kw_only=True, eq=False)
class Choice:
    """Ways of sharing, assessed, and the one to take.

    Attributes
    ----------
    assessments : tuple of Assessment
        In the order of the options.
    limits : RiskLimits
    utility_name : str
        What `Assessment.utility` measures.
    failed : dict of str to str
        Options that could not be assessed, by name, and why.
    complete : bool
        False where the time budget ended it early.
    """

    assessments: tuple[Assessment, ...]
    limits: RiskLimits
    utility_name: str
    failed: dict[str, str]
    complete: bool

    @property
    def best(self) -> Assessment | None:
        """The most useful option within the limits, None if there is none; of equals that with less linkage."""
        allowed = [each for each in self.assessments if each.allowed]
        return max(allowed, key=lambda each: (each.utility, -(each.risk.linkage or 0.0)), default=None)

    def rows(self) -> list[dict[str, Any]]:
        """One dictionary for each option, the most useful first."""
        return [
            {
                "option": each.option.name,
                "columns": each.option.n_components,
                self.utility_name: each.utility,
                "linkage, at most": each.risk.linkage,
                "open-world re-identification, at most": each.risk.reidentification,
                "membership AUC, at most": each.risk.membership,
                "within limits": each.allowed,
                "on frontier": each.on_frontier,
            }
            for each in sorted(self.assessments, key=lambda each: -each.utility)
        ]

    def table(self) -> Any:
        """The same as a pandas data frame.

        Raises
        ------
        MissingExtraError
            When pandas is not installed.
        """
        return require("pandas", "cli").DataFrame(self.rows())

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw utility against risk, with the frontier and the limit.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            In which to draw; otherwise a figure is made, which no window shows.

        Raises
        ------
        MissingExtraError
            When matplotlib is not installed.
        """
        return frontier_axes(self.assessments, self.limits.linkage, self.utility_name, self.best, ax)


def options_for(
    kinds: Iterable[str] = ("pca", "kernel-pca"),
    dimensions: Iterable[int] = DIMENSIONS,
    *,
    standardize: bool | None = None,
    on_public: bool = True,
    largest: int | None = None,
) -> list[Option]:
    """Ways of sharing worth a try: every obfuscator and dimension, undefended and with several defences.

    Parameters
    ----------
    kinds : iterable of str
        As for `datacollab.obfuscator`.
    dimensions : iterable of int
        Columns of the representation.
    standardize : bool or None, default=None
        As for `datacollab.obfuscator`.
    on_public : bool, default=True
        Whether public rows are there to fit f_k on.
    largest : int, optional
        Columns that the data permit.

    Returns
    -------
    list of Option
    """
    options: list[Option] = []
    for kind in kinds:
        for n_components in dimensions:
            if largest is None or n_components <= largest:
                f = obfuscator(kind, n_components=n_components, standardize=standardize)
                options += defended_options(f"{kind} {n_components}", f, n_components, on_public=on_public)
    return options


def defended_options(name: str, f: Any, n_components: int, *, on_public: bool) -> list[Option]:
    """One obfuscator as it is, fitted on public rows where there are any, and with each defence besides."""
    own = Option(name=name, obfuscator=f, n_components=n_components)
    where = ", fitted on public rows" if on_public else ""
    options = [own, replace(own, name=f"{name}{where}", on_public=True)] if on_public else [own]
    return options + [
        replace(own, name=f"{name}{where}, {what}", on_public=on_public, defences=(defence,), description=description)
        for what, (defence, description) in _DEFENCES.items()
    ]


def choose(
    X: ArrayLike,
    y: ArrayLike,
    anchor: ArrayLike,
    *,
    anchor_target: ArrayLike | None = None,
    public: ArrayLike | None = None,
    public_target: ArrayLike | None = None,
    limits: RiskLimits | None = None,
    options: Sequence[Option] | None = None,
    cv: int = 3,
    random_state: int | np.random.RandomState | None = None,
    time_budget: float | None = None,
    progress: Callable[[str], None] | None = None,
) -> Choice:
    """Assess ways of sharing on the party's own data, and find the most useful one within its limits.

    Utility is what a model reaches on the party's own obfuscated rows, cross-validated; what it will reach in the
    collaboration depends on the others, and is not known before.  Risk is that of an audit at the threat levels T0, T2
    and T2f, with fewer attacks: audit the choice in full before anything leaves.

    Parameters
    ----------
    X : array-like or dataframe of shape (n_samples, n_features)
    y : array-like of shape (n_samples,)
    anchor : array-like or dataframe of shape (n_anchors, n_features)
    anchor_target : array-like of shape (n_anchors,), optional
    public : array-like or dataframe of shape (n_public, n_features), optional
        A third, at most 900, is kept apart to tell members from; f_k may be fitted on the others, and the attacker
        holds those.
    public_target : array-like of shape (n_public,), optional
    limits : RiskLimits, optional
    options : sequence of Option, optional
        By default `options_for` PCA and kernel PCA.
    cv : int, default=3
        Folds for the utility.
    random_state : int, RandomState or None, default=None
    time_budget : float, optional
        Seconds after which no further option is begun.
    progress : callable, optional
        Called with a line before each option.

    Returns
    -------
    Choice

    Raises
    ------
    AgreementError
        When `y` does not fit the rows.
    """
    target = np.asarray(y)
    check_single_targets(target, "y", AgreementError)
    if target.shape != (_num_samples(X),):
        raise AgreementError(f"y must have one entry per row of X, shape ({_num_samples(X)},); got {target.shape}.")
    limits = limits or RiskLimits()
    seed = int(check_random_state(random_state).randint(2**31))
    rows: dict[str, Any] = {"public": public, "public_target": public_target}
    if public is not None:
        rows = dict(zip(_POOLS, split_public(public, public_target, np.random.RandomState(seed)), strict=True))
    if options is None:
        # Folds have fewer rows, and a kernel PCA of n rows has fewer than n components.
        largest = min(np.shape(X)[1], _num_samples(X) * (cv - 1) // cv - 2)
        options = options_for(on_public=public is not None, largest=largest)
    started = time.monotonic()
    found: list[Assessment] = []
    failed: dict[str, str] = {}
    complete = True
    for option in options:
        if time_budget is not None and time.monotonic() - started > time_budget:
            complete = False
            break
        if progress is not None:
            progress(option.name)
        try:
            utility = local_utility(option, X, target, rows["public"], anchor, cv=cv, seed=seed)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DataCollabWarning)
                party = option.party("rehearsal", rows["public"], np.random.RandomState(seed)).fit(X, target)
                result = audit(
                    party,
                    X,
                    anchor,
                    anchor_target=anchor_target,
                    levels=_LEVELS,
                    attacks=_ATTACKS,
                    random_state=seed,
                    **rows,
                )
        except (DataCollabError, ValueError) as error:
            # scikit-learn refuses folds with too few rows of a class; its words show no entry.
            failed[option.name] = str(error)
            continue
        risk = risk_of(result.findings)
        found.append(Assessment(option=option, utility=utility, risk=risk, allowed=_within(risk, limits)))
    name = "R2 on own rows" if is_numeric_target(target) else "accuracy on own rows"
    assessed = tuple(replace(each, on_frontier=_undominated(each, found)) for each in found)
    return Choice(assessments=assessed, limits=limits, utility_name=name, failed=failed, complete=complete)


def _within(risk: Risk, limits: RiskLimits) -> bool:
    """Whether every risk that is limited was measured, and is within its limit."""
    pairs = (
        (risk.linkage, limits.linkage),
        (risk.reidentification, limits.reidentification),
        (risk.membership, limits.membership),
    )
    return all(limit is None or (value is not None and value <= limit) for value, limit in pairs)


def _undominated(one: Assessment, others: Iterable[Assessment]) -> bool:
    def risk(each: Assessment) -> float:
        return 1.0 if each.risk.linkage is None else each.risk.linkage

    return not any(
        other.utility >= one.utility
        and risk(other) <= risk(one)
        and (other.utility > one.utility or risk(other) < risk(one))
        for other in others
    )
