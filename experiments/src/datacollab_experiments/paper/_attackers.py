"""The paper's attackers that the library has not."""

import warnings
from typing import Any, ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPRegressor

from datacollab._validation import FloatArray
from datacollab.linalg import leading_left_singular
from datacollab.risk.attacks import ReconstructionAttack
from datacollab.risk.attacks._attack import IntArray


class PseudoinverseAttack(ReconstructionAttack):
    r"""Inverse of the obfuscator estimated as a linear map, the attack "PINV" of [1]_.

    Of the linear maps that fit the centred leaked pairs best, :math:`F = (A^c)^\dagger \tilde A^c` has minimum norm.  A
    representation z becomes :math:`\bar A + (z - \bar{\tilde A}) F^\dagger`.  An obfuscator that is not linear may make
    all reconstructions nearly equal: the attack has failed, which shows nothing about the obfuscator.

    Attributes
    ----------
    coefficients_ : ndarray of shape (n_intermediate, n_features)

    References
    ----------
    .. [1] Suetake, Kawakami, Ikeda and Takano. Nonlinear data integration via kernel methods for data collaboration
       analysis.
    """

    coefficients_: FloatArray

    def _fit(self, Z: FloatArray, A: FloatArray, *side: Any) -> None:
        U, singular_values, V = leading_left_singular(A)
        # The pseudoinverse of the leaked rows, without directions that are rounding.
        F = (V / singular_values) @ (U.T @ Z)
        U, singular_values, V = leading_left_singular(F)
        self.coefficients_ = (V / singular_values) @ U.T

    def _reconstruct(self, Z: FloatArray, groups: IntArray | None) -> FloatArray:
        return Z @ self.coefficients_


class MLPAttack(ReconstructionAttack):
    """A multilayer perceptron from the representation to the original, the attack "MLP" of [1]_.

    One hidden layer of 128 rectified linear units, trained on the centred leaked pairs with Adam for at most 600
    epochs, and stopped early when the fit to a fifth of the pairs, held out, no longer improves.

    Parameters
    ----------
    random_state : int, RandomState instance or None, default=None
        Determines the initial weights, the pairs held out and the order of the others.

    Attributes
    ----------
    regressor_ : MLPRegressor
        Fitted to the centred pairs.
    mean_representation_ : ndarray of shape (n_intermediate,)
    mean_original_ : ndarray of shape (n_features,)

    Notes
    -----
    Columns are not scaled, so units matter: with entries far from 1, in the representation or in the originals,
    training may stop long before anything is learnt.  That it ends at the limit of 600 epochs is part of the attack and
    not warned of.  ``regressor_.n_iter_`` tells.

    References
    ----------
    .. [1] Suetake, Kawakami, Ikeda and Takano. Nonlinear data integration via kernel methods for data collaboration
       analysis.

    Examples
    --------
    >>> import numpy as np
    >>> from datacollab_experiments.paper import MLPAttack
    >>> leaked = np.random.default_rng(0).normal(size=(50, 3))
    >>> attack = MLPAttack(random_state=0).fit(np.tanh(leaked), leaked)
    >>> attack.reconstruct(np.tanh(leaked[:4])).shape
    (4, 3)
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {"random_state": ["random_state"]}
    # Two pairs at least must be held out for the score on them to exist.
    _min_pairs: ClassVar[int] = 6

    regressor_: MLPRegressor

    def __init__(self, *, random_state: int | np.random.RandomState | None = None) -> None:
        self.random_state = random_state

    def _fit(self, Z: FloatArray, A: FloatArray, *side: Any) -> None:
        regressor = MLPRegressor(
            hidden_layer_sizes=(128,),
            activation="relu",
            solver="adam",
            max_iter=600,
            early_stopping=True,
            validation_fraction=0.2,
            random_state=self.random_state,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            # A column that never varies is known already; leaving it out makes images a third cheaper.
            self._varying = np.ptp(A, axis=0) > 0
            if not self._varying.any():
                self._varying[:] = True
            varying = A[:, self._varying]
            # scikit-learn wants a single output as a vector.
            self.regressor_ = regressor.fit(Z, varying.ravel() if varying.shape[1] == 1 else varying)

    def _reconstruct(self, Z: FloatArray, groups: Any) -> FloatArray:
        guesses = np.zeros((len(Z), len(self._varying)))
        predicted: FloatArray = self.regressor_.predict(Z)
        guesses[:, self._varying] = predicted[:, None] if predicted.ndim == 1 else predicted
        return guesses
