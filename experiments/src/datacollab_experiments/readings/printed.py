"""The paper as printed: every number that it prints beside ours, and what the rest would cost.

``python -m datacollab_experiments.readings.printed output/printed docs/results/printed/rows.csv.gz --to FOLDER`` takes
results of ``datacollab experiment run --preset printed`` and rows of earlier runs, and writes the page, its claims, its
figures, and all rows.
"""

from __future__ import annotations

import argparse
import gzip
import io
import json
import math
import tempfile
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import nnls

from datacollab.datasets import load

from ..claims import Interval, PublishedValue, check_claims, estimate, published_values
from ..harness import Outcome, ResultStore, markdown, results_file
from ..paper import (
    BASELINES,
    Experiment,
    ExperimentResults,
    Row,
    alignment_figure,
    load_experiment,
    read_results,
    take_rows,
)
from ..paper._plan import cells, drawn_condition
from ..reports._claims_text import claims_markdown, count_verdicts
from ..reports._drawing import legend_below, panels, plain_style, rendered
from ..reports._figures import result_figures
from ..reports._picture import picture_figure
from ..reports._privacy_tables import strongest_attack
from ..reports._records import all_csv
from ..reports._results import reconstruction_pictures
from ..reports._table import number, with_half_width
from ..reports._tables import TIME_FIGURES

__all__ = ["Compared", "compared", "experiments", "gather", "main", "page"]

WIDTH = Path(__file__).with_name("protocol-width.toml")
PRINTED = ("rq1", "rq2", "rq3", "rq4", "regression")
_TABLES = {
    "tab:rq4-tradeoff-main-wide": "rq4",
    "tab:rq4-integration-accuracy-wide": "rq4",
    "tab:recon-score-2datasets-transposed-se": "regression",
    "fig:num-existing": "rq1",
}
"""Experiments by the label of what they reproduce."""

FEWEST_SEEDS = 10
_OBFUSCATORS = {"pca": "PCA", "kernel-pca": "kernel PCA", "umap": "UMAP"}
_ROUNDING = 0.0005
"""Half of the last printed digit, where no interval is printed."""


@dataclass(frozen=True, kw_only=True)
class Compared:
    """One printed number and ours.

    Attributes
    ----------
    printed : PublishedValue
    ours : Interval or None
        None where no seed was run.
    attack : str
        Of a reconstruction, our strongest attack; otherwise "".
    halved : Interval or None
        Under PCA, KTI with half the gamma that the paper states.
    """

    printed: PublishedValue
    ours: Interval | None = None
    attack: str = ""
    halved: Interval | None = None

    @property
    def is_run(self) -> bool:
        """Whether there are ten seeds."""
        return self.ours is not None and self.ours.n >= FEWEST_SEEDS

    @property
    def reading(self) -> Interval | None:
        """Ours with half the gamma where ten seeds of that were run, and as printed otherwise."""
        return self.halved if self.halved is not None and self.halved.n >= FEWEST_SEEDS else self.ours

    def is_inside(self, found: Interval | None) -> bool:
        """Whether the difference is at most both half widths together."""
        if found is None or math.isnan(found.half_width):
            return False
        printed = _ROUNDING if self.printed.half_width is None else self.printed.half_width
        return abs(found.mean - self.printed.mean) <= printed + found.half_width

    def is_settled(self, found: Interval | None) -> bool:
        """Whether our half width is at most half the difference."""
        return found is not None and found.half_width <= abs(found.mean - self.printed.mean) / 2


def experiments() -> list[Experiment]:
    """All experiments of the preset, and KTI under PCA with half the gamma."""
    found = [load_experiment(name, "printed") for name in (*PRINTED, WIDTH)]
    return [each for each in found if each is not None]


