"""One fitted model of every kind that can be sent, and of the settings that change what it computes."""

import warnings

import numpy as np
import sklearn
from sklearn import (
    calibration,
    compose,
    decomposition,
    discriminant_analysis,
    dummy,
    ensemble,
    feature_selection,
    linear_model,
    naive_bayes,
    neural_network,
    preprocessing,
    svm,
    tree,
)
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.pipeline import make_pipeline
from sklearn.utils.fixes import parse_version

from datacollab.model import (
    AveragedClassifier,
    AveragedRegressor,
    CalibratedForestClassifier,
    LandmarkRidgeClassifier,
    LandmarkRidgeRegressor,
)

# Scikit-learn before 1.8 does not know it, and from then on warns without.
_KNOWN = linear_model.LogisticRegressionCV().get_params()
NEW_ATTRIBUTES = {"use_legacy_attributes": False} if "use_legacy_attributes" in _KNOWN else {}


class Average(BaseEstimator):
    """Models that are fitted, and then averaged."""

    def __init__(self, models, weights):
        self.models, self.weights = models, weights

    def fit(self, X, y):
        models = [clone(model).fit(X, y) for model in self.models]
        return (AveragedClassifier if is_classifier(models[0]) else AveragedRegressor)(models, self.weights)


N_COLUMNS = 4
LANDMARKS = np.random.default_rng(7).normal(size=(15, N_COLUMNS))
_logistic, _bayes = linear_model.LogisticRegression(), naive_bayes.GaussianNB()
_forest = ensemble.RandomForestClassifier(4, random_state=0)
_boosting = {"n_estimators": 4, "random_state": 0}

CLASSIFIERS = {
    "averaged": Average([LandmarkRidgeClassifier(LANDMARKS, gamma=0.2), _forest], weights=[1, 2]),
    "boosting": ensemble.GradientBoostingClassifier(**_boosting),
    "boosting by exponential loss": ensemble.GradientBoostingClassifier(loss="exponential", **_boosting),
    "boosting from zero": ensemble.GradientBoostingClassifier(init="zero", **_boosting),
    "boosting from a constant": ensemble.GradientBoostingClassifier(init=dummy.DummyClassifier(), **_boosting),
    "calibrated bayes": calibration.CalibratedClassifierCV(_bayes, cv=3),
    "calibrated bayes isotonic": calibration.CalibratedClassifierCV(_bayes, cv=3, method="isotonic"),
    "calibrated boosting": calibration.CalibratedClassifierCV(ensemble.GradientBoostingClassifier(**_boosting), cv=2),
    "calibrated forest": CalibratedForestClassifier(5, random_state=0),
    "calibrated pipeline": calibration.CalibratedClassifierCV(
        make_pipeline(preprocessing.RobustScaler(), _bayes), cv=2
    ),
    "calibrated ridge isotonic": calibration.CalibratedClassifierCV(
        linear_model.RidgeClassifier(), cv=3, method="isotonic"
    ),
    "calibrated together": calibration.CalibratedClassifierCV(svm.LinearSVC(random_state=0), cv=3, ensemble=False),
    "discriminant": discriminant_analysis.LinearDiscriminantAnalysis(),
    "discriminant by lsqr": discriminant_analysis.LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto"),
    "extra trees": ensemble.ExtraTreesClassifier(4, random_state=0),
    "extra tree": tree.ExtraTreeClassifier(random_state=0),
    "forest": _forest,
    "forest of small trees": ensemble.RandomForestClassifier(
        4, max_leaf_nodes=6, class_weight="balanced", random_state=0
    ),
    "histogram boosting": ensemble.HistGradientBoostingClassifier(max_iter=4, min_samples_leaf=5),
    "landmark ridge": LandmarkRidgeClassifier(LANDMARKS, gamma=0.2),
    "linear landmark ridge": LandmarkRidgeClassifier(kernel="linear"),
    "linear svc": svm.LinearSVC(random_state=0),
    "logistic": _logistic,
    "logistic by folds": linear_model.LogisticRegressionCV(Cs=3, cv=3, **NEW_ATTRIBUTES),
    "logistic without intercept": linear_model.LogisticRegression(fit_intercept=False),
    "naive bayes": _bayes,
    "network": neural_network.MLPClassifier((5, 4), max_iter=10, random_state=0),
    "network of hyperbolic tangents": neural_network.MLPClassifier(
        (5,), activation="tanh", max_iter=10, random_state=0
    ),
    "perceptron": linear_model.Perceptron(random_state=0),
    "pipeline of everything": make_pipeline(
        preprocessing.StandardScaler(),
        preprocessing.MinMaxScaler(clip=True),
        preprocessing.RobustScaler(),
        preprocessing.MaxAbsScaler(),
        feature_selection.VarianceThreshold(),
        feature_selection.SelectKBest(k=3),
        decomposition.PCA(2, whiten=True),
        "passthrough",
        _logistic,
    ),
    "pipeline of svd": make_pipeline(
        feature_selection.SelectPercentile(percentile=80), decomposition.TruncatedSVD(2, random_state=0), _forest
    ),
    "pipeline that only centres": make_pipeline(
        preprocessing.StandardScaler(with_std=False), preprocessing.RobustScaler(with_centering=False), _logistic
    ),
    "pipeline that only scales": make_pipeline(
        preprocessing.StandardScaler(with_mean=False), preprocessing.RobustScaler(with_scaling=False), _logistic
    ),
    "pipeline within a pipeline": make_pipeline(
        preprocessing.StandardScaler(), make_pipeline(decomposition.PCA(2), _logistic)
    ),
    "ridge": linear_model.RidgeClassifier(),
    "ridge by folds": linear_model.RidgeClassifierCV(),
    "sgd": linear_model.SGDClassifier(random_state=0),
    "sgd with probabilities": linear_model.SGDClassifier(loss="log_loss", random_state=0),
    "tree": tree.DecisionTreeClassifier(random_state=0),
    "vote": ensemble.VotingClassifier(
        [("a", _logistic), ("b", _forest), ("c", _bayes)], voting="soft", weights=[1, 2, 3]
    ),
    "vote, one dropped": ensemble.VotingClassifier(
        [("a", _logistic), ("b", "drop"), ("c", _bayes)], voting="soft", weights=[1, 2, 3]
    ),
}
if parse_version(sklearn.__version__) >= parse_version("1.8"):
    for _name, _model in {"bayes": _bayes, "discriminant": discriminant_analysis.LinearDiscriminantAnalysis()}.items():
        CLASSIFIERS[f"calibrated {_name} by temperature"] = calibration.CalibratedClassifierCV(
            _model, cv=2, method="temperature"
        )
