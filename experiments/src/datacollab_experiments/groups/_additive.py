"""Which integration methods groups of parties can share, and on which settings they then have to agree."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from datacollab.analyst import (
    GEP,
    KTI,
    LTI,
    MPP,
    BaseIntegrator,
    GeometricGraph,
    NeighborGraph,
    TargetSimilarityGraph,
)
from datacollab.analyst._kti import has_width
from datacollab.bundle import canonical_json, digest

__all__ = ["check_additive", "settings_of"]

_LINEAR = (LTI, GEP, MPP)
_REASONS = {
    "ODC": "turns representations onto one party's, or onto a mean that is found by turns",
    "KTICV": "scores each candidate with all parties' anchors at once (choose within a group, and agree on that KTI)",
}


def check_additive(integrator: Any) -> None:
    """Refuse methods, and settings of KTI, whose target is not found from one sum over the parties.

    Raises
    ------
    TypeError
        When it is no integration method.
    ValueError
        Naming the method, or the parameter.
    """
    if not isinstance(integrator, BaseIntegrator):
        raise TypeError(f"integrator must be LTI, GEP, MPP or KTI for groups; got {type(integrator).__name__}.")
    integrator._validate_params()
    name = type(integrator).__name__
    # Not isinstance: a subclass may align otherwise.
    if type(integrator) not in (*_LINEAR, KTI):
        reason = _REASONS.get(name, "does not say which sum over the parties its target is found from")
        raise ValueError(f"{name} cannot be split between groups: it {reason}. Use LTI, GEP, MPP or KTI.")
    refused = _refused(integrator)
    if refused is not None:
        parameter, instead = refused
        raise ValueError(f"{name} cannot be split between groups with this {parameter}: {instead}.")


def _refused(integrator: BaseIntegrator) -> tuple[str, str] | None:
    """The first parameter that groups cannot have, and what to do."""
    if isinstance(integrator, MPP) and not isinstance(integrator.basis, str):
        return "basis", "give 'orthonormal' or 'singular_values'"
    if not isinstance(integrator, KTI):
        return None
    gammas = integrator.gamma.values() if isinstance(integrator.gamma, Mapping) else [integrator.gamma]
    checks = {
        "kernel": (
            not isinstance(integrator.kernel, str) or integrator.kernel == "precomputed",
            "only a name crosses, one for all parties; give the name of a kernel of rows",
        ),
        "party_weights": (integrator.party_weights is not None, "parties of all groups count alike; leave it out"),
        "gamma": (any(map(callable, gammas)), "a function does not cross; give a number, a word, or one per party"),
        "solver": (integrator.solver == "nystroem", "landmarks approximate each group's sum differently; use 'exact'"),
        "n_landmarks": (integrator.n_landmarks is not None, "sums are exact; leave it out"),
        "penalty_graph": (integrator.penalty_graph is not None, "leave it out, or use graph= alone"),
        "engine": (integrator.engine is not None, "a group's sum is found in one process; leave it out"),
        "graph": (
            integrator.graph is not None and type(integrator.graph) not in (GeometricGraph, TargetSimilarityGraph),
            "use GeometricGraph or TargetSimilarityGraph",
        ),
    }
    return next(((name, instead) for name, (is_refused, instead) in checks.items() if is_refused), None)


def settings_of(integrator: Any, anchor_target: NDArray[Any] | None) -> dict[str, Any]:
    """Settings as a message has them, all that the target depends on besides the parties.

    Parameters
    ----------
    integrator : LTI, GEP, MPP or KTI
        Allowed by `check_additive`.
    anchor_target : ndarray of shape (n_anchors,) or None
        Of which there is a digest among the settings, where a graph looks at it.
    """
    method = type(integrator).__name__
    plain: dict[str, Any] = {"method": method, "n_components": int(integrator.n_components)}
    if method == "LTI":
        return plain | {"fit_intercept": bool(integrator.fit_intercept)}
    if method == "MPP":
        return plain | {"basis": integrator.basis}
    if method == "GEP":
        return plain
    gamma = "by party" if isinstance(integrator.gamma, Mapping) else integrator.gamma
    looked_at = anchor_target if isinstance(integrator.graph, TargetSimilarityGraph) else None
    return plain | {
        "kernel": integrator.kernel,
        "gamma": gamma if isinstance(gamma, str) else float(gamma),
        "gamma_factor": float(integrator.gamma_factor) if has_width(integrator.kernel) else 1.0,
        "alpha": float(integrator.alpha),
        "degree": float(integrator.degree),
        "coef0": float(integrator.coef0),
        "center": bool(integrator.center),
        "graph": None if integrator.graph is None else _of_graph(integrator.graph),
        "graph_weight": float(integrator.graph_weight),
        "anchor_target": None if looked_at is None else _targets_digest(looked_at),
    }


def _of_graph(graph: NeighborGraph) -> dict[str, Any]:
    scale = getattr(graph, "scale", None)
    return {
        "kind": type(graph).__name__,
        "n_neighbors": int(graph.n_neighbors),
        "approximate": bool(graph.approximate),
        "scale": scale if scale is None or isinstance(scale, str) else float(scale),
        "task": getattr(graph, "task", None),
    }


def _targets_digest(values: NDArray[Any]) -> str:
    """SHA-256 of targets, in which those of two groups agree or not; it confirms a guess of all of them."""
    return digest(canonical_json(values.tolist()))
