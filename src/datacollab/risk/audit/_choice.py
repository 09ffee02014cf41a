"""The most useful way of sharing within limits of risk, and what each way is worth."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.metrics import get_scorer
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils.validation import _num_samples

from ..._validation import check_single_targets, require
from ...errors import AgreementError, DataCollabError, DataCollabWarning
from ...party import Defence, GaussianNoise, Microaggregation, Party, obfuscator
from ._findings import DefenceEffect, Finding
from ._levels import AVERAGED_NAME, FORWARD
from ._result import AuditResult
from ._run import audit
from ._scenario import split_public

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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


@dataclass(frozen=True, kw_only=True, eq=False)
class Option:
    """Way of sharing: an obfuscator that is not fitted, and defences with their effect in a sentence.

    If `on_public`, f_k is fitted on public rows, with a secret rotation, rather than on the party's own.
    """

    name: str
    obfuscator: Any
    n_components: int
    on_public: bool = False
    defences: Sequence[Defence] = ()
    description: str = ""

    def party(self, name: str, public: ArrayLike | None, random_state: Any = None) -> Party:
        """Make a party that shares in this way, not fitted."""
        fit_on = public if self.on_public else None
        defences = tuple(clone(defence) for defence in self.defences)
        return Party(name, clone(self.obfuscator), fit_on=fit_on, defences=defences, random_state=random_state)


@dataclass(frozen=True, kw_only=True)
class Risk:
    """Strongest attack on each measure, at the upper end of its 95 % interval; None if not measured.

    Share of the records linked right among a hundred, share re-identified among a thousand, and area under the curve of
    membership inference.
    """

    linkage: float | None
    reidentification: float | None
    membership: float | None


@dataclass(frozen=True, kw_only=True)
class RiskLimits:
    """Limits of the risk that a party takes, at the upper end of each 95 % interval; None for no limit.

    Attributes
    ----------
    linkage : float or None, default=0.25
        Share of the records linked right among about a hundred candidates.  An interval for a hundred records is some
        .1 wide, and labels alone link as many records as there are classes, so small parties with many classes cannot
        meet limits much below .2.
    reidentification : float or None, default=0.09
        Share of the records re-identified among about a thousand; .09 is what European and Canadian medicines agencies
        accept for published clinical data.
    membership : float or None, default=0.7
        Area under the curve of membership inference.
    """

    linkage: float | None = 0.25
    reidentification: float | None = 0.09
    membership: float | None = 0.7


@dataclass(frozen=True, kw_only=True, eq=False)
class Assessment:
    """Option with its utility and risk, and whether that is within the limits.

    An option is `on_frontier` if no other has a utility as high at less linkage.
    """

    option: Option
    utility: float
    risk: Risk
    allowed: bool
    on_frontier: bool = False


@dataclass(frozen=True, kw_only=True, eq=False)
class Choice:
    """Ways of sharing, assessed in the order of the options, and the one to take.

    Attributes
    ----------
    assessments : tuple of Assessment
    limits : RiskLimits
    utility_name : str
        The measure of `Assessment.utility`.
    failed : dict of str to str
        Options that could not be assessed, by name, and why.
    complete : bool
        False if the time budget ended it early.
    """

    assessments: tuple[Assessment, ...]
    limits: RiskLimits
    utility_name: str
    failed: dict[str, str]
    complete: bool

    @property
    def best(self) -> Assessment | None:
        """Return the most useful option within the limits, if any; of equals that with less linkage."""
        allowed = [each for each in self.assessments if each.allowed]
        return max(allowed, key=lambda each: (each.utility, -(each.risk.linkage or 0.0)), default=None)

    def rows(self) -> list[dict[str, Any]]:
        """List the options as dictionaries, the most useful first."""
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
        """Return the same as a pandas data frame."""
        return require("pandas", "cli").DataFrame(self.rows())

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw utility against risk, with the frontier and the limit, in given Axes or those of a new figure."""
        figure = require("matplotlib.figure", "plots").Figure
        axes: Axes = figure(figsize=(7.2, 4.6), layout="constrained").subplots() if ax is None else ax
        measured = [(each.risk.linkage, each) for each in self.assessments if each.risk.linkage is not None]
        for allowed, label, marker, color in (
            (True, "within the limits", "o", "#0072B2"),
            (False, "outside", "x", "0.45"),
        ):
            places = [(linkage, each.utility) for linkage, each in measured if each.allowed == allowed]
            if places:
                axes.scatter(*zip(*places, strict=True), label=label, marker=marker, color=color)
        frontier = sorted((linkage, each.utility) for linkage, each in measured if each.on_frontier)
        if frontier:
            axes.plot(*zip(*frontier, strict=True), color="0.3", linewidth=1, zorder=0, label="frontier")
        if self.limits.linkage is not None:
            axes.axvline(self.limits.linkage, color="black", linestyle=":", linewidth=1, label="limit of linkage")
        if (best := self.best) is not None and best.risk.linkage is not None:
            place = (best.risk.linkage, best.utility)
            axes.annotate(best.option.name, place, xytext=(8, -14), textcoords="offset points", fontsize=9)
        axes.set_xlabel(
            "linkage, upper end: strongest attack tried by somebody who\nholds the share, the anchor and a list of "
            "candidates"
        )
        axes.set_ylabel(self.utility_name)
        axes.set_xlim(0, 1.02)
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.3, linewidth=0.6)
        axes.legend(frameon=False, fontsize=9, loc="lower right")
        return axes


