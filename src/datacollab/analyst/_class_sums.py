"""The analyst, where parties send sums over classes and no rows.

* Class means from noisy sums, and from the anchor's rows: a normal mixture with one covariance.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.special import softmax
from sklearn.base import clone
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from .._threads import one_thread
from .._validation import FloatArray, PartyName
from ..errors import AgreementError, NumericalError
from ..model import LinearMap
from ..share import ClassSums
from ._base import BaseIntegrator
from ._collaboration import Collaboration
from ._linear import LTI

__all__ = [
    "ClassMeans",
    "ClassMixture",
    "class_mixture",
    "fit_class_sums",
    "linear_discriminant",
    "pooled_means",
    "shrunk_means",
]


@one_thread
def fit_class_sums(
    sums: Iterable[ClassSums], integrator: BaseIntegrator | None = None, *, anchor_weight: float = 1.0
) -> Collaboration:
    r"""Integrate the parties, map their sums into the common space, and train a linear discriminant on them.

    A linear integration function maps a sum of rows as it maps rows, so the sums of all parties add up to those of all
    rows; `pooled_means` has the formula.  The anchor's rows tell how rows of a class are spread, and, by expectation
    and maximisation, where classes lie: rows without targets help, too.  All of this happens after the noise, so it
    takes nothing from what the parties were promised.

    Parameters
    ----------
    sums : iterable of ClassSums
        One from each party.
    integrator : BaseIntegrator or None, default=None
        One with linear functions, such as `LTI`, `ODC`, `GEP` or `MPP`; cloned before it is fitted.  None takes
        ``LTI(n_components, fit_intercept=True)`` with as many components as the narrowest party has columns.
    anchor_weight : float, default=1.0
        Weight of an anchor row beside a row behind the sums.  0 takes the anchor's covariance alone, for anchors whose
        rows are distributed otherwise than the parties', such as uniform ones.

    Returns
    -------
    Collaboration
        Its `estimator_` is a linear discriminant, and crosses as plain numbers; it holds no representations.

    Raises
    ------
    TypeError
        When the integrator or a message is something else.
    ValueError
        When `anchor_weight` has no meaning.
    AgreementError
        When two messages carry one name, or classes, anchors' lengths or anchor targets differ; when integration
        functions are not linear.
    RepresentationError
        When an anchor representation cannot be aligned; the message names the party.
    NumericalError
        When the anchor has too few rows for so many components.

    Examples
    --------
    >>> import datacollab as dc
    >>> from datacollab.analyst import fit_class_sums
    >>> from datacollab.party import NoisyClassSums
    >>> X, y = dc.datasets.load("digits")
    >>> public, rows = X[:300], {"clinic": slice(300, 800), "hospital": slice(800, 1300)}
    >>> f, defence = dc.obfuscator("pca", n_components=16), NoisyClassSums(epsilon=4.0, classes=range(10))
    >>> parties = {
    ...     name: dc.Party(name, f, fit_on=public, defences=[defence]).fit(X[own], y[own])
    ...     for name, own in rows.items()
    ... }
    >>> collaboration = fit_class_sums([party.class_sums(public) for party in parties.values()])
    >>> predicted = parties["clinic"].predict(X[1300:], collaboration.party_model("clinic"))
    >>> bool((predicted == y[1300:]).mean() > 0.7)
    True
    """
    if not isinstance(anchor_weight, int | float) or not 0 <= anchor_weight < np.inf:
        raise ValueError(f"anchor_weight must be a number from 0 on; got {anchor_weight!r}.")
    named = _by_party(sums)
    classes, anchor_target = _agreed(named)
    anchors = {party: each.anchor_representation for party, each in named.items()}
    if integrator is None:
        integrator = LTI(min(A.shape[1] for A in anchors.values()), fit_intercept=True)
    if not isinstance(integrator, BaseIntegrator):
        raise TypeError(f"integrator must be an integration method such as LTI(); got {type(integrator).__name__}.")
    fitted = clone(integrator).fit(anchors, anchor_target)
    Z = np.mean(list(fitted.transform(anchors).values()), axis=0)
    told = pooled_means(named, _linear_maps(fitted))
    # Singular values below this are rounding errors once squared: whether a covariance of them has a Cholesky factor
    # differs from one library of linear algebra to another.
    if np.linalg.matrix_rank(Z - Z.mean(axis=0), rtol=np.sqrt(np.finfo(np.float64).eps)) < Z.shape[1]:
        raise NumericalError(
            f"In the common space the {len(Z)} anchor rows do not spread in all {Z.shape[1]} directions, so no "
            "covariance can be had from them. Lower n_components, or take a larger anchor."
        )
    mixture = class_mixture(told, Z, _codes(anchor_target, classes), anchor_weight=anchor_weight)
    return Collaboration(fitted, linear_discriminant(classes, mixture), {})


def pooled_means(sums: Mapping[PartyName, ClassSums], maps: Mapping[PartyName, LinearMap]) -> ClassMeans:
    r"""Class means over the rows of all parties, in the common space.

    With :math:`S_{kc}` and :math:`N_{kc}` a party's sums and counts, :math:`o_k = g_k(m_k)` what becomes of the mean of
    its anchor, and :math:`o` the mean of these,

    .. math:: \bar x_c = o + \frac{1}{n_c} \sum_k \big( S_{kc} G^{(k)} + N_{kc} (o_k - o) \big), \qquad
              n_c = \max\Big(\sum_k N_{kc}, \; \sqrt{\textstyle\sum_k s_k^2 / C_k^2} \Big).

    Intercepts are in :math:`o_k`.  Counts below the standard deviation of their noise tell nothing, and are raised to
    it.

    Parameters
    ----------
    sums : mapping of party to ClassSums
    maps : mapping of party to LinearMap
    """
    origins = {
        party: maps[party](each.anchor_representation.mean(axis=0, keepdims=True)) for party, each in sums.items()
    }
    origin = np.mean(list(origins.values()), axis=0)
    n_classes, d = len(next(iter(sums.values())).classes), origin.shape[1]
    total, counts = np.zeros((n_classes, d)), np.zeros(n_classes)
    noise, count_noise = np.zeros((d, d)), 0.0
    for party, each in sums.items():
        G, shift = maps[party].coefficients, origins[party] - origin
        total += each.sums @ G + each.counts[:, None] * shift
        counts += each.counts
        noise += each.noise**2 * G.T @ G + each.count_noise**2 * shift.T @ shift
        count_noise += each.count_noise**2
    counts = np.maximum(counts, np.sqrt(count_noise))
    return ClassMeans(counts, origin + total / counts[:, None], noise)


def _linear_maps(integrator: BaseIntegrator) -> dict[PartyName, LinearMap]:
    maps = {}
    for party, g in integrator.integration_functions_.items():
        if not isinstance(g, LinearMap):
            raise AgreementError(
                f"Party {party!r}: {type(integrator).__name__} gives a {type(g).__name__}, and only a linear function "
                "maps sums as it maps rows. Take LTI(fit_intercept=True)."
            )
        maps[party] = g
    return maps


def _by_party(sums: Iterable[ClassSums]) -> dict[PartyName, ClassSums]:
    if isinstance(sums, ClassSums | Mapping):
        raise TypeError(f"A list of class sums is wanted, one from each party; got one {type(sums).__name__}.")
    named: dict[PartyName, ClassSums] = {}
    for each in sums:
        if not isinstance(each, ClassSums):
            raise TypeError(f"Class sums are wanted, as Party.class_sums returns them; got {type(each).__name__}.")
        if each.party in named:
            raise AgreementError(f"Two messages carry the name {each.party!r}; keep the newer one, or rename a party.")
        named[each.party] = each
    if not named:
        raise AgreementError("No class sums were given; at least two parties' are wanted.")
    return named


def _agreed(sums: Mapping[PartyName, ClassSums]) -> tuple[NDArray[Any], NDArray[Any] | None]:
    """Classes, and the anchor's targets where some party sends them: all parties' the same."""
    (first, reference), *_ = sums.items()
    for party, each in sums.items():
        if not np.array_equal(each.classes, reference.classes):
            raise AgreementError(
                f"Parties {first!r} and {party!r} have different classes, {len(reference.classes)} and "
                f"{len(each.classes)} of them. Agree on all classes, and ask for the sums anew."
            )
    senders = {party: each.anchor_target for party, each in sums.items() if each.anchor_target is not None}
    if not senders:
        return reference.classes, None
    (first, target), *_ = senders.items()
    for party, other in senders.items():
        if not np.array_equal(other, target):
            raise AgreementError(
                f"Parties {first!r} and {party!r} sent different anchor targets, so they used different anchors or "
                "row orders. Send the same anchor to all parties and ask for new sums."
            )
    return reference.classes, target


def _codes(target: NDArray[Any] | None, classes: NDArray[Any]) -> NDArray[np.intp] | None:
    """Number of each anchor row's class; -1 for those that are of none of the classes."""
    if target is None:
        return None
    codes = np.full(len(target), -1, dtype=np.intp)
    for number, label in enumerate(classes):
        codes[target == label] = number
    return codes


