r"""What targets beyond what features tell can be read from a total, or from the model that comes back.

Features are made up or real.  Targets are made up: a smooth rule of the features, of variance 1, and noise of variance
1 that nothing tells.  What an attacker reads of others' targets is correlated with that noise; of people outside the
total it reads 0.  With Φ = [v, 1] of the others' rows, their part of the total is

.. math:: Y = \Phi^\top t + E, \qquad t = \Phi w + e,

a Gaussian linear model whose noise E is known: the posterior means of t and of e are the strongest linear attacks.

There are ten parties, and 100 public rows with targets, which the map is made from.  Attackers:

* "together": analyst and one party, who know everybody's features, and that party's rows, noise and secret;
* "five together": the same with the noise that is left when all parties that may collude do;
* "party": one party, from what the returned model says of a person;
* "party, everybody's features": one party that knows these and the penalty turns the model back into sums;
* "analyst": alone, with everybody's features and the public rows, and without the secret.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import scipy.linalg

from datacollab.sums import CommonMap, RidgeFromSums, RidgeSums

from ..pays.columns import Array
from ..pays.tables import Table, load_table
from .plan import ALIKE, Variant
from .playing import beyond, matrix_of, secret, units

N_WIDE, N_WIDE_ROWS = 150, 6000
N_COLUMNS, N_PUBLIC, N_OWN, N_PARTIES = 10, 100, 50, 10
LIMITS = (-3.0 * 2**0.5, 3.0 * 2**0.5)
"""Declared range: three standard deviations of the target."""
ETA = 0.5
_WEIGHTS = (0.1, 0.3, 1.0, 3.0, 10.0)
"""Prior standard deviations of w that attackers try."""
_ALIGNMENTS = (1.0, 10.0, 100.0, 1000.0)
"""By how much the analyst thinks that its alignment multiplies the noise's variance."""

_JITTER = 1e-9
"""Added to variances, so that matrices without noise can be solved."""

Readings = Iterator[tuple[str, str, float]]
"""Attacker, how it reads, and the correlation."""


@dataclass(frozen=True, eq=False)
class World:
    """Rows in units of the map, public ones first, then one party's, then the others'; and their targets' two parts."""

    X: Array
    rule: Array
    beyond: Array
    alike: bool = False
    """Whether all columns are of one kind."""


def table_of(name: str, data_dir: Path | None = None) -> Table:
    """Return a table of `pays`, or "wide": 150 independent columns, of which ten tell the class."""
    if name != "wide":
        return load_table(name, data_dir)
    generator = np.random.default_rng(44)
    X = generator.normal(size=(N_WIDE_ROWS, N_WIDE))
    y = (0.6 * X[:, :10].sum(axis=1) + generator.logistic(size=len(X)) > 0).astype(np.int64)
    return Table(name=name, task="classification", rows=X / 8 + 0.5, y=y, columns=())


def world_of(name: str, n_rows: int, seed: int, data_dir: Path | None = None) -> World:
    """Draw a world: "made-up" has ten normal columns, other names are those of tables."""
    generator = np.random.default_rng([seed, 41])
    n = N_PUBLIC + N_OWN + n_rows
    if name == "made-up":
        X = generator.normal(size=(n, N_COLUMNS))
        rule = _rule(X, X, generator)
    else:
        table = table_of(name, data_dir)
        index = generator.permutation(len(table.y))
        if n > len(index):
            raise ValueError(f"{name} has {len(index)} rows; {n} are wanted.")
        every = table.matrix(index, index[:N_PUBLIC]) / units(table.bounds)
        X, rule = every[:n], _rule(every, every[:n], generator)
    return World(X, rule, generator.normal(size=n), alike=name in ALIKE)


