"""Measure, at home, what a party could win and what it would pay."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils.validation import _num_samples

from .._threads import one_thread
from .._validation import FloatArray, check_single_targets, count_missing
from ..errors import AgreementError, DataCollabWarning
from ._blend import Blend, Blender, ClassBlender, NumberBlender, Opinions
from ._defence import Defence, are_numbers
from ._foresight import Foresight, power_law, resampled_means
from ._own_models import Candidate, OwnData, equal_rows, fold_numbers, own_candidates
from ._paired_intervals import Estimate
from ._party import Party
from ._personal_model import TAU
from ._table_encoder import TableEncoder

__all__ = ["foresee"]

PARTS = ((0.25, 6), (0.5, 3))
"""Parts of the rows to learn from, and how often; then all, each row left out."""
N_FOLDS = 5
N_TREES = 50
N_DRAWS = 2000
SURE = 0.9
PUBLIC = ("public", "public_target")
FEWEST = 8
"""A quarter of fewer rows would be a single one."""

Progress = Callable[[str], None]


@one_thread
def foresee(
    X: ArrayLike,
    y: ArrayLike,
    *,
    obfuscator: Any,
    n_total_rows: int | None = None,
    parties: Sequence[int] | None = None,
    fit_on: Any = None,
    defences: Sequence[Defence] = (),
    anchor: ArrayLike | None = None,
    anchor_target: ArrayLike | None = None,
    public: ArrayLike | None = None,
    public_target: ArrayLike | None = None,
    random_state: int | np.random.RandomState | None = None,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> Foresight:
    """Say, before anything leaves, whether collaboration can be expected to pay.

    The error of the best own model with a quarter, half and all of the rows, always on own rows that it did not see,
    is continued to the rows of all parties by a power law.  Against that stands what the representation costs: the
    same model on f_k(X) and on X, and on defended rows where there are defences.

    Parameters
    ----------
    X : array-like or dataframe of shape (n_samples, n_features)
        The party's own raw rows.
    y : array-like of shape (n_samples,)
        Floating-point numbers that are not all whole, or of more than twenty kinds, are predicted as numbers, all else
        as classes.
    obfuscator : transformer
        As for `Party`.
    n_total_rows : int, optional
        Rows of all parties together, this one's included.
    parties : sequence of int, optional
        Instead of it, the row counts of all parties.
    fit_on, defences
        As for `Party`.
    anchor : array-like or dataframe of shape (n_anchors, n_features), optional
        For defences that depend on it; by default the public rows, then `fit_on`, then own ones, which stay here.
    anchor_target : array-like of shape (n_anchors,), optional
    public : array-like or dataframe of shape (n_public, n_features), optional
        Rows that the party has besides; with their targets they are learnt from, alone and together.
    public_target : array-like of shape (n_public,), optional
    random_state : int, RandomState or None, default=None
        Of everything drawn, the obfuscator's secret too: nothing of it is shared.
    n_jobs : int, optional
        Of forests.
    progress : callable, optional
        Called with the name of each step before it starts.

    Returns
    -------
    Foresight

    Raises
    ------
    AgreementError
        When there are fewer than eight own rows or three different ones, when tables and targets do not fit
        together, or when the rows of all parties are not more than the own ones.
    ObfuscationError
        When the obfuscator or a defence cannot be applied.

    Notes
    -----
    Leaves the party: nothing.

    Examples
    --------
    >>> import datacollab as dc
    >>> X, y = dc.datasets.load("digits")
    >>> plan = dc.foresee(X[:40], y[:40], n_total_rows=400, obfuscator=dc.obfuscator("pca", 20), random_state=0)
    >>> plan.pays in ("yes", "no", "unclear")
    True
    >>> plan.sizes
    (10, 20, 40)
    """
    say = progress or (lambda step: None)
    generator = check_random_state(random_state)
    own, beside, n_classes, unit = _aims(y, _num_samples(X), public, public_target)
    total = _total(n_total_rows, parties, len(own))
    table = TableEncoder(X, public if len(beside) else None, "this party")
    rows = table.encode(X)
    if equal_rows(rows).max() < 2:
        raise AgreementError("At least three different own rows are wanted, to learn, choose and test models.")
    more = table.encode(public) if len(beside) else rows[:0]
    bench = _Bench(n_classes, generator, n_jobs)
    columns, sizes = [], []
    for part, repeats in PARTS:
        say(f"learning from {part:g} of the rows")
        losses, size = _with_part(bench, table, rows, own, more, beside, part, repeats)
        columns.append(losses)
        sizes.append(size)
    say("learning from all rows")
    columns.append(bench.left_out(bench.data(rows, own, more, beside, table.common_units)))
    sizes.append(len(own) + len(beside))
    folds = fold_numbers(equal_rows(rows), own, min(N_FOLDS, len(own)), generator)
    ways: list[tuple[Defence, ...]] = [(), tuple(defences)] if defences else [()]
    say("learning from raw rows")
    columns.append(_by_folds(bench, folds, own, beside, lambda kept: (rows[kept], own[kept], more, rows)))
    held = {"anchor": anchor, "anchor_target": anchor_target}
    held |= {"public": public, "public_target": public_target} if len(beside) else dict.fromkeys(PUBLIC)
    for way in ways:
        say("learning from representations" if not way else "learning from defended representations")

        def represented(kept: NDArray[np.intp], way: tuple[Defence, ...] = way) -> tuple[Any, ...]:
            party = Party("this party", obfuscator, fit_on=fit_on, defences=way, random_state=_seed(generator))
            return _represented(party, X, own, kept, **held)

        columns.append(_by_folds(bench, folds, own, beside, represented))
    metric = "RMSE" if n_classes is None else "error rate"
    return _foresight(np.column_stack(columns), sizes, total, len(own), metric, unit, generator)


class _Bench:
    """Fits the best own model, again and again, in a quick version."""

    def __init__(self, n_classes: int | None, generator: np.random.RandomState, n_jobs: int | None) -> None:
        self.n_classes, self.generator, self.n_jobs = n_classes, generator, n_jobs

    def data(
        self, rows: FloatArray, target: FloatArray, more: FloatArray, beside: FloatArray, units: FloatArray | None
    ) -> OwnData:
        aims = np.concatenate([target, beside])
        return OwnData(
            rows=np.concatenate([rows, more]),
            target=aims if self.n_classes is None else aims.astype(np.intp),
            n_own=len(rows),
            n_classes=self.n_classes,
            common_units=units,
        )

    def losses(self, data: OwnData, tested: FloatArray, target: FloatArray) -> FloatArray:
        """Loss on each tested row of the best model that the data give."""
        candidates, blend, _ = self._settled(data)
        outputs = [candidates[place].fit()(tested) for place in blend.own]
        return self._loss(blend.speak(outputs, np.zeros((len(tested), self.n_classes or 1))).alone, target)

    def left_out(self, data: OwnData) -> FloatArray:
        """Loss on each own row of the best model without it."""
        return self._loss(self._settled(data)[2].alone, data.target[: data.n_own])

    def _settled(self, data: OwnData) -> tuple[list[Candidate], Blend, Opinions]:
        candidates = own_candidates(data, self.generator, n_trees=N_TREES, n_jobs=self.n_jobs, thorough=False)
        own, beside = data.target[: data.n_own], data.target[data.n_own :]
        nothing = np.full((data.n_own, self.n_classes or 1), np.nan)
        blender: Blender
        if self.n_classes is None:
            blender = NumberBlender(candidates, nothing, own, TAU, beside)
        else:
            blender = ClassBlender(candidates, nothing, own, TAU, beside, np.arange(self.n_classes), own_mix=False)
        folds = fold_numbers(equal_rows(data.rows[: data.n_own]), own, min(N_FOLDS, data.n_own), self.generator)
        return candidates, *blender.settle(folds)

    def _loss(self, said: FloatArray, target: FloatArray) -> FloatArray:
        if self.n_classes is None:
            return np.asarray((said - target) ** 2)
        return np.asarray(said.argmax(axis=1) != target, dtype=np.float64)


def _with_part(
    bench: _Bench,
    table: TableEncoder,
    rows: FloatArray,
    own: FloatArray,
    more: FloatArray,
    beside: FloatArray,
    part: float,
    repeats: int,
) -> tuple[FloatArray, int]:
    """Mean loss on each own row of models that learnt from a part of the others, and of how many rows."""
    groups = equal_rows(rows)
    n, n_more = max(2, round(part * len(own))), round(part * len(beside))
    sums, counts, sizes = np.zeros(len(own)), np.zeros(len(own)), []
    while counts.min() == 0 or repeats > 0:
        repeats -= 1
        drawn = _drawn(groups, groups[counts == 0], n, bench.generator)
        sizes.append(len(drawn))
        public = bench.generator.permutation(len(beside))[:n_more]
        tested = np.flatnonzero(~np.isin(groups, groups[drawn]))
        data = bench.data(rows[drawn], own[drawn], more[public], beside[public], table.common_units)
        sums[tested] += bench.losses(data, rows[tested], own[tested])
        counts[tested] += 1
    return sums / counts, round(np.mean(sizes)) + n_more


def _drawn(
    groups: NDArray[np.intp], untested: NDArray[np.intp], n_rows: int, generator: np.random.RandomState
) -> NDArray[np.intp]:
    """At most so many rows of groups drawn one after the other, an untested group (if there is any) not among them."""
    order = generator.permutation(groups.max() + 1)
    # Left out first, so that each round tests a group that none did before, and rounds come to an end.
    left_out = order[np.isin(order, untested)][-1] if len(untested) else order[-1]
    shuffled = generator.permutation(len(groups))
    shuffled = shuffled[groups[shuffled] != left_out]
    ranked = shuffled[np.argsort(np.argsort(order)[groups[shuffled]], kind="stable")]
    # Two groups at least, for a model is chosen by rows that it did not learn from.
    second = np.flatnonzero(groups[ranked] != groups[ranked[0]])[0]
    return np.append(ranked[: min(n_rows - 1, second)], ranked[second:])[:n_rows]


def _by_folds(
    bench: _Bench,
    folds: NDArray[np.intp],
    own: FloatArray,
    beside: FloatArray,
    rows_for: Callable[[NDArray[np.intp]], tuple[Any, ...]],
) -> FloatArray:
    """Loss on each own row of models that learnt from the other folds, in whatever form these rows are."""
    losses = np.empty(len(own))
    for fold in np.unique(folds):
        kept, tested = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        learnt, target, more, everything = rows_for(kept)
        encoder = TableEncoder(learnt, more if len(more) else None, "this party")
        data = bench.data(
            encoder.encode(learnt), target, encoder.encode(more) if len(more) else more, beside, encoder.common_units
        )
        losses[tested] = bench.losses(data, encoder.encode(everything[tested]), own[tested])
    return losses


def _represented(
    party: Party,
    X: Any,
    own: FloatArray,
    kept: NDArray[np.intp],
    *,
    public: Any,
    public_target: Any,
    anchor: Any,
    anchor_target: Any,
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """What the party would share of the kept rows, and f_k of labelled public rows and of all own ones."""
    table = _safe_indexing(X, kept)
    with warnings.catch_warnings():
        # Nothing of this is shared: what is warned of here comes again, where it counts.
        warnings.simplefilter("ignore", DataCollabWarning)
        party.fit(table, own[kept])
        if anchor is None and public is not None:
            anchor, anchor_target = public, public_target
        elif anchor is None:
            anchor = table if party.fit_on is None else party.fit_on
        share = party.share(anchor, anchor_target)
    everything = party.obfuscate(X)
    more = everything[:0] if public is None else party.obfuscate(public)
    return share.representation, share.target, more, everything


def _foresight(
    losses: FloatArray,
    sizes: Sequence[int],
    n_total: int,
    n_own: int,
    metric: str,
    unit: float,
    generator: np.random.RandomState,
) -> Foresight:
    """Figures and decision from each own row's losses: the curve's, then raw, represented and defended by folds."""
    n_sizes, n_public = len(sizes), sizes[-1] - n_own
    x = np.array(sizes, dtype=np.float64)

    def figures(means: FloatArray) -> dict[str, FloatArray]:
        # Half a mistake more, on one row more, keeps logarithms from minus infinity.
        smoothed = means if metric == "RMSE" else (means * n_own + 0.5) / (n_own + 1)
        errors = unit * np.sqrt(means) if metric == "RMSE" else means
        law = power_law(
            x, np.maximum(unit * np.sqrt(smoothed) if metric == "RMSE" else smoothed, 1e-300)[..., :n_sizes]
        )
        told = {f"size {place}": errors[..., place] for place in range(n_sizes)}
        told["gain"] = law(n_own + n_public) - law(n_total + n_public)
        told["obfuscator"] = errors[..., n_sizes + 1] - errors[..., n_sizes]
        told["defence"] = errors[..., -1] - errors[..., n_sizes + 1]
        alone = told[f"size {n_sizes - 1}"]
        # More than all error cannot go.
        told["net"] = np.minimum(told["gain"] - told["obfuscator"] - told["defence"], alone)
        told["together"] = alone - told["net"]
        told["exponent"] = law.exponent
        return told

    point, drawn = figures(losses.mean(axis=0)), figures(resampled_means(losses, N_DRAWS, generator))

    def estimate(name: str) -> Estimate:
        value, (low, high) = float(point[name]), np.quantile(drawn[name], [0.025, 0.975])
        return Estimate(value=value, low=min(value, float(low)), high=max(value, float(high)))

    probability = float(np.mean(drawn["net"] > 0))
    net = estimate("net")
    errors = tuple(estimate(f"size {place}") for place in range(n_sizes))
    return Foresight(
        pays="no" if net.value <= 0 else "yes" if probability >= SURE else "unclear",
        metric=metric,
        n_rows=n_own,
        n_public=n_public,
        n_total_rows=n_total,
        sizes=tuple(sizes),
        errors=errors,
        exponent=float(point["exponent"]),
        alone=errors[-1],
        gain=estimate("gain"),
        obfuscator_cost=estimate("obfuscator"),
        defence_cost=estimate("defence") if losses.shape[1] > n_sizes + 2 else None,
        net_gain=net,
        probability=probability,
        together=estimate("together"),
    )


def _aims(y: Any, n_rows: int, public: Any, public_target: Any) -> tuple[FloatArray, FloatArray, int | None, float]:
    """Own and public targets as positions of classes or standardised numbers, how many classes, and the unit."""
    target = np.asarray(y)
    labels = target[:0] if public_target is None else np.asarray(public_target)
    check_single_targets(target, "y", AgreementError)
    check_single_targets(labels, "public_target", AgreementError)
    if target.shape != (n_rows,) or (
        public_target is not None and (public is None or len(labels) != _num_samples(public))
    ):
        raise AgreementError(
            f"A target is wanted for each of the {n_rows} own rows, and for each public row or none; got shapes "
            f"{target.shape} and {labels.shape}."
        )
    if n_rows < FEWEST:
        raise AgreementError(f"At least {FEWEST} own rows are wanted, to learn from a part of them; got {n_rows}.")
    if count_missing(target) or count_missing(labels):
        raise AgreementError("Some targets are missing; leave out rows without a target.")
    if are_numbers(target):
        both = np.concatenate([target, labels.astype(np.float64)])
        unit = float(both.std()) or 1.0
        return (target - both.mean()) / unit, (labels - both.mean()) / unit, None, unit
    both = np.concatenate([target.astype(object), labels.astype(object)])
    classes, codes = np.unique(both.tolist(), return_inverse=True)
    return codes[:n_rows].astype(np.float64), codes[n_rows:].astype(np.float64), len(classes), 1.0


def _total(n_total_rows: int | None, parties: Sequence[int] | None, n_own: int) -> int:
    if (n_total_rows is None) == (parties is None):
        raise AgreementError("Give either n_total_rows, the rows of all parties, or parties, the rows of each.")
    total = int(n_total_rows if n_total_rows is not None else sum(parties or ()))
    if total <= n_own:
        raise AgreementError(
            f"The rows of all parties, {total}, must be more than the {n_own} own ones, which are among them."
        )
    return total


def _seed(generator: np.random.RandomState) -> np.random.RandomState:
    return np.random.RandomState(generator.randint(np.iinfo(np.int32).max))
