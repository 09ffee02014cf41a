"""Small fitted models of many kinds, for the tests of model files."""

import warnings

import numpy as np
from sklearn import (
    calibration,
    compose,
    cross_decomposition,
    decomposition,
    discriminant_analysis,
    dummy,
    ensemble,
    feature_selection,
    kernel_approximation,
    linear_model,
    multiclass,
    naive_bayes,
    neighbors,
    neural_network,
    preprocessing,
    svm,
    tree,
)
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from datacollab.bundle import Bundle
from datacollab.linalg import Kernel
from datacollab.model import MODEL_KIND, KernelMap, LinearMap, PartyModel, head_to, model_contents

N_INTERMEDIATE, N_COMPONENTS = 3, 4

_generator = np.random.default_rng(0)
ANCHOR = _generator.normal(size=(20, N_INTERMEDIATE))
COEFFICIENTS = _generator.normal(size=(20, N_COMPONENTS))
ROWS = _generator.normal(size=(60, N_INTERMEDIATE))

MAPS = {
    "linear": LinearMap("north", _generator.normal(size=(N_INTERMEDIATE, N_COMPONENTS))),
    "rbf": KernelMap("north", ANCHOR, COEFFICIENTS, Kernel(metric="rbf", parameters={"gamma": 0.3})),
    "poly": KernelMap(
        "north",
        ANCHOR,
        0.01 * COEFFICIENTS,
        Kernel(metric="poly", parameters={"gamma": 0.5, "degree": 2, "coef0": 1.0}),
    ),
    "laplacian": KernelMap("north", ANCHOR, COEFFICIENTS, Kernel(metric="laplacian", parameters={"gamma": 0.2})),
    "linear-kernel": KernelMap("north", ANCHOR, COEFFICIENTS, Kernel(metric="linear"), "float64"),
    "column by column": KernelMap(
        "north",
        np.asfortranarray(ANCHOR),
        np.asfortranarray(COEFFICIENTS),
        Kernel(metric="rbf", parameters={"gamma": 1}),
    ),
    "affine": LinearMap(
        "north",
        np.random.default_rng(1).normal(size=(N_INTERMEDIATE, N_COMPONENTS)),
        np.random.default_rng(2).normal(size=N_COMPONENTS),
    ),
}

