"""The report: Markdown, a CSV file and a figure."""

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from ..harness import Found, markdown, write_rows
from ..pays.results import Difference, student
from .attacks import ATTACKERS, QUESTIONS
from .methods import METHODS, Central, Constant, ExactSums, Local, MaskedSums
from .tasks import PRESETS, RISK, UTILITY, MethodsTask

SUMS = MaskedSums.name
EXACT = ExactSums.name
LOCAL = Local.name
CENTRAL = Central.name
CONSTANT = Constant.name
EACH = "each alone"
BOTH = "both together"
# Attackers of each kind of risk: the largest area under the curve of their attacks, on membership and on targets.
RISKS: dict[str, tuple[str, ...]] = {EACH: ("receiver", "party"), BOTH: ("together",)}

# Settings that an interval over them needs.
FEWEST = 5
_UNFINISHED = "The run is unfinished: `make oneshot` goes on where it was, and copies a whole one only. "
_SETTING = ["dataset", "parties", "rows", "split"]
# Okabe and Ito's colours, which the colour-blind tell apart, and grey and brown; shapes differ as well.
_COLOURS = (
    *("#8C8C8C", "#E69F00", "#56B4E9", "#009E73", "#B8A900", "#0072B2", "#CC79A7", "#7A4A1E"),
    *("#D55E00", "#000000"),
)
_SHAPES = "ovs^D<P>*Xh"


def rows_of(found: Found[MethodsTask]) -> list[dict[str, object]]:
    """Return the rows of the CSV file: one for each method, setting and seed."""
    rows: list[dict[str, object]] = []
    for task, results in found:
        for cell, name in task.cells.items():
            if cell not in results or results[cell].error is not None:
                continue
            scores = results[cell].scores
            seconds = results[cell].seconds
            setting = task.setting
            rows.append(
                {
                    "dataset": setting.dataset,
                    "parties": setting.n_parties,
                    "rows": setting.n_per_party,
                    "split": setting.split,
                    "seed": task.seed,
                    "method": name,
                    **{key: scores.get(key, "") for key in ("accuracy", "AUC", "log loss", "bytes", "rounds")},
                    "seconds": seconds["play"],
                    **{key: value for key, value in scores.items() if "|" in key},
                }
            )
    return rows


def means_of(rows: Iterable[Mapping[str, object]]) -> pd.DataFrame:
    """Return means over seeds, by setting and method, with the score, how far it is from `central`, and the risks.

    Settings that lack a method are left out.
    """
    table = pd.DataFrame(rows)
    numbers = table.drop(columns=["seed"]).apply(lambda column: pd.to_numeric(column, errors="coerce"))
    numbers[["dataset", "split", "method"]] = table[["dataset", "split", "method"]]
    means = numbers.groupby([*_SETTING, "method"], sort=False).mean()
    # Frontiers of settings that lack a method would be of other methods.
    full = means.groupby(_SETTING)["accuracy"].transform("size") == len(METHODS)
    if (means := means[full]).empty:
        return means
    # There is an AUC for two classes alone.
    means["score"] = means["AUC"].fillna(means["accuracy"])
    means["score less central"] = (
        means["score"] - means["score"].xs(CENTRAL, level="method").reindex(means.index.droplevel("method")).to_numpy()
    )
    for risk, attackers in RISKS.items():
        means[risk] = means[[f"{q}|{attacker}|AUC" for q in QUESTIONS for attacker in attackers]].max(axis=1)
    return means


def dominating(
    of_setting: pd.DataFrame, risk: str, *, of: str = SUMS, utility: float = 0.0, less: float = 0.0
) -> list[str]:
    """Return the methods that are better than one, sums under masks by default, in one way, and no worse in the other.

    Parameters
    ----------
    of_setting : DataFrame
        Means by method.
    utility, less : float
        By how much more the score, or the risk, has to differ to count as better; a method that is as much worse is
        no worse.  Zero compares the means as they are.
    """
    judged = of_setting.loc[of]
    found = []
    for name, other in of_setting.iterrows():
        # Higher scores are better, and lower risks.
        gain = other["score"] - judged["score"]
        saved = judged[risk] - other[risk]
        no_worse = gain >= -utility and saved >= -less
        if name not in (of, CENTRAL) and no_worse and (gain > utility or saved > less):
            found.append(str(name))
    return found


