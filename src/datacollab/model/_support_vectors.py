"""Support vector machines, whose library reads as many numbers as it is told to."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..errors import ExchangeError
from ._refusal import malformed

__all__ = ["check_support_vectors"]

_KINDS = {"SVC": "c_svc", "NuSVC": "nu_svc", "SVR": "epsilon_svr", "NuSVR": "nu_svr"}
_KERNELS = ("linear", "poly", "rbf", "sigmoid")
_MOST_DEGREE = 100


def check_support_vectors(part: Any) -> None:
    """Check an SVC, NuSVC, SVR or NuSVR.

    Raises
    ------
    ExchangeError
        MODEL_MALFORMED.
    """
    is_classifier = hasattr(part, "classes_")
    n_classes = len(part.classes_) if is_classifier else 2
    n_vectors = len(part.support_vectors_)
    n_pairs = n_classes * (n_classes - 1) // 2 if is_classifier else 1
    shapes = {
        "support_": ((n_vectors,), np.int32),
        "support_vectors_": ((n_vectors, part.n_features_in_), np.float64),
        "_n_support": ((n_classes,), np.int32),
        "_dual_coef_": ((n_classes - 1, n_vectors), np.float64),
        "_intercept_": ((n_pairs,), np.float64),
    }
    for name, (shape, dtype) in shapes.items():
        array = vars(part)[name]
        if array.shape != shape or array.dtype != dtype or not np.isfinite(array).all():
            raise _malformed(part, f"has {name} of another shape or type, or infinite")
    probabilities = {vars(part)["_probA"].shape, vars(part)["_probB"].shape}
    if (
        probabilities not in ({(0,)}, {(n_pairs,)})
        or part._probA.dtype != np.float64
        or part._probB.dtype != np.float64
    ):
        raise _malformed(part, "lacks what its probabilities are computed from")
    # In regression the library writes no more than the first entry.
    counted = part._n_support if is_classifier else part._n_support[:1]
    if counted.min() < 0 or counted.sum() != n_vectors or n_vectors == 0:
        raise _malformed(part, "counts its support vectors otherwise")
    if part.kernel not in _KERNELS or part._sparse or part._impl != _KINDS[type(part).__name__]:
        raise _malformed(part, "has a kernel other than the usual ones")
    is_finite = all(math.isfinite(value) for value in (part._gamma, part.coef0, part.cache_size))
    if type(part.degree) is not int or not 0 <= part.degree <= _MOST_DEGREE or not is_finite:
        raise _malformed(part, "has a kernel of impossible parameters")


def _malformed(part: Any, what: str) -> ExchangeError:
    return malformed(f"its {type(part).__name__} {what}")
