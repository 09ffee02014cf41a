"""The most useful way of sharing within limits of risk, and the worth of each way."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import astuple, dataclass, replace
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.metrics import get_scorer
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils.validation import _num_samples

from ._frames import plain_column, plain_table
from ._validation import check_single_targets, require
from .errors import AgreementError, AnchorError, DataCollabError, DataCollabWarning
from .party import Defence, GaussianNoise, Microaggregation, Party, obfuscator
from .risk.audit import Finding, audit, split_public
from .risk.audit._findings import ATTACKS

__all__ = ["Assessment", "Choice", "Option", "Risk", "RiskLimits", "choose", "options_for"]

DIMENSIONS = (4, 8, 16, 32)
_LEVELS = ("T0", "T2", "T2f")
_DEFENCES: dict[str, Defence] = {
    "groups of 3": Microaggregation(3),
    "groups of 5": Microaggregation(5),
    "groups of 10": Microaggregation(10),
    "noise 1 sd": GaussianNoise(1.0),
}


@dataclass(frozen=True, kw_only=True, eq=False)
class Option:
    """Way of sharing: an obfuscator, fitted on public rows with a secret rotation if `on_public`, and defences."""

    name: str
    obfuscator: Any
    n_components: int
    on_public: bool = False
    defences: Sequence[Defence] = ()

    def party(self, name: str, public: ArrayLike | None, random_state: Any = None) -> Party:
        """Make a party that shares in this way, not fitted."""
        fit_on = public if self.on_public else None
        defences = tuple(clone(defence) for defence in self.defences)
        return Party(name, clone(self.obfuscator), fit_on=fit_on, defences=defences, random_state=random_state)


_MEASURES = {"linkage": "linkage", "reidentification": "open-world re-identification", "membership": "membership AUC"}


@dataclass(frozen=True, kw_only=True)
class Risk:
    """Strongest attack on each measure, at the upper end of its 95 % interval; None if not measured.

    Share of the records linked right among about a hundred candidates, share re-identified among about a thousand, and
    area under the curve of membership inference.
    """

    linkage: float | None
    reidentification: float | None
    membership: float | None


@dataclass(frozen=True, kw_only=True)
class RiskLimits:
    """Limits of a `Risk` that a party takes; None for no limit.

    An interval of linkage is some .1 wide, and labels alone link as many records as there are classes, so small parties
    with many classes cannot meet limits much below .2.  Medicines agencies accept re-identification at .09.
    """

    linkage: float | None = 0.25
    reidentification: float | None = 0.09
    membership: float | None = 0.7


@dataclass(frozen=True, kw_only=True, eq=False)
class Assessment:
    """Option with its utility and risk, and whether that is within the limits."""

    option: Option
    utility: float
    risk: Risk
    allowed: bool


@dataclass(frozen=True, kw_only=True, eq=False)
class Choice:
    """Ways of sharing, assessed in the order of the options, and the one to take.

    ``failed`` names the options that could not be assessed, and why; ``complete`` is False if the time budget ended it
    early.
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
        # Of two equally useful ways, the one that gives away less.
        return max(allowed, key=lambda each: (each.utility, -(each.risk.linkage or 0.0)), default=None)

    def table(self) -> Any:
        """Return the options as a pandas data frame, the most useful first."""
        rows = [
            {"option": each.option.name, "columns": each.option.n_components, self.utility_name: each.utility}
            | {f"{metric}, at most": getattr(each.risk, name) for name, metric in _MEASURES.items()}
            | {"within limits": each.allowed}
            for each in sorted(self.assessments, key=lambda each: -each.utility)
        ]
        return require("pandas", "cli").DataFrame(rows)


def options_for(
    kinds: Iterable[str] = ("pca", "kernel-pca"),
    dimensions: Iterable[int] = DIMENSIONS,
    *,
    standardize: bool | None = None,
    on_public: bool = True,
    largest: int | None = None,
) -> list[Option]:
    """List ways of sharing worth a try: every obfuscator and dimension, undefended and with several defences.

    `kinds` and `standardize` are as for `datacollab.obfuscator`, `dimensions` the numbers of columns, up to the
    `largest`.  If `on_public`, there are public rows to fit f_k on.
    """
    options: list[Option] = []
    where = ", fitted on public rows" * on_public
    for kind, n in product(kinds, dimensions):
        if largest is not None and n > largest:
            continue
        name = f"{kind} {n}"
        f = obfuscator(kind, n_components=n, standardize=standardize)
        own = Option(name=name, obfuscator=f, n_components=n)
        options.append(own)
        if on_public:
            options.append(replace(own, name=f"{name}{where}", on_public=True))
        # Defences cost utility, so they are tried on the better map alone: one that has not seen the party's rows.
        options += [
            replace(own, name=f"{name}{where}, {title}", on_public=on_public, defences=(defence,))
            for title, defence in _DEFENCES.items()
        ]
    return options