def write_report(found: Found[MethodsTask], directory: Path, *, preset: str) -> Path:
    """Write README.md, rows.csv.gz and frontier.png; the path of the first."""
    directory.mkdir(parents=True, exist_ok=True)
    rows = rows_of(found)
    write_rows(rows, directory / "rows.csv.gz")
    failures = [
        f"{task.label}, {task.cells[cell]}: {result.error}"
        for task, results in found
        for cell, result in results.items()
        if result.error is not None
    ]
    path = directory / "README.md"
    if not rows or (means := means_of(rows)).empty:
        path.write_text(
            "# One-shot collaboration, side by side\n\nNo setting has run with all methods yet.\n", encoding="utf-8"
        )
        return path
    draw_figure(means).savefig(directory / "frontier.png", dpi=130)
    path.write_text(text(means, rows, failures, preset=preset), encoding="utf-8")
    return path


def text(means: pd.DataFrame, rows: Sequence[Mapping[str, object]], failures: Sequence[str], *, preset: str) -> str:
    """Return the report in Markdown."""
    settings = [of.droplevel(_SETTING) for _, of in means.groupby(_SETTING, sort=False)]
    n = len(settings)
    planned = PRESETS[preset]
    on = {risk: sum(not dominating(each, risk) for each in settings) for risk in RISKS}
    # Once more with differences that are too small to matter counted as level.
    level = {risk: sum(not dominating(each, risk, utility=UTILITY, less=RISK) for each in settings) for risk in RISKS}
    local = {risk: sum(not dominating(each, risk, of=LOCAL) for each in settings) for risk in RISKS}
    table = pd.DataFrame(rows)
    n_draws = table.groupby(_SETTING, sort=False)["seed"].nunique()
    single = n_draws[n_draws == 1].index.intersection(means.index.droplevel("method"))
    few = ""
    if len(single):
        few = f"{len(single)} of {n} settings have one draw. "
    planned_draws = len(planned.settings) * len(planned.seeds)
    parts = [
        "# One-shot collaboration, side by side",
        f"**Sums under masks are on the frontier of utility and risk in {on[EACH]} of {n} settings** where receiver "
        f"and party attack each alone, and in {on[BOTH]} of {n} where both work together: no other method predicts at "
        f"least as well and says no more of a person. If scores within {UTILITY} and areas within {RISK} count as "
        f"level, it is {level[EACH]} and {level[BOTH]} of {n}. {few}`{LOCAL}`, which sends nothing, is on the frontier "
        f"in {local[EACH]} and {local[BOTH]} of {n}. By table, the mean risk of sums, each alone and both together, is "
        f"{_by_table(means)}.",
        f"Preset `{preset}`: {n} of {len(planned.settings)} settings have run, {n_draws.sum()} of {planned_draws} "
        f"draws, {planned.n_worlds} worlds for each attack. {_UNFINISHED if n_draws.sum() < planned_draws else ''}"
        "[How it is run](../../../experiments/docs/oneshot.md) also says what the words mean, and how a method is "
        "added. All numbers are in `rows.csv.gz`.",
        "![Utility against risk](frontier.png)",
        "Means over settings, lines 95 % intervals; left: receiver and party each alone, right: both together. Exact "
        "sums nearly coincide with central; constant is off the picture.",
        "## Methods\n\n" + _methods(means),
        "## What messages say of a person\n\n" + _risks(means),
        "## Scores by setting\n\n" + _by_setting(means, "score", 3),
        *(f"## Risk by setting, {risk}\n\n" + _by_setting(means, risk, 2) for risk in RISKS),
        "## Where sums are behind the frontier\n\n" + _behind(means),
    ]
    caveats = Path(__file__).with_name("caveats.md").read_text(encoding="utf-8")
    parts.append(f"## What to know before you quote this\n\n{caveats}* {_error(table[table['method'] == SUMS])}")
    if failures:
        parts.append("## What failed\n\n" + "\n".join(f"* {each}" for each in failures))
    return "\n\n".join(parts) + "\n"


