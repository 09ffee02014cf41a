"""The only door to scikit-learn's private validation of parameters; estimators alone load it, as it takes a second."""

from sklearn.utils._param_validation import HasMethods, Interval, StrOptions

__all__ = ["HasMethods", "Interval", "StrOptions"]
