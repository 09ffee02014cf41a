"""The paper as printed: every number that it prints beside ours.

``python -m datacollab_experiments.readings.printed output/printed docs/results/printed/rows.csv.gz --to FOLDER`` takes
results of ``datacollab experiment run --preset printed`` and rows of earlier runs, and writes the page, its claims, its
figures, and all rows.
"""

import argparse
import json
import math
import tempfile
import tomllib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np

from datacollab.datasets import load

from ..claims import Interval, PublishedValue, check_claims, estimate, published_values
from ..harness import Outcome, ResultStore, markdown, open_table, results_file
from ..paper import (
    BASELINES,
    Condition,
    Experiment,
    ExperimentResults,
    Row,
    alignment_figure,
    load_experiment,
    read_results,
    take_rows,
)
from ..paper._definition import cells
from ..reports._figures import legend_below, panels, picture_figure, plain_style, render_figure, result_figures
from ..reports._page import claims_markdown, count_verdicts
from ..reports._report import all_csv, reconstruction_pictures
from ..reports._table import OBFUSCATORS, number, with_half_width
from ..reports._tables import TIME_FIGURES, strongest_attack

PRINTED = ("rq1", "rq2", "rq3", "rq4", "regression")
# Experiments by the label of what they reproduce.
_TABLES = {
    "tab:rq4-tradeoff-main-wide": "rq4",
    "tab:rq4-integration-accuracy-wide": "rq4",
    "tab:recon-score-2datasets-transposed-se": "regression",
    "fig:num-existing": "rq1",
}
# Experiments with half the gamma, by the label of what they reproduce.
_HALVED = {
    "tab:rq4-tradeoff-main-wide": "protocol-width",
    "tab:rq4-integration-accuracy-wide": "protocol-width",
    "tab:recon-score-2datasets-transposed-se": "latitude-width",
}

FEWEST_SEEDS = 10
# Obfuscators of the paper.
_KINDS = ("pca", "kernel-pca", "umap")
# Half of the last printed digit, where no interval is printed.
_ROUNDING = 0.0005


@dataclass(frozen=True, kw_only=True)
class PrintedNumber:
    """One printed number and ours.

    Attributes
    ----------
    ours : Interval or None
        None where no seed was run.
    attack : str
        Name of our strongest attack, for a reconstruction; otherwise "".
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
        if self.halved is not None and self.halved.n >= FEWEST_SEEDS:
            return self.halved
        return self.ours

    def is_inside(self, ours: Interval | None) -> bool:
        """Whether the difference is at most both half widths together."""
        if ours is None or math.isnan(ours.half_width):
            return False
        # The intervals touch: easier to check by eye than a test of the difference, and lets more pass.
        return abs(ours.mean - self.printed.mean) <= self.printed_half_width + ours.half_width

    @property
    def printed_half_width(self) -> float:
        """Half the printed interval; where none is printed, half of the last digit."""
        if self.printed.half_width is None:
            return _ROUNDING
        return self.printed.half_width

    def is_settled(self, ours: Interval | None) -> bool:
        """Whether our half width is at most half the difference."""
        return ours is not None and ours.half_width <= abs(ours.mean - self.printed.mean) / 2


def load_experiments() -> list[Experiment]:
    """Return all experiments of the preset, and KTI under PCA with half the gamma."""
    names: list[str | Path] = list(PRINTED)
    # A second reading of the paper's objective, reported beside the first.
    names += [Path(__file__).with_name(f"{name}.toml") for name in dict.fromkeys(_HALVED.values())]
    loaded = [load_experiment(name, "printed") for name in names]
    return [each for each in loaded if each is not None]


def gather_results(sources: Sequence[Path]) -> ExperimentResults:
    """Read results and rows of earlier runs, the first of which counts where two have a row.

    Parameters
    ----------
    sources : sequence of Path
        Folders of results, and files of rows.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = results_file(Path(folder))
        with ResultStore(file) as store:
            every = {cell.id: cell.definition() for experiment in load_experiments() for cell in cells(experiment)}
            store.keep_definitions({each.name: each.to_json() for each in load_experiments()}, every)
        for source in sources:
            if source.is_dir():
                _take_results(results_file(source), file)
            else:
                take_rows(source, file)
        return read_results(file)


