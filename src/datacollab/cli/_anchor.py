"""``datacollab anchor``: making an anchor from public rows, and checking it for private ones."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ._errors import one_line_errors

if TYPE_CHECKING:
    from ..anchor import AnchorSampler

__all__ = ["app"]

app = typer.Typer(help="The anchor: rows that all parties obfuscate alike.", no_args_is_help=True)


@app.command("make")
def make(
    source: Annotated[Path, typer.Argument(help="CSV file of public rows: numbers, with a header.", exists=True)],
    output: Annotated[Path, typer.Argument(help="CSV file to write; a target becomes its last column.")],
    method: Annotated[str, typer.Option(help="smote, uniform, gaussian, sample.")] = "smote",
    rows: Annotated[int, typer.Option(min=2, help="Rows of the anchor.")] = 1000,
    target: Annotated[str | None, typer.Option(help="Column of the source that holds the target.")] = None,
    seed: Annotated[int | None, typer.Option(help="For a repeatable anchor; leave out for a fresh one.")] = None,
) -> None:
    """Make an anchor from public rows.

    Example: datacollab anchor make public.csv anchor.csv --rows 1000 --target diagnosis
    """
    with one_line_errors("No anchor was written."):
        import numpy as np
        import pandas as pd

        table = pd.read_csv(source)
        if target is not None and target not in table.columns:
            raise ValueError(f"{source} has no column {target!r}; it has {', '.join(table.columns)}.")
        X = table if target is None else table.drop(columns=target)
        y = None if target is None else table[target].to_numpy()
        anchor, anchor_target = _sampler(method, rows).sample(X.to_numpy(), y, random_state=seed)
        made = pd.DataFrame(np.asarray(anchor), columns=X.columns)
        if anchor_target is not None:
            made[target] = anchor_target
        made.to_csv(output, index=False)
        typer.echo(f"{output}: {len(made)} rows, {X.shape[1]} columns" + (f", target {target}" if target else ""))


@app.command("check")
def check(
    anchor: Annotated[Path, typer.Argument(help="CSV file of the anchor.", exists=True)],
    private: Annotated[Path, typer.Argument(help="CSV file of your private rows.", exists=True)],
    tolerance: Annotated[float, typer.Option(min=0.0, help="How near counts as a copy; 0: equal.")] = 0.0,
) -> None:
    """Look for your private rows inside an anchor before it is used; exit with 1 if there are any.

    Columns are matched by name. Nothing is printed but positions in the anchor.

    Example: datacollab anchor check anchor.csv patients.csv
    """
    with one_line_errors("Nothing was changed."):
        import pandas as pd

        from ..anchor import check_anchor

        anchor_table, private_table = pd.read_csv(anchor), pd.read_csv(private)
        common = [name for name in anchor_table.columns if name in private_table.columns]
        if not common:
            raise ValueError(f"{anchor} and {private} have no column name in common.")
        check_anchor(anchor_table[common].to_numpy(), private_table[common].to_numpy(), tolerance=tolerance)
        typer.echo(f"No private row among the {len(anchor_table)} anchor rows ({len(common)} columns compared).")


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