if parse_version(sklearn.__version__) >= parse_version("1.9"):
    CLASSIFIERS["pipeline that cuts off"] = make_pipeline(preprocessing.MaxAbsScaler(clip=True), _logistic)
REGRESSORS = {
    "averaged": Average([LandmarkRidgeRegressor(LANDMARKS, gamma=0.2), linear_model.Ridge()], weights=[1, 3]),
    "ard": linear_model.ARDRegression(),
    "bayesian": linear_model.BayesianRidge(),
    "boosting": ensemble.GradientBoostingRegressor(**_boosting),
    "boosting from zero": ensemble.GradientBoostingRegressor(init="zero", loss="huber", **_boosting),
    "elastic net": linear_model.ElasticNet(alpha=0.01),
    "elastic net by folds": linear_model.ElasticNetCV(cv=3),
    "extra tree": tree.ExtraTreeRegressor(random_state=0),
    "extra trees": ensemble.ExtraTreesRegressor(4, random_state=0),
    "forest": ensemble.RandomForestRegressor(4, random_state=0),
    "gamma": linear_model.GammaRegressor(),
    "histogram boosting": ensemble.HistGradientBoostingRegressor(max_iter=4, min_samples_leaf=5),
    "histogram boosting of counts": ensemble.HistGradientBoostingRegressor(
        max_iter=4, min_samples_leaf=5, loss="poisson"
    ),
    "huber": linear_model.HuberRegressor(),
    "landmark ridge": LandmarkRidgeRegressor(LANDMARKS, gamma=0.2),
    "lars": linear_model.Lars(),
    "lars by folds": linear_model.LarsCV(cv=3),
    "lasso": linear_model.Lasso(alpha=0.01),
    "lasso by folds": linear_model.LassoCV(cv=3),
    "lasso lars": linear_model.LassoLars(alpha=0.01),
    "lasso lars by criterion": linear_model.LassoLarsIC(),
    "lasso lars by folds": linear_model.LassoLarsCV(cv=3),
    "linear": linear_model.LinearRegression(),
    "linear svr": svm.LinearSVR(random_state=0),
    "logarithm": compose.TransformedTargetRegressor(_ := linear_model.Ridge(), func=np.log, inverse_func=np.exp),
    "logarithm of one more": compose.TransformedTargetRegressor(_, func=np.log1p, inverse_func=np.expm1),
    "matching pursuit": linear_model.OrthogonalMatchingPursuit(),
    "matching pursuit by folds": linear_model.OrthogonalMatchingPursuitCV(cv=3),
    "network": neural_network.MLPRegressor(hidden_layer_sizes=(5,), activation="logistic", max_iter=10, random_state=0),
    "network without bends": neural_network.MLPRegressor(
        hidden_layer_sizes=(5,), activation="identity", max_iter=10, random_state=0
    ),
    "poisson": linear_model.PoissonRegressor(),
    "quantile": linear_model.QuantileRegressor(alpha=0.01),
    "ridge": linear_model.Ridge(),
    "ridge by folds": linear_model.RidgeCV(),
    "scaled target": compose.TransformedTargetRegressor(_, transformer=preprocessing.StandardScaler()),
    "scaled target, not centred": compose.TransformedTargetRegressor(
        _, transformer=preprocessing.StandardScaler(with_mean=False)
    ),
    "sgd": linear_model.SGDRegressor(random_state=0),
    "theil-sen": linear_model.TheilSenRegressor(random_state=0, max_subpopulation=100),
    "tree": tree.DecisionTreeRegressor(random_state=0),
    "tweedie": linear_model.TweedieRegressor(power=1.5),
    "tweedie of no power": linear_model.TweedieRegressor(power=0),
    "vote": ensemble.VotingRegressor([("a", linear_model.Ridge()), ("b", tree.DecisionTreeRegressor(max_depth=3))]),
}
TWO_CLASSES_ONLY = {"boosting by exponential loss"}


def fitted(estimator, *, n_classes=0, seed=0, n_rows=120):
    """Fitted to rows of a draw; a regressor where there are no classes."""
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(n_rows, N_COLUMNS)) * generator.uniform(0.5, 3, N_COLUMNS)
    score = X[:, 0] + 0.5 * X[:, 1] ** 2 + generator.normal(size=n_rows)
    y = np.exp(score / 3)
    if n_classes:
        bounds = np.quantile(score, np.linspace(0, 1, n_classes + 1)[1:-1])
        y = np.array(["a", "b", "c"])[np.digitize(score, bounds)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return clone(estimator).fit(X, y)
