"""``datacollab party check``: what would leave, and whether it may."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ..errors import ExchangeError
from ._options import PassphraseFile, passphrase_for
from ._output import Report, reported, show_details
from ._party_options import (
    HERE,
    AsJson,
    Audit,
    Components,
    Details,
    Epsilon,
    FitOnAnchor,
    Folder,
    GroupSize,
    Noise,
    Obfuscator,
    Preset,
    Standardize,
    Table,
    TimeBudget,
)
from ._progress import shown_progress
from ._tables import record_number_questions

if TYPE_CHECKING:
    from ..exchange.party_folder import PartyFolder

__all__ = ["check"]


def check(
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
    details: Details = False,
    folder: Folder = HERE,
    passphrase_file: PassphraseFile = None,
    as_json: AsJson = False,
) -> None:
    """Show exactly what `share` would let leave, and whether the policy allows it.

    Takes the same options as `share`, and writes nothing that leaves. Exits with 12
    where it may not leave; all reasons are named.

    Example: datacollab party check patients.csv -C hospital-a
    """
    reasons: list[ExchangeError] = []
    with reported(as_json) as report:
        opened = _opened(folder, passphrase_file)
        chosen: dict[str, Any] = {
            "obfuscator": obfuscator,
            "n_components": components,
            "preset": preset,
            "standardize": standardize,
            "epsilon": epsilon,
            "group_size": group_size,
            "noise": noise,
            "fit_on_anchor": fit_on_anchor,
        }
        if opened.project.sharing is not None:
            reasons = _checked_sums(opened, table, report, details=details, folder=folder)
        else:
            reasons = _checked_rows(
                opened,
                table,
                chosen,
                report,
                audit=audit,
                time_budget=time_budget,
                details=details,
                folder=folder,
            )
    for reason in reasons:
        typer.echo(f"datacollab: {reason.code}: {reason}", err=True)
    if reasons:
        raise typer.Exit(reasons[0].exit_code)


def _checked_rows(
    opened: PartyFolder,
    table: Path,
    chosen: dict[str, Any],
    report: Report,
    *,
    audit: bool,
    time_budget: float | None,
    details: bool,
    folder: Path,
) -> list[ExchangeError]:
    """Show what rows would leave; the reasons against it are returned."""
    from ..exchange.party_folder import deadline_passed
    from ..exchange.project import read_table

    with shown_progress(quiet=report.as_json) as progress:
        prepared = opened.prepare(
            table,
            **chosen,
            audit=audit,
            time_budget=time_budget,
            progress=progress,
        )
    reasons = [*deadline_passed(opened.project), *prepared.reasons]
    codes = [reason.code for reason in reasons]
    opened.record("check", file=table.name, way=prepared.plan.options, reasons=codes)
    shared_before = any(entry["event"] == "share" for entry in opened.log.entries())
    said = ("" if prepared.plan.defences else " --undefended") + (" --again" if shared_before else "")
    options = f"{prepared.plan.options} -C {_quoted(folder)} --approve{said}"
    command = f"datacollab party share {_quoted(table)} {options}"
    report.facts = {
        "summary": prepared.summary.to_dict(),
        "allowed": not reasons,
        "reasons": [{"code": reason.code, "message": str(reason)} for reason in reasons],
        "shared_before": shared_before,
        "command": command,
        **_error_of(reasons[0] if reasons else None),
    }
    report.line(prepared.summary.to_text())
    show_details(prepared.summary.adjusted, report, details=details)
    report.line()
    if not report.as_json:
        numbers = [column.name for column in opened.project.columns if column.kind == "number"]
        advice = "do not share: ask the project's owner to leave it out"
        for question in record_number_questions(read_table(table, project=opened.project), numbers, advice):
            report.line(question)
    if shared_before:
        report.line("The party has shared before. A second share of the same rows tells the analyst more.")
    if reasons:
        report.line("This may not be shared.")
    else:
        if prepared.summary.above_limits:
            defended = "" if prepared.plan.defences else " There is no defence; try --preset groups."
            report.line(f"Of what is above its limit, the policy only warns.{defended}")
        report.line("This may be shared. Whoever approves it runs:")
        report.line(f"  {command}")
    return reasons


def _checked_sums(
    opened: PartyFolder, table: Path, report: Report, *, details: bool, folder: Path
) -> list[ExchangeError]:
    """Show what sums would leave; the reasons against it are returned."""
    from ..exchange.party_folder import deadline_passed

    prepared = opened.prepare_sum(table)
    reasons = [*deadline_passed(opened.project), *prepared.reasons]
    opened.record("check", file=table.name, way="sums", reasons=[reason.code for reason in reasons])
    command = f"datacollab party share {_quoted(table)} -C {_quoted(folder)} --approve"
    report.facts = {
        "summary": prepared.summary.to_dict(),
        "allowed": not reasons,
        "reasons": [{"code": reason.code, "message": str(reason)} for reason in reasons],
        "command": command,
        **_error_of(reasons[0] if reasons else None),
    }
    report.line(prepared.summary.to_text())
    show_details(prepared.summary.adjusted, report, details=details)
    report.line()
    if reasons:
        report.line("This may not be shared.")
    else:
        report.line("This may be shared. Whoever approves it runs:")
        report.line(f"  {command}")
    return reasons


def _opened(folder: Path, passphrase_file: Path | None) -> PartyFolder:
    from ..exchange.party_folder import PartyFolder

    return PartyFolder(folder, passphrase=passphrase_for(folder, passphrase_file))


def _error_of(refusal: ExchangeError | None) -> dict[str, Any]:
    if refusal is None:
        return {}
    return {"error": {"code": refusal.code, "message": str(refusal)}}


def _quoted(path: Path) -> str:
    """A path as a shell takes it."""
    return shlex.quote(str(path))
