"""The methods of the paper by the names its tables use, and methods of one's own."""

import importlib
import inspect
import re
from collections.abc import Mapping, Sequence
from typing import Any

from datacollab import analyst
from datacollab.analyst import KTI, KTICV, BaseIntegrator, GeometricGraph, TargetSimilarityGraph

from ._condition import Condition

_CLASSES: dict[str, Any] = {each.integrator.__name__: each.integrator for each in analyst.METHODS.values()}
_PLAIN = tuple(name for name, integrator in _CLASSES.items() if integrator not in (KTI, KTICV))
_WITHOUT_COMPONENTS = {each.integrator.__name__ for each in analyst.METHODS.values() if each.finds_components}

_SEARCHED = ("KTICV", "KTICV+TSL+Center")

# Names that `method` knows, in the order of the paper; then those that choose their hyperparameters themselves.
METHODS = (*_PLAIN, "KTI", "KTI+Center", "KTI+GL", "KTI+TSL", "KTI+GL+Center", "KTI+TSL+Center", *_SEARCHED)

# Names that comparisons know besides.
#
# "Local+Public" is `datacollab.Local` with the real public rows and targets behind the anchor added to each party's
# own rows.
BASELINES = ("Local", "Local+Public", "Central")

_GRAPHS = {"GL": GeometricGraph, "TSL": TargetSimilarityGraph}
_OBJECT = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")


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


def specification(name: str, condition: Condition) -> dict[str, Any]:
    r"""Return the class of an integration method, and the parameters that are not left at their defaults, as data.

    The paper's hyperparameters are :math:`\gamma = \lambda = \mu = 1`.  The recommended ones take the width of each
    party's kernel from its anchors: the median rule and :math:`\lambda = 0.1`.  With TSL and centring it is 0.3 of the
    median rule and :math:`\lambda = 0.001`, which did well in a small search on MNIST and Fashion-MNIST; so a
    comparison of KTI+TSL+Center with the other variants under them is one of hyperparameters as well.

    KTICV chooses its own, the number of components included, under either preset.  On interpolated anchors it is given
    wide kernels and large penalties only, as its documentation advises.
    """
    if name not in METHODS:
        raise ValueError(f"Unknown method {name!r}; known methods: {', '.join(METHODS)}.")
    if name in _PLAIN:
        if name in _WITHOUT_COMPONENTS:
            return {"class": name}
        return {"class": name, "n_components": condition.n_components}
    extensions = name.split("+")[1:]
    graph = next((extension for extension in extensions if extension in _GRAPHS), None)
    if name in _SEARCHED:
        return _specify_search("Center" in extensions, graph, condition)
    specified: dict[str, Any] = {"class": "KTI", "n_components": condition.n_components, "gamma": "median"}
    specified |= {"gamma_factor": 1.0, "alpha": 0.1, "center": "Center" in extensions}
    # The paper has gamma = lambda = mu = 1.
    if condition.hyperparameters == "paper":
        specified |= {"gamma": 1.0, "alpha": 1.0}
    elif name == "KTI+TSL+Center":
        specified |= {"gamma_factor": 0.3, "alpha": 0.001}
    if graph is not None:
        specified |= {"graph": graph, "n_neighbors": condition.n_neighbors, "graph_weight": 1.0}
    return specified


def _specify_search(center: bool, graph: str | None, condition: Condition) -> dict[str, Any]:
    # Spelt out, since a row is found by what determines it: other defaults of KTICV must not find older rows.
    specified: dict[str, Any] = {"class": "KTICV", "n_components": [16, 32], "cv": 2, "kernels": ["rbf", "linear"]}
    specified |= {"gamma": "median", "gamma_factors": [0.1, 0.3, 1.0], "alphas": [0.001, 0.01, 0.1], "center": center}
    if condition.n_sources is not None:
        specified |= {"gamma_factors": [0.1, 0.3], "alphas": [0.1, 1.0]}
    if graph is not None:
        specified |= {"graph": graph, "n_neighbors": condition.n_neighbors, "graph_weights": [0.0, 1.0, 10.0]}
    return specified


def method(name: str, condition: Condition, own: Mapping[str, Any] | None = None) -> BaseIntegrator:
    """Return an integration method by its name in the paper, or of one's own.

    A method of one's own has "class", such as ``"my_package.my_module:MyIntegrator"``, and parameters, in which a
    mapping with a "class" stands for an object.  The condition's `n_components` is passed on to a class that takes it,
    unless given.

    Raises
    ------
    ValueError
        When the name is unknown.
    TypeError
        When the class is not an integration method.
    """
    if own:
        built = _build({"n_components": condition.n_components, **own}, optional=("n_components",))
        if not isinstance(built, BaseIntegrator):
            raise TypeError(
                f"Method {name!r}: {own['class']!r} is not a subclass of datacollab.analyst.BaseIntegrator."
            )
        return built
    parameters = specification(name, condition)
    integrator_class = _CLASSES[parameters.pop("class")]
    if graph := parameters.pop("graph", None):
        options: dict[str, Any] = {"scale": "std"} if graph == "TSL" else {}
        parameters["graph"] = _GRAPHS[graph](parameters.pop("n_neighbors"), **options)
    integrator: BaseIntegrator = integrator_class(**parameters)
    return integrator


def import_object(path: str) -> Any:
    """The object that a path such as "package.module:Name" names.

    Raises
    ------
    ValueError
        When the path has another form, or names nothing that can be imported.
    """
    if not _OBJECT.fullmatch(path):
        raise ValueError(f"{path!r} is not a path of the form 'package.module:Name'.")
    module, _, name = path.partition(":")
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise ValueError(
            f"{path!r} cannot be imported ({type(error).__name__}: {error}). Install the package, or put its "
            "directory on PYTHONPATH."
        ) from error


def _build(specified: Mapping[str, Any], optional: Sequence[str] = ()) -> Any:
    wanted = import_object(specified["class"])
    taken = inspect.signature(wanted).parameters
    parameters = {
        key: _build(value) if isinstance(value, Mapping) and "class" in value else value
        for key, value in specified.items()
        if key != "class" and not (key in optional and key not in taken)
    }
    return wanted(**parameters)
