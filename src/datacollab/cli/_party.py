"""``datacollab party``: join, look at what would leave, share once, install a model, predict at home."""

from __future__ import annotations

import getpass
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Option

from ..errors import ExchangeError
from ._distilling import distil, forget
from ._explaining import explain
from ._help import group
from ._options import PassphraseFile, passphrase_for
from ._output import Report, reported, show_adjusted, show_details, show_scores
from ._party_options import (
    HERE,
    AsJson,
    Audit,
    Collaboration,
    Combined,
    Components,
    Details,
    Distilled,
    Epsilon,
    File,
    FitOnAnchor,
    Folder,
    GroupSize,
    Local,
    Noise,
    Obfuscator,
    Preset,
    Standardize,
    Table,
    TimeBudget,
)
from ._progress import shown_progress
from ._release import check
from ._remote_next import sending

if TYPE_CHECKING:
    from ..exchange.party_folder import PartyFolder, ReleaseSummary

__all__ = ["app"]

app = group("A party: share once, then predict at home.")
app.command("check")(check)
app.command("distil")(distil)
app.command("forget")(forget)
app.command("explain")(explain)


@app.command("join")
def join(
    project: Annotated[Path, File(help="The project file, signed by its owner.")],
    anchor: Annotated[Path | None, File(help="The sealed anchor; if it comes later, join again with it.")] = None,
    owner: Annotated[
        Path | None, Option(exists=True, dir_okay=False, help="The owner's public key, as you got it another way.")
    ] = None,
    folder: Folder = HERE,
    passphrase_file: PassphraseFile = None,
    as_json: AsJson = False,
) -> None:
    """Set up a folder that holds the party's keys; its name in the project follows from the key.

    Example: datacollab party join project.toml anchor.dcanchor -C hospital-a
    """
    with reported(as_json) as report:
        from ..bundle import PublicKey
        from ..exchange.party_folder import PartyFolder

        known = None if owner is None else PublicKey.load(owner)
        joined = PartyFolder.join(
            folder, project, anchor, owner=known, passphrase=passphrase_for(folder, passphrase_file)
        )
        report.facts = {
            "party": joined.name,
            "project": joined.project.name,
            "project_digest": joined.project.digest,
            "project_fingerprint": joined.project.fingerprint,
            "owner": joined.project.owner.fingerprint,
            "analyst": joined.project.analyst.fingerprint,
            "anchor": anchor is not None,
        }
        report.line(f"{folder}: party {joined.name} of project {joined.project.name}.")
        if owner is None:
            report.line(f"Owner {joined.project.owner.fingerprint}, analyst {joined.project.analyst.fingerprint},")
            report.line(f"project {joined.project.fingerprint}: compare them with the owner by telephone.")
        report.line(f"What may leave is up to you: look at {folder / 'policy.toml'}.")
        if anchor is None:
            report.line("The anchor is missing; join again with it before you share.")


