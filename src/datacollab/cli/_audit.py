"""``datacollab audit``: what attackers would learn from a party's share, before anything leaves."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Option

from ._errors import one_line_errors
from ._features import Features, encode
from ._progress import shown_progress
from ._tables import closed_file, listed, read_table, record_number_questions

if TYPE_CHECKING:
    from ..party import Party
    from ..risk.audit import AuditResult

__all__ = ["audit"]

_STYLES = {"red": "bold red", "amber": "bold yellow", "green": "bold green"}

CsvFile = partial(typer.Argument, exists=True, dir_okay=False)


def audit(
    private: Annotated[Path, CsvFile(help="CSV file of your private rows, with a header.")],
    anchor: Annotated[Path, CsvFile(help="CSV file of the anchor: the same columns; the target may be missing.")],
    target: Annotated[str, Option(metavar="COLUMN", help="Column that holds the target.")],
    public: Annotated[
        Path | None,
        Option(exists=True, dir_okay=False, metavar="FILE", help="CSV file of public rows that an attacker may hold."),
    ] = None,
    without: Annotated[
        list[str] | None, Option(metavar="COLUMN", help="Column to leave out, such as an identifier. Repeatable.")
    ] = None,
    obfuscator: Annotated[
        str | None, Option(metavar="KIND", help="pca, kernel-pca, umap, random-projection. Default: pca.")
    ] = None,
    components: Annotated[
        int | None,
        Option(
            min=1,
            metavar="N",
            help="Columns of the representation. Default: 16, or fewer, so that something is reduced.",
        ),
    ] = None,
    preset: Annotated[
        str | None,
        Option(
            metavar="NAME",
            help="As for `party share`: private (rows of the anchor, labelled by a model of yours), groups (means of "
            "five rows, with noise), none. Default: none, that is, your rows undefended.",
        ),
    ] = None,
    standardize: Annotated[bool, Option(help="Bring columns to mean 0 and variance 1 first; not for images.")] = True,
    attribute: Annotated[
        list[str] | None, Option(metavar="COLUMN", help="Sensitive column an attacker may want. Repeatable.")
    ] = None,
    levels: Annotated[
        str | None, Option(metavar="LEVELS", help="Threat levels to try, such as T0,T2. Default: all.")
    ] = None,
    compare_defences: Annotated[
        bool, Option("--compare-defences", help="Try every defence too: what it would change and cost. Minutes more.")
    ] = False,
    seeds: Annotated[
        int, Option(min=1, metavar="N", help="Repetitions of the attacks, each with other leaked rows.")
    ] = 1,
    seed: Annotated[
        int | None, Option(metavar="N", help="For repeatable attacks; the obfuscator stays secret.")
    ] = None,
    time_budget: Annotated[
        float | None, Option(min=1, metavar="S", help="Seconds after which no attack is begun.")
    ] = None,
    output: Annotated[Path, Option("--output", "-o", metavar="DIR", help="Directory for page, JSON and table.")] = Path(
        "output/audit"
    ),
    as_json: Annotated[bool, Option("--json", help="Print the result as JSON instead of a summary.")] = False,
    quiet: Annotated[bool, Option("--quiet", "-q", help="No progress.")] = False,
) -> None:
    """Attack what you would share, before you share it.

    Obfuscates your rows, without a defence unless --preset names one, tries what an attacker could try, from
    the curious analyst to colluding parties, and says in plain words how many
    records would be told. Writes a page for a data protection officer
    (audit.html), the result (audit.json) and all findings (audit.csv). Runs
    here; nothing leaves this machine.

    Columns hold numbers or categories; which categories there are, the public
    rows say, or else the anchor.

    For example:

      datacollab audit patients.csv anchor.csv --target diagnosis
      datacollab audit p.csv a.csv --public public.csv --target y --preset private
    """
    with one_line_errors("Nothing was written; run the command again, with a --time-budget if it takes too long."):
        files = [path for path in (private, anchor, public) if path is not None]
        tables = _without({path: read_table(path) for path in files}, without or [])
        if target not in tables[private].columns:
            raise ValueError(f"{private} has no column {target!r}; it has {listed(tables[private].columns)}.")
        features = encode(tables, public or anchor, target)
        attributes = _attributes(attribute or [], target, features, private)
        targets = {path: table[target].to_numpy() for path, table in tables.items() if target in table.columns}
        from sklearn.utils import check_random_state

        random = check_random_state(seed)
        known = _known(features, targets, private, anchor, public, random)
        # Strangers are kept out of what the map is fitted on, or it would know them.
        others = features.matrices[anchor] if public is None else known["public"]
        party = _party(features, private, others, targets[private], preset, obfuscator, components, standardize)
        _say(features, components, tables[private])
        output.mkdir(parents=True, exist_ok=True)
        from ..risk.audit import audit as run_audit
        from ..risk.audit import with_defences

        start = time.perf_counter()
        with shown_progress(quiet) as progress:
            result = run_audit(
                party,
                features.matrices[private],
                features.matrices[anchor],
                y=targets[private],
                **known,
                attributes=attributes,
                levels=None if levels is None else [name.strip() for name in levels.split(",")],
                n_seeds=seeds,
                random_state=random,
                time_budget=time_budget,
                progress=progress,
            )
            if compare_defences:
                result = with_defences(
                    result,
                    party,
                    features.matrices[private],
                    targets[private],
                    features.matrices[anchor],
                    anchor_target=known["anchor_target"],
                    public=None if public is None else features.matrices[public],
                    public_target=None if public is None else targets.get(public),
                    random_state=seed,
                    time_budget=None if time_budget is None else max(0.0, time_budget - result.seconds),
                    progress=progress,
                )
    with one_line_errors(f"The files in {output} may be incomplete; run the command again."):
        written = _write(result, output)
        if as_json:
            typer.echo(result.to_json(), nl=False)
        else:
            _print_summary(result)
            typer.echo("\n".join([*(f"  {path}" for path in written), f"Done in {time.perf_counter() - start:.0f} s."]))


def _without(tables: dict[Path, Any], names: list[str]) -> dict[Path, Any]:
    """Tables without some columns, which need not be in all of them."""
    if unknown := [name for name in names if all(name not in table.columns for table in tables.values())]:
        path, table = next(iter(tables.items()))
        raise ValueError(f"--without {listed(unknown)}: no file has that; {path} has {listed(table.columns)}.")
    return {path: table.drop(columns=names, errors="ignore") for path, table in tables.items()}


def _known(
    features: Features,
    targets: dict[Path, Any],
    private: Path,
    anchor: Path,
    public: Path | None,
    random: Any,
) -> dict[str, Any]:
    """Rows besides the party's own, as `audit` takes them: strangers are a part of the public ones."""
    from ..anchor import find_private_rows
    from ..risk.audit import split_public

    own_in_anchor = find_private_rows(features.matrices[anchor], features.matrices[private]).size
    if own_in_anchor:
        raise ValueError(
            f"{own_in_anchor} rows of {anchor} are rows of {private}; every party sees the anchor as it is, so nothing "
            "may be shared with it. Make a new one from public rows."
        )
    known: dict[str, Any] = {"anchor_target": targets.get(anchor)}
    if public is not None:
        parts = split_public(features.matrices[public], targets.get(public), random)
        known |= dict(zip(("public", "public_target", "control", "control_target"), parts, strict=True))
    return known


