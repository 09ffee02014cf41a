"""Costs of a fit of KTI (tab:complexity): the bytes and seconds of each solver, and the solver to take."""

from __future__ import annotations

import os
import time
from bisect import bisect_right
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from .._threads import one_thread
from .._validation import Array, array_library
from ..errors import NotEnoughMemoryError
from ..linalg import MEDIAN_ROWS, Kernel, basis_capacity, device_memory
from ._nystroem import feature_dtype

DENSE_UP_TO = 1200
"""Anchor rows up to which a dense eigensolver is as fast as a Krylov method."""
EXACT_OPERATIONS = 1e12
"""Operations of the Cholesky factorisations, K n_a^3 / 3, up to which "auto" solves exactly: minutes at most."""
FEWEST_LANDMARKS = 128
"""Landmarks per party that "nystroem" begins with."""
MOST_LANDMARKS = 1024
"""Landmarks per party that "nystroem" takes by itself at most."""
_TARGET_ROWS = 20_480
"""Anchor rows whose features are kept to find the target, at most, without a graph between all rows."""
_OF_LOW_RANK = ("linear", "cosine")
"""Kernels whose matrices have a rank of at most the number of columns; more landmarks are of no use."""
_CANDIDATES = 8
"""Anchor rows for each landmark that landmarks are drawn among; with fewer, the target is clearly worse."""
_FEWEST_CANDIDATES = 2048
_FEWEST_ROWS = 4
"""Anchor rows for each landmark on which the target is found at least, where memory is short."""
_COLUMNS = 400
"""Right-hand sides that a Krylov method typically needs, for each 16 components."""
_BESIDE = 8
"""Blocks of as many columns as components that an eigensolver holds beside its basis."""
_PANELS = 2200
"""Columns in whose time a product with a Cholesky factor of any size gets from panel to panel."""
_CONVERTED = 650
"""Features in whose time a right-hand side is brought to their data type, and their product back."""
_PER_PARTY = 1e9
"""Operations in whose time what does not depend on sizes is done for a party on the sample."""
_PER_ROW = 1e6
"""Operations in whose time a row's part in a Krylov method is done that does not depend on its columns."""
_START_VALUES = 200
"""Kernel values that each row takes for a start and for the diagonal."""
_PER_DISTANCE = 700
"""Operations in whose time one distance is found and sorted for the median."""
_PROGRAM = 245 * 2**20
"""Bytes of Python and the libraries."""
_LARGE_SHARE = 0.9
"""Part of the available memory that a fit may plan to take."""


@dataclass(frozen=True, kw_only=True)
class FitCost:
    """Estimated cost of a fit.

    ``memory`` is in bytes that the process holds at the peak, all counted: Python, the anchor representations and the
    fit.  ``work`` counts the solver's operations: of matrix products ("single", "double", "skinny" with few columns)
    and kernel values ("values32", "values64").  "nystroem" finds the target on ``n_rows`` anchor rows.
    """

    solver: str
    memory: int
    work: Mapping[str, float]
    kernel: Kernel = field(repr=False)
    n_columns: float = field(repr=False)
    n_rows: int = field(repr=False)
    limit: float = field(default=np.inf, repr=False)

    @property
    def seconds(self) -> float:
        """CPU time on one thread of this machine, whose `speeds` are measured for it."""
        return self.seconds_at(self.speeds())

    def speeds(self) -> dict[str, float]:
        """Measure how much of each kind of work this machine does in a second of one processor."""
        return _speeds(self.kernel, max(1, round(self.n_columns)))

    def seconds_at(self, speeds: Mapping[str, float]) -> float:
        """Return the time on one thread of a machine with these speeds."""
        return sum(amount / speeds[name] for name, amount in self.work.items())

    def __str__(self) -> str:
        memory = self.memory / 2**30
        return f"about {self.seconds:,.0f} s on one thread and {memory:.2g} GiB"


