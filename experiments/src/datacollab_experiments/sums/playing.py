"""Sums played without masks, which cancel exactly: all parties' parts are added, and the noise of the total."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Iterator

import numpy as np

from datacollab.sums import CommonMap, RidgeFromSums, RidgeSums

from ..pays.columns import Array
from ..pays.draws import Draw, Rows
from ..pays.scoring import score
from .plan import N_BETWEEN, Anchor, Variant


def anchor_rows(drawn: Draw, anchor: Anchor) -> Array:
    """Rows that the map is made from; where there are no public ones, those uniform in declared ranges."""
    if not drawn.setting.n_public:
        return drawn.anchor
    public = drawn.public.X
    if anchor == "public":
        return public
    generator = np.random.default_rng([drawn.seed, 31])
    i, j = generator.integers(len(public), size=(2, N_BETWEEN))
    part = generator.random((N_BETWEEN, 1))
    return np.vstack([public, public[i] * part + public[j] * (1 - part)])


def secret(seed: int) -> bytes:
    """The parties' secret of one draw: repeatable here, as it never should be outside of a study."""
    return hashlib.sha256(f"study of sums, seed {seed}".encode()).digest()


def statistic_of(drawn: Draw, common: CommonMap, noise: float) -> RidgeSums:
    """What is added up."""
    if drawn.task == "regression":
        return RidgeSums(common.n_components, limits=drawn.target_range, noise=noise)
    return RidgeSums(common.n_components, classes=range(drawn.n_classes), noise=noise)


def exact_total(statistic: RidgeSums, common: CommonMap, rows: Iterable[Rows]) -> Array:
    """The sum of all parts."""
    parts = [statistic.part(common.transform(own.X), own.y) for own in rows]
    return np.asarray(np.sum(parts, axis=0))


def contributing(drawn: Draw) -> list[Rows]:
    """Rows of everybody; the first party adds the public ones, where these have targets."""
    return [*drawn.parties.values(), *([] if drawn.labelled is None else [drawn.labelled])]


def beyond(n_parties: int) -> float:
    """How many times s the noise of the total is, where up to half of the parties, rounded up, may collude."""
    colluding = min(math.ceil(n_parties / 2), n_parties - 2)
    return math.sqrt(n_parties / (n_parties - colluding))


def noise_of_total(statistic: RidgeSums, variant: Variant, n_parties: int) -> Array:
    """Standard deviations, shape (n_numbers,): those of the statistic, with the colluding parties' and by block."""
    noise = statistic.noise_of_each * (beyond(n_parties) if variant.from_all else 1.0)
    if variant.moments != variant.noise:
        _, j = np.triu_indices(statistic.size)
        noise = np.where(j < statistic.n_components, noise * (variant.moments / variant.noise), noise)
    return np.asarray(noise)


def outputs(statistic: RidgeSums, model: RidgeFromSums, v: Array) -> Array:
    """What the model says, in the form that scores take."""
    said = model.predict(v)
    if statistic.limits is not None:
        return np.asarray(statistic.decode(said), dtype=np.float64)
    return np.asarray(said + 1 / statistic.n_outputs)


def scaled_map(drawn: Draw, variant: Variant) -> tuple[CommonMap, Array]:
    """The common map, and what columns are divided by before it."""
    rows = anchor_rows(drawn, variant.anchor)
    deviations = rows.std(axis=0)
    roots = np.sqrt(np.where(deviations > 1e-9, deviations, 1.0))
    unit = roots if variant.scale == "roots" and not drawn.standardize else np.ones_like(roots)
    common = CommonMap.from_anchor(
        rows / unit,
        secret(drawn.seed),
        n_components=variant.components,
        standardize=drawn.standardize or variant.scale == "deviations",
        n_rows=0,
    )
    return common, unit


def played(drawn: Draw, variants: Iterable[Variant]) -> Iterator[tuple[Variant, int, float]]:
    """Each variant that the anchor's rank tells apart from those before, its D and its score on the test rows.

    The noise of all variants of one draw is the same but for its size.
    """
    maps: dict[tuple[str, str, int], tuple[CommonMap, Array, Array]] = {}
    seen: dict[tuple[object, ...], int] = {}
    for variant in variants:
        if drawn.standardize and variant.scale == "roots":
            continue
        key = (variant.scale, variant.anchor, variant.components)
        if key not in maps:
            common, unit = scaled_map(drawn, variant)
            rows = [Rows(own.X / unit, own.y) for own in contributing(drawn)]
            exact = exact_total(statistic_of(drawn, common, 0.0), common, rows)
            maps[key] = (common, exact, common.transform(drawn.test.X / unit))
        common, exact, v = maps[key]
        same = (*key[:2], common.n_components, variant.noise, variant.moments, variant.from_all, variant.floor)
        if seen.setdefault(same, variant.components) != variant.components:
            continue
        statistic = statistic_of(drawn, common, variant.noise)
        normal = np.random.default_rng([drawn.seed, 32]).normal(size=statistic.n_numbers)
        noise = noise_of_total(statistic, variant, drawn.setting.n_parties)
        known = (
            variant.noise if variant.floor is None else variant.floor * variant.noise * beyond(drawn.setting.n_parties)
        )
        model = statistic.solve(exact + noise * normal, noise=0.5 * known)
        yield variant, common.n_components, score(drawn.metric, drawn.test.y, outputs(statistic, model, v))
