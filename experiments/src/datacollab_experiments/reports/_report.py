"""From results to a report: tables, figures, rows, and a page that shows them all."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from datacollab._validation import FloatArray
from datacollab.datasets import load

from ..claims import check_claims, in_order, interval
from ..paper import SECONDS, Condition, ExperimentResults, Row, alignment_figure, read_results
from ._figures import Picture, Plot, picture_figure, render_figure, result_figures
from ._page import claims_markdown, report_page
from ._table import OBFUSCATORS, TEXTS, slug, to_csv, to_markdown, write_csv
from ._tables import TIME_FIGURES, papers_attacks, result_tables

_SETTINGS = tuple(field.name for field in fields(Condition))


def canonical(rows: Mapping[str, Sequence[Row]]) -> dict[str, list[Row]]:
    """Sort rows, so that their order does not depend on how they came; experiments by name."""
    return {experiment: sorted(rows[experiment], key=_key) for experiment in sorted(rows) if rows[experiment]}


def error_type(row: Row) -> str:
    """Return the kind of error of a failed row, which stands before the first colon."""
    if row.error is None:
        return ""
    return row.error.partition(":")[0].strip()


def scores_csv(rows: Mapping[str, Sequence[Row]]) -> str:
    """All rows with their scores, without seconds and versions, which differ between runs."""
    return _csv(rows, lambda row: row.scores, lambda row: [error_type(row), row.cell], ["error", "cell"])


def seconds_csv(rows: Mapping[str, Sequence[Row]]) -> str:
    """All rows with their wall times, commits and versions."""

    def rest(row: Row) -> list[Any]:
        return [row.commit, " ".join(f"{library}={version}" for library, version in sorted(row.versions.items()))]

    return _csv(rows, lambda row: row.seconds, rest, ["commit", "versions"])


def all_csv(rows: Mapping[str, Sequence[Row]]) -> str:
    """All rows with their scores and times, as `datacollab_experiments.paper.take_rows` reads them."""

    def values(row: Row) -> dict[str, float]:
        return {**row.scores, **{f"{SECONDS}{step}": round(seconds, 3) for step, seconds in row.seconds.items()}}

    return _csv(rows, values, lambda row: [error_type(row), row.cell], ["error", "cell"])


def _csv(
    rows: Mapping[str, Sequence[Row]],
    values: Callable[[Row], Mapping[str, float]],
    rest: Callable[[Row], list[Any]],
    rest_head: list[str],
) -> str:
    ordered = [(row, values(row)) for part in canonical(rows).values() for row in part]
    measures = sorted({measure for _, found in ordered for measure in found})
    records = (
        [
            row.experiment,
            *("" if value is None else value for value in _settings(row)),
            row.kind,
            row.name,
            row.seed,
            # repr keeps all digits.
            *(repr(float(found[measure])) if measure in found else "" for measure in measures),
            *rest(row),
        ]
        for row, found in ordered
    )
    return write_csv(["experiment", *_SETTINGS, "kind", "name", "seed", *measures, *rest_head], records)


def _settings(row: Row) -> list[Any]:
    return [getattr(row.condition, setting) for setting in _SETTINGS]


def _key(row: Row) -> tuple[Any, ...]:
    settings = ((value is None, 0 if value is None else value) for value in _settings(row))
    return (*settings, row.kind, row.name, row.seed, row.cell)


def write_report(
    rows: Mapping[str, Sequence[Row]],
    output: Path,
    *,
    title: str,
    command: str,
    notes: Sequence[str] = (),
    pictures: Sequence[Picture] = (),
    illustrations: Sequence[Plot] = (),
) -> list[Path]:
    """Write results of experiments as tables, figures and one page, and return the files.

    Any part of the experiments will do.  But for ``index.html`` and files with "seconds" in their name, equal rows give
    equal bytes, in whatever order they come.

    Raises
    ------
    ValueError
        When rows of one experiment cannot be told apart by the columns of its tables, before anything is written.
    MissingExtraError
        When matplotlib is not installed, before anything is written.
    """
    ordered = canonical(rows)
    presets = sorted({row.condition.hyperparameters for part in ordered.values() for row in part})
    verdicts = {preset: check_claims(ordered, preset) for preset in presets}
    tables = result_tables(ordered)
    plots = [*result_figures(ordered), *_plots_of(pictures), *illustrations]
    drawn = {plot.name: render_figure(plot.figure, "svg") for plot in plots}

    files = {Path("rows.csv"): scores_csv(ordered), Path("seconds.csv"): seconds_csv(ordered)}
    for table in tables:
        for suffix, render in ((".md", to_markdown), (".csv", to_csv)):
            files[Path("tables", f"{table.name}{suffix}")] = render(table)
    for name, measured in (("claims", False), ("claims_seconds", True)):
        part = {preset: [each for each in found if (each.claim.source in TIME_FIGURES.values()) == measured]
                for preset, found in verdicts.items()}  # fmt: skip
        if any(part.values()):
            files[Path("tables", f"{name}.md")] = claims_markdown(part)
    written = {path: text.encode() for path, text in files.items()}
    for plot in plots:
        written[Path("figures", f"{plot.name}.svg")] = drawn[plot.name]
        written[Path("figures", f"{plot.name}.png")] = render_figure(plot.figure, "png")
    page = report_page(ordered, tables, plots, drawn, verdicts, title=title, command=command, notes=notes)
    written[Path("index.html")] = page.encode()

    # All is rendered before anything is written, so that an error leaves no half report.
    for path, content in written.items():
        (output / path).parent.mkdir(parents=True, exist_ok=True)
        (output / path).write_bytes(content)
    return [output / path for path in sorted(written)]


def _plots_of(pictures: Sequence[Picture]) -> list[Plot]:
    plots: list[Plot] = []
    for number, picture in enumerate(pictures, start=1):
        name = f"picture-{number}_{slug(picture.title)}"
        plots.append(Plot(name, "rq4", f"{picture.title}.", picture_figure(picture)))
    return plots


_ILLUSTRATION = (
    "Three parties (markers) hold digits of three classes (colours). Left: as each party's UMAP places them. Then KTI, "
    "with the target-similarity graph, and centred. Percentages: how much of the variance of the same new rows, as all "
    "three parties see them, lies between the parties. It reproduces fig:graph-center-illustration on real rows."
)


def report_results(results: Path, output: Path) -> list[Path]:
    """Write the report of stored results.

    Raises
    ------
    ValueError
        When there are no results.
    """
    found = read_results(results)
    presets = sorted({experiment.preset for experiment in found.experiments})
    title = f"Experiments of the paper, preset {' and '.join(presets)}"
    if found.missing:
        n_rows = sum(map(len, found.rows.values()))
        title += f" – INCOMPLETE: {n_rows} of {n_rows + found.missing} rows"
    names = " ".join(experiment.name for experiment in found.experiments)
    illustrations = []
    if "rq2" in found.rows:
        figure = alignment_figure(load("digits"))
        illustrations.append(Plot("illustration", "illustration", _ILLUSTRATION, figure))
    return write_report(
        found.rows,
        output,
        title=title,
        command=f"datacollab experiment run {names} --preset {' or '.join(presets)}",
        # Notes that hold for all experiments, and those of each definition.
        notes=[*TEXTS["deviations"], *(f"{each.name}: {note}" for each in found.experiments for note in each.notes)],
        pictures=reconstruction_pictures(found),
        illustrations=illustrations,
    )


def reconstruction_pictures(results: ExperimentResults) -> list[Picture]:
    """Return originals, and below them the best reconstruction from each obfuscator's representations (fig:recon-64).

    One picture per data set whose rows are square images, for the widest representations under the paper's
    hyperparameters; the best attack is the one with the highest mean reconstruction accuracy.
    """
    rows = [
        row
        for row in papers_attacks(results.rows.get("rq4", ()))
        if row.error is None and row.condition.hyperparameters == "paper"
    ]
    pictures = []
    for dataset in sorted({row.condition.dataset for row in rows}):
        of_dataset = [row for row in rows if row.condition.dataset == dataset]
        # fig:recon-64 shows the widest representations, which reveal most.
        widest = max(row.condition.n_components for row in of_dataset)
        shown: list[tuple[str, FloatArray]] = []
        for kind in OBFUSCATORS:
            candidates = [r for r in of_dataset if (r.condition.obfuscator, r.condition.n_components) == (kind, widest)]
            best = _strongest(candidates)
            images = None if best is None else results.images(best)
            # Tables have no pictures, and images are kept for the first seed alone.
            if best is None or images is None or not _is_square(images.shape[-1]):
                continue
            if not shown:
                shown.append(("Original", images[0]))
            shown.append((f"{OBFUSCATORS[kind]} ({best.name})", images[1]))
        if shown:
            pictures.append(
                Picture(
                    f"Reconstructions, {dataset}, {widest} columns",
                    [label for label, _ in shown],
                    np.stack([_as_images(rows) for _, rows in shown]),
                )
            )
    return pictures


def _strongest(rows: list[Row]) -> Row | None:
    """The first seed's row of the attack with the highest mean."""
    means = {
        name: interval([row.scores["reconstruction_accuracy"] for row in rows if row.name == name]).mean
        for name in in_order(row.name for row in rows)
    }
    if not means:
        return None
    strongest = max(means, key=lambda name: means[name])
    return next((row for row in rows if row.name == strongest and row.seed == 0), None)


def _is_square(n_features: int) -> bool:
    return int(np.sqrt(n_features)) ** 2 == n_features


def _as_images(rows: FloatArray) -> FloatArray:
    side = int(np.sqrt(rows.shape[1]))
    return rows.reshape(-1, side, side)
