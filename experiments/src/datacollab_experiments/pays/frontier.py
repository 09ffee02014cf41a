"""The frontier of accuracy against risk: its report and figure."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from ..harness import markdown, write_rows
from .figure import COLOURS
from .library import proven_auc
from .report import number
from .results import Measured, rows_of
from .risks import FIGURES, MEMBERSHIP
from .settings import DEFENCES
from .trial import CHOSEN, LOCAL_PUBLIC, POOL, PUBLIC

MARKERS: dict[str, str] = dict(zip(DEFENCES, "os^Dv*", strict=True))


@dataclass(frozen=True)
class DataSet:
    """One data set behind every defence.

    Attributes
    ----------
    name : str
    behind : tuple of Measured
        With scores, in the order of the preset.
    """

    name: str
    behind: tuple[Measured, ...]

    @property
    def is_error(self) -> bool:
        """Whether less is better."""
        return self.behind[0].is_error

    @property
    def public_alone(self) -> float:
        """Score of labelled public rows and nothing else, which is the same behind every defence."""
        return next((value for each in self.behind if not math.isnan(value := each.mean(PUBLIC))), math.nan)

    def gains(self, each: Measured) -> float:
        """A score that is better when larger."""
        return each.mean(CHOSEN) * (-1 if self.is_error else 1)

    def frontier(self, *, labelled: bool) -> list[Measured]:
        """Where no other defence has a score and a membership AUC as good, and one of them better."""
        there = [e for e in self.behind if e.setting.labelled == labelled and MEMBERSHIP in e.risks]
        return [each for each in there if not any(self._is_worse(each, other) for other in there)]

    def _is_worse(self, each: Measured, other: Measured) -> bool:
        mine = self.gains(each), -each.risks[MEMBERSHIP]
        others = self.gains(other), -other.risks[MEMBERSHIP]
        return others != mine and others[0] >= mine[0] and others[1] >= mine[1]


def write_frontier(measured: Sequence[Measured], directory: Path, *, expected: int, preset: str) -> Path:
    """Write README.md, scores.csv and frontier.png; the path of the first."""
    directory.mkdir(parents=True, exist_ok=True)
    write_rows(rows_of(measured), directory / "scores.csv")
    data_sets = by_data_set(measured)
    if data_sets:
        draw_frontier(data_sets).savefig(directory / "frontier.png", dpi=110)
    path = directory / "README.md"
    path.write_text(text(measured, expected=expected, preset=preset), encoding="utf-8")
    return path


def by_data_set(measured: Sequence[Measured]) -> list[DataSet]:
    """What has scores, by data set."""
    there = [each for each in measured if CHOSEN in each.scores]
    names = dict.fromkeys(each.setting.dataset for each in there)
    return [DataSet(name, tuple(each for each in there if each.setting.dataset == name)) for name in names]


def text(measured: Sequence[Measured], *, expected: int, preset: str) -> str:
    """The report in Markdown."""
    data_sets = by_data_set(measured)
    n_trials = sum(len(each.seconds) for each in measured)
    parts = [
        "# Accuracy against risk, for every defence",
        f"Preset `{preset}`: {n_trials} of {expected} trials. What the words mean stands in "
        "`experiments/docs/pays.md`; all scores in `scores.csv`.",
    ]
    if data_sets:
        parts += [_summary(data_sets), "![Accuracy against membership](frontier.png)"]
    parts += [f"## {each.name}\n\n{_head(each)}\n\n{_table(each)}" for each in data_sets]
    if data_sets:
        parts.append(
            "Linkage and membership are those of the strongest of eight attacks on one party of one draw by somebody "
            "who has the share, all anchor rows and other rows of the kind: what was measured, and no bound. Proven is "
            "a bound for every attack that tells whether a row is in the table by its features, where a party's noise "
            "is secret; targets leave as they are."
        )
    if errors := [error for each in measured for error in each.errors]:
        parts.append("## What failed\n\n" + "\n".join(f"* {error}" for error in errors))
    return "\n\n".join(parts) + "\n"


def _summary(data_sets: Sequence[DataSet]) -> str:
    """Which defence is on the frontier how often, and which above the labelled public rows alone."""
    known = [each for each in data_sets if not math.isnan(each.public_alone)]
    frontiers = [
        _counts(data_sets, partial(DataSet.frontier, labelled=labelled), labelled=labelled)
        for labelled in (True, False)
    ]
    return (
        "A defence is on the frontier of a data set where no other has a DC* and a membership AUC as good and one of "
        f"them better. With targets of public rows these are {frontiers[0]}; without targets, {frontiers[1]}. DC* is "
        "better than labelled public rows alone, of which no private row leaves, with "
        f"{_counts(known, _above_public, labelled=True)}."
    )


def _above_public(data_set: DataSet) -> list[Measured]:
    alone = data_set.public_alone * (-1 if data_set.is_error else 1)
    return [each for each in data_set.behind if each.setting.labelled and data_set.gains(each) > alone]


def _counts(data_sets: Sequence[DataSet], chosen: Callable[[DataSet], Sequence[Measured]], *, labelled: bool) -> str:
    """Each defence that was measured, with the number of data sets in which it was chosen."""
    every = {e.setting.defence for data_set in data_sets for e in data_set.behind if e.setting.labelled == labelled}
    names = [each.setting.defence for data_set in data_sets for each in chosen(data_set)]
    counted = [
        f"{'no defence' if defence == 'none' else defence} in {names.count(defence)}"
        for defence in DEFENCES
        if defence in every
    ]
    return f"{', '.join(counted)} of {len(data_sets)} data sets" if counted else "none measured"


def _head(data_set: DataSet) -> str:
    setting = data_set.behind[0].setting
    seeds = {seed for each in data_set.behind for seed in each.scores[CHOSEN]}
    return (
        f"{setting.n_parties} parties with {setting.n_per_party} rows each, {setting.n_public:,} public rows, at most "
        f"{setting.most_columns} columns; {data_set.behind[0].metric}, means over {len(seeds)} draws."
    )


def _table(data_set: DataSet) -> str:
    head = ["defence", CHOSEN, POOL, LOCAL_PUBLIC, "labelled public rows alone", *FIGURES, "membership proven at most"]
    rows = []
    for each in data_set.behind:
        setting = each.setting
        alone = data_set.public_alone if setting.labelled else math.nan
        scores = [*(each.mean(method) for method in (CHOSEN, POOL, LOCAL_PUBLIC)), alone]
        risks = [each.risks.get(name, math.nan) for name in FIGURES]
        proven = math.nan if setting.epsilon is None else proven_auc(setting.epsilon)
        name = setting.defence if setting.labelled else f"{setting.defence}, without targets"
        rows.append([name, *(number(score, each) for score in scores), *(_risk(risk) for risk in [*risks, proven])])
    return markdown(head, rows)


def _risk(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.2f}"


def draw_frontier(data_sets: Sequence[DataSet]) -> Figure:
    """Scores against membership, a panel a data set; what is better lies to the upper left."""
    n_columns = min(3, len(data_sets))
    n_rows = math.ceil(len(data_sets) / n_columns)
    figure = Figure(figsize=(1.2 + 3.3 * n_columns, 1.0 + 3.1 * n_rows), layout="constrained")
    panels = figure.subplots(n_rows, n_columns, squeeze=False).ravel()
    for axes, data_set in zip(panels, data_sets, strict=False):
        _draw_panel(axes, data_set)
    for axes in panels[len(data_sets) :]:
        axes.set_axis_off()
    keys = [_key(defence, filled=True, label=defence) for defence in DEFENCES]
    keys.append(_key("none", filled=False, label="open: public rows without targets"))
    keys.append(Line2D([], [], color="0.4", linestyle=":", label="labelled public rows alone"))
    figure.legend(handles=keys, loc="outside lower center", ncols=4, frameon=False, fontsize=8)
    return figure


def _draw_panel(axes: Axes, data_set: DataSet) -> None:
    for each in data_set.behind:
        if MEMBERSHIP in each.risks:
            mark = _key(each.setting.defence, filled=each.setting.labelled)
            mark.set_data([each.risks[MEMBERSHIP]], [each.mean(CHOSEN)])
            axes.add_line(mark)
    axes.autoscale_view()
    if not math.isnan(data_set.public_alone):
        axes.axhline(data_set.public_alone, color="0.4", linestyle=":", linewidth=1)
    axes.margins(0.12)
    axes.set_xlim(0.46, 1.03)
    axes.set_xlabel("membership AUC of the strongest attack", fontsize=8)
    axes.set_title(data_set.name, fontsize=10)
    axes.set_ylabel(f"{data_set.behind[0].metric} of {CHOSEN}", fontsize=8)
    axes.tick_params(labelsize=8)
    axes.grid(alpha=0.3, linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    if data_set.is_error:
        axes.invert_yaxis()


def _key(defence: str, *, filled: bool, label: str = "") -> Line2D:
    colour = COLOURS[defence]
    return Line2D(
        [],
        [],
        linestyle="",
        marker=MARKERS[defence],
        markersize=9 if MARKERS[defence] == "*" else 6,
        color=colour,
        markerfacecolor=colour if filled else "white",
        label=label,
    )