def _take_results(source: Path, file: Path) -> None:
    with ResultStore(source) as earlier, ResultStore(file) as store:
        # Outcomes keep the versions and the commit that computed them.
        by_origin: dict[tuple[int, str, str], list[Outcome]] = {}
        for (cell, seed), result in earlier.results().items():
            if result.error is None:
                images = earlier.images(cell, seed) if seed == 0 else None
                outcome = Outcome(cell=cell, scores=result.scores, seconds=result.seconds, images=images)
                by_origin.setdefault((seed, json.dumps(result.versions), result.source), []).append(outcome)
        for (seed, versions, commit), outcomes in by_origin.items():
            store.save(seed, outcomes, json.loads(versions), commit)


def compare_numbers(rows: Mapping[str, Sequence[Row]]) -> list[PrintedNumber]:
    """Return every printed number with ours, in the order of the paper's tables."""
    return [_compare(value, rows) for value in published_values()]


def _compare(printed: PublishedValue, rows: Mapping[str, Sequence[Row]]) -> PrintedNumber:
    if printed.name == "reconstruction":
        # The paper prints the strongest attack's value, chosen after the fact; ours is chosen likewise.
        strongest = strongest_attack(_rows_at(printed, rows.get(_TABLES[printed.table], ())))
        if strongest is None:
            return PrintedNumber(printed=printed)
        attack, attacked = strongest
        return PrintedNumber(printed=printed, ours=estimate(attacked, printed.measure).interval, attack=attack)
    return PrintedNumber(
        printed=printed,
        ours=estimate(_own_rows(printed, rows), printed.measure).interval,
        halved=estimate(_rows_of_half(printed, rows), printed.measure).interval,
    )


def _rows_at(printed: PublishedValue, rows: Iterable[Row]) -> list[Row]:
    """Return the rows of all methods and attacks under the conditions of a number."""
    wanted = {axis: getattr(printed, axis) for axis in ("dataset", "obfuscator", "n_components", "n_parties")}
    return [row for row in rows if all(value in (None, getattr(row.condition, axis)) for axis, value in wanted.items())]


def _own_rows(printed: PublishedValue, rows: Mapping[str, Sequence[Row]]) -> list[Row]:
    """Return the rows of the method whose accuracy or error a number is."""
    own = [row for row in _rows_at(printed, rows.get(_TABLES[printed.table], ())) if row.name == printed.name]
    # What a party does alone is one row, whatever the obfuscator.
    if printed.name in BASELINES:
        own = list({row.seed: row for row in own}.values())
    return own


def _rows_of_half(printed: PublishedValue, rows: Mapping[str, Sequence[Row]]) -> list[Row]:
    """Return the rows of the method with half the gamma."""
    here = _rows_at(printed, rows.get(_HALVED.get(printed.table, ""), ()))
    return [row for row in here if row.name == f"{printed.name}, gamma 0.5"]


def make_texts(results: ExperimentResults, figure_names: Collection[str] = ()) -> dict[str, str]:
    """Return the texts of the page and of its claims, by file name; the page shows the figures that are named."""
    numbers = compare_numbers(results.rows)
    # Claims about seconds are left out: runs on several machines cannot be compared.
    verdicts = [each for each in check_claims(results.rows) if each.claim.source not in TIME_FIGURES.values()]
    parts = {
        "answer": _answer_question(numbers),
        "counts": _counts(numbers),
        "tables": "\n\n".join(_table(label, numbers) for label in _TABLES),
        "differences": _differences(numbers),
        "claims": count_verdicts(verdicts),
        "figures": _figure_texts(figure_names),
    }
    text = Path(__file__).with_name("printed.md").read_text(encoding="utf-8")
    for name, part in parts.items():
        text = text.replace("{{" + name + "}}", part)
    return {"README.md": text, "claims.md": claims_markdown({"paper": verdicts})}


def _figure_texts(files: Collection[str]) -> str:
    """Return the figures with their captions, and the titles of those that are not among the files."""
    shown = []
    others = []
    for figure in _known()["figure"]:
        if figure["file"] not in files:
            others.append(f"* {figure['title']}")
            continue
        shown.append(f"![{figure['title']}]({figure['file']})")
        if "caption" in figure:
            shown.append(f"*{figure['caption']}*")
    if others:
        shown += ["Not shown, as too little was run:", "\n".join(others)]
    return "\n\n".join(shown)


def _is_accuracy(each: PrintedNumber, *obfuscators: str) -> bool:
    return each.printed.measure == "accuracy" and each.printed.obfuscator in obfuscators


