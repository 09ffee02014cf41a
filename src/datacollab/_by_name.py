"""Integration methods, models and obfuscators by name: from these tables commands, pages and experiments take them."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


def _load(home: str) -> Any:
    module, _, name = home.rpartition(".")
    return getattr(importlib.import_module(module), name)


@dataclass(frozen=True, kw_only=True)
class Method:
    """An integration method by its name.

    Attributes
    ----------
    home : str
        Module and class.
    options : mapping of str to object
        Parameters that differ from the defaults of the class.  A method with "alpha" takes another one.
    finds_components : bool
        Whether it finds the number of components by itself, and takes none.
    joins_targets : bool
        Whether it takes a graph of anchor rows of like targets, where the anchor has targets.
    """

    home: str
    options: Mapping[str, Any] = field(default_factory=dict)
    finds_components: bool = False
    joins_targets: bool = False

    @property
    def integrator(self) -> Any:
        """The class."""
        return _load(self.home)

    def make(self, n_components: int, *, with_targets: bool = False, alpha: float | None = None) -> Any:
        """Return an integrator of this many components; with_targets says whether the anchor has targets."""
        parameters = dict(self.options)
        if not self.finds_components:
            parameters["n_components"] = n_components
        if self.joins_targets and with_targets:
            parameters["graph"] = _load("datacollab.analyst.TargetSimilarityGraph")()
        if alpha is not None:
            parameters["alpha"] = alpha
        return self.integrator(**parameters)


METHODS = {
    "mpp": Method(home="datacollab.analyst.MPP"),
    "gep": Method(home="datacollab.analyst.GEP"),
    "odc": Method(home="datacollab.analyst.ODC", finds_components=True),
    "lti": Method(home="datacollab.analyst.LTI"),
    "lti-affine": Method(home="datacollab.analyst.LTI", options={"fit_intercept": True}),
    "kti": Method(home="datacollab.analyst.KTI", options={"alpha": 0.1, "center": True}, joins_targets=True),
    "kti-cv": Method(
        home="datacollab.analyst.KTICV", options={"center": True}, finds_components=True, joins_targets=True
    ),
}
"""In the order of the paper.  A new method is its class and one entry here."""

AUTO = "auto"
"""Left to the analyst's own choice, by rows left out."""
NAMES = (AUTO, *METHODS)
"""The names of methods that commands and pages take."""

MODELS = (AUTO, "random-forest", "gradient-boosting", "linear", "perceptron")
SURVIVAL_MODELS = (AUTO, "cox", "survival-forest")
MODEL_NAMES = tuple(dict.fromkeys((*MODELS, *SURVIVAL_MODELS)))
"""The names of models that an analyst trains on shared rows: by default, of times to an event, and of either."""


@dataclass(frozen=True, kw_only=True)
class ObfuscatorEntry:
    """One obfuscator."""

    home: str
    """Module and class of the transformer."""
    title: str
    """Its name in tables and figures."""
    standardize: bool = False
    """Whether columns are brought to mean 0 and variance 1 first unless the caller says otherwise."""
    is_linear: bool = False
    """Whether it is linear: with as many components as a row has numbers it hides nothing."""

    def load(self) -> Any:
        """Return the class of the transformer."""
        return _load(self.home)


OBFUSCATORS = {
    "pca": ObfuscatorEntry(home="sklearn.decomposition.PCA", title="PCA", is_linear=True),
    "kernel-pca": ObfuscatorEntry(
        home="datacollab.party._kernel_pca.KernelPCAObfuscator", title="kernel PCA", standardize=True
    ),
    "umap": ObfuscatorEntry(home="datacollab.party._umap.UMAPObfuscator", title="UMAP", standardize=True),
    "random-projection": ObfuscatorEntry(
        home="sklearn.random_projection.GaussianRandomProjection", title="random projection", is_linear=True
    ),
}
"""The obfuscators by the name that options, policies and experiments use.  The first is the default."""


def takes_numbers_alone(obfuscator: Any) -> bool:
    """Return whether the first step is one that `datacollab.obfuscator` makes, which neither encodes nor fills."""
    from sklearn.preprocessing import StandardScaler  # slow, and commands read the tables above

    (_, first), *_ = getattr(obfuscator, "steps", [("", obfuscator)])
    return type(first) in {StandardScaler, *(entry.load() for entry in OBFUSCATORS.values())}
