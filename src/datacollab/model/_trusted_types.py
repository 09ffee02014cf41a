"""Types that a model may consist of.  Everything else is refused before anything is constructed.

Much shorter than what skops trusts by default: left out is all that calls a function given to it, reads files, or has
no check of its inner consistency in `check_estimator`.
"""

from __future__ import annotations

import importlib
from functools import cache

__all__ = ["ARRAYS", "FUNCTIONS", "KEY_TYPES", "LOSSES", "TREE", "trusted_objects"]

TREE = "sklearn.tree._tree.Tree"

ARRAYS = frozenset({"numpy.ndarray"}) | {
    f"numpy.{name}"
    for name in (
        *("bool", "bool_", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
        *("float16", "float32", "float64", "str_"),
    )
}

KEY_TYPES = frozenset({"builtins.str", "builtins.int", "builtins.float", "builtins.bool"}) | {
    "numpy.str_",
    "numpy.int64",
    "numpy.float64",
}

FUNCTIONS = frozenset(
    f"sklearn.feature_selection._univariate_selection.{name}" for name in ("f_classif", "f_regression")
)
"""Called in fitting only."""

LOSSES = frozenset(
    f"sklearn._loss._loss.Cy{name}"
    for name in (
        *("AbsoluteError", "ExponentialLoss", "HalfBinomialLoss", "HalfGammaLoss", "HalfMultinomialLoss"),
        *("HalfPoissonLoss", "HalfSquaredError", "HalfTweedieLoss", "HalfTweedieLossIdentity", "HuberLoss"),
        "PinballLoss",
    )
) | {
    f"sklearn.linear_model._sgd_fast.{name}"
    for name in ("EpsilonInsensitive", "Hinge", "ModifiedHuber", "SquaredEpsilonInsensitive", "SquaredHinge")
}

_PUBLIC = {
    "sklearn.calibration": ("CalibratedClassifierCV",),
    "sklearn.compose": ("TransformedTargetRegressor",),
    "sklearn.cross_decomposition": ("PLSRegression",),
    "sklearn.decomposition": ("PCA", "TruncatedSVD"),
    "sklearn.discriminant_analysis": ("LinearDiscriminantAnalysis", "QuadraticDiscriminantAnalysis"),
    "sklearn.dummy": ("DummyClassifier", "DummyRegressor"),
    "sklearn.ensemble": (
        *("AdaBoostClassifier", "AdaBoostRegressor", "BaggingClassifier", "BaggingRegressor"),
        *("ExtraTreesClassifier", "ExtraTreesRegressor", "GradientBoostingClassifier", "GradientBoostingRegressor"),
        *("HistGradientBoostingClassifier", "HistGradientBoostingRegressor"),
        *("RandomForestClassifier", "RandomForestRegressor", "StackingClassifier", "StackingRegressor"),
        *("VotingClassifier", "VotingRegressor"),
    ),
    "sklearn.feature_selection": ("SelectKBest", "SelectPercentile", "VarianceThreshold"),
    "sklearn.gaussian_process": ("GaussianProcessClassifier", "GaussianProcessRegressor"),
    "sklearn.gaussian_process.kernels": (
        *("ConstantKernel", "DotProduct", "Matern", "Product", "RBF", "RationalQuadratic", "Sum", "WhiteKernel"),
    ),
    "sklearn.isotonic": ("IsotonicRegression",),
    "sklearn.kernel_approximation": ("Nystroem", "RBFSampler"),
    "sklearn.kernel_ridge": ("KernelRidge",),
    "sklearn.linear_model": (
        *("ARDRegression", "BayesianRidge", "ElasticNet", "ElasticNetCV", "GammaRegressor", "HuberRegressor", "Lars"),
        *("Lasso", "LassoCV", "LassoLars", "LinearRegression", "LogisticRegression", "LogisticRegressionCV"),
        *("OrthogonalMatchingPursuit", "PassiveAggressiveClassifier", "Perceptron", "PoissonRegressor"),
        *("QuantileRegressor", "Ridge", "RidgeCV", "RidgeClassifier", "RidgeClassifierCV", "SGDClassifier"),
        *("SGDRegressor", "TheilSenRegressor", "TweedieRegressor"),
    ),
    "sklearn.multiclass": ("OneVsOneClassifier", "OneVsRestClassifier"),
    "sklearn.naive_bayes": ("BernoulliNB", "GaussianNB"),
    "sklearn.neighbors": (
        *("KNeighborsClassifier", "KNeighborsRegressor", "NearestCentroid"),
        *("RadiusNeighborsClassifier", "RadiusNeighborsRegressor"),
    ),
    "sklearn.neural_network": ("MLPClassifier", "MLPRegressor"),
    "sklearn.pipeline": ("Pipeline",),
    "sklearn.preprocessing": (
        *("LabelBinarizer", "LabelEncoder", "MaxAbsScaler", "MinMaxScaler", "Normalizer", "PolynomialFeatures"),
        *("PowerTransformer", "QuantileTransformer", "RobustScaler", "StandardScaler"),
    ),
    "sklearn.svm": ("LinearSVC", "LinearSVR", "NuSVC", "NuSVR", "SVC", "SVR"),
    "sklearn.tree": ("DecisionTreeClassifier", "DecisionTreeRegressor", "ExtraTreeClassifier", "ExtraTreeRegressor"),
}
"""Public estimators, by where they are imported from; classes live deeper, and deeper elsewhere in other versions."""

_PARTS = frozenset(
    {
        "sklearn.calibration._CalibratedClassifier",
        "sklearn.calibration._SigmoidCalibration",
        "sklearn.ensemble._hist_gradient_boosting.binning._BinMapper",
        "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
        "sklearn.gaussian_process._gpc._BinaryGaussianProcessClassifierLaplace",
        "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
        "sklearn.neural_network._stochastic_optimizers.SGDOptimizer",
    }
)

_LINKS = ("HalfLogitLink", "IdentityLink", "Interval", "LogLink", "LogitLink", "MultinomialLogit")
_LOSS_CLASSES = (
    *("AbsoluteError", "ExponentialLoss", "HalfBinomialLoss", "HalfGammaLoss", "HalfMultinomialLoss"),
    *("HalfPoissonLoss", "HalfSquaredError", "HalfTweedieLoss", "HalfTweedieLossIdentity", "HuberLoss", "PinballLoss"),
)


@cache
def trusted_objects() -> frozenset[str]:
    """Full names of the classes that an object in a model may be of, as the installed scikit-learn has them."""
    public = {
        _full_name(getattr(importlib.import_module(module), name))
        for module, names in _PUBLIC.items()
        for name in names
        if hasattr(importlib.import_module(module), name)
    }
    links = {f"sklearn._loss.link.{name}" for name in _LINKS}
    losses = {f"sklearn._loss.loss.{name}" for name in _LOSS_CLASSES}
    return frozenset(public | _PARTS | links | losses)


def _full_name(cls: type) -> str:
    return f"{cls.__module__}.{cls.__name__}"