def _groups(numbers: Sequence[PrintedNumber]) -> dict[str, list[PrintedNumber]]:
    """Return printed numbers by their kind, in the order of the table of counts."""

    def select(**settings: Any) -> list[PrintedNumber]:
        return [each for each in numbers if all(getattr(each.printed, key) == value for key, value in settings.items())]

    trade_off = "tab:rq4-tradeoff-main-wide"
    groups: dict[str, list[PrintedNumber]] = {}
    for measure, name in (("accuracy", "accuracy"), ("reconstruction_accuracy", "reconstruction")):
        for kind in _KINDS:
            here = select(table=trade_off, measure=measure, obfuscator=kind)
            groups[f"{trade_off}, {name}, {OBFUSCATORS[kind]}"] = here
    for kind in _KINDS:
        here = select(table="tab:rq4-integration-accuracy-wide", measure="accuracy", obfuscator=kind)
        groups[f"tab:rq4-integration-accuracy-wide, {OBFUSCATORS[kind]}"] = here
    for kind in _KINDS:
        here = select(measure="rmse", dataset="ujiindoorloc", obfuscator=kind)
        groups[f"regression, UJIIndoorLoc, {OBFUSCATORS[kind]}"] = here
    # Parties alone and all rows in one place have no obfuscator.
    here = select(measure="rmse", dataset="ujiindoorloc", obfuscator=None)
    groups["regression, UJIIndoorLoc, Local and Central"] = here
    groups["regression, slice localisation"] = select(measure="rmse", dataset="slice-localization")
    groups["RQ1, Central with 2 and 64 parties"] = select(table="fig:num-existing")
    return groups


# Which of our intervals is held against a printed number.
Reading = Callable[[PrintedNumber], Interval | None]
_AS_PRINTED: Reading = attrgetter("ours")
_WITH_HALF: Reading = attrgetter("reading")


def _n_inside(numbers: Iterable[PrintedNumber], reading: Reading) -> int:
    return sum(each.is_inside(reading(each)) for each in numbers if each.is_run)


def _count_inside(numbers: Sequence[PrintedNumber], reading: Reading) -> str:
    n_run = sum(each.is_run for each in numbers)
    if n_run == 0:
        return f"none of {len(numbers)} run"
    n_inside = _n_inside(numbers, reading)
    text = f"{n_inside} of {n_run} ({100 * n_inside / n_run:.0f} %)"
    if n_run < len(numbers):
        text += f" that were run, of {len(numbers)} printed"
    return text


def _answer_question(numbers: Sequence[PrintedNumber]) -> str:
    groups = _groups(numbers)
    wide = [e for title, part in groups.items() if title.startswith("tab:rq4-integration") for e in part]
    linear = [each for each in wide if _is_accuracy(each, "pca", "kernel-pca")]
    utility = [
        e for e in numbers if e.printed.table == "tab:rq4-tradeoff-main-wide" and _is_accuracy(e, "pca", "kernel-pca")
    ]
    risk = [e for e in numbers if e.printed.name == "reconstruction" and e.printed.obfuscator != "umap"]
    latitude = [e for e in numbers if e.printed.dataset == "ujiindoorloc"]
    umap = [e for e in numbers if e.printed.table.startswith("tab:rq4") and e.printed.obfuscator == "umap"]
    inside = partial(_count_inside, reading=_AS_PRINTED)
    inside_halved = partial(_count_inside, reading=_WITH_HALF)
    sentences = [
        f"**How much of what the paper prints do we get?** Under PCA and kernel PCA, {inside(utility)} accuracies of "
        "tab:rq4-tradeoff-main-wide lie within the printed interval plus ours with γ = 1 as printed, and "
        f"{inside_halved(utility)} with γ = 1/2 under PCA.",
        f"Of tab:rq4-integration-accuracy-wide it is {inside(linear)}, and {inside_halved(linear)}.",
        f"Reconstruction under PCA and kernel PCA: {inside(risk)}. RQ4 under UMAP: {inside(umap)}. UJIIndoorLoc: "
        f"{inside(latitude)} with γ = 1, and {_n_inside(latitude, _WITH_HALF)} of them with γ = 1/2 under PCA.",
        "RQ1 to RQ3 are printed as figures without numbers, but for Central in RQ1; for them there are only "
        "[claims](#claims).",
    ]
    return " ".join(sentences)


