"""``datacollab anchor``: making an anchor from public rows, checking it for private ones, and sending it sealed."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import ExchangeError
from ._errors import one_line_errors
from ._help import group
from ._options import OutputArgument, PassphraseFile, named_once, passphrase_for
from ._output import reported
from ._tables import check_numeric, closed_file, listed, read_table

if TYPE_CHECKING:
    from ..anchor import AnchorSampler

__all__ = ["app"]

app = group("The anchor: rows that all parties obfuscate alike.")

FOUND = 3
"""Exit code of `check` where there are private rows in the anchor."""

ProjectFile = Annotated[Path | None, typer.Option(exists=True, dir_okay=False, help="The signed project file.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
HERE = Path()
CsvFile = partial(typer.Argument, exists=True, dir_okay=False)


@app.command("make")
def make(
    source: Annotated[Path, CsvFile(help="CSV file of public rows: numbers, with a header.")],
    there: OutputArgument = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="CSV file to write; a target becomes its last column."),
    ] = None,
    method: Annotated[str, typer.Option(help="smote, uniform, gaussian, sample.")] = "smote",
    rows: Annotated[int, typer.Option(min=2, help="Rows of the anchor.")] = 1000,
    target: Annotated[str | None, typer.Option(help="Column of the source that holds the target.")] = None,
    seed: Annotated[int | None, typer.Option(help="For a repeatable anchor; leave out for a fresh one.")] = None,
) -> None:
    """Make an anchor from public rows.

    Example: datacollab anchor make public.csv -o anchor.csv --target diagnosis
    """
    with one_line_errors("No anchor was written."):
        from .._validation import require

        pandas = require("pandas", "cli")
        sampler = _sampler(method, rows)
        file = named_once(output, there, "--output / -o")
        if file.exists() and file.samefile(source):
            raise ValueError(f"{file} is the source itself; write the anchor to another file.")
        table = read_table(source)
        if target is not None and target not in table.columns:
            raise ValueError(f"{source} has no column {target!r}; it has {listed(table.columns)}.")
        X = table if target is None else table.drop(columns=target)
        y = None if target is None else table[target].to_numpy()
        check_numeric(source, X)
        anchor, anchor_target = sampler.sample(X.to_numpy(), y, random_state=seed)
        made = pandas.DataFrame(anchor, columns=X.columns)
        if anchor_target is not None:
            made[target] = anchor_target
        closed_file(file).write_text(made.to_csv(index=False), encoding="utf-8", newline="")
        with_target = "" if target is None else f", target {target}" if target in made else ", without a target"
        typer.echo(f"{file}: {len(made)} rows, {X.shape[1]} columns{with_target}")


@app.command("check")
def check(
    anchor: Annotated[Path, CsvFile(help="CSV file of the anchor.")],
    private: Annotated[Path, CsvFile(help="CSV file of your private rows.")],
    target: Annotated[str | None, typer.Option(help="Column that holds the target; not compared.")] = None,
    tolerance: Annotated[float, typer.Option(min=0.0, help="How near counts as a copy; 0: equal.")] = 0.0,
) -> None:
    """Look for your private rows inside an anchor before it is used; exit with 3 if there are any.

    Columns of numbers are compared, matched by name, but for the target. Of the rows nothing is printed but positions
    in the anchor, the first row being 0.

    Example: datacollab anchor check anchor.csv patients.csv --target diagnosis
    """
    with one_line_errors("Nothing was changed."):
        from ..anchor import find_private_rows

        anchor_table, private_table = read_table(anchor), read_table(private)
        if target is not None and target not in anchor_table.columns:
            raise ValueError(f"{anchor} has no column {target!r}; it has {listed(anchor_table.columns)}.")
        numeric = anchor_table.select_dtypes(["number", "bool"]).columns
        compared = [name for name in numeric if name in private_table.columns and name != target]
        if not compared:
            raise ValueError(f"{anchor} and {private} have no column of numbers with the same name to compare.")
        check_numeric(private, private_table[compared])
        ignored = [name for name in anchor_table.columns if name not in compared]
        rows, private_rows = (table[compared].to_numpy() for table in (anchor_table, private_table))
        found = find_private_rows(rows, private_rows, tolerance=tolerance)
        if found.size:
            typer.echo(
                f"datacollab: {found.size} rows of the anchor are private rows (anchor positions {listed(found)}). "
                "Every party sees the anchor, so nothing may be shared with it. Make a new one from public rows.",
                err=True,
            )
            raise typer.Exit(FOUND)
        typer.echo(f"No private row among the {len(anchor_table)} anchor rows. Compared: {listed(compared)}.")
        if ignored:
            typer.echo(f"Not compared: {listed(ignored)}. A row that differs in these alone counts as a copy.")


@app.command("seal")
def seal(
    public: Annotated[
        Path | None, typer.Argument(exists=True, dir_okay=False, help="Public rows, in the project's columns.")
    ] = None,
    project: Annotated[Path, typer.Option(exists=True, dir_okay=False, help="The signed project file.")] = Path(
        "project.toml"
    ),
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="File to write.")] = Path(
        "anchor.dcanchor"
    ),
    rows_from: Annotated[
        Path | None, typer.Option(exists=True, dir_okay=False, help="Take the rows of this table as the anchor.")
    ] = None,
    folder: Annotated[
        Path, typer.Option("--folder", "-C", metavar="DIR", help="The owner's folder, with the keys.")
    ] = HERE,
    passphrase_file: PassphraseFile = None,
    as_json: AsJson = False,
) -> None:
    """Make the anchor by the project's recipe from public rows, and seal it to all parties.

    Whoever carries the file cannot read it, and nor can the analyst. Each time another anchor comes out: seal one, and
    send that one to every party.

    Example: datacollab anchor seal public.csv --project project.toml -C north
    """
    if (public is None) == (rows_from is None):
        raise typer.BadParameter("give either public rows, or --rows-from with the anchor's rows")
    with reported(as_json, unchanged="No anchor was written.") as report:
        from ..bundle import KeyPair, write_atomically
        from ..exchange.project import anchor_of_rows, guessing, load_project, make_anchor, seal_anchor
        from ..exchange.project import read_table as read

        agreed = load_project(project)
        owner = KeyPair.load(folder / "keys.json", passphrase_for(folder, passphrase_file))
        if rows_from is not None:
            anchor = anchor_of_rows(agreed, read(rows_from, project=agreed), where=str(rows_from))
            found = guessing("given")
        else:
            assert public is not None
            table = read(public, project=agreed)
            anchor = make_anchor(agreed, table, where=str(public))
            found = guessing(agreed.anchor.method, n_public=len(table), n_features=agreed.n_features)
        write_atomically(output, seal_anchor(anchor, agreed, owner), overwrite=False)
        report.facts = {
            "written": str(output),
            "n_rows": len(anchor.rows),
            "n_features": agreed.n_features,
            "with_target": anchor.target is not None,
            "parties": list(agreed.parties),
            "project_digest": agreed.digest,
            "guessing": asdict(found),
        }
        report.line(
            f"{output}: {len(anchor.rows)} rows, {agreed.n_features} columns, "
            f"{'with' if anchor.target is not None else 'without'} targets; sealed to {', '.join(agreed.parties)}"
        )
        report.line("Send this one file to every party; it is of no use to anybody else.")
        made = f"made of those of {public}" if public is not None else f"those of {rows_from}"
        report.line(f"Its rows are {made}: these have to be public, as every party sees the anchor.")
        if found.level == "warning":
            report.line(f"{found.sentence} Whoever has the anchor can undo a linear map.")


@app.command("open")
def open_(
    anchor: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="The file that the owner sent.")],
    project: ProjectFile = None,
    folder: Annotated[
        Path, typer.Option("--folder", "-C", metavar="DIR", help="The party's folder, with the keys.")
    ] = HERE,
    passphrase_file: PassphraseFile = None,
    as_json: AsJson = False,
) -> None:
    """Open the anchor with a party's key, and keep it in the party's folder, readable by its owner alone.

    `datacollab party join` does the same where it is given the anchor; this is for an anchor that comes later.

    Example: datacollab anchor open anchor.dcanchor -C hospital-b
    """
    with reported(as_json) as report:
        from ..exchange.party_folder import PartyFolder
        from ..exchange.project import open_anchor

        project_file = project or folder / "project.toml"
        if not project_file.is_file():
            raise ExchangeError(
                "FOLDER_MISSING",
                f"{folder} is no party's folder: there is no project.toml. Run `datacollab party join project.toml "
                f"{anchor.name} -C {folder}` instead.",
            )
        words = passphrase_for(folder, passphrase_file)
        joined = PartyFolder.join(folder, project_file, anchor, passphrase=words)
        opened = open_anchor(anchor, joined.project, joined.key)
        report.facts = {
            "party": joined.name,
            "n_rows": len(opened.rows),
            "n_features": joined.project.n_features,
            "with_target": opened.target is not None,
            "project_digest": joined.project.digest,
        }
        report.line(
            f"Party {joined.name}: the anchor has {len(opened.rows)} rows, {joined.project.n_features} columns, "
            f"{'with' if opened.target is not None else 'without'} targets"
        )


def _sampler(method: str, rows: int) -> AnchorSampler:
    from ..anchor import GaussianAnchor, SampleAnchor, SMOTEAnchor, UniformAnchor

    samplers: dict[str, Any] = {
        "smote": SMOTEAnchor,
        "uniform": UniformAnchor,
        "gaussian": GaussianAnchor,
        "sample": SampleAnchor,
    }
    if method not in samplers:
        raise ValueError(f"Unknown method {method!r}; choose one of {', '.join(samplers)}.")
    sampler: AnchorSampler = samplers[method](rows)
    return sampler