MOST_STEPS = 200
TOLERANCE = 1e-5
"""Largest move of a mean, in standard deviations of the anchor's rows in its direction, at which it is done."""
RIDGE = 1e-3
"""Share of the anchor's covariance that is added to the one within classes."""


@dataclass(frozen=True, eq=False)
class ClassMeans:
    """What the parties' sums tell of each class.

    Attributes
    ----------
    counts : ndarray of shape (n_classes,)
        Above 0.
    means : ndarray of shape (n_classes, n_components)
    noise : ndarray of shape (n_components, n_components)
        Covariance of the noise in a class's sum; divided by the square of its count it is that in its mean.
    """

    counts: FloatArray
    means: FloatArray
    noise: FloatArray

    def covariances(self, T: FloatArray) -> FloatArray:
        r""":math:`R_c = T / n_c + V / n_c^2`, shape (n_classes, n_components, n_components).

        What a mean of :math:`n_c` rows varies by, at most, and what the noise adds.
        """
        n = self.counts[:, None, None]
        return np.asarray(T / n + self.noise / n**2)


@dataclass(frozen=True, eq=False)
class ClassMixture:
    """Normal distributions of classes.

    Attributes
    ----------
    means : ndarray of shape (n_classes, n_components)
    covariance : ndarray of shape (n_components, n_components)
        Common to all.
    priors : ndarray of shape (n_classes,)
    """

    means: FloatArray
    covariance: FloatArray
    priors: FloatArray

    def scores(self, X: FloatArray) -> FloatArray:
        """Logarithm of prior and density, up to what all classes have in common, shape (n_rows, n_classes)."""
        directions = cho_solve(cho_factor(self.covariance), self.means.T)
        lengths = np.einsum("cj,jc->c", self.means, directions)
        return np.asarray(X @ directions - lengths / 2 + np.log(self.priors))