def options_for(
    kinds: Iterable[str] = ("pca", "kernel-pca"),
    dimensions: Iterable[int] = DIMENSIONS,
    *,
    standardize: bool | None = None,
    on_public: bool = True,
    largest: int | None = None,
) -> list[Option]:
    """List ways of sharing worth a try: every obfuscator and dimension, undefended and with several defences.

    Parameters
    ----------
    kinds, standardize
        As for `datacollab.obfuscator`.
    dimensions : iterable of int
        Columns of the representation.
    on_public : bool, default=True
        Whether public rows are there to fit f_k on.
    largest : int, optional
        Columns that the data permit.
    """
    options: list[Option] = []
    for kind in kinds:
        for n_components in dimensions:
            if largest is None or n_components <= largest:
                f = obfuscator(kind, n_components=n_components, standardize=standardize)
                options += defended_options(f"{kind} {n_components}", f, n_components, on_public=on_public)
    return options


def defended_options(name: str, f: Any, n_components: int, *, on_public: bool) -> list[Option]:
    """List one obfuscator as it is, fitted on public rows if there are any, and with each defence besides."""
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

    Utility is the cross-validated score of a model on the party's own obfuscated rows; that in the collaboration
    depends on the others.  Risk is that of an audit at the threat levels T0, T2 and T2f, with fewer attacks: audit the
    choice in full before anything leaves.

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
        If `y` does not fit the rows.
    """
    target = np.asarray(y)
    check_single_targets(target, "y", AgreementError)
    if target.shape != (_num_samples(X),):
        raise AgreementError(f"y must have one entry per row of X, shape ({_num_samples(X)},); got {target.shape}.")
    limits = limits or RiskLimits()
    seed = int(check_random_state(random_state).randint(2**31))
    control = control_target = None
    if public is not None:
        parts = split_public(public, public_target, np.random.RandomState(seed))
        public, public_target, control, control_target = parts
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
            # Small classes and fixed seeds are no news in a rehearsal.
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DataCollabWarning)
                utility = _local_utility(option, X, target, public, anchor, cv=cv, seed=seed)
                party = option.party("rehearsal", public, np.random.RandomState(seed)).fit(X, target)
                result = audit(
                    party,
                    X,
                    anchor,
                    anchor_target=anchor_target,
                    public=public,
                    public_target=public_target,
                    control=control,
                    control_target=control_target,
                    levels=_LEVELS,
                    attacks=_ATTACKS,
                    random_state=seed,
                )
        except (DataCollabError, ValueError) as error:
            # scikit-learn refuses folds with too few rows of a class; its words show no entry.
            failed[option.name] = str(error)
            continue
        risk = risk_of(result.findings)
        pairs = [(value, getattr(limits, name)) for name, value in asdict(risk).items()]
        # A risk that was not measured is not within its limit.
        allowed = all(limit is None or (value is not None and value <= limit) for value, limit in pairs)
        found.append(Assessment(option=option, utility=utility, risk=risk, allowed=allowed))
    name = "R2 on own rows" if _is_numeric(target) else "accuracy on own rows"
    assessed = tuple(replace(each, on_frontier=_undominated(each, found)) for each in found)
    return Choice(assessments=assessed, limits=limits, utility_name=name, failed=failed, complete=complete)


def _local_utility(
    option: Option, X: ArrayLike, y: NDArray[Any], public: ArrayLike | None, anchor: ArrayLike, *, cv: int, seed: int
) -> float:
    """Cross-validate a model on the party's own representation: its accuracy, or R2 for regression.

    In every fold, the model learns from the share of the training rows, and is tested on the other rows as the party
    would predict them: obfuscated, not defended.
    """
    numeric = _is_numeric(y)
    folds = (KFold if numeric else StratifiedKFold)(cv, shuffle=True, random_state=seed)
    model = RandomForestRegressor if numeric else RandomForestClassifier
    scorer = get_scorer("r2" if numeric else "accuracy")
    scores = []
    for train, test in folds.split(np.zeros(len(y)), y):
        party = option.party("rehearsal", public, np.random.RandomState(seed))
        party.fit(_safe_indexing(X, train), y[train])
        rows = party.obfuscate(_safe_indexing(X, test))
        share = party.share(anchor)
        fitted = model(random_state=seed).fit(share.representation, share.target)
        scores.append(scorer(fitted, rows, y[test]))
    return float(np.mean(scores))


def _is_numeric(y: NDArray[Any]) -> bool:
    """Return whether a target is a number rather than a class: floating-point, as for the attacks."""
    return y.dtype.kind == "f"


def risk_of(findings: Sequence[Finding]) -> Risk:
    """Read the risk off an audit's findings."""

    def worst(metric: str) -> float | None:
        values = [finding.upper for finding in findings if finding.metric == metric and finding.is_measured]
        return max(values, default=None)

    return Risk(
        linkage=worst("linkage"),
        reidentification=worst("open-world re-identification"),
        membership=worst("membership AUC"),
    )


