"""Lines on how good predictions are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ._output import Report

__all__ = ["show_ranking", "show_scores"]

SIDES = {
    "pooled": "pooled",
    "alone": "you and the public rows",
    "own": "you alone",
    "collaboration": "the collaboration's model",
    "learned": "learned from answers",
}
"""Whose predictions they are, in words."""


def show_scores(scores: Mapping[str, Any], report: Report) -> None:
    """Print what `PartyFolder.evaluate` gave."""
    report.line(f"{scores['n_rows']} rows, target {scores['target']}; intervals of 95 %")
    if not scores["n_rows"]:
        return
    if len(scores["sides"]) > 1:
        name = "accuracy" if scores["task"] == "classification" else "rmse"
        words = "accuracy" if name == "accuracy" else "root mean squared error"
        for side, each in scores["sides"].items():
            report.line(f"  {words}, {SIDES[side]:<30}{_figure(each, name, 3 if name == 'accuracy' else 4)}")
        report.line(f"In full, {SIDES[scores['using']]}:")
    if scores["task"] == "classification":
        report.line(f"  accuracy           {_figure(scores, 'accuracy', 3)}")
        report.line(f"  balanced accuracy  {_figure(scores, 'balanced_accuracy', 3)}")
        if "ranking" in scores:
            show_ranking(scores["ranking"], report, option=" (--find {:g})")
            if not any(row[1] for row in scores["confusion"]):
                report.line(
                    f"  No row is called {scores['classes'][1]!r}, for no probability reaches one half. Take the "
                    "probabilities (predict --proba) and a threshold."
                )
        _show_confusion(scores, report)
    elif scores["task"] == "survival":
        report.line(
            f"  concordance  {_figure(scores, 'concordance', 3)}  ({scores['n_events']} events; guessing: 0.500)"
        )
    else:
        unit = f" {scores['unit']}" if scores["unit"] else ""
        report.line(f"  root mean squared error  {_figure(scores, 'rmse')}{unit}")
        report.line(f"  mean absolute error      {_figure(scores, 'mae')}{unit}")
        report.line(f"  R2                       {_figure(scores, 'r2', 3)}")


def show_ranking(ranking: Mapping[str, Any], report: Report, *, option: str = "") -> None:
    """Print what probabilities of the second of two classes say.

    Parameters
    ----------
    ranking : mapping of str to object
        What `linalg.ranking_figures` gives, and "positive".
    report : Report
    option : str
        Put behind what a threshold finds, formatted with the share that it was to find.
    """
    positive, threshold, top = ranking["positive"], ranking["threshold"], ranking["top"]
    report.line(f"  AUC                {_figure(ranking, 'auc', 3)}")
    chance = "" if ranking["auc"] is None else f"  (by chance {ranking['prevalence']:.3f})"
    report.line(f"  average precision  {_figure(ranking, 'average_precision', 3)}{chance}")
    report.line(
        f"  Brier score        {ranking['brier']:.4f}  (always the prevalence: {ranking['brier_baseline']:.4f})"
    )
    report.line(f"  {ranking['prevalence']:.1%} of the rows are {positive!r}, {ranking['expected']:.1%} were expected")
    if top is not None:
        report.line(
            f"  of the {top['n_rows']} rows that are likeliest {top['found']:.1%} are {positive!r}, "
            f"{top['expected']:.1%} were expected"
        )
    if threshold is not None:
        report.line(
            f"  from a probability of {threshold['least']:.3f} on, {threshold['n_found']} of {threshold['n_positive']} "
            f"{positive!r} are found, among {threshold['n_called']} rows{option.format(threshold['find'])}"
        )


def _show_confusion(scores: Mapping[str, Any], report: Report) -> None:
    classes = [str(name) for name in scores["classes"]]
    if len(classes) > 12:
        report.line("  --json lists how often each class was taken for each.")
        return
    width = max(map(len, [*classes, *(str(count) for row in scores["confusion"] for count in row)])) + 2
    report.line("  true classes in rows, predicted ones in columns:")
    report.line(f"  {'':>{width}}" + "".join(f"{name:>{width}}" for name in classes))
    for name, row in zip(classes, scores["confusion"], strict=True):
        report.line(f"  {name:>{width}}" + "".join(f"{count:>{width}}" for count in row))


def _figure(scores: Mapping[str, Any], name: str, digits: int = 4) -> str:
    """A figure with its interval, where there is one."""
    if scores[name] is None:
        return "none"
    interval = scores.get(f"{name}_interval")
    if name in ("rmse", "mae"):
        text = [f"{value:.{digits}g}" for value in (scores[name], *(interval or ()))]
    else:
        text = [f"{value:.{digits}f}" for value in (scores[name], *(interval or ()))]
    return text[0] + (f"  ({text[1]} to {text[2]})" if interval else "")
