"""Sums played without masks, which cancel exactly: all parties' parts are added, and the noise of the total."""

import hashlib
import math
from collections.abc import Iterable, Iterator

import numpy as np

from datacollab.sums import UNITS_PER_RANGE, CommonMap, RidgeFromSums, RidgeSums

from ..pays.columns import Array
from ..pays.draws import Draw, Rows
from ..pays.scoring import score
from .plan import ALIKE, Variant


def secret(seed: int) -> bytes:
    """The parties' secret of one draw: repeatable here, as it never should be outside of a study."""
    return hashlib.sha256(f"study of sums, seed {seed}".encode()).digest()


def units(bounds: Array) -> Array:
    """Return the unit of each column, with which declared ranges are as wide as in projects; zeros and ones stay."""
    ranges = bounds[1] - bounds[0]
    # Columns of zeros and ones have a range of 1, as projects' categories do.
    return np.where(ranges == 1.0, 1.0, ranges / UNITS_PER_RANGE)


def common_map(drawn: Draw, components: int) -> tuple[CommonMap, Array]:
    """Return the common map as the library makes it, and the units that columns are divided by before it."""
    unit = units(drawn.bounds)
    rows = drawn.anchor
    if drawn.setting.n_public:
        rows = drawn.public.X
    alike = drawn.setting.dataset in ALIKE
    return CommonMap.from_anchor(rows / unit, secret(drawn.seed), n_components=components, as_they_are=alike), unit


def statistic_of(drawn: Draw, components: int, noise: float) -> RidgeSums:
    """Return the statistic that is added up."""
    if drawn.task == "regression":
        return RidgeSums(components, limits=drawn.target_range, noise=noise)
    return RidgeSums(components, classes=range(drawn.n_classes), noise=noise)


def exact_total(statistic: RidgeSums, common: CommonMap, rows: Iterable[Rows]) -> Array:
    """Return the sum of all parts."""
    return np.asarray(np.sum([statistic.part(common.transform(own.X), own.y) for own in rows], axis=0))


def rows_of_total(drawn: Draw) -> list[Rows]:
    """Return rows of everybody; the first party adds the public ones, where these have targets."""
    rows = list(drawn.parties.values())
    if drawn.labelled is not None:
        rows.append(drawn.labelled)
    return rows


def most_colluding(n_parties: int) -> int:
    """Return the number of parties that the noise allows to work with the analyst: half of them, two left at least."""
    return min(math.ceil(n_parties / 2), n_parties - 2)


def noise_factor(n_parties: int, *, known: int = 0) -> float:
    """Return how many times s the noise of the total is, where up to half of the parties, rounded up, may collude.

    The noise of `known` parties is taken off.
    """
    return math.sqrt((n_parties - known) / (n_parties - most_colluding(n_parties)))


def matrix_of(numbers: Array, size: int) -> Array:
    """Return the symmetric matrix from the numbers of its upper triangle, shape (size, size)."""
    M = np.zeros((size, size))
    M[np.triu_indices(size)] = numbers
    return np.asarray(M + np.triu(M, 1).T)


def outputs(statistic: RidgeSums, model: RidgeFromSums, v: Array) -> Array:
    """Return a model's predictions, in the form that scores take."""
    encoded = model.predict(v)
    if statistic.limits is not None:
        return np.asarray(statistic.decode(encoded), dtype=np.float64)
    return np.asarray(encoded + 1 / statistic.n_outputs)


def play(drawn: Draw, variants: Iterable[Variant]) -> Iterator[tuple[Variant, int, float]]:
    """Yield each variant, its D and its score on the test rows; the noise of one draw is the same but for its size."""
    maps: dict[int, tuple[CommonMap, Array, Array]] = {}
    excess = noise_factor(drawn.setting.n_parties)
    for variant in variants:
        key = variant.components
        # Variants that differ in noise or penalty alone share a map and an exact total.
        if key not in maps:
            common, unit = common_map(drawn, variant.components)
            rows = [Rows(own.X / unit, own.y) for own in rows_of_total(drawn)]
            exact = exact_total(statistic_of(drawn, common.n_components, 0.0), common, rows)
            maps[key] = common, exact, common.transform(drawn.test.X / unit)
        common, exact, v = maps[key]
        statistic = statistic_of(drawn, common.n_components, variant.noise)
        # Common random numbers: variants are compared on the same draw of noise.
        normal = np.random.default_rng([drawn.seed, 32]).normal(size=statistic.n_numbers)
        total = exact + excess * statistic.noise_of_each * normal
        # The analyst reckons with all noise, as it cannot know who colludes.
        model = statistic.solve(total, noise=excess * variant.noise, least_penalty=variant.least)
        yield variant, common.n_components, score(drawn.metric, drawn.test.y, outputs(statistic, model, v))