def _undominated(one: Assessment, others: Iterable[Assessment]) -> bool:
    def risk(each: Assessment) -> float:
        return 1.0 if each.risk.linkage is None else each.risk.linkage

    return not any(
        other.utility >= one.utility
        and risk(other) <= risk(one)
        and (other.utility > one.utility or risk(other) < risk(one))
        for other in others
    )


def with_defences(
    result: AuditResult, party: Party, X: ArrayLike, y: ArrayLike, anchor: ArrayLike, **known: Any
) -> AuditResult:
    """Try every defence on the party's own data, and add the effects to an audit's result.

    Parameters
    ----------
    result : AuditResult
        Of the party as it is.
    party : Party
        Its obfuscator is kept, its own defences are put aside.
    X, y, anchor
        As for `choose`.
    **known
        Further arguments of `choose`, but for the options: public rows, targets, progress and so on.

    Returns
    -------
    AuditResult
        With `defences`, the party's obfuscator without any first, and those left out among `not_tested`.
    """
    public = known.get("public") is not None
    options = defended_options("without any defence", party.obfuscator, result.n_components, on_public=public)
    choice = choose(X, y, anchor, options=options, **known)
    tried = {each.option.name for each in choice.assessments}
    left = [option.name for option in options if option.name not in tried]
    said = (f"Defences not tried: {'; '.join(left)}.",) if left else ()
    return replace(
        result,
        not_tested=(*result.not_tested, *said),
        complete=result.complete and choice.complete,
        defences=tuple(
            DefenceEffect(
                name=each.option.name,
                description=each.option.description,
                utility=each.utility,
                utility_name=choice.utility_name,
                **asdict(each.risk),
            )
            for each in choice.assessments
        ),
    )
