"""``datacollab party distil`` and ``forget``: a model of one's own from anchor predictions, and no map any more."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from typer import Option

from ..errors import ExchangeError
from ._options import PassphraseFile, passphrase_for
from ._output import reported
from ._party_options import HERE, AsJson, File, Folder

__all__ = ["distil", "forget"]


def distil(
    answers: Annotated[Path, File(help="The anchor predictions that the analyst sent.")],
    tree: Annotated[
        int | None,
        Option(min=1, max=20, metavar="DEPTH", help="Distil a decision tree, to be read. Default: ridge regression."),
    ] = None,
    folder: Folder = HERE,
    passphrase_file: PassphraseFile = None,
    as_json: AsJson = False,
) -> None:
    """Check the analyst's anchor predictions, and distil a model of your own.

    It takes your columns as they are, and needs no secret map: `datacollab party forget` may follow.

    Example: datacollab party distil hospital-a.dcanswers -C hospital-a
    """
    with reported(as_json) as report:
        from ..exchange.party_folder import PartyFolder

        opened = PartyFolder(folder, passphrase=passphrase_for(folder, passphrase_file))
        facts = opened.distil(answers, tree=tree)
        names = ("party", "project", "method", "estimator", "n_parties", "n_rows", "n_anchors", "created")
        report.facts = {name: facts.get(name) for name in (*names, "r2", "agreement", "remoteness", "tree")}
        report.line(
            f"Distilled from {facts['n_anchors']} predictions of a model over {facts.get('n_rows')} rows of "
            f"{facts.get('n_parties')} parties."
        )
        report.line(f"Of what they vary by, {facts['r2']:.1%} is met on anchor rows left out.")
        if facts["agreement"] is not None:
            report.line(f"{facts['agreement']:.1%} of these get the predicted class.")
        if facts["remoteness"] is not None:
            report.line(
                f"The nearest anchor row is {facts['remoteness']:.2f} times as far from a row of yours as the nearest "
                "other one of yours; 1 is as it should be."
            )
        if facts["tree"] is not None:
            report.line(facts["tree"].rstrip())


def forget(
    yes: Annotated[bool, Option("--yes", help="Do not ask.")] = False,
    folder: Folder = HERE,
    passphrase_file: PassphraseFile = None,
    as_json: AsJson = False,
) -> None:
    """Destroy the secret map, and all that was made by it: nothing brings it back.

    Your rows in this folder, which row was shared where, the share in the outbox and the installed model go with it.
    What was distilled from anchor predictions stays. Backups, and what was sent, are not reached.

    Example: datacollab party forget -C hospital-a
    """
    with reported(as_json, unchanged="Nothing was destroyed.") as report:
        from ..exchange.party_folder import PartyFolder

        opened = PartyFolder(folder, passphrase=passphrase_for(folder, passphrase_file))
        if not (yes or _says_yes(as_json)):
            raise ExchangeError(
                "NOT_APPROVED",
                f"Nobody has said that party {opened.name!r} is to forget; nothing was destroyed. Run the command "
                "again with --yes.",
            )
        opened.forget()
        report.facts = {"party": opened.name, "project": opened.project.name, "forgotten": True}
        report.line(f"Party {opened.name} has forgotten its map. It can share no more from this folder.")
        report.line("Not reached: backups, copies, what a disk keeps of old blocks, and what was sent.")


def _says_yes(as_json: bool) -> bool:
    if as_json or not sys.stdin.isatty():
        return False
    return bool(typer.confirm("Is the map to be destroyed for good?", err=True))
