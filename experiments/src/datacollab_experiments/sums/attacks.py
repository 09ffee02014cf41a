r"""What targets beyond what features tell can be read from a total, or from the model that comes back.

Targets are a rule of ten columns and noise as large.  What an attacker reads of others' targets is held against that
noise, which no features tell.  Attackers hold rows of their own and the public rows, with targets, all of which are in
the total, and everybody's features.  With Φ = [v, 1] of the others' rows, their part of the total is

.. math:: Y = \Phi^\top t + E, \qquad t = \Phi w + e,

a Gaussian linear model whose noise E is known: the posterior means of t and of e are the strongest linear attacks.

Attackers are four: analyst and party together; a party alone from what the returned model says of a person; a party
alone that knows everybody's features, and the penalty, and turns the model back into sums; the analyst alone, who has
the total, the features and the public rows, and not the secret.  "target" is the posterior mean of t less the rule;
"beyond" that of e.  Somebody who knows the rule itself reads most, and nobody does: an upper end.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np
import scipy.linalg
from sklearn.ensemble import RandomForestRegressor
from sklearn.model_selection import cross_val_predict

from datacollab.sums import CommonMap, RidgeFromSums, RidgeSums

from ..pays.columns import Array
from .further import TARGET_RANGE, further_table
from .playing import beyond, secret

N_COLUMNS, N_ANCHORS, N_KNOWN, N_PUBLIC = 10, 300, 150, 100
LIMITS = (-3.0 * 2**0.5, 3.0 * 2**0.5)
"""Declared range: three standard deviations of the target."""
ETA = 0.5
_WEIGHTS = (0.1, 0.3, 1.0, 3.0, 10.0)
"""Prior standard deviations of w that attackers try; the best is taken with hindsight."""
_ALIGNMENTS = (1.0, 10.0, 100.0, 1000.0)
"""By how much the analyst thinks that its alignment multiplies the noise's variance."""
_JITTER = 1e-12

Correlations = dict[str, float]
"""By "attacker|how": how is what was read, and which prior."""


@dataclass(frozen=True, eq=False)
class World:
    """Rows, their targets and what no features tell of these.

    Attributes
    ----------
    anchor : ndarray of shape (n_anchors, n_columns)
    X : ndarray of shape (n_rows, n_columns)
        Of the others.
    rule, beyond : ndarray of shape (n_rows,)
        Target = rule + beyond.
    known_rows, known_targets : ndarray
        Rows in the total whose targets the attacker knows.
    limits : tuple of float
    """

    anchor: Array
    X: Array
    rule: Array
    beyond: Array
    known_rows: Array
    known_targets: Array
    limits: tuple[float, float] = LIMITS


def made_world(n_rows: int, seed: int) -> World:
    """Normal columns; a rule partly linear and partly not, of variance 1; noise of variance 1."""
    generator = np.random.default_rng([seed, 41])
    n = N_ANCHORS + N_KNOWN + n_rows
    X = generator.normal(size=(n, N_COLUMNS))
    first, second = np.linalg.qr(generator.normal(size=(N_COLUMNS, 2)))[0].T
    rule = X @ first + np.sin(2 * X @ second)
    rule /= np.sqrt(1.0 + (1 - np.exp(-8)) / 2)
    noise = generator.normal(size=n)
    known, others = slice(N_ANCHORS, N_ANCHORS + N_KNOWN), slice(N_ANCHORS + N_KNOWN, None)
    return World(X[:N_ANCHORS], X[others], rule[others], noise[others], X[known], (rule + noise)[known])


@dataclass(frozen=True, eq=False)
class Scene:
    """A world in the common map, its noisy total and the model made of it.

    Attributes
    ----------
    features, known : ndarray of shape (n_rows, D + 1)
        Φ of the others, and of rows whose targets are known.
    rule, beyond, known_target : ndarray
        In the units of the statistic's encoded targets.
    crossed : ndarray of shape (D + 1,)
        Σ v t and Σ t of all rows, with noise.
    moments : ndarray of shape (D, D)
        Σ v vᵀ of all rows, with noise.
    variances : ndarray of shape (D + 1,)
        Of the noise of `crossed`.
    model : RidgeFromSums
    noise : float
    """

    features: Array
    known: Array
    rule: Array
    beyond: Array
    known_target: Array
    crossed: Array
    moments: Array
    variances: Array
    model: RidgeFromSums
    noise: float

    @property
    def deviation(self) -> float:
        """Standard deviation of what no features tell, which attackers are taken to know."""
        return float(self.beyond.std())


