"""scikit-learn's own checks.

They call ``fit(X, y)`` and ``predict(X)`` with nothing else, so an adapter says who owns which row (in turn, two
parties) and makes an anchor.  Rows to be predicted all go through the first party, whatever batch they come in.
"""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.utils.estimator_checks import check_estimator
from sklearn.utils.validation import _num_samples

from datacollab import KTI, Central, DataCollaborationClassifier, DataCollaborationRegressor
from datacollab.estimators import DataCollaborationClusterer


class _Adapter:
    n_parties = 2

    def fit(self, X, y=None):
        shape = X.shape if hasattr(X, "shape") else np.asarray(X).shape
        anchor = np.random.default_rng(0).normal(size=(60, shape[1])) if len(shape) == 2 else X
        if hasattr(X, "columns"):
            anchor = pd.DataFrame(anchor, columns=X.columns)
        return super().fit(X, y, groups=np.arange(_num_samples(X)) % self.n_parties, anchor=anchor)

    def predict(self, X, groups=None):
        return super().predict(X, groups=first_party(X))

    def transform(self, X, groups=None):
        return super().transform(X, groups=first_party(X))

    def fit_transform(self, X, y=None):
        return self.fit(X, y).transform(X)


class _Scored(_Adapter):
    def score(self, X, y):
        return super().score(X, y, groups=first_party(X))


class Classifier(_Scored, DataCollaborationClassifier):
    def predict_proba(self, X):
        return super().predict_proba(X, groups=first_party(X))


class Regressor(_Scored, DataCollaborationRegressor):
    pass


class Clusterer(_Adapter, DataCollaborationClusterer):
    def fit_predict(self, X, y=None):
        return self.fit(X).labels_


class ClassifierBySums(Classifier):
    n_parties = 3


class RegressorBySums(Regressor):
    n_parties = 3


def first_party(X):
    return np.zeros(_num_samples(X), dtype=int)


def identity():
    return FunctionTransformer(validate=True)


ESTIMATORS = [
    Classifier(identity(), KTI(10, alpha=1e-4), make_pipeline(StandardScaler(), LogisticRegression())),
    Regressor(identity(), KTI(10, alpha=1e-4), make_pipeline(StandardScaler(), Ridge(1e-3))),
    Clusterer(identity(), n_clusters=2, least_rows=1),
    ClassifierBySums(random_state=0),
    RegressorBySums(random_state=0),
    Central(LogisticRegression()),
    Central(Ridge()),
]


WHY = "an entry that is no number is not shown, so it is not a TypeError that quotes it"


# The adapter's anchor is drawn without a look at X, which the checks place where they like.
@pytest.mark.filterwarnings("ignore:In most columns the anchor", "ignore:The anchor has as many rows")
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda estimator: type(estimator).__name__)
def test_scikit_learn_contract(estimator):
    expected = {"check_dtype_object": WHY} if isinstance(estimator, _Adapter) else {}
    check_estimator(estimator, expected_failed_checks=expected, on_skip=None)
