"""The analyst, where parties send sums over classes and no rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from .._threads import one_thread
from .._validation import PartyName
from ..errors import AgreementError, NumericalError
from ..model import LinearMap
from ..share import ClassSums
from ._base import BaseIntegrator
from ._class_mixture import ClassMeans, class_mixture, linear_discriminant
from ._collaboration import Collaboration
from ._lti import LTI

__all__ = ["fit_class_sums", "pooled_means"]


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
