"""A claim as comparisons of rows, paired by seed, and how these decide it."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..paper import Condition, Row
from ._estimates import FEWEST, Interval, anchor_series, by_seed, holm, interval, p_above, partial_conjunction

# The level of all tests, as the paper's 95 % intervals have it.
_LEVEL = 0.05
# How many reversed comparisons a text names.
_NAMED = 3

# How many of a claim's comparisons must come out as it says, and how that is tested.
QUOTAS = {
    "all": (
        "Wanted in every comparison. Holds if each one-sided t-test over seeds has p < .05 (intersection-union); does "
        "not hold if some comparison is significantly reversed, p < .05 after Holm; undecided otherwise."
    ),
    "most": (
        "Wanted in more than half of the comparisons. With one-sided t-tests over seeds, holds if at least u = "
        "floor(n/2) + 1 of n comparisons are shown at once, (n - u + 1) p_(u) < .05 for the u-th smallest p-value "
        "(partial conjunction); does not hold if at least n - u + 1 are shown to be reversed in the same sense; "
        "undecided otherwise."
    ),
}


@dataclass(frozen=True)
class Contrast:
    """Numbers whose mean a claim says to lie between two bounds.

    Attributes
    ----------
    values : tuple of float
        One per seed.
    low, high : float
        The bounds; infinite where there is none.
    """

    label: str
    values: tuple[float, ...]
    low: float = -math.inf
    high: float = math.inf

    @property
    def p_for(self) -> float:
        """p-value of the mean lying within the bounds: of both one-sided tests, the larger."""
        inside = [0.0]
        # A bound at infinity holds of itself.
        if math.isfinite(self.low):
            inside.append(p_above(self.values, self.low))
        if math.isfinite(self.high):
            inside.append(p_above([-value for value in self.values], -self.high))
        return max(inside)

    @property
    def p_against(self) -> float:
        """p-value of the mean lying outside."""
        outside = []
        if math.isfinite(self.low):
            outside.append(p_above([-value for value in self.values], -self.low))
        if math.isfinite(self.high):
            outside.append(p_above(self.values, self.high))
        # Outside means beyond either bound: Bonferroni over the two.
        return partial_conjunction(outside, 1)


@dataclass(frozen=True)
class Contrasts:
    """Contrasts that only count together, such as one method against each of several others in one condition."""

    label: str
    contrasts: tuple[Contrast, ...]

    @property
    def p_for(self) -> float:
        """p-value of all contrasts being as claimed."""
        return partial_conjunction([contrast.p_for for contrast in self.contrasts], len(self.contrasts))

    @property
    def p_against(self) -> float:
        """p-value of some contrast being the reverse of the claim."""
        return partial_conjunction([contrast.p_against for contrast in self.contrasts], 1)


def decide(comparisons: Sequence[Contrasts], quota: str) -> str:
    """Whether the comparisons come out as claimed, by the rule of a key of `QUOTAS`."""
    if not comparisons:
        return "not run"
    # Most is more than half: floor(n / 2) + 1.
    n = len(comparisons)
    wanted = n if quota == "all" else n // 2 + 1
    if partial_conjunction([comparison.p_for for comparison in comparisons], wanted) < _LEVEL:
        return "holds"
    # More than n - wanted reversed comparisons leave too few for the claim.
    if partial_conjunction([comparison.p_against for comparison in comparisons], n - wanted + 1) < _LEVEL:
        return "does not hold"
    return "undecided"


def describe(comparisons: Sequence[Contrasts]) -> str:
    """The numbers behind a decision: how many comparisons were shown or reversed, and the range of the means."""
    contrasts = [contrast for comparison in comparisons for contrast in comparison.contrasts]
    if not contrasts:
        return "No result to compare."
    n_seeds = min(len(contrast.values) for contrast in contrasts)
    texts = []
    if len(comparisons) > 1:
        shown = sum(comparison.p_for < _LEVEL for comparison in comparisons)
        adjusted = holm([comparison.p_against for comparison in comparisons])
        reverse = [each.label for each, p in zip(comparisons, adjusted, strict=True) if p < _LEVEL]
        named = "; ".join([*reverse[:_NAMED], *["..."][: len(reverse) > _NAMED]])
        text = f"{shown} of {len(comparisons)} comparisons shown, {len(reverse)} reversed"
        if named:
            text += f" ({named})"
        texts.append(f"{text}.")
    means = {contrast: interval(contrast.values) for contrast in contrasts}
    # Two ends of the range say more than a list of all.
    ends = sorted(contrasts, key=lambda contrast: means[contrast].mean)
    texts += [f"{name}{_write_contrast(contrast, means[contrast])}." for name, contrast in _ends(ends)]
    if n_seeds < FEWEST:
        texts.append("Fewer than three seeds, so no test.")
    return " ".join(texts)


def _ends(ordered: Sequence[Contrast]) -> list[tuple[str, Contrast]]:
    if len(ordered) == 1:
        return [("", ordered[0])]
    return [("Lowest: ", ordered[0]), ("Highest: ", ordered[-1])]


def _write_contrast(contrast: Contrast, mean: Interval) -> str:
    width = ""
    if not math.isnan(mean.half_width):
        width = f" ± {mean.half_width:.3f}"
    return f"{contrast.label} = {mean.mean:z.3f}{width}"


_AXES = ("dataset", "obfuscator", "n_components", "n_parties", "n_per_party", "n_anchors", "n_sources", "n_neighbors")
_ANCHOR_AXES = ("n_anchors", "n_sources")
_SYMBOLS = {
    "n_components": "d~=",
    "n_parties": "K=",
    "n_per_party": "n(k)=",
    "n_anchors": "n_a=",
    "n_sources": "sources=",
}

# One number per seed.
Sample = dict[int, float]

# Between what a claim says that a mean lies.
Bounds = tuple[float, float]


@dataclass(frozen=True)
class Best:
    """Of several methods, or attacks, the one with the highest mean in a condition, on seeds that do not judge it.

    Every other seed chooses for the rest, and these choose for it: a method that is best by chance on the seeds that
    judge it as well would look better than it is.
    """

    names: tuple[str, ...]
    label: str

    def __str__(self) -> str:
        return self.label


Name = str | Best
# Settings of a condition, and the values that each may have.
Where = Mapping[str, Sequence[Any]]


class Results:
    """Rows, found by condition and name.

    Parameters
    ----------
    rows : iterable of Row
        Rows with one preset of hyperparameters.
    """

    def __init__(self, rows: Iterable[Row]) -> None:
        self._rows: dict[Condition, dict[str, list[Row]]] = {}
        for row in rows:
            self._rows.setdefault(row.condition, {}).setdefault(row.name, []).append(row)
        self._varied = [axis for axis in _AXES if axis == "dataset" or self._varies(axis)]

    def conditions(self, where: Where) -> list[Condition]:
        """Conditions whose settings are among those given, in an order that the rows' does not change."""
        found = (
            condition
            for condition in self._rows
            if all(getattr(condition, axis) in values for axis, values in where.items())
        )
        return sorted(found, key=lambda at: [(getattr(at, axis) is None, getattr(at, axis) or 0) for axis in _AXES])

    def sample(self, condition: Condition, name: Name, measure: str) -> Sample:
        """Values by seed; empty where there are none, for the best of several also where one of them has none."""
        if isinstance(name, str):
            return by_seed(self._rows[condition].get(name, []), measure)
        samples = [self.sample(condition, of, measure) for of in name.names]
        seeds = sorted(set().union(*samples))
        found: Sample = {}
        # One seed decides nothing, whichever is chosen on it.
        halves = ((seeds[::2], seeds[1::2] or seeds), (seeds[1::2], seeds[::2]))
        for judging, choosing in halves:
            known = [[sample[seed] for seed in choosing if seed in sample] for sample in samples]
            if all(known):
                best = samples[max(range(len(samples)), key=lambda place: interval(known[place]).mean)]
                found |= {seed: best[seed] for seed in judging if seed in best}
        return dict(sorted(found.items()))

    def lines(self, axis: str, where: Where) -> dict[str, list[Condition]]:
        """Conditions that differ along an axis and agree otherwise, by a text for their common settings.

        Along n_anchors and n_sources these are the two series of `anchor_series`.
        """
        conditions = self.conditions(where)
        along: tuple[str, ...] = (axis,)
        if axis in _ANCHOR_AXES:
            along = _ANCHOR_AXES
            series = self._anchor_series(along.index(axis))
            conditions = [condition for condition in conditions if condition in series]
        lines: dict[str, list[Condition]] = {}
        for condition in conditions:
            lines.setdefault(self.label(condition, along), []).append(condition)
        return lines

    def label(self, condition: Condition, without: Sequence[str] = ()) -> str:
        """Return the settings that tell a condition from the others, in words."""
        shown = [axis for axis in self._varied if axis not in without]
        return ", ".join(f"{_SYMBOLS.get(axis, '')}{getattr(condition, axis)}" for axis in shown)

    def _varies(self, axis: str) -> bool:
        """Whether a setting has several values on one data set; sizes that go with the data set tell nothing."""
        pairs = {(condition.dataset, getattr(condition, axis)) for condition in self._rows}
        return len(pairs) > len({dataset for dataset, _ in pairs})

    def _anchor_series(self, which: int) -> set[Condition]:
        by_dataset: dict[str, list[Row]] = {}
        for condition, named in self._rows.items():
            by_dataset.setdefault(condition.dataset, []).extend(row for rows in named.values() for row in rows)
        return {row.condition for rows in by_dataset.values() for row in anchor_series(rows)[which]}


