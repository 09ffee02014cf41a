r"""Targets beyond the part that features tell, as read from a total, or from the model that comes back.

Features are made up or real.  Targets are made up: a smooth rule of the features, of variance 1, and normal noise of
variance 1 that nothing tells.  They are numbers, or two classes: whether rule and noise are above 0 together.  An
attacker's guesses are held against the part of others' targets that features do not tell; of people outside the total
they have a correlation of 0 with it.  With Φ = [v, 1] of the others' rows, their part of the total is

.. math:: Y = \Phi^\top t + E, \qquad t = \Phi w + e,

a linear model whose noise E is known and Gaussian: the posterior means of t and of e are the strongest linear attacks
on numbers.  Of two classes t is -1 or 1, and e is taken to be Gaussian.

Parties have as many rows each; 100 public rows with targets are in the total as well, and make the map.  Attackers:

* "together": analyst and all parties that collude, who know everybody's features, and their own rows, noise and secret;
* "party": these parties without the analyst, from the returned model's output for a person;
* "party, everybody's features": the same, who know these and the penalty, and turn the model back into sums;
* "analyst": alone, with everybody's features and the public rows, and without the secret; no party attacks.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal, get_args

import numpy as np
import scipy.linalg
from scipy.special import ndtr

from datacollab.sums import CommonMap, RidgeFromSums, RidgeSums

from ..pays.tables import Array, Table, load_table
from .playing import ALIKE, Roster, Variant, matrix_of, noise_factor, secret, units

N_WIDE = 150
N_WIDE_ROWS = 6000
N_COLUMNS = 10
N_PUBLIC = 100
LIMITS = (-3.0 * 2**0.5, 3.0 * 2**0.5)
"""Declared range: three standard deviations of the target."""
ETA = 0.5
_WEIGHTS = (0.1, 0.3, 1.0, 3.0, 10.0)
"""Prior standard deviations of w that attackers try."""
_ALIGNMENTS = (1.0, 10.0, 100.0, 1000.0)
"""By how much the analyst thinks that its alignment multiplies the noise's variance."""
_JITTER = 1e-9
"""Added to variances, so that matrices without noise can be solved."""
_MOST_ROWS = 8000
"""Rows of a table that a rule is standardised over, at most: pictures have 70,000."""

Target = Literal["numbers", "classes"]
TARGETS: tuple[Target, ...] = get_args(Target)
Readings = Iterator[tuple[str, str, float, float]]
"""Attacker, way of reading, correlation, and how often a class is rightly named: NaN of numbers."""


@dataclass(frozen=True, eq=False)
class AttackedWorld:
    """Rows in units of the map, and their targets' two parts; public rows first, the attackers', then the others'."""

    X: Array
    rule: Array
    noise: Array
    n_known: int
    """Public rows, and those of the attackers."""
    alike: bool = False
    """Whether all columns are of one kind."""


def table_of(name: str, data_dir: Path | None = None) -> Table:
    """Return a table of `pays`, or "wide": 150 independent columns, of which ten tell the class."""
    # Public tables are narrow, or hold most of their variance in few directions: this one does neither.
    if name != "wide":
        return load_table(name, data_dir)
    generator = np.random.default_rng(44)
    X = generator.normal(size=(N_WIDE_ROWS, N_WIDE))
    y = (0.6 * X[:, :10].sum(axis=1) + generator.logistic(size=len(X)) > 0).astype(np.int64)
    return Table(name=name, task="classification", rows=X / 8 + 0.5, y=y, columns=())


def draw_world(name: str, roster: Roster, n_others: int, seed: int, data_dir: Path | None = None) -> AttackedWorld:
    """Draw a world: "made-up" has ten normal columns, other names are those of tables.

    Raises
    ------
    ValueError
        If the table has too few rows for `n_others` of the parties that do not attack, and those that do.
    """
    generator = np.random.default_rng([seed, 41])
    n_known = N_PUBLIC + roster.n_known_beside(n_others)
    n = n_known + n_others
    if name == "made-up":
        X = generator.normal(size=(n, N_COLUMNS))
        rule = _draw_rule(X, X, generator)
    else:
        table = table_of(name, data_dir)
        index = generator.permutation(len(table.y))[:_MOST_ROWS]
        if n > len(index):
            raise ValueError(f"{name} has {len(index)} rows; {n} are wanted.")
        every = table.matrix(index, index[:N_PUBLIC]) / units(table.bounds)
        X = every[:n]
        rule = _draw_rule(every, X, generator)
    return AttackedWorld(X, rule, generator.normal(size=n), n_known, alike=name in ALIKE)


