"""Tables of means over seeds, and whether each is within its bounds."""

import math
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ..harness import markdown

Figure = tuple[str, str, str, float]
"""Data, method, measure and value of one seed."""


@dataclass(frozen=True, kw_only=True)
class Datum:
    """One figure of one seed: of "survival", the table "whas500 5x50" and the method "meta", the measure "C-index"."""

    section: str
    data: str
    method: str
    measure: str
    seed: int
    value: float


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """Bounds for the mean over seeds of one figure; with `beside`, for the mean less that of another method."""

    section: str
    data: str
    method: str
    measure: str
    at_least: float | None = None
    at_most: float | None = None
    beside: str | None = None


def read_wanted(section: str) -> tuple[Wanted, ...]:
    """Return the bounds of a section, as wanted.toml has them."""
    every = tomllib.loads(Path(__file__).with_name("wanted.toml").read_text(encoding="utf-8"))
    return tuple(Wanted(section=section, **each) for each in every[section])


Key = tuple[str, str, str, str]


@dataclass(frozen=True)
class JudgedFigure:
    """A figure beside its bounds."""

    wanted: Wanted
    found: float

    @property
    def held(self) -> bool:
        """Whether it lies within the bounds; a figure that is not there does not."""
        one = self.wanted
        # A comparison with nan is false, so that a figure that is not there holds no bound.
        is_enough = one.at_least is None or self.found >= one.at_least
        is_little = one.at_most is None or self.found <= one.at_most
        return bool(is_enough and is_little)

    @property
    def bounds(self) -> str:
        one = self.wanted
        if one.at_least is not None and one.at_most is not None:
            return f"{one.at_least:g} to {one.at_most:g}"
        if one.at_least is not None:
            return f"at least {one.at_least:g}"
        return f"at most {one.at_most:g}"

    @property
    def words(self) -> str:
        """The figure, its value and its bounds."""
        one = self.wanted
        less = ""
        if one.beside is not None:
            less = f" less {one.beside}"
        return f"{one.section}, {one.data}, {one.method}{less}, {one.measure}: {self.found:.3f}, wanted {self.bounds}"


def judge_figures(figures: Iterable[Datum], wanted: Iterable[Wanted]) -> list[JudgedFigure]:
    """Every wanted figure with the mean that was found; nan where there is none."""
    values = _by_figure(figures)
    verdicts = []
    for one in wanted:
        found = _mean(values.get(_key(one), {}))
        if one.beside is not None:
            found -= _mean(values.get(_key(replace(one, method=one.beside)), {}))
        verdicts.append(JudgedFigure(one, found))
    return verdicts


def report_text(figures: Sequence[Datum], wanted: Sequence[Wanted]) -> str:
    """The page, in Markdown."""
    values = _by_figure(figures)
    verdicts = judge_figures(figures, wanted)
    n_seeds = len({one.seed for one in figures})
    held = sum(verdict.held for verdict in verdicts)
    parts = [f"{n_seeds} seeds. Of {len(verdicts)} figures with bounds {held} hold.\n"]
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
    page = Path(__file__).with_name("page.md").read_text(encoding="utf-8")
    return page.replace("{{figures}}", "\n".join(parts).rstrip("\n"))


def _line(key: Key, of_seeds: Mapping[int, float], verdicts: Iterable[JudgedFigure]) -> list[str]:
    found = np.array(list(of_seeds.values()))
    own = [verdict for verdict in verdicts if _key(verdict.wanted) == key]
    said = "; ".join(_judgement(verdict) for verdict in own)
    shown = "–" if np.isnan(found).all() else f"{np.nanmean(found):.3f} ± {np.nanstd(found):.3f}"
    return [key[1], key[3], key[2], shown, said]


def _judgement(verdict: JudgedFigure) -> str:
    text = verdict.bounds
    if verdict.wanted.beside is not None:
        text = f"less {verdict.wanted.beside}: {verdict.found:+.3f}, {text}"
    if not verdict.held:
        text += " **not held**"
    return text


def _key(one: Wanted | Datum) -> Key:
    return one.section, one.data, one.method, one.measure


def _by_figure(figures: Iterable[Datum]) -> dict[Key, dict[int, float]]:
    values: dict[Key, dict[int, float]] = {}
    for one in figures:
        values.setdefault(_key(one), {})[one.seed] = one.value
    return values


def _mean(of_seeds: Mapping[int, float]) -> float:
    known = [value for value in of_seeds.values() if not math.isnan(value)]
    if known:
        return float(np.mean(known))
    return math.nan