# One number per seed for a method or attack, in each of several situations that a text tells apart.
Statistic = Callable[[Results, Name], dict[str, Sample]]

Finder = Callable[[Results], list[Contrasts]]


def value(measure: str, **where: Sequence[Any]) -> Statistic:
    """Return a measure in each condition."""

    def find(results: Results, name: Name) -> dict[str, Sample]:
        return {results.label(each): results.sample(each, name, measure) for each in results.conditions(where)}

    return find


def change(measure: str, axis: str, before: Any, after: Any, **where: Sequence[Any]) -> Statistic:
    """Difference between two values of a setting: after less before, all else being equal."""

    def find(results: Results, name: Name) -> dict[str, Sample]:
        found = {}
        for label, line in results.lines(axis, where).items():
            ends = {getattr(condition, axis): results.sample(condition, name, measure) for condition in line}
            found[f"{label}, {after} - {before}"] = _minus(ends.get(after, {}), ends.get(before, {}))
        return found

    return find


def rise(measure: str, axis: str, *, exponent: bool = False, **where: Sequence[Any]) -> Statistic:
    """Rise, from the first to the last value of an axis, of the least-squares line over the axis's logarithm.

    With `exponent`, the slope of the line of the measure's logarithm: the exponent of growth.
    """

    def find(results: Results, name: Name) -> dict[str, Sample]:
        lines = results.lines(axis, where).items()
        return {label: _fit(results, line, name, measure, axis, exponent=exponent) for label, line in lines}

    return find


