r"""Models h for all groups together: a vote of the groups' models, and linear models trained on sums.

All groups' rows lie in one space, that of the common target.  A linear discriminant and a ridge regression need of a
table its second moments alone, and those of several tables add up: the model is the one trained on all rows together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import Ridge

from datacollab._typing import FloatArray
from datacollab.errors import AgreementError
from datacollab.model import AveragedClassifier, AveragedRegressor, PartyModel

from ._messages import GroupMoments

__all__ = ["linear_from_moments", "moments_of", "voted"]

_PENALTIES = 10.0 ** np.arange(-6, 2)
"""Of ridge regression, as parts of the mean variance."""


def voted(models: Mapping[str, PartyModel], n_rows: Mapping[str, int]) -> AveragedClassifier | AveragedRegressor:
    """The mean of groups' models, each as much as its rows.

    Parameters
    ----------
    models : mapping of group to PartyModel
    n_rows : mapping of group to int

    Raises
    ------
    AgreementError
        When some models are for classes and others for numbers, or one gives no probabilities.
    """
    fitted = [model.estimator for model in models.values()]
    kinds = {is_classifier(each) for each in fitted}
    if len(kinds) > 1:
        raise AgreementError("Some groups' models are for classes, and others for numbers. Agree on one task.")
    without = [group for group, model in models.items() if not hasattr(model.estimator, "predict_proba")]
    if kinds == {True} and without:
        raise AgreementError(f"The models of {without!r} give no probabilities, of which a vote is the mean.")
    weights = [float(n_rows[group]) for group in models]
    average = AveragedClassifier if kinds == {True} else AveragedRegressor
    return average(fitted, weights)


def moments_of(rows: FloatArray, target: NDArray[Any], *, as_classes: bool) -> tuple[NDArray[Any] | None, FloatArray]:
    r"""Classes and :math:`[T, \hat X]^\top [T, \hat X]`, as `GroupMoments` has them.

    Parameters
    ----------
    rows : ndarray of shape (n_rows, n_components)
    target : ndarray of shape (n_rows,)
    as_classes : bool
    """
    if as_classes:
        classes, codes = np.unique(target, return_inverse=True)
        T = np.eye(len(classes))[codes]
    else:
        classes, T = None, np.column_stack([np.ones(len(rows)), target.astype(np.float64)])
    joined = np.hstack([T, rows])
    S = joined.T @ joined
    return classes, np.asarray((S + S.T) / 2)


def linear_from_moments(moments: Sequence[GroupMoments], *, shrinkage: float) -> LinearDiscriminantAnalysis | Ridge:
    """The linear model of all groups' rows together, from their sums.

    Parameters
    ----------
    moments : sequence of GroupMoments
        Of one space.
    shrinkage : float
        Of the discriminant's covariance, from 0 to 1.

    Raises
    ------
    AgreementError
        When targets are of several kinds, or tables of several widths.
    """
    kinds = {"numbers" if each.classes is None else each.classes.dtype.kind.replace("O", "U") for each in moments}
    widths = {len(each.gram) - each.n_outputs for each in moments}
    if len(kinds) > 1 or len(widths) > 1:
        raise AgreementError("Groups' moments are of targets of several kinds, or of tables of several widths.")
    (width,) = widths
    if kinds == {"numbers"}:
        return _ridge(np.sum([each.gram for each in moments], axis=0))
    known = [np.asarray(each.classes) for each in moments]
    classes = np.unique(np.concatenate(known))
    total = np.zeros((len(classes) + width,) * 2)
    for each, own in zip(moments, known, strict=True):
        places = np.concatenate([np.searchsorted(classes, own), len(classes) + np.arange(width)])
        total[np.ix_(places, places)] += each.gram
    return _discriminant(classes, total, shrinkage)


def _discriminant(classes: NDArray[Any], S: FloatArray, shrinkage: float) -> LinearDiscriminantAnalysis:
    m = len(classes)
    counts, n_rows = S[:m, :m].diagonal(), S[:m, :m].trace()
    means, priors = S[:m, m:] / counts[:, None], counts / n_rows
    within = S[m:, m:] / n_rows - (means.T * priors) @ means
    mean_variance = float(np.trace(within)) / len(within)
    within *= 1 - shrinkage
    within[np.diag_indices_from(within)] += shrinkage * mean_variance
    coefficients = scipy.linalg.lstsq(within, means.T)[0].T
    intercepts = np.log(priors) - 0.5 * np.sum(means * coefficients, axis=1)
    model = LinearDiscriminantAnalysis(solver="lsqr", shrinkage=shrinkage or None)
    model.classes_, model.priors_, model.means_, model.covariance_ = classes, priors, means, within
    model.n_features_in_ = means.shape[1]
    # Of two classes scikit-learn keeps the difference.
    two = m == 2
    model.coef_ = coefficients[1:] - coefficients[:1] if two else coefficients
    model.intercept_ = intercepts[1:] - intercepts[:1] if two else intercepts
    return model


def _ridge(S: FloatArray) -> Ridge:
    """With the penalty of the least generalised cross-validation score, which moments tell."""
    n, y_sum, y_square = S[0, 0], S[0, 1], S[1, 1]
    x_mean, y_mean = S[0, 2:] / n, y_sum / n
    eigenvalues, V = scipy.linalg.eigh(S[2:, 2:] - n * np.outer(x_mean, x_mean))
    eigenvalues = np.maximum(eigenvalues, 0.0)
    cross = V.T @ (S[2:, 1] - n * x_mean * y_mean)
    spread = y_square - n * y_mean**2
    alphas = _PENALTIES * max(float(eigenvalues.mean()), np.finfo(float).tiny)

    def score(alpha: float) -> float:
        weights = 1 / (eigenvalues + alpha)
        residual = spread - np.sum(cross**2 * weights * (2 - eigenvalues * weights))
        return float(residual / max(n - 1 - np.sum(eigenvalues * weights), np.finfo(float).tiny) ** 2)

    alpha = float(min(alphas, key=score))
    model = Ridge(alpha=alpha)
    model.coef_ = V @ (cross / (eigenvalues + alpha))
    model.intercept_ = float(y_mean - x_mean @ model.coef_)
    model.n_features_in_ = len(x_mean)
    return model
