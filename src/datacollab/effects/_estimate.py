"""Estimate an effect from the parties' shares, and show it."""

from __future__ import annotations

import html
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm
from sklearn.base import is_classifier

from .._notebooks import card, table
from .._threads import one_thread
from .._validation import FloatArray, PartyName
from ..analyst import BaseIntegrator
from ..errors import EffectError, EffectWarning
from ..model import KernelMap
from ..share import Share
from ._combined import CombinedRows, combined_rows
from ._estimators import (
    doubly_robust,
    inverse_probability_weighting,
    partially_linear,
    propensity_scores,
    pseudo_values,
    survival_difference,
)
from ._learners import effect_folds
from ._overlap import Overlap, overlap_axes, overlap_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["METHODS", "TARGETS", "Effect", "estimate_effect"]

METHODS = {
    "plr": "partially linear regression",
    "aipw": "augmented inverse probability weighting (doubly robust)",
    "ipw": "inverse probability weighting",
}
TARGETS = {"ATE": "all rows", "ATT": "the treated rows"}


@dataclass(frozen=True, kw_only=True, eq=False)
class Effect:
    """What treatment does to the outcome, given that all that matters for both is among the columns.

    Attributes
    ----------
    estimate : float
        Of the outcome with treatment less without; of times to an event, of the probability to be without it at the
        horizon.
    standard_error : float
    interval : tuple of float
    confidence : float
        Of the interval.
    p_value : float
        Two-sided, of no effect.
    target : {"ATE", "ATT"}
    method : {"plr", "aipw", "ipw"}
    horizon : float or None
        In the unit of the times.
    n_rows, n_treated : int
        That were counted, and the treated among them.
    n_groups : int
        Rows, or means of rows, that are independent.
    n_trimmed : int
        Rows left out for scores beyond `trim`.
    trim : float or None
    misalignment : float
        Part of the variance of the anchor's collaboration representation in which the parties differ; 0 where all are
        aligned.
    overlap : Overlap
    parties : tuple of str or int
    integrator_ : BaseIntegrator
        Fitted.

    Notes
    -----
    The interval is about which rows were observed.  It knows nothing of causes that are not among the columns, nor of
    columns that parties' maps have lost.
    """

    estimate: float
    standard_error: float
    interval: tuple[float, float]
    confidence: float
    p_value: float
    target: str
    method: str
    horizon: float | None
    n_rows: int
    n_treated: int
    n_groups: int
    n_trimmed: int
    trim: float | None
    misalignment: float
    overlap: Overlap
    parties: tuple[PartyName, ...]
    integrator_: BaseIntegrator = field(repr=False)

    @property
    def sentence(self) -> str:
        """The estimate in words."""
        low, high = self.interval
        what = (
            "on the outcome"
            if self.horizon is None
            else f"on the probability to be without the event at {self.horizon:g}"
        )
        return (
            f"Effect of treatment {what}, on average over {TARGETS[self.target]}: {self.estimate:.4g} "
            f"({self.confidence:.0%} interval {low:.4g} to {high:.4g})."
        )

    def _rows(self) -> list[tuple[str, str]]:
        overlap = self.overlap
        rows = [
            ("method", METHODS[self.method]),
            ("standard error", f"{self.standard_error:.4g}"),
            ("p-value", "below 0.001" if self.p_value < 0.001 else f"{self.p_value:.3f}"),
            ("parties", f"{len(self.parties)}"),
            ("rows", f"{self.n_rows}, of which {self.n_treated} treated"),
            (
                "as many rows of equal weight",
                f"{overlap.effective_treated:.0f} treated, {overlap.effective_untreated:.0f} not",
            ),
            ("scores within 0.02 of 0 or 1", f"{overlap.n_clipped} rows"),
        ]
        if self.n_groups < self.n_rows:
            rows.append(("means of rows", f"{self.n_groups}; the standard error counts these"))
        if self.trim is not None:
            rows.append((f"left out, scores beyond {self.trim:g} and {1 - self.trim:g}", f"{self.n_trimmed} rows"))
        return rows

    def to_text(self) -> str:
        """All of it in lines."""
        return "\n".join([self.sentence, *(f"  {name}: {value}" for name, value in self._rows())])

    def to_html(self, path: str | Path | None = None) -> str:
        """All of it as a page, written to a file where a path is given."""
        rows = "".join(f"<tr><th>{html.escape(a)}</th><td>{html.escape(b)}</td></tr>" for a, b in self._rows())
        page = (
            '<!doctype html><html lang="en"><meta charset="utf-8"><title>Effect of treatment</title>'
            "<style>body{font-family:sans-serif;max-width:42em;margin:2em auto}th{text-align:left;padding-right:2em;"
            f"font-weight:normal;color:#555}}</style><p>{html.escape(self.sentence)}</p><table>{rows}</table></html>"
        )
        if path is not None:
            Path(path).write_text(page, encoding="utf-8")
        return page

    def to_dict(self) -> dict[str, Any]:
        """All figures as JSON can hold them."""
        names = (
            *("estimate", "standard_error", "confidence", "p_value", "target", "method", "horizon", "n_rows"),
            *("n_treated", "n_groups", "n_trimmed", "trim", "misalignment"),
        )
        return {name: getattr(self, name) for name in names} | {
            "interval": list(self.interval),
            "overlap": self.overlap.to_dict(),
            "parties": list(self.parties),
            "sentence": self.sentence,
        }

    def plot_overlap(self, ax: Axes | None = None) -> Axes:
        """Draw how many rows of each arm have which score.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            In which to draw; otherwise a figure is made, which no window shows.

        Raises
        ------
        MissingExtraError
            When matplotlib is not installed.
        """
        return overlap_axes(self.overlap, ax)

    def __str__(self) -> str:
        return self.to_text()

    def _repr_html_(self) -> str:
        return card("Effect of treatment", f"<p>{html.escape(self.sentence)}</p>", table(self._rows()))


