"""The steps of a party and of the analyst, in one table: what each takes, asks and writes, and how long it takes.

The table is `steps.toml`. The commands and the pages of the desk render it, and the figures that both show.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

__all__ = ["SIDES", "STEPS", "TABLES", "Input", "Step", "figure_text", "ranking_rows", "read_steps", "score_rows"]

TABLES = (".csv", ".txt", ".tsv", ".xlsx", ".xlsm", ".parquet", ".pq", ".arrow", ".feather", ".ipc")
"""Endings of files that hold a table."""
_KINDS: dict[str, Any] = {
    "text": str,
    "whole number": int,
    "number": float,
    "two numbers": tuple[float, float],
    "flag": bool,
    "file": Path,
    "path": Path,
}
"""What an input is; a file is there already, and a path may be."""


@dataclass(frozen=True, kw_only=True)
class Input:
    """One thing that a step takes."""

    name: str
    """Keyword of the step's function."""
    words: str
    """What it is: the help of the option, and the label of the field; empty if the help lists the allowed names."""
    option: str
    """How the command spells it; empty for an argument."""
    kind: Any = str
    is_there: bool = False
    """Whether it is a file that must exist."""
    usual: str = ""
    """What holds if it is left out, in words."""
    required: bool = False
    default: Any = None
    """What the function gets if it is left out."""
    least: float | None = None
    most: float | None = None
    metavar: str | None = None
    known: str | tuple[str, ...] = ()
    """The allowed names, or where they are, such as ``_obfuscators:OBFUSCATORS``; empty if any is allowed."""
    is_many: bool = False
    """Whether it may be given several times."""
    endings: tuple[str, ...] = ()
    """Of a file that is uploaded."""
    sample: str = ""
    """What may be written into the field."""
    label: str = ""
    """Of the field, if ``words`` is too long for one."""
    is_of_rows: bool = False
    """Whether it has no effect if parties share sums."""
    off: str = ""
    """Label of the box that turns it off, if it is on otherwise."""
    is_percent: bool = False
    """Whether the field is in per cent, of a number from 0 to 1."""

    @property
    def help(self) -> str:
        """The help of the option."""
        return f"{self.words or ', '.join(self.names())}." + (f" Default: {self.usual}." if self.usual else "")

    @property
    def hint(self) -> str:
        """What stands below the field."""
        words = self.words if self.words and self.label and not self.sample else ""
        such = f"such as {self.sample}" if self.sample else ""
        many = ", ".join(filter(None, ("one a line" if self.is_many else "", such)))
        hints = (words, many[:1].upper() + many[1:], f"Nothing: {self.usual}" if self.usual else "")
        return " ".join(f"{hint}." for hint in hints if hint)

    @property
    def field(self) -> str:
        """Name of the field in a form."""
        name = self.option.partition(",")[0].lstrip("-").replace("-", "_") or self.name
        return f"no_{name}" if self.off else name

    def names(self) -> tuple[str, ...]:
        """Return the allowed names."""
        return tuple(resolve_name(f"datacollab.{self.known}")) if isinstance(self.known, str) else self.known


@dataclass(frozen=True, kw_only=True)
class Step:
    """One step; the desk has a page of it if it has a title."""

    name: str
    """Its command, such as ``party install``."""
    does: str
    """The help of the command, with ``example``, and ``folder`` of the folder that it works in."""
    example: str = ""
    folder: str = ""
    title: str = ""
    doing: str = ""
    """What the desk says while it is at work."""
    inputs: tuple[Input, ...] = ()
    writes: tuple[str, ...] = ()
    """Files in the folder."""
    asks: str = ""
    """What somebody has to say yes to first."""
    takes: str = ""
    """How long it takes, if that is more than a moment."""
    has_keys: bool = True
    """Whether the command opens the keys in the folder."""
    has_json: bool = True
    unchanged: str = "Nothing was changed."
    """What an interruption leaves behind, in words."""

    def __getitem__(self, name: str) -> Input:
        return next(each for each in self.inputs if each.name == name)


def _input(id: str, kind: str = "text", argument: bool = False, endings: Any = (), **facts: Any) -> Input:
    usual: dict[str, Any] = {"name": id.replace("-", "_"), "option": "" if argument else f"--{id}"}
    usual |= {"default": bool(facts.get("off"))} if kind == "flag" else {}
    usual |= {"least": 0} if kind == "number" else {}
    if "default" in facts and _KINDS[kind] is Path:
        facts["default"] = Path(facts["default"])
    if not isinstance(known := facts.get("known", ()), str):
        facts["known"] = tuple(known)
    ends = TABLES if endings == "tables" else tuple(endings)
    return Input(kind=_KINDS[kind], is_there=kind == "file", endings=ends, **usual | facts)