def _draw_rule(every: Array, X: Array, generator: np.random.Generator) -> Array:
    """Return a line and a wave along random directions of the standardised columns, of variance 1 over all rows."""
    mean = every.mean(axis=0)
    deviation = every.std(axis=0)
    # Columns that never vary, such as border pixels, have no standard score.
    used = deviation > 1e-9 * np.abs(every).max()
    # A line that the model can fit, and a wave that it fits in part.
    directions = np.linalg.qr(generator.normal(size=(int(used.sum()), 2)))[0]

    def bend(rows: Array) -> Array:
        P = ((rows - mean) / np.where(used, deviation, 1.0))[:, used] @ directions
        return np.asarray(P[:, 0] + np.sin(2 * P[:, 1]))

    over_all = bend(every)
    return np.asarray((bend(X) - over_all.mean()) / over_all.std())


class Scene:
    """A world in the common map, and its total."""

    def __init__(
        self, world: AttackedWorld, components: int, seed: int, roster: Roster, target: Target = "numbers"
    ) -> None:
        common = CommonMap.from_anchor(
            world.X[:N_PUBLIC], secret(seed), n_components=components, as_they_are=world.alike
        )
        self.v = common.transform(world.X)
        self.seed = seed
        self.roster = roster
        self.D = common.n_components
        y = world.rule + world.noise
        if target == "numbers":
            self.statistic = RidgeSums(self.D, limits=LIMITS, noise=1.0)
            self.contrast = np.ones(1)
            self.deviation = 2 / (LIMITS[1] - LIMITS[0])
            rule = self.statistic.encode(y)[:, 0] - world.noise * self.deviation
        else:
            # The columns of both classes say the same, with noise of their own: their difference is -1 or 1.
            y = (y > 0).astype(np.int64)
            self.statistic = RidgeSums(self.D, classes=(0, 1), noise=1.0)
            self.contrast = np.array([-1.0, 1.0])
            rule = 2 * ndtr(world.rule) - 1
            self.deviation = float(np.sqrt(1 - np.mean(rule**2)))
        self.target = self.statistic.encode(y) @ self.contrast
        self.features = np.column_stack([self.v, np.ones(len(self.v))])
        self.others = self.features[world.n_known :]
        self.rule = rule[world.n_known :]
        self.has_classes = target == "classes"
        self.beyond = self.target[world.n_known :] - self.rule
        self.exact = self.statistic.part(self.v, y)
        self.known = Known(self, world.n_known)
        self.public = Known(self, N_PUBLIC)

    def score(self, guess: Array) -> tuple[float, float]:
        """Return a guess's correlation with the part that features do not tell, and how often it names classes rightly.

        Attackers who name a class know the rule, and add the guess to it, on the scale that is best for people at
        large.
        """
        guess = guess[-len(self.beyond) :]
        correlation = float(np.corrcoef(guess, self.beyond)[0, 1])
        if not self.has_classes:
            return correlation, np.nan
        # The scale is the one that regression would find: attackers can learn it from people of their own.
        scaled = (guess - guess.mean()) / guess.std() * correlation * self.beyond.std()
        return correlation, self.rightly_named(self.rule + scaled)

    def rightly_named(self, outputs: Array) -> float:
        """Return how often the sign is that of the others' class."""
        return float(np.mean((outputs > 0) == (self.rule + self.beyond > 0)))

    def read(self, variant: Variant) -> Readings:
        """Yield each attacker's readings in every way."""
        s = variant.noise
        n_parties = self.roster.n_parties
        of_all = noise_factor(n_parties)
        of_others = noise_factor(n_parties, known=self.roster.n_colluding)
        generator = np.random.default_rng([self.seed, 42])
        own, left = generator.normal(size=(2, self.statistic.n_numbers)) * self.statistic.noise_of_each * s
        # Variances add up: the noise of all is the attackers' and the others'.
        own *= (of_all**2 - of_others**2) ** 0.5
        left *= of_others
        total = self.exact + own + left
        # Without a party the analyst knows no secret, and has to undo the map's rotation first.
        if self.roster.n_colluding == 0:
            yield from self._align(total, s * of_all)
            return
        if self.has_classes:
            yield "features alone", "rule", 0.0, self.rightly_named(self.rule)
        yield from self.known.readings("together", self.cross_moments(self.exact + left), s * of_others)
        model = self.statistic.solve(total, noise=s * of_all, least_penalty=variant.least)
        outputs = self.v @ self._slope(model) + float(model.intercept @ self.contrast)
        yield "party", "target", *self.score(outputs[-len(self.beyond) :] - self.rule)
        for weight in _WEIGHTS:
            guess = outputs - self.features @ self.known.fit(weight)
            yield "party", f"beyond, prior {weight:g}", *self.score(guess)
        yield from self._invert(model, own, s * of_others)

    def cross_moments(self, total: Array) -> Array:
        """Return Σ v t and Σ t of a total."""
        M = matrix_of(total, self.statistic.size)
        crossed = np.append(M[: self.D, self.D : -1] @ self.contrast / ETA, M[self.D : -1, -1] @ self.contrast / ETA**2)
        return np.asarray(crossed)

    def _slope(self, model: RidgeFromSums) -> Array:
        """Return W of a model, without the shrinkage of classes, which two classes share."""
        return np.asarray(model.coefficients @ self.contrast) / (model.reliability or (1.0,))[0]

    def _invert(self, model: RidgeFromSums, own: Array, noise: float) -> Readings:
        """W = (S + E + αI)⁻¹ b with S of the features: (S + αI) W is b less E W and the model's own noise."""
        n = len(self.v)
        w = self._slope(model)
        mean_v = self.v.mean(axis=0)
        mean_t = float((model.intercept + mean_v @ model.coefficients) @ self.contrast)
        S = (self.v - mean_v).T @ (self.v - mean_v) + model.alpha * np.eye(self.D)
        crossed = np.append(S @ w + n * mean_v * mean_t, n * mean_t)
        # The attackers subtract their own noise from moments and products alike.
        mine = self.cross_moments(own)
        mine[:-1] -= matrix_of(own, self.statistic.size)[: self.D, : self.D] @ w
        further = noise**2 / 2 * float(w @ w) * np.eye(self.D + 1)
        # The model's own noise of two classes is the same, with opposite signs.
        further[:-1, :-1] += model.spread * np.abs(self.contrast).sum() ** 2 * S
        yield from self.known.readings("party, everybody's features", crossed - mine, noise, further=further)

    def _align(self, total: Array, noise: float) -> Readings:
        """Join eigenvectors of both moments, with signs as a model of the public rows expects them."""
        turn = scipy.linalg.qr(np.random.default_rng(43).normal(size=(self.D, self.D)))[0]
        crossed = self.cross_moments(total)
        v = self.v @ turn
        _, U = scipy.linalg.eigh(matrix_of(total, self.statistic.size)[: self.D, : self.D])
        _, own = scipy.linalg.eigh(v.T @ v)
        guess = self.features @ self.public.fit(1.0)
        guess[:N_PUBLIC] = self.target[:N_PUBLIC]
        # Eigenvectors have no sign: the products with the target, as public rows predict it, decide.
        signs = np.sign((own.T @ (v.T @ guess)) * (U.T @ crossed[:-1]))
        aligned = np.append(turn @ (own @ (signs * (U.T @ crossed[:-1]))), crossed[-1])
        for factor in _ALIGNMENTS:
            yield from self.public.readings("analyst", aligned, noise, factor=factor)


