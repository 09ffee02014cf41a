"""The integration methods that commands, pages and experiments take by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ._graphs import TargetSimilarityGraph
from ._kti import KTI
from ._kti_cv import KTICV
from ._linear import GEP, LTI, MPP, ODC, BaseIntegrator


@dataclass(frozen=True, kw_only=True)
class Method:
    """An integration method by its name.

    Attributes
    ----------
    name : str
        What a command or a page calls it; experiments take the name of its class.
    integrator : type
    options : mapping of str to object
        Parameters that differ from the defaults of the class.  A method with "alpha" takes another one.
    finds_components : bool
        Whether it finds the number of components by itself, and takes none.
    joins_targets : bool
        Whether it takes a graph of anchor rows of like targets, where the anchor has targets.
    """

    name: str
    integrator: type[BaseIntegrator]
    options: Mapping[str, Any] = field(default_factory=dict)
    finds_components: bool = False
    joins_targets: bool = False

    def make(self, n_components: int, *, with_targets: bool = False, alpha: float | None = None) -> BaseIntegrator:
        """Return an integrator of this many components; with_targets says whether the anchor has targets."""
        parameters = dict(self.options)
        if not self.finds_components:
            parameters["n_components"] = n_components
        if self.joins_targets and with_targets:
            parameters["graph"] = TargetSimilarityGraph()
        if alpha is not None:
            parameters["alpha"] = alpha
        return self.integrator(**parameters)


METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        Method(name="mpp", integrator=MPP),
        Method(name="gep", integrator=GEP),
        Method(name="odc", integrator=ODC, finds_components=True),
        Method(name="lti", integrator=LTI),
        Method(name="lti-affine", integrator=LTI, options={"fit_intercept": True}),
        Method(name="kti", integrator=KTI, options={"alpha": 0.1, "center": True}, joins_targets=True),
        Method(name="kti-cv", integrator=KTICV, options={"center": True}, finds_components=True, joins_targets=True),
    )
}
"""In the order of the paper.  A new method is its class and one entry here."""
