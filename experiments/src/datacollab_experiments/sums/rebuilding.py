"""Rows rebuilt from a total by analyst and parties together: gradient descent on the distance of totals.

They know the map, and have 400 rows of the kind, from which they begin and whose spread is their prior.  The unknowns
are principal coordinates of all rows, and their classes.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import scipy.optimize
from scipy.special import softmax

from datacollab.sums import CommonMap, RidgeSums

from ..pays.tables import Array, load_table
from .attacks import ETA, N_PUBLIC
from .playing import ALIKE, Variant, matrix_of, secret, units

N_AUXILIARY = 400
N_STARTS = 2
N_STEPS = 1500
NEAR = 0.05
"""Root mean squared difference, in declared ranges, below which a row counts as rebuilt."""
_LEAST_NOISE = 3e-3


def rebuild(
    name: str, n_rows: int, seed: int, variant: Variant, data_dir: Path | None = None
) -> Iterator[tuple[str, float]]:
    """Yield how much of a table's rows comes back: parts within `NEAR`, and medians of the distance to the nearest.

    Yields
    ------
    str, float
        "rebuilt", "nearest of 400 rows" and "principal coordinates alone", each with "near" or "median".
    """
    rng = np.random.default_rng([seed, 61])
    table = load_table(name, data_dir)
    index = rng.permutation(len(table.y))
    public, auxiliary, others = np.split(index[: N_PUBLIC + N_AUXILIARY + n_rows], [N_PUBLIC, N_PUBLIC + N_AUXILIARY])
    unit = units(table.bounds)
    ranges = table.bounds[1] - table.bounds[0]
    rows = {part: table.matrix(of, public) / unit for part, of in (("a", auxiliary), ("o", others))}
    anchor = table.matrix(public, public) / unit
    common = CommonMap.from_anchor(anchor, secret(seed), n_components=variant.components, as_they_are=name in ALIKE)
    statistic = RidgeSums(common.n_components, classes=range(len(np.unique(table.y))), noise=variant.noise)
    total = matrix_of(statistic.part(common.transform(rows["o"]), table.y[others]), statistic.size)
    half = rng.normal(size=total.shape)
    # The attackers are all that may collude, and know their own rows and noise: s is left to the others' total.
    total = total + variant.noise * (half + half.T) / 2
    of_kind = common_coordinates(common, rows["a"])
    descent = Descent(common, total, max(variant.noise, _LEAST_NOISE), statistic.n_outputs, of_kind)
    guess = descent.run(table.y[auxiliary], n_rows, rng)
    truth = rows["o"] * unit / ranges
    # No rebuilding can be better than the principal coordinates, from which rows are made.
    floor = rows_of(common, common_coordinates(common, rows["o"]))
    guesses = {"rebuilt": guess, "nearest of 400 rows": rows["a"], "principal coordinates alone": floor}
    for kind, guess in guesses.items():
        near = guess * unit / ranges
        square = (truth**2).sum(axis=1)[:, None] + (near**2).sum(axis=1) - 2 * truth @ near.T
        distance = np.sqrt(np.maximum(square.min(axis=1), 0.0) / truth.shape[1])
        yield f"{kind}, near", float((distance < NEAR).mean())
        yield f"{kind}, median", float(np.median(distance))


def common_coordinates(common: CommonMap, rows: Array) -> Array:
    """Return principal coordinates, clipped as in the map."""
    numbers = _numbers(common)
    scores = [np.interp(rows[:, place], *known) for place, known in numbers.items()]
    columns = np.column_stack([rows, *scores])
    columns[:, [*numbers, *range(rows.shape[1], columns.shape[1])]] /= np.sqrt(2)
    return np.asarray(np.clip(columns - common.mean, -common.clip, common.clip) @ common.principal)


def _numbers(common: CommonMap) -> dict[int, tuple[Array, Array]]:
    """Return the places of numbers, and their values and normal scores."""
    return {place: known for place, known in enumerate(common.scores) if known is not None}


def rows_of(common: CommonMap, Z: Array) -> Array:
    """Return rows in units of the map that have these principal coordinates."""
    rows = np.asarray(Z @ common.principal.T + common.mean)[:, : len(common.scores)]
    rows[:, list(_numbers(common))] *= np.sqrt(2)
    return rows


class Descent:
    """The misfit of a total, as a function of rows and classes.

    The total has shape (size, size), and Z, the principal coordinates of rows of the kind, (n_rows, n_principal).
    """

    def __init__(self, common: CommonMap, total: Array, noise: float, n_classes: int, Z: Array) -> None:
        self.common = common
        self.total = total
        self.noise = noise
        self.n_classes = n_classes
        self.Z = Z
        self.mean = Z.mean(axis=0)
        # A coordinate that no row of the kind moves along stays where it is.
        self.deviation = Z.std(axis=0) + 1e-9

    def run(self, y: Array, n_rows: int, rng: np.random.Generator) -> Array:
        """Return rows in units of the map, the best of some starts; `y` are classes of rows of the kind."""
        best = None
        Z = self.Z
        for _ in range(N_STARTS):
            start = rng.choice(len(Z), n_rows, replace=n_rows > len(Z))
            # Classes are free as well: a start near those of rows of the kind.
            logits = 2.0 * np.eye(self.n_classes)[y[start]]
            x = np.hstack([(Z[start] - self.mean) / self.deviation, logits]).ravel()
            result = scipy.optimize.minimize(
                self.loss, x, jac=True, method="L-BFGS-B", options={"maxiter": N_STEPS, "maxfun": 2 * N_STEPS}
            )
            if best is None or result.fun < best.fun:
                best = result
        assert best is not None
        k = Z.shape[1]
        coordinates = best.x.reshape(n_rows, -1)[:, :k] * self.deviation + self.mean
        return rows_of(self.common, coordinates)

    def loss(self, x: Array) -> tuple[float, Array]:
        """Return minus the logarithm of the posterior density, and its gradient."""
        c = self.common
        k = c.principal.shape[1]
        both = x.reshape(-1, k + self.n_classes)
        standard = both[:, :k]
        p = softmax(both[:, k:], axis=1)
        # Forward as the map goes: coordinates, kernel, features, centred and turned, shortened to length 1.
        Z = standard * self.deviation + self.mean
        squares = (Z**2).sum(axis=1)[:, None] + (c.landmarks**2).sum(axis=1) - 2 * Z @ c.landmarks.T
        K = np.exp(-c.gamma * squares)
        F = np.hstack([Z / c.linear_scale, K @ c.root]) / np.sqrt(2)
        w = (F - c.feature_mean) @ c.directions / c.length
        lengths = np.maximum(1.0, np.linalg.norm(w, axis=1, keepdims=True))
        v = w / lengths
        u = np.hstack([v, ETA * (p - 1 / self.n_classes), np.full((len(v), 1), ETA)])
        error = u.T @ u - self.total
        value = float((error**2).sum()) / 2 / self.noise**2 + float((standard**2).sum()) / 2
        # And back, from the misfit to coordinates and classes; rows that were shortened do not move along themselves.
        du = 2 * u @ error / self.noise**2
        dv = du[:, : v.shape[1]]
        dp = ETA * du[:, v.shape[1] : -1]
        along = np.where(lengths > 1, (v * dv).sum(axis=1, keepdims=True), 0.0)
        dF = ((dv - v * along) / lengths) @ c.directions.T / c.length / np.sqrt(2)
        G = -2 * c.gamma * K * (dF[:, k:] @ c.root.T)
        dZ = dF[:, :k] / c.linear_scale + G.sum(axis=1)[:, None] * Z - G @ c.landmarks
        dlogits = p * (dp - (p * dp).sum(axis=1, keepdims=True))
        return value, np.hstack([dZ * self.deviation + standard, dlogits]).ravel()
