"""``datacollab party``: join, look at what would leave, share once, install a model, predict at home."""

from __future__ import annotations

import getpass
import sys
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Option

from ._audit import shown_progress
from ._output import Report, reported
from ._passphrase import PassphraseFile, passphrase_for
from ._release import check, tune

if TYPE_CHECKING:
    from ..party_folder import PartyFolder, ReleaseSummary

__all__ = ["app"]

app = typer.Typer(help="A party: share once, then predict at home.", no_args_is_help=True)
app.command("check")(check)
app.command("tune")(tune)

Folder = Annotated[Path, Option("--folder", "-C", help="The party's folder.")]
AsJson = Annotated[bool, Option("--json", help="Print one JSON object.")]
File = partial(typer.Argument, exists=True, dir_okay=False)
Table = Annotated[Path, File(help="CSV, Parquet or Arrow file.")]
HERE = Path()


@app.command("join")
def join(
    project: Annotated[Path, File(help="The project file, signed by its owner.")],
    anchor: Annotated[Path | None, File(help="The sealed anchor; if it comes later, join again with it.")] = None,
    folder: Folder = HERE,
    passphrase_file: PassphraseFile = None,
    as_json: AsJson = False,
) -> None:
    """Set up a folder that holds the party's keys; its name in the project follows from the key.

    Example: datacollab party join project.toml anchor.dcanchor -C hospital-a
    """
    with reported(as_json) as report:
        from ..party_folder import PartyFolder

        joined = PartyFolder.join(folder, project, anchor, passphrase=passphrase_for(folder, passphrase_file))
        report.facts = {
            "party": joined.name,
            "project": joined.project.name,
            "project_digest": joined.project.digest,
            "anchor": anchor is not None,
        }
        report.line(f"{folder}: party {joined.name} of project {joined.project.name}.")
        report.line(f"What may leave is up to you: look at {folder / 'policy.toml'}.")
        if anchor is None:
            report.line("The anchor is missing; join again with it before you share.")


@app.command("share")
def share(
    table: Table,
    obfuscator: Annotated[str | None, Option(help="pca, kernel-pca, umap, random-projection. Default: pca.")] = None,
    components: Annotated[
        int | None, Option(min=1, help="Columns to be shared. Default: 16, or what is allowed.")
    ] = None,
    preset: Annotated[
        str | None, Option(help="private: map learnt from the anchor, rows shared as means of 5.")
    ] = None,
    standardize: Annotated[bool, Option(help="Bring columns to mean 0 and variance 1 first.")] = True,
    group_size: Annotated[int | None, Option(min=2, help="Share means of at least so many rows of a class.")] = None,
    noise: Annotated[float | None, Option(min=0.0, help="Add noise of so many standard deviations.")] = None,
    fit_on_anchor: Annotated[
        bool, Option("--fit-on-anchor", help="Learn the map from the anchor, not your rows.")
    ] = False,
    audit: Annotated[bool, Option(help="Attack the share first, to show the risk.")] = True,
    time_budget: Annotated[float | None, Option(min=0.0, help="Seconds after which no attack is begun.")] = None,
    approve: Annotated[bool, Option("--approve", help="Do not ask; you have looked at what leaves.")] = False,
    approved_by: Annotated[
        str | None, Option(metavar="NAME", help="Who approves, for the records. Default: who is logged in.")
    ] = None,
    again: Annotated[
        bool, Option("--again", help="Replace a share made before; two tell more than one, and need a new model.")
    ] = False,
    folder: Folder = HERE,
    passphrase_file: PassphraseFile = None,
    as_json: AsJson = False,
) -> None:
    """Obfuscate the table, show what would leave, ask, and put the file into the outbox.

    Nothing is sent: you send the file. Without --approve the command asks, and outside a terminal it refuses.

    Example: datacollab party share patients.csv --preset private -C hospital-a
    """
    with reported(as_json, unchanged="Nothing left the party, or the file is whole in the outbox.") as report:
        opened = _opened(folder, passphrase_file)
        approver = approved_by or _login_name()
        with ExitStack() as stack:
            progress = stack.enter_context(shown_progress(quiet=as_json))

            def ask(summary: ReleaseSummary) -> str | None:
                stack.close()
                report.facts |= {"summary": summary.to_dict()}
                report.line(summary.to_text())
                return approver if approve or _says_yes(report) else None

            file = opened.share(
                table,
                approve=ask,
                again=again,
                obfuscator=obfuscator,
                n_components=components,
                preset=preset,
                standardize=standardize,
                group_size=group_size,
                noise=noise,
                fit_on_anchor=fit_on_anchor,
                audit=audit,
                time_budget=time_budget,
                progress=progress,
            )
        report.facts |= {"share": str(file), "bytes": file.stat().st_size}
        report.line()
        report.line(f"{file}: {file.stat().st_size:,} bytes, approved by {approver}. Send it to the analyst.")
        report.line(
            "Keep this folder: only it can predict with the model that comes back. It is as sensitive as the table."
        )


