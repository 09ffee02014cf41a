"""The report: Markdown, a CSV file and a figure."""

import math
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from ..harness import markdown, write_rows
from .results import Difference, Measured, calibration_text, rows_of
from .tables import UNSEEN
from .trial import AVERAGE, CHOSEN, CLASS_SUMS, COMBINED, COPULA, EXACT_SUMS, METHODS, NOISY, PUBLIC, SUMS, TODAY

# Colours of defences.
COLOURS: dict[str, str] = {"none": "#1b6ca8", "sums": "#c0562b"}


def draw_figure(measured: Sequence[Measured]) -> Figure:
    """Draw the gain of the pool, or of sums, over a party without the others, one line a setting."""
    ordered = sorted(measured, key=lambda each: each.gain(each.collaborating, each.own).mean)
    figure = Figure(figsize=(9.0, 1.4 + 0.2 * len(ordered)), layout="constrained")
    axes = figure.subplots()
    for place, each in enumerate(ordered):
        gain = each.gain(each.collaborating, each.own)
        colour = COLOURS[each.setting.defence]
        axes.plot(100 * gain.mean, place, "o", markersize=4, color=colour)
        if np.isfinite(gain.low):
            axes.plot([100 * gain.low, 100 * gain.high], [place, place], "-", linewidth=1.4, color=colour)
    axes.axvline(0.0, color="0.3", linewidth=0.8)
    names = [("* " if each.setting.dataset in UNSEEN else "") + each.setting.label for each in ordered]
    axes.set_yticks(range(len(ordered)), names, fontsize=7)
    axes.set_ylim(-1, len(ordered))
    # Logarithmic beyond two points: gains span two orders of magnitude.
    axes.set_xscale("symlog", linthresh=2.0)
    ticks = [-20, -5, -2, -1, 0, 1, 2, 5, 10, 20, 50]
    axes.set_xticks(ticks, [f"{tick:+d}" if tick else "0" for tick in ticks])
    axes.set_xlabel("gain over own and public rows: points of AUC or accuracy, % of RMSE (95 % intervals)", fontsize=9)
    axes.grid(axis="x", alpha=0.3, linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    for defence in dict.fromkeys(each.setting.defence for each in ordered):
        label = "undefended" if defence == "none" else defence
        axes.plot([], [], "o-", color=COLOURS[defence], markersize=4, label=label)
    axes.plot([], [], " ", label="* unseen tables")
    axes.legend(frameon=False, fontsize=8, loc="lower right")
    return figure


def write_report(measured: Sequence[Measured], directory: Path, *, expected: int, preset: str) -> Path:
    """Write README.md, scores.csv.gz and differences.png; the path of the first."""
    directory.mkdir(parents=True, exist_ok=True)
    write_rows(rows_of(measured), directory / "scores.csv.gz")
    there = [each for each in measured if each.collaborating in each.scores]
    if there:
        draw_figure(there).savefig(directory / "differences.png", dpi=110)
    path = directory / "README.md"
    path.write_text(text(measured, expected=expected, preset=preset), encoding="utf-8")
    return path


def text(measured: Sequence[Measured], *, expected: int, preset: str) -> str:
    """The report in Markdown."""
    there = [each for each in measured if each.collaborating in each.scores]
    n_trials = sum(len(each.seconds) for each in there)
    parts = [
        "# Does collaborating pay?",
        f"Preset `{preset}`: {len(there)} settings, {n_trials} of {expected} trials. What the words mean stands in "
        "`experiments/docs/pays.md`; all scores in `scores.csv.gz`.",
    ]
    if there:
        parts += [
            _summary(there),
            "![Differences by setting](differences.png)",
            "## Means\n\n" + _means(there),
            *(
                f"## What {what} bring\n\nMean paired differences over parties and draws with 95 % intervals. "
                "Differences of AUC and accuracy; of RMSE the part of the error that goes away. `own` is the better, "
                "with hindsight, of Local and Local+Public.\n\n" + _differences(of)
                for what, defence in (("sums under masks", "sums"), ("shared rows, by the pool,", "none"))
                if (of := [each for each in there if each.setting.defence == defence])
            ),
            "## What parties were told, and what is true\n\n" + calibration_text(there),
        ]
    parts.append(_costs(there))
    if errors := [error for each in measured for error in each.errors]:
        parts.append("## What failed\n\n" + "\n".join(f"* {error}" for error in errors))
    return "\n\n".join(part for part in parts if part) + "\n"


def _summary(there: Sequence[Measured]) -> str:
    """Return how often methods are above, not told from, or below others."""
    # None stands for a party's final model, and for the better of its models without the others.
    contrasts = (
        ("against own", None, None),
        ("against the public rows alone", None, PUBLIC),
        ("against the average of locals", None, AVERAGE),
        ("against synthetic rows", None, COPULA),
        ("against synthetic rows, DP", None, NOISY),
        ("sums and own against own", COMBINED, None),
        ("sums and own against the average of locals", COMBINED, AVERAGE),
        ("sums and own against sums", COMBINED, SUMS),
        ("against sums, no noise", None, EXACT_SUMS),
        ("against class sums, noise once", None, CLASS_SUMS),
        ("DC* against own", CHOSEN, None),
        ("DC* against today's way", CHOSEN, TODAY),
    )
    groups: list[tuple[str, Callable[[Measured], bool]]] = [
        ("sums", lambda each: each.setting.defence == "sums"),
        ("rows, the pool", lambda each: each.setting.defence == "none"),
        ("sums, unseen tables", lambda each: each.setting.defence == "sums" and each.setting.dataset in UNSEEN),
        ("rows, unseen tables", lambda each: each.setting.defence == "none" and each.setting.dataset in UNSEEN),
    ]
    rows = []
    for name, method, over in contrasts:
        cells = [name]
        for _, belongs in groups:
            gains = [each.gain(method or each.collaborating, over or each.own) for each in there if belongs(each)]
            found = [difference for difference in gains if not math.isnan(difference.mean)]
            verdicts = [difference.verdict for difference in found]
            above = sum(difference.mean > 0 for difference in found)
            if not found:
                cells.append("–")
                continue
            cells.append(
                f"{above} of {len(found)}; {verdicts.count('+')} / {verdicts.count('0')} / {verdicts.count('-')}"
            )
        # What an earlier run did not try has no line.
        if set(cells[1:]) != {"–"}:
            rows.append(cells)
    head = ["", *(name for name, _ in groups)]
    cells = ["better than own by two points, or 5 % of the error"]
    for _, belongs in groups:
        # Two points, or 5 % of the error, is the least that would repay the effort.
        worth = [
            each.gain(each.collaborating, each.own).mean >= (0.05 if each.is_error else 0.02)
            for each in there
            if belongs(each)
        ]
        cells.append(f"{sum(worth)} of {len(worth)}")
    rows.append(cells)
    return (
        "In how many settings the mean is above; and how often the 95 % interval is above zero / holds zero / is below "
        "zero.\n\n" + markdown(head, rows)
    )


def _means(there: Sequence[Measured]) -> str:
    """One line for rows and sums, where both are there: scores that do not hang on how parties share are the same."""
    by_label: dict[str, list[Measured]] = {}
    for each in there:
        by_label.setdefault(each.setting.label.removesuffix(", sums"), []).append(each)
    methods = [method for method in METHODS if any(method in each.scores for each in there)]
    rows = []
    for label, of in by_label.items():
        cells = [next((number(e.mean(m), e) for e in of if m in e.scores), "–") for m in methods]
        rows.append([label, of[0].metric, *cells])
    return markdown(["setting", "measure", *methods], rows)


def number(value: float, each: Measured) -> str:
    """A score with as many digits as its measure needs."""
    if math.isnan(value):
        return "–"
    if each.is_error:
        return f"{value:.1f}"
    return f"{value:.3f}"


def _differences(there: Sequence[Measured]) -> str:
    rows = []
    for each in sorted(there, key=lambda each: -each.gain(each.collaborating, each.own).mean):
        gains = [each.gain(each.collaborating, other) for other in (each.own, PUBLIC, AVERAGE, COPULA, NOISY)]
        rows.append([each.setting.label, each.own, *(show_difference(gain) for gain in gains)])
    return markdown(["setting", "own", "− own", "− public alone", "− average", "− synthetic", "− synthetic, DP"], rows)


def show_difference(difference: Difference) -> str:
    """A difference with its interval, bold where the interval does not hold zero."""
    if math.isnan(difference.mean):
        return "–"
    mean = f"{difference.mean:+.3f}"
    if math.isnan(difference.low):
        return mean
    return f"{f'**{mean}**' if difference.verdict != '0' else mean} ({difference.low:+.3f} to {difference.high:+.3f})"


def _costs(there: Sequence[Measured]) -> str:
    seconds = [second for each in there for second in each.seconds]
    if not seconds:
        return ""
    return f"A trial took {sum(seconds) / len(seconds):.0f} CPU seconds on average, {max(seconds):.0f} at most."
