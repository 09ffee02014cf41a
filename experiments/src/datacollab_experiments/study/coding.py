"""How often `datacollab.study.Counts` names a column that one party codes otherwise, and columns that differ honestly.

Three, five or ten parties have 100 to 1,000 rows each, and every party's mean lies anywhere within half a standard
deviation of a common one.  Then one party uses another unit, or swaps two levels.  Ranges are wide enough for both
units, since `datacollab party check` refuses entries outside.
"""

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
from numpy.typing import NDArray

from datacollab.study import CategoryColumn, Counts, NumberColumn

from ..harness import write_table
from ..sums.playing import noise_factor

Entries = NDArray[np.float64]
PARTIES = (3, 5, 10)
APART = 0.5
"""Standard deviations that an honest party's mean is from the common one, at most."""
LARGE = 0.1
"""Share of all rows from which on a party is called large."""


def number(random: np.random.Generator, n: int, shift: float, *, mean: float, sd: float) -> Entries:
    """Draw rows of a normal column."""
    return mean + sd * (shift + random.normal(size=n))


def lognormal(random: np.random.Generator, n: int, shift: float, *, median: float, spread: float) -> Entries:
    """Draw rows of a lognormal column, whose shift is that of its logarithm."""
    return np.asarray(median * np.exp(spread * (shift + random.normal(size=n))))


def level(random: np.random.Generator, n: int, shift: float, *, rate: float) -> Entries:
    """Draw rows of a column of two levels."""
    return np.asarray(random.random(n) < rate + shift * np.sqrt(rate * (1 - rate)), dtype=np.float64)


creatinine = partial(lognormal, median=85.0, spread=0.4)
weight = partial(number, mean=80.0, sd=16.0)
temperature = partial(number, mean=37.0, sd=0.7)
CASES: dict[str, tuple[Callable[..., Entries], Callable[[Entries], Entries]]] = {
    "weight, a party in pounds (× 2.2)": (weight, lambda x: x / 0.4536),
    "weight, a party in stones of 10 kg (× 0.1)": (weight, lambda x: x / 10),
    "temperature, a party in Fahrenheit": (temperature, lambda x: 1.8 * x + 32),
    "creatinine, a party in mg/dL (÷ 88.4)": (creatinine, lambda x: x / 88.4),
    "creatinine, a party × 10": (creatinine, lambda x: x * 10),
    "creatinine, a party × 0.45": (creatinine, lambda x: x * 0.45),
    **{
        f"two levels swapped, one of them {100 * rate:.0f} % of rows": (partial(level, rate=rate), lambda x: 1 - x)
        for rate in (0.05, 0.1, 0.2, 0.3, 0.4)
    },
}


def names_column(random: np.random.Generator, parts: list[Entries], noise: float) -> bool:
    """Return whether the column is named, with the noise of a plan."""
    rows = np.concatenate(parts)
    column: NumberColumn | CategoryColumn = CategoryColumn("x", (0.0, 1.0))
    # A column of zeros and ones is a category, as projects draft it.
    if not set(rows) <= {0.0, 1.0}:
        column = NumberColumn("x", min(0.0, float(rows.min())), 1.05 * float(rows.max()))
    others = [NumberColumn(f"other {place}", 0, 1) for place in range(9)]  # Their noise is shared.
    counts = Counts([column, *others])
    tables = ({"x": part} | {each.name: np.full(len(part), 0.5) for each in others} for part in parts)
    total = np.sum([counts.part(table) for table in tables], axis=0)
    noisy = total + noise * counts.spread * random.normal(size=len(total))
    return "x" in counts.result(noisy, n_parties=len(parts), noise=noise).unlike


def rows(studies: int, seed: int) -> Iterator[dict[str, object]]:
    """Yield a row for each case: false alarms, and how often a large and a small odd party is found."""
    random = np.random.default_rng(seed)
    for name, (draw, convert) in CASES.items():
        alarms = list[bool]()
        large = list[bool]()
        small = list[bool]()
        for n_parties in PARTIES:
            noise = noise_factor(n_parties)
            for _ in range(studies):
                # Sizes are even on the log scale: some parties have a tenth of the largest's rows.
                sizes = np.exp(random.uniform(np.log(100), np.log(1000), n_parties)).astype(int)
                parts = [draw(random, n, random.uniform(-APART, APART)) for n in sizes]
                alarms.append(names_column(random, parts, noise))
                # The same rows once more, with one party that codes otherwise.
                odd = int(random.integers(n_parties))
                parts[odd] = convert(parts[odd])
                # A small party hardly moves the total's mean and spread, so its unit is harder to see.
                by_size = large if sizes[odd] >= LARGE * sizes.sum() else small
                by_size.append(names_column(random, parts, noise))
        found = {"false alarms": alarms, "found, 10 % of rows or more": large, "found, fewer": small}
        yield {"case": name, **{kind: _per_cent(each) for kind, each in found.items()}}


def _per_cent(found: list[bool]) -> str:
    """Return the share of studies; of a few studies none may have had a small odd party."""
    if not found:
        return "–"
    return f"{100 * np.mean(found):.1f} %"


if __name__ == "__main__":
    write_table(rows, studies=300, seed=0)