_MANY_CLIPPED = 0.05
_MISALIGNED = 0.15
_OFF_STEP = 1e-6


@one_thread
def estimate_effect(
    shares: Iterable[Share],
    integrator: BaseIntegrator,
    *,
    target: str = "ATE",
    method: str = "auto",
    folds: int = 5,
    horizon: float | None = None,
    outcome_model: Any | None = None,
    propensity_model: Any | None = None,
    trim: float | None = None,
    confidence: float = 0.95,
    random_state: int | np.random.RandomState | None = None,
) -> Effect:
    """Effect of a treatment, from what the parties share: representations, treatments and outcomes.

    Parameters
    ----------
    shares : iterable of Share
        One from each party, with targets of `effect_target`.
    integrator : BaseIntegrator
        ``LTI(fit_intercept=True)`` with as many components as the parties' representations have columns; cloned before
        it is fitted.
    target : {"ATE", "ATT"}, default="ATE"
        On average over all rows, or over the treated ones.
    method : {"auto", "plr", "aipw", "ipw"}, default="auto"
        * "plr", `partially_linear`: for an effect that is about the same for all rows.
        * "aipw", `doubly_robust`: for effects that differ.
        * "ipw", `inverse_probability_weighting`, or for times to events `survival_difference`.

        "auto" is "plr" ("aipw" where the target is "ATT"), and "ipw" for times to events where rows are shared as they
        are.  "plr" and "aipw" take times to events as pseudo-values.
    folds : int, default=5
        For models of which rows are left out.  Rows that are one mean are in one fold.
    horizon : float, optional
        For times to events: when survival is compared, in the unit of the times.
    outcome_model : estimator, optional
        Linear regression by default.
    propensity_model : classifier, optional
        `WhitenedLogisticRegression` by default.
    trim : float, optional
        Rows with a score below `trim` or above ``1 - trim`` are left out; the effect is of the others then.
    confidence : float, default=0.95
        Of the interval.
    random_state : int, RandomState or None, default=None
        Of the folds.

    Returns
    -------
    Effect

    Raises
    ------
    ValueError
        When a parameter has no meaning.
    AgreementError
        When targets are not treatments with outcomes.
    EffectError
        When rows were changed so that intervals would not hold: by noise, made of anchor rows, or grouped by anything
        but the treatment; when an arm has too few rows; when a method does not serve for means of rows.

    Warns
    -----
    EffectWarning
        When arms overlap little, parties are badly aligned, maps are of kernels and so lose part of the columns, or a
        horizon lies between the steps to which parties have rounded their times.

    Notes
    -----
    Where all rows are shared by full-rank linear maps and aligned affinely, estimates are those of the pooled raw
    columns.  What is lost on the way is not adjusted for.

    Rows that were averaged within each arm are adjusted for without bias where outcomes are about linear in the
    columns, and standard errors count groups.  Weighting needs the scores of single rows, and is refused.

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
    >>> naive = y["outcome"][t == 1].mean() - y["outcome"][t == 0].mean()
    >>> bool(naive > effect.interval[1])
    True
    """
    rows = combined_rows(shares, integrator)
    method = _checked(rows, target, method, horizon, outcome_model, propensity_model, trim, confidence)
    rows, trimmed = _trimmed(rows, folds, propensity_model, trim, random_state)
    splits = effect_folds(rows.treatment, rows.groups, folds, random_state)
    scores = propensity_scores(rows.X, rows.treatment, splits, propensity_model)
    overlap = overlap_of(scores, rows.treatment, target)
    misalignment = _misalignment(rows)
    _warn(rows, overlap, misalignment)
    _warn_of_steps(rows, horizon)

    X, t = rows.X, rows.treatment
    if method == "plr":
        models = {"outcome_model": outcome_model, "propensity_model": propensity_model}
        found = partially_linear(X, t, _outcome(rows, horizon), splits, **models)
    elif method == "aipw":
        models = {"outcome_model": outcome_model, "propensity_model": propensity_model}
        found = doubly_robust(X, t, _outcome(rows, horizon), splits, target=target, **models)
    elif horizon is not None:
        event, time = rows.target["event"], rows.target["time"]
        weights: Any = {"target": target, "propensity_model": propensity_model}
        found = survival_difference(X, t, event, time, splits, horizon=horizon, **weights)
    else:
        weights = {"target": target, "propensity_model": propensity_model}
        found = inverse_probability_weighting(X, t, _outcome(rows, None), splits, **weights)
    value, error = found.value, found.standard_error(rows.groups)
    reach = float(norm.ppf(0.5 + confidence / 2)) * error
    return Effect(
        estimate=value,
        standard_error=error,
        interval=(value - reach, value + reach),
        confidence=confidence,
        p_value=float(2 * norm.sf(abs(value) / error)) if error > 0 else float(value == 0),
        target=target,
        method=method,
        horizon=horizon,
        n_rows=len(t),
        n_treated=int(t.sum()),
        n_groups=len(np.unique(rows.groups)),
        n_trimmed=trimmed,
        trim=trim,
        misalignment=misalignment,
        overlap=overlap,
        parties=rows.parties,
        integrator_=rows.integrator,
    )