def excess_of_sources(measure: str) -> Statistic:
    """How much more a measure rises along n_sources than along n_anchors."""

    def find(results: Results, name: Name) -> dict[str, Sample]:
        quantity, quality = (rise(measure, axis)(results, name) for axis in _ANCHOR_AXES)
        return {label: _minus(quality[label], quantity[label]) for label in quality if label in quantity}

    return find


def each(statistic: Statistic, names: Sequence[Name], bounds: Bounds) -> Finder:
    """One comparison for every situation and name: that the statistic's mean lies within the bounds."""

    def find(results: Results) -> list[Contrasts]:
        comparisons = []
        for name in names:
            for situation, sample in statistic(results, name).items():
                label = f"{situation}: {name}"
                if sample:
                    comparisons.append(Contrasts(label, (Contrast(label, tuple(sample.values()), *bounds),)))
        return comparisons

    return find


def pairs(
    statistic: Statistic,
    first: Sequence[Name],
    second: Sequence[Name],
    bounds: Bounds,
    *,
    together: bool = False,
    relative: bool = False,
) -> Finder:
    """Differences of a statistic within a seed, of every first name less every second one, which lie within bounds.

    A situation in which one of the names has no value at all is left out; a name is not compared with itself.  If
    `together`, all pairs of a situation are one comparison; if `relative`, differences are divided by the second name's
    mean.
    """

    def find(results: Results) -> list[Contrasts]:
        wanted = [(a, b) for a in first for b in second if a != b]
        situations: dict[str, list[Contrast]] = {}
        samples = {name: statistic(results, name) for name in (*first, *second)}
        for a, b in wanted:
            for situation, sample in samples[a].items():
                differences = _minus(sample, samples[b].get(situation, {}))
                if differences:
                    # RMSEs of different tables are compared as parts of the second method's.
                    scale = interval(samples[b][situation].values()).mean if relative else 1.0
                    values = tuple(difference / scale for difference in differences.values())
                    situations.setdefault(situation, []).append(Contrast(f"{situation}: {a} - {b}", values, *bounds))
        # A claim about every method cannot be read off those that happened not to fail.
        situations = {situation: found for situation, found in situations.items() if len(found) == len(wanted)}
        if together:
            return [Contrasts(situation, tuple(contrasts)) for situation, contrasts in situations.items()]
        return [Contrasts(contrast.label, (contrast,)) for contrasts in situations.values() for contrast in contrasts]

    return find


