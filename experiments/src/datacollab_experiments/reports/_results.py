"""From a file of results to a report."""

from pathlib import Path

import numpy as np

from datacollab._validation import FloatArray
from datacollab.datasets import load

from ..claims import in_order, interval
from ..paper import ExperimentResults, Row, alignment_figure, read_results
from ._cells import OBFUSCATORS, TEXTS
from ._drawing import Plot
from ._picture import Picture
from ._privacy_tables import papers_attacks
from ._report import write_report

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
