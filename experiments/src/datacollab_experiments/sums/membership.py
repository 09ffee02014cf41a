r"""Who is in a total.

Parties have as many rows each.  Those that attack know theirs, the public rows with targets, which are in the total as
well, and up to 1,100 further labelled rows of the kind.  Members and as many people of the same table who are in no
party are held against each other; attackers know their records, targets included.

With the known parts taken off, a total is normal around its expectation with covariance σ²I + f·C, where σ is the noise
that the attacker does not know, and C the covariance of uuᵀ over the kind; one member moves it by uuᵀ less its mean.
"together" is the likelihood ratio of that, for the analyst and these parties; "analyst" the same after eigenvectors
were aligned, for it knows all but the secret rotation, or the same of parts that no rotation changes; "party" compares
the returned model's error for a record with those of models of made-up totals, in half of which the record is.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from datacollab.sums import CommonMap, RidgeSums

from ..pays.tables import Array
from .attacks import ETA, N_PUBLIC, table_of
from .playing import ALIKE, Roster, Variant, noise_factor, secret, units

N_AUXILIARY = 1100
N_SHADOWS = 48
RARE = 10
"""Further rows of the kind at most; made-up totals; rows of the rare class."""
_LEAST_NOISE = 1e-3
_ALIGNMENTS = (1.0, 10.0, 100.0)
_REST = (0.0, 0.3, 1.0, 3.0)
"""How much of the variance that the kind's rows do not span attackers reckon with."""

Classes = NDArray[np.intp]
Readings = Iterator[tuple[str, str, float]]
"""Attacker, how it reads, and the area under the curve."""


@dataclass(frozen=True, eq=False)
class Group:
    """Rows as they are added up, u, and their classes."""

    u: Array
    y: Classes


