"""Effects of a treatment from the parties' shares: on average, or linear in the row."""

from __future__ import annotations

import html
import warnings
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2, norm
from scipy.stats import t as student
from sklearn.base import is_classifier
from sklearn.linear_model import LinearRegression

from .._notebooks import card, table
from .._threads import one_thread
from .._validation import FloatArray, PartyName, require
from ..analyst import BaseIntegrator
from ..errors import AgreementError, EffectError, EffectWarning, UnknownPartyError
from ..model import KernelMap, PartyModel
from ..share import Share
from ._combined import CombinedRows, combine_rows
from ._estimators import (
    PROPENSITY_CLIP,
    Folds,
    clip_scores,
    cross_fit,
    doubly_robust,
    effect_folds,
    inverse_probability_weighting,
    partially_linear,
    propensity_scores,
    pseudo_values,
    survival_difference,
    treatment_weights,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

METHODS = {
    "plr": "partially linear regression",
    "aipw": "augmented inverse probability weighting (doubly robust)",
    "ipw": "inverse probability weighting",
}
TARGETS = {
    "ATE": "the average over all rows (ATE)",
    "ATT": "the average over the treated rows (ATT)",
    "overlap": "the average over rows weighted by overlap",
}
ERRORS = {"rows": "rows are independent", "parties": "parties are, and their rows move together"}

_BINS = 20
_RANK = 1e-9
"""Spread of a component, relative to the largest, that counts as rounding."""


@dataclass(frozen=True, kw_only=True)
class Overlap:
    """Histograms of the propensity scores of both arms; they hold no single rows.

    Attributes
    ----------
    edges : tuple of float
        Bounds of the intervals of the score, from 0 to 1.
    treated, untreated : tuple of int
        Rows in each interval.
    n_clipped : int
        Rows with a score within 0.02 of 0 or 1, which weights take for 0.02 from there.
    effective_treated, effective_untreated : float
        Rows of equal weight with as much information as the weighted ones.
    """

    edges: tuple[float, ...]
    treated: tuple[int, ...]
    untreated: tuple[int, ...]
    n_clipped: int
    effective_treated: float
    effective_untreated: float


def overlap_of(propensity: FloatArray, treatment: NDArray[np.int64], target: str) -> Overlap:
    """Count unclipped scores by arm."""
    edges = np.linspace(0.0, 1.0, _BINS + 1)
    counts = [np.histogram(propensity[treatment == arm], edges)[0] for arm in (0, 1)]
    weights = treatment_weights(treatment, clip_scores(propensity), target)
    # Kish's effective size.
    effective = [float(w.sum() ** 2 / (w @ w)) for w in (weights[treatment == arm] for arm in (0, 1))]
    return Overlap(
        edges=tuple(np.round(edges, 6).tolist()),
        treated=tuple(counts[1].tolist()),
        untreated=tuple(counts[0].tolist()),
        n_clipped=int(((propensity < PROPENSITY_CLIP) | (propensity > 1.0 - PROPENSITY_CLIP)).sum()),
        effective_treated=effective[1],
        effective_untreated=effective[0],
    )


def balance_of(rows: CombinedRows, propensity: FloatArray, target: str) -> dict[str, tuple[float, float]]:
    """Return the arms' difference in each component and party, in standard deviations: without and with weights."""
    X = rows.adjusted_for
    t = rows.treatment
    # The arms' spread without weights: one scale for both differences, which weights cannot make smaller.
    spread = np.sqrt((X[t == 0].var(axis=0) + X[t == 1].var(axis=0)) / 2)
    # A component without variance is rounding alone.
    scale = np.where(spread > _RANK * spread.max(), spread, np.inf)
    before, after = (
        (np.average(X[t == 1], axis=0, weights=w[t == 1]) - np.average(X[t == 0], axis=0, weights=w[t == 0])) / scale
        for w in (np.ones(len(X)), treatment_weights(t, clip_scores(propensity), target))
    )
    names = [f"component {number + 1}" for number in range(rows.X.shape[1])]
    names += [f"party {rows.parties[code]}" for code in np.unique(rows.party)][: X.shape[1] - len(names)]
    return dict(zip(names, zip(before.tolist(), after.tolist(), strict=True), strict=True))


def _largest(balance: dict[str, tuple[float, float]]) -> tuple[str, float]:
    name, (_, after) = max(balance.items(), key=lambda each: abs(each[1][1]))
    return name, after


@dataclass(frozen=True, kw_only=True, eq=False)
class EffectEstimate:
    """An effect of treatment, provided that columns and party hold everything that matters for treatment and outcome.

    Attributes
    ----------
    estimate : float
        The outcome with treatment less without; for times to an event, the probability to be without it at the horizon.
    standard_error : float
    interval : tuple of float
    confidence : float
        Level of the interval.
    p_value : float
        Two-sided, for no effect.
    target : {"ATE", "ATT", "overlap"}
        Over which rows the effect is an average; `estimand` says it in words.
    method : {"plr", "aipw", "ipw"}
    errors : {"rows", "parties"}
        The units that the standard error takes as independent.
    heterogeneity : float
        p-value for an effect that is the same for all rows: Wald's test of residuals on residuals, as in
        `conditional_effects`, by components, parties and overlap.
    horizon : float or None
        In the unit of the times.
    n_rows, n_treated : int
        Rows counted, and the treated ones among them.
    n_groups : int
        Rows, or means of rows, that are independent.
    n_trimmed : int
        Rows left out for scores beyond `trim`.
    trim : float or None
    misalignment : float
        Part of the variance of the anchor's collaboration representation in which the parties differ; 0 if all are
        aligned.
    overlap : Overlap
    balance : dict of str to (float, float)
        The difference of the arms' means in each component and party, in standard deviations: of the rows as they are,
        and weighted by their scores.
    parties : tuple of str or int
    integrator_ : BaseIntegrator
        Fitted.

    Notes
    -----
    The interval is about which rows were observed.  It knows nothing of causes that are neither among the columns nor
    the same for all rows of a party, nor of columns that parties' maps have lost.
    """

    estimate: float
    standard_error: float
    interval: tuple[float, float]
    confidence: float
    p_value: float
    target: str
    method: str
    errors: str
    heterogeneity: float
    horizon: float | None
    n_rows: int
    n_treated: int
    n_groups: int
    n_trimmed: int
    trim: float | None
    misalignment: float
    overlap: Overlap
    balance: dict[str, tuple[float, float]] = field(repr=False)
    parties: tuple[PartyName, ...]
    integrator_: BaseIntegrator = field(repr=False)

    @property
    def estimand(self) -> str:
        """Return the average that is estimated, in words."""
        words = TARGETS[self.target]
        if self.n_trimmed:
            words += f", among the {self.n_rows} rows kept of {self.n_rows + self.n_trimmed}"
        return words

    @property
    def largest_imbalance(self) -> tuple[str, float]:
        """Return the component or party in which the weighted arms differ most, and by how many standard deviations."""
        return _largest(self.balance)

    @property
    def sentence(self) -> str:
        """Return the estimate in words."""
        low, high = self.interval
        outcome = "on the outcome"
        if self.horizon is not None:
            outcome = f"on the probability to be without the event at {self.horizon:g}"
        sentence = (
            f"Effect of treatment {outcome}, {self.estimand}: {self.estimate:.4g} "
            f"({self.confidence:.0%} interval {low:.4g} to {high:.4g})."
        )
        if self.heterogeneity >= _DIFFERS:
            return sentence
        # The overlap-weighted average is the average over all rows only if the effect is the same for all.
        other = "the average over all rows" if self.target == "overlap" else "the effect on each row"
        return f"{sentence} Effects differ between rows ({_p(self.heterogeneity)}): this is not {other}."

    def _rows(self) -> list[tuple[str, str]]:
        overlap = self.overlap
        rows = [
            ("method", METHODS[self.method]),
            ("estimated", self.estimand),
            ("standard error", f"{self.standard_error:.4g}, if {ERRORS[self.errors]}"),
            ("p-value", _p(self.p_value).removeprefix("p ")),
            ("one effect for all rows", _p(self.heterogeneity)),
            ("parties", f"{len(self.parties)}"),
            ("rows", f"{self.n_rows}, {self.n_treated} of them treated"),
            (
                "as many rows of equal weight",
                f"{overlap.effective_treated:.0f} treated, {overlap.effective_untreated:.0f} not",
            ),
            ("scores within 0.02 of 0 or 1", f"{overlap.n_clipped} rows"),
            (
                "largest difference of the weighted arms",
                "{}, {:+.2f} standard deviations".format(*self.largest_imbalance),
            ),
        ]
        if self.n_groups < self.n_rows:
            rows.append(("means of rows", f"{self.n_groups}; the standard error counts these"))
        if self.trim is not None:
            rows.append((f"left out, scores beyond {self.trim:g} and {1 - self.trim:g}", f"{self.n_trimmed} rows"))
        return rows

    def __str__(self) -> str:
        return self.to_text()

    def to_text(self) -> str:
        """Return all of it in lines."""
        return "\n".join([self.sentence, *(f"  {name}: {value}" for name, value in self._rows())])

    def to_html(self) -> str:
        """Return all of it as a page."""
        rows = "".join(f"<tr><th>{html.escape(a)}</th><td>{html.escape(b)}</td></tr>" for a, b in self._rows())
        return (
            '<!doctype html><html lang="en"><meta charset="utf-8"><title>Effect of treatment</title>'
            "<style>body{font-family:sans-serif;max-width:42em;margin:2em auto}th{text-align:left;padding-right:2em;"
            f"font-weight:normal;color:#555}}</style><p>{html.escape(self.sentence)}</p><table>{rows}</table></html>"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return all figures as JSON can hold them."""
        figures = {each.name: getattr(self, each.name) for each in fields(self) if each.name != "integrator_"}
        overlap = asdict(self.overlap)
        for name in ("edges", "treated", "untreated"):
            overlap[name] = list(overlap[name])
        balance = {name: list(pair) for name, pair in self.balance.items()}
        as_json = {"interval": list(self.interval), "parties": list(self.parties), "overlap": overlap}
        return figures | as_json | {"balance": balance, "estimand": self.estimand, "sentence": self.sentence}

    def plot_overlap(self, ax: Axes | None = None) -> Axes:
        """Draw a histogram of the scores, the treated upwards and the others downwards.

        Without axes, a new figure is made, which no window shows.  MissingExtraError if matplotlib is not installed.
        """
        axes = ax or _make_axes((6.4, 3.6))
        if ax is None:
            axes.spines[["top", "right"]].set_visible(False)
        edges = np.asarray(self.overlap.edges)
        width = edges[1] - edges[0]
        axes.bar(
            edges[:-1], self.overlap.treated, width, align="edge", color="#0072B2", edgecolor="white", label="treated"
        )
        down = -np.asarray(self.overlap.untreated)
        axes.bar(edges[:-1], down, width, align="edge", color="#D55E00", edgecolor="white", label="not treated")
        axes.axhline(0.0, color="0.3", linewidth=0.8)
        axes.set_xlim(0.0, 1.0)
        axes.set_xlabel("propensity score", fontsize=9)
        axes.set_ylabel("rows", fontsize=9)
        # Downwards is a side, and no negative number of rows.
        axes.yaxis.set_major_formatter(lambda rows, _: f"{abs(rows):g}")
        axes.legend(frameon=False, fontsize=8)
        return axes

    def plot_balance(self, ax: Axes | None = None) -> Axes:
        """Draw the arms' difference in each component and party, without weights and with them (a love plot).

        The figure and errors are as in `plot_overlap`.
        """
        axes = ax or _make_axes((6.4, 1.2 + 0.22 * len(self.balance)))
        places = np.arange(len(self.balance))
        for column, (words, colour) in enumerate([("as they are", "0.6"), ("weighted", "#0072B2")]):
            at = [abs(pair[column]) for pair in self.balance.values()]
            axes.plot(at, places, "o", color=colour, label=words)
        axes.axvline(_IMBALANCED, color="0.3", linewidth=0.8, linestyle=":")
        axes.set_yticks(places, list(self.balance), fontsize=8)
        axes.invert_yaxis()
        axes.set_xlim(left=0.0)
        axes.set_xlabel("difference of the arms, in standard deviations", fontsize=9)
        axes.legend(frameon=False, fontsize=8)
        return axes

    def _repr_html_(self) -> str:
        return card("Effect of treatment", f"<p>{html.escape(self.sentence)}</p>", table(self._rows()))


def _make_axes(size: tuple[float, float]) -> Axes:
    axes: Axes = require("matplotlib.figure", "plots").Figure(figsize=size, layout="constrained").subplots()
    return axes


def _p(value: float) -> str:
    return "p below 0.001" if value < 0.001 else f"p {value:.3f}"


_DIFFERS = 0.05
"""p-value of Wald's test below which effects are said to differ between rows."""
_IMBALANCED = 0.1
"""Standardised difference from which arms are usually called unbalanced."""
_CHANCE = 2.0
"""Standard errors.  In simulations balanced arms gave a warning in 0 to 3 % of studies."""
_FEWEST_CLUSTERS = 5
"""Parties for errors by party; with fewer, their variance is hardly known."""
_MANY_CLIPPED = 0.05
"""Part of the rows with scores near 0 or 1 from which overlap is poor."""
_MISALIGNED = 0.15
_OFF_STEP = 1e-6


@one_thread
def estimate_effect(  # noqa: PLR0913
    shares: Iterable[Share],
    integrator: BaseIntegrator,
    *,
    target: str | None = None,
    method: str = "auto",
    errors: str = "rows",
    folds: int = 5,
    horizon: float | None = None,
    outcome_model: Any | None = None,
    propensity_model: Any | None = None,
    trim: float | None = None,
    confidence: float = 0.95,
    random_state: int | np.random.RandomState | None = None,
) -> EffectEstimate:
    """Estimate the effect of a treatment from the parties' shares: representations, treatments and outcomes.

    Parameters
    ----------
    shares : iterable of Share
        One from each party, with targets of `effect_target`.
    integrator : BaseIntegrator
        ``LTI(fit_intercept=True)`` with as many components as the parties' representations have columns; cloned before
        it is fitted.
    target : {"ATE", "ATT", "overlap"}, optional
        On average over all rows, the treated ones, or rows weighted by e(1 - e) with their propensity e.  By default
        "overlap" if the method is "plr", and "ATE" otherwise.
    method : {"auto", "plr", "aipw", "ipw"}, default="auto"
        * "aipw", `doubly_robust`: of all rows, or of the treated ones.
        * "plr", `partially_linear`: weighted by overlap.  All averages are the same if the effect is.
        * "ipw", `inverse_probability_weighting`, or for times to events `survival_difference`.

        "auto" is "plr" if the target is "overlap", "ipw" for times to events if rows are shared as they are, and "aipw"
        otherwise.  "plr" and "aipw" take times to events as pseudo-values.
    errors : {"rows", "parties"}, default="rows"
        The units that are independent.  "parties" asks for the effect at parties like these, if effects differ between
        parties: errors are clustered by party, and quantiles are Student's with one degree of freedom less than
        parties.
    folds : int, default=5
        For models that predict left-out rows, drawn by party and arm.  Rows that are one mean are in one fold.
    horizon : float, optional
        For times to events: when survival is compared, in the unit of the times.
    outcome_model : estimator, optional
        Linear regression by default.  Both models see the components and an indicator of each party.
    propensity_model : classifier, optional
        `WhitenedLogisticRegression` by default.
    trim : float, optional
        Leave out rows with a score below `trim` or above ``1 - trim``; the effect is that of the rows kept then.
    confidence : float, default=0.95
        Level of the interval.
    random_state : int, RandomState or None, default=None
        Draws the folds.

    Raises
    ------
    ValueError
        If a parameter has no meaning.
    AgreementError
        If targets are not treatments with outcomes.
    EffectError
        If rows were changed so that intervals would not hold: by noise, made of anchor rows, or grouped by anything
        but the treatment; if an arm has too few rows, or no party both arms; if there are fewer than five parties for
        errors by party; if a method does not serve for means of rows.

    Warns
    -----
    EffectWarning
        If arms overlap little, or differ after weighting by more than 0.1 standard deviations and than by chance, a
        party has one arm only, parties are badly aligned, maps use kernels and so lose part of the columns, or a
        horizon lies between the steps to which parties have rounded their times.

    Notes
    -----
    If all rows are shared by full-rank linear maps and aligned affinely, estimates are those of the combined raw
    columns.  Information lost on the way is not adjusted for.

    A party's usual treatment and outcome are adjusted for, as each has a level of its own in all models.  Slopes are
    common, and censoring of times is taken to be alike at all parties.

    Rows that were averaged within each arm are adjusted for without bias if outcomes are about linear in the columns,
    and standard errors count groups.  Weighting needs the scores of single rows, and is refused.

    Examples
    --------
    >>> import numpy as np
    >>> import datacollab as dc
    >>> from datacollab.effects import estimate_effect
    >>> from datacollab.targets import effect_target
    >>> rng = np.random.default_rng(0)
    >>> X, public = rng.normal(size=(400, 4)), rng.normal(size=(50, 4))
    >>> t = (X[:, 0] + rng.logistic(size=400) > 0).astype(int)
    >>> y = effect_target(t, 2 * t + 3 * X[:, 0] + rng.normal(size=400))
    >>> f = dc.obfuscator("pca", n_components=4)
    >>> parties = [dc.Party(k, f).fit(X[k::4], y[k::4]) for k in range(4)]
    >>> shares = [party.share(public) for party in parties]
    >>> effect = estimate_effect(shares, dc.LTI(4, fit_intercept=True), random_state=0)
    >>> abs(effect.estimate - 2) < 3 * effect.standard_error
    True
    """
    rows = combine_rows(shares, integrator)
    target = target or ("overlap" if method == "plr" else "ATE")
    if target not in TARGETS or method not in {"auto", *METHODS} or errors not in ERRORS:
        raise ValueError(
            f"target must be one of {list(TARGETS)}, method 'auto' or one of {list(METHODS)}, and errors one of "
            f"{list(ERRORS)}; got {target!r}, {method!r} and {errors!r}."
        )
    _check_parameters(rows, trim, confidence, horizon, outcome_model, propensity_model)
    method = _choose_method(rows, target, method)
    _check_method(rows, target, method, errors)
    rows, n_trimmed = _trim(rows, folds, propensity_model, trim, random_state)
    splits = effect_folds(rows.treatment, rows.groups, folds, random_state, party=rows.party)
    X = rows.adjusted_for
    t = rows.treatment
    scores = propensity_scores(X, t, splits, propensity_model)
    overlap = overlap_of(scores, t, target)
    # Balance is that under the weights used: "ipw" makes them of scores fitted to all rows.
    used = scores
    if method == "ipw" and propensity_model is None:
        used = propensity_scores(X, t, None)
    balance = balance_of(rows, used, target)
    between = ((rows.anchors - rows.anchors.mean(axis=0)) ** 2).sum()
    misalignment = float(between / ((rows.anchors - rows.anchors.mean(axis=(0, 1))) ** 2).sum())
    _warn(rows, target, overlap, balance, misalignment, horizon)

    both: dict[str, Any] = {"outcome_model": outcome_model, "propensity_model": propensity_model}
    weights: dict[str, Any] = {"target": target, "propensity_model": propensity_model}
    if method == "plr":
        estimated = partially_linear(X, t, _outcome(rows, horizon), splits, **both)
    elif method == "aipw":
        estimated = doubly_robust(X, t, _outcome(rows, horizon), splits, target=target, **both)
    elif horizon is not None:
        ends = rows.target
        estimated = survival_difference(X, t, ends["event"], ends["time"], splits, horizon=horizon, **weights)
    else:
        estimated = inverse_probability_weighting(X, t, _outcome(rows, None), splits, **weights)
    value = estimated.value
    error = estimated.standard_error(rows.groups)
    quantiles = norm
    if errors == "parties":
        # Few clusters: the usual factor, and Student's quantiles.
        n_clusters = len(np.unique(rows.party))
        error = estimated.standard_error(rows.party) * float(np.sqrt(n_clusters / (n_clusters - 1)))
        quantiles = student(n_clusters - 1)
    reach = float(quantiles.ppf(0.5 + confidence / 2)) * error
    # Without any error, 0 is certain or impossible.
    p_value = float(value == 0)
    if error > 0:
        p_value = float(2 * quantiles.sf(abs(value) / error))
    return EffectEstimate(
        estimate=value,
        standard_error=error,
        interval=(value - reach, value + reach),
        confidence=confidence,
        p_value=p_value,
        target=target,
        method=method,
        errors=errors,
        heterogeneity=_heterogeneity(rows, scores, _outcome(rows, horizon), splits, outcome_model),
        horizon=horizon,
        n_rows=len(t),
        n_treated=int(t.sum()),
        n_groups=len(np.unique(rows.groups)),
        n_trimmed=n_trimmed,
        trim=trim,
        misalignment=misalignment,
        overlap=overlap,
        balance=balance,
        parties=rows.parties,
        integrator_=rows.integrator,
    )


def _check_parameters(
    rows: CombinedRows,
    trim: float | None,
    confidence: float,
    horizon: float | None,
    outcome_model: Any | None,
    propensity_model: Any | None,
) -> None:
    if not 0 < confidence < 1 or not (trim is None or 0 < trim < 0.5):
        raise ValueError(f"confidence must be in (0, 1) and trim None or in (0, 0.5); got {confidence!r}, {trim!r}.")
    if rows.is_survival and (horizon is None or not 0 < horizon < np.inf):
        raise ValueError("Outcomes are times to events; give a horizon above 0, in the unit of the times.")
    if not rows.is_survival and horizon is not None:
        raise ValueError("Outcomes are numbers, so horizon must be None.")
    if propensity_model is not None and not is_classifier(propensity_model):
        raise TypeError(f"propensity_model must be a classifier; got {type(propensity_model).__name__}.")
    is_numbers = rows.is_survival or not np.isin(rows.target["outcome"], (0.0, 1.0)).all()
    # Pseudo-values of survival lie outside 0 and 1, too.
    if outcome_model is not None and is_classifier(outcome_model) and is_numbers:
        raise ValueError("outcome_model is a classifier, but outcomes are not 0 and 1; give a regressor.")


def _choose_method(rows: CombinedRows, target: str, method: str) -> str:
    """Return the method; with "auto", the one for the target and the kind of rows."""
    if method != "auto":
        return method
    if target == "overlap":
        return "plr"
    # Curves are weighted row by row, for which means of rows have no scores.
    if rows.is_survival and not rows.is_grouped:
        return "ipw"
    return "aipw"


def _check_method(rows: CombinedRows, target: str, method: str, errors: str) -> None:
    # Residuals on residuals weigh each row by its overlap.
    if (method == "plr") != (target == "overlap"):
        raise ValueError(
            "method='plr' takes target='overlap', and no other does, as it averages effects by overlap; got "
            f"method={method!r} and target={target!r}."
        )
    # Scores of means are farther from one half than the rows' scores are.
    if method == "ipw" and rows.is_grouped:
        raise EffectError(
            "Some shared rows are means of several records, and method='ipw' needs each record's own score: means of "
            "either arm lie closer together than records do. Take method='aipw'."
        )
    n_clusters = len(rows.parties)
    if errors == "parties" and n_clusters < _FEWEST_CLUSTERS:
        raise EffectError(
            f"errors='parties' needs {_FEWEST_CLUSTERS} parties; there are {n_clusters}, which tell too little of how "
            "parties differ. Take errors='rows'."
        )


def _trim(
    rows: CombinedRows, folds: int, model: Any | None, trim: float | None, random_state: Any
) -> tuple[CombinedRows, int]:
    if trim is None:
        return rows, 0
    splits = effect_folds(rows.treatment, rows.groups, folds, random_state, party=rows.party)
    scores = propensity_scores(rows.adjusted_for, rows.treatment, splits, model)
    kept = (scores >= trim) & (scores <= 1 - trim)
    # Where scores separate the arms, trimming takes one of them whole.
    if len(np.unique(rows.treatment[kept])) < 2:
        raise EffectError(f"With trim={trim:g} no row of one arm is left. Lower it, or look at what sets arms apart.")
    return rows.take(kept), int((~kept).sum())


def _outcome(rows: CombinedRows, horizon: float | None) -> FloatArray:
    """Return numbers, or pseudo-values of survival at the horizon, arm by arm, shape (n_rows,)."""
    if horizon is None:
        return np.asarray(rows.target["outcome"], dtype=np.float64)
    values = np.empty(len(rows.target))
    for arm in (0, 1):
        own: NDArray[np.bool_] = rows.treatment == arm
        values[own] = pseudo_values(rows.target["event"][own], rows.target["time"][own], horizon)
    return values


def _heterogeneity(
    rows: CombinedRows, scores: FloatArray, outcome: FloatArray, splits: Folds, outcome_model: Any | None
) -> float:
    """Return the p-value for an effect that is the same for all rows, parties and degrees of overlap."""
    r_y = outcome - cross_fit(outcome_model, rows.adjusted_for, outcome, splits)
    # The overlap is among the columns, since weights by it are one way in which averages come to differ.
    by = np.column_stack([rows.adjusted_for, scores * (1.0 - scores)])
    return _fit_residuals(by, rows.treatment - scores, r_y, rows.groups)[1]


def _warn(
    rows: CombinedRows,
    target: str,
    overlap: Overlap,
    balance: dict[str, tuple[float, float]],
    misalignment: float,
    horizon: float | None,
) -> None:
    n_rows = len(rows.target)
    texts = []
    name, after = _largest(balance)
    # How far apart arms of so few rows, or means of rows, usually are if nothing sets them apart.
    per_group = n_rows / (rows.groups.max() + 1)
    by_chance = np.sqrt(per_group / overlap.effective_treated + per_group / overlap.effective_untreated)
    if abs(after) > max(_IMBALANCED, _CHANCE * by_chance):
        texts.append(
            f"The arms differ by {abs(after):.2f} standard deviations in {name} after weighting, beyond "
            f"{_IMBALANCED:g}: models of treatment and outcome have to make up for it. Look at plot_balance."
        )
    one_arm = [rows.parties[k] for k in np.unique(rows.party) if len(np.unique(rows.treatment[rows.party == k])) < 2]
    if one_arm:
        texts.append(
            f"Parties {one_arm!r} have rows of one arm only: what the other would be there is extrapolated. Leave them "
            "out, or take method='plr', in which they hardly count."
        )
    # Weights by overlap are near 0 there.
    if overlap.n_clipped > _MANY_CLIPPED * n_rows and target != "overlap":
        texts.append(
            f"{overlap.n_clipped} of {n_rows} rows have a propensity within 0.02 of 0 or 1: there are hardly rows of "
            "the other arm that are like them. Set trim, look at plot_overlap, or take method='plr'."
        )
    if misalignment > _MISALIGNED:
        texts.append(
            f"Parties' representations of the anchor differ in {misalignment:.0%} of their variance after alignment, "
            "so that rows of different parties cannot be compared well. Take LTI(fit_intercept=True), with no more "
            "components than the parties' maps have in common."
        )
    if any(isinstance(g, KernelMap) for g in rows.integrator.integration_functions_.values()):
        texts.append(
            "Kernel integration functions lose part of the columns, which is not adjusted for then: in simulations "
            "intervals covered less often than they say. Take LTI(fit_intercept=True)."
        )
    if horizon is not None:
        texts += _describe_steps(rows, horizon)
    for text in texts:
        warnings.warn(text, EffectWarning, stacklevel=4)


def _describe_steps(rows: CombinedRows, horizon: float) -> list[str]:
    """Return a warning if times were rounded up past the horizon: an event before it counts as later then."""
    steps = [step for step in rows.time_steps if step is not None]
    off = [step for step in steps if abs(horizon / step - round(horizon / step)) > _OFF_STEP]
    if not off:
        return []
    ends = ", ".join(f"{at:g}" for at in sorted({step * np.floor(horizon / step * (1 + 1e-9)) for step in off}))
    return [
        f"{len(off)} of {len(rows.parties)} parties have rounded times up to steps, and horizon={horizon:g} is no "
        f"multiple of these; their survival is that at {ends}. Take a horizon that is a multiple of everybody's steps."
    ]


@dataclass(frozen=True, kw_only=True, eq=False)
class ConditionalEffects:
    r"""Effects :math:`\tau(\hat x) = a + b^\top \hat x`, which each party computes for its rows.

    Attributes
    ----------
    n_rows, n_groups : int
        Rows, and rows or means of rows that are independent.
    p_value : float
        For an effect that is the same for all rows, by Wald's test.
    estimator_ : LinearRegression
        Predicts the effect from the collaboration representation.
    integrator_ : BaseIntegrator
        Fitted.
    """

    n_rows: int
    n_groups: int
    p_value: float
    estimator_: LinearRegression = field(repr=False)
    integrator_: BaseIntegrator = field(repr=False)

    def party_model(self, party: PartyName) -> PartyModel:
        """Return one party's model: ``party.predict(X, model)`` is the effect of treatment on each row then.

        Raise UnknownPartyError if the party took no part.
        """
        maps = self.integrator_.integration_functions_
        if party not in maps:
            raise UnknownPartyError(f"Party {party!r} took no part; the parties are {list(maps)!r}.")
        return PartyModel(party=party, integration_function=maps[party], estimator=self.estimator_)


@one_thread
def conditional_effects(
    shares: Iterable[Share],
    integrator: BaseIntegrator,
    *,
    folds: int = 5,
    outcome_model: Any | None = None,
    propensity_model: Any | None = None,
    random_state: int | np.random.RandomState | None = None,
) -> ConditionalEffects:
    r"""Fit effects that are linear in the collaboration representation, by residuals on residuals [1]_ [2]_.

    .. math:: \min_{a, b} \sum_i \bigl(r^Y_i - r^T_i (a + b^\top \hat x_i)\bigr)^2

    The residuals r are outcome and treatment less their expectation given :math:`\hat x` and the party, rows left out.
    Arguments and errors are those of `estimate_effect`; outcomes are numbers, and times to events an AgreementError.

    References
    ----------
    .. [1] Robinson (1988). Root-N-consistent semiparametric regression. Econometrica 56(4), 931-954.
    .. [2] Nie and Wager (2021). Quasi-oracle estimation of heterogeneous treatment effects. Biometrika 108(2), 299-319.
    """
    rows = combine_rows(shares, integrator)
    if rows.is_survival:
        raise AgreementError("Conditional effects are on numbers; targets are times to events. Take estimate_effect.")
    X = rows.adjusted_for
    t = rows.treatment
    outcome = np.asarray(rows.target["outcome"], dtype=np.float64)
    splits = effect_folds(t, rows.groups, folds, random_state, party=rows.party)
    r_y = outcome - cross_fit(outcome_model, X, outcome, splits)
    r_t = t - propensity_scores(X, t, splits, propensity_model)
    estimator, p_value = _fit_residuals(rows.X, r_t, r_y, rows.groups)
    return ConditionalEffects(
        n_rows=len(t),
        n_groups=len(np.unique(rows.groups)),
        p_value=p_value,
        estimator_=estimator,
        integrator_=rows.integrator,
    )


def _fit_residuals(
    X: FloatArray, r_t: FloatArray, r_y: FloatArray, groups: NDArray[np.intp]
) -> tuple[LinearRegression, float]:
    """Return coefficients in the coordinates of X, and the p-value of b = 0 with errors by group.

    Scores of a group are divided by one less its leverage (HC3), without which few rows a column reject too often.
    """
    mean = X.mean(axis=0)
    U, s, Vt = np.linalg.svd(X - mean, full_matrices=False)
    kept = s > _RANK * max(float(s.max()), np.finfo(float).tiny)
    # Coordinates of covariance I: the test is the same in all, and directions of rounding are left out.
    whitened = U[:, kept] * np.sqrt(len(X))
    D = r_t[:, None] * np.column_stack([np.ones(len(X)), whitened])
    moment = D.T @ D
    # The first column is the average effect a, the others b in whitened coordinates.
    coefficients = np.linalg.lstsq(D, r_y, rcond=None)[0]
    scores = D * (r_y - D @ coefficients)[:, None]
    by_group = np.zeros((int(groups.max()) + 1, D.shape[1]))
    np.add.at(by_group, groups, scores)
    # A group's own pull on the coefficients, as of a row in HC3.
    leverage = np.bincount(groups, weights=(D * np.linalg.solve(moment, D.T).T).sum(axis=1))
    half = np.linalg.solve(moment, (by_group / np.maximum(1.0 - leverage, _RANK)[:, None]).T)
    covariance = half @ half.T
    b = coefficients[1:]
    statistic = 0.0
    if b.size:
        statistic = float(b @ np.linalg.solve(covariance[1:, 1:], b))
    # Back to coordinates of X, as a model that can be sent.
    plain = LinearRegression()
    # x = mean + u s V', and the whitened row is u times the root of n.
    plain.coef_ = (b / s[kept] * np.sqrt(len(X))) @ Vt[kept]
    plain.intercept_ = float(coefficients[0] - plain.coef_ @ mean)
    plain.n_features_in_ = X.shape[1]
    return plain, float(chi2.sf(statistic, max(b.size, 1)))