def read_steps(path: Path) -> dict[str, Step]:
    """Read a table of steps, by their names."""
    table = tomllib.loads(path.read_text(encoding="utf-8"))
    inputs = {id: _input(id, **facts) for id, facts in table["inputs"].items()}
    return {
        name: Step(name=name, **facts | {"inputs": tuple(inputs[id] for id in facts.get("inputs", ()))})
        for name, facts in table["steps"].items()
    }


STEPS = read_steps(Path(__file__).with_suffix(".toml"))
"""All steps by their names."""

SIDES = {
    "combined": "both together",
    "local": "you and the public rows",
    "own": "you alone",
    "collaboration": "the collaboration's model",
    "distilled": "distilled from anchor predictions",
}
"""Whose predictions they are, in words."""


def figure_text(scores: Mapping[str, Any], name: str) -> str:
    """Write a figure of this name, with its interval, if the scores have one (``name_interval``)."""
    if scores[name] is None:
        return "none"
    form = "{:.4g}" if name in ("rmse", "mae", "median_error") else "{:.3f}"
    interval = scores.get(f"{name}_interval")
    return form.format(scores[name]) + (
        f" ({form.format(interval[0])} to {form.format(interval[1])})" if interval else ""
    )


_MEASURES = {
    "log_loss": "Log loss",
    "accuracy": "Accuracy",
    "rmse": "Root mean squared error",
    "concordance": "Concordance",
}
_CONSTANT = {
    "log_loss": "always the prevalence",
    "accuracy": "always the most frequent class",
    "rmse": "always the mean",
}


def leading_figure(scores: Mapping[str, Any]) -> tuple[Mapping[str, Any], str, str]:
    """Return where the figure stands that comes first, its name, and its words: an area, a log loss, or an error."""
    ranking = scores.get("ranking") or {}
    if ranking.get("auc") is not None:
        return ranking, "auc", f"AUC of {ranking['positive']}"
    name = next(each for each in _MEASURES if each in scores)
    return scores, name, _MEASURES[name]


def score_rows(scores: Mapping[str, Any], unit: str = "") -> list[tuple[str, str]]:
    """Write all figures that `PartyFolder.evaluate` gave, by their names; the unit is that of a numeric target."""
    of_unit = f" {unit}" if unit else ""
    figures = {
        "log_loss": (_MEASURES["log_loss"], ""),
        "balanced_accuracy": ("Balanced accuracy", ""),
        "accuracy": (_MEASURES["accuracy"], ""),
        "rmse": (_MEASURES["rmse"], of_unit),
        "mae": ("Mean absolute error", of_unit),
        "median_error": ("Half of the errors are at most", of_unit),
        "r2": ("R2", ""),
        "concordance": (_MEASURES["concordance"], ""),
    }
    rows = []
    for name, (words, end) in figures.items():
        if name not in scores:
            continue
        said = figure_text(scores, name) + end
        # A constant answer stands beside it, if that is known.
        if (constant := scores.get(f"{name}_baseline")) is not None:
            said += f"; {_CONSTANT[name]}: {figure_text({name: constant}, name)}{end}"
        rows.append((words, said))
    if "n_events" in scores:
        rows.append(("Events", f"{scores['n_events']} among {scores['n_rows']} rows; guessing has 0.5"))
    return [*(ranking_rows(scores["ranking"]) if "ranking" in scores else ()), *rows]


def ranking_rows(ranking: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Write what `linalg.ranking_figures` of the sought class say, by name."""
    positive, threshold, top = ranking["positive"], ranking["threshold"], ranking["top"]
    precision, baseline = figure_text(ranking, "average_precision"), ranking["brier_baseline"]
    rows = [
        (f"AUC of {positive}", f"{figure_text(ranking, 'auc')}; guessing has 0.5"),
        (f"Average precision of {positive}", f"{precision}; by chance {ranking['prevalence']:.3f}"),
        (f"Brier score of {positive}", f"{ranking['brier']:.4f}; always the prevalence: {baseline:.4f}"),
        ("Calibration", f"{ranking['prevalence']:.1%} of rows are {positive}, {ranking['expected']:.1%} were expected"),
    ]
    if top is not None:
        said = f"{top['found']:.1%} are {positive}, {top['expected']:.1%} were expected"
        rows.append((f"Likeliest {top['n_rows']} rows to be {positive}", said))
    if threshold is not None:
        said = (
            f"from a probability of {threshold['least']:.3f} on, {threshold['n_found']} of {threshold['n_positive']} "
            f"are found, among {threshold['n_called']} rows; of new ones "
            + " to ".join(f"{each:.0%}" for each in threshold["reached"])
        )
        rows.append((f"To find {threshold['find']:.0%} of {positive}", said))
    return rows