class Membership:
    """A total of `n_rows` rows of all parties, who is in it, and who is not.

    If `rare`, one class has ten rows in the total, and its people alone are held against each other.  Attackers have at
    most `n_auxiliary` labelled rows of the kind beside those in the total.
    """

    def __init__(
        self,
        name: str,
        n_rows: int,
        seed: int,
        variant: Variant,
        roster: Roster,
        data_dir: Path | None = None,
        *,
        rare: bool = False,
        n_auxiliary: int = N_AUXILIARY,
    ) -> None:
        self.variant = variant
        self.seed = seed
        self._of_all = variant.noise * noise_factor(roster.n_parties)
        self._of_others = variant.noise * noise_factor(roster.n_parties, known=roster.n_colluding)
        table = table_of(name, data_dir)
        rng = np.random.default_rng([seed, 51])
        self.n_classes = len(np.unique(table.y))
        # A rare class has ten members; its people alone are held against each other.
        rare_class = None
        if rare:
            # Of many classes each draw takes the next; of two, the second is the one that is sought.
            rare_class = seed % self.n_classes if self.n_classes > 2 else 1
        parts = _split(table.y, n_rows, roster.n_known_of(n_rows), n_auxiliary, rng, rare_class)
        rows = {part: table.matrix(index, parts["public"]) for part, index in parts.items()}
        unit = units(table.bounds)
        common = CommonMap.from_anchor(
            rows["public"] / unit, secret(seed), n_components=variant.components, as_they_are=name in ALIKE
        )
        self.statistic = RidgeSums(common.n_components, classes=range(self.n_classes), noise=variant.noise)

        def group(part: str) -> Group:
            t = self.statistic.encode(table.y[parts[part]])
            v = common.transform(rows[part] / unit)
            return Group(np.hstack([v, ETA * t, np.full((len(t), 1), ETA)]), table.y[parts[part]])

        self.known = _join(group("public"), group("own"))
        self.public = group("public")
        self.auxiliary = group("auxiliary")
        self.others = group("others")
        members = np.flatnonzero(self.others.y == rare_class) if rare else np.arange(len(parts["strangers"]))
        self.candidates = _join(Group(self.others.u[members], self.others.y[members]), group("strangers"))
        self.is_member = np.arange(len(self.candidates.y)) < len(members)

    def readings(self) -> Readings:
        """Yield areas under the curve of all attackers, by how they read."""
        without_own, total = self.totals()
        yield from self._by_total("together", without_own - _sum(self.known), self._of_others)
        kind = _join(self.auxiliary, self.public)
        aligned = turn_and_undo(total, _sum(kind), self.statistic.n_components, np.random.default_rng(53))
        aligned -= _sum(self.public)
        # Alignment errs by an unknown amount: the analyst takes the noise for larger than it is.
        for factor in _ALIGNMENTS:
            yield from self._by_total("analyst", aligned, self._of_all * factor, f", alignment {factor:g}")
        yield from self.by_class_means(total)
        yield from self._by_model(total)

    def totals(self) -> tuple[Array, Array]:
        """Return the total less the noise of the attacking party, and all of it."""
        rng = np.random.default_rng([self.seed, 52])
        own_noise, left = (_symmetric(rng, self.statistic.size) for _ in range(2))
        left *= self._of_others
        own_noise *= (self._of_all**2 - self._of_others**2) ** 0.5
        without_own = _sum(self.known) + _sum(self.others) + left
        return without_own, without_own + own_noise

    def by_class_means(self, total: Array) -> Readings:
        """Yield areas from parts that no rotation hides: a class's sum along other classes', times powers of Σ v vᵀ."""
        D = self.statistic.n_components
        sigma = self._of_all / 2**0.5 / ETA
        kind = _join(self.auxiliary, self.public)
        n = float(total[-1, -1] / ETA**2)
        means = np.array([_of(kind, c).u[:, :D].mean(axis=0) for c in range(self.n_classes)])
        shares = np.maximum(total[D:-1, -1] / ETA**2 / n + 1 / self.n_classes, 0.0)
        # Of class c, Σ v = Σ v (t + 1/C), with t as encoded.
        seen = (total[:D, D:-1] / ETA + total[:D, -1:] / ETA / self.n_classes).T / n
        S = total[:D, :D] / n
        expected = _sum(kind)[:D, :D] / len(kind.y)
        for powers in ((0,), (0, 1), (0, 1, 2)):
            scores = np.empty(len(self.candidates.y))
            for c in np.unique(self.candidates.y):
                others = [k for k in range(self.n_classes) if k != c]
                along = np.vstack([seen[others] @ np.linalg.matrix_power(S, p) for p in powers])
                known = np.vstack(
                    [(shares[others, None] * means[others]) @ np.linalg.matrix_power(expected, p) for p in powers]
                )
                moved_by = along @ seen[c] * n - known @ means[c] * shares[c] * n
                deviations = (_of(kind, c).u[:, :D] - means[c]) @ known.T
                covariance = max(1.0, shares[c] * n) * np.cov(deviations.T).reshape(len(known), len(known))
                covariance += sigma**2 * (known @ known.T + np.eye(len(known)) * (seen[c] @ seen[c]))
                # Powers of a matrix are nearly parallel: a billionth of the trace keeps the matrix solvable.
                covariance += 1e-9 * np.trace(covariance) * np.eye(len(known))
                of = self.candidates.y == c
                moved = (self.candidates.u[of, :D] - means[c]) @ known.T
                whitened = np.linalg.solve(covariance, moved.T).T
                scores[of] = whitened @ moved_by - (whitened * moved).sum(axis=1) / 2
            yield "analyst", f"class means, powers to {powers[-1]}", self._auc(scores)

    def _auc(self, scores: Array) -> float:
        return float(roc_auc_score(self.is_member, scores))

    @cached_property
    def _kind(self) -> Group:
        """Return all labelled rows of the kind that attackers have."""
        return _join(self.auxiliary, self.known)

    @cached_property
    def _means(self) -> Array:
        """Return the mean of uuᵀ of each class over the kind."""
        return np.array(
            [_sum(_of(self._kind, c)) / max(1, int((self._kind.y == c).sum())) for c in range(self.n_classes)]
        )

    def _by_total(self, attacker: str, rest: Array, noise: float, how: str = "") -> Readings:
        """Yield areas of likelihood ratios; `rest` is the total less its known part."""
        m = len(self._kind.y)
        sigma = max(noise, _LEAST_NOISE)
        D = self.statistic.n_components
        n = float(rest[-1, -1] / ETA**2)
        # The total itself says how many rows of each class there are, with noise.
        counts = np.maximum(rest[D:-1, -1] / ETA**2 + n / self.n_classes, 0.0)
        residual = rest - np.tensordot(counts, self._means, axes=1)
        along = self._along(self._kind, residual)
        seen = self._along(self.candidates, residual)
        yield attacker, f"plain{how}", self._auc(seen)
        values, Q, k, norms = self._spectrum
        along = Q.T @ along
        # The kind's means are those of m rows: their own error adds n²/m to the covariance of the n in the total.
        for (words, f), rest_of in product({"1": n, "1 + n/m": n * (1 + n / m)}.items(), _REST):
            # The kind's rows span a few of the many directions: in the others, noise and some variance remain.
            variance = sigma**2 + f * rest_of * self._rest
            shrunk = values + variance * m / f
            score = (seen - k @ (along / shrunk)) / variance
            q = np.maximum((norms - (k**2 / shrunk).sum(axis=1)) / variance, 1e-12)
            way = f"covariance × {words}, rest × {rest_of:g}{how}"
            yield attacker, f"ratio, {way}", self._auc(score - q / 2)
            yield attacker, f"standardised, {way}", self._auc(score / np.sqrt(q))

    @cached_property
    def _spectrum(self) -> tuple[Array, Array, Array, Array]:
        """Return eigenpairs of the kind's inner products, candidates' products along these, and their norms."""
        G, k, norms = self._products
        values, Q = scipy.linalg.eigh(G, driver="evd")
        return np.maximum(values, 0.0), Q, k @ Q, norms

    @cached_property
    def _rest(self) -> float:
        """Return the variance in each direction that the kind's rows do not span, as one half says of the other."""
        G = self._products[0]
        half = len(self._kind.y) // 2
        size = self.statistic.size
        known = G[:half, :half]
        other = G[half:, half:]
        across = G[half:, :half]
        solved = scipy.linalg.solve(known + 1e-9 * np.trace(known) / half * np.eye(half), across.T, assume_a="pos")
        # One half's rows explain a part of the other's; the remainder is spread over all directions beyond.
        left = np.diag(other) - (across * solved.T).sum(axis=1)
        return float(np.maximum(left, 0.0).mean() / (size * (size + 1) / 2 - half))

    def _along(self, group: Group, residual: Array) -> Array:
        products = np.einsum("ij,jk,ik->i", group.u, residual, group.u, optimize=True)
        return np.asarray(products - np.tensordot(self._means, residual, axes=2)[group.y])

    @cached_property
    def _products(self) -> tuple[Array, Array, Array]:
        """Return inner products of uuᵀ less its class's mean: of the kind, with candidates, and candidates' own."""
        between = np.tensordot(self._means, self._means, axes=([1, 2], [1, 2]))

        def with_means(group: Group) -> Array:
            return np.asarray(np.einsum("ij,cjk,ik->ic", group.u, self._means, group.u, optimize=True))

        a = with_means(self._kind)
        c = with_means(self.candidates)

        def inner(x: Group, y: Group, of_x: Array, of_y: Array) -> Array:
            return np.asarray((x.u @ y.u.T) ** 2 - of_x[:, y.y] - of_y[:, x.y].T + between[np.ix_(x.y, y.y)])

        norms = (self.candidates.u**2).sum(axis=1) ** 2 - 2 * c[np.arange(len(c)), self.candidates.y]
        norms += between[self.candidates.y, self.candidates.y]
        return (
            inner(self._kind, self._kind, a, a),
            inner(self.candidates, self._kind, c, a),
            np.asarray(norms),
        )

    def _by_model(self, total: Array) -> Readings:
        """Yield areas of the returned model's error, against models of made-up totals with and without the record."""
        score = self._score(total)
        yield "party", "loss", self._auc(score)
        rng = np.random.default_rng([self.seed, 54])
        n = len(self.candidates.y)
        scores = np.empty((N_SHADOWS, n))
        inside = np.empty((N_SHADOWS, n), dtype=bool)
        n_others = len(self.others.y)
        base = _sum(self.known)
        for shadow in range(N_SHADOWS):
            # Half of the candidates are in each made-up total, so that each is out of about as many as in.
            chosen = rng.permutation(n) < n // 2
            # Made-up totals have as many rows as the real one; few of the kind are drawn repeatedly.
            n_more = max(0, n_others - int(chosen.sum()))
            more = rng.choice(len(self.auxiliary.y), n_more, replace=n_more > len(self.auxiliary.y))
            made = base + _sum(Group(self.candidates.u[chosen], self.candidates.y[chosen]))
            made = made + _sum(Group(self.auxiliary.u[more], self.auxiliary.y[more]))
            made += _symmetric(rng, self.statistic.size) * self._of_all
            scores[shadow] = self._score(made)
            inside[shadow] = chosen
        out = np.where(inside, np.nan, scores)
        into = np.where(inside, scores, np.nan)
        mean_out = np.nanmean(out, axis=0)
        mean_in = np.nanmean(into, axis=0)
        spread = np.sqrt((np.nanvar(out, axis=0) + np.nanvar(into, axis=0)) / 2) + 1e-12
        yield "party", "against models without", self._auc((score - mean_out) / spread)
        ratio = (score - (mean_in + mean_out) / 2) * (mean_in - mean_out)
        yield "party", "ratio", self._auc(ratio / spread**2)
        # Spreads of 24 models each are uncertain: one spread for all candidates may tell more.
        yield "party", "ratio, one spread", self._auc(ratio / float(np.sqrt(np.mean(spread**2))))

    def _score(self, total: Array) -> Array:
        """Return minus the squared error of each candidate."""
        triangle = total[np.triu_indices(len(total))]
        model = self.statistic.solve(triangle, noise=self._of_all, least_penalty=self.variant.least)
        D = self.statistic.n_components
        error = model.predict(self.candidates.u[:, :D]) - self.candidates.u[:, D:-1] / ETA
        return np.asarray(-(error**2).sum(axis=1))