def _minus(first: Sample, second: Sample) -> Sample:
    return {seed: first[seed] - second[seed] for seed in sorted(first.keys() & second.keys())}


def _fit(
    results: Results, line: Sequence[Condition], name: Name, measure: str, axis: str, *, exponent: bool = False
) -> Sample:
    """Slope or rise, for each seed that has all points of the line; nothing where one has no value at all.

    Otherwise methods that failed at an end of the line would be held against others over another range.
    """
    points = {getattr(condition, axis): results.sample(condition, name, measure) for condition in line}
    samples = {at: points[at] for at in sorted(at for at in points if at is not None)}
    # One point has no line; and a missing end would change what the slope is of.
    if len(samples) < 2 or not all(samples.values()):
        return {}
    # Least squares: weights that turn values into the slope over the logarithms.
    x = np.log(list(samples))
    weights = (x - x.mean()) / ((x - x.mean()) ** 2).sum()
    found = {}
    for seed in sorted(set.intersection(*(set(sample) for sample in samples.values()))):
        y = [sample[seed] for sample in samples.values()]
        if not exponent:
            found[seed] = float(weights @ y * (x[-1] - x[0]))
        # A time of zero has no logarithm.
        elif min(y) > 0:
            found[seed] = float(weights @ [math.log(time) for time in y])
    return found


LINEAR = ("MPP", "GEP", "ODC", "LTI")
KERNEL = ("KTI", "KTI+TSL")

ABOVE = (0.0, math.inf)
BELOW = (-math.inf, 0.0)
# A loss of one point of accuracy still counts as a tie.
AT_LEAST = (-0.01, math.inf)

ACCURACY = value("accuracy")


@dataclass(frozen=True)
class Claim:
    """A statement about results, and how it is tested.

    Attributes
    ----------
    source : str
        LaTeX label of the figure or table of the paper whose discussion says it.
    experiments : tuple of str
        Whose rows it is about.
    quota : {"all", "most"}
        How many of them must come out as the sentence says.
    comparisons : callable
        Makes them from `Results`.
    """

    id: str
    source: str
    sentence: str
    experiments: tuple[str, ...]
    compared: str
    quota: str
    comparisons: Finder = field(repr=False, compare=False)

    @property
    def test(self) -> str:
        """The comparisons, and the rule by which they decide."""
        return f"{self.compared} {QUOTAS[self.quota]}"


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The verdict of rows on a claim.

    Attributes
    ----------
    evidence : str
        The numbers behind it, with 95 % intervals.
    n_seeds : int
        Seeds of the comparison that has fewest; 0 where none was run.
    most_seeds : int
        Seeds of the comparison that has most.
    """

    claim: Claim
    verdict: str
    evidence: str
    n_seeds: int
    most_seeds: int


def claims_of(experiments: str, source: str, *entries: tuple[str, str, str, str, Finder]) -> tuple[Claim, ...]:
    """Claims of one figure or table; the first of the experiments, which blanks separate, opens the ids.

    Each entry has the end of the id, the sentence, the quota, the comparisons in words, and the function that makes
    them.
    """
    names = tuple(experiments.split())
    return tuple(
        Claim(f"{names[0]}-{name}", source, sentence, names, compared, quota, comparisons)
        for name, sentence, quota, compared, comparisons in entries
    )
