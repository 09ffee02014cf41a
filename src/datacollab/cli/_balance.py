"""``datacollab party balance`` and ``analyst balance``: whether arms are alike in raw columns."""

from __future__ import annotations

import getpass
import io
import math
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Option

from ._output import Report, reported
from ._party_options import HERE, AsJson, File, Folder
from ._passphrase import PassphraseFile, passphrase_for
from ._remote_next import sending

if TYPE_CHECKING:
    from ..exchange.party_folder import BalanceRelease

__all__ = ["analyst_balance", "party_balance"]

_Files = partial(typer.Argument, exists=True, dir_okay=False)


def party_balance(
    propensity: Annotated[Path, File(help="The .dcpropensity file that the analyst sent.")],
    approve: Annotated[bool, Option("--approve", help="Do not ask; you have looked at what leaves.")] = False,
    approved_by: Annotated[
        str | None, Option(metavar="NAME", help="Who approves; it leaves too. Default: who is logged in.")
    ] = None,
    folder: Folder = HERE,
    passphrase_file: PassphraseFile = None,
    as_json: AsJson = False,
) -> None:
    """Add up the shared rows by arm, show what would leave, ask, and put the sums into the outbox. Once.

    By them the analyst compares treated and untreated rows in raw columns. Nothing is sent: you send the file.

    Example: datacollab party balance hospital-a.dcpropensity -C hospital-a
    """
    with reported(as_json, unchanged=f"Look into {folder / 'outbox'} for what was made.") as report:
        from ..exchange.party_folder import PartyFolder

        opened = PartyFolder(folder, passphrase=passphrase_for(folder, passphrase_file))

        def ask(release: BalanceRelease) -> str | None:
            report.facts |= {"release": release.to_dict()}
            report.line(release.to_text())
            return (approved_by or _login_name()) if approve or _says_yes(report) else None

        file = opened.balance(propensity, approve=ask)
        report.facts |= {"sums": str(file), "bytes": file.stat().st_size}
        report.line()
        report.line(f"{file}: {file.stat().st_size:,} bytes. {sending(folder, 'the analyst')}")


def analyst_balance(
    sums: Annotated[list[Path], _Files(help="The .dcbalance files that parties sent.")],
    figure: Annotated[
        Path | None, Option(dir_okay=False, metavar="FILE", help="Draw it too: PNG, PDF or SVG, by its name.")
    ] = None,
    folder: Annotated[Path, Option("--folder", "-C", metavar="DIR", help="The analyst's folder.")] = HERE,
    passphrase_file: PassphraseFile = None,
    as_json: AsJson = False,
) -> None:
    """Add up the parties' sums, and say how alike the arms are before and after weighting.

    Writes balance.json into the folder.

    Example: datacollab analyst balance *.dcbalance --figure balance.png -C analyst
    """
    if figure is not None and figure.suffix.lower() not in (".png", ".pdf", ".svg"):
        raise typer.BadParameter("A figure ends in .png, .pdf or .svg.", param_hint="--figure")
    with reported(as_json) as report:
        from ..bundle import write_atomically
        from ..exchange.analyst_folder import BALANCE_FILE, AnalystFolder, balance_of

        found = balance_of(AnalystFolder(folder, passphrase=passphrase_for(folder, passphrase_file)), sums)
        written = [folder / BALANCE_FILE]
        if figure is not None:
            drawn, drawing = io.BytesIO(), found.love_plot().figure
            drawing.savefig(drawn, format=figure.suffix.lower()[1:], dpi=144)  # type: ignore[union-attr]
            write_atomically(figure, drawn.getvalue(), mode=0o600)
            written.append(figure)
        report.facts = found.to_dict() | {"written": [str(file) for file in written]}
        for each in report.facts["columns"].values():
            # Infinite where each arm has a value of its own.
            each |= {name: None for name, value in each.items() if not math.isfinite(value)}
        parties = ", ".join(map(str, found.parties))
        report.line(f"{found.n_untreated} untreated rows and {found.n_treated} treated ones of {parties},")
        report.line(
            f"weighted as good as {found.effective_untreated:.0f} and {found.effective_treated:.0f}. Difference of "
            f"means in standard deviations ({found.target}); below 0.1 is commonly called balance:"
        )
        report.line(found.to_text())
        if found.of_means:
            report.line(
                "warning: shares are means of rows, and a propensity of means is steeper than that of rows: what is "
                "left after weighting may be more than the estimate rests on, and says nothing against it. Go by the "
                "differences before weighting."
            )
        if found.n_truncated:
            report.line(
                f"Weights of {found.n_truncated} rows were brought in, so that no sum rests on few of them: what is "
                "left after weighting is more for it than the estimate rests on."
            )
        if found.coarse:
            report.line(
                f"warning: {', '.join(found.coarse)} vary so little beside the anchor that rounded sums tell their "
                "differences by the tenth at best."
            )
        if found.lost:
            report.line(
                f"warning: less than 95% of {', '.join(found.lost)} reached you, so the effect is not fully "
                "adjusted for what treatment has to do with it."
            )
        report.line(f"Written: {', '.join(map(str, written))}")


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
