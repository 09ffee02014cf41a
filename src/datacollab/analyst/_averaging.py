r"""The average of ridge regressions that say nearly the same of rows left out.

Which of several candidates is best is known to within what chance makes of few rows, and the one that looks best has
often been lucky.  So they are averaged, with weights

.. math:: w_j \propto \exp\Bigl(-\tau \sum_i \bigl(\ell_j(i) - \ell_*(i)\bigr)\Bigr)

of their losses on rows left out: pseudo-Bayesian model averaging (Geisser and Eddy 1979; Yao et al. 2018, "Using
stacking to average Bayesian predictive distributions"), tempered, since the losses of candidates for the same rows
differ by chance as well.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .._validation import FloatArray
from ..model import AveragedClassifier, AveragedRegressor, probabilities_of
from ._candidate_table import Candidate
from ._candidates import MORE_LANDMARKS
from ._fitted import Choice, judged_losses
from ._training import TrainingRows

__all__ = ["averaged"]

_TAU = 0.1
"""Chosen on draws of flchain, gbsg2, whas500, breast cancer, digits and diabetes."""
_LEAST = 0.02
"""Part of the average below which a candidate is left out of it, so that models stay small."""


def averaged(choices: Sequence[Choice], training: TrainingRows, counts: FloatArray) -> Choice | None:
    """The average of candidates, all of one integration method; None where there is one alone, or one is all of it.

    Parameters
    ----------
    choices : sequence of Choice
    training : TrainingRows
    counts : ndarray of shape (n_rows,)
        How much each row counts in judging.
    """
    if not choices:
        return None
    weights = tempered_weights([each.losses for each in choices], squared=not hasattr(choices[0].estimator, "classes_"))
    parts = tuple(each for each, weight in zip(choices, weights, strict=True) if weight > 0)
    if len(parts) < 2:
        return None
    weights = weights[weights > 0]
    fitted = [each.estimator for each in parts]
    if hasattr(fitted[0], "classes_"):
        average = AveragedClassifier.of(fitted, weights)
        classes = average.classes_
        said = [probabilities_of(each.left_out, each.estimator.classes_, classes) for each in parts]
    else:
        average, classes = AveragedRegressor.of(fitted, weights), None
        said = [each.left_out for each in parts]
    left_out = np.tensordot(weights, np.stack(said), axes=1)
    losses = judged_losses(classes, left_out, training, counts)
    refined = any(each.candidate.model.endswith(MORE_LANDMARKS) for each in parts)
    candidate = Candidate(
        integrator=parts[0].candidate.integrator,
        model=f"average of {len(parts)}" + (MORE_LANDMARKS if refined else ""),
        anchor_weight=float(weights @ [each.candidate.anchor_weight for each in parts]),
        loss=float(losses.mean()),
        standard_error=float(losses.std() / np.sqrt(len(losses))),
    )
    return Choice(
        candidate=candidate,
        integrator=parts[0].integrator,
        estimator=average,
        rows=parts[0].rows,
        weights=np.average([each.weights for each in parts], axis=0, weights=weights),
        left_out=left_out,
        losses=losses,
        averaged=parts,
    )


def tempered_weights(losses: Sequence[FloatArray], *, squared: bool) -> FloatArray:
    """Weights of candidates by their losses on the same rows, those of next to none set to 0.

    Parameters
    ----------
    losses : sequence of ndarray of shape (n_judges,)
    squared : bool
        Whether they are squared errors, which become log losses of normal errors as large as the best candidate's.

    Returns
    -------
    ndarray of shape (n_candidates,)
        They add up to one.
    """
    totals = np.array([each.sum() for each in losses])
    if squared:
        variance = totals.min() / len(losses[0])
        totals = totals / (2 * variance) if variance > 0 else np.where(totals > 0, np.inf, 0.0)
    weights = np.exp(-_TAU * (totals - totals.min()))
    weights /= weights.sum()
    weights[weights < _LEAST] = 0.0
    return np.asarray(weights / weights.sum())
