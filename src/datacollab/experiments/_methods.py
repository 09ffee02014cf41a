"""The methods of the paper by the names its tables use."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..analyst import GEP, KTI, LTI, MPP, ODC, BaseIntegrator, GeometricGraph, NeighborGraph, TargetSimilarityGraph
from ._condition import Condition

__all__ = ["BASELINES", "METHODS", "check_methods", "method"]

_LINEAR: dict[str, Callable[[int], BaseIntegrator]] = {
    "MPP": lambda n_components: MPP(n_components),
    "GEP": lambda n_components: GEP(n_components),
    "ODC": lambda n_components: ODC(),
    "LTI": lambda n_components: LTI(n_components),
}

METHODS = (*_LINEAR, "KTI", "KTI+Center", "KTI+GL", "KTI+TSL", "KTI+GL+Center", "KTI+TSL+Center")
"""Names that `method` knows, in the order of the paper."""

BASELINES = ("Local", "Local+Public", "Central")
"""Names that comparisons know besides.

"Local+Public" is `datacollab.Local` with the real public rows and targets behind the anchor added to each party's own:
what a party can do with them alone.
"""


def check_methods(names: Sequence[str]) -> None:
    """Refuse names that no comparison knows, and names that come twice.

    Raises
    ------
    ValueError
        The message lists the names that are known.
    """
    for name in names:
        if name not in METHODS and name not in BASELINES:
            raise ValueError(f"Unknown method {name!r}; known methods: {', '.join((*BASELINES, *METHODS))}.")
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"Each method is compared once, but {', '.join(twice)} came more often.")


def method(name: str, condition: Condition) -> BaseIntegrator:
    r"""Integration method by its name in the paper.

    The preset "paper" has :math:`\gamma = \lambda = \mu = 1`.  "recommended" takes the width of each party's kernel
    from its anchors: the median rule and :math:`\lambda = 0.1`.  With TSL and centring it is 0.3 of the median rule and
    :math:`\lambda = 0.001`, which did well in a small search on MNIST and Fashion-MNIST; so a comparison of
    KTI+TSL+Center with the other variants under this preset is one of hyperparameters as well.

    Parameters
    ----------
    name : str
        One of `METHODS`.
    condition : Condition

    Returns
    -------
    BaseIntegrator

    Raises
    ------
    ValueError
        When the name is unknown.
    """
    if name not in METHODS:
        raise ValueError(f"Unknown method {name!r}; known methods: {', '.join(METHODS)}.")
    if name in _LINEAR:
        return _LINEAR[name](condition.n_components)
    extensions = name.split("+")[1:]
    graph: NeighborGraph | None = None
    if "GL" in extensions:
        graph = GeometricGraph(condition.n_neighbors)
    if "TSL" in extensions:
        graph = TargetSimilarityGraph(condition.n_neighbors, scale="std")
    integrator = KTI(condition.n_components, graph=graph, center="Center" in extensions)
    if condition.preset == "paper":
        integrator.set_params(gamma=1.0, alpha=1.0)
    elif name == "KTI+TSL+Center":
        integrator.set_params(gamma_factor=0.3, alpha=0.001)
    return integrator