def gather(sources: Sequence[Path]) -> ExperimentResults:
    """Read results and rows of earlier runs, the first of which counts where two have a row.

    Parameters
    ----------
    sources : sequence of Path
        Folders of results, and files of rows.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = results_file(Path(folder))
        with ResultStore(file) as store:
            every = {cell.id: cell.definition() for experiment in experiments() for cell in cells(experiment)}
            store.keep_definitions({each.name: each.to_json() for each in experiments()}, every)
        for source in sources:
            if source.is_dir():
                _take_results(results_file(source), file)
            else:
                take_rows(source, file)
        return read_results(file)


def _take_results(source: Path, file: Path) -> None:
    with ResultStore(source) as earlier, ResultStore(file) as store:
        by_origin: dict[tuple[int, str, str], list[Outcome]] = {}
        for (cell, seed), found in earlier.results().items():
            if found.error is None:
                images = earlier.images(cell, seed) if seed == 0 else None
                outcome = Outcome(cell=cell, scores=found.scores, seconds=found.seconds, images=images)
                by_origin.setdefault((seed, json.dumps(found.versions), found.source), []).append(outcome)
        for (seed, versions, commit), outcomes in by_origin.items():
            store.save(seed, outcomes, json.loads(versions), commit)


def compared(rows: Mapping[str, Sequence[Row]]) -> list[Compared]:
    """Return every printed number with ours, in the order of the paper's tables."""
    return [_compared(value, rows) for value in published_values()]


def _compared(printed: PublishedValue, rows: Mapping[str, Sequence[Row]]) -> Compared:
    def of(experiment: str) -> list[Row]:
        wanted = {axis: getattr(printed, axis) for axis in ("dataset", "obfuscator", "n_components", "n_parties")}
        return [
            row
            for row in rows.get(experiment, ())
            if all(value in (None, getattr(row.condition, axis)) for axis, value in wanted.items())
        ]

    here = of(_TABLES[printed.table])
    if printed.name == "reconstruction":
        strongest = strongest_attack(here)
        if strongest is None:
            return Compared(printed=printed)
        attack, attacked = strongest
        return Compared(printed=printed, ours=estimate(attacked, printed.measure).interval, attack=attack)
    # What a party does alone is one row, whatever the obfuscator.
    alone = printed.name in BASELINES
    values = {row.seed: row for row in here if row.name == printed.name} if alone else None
    own = list(values.values()) if values is not None else [row for row in here if row.name == printed.name]
    halved = [row for row in of("protocol-width") if row.name == f"{printed.name}, gamma 0.5"]
    return Compared(
        printed=printed,
        ours=estimate(own, printed.measure).interval,
        halved=estimate(halved, printed.measure).interval if printed.table.startswith("tab:rq4") else None,
    )


def page(results: ExperimentResults, figure_names: Iterable[str] = ()) -> dict[str, str]:
    """Return the texts of the page and of its claims, by file name.

    Parameters
    ----------
    results : ExperimentResults
    figure_names : iterable of str
        Files of the figures that the page shows, of those in `_FIGURES`.
    """
    found = compared(results.rows)
    verdicts = [each for each in check_claims(results.rows) if each.claim.source not in TIME_FIGURES.values()]
    shown = [name for name in _FIGURES if name in set(figure_names)]
    parts = {
        "answer": _answer(found),
        "counts": _counts(found),
        "tables": "\n\n".join(_table(label, found) for label in _TABLES),
        "differences": _differences(found),
        "claims": count_verdicts(verdicts),
        "figures": "\n\n".join(f"![{_FIGURES[name]}]({name})" for name in shown),
        "costs": _costs(results),
    }
    text = Path(__file__).with_name("printed.md").read_text(encoding="utf-8")
    for name, part in parts.items():
        text = text.replace("{{" + name + "}}", part)
    return {"README.md": text, "claims.md": claims_markdown({"paper": verdicts})}


_FIGURES = {
    "rq4_trade-off_paper.png": "RQ4: accuracy against reconstruction",
    "reconstructions_mnist.png": "RQ4: reconstructions of MNIST with 64 columns",
    "reconstructions_fashion-mnist.png": "RQ4: reconstructions of Fashion-MNIST with 64 columns",
    "regression.png": "Regression: printed and ours",
    "rq1_paper.png": "RQ1: accuracy by number of parties",
    "rq2_paper.png": "RQ2: accuracy by number of parties",
    "rq3_quantity_paper.png": "RQ3: accuracy by number of anchors",
    "rq3_quality_paper.png": "RQ3: accuracy by real rows behind the anchors",
    "rq3_seconds-construct_paper.png": "RQ3: seconds to construct all integration functions",
    "rq3_seconds-represent_paper.png": "RQ3: seconds to represent the test rows",
    "toy.png": "Graphs and centring, on three classes of MNIST",
}
"""What the figures show, by file, in the order of the page."""