@app.command("share")
def share(
    table: Table,
    obfuscator: Obfuscator = None,
    components: Components = None,
    preset: Preset = None,
    standardize: Standardize = True,
    epsilon: Epsilon = None,
    group_size: GroupSize = None,
    noise: Noise = None,
    fit_on_anchor: FitOnAnchor = False,
    audit: Audit = True,
    time_budget: TimeBudget = None,
    approve: Annotated[bool, Option("--approve", help="Do not ask; you have looked at what leaves.")] = False,
    approved_by: Annotated[
        str | None, Option(metavar="NAME", help="Who approves; it leaves too. Default: who is logged in.")
    ] = None,
    undefended: Annotated[
        bool, Option("--undefended", help="Needed with --preset none: your rows themselves leave.")
    ] = False,
    again: Annotated[
        bool, Option("--again", help="Replace a share made before; two tell more than one, and need a new model.")
    ] = False,
    withdrawal: Annotated[
        list[Path] | None, File(help="Of a party that left an earlier run of sums. Repeatable.")
    ] = None,
    without: Annotated[
        list[str] | None,
        Option(metavar="PARTY", help="It left an earlier run, and sent nothing, you say. Repeatable."),
    ] = None,
    details: Details = False,
    folder: Folder = HERE,
    passphrase_file: PassphraseFile = None,
    as_json: AsJson = False,
) -> None:
    """Obfuscate the table, show what would leave, ask, and put the file into the outbox.

    Nothing is sent: you send the file. Without --approve the command asks, and outside a terminal it refuses. If the
    project shares sums, they are added up under masks, once; afterwards the same file is put there again.

    Example: datacollab party share patients.csv -C hospital-a
    """
    with reported(as_json, unchanged="Nothing left the party.") as report:
        from ..exchange.party_folder import SumsSummary

        opened = _opened(folder, passphrase_file)
        approver = approved_by or _login_name()
        with _told_whether_shared(opened, report), ExitStack() as stack:
            progress = stack.enter_context(shown_progress(quiet=as_json))

            def ask(summary: ReleaseSummary | SumsSummary) -> str | None:
                stack.close()
                report.facts |= {"summary": summary.to_dict()}
                report.line(summary.to_text())
                show_details(summary.adjusted, report, details=details)
                return approver if approve or _says_yes(report) else None

            file = opened.share(
                table,
                approve=ask,
                again=again,
                undefended=undefended,
                withdrawals=withdrawal or (),
                without=without or (),
                obfuscator=obfuscator,
                n_components=components,
                preset=preset,
                standardize=standardize,
                epsilon=epsilon,
                group_size=group_size,
                noise=noise,
                fit_on_anchor=fit_on_anchor,
                audit=audit,
                time_budget=time_budget,
                progress=progress,
            )
        report.facts |= {"share": str(file), "bytes": file.stat().st_size}
        report.line()
        size = file.stat().st_size
        asked = "summary" in report.facts
        who = f"approved by {approver}" if asked else "as it was released before; nothing was computed"
        report.line(f"{file}: {size:,} bytes, {who}. {sending(folder, 'the analyst')}")
        report.line(
            "Keep this folder: only it can predict with the model that comes back. It is as sensitive as the table."
        )


@app.command("withdraw")
def withdraw(folder: Folder = HERE, passphrase_file: PassphraseFile = None, as_json: AsJson = False) -> None:
    """Leave a run of sums for good, and write a signed word of that for the other parties.

    They share anew without you in a new run. A file that you have sent is out of reach: ask the analyst to delete it.

    Example: datacollab party withdraw -C hospital-a
    """
    with reported(as_json) as report:
        file = _opened(folder, passphrase_file).withdraw()
        report.facts = {"withdrawal": str(file)}
        report.line(f"{file}: send it to the other parties. This folder shares nothing in this run any more.")


@app.command("install")
def install(
    model: Annotated[Path, File(help="The model that the analyst sent.")],
    older: Annotated[
        bool, Option("--older", help="Also in place of a later model that was made from the same share.")
    ] = False,
    public: Annotated[
        Path | None,
        Option(
            exists=True, dir_okay=False, metavar="FILE", help="Public rows you have besides. Default: the anchor's."
        ),
    ] = None,
    seed: Annotated[int | None, Option(help="For repeatable models of your own.")] = None,
    folder: Folder = HERE,
    passphrase_file: PassphraseFile = None,
    as_json: AsJson = False,
) -> None:
    """Check the analyst's model, try it, pool it with what you have alone, and install it.

    Trains models on your own rows and public ones, here, and says what collaboration brought beside these.

    Example: datacollab party install hospital-a.dcmodel -C hospital-a
    """
    with reported(as_json) as report:
        opened = _opened(folder, passphrase_file)
        with shown_progress(quiet=as_json) as progress:
            facts = opened.install(model, older=older, public=public, random_state=seed, progress=progress)
        names = ("party", "project", "method", "n_components", "estimator", "n_parties", "n_rows", "created")
        digest = facts.get("model_digest")
        report.facts = {name: facts.get(name) for name in (*names, "benefit", "sentence", "model_digest")}
        report.line(
            f"Installed: {facts.get('estimator')} over {facts.get('n_rows')} rows of {facts.get('n_parties')} parties, "
            "signed by the project's analyst."
        )
        report.line(facts["sentence"])
        if digest is not None:
            report.line(f"Compare the model's digest with other parties: all have to have the same. {digest}")


