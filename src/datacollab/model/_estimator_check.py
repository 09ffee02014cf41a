"""Whether the parts of a fitted estimator fit together, before it is used.

Compiled code in scikit-learn and libsvm believes what it finds in the arrays.  What it would follow out of bounds is
checked here in full; for estimators that only add and multiply, the shapes of what is multiplied are.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ExchangeError
from ._array_shapes import SHAPED, check_array_shapes
from ._columns import check_columns
from ._neighbours import check_neighbours
from ._parts import parts_of
from ._refusal import malformed
from ._support_vectors import check_support_vectors
from ._tree_arrays import check_histogram_tree

__all__ = ["check_estimator"]

_TREES = ("DecisionTreeClassifier", "DecisionTreeRegressor", "ExtraTreeClassifier", "ExtraTreeRegressor")
_MOST_POLYNOMIALS = 10**5


def check_estimator(estimator: Any, n_features: int) -> None:
    """Check a loaded estimator.

    Parameters
    ----------
    estimator : estimator
        Made of trusted types only.
    n_features : int
        Columns that it has to take.

    Raises
    ------
    ExchangeError
        MODEL_MALFORMED.
    """
    try:
        for part in parts_of(estimator):
            _check_attributes(part)
            _check_classes(part)
            for names, check in _CHECKS.items():
                if type(part).__name__ in names and _is_fitted(part):
                    check(part)
        check_columns(estimator, n_features)
    except ExchangeError:
        raise
    # Attributes of any type may be missing, or be of another type than they should.
    except Exception as error:
        raise _malformed(estimator, f"lacks what its kind has ({type(error).__name__})") from None


def _is_fitted(part: Any) -> bool:
    """Whether there is anything to use; ensembles keep the estimator they were told to copy, which is not fitted."""
    return not vars(part).keys() <= vars(type(part)()).keys()


def _check_attributes(part: Any) -> None:
    """An attribute of the name of a method or property would be used instead of it."""
    for name in vars(part):
        of_class = inspect.getattr_static(type(part), name, None)
        if callable(of_class) or hasattr(type(of_class), "__get__"):
            raise _malformed(part, "has something else in a method's place")
    if any(vars(part).get(name) == "precomputed" for name in ("kernel", "metric")):
        raise _malformed(part, "wants distances or kernels in place of rows")


def _check_classes(part: Any) -> None:
    n_features = vars(part).get("n_features_in_", 1)
    if isinstance(n_features, bool) or not isinstance(n_features, int | np.integer) or n_features < 1:
        raise _malformed(part, "does not say how many columns it takes")
    classes = vars(part).get("classes_")
    if classes is None:
        return
    if not isinstance(classes, np.ndarray) or classes.ndim != 1 or classes.size == 0:
        raise _malformed(part, "does not list its classes")
    if classes.dtype == object and not all(isinstance(name, str) for name in classes):
        raise _malformed(part, "has classes that are neither texts nor numbers")
    if len(np.unique(classes)) != len(classes):
        raise _malformed(part, "lists a class twice")


def _check_tree(part: Any) -> None:
    tree = part.tree_
    if tree.n_features != part.n_features_in_ or part.n_outputs_ != 1 or tree.n_outputs != 1:
        raise _malformed(part, "has a tree for other columns or targets")
    wanted = part.n_classes_ if hasattr(part, "classes_") else 1
    if tree.max_n_classes != wanted or (hasattr(part, "classes_") and wanted != len(part.classes_)):
        raise _malformed(part, "has a tree for other classes")


def _check_forest(part: Any) -> None:
    for tree in _estimators(part.estimators_, part):
        if type(tree).__name__ not in _TREES or tree.n_features_in_ != part.n_features_in_:
            raise _malformed(part, "has trees that take other columns")
        if hasattr(part, "classes_") and not tree.n_classes_ == part.n_classes_ == len(part.classes_):
            raise _malformed(part, "has trees for other classes")
    if part.n_outputs_ != 1:
        raise _malformed(part, "predicts several targets")


def _check_gradient_boosting(part: Any) -> None:
    """Compiled code adds each tree's values to a column of the first predictions, at which it does not look."""
    n_classes = len(part.classes_) if hasattr(part, "classes_") else 1
    n_columns = n_classes if n_classes > 2 else 1
    stages = part.estimators_
    if not isinstance(stages, np.ndarray) or stages.shape != (len(stages), n_columns) or len(stages) == 0:
        raise _malformed(part, "does not have one tree for each class and step")
    if part.n_trees_per_iteration_ != n_columns:
        raise _malformed(part, "does not have one tree for each class and step")
    for tree in stages.ravel():
        if type(tree).__name__ != "DecisionTreeRegressor" or tree.n_features_in_ != part.n_features_in_:
            raise _malformed(part, "has trees that take other columns")
    if not isinstance(part.learning_rate, float | int) or not math.isfinite(part.learning_rate):
        raise _malformed(part, "has no learning rate")
    first = part._raw_predict_init(np.zeros((2, part.n_features_in_), dtype=np.float32))
    if first.shape != (2, n_columns) or first.dtype != np.float64:
        raise _malformed(part, "starts from predictions for other classes")