def _pipes(head: Sequence[str], lines: Iterable[Sequence[Any]]) -> str:
    return markdown(head, [[str(cell) for cell in line] for line in lines])


def _is_accuracy(each: Compared, *obfuscators: str) -> bool:
    return each.printed.measure == "accuracy" and each.printed.obfuscator in obfuscators


def _groups(found: Sequence[Compared]) -> dict[str, list[Compared]]:
    """Printed numbers by what they are, in the order of the table of counts."""
    trade_off = [each for each in found if each.printed.table == "tab:rq4-tradeoff-main-wide"]
    integration = [each for each in found if each.printed.table == "tab:rq4-integration-accuracy-wide"]
    regression = [each for each in found if each.printed.measure == "rmse"]
    groups: dict[str, list[Compared]] = {}
    for kind, title in _OBFUSCATORS.items():
        groups[f"tab:rq4-tradeoff-main-wide, accuracy, {title}"] = [e for e in trade_off if _is_accuracy(e, kind)]
    for kind, title in _OBFUSCATORS.items():
        groups[f"tab:rq4-tradeoff-main-wide, reconstruction, {title}"] = [
            e for e in trade_off if e.printed.name == "reconstruction" and e.printed.obfuscator == kind
        ]
    for kind, title in _OBFUSCATORS.items():
        groups[f"tab:rq4-integration-accuracy-wide, {title}"] = [e for e in integration if _is_accuracy(e, kind)]
    latitude = [each for each in regression if each.printed.dataset == "ujiindoorloc"]
    for kind, title in _OBFUSCATORS.items():
        groups[f"regression, UJIIndoorLoc, {title}"] = [e for e in latitude if e.printed.obfuscator == kind]
    groups["regression, UJIIndoorLoc, Local and Central"] = [e for e in latitude if e.printed.obfuscator is None]
    groups["regression, slice localisation"] = [e for e in regression if e.printed.dataset == "slice-localization"]
    groups["RQ1, Central with 2 and 64 parties"] = [e for e in found if e.printed.table == "fig:num-existing"]
    return groups


def _n_inside(found: Iterable[Compared], reading: Callable[[Compared], Interval | None]) -> int:
    return sum(each.is_inside(reading(each)) for each in found if each.is_run)


def _as_printed(each: Compared) -> Interval | None:
    return each.ours


def _with_half(each: Compared) -> Interval | None:
    return each.reading


def _share(found: Sequence[Compared], reading: Callable[[Compared], Interval | None]) -> str:
    n_run = sum(each.is_run for each in found)
    if n_run == 0:
        return f"none of {len(found)} run"
    inside = _n_inside(found, reading)
    left = "" if n_run == len(found) else f" that were run, of {len(found)} printed"
    return f"{inside} of {n_run} ({100 * inside / n_run:.0f} %){left}"


def _answer(found: Sequence[Compared]) -> str:
    groups = _groups(found)
    wide = [e for title, part in groups.items() if title.startswith("tab:rq4-integration") for e in part]
    linear = [each for each in wide if _is_accuracy(each, "pca", "kernel-pca")]
    utility = [
        e for e in found if e.printed.table == "tab:rq4-tradeoff-main-wide" and _is_accuracy(e, "pca", "kernel-pca")
    ]
    risk = [e for e in found if e.printed.name == "reconstruction" and e.printed.obfuscator != "umap"]
    latitude = [e for e in found if e.printed.dataset == "ujiindoorloc"]
    umap = [e for e in found if e.printed.table.startswith("tab:rq4") and e.printed.obfuscator == "umap"]
    sentences = [
        "**How much of what the paper prints do we get?** Under PCA and kernel PCA, "
        f"{_share(utility, _as_printed)} accuracies of tab:rq4-tradeoff-main-wide lie within the printed interval plus "
        f"ours with γ = 1 as printed, and {_share(utility, _with_half)} with γ = 1/2 under PCA.",
        f"Of tab:rq4-integration-accuracy-wide it is {_share(linear, _as_printed)}, and {_share(linear, _with_half)}.",
        f"Reconstruction under PCA and kernel PCA: {_share(risk, _as_printed)}. UJIIndoorLoc: "
        f"{_share(latitude, _as_printed)}. RQ4 under UMAP: {_share(umap, _as_printed)}.",
        "RQ1 to RQ3 are printed as figures without numbers, but for Central in RQ1; for them there are only "
        "[claims](#claims).",
    ]
    return " ".join(sentences)