def _counts(numbers: Sequence[PrintedNumber]) -> str:
    lines = []
    for title, part in _groups(numbers).items():
        n_run = sum(each.is_run for each in part)
        open_cells = sum(
            each.is_run and not each.is_inside(each.ours) and not each.is_settled(each.ours) for each in part
        )
        has_half = any(each.halved for each in part)
        # Where nothing was run, the cells stay empty: a zero would look like a failure.
        inside: list[Any] = ["", ""]
        if n_run:
            inside[0] = _n_inside(part, _AS_PRINTED)
        if n_run and has_half:
            inside[1] = _n_inside(part, _WITH_HALF)
        lines.append([title, len(part), n_run, *inside, open_cells or ""])
    head = ["printed", "cells", "run", "inside, γ = 1", "inside, γ = 1/2", "outside, more seeds needed"]
    note = (
        "*More seeds needed*: the difference is larger than both half widths, but our half width is still above half "
        "of it. The four accuracies of Central have no printed interval; ours alone counts."
    )
    return markdown(head, lines) + "\n\n" + note


def _table(label: str, numbers: Sequence[PrintedNumber]) -> str:
    lines = []
    for each in numbers:
        printed = each.printed
        if printed.table != label:
            continue
        decimals = _DECIMALS.get(printed.measure, 3)
        where = [printed.dataset, OBFUSCATORS.get(printed.obfuscator or "", "")]
        where.append(str(printed.n_components or printed.n_parties or ""))
        name = printed.name
        attacks = ""
        if printed.attack:
            attacks = f" ({printed.attack})"
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
    sizes = "d̃"
    if label == "fig:num-existing":
        sizes = "K"
    head = ["data set", "obfuscator", sizes, "what", "printed", "ours", "seeds", "difference", "inside"]
    title = label if label.startswith("tab:") else f"{label} (from the text beside it)"
    return f"### {title}\n\n" + markdown(head, lines)


def _ours(each: PrintedNumber, ours: Interval | None, decimals: int) -> list[Any]:
    if ours is None:
        return ["", 0, "", "not run"]
    text = with_half_width(ours.mean, ours.half_width, decimals)
    if each.attack:
        text += f" ({each.attack})"
    verdict = "**no**"
    if each.is_inside(ours):
        verdict = "yes"
    if not each.is_run:
        verdict = "too few seeds"
    return [text, ours.n, _sign(ours.mean - each.printed.mean, decimals), verdict]


@cache
def _known() -> dict[str, list[dict[str, Any]]]:
    return tomllib.loads(Path(__file__).with_name("printed.toml").read_text(encoding="utf-8"))


def _is_of(reason: Mapping[str, Any], printed: PublishedValue) -> bool:
    """Whether a reason is of this number."""
    return all(getattr(printed, key) in np.atleast_1d(value).tolist() for key, value in reason.items() if key != "text")


def _reason(printed: PublishedValue) -> str:
    """Return the text that asks most of the number."""
    of_it = [{"text": NO_REASON}, *(reason for reason in _known()["reason"] if _is_of(reason, printed))]
    return str(max(of_it, key=len)["text"])


NO_REASON = "nothing yet"
# Errors are in metres, all else are shares.
_DECIMALS = {"rmse": 2}
# Tables and data sets, in the order in which their cells are explained.
_SECTIONS = (
    ("tab:rq4-tradeoff-main-wide", None),
    ("tab:rq4-integration-accuracy-wide", None),
    ("tab:recon-score-2datasets-transposed-se", "ujiindoorloc"),
    ("fig:num-existing", None),
)


def _differences(numbers: Sequence[PrintedNumber]) -> str:
    """Return every cell that was run and is outside, one by one."""
    shown: set[tuple[Any, ...]] = set()
    parts = []
    for label, dataset in _SECTIONS:
        here = [each for each in numbers if each.printed.table == label]
        run = [each for each in here if each.is_run and dataset in (None, each.printed.dataset)]
        outside = [each for each in run if not each.is_inside(each.ours) or not each.is_inside(each.reading)]
        first = [each for each in outside if _number(each.printed) not in shown]
        shown |= {_number(each.printed) for each in outside}
        text = f"### Outside in {label}\n\n{len(outside)} of {len(run)} cells that were run"
        if len(first) < len(outside):
            text += f"; {len(outside) - len(first)} are KTI+TSL's, which stand in the table above as well"
        parts.append(text + ".")
        # KTI+TSL's accuracies stand in two tables, and are told once.
        if first:
            parts.append(markdown(_OUTSIDE, [line for each in first for line in _list_outside(each)]))
    return "\n\n".join(parts)


_OUTSIDE = ("cell", "printed", "ours", "difference", "in half widths", "known, tried, and left")


def _number(printed: PublishedValue) -> tuple[Any, ...]:
    """Return the key of a number, of which KTI+TSL's accuracies stand in two tables."""
    return printed.dataset, printed.obfuscator, printed.n_components, printed.n_parties, printed.name, printed.measure


