"""How often intervals of odds and rate ratios from counts by pattern hold, and how wide they are beside all rows' own.

Columns of two to four levels explain an outcome that is seen or not, or an event by time.  Five parties add
up their rows; the noise is the usual one, raised for as many colluding parties as usual.

```console
$ python -m datacollab_experiments.study.ratio_coverage
```
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np

from datacollab.errors import NumericalError
from datacollab.study import CategoryColumn, GroupedLogistic, GroupedPoisson, NumberColumn

from ..harness import write_table
from ..sums.playing import noise_factor

N_STUDIES = 300
N_PARTIES = 5
SEEN = CategoryColumn("seen", (0, 1))
TIME = NumberColumn("time", 0, 1)
_EFFECT = 0.7
"""The largest logarithm of a ratio."""
_INTERCEPTS = {"logistic": -1.0, "events": -0.5}


@dataclass(frozen=True)
class RatioWorld:
    """Rows of columns with these levels, the last ones of which are more frequent."""

    kind: str
    """"logistic" or "events"."""
    n_rows: int
    n_levels: tuple[int, ...]

    @property
    def columns(self) -> list[CategoryColumn]:
        return [CategoryColumn(f"c{place}", range(n)) for place, n in enumerate(self.n_levels)]

    @property
    def statistic(self) -> GroupedLogistic | GroupedPoisson:
        """Return what parties add up."""
        if self.kind == "logistic":
            return GroupedLogistic(self.columns, SEEN)
        return GroupedPoisson(self.columns, SEEN, TIME)

    @property
    def true(self) -> np.ndarray:
        """Return the true coefficients: from the largest effect downwards, in each column."""
        return np.concatenate([np.linspace(_EFFECT, -_EFFECT, n)[: n - 1] for n in self.n_levels])

    def table(self, random: np.random.Generator) -> dict[str, np.ndarray]:
        """Draw all rows of a study."""
        table = {}
        eta = np.full(self.n_rows, _INTERCEPTS[self.kind])
        effects = iter(self.true)
        for column in self.columns:
            n = len(column.levels)
            shares = np.linspace(1, 2, n)
            level = random.choice(n, self.n_rows, p=shares / shares.sum())
            table[column.name] = level
            eta += np.array([0.0, *(next(effects) for _ in range(n - 1))])[level]
        if self.kind == "logistic":
            return table | {"seen": (random.random(self.n_rows) < 1 / (1 + np.exp(-eta))).astype(int)}
        event = random.exponential(size=self.n_rows) / np.exp(eta)
        left = np.minimum(random.uniform(0.2, 2, self.n_rows), TIME.high)
        return table | {"time": np.minimum(event, left), "seen": (event <= left).astype(int)}


def measure(world: RatioWorld, seed: int, n_studies: int = N_STUDIES) -> dict[str, float]:
    """Return the part of studies that are answered, of intervals that hold, and the median width by all rows' own."""
    random = np.random.default_rng(seed)
    statistic = world.statistic
    noise = noise_factor(N_PARTIES)
    held: list[np.ndarray] = []
    exact_held: list[np.ndarray] = []
    width: list[np.ndarray] = []
    for _ in range(n_studies):
        exact = statistic.part(world.table(random))
        noisy = exact + noise * statistic.spread * random.normal(size=len(exact))
        try:
            own = statistic.result(exact, n_parties=N_PARTIES, noise=0.0)
            found = statistic.result(noisy, n_parties=N_PARTIES, noise=noise)
        except NumericalError:
            continue
        for each, into in ((found, held), (own, exact_held)):
            low, high = each.conf_int().T
            into.append((low <= world.true) & (world.true <= high))
        width.append(found.bse / own.bse)
    if not held:
        return {"answered": 0.0, "coverage": math.nan, "of all rows": math.nan, "width": math.nan}
    return {
        "answered": len(held) / n_studies,
        "coverage": float(np.mean(held)),
        "of all rows": float(np.mean(exact_held)),
        "width": float(np.median(width)),
    }


def rows() -> Iterator[dict[str, object]]:
    """Yield the figures of each world of the page."""
    sizes = ((400, (2, 2)), (1000, (2, 3, 2)), (1000, (2, 3, 4, 2)), (3000, (3, 4, 4, 4)))
    for number, (kind, (n_rows, n_levels)) in enumerate(product(_INTERCEPTS, sizes)):
        figures = measure(RatioWorld(kind, n_rows, n_levels), number)
        facts = {"kind": kind, "rows": n_rows, "patterns": math.prod(n_levels)}
        yield facts | {name: round(each, 2) for name, each in figures.items()}


if __name__ == "__main__":
    write_table(rows)
