"""``datacollab party``: join, look before anything leaves, share once, install a model, predict at home."""

from __future__ import annotations

import getpass
import shlex
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ..agreement import Project, load_project, project_changes
from ..errors import ExchangeError
from ..folder.step_table import SIDES, STEPS, score_rows
from ..steps.party import ROUND_FILE, Explained, PartyFolder, SumsSummary, assessment, deadline_passed
from ..table import Query, Watched, column_questions, is_same_file, table_batches, unknown_levels
from ._command import WorkFolder, at_terminal, load_key, says_yes, sending
from ._output import Report, list_names, make_private_file, show_adjusted, show_rows
from ._progress import shown_progress
from ._remote_commands import follow_rounds

if TYPE_CHECKING:
    from ..steps.party import ReleaseSummary

_MOST_SHOWN = 10
"""Columns in the list of `explain`; the file and --json have all."""
_MOST_CLASSES = 12
"""Classes in the table of `evaluate`: more do not fit into a line; --json has all."""
_THRESHOLD = "Take the probabilities, or a threshold: predict --tested FILE --find 0.8."


def check(report: Report, folder: WorkFolder, table: Any, dpia: Path | None, show_levels: bool, **options: Any) -> None:
    """Show the share as it would be, and the reasons against it."""
    opened = folder.party()
    if dpia is not None and dpia.exists():
        raise typer.BadParameter(f"{dpia} is there already; name another file.", param_hint="--dpia")
    if show_levels:
        _show_levels(opened, table, report)
    with shown_progress(quiet=report.as_json) as progress:
        watched = Watched.of(table)
        prepared: Any = opened.prepare(watched, **options, progress=progress)
    reasons = [*deadline_passed(opened.project), *prepared.reasons]
    opened.record("check", file=table.name, way=prepared.options or "sums", reasons=[reason.code for reason in reasons])
    # Sums are shared once by their keys; rows can be shared again, which tells more than once.
    may_share_again = opened.way.may_share_again
    shared_before = may_share_again and any(entry["event"] == "share" for entry in opened.log.entries())
    command = _write_command(opened, prepared, table, shared_before)
    refusals = [{"code": reason.code, "message": str(reason)} for reason in reasons]
    report.facts = {"summary": prepared.summary.to_dict(), "allowed": not reasons, "reasons": refusals}
    if may_share_again:
        report.facts["shared_before"] = shared_before
    report.facts["command"] = command
    if refusals:
        report.facts["error"] = refusals[0]
    report.line(prepared.summary.to_text())
    show_adjusted(prepared.summary.adjusted, report, is_summarised=True)
    _show_unused(opened.project, watched.head, report)
    report.line()
    if dpia is not None:
        text = assessment(opened.project, opened.policy, prepared.summary)
        make_private_file(dpia).write_text(text, encoding="utf-8")
        report.line(f"{dpia}: a draft of an impact assessment. Fill in what stands in brackets.")
    _ask_about_numbers(opened.project, watched.head, report)
    if shared_before:
        report.line("The party has shared before. A second share of the same rows tells the analyst more.")
    if reasons:
        report.line("This may not be shared.")
        report.exit_code = reasons[0].exit_code
        for reason in reasons:
            typer.echo(f"datacollab: {reason.code}: {reason}", err=True)
        return
    if prepared.summary.above_limits:
        defended = " There is no defence; try --preset groups." if prepared.is_undefended else ""
        report.line(f"The policy only warns of figures above their limits.{defended}")
    report.line("This may be shared. To approve it, run:")
    report.line(f"  {command}")


def _ask_about_numbers(project: Project, table: Any, report: Report) -> None:
    """Ask about columns of numbers that may be none, as codes of wards: the model would take them as quantities."""
    numbers = [column.name for column in project.columns if column.kind == "number"]
    advice = "do not share: ask the project's owner to leave it out"
    if not report.as_json:
        for question in column_questions(table, numbers, advice):
            report.line(question)


def _write_command(opened: PartyFolder, prepared: Any, table: Any, shared_before: bool) -> str:
    """Return the command that shares the table as it was prepared."""
    command = f"datacollab party share {shlex.quote(str(table))}"
    if isinstance(table, Query):
        command = f"datacollab party share {shlex.quote(str(table.database))} --sql {shlex.quote(table.sql)}"
    if prepared.options:
        command += f" {prepared.options}"
    command += f" -C {shlex.quote(str(opened.path))} --approve"
    if prepared.is_undefended:
        command += " --undefended"
    if shared_before:
        command += " --again"
    return command + " --heard FINGERPRINT" * opened.n_unconfirmed()


