"""``datacollab project``: the agreement of parties and analyst."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime
from itertools import zip_longest
from pathlib import Path
from typing import Any

import typer

from .. import agreement as projects
from ..bundle import PublicKey, mask_card_in, unpack, write_atomically
from ..errors import ExchangeError
from ..sums import FEWEST_PARTIES
from ..table import ColumnFinding, read_table
from ._command import WorkFolder, load_key, sending
from ._output import Report


def new(
    report: Report,
    folder: WorkFolder,
    like: Path,
    party: list[str],
    analyst: Path,
    target: str | None,
    output: Path,
    rows: bool,
    **options: Any,
) -> None:
    files = _parse_parties(party)
    options["deadline"] = _parse_day(options["deadline"])
    owner = folder.keys()
    table = read_table(like)
    if rows and options["statistics"]:
        raise ExchangeError("SPEC_INVALID", "--rows is for rows, and --statistic for sums. Give one of them.")
    # Sums are the default wherever one model can be made of them.
    is_predicted = target is not None and options["task"] in (None, "classification", "regression")
    for_sums = bool(options["statistics"]) or (not rows and is_predicted)
    classes = options["classes"]
    chosen = {
        "ranges_given": options["valid_range"] is not None,
        "target_given": bool(classes) or options["target_range"] is not None,
    }
    options |= {name: options[name] or () for name in ("classes", "seen", "treated", "without", "statistics")}
    options |= {name: _group_by_column(options[name] or (), f"--{name}") for name in ("missing", "keep")}
    kinds = _group_by_column(options["kinds"] or (), "--as")
    options["kinds"] = {name: each[-1] for name, each in kinds.items()}
    if options["logistic_model"] is not None:
        if "validation" not in options["statistics"]:
            raise ExchangeError("SPEC_INVALID", "--logistic-model is for --statistic validation. Give both.")
        options["logistic_model"] = projects.read_logistic_model(options["logistic_model"])
    findings: list[ColumnFinding] = []

    def tell(finding: ColumnFinding) -> None:
        findings.append(finding)
        if not finding.asks:  # The others stand as CHECK in the file.
            report.note(finding.sentence)

    source = like.name
    mask_keys = None
    if for_sums:
        # The analyst reads the project, and with the table could guess the rows of a sample.
        source = ""
        mask_keys = _read_mask_keys(files)
    project = projects.draft_project(
        table,
        target=target,
        owner=owner.public,
        mask_keys=mask_keys,
        source=source,
        # Members' keys, which their owners have signed.
        analyst=PublicKey.load(analyst, proven=True),
        parties={name: PublicKey.load(file, proven=True) for name, file in files.items()},
        tell=tell,
        **options,
    )
    write_atomically(output, projects.project_text(project, owner, drafted=True, **chosen).encode(), overwrite=False)
    sentences = [{"column": each.column, "kind": each.kind, "sentence": each.sentence} for each in findings]
    report.facts = {"written": str(output), "findings": sentences, **_facts(project)}
    report.line(
        f"{output}: {len(project.columns)} columns ({project.n_features} in the matrix), {project.task.words}, "
        f"{len(project.parties)} parties. Digest {project.digest}"
    )
    _warn_of_components(project, report)
    if target is not None and target not in map(str, table.columns):
        # Public rows need no target, so nothing else could show a wrong spelling.
        spelling = "its spelling"
        if classes:
            spelling += f", and that of the classes {', '.join(map(str, project.task.classes))}"
        report.line(f"{like} has no column {target!r}: compare {spelling}, with the parties' tables.")
    if project.shares_sums:
        report.line(f"Parties share {projects.sharing_lines(project)[0]}.")
        for sentence in projects.sharing_sentences(project.sums):
            report.line(f"warning: {sentence}")
    if not (rows or for_sums):
        report.line("Parties share rows: sums are for a class or a number to predict, or for a study (--statistic).")
    report.line(
        f"Check what is marked CHECK; after an edit: datacollab project revise {output} {like} -C {folder.path}"
    )


def _warn_of_components(project: projects.Project, report: Report) -> None:
    """Say when representations of rows may have as many columns as rows have numbers."""
    if project.shares_sums:
        return
    if project.task.kind == "effect":
        report.line(
            f"Representations may have all of the {project.n_free} numbers that tell a row, as what they lose is "
            "not adjusted for. They hide nothing then; defences have to."
        )
    elif project.max_components >= project.n_free > 1:
        report.line(
            f"{project.n_free} numbers tell a row of these columns: a linear map onto as many components, which "
            f"--max-components {project.max_components} allows, turns the table and hides nothing. Take fewer."
        )


def show(report: Report, file: Path) -> None:
    project = projects.load_project(file)
    report.facts = _facts(project)
    _show(project, report)


def verify(report: Report, file: Path, owner: Path | None) -> None:
    project, _ = projects.read_project(file, owner=load_key(owner))
    report.facts = {"project": project.name, "project_digest": project.digest, "owner": project.owner.fingerprint}
    report.line(f"{file}: signed by {project.owner.fingerprint}. Digest {project.digest}")
    if owner is None:
        report.line(
            f"Compare the owner's fingerprint, and the project's, {project.fingerprint}, by telephone, or give "
            "the owner's key as --owner, if you got it another way than the file."
        )


def revise(report: Report, folder: WorkFolder, file: Path, public: Path | None, output: Path) -> None:
    """Check an edited file against the public rows, sign it, seal the anchor, and say which file goes to whom."""
    owner = folder.keys()
    signed = projects.sign_project_text(projects.read_project_text(file), owner, what=str(file))
    project, _ = projects.parse_project(signed, what=str(file))
    changed = not _is_signed(file)
    anchor = None
    if public is not None and project.has_anchor and not is_sealed_for(output, project):
        rows = projects.make_anchor(project, read_table(public, schema=project), where=str(public))
        anchor = projects.seal_anchor(rows, project, owner)
    # The anchor is made before the file is signed: rows that do not fit leave both as they were.
    if changed:
        write_atomically(file, signed.encode())
    if anchor is not None:
        write_atomically(output, anchor)
    parties = ", ".join(project.parties)
    report.facts = {
        "changed": changed,
        "written": str(file) if changed else None,
        "anchor": anchor and str(output),
        "project": project.name,
        "revision": project.revision,
        "project_digest": project.digest,
    }
    if not changed:
        report.line(f"{file}: unchanged, and signed already. Digest {project.digest}")
    else:
        report.line(f"{file}: signed, revision {project.revision}. New digest {project.digest}")
        if project.shares_sums:
            for sentence in projects.sharing_sentences(project.sums):
                report.line(f"warning: {sentence}")
        report.line(f"Send {file} to the analyst, and to {parties}.")
    if anchor is not None:
        report.line(f"{output}: sealed. Send it to {parties}, and never to the analyst.")
    elif public is None and changed and project.has_anchor:
        report.line("No anchor was sealed for it: give the public rows, too, or run datacollab anchor seal.")
    if changed or anchor is not None:
        files = f"{file.name} {output.name}" if project.has_anchor else file.name
        report.line(f"Parties that have joined, join again: datacollab party join {files}")
        if push := sending(folder.path, "", by_hand=""):
            report.line(f"{push} {file}" if anchor is None else f"{push} {file} {output}")


def is_sealed_for(anchor: Path, project: projects.Project) -> bool:
    """Return whether a file is the sealed anchor of this very agreement."""
    if not anchor.exists():
        return False
    facts = unpack(anchor, kind="datacollab.anchor", signed_by=project.owner).facts
    return facts.get("project_digest") == project.digest


def _is_signed(file: Path) -> bool:
    """Return whether the owner's signature fits the file."""
    try:
        projects.load_project(file)
    except ExchangeError as error:
        # After an edit by hand, which is what `revise` is for; any other error is the file's.
        if error.code in ("SIGNATURE_MISSING", "SIGNATURE_INVALID"):
            return False
        raise
    return True


