"""One person's class, read by an owner who makes the anchor for that person; beside an honest anchor.

Five parties have 150 rows of ten normal columns each, and classes that no column tells.  The owner is one of the
parties, knows the person's row, and reads the class from the returned model; or, with the analyst and everybody's
rows, from the total without its own part and noise.  The person's own party compares the anchor with its rows first
(`anchor_fit`).

Run ``python -m datacollab_experiments.sums.crafted --draws 400 --output FILE``; with ``--asked`` the party goes on
where it is asked.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from datacollab.anchor import AnchorFit, anchor_fit
from datacollab.folder.party import Policy
from datacollab.sums import UNITS_PER_RANGE, CommonMap, RidgeSums, recommended

from ..harness import write_table
from ..pays.tables import Array
from .playing import matrix_of, noise_factor, secret

N_PARTIES = 5
N_ROWS = 150
N_COLUMNS = 10
N_ANCHORS = 300
RANGE = 8.0
"""Of a column, as declared: four standard deviations to each side.  An anchor beyond it is refused anyway."""
OUTLIER = 4.0


@dataclass(frozen=True)
class Craft:
    """One way to make an anchor.

    Attributes
    ----------
    name : str
    width : float
        Of the cloud around the person, or the factor by which its direction is stretched, in standard deviations.
    components : int or None
        D at most; None is the rule's.
    columns : int
        How many columns of a squeezed anchor lie around the person.
    """

    name: str
    width: float = 1.0
    components: int | None = None
    columns: int = N_COLUMNS

    def rows(self, person: Array, generator: np.random.Generator) -> Array:
        honest = generator.normal(size=(N_ANCHORS, N_COLUMNS))
        if self.name == "cloud":
            honest = person + self.width * honest
        elif self.name == "half a cloud":
            honest[::2] = person + self.width * honest[::2]
        elif self.name == "twelve rows":
            honest[:12] = person + self.width * honest[:12]
        elif self.name == "squeezed":
            columns = slice(self.columns)
            honest[:, columns] = person[columns] + self.width * honest[:, columns]
        elif self.name == "stretched":
            # Along the person's direction from the mean, which is that of Mahalanobis as columns are independent.
            direction = person / np.linalg.norm(person)
            along = honest @ direction
            honest = 0.7 * (honest - np.outer(along, direction)) + self.width * np.outer(along, direction)
        return np.asarray(np.clip(honest, -RANGE / 2, RANGE / 2))


CRAFTS = (
    *(Craft("honest", components=components) for components in (None, 4, 1)),
    *(Craft("cloud", width) for width in (1e-4, 0.1, 0.2, 0.5, 1.0)),
    *(Craft("half a cloud", width) for width in (0.1, 0.5)),
    Craft("twelve rows", 0.01),
    *(Craft("squeezed", 0.2, columns=columns) for columns in (1, 2, 4)),
    *(Craft("stretched", width) for width in (2.0, 4.0)),
    *(Craft("stretched", 4.0, components) for components in (4, 2, 1)),
)


def is_refused(fit: AnchorFit) -> bool:
    """Return whether the usual policy refuses an anchor, however many rows of one person's kind it has."""
    return fit.n_near_beyond_chance > 0 or fit.spread < Policy().min_anchor_spread


