"""``datacollab experiment``: the paper's experiments and their report; and ``datacollab compare``."""

from __future__ import annotations

import json
import math
import shlex
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from datacollab.cli.kit import FAILED, group, one_line_errors, shown_progress

if TYPE_CHECKING:
    from ..harness import Progress
    from ..paper import Comparison, Experiment


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


app = group("Run the paper's experiments, and report them beside the published values.")

PRESETS = ("smoke", "quick", "printed", "paper")


@app.command("list")
def list_experiments() -> None:
    """List the experiments that come with the library, and how large they are.

    For example:

      datacollab experiment list
    """
    from rich.console import Console
    from rich.table import Table

    from ..paper import experiment_names, load_experiment

    table = Table("experiment", "what", *PRESETS, caption="trials per preset")
    for name in experiment_names():
        by_preset = [load_experiment(name, preset) for preset in PRESETS]
        title = next(found.title for found in by_preset if found is not None)
        table.add_row(name, title, *(_n_trials(found) for found in by_preset))
    Console().print(table)


@app.command()
def show(experiment: Annotated[str, Argument(help="Name, as `experiment list` shows it.")]) -> None:
    """Print a definition, to start one of your own from.

    For example, compare a method of your own with those of the paper:

      datacollab experiment show rq1 > rq1.toml

      (add a line to its methods: Mine = { class = "my_module:MyIntegrator" })

      datacollab experiment run rq1.toml --preset quick
    """
    with one_line_errors("Nothing was written."):
        from ..paper import definition_text

        typer.echo(definition_text(experiment), nl=False)


@app.command()
def run(  # noqa: PLR0913
    experiments: Annotated[list[str], Argument(help="Names, paths of TOML definitions, or all.")],
    preset: Annotated[
        str, Option(help="How much: smoke, quick, printed, paper, or one that your definition has.")
    ] = "smoke",
    output: Annotated[
        Path | None, Option("--output", "-o", metavar="DIR", help="Directory of the results. Default: output/PRESET.")
    ] = None,
    data_dir: Annotated[Path | None, Option(help="Directory that holds the data sets.")] = None,
    jobs: Annotated[int, Option("--jobs", "-j", help="Trials at a time; -1: as many as there are cores.")] = -1,
    method: Annotated[
        list[str] | None,
        Option(help="A method of your own for every experiment, NAME=package.module:Class. Repeatable."),
    ] = None,
    retry_failed: Annotated[bool, Option("--retry-failed", help="Compute failed rows again.")] = False,
    hours: Annotated[float | None, Option(help="Begin no trial later than this after the start.")] = None,
    done: Annotated[
        list[Path] | None,
        Option("--done", metavar="FILE", help="Rows of an earlier run (rows.csv) that count as done. Repeatable."),
    ] = None,
    quiet: Annotated[bool, Option("--quiet", "-q", help="No progress.")] = False,
) -> None:
    """Run experiments; rows that are there are not computed again.

    Stop it at any time, by Ctrl-C or otherwise: the same command goes on where
    it was. The scores do not depend on --jobs. The presets: smoke takes minutes
    and needs no data but what comes with scikit-learn, quick takes an hour or
    two on two cores, paper is as large as the paper (weeks on one computer),
    and printed is that part of it whose numbers the paper prints. Ten seeds of
    everything come first, the cheapest conditions before the others. Exits with
    1 if any row failed.

    For example:

      datacollab experiment run all --preset smoke
      datacollab experiment run rq1 rq4 --preset quick --data-dir data
      datacollab experiment run all --preset smoke --method Mine=my_module:Mine
    """
    folder = output or Path("output") / preset
    with one_line_errors("What was computed is kept; the same command goes on from there."):
        from ..harness import results_file
        from ..paper import read_results, run_experiments, take_rows

        chosen = _load(experiments, preset, dict(_parse_method(text) for text in method or []))
        file = results_file(folder)
        # Rows of earlier runs go in first, so that they are not computed again.
        for rows in done or []:
            take_rows(rows, file)
        with _shown(quiet) as show_progress:
            run_experiments(
                chosen, file, data_dir=data_dir, n_jobs=jobs, retry_failed=retry_failed, hours=hours,
                progress=show_progress,
            )  # fmt: skip
        names = ", ".join(experiment.name for experiment in chosen)
        # Without a limit of hours a run ends when nothing is left.
        missing = hours is not None and read_results(file).missing
        typer.echo(f"{names} at preset {preset}: {f'{missing} rows left' if missing else 'complete'} in {file}.")
        typer.echo(f"Next: datacollab experiment report {shlex.quote(str(folder))}")
        _say_what_failed(file, [experiment.name for experiment in chosen])