def _rule(every: Array, X: Array, generator: np.random.Generator) -> Array:
    """A line and a wave along random directions of the standardised columns, of variance 1 over all rows."""
    mean, deviation = every.mean(axis=0), every.std(axis=0)
    used = deviation > 1e-9 * np.abs(every).max()
    directions = np.linalg.qr(generator.normal(size=(int(used.sum()), 2)))[0]

    def made(rows: Array) -> Array:
        P = ((rows - mean) / np.where(used, deviation, 1.0))[:, used] @ directions
        return np.asarray(P[:, 0] + np.sin(2 * P[:, 1]))

    over = made(every)
    return np.asarray((made(X) - over.mean()) / over.std())


class Scene:
    """A world in the common map."""

    def __init__(self, world: World, components: int, seed: int) -> None:
        public = world.X[:N_PUBLIC]
        common = CommonMap.from_anchor(public, secret(seed), n_components=components, as_they_are=world.alike)
        self.v, self.seed, self.D = common.transform(world.X), seed, common.n_components
        self.statistic = RidgeSums(self.D, limits=LIMITS, noise=1.0)
        self.y = world.rule + world.beyond
        per_unit = 2 / (LIMITS[1] - LIMITS[0])
        self.target = self.statistic.encode(self.y)[:, 0]
        self.features = np.column_stack([self.v, np.ones(len(self.v))])
        self.others = self.features[N_PUBLIC + N_OWN :]
        self.beyond = world.beyond[N_PUBLIC + N_OWN :] * per_unit
        self.rule = self.target[N_PUBLIC + N_OWN :] - self.beyond
        self.deviation = per_unit
        self.exact = self.statistic.part(self.v, self.y)
        self.known = Known(self, N_PUBLIC + N_OWN)
        self.public = Known(self, N_PUBLIC)

    def correlation(self, read: Array) -> float:
        """Hold what was read against what features do not tell."""
        return float(np.corrcoef(read[-len(self.beyond) :], self.beyond)[0, 1])

    def read(self, variant: Variant) -> Readings:
        """What every attacker reads in every way."""
        s, generator = variant.noise, np.random.default_rng([self.seed, 42])
        own, others = generator.normal(size=(2, self.statistic.n_numbers)) * self.statistic.noise_of_each * s
        own, others = own * (beyond(N_PARTIES) ** 2 - beyond(N_PARTIES, known=1) ** 2) ** 0.5, others
        left = others * beyond(N_PARTIES, known=1)
        yield from self.known.readings("together", self.crossed(self.exact + left), s * beyond(N_PARTIES, known=1))
        yield from self.known.readings("five together", self.crossed(self.exact + others), s)
        total = self.exact + own + left
        model = self.statistic.solve(total, noise=s * beyond(N_PARTIES), least_penalty=variant.least)
        said = self.v @ model.coefficients[:, 0] + model.intercept[0]
        yield "party", "target", self.correlation(said[-len(self.beyond) :] - self.rule)
        for weight in _WEIGHTS:
            yield "party", f"beyond, prior {weight:g}", self.correlation(said - self.features @ self.known.fit(weight))
        yield from self._inverted(model, own, s)
        yield from self._aligned(total, s * beyond(N_PARTIES))

    def crossed(self, total: Array) -> Array:
        """Σ v t and Σ t of a total."""
        M, D = self.matrix(total), self.D
        return np.asarray(np.r_[M[:D, D] / ETA, M[D, D + 1] / ETA**2])

    def matrix(self, total: Array) -> Array:
        """Σ u uᵀ of a total."""
        return matrix_of(total, self.D + 2)

    def _inverted(self, model: RidgeFromSums, own: Array, s: float) -> Readings:
        """W = (S + E + αI)⁻¹ b with S of the features: (S + αI) W is b less E W and what the model's own noise adds."""
        n, mean_v, w = len(self.v), self.v.mean(axis=0), model.coefficients[:, 0]
        mean_t = float(model.intercept[0] + mean_v @ w)
        S = (self.v - mean_v).T @ (self.v - mean_v) + model.alpha * np.eye(self.D)
        crossed = np.r_[S @ w + n * mean_v * mean_t, n * mean_t]
        mine = self.crossed(own)
        mine[:-1] -= self.matrix(own)[: self.D, : self.D] @ w
        left = s * beyond(N_PARTIES, known=1)
        further = left**2 / 2 * float(w @ w) * np.eye(self.D + 1)
        further[:-1, :-1] += model.spread * S
        yield from self.known.readings("party, everybody's features", crossed - mine, left, further=further)

    def _aligned(self, total: Array, noise: float) -> Readings:
        """Eigenvectors of both moments, signs from what a model of the public rows expects."""
        turn = scipy.linalg.qr(np.random.default_rng(43).normal(size=(self.D, self.D)))[0]
        crossed, v = self.crossed(total), self.v @ turn
        _, U = scipy.linalg.eigh(self.matrix(total)[: self.D, : self.D])
        _, own = scipy.linalg.eigh(v.T @ v)
        guess = self.features @ self.public.fit(1.0)
        guess[:N_PUBLIC] = self.target[:N_PUBLIC]
        signs = np.sign((own.T @ (v.T @ guess)) * (U.T @ crossed[:-1]))
        found = np.r_[turn @ (own @ (signs * (U.T @ crossed[:-1]))), crossed[-1]]
        for factor in _ALIGNMENTS:
            yield from self.public.readings("analyst", found, noise, factor=factor)