def _counts(found: Sequence[Compared]) -> str:
    lines = []
    for title, part in _groups(found).items():
        n_run = sum(each.is_run for each in part)
        open_cells = sum(
            each.is_run and not each.is_inside(each.ours) and not each.is_settled(each.ours) for each in part
        )
        has_half = any(each.halved for each in part)
        lines.append(
            [
                title,
                len(part),
                n_run,
                _n_inside(part, _as_printed) if n_run else "",
                _n_inside(part, _with_half) if n_run and has_half else "",
                open_cells or "",
            ]
        )
    head = ["printed", "cells", "run", "inside, γ = 1", "inside, γ = 1/2", "outside, more seeds needed"]
    note = (
        "*More seeds needed*: the difference is larger than both half widths, but our half width is still above half "
        "of it. The four accuracies of Central have no printed interval; ours alone counts."
    )
    return _pipes(head, lines) + "\n\n" + note


def _table(label: str, found: Sequence[Compared]) -> str:
    lines = []
    for each in found:
        printed = each.printed
        if printed.table != label:
            continue
        decimals = 2 if printed.measure == "rmse" else 3
        where = [printed.dataset, _OBFUSCATORS.get(printed.obfuscator or "", "")]
        where.append(str(printed.n_components or printed.n_parties or ""))
        name = printed.name
        attacks = "" if not printed.attack else f" ({printed.attack})"
        lines.append(
            [
                *where,
                name,
                with_half_width(printed.mean, printed.half_width, decimals) + attacks,
                *_ours(each, each.ours, decimals),
            ]
        )
        if each.halved is not None:
            lines.append(["", "", "", f"{name}, γ = 1/2", "", *_ours(each, each.halved, decimals)])
    sizes = "K" if label == "fig:num-existing" else "d̃"
    head = ["data set", "obfuscator", sizes, "what", "printed", "ours", "seeds", "difference", "inside"]
    title = label if label.startswith("tab:") else f"{label} (from the text beside it)"
    return f"### {title}\n\n" + _pipes(head, lines)


def _ours(each: Compared, found: Interval | None, decimals: int) -> list[Any]:
    if found is None:
        return ["", 0, "", "not run"]
    text = with_half_width(found.mean, found.half_width, decimals)
    if each.attack:
        text += f" ({each.attack})"
    difference = number(found.mean - each.printed.mean, decimals)
    sign = "+" if found.mean >= each.printed.mean else ""
    verdict = ("yes" if each.is_inside(found) else "**no**") if each.is_run else "too few seeds"
    return [text, found.n, f"{sign}{difference}".replace("-", "−"), verdict]


@cache
def _reasons() -> dict[tuple[str | None, str], str]:
    """Return what is known of deviations, by obfuscator and name."""
    text = Path(__file__).with_name("printed.toml").read_text(encoding="utf-8")
    return {(each.get("obfuscator"), each["name"]): each["text"] for each in tomllib.loads(text).get("reason", ())}


def _differences(found: Sequence[Compared]) -> str:
    """Return every cell that was run and is outside, with what was tried."""
    grouped: dict[tuple[str | None, str], list[str]] = {}
    for each in found:
        if not each.is_run or each.is_inside(each.reading):
            continue
        printed = each.printed
        if printed.table == "tab:rq4-tradeoff-main-wide" and printed.name != "reconstruction":
            continue  # the same number stands in tab:rq4-integration-accuracy-wide
        reading = each.reading
        assert reading is not None
        decimals = 2 if printed.measure == "rmse" else 3
        size = printed.n_components or printed.n_parties
        where = printed.dataset + ("" if size is None else f" {size}")
        sign = "+" if reading.mean > printed.mean else "−"
        away = f"{where} {sign}{number(abs(reading.mean - printed.mean), decimals)}"
        grouped.setdefault((printed.obfuscator, printed.name), []).append(away)
    lines = [
        [
            f"{name}{', ' + _OBFUSCATORS[kind] if kind else ''}",
            "; ".join(cells_away),
            _reasons().get((kind, name), "nothing yet"),
        ]
        for (kind, name), cells_away in grouped.items()
    ]
    if not lines:
        return "No cell that was run is outside."
    note = (
        "Cells outside: ours less printed, with γ = 1/2 for KTI and KTI+TSL under PCA. Numbers after a data set are "
        "columns, or parties."
    )
    return note + "\n\n" + _pipes(["what", "cells", "known, and tried"], lines)