@app.command("predict")
def predict(
    table: Table,
    output: Annotated[
        Path, Option("--output", "-o", metavar="FILE", help="File to write: CSV, Parquet or Arrow, by its name.")
    ],
    proba: Annotated[bool, Option("--proba", help="Add the probability of each class.")] = False,
    keep: Annotated[list[str] | None, Option(metavar="COLUMN", help="Copy a column, such as an identifier.")] = None,
    force: Annotated[bool, Option("--force", help="Overwrite a file that holds something else.")] = False,
    combined: Combined = False,
    local: Local = False,
    collaboration: Collaboration = False,
    distilled: Distilled = False,
    details: Details = False,
    folder: Folder = HERE,
    passphrase_file: PassphraseFile = None,
    as_json: AsJson = False,
) -> None:
    """Predict a table of any length. Nothing leaves: no network, no analyst.

    Example: datacollab party predict new.csv -o told.csv --keep id -C hospital-a
    """
    if output.exists() and output.samefile(table):
        raise typer.BadParameter(f"{output} is the table itself; name another file.", param_hint="--output")
    with reported(as_json, unchanged=f"{output} was not written.") as report:
        opened = _opened(folder, passphrase_file)
        if proba and opened.project.task.kind == "regression":
            raise typer.BadParameter("A regression has no classes, so no probabilities.", param_hint="--proba")
        if proba and opened.project.task.kind == "survival":
            raise typer.BadParameter("Probabilities of no event are there without it.", param_hint="--proba")
        told: list[dict[str, Any]] = []
        n_rows = opened.predict(
            table,
            output,
            using=_using(combined, local, collaboration, distilled),
            proba=proba,
            keep=keep or (),
            force=force,
            tell=lambda found: told.append(found.to_dict()),
        )
        report.facts = {"predictions": str(output), "n_rows": n_rows, "adjusted": told[0]}
        report.line(f"{output}: {n_rows} predictions")
        show_adjusted(told[0], report, details=details)


@app.command("evaluate")
def evaluate(
    table: Table,
    combined: Combined = False,
    local: Local = False,
    collaboration: Collaboration = False,
    distilled: Distilled = False,
    find: Annotated[
        float, Option(min=0.0, max=1.0, help="Of two classes, how much of the second a threshold is to find.")
    ] = 0.8,
    details: Details = False,
    folder: Folder = HERE,
    passphrase_file: PassphraseFile = None,
    as_json: AsJson = False,
) -> None:
    """Hold predictions against known targets, at home.

    Example: datacollab party evaluate known.csv -C hospital-a
    """
    with reported(as_json) as report:
        report.facts = _opened(folder, passphrase_file).evaluate(
            table, using=_using(combined, local, collaboration, distilled), find=find
        )
        show_scores(report.facts, report)
        show_adjusted(report.facts["adjusted"], report, details=details)


def _opened(folder: Path, passphrase_file: Path | None) -> PartyFolder:
    from ..exchange.party_folder import PartyFolder

    return PartyFolder(folder, passphrase=passphrase_for(folder, passphrase_file))


@contextmanager
def _told_whether_shared(opened: PartyFolder, report: Report) -> Iterator[None]:
    """After an interruption, look whether the share was made before it."""
    before = opened.shared()
    try:
        yield
    except KeyboardInterrupt:
        report.unchanged = _what_became(opened, before)
        raise


def _what_became(opened: PartyFolder, before: str | None) -> str:
    try:
        after = opened.shared()
    except (ExchangeError, OSError):
        return f"Whether the share was made is not known: look into {opened.outbox}."
    if after == before:
        return "Nothing left the party."
    return f"The share was made before that, and is whole in {opened.outbox}: send it to the analyst."


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


def _using(combined: bool, local: bool, collaboration: bool, distilled: bool) -> str | None:
    given = {"combined": combined, "local": local, "collaboration": collaboration, "distilled": distilled}
    chosen = [name for name, is_set in given.items() if is_set]
    if len(chosen) > 1:
        raise typer.BadParameter("Choose one.", param_hint=" / ".join(f"--{name}" for name in chosen))
    return chosen[0] if chosen else None