def play(craft: Craft, outlier: bool, seed: int, *, asked: bool = False) -> tuple[bool, bool] | None:
    """Return whether the owner read the class alone, and with the analyst, in one draw; None if it was noticed.

    With `asked`, only a refusal counts as noticed.
    """
    generator = np.random.default_rng([seed, 51])
    X = generator.normal(size=(N_PARTIES * N_ROWS, N_COLUMNS))
    y = generator.integers(2, size=len(X))
    if outlier:
        # Farther from the mean than nine in ten of such people.
        X[0] *= OUTLIER / np.linalg.norm(X[0])
    anchor = craft.rows(X[0], generator)
    # The person's party sees the anchor and its own rows alone.
    fit = anchor_fit(anchor, X[:N_ROWS], by_column=True)
    if is_refused(fit) or (fit.density > Policy().max_anchor_density and not asked):
        return None
    usual = recommended()
    unit = UNITS_PER_RANGE / RANGE
    common = CommonMap.from_anchor(anchor * unit, secret(seed), n_components=craft.components or usual.n_components)
    statistic = RidgeSums(common.n_components, classes=(0, 1), noise=usual.noise)
    v = common.transform(X * unit)
    others = slice(0, -N_ROWS)
    factor = noise_factor(N_PARTIES)
    factor_of_others = noise_factor(N_PARTIES, known=1)
    noise = statistic.noise_of_each * generator.normal(size=(2, statistic.n_numbers))
    of_others = statistic.part(v[others], y[others]) + factor_of_others * noise[0]
    # The last party is the owner, and knows its own noise.
    own = statistic.part(v[-N_ROWS:], y[-N_ROWS:]) + math.sqrt(factor**2 - factor_of_others**2) * noise[1]
    model = statistic.solve(of_others + own, noise=usual.noise * factor, least_penalty=usual.least_penalty)
    outputs = model.predict(v) @ (-1, 1)
    # Classes that no column tells: the sign of the posterior mean is all there is to read.
    together = from_total(statistic, of_others, v[others], usual.noise * factor_of_others)[0]
    return bool((outputs[0] > outputs.mean()) == y[0]), bool((together > 0) == y[0])


def from_total(statistic: RidgeSums, total: Array, v: Array, noise: float) -> Array:
    """Return the posterior mean of everybody's target, from the total and everybody's rows."""
    D = statistic.n_components
    eta = 0.5
    M = matrix_of(total, statistic.size)
    features = np.column_stack([v, np.ones(len(v))])
    crossed = np.r_[M[:D, D + 1] / eta, M[D + 1, D + 2] / eta**2]
    variances = noise**2 / 2 / eta**2 * np.r_[np.ones(D), 1 / eta**2]
    solved = np.linalg.solve(features.T @ features / 4 + np.diag(variances), crossed)
    return np.asarray(features @ solved / 4)


def rows(draws: int, *, asked: bool = False) -> Iterator[dict[str, object]]:
    """Yield a row for each way and kind of person; beside each reading, that by the honest anchor in these draws."""
    for outlier in (False, True):
        honest = [play(CRAFTS[0], outlier, seed, asked=asked) for seed in range(draws)]
        for craft in CRAFTS:
            played = honest
            if craft is not CRAFTS[0]:
                played = [play(craft, outlier, seed, asked=asked) for seed in range(draws)]
            both = zip(played, honest, strict=True)
            # Where either anchor was noticed there is nothing to compare.
            pairs = [(read, fair) for read, fair in both if read is not None and fair is not None]
            party, together, fair_party, fair_together = np.reshape(pairs, (-1, 4)).astype(float).T
            difference = together - fair_together
            yield {
                "person": f"{OUTLIER:g} sd from the mean" if outlier else "one of the rows",
                "anchor": craft.name,
                "width": craft.width,
                "columns": craft.columns,
                "D at most": craft.components or recommended().n_components,
                "s": recommended().noise,
                "draws": draws,
                "noticed": round(sum(each is None for each in played) / draws, 3),
                "party": _mean(party),
                "party, honest": _mean(fair_party),
                "together": _mean(together),
                "together, honest": _mean(fair_together),
                "half of the interval": round(1.96 * math.sqrt(np.sum(difference**2)) / max(len(pairs), 1), 3),
            }


def _mean(values: Array) -> float | None:
    # Every anchor of the kind may have been noticed.
    if not len(values):
        return None
    return round(float(values.mean()), 3)


if __name__ == "__main__":
    write_table(rows, draws=400, asked=False)
