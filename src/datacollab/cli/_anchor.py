"""``datacollab anchor``: making an anchor from public rows, and checking it for private ones."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ._errors import one_line_errors

if TYPE_CHECKING:
    from ..anchor import AnchorSampler

__all__ = ["app"]

app = typer.Typer(help="The anchor: rows that all parties obfuscate alike.", no_args_is_help=True)

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
        table = _read_table(source)
        if target is not None and target not in table.columns:
            raise ValueError(f"{source} has no column {target!r}; it has {_listed(table.columns)}.")
        X = table if target is None else table.drop(columns=target)
        y = None if target is None else table[target].to_numpy()
        _check_numeric(source, X)
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
    tolerance: Annotated[float, typer.Option(min=0.0, help="How near counts as a copy; 0: equal.")] = 0.0,
) -> None:
    """Look for your private rows inside an anchor before it is used; exit with 1 if there are any.

    Columns are matched by name. Nothing is printed but positions in the anchor.

    Example: datacollab anchor check anchor.csv patients.csv
    """
    with one_line_errors("Nothing was changed."):
        from ..anchor import check_anchor

        anchor_table, private_table = _read_table(anchor), _read_table(private)
        common = [name for name in anchor_table.columns if name in private_table.columns]
        if not common:
            raise ValueError(f"{anchor} and {private} have no column name in common.")
        _check_numeric(anchor, anchor_table[common])
        _check_numeric(private, private_table[common])
        check_anchor(anchor_table[common].to_numpy(), private_table[common].to_numpy(), tolerance=tolerance)
        typer.echo(f"No private row among the {len(anchor_table)} anchor rows ({len(common)} columns compared).")


def _read_table(path: Path) -> Any:
    """Read a CSV file into a data frame; the words of an error show no entry."""
    from .._validation import require

    pandas = require("pandas", "cli")
    # A copy of a row must stay one on its way through a file: numbers are read to the last digit, as pandas 3.1 does.
    is_exact = tuple(map(int, pandas.__version__.split(".")[:2])) >= (3, 1)
    options = {} if is_exact else {"float_precision": "round_trip"}
    try:
        table = pandas.read_csv(path, low_memory=False, **options)
    except ValueError as error:
        # pandas's own message may quote an entry, so it is dropped.
        raise ValueError(
            f"{path} cannot be read as a CSV file ({type(error).__name__}). Wanted: UTF-8 text, commas between "
            "columns, a header, and as many entries in every row."
        ) from None
    if _is_row_of_numbers(table.columns):
        raise ValueError(f"{path} has no header: its first row holds numbers. Add a row with the columns' names.")
    return table


def _is_row_of_numbers(names: Iterable[str]) -> bool:
    """Whether column names are rather the first row of a table.  0, 1, 2, ... are names."""
    names = list(names)
    if names == [str(position) for position in range(len(names))]:
        return False
    try:
        [float(name) for name in names]
    except ValueError:
        return False
    return True


def _check_numeric(path: Path, table: Any) -> None:
    others = table.select_dtypes(exclude=["number", "bool"]).columns
    if len(others):
        raise ValueError(
            f"{path}: {len(others)} of {table.shape[1]} columns do not hold numbers ({_listed(others)}). Encode "
            "categories and drop identifiers first."
        )


def _listed(names: Iterable[str]) -> str:
    names = list(names)
    return ", ".join(names[:10]) + (", ..." if len(names) > 10 else "")


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