def _costs(results: ExperimentResults) -> str:
    """Return what each experiment took, and what its missing trials would."""
    measured = _trial_seconds(results)
    model = _umap_model(measured)
    lines, hours = [], []
    for name in (*PRINTED, "slice"):
        # Slice localisation has no rows to run on; its conditions would be those of UJIIndoorLoc.
        experiment = load_experiment("regression" if name == "slice" else name, "printed")
        assert experiment is not None
        rows = {(row.cell, row.seed) for row in results.rows.get(name, ()) if row.error is None}
        trials: dict[str, list[tuple[int, bool, float]]] = {}
        for condition in experiment.conditions:
            seconds = _expected(drawn_condition(condition), measured, model)
            wanted = [cell.id for cell in cells(experiment) if cell.condition == condition]
            trials.setdefault(_title(condition), []).extend(
                (seed, all((cell, seed) in rows for cell in wanted), seconds) for seed in experiment.seeds
            )
        for title, of_condition in trials.items():
            left = [(seed, seconds / 3600) for seed, is_there, seconds in of_condition if not is_there]
            first = sum(each for seed, each in left if seed < FEWEST_SEEDS)
            hours.append((first, sum(each for _, each in left)))
            mean = float(np.mean([seconds for *_, seconds in of_condition]))
            run = f"{len(of_condition) - len(left)} of {len(of_condition)}"
            lines.append([name, title, run, _amount(mean, 0), *(_amount(each, 1) for each in hours[-1])])
    known = [each for each in hours if not math.isnan(each[0])]
    lines.append(["all", "", "", "", *(_amount(sum(column), 0) for column in zip(*known, strict=True))])
    head = ["experiment", "condition", "trials run", "CPU seconds a trial", "hours to ten seeds", "hours to all seeds"]
    note = (
        "CPU seconds: the mean of the trials that ran whole; for other numbers of parties under UMAP, c + a K + b K² "
        "fitted to those. A run's first trial includes what umap-learn takes to compile. RQ1 and RQ2 share their "
        "trials, which are counted in both. Slice localisation needs all 53,500 rows, of which there are 682 here; its "
        "cost is that of UJIIndoorLoc."
    )
    return _pipes(head, lines) + "\n\n" + note


def _amount(value: float, decimals: int) -> str:
    return "–" if math.isnan(value) else number(value, decimals)


def _title(condition: Any) -> str:
    kind = _OBFUSCATORS[condition.obfuscator]
    if condition.n_parties != 10:
        return f"{kind}, K = {condition.n_parties}"
    return kind


def _trial_seconds(results: ExperimentResults) -> dict[Any, list[float]]:
    """CPU seconds of each trial that ran whole, by its drawn condition."""
    spent: dict[Any, dict[int, dict[str, float]]] = {}
    for part in results.rows.values():
        for row in part:
            if "cpu" in row.seconds:
                by_seed = spent.setdefault(drawn_condition(row.condition), {})
                by_seed.setdefault(row.seed, {})[row.cell] = row.seconds["cpu"]
    found = {}
    for draw, by_seed in spent.items():
        # Where rows of an earlier run were there, a trial computed the others alone.
        most = max(map(len, by_seed.values()))
        found[draw] = [sum(by_cell.values()) for by_cell in by_seed.values() if len(by_cell) == most]
    return found