def _list_unused(project: Project, table: Any) -> list[str]:
    """Return the columns of a table that the project does not have."""
    cluster = project.sharing and project.sharing.cluster
    known = {*(column.name for column in project.columns), *project.task.columns, cluster}
    return [name for name in table.columns if name not in known]


def _show_unused(project: Project, table: Any, report: Report) -> None:
    if unused := _list_unused(project, table):
        report.line(f"Columns not used: {list_names(unused)}")


def _show_levels(opened: PartyFolder, table: Any, report: Report) -> None:
    """List the party's own entries that are no agreed categories, on its screen and nowhere else."""
    counts: Counter[tuple[str, str, str]] = Counter()
    for batch in table_batches(table, schema=opened.project):
        for column, text, count, near in unknown_levels(opened.project, batch):
            counts[column, text, near] += count
    report.line("Entries that are no agreed categories. They are of your rows: send this list to nobody.")
    for (column, text, near), count in counts.most_common():
        nearest = f"; nearest: {near!r}" if near else ""
        report.line(f"  {column}: {text!r} in {count} rows{nearest}")
    report.line("  Write them as agreed, or ask the owner to add them." if counts else "  none")


def join(report: Report, folder: WorkFolder, project: Path, anchor: Path | None, owner: Path | None, yes: bool) -> None:
    """Set up the folder, and name the fingerprints to compare; changes of a revised project are asked about."""
    _ask_about_changes(report, folder, project, yes)
    folder.check_public_key()
    joined = PartyFolder.join(folder.path, project, anchor, owner=load_key(owner), passphrase=folder.passphrase)
    agreed = joined.project
    report.facts |= {
        "party": joined.name,
        "project": agreed.name,
        "project_digest": agreed.digest,
        "project_fingerprint": agreed.fingerprint,
        "owner": agreed.owner.fingerprint,
        "analyst": agreed.analyst.fingerprint,
        "anchor": anchor is not None,
    }
    report.line(f"{folder.path}: party {joined.name} of project {agreed.name}.")
    if owner is None:
        report.line("Nothing confirms yet that the file is the owner's.")
        report.line(f"Owner {agreed.owner.fingerprint}, analyst {agreed.analyst.fingerprint},")
        report.line(f"project {agreed.fingerprint}: compare them with the owner by telephone.")
        if agreed.shares_sums:
            report.line("`party share` also asks for fingerprints that two other institutions read out to you.")
    report.line(f"What may leave is up to you: look at {folder.path / 'policy.toml'}.")
    if anchor is None and agreed.has_anchor:
        report.line("The anchor is missing; join again with it before you share.")


def _ask_about_changes(report: Report, folder: WorkFolder, project: Path, yes: bool) -> None:
    there = folder.path / "project.toml"
    if not there.is_file():
        return
    before = load_project(there)
    after = load_project(project)
    members = [(each.owner, each.analyst) for each in (before, after)]
    # The same file, another project or an older one: nothing to agree to here.
    if before.digest == after.digest or members[0] != members[1] or after.revision < before.revision:
        return  # `PartyFolder.join` refuses what is no revision.
    changes = project_changes(before, after)
    report.facts |= {"changes": changes}
    report.line(f"The project was revised ({before.revision} to {after.revision}):")
    for line in changes:
        report.line(f"  {line}")
    if not (yes or says_yes("Join the revised project?", as_json=report.as_json)):
        raise ExchangeError(
            "NOT_APPROVED",
            f"{folder.path} stays with revision {before.revision}: nobody agreed to what changed "
            f"({list_names(changes)}). Run the command again with --yes.",
        )