def _check_histogram_boosting(part: Any) -> None:
    n_classes = len(part.classes_) if hasattr(part, "classes_") else 1
    n_columns = n_classes if n_classes > 2 else 1
    mapper = part._bin_mapper
    if getattr(part, "_in_fit", False) or vars(part).get("_preprocessor") is not None:
        raise _malformed(part, "was not fitted to an end, or takes categories")
    if mapper.is_categorical_.shape != (part.n_features_in_,) or mapper.is_categorical_.any():
        raise _malformed(part, "takes categories, where the collaboration representation has numbers only")
    if part.n_trees_per_iteration_ != n_columns or part._baseline_prediction.shape != (1, n_columns):
        raise _malformed(part, "does not have one tree for each class and step")
    for stage in part._predictors:
        if not isinstance(stage, list) or len(stage) != n_columns:
            raise _malformed(part, "does not have one tree for each class and step")
        for predictor in stage:
            check_histogram_tree(predictor, part.n_features_in_)


def _check_bagging(part: Any) -> None:
    estimators = _estimators(part.estimators_, part)
    if len(part.estimators_features_) != len(estimators):
        raise _malformed(part, "does not say which columns its estimators take")
    for features in part.estimators_features_:
        _check_indices(part, features, part.n_features_in_)


def _check_polynomials(part: Any) -> None:
    if type(part.degree) is not int or not 0 <= part.degree <= 64 or part._max_degree != part.degree:
        raise _malformed(part, "does not have one degree")
    if math.comb(part.n_features_in_ + part.degree, part.degree) > _MOST_POLYNOMIALS:
        raise _malformed(part, f"makes more than {_MOST_POLYNOMIALS} columns")


def _check_indices(part: Any, indices: NDArray[Any], size: int) -> None:
    if (
        indices.ndim != 1
        or indices.dtype.kind not in "iu"
        or (indices.size and not 0 <= indices.min() <= indices.max() < size)
    ):
        raise _malformed(part, "points to columns, rows or classes that are not there")


def _estimators(estimators: Any, part: Any) -> list[Any]:
    if not isinstance(estimators, list) or not estimators:
        raise _malformed(part, "has no estimators")
    return estimators


_CHECKS: dict[tuple[str, ...], Callable[[Any], None]] = {
    SHAPED: check_array_shapes,
    _TREES: _check_tree,
    (
        *("RandomForestClassifier", "RandomForestRegressor"),
        *("ExtraTreesClassifier", "ExtraTreesRegressor"),
    ): _check_forest,
    ("GradientBoostingClassifier", "GradientBoostingRegressor"): _check_gradient_boosting,
    ("HistGradientBoostingClassifier", "HistGradientBoostingRegressor"): _check_histogram_boosting,
    ("BaggingClassifier", "BaggingRegressor"): _check_bagging,
    (
        *("KNeighborsClassifier", "KNeighborsRegressor"),
        *("RadiusNeighborsClassifier", "RadiusNeighborsRegressor"),
    ): check_neighbours,
    ("PolynomialFeatures",): _check_polynomials,
    ("NuSVC", "NuSVR", "SVC", "SVR"): check_support_vectors,
}


def _malformed(part: Any, what: str) -> ExchangeError:
    return malformed(f"its {type(part).__name__} {what}")
