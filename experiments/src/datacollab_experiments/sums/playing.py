"""Sums played without masks, which cancel exactly: all parties' parts are added, and the noise of the total."""

from __future__ import annotations

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
    """What columns are divided by, so that declared ranges are as wide as in projects; zeros and ones stay."""
    ranges = bounds[1] - bounds[0]
    return np.where(ranges == 1.0, 1.0, ranges / UNITS_PER_RANGE)


def common_map(drawn: Draw, components: int) -> tuple[CommonMap, Array]:
    """The common map as the library makes it, and what columns are divided by before it."""
    unit = units(drawn.bounds)
    rows = drawn.public.X if drawn.setting.n_public else drawn.anchor
    alike = drawn.setting.dataset in ALIKE
    return CommonMap.from_anchor(rows / unit, secret(drawn.seed), n_components=components, as_they_are=alike), unit


def statistic_of(drawn: Draw, components: int, noise: float) -> RidgeSums:
    """What is added up."""
    if drawn.task == "regression":
        return RidgeSums(components, limits=drawn.target_range, noise=noise)
    return RidgeSums(components, classes=range(drawn.n_classes), noise=noise)


def exact_total(statistic: RidgeSums, common: CommonMap, rows: Iterable[Rows]) -> Array:
    """The sum of all parts."""
    return np.asarray(np.sum([statistic.part(common.transform(own.X), own.y) for own in rows], axis=0))


def contributing(drawn: Draw) -> list[Rows]:
    """Rows of everybody; the first party adds the public ones, where these have targets."""
    return [*drawn.parties.values(), *([] if drawn.labelled is None else [drawn.labelled])]


def beyond(n_parties: int, *, known: int = 0) -> float:
    """How many times s the noise of the total is, where up to half of the parties, rounded up, may collude.

    `known` is how many parties' parts of the noise are known and taken off.
    """
    colluding = min(math.ceil(n_parties / 2), n_parties - 2)
    return math.sqrt((n_parties - known) / (n_parties - colluding))


def matrix_of(numbers: Array, size: int) -> Array:
    """Return the symmetric matrix from the numbers of its upper triangle, shape (size, size)."""
    M = np.zeros((size, size))
    M[np.triu_indices(size)] = numbers
    return np.asarray(M + np.triu(M, 1).T)


def outputs(statistic: RidgeSums, model: RidgeFromSums, v: Array) -> Array:
    """What the model says, in the form that scores take."""
    said = model.predict(v)
    if statistic.limits is not None:
        return np.asarray(statistic.decode(said), dtype=np.float64)
    return np.asarray(said + 1 / statistic.n_outputs)


def played(drawn: Draw, variants: Iterable[Variant]) -> Iterator[tuple[Variant, int, float]]:
    """Each variant, its D and its score on the test rows; the noise of one draw is the same but for its size."""
    maps: dict[int, tuple[CommonMap, Array, Array]] = {}
    excess = beyond(drawn.setting.n_parties)
    for variant in variants:
        key = variant.components
        if key not in maps:
            common, unit = common_map(drawn, variant.components)
            rows = [Rows(own.X / unit, own.y) for own in contributing(drawn)]
            exact = exact_total(statistic_of(drawn, common.n_components, 0.0), common, rows)
            maps[key] = common, exact, common.transform(drawn.test.X / unit)
        common, exact, v = maps[key]
        statistic = statistic_of(drawn, common.n_components, variant.noise)
        normal = np.random.default_rng([drawn.seed, 32]).normal(size=statistic.n_numbers)
        total = exact + excess * statistic.noise_of_each * normal
        model = statistic.solve(total, noise=excess * variant.noise, least_penalty=variant.least)
        yield variant, common.n_components, score(drawn.metric, drawn.test.y, outputs(statistic, model, v))