def _by_table(means: pd.DataFrame) -> str:
    of, exact = (
        means.xs(name, level="method").groupby("dataset", sort=False)[list(RISKS)].mean() for name in (SUMS, EXACT)
    )
    level = [str(name) for name in of.index[exact[BOTH] - of[BOTH] <= RISK]]
    said = ", ".join(f"{name} {alone:.2f} and {both:.2f}" for name, alone, both in of.itertuples())
    return said + (f": both together, on {' and '.join(level)} as high as that of exact sums" if level else "")


def _error(of: pd.DataFrame) -> str:
    """Return the standard errors of areas in a setting, the draws of which are averaged."""
    # Draws are independent: the variance of their mean is the sum over the squared number.
    squares = of[[f"{q}|{attacker}|se" for q in QUESTIONS for attacker in ATTACKERS]].astype(np.float64) ** 2
    by_setting = squares.groupby([of[name] for name in _SETTING])
    errors = (by_setting.sum() ** 0.5).div(by_setting.size(), axis=0).to_numpy()
    return (
        f"In one setting, an area of sums has a standard error of {errors.mean():.3f} on average, and "
        f"{errors.max():.3f} at most. The largest of several is taken, which adds to it: frontiers of single settings "
        "turn on that."
    )


def _methods(means: pd.DataFrame) -> str:
    rows = []
    settings = [of.droplevel(_SETTING) for _, of in means.groupby(_SETTING, sort=False)]
    for name in METHODS:
        of = means.xs(name, level="method")
        on = (sum(not dominating(each, risk, of=name) for each in settings) for risk in RISKS)
        gap = interval(of["score less central"].tolist())
        rows.append(
            [
                name,
                f"{gap.mean:+.3f}{_ends(gap)}",
                f"{of['accuracy'].mean():.3f}",
                f"{of['log loss'].mean():.3f}",
                *(f"{of[risk].mean():.2f}" for risk in RISKS),
                "–" if name == CENTRAL else ", ".join(map(str, on)),
                f"{of['bytes'].mean() / 1e3:.1f}",
                f"{of['rounds'].mean():.0f}",
                f"{of['seconds'].mean():.2f}",
            ]
        )
    head = ["method", "score less central", "accuracy", "log loss", *(f"risk, {r}" for r in RISKS)]
    head = [*head, "on the frontier"]
    return (
        "Means over settings. The score is the AUC, or the accuracy of digits, with a 95 % interval over settings from "
        "five on. Risk is the area under the curve of the best of its attacks, on membership and on targets; .5 is "
        "chance. *On the frontier*: in how many settings, by either risk; what sends nothing has no risk. Bytes and "
        "seconds are of one party's messages and of all roles together.\n\n"
        + markdown([*head, "kB sent", "rounds", "CPU seconds"], rows, numbers=True)
    )


def _risks(means: pd.DataFrame) -> str:
    rows = []
    for name in METHODS:
        of = means.xs(name, level="method")
        cells = [name]
        for question in QUESTIONS:
            for attacker in ATTACKERS:
                key = f"{question}|{attacker}"
                area = interval(of[f"{key}|AUC"].tolist())
                half = ""
                if not (np.isnan(area.low) or area.mean == area.low):
                    half = f" ± {area.mean - area.low:.2f}"
                cells.append(f"{area.mean:.2f}{half}; {of[f'{key}|TPR'].mean():.2f}")
        rows.append(cells)
    head = ["method", *(f"{question}, {attacker}" for question in QUESTIONS for attacker in ATTACKERS)]
    return (
        "Area under the curve, with half of its 95 % interval over settings; then the rate of hits at 1 % of false "
        "alarms, where .01 is chance.\n\n" + markdown(head, rows, numbers=True)
    )