def share(
    report: Report,
    folder: WorkFolder,
    table: Any,
    withdrawals: list[Path] | None,
    without: list[str] | None,
    heard: list[str] | None,
    approve: bool,
    approved_by: str | None,
    **options: Any,
) -> None:
    """Make the share, show it, ask, and say where the file is."""
    opened = folder.party()
    approver = approved_by or _login_name()
    is_round = options["round_file"] is not None
    n_left = opened.n_rounds_left if is_round else 0
    watched = Watched.of(table)
    with _tell_if_shared(opened, report), ExitStack() as stack:
        progress = stack.enter_context(shown_progress(quiet=report.as_json))

        def ask(summary: ReleaseSummary | SumsSummary) -> str | None:
            stack.close()  # The line of progress would overwrite the question.
            report.facts |= {"summary": summary.to_dict()}
            report.line(summary.to_text())
            show_adjusted(summary.adjusted, report, is_summarised=True)
            _show_unused(opened.project, watched.head, report)
            report.line()
            _ask_for_fingerprints(opened, report)
            if approve or says_yes(STEPS["party share"].asks, as_json=report.as_json):
                return approver
            return None

        options |= {"withdrawals": withdrawals or (), "without": without or (), "heard": heard or ()}
        file = opened.share(watched, approve=ask, progress=progress, **options)
    size = file.stat().st_size
    who = f"approved by {approver}"
    if is_round and opened.n_rounds_left < n_left:
        who = "approved with the first round"
    elif not report.facts:
        # Nobody was asked: the share of an interrupted or earlier run was found, and kept.
        who = "as it was"
        report.line(f"{opened.way.describe_share()} {table.name} was not added.")
    report.facts |= {"share": str(file), "bytes": size}
    report.line(f"{file}: {size:,} bytes, {who}. {sending(folder.path, 'the analyst')}")
    for line in opened.way.words_after_share():
        report.line(line)


def _ask_for_fingerprints(opened: PartyFolder, report: Report) -> None:
    """Ask the approver for fingerprints that other institutions read out, until enough are confirmed."""
    # An owner who invents parties could read a party's sums: their keys have to be other institutions' own.
    while (n_more := opened.n_unconfirmed()) and not report.as_json and at_terminal():
        typed = typer.prompt(f"Fingerprint that an institution read out to you ({n_more} to go)", err=True)
        try:
            report.line(f"This is the key of {opened.confirm([typed])[0]}.")
        except ExchangeError as error:
            # A typing error is answered, and asked about again.
            if error.code != "NOT_CONFIRMED":
                raise
            report.line(str(error))


def follow(report: Report, folder: WorkFolder, table: Any, remote: str | None) -> None:
    """Answer each further round as it comes; who said yes to the first one did so for all."""
    n_left = folder.party().n_rounds_left

    def answer(inbox: Path) -> bool:
        nonlocal n_left
        opened = folder.party()
        if (inbox / ROUND_FILE).is_file():
            # Nobody is here to be asked: a changed policy ends it.
            opened.share(table, approve=lambda summary: None, round_file=inbox / ROUND_FILE)
        if opened.n_rounds_left < n_left:
            n_left = opened.n_rounds_left
            report.line(f"A round was answered; {n_left} to go.")
        return n_left == 0

    follow_rounds(report, folder, remote, answer)
    report.facts = {"rounds_left": n_left}
    report.line("All rounds are answered. The analyst has the results.")


def withdraw(report: Report, folder: WorkFolder) -> None:
    """Withdraw, and say where the file is."""
    file = folder.party().withdraw()
    report.facts = {"withdrawal": str(file)}
    report.line(f"{file}: send it to the other parties. This folder shares nothing in this run any more.")


def install(report: Report, folder: WorkFolder, model: Path, **options: Any) -> None:
    """Install the model, and say how much collaboration brought."""
    opened = folder.party()
    with shown_progress(quiet=report.as_json) as progress:
        facts = opened.install(model, **options, progress=progress)
    # Facts that a program may rely on; the folder has more.
    names = ("party", "project", "method", "n_components", "estimator", "n_parties", "n_rows", "created")
    report.facts = {name: facts.get(name) for name in (*names, "benefit", "sentence", "model_digest")}
    report.line(
        f"Installed: {facts.get('estimator')} over {facts.get('n_rows')} rows of {facts.get('n_parties')} parties, "
        "signed by the project's analyst."
    )
    if (digest := facts.get("model_digest")) is not None:
        report.line(f"Compare the model's digest with other parties: all have to have the same. {digest}")
    report.line(facts["sentence"])