def staged(world: World, components: int, noise: float, seed: int, floor: float | None = None) -> Scene:
    """Add up the world's rows; the noise is that of the parties that do not collude.

    `floor` is as in `Variant`, for ten parties.
    """
    common = CommonMap.from_anchor(world.anchor, secret(seed), n_components=components, standardize=True, n_rows=0)
    statistic = RidgeSums(common.n_components, limits=world.limits, noise=noise)
    y = np.r_[world.rule + world.beyond, world.known_targets]
    v = common.transform(np.vstack([world.X, world.known_rows]))
    normal = np.random.default_rng([seed, 42]).normal(size=statistic.n_numbers)
    total = statistic.part(v, y) + statistic.noise_of_each * normal
    M = np.zeros((statistic.size, statistic.size))
    M[np.triu_indices(statistic.size)] = total
    D, per_unit = common.n_components, 2 / (world.limits[1] - world.limits[0])
    features, target = np.column_stack([v, np.ones(len(v))]), statistic.encode(y)[:, 0]
    variance = noise**2 / 2 / ETA**2
    n = len(world.X)
    return Scene(
        features=features[:n],
        known=features[n:],
        rule=target[:n] - world.beyond * per_unit,
        beyond=world.beyond * per_unit,
        known_target=target[n:],
        crossed=np.r_[M[:D, D] / ETA, M[D, D + 1] / ETA**2],
        moments=np.triu(M[:D, :D]) + np.triu(M[:D, :D], 1).T,
        variances=np.r_[np.full(D, variance), variance / ETA**2],
        model=statistic.solve(total, noise=0.5 * noise * (1.0 if floor is None else floor * beyond(10))),
        noise=noise,
    )


def correlations(scene: Scene) -> Correlations:
    """What every attacker reads in every way."""
    read = dict(_of_sums(scene, "together", scene.crossed - scene.known.T @ scene.known_target, scene.variances))
    return read | dict(_of_aligned_sums(scene)) | correlations_of_model(scene)


def correlations_of_model(scene: Scene) -> Correlations:
    """What a party alone reads, from the returned model."""
    inverted = _of_sums(scene, "party, everybody's features", *_sums_from_model(scene))
    return dict(inverted) | dict(_of_predictions(scene))


def _held(read: Array, scene: Scene) -> float:
    return float(np.corrcoef(read, scene.beyond)[0, 1])


def _of_sums(scene: Scene, attacker: str, crossed: Array, variances: Array) -> Iterator[tuple[str, float]]:
    """Posterior means of t, less the rule, and of e; and of e for somebody who knows the rule."""
    for weight in _WEIGHTS:
        target, rest = posterior(scene, crossed, variances, weight)
        yield f"{attacker}|target, prior {weight:g}", _held(target - scene.rule, scene)
        yield f"{attacker}|beyond, prior {weight:g}", _held(rest, scene)
    known = _beyond(scene.features, crossed - scene.features.T @ scene.rule, variances, scene.deviation)
    yield f"{attacker}, knowing the rule|beyond", _held(known, scene)


def posterior(scene: Scene, crossed: Array, variances: Array, weight: float) -> tuple[Array, Array]:
    """Posterior means of the others' targets, and of their part that features do not tell."""
    square = scene.deviation**2
    precision = scene.known.T @ scene.known / square + np.eye(scene.known.shape[1]) / weight**2
    P = scipy.linalg.inv(precision)
    prior = P @ (scene.known.T @ scene.known_target) / square
    G = scene.features.T @ scene.features
    solved = _solved(G @ P @ G + square * G + np.diag(variances), crossed - G @ prior)
    rest = square * scene.features @ solved
    return scene.features @ (prior + P @ (G @ solved)) + rest, rest


def _beyond(features: Array, crossed: Array, variances: Array, deviation: float) -> Array:
    square = deviation**2
    return np.asarray(square * features @ _solved(square * features.T @ features + np.diag(variances), crossed))