def _read_mask_keys(files: dict[str, Path]) -> dict[str, str]:
    """Return the parties' cards, or say why they cannot share sums."""
    if len(files) < FEWEST_PARTIES:
        raise ExchangeError(
            "SPEC_INVALID",
            f"Sums need {FEWEST_PARTIES} parties or more, and {len(files)} are named. With two, each learns the "
            "other's sums, for it can subtract its own. Name more, or share rows with --rows.",
        )
    cards = {name: mask_card_in(file) for name, file in files.items()}
    if missing := [name for name, card in cards.items() if card is None]:
        raise ExchangeError(
            "KEY_MISSING",
            f"Without a mask key in the public key: {', '.join(missing)}. Ask for a new public.key, made with "
            f"`datacollab keys mask -C {missing[0]}`, or share rows with --rows.",
        )
    return {name: card for name, card in cards.items() if card is not None}


def _group_by_column(texts: Sequence[str], option: str) -> dict[str, list[str]]:
    """Return the words that an option gives for each column, as COLUMN=WORD; without a column, for all of them."""
    words: dict[str, list[str]] = {}
    for text in texts:
        name, equals, word = text.rpartition("=")
        is_kind = option == "--as"
        if not word or (is_kind and not equals):  # A kind for all columns would be no table.
            raise typer.BadParameter(f"Expected COLUMN={'KIND' if is_kind else 'WORD'}, got {text!r}.")
        words.setdefault(name, []).append(word)
    return words


