"""Widths of the parties' kernels, by rules that look at their anchor representations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from sklearn.metrics.pairwise import KERNEL_PARAMS

from .._validation import FloatArray, PartyName
from ..errors import NumericalError, UnknownPartyError
from ..linalg import median_gamma, scale_gamma

__all__ = ["GammaRule", "has_width", "kernel_widths"]

GammaRule = float | str | Callable[[FloatArray], float]


def has_width(kernel: str | Callable[..., Any]) -> bool:
    """Whether a kernel, as `pairwise_kernels` takes it, has the parameter gamma."""
    return isinstance(kernel, str) and "gamma" in KERNEL_PARAMS.get(kernel, ())


def kernel_widths(
    anchors: Mapping[PartyName, FloatArray],
    kernel: str | Callable[..., Any],
    gamma: GammaRule | Mapping[Any, GammaRule],
    factor: float = 1.0,
) -> dict[PartyName, float]:
    """Kernel width of each party; empty where the kernel has none.

    Parameters
    ----------
    anchors : mapping of party to ndarray of shape (n_anchors, n_intermediate)
    kernel : str or callable
    gamma : float, "median", "scale", callable or mapping of party to any of these
    factor : float, default=1.0
        Multiplies every width.

    Raises
    ------
    UnknownPartyError
        When `gamma` is a mapping that leaves a party out.
    NumericalError
        When a rule gives no positive number; the message names the party.
    """
    if not has_width(kernel):
        return {}
    if isinstance(gamma, Mapping):
        missing = [party for party in anchors if party not in gamma]
        if missing:
            raise UnknownPartyError(f"gamma names no width for {missing!r}; give one for every party.")
        rules: dict[PartyName, GammaRule] = {party: gamma[party] for party in anchors}
    else:
        rules = dict.fromkeys(anchors, gamma)
    return {party: factor * _width(party, A, kernel, rules[party]) for party, A in anchors.items()}


def _width(party: PartyName, A: FloatArray, kernel: str | Callable[..., Any], rule: GammaRule) -> float:
    if rule == "median":
        width = median_gamma(A, kernel)
    elif rule == "scale":
        width = scale_gamma(A)
    else:
        width = float(rule(A)) if callable(rule) else float(rule)
    if not (np.isfinite(width) and width > 0):
        raise NumericalError(
            f"Party {party!r}: gamma={rule!r} gives no usable kernel width ({width}). More than half of the anchor "
            "rows may coincide in its representation; pass a positive number as gamma for this party."
        )
    return width