@app.command()
def report(
    results: Annotated[Path, Argument(help="Directory of the results, as `experiment run` wrote it.")],
    output: Annotated[
        Path | None, Option("--output", "-o", metavar="DIR", help="Directory of the report. Default: RESULTS/report.")
    ] = None,
) -> None:
    """Report results beside the published values: one page, tables and figures.

    Writes index.html, which holds everything and needs no network; each table
    as Markdown and CSV; each figure as SVG and PNG; and rows.csv, one
    line for each number.

    For example:

      datacollab experiment report output/quick
    """
    with one_line_errors("The report is incomplete; run the command again."):
        from ..reports import report_results

        written = report_results(results, output or results / "report")
        typer.echo("\n".join(str(path) for path in written if path.suffix == ".html"))
        typer.echo(f"{len(written)} files in {output or results / 'report'}.")


def _say_what_failed(file: Path, names: list[str]) -> None:
    """List failed rows, also those of earlier runs, and exit with 1 if there are any."""
    from ..paper import read_results

    rows = [row for name, part in read_results(file).rows.items() if name in names for row in part if row.error]
    if not rows:
        return
    counts = Counter((row.experiment, row.name, row.error) for row in rows)
    typer.echo("Failed rows, which enter no mean; --retry-failed computes them again:", err=True)
    for (experiment, name, error), count in counts.most_common(10):
        typer.echo(f"  {experiment}, {name}: {count} x {error}", err=True)
    # Scripts see that a run is not whole.
    raise typer.Exit(FAILED)


def _n_trials(experiment: Experiment | None) -> str:
    from ..paper import make_tasks

    if experiment is None:
        return "–"
    return str(len(make_tasks([experiment])))


def _load(names: list[str], preset: str, methods: dict[str, dict[str, str]]) -> list[Experiment]:
    from ..paper import experiment_names, load_experiment, preset_names

    wanted = list(names)
    if "all" in wanted:
        place = wanted.index("all")
        # The names take the place of "all", so that the order is kept.
        wanted[place : place + 1] = experiment_names()
    found = {name: load_experiment(name, preset) for name in dict.fromkeys(wanted)}
    for name, experiment in found.items():
        # One that was named must have the preset; of all, those without it are left out.
        if experiment is None and name in names:
            raise ValueError(f"Experiment {name!r} has no preset {preset!r}; it has {', '.join(preset_names(name))}.")
    chosen = [experiment.with_methods(methods) for experiment in found.values() if experiment is not None]
    if not chosen:
        raise ValueError(f"No experiment has a preset {preset!r}; there are {', '.join(PRESETS)}.")
    return chosen


def _parse_method(text: str) -> tuple[str, dict[str, str]]:
    name, equals, path = text.partition("=")
    if not (name and equals and path):
        raise ValueError(f"--method takes NAME=package.module:Class; got {text!r}.")
    return name, {"class": path}


@contextmanager
def _shown(quiet: bool) -> Iterator[Callable[[Progress], None]]:
    """Progress in trials, and the time left."""
    with shown_progress(quiet, first="first trials") as say:

        def show(state: Progress) -> None:
            failed = ""
            if state.failed:
                failed = f", {state.failed} rows failed"
            say(f"{state.done} of {state.total} trials{failed}; last: {state.label}", state.share)

        yield show