def shrunk_means(told: ClassMeans, center: FloatArray, T: FloatArray) -> FloatArray:
    r"""Means drawn towards the centre as far as the noise goes, shape (n_classes, n_components).

    .. math:: m + T (T + V / n_c^2)^{-1} (\bar x_c - m)

    Best where class means are distributed about the centre as the anchor's rows are, which they are at most.

    Parameters
    ----------
    told : ClassMeans
    center : ndarray of shape (n_components,)
        m.
    T : ndarray of shape (n_components, n_components)
        Covariance of the anchor's rows.
    """
    noise = told.noise / told.counts[:, None, None] ** 2
    drawn = np.linalg.solve(T + noise, (told.means - center)[:, :, None])[:, :, 0]
    return np.asarray(center + drawn @ T)


def class_mixture(
    told: ClassMeans, Z: FloatArray, codes: NDArray[np.intp] | None = None, *, anchor_weight: float = 1.0
) -> ClassMixture:
    r"""Maximise the posterior of a normal mixture, by expectation and maximisation on the anchor's rows [1]_.

    .. math::
        w \sum_j \log \sum_c \pi_c \, N(z_j; \mu_c, W) + \sum_c n_c \log \pi_c
        + \sum_c \log N(\bar x_c; \mu_c, R_c) - \frac{\rho w n_a}{2} \mathrm{tr}(W^{-1} T)

    over the means, their common covariance W and the priors.  Of an anchor row with a known class the sum over classes
    is that class's term alone.

    Parameters
    ----------
    told : ClassMeans
        :math:`\bar x_c`, :math:`n_c` and, by `ClassMeans.covariances`, :math:`R_c`.
    Z : ndarray of shape (n_anchors, n_components)
        The anchor's rows.
    codes : ndarray of shape (n_anchors,), optional
        Number of each anchor row's class, where that is known; -1 where not.
    anchor_weight : float, default=1.0
        w.  0 gives `shrunk_means`, with the anchor's covariance T for W.

    Notes
    -----
    No step makes the sum smaller.  It starts from `shrunk_means`.

    References
    ----------
    .. [1] Dempster, Laird and Rubin (1977). Maximum likelihood from incomplete data via the EM algorithm. Journal of
       the Royal Statistical Society B 39(1), 1-38.
    """
    center = Z.mean(axis=0)
    T = np.atleast_2d(np.cov(Z, rowvar=False, bias=True))
    found = ClassMixture(shrunk_means(told, center, T), T, told.counts / told.counts.sum())
    if anchor_weight == 0:
        return found
    known = np.full(len(Z), -1) if codes is None else codes
    scale = cho_factor(T)
    precisions = np.asarray(np.linalg.inv(told.covariances(T)))
    for _ in range(MOST_STEPS):
        parts = anchor_weight * _parts(found, Z, known)
        before, found = found, _maximised(told, precisions, Z, parts, T, found.covariance)
        moves = found.means - before.means
        if np.einsum("cj,jc->c", moves, cho_solve(scale, moves.T)).max() <= TOLERANCE**2:
            break
    return found