def turn_and_undo(
    total: Array, expected: Array, n_columns: int, rng: np.random.Generator | np.random.RandomState
) -> Array:
    """Return a total as somebody reads it who does not know the secret rotation of its first columns.

    `expected` and `n_columns` are those of `find_turn_back`; the rotation comes from `rng`.
    """
    rest = np.eye(len(total) - n_columns)
    turn = scipy.linalg.block_diag(scipy.linalg.qr(rng.normal(size=(n_columns, n_columns)))[0], rest)
    seen = turn.T @ total @ turn
    back = scipy.linalg.block_diag(find_turn_back(seen, expected, n_columns), rest)
    return np.asarray(back.T @ seen @ back)


def find_turn_back(seen: Array, expected: Array, n_columns: int) -> Array:
    """Return the rotation that undoes a secret one of the first columns, as well as second moments tell.

    Eigenvectors of both matrices are joined in the order of their values, and signs by the products with the columns
    that were not turned.

    Parameters
    ----------
    seen, expected : ndarray of shape (size, size)
        Sums of products: of secretly turned rows, and of rows of the kind in known columns.
    n_columns : int

    Returns
    -------
    ndarray of shape (n_columns, n_columns)
        Turned rows are multiplied with it from the right.
    """
    D = n_columns
    _, U = scipy.linalg.eigh(seen[:D, :D])
    _, V = scipy.linalg.eigh(expected[:D, :D])
    # Eigenvectors have no sign: products with targets and ones, which are not turned, give it.
    signs = np.sign(((U.T @ seen[:D, D:]) * (V.T @ expected[:D, D:])).sum(axis=1))
    return np.asarray((U * np.where(signs == 0, 1.0, signs)) @ V.T)