class Known:
    """The first rows, whose targets an attacker knows, and the posterior of all others'."""

    def __init__(self, scene: Scene, n_known: int) -> None:
        self.scene = scene
        self.Phi = scene.features[:n_known]
        self.t = scene.target[:n_known]
        self.unknown = scene.features[n_known:]

    def fit(self, weight: float) -> Array:
        """Return w as known rows alone tell it."""
        return self._priors[weight][0]

    @cached_property
    def _priors(self) -> dict[float, tuple[Array, Array, Array]]:
        square = self.scene.deviation**2
        G = self.unknown.T @ self.unknown
        priors = {}
        for weight in _WEIGHTS:
            # Own and public rows are a first data set for w; the total is the second.
            precision = self.Phi.T @ self.Phi / square + np.eye(self.Phi.shape[1]) / weight**2
            P = np.asarray(scipy.linalg.inv(precision))
            priors[weight] = P @ (self.Phi.T @ self.t) / square, P @ G, G @ P @ G + square * G
        return priors

    def readings(
        self, attacker: str, crossed: Array, noise: float, *, further: Array | float = 0.0, factor: float = 1.0
    ) -> Readings:
        """Yield scores of the posterior means of t, less the rule, and of e."""
        n = len(self.scene.beyond)
        for weight in _WEIGHTS:
            target, beyond_rule = self.posterior(crossed, noise, weight, further=further, factor=factor)
            way = f"prior {weight:g}, alignment {factor:g}"
            yield attacker, f"target, {way}", *self.scene.score(target[-n:] - self.scene.rule)
            yield attacker, f"beyond, {way}", *self.scene.score(beyond_rule)

    def posterior(
        self, crossed: Array, noise: float, weight: float, *, further: Array | float = 0.0, factor: float = 1.0
    ) -> tuple[Array, Array]:
        """Return posterior means of the unknown targets, and of their part that features do not tell.

        `crossed`, shape (D + 1,), are sums over all rows, and `noise` is that of the total's diagonal, whose variance
        is multiplied with `factor`.  The sums' other noise has the covariance `further`, shape (D + 1, D + 1).
        """
        D = self.scene.D
        square = self.scene.deviation**2
        prior, PG, covariance = self._priors[weight]
        # Off the diagonal, the total's noise has half the variance; each column of a class brings its own.
        variance = noise**2 / 2 * float(self.scene.contrast @ self.scene.contrast) * factor
        left = crossed - self.Phi.T @ self.t - self.unknown.T @ (self.unknown @ prior)
        A = covariance + further
        A[np.diag_indices(D + 1)] += np.append(np.full(D, variance / ETA**2), variance / ETA**4) + _JITTER
        solved = scipy.linalg.solve(A, left, assume_a="pos")
        beyond_rule = square * self.unknown @ solved
        return self.unknown @ (prior + PG @ solved) + beyond_rule, beyond_rule