def predict(
    report: Report,
    folder: WorkFolder,
    table: Any,
    output: Path,
    tested: Path | None,
    find: float,
    keep: list[str] | None,
    **options: Any,
) -> None:
    """Predict, and say how many rows, and how many positives a threshold finds."""
    _check_another_file(output, table)
    opened = folder.party()
    threshold: dict[str, Any] | None = None
    least = None
    if tested is not None:
        threshold = opened.threshold(tested, using=options["using"], find=find)
        least = threshold["least"]
    adjusted: dict[str, Any] = {}
    called: Counter[Any] = Counter()
    task = opened.project.task
    is_new = not output.exists()
    watched = Watched.of(table)

    def look(frame: Any) -> None:
        # Of rare classes, no row may reach one half: with a threshold, that is looked after.
        if threshold is None and task.positive is not None and f"proba_{task.positive}" in frame:
            called.update(frame["prediction"].tolist())

    with shown_progress(quiet=report.as_json, first="predicting"):
        n_rows = opened.predict(
            watched,
            output,
            flag_from=least,
            keep=keep or (),
            tell=lambda found: adjusted.update(found.to_dict()),
            look=look,
            **options,
        )
    report.facts = {"predictions": str(output), "n_rows": n_rows, "threshold": threshold, "adjusted": adjusted}
    replaced = "" if is_new else "; the earlier file was replaced"
    report.line(f"{output}: {n_rows} predictions{replaced}")
    if opened.project.shares_sums and options["using"] in (None, "combined"):
        report.line(opened.sentence)
    if unused := [name for name in _list_unused(opened.project, watched.head) if name not in (keep or ())]:
        report.line(
            f"Columns not used: {list_names(unused)}. To copy one beside the predictions: --keep "
            f"{shlex.quote(unused[0])}"
        )
    # Predictions of a single class look like a broken model, and are what a rare class gives.
    if len(called) == 1:
        (one,) = called
        other = next(name for name in task.classes if name != one)
        report.line(f"Every row is called {one!r}, for no probability of {other!r} reaches one half. {_THRESHOLD}")
    if threshold is not None:
        low, high = threshold["reached"]
        report.line(
            f"Flagged from a probability of {threshold['positive']!r} of {threshold['least']:.3f} on. In {tested} that "
            f"finds {threshold['n_found']} of {threshold['n_positive']} {threshold['positive']}, among "
            f"{threshold['n_called']} rows flagged; of new ones {low:.0%} to {high:.0%} (95 % interval)."
        )
    show_adjusted(adjusted, report)


def evaluate(report: Report, folder: WorkFolder, table: Any, **options: Any) -> None:
    """Evaluate, and show all figures."""
    opened = folder.party()
    with shown_progress(quiet=report.as_json, first="evaluating"):
        report.facts = scores = opened.evaluate(table, **options)
    report.line(f"{scores['n_rows']} rows, target {scores['target']}; intervals of 95 %")
    if scores["n_rows"]:
        # Each side by one figure, and then the chosen one in full.
        if len(scores["sides"]) > 1:
            sides = [(side, score_rows(each)[0]) for side, each in scores["sides"].items()]
            show_rows([(f"{name}, {SIDES[side]}", figure) for side, (name, figure) in sides], report)
            report.line(f"In full, {SIDES[scores['using']]}:")
        show_rows(score_rows(scores, opened.project.task.unit), report)
        positive = scores.get("ranking", {}).get("positive")
        if positive is not None and not any(row[scores["classes"].index(positive)] for row in scores["confusion"]):
            report.line(f"  No row is called {positive!r}, for no probability reaches one half. {_THRESHOLD}")
        if "confusion" in scores:
            _show_confusion(scores, report)
    show_adjusted(scores["adjusted"], report)


def _show_confusion(scores: dict[str, Any], report: Report) -> None:
    classes = [str(name) for name in scores["classes"]]
    if len(classes) > _MOST_CLASSES:
        report.line("  --json lists how often each class was taken for each.")
        return
    # Two spaces between the longest name or count and its neighbour.
    width = max(map(len, [*classes, *(str(count) for row in scores["confusion"] for count in row)])) + 2
    report.line("  true classes in rows, predicted ones in columns:")
    for name, row in [("", classes), *zip(classes, scores["confusion"], strict=True)]:
        report.line(f"  {name:>{width}}" + "".join(f"{entry:>{width}}" for entry in row))