@app.command("install")
def install(
    model: Annotated[Path, File(help="The model that the analyst sent.")],
    folder: Folder = HERE,
    passphrase_file: PassphraseFile = None,
    as_json: AsJson = False,
) -> None:
    """Check the analyst's model, try it, and install it.

    Example: datacollab party install hospital-a.dcmodel -C hospital-a
    """
    with reported(as_json) as report:
        facts = _opened(folder, passphrase_file).install(model)
        names = ("party", "project", "method", "n_components", "estimator", "n_parties", "n_rows", "created")
        report.facts = {name: facts.get(name) for name in names}
        report.line(
            f"Installed: {facts.get('estimator')} over {facts.get('n_rows')} rows of {facts.get('n_parties')} parties, "
            "signed by the project's analyst."
        )


@app.command("predict")
def predict(
    table: Table,
    output: Annotated[Path, Option("--output", "-o", help="File to write: CSV, Parquet or Arrow, by its name.")],
    proba: Annotated[bool, Option("--proba", help="Add the probability of each class.")] = False,
    keep: Annotated[list[str] | None, Option(metavar="COLUMN", help="Copy a column, such as an identifier.")] = None,
    folder: Folder = HERE,
    passphrase_file: PassphraseFile = None,
    as_json: AsJson = False,
) -> None:
    """Predict a table of any length. Nothing leaves: no network, no analyst.

    Example: datacollab party predict new.csv -o predictions.csv --keep id -C hospital-a
    """
    with reported(as_json, unchanged=f"{output} was not written.") as report:
        n_rows = _opened(folder, passphrase_file).predict(table, output, proba=proba, keep=keep or ())
        report.facts = {"predictions": str(output), "n_rows": n_rows}
        report.line(f"{output}: {n_rows} predictions")


@app.command("evaluate")
def evaluate(
    table: Table,
    folder: Folder = HERE,
    passphrase_file: PassphraseFile = None,
    as_json: AsJson = False,
) -> None:
    """Hold predictions against known targets, at home.

    Example: datacollab party evaluate known.csv -C hospital-a
    """
    with reported(as_json) as report:
        report.facts = _opened(folder, passphrase_file).evaluate(table)
        _show_scores(report.facts, report)


def _opened(folder: Path, passphrase_file: Path | None) -> PartyFolder:
    from ..party_folder import PartyFolder

    return PartyFolder(folder, passphrase=passphrase_for(folder, passphrase_file))


def _says_yes(report: Report) -> bool:
    if report.as_json or not sys.stdin.isatty():
        return False
    report.line()
    return bool(typer.confirm("May this leave for the analyst?", err=True))


def _login_name() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):
        return "unknown"


def _show_scores(scores: dict[str, Any], report: Report) -> None:
    report.line(f"{scores['n_rows']} rows, target {scores['target']}; intervals of 95 %")
    if not scores["n_rows"]:
        return
    if scores["task"] == "classification":
        report.line(f"  accuracy           {_figure(scores, 'accuracy', 3)}")
        report.line(f"  balanced accuracy  {_figure(scores, 'balanced_accuracy', 3)}")
        _show_confusion(scores, report)
    else:
        unit = f" {scores['unit']}" if scores["unit"] else ""
        report.line(f"  root mean squared error  {_figure(scores, 'rmse')}{unit}")
        report.line(f"  mean absolute error      {_figure(scores, 'mae')}{unit}")
        report.line(f"  R2                       {_figure(scores, 'r2', 3)}")


def _show_confusion(scores: dict[str, Any], report: Report) -> None:
    classes = [str(name) for name in scores["classes"]]
    if len(classes) > 12:
        report.line("  --json lists how often each class was taken for each.")
        return
    width = max(map(len, [*classes, *(str(count) for row in scores["confusion"] for count in row)])) + 2
    report.line("  true classes in rows, predicted ones in columns:")
    report.line(f"  {'':>{width}}" + "".join(f"{name:>{width}}" for name in classes))
    for name, row in zip(classes, scores["confusion"], strict=True):
        report.line(f"  {name:>{width}}" + "".join(f"{count:>{width}}" for count in row))


def _figure(scores: dict[str, Any], name: str, digits: int = 4) -> str:
    """A figure with its interval, where there is one."""
    if scores[name] is None:
        return "none"
    interval = scores.get(f"{name}_interval")
    if name in ("rmse", "mae"):
        text = [f"{value:.{digits}g}" for value in (scores[name], *(interval or ()))]
    else:
        text = [f"{value:.{digits}f}" for value in (scores[name], *(interval or ()))]
    return text[0] + (f"  ({text[1]} to {text[2]})" if interval else "")
