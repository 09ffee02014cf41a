"""Estimators that came as objects, which predict in a process of their own: without files, network, or much memory.

Compiled code believes what it finds in an object of scikit-learn or in a graph, and no list of checks is known to be
complete.  So such a model is never taken apart beside a party's keys: what it can break is its own process.
"""

from ._estimators import IsolatedClassifier, IsolatedRegressor, open_isolated
from ._process import MOST_SECONDS

__all__ = ["MOST_SECONDS", "IsolatedClassifier", "IsolatedRegressor", "open_isolated"]