def _umap_model(measured: Mapping[Any, Sequence[float]]) -> Callable[[int], float]:
    """Seconds of a trial under UMAP by its number of parties: c + a K + b K², none of them below 0."""
    points = [
        (draw.n_parties, float(np.mean(seconds))) for draw, seconds in measured.items() if draw.obfuscator == "umap"
    ]
    if not points:
        return lambda n_parties: math.nan
    parties = np.array([n for n, _ in points], dtype=float)
    seconds = np.array([each for _, each in points])
    # Relative errors count, so that few parties are fitted as well as many.
    powers = parties[:, np.newaxis] ** np.arange(3)
    factors, _ = nnls(powers / seconds[:, np.newaxis], np.ones(len(seconds)))
    return lambda n_parties: float(factors @ float(n_parties) ** np.arange(3))


def _expected(draw: Any, measured: Mapping[Any, Sequence[float]], model: Callable[[int], float]) -> float:
    if draw in measured:
        return float(np.mean(measured[draw]))
    if draw.obfuscator == "umap":
        return model(draw.n_parties)
    others = [np.mean(seconds) for each, seconds in measured.items() if each.obfuscator == draw.obfuscator]
    return float(np.mean(others)) if others else math.nan


def figures(results: ExperimentResults, data_dir: Path | None) -> dict[str, bytes]:
    """Return the paper's figures as PNG, by file name: those whose rows, or images, are there.

    The illustration is drawn again; the others come from rows.
    """
    rows = dict(results.rows)
    # The paper leaves Central out, which would squeeze the other curves.
    rows["rq1"] = tuple(row for row in rows["rq1"] if row.name != "Central")
    drawn = {f"{plot.name}.png": rendered(plot.figure, "png") for plot in result_figures(rows)}
    for picture in reconstruction_pictures(results):
        dataset = "fashion-mnist" if "fashion-mnist" in picture.title else "mnist"
        drawn[f"reconstructions_{dataset}.png"] = rendered(picture_figure(picture), "png")
    if any(row.condition.dataset == "ujiindoorloc" for row in rows["regression"]):
        drawn["regression.png"] = rendered(_regression_figure(compared(results.rows)), "png")
    drawn["toy.png"] = rendered(alignment_figure(load("mnist", data_dir=data_dir), out_of_sample="umap"), "png")
    return drawn


def _regression_figure(found: Sequence[Compared]) -> Any:
    """Errors on UJIIndoorLoc, one panel per obfuscator: printed and ours with their intervals."""
    with plain_style():
        kinds = list(_OBFUSCATORS)
        figure, axes = panels([_OBFUSCATORS[kind] for kind in kinds], height=3.4)
        handles: dict[str, Any] = {}
        for panel, kind in zip(axes, kinds, strict=True):
            cells_here = [e for e in found if e.printed.dataset == "ujiindoorloc" and e.printed.obfuscator == kind]
            for place, each in enumerate(cells_here):
                printed = each.printed
                handles["printed"] = panel.errorbar(
                    printed.mean, place - 0.15, xerr=printed.half_width, fmt="D", color="#7f7f7f",
                    markerfacecolor="white", capsize=2, markersize=5,
                )  # fmt: skip
                if each.ours is not None:
                    handles["ours"] = panel.errorbar(
                        each.ours.mean, place + 0.15, xerr=np.nan_to_num(each.ours.half_width), fmt="o",
                        color="#0072B2", capsize=2, markersize=5,
                    )  # fmt: skip
            panel.set_yticks(range(len(cells_here)), [each.printed.name for each in cells_here])
            panel.invert_yaxis()
            panel.set_xlabel("RMSE of latitude in metres", fontsize=10)
        legend_below(figure, handles)
    return figure


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the arguments, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sources", nargs="+", type=Path, help="folders of results, and files of rows")
    parser.add_argument("--to", type=Path, required=True, help="folder of the page")
    parser.add_argument("--data-dir", type=Path, default=None)
    given = parser.parse_args(arguments)
    results = gather(given.sources)
    given.to.mkdir(parents=True, exist_ok=True)
    packed = io.BytesIO()
    # Without a name and a date, equal rows give equal bytes.
    with gzip.GzipFile(filename="", fileobj=packed, mode="wb", mtime=0) as file:
        file.write(all_csv(results.rows).encode())
    (given.to / "rows.csv.gz").write_bytes(packed.getvalue())
    for name, image in figures(results, given.data_dir).items():
        (given.to / name).write_bytes(image)
    for name, text in page(results, [path.name for path in given.to.glob("*.png")]).items():
        (given.to / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