def _parts(found: ClassMixture, Z: FloatArray, known: NDArray[np.intp]) -> FloatArray:
    """How far each anchor row is of each class, shape (n_anchors, n_classes); rows add up to one."""
    parts = softmax(found.scores(Z), axis=1)
    parts[known >= 0] = np.eye(len(found.priors))[known[known >= 0]]
    return np.asarray(parts)


def _maximised(
    told: ClassMeans, precisions: FloatArray, Z: FloatArray, parts: FloatArray, T: FloatArray, W: FloatArray
) -> ClassMixture:
    """One step: the means given W, then W given the means.

    Parameters
    ----------
    told : ClassMeans
    precisions : ndarray of shape (n_classes, n_components, n_components)
        Inverses of R_c, which are summed with others.
    Z : ndarray of shape (n_anchors, n_components)
    parts : ndarray of shape (n_anchors, n_classes)
        How far each anchor row is of each class, times its weight.
    T, W : ndarray of shape (n_components, n_components)
    """
    totals, own = parts.sum(axis=0), np.linalg.inv(W)
    weighted = np.einsum("cij,cj->ci", precisions, told.means) + parts.T @ Z @ own
    means = np.linalg.solve(precisions + totals[:, None, None] * own, weighted[:, :, None])[:, :, 0]
    covariance = RIDGE * T
    for mean, part in zip(means, parts.T, strict=True):
        covariance = covariance + (Z - mean).T @ ((Z - mean) * part[:, None]) / parts.sum()
    counts = told.counts + totals
    return ClassMixture(means, covariance, counts / counts.sum())


def linear_discriminant(classes: NDArray[np.generic], mixture: ClassMixture) -> LinearDiscriminantAnalysis:
    r"""h: the most probable class, as scikit-learn's linear discriminant would have it from rows.

    .. math:: \arg\max_c \; x^\top W^{-1} \mu_c - \tfrac12 \mu_c^\top W^{-1} \mu_c + \log \pi_c

    Parameters
    ----------
    classes : ndarray of shape (n_classes,)
    mixture : ClassMixture
    """
    d = mixture.means.shape[1]
    estimator = LinearDiscriminantAnalysis(solver="lsqr")
    estimator.classes_, estimator.priors_, estimator.n_features_in_ = classes, mixture.priors, d
    estimator.means_, estimator.covariance_ = mixture.means, mixture.covariance
    scores = mixture.scores(np.vstack([np.zeros(d), np.eye(d)]))
    coefficients, intercept = (scores[1:] - scores[0]).T, scores[0]
    if len(classes) == 2:
        coefficients, intercept = coefficients[1:] - coefficients[:1], intercept[1:] - intercept[:1]
    estimator.coef_, estimator.intercept_ = coefficients, intercept
    return estimator