def _checked(
    rows: CombinedRows,
    target: str,
    method: str,
    horizon: float | None,
    outcome_model: Any | None,
    propensity_model: Any | None,
    trim: float | None,
    confidence: float,
) -> str:
    """The method, where everything fits together."""
    if target not in TARGETS or method not in {"auto", *METHODS}:
        raise ValueError(
            f"target must be one of {list(TARGETS)} and method 'auto' or one of {list(METHODS)}; got {target!r} and "
            f"{method!r}."
        )
    if not 0 < confidence < 1 or not (trim is None or 0 < trim < 0.5):
        raise ValueError(f"confidence must be in (0, 1) and trim None or in (0, 0.5); got {confidence!r}, {trim!r}.")
    if rows.is_survival != (horizon is not None) or (horizon is not None and not 0 < horizon < np.inf):
        raise ValueError(
            "Outcomes are times to events, so a horizon above 0 is wanted, in the unit of the times."
            if rows.is_survival
            else "Outcomes are numbers, so horizon must be None."
        )
    if propensity_model is not None and not is_classifier(propensity_model):
        raise TypeError(f"propensity_model must be a classifier; got {type(propensity_model).__name__}.")
    is_numbers = rows.is_survival or not np.isin(rows.target["outcome"], (0.0, 1.0)).all()
    if outcome_model is not None and is_classifier(outcome_model) and is_numbers:
        raise ValueError("outcome_model is a classifier, but outcomes are not 0 and 1; give a regressor.")
    if method == "auto":
        method = "ipw" if rows.is_survival and not rows.is_grouped else "plr" if target == "ATE" else "aipw"
    if method == "plr" and target == "ATT":
        raise ValueError("method='plr' takes the effect to be the same for all rows; for target='ATT' take 'aipw'.")
    if method == "ipw" and rows.is_grouped:
        raise EffectError(
            "Some shared rows are means of several records, and method='ipw' needs each record's own score: means of "
            "either arm lie closer together than records do. Take method='plr'."
        )
    return method


