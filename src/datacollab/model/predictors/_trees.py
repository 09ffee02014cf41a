"""A step of decision trees: forests, single trees and boosting."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from ..._typing import FloatArray
from ._parts import Parts
from ._refusals import bad_predictor
from ._step import Step
from ._tree_layout import LEAF, Structure, structure_of
from ._tree_walk import Walk

__all__ = ["Trees"]


class Trees(Step):
    """The mean over trees of the value of the leaf that x falls into, or their sum and b.

    Nodes of all trees follow one another, each tree from its root down, left before right: a node with its feature, or
    -1 where it is a leaf; behind a node comes its left child, and behind that one's last descendant its right child.
    So the list of features alone says where trees end and which nodes are whose children, and there is no index that
    could be wrong.

    Parameters
    ----------
    n_in : int
    feature : ndarray of shape (n_nodes,)
        Column by which a node splits, -1 for a leaf.
    threshold : ndarray of shape (n_splits,)
        Rows whose column is at most this go left.
    value : ndarray of shape (n_leaves, n_values)
    precision : {"float32", "float64"}
        In which columns are compared.
    base : ndarray of shape (n_out,), optional
        b, where values are added up; their mean is taken otherwise.
    output : ndarray of shape (n_trees,), optional
        Of a sum, the column that each tree adds to, where a leaf has one value; trees add to all columns otherwise.
    """

    kind = "trees"
    PRECISIONS: ClassVar[tuple[str, ...]] = ("float32", "float64")

    def __init__(
        self,
        n_in: int,
        feature: NDArray[Any],
        threshold: FloatArray,
        value: FloatArray,
        *,
        precision: str,
        base: FloatArray | None = None,
        output: NDArray[Any] | None = None,
        structure: Structure | None = None,
    ) -> None:
        self.n_in, self.n_out = n_in, value.shape[1] if base is None else len(base)
        self.feature, self.threshold, self.value = feature, threshold, value
        self.base, self.precision, self.output = base, precision, output
        structure = structure_of(feature) if structure is None else structure
        self.n_trees, self._depth = structure.n_trees, structure.depth
        self._walk = Walk(structure, feature, threshold, n_in, exact=precision == "float64")

    def __call__(self, rows: FloatArray) -> FloatArray:
        # In scikit-learn's order of adding and dividing, so that scores that are equal to it are equal here.
        total = np.zeros((len(rows), self.n_out))
        if self.base is not None:
            total += self.base
        for tree, leaves in enumerate(self._walk.leaves(rows)):
            if self.output is None:
                total += self.value[leaves]
            else:
                total[:, self.output[tree]] += self.value[leaves, 0]
        return total / self.n_trees if self.base is None else total

    @property
    def work(self) -> float:
        """The way down each tree."""
        return float(10 * self.n_trees * (self._depth + self.value.shape[1]))

    @property
    def calls(self) -> int:
        """One for each tree."""
        return self.n_trees

    def facts(self) -> dict[str, Any]:
        return {"precision": self.precision}

    def arrays(self) -> dict[str, NDArray[Any]]:
        arrays = {"feature": self.feature, "value": self.value}
        # A table without entries is not written; trees without a split have none.
        if self.threshold.size:
            arrays["threshold"] = self.threshold
        arrays |= {name: each for name, each in (("base", self.base), ("output", self.output)) if each is not None}
        return arrays

    @classmethod
    def read(cls, parts: Parts, n_in: int) -> Self:
        feature = parts.integers("feature", least=LEAF, most=n_in - 1)
        parts.budget.take_nodes(len(feature))
        structure = structure_of(feature)
        parts.budget.take_trees(structure.n_trees)
        n_splits = int(np.count_nonzero(feature != LEAF))
        threshold = parts.table("threshold", (n_splits,), most=np.finfo(np.float64).max) if n_splits else np.empty(0)
        base = parts.table("base", (None,)) if parts.has("base") else None
        output, n_values = None, None if base is None else len(base)
        if base is not None and parts.has("output"):
            output, n_values = parts.integers("output", least=0, most=len(base) - 1), 1
            if len(output) != structure.n_trees:
                raise bad_predictor("does not say for each of its trees what it adds to")
        return cls(
            n_in,
            feature,
            threshold,
            parts.table("value", (len(feature) - n_splits, n_values)),
            precision=parts.choice("precision", cls.PRECISIONS),
            base=base,
            output=output,
            structure=structure,
        )