CLASSIFIERS = {
    "ada": ensemble.AdaBoostClassifier(n_estimators=2),
    "bagging": ensemble.BaggingClassifier(n_estimators=2, max_features=0.5),
    "bernoulli": naive_bayes.BernoulliNB(),
    "calibrated": calibration.CalibratedClassifierCV(svm.LinearSVC(), cv=2),
    "calibrated isotonic": calibration.CalibratedClassifierCV(linear_model.RidgeClassifier(), cv=2, method="isotonic"),
    "dummy": dummy.DummyClassifier(),
    "extra trees": ensemble.ExtraTreesClassifier(2),
    "forest": ensemble.RandomForestClassifier(2, n_jobs=1, random_state=np.random.RandomState(0)),
    "gaussian": naive_bayes.GaussianNB(),
    "gradient boosting": ensemble.GradientBoostingClassifier(n_estimators=2),
    "gradient boosting from zero": ensemble.GradientBoostingClassifier(n_estimators=2, init="zero"),
    "histogram boosting": ensemble.HistGradientBoostingClassifier(max_iter=2, min_samples_leaf=5),
    "linear discriminant": discriminant_analysis.LinearDiscriminantAnalysis(),
    "linear svc": svm.LinearSVC(),
    "logistic": linear_model.LogisticRegression(),
    "network": neural_network.MLPClassifier((5,), max_iter=10),
    "network by lbfgs": neural_network.MLPClassifier((5, 4), max_iter=10, solver="lbfgs"),
    "one against one": multiclass.OneVsOneClassifier(linear_model.LogisticRegression()),
    "one against rest": multiclass.OneVsRestClassifier(linear_model.LogisticRegression()),
    "passed to bins": make_pipeline(
        preprocessing.RobustScaler(),
        preprocessing.QuantileTransformer(n_quantiles=9),
        preprocessing.PowerTransformer(),
        linear_model.LogisticRegression(),
    ),
    "perceptron": linear_model.Perceptron(),
    "pipeline": make_pipeline(preprocessing.StandardScaler(), linear_model.LogisticRegression()),
    "pipeline to trees": make_pipeline(
        preprocessing.MinMaxScaler(),
        preprocessing.PolynomialFeatures(2),
        decomposition.PCA(3),
        feature_selection.SelectKBest(k=2),
        tree.DecisionTreeClassifier(),
    ),
    "quadratic discriminant": discriminant_analysis.QuadraticDiscriminantAnalysis(reg_param=0.1),
    "random features": make_pipeline(
        kernel_approximation.RBFSampler(n_components=9), linear_model.LogisticRegression()
    ),
    "ridge": linear_model.RidgeClassifier(),
    "search": GridSearchCV(linear_model.LogisticRegression(), {"C": [0.1, 1.0]}, cv=2),
    "sgd": linear_model.SGDClassifier(loss="log_loss"),
    "stacking": ensemble.StackingClassifier(
        [("one", linear_model.LogisticRegression()), ("two", naive_bayes.GaussianNB())], cv=2
    ),
    "tree": tree.DecisionTreeClassifier(),
    "voting": ensemble.VotingClassifier(
        [("one", linear_model.LogisticRegression()), ("cv", tree.DecisionTreeClassifier())], voting="soft"
    ),
}
REGRESSORS = {
    "ada": ensemble.AdaBoostRegressor(n_estimators=2),
    "bagging": ensemble.BaggingRegressor(n_estimators=2),
    "bayesian": linear_model.BayesianRidge(),
    "elastic net": linear_model.ElasticNetCV(cv=2),
    "extra trees": ensemble.ExtraTreesRegressor(2),
    "forest": ensemble.RandomForestRegressor(2),
    "gamma": linear_model.GammaRegressor(),
    "gradient boosting": ensemble.GradientBoostingRegressor(n_estimators=2, loss="huber"),
    "histogram boosting": ensemble.HistGradientBoostingRegressor(max_iter=2, min_samples_leaf=5),
    "huber": linear_model.HuberRegressor(),
    "lasso": linear_model.Lasso(),
    "linear": linear_model.LinearRegression(),
    "linear svr": svm.LinearSVR(),
    "network": neural_network.MLPRegressor(hidden_layer_sizes=(5,), max_iter=10),
    "pls": cross_decomposition.PLSRegression(2),
    "poisson": linear_model.PoissonRegressor(),
    "quantile": linear_model.QuantileRegressor(),
    "ridge": linear_model.Ridge(),
    "sgd": linear_model.SGDRegressor(),
    "stacking": ensemble.StackingRegressor([("one", linear_model.Ridge()), ("two", linear_model.Lasso())], cv=2),
    "transformed target": compose.TransformedTargetRegressor(
        linear_model.Ridge(), transformer=preprocessing.StandardScaler()
    ),
    "tree": tree.DecisionTreeRegressor(),
    "voting": ensemble.VotingRegressor([("one", linear_model.Ridge()), ("two", linear_model.Lasso())]),
}
ROW_CARRIERS = {
    "gp": GaussianProcessClassifier(),
    "k-nn": neighbors.KNeighborsClassifier(),
    "k-nn by brute force": neighbors.KNeighborsClassifier(algorithm="brute"),
    "k-nn by balls": neighbors.KNeighborsClassifier(algorithm="ball_tree", metric="manhattan"),
    "k-nn after a scaler": make_pipeline(preprocessing.StandardScaler(), neighbors.KNeighborsClassifier()),
    "nearest in a radius": neighbors.RadiusNeighborsClassifier(radius=99.0),
    "nu svc": svm.NuSVC(nu=0.1),
    "nystroem": make_pipeline(kernel_approximation.Nystroem(n_components=9), linear_model.LogisticRegression()),
    "svc": svm.SVC(),
    "svc after a scaler": make_pipeline(preprocessing.StandardScaler(), svm.SVC()),
}
ROW_CARRYING_REGRESSORS = {
    "gp": GaussianProcessRegressor(RBF() + WhiteKernel()),
    "k-nn": neighbors.KNeighborsRegressor(),
    "kernel ridge": KernelRidge(kernel="rbf"),
    "nu svr": svm.NuSVR(),
    "svr": svm.SVR(),
}


def targets(*, regression=False, dtype="U1", n_classes=3):
    """Targets of ROWS that depend on them."""
    score = ROWS @ [1.0, -0.5, 0.3]
    if regression:
        return np.exp(0.3 * score)
    codes = np.digitize(score, np.quantile(score, np.linspace(0, 1, n_classes + 1)[1:-1]))
    return np.array(["x", "y", "z"])[codes].astype(dtype) if dtype in ("U1", object) else codes.astype(dtype)


def fitted(estimator, g=None, y=None):
    """The model of a party, with the estimator fitted in the common space."""
    g = MAPS["rbf"] if g is None else g
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        estimator.fit(g(ROWS), targets() if y is None else y)
    return PartyModel(party="north", integration_function=g, estimator=estimator)


def bundle_of(model, *, onnx=False):
    """What a party would unpack."""
    facts, members = model_contents(model, onnx=onnx)
    return Bundle(kind=MODEL_KIND, version=5, facts=facts, members=members, signer=None, digest="")


def bundle_of_objects(model, *, onnx=False):
    """The same with the estimator as an object of scikit-learn, also where it could be numbers."""
    facts, members = model_contents(model, onnx=onnx, objects=True)
    estimator = getattr(model.estimator, "best_estimator_", model.estimator)
    head, objects = head_to(estimator, "h", objects=True)
    members = {name: data for name, data in members.items() if not name.startswith("h.")} | objects
    return Bundle(kind=MODEL_KIND, version=5, facts=facts | {"head": head}, members=members, signer=None, digest="")
