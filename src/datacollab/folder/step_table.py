"""The steps of a party and of the analyst, in one table: their inputs, questions, files, and how long they take.

The table is `step_table.toml`. The commands and the pages of the desk render it, and the figures that both show.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

__all__ = ["SIDES", "STEPS", "TABLES", "Input", "Step", "figure_text", "ranking_rows", "read_steps", "score_rows"]

TABLES: tuple[str, ...] = (".csv", ".txt", ".tsv", ".xlsx", ".xlsm", ".xls", ".xlsb", ".ods", ".parquet", ".pq")
TABLES += (".arrow", ".feather", ".ipc", ".jsonl", ".ndjson", ".sav", ".zsav", ".por", ".dta", ".sas7bdat", ".xpt")
"""Endings of files that hold a table."""
_KINDS: dict[str, Any] = {
    "text": str,
    "whole number": int,
    "number": float,
    "two numbers": tuple[float, float],
    "flag": bool,
    "file": Path,
    "table": Path,
    "path": Path,
}
"""What an input is; a file and a table are there already, and a path may be."""


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
    may_be_query: bool = False
    """Whether a command also takes a database in its place, with a query."""
    usual: str = ""
    """What holds if it is left out, in words."""
    required: bool = False
    default: Any = None
    """What the function gets if it is left out."""
    least: float | None = None
    most: float | None = None
    metavar: str | None = None
    known: str | tuple[str, ...] = ()
    """The allowed names, or where they are, such as ``_by_name:OBFUSCATORS``; empty if any is allowed."""
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
        text = f"{self.words or ', '.join(self.names())}."
        if self.usual:
            text += f" Default: {self.usual}."
        return text

    @property
    def hint(self) -> str:
        """The text below the field."""
        hints = []
        # A label is short; words that it leaves out stand below, unless a sample says more.
        if self.words and self.label and not self.sample:
            hints.append(self.words)
        forms = []
        if self.is_many:
            forms.append("one a line")
        if self.sample:
            forms.append(f"such as {self.sample}")
        if forms:
            text = ", ".join(forms)
            hints.append(text[0].upper() + text[1:])
        if self.usual:
            hints.append(f"Nothing: {self.usual}")
        return " ".join(f"{hint}." for hint in hints)

    @property
    def field(self) -> str:
        """Name of the field in a form."""
        # As the command has it, so that both are found under one name.
        name = self.option.partition(",")[0].lstrip("-").replace("-", "_") or self.name
        return f"no_{name}" if self.off else name

    def names(self) -> tuple[str, ...]:
        """Return the allowed names."""
        # Names that a module has are read when they are asked for: a command's help loads no estimators.
        if isinstance(self.known, str):
            return tuple(resolve_name(f"datacollab.{self.known}"))
        return self.known


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
    usual: dict[str, Any] = {"name": id.replace("-", "_"), "option": f"--{id}"}
    if argument:
        usual["option"] = ""
    # A flag that turns something off is on by default; nothing that is counted or measured is below 0.
    if kind == "flag":
        usual["default"] = bool(facts.get("off"))
    if kind == "number":
        usual["least"] = 0
    if "default" in facts and _KINDS[kind] is Path:
        facts["default"] = Path(facts["default"])
    if not isinstance(known := facts.get("known", ()), str):
        facts["known"] = tuple(known)
    if endings == "tables":
        endings = TABLES
    is_table = kind == "table"
    is_there = is_table or kind == "file"
    return Input(kind=_KINDS[kind], is_there=is_there, may_be_query=is_table, endings=tuple(endings), **usual | facts)


def read_steps(path: Path) -> dict[str, Step]:
    """Read a table of steps, by their names."""
    table = tomllib.loads(path.read_text(encoding="utf-8"))
    # Steps share inputs, and the table describes each once.
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
    # Errors are in the target's unit, of any size; all else is about 1.
    form = "{:.4g}" if name in ("rmse", "mae", "median_error") else "{:.3f}"
    text = form.format(scores[name])
    if interval := scores.get(f"{name}_interval"):
        low, high = map(form.format, interval)
        text += f" ({low} to {high})"
    return text


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
    # An area does not depend on how common the sought class is; log loss and errors do.
    if ranking.get("auc") is not None:
        return ranking, "auc", f"AUC of {ranking['positive']}"
    name = next(each for each in _MEASURES if each in scores)
    return scores, name, _MEASURES[name]


def score_rows(scores: Mapping[str, Any], unit: str = "") -> list[tuple[str, str]]:
    """Write all figures that `PartyFolder.evaluate` gave, by their names; the unit is that of a numeric target."""
    of_unit = f" {unit}".rstrip()
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
    rows: list[tuple[str, str]] = []
    if "ranking" in scores:
        rows += ranking_rows(scores["ranking"])
    for name, (words, end) in figures.items():
        # Each kind of task has some of these.
        if name not in scores:
            continue
        text = figure_text(scores, name) + end
        if name == "concordance":
            text += "; guessing has 0.5"
        # A constant answer stands beside it, if that is known.
        if (constant := scores.get(f"{name}_baseline")) is not None:
            text += f"; {_CONSTANT[name]}: {figure_text({name: constant}, name)}{end}"
        rows.append((words, text))
    if "n_events" in scores:
        rows.append(("Events", f"{scores['n_events']} among {scores['n_rows']} rows"))
    return rows


def ranking_rows(ranking: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Write the `linalg.ranking_figures` of the sought class, by name."""
    positive = ranking["positive"]
    precision = figure_text(ranking, "average_precision")
    baseline = ranking["brier_baseline"]
    rows = [
        (f"AUC of {positive}", f"{figure_text(ranking, 'auc')}; guessing has 0.5"),
        (f"Average precision of {positive}", f"{precision}; by chance {ranking['prevalence']:.3f}"),
        (f"Brier score of {positive}", f"{ranking['brier']:.4f}; always the prevalence: {baseline:.4f}"),
        ("Calibration", f"{ranking['prevalence']:.1%} of rows are {positive}, {ranking['expected']:.1%} were expected"),
    ]
    if (top := ranking["top"]) is not None:
        text = f"{top['found']:.1%} are {positive}, {top['expected']:.1%} were expected"
        rows.append((f"Likeliest {top['n_rows']} rows to be {positive}", text))
    if (threshold := ranking["threshold"]) is not None:
        text = (
            f"from a probability of {threshold['least']:.3f} on, {threshold['n_found']} of {threshold['n_positive']} "
            f"are found, among {threshold['n_called']} rows; of new ones "
            + " to ".join(f"{each:.0%}" for each in threshold["reached"])
        )
        rows.append((f"To find {threshold['find']:.0%} of {positive}", text))
    return rows
