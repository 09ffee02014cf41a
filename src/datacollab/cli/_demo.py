"""``datacollab demo``: whether collaborating pays, and at what risk."""

from __future__ import annotations

import json
import math
import shlex
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Option

from ._errors import one_line_errors
from ._progress import shown_progress
from ._roles import play_roles

if TYPE_CHECKING:
    from ._demonstration import Demonstration

__all__ = ["demo"]

_ENOUGH_DRAWS = 5


def demo(
    dataset: Annotated[str, Option(help="One of the names that `datacollab data list` shows; of classes.")] = "digits",
    data_dir: Annotated[Path | None, Option(help="Directory that holds the data set's files.")] = None,
    parties: Annotated[int, Option(min=3, help="Number of parties.")] = 10,
    rows: Annotated[int, Option(min=10, help="Rows per party.")] = 25,
    seeds: Annotated[int, Option(min=1, help="Random draws of parties, public and test rows.")] = _ENOUGH_DRAWS,
    jobs: Annotated[int, Option("--jobs", "-j", help="Plays at a time; -1: as many as there are cores.")] = -1,
    output: Annotated[
        Path, Option("--output", "-o", metavar="DIR", help="Directory for figure, page and scores.")
    ] = Path("output/demo"),
    roles: Annotated[
        bool, Option("--roles", help="Play an exchange of files instead, every command a process of its own.")
    ] = False,
    as_json: Annotated[bool, Option("--json", help="Print the scores as JSON instead of a table.")] = False,
    quiet: Annotated[bool, Option("--quiet", "-q", help="No progress.")] = False,
) -> None:
    """Show whether collaborating pays, and at what risk.

    Parties have few rows of their own and a hundred public ones, with targets
    or without. They share undefended or by the defence that measured best,
    the analyst chooses a method and a model, and each party pools the result
    with the best that it has alone. Prints accuracies with 95 % confidence
    intervals beside "alone" and beside all rows in one place, and how many
    rows an attacker links; writes a figure and an HTML page.

    For example:

      datacollab demo
      datacollab demo --dataset mnist --rows 100 --output mnist
      datacollab demo --roles --output exchange

    With --roles, hospitals and an analyst exchange files in directories of
    their own, as in docs/walkthrough.md. The other options are not used then. `datacollab compare` holds
    integration methods against one another.
    """
    if roles:
        with one_line_errors(f"The files in {output} are as the last step left them."):
            predictions = play_roles(output, ("hospital-a", "hospital-b"), quiet=quiet or as_json)
            if as_json:
                typer.echo(json.dumps({"predictions": str(predictions)}, indent=2))
        return
    with one_line_errors("Nothing was written; run the command again, with fewer --seeds if it takes too long."):
        start = time.perf_counter()
        output.mkdir(parents=True, exist_ok=True)
        demonstration, written = _run(dataset, data_dir, parties, rows, seeds, jobs, output, quiet)
    if as_json:
        typer.echo(json.dumps(demonstration.as_dict(), indent=2))
    else:
        _print_table(demonstration, dataset)
        typer.echo("\n".join([*(f"  {path}" for path in written), f"Done in {time.perf_counter() - start:.0f} s."]))


def _run(
    dataset: str, data_dir: Path | None, parties: int, rows: int, seeds: int, jobs: int, output: Path, quiet: bool
) -> tuple[Demonstration, list[Path]]:
    from ._demonstration import SITUATIONS, demonstrate, demonstration_figure, demonstration_page

    with shown_progress(quiet, steps=2 + seeds * len(SITUATIONS), first="loading") as progress:
        from ..datasets import load

        data = load(dataset, data_dir=data_dir)
        if data.task != "classification":
            raise ValueError(f"The demonstration is of classes, and {dataset!r} has numbers; try `datacollab compare`.")
        progress(f"playing {len(SITUATIONS)} situations in {seeds} draw{'s' if seeds > 1 else ''}")
        demonstration = demonstrate(
            data, n_parties=parties, n_rows=rows, seeds=range(seeds), progress=progress, n_jobs=jobs
        )
        progress("drawing")
        figure = demonstration_figure(data, demonstration)
        picture, page, scores = output / "pays.png", output / "index.html", output / "scores.json"
        figure.savefig(picture, dpi=144)
        command = shlex.join(["datacollab", *sys.argv[1:]])
        page.write_text(demonstration_page(demonstration, dataset, figure, command), encoding="utf-8")
        scores.write_text(json.dumps(demonstration.as_dict(), indent=2), encoding="utf-8")
    return demonstration, [picture, page, scores]


def _print_table(demonstration: Demonstration, dataset: str) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    from ._demonstration import SITUATIONS, WAYS

    console = Console()
    title = f"{dataset}: accuracy on new rows, and own rows that an attacker links"
    table = Table(title=title, box=box.SIMPLE_HEAD, show_lines=True)
    table.add_column("public rows,\nsharing")
    for heading in (*WAYS, "linked"):
        table.add_column(heading.replace(" in ", " in\n"), justify="right")
    for situation in SITUATIONS:
        risk = demonstration.linked[situation]
        public = "with targets" if situation.labelled else "without targets"
        table.add_row(
            f"{public},\n{'private' if situation.private else 'undefended'}",
            *(_number(*demonstration.interval(situation, way)) for way in WAYS),
            "no own row" if risk is None else f"{100 * risk[0]:.0f} %",
        )
    console.print(table)
    for sentence in demonstration.sentences():
        console.print(f"• {sentence}", highlight=False)
    if len(demonstration.seeds) < _ENOUGH_DRAWS:
        console.print(f"With more draws intervals are narrower: --seeds {_ENOUGH_DRAWS}.", highlight=False)


def _number(mean: float, half_width: float) -> str:
    return f"{mean:.3f}" if math.isnan(half_width) else f"{mean:.3f}\n± {half_width:.3f}"
