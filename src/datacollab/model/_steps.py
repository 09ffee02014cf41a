"""The steps that a predictor is made of, their form in files, and the most that all together may cost."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import InitVar, dataclass, field, fields
from typing import Any, ClassVar, Self, dataclass_transform

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax

from .._typing import FloatArray
from ..errors import ExchangeError
from ._refusals import bad_predictor, large_predictor

# For one row, in units of about a nanosecond.
_MOST_WORK = 5 * 10**6
# Calls of compiled functions for one batch of rows, or trees: each costs some microseconds.
_MOST_CALLS = 50_000
# Nodes of all trees.
_MOST_NODES = 5 * 10**6
# Steps of a chain, chains of a mean, and means within one another.
_MOST_STEPS = 100
_MOST_PARTS = 1_000
_MOST_NESTED = 4
_MOST_KNOTS = 10**7
# Smaller divisors make infinities of ordinary numbers.
_LEAST_SPREAD = 1e-100
LEAF = -1
MOST_DEPTH = 1_000
"""Splits below one another."""
# Walks down a tree that are made side by side: their places stay in a processor's cache.
_MOST_WALKING = 2**16
MOST_NUMBER = 1e100
"""Largest entry of any table: products of two of them are still finite."""
MOST_WIDTH = 20_000
"""Columns that a table of rows may have between two steps."""


class Budget:
    """Counts work, calls and nodes; refuses with TOO_LARGE, as a file of a few kilobytes can ask for hours."""

    def __init__(self) -> None:
        self.work = 0.0
        self.calls = 0
        self.nodes = 0

    def spend(self, work: float, calls: int) -> None:
        """Count one step, or another model of an average."""
        self.work += work
        self.calls += calls
        if self.work > _MOST_WORK or self.calls > _MOST_CALLS:
            raise large_predictor("more work for a row, or more calls, than is allowed")

    def take_nodes(self, n_nodes: int) -> None:
        """Count nodes, before anything is made of them."""
        self.nodes += n_nodes
        if self.nodes > _MOST_NODES:
            raise large_predictor(f"{self.nodes} nodes in its trees; {_MOST_NODES} are allowed")


class Parts:
    """The facts of one step or model, and the arrays whose names begin with its path.

    Arrays and facts are removed as they are read, and none can be read twice.  Whatever does not fit raises an
    ExchangeError with MODEL_MALFORMED.
    """

    def __init__(
        self,
        facts: Any,
        arrays: dict[str, NDArray[Any]],
        path: str,
        budget: Budget,
        refuse: Callable[[str], ExchangeError] = bad_predictor,
    ) -> None:
        self.refuse = refuse
        if not isinstance(facts, Mapping):
            raise self.refuse("has a part that does not say what it is")
        self.arrays = arrays
        self.path = path
        self.budget = budget
        self.facts = dict(facts)

    def has(self, name: str) -> bool:
        """Return whether an array is there."""
        return self.path + name in self.arrays

    def table(
        self, name: str, shape: tuple[int | None, ...], *, least: float | None = None, most: float = MOST_NUMBER
    ) -> FloatArray:
        """Return finite numbers of a shape; None leaves a size open."""
        if least is None:
            least = -most
        array = self._array(name, np.float64, shape)
        # Written so that NaN, which compares to nothing, is refused as well.
        if not ((array >= least) & (array <= most)).all():
            raise self.refuse(f"has {name} that are not finite, or not from {least:g} to {most:g}")
        return array

    def integers(self, name: str, *, least: int, most: int, shape: tuple[int | None, ...] = (None,)) -> NDArray[Any]:
        """Return a list of integers within bounds."""
        array = self._array(name, np.int32, shape)
        if array.min() < least or array.max() > most:
            raise self.refuse(f"has {name} that point to what is not there")
        return array

    def number(self, name: str, *, least: float = -MOST_NUMBER, most: float = MOST_NUMBER) -> float:
        """Return a number within bounds."""
        value = self.facts.pop(name, None)
        # In Python, a truth value is a number.
        if isinstance(value, bool) or not isinstance(value, float | int) or not least <= value <= most:
            raise self.refuse(f"has a {name} that is no number from {least:g} to {most:g}")
        return float(value)

    def choice(self, name: str, allowed: Collection[str]) -> str:
        """Return one of several words."""
        value = self.facts.pop(name, None)
        if not isinstance(value, str) or value not in allowed:
            raise self.refuse(f"has a {name} that is none of {sorted(allowed)!r}")
        return value

    def entries(self, name: str) -> list[Any]:
        """Return a list that is not empty, its entries unchecked."""
        value = self.facts.pop(name, None)
        if not isinstance(value, list) or not value:
            raise self.refuse(f"has no list of {name}")
        return value

    def _array(self, name: str, dtype: Any, shape: tuple[int | None, ...]) -> NDArray[Any]:
        array = self.arrays.pop(self.path + name, None)
        if array is None:
            raise self.refuse(f"has no {name}")
        fits = len(shape) == array.ndim and all(
            expected in (None, size) for expected, size in zip(shape, array.shape, strict=True)
        )
        if array.dtype != dtype or not fits or array.size == 0:
            raise self.refuse(f"has {name} of another shape or type than its columns and classes want")
        return array


def table(*shape: str, **bounds: float) -> Any:
    """Declare a table of a step; its sizes "n_in" and "n_out" are those of the step."""
    return _declare(shape, lambda parts, name, sizes: parts.table(name, sizes, **bounds))


def integers(*shape: str, least: int, most: int) -> Any:
    """Declare a list of integers of a step."""
    return _declare(shape, lambda parts, name, sizes: parts.integers(name, least=least, most=most, shape=sizes))


def number(**bounds: float) -> Any:
    """Declare a number that JSON holds."""
    return _declare((), lambda parts, name, _: parts.number(name, **bounds))


def choice(allowed: Collection[str]) -> Any:
    """Declare a word that JSON holds."""
    return _declare((), lambda parts, name, _: parts.choice(name, allowed))


def _declare(shape: tuple[str, ...], read: Callable[[Parts, str, tuple[int | None, ...]], Any]) -> Any:
    return field(metadata={"shape": shape, "read": read})


@dataclass_transform(eq_default=False, field_specifiers=(table, integers, number, choice))
class ModelStep(ABC):
    """A function of rows, one by one: a table of shape (n_rows, n_in) to one of shape (n_rows, n_out).

    The fields of a kind are what a file holds of it, and say how each is checked when it is read.  Steps made from a
    fitted estimator are right, and are not looked at again.
    """

    kind: ClassVar[str]
    """Its name in files."""
    COST: ClassVar[tuple[float, float, float]] = (10.0, 10.0, 0.0)
    """Nanoseconds for one row, roughly: for each column read, for each one returned, and for each pair of these."""
    CALLS: ClassVar[str] = ""
    """The columns that need a call each, "n_in" or "n_out"; by default there is one call for all."""
    n_in: int
    n_out: int

    def __init_subclass__(cls) -> None:
        dataclass(eq=False, repr=False)(cls)

    def __post_init__(self) -> None:
        for each in fields(self):  # type: ignore[arg-type]
            for size, n_entries in zip(each.metadata.get("shape", ()), np.shape(getattr(self, each.name)), strict=True):
                setattr(self, size, n_entries)
        if not hasattr(self, "n_out"):
            self.n_out = self.n_in

    @abstractmethod
    def __call__(self, rows: FloatArray) -> FloatArray:
        """Return the step's values, shape (n_rows, n_out)."""

    @property
    def work(self) -> float:
        """The cost of one row in nanoseconds, roughly."""
        read, returned, pair = self.COST
        return read * self.n_in + returned * self.n_out + pair * self.n_in * self.n_out

    @property
    def calls(self) -> int:
        """How many calls of compiled functions a batch of rows costs."""
        if not self.CALLS:
            return 1
        return int(getattr(self, self.CALLS))

    def to_parts(self, path: str) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return its facts, which JSON can hold, and its arrays under the path."""
        facts: dict[str, Any] = {"kind": self.kind}
        arrays: dict[str, NDArray[Any]] = {}
        for each in fields(self):  # type: ignore[arg-type]
            value = getattr(self, each.name)
            if isinstance(value, np.ndarray):
                # A table without entries is not written: trees without a split have no thresholds.
                if value.size:
                    arrays[path + each.name] = value
            elif "read" in each.metadata and value is not None:
                facts[each.name] = value
        return facts, arrays

    @classmethod
    def read(cls, parts: Parts, n_in: int) -> Self:
        """Return the step that facts and arrays describe."""
        # A size is known from the first array that has it, and all later ones must agree.
        sizes: dict[str, int] = {"n_in": n_in}
        values: dict[str, Any] = {}
        for each in fields(cls):  # type: ignore[arg-type]
            if "read" in each.metadata:
                shape = each.metadata["shape"]
                value = values[each.name] = each.metadata["read"](parts, each.name, tuple(map(sizes.get, shape)))
                sizes |= dict(zip(shape, np.shape(value), strict=True))
            else:
                values[each.name] = n_in
        step = cls(**values)
        step.check(n_in)
        return step

    def check(self, n_in: int) -> None:  # noqa: B027
        """Refuse parts that were read and do not fit together."""


class Affine(ModelStep):
    """x A + b, with A of shape (n_in, n_out)."""

    kind = "affine"
    COST = (0.0, 0.0, 0.25)
    coefficients: FloatArray = table("n_in", "n_out")
    intercept: FloatArray = table("n_out")

    def __call__(self, rows: FloatArray) -> FloatArray:
        return rows @ self.coefficients + self.intercept


class Scale(ModelStep):
    """(x - c) / s, column by column."""

    kind = "scale"
    centre: FloatArray = table("n_in")
    spread: FloatArray = table("n_in")

    def __call__(self, rows: FloatArray) -> FloatArray:
        return (rows - self.centre) / self.spread

    def check(self, n_in: int) -> None:
        if (np.abs(self.spread) < _LEAST_SPREAD).any():
            raise bad_predictor("divides a column by nothing")


class Stretch(ModelStep):
    """x a + b, column by column."""

    kind = "stretch"
    factor: FloatArray = table("n_in")
    offset: FloatArray = table("n_in")

    def __call__(self, rows: FloatArray) -> FloatArray:
        return rows * self.factor + self.offset


class Clip(ModelStep):
    """Each column cut off at two numbers."""

    kind = "clip"
    n_in: int
    low: float = number()
    high: float = number()

    def __call__(self, rows: FloatArray) -> FloatArray:
        return np.clip(rows, self.low, self.high)

    def check(self, n_in: int) -> None:
        if self.low > self.high:
            raise bad_predictor("cuts columns off at a low number above the high one")


FUNCTIONS: dict[str, Callable[[FloatArray], FloatArray]] = {
    "exp": np.exp,
    "logistic": expit,
    "relu": lambda rows: np.maximum(rows, 0.0),
    "tanh": np.tanh,
}


class Elementwise(ModelStep):
    """One function of every number."""

    kind = "elementwise"
    n_in: int
    function: str = choice(FUNCTIONS)

    def __call__(self, rows: FloatArray) -> FloatArray:
        return np.asarray(FUNCTIONS[self.function](rows))


class LogFloor(ModelStep):
    """log max(x, least)."""

    kind = "log"
    n_in: int
    least: float = number(least=1 / MOST_NUMBER)

    def __call__(self, rows: FloatArray) -> FloatArray:
        return np.asarray(np.log(np.maximum(rows, self.least)))


class Softmax(ModelStep):
    """exp(x) over its sum."""

    kind = "softmax"
    n_in: int

    def __call__(self, rows: FloatArray) -> FloatArray:
        return np.asarray(softmax(rows, axis=1))


class Normalise(ModelStep):
    """Rows over their sums; alike where the sum is zero."""

    kind = "normalise"
    n_in: int

    def __call__(self, rows: FloatArray) -> FloatArray:
        total = rows.sum(axis=1, keepdims=True)
        alike = np.full_like(rows, 1 / self.n_in)
        return np.asarray(np.divide(rows, total, out=alike, where=total != 0))


class Complement(ModelStep):
    """The probability of the second class to those of both."""

    kind = "complement"
    n_in = 1
    n_out = 2

    def __call__(self, rows: FloatArray) -> FloatArray:
        return np.concatenate([1 - rows, rows], axis=1)

    def check(self, n_in: int) -> None:
        if n_in != 1:
            raise bad_predictor(f"makes two classes of {n_in} scores; expected one")


class Binary(Complement):
    """The score of the second class to the probabilities of both, by the logistic function."""

    kind = "binary"

    def __call__(self, rows: FloatArray) -> FloatArray:
        return super().__call__(np.asarray(expit(rows)))


class Isotonic(ModelStep):
    """A rising line through knots for each column, level beyond them."""

    kind = "isotonic"
    COST = (100.0, 0.0, 0.0)
    CALLS = "n_in"
    lengths: NDArray[Any] = integers("n_in", least=1, most=_MOST_KNOTS)
    knots: FloatArray = table("n_knots")
    heights: FloatArray = table("n_knots")

    def __call__(self, rows: FloatArray) -> FloatArray:
        ends = np.cumsum(self.lengths)[:-1]
        lines = zip(rows.T, np.split(self.knots, ends), np.split(self.heights, ends), strict=True)
        return np.column_stack([np.interp(column, knots, heights) for column, knots, heights in lines])

    def check(self, n_in: int) -> None:
        n_knots = len(self.knots)
        if n_knots > _MOST_KNOTS:
            raise large_predictor(f"{n_knots} knots; {_MOST_KNOTS} are allowed")
        if int(self.lengths.sum(dtype=np.int64)) != n_knots:
            raise bad_predictor("has other knots than its columns need")
        # Knots of all columns follow one another, and the first of a column may be below the last of another.
        first = np.zeros(n_knots, dtype=bool)
        first[np.concatenate([[0], np.cumsum(self.lengths)[:-1]])] = True
        for values in (self.knots, self.heights):
            if ((np.diff(values, prepend=-np.inf) < 0) & ~first).any():
                raise bad_predictor("has knots that do not rise")


class NormalDensities(ModelStep):
    """log p(class) + log p(x | class), with columns independent and normal in each class."""

    kind = "normal"
    COST = (0.0, 0.0, 5.0)
    CALLS = "n_out"
    means: FloatArray = table("n_out", "n_in")
    variances: FloatArray = table("n_out", "n_in", least=1 / MOST_NUMBER)
    log_priors: FloatArray = table("n_out")

    def __call__(self, rows: FloatArray) -> FloatArray:
        constants = self.log_priors - 0.5 * np.sum(np.log(2.0 * np.pi * self.variances), axis=1)
        # Class by class: a table of rows by classes by columns may be large.
        densities = [
            constant - 0.5 * np.sum((rows - mean) ** 2 / variance, axis=1)
            for constant, mean, variance in zip(constants, self.means, self.variances, strict=True)
        ]
        return np.column_stack(densities)


class Radial(ModelStep):
    """exp(-γ ‖x - s‖²) for each landmark s, which is a row of the anchor or made of such rows."""

    kind = "radial"
    COST = (0.0, 20.0, 0.25)
    landmarks: FloatArray = table("n_out", "n_in")
    gamma: float = number(least=0)

    def __call__(self, rows: FloatArray) -> FloatArray:
        # Not by rbf_kernel, which raises where an entry is infinite.
        squares = np.sum(rows**2, axis=1)[:, None] + np.sum(self.landmarks**2, axis=1) - 2 * rows @ self.landmarks.T
        return np.asarray(np.exp(-self.gamma * np.maximum(squares, 0.0)))


PRECISIONS = ("float32", "float64")


@dataclass(frozen=True)
class Structure:
    """Ends, right children and depth of the trees in a list of nodes."""

    ends: list[int]
    right: NDArray[np.int64]
    depth: int


def structure_of(feature: NDArray[Any]) -> Structure:
    """Return where trees end, right children, and depth; or refuse trees that are not complete, or too deep."""
    right = np.zeros(len(feature), dtype=np.int64)
    ends = []
    # Splits with no right child yet, and their depths.
    open_splits: list[tuple[int, int]] = []
    depth = deepest = 0
    for place, split in enumerate((feature != LEAF).tolist()):
        if split:
            open_splits.append((place, depth))
            depth += 1
            deepest = max(deepest, depth)
        elif open_splits:
            # A leaf ends the left subtree of the last split that is open, whose right child follows.
            parent, depth = open_splits.pop()
            right[parent] = place + 1
            depth += 1
        else:
            ends.append(place + 1)
            depth = 0
        if depth > MOST_DEPTH:
            raise large_predictor(f"trees more than {MOST_DEPTH} splits deep")
    # The last tree has to end with the list, or a split waits for a child.
    if not ends or ends[-1] != len(feature):
        raise bad_predictor("has a tree that is not complete")
    return Structure(ends, right, deepest)


def leaves(structure: Structure, feature: NDArray[Any], threshold: FloatArray, rows: NDArray[Any]) -> Iterator[Any]:
    """Yield for each tree the number of each row's leaf among all leaves, shape (n_rows,)."""
    number = np.cumsum(feature == LEAF) - 1
    bounds = np.zeros(len(feature))
    bounds[feature != LEAF] = threshold
    starts = np.array([0, *structure.ends[:-1]])
    # All rows go down some trees side by side, one split at a time; those in a leaf stay there.
    at_once = max(1, _MOST_WALKING // len(rows))
    for first in range(0, len(starts), at_once):
        node = np.repeat(starts[first : first + at_once], len(rows))
        walking = np.arange(len(node))
        while len(walking := walking[feature[node[walking]] != LEAF]):
            at = node[walking]
            below = rows[walking % len(rows), feature[at]] <= bounds[at]
            node[walking] = np.where(below, at + 1, structure.right[at])
        yield from number[node].reshape(-1, len(rows))


class Trees(ModelStep):
    """The mean over trees of the value of the leaf that x falls into, or their sum and b.

    Nodes of all trees follow one another, each tree from its root down, left before right: a node with its feature, or
    -1 where it is a leaf; behind a node comes its left child, and behind that one's last descendant its right child.
    So the list of features alone says where trees end and which nodes are whose children, and there is no index that
    could be wrong.
    """

    kind = "trees"
    n_in: int
    feature: NDArray[Any]
    threshold: FloatArray
    value: FloatArray
    precision: str = choice(PRECISIONS)
    base: FloatArray | None = None
    output: NDArray[Any] | None = None
    structure: InitVar[Structure | None] = None

    def __post_init__(self, structure: Structure | None) -> None:
        self.n_out = self.value.shape[1] if self.base is None else len(self.base)
        self._structure = structure or structure_of(self.feature)

    def __call__(self, rows: FloatArray) -> FloatArray:
        # In scikit-learn's order of adding and dividing, so that scores that are equal to it are equal here.
        total = np.zeros((len(rows), self.n_out))
        if self.base is not None:
            total += self.base
        # Beyond single precision's range a number is larger than every threshold, which infinity is too.
        with np.errstate(over="ignore"):
            compared = rows.astype(self.precision)
        for tree, leaf in enumerate(leaves(self._structure, self.feature, self.threshold, compared)):
            if self.output is None:
                total += self.value[leaf]
            else:
                total[:, self.output[tree]] += self.value[leaf, 0]
        # A forest is a mean; boosting, which has a base, is a sum.
        if self.base is None:
            return total / self.calls
        return total

    @property
    def work(self) -> float:
        """The way down each tree."""
        return float(10 * self.calls * (self._structure.depth + self.value.shape[1]))

    @property
    def calls(self) -> int:
        """One for each tree."""
        return len(self._structure.ends)

    @classmethod
    def read(cls, parts: Parts, n_in: int) -> Self:
        feature = parts.integers("feature", least=LEAF, most=n_in - 1)
        parts.budget.take_nodes(len(feature))
        structure = structure_of(feature)
        n_splits = int(np.count_nonzero(feature != LEAF))
        threshold = np.empty(0)
        if n_splits:
            threshold = parts.table("threshold", (n_splits,), most=np.finfo(np.float64).max)
        base = None
        n_values = None
        if parts.has("base"):
            base = parts.table("base", (None,))
            n_values = len(base)
        output = None
        if base is not None and parts.has("output"):
            # Each tree of several outputs adds to one of them.
            output = parts.integers("output", least=0, most=len(base) - 1)
            n_values = 1
            if len(output) != len(structure.ends):
                raise bad_predictor("does not say for each of its trees what it adds to")
        value = parts.table("value", (len(feature) - n_splits, n_values))
        return cls(n_in, feature, threshold, value, parts.choice("precision", PRECISIONS), base, output, structure)


class StepChain:
    """Steps, at least one; each is applied to the values of the one before."""

    def __init__(self, steps: Sequence[ModelStep]) -> None:
        self.steps = tuple(steps)
        self.n_in = self.steps[0].n_in
        self.n_out = self.steps[-1].n_out
        widths = [chain.width for step in self.steps if isinstance(step, Mean) for chain in step.chains]
        self.width: int = max([self.n_in, *widths, *(step.n_out for step in self.steps)])

    def __repr__(self) -> str:
        return f"StepChain({', '.join(step.kind for step in self.steps)})"

    def __call__(self, rows: FloatArray) -> FloatArray:
        for step in self.steps:
            rows = step(rows)
        return rows

    def to_parts(self, path: str = "") -> tuple[list[dict[str, Any]], dict[str, NDArray[Any]]]:
        """Return facts of the steps, and their arrays under the path."""
        facts: list[dict[str, Any]] = []
        arrays: dict[str, NDArray[Any]] = {}
        for place, step in enumerate(self.steps):
            own, inner = step.to_parts(f"{path}{place}.")
            facts.append(own)
            arrays |= inner
        return facts, arrays


class Mean(ModelStep):
    """Σ w_j h_j(x) over chains h_j."""

    kind = "mean"
    weights: FloatArray
    chains: Sequence[StepChain]

    def __post_init__(self) -> None:
        self.n_in = self.chains[0].n_in
        self.n_out = self.chains[0].n_out

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

    def to_parts(self, path: str) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return facts and arrays of all chains, whose arrays have their places in the path."""
        facts: list[Any] = []
        arrays: dict[str, NDArray[Any]] = {f"{path}weights": self.weights}
        for place, chain in enumerate(self.chains):
            steps, inner = chain.to_parts(f"{path}{place}.")
            facts.append(steps)
            arrays |= inner
        return {"kind": self.kind, "chains": facts}, arrays

    @classmethod
    def read(cls, parts: Parts, n_in: int, nested: int = 0) -> Self:
        listed = parts.entries("chains")
        if nested >= _MOST_NESTED or len(listed) > _MOST_PARTS:
            raise large_predictor(
                f"{len(listed)} models in one another; {_MOST_PARTS}, {_MOST_NESTED} deep, are allowed"
            )
        weights = parts.table("weights", (len(listed),), least=0, most=1)
        # Rounding of a sum of a thousand weights stays below this.
        if abs(weights.sum() - 1) > 1e-9:
            raise bad_predictor("has weights that do not add up to one")
        chains = [
            read_chain(steps, parts.arrays, n_in, path=f"{parts.path}{place}.", nested=nested + 1, budget=parts.budget)
            for place, steps in enumerate(listed)
        ]
        if len({chain.n_out for chain in chains}) > 1:
            raise bad_predictor("is the mean of models with different numbers of columns")
        return cls(weights, chains)


KINDS: dict[str, type[ModelStep]] = {
    step.kind: step
    for step in (
        *(Affine, Binary, Clip, Complement, Elementwise, Isotonic, LogFloor, Mean, NormalDensities, Normalise),
        *(Radial, Scale, Softmax, Stretch, Trees),
    )
}


def read_chain(
    facts: Any, arrays: dict[str, NDArray[Any]], n_in: int, *, budget: Budget, path: str = "", nested: int = 0
) -> StepChain:
    """Return the chain that facts and arrays describe; arrays that belong to it are removed from the mapping."""
    if not isinstance(facts, list) or not facts:
        raise bad_predictor("has no list of steps")
    if len(facts) > _MOST_STEPS:
        raise large_predictor(f"{len(facts)} steps; {_MOST_STEPS} are allowed")
    steps: list[ModelStep] = []
    n_columns = n_in
    for place, each in enumerate(facts):
        parts = Parts(each, arrays, f"{path}{place}.", budget)
        kind = KINDS[parts.choice("kind", KINDS)]
        if kind is Mean:
            step: ModelStep = Mean.read(parts, n_columns, nested)
        else:
            step = kind.read(parts, n_columns)
        if parts.facts:
            raise bad_predictor(f"has a step {kind.kind!r} that says more than such a step has to say")
        # Counted as it is read: a chain that would take hours is refused before it is complete.
        budget.spend(step.work, step.calls)
        n_columns = step.n_out
        if n_columns > MOST_WIDTH:
            raise large_predictor(f"{n_columns} columns on the way; {MOST_WIDTH} are allowed")
        steps.append(step)
    return StepChain(steps)