def _list_outside(each: PrintedNumber) -> Iterable[list[str]]:
    """Return the lines of one cell: as printed, and with half the gamma where that was run."""
    printed = each.printed
    decimals = _DECIMALS.get(printed.measure, 3)
    size = f"K = {printed.n_parties}" if printed.n_parties else str(printed.n_components or "")
    where = [printed.dataset, OBFUSCATORS.get(printed.obfuscator or "", ""), size]
    cell = f"{printed.name}, {' '.join(filter(None, where))}"
    text = with_half_width(printed.mean, printed.half_width, decimals)
    yield [cell, text, *_away(each, each.ours, decimals), _reason(printed)]
    if each.halved is not None and each.reading is each.halved:
        yield ["with γ = 1/2", "", *_away(each, each.halved, decimals), ""]


def _away(each: PrintedNumber, ours: Interval | None, decimals: int) -> list[str]:
    """Return ours, its difference, and that in units of both half widths together: outside where above 1."""
    assert ours is not None
    text, _, difference, _ = _ours(each, ours, decimals)
    units = abs(ours.mean - each.printed.mean) / (each.printed_half_width + ours.half_width)
    shown = number(units, 2)
    return [str(text), str(difference), shown if each.is_inside(ours) else f"**{shown}**"]


def _sign(difference: float, decimals: int) -> str:
    return f"{'+' if difference >= 0 else ''}{number(difference, decimals)}".replace("-", "−")


def draw_figures(results: ExperimentResults, data_dir: Path | None) -> dict[str, bytes]:
    """Return the paper's figures as PNG, by file name: those whose rows, or images, are there.

    The illustration is drawn again; the others come from rows.
    """
    rows = dict(results.rows)
    # The paper leaves Central out, which would squeeze the other curves.
    rows["rq1"] = tuple(row for row in rows["rq1"] if row.name != "Central")
    for experiment in ("rq1", "rq2", "rq3"):
        rows[experiment] = _keep_ten_seeds(rows[experiment])
    drawn = {f"{plot.name}.png": render_figure(plot.figure, "png") for plot in result_figures(rows)}
    for picture in reconstruction_pictures(results):
        dataset = "mnist"
        if "fashion-mnist" in picture.title:
            dataset = "fashion-mnist"
        drawn[f"reconstructions_{dataset}.png"] = render_figure(picture_figure(picture), "png")
    if any(row.condition.dataset == "ujiindoorloc" for row in rows["regression"]):
        drawn["regression.png"] = render_figure(_regression_figure(compare_numbers(results.rows)), "png")
    drawn["toy.png"] = render_figure(alignment_figure(load("mnist", data_dir=data_dir), out_of_sample="umap"), "png")
    return drawn


def _keep_ten_seeds(rows: Sequence[Row]) -> tuple[Row, ...]:
    """Return the rows of conditions with ten seeds of each method, if a data set has two such conditions."""
    seeds: dict[Condition, dict[str, set[int]]] = {}
    for row in rows:
        if row.error is None:
            seeds.setdefault(row.condition, {}).setdefault(row.name, set()).add(row.seed)
    names = {row.name for row in rows}
    kept = [
        condition
        for condition, by_name in seeds.items()
        if all(len(by_name.get(name, ())) >= FEWEST_SEEDS for name in names)
    ]
    n_kept = Counter(condition.dataset for condition in kept)
    return tuple(row for row in rows if row.condition in kept and n_kept[row.condition.dataset] >= 2)


def _regression_figure(numbers: Sequence[PrintedNumber]) -> Any:
    """Errors on UJIIndoorLoc, one panel per obfuscator: printed and ours with their intervals."""
    by_kind = {
        kind: [e for e in numbers if e.printed.dataset == "ujiindoorloc" and e.printed.obfuscator == kind]
        for kind in _KINDS
    }
    titles = [
        OBFUSCATORS[kind] + " (not run)" * (not any(each.ours for each in cells_here))
        for kind, cells_here in by_kind.items()
    ]
    with plain_style():
        figure, axes = panels(titles, height=3.4)
        handles: dict[str, Any] = {}
        for panel, cells_here in zip(axes, by_kind.values(), strict=True):
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
    options = parser.parse_args(arguments)
    results = gather_results(options.sources)
    options.to.mkdir(parents=True, exist_ok=True)
    with open_table(options.to / "rows.csv.gz") as stream:
        stream.write(all_csv(results.rows))
    for name, image in draw_figures(results, options.data_dir).items():
        (options.to / name).write_bytes(image)
    texts = make_texts(results, [path.name for path in options.to.glob("*.png")])
    for name, text in texts.items():
        (options.to / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