def _parse_parties(texts: list[str]) -> dict[str, Path]:
    """Return the files of the parties' keys by their names, from texts such as north=north/public.key."""
    files: dict[str, Path] = {}
    for text in texts:
        name, equals, path = text.partition("=")
        if not (name and equals and path):
            raise typer.BadParameter(f"Expected NAME=FILE, such as north=north/public.key, got {text!r}.")
        if name in files:
            raise typer.BadParameter(f"The party {name!r} is given twice.")
        files[name] = Path(path)
    return files


def _parse_day(text: str | None) -> date | None:
    if text is None:
        return None
    try:
        day = date.fromisoformat(text)
    except ValueError:
        raise typer.BadParameter(f"Expected a day such as 2027-01-31, got {text!r}.") from None
    if day < (today := datetime.now(UTC).date()):
        raise ExchangeError(
            "SPEC_INVALID", f"--deadline {day.isoformat()} is over: today is {today.isoformat()}. Give a later day."
        )
    return day


def _facts(project: projects.Project) -> dict[str, Any]:
    members = {"owner": project.owner, "analyst": project.analyst}
    return {
        "project_digest": project.digest,
        "project_fingerprint": project.fingerprint,
        "n_features": project.n_features,
        "fingerprints": {name: key.fingerprint for name, key in members.items()}
        | {"parties": {name: key.fingerprint for name, key in project.parties.items()}},
        "content": projects.project_content(project),
    }


def _show(project: projects.Project, report: Report) -> None:
    owner = next((f"party {name}" for name, key in project.parties.items() if key == project.owner), "")
    members = [
        ("owner", project.owner.fingerprint, owner),
        ("analyst", project.analyst.fingerprint, ""),
        *((f"party {name}", key.fingerprint, "") for name, key in project.parties.items()),
    ]
    revision = f", revision {project.revision}" if project.revision > 1 else ""
    sharing = []
    if project.shares_sums:
        sharing = _head("Sharing", projects.sharing_lines(project))
    lines = [
        f"Project   {project.name}{revision}",
        *(f"          {line}" for line in project.purpose.splitlines()),
        *_head("Task", projects.task_lines(project)),
        *_head("Anchor", projects.anchor_lines(project)),
        *_head("Rules", [projects.rules_line(project)]),
        *sharing,
        "Members",
        *_align(members),
        f"Columns   {len(project.columns)}, {project.n_features} in the matrix",
        *_align(projects.column_rows(project.columns, fills=project.fills_missing)),
        f"Compare   {project.fingerprint}, by telephone: the fingerprint, the beginning of the digest",
        f"Digest    {project.digest}",
    ]
    for line in lines:
        report.line(line)


def _head(word: str, lines: Sequence[str]) -> list[str]:
    """Put a word before the first of some lines."""
    return [f"{head:10}{line}" for head, line in zip_longest([word], lines, fillvalue="")]


def _align(rows: Sequence[tuple[str, ...]]) -> list[str]:
    # One column with a long name or many categories must not push all others off the screen.
    widths = [min(40, max(map(len, column))) for column in zip(*rows, strict=True)]
    return [
        "  " + "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]
