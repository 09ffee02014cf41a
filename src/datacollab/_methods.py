"""The integration methods by name: from this table commands, pages and experiments take them."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


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


def _load(home: str) -> Any:
    module, _, name = home.rpartition(".")
    return getattr(importlib.import_module(module), name)


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
"""What commands and pages take."""
