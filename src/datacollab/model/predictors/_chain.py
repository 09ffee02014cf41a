"""Steps one after the other, and weighted means of such chains."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ..._typing import FloatArray
from ._step import MOST_WIDTH, Budget, Parts, Step, bad_predictor, large_predictor
from ._steps import (
    Affine,
    Binary,
    Clip,
    Complement,
    Elementwise,
    Isotonic,
    LogFloor,
    NormalDensities,
    Normalise,
    Radial,
    Scale,
    Softmax,
    Stretch,
)
from ._trees import Trees

__all__ = ["Chain", "Mean", "read_chain"]

_MOST_STEPS = 100
_MOST_PARTS = 1_000
_MOST_NESTED = 4


class Chain:
    """Steps, at least one, of which each takes what the one before gives.

    Parameters
    ----------
    steps : sequence of Step
    """

    def __init__(self, steps: Sequence[Step]) -> None:
        self.steps = tuple(steps)
        self.n_in, self.n_out = self.steps[0].n_in, self.steps[-1].n_out

    def __repr__(self) -> str:
        return f"Chain({', '.join(step.kind for step in self.steps)})"

    def __call__(self, rows: FloatArray) -> FloatArray:
        for step in self.steps:
            rows = step(rows)
        return rows

    @property
    def width(self) -> int:
        """Columns of the widest table on the way."""
        inner = [step.width if isinstance(step, Mean) else step.n_out for step in self.steps]
        return max([self.n_in, *inner])

    def written(self, path: str = "") -> tuple[list[dict[str, Any]], dict[str, NDArray[Any]]]:
        """Facts of the steps, and their arrays under the path."""
        facts: list[dict[str, Any]] = []
        arrays: dict[str, NDArray[Any]] = {}
        for number, step in enumerate(self.steps):
            if isinstance(step, Mean):
                own, inner = step.written(f"{path}{number}.")
            else:
                own, inner = step.facts(), {f"{path}{number}.{name}": each for name, each in step.arrays().items()}
            facts.append({"kind": step.kind} | own)
            arrays |= inner
        return facts, arrays


class Mean(Step):
    """Σ w_j h_j(x) over chains h_j."""

    kind = "mean"

    def __init__(self, weights: FloatArray, chains: Sequence[Chain]) -> None:
        self.weights, self.chains = weights, tuple(chains)
        self.n_in, self.n_out = chains[0].n_in, chains[0].n_out
        self.width = max(chain.width for chain in chains)

    def __call__(self, rows: FloatArray) -> FloatArray:
        total = np.zeros((len(rows), self.n_out))
        if (self.weights == self.weights[0]).all():
            # In scikit-learn's order of adding and dividing, so that ties stay ties.
            for chain in self.chains:
                total += chain(rows)
            return total / len(self.chains)
        for weight, chain in zip(self.weights, self.chains, strict=True):
            total += weight * chain(rows)
        return total

    def written(self, path: str) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Facts and arrays of all chains, whose arrays have their numbers in the path."""
        facts: list[Any] = []
        arrays: dict[str, NDArray[Any]] = {f"{path}weights": self.weights}
        for number, chain in enumerate(self.chains):
            steps, inner = chain.written(f"{path}{number}.")
            facts.append(steps)
            arrays |= inner
        return {"chains": facts}, arrays

    @classmethod
    def read(cls, parts: Parts, n_in: int, nested: int = 0) -> Self:
        listed = parts.listed("chains")
        if nested >= _MOST_NESTED or len(listed) > _MOST_PARTS:
            raise large_predictor(
                f"{len(listed)} models in one another; {_MOST_PARTS}, {_MOST_NESTED} deep, are allowed"
            )
        weights = parts.table("weights", (len(listed),), most=1)
        if (weights < 0).any() or abs(weights.sum() - 1) > 1e-9:
            raise bad_predictor("has weights that are not positive, or do not add up to one")
        chains = [
            read_chain(steps, parts.arrays, n_in, path=f"{parts.path}{number}.", nested=nested + 1, budget=parts.budget)
            for number, steps in enumerate(listed)
        ]
        if len({chain.n_out for chain in chains}) > 1:
            raise bad_predictor("is the mean of models with different numbers of columns")
        return cls(weights, chains)


_KINDS: dict[str, type[Step]] = {
    step.kind: step
    for step in (
        *(Affine, Binary, Clip, Complement, Elementwise, Isotonic, LogFloor, Mean, NormalDensities, Normalise),
        *(Radial, Scale, Softmax, Stretch, Trees),
    )
}


def read_chain(
    facts: Any,
    arrays: dict[str, NDArray[Any]],
    n_in: int,
    *,
    path: str = "",
    nested: int = 0,
    budget: Budget | None = None,
) -> Chain:
    """The chain that facts and arrays describe; arrays that belong to it are removed from the mapping.

    Parameters
    ----------
    facts : object
        A list with the facts of each step.
    arrays : dict of str to ndarray
    n_in : int
        Columns that it has to take.

    Raises
    ------
    ExchangeError
        MODEL_MALFORMED or TOO_LARGE.
    """
    if not isinstance(facts, list) or not facts:
        raise bad_predictor("has no list of steps")
    if len(facts) > _MOST_STEPS:
        raise large_predictor(f"{len(facts)} steps; {_MOST_STEPS} are allowed")
    budget = Budget() if budget is None else budget
    steps: list[Step] = []
    n_columns = n_in
    for number, each in enumerate(facts):
        parts = Parts(each, arrays, f"{path}{number}.", budget)
        if parts.kind not in _KINDS:
            raise bad_predictor("has a step of a kind that is not known")
        kind = _KINDS[parts.kind]
        step = Mean.read(parts, n_columns, nested) if kind is Mean else kind.read(parts, n_columns)
        parts.finish()
        budget.spend(step.work, step.calls)
        n_columns = step.n_out
        if n_columns > MOST_WIDTH:
            raise large_predictor(f"{n_columns} columns on the way; {MOST_WIDTH} are allowed")
        steps.append(step)
    return Chain(steps)