def choose(  # noqa: PLR0913
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
    depends on the others.  Risk is that of an audit at the threat levels T0, T2 and T2f: audit the choice in full
    before anything leaves.

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
    X = plain_table(X, "X")
    anchor = plain_table(anchor, "The anchor", AnchorError)
    target = plain_column(y)
    public = plain_table(public, "The public rows")
    check_single_targets(target, "y", AgreementError)
    if target.shape != (_num_samples(X),):
        raise AgreementError(f"y must have one entry per row of X, shape ({_num_samples(X)},); got {target.shape}.")
    limits = limits or RiskLimits()
    # One seed for all options: they differ by themselves, not by folds and draws.
    seed = int(check_random_state(random_state).randint(2**31))
    # Nearest neighbours help with attributes, and no attribute is named here.
    known: dict[str, Any] = {"levels": _LEVELS, "attacks": [each for each in ATTACKS if each != "nearest neighbours"]}
    if public is not None:
        parts = split_public(public, public_target, np.random.RandomState(seed))
        known |= dict(zip(("public", "public_target", "control", "control_target"), parts, strict=True))
        # Rows kept apart stay apart from f_k as well, or they would be members.
        public = parts[0]
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
                result = audit(party, X, anchor, anchor_target=anchor_target, **known, random_state=seed)
        except (DataCollabError, ValueError) as error:
            # scikit-learn refuses folds with too few rows of a class; its words show no entry.
            failed[option.name] = str(error)
            continue
        risk = _risk_of(result.findings)
        pairs = zip(astuple(risk), astuple(limits), strict=True)
        # A risk that was not measured is not within its limit.
        allowed = all(limit is None or (value is not None and value <= limit) for value, limit in pairs)
        found.append(Assessment(option=option, utility=utility, risk=risk, allowed=allowed))
    name = "accuracy on own rows"
    if target.dtype.kind == "f":
        name = "R2 on own rows"
    return Choice(assessments=tuple(found), limits=limits, utility_name=name, failed=failed, complete=complete)


def _local_utility(
    option: Option, X: ArrayLike, y: NDArray[Any], public: ArrayLike | None, anchor: ArrayLike, *, cv: int, seed: int
) -> float:
    """Cross-validate a model of the share: its accuracy, or R2, on other rows that are obfuscated and not defended."""
    folds: Any = StratifiedKFold(cv, shuffle=True, random_state=seed)
    model: Any = RandomForestClassifier
    scorer = get_scorer("accuracy")
    # As for the attacks: floating-point targets are numbers, all else are classes.
    if y.dtype.kind == "f":
        folds = KFold(cv, shuffle=True, random_state=seed)
        model = RandomForestRegressor
        scorer = get_scorer("r2")
    scores = []
    for train, test in folds.split(np.zeros(len(y)), y):
        # A new party for each fold: one that saw the rows left out would be too good on them.
        party = option.party("rehearsal", public, np.random.RandomState(seed))
        party.fit(_safe_indexing(X, train), y[train])
        # Rows to be predicted are mapped and not defended, as they are in the collaboration.
        rows = party.obfuscate(_safe_indexing(X, test))
        share = party.share(anchor)
        fitted = model(random_state=seed).fit(share.representation, share.target)
        scores.append(scorer(fitted, rows, y[test]))
    return float(np.mean(scores))


def _risk_of(findings: Sequence[Finding]) -> Risk:
    """Read the risk off an audit's findings."""
    measured = [finding for finding in findings if finding.is_measured]
    # The upper ends: a small party's wide interval must not pass for a small risk.
    uppers = {name: [one.upper for one in measured if one.metric == metric] for name, metric in _MEASURES.items()}
    return Risk(**{name: max(values, default=None) for name, values in uppers.items()})
