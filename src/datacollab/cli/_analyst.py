"""``datacollab analyst``: shares in, models out."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Option

from ._help import group
from ._options import PassphraseFile, passphrase_for
from ._output import Report, reported, show_ranking
from ._progress import shown_progress
from ._remote_next import sending

if TYPE_CHECKING:
    from ..exchange.analyst_folder import AnalystFolder, Integration, Score

__all__ = ["app"]

app = group("The analyst: take shares, align them, train a model, send it back.")

Folder = Annotated[Path, Option("--folder", "-C", metavar="DIR", help="The analyst's folder.")]
AsJson = Annotated[bool, Option("--json", help="Print one JSON object.")]
File = partial(typer.Argument, exists=True, dir_okay=False)
HERE = Path()
_MOST_SHOWN = 5
"""Candidates in the table; --json has all."""


@app.command("init")
def init(
    project: Annotated[Path, File(help="The signed project file.")],
    owner: Annotated[
        Path | None, Option(exists=True, dir_okay=False, help="The owner's public key, as you got it another way.")
    ] = None,
    folder: Folder = HERE,
    passphrase_file: PassphraseFile = None,
    as_json: AsJson = False,
) -> None:
    """Set up a folder for a project; it must hold the analyst's key.

    Example: datacollab analyst init project.toml -C analyst
    """
    with reported(as_json) as report:
        from ..bundle import PublicKey
        from ..exchange.analyst_folder import AnalystFolder

        known = None if owner is None else PublicKey.load(owner)
        opened = AnalystFolder.init(folder, project, owner=known, passphrase=passphrase_for(folder, passphrase_file))
        report.facts = {"project": opened.project.name, "project_digest": opened.project.digest}
        report.line(f"{folder}: project {opened.project.name}, {len(opened.project.parties)} parties.")
        if owner is None:
            owner_is, fingerprint = opened.project.owner.fingerprint, opened.project.fingerprint
            report.line(f"Its owner is {owner_is}, the project itself {fingerprint}: compare them by telephone.")


@app.command("add")
def add(
    shares: Annotated[list[Path], File(help="Files that parties sent.")],
    folder: Folder = HERE,
    passphrase_file: PassphraseFile = None,
    as_json: AsJson = False,
) -> None:
    """Check shares and keep them; none is kept unless all are in order.

    Example: datacollab analyst add hospital-a.dcshare hospital-b.dcshare -C analyst
    """
    with reported(as_json) as report:
        _add(_opened(folder, passphrase_file), shares, report)


@app.command("status")
def status(folder: Folder = HERE, passphrase_file: PassphraseFile = None, as_json: AsJson = False) -> None:
    """Who has shared, who is missing, and whether the project's quorum is met.

    Example: datacollab analyst status -C analyst
    """
    with reported(as_json) as report:
        opened = _opened(folder, passphrase_file)
        parties = opened.status()
        n_there = sum(each.created is not None for each in parties)
        report.facts = {
            "project": opened.project.name,
            "quorum": opened.project.quorum if opened.project.sharing is None else len(parties),
            "n_shares": n_there,
            "parties": [vars(each) for each in parties],
        }
        for each in parties:
            if each.created is None:
                report.line(f"  {each.party}: nothing yet")
            elif each.n_rows is None:
                sent = "; its model is in the outbox" if each.exported else ""
                report.line(f"  {each.party}: sums of {each.n_components} columns, {each.created}{sent}")
            else:
                sent = "; its model is in the outbox" if each.exported else ""
                report.line(f"  {each.party}: {each.n_rows} rows, {each.n_components} columns, {each.created}{sent}")
        wanted = opened.project.quorum if opened.project.sharing is None else len(parties)
        report.line(f"{n_there} of {len(parties)} parties have shared; {wanted} are wanted.")


@app.command("integrate")
def integrate(
    shares: Annotated[list[Path] | None, File(help="Shares to add first.")] = None,
    method: Annotated[str, Option(help="auto, kti, kti-cv, lti, lti-affine, gep, mpp, odc.")] = "auto",
    model: Annotated[
        str,
        Option(help="auto, random-forest, gradient-boosting, linear, perceptron; for times cox, survival-forest."),
    ] = "auto",
    components: Annotated[
        int | None, Option(min=1, help="Columns of the common space, for a named method. Default: as the widest share.")
    ] = None,
    alpha: Annotated[float | None, Option(min=0.0, help="Ridge penalty of kti. Default: 0.1.")] = None,
    clusters: Annotated[
        int | None, Option(min=2, help="How many, where a project has nothing to predict: by k-means.")
    ] = None,
    project: Annotated[Path | None, Option(exists=True, dir_okay=False, help="Set the folder up for it first.")] = None,
    folds: Annotated[int, Option(min=0, help="Of the cross-validation of a named model; 0: no score.")] = 5,
    budget: Annotated[
        float | None, Option(min=0, metavar="S", help="Seconds after which nothing more is tried.")
    ] = None,
    seed: Annotated[int | None, Option(help="For a repeatable model.")] = None,
    folder: Folder = HERE,
    passphrase_file: PassphraseFile = None,
    as_json: AsJson = False,
) -> None:
    """Align the shares and train one model on all of them.

    Tries methods and models, and takes what predicts best the parties' rows that it was not trained on. Each party
    gets, sealed, what the model says of its own rows left out. Sums are added up instead, once all are there.

    Example: datacollab analyst integrate *.dcshare --project project.toml -C analyst
    """
    with reported(as_json) as report:
        from ..exchange.analyst_folder import (
            METHODS,
            MODELS,
            SURVIVAL_MODELS,
            AnalystFolder,
            make_integrator,
            make_model,
        )

        models = tuple(dict.fromkeys((*MODELS, *SURVIVAL_MODELS)))
        for option, value, known in (("--method", method, METHODS), ("--model", model, models)):
            if value not in known:
                raise typer.BadParameter(f"{value!r} is none of {', '.join(known)}.", param_hint=option)
        if project is not None:
            AnalystFolder.init(folder, project, passphrase=passphrase_for(folder, passphrase_file))
        opened = _opened(folder, passphrase_file)
        if shares:
            _add(opened, shares, report)
        if opened.project.sharing is not None:
            if (method, model, components, alpha, clusters) != ("auto", "auto", None, None, None):
                raise typer.BadParameter(
                    "The project shares sums, of which there is one model. Leave out --method, --model, --components, "
                    "--alpha and --clusters."
                )
            _integrate_sums(opened, report)
            return
        received = [each.share for each in opened.shares()]
        opened.check_quorum(len(received))
        kind, of_means = opened.project.task.kind, not all(each.one_to_one for each in received)
        with shown_progress(quiet=as_json) as progress:
            result = opened.integrate(
                make_integrator(method, received, task=kind, n_components=components, alpha=alpha),
                make_model(model, kind, seed, of_means=of_means),
                n_clusters=clusters,
                n_folds=folds or None,
                random_state=0 if seed is None else seed,
                budget=budget,
                progress=lambda done, total, name: progress(f"{done + 1} of {total}: {name}", done / total),
            )
        report.facts |= result.facts()
        _show(result, report)
        missing = [party for party in opened.project.parties if party not in result.share_digests]
        if missing:
            report.line(f"Not among them: {', '.join(missing)}, who have not shared yet.")


@app.command("effect")
def effect(
    shares: Annotated[list[Path] | None, File(help="Shares to add first.")] = None,
    estimand: Annotated[str, Option(help="ATE, on average over all rows, or ATT, over the treated ones.")] = "ATE",
    method: Annotated[str, Option(help="auto, plr, aipw, ipw.")] = "auto",
    horizon: Annotated[
        float | None, Option(min=0, help="Of times to an event: when survival is compared, in their unit.")
    ] = None,
    trim: Annotated[
        float | None, Option(min=0.0, max=0.5, help="Leave out rows with scores this near to 0 or 1.")
    ] = None,
    components: Annotated[
        int | None, Option(min=1, help="Columns of the common space. Default: as the widest share.")
    ] = None,
    folds: Annotated[int, Option(min=2, help="Of rows left out of the models.")] = 5,
    seed: Annotated[int | None, Option(help="For repeatable folds.")] = None,
    folder: Folder = HERE,
    passphrase_file: PassphraseFile = None,
    as_json: AsJson = False,
) -> None:
    """Estimate the effect of the project's treatment from the shares, with an interval.

    Writes effect.json and effect.html into the folder; nothing goes back to the parties.

    Example: datacollab analyst effect -C analyst --estimand ATT
    """
    with reported(as_json) as report:
        from ..effects._estimate import METHODS, TARGETS
        from ..exchange.analyst_folder import EFFECT_FILES, effect_of

        for option, value, known in (
            ("--estimand", estimand, tuple(TARGETS)),
            ("--method", method, ("auto", *METHODS)),
        ):
            if value not in known:
                raise typer.BadParameter(f"{value!r} is none of {', '.join(known)}.", param_hint=option)
        opened = _opened(folder, passphrase_file)
        if shares:
            _add(opened, shares, report)
        found = effect_of(
            opened,
            n_components=components,
            target=estimand,
            method=method,
            horizon=horizon,
            trim=trim,
            folds=folds,
            random_state=0 if seed is None else seed,
        )
        written = [str(folder / name) for name in EFFECT_FILES]
        report.facts |= found.to_dict() | {"written": written}
        report.line(f"{opened.project.task.words}, {len(found.parties)} parties")
        report.line(found.to_text())
        report.line(f"{' and '.join(written)} say the same.")


@app.command("export")
def export(
    anchor_predictions: Annotated[
        bool,
        Option(
            "--anchor-predictions",
            help="Send predictions for the anchor in place of a model; parties distil one from them.",
        ),
    ] = False,
    allow_training_rows: Annotated[
        str | None,
        Option(metavar="NAME", help="Send a model that carries training rows; NAME answers for it, in the records."),
    ] = None,
    folder: Folder = HERE,
    passphrase_file: PassphraseFile = None,
    as_json: AsJson = False,
) -> None:
    """Write one signed model for each party into the outbox, or predictions for the anchor in its place.

    Example: datacollab analyst export -C analyst
    """
    with reported(as_json) as report:
        opened = _opened(folder, passphrase_file)
        if anchor_predictions and allow_training_rows:
            raise typer.BadParameter(
                "Anchor predictions carry no rows; leave --allow-training-rows out.", param_hint="--anchor-predictions"
            )
        written = opened.export(anchor_predictions=anchor_predictions, allow_training_rows=allow_training_rows)
        report.facts = {"anchor_predictions" if anchor_predictions else "models": [str(file) for file in written]}
        for file in written:
            report.line(f"{file}: {file.stat().st_size:,} bytes, for {file.stem} alone")
        report.line(sending(folder, "each party its own file", "Send {}."))


def _opened(folder: Path, passphrase_file: Path | None) -> AnalystFolder:
    from ..exchange.analyst_folder import AnalystFolder

    return AnalystFolder(folder, passphrase=passphrase_for(folder, passphrase_file))


def _add(opened: AnalystFolder, shares: list[Path], report: Report) -> None:
    if opened.project.sharing is not None:
        new = opened.add_sums(shares)
        report.facts["added"] = [each.party for each in new]
        for received in new:
            report.line(
                f"{received.party}: sums of {received.told.n_components} columns, signature and anchor in order"
            )
        return
    before = {each.party: each for each in opened.shares()}
    added = opened.add(shares)
    report.facts["added"] = [each.party for each in added]
    for each in added:
        rows, columns = each.share.representation.shape
        report.line(f"{each.party}: {rows} rows, {columns} columns, signature and anchor in order")
        replaced = before.get(each.party)
        if replaced is not None and replaced.digest != each.digest:
            report.line(
                f"  It takes the place of the share of {replaced.facts['created']}; integrate and export again."
            )


def _integrate_sums(opened: AnalystFolder, report: Report) -> None:
    result = opened.integrate_sums()
    report.facts |= result.facts()
    report.line(
        f"One model of the total of {result.n_parties} parties: about {result.n_rows} rows, {result.n_components} "
        f"columns, penalty {result.alpha:.3g}."
    )
    if result.class_counts:
        counts = ", ".join(f"{name} {count}" for name, count in result.class_counts.items())
        report.line(f"Rows of each class, with the noise: {counts}.")
    for name in result.rare:
        report.line(
            f"Of class {name!r} there are fewer than 10 rows in the total, and each may be told. Have the "
            "owner merge it with another."
        )
    report.line(f"Parties can compare the model's digest: {result.model_digest}")


def _show(result: Integration, report: Report) -> None:
    report.line(
        f"{result.method} with {result.n_components} components, {result.estimator} on {result.n_rows} rows of "
        f"{len(result.share_digests)} parties."
    )
    if result.selection is not None:
        report.line(f"Chosen by {result.selection.table(most=_MOST_SHOWN)}")
    report.line("How far the parties' anchors agree (1: wholly):")
    for party, value in result.concordance.items():
        report.line(f"  {party}: {value:.3f}")
    if result.score is not None:
        _show_score(result.score, report)
        if result.selection is not None and result.selection.caution:
            report.line(result.selection.caution)
    if any(result.n_repeated.values()):
        repeated = ", ".join(f"{number} of {party}" for party, number in result.n_repeated.items() if number)
        report.line(
            f"Rows that are there several times, as means of groups are: {repeated}. Single rows, which the parties "
            "will predict, vary more than means: expect a lower accuracy, or a larger error, than on rows left out."
        )
    if result.row_findings:
        report.line(
            f"The model carries training rows ({', '.join(result.row_findings)}): rows of all parties would reach each "
            "of them. `datacollab analyst export` refuses it; choose another --model."
        )


def _show_score(score: Score, report: Report) -> None:
    report.line(score.sentence())
    if score.ranking is not None:
        report.line(f"Probabilities of {score.ranking['positive']!r} on these rows (95 % interval):")
        show_ranking(score.ranking, report)
    if score.never_called:
        report.line(
            f"No row left out is called {' or '.join(map(repr, score.never_called))}, though there are such rows: "
            "another class is always likelier. Let the parties take the probabilities, and a threshold."
        )
