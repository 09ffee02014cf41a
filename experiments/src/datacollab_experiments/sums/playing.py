"""The comparison as it was planned, and sums played without masks, which cancel exactly."""

import hashlib
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np

from datacollab.sums import UNITS_PER_RANGE, CommonMap, RidgeFromSums, RidgeSums, recommended

from ..pays.draws import Draw, Rows, score
from ..pays.settings import PRESETS, Setting
from ..pays.tables import Array

SETTINGS: tuple[Setting, ...] = tuple(each for each in PRESETS["quick"].settings if each.defence == "sums")
BESIDE: tuple[Setting, ...] = tuple(
    each
    for each in PRESETS["quick"].settings
    if each.defence == "none" and (each.n_public == 0 or each.split == "label-skew")
)
"""Declared ranges alone, and label skew: reported, and no part of the rule's judgement."""
SEEDS = (0, 1, 2, 3, 4)
ALIKE = ("digits", "mnist", "fashion-mnist", "ujiindoorloc")
"""Pixels and signal strengths: at least 50 columns, all numbers, all with one declared range."""


@dataclass(frozen=True, kw_only=True)
class Variant:
    """One way to make sums.

    Attributes
    ----------
    components : int
        D at most.
    noise : float
        s: the noise that parties which do not collude leave in each number of the total.
    least : float
        The least penalty, as a multiple of the operator norm of all noise in the total.
    """

    components: int
    noise: float
    least: float = 1.0


def candidates(*, alike: bool) -> list[Variant]:
    """Return all that are played."""
    every = product((128, 256), (0.1, 0.12, 0.15, 0.2), (1.0,))
    # Where all columns are alike, accuracy bears less noise, so the candidates are smaller.
    if alike:
        every = product((128, 256), (0.03, 0.04, 0.05, 0.07), (1.0, 0.5))
    return [Variant(components=D, noise=s, least=least) for D, s, least in every]


def rule_for(*, alike: bool) -> Variant:
    """Return the library's way: chosen among the candidates before the further tables were looked at."""
    # The library's own constants: the study cannot drift from them.
    rule = recommended(alike=alike)
    return Variant(components=rule.n_components, noise=rule.noise, least=rule.least_penalty)


@dataclass(frozen=True)
class Roster:
    """Parties that hold as many rows each, and those of them that attack together.

    Attributes
    ----------
    n_parties : int
    n_colluding : int
        They know their own rows, and their part of the noise.
    """

    n_parties: int
    n_colluding: int

    def n_known_of(self, n_rows: int) -> int:
        """Return how many of all rows the attackers hold."""
        return n_rows * self.n_colluding // self.n_parties

    def n_known_beside(self, n_others: int) -> int:
        """Return how many rows the attackers hold, if the parties that do not attack hold `n_others`."""
        return round(n_others * self.n_colluding / (self.n_parties - self.n_colluding))


ROSTERS = (Roster(3, 1), Roster(10, 5))
"""The noise allows for half of the parties, rounded up, and all but two at most.  So these attackers are left with s
itself, and know a third or half of the rows: the most that few and many parties allow.
"""
ALONE = Roster(3, 0)
"""For an analyst without a party: more parties leave more noise."""

WORLDS = {
    "made-up": (300, 1500),
    "flchain": (300, 1500),
    "mlc_churn": (300, 1500),
    "hmda": (300,),
    "wide": (300, 1500),
    "digits": (300,),
    "mnist": (300, 1500),
}
"""Worlds under attack, and rows of the parties that do not attack; hmda and digits have too few for more.

Features are those of these tables, targets are made up.  Of wide the map turns its own columns.
"""
N_DRAWS = 40

MEMBERS = {
    "digits": (250, 1000),
    "mlc_churn": (250, 1000, 3000),
    "wide": (250, 1000, 3000),
    "mnist": (1000, 3000),
    "flchain": (250, 1000, 3000),
}
"""Rows of all parties together, by table, among which members are told from others."""
MEMBERS_OF_RARE_CLASS = {"digits": 250, "mlc_churn": 1000, "wide": 1000, "mnist": 1000, "flchain": 1000}
MANY_AUXILIARY = {"mlc_churn": 1000}
"""The same for attackers with 3,000 labelled rows of the kind instead of 1,100, five of ten parties among them; of one
of ten parties, such attackers read less of flchain.
"""
REBUILT = {"digits": (40, 100, 250), "mlc_churn": (40, 100, 250)}
N_MEMBERSHIP_DRAWS = 10
N_REBUILT_DRAWS = 2

LEAST_ABOVE_AVERAGE = 20
MOST_BELOW_AVERAGE = 2
LEAST_ABOVE_OWN = 22
"""Of 24 settings: above the average of locals, below it beyond chance, above own."""


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