def _attributes(names: list[str], target: str, features: Features, private: Path) -> dict[str, int | list[int]]:
    if target in names:
        raise ValueError(f"{target!r} is the target; the analyst gets it as it is, so there is nothing to infer.")
    unknown = [name for name in names if name not in features.positions]
    if unknown:
        raise ValueError(
            f"{private} has no column {listed(unknown)} to be an attribute; it has "
            f"{listed(features.positions)}, besides the target."
        )
    return {name: features.positions[name] for name in names}


def _party(
    features: Features,
    private: Path,
    others: Any,
    y: Any,
    preset: str | None,
    kind: str | None,
    components: int | None,
    standardize: bool,
) -> Party:
    """The party as it would be, fitted; named after its file."""
    from ..exchange.party_folder import Way
    from ..exchange.project import usual_components
    from ..party import Party
    from ..party import obfuscator as make_obfuscator

    X = features.matrices[private]
    n_components = usual_components(features.n_free) if components is None else components
    if n_components > X.shape[1]:
        raise ValueError(
            f"--components {n_components} is more than the {X.shape[1]} columns that {private} has once its categories "
            "are encoded."
        )
    way = Way.of(
        preset=preset or "none",
        obfuscator=kind,
        n_components=n_components,
        standardize=standardize,
        is_regression=y.dtype.kind == "f",  # as for the attacks
        largest=X.shape[1],
    )
    f = make_obfuscator(way.obfuscator, way.n_components, standardize=way.standardize)
    fit_on = others if way.fit_on_anchor else None
    return Party(private.stem, f, fit_on=fit_on, defences=way.defences).fit(X, y)


def _say(features: Features, components: int | None, table: Any) -> None:
    """What was made of entries that did not fit, what may be no feature, and whether anything is reduced."""
    numbers = [name for name, place in features.positions.items() if isinstance(place, int)]
    questions = record_number_questions(table, numbers, "leave it out, with --without")
    for sentence in (*features.adjusted, *questions):
        typer.echo(sentence, err=True)
    if components is not None and components >= features.n_free > 1:
        typer.echo(
            f"{features.n_free} numbers tell a row, so a linear map onto {components} components turns the table and "
            "hides nothing. Take fewer --components.",
            err=True,
        )


def _write(result: AuditResult, output: Path) -> list[Path]:
    page, told, table = (closed_file(output / f"audit.{ending}") for ending in ("html", "json", "csv"))
    result.to_html(page)
    result.to_json(told)
    table.write_text(result.table().to_csv(index=False), encoding="utf-8", newline="")
    return [page, told, table]


def _print_summary(result: AuditResult) -> None:
    """What the result's own summary says, with coloured lights and columns that wrap."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from ..risk.audit._text import BY_LOT, proven_text

    console = Console()
    console.print(Text(f"Privacy audit of party {result.party!r}", style="bold"))
    if not result.complete:
        console.print("The time budget ended it early: what was not tried may be worse than what was.", style="bold")
    lights = Table(box=None, padding=(0, 2, 1, 0), show_header=False)
    for criterion in result.all_criteria():
        light = Text(criterion.light.upper(), style=_STYLES.get(criterion.light, "bold"))
        lights.add_row(Text(criterion.name), light, Text(criterion.reason + proven_text(result, criterion.name)))
    sentences = Table(box=None, padding=(0, 2, 1, 0), show_header=False)
    for name, sentence in result.sentences().items():
        sentences.add_row(Text(name, style="bold"), Text(sentence))
    console.print(lights)
    if BY_LOT in result.assumptions:
        console.print(Text(f"{BY_LOT}\n"))
    console.print(sentences)
    if result.worst_records:
        positions = ", ".join(str(record.index) for record in result.worst_records)
        console.print(Text(f"Worst-placed records (positions, the first being 0): {positions}"))
    for what in result.not_tested:
        console.print(Text(f"Not tested: {what}"))
