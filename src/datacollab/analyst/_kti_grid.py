"""The candidates that a search over hyperparameters of `KTI` tries."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ._kti import KTI
from ._widths import has_width

__all__ = ["Grid", "check_values"]


def check_values(name: str, values: Sequence[Any], parameter: str) -> None:
    """Refuse what `KTI` would refuse, before any work.

    Raises
    ------
    ValueError
        When a list is empty, or holds what `KTI` does not take as this parameter.
    """
    if not values:
        raise ValueError(f"KTICV: {name} is empty; at least one value to try is wanted.")
    for value in values:
        KTI().set_params(**{parameter: value})._validate_params()


@dataclass(frozen=True, kw_only=True)
class Grid:
    """All combinations of some values.

    Attributes
    ----------
    numbers : list of int
        Of components, ascending.
    kernels : sequence of str or callable
    gamma_factors, alphas : sequence of float
    graph_weights : sequence of float or None
        None without a graph.
    """

    numbers: list[int]
    kernels: Sequence[str | Callable[..., Any]]
    gamma_factors: Sequence[float]
    alphas: Sequence[float]
    graph_weights: Sequence[float] | None

    def candidates(self) -> Iterator[dict[str, Any]]:
        """All combinations but those that make no difference, from the simplest to the most flexible."""
        weights = (
            [{}] if self.graph_weights is None else [{"graph_weight": each} for each in sorted(self.graph_weights)]
        )
        kernels = list(self.kernel_parameters())
        for number in self.numbers:
            for alpha in sorted(self.alphas, reverse=True):
                for kernel in kernels:
                    for weight in weights:
                        yield {"n_components": number, "alpha": alpha, **kernel, **weight}

    def kernel_parameters(self) -> Iterator[dict[str, Any]]:
        """Kernels, with their widths where they have any, those nearest to 1 first."""
        for kernel in self.kernels:
            if has_width(kernel):
                for factor in sorted(self.gamma_factors, key=lambda factor: abs(np.log(factor))):
                    yield {"kernel": kernel, "gamma_factor": factor}
            else:
                yield {"kernel": kernel}