def _by_setting(means: pd.DataFrame, column: str, digits: int) -> str:
    rows = [
        [_label(key), *(f"{of.droplevel(_SETTING).loc[name, column]:.{digits}f}" for name in METHODS)]
        for key, of in means.groupby(_SETTING, sort=False)
    ]
    return markdown(["setting", *METHODS], rows, numbers=True)


def _behind(means: pd.DataFrame) -> str:
    rows = []
    for key, of in means.groupby(_SETTING, sort=False):
        each = of.droplevel(_SETTING)
        for risk in RISKS:
            strictly = dominating(each, risk)
            level = dominating(each, risk, utility=UTILITY, less=RISK)
            for name in (name for name in METHODS if name in {*strictly, *level}):
                values = [(each.loc[who, "score"], each.loc[who, risk]) for who in (SUMS, name)]
                how = ("yes" if name in found else "" for found in (strictly, level))
                rows.append([_label(key), risk, name, *(f"{score:.3f}, {area:.2f}" for score, area in values), *how])
    if not rows:
        return "Nowhere."
    head = ["setting", "risk", "method ahead", "sums: score, risk", "the other's", "as they are"]
    return markdown([*head, f"with {UTILITY} and {RISK} level"], rows)


def interval(values: Sequence[float]) -> Difference:
    """Return the mean over settings with its 95 % interval; of few settings it would say nothing, and is left out."""
    found = student(values)
    if len(values) >= FEWEST:
        return found
    return Difference(found.mean, math.nan, math.nan)


def _label(key: tuple[object, ...]) -> str:
    dataset, parties, n_rows, split = key
    return f"{dataset} {parties}×{n_rows}, {split}"


def _ends(found: Difference) -> str:
    if np.isnan(found.low) or found.low == found.high:
        return ""
    return f" ({found.low:+.3f} to {found.high:+.3f})"


def draw_figure(means: pd.DataFrame) -> Figure:
    """Draw each method's mean score, less that of `central`, against both risks, with 95 % intervals over settings."""
    figure = Figure(figsize=(10.5, 5.2), layout="constrained")
    shown = [name for name in METHODS if name != CONSTANT]
    for axes, risk in zip(figure.subplots(1, 2, sharey=True), RISKS, strict=True):
        handles: list[object] = []
        for place, name in enumerate(shown):
            of = means.xs(name, level="method")
            x, y = (interval(of[column].tolist()) for column in (risk, "score less central"))
            style = {"color": _COLOURS[place % len(_COLOURS)], "zorder": 3 if name == SUMS else 2}
            for low, high, xs in ((x.low, x.high, True), (y.low, y.high, False)):
                if np.isfinite(low):
                    ends = ([low, high], [y.mean] * 2)
                    axes.plot(*(ends if xs else ([x.mean] * 2, [low, high])), "-", linewidth=0.9, alpha=0.6, **style)
            size = 14 if name == SUMS else 8
            handles += axes.plot(x.mean, y.mean, _SHAPES[place % len(_SHAPES)], markersize=size, label=name, **style)
        axes.set_xlabel(f"risk, {risk}: area under the curve of the best attack (.5 is chance)", fontsize=9)
        axes.set_xlim(0.46, 1.04)
        axes.grid(alpha=0.3, linewidth=0.6)
        axes.spines[["top", "right"]].set_visible(False)
    figure.axes[0].set_ylabel("AUC or accuracy, less that of all rows in one place", fontsize=9)
    figure.legend(handles=handles, loc="outside lower center", ncols=5, frameon=False, fontsize=9)
    return figure
