"""Tables of means over seeds, and whether each is what was wanted."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..harness import markdown
from .measuring import Measured, Wanted

__all__ = ["Verdict", "judged", "report_text"]

_HEAD = """\
# What a collaboration brings downstream

Made by `make downstream`: means over seeds, each a split of the table into parties, public rows and test rows, with
the standard deviation over seeds. What methods, tables and measures are, each section's file in
`experiments/src/datacollab_experiments/downstream` says. Some bounds were set before anything ran, and others when the
first seeds were known: they tell that nothing got worse, and are no proof of what was found.
"""

Key = tuple[str, str, str, str]


@dataclass(frozen=True)
class Verdict:
    """A figure beside what is wanted of it."""

    wanted: Wanted
    found: float

    @property
    def held(self) -> bool:
        """Whether it lies within the bounds; a figure that is not there does not."""
        low = -math.inf if self.wanted.at_least is None else self.wanted.at_least
        high = math.inf if self.wanted.at_most is None else self.wanted.at_most
        return bool(low <= self.found <= high)

    @property
    def bounds(self) -> str:
        """In words."""
        one = self.wanted
        if one.at_least is not None and one.at_most is not None:
            return f"{one.at_least:g} to {one.at_most:g}"
        return f"at least {one.at_least:g}" if one.at_least is not None else f"at most {one.at_most:g}"

    @property
    def words(self) -> str:
        """Which figure it is, and what it came to."""
        one = self.wanted
        less = "" if one.beside is None else f" less {one.beside}"
        return f"{one.section}, {one.data}, {one.method}{less}, {one.measure}: {self.found:.3f}, wanted {self.bounds}"


def judged(figures: Iterable[Measured], wanted: Iterable[Wanted]) -> list[Verdict]:
    """Every wanted figure with the mean that was found; nan where there is none."""
    values = _by_figure(figures)
    verdicts = []
    for one in wanted:
        found = _mean(values.get((one.section, one.data, one.method, one.measure), {}))
        if one.beside is not None:
            found -= _mean(values.get((one.section, one.data, one.beside, one.measure), {}))
        verdicts.append(Verdict(one, found))
    return verdicts


def report_text(figures: Sequence[Measured], wanted: Sequence[Wanted]) -> str:
    """The page, in Markdown."""
    values = _by_figure(figures)
    verdicts = judged(figures, wanted)
    n_seeds = len({one.seed for one in figures})
    held = sum(verdict.held for verdict in verdicts)
    parts = [_HEAD, f"{n_seeds} seeds. Of {len(verdicts)} figures with bounds {held} hold.\n"]
    for section in dict.fromkeys(one.section for one in figures):
        parts.append(f"## {section[0].upper()}{section[1:]}\n")
        keys = [key for key in values if key[0] == section]
        measures = list(dict.fromkeys((key[1], key[3]) for key in keys))
        lines = [
            _line(key, values[key], verdicts)
            for data, measure in measures
            for key in keys
            if (key[1], key[3]) == (data, measure)
        ]
        parts.append(markdown(["data", "measure", "method", "mean ± sd", "wanted"], lines) + "\n")
    return "\n".join(parts)


def _line(key: Key, of_seeds: Mapping[int, float], verdicts: Iterable[Verdict]) -> list[str]:
    found = np.array(list(of_seeds.values()))
    own = [verdict for verdict in verdicts if _key(verdict.wanted) == key]
    said = "; ".join(
        ("" if verdict.wanted.beside is None else f"less {verdict.wanted.beside}: {verdict.found:+.3f}, ")
        + verdict.bounds
        + ("" if verdict.held else " **not held**")
        for verdict in own
    )
    shown = "–" if np.isnan(found).all() else f"{np.nanmean(found):.3f} ± {np.nanstd(found):.3f}"
    return [key[1], key[3], key[2], shown, said]


def _key(wanted: Wanted) -> Key:
    return wanted.section, wanted.data, wanted.method, wanted.measure


def _by_figure(figures: Iterable[Measured]) -> dict[Key, dict[int, float]]:
    values: dict[Key, dict[int, float]] = {}
    for one in figures:
        values.setdefault((one.section, one.data, one.method, one.measure), {})[one.seed] = one.value
    return values


def _mean(of_seeds: Mapping[int, float]) -> float:
    known = [value for value in of_seeds.values() if not math.isnan(value)]
    return float(np.mean(known)) if known else math.nan
