"""``datacollab compare``: integration methods side by side on real data."""

from __future__ import annotations

import json
import math
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Option

from datacollab.cli.kit import one_line_errors, shown_progress

if TYPE_CHECKING:
    from ..paper import Comparison


DEFAULT_METHODS = ["MPP", "GEP", "ODC", "LTI", "KTI", "KTI+TSL", "KTI+TSL+Center"]


def compare(  # noqa: PLR0913
    dataset: Annotated[str, Option(help="One of the names that `datacollab data list` shows.")] = "digits",
    data_dir: Annotated[Path | None, Option(help="Directory that holds the data set's files.")] = None,
    parties: Annotated[int, Option(min=2, help="Number of parties.")] = 10,
    rows: Annotated[int, Option(min=15, help="Rows per party.")] = 25,
    test_rows: Annotated[int, Option(min=10, help="Common test rows.")] = 500,
    anchors: Annotated[int, Option(min=20, help="Anchor rows.")] = 500,
    sources: Annotated[int, Option(min=0, help="Real rows SMOTE starts from; 0: all anchors are real.")] = 100,
    obfuscator: Annotated[str, Option(help="umap, pca, kernel-pca, random-projection.")] = "umap",
    out_of_sample: Annotated[str, Option(help="UMAP of new rows: row-wise, or umap (umap-learn's own).")] = "row-wise",
    components: Annotated[int, Option(min=1, help="Columns of the representations.")] = 10,
    method: Annotated[list[str] | None, Option(help=f"Repeatable. Default: {', '.join(DEFAULT_METHODS)}.")] = None,
    hyperparameters: Annotated[str, Option(help="Those of KTI: recommended, paper.")] = "recommended",
    seeds: Annotated[int, Option(min=1, help="Random draws of parties, anchors and test rows.")] = 5,
    output: Annotated[Path, Option("--output", "-o", metavar="DIR", help="Directory for figures and scores.")] = Path(
        "output/compare"
    ),
    as_json: Annotated[bool, Option("--json", help="Print the scores as JSON instead of a table.")] = False,
    quiet: Annotated[bool, Option("--quiet", "-q", help="No progress.")] = False,
) -> None:
    """Compare integration methods on real data, under the paper's protocol.

    Parties obfuscate their rows, every method integrates them, a random forest
    is trained on the result, and each party tests it alone. Prints a table
    with 95 % confidence intervals beside the baselines Local (every party
    alone), Local+Public (the same, with the labelled public rows behind the
    anchor) and Central (all raw rows in one place), and writes figures and
    scores.

    For example:

      datacollab compare
      datacollab compare --dataset mnist --parties 10 --rows 100 --output mnist
      datacollab compare --obfuscator pca --method LTI --method KTI --json
    """
    with one_line_errors("Nothing was written; run the command again, with fewer --seeds if it takes too long."):
        from ..paper import Condition, check_methods

        # A mistake in the numbers shows before any work.
        condition = Condition(
            dataset=dataset,
            n_parties=parties,
            n_per_party=rows,
            n_test=test_rows,
            n_anchors=anchors,
            n_sources=sources or None,
            obfuscator=obfuscator,
            out_of_sample=out_of_sample,
            n_components=components,
            hyperparameters=hyperparameters,
        )
        methods = list(dict.fromkeys(["Local", "Local+Public", *(method or DEFAULT_METHODS), "Central"]))
        check_methods(methods)
        start = time.perf_counter()
        # A folder that cannot be written shows before the work.
        output.mkdir(parents=True, exist_ok=True)
        comparison, figures = _run(condition, data_dir, methods, seeds, quiet)
    with one_line_errors(f"The files in {output} may be incomplete; run the command again."):
        written = _write(comparison, figures, output)
        if as_json:
            typer.echo(json.dumps(comparison.as_dict(), indent=2))
        else:
            _print_table(comparison)
            typer.echo("\n".join([*(f"  {path}" for path in written), f"Done in {time.perf_counter() - start:.0f} s."]))


def _run(
    condition: Any, data_dir: Path | None, methods: list[str], seeds: int, quiet: bool
) -> tuple[Comparison, dict[str, Any]]:
    with shown_progress(quiet, steps=2 + seeds * (1 + len(methods)), first="loading") as progress:
        from datacollab.datasets import load

        from ..paper import alignment_figure, compare_methods, score_figure

        data = load(condition.dataset, data_dir=data_dir)
        comparison = compare_methods(condition, data, methods, range(seeds), progress)
        progress("drawing")
        figures = {
            "scores": score_figure(comparison),
            "alignment": alignment_figure(data, out_of_sample=condition.out_of_sample),
        }
    return comparison, figures


def _write(comparison: Comparison, figures: dict[str, Any], output: Path) -> list[Path]:
    written = []
    for name, figure in figures.items():
        written.append(output / f"{name}.png")
        figure.savefig(written[-1], dpi=144)
    scores = output / "scores.json"
    scores.write_text(json.dumps(comparison.as_dict(), indent=2), encoding="utf-8")
    return [*written, scores]


def _print_table(comparison: Comparison) -> None:
    from rich.console import Console
    from rich.table import Table

    from ..paper import BASELINES, verdicts

    console = Console()
    table = Table(title=f"{comparison.condition.dataset}: {comparison.measure} on common test rows")
    table.add_column("method")
    for heading in ("mean", "95 % interval", "gain over Local", "seconds"):
        table.add_column(heading, justify="right")
    for name in comparison.methods:
        mean, half_width = comparison.interval(name)
        interval = ""
        if not math.isnan(half_width):
            interval = f"± {half_width:.3f}"
        gain = ""
        if name != "Local":
            gain = f"{comparison.gain(name, 'Local')[0]:+.3f}"
        table.add_row(
            name, f"{mean:.3f}", interval, gain, f"{comparison.seconds(name):.2f}",
            style="dim" if name in BASELINES else None,
        )  # fmt: skip
    console.print(table)
    for sentence in verdicts(comparison):
        console.print(f"• {sentence}", highlight=False)