def _trimmed(
    rows: CombinedRows, folds: int, model: Any | None, trim: float | None, random_state: Any
) -> tuple[CombinedRows, int]:
    if trim is None:
        return rows, 0
    splits = effect_folds(rows.treatment, rows.groups, folds, random_state)
    scores = propensity_scores(rows.X, rows.treatment, splits, model)
    kept = (scores >= trim) & (scores <= 1 - trim)
    if len(np.unique(rows.treatment[kept])) < 2:
        raise EffectError(f"With trim={trim:g} no row of one arm is left. Lower it, or look at what sets arms apart.")
    return rows.kept(kept), int((~kept).sum())


def _outcome(rows: CombinedRows, horizon: float | None) -> FloatArray:
    """Numbers, or pseudo-values of survival at the horizon, arm by arm, shape (n_rows,)."""
    if horizon is None:
        return np.asarray(rows.target["outcome"], dtype=np.float64)
    values, t = np.empty(len(rows.target)), rows.treatment
    for arm in (0, 1):
        own: NDArray[np.bool_] = t == arm
        values[own] = pseudo_values(rows.target["event"][own], rows.target["time"][own], horizon)
    return values


def _misalignment(rows: CombinedRows) -> float:
    """Part of the variance of the mapped anchor that is between parties; see `Effect`."""
    mapped = rows.anchors
    between = ((mapped - mapped.mean(axis=0)) ** 2).sum()
    total = ((mapped - mapped.mean(axis=(0, 1))) ** 2).sum()
    return float(between / total)


def _warn(rows: CombinedRows, overlap: Overlap, misalignment: float) -> None:
    n_rows = len(rows.target)
    if overlap.n_clipped > _MANY_CLIPPED * n_rows:
        warnings.warn(
            f"{overlap.n_clipped} of {n_rows} rows have a propensity within 0.02 of 0 or 1: there are hardly rows of "
            "the other arm that are like them. Set trim, look at plot_overlap, or take method='plr'.",
            EffectWarning,
            stacklevel=4,
        )
    if misalignment > _MISALIGNED:
        warnings.warn(
            f"Parties' representations of the anchor differ in {misalignment:.0%} of their variance after alignment, "
            "so that rows of different parties cannot be compared well. Take LTI(fit_intercept=True), with no more "
            "components than the parties' maps have in common.",
            EffectWarning,
            stacklevel=4,
        )
    if any(isinstance(g, KernelMap) for g in rows.integrator.integration_functions_.values()):
        warnings.warn(
            "Kernel integration functions lose part of the columns, which is not adjusted for then: in simulations "
            "intervals covered less often than they say. Take LTI(fit_intercept=True).",
            EffectWarning,
            stacklevel=4,
        )


def _warn_of_steps(rows: CombinedRows, horizon: float | None) -> None:
    """Where times were rounded up, what happened between a step and the horizon counts as later."""
    if horizon is None:
        return
    off = {
        party: step * np.floor(horizon / step * (1 + 1e-9))
        for party, step in zip(rows.parties, rows.time_steps, strict=True)
        if step is not None and abs(horizon / step - round(horizon / step)) > _OFF_STEP
    }
    if off:
        seen = ", ".join(f"{at:g}" for at in sorted(set(off.values())))
        warnings.warn(
            f"{len(off)} of {len(rows.parties)} parties have rounded times up to steps of which horizon={horizon:g} is "
            f"no multiple; of theirs, survival is that at {seen}. Take a horizon that is a multiple of everybody's "
            "steps.",
            EffectWarning,
            stacklevel=4,
        )
