"""``datacollab anchor``: making an anchor from public rows, and checking it for private ones."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ._errors import one_line_errors
from ._tables import check_numeric, listed, read_table

if TYPE_CHECKING:
    from ..anchor import AnchorSampler

__all__ = ["app"]

app = typer.Typer(help="The anchor: rows that all parties obfuscate alike.", no_args_is_help=True)

FOUND = 3
"""Exit code of `check` where there are private rows in the anchor."""

CsvFile = partial(typer.Argument, exists=True, dir_okay=False)


@app.command("make")
def make(
    source: Annotated[Path, CsvFile(help="CSV file of public rows: numbers, with a header.")],
    output: Annotated[Path, typer.Argument(help="CSV file to write; a target becomes its last column.")],
    method: Annotated[str, typer.Option(help="smote, uniform, gaussian, sample.")] = "smote",
    rows: Annotated[int, typer.Option(min=2, help="Rows of the anchor.")] = 1000,
    target: Annotated[str | None, typer.Option(help="Column of the source that holds the target.")] = None,
    seed: Annotated[int | None, typer.Option(help="For a repeatable anchor; leave out for a fresh one.")] = None,
) -> None:
    """Make an anchor from public rows.

    Example: datacollab anchor make public.csv anchor.csv --target diagnosis
    """
    with one_line_errors("No anchor was written."):
        from .._validation import require

        pandas = require("pandas", "cli")
        sampler = _sampler(method, rows)
        if output.exists() and output.samefile(source):
            raise ValueError(f"{output} is the source itself; write the anchor to another file.")
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
        output.write_text(made.to_csv(index=False), encoding="utf-8", newline="")
        with_target = "" if target is None else f", target {target}" if target in made else ", without a target"
        typer.echo(f"{output}: {len(made)} rows, {X.shape[1]} columns{with_target}")


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
