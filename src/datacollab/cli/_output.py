"""What a command of the exchange prints: lines for people, or one JSON object; and how it ends.

* Text of other people on the terminal: in one line, and without what would steer the terminal.
* Lines on what the project's rules made of entries that did not fit.
* Lines on how good predictions are.
"""

from __future__ import annotations

import json
import os
import re
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import typer

from ..errors import DataCollabError, DataCollabWarning, ExchangeError

__all__ = ["Report", "reported", "show_adjusted", "show_details", "show_ranking", "show_scores", "shown", "warn"]


FAILED, BUG, INTERRUPTED = 1, 70, 130

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
"""What could steer a terminal: text in files from elsewhere is printed too."""


@dataclass
class Report:
    """Lines and facts of one command.

    Attributes
    ----------
    as_json : bool
        Whether the facts are wanted instead of the lines.
    facts : dict of str to object
        What JSON can hold.
    unchanged : str
        What is said of the state after an interruption.
    """

    as_json: bool
    facts: dict[str, Any] = field(default_factory=dict)
    unchanged: str = "Nothing was changed."

    def line(self, text: str = "") -> None:
        """Print a line for people."""
        if not self.as_json:
            typer.echo(_CONTROL.sub("\N{REPLACEMENT CHARACTER}", text))


def warn(text: str) -> None:
    """Print a line to standard error, without what could steer a terminal."""
    typer.echo(_CONTROL.sub("\N{REPLACEMENT CHARACTER}", text), err=True)


@contextmanager
def _warnings_as_lines() -> Iterator[None]:
    """The package's warnings as lines to people, who are told nothing by the place in our code that Python adds."""
    with warnings.catch_warnings():
        usual = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *where: Any) -> None:
            if issubclass(category, DataCollabWarning):
                warn(f"warning: {message}")
            else:
                usual(message, category, *where)

        warnings.simplefilter("default", DataCollabWarning)
        warnings.showwarning = show  # type: ignore[assignment]
        yield


@contextmanager
def reported(as_json: bool, *, unchanged: str = "Nothing was changed.") -> Iterator[Report]:
    """Print the facts in the end, or a refusal with its code; a refusal exits with the code's number.

    Parameters
    ----------
    as_json : bool
    unchanged : str
        What is said of the state after an interruption.
    """
    report = Report(as_json, unchanged=unchanged)
    try:
        with _warnings_as_lines():
            yield report
    except ExchangeError as error:
        _fail(as_json, error.code, str(error), error.exit_code)
    except (DataCollabError, ValueError, OSError) as error:
        _fail(as_json, type(error).__name__, str(error), FAILED)
    except KeyboardInterrupt:
        _fail(as_json, "INTERRUPTED", f"Interrupted. {report.unchanged}", INTERRUPTED)
    except (typer.Exit, typer.Abort, typer.BadParameter):
        raise
    except Exception as error:
        if os.environ.get("DATACOLLAB_DEBUG"):
            raise
        # Words of an error that nobody foresaw may quote data.
        sentence = (
            f"A {type(error).__name__} that should not happen. {report.unchanged} DATACOLLAB_DEBUG=1 shows where."
        )
        _fail(as_json, "BUG", sentence, BUG)
    if as_json:
        typer.echo(json.dumps(report.facts, indent=2, allow_nan=False))


def _fail(as_json: bool, code: str, message: str, exit_code: int) -> None:
    if as_json:
        typer.echo(json.dumps({"error": {"code": code, "message": message}}, indent=2))
    warn(f"datacollab: {code}: {message}")
    raise typer.Exit(exit_code)


WIDTH = 100


def shown(value: Any) -> str:
    """A value of JSON as a line of at most 100 characters.

    Examples
    --------
    >>> shown("an ordinary text"), shown(0.5), shown(["a", 1])
    ('an ordinary text', '0.5', '["a", 1]')
    >>> shown(f"red: {chr(27)}[31m")
    'red: ?[31m'
    """
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    safe = "".join(letter if letter.isprintable() else "?" for letter in text)
    return safe if len(safe) <= WIDTH else safe[: WIDTH - 1] + "…"


def show_adjusted(told: Mapping[str, Any], report: Report, *, details: bool) -> None:
    """Print one line, where anything was adjusted, or one for each column if these are wanted.

    Parameters
    ----------
    told : mapping of str to object
        What `Adjustments.to_dict` gave.
    report : Report
    details : bool
    """
    from ..exchange.project import adjusted_text

    if told["columns"]:
        report.line(f"Adjusted entries: {adjusted_text(told)}{'' if details else ' (--details)'}")
        if details:
            _show_columns(told, report)


def show_details(told: Mapping[str, Any], report: Report, *, details: bool) -> None:
    """Print what the one line of a release's summary leaves out, if it is wanted."""
    if told["columns"] and details:
        report.line()
        report.line("Adjusted entries, by column")
        _show_columns(told, report)


def _show_columns(told: Mapping[str, Any], report: Report) -> None:
    from ..exchange.project import adjusted_details

    for line in adjusted_details(told):
        report.line(f"  {line}")


SIDES = {
    "combined": "combined",
    "local": "you and the public rows",
    "own": "you alone",
    "collaboration": "the collaboration's model",
    "distilled": "distilled from anchor predictions",
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