def explain(
    report: Report, folder: WorkFolder, table: Any, output: Path, keep: list[str] | None, figure: Path | None,
    **options: Any,
) -> None:  # fmt: skip
    """Explain, and show how much each column adds, by its mean size."""
    _check_another_file(output, table)
    opened = folder.party()
    with shown_progress(quiet=report.as_json) as progress:
        found: Explained = opened.explain(
            table,
            output,
            keep=keep or (),
            figure=figure,
            progress=lambda done, n_rows: progress(f"row {done} of {n_rows}", done / n_rows),
            **options,
        )
    importance = found.importance()
    outputs = found.explanation.output_names
    report.facts = {
        "n_rows": len(found.rows),
        "n_rows_of_table": found.n_rows,
        "model": found.model,
        "classes": outputs,
        "importance": importance,
        "exact": found.exact,
        "adjusted": found.adjusted,
        "contributions": str(output),
        "figure": figure and str(figure),
    }
    way = "" if found.exact else ", by random orders"
    report.line(
        f"{len(found.rows)} of {found.n_rows} rows explained{way}: the collaboration's {found.model}, without your own "
        "models."
    )
    of = f" for {', '.join(outputs)}" if outputs else ""
    report.line(f"Mean size of what a column adds to the answer{of}:")
    show_rows([(name, f"  {value:.4g}") for name, value in list(importance.items())[:_MOST_SHOWN]], report)
    if len(importance) > _MOST_SHOWN:
        report.line(f"  and {len(importance) - _MOST_SHOWN} columns of less")
    show_adjusted(found.adjusted, report)
    report.line(f"{' and '.join(str(file) for file in (output, figure) if file is not None)}: written for you.")
    report.line("They tell of the rows, like the table. Nothing left the party.")


def distil(report: Report, folder: WorkFolder, answers: Path, tree: int | None) -> None:
    """Distil a model, and say how near it is to the predictions."""
    with shown_progress(quiet=report.as_json, first="distilling"):
        facts = folder.party().distil(answers, tree=tree)
    names = ("party", "project", "method", "estimator", "n_parties", "n_rows", "n_anchors", "created")
    report.facts = {name: facts.get(name) for name in (*names, "r2", "agreement", "remoteness", "tree")}
    report.line(
        f"Distilled from {facts['n_anchors']} predictions of a model over {facts.get('n_rows')} rows of "
        f"{facts.get('n_parties')} parties."
    )
    report.line(f"The model explains {facts['r2']:.1%} of their variance on anchor rows left out.")
    if facts["agreement"] is not None:
        report.line(f"{facts['agreement']:.1%} of these get the predicted class.")
    if facts["remoteness"] is not None:
        report.line(
            f"The nearest anchor row is {facts['remoteness']:.2f} times as far from a row of yours as the nearest "
            "other one of yours; 1 is as it should be."
        )
    if facts["tree"] is not None:
        report.line(facts["tree"].rstrip())


def forget(report: Report, folder: WorkFolder, yes: bool) -> None:
    """Ask, and destroy the map."""
    opened = folder.party()
    if not (yes or says_yes(STEPS["party forget"].asks, as_json=report.as_json)):
        raise ExchangeError(
            "NOT_APPROVED",
            f"Party {opened.name!r} keeps its map: nobody said yes, and nothing was destroyed. Run the command again "
            "with --yes.",
        )
    opened.forget()
    report.facts = {"party": opened.name, "project": opened.project.name, "forgotten": True}
    report.line(f"Party {opened.name} has forgotten its map. It can share no more from this folder.")
    report.line("Not reached: backups, copies, what a disk keeps of old blocks, and what was sent.")


def _check_another_file(output: Path, table: Any) -> None:
    """Raise BadParameter if the output would overwrite the table, even under another name."""
    if output.exists() and is_same_file(output, table):
        raise typer.BadParameter(f"{output} is the table itself; name another file.", param_hint="--output")


@contextmanager
def _tell_if_shared(opened: PartyFolder, report: Report) -> Iterator[None]:
    """Look after an interruption whether the share was made before it."""
    before = opened.share_digest()
    try:
        yield
    except KeyboardInterrupt:
        # "Nothing was changed" would invite a second share of the same rows.
        try:
            if opened.share_digest() != before:
                report.unchanged = (
                    f"The share was made before that, and is whole in {opened.outbox}: send it to the analyst."
                )
        except (ExchangeError, OSError):
            report.unchanged = f"Whether the share was made is not known: look into {opened.outbox}."
        raise


def _login_name() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):
        # A container may have no name for its user.
        return "unknown"