class Known:
    """The first rows, whose targets an attacker knows, and the posterior of all others'."""

    def __init__(self, scene: Scene, n_known: int) -> None:
        self.scene = scene
        self.Phi, self.t, self.rest = scene.features[:n_known], scene.target[:n_known], scene.features[n_known:]

    def fit(self, weight: float) -> Array:
        """What known rows alone say of w."""
        return self._priors[weight][0]

    @cached_property
    def _priors(self) -> dict[float, tuple[Array, Array, Array]]:
        found, square, G = {}, self.scene.deviation**2, self.rest.T @ self.rest
        for weight in _WEIGHTS:
            precision = self.Phi.T @ self.Phi / square + np.eye(self.Phi.shape[1]) / weight**2
            P = np.asarray(scipy.linalg.inv(precision))
            found[weight] = P @ (self.Phi.T @ self.t) / square, P @ G, G @ P @ G + square * G
        return found

    def readings(
        self, attacker: str, crossed: Array, noise: float, *, further: Array | float = 0.0, factor: float = 1.0
    ) -> Readings:
        """Correlations of the posterior means of t, less the rule, and of e."""
        n = len(self.scene.beyond)
        for weight in _WEIGHTS:
            target, rest = self.posterior(crossed, noise, weight, further=further, factor=factor)
            way = f"prior {weight:g}, alignment {factor:g}"
            yield attacker, f"target, {way}", self.scene.correlation(target[-n:] - self.scene.rule)
            yield attacker, f"beyond, {way}", self.scene.correlation(rest)

    def posterior(
        self, crossed: Array, noise: float, weight: float, *, further: Array | float = 0.0, factor: float = 1.0
    ) -> tuple[Array, Array]:
        """Posterior means of the rest's targets, and of their part that features do not tell.

        Parameters
        ----------
        crossed : ndarray of shape (D + 1,)
            Of all rows.
        noise : float
            That of the total's diagonal.
        weight : float
        further : ndarray of shape (D + 1, D + 1), or 0
            Covariance of what else is in the sums.
        factor : float
            Multiplied with the variances of the total's noise.
        """
        square, D = self.scene.deviation**2, self.scene.D
        prior, PG, covariance = self._priors[weight]
        variances = np.r_[np.full(D, noise**2 / 2 / ETA**2), noise**2 / 2 / ETA**4] * factor
        left = crossed - self.Phi.T @ self.t - self.rest.T @ (self.rest @ prior)
        A = covariance + further
        A[np.diag_indices(D + 1)] += variances + _JITTER
        solved = scipy.linalg.solve(A, left, assume_a="pos")
        rest = square * self.rest @ solved
        return self.rest @ (prior + PG @ solved) + rest, rest