_PARTS = ("public", "own", "others", "strangers", "auxiliary")


def _split(
    y: NDArray[Any], n_rows: int, n_own: int, n_auxiliary: int, rng: np.random.Generator, rare_class: int | None
) -> dict[str, NDArray[np.intp]]:
    """Return row numbers of public rows, the attackers', the others', further ones, and people of no party."""
    index = rng.permutation(len(y))
    n_others = n_rows - n_own
    n_strangers = min(200, n_others // 2)
    if rare_class is None:
        cuts = np.cumsum([N_PUBLIC, n_own, n_others, n_strangers])
        public, own, others, strangers, rest = np.split(index, cuts)
        return dict(zip(_PARTS, (public, own, others, strangers, rest[:n_auxiliary]), strict=True))
    public, index = np.split(index, [N_PUBLIC])
    of_class = index[y[index] == rare_class]
    rest = index[y[index] != rare_class]
    # The others' rows hold all ten of the class; public rows and the attackers' have none.
    members, strangers, further = np.split(of_class, [RARE, RARE + min(100, len(of_class) // 2)])
    own, others, more = np.split(rest, [n_own, n_rows - RARE])
    auxiliary = rng.permutation(np.r_[further, more])[:n_auxiliary]
    public = public[y[public] != rare_class]
    return dict(zip(_PARTS, (public, own, np.r_[members, others], strangers, auxiliary), strict=True))


def _join(*groups: Group) -> Group:
    return Group(np.vstack([each.u for each in groups]), np.concatenate([each.y for each in groups]))


def _of(group: Group, c: int) -> Group:
    return Group(group.u[group.y == c], group.y[group.y == c])


def _sum(group: Group) -> Array:
    return np.asarray(group.u.T @ group.u)


def _symmetric(rng: np.random.Generator, size: int) -> Array:
    """Return symmetric noise: variance 1 on the diagonal, ½ off it."""
    half = rng.normal(size=(size, size))
    return np.asarray((half + half.T) / 2)
