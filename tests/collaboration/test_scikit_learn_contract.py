"""scikit-learn's own checks.

They call ``fit(X, y)`` and ``predict(X)`` with nothing else, so an adapter says who owns which row (in turn, two
parties) and makes an anchor.  Rows to be predicted all go through the first party, whatever batch they come in.
"""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.utils.estimator_checks import check_estimator
from sklearn.utils.validation import _num_samples

from datacollab import (
    KTI,
    Central,
    DataCollaborationClassifier,
    DataCollaborationRegressor,
)


class _Adapter:
    def fit(self, X, y):
        shape = X.shape if hasattr(X, "shape") else np.asarray(X).shape
        anchor = np.random.default_rng(0).normal(size=(30, shape[1])) if len(shape) == 2 else X
        return super().fit(X, y, groups=np.arange(_num_samples(X)) % 2, anchor=anchor)

    def predict(self, X, groups=None):
        return super().predict(X, groups=first_party(X))

    def transform(self, X, groups=None):
        return super().transform(X, groups=first_party(X))

    def fit_transform(self, X, y):
        return self.fit(X, y).transform(X)

    def score(self, X, y):
        return super().score(X, y, groups=first_party(X))


class Classifier(_Adapter, DataCollaborationClassifier):
    def predict_proba(self, X):
        return super().predict_proba(X, groups=first_party(X))


class Regressor(_Adapter, DataCollaborationRegressor):
    pass


def first_party(X):
    return np.zeros(_num_samples(X), dtype=int)


def identity():
    return FunctionTransformer(validate=True)


ESTIMATORS = [
    Classifier(identity(), KTI(10, alpha=1e-4), make_pipeline(StandardScaler(), LogisticRegression())),
    Regressor(identity(), KTI(10, alpha=1e-4), make_pipeline(StandardScaler(), Ridge(1e-3))),
    Central(LogisticRegression()),
    Central(Ridge()),
]


def expected_failures(estimator):
    if isinstance(estimator, _Adapter):
        return {
            "check_dtype_object": "an entry that is no number is not shown, so it is not a TypeError that quotes it"
        }
    return {}


# The adapter's anchor is drawn without a look at X, which the checks place where they like.
@pytest.mark.filterwarnings("ignore:In most columns the anchor", "ignore:The anchor has as many rows")
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda estimator: type(estimator).__name__)
def test_scikit_learn_contract(estimator):
    check_estimator(estimator, expected_failed_checks=expected_failures(estimator), on_skip=None)