@dataclass(frozen=True, kw_only=True)
class FitSize:
    """Sizes and parameters that the cost of a fit depends on.

    ``n_columns`` are those of the anchor representations, on average over parties, and ``itemsize`` the bytes of their
    entries; ``kernel`` is one party's.
    """

    n_anchors: int
    n_parties: int
    n_components: int
    kernel: Kernel
    n_columns: float
    itemsize: int = 8
    needs_exact: bool = False
    alpha: float = 1.0
    n_landmarks: int | None = None
    has_graph: bool = False
    has_penalty: bool = False

    @property
    def resident(self) -> int:
        """Bytes in use before a fit begins."""
        return _PROGRAM + int(self.n_parties * self.n_anchors * self.n_columns * self.itemsize)

    def cost(self, solver: str, *, n_rows: int | None = None, rank: int | None = None) -> FitCost:
        """Estimate a solver's cost; "nystroem" with ``rank`` landmarks per party if there are no `n_landmarks`."""
        n_rows = self.n_anchors if n_rows is None else n_rows
        if solver == "dense":
            beside, work = self._dense()
        elif solver == "streamed":
            beside, work = self._one_factor_each()
        else:
            beside, work = self._nystroem(n_rows, self._rank(rank))
        return FitCost(
            solver=solver,
            memory=self.resident + int(beside),
            work=work,
            kernel=self.kernel,
            n_columns=self.n_columns,
            n_rows=n_rows,
        )

    def _dense(self) -> tuple[float, dict[str, float]]:
        """Return bytes and operations of `solve_dense`: two inverses a party, and one eigendecomposition."""
        n = float(self.n_anchors)
        K = self.n_parties
        # The sum and one party's matrix; with a penalty graph its matrix beside them, and a pencil to solve.
        n_matrices = 2
        eigen = 3
        if self.has_penalty:
            n_matrices = 3
            eigen = 14
        work = {"double": self._widths() + 2 * K * n**3 + eigen * n**3, "values64": 4 * K * n**2}
        return n_matrices * 8 * n**2, work

    def _one_factor_each(self) -> tuple[float, dict[str, float]]:
        """Return bytes and operations of `solve_streamed`: one factor a party in float32, and products with it."""
        n = float(self.n_anchors)
        K = self.n_parties
        columns = _COLUMNS * max(1.0, self.n_components / 16)
        work = {
            "single": K * n**3 / 3,
            "double": self._widths() + 90 * n * columns**2,
            "skinny": 2 * K * n * (n + _PANELS) * columns,
            "values32": K * n**2,
            "values64": K * n**2,
        }
        if self.has_graph:
            # The trace is that of factors in float64.
            work["double"] += K * n**3
        return 2.1 * K * n**2 + 4 * n**2 + 16 * n * columns, work

    def _nystroem(self, n_rows: int, rank: int) -> tuple[float, dict[str, float]]:
        """Return bytes and operations of `solve_nystroem` with ``rank`` landmarks a party."""
        n = float(self.n_anchors)
        K = self.n_parties
        k = self.n_components
        rank = min(rank, self.n_anchors)
        # A rank of d is reached with d landmarks, and the factorisation ends there.
        if self.kernel.metric in _OF_LOW_RANK:
            rank = min(rank, max(1, round(self.n_columns)))
        drawn = K * min(n_rows, candidate_rows(rank)) * rank
        width = np.dtype(feature_dtype(self.alpha, rank, n_rows)).itemsize
        product = "single"
        values = "values32"
        if width == 8:
            product = "double"
            values = "values64"
        # Landmarks give a start so near that half the right-hand sides suffice.
        columns = min(_COLUMNS * max(1.0, k / 16) / 2, K * rank)
        work = dict.fromkeys(("single", "double", "skinny", "values32", "values64"), 0.0)
        work["double"] += self._widths() + K * _PER_PARTY + 2 * drawn * rank
        work["double"] += n_rows * (_PER_ROW + 100 * columns**2)
        work["values64"] += 1.5 * drawn + K * n_rows * (rank + _START_VALUES)
        # Features that are kept, a Krylov method on them, and the functions.
        work[product] += 3.4 * K * n_rows * rank**2
        work[values] += K * n_rows * rank
        work["skinny"] += 4 * K * n_rows * (rank + _CONVERTED) * columns + 2 * K * n_rows * rank * k
        if self.n_landmarks is None:
            # Half as many landmarks before take a quarter of the products, and half of what else there is.
            work[product] *= 4 / 3
            work["double"] += 2 * drawn * rank / 3 + 50 * n_rows * columns**2
            work["values64"] *= 2
            work["skinny"] *= 2
        # Gram matrices and features of all parties, then the eigensolver's basis and blocks.
        held = K * (8 + width * n_rows / rank) * rank**2
        held += 8 * n_rows * (2 * min(basis_capacity(n_rows, k), columns + 4 * k) + _BESIDE * k)
        if n_rows < n:
            # Features of all rows, which are not kept: for the target, for Gram matrices and for moments.
            work[product] += 2.3 * K * n * rank**2
            work[values] += 3 * K * n * rank
            work["values64"] += 2 * K * n * rank
            work["skinny"] += 8 * K * n * rank * k
            held = 8 * K * n_rows * self.n_columns + max(held, K * (8 + 8 + width) * rank**2 + 4 * 8 * n * k)
        return held, work

    def _widths(self) -> float:
        """Return operations that the median distances take."""
        return _PER_DISTANCE * self.n_parties * min(self.n_anchors, MEDIAN_ROWS) ** 2 / 2

    def landmarks(self, limit: float = np.inf, rank: int | None = None) -> FitCost:
        """Return the cost of "nystroem" on as many rows as stay within ``limit``, or on the fewest if none do."""
        rank = self._rank(rank)
        n_rows = self.n_anchors
        fewest = n_rows
        # A graph ties all rows, so that none may be left out.
        if not self.has_graph:
            n_rows = min(n_rows, max(_TARGET_ROWS, candidate_rows(rank)))
            fewest = min(n_rows, _FEWEST_ROWS * rank)
        cost = self.cost("nystroem", n_rows=n_rows, rank=rank)
        while cost.memory > limit and n_rows > fewest:
            n_rows = max(fewest, n_rows // 2)
            cost = self.cost("nystroem", n_rows=n_rows, rank=rank)
        return cost

    def _rank(self, rank: int | None) -> int:
        """Return landmarks per party: those given, or as many as "nystroem" takes by itself at most."""
        return self.n_landmarks or rank or max(MOST_LANDMARKS, 2 * self.n_components)

    def most_landmarks(self, cost: FitCost) -> int:
        """Return the most landmarks per party with which "nystroem" stays within its memory."""
        return bisect_right(
            range(1, MOST_LANDMARKS + 1),
            cost.limit,
            key=lambda rank: self.cost("nystroem", n_rows=cost.n_rows, rank=rank).memory,
        )

    def choose(
        self, solver: str, memory_limit: float | None, beside: Array | None = None, *, is_loaded: bool = True
    ) -> FitCost:
        """Return the solver for `KTI`'s parameter of that name, and its cost; `beside` is an array computed with.

        ``is_loaded`` says whether the anchor representations are in memory already.
        """
        limit = memory_limit
        if limit is None:
            # The memory in use already is not taken once more.
            in_use = self.resident if is_loaded else _PROGRAM
            limit = in_use + _LARGE_SHARE * (device_memory(beside) or available_memory())
        candidates = self._candidates(solver, in_numpy=array_library(beside) is None)
        costs = [self.landmarks(limit) if name == "nystroem" else self.cost(name) for name in candidates]
        if "nystroem" in candidates and self.n_landmarks is None:
            # With the fewest landmarks rather than not at all.
            costs.append(self.landmarks(limit, max(FEWEST_LANDMARKS, 2 * self.n_components)))
        for each in costs:
            if each.memory <= limit:
                return replace(each, limit=limit)
        least = min(costs, key=lambda each: each.memory)
        instead = "solver='nystroem', "
        if solver == "nystroem" or self.has_penalty or self.needs_exact:
            instead = ""
        raise NotEnoughMemoryError(
            f"KTI: {self.n_parties} parties with {self.n_anchors} anchor rows need {least.memory / 2**30:.2g} GiB with "
            f"solver={solver!r}, but {limit / 2**30:.2g} GiB may be used, anchor representations included. Take fewer "
            f"anchor rows, {instead}several machines (engine=), or raise memory_limit."
        )

    def _candidates(self, solver: str, *, in_numpy: bool) -> list[str]:
        """Return the solvers allowed, the preferred one first; the dense one computes with NumPy's arrays alone."""
        if solver == "nystroem":
            if self.has_penalty:
                raise ValueError("A penalty graph needs solver='exact'; solver='nystroem' solves without one.")
            return ["nystroem"]
        if self.has_penalty or (in_numpy and self.n_anchors <= DENSE_UP_TO):
            return ["dense"]
        exact = ["streamed"]
        if in_numpy:
            # It takes more time, and less memory, than factors of all parties.
            exact.append("dense")
        if solver != "auto" or self.needs_exact:
            return exact
        if self.n_parties * float(self.n_anchors) ** 3 / 3 > EXACT_OPERATIONS:
            return ["nystroem", *exact]
        return [*exact, "nystroem"]


def candidate_rows(rank: int) -> int:
    """Return anchor rows that so many landmarks are drawn among, if there are so many."""
    return max(_FEWEST_CANDIDATES, _CANDIDATES * rank)


def available_memory() -> int:
    """Return bytes that this machine, or the container this runs in, can give without swapping."""
    limits = []
    report = Path("/proc/meminfo")
    if report.exists():
        for line in report.read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                limits.append(1024 * int(line.split()[1]))
    # A container's limit is often far below its machine's memory.
    most, used = (Path("/sys/fs/cgroup") / name for name in ("memory.max", "memory.current"))
    if most.exists() and used.exists() and (limit := most.read_text(encoding="ascii").strip()) != "max":
        limits.append(max(0, int(limit) - int(used.read_text(encoding="ascii"))))
    if not limits and hasattr(os, "sysconf"):
        limits.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    return min(limits, default=2**33)


_PROBE = 768
_PROBE_ROWS = 2048
_PROBE_COLUMNS = 256
_FEW = 64
"""Rows that a kernel which is a function of two rows is tried on; it takes some microseconds for each pair."""
_LONG_ENOUGH = 0.02
"""Seconds that each kind of work is tried for, twice."""


# Processor time of several threads counts that of those that wait, too.
@one_thread
def _speeds(kernel: Kernel, n_columns: int) -> dict[str, float]:
    n_rows = _FEW
    n_landmarks = _FEW
    if isinstance(kernel.metric, str):
        n_rows = _PROBE_ROWS
        n_landmarks = _PROBE_COLUMNS
    # Some kernels take no negative entries.
    rows = np.random.default_rng(0).uniform(size=(n_rows, n_columns)) / np.sqrt(n_columns)
    landmarks = rows[:n_landmarks]
    n_values = n_rows * n_landmarks
    return {
        **_speeds_of_products(),
        "values32": n_values * _per_second(lambda: kernel.between(rows, landmarks, np.float32)),
        "values64": n_values * _per_second(lambda: kernel.between(rows, landmarks)),
    }


@cache
def _speeds_of_products() -> dict[str, float]:
    double, single = (np.ones((_PROBE, _PROBE), dtype) for dtype in (np.float64, np.float32))
    tall = np.ones((_PROBE_ROWS, _PROBE_COLUMNS), np.float32)
    narrow = np.ones((_PROBE_COLUMNS, 16), np.float32)
    return {
        "double": 2.0 * _PROBE**3 * _per_second(lambda: double @ double),
        "single": 2.0 * _PROBE**3 * _per_second(lambda: single @ single),
        "skinny": 2.0 * tall.size * narrow.shape[1] * _per_second(lambda: tall @ narrow),
    }


def _per_second(function: Callable[[], Any]) -> float:
    # The first call loads and allocates.
    function()
    best = 0.0
    for _ in range(2):
        count = 0
        elapsed = 0.0
        started = time.process_time()
        while elapsed < _LONG_ENOUGH:
            function()
            count += 1
            elapsed = time.process_time() - started
        best = max(best, count / elapsed)
    return best