def _solved(A: Array, b: Array) -> Array:
    """Least squares of least length, for matrices that are singular without noise."""
    e, U = scipy.linalg.eigh(A)
    kept = e > _JITTER * e[-1]
    return np.asarray(U[:, kept] @ ((U[:, kept].T @ b) / e[kept]))


def _sums_from_model(scene: Scene) -> tuple[Array, Array]:
    """Σ v t and Σ t of the others, as a party that knows everybody's features, and the penalty, has them from W.

    W = (S + E + αI)⁻¹ b with S of the features, so that (S + αI) W is b less E W, whose size is known.
    """
    every = np.vstack([scene.features, scene.known])
    v, n = every[:, :-1], len(every)
    w, mean_v = scene.model.coefficients[:, 0], v.mean(axis=0)
    mean_t = float(scene.model.intercept[0] + mean_v @ w)
    centred = (v - mean_v).T @ ((v - mean_v) @ w) + scene.model.alpha * w
    crossed = np.r_[centred + n * mean_v * mean_t, n * mean_t]
    variances = scene.variances + scene.noise**2 / 2 * float(w @ w)
    return crossed - scene.known.T @ scene.known_target, variances


def _of_predictions(scene: Scene) -> Iterator[tuple[str, float]]:
    """What the returned model says of a person, less the rule; and less what own rows say."""
    said = scene.model.predict(scene.features[:, :-1])[:, 0]
    yield "party|target", _held(said - scene.rule, scene)
    for weight in _WEIGHTS:
        nothing = np.zeros(scene.known.shape[1])
        own, _ = posterior(scene, nothing, np.full(len(nothing), 1e12), weight)
        yield f"party|beyond, prior {weight:g}", _held(said - own, scene)


def _of_aligned_sums(scene: Scene) -> Iterator[tuple[str, float]]:
    """The analyst, who knows all but the secret rotation: eigenvectors of both moments, signs from own rows."""
    D = scene.moments.shape[0]
    turn = scipy.linalg.qr(np.random.default_rng(43).normal(size=(D, D)))[0]
    every = np.vstack([scene.features, scene.known])
    v = every[:, :-1] @ turn
    _, U = scipy.linalg.eigh(scene.moments)
    _, own = scipy.linalg.eigh(v.T @ v)
    guess, _ = posterior(scene, np.zeros(D + 1), np.full(D + 1, 1e12), 1.0)
    expected = v.T @ np.r_[guess, scene.known_target]
    signs = np.sign((own.T @ expected) * (U.T @ scene.crossed[:-1]))
    found = turn @ (own @ (signs * (U.T @ scene.crossed[:-1])))
    crossed = np.r_[found, scene.crossed[-1]] - scene.known.T @ scene.known_target
    for factor in _ALIGNMENTS:
        variances = scene.variances * factor + 1e-12
        for name, value in _of_sums(scene, "analyst", crossed, variances):
            yield f"{name}, alignment {factor:g}", value


def wage_world(n_rows: int, seed: int) -> World:
    """Rows of the table "wage"; the rule is what a forest says of rows left out, the rest is beyond it.

    The anchor is 100 real rows, as in `pays`.
    """
    table = further_table("wage")
    index = np.random.default_rng([seed, 44]).permutation(len(table.y))[: N_PUBLIC + N_KNOWN + n_rows]
    X = table.matrix(index, index[:0])
    rule, y = _forest_rule()[index], table.y[index]
    known, others = slice(N_PUBLIC, N_PUBLIC + N_KNOWN), slice(N_PUBLIC + N_KNOWN, None)
    return World(
        anchor=X[:N_PUBLIC],
        X=X[others],
        rule=rule[others],
        beyond=(y - rule)[others],
        known_rows=X[known],
        known_targets=y[known],
        limits=TARGET_RANGE["wage"],
    )


@cache
def _forest_rule() -> Array:
    table = further_table("wage")
    every = np.arange(len(table.y))
    forest = RandomForestRegressor(200, min_samples_leaf=10, random_state=0)
    return np.asarray(cross_val_predict(forest, table.matrix(every, every[:0]), table.y, cv=10))
