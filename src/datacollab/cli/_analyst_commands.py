"""``datacollab analyst``: shares in, models out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ..errors import AgreementError
from ..folder.step_table import ranking_rows
from ..steps.analyst import (
    EFFECT_FILES,
    ROUND_FILE,
    STUDY_FILES,
    AnalystFolder,
    SumsIntegration,
    effect_of,
)
from ._command import WorkFolder, load_key, sending
from ._output import Report, show_rows
from ._progress import shown_progress
from ._remote_commands import follow_rounds

if TYPE_CHECKING:
    from ..steps.analyst import Integration, Score

_MOST_SHOWN = 5
"""Candidates in the table; --json has all."""
_OF_ANY = ("budget", "random_state")
"""Options of `integrate` that a project of sums leaves aside."""


def init(report: Report, folder: WorkFolder, project: Path, owner: Path | None) -> None:
    """Set up the folder, and name the fingerprints to compare."""
    agreed = AnalystFolder.init(folder.path, project, owner=load_key(owner), passphrase=folder.passphrase).project
    report.facts = {"project": agreed.name, "project_digest": agreed.digest}
    report.line(f"{folder.path}: project {agreed.name}, {len(agreed.parties)} parties.")
    if owner is None:
        report.line(
            f"Its owner is {agreed.owner.fingerprint}, the project itself {agreed.fingerprint}: compare them by "
            "telephone."
        )


def add(report: Report, folder: WorkFolder, files: list[Path]) -> None:
    """Add shares, and list them."""
    _add(folder.analyst(), files, report)


def status(report: Report, folder: WorkFolder) -> None:
    """List the parties."""
    opened = folder.analyst()
    parties = opened.status()
    quorum = opened.quorum
    n_there = sum(each["created"] is not None for each in parties)
    report.facts = {"project": opened.project.name, "quorum": quorum, "n_shares": n_there, "parties": parties}
    for each in parties:
        if each["created"] is None:
            report.line(f"  {each['party']}: nothing taken in yet")
            continue
        sent = "; its model is in the outbox" if each["exported"] else ""
        contents = opened.way.describe(each["n_rows"], each["n_components"])
        report.line(f"  {each['party']}: {contents}, {each['created']}{sent}")
    report.line(f"{n_there} of {len(parties)} parties have shared; {quorum} are needed.")


def integrate(
    report: Report, folder: WorkFolder, files: list[Path] | None, project: Path | None, n_folds: int, **options: Any
) -> None:
    """Set up the folder and add files if any are named, integrate, and show the model."""
    if project is not None:
        AnalystFolder.init(folder.path, project, passphrase=folder.passphrase)
    opened = folder.analyst()
    if files:
        _add(opened, files, report)
    # Options for rows would be ignored without a word, and somebody may rely on them.
    if opened.project.shares_sums and any(
        value not in (None, "auto") for name, value in options.items() if name not in _OF_ANY
    ):
        raise typer.BadParameter(
            "The project shares sums, and one model is made of them. Leave out --method, --model, --components, "
            "--alpha and --clusters."
        )
    with shown_progress(quiet=report.as_json) as progress:
        result = opened.integrate(
            n_folds=n_folds or None,
            progress=lambda done, total, name: progress(f"{done + 1} of {total}: {name}", done / total),
            **options,
        )
    report.facts |= result.facts()
    if isinstance(result, SumsIntegration):
        _show_sums(result, folder.path, report)
        return
    _show(result, report)
    if missing := [party for party in opened.project.parties if party not in result.share_digests]:
        report.line(f"Not among them: {', '.join(missing)}, who have not shared yet.")


def effect(
    report: Report, folder: WorkFolder, files: list[Path] | None, random_state: int | None, **options: Any
) -> None:
    """Add files if any are named, estimate the effect, and show it."""
    opened = folder.analyst()
    if files:
        _add(opened, files, report)
    with shown_progress(quiet=report.as_json, first="estimating the effect"):
        found = effect_of(opened, random_state=random_state or 0, **options)
    written = [str(folder.path / name) for name in EFFECT_FILES]
    report.facts |= found.to_dict() | {"written": written}
    report.line(f"{opened.project.task.words}, {len(found.parties)} parties")
    report.line(found.to_text())
    report.line(f"{' and '.join(written)} say the same.")


def follow(report: Report, folder: WorkFolder, remote: str | None) -> None:
    """Take files as they come, and ask for each further round, until the results are there."""

    def take(inbox: Path) -> bool:
        opened = folder.analyst()
        # Files of rounds that are over stay in the inbox until the party's next one comes.
        known = {file.read_bytes() for file in (folder.path / "shares").glob("*.dcsum")}
        if files := [file for file in sorted(inbox.glob("*.dcsum")) if file.read_bytes() not in known]:
            _add(opened, files, report)
        if len(opened.shares()) < len(opened.project.parties):
            return False
        result = opened.integrate()
        assert isinstance(result, SumsIntegration)
        report.facts = result.facts()
        _show_sums(result, folder.path, report)
        return not result.asks_again

    if not folder.analyst().project.is_study:
        raise AgreementError(
            "Only studies have rounds. Use `datacollab remote pull`, then `datacollab analyst integrate`."
        )
    follow_rounds(report, folder, remote, take)


def export(report: Report, folder: WorkFolder, anchor_predictions: bool) -> None:
    """Write the files, and say for whom each is."""
    opened = folder.analyst()
    with shown_progress(quiet=report.as_json, steps=len(opened.project.parties), first="writing") as progress:
        written = opened.export(anchor_predictions=anchor_predictions, progress=lambda party: progress(f"for {party}"))
    kind = "anchor_predictions" if anchor_predictions else "models"
    report.facts = {kind: [str(file) for file in written]}
    for file in written:
        report.line(f"{file}: {file.stat().st_size:,} bytes, for {file.stem} alone")
    report.line(sending(folder.path, "each party its own file", "Send {}."))


def _add(opened: AnalystFolder, files: list[Path], report: Report) -> None:
    before = {each.party: each for each in opened.shares()}
    added = opened.add(files)
    checked = "signature and anchor" if opened.project.has_anchor else "signature"
    report.facts["added"] = [each.party for each in added]
    for each in added:
        contents = opened.way.describe(each.facts.get("n_rows"), each.facts["n_components"])
        report.line(f"{each.party}: {contents}, {checked} in order")
        replaced = before.get(each.party)
        # A party may send the same file twice; only another one makes the model out of date.
        if replaced is not None and replaced.digest != each.digest:
            report.line(
                f"  It takes the place of the share of {replaced.facts['created']}; integrate and export again."
            )


def _show_study(result: SumsIntegration, path: Path, report: Report) -> None:
    rows = "" if result.n_rows is None else f": about {result.n_rows} rows"
    report.line(f"A total of {result.n_parties} parties{rows}. A study makes no model.")
    for name, statistic in result.results.items():
        heads, entries, note, *_ = statistic.table()
        report.line(f"\n{name.capitalize()}. {note}")
        widths = [max(map(len, column)) for column in zip(heads, *entries, strict=True)]
        for line in (heads, *entries):
            cells = "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))
            report.line(f"  {cells}".rstrip())
    for caution in result.cautions:
        report.line(f"\nLook here first. {caution}")
    if result.asks_again:
        report.line(f"\n{path / 'outbox' / ROUND_FILE}: {sending(path, 'all parties')}")
        return
    report.line(f"\n{' and '.join(str(path / name) for name in STUDY_FILES)} say the same.")


def _show_sums(result: SumsIntegration, path: Path, report: Report) -> None:
    has_model = result.alpha is not None
    if not has_model:
        _show_study(result, path, report)
    else:
        report.line(
            f"One model of the total of {result.n_parties} parties: about {result.n_rows} rows, {result.n_components} "
            f"columns, penalty {result.alpha:.3g}."
        )
    if result.most_rows is None and result.n_rows is not None:
        # Nothing else shows that a party has added more rows than it has.
        report.line("The project says no most_rows: ask each party how many rows it added, and compare their sum.")
    if result.class_counts:
        counts = ", ".join(f"{name} {count}" for name, count in result.class_counts.items())
        report.line(f"Rows of each class, with the noise: {counts}.")
    for name in result.rare:
        advice = "Ask the parties before you export: ledgers refuse a second model of the same rows, merged or not."
        count = "has"
        if not has_model:
            # Its counts carry noise, so one near the bound may be either side of it.
            count = "may have"
            advice = f"Have the owner {_how_to_merge(name)}."
        report.line(f"{name!r} {count} fewer than 10 rows in the total, and each may be recognised. {advice}")
    for name in result.constant:
        report.line(
            f"The total says hardly more of {name!r} than its share of rows, and probabilities differ little from it: "
            "it has too few rows for the noise, or nothing to do with the columns. Have the owner ask for more of them."
        )
    if result.model_digest is not None:
        report.line(f"Parties can compare the model's digest: {result.model_digest}")


def _how_to_merge(name: str) -> str:
    if name.endswith("=other"):
        return 'write unknown = "refuse" at the column, if all categories are in the project'
    return 'merge it with another: a class in the table [task.merged] of the project, a category as "other"'


def _show(result: Integration, report: Report) -> None:
    report.line(
        f"{result.method} with {result.n_components} components, {result.estimator} on {result.n_rows} rows of "
        f"{len(result.share_digests)} parties."
    )
    if result.selection is not None:
        report.line(f"Chosen by {result.selection.table(most=_MOST_SHOWN)}")
    # A party that has another anchor, or a map that lost much, stands out here.
    report.line("How far the parties' anchors agree (1: wholly):")
    for party, value in result.concordance.items():
        report.line(f"  {party}: {value:.3f}")
    if result.score is not None:
        _show_score(result.score, report)
        if result.selection is not None and result.selection.caution:
            report.line(result.selection.caution)
    if repeated := ", ".join(f"{number} of {party}" for party, number in result.n_repeated.items() if number):
        # Folds that hold copies of one mean flatter the model.
        report.line(
            f"Rows that are there several times, as means of groups are: {repeated}. Single rows, which the parties "
            "will predict, vary more than means: expect a lower accuracy, or a larger error, than on rows left out."
        )
    # Forests and neighbours, for example, hold rows as they were.
    if result.row_findings:
        report.line(
            f"The model carries training rows ({', '.join(result.row_findings)}): rows of all parties would reach each "
            "of them. `datacollab analyst export` refuses it; choose another --model."
        )


def _show_score(score: Score, report: Report) -> None:
    report.line(score.sentence())
    if score.ranking is not None:
        report.line(f"Probabilities of {score.ranking['positive']!r} on these rows (95 % interval):")
        show_rows(ranking_rows(score.ranking), report)
    # A rare class: the likeliest one is always another.
    if score.never_called:
        report.line(
            f"No row left out is called {' or '.join(map(repr, score.never_called))}, though there are such rows: "
            "another class is always likelier. Let the parties take the probabilities, and a threshold."
        )
