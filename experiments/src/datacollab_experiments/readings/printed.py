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
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import nnls

from datacollab.datasets import load

from ..claims import Interval, PublishedValue, check_claims, estimate, find_published, interval, published_values
from ..harness import Outcome, ResultStore, markdown, results_file
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
from ..paper._plan import cells, drawn_condition
from ..reports._cells import OBFUSCATORS
from ..reports._claims_text import claims_markdown, count_verdicts
from ..reports._drawing import legend_below, panels, plain_style, rendered
from ..reports._figures import result_figures
from ..reports._picture import picture_figure
from ..reports._privacy_tables import strongest_attack
from ..reports._records import all_csv
from ..reports._results import reconstruction_pictures
from ..reports._table import number, with_half_width
from ..reports._tables import TIME_FIGURES
from .kernels import Cell, summary
from .tries import AS_RUN
from .tries import read as read_tries

__all__ = ["Compared", "compared", "experiments", "gather", "main", "page"]

PRINTED = ("rq1", "rq2", "rq3", "rq4", "regression")
_TABLES = {
    "tab:rq4-tradeoff-main-wide": "rq4",
    "tab:rq4-integration-accuracy-wide": "rq4",
    "tab:recon-score-2datasets-transposed-se": "regression",
    "fig:num-existing": "rq1",
}
"""Experiments by the label of what they reproduce."""
_HALVED = {
    "tab:rq4-tradeoff-main-wide": "protocol-width",
    "tab:rq4-integration-accuracy-wide": "protocol-width",
    "tab:recon-score-2datasets-transposed-se": "latitude-width",
}
"""Experiments with half the gamma, by the label of what they reproduce."""

FEWEST_SEEDS = 10
_KINDS = ("pca", "kernel-pca", "umap")
"""Obfuscators of the paper."""
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
        return abs(found.mean - self.printed.mean) <= self.printed_half_width + found.half_width

    @property
    def printed_half_width(self) -> float:
        """Half the printed interval; where none is printed, half of the last digit."""
        return _ROUNDING if self.printed.half_width is None else self.printed.half_width

    def is_settled(self, found: Interval | None) -> bool:
        """Whether our half width is at most half the difference."""
        return found is not None and found.half_width <= abs(found.mean - self.printed.mean) / 2


def experiments() -> list[Experiment]:
    """All experiments of the preset, and KTI under PCA with half the gamma."""
    names: list[str | Path] = list(PRINTED)
    names += [Path(__file__).with_name(f"{name}.toml") for name in dict.fromkeys(_HALVED.values())]
    found = [load_experiment(name, "printed") for name in names]
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
    if printed.name == "reconstruction":
        strongest = strongest_attack(_rows_at(printed, rows.get(_TABLES[printed.table], ())))
        if strongest is None:
            return Compared(printed=printed)
        attack, attacked = strongest
        return Compared(printed=printed, ours=estimate(attacked, printed.measure).interval, attack=attack)
    return Compared(
        printed=printed,
        ours=estimate(_own_rows(printed, rows), printed.measure).interval,
        halved=estimate(_halved_rows(printed, rows), printed.measure).interval,
    )


def _rows_at(printed: PublishedValue, rows: Iterable[Row]) -> list[Row]:
    """Return the rows of all methods and attacks under the conditions of a number."""
    wanted = {axis: getattr(printed, axis) for axis in ("dataset", "obfuscator", "n_components", "n_parties")}
    return [row for row in rows if all(value in (None, getattr(row.condition, axis)) for axis, value in wanted.items())]


def _own_rows(printed: PublishedValue, rows: Mapping[str, Sequence[Row]]) -> list[Row]:
    """Return the rows of the method whose accuracy or error a number is."""
    own = [row for row in _rows_at(printed, rows.get(_TABLES[printed.table], ())) if row.name == printed.name]
    # What a party does alone is one row, whatever the obfuscator.
    return list({row.seed: row for row in own}.values()) if printed.name in BASELINES else own


def _halved_rows(printed: PublishedValue, rows: Mapping[str, Sequence[Row]]) -> list[Row]:
    """Return the rows of the method with half the gamma."""
    here = _rows_at(printed, rows.get(_HALVED.get(printed.table, ""), ()))
    return [row for row in here if row.name == f"{printed.name}, gamma 0.5"]


def page(results: ExperimentResults, figure_names: Iterable[str] = (), tries: Path | None = None) -> dict[str, str]:
    """Return the texts of the page and of its claims, by file name.

    Parameters
    ----------
    results : ExperimentResults
    figure_names : iterable of str
        Files of the figures that the page shows, of those in `_FIGURES`.
    tries : Path, optional
        Folder of scores that ``datacollab_experiments.readings.tries`` wrote.
    """
    found = compared(results.rows)
    verdicts = [each for each in check_claims(results.rows) if each.claim.source not in TIME_FIGURES.values()]
    shown = [name for name in _FIGURES if name in set(figure_names)]
    parts = {
        "answer": _answer(found),
        "counts": _counts(found),
        "tables": "\n\n".join(_table(label, found) for label in _TABLES),
        "differences": _differences(found),
        "tries": _tries(results.rows, read_tries(tries / "tries.csv") if tries is not None else {}),
        "kernels": summary(read_tries(tries / "kernels.csv") if tries is not None else {}, found),
        "claims": count_verdicts(verdicts),
        "figures": _figure_texts(shown),
        "costs": _costs(results.rows),
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


_CAPTIONS = {
    "rq4_trade-off_paper.png": "Open grey circles are printed values, each joined to ours.",
    "regression.png": "Open grey diamonds are printed values.",
    "rq1_paper.png": "GEP, the wide line, lies under LTI: their accuracies are equal to three digits.",
    "rq3_seconds-construct_paper.png": (
        "Measured beside other work: compare methods and slopes, not seconds with another machine."
    ),
}
"""What is said below a figure, by file."""


def _figure_texts(shown: Sequence[str]) -> str:
    """Return the figures with their captions, and the titles of those that are not shown."""
    parts = []
    for name in shown:
        parts.append(f"![{_FIGURES[name]}]({name})")
        if name in _CAPTIONS:
            parts.append(f"*{_CAPTIONS[name]}*")
    others = [f"* {title}" for name, title in _FIGURES.items() if name not in shown]
    if others:
        parts += ["Not shown, as too little was run:", "\n".join(others)]
    return "\n\n".join(parts)


def _pipes(head: Sequence[str], lines: Iterable[Sequence[Any]]) -> str:
    return markdown(head, [[str(cell) for cell in line] for line in lines])


def _is_accuracy(each: Compared, *obfuscators: str) -> bool:
    return each.printed.measure == "accuracy" and each.printed.obfuscator in obfuscators


def _groups(found: Sequence[Compared]) -> dict[str, list[Compared]]:
    """Printed numbers by what they are, in the order of the table of counts."""
    trade_off = [each for each in found if each.printed.table == "tab:rq4-tradeoff-main-wide"]
    integration = [each for each in found if each.printed.table == "tab:rq4-integration-accuracy-wide"]
    regression = [each for each in found if each.printed.measure == "rmse"]
    titles = {kind: OBFUSCATORS[kind] for kind in _KINDS}
    groups: dict[str, list[Compared]] = {}
    for kind, title in titles.items():
        groups[f"tab:rq4-tradeoff-main-wide, accuracy, {title}"] = [e for e in trade_off if _is_accuracy(e, kind)]
    for kind, title in titles.items():
        groups[f"tab:rq4-tradeoff-main-wide, reconstruction, {title}"] = [
            e for e in trade_off if e.printed.name == "reconstruction" and e.printed.obfuscator == kind
        ]
    for kind, title in titles.items():
        groups[f"tab:rq4-integration-accuracy-wide, {title}"] = [e for e in integration if _is_accuracy(e, kind)]
    latitude = [each for each in regression if each.printed.dataset == "ujiindoorloc"]
    for kind, title in titles.items():
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
        f"Reconstruction under PCA and kernel PCA: {_share(risk, _as_printed)}. RQ4 under UMAP: "
        f"{_share(umap, _as_printed)}. UJIIndoorLoc: {_share(latitude, _as_printed)} with γ = 1, and "
        f"{_n_inside(latitude, _with_half)} of them with γ = 1/2 under PCA.",
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
        where = [printed.dataset, OBFUSCATORS.get(printed.obfuscator or "", "")]
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
    verdict = ("yes" if each.is_inside(found) else "**no**") if each.is_run else "too few seeds"
    return [text, found.n, _signed(found.mean - each.printed.mean, decimals), verdict]


@cache
def _reasons() -> tuple[dict[str, Any], ...]:
    """Return what is known of deviations: texts, each with what a printed number must have for it."""
    text = Path(__file__).with_name("printed.toml").read_text(encoding="utf-8")
    return tuple(tomllib.loads(text)["reason"])


def _is_of(reason: Mapping[str, Any], printed: PublishedValue) -> bool:
    """Whether a reason is of this number."""
    return all(
        getattr(printed, key) in (value if isinstance(value, list) else [value])
        for key, value in reason.items()
        if key != "text"
    )


def _reason(printed: PublishedValue) -> str:
    """Return the text that asks most of the number."""
    of_it = [reason for reason in _reasons() if _is_of(reason, printed)]
    return max(of_it, key=len)["text"] if of_it else NO_REASON


NO_REASON = "nothing yet"
_SECTIONS = (
    ("tab:rq4-tradeoff-main-wide", None),
    ("tab:rq4-integration-accuracy-wide", None),
    ("tab:recon-score-2datasets-transposed-se", "ujiindoorloc"),
    ("fig:num-existing", None),
)
"""Tables and data sets, in the order in which their cells are explained."""


def _differences(found: Sequence[Compared]) -> str:
    """Return every cell that was run and is outside, one by one."""
    shown: set[tuple[Any, ...]] = set()
    parts = []
    for label, dataset in _SECTIONS:
        here = [each for each in found if each.printed.table == label]
        run = [each for each in here if each.is_run and dataset in (None, each.printed.dataset)]
        outside = [each for each in run if not each.is_inside(each.ours) or not each.is_inside(each.reading)]
        first = [each for each in outside if _number(each.printed) not in shown]
        shown |= {_number(each.printed) for each in outside}
        text = f"### Outside in {label}\n\n{len(outside)} of {len(run)} cells that were run"
        if len(first) < len(outside):
            text += f"; {len(outside) - len(first)} are KTI+TSL's, which stand in the table above as well"
        parts.append(text + ".")
        if first:
            parts.append(_pipes(_OUTSIDE, [line for each in first for line in _outside(each)]))
    return "\n\n".join(parts)


_OUTSIDE = ("cell", "printed", "ours", "difference", "in half widths", "known, tried, and left")


def _number(printed: PublishedValue) -> tuple[Any, ...]:
    """What tells a number from others: KTI+TSL's accuracies stand in two tables."""
    return printed.dataset, printed.obfuscator, printed.n_components, printed.n_parties, printed.name, printed.measure


def _outside(each: Compared) -> Iterable[list[str]]:
    """Return the lines of one cell: as printed, and with half the gamma where that was run."""
    printed = each.printed
    decimals = 2 if printed.measure == "rmse" else 3
    size = f"K = {printed.n_parties}" if printed.n_parties else str(printed.n_components or "")
    where = [printed.dataset, OBFUSCATORS.get(printed.obfuscator or "", ""), size]
    cell = f"{printed.name}, {' '.join(filter(None, where))}"
    text = with_half_width(printed.mean, printed.half_width, decimals)
    yield [cell, text, *_away(each, each.ours, decimals), _reason(printed)]
    if each.halved is not None and each.reading is each.halved:
        yield ["with γ = 1/2", "", *_away(each, each.halved, decimals), ""]


def _away(each: Compared, ours: Interval | None, decimals: int) -> list[str]:
    """Return ours, its difference, and that in units of both half widths together: outside where above 1."""
    assert ours is not None
    text, _, difference, _ = _ours(each, ours, decimals)
    units = abs(ours.mean - each.printed.mean) / (each.printed_half_width + ours.half_width)
    shown = number(units, 2)
    return [str(text), str(difference), shown if each.is_inside(ours) else f"**{shown}**"]


Scores = Mapping[PublishedValue, Mapping[int, float]]
"""Scores of one reading, by the number that they are held against, and by seed."""


def _tries(rows: Mapping[str, Sequence[Row]], scores: Mapping[str, Mapping[Cell, Mapping[int, float]]]) -> str:
    """Return what each reading that was tried would leave of the differences."""
    parts = []
    for title, label in (
        ("RQ4", "tab:rq4-integration-accuracy-wide"),
        ("UJIIndoorLoc", "tab:recon-score-2datasets-transposed-se"),
    ):
        groups: dict[tuple[str, ...], dict[str, dict[PublishedValue, Mapping[int, float]]]] = {}
        for reading, of_reading in scores.items():
            for (dataset, kind, size, name), of_seeds in of_reading.items():
                value = find_published(label, dataset=dataset, obfuscator=kind, n_components=size, name=name)
                if value is not None and reading != AS_RUN:
                    groups.setdefault(_group(value), {}).setdefault(reading, {})[value] = of_seeds
        columns = list(
            dict.fromkeys(_column(v) for by_reading in groups.values() for r in by_reading.values() for v in r)
        )
        lines = [
            line for group, by_reading in groups.items() for line in _group_lines(group, by_reading, columns, rows)
        ]
        if lines:
            head = ["what", "reading", "seeds", *columns, "mean absolute difference", "inside"]
            parts.append(f"**{title}**\n\n{_pipes(head, lines)}")
    return "\n\n".join(parts) or "Nothing was tried."


def _group(value: PublishedValue) -> tuple[str, ...]:
    """Return what a number shares with others of its line."""
    kind = OBFUSCATORS[value.obfuscator or ""]
    return (kind,) if value.n_components is None else (value.name, kind)


def _column(value: PublishedValue) -> str:
    return value.name if value.n_components is None else f"{value.dataset} {value.n_components}"


def _group_lines(
    group: tuple[str, ...], by_reading: Mapping[str, Scores], columns: Sequence[str], rows: Mapping[str, Sequence[Row]]
) -> Iterable[list[str]]:
    """Return the lines of one group: as run, and each reading."""
    values = list(dict.fromkeys(value for tried in by_reading.values() for value in tried))
    for halved in (False, True):
        suffix = ", γ = 1/2" if halved else ""
        ours = {value: mine for value in values if (mine := _by_seed(value, rows, halved))}
        readings = {name: tried for name, tried in by_reading.items() if name.endswith(", γ = 1/2") is halved}
        if not ours or (halved and not readings):
            continue
        intervals = {value: interval(list(mine.values())) for value, mine in ours.items()}
        all_seeds = [str(n) for n in _ends(mine.n for mine in intervals.values())]
        yield _left([", ".join(group), AS_RUN + suffix, " to ".join(all_seeds)], columns, intervals)
        for reading, tried in readings.items():
            changed, n_seeds = {}, []
            for value, of_seeds in tried.items():
                mine = ours.get(value, {})
                change = [score - mine[seed] for seed, score in of_seeds.items() if seed in mine]
                if change:
                    found = intervals[value]
                    changed[value] = replace(found, mean=found.mean + float(np.mean(change)))
                    n_seeds.append(len(change))
            if changed:
                yield _left(["", reading, " to ".join(map(str, _ends(n_seeds)))], columns, changed)


def _ends(numbers: Iterable[int]) -> list[int]:
    every = sorted(set(numbers))
    return every if len(every) < 2 else [every[0], every[-1]]


def _by_seed(value: PublishedValue, rows: Mapping[str, Sequence[Row]], halved: bool) -> dict[int, float]:
    """Return our scores for a number, as printed or with half the gamma."""
    own = _halved_rows(value, rows) if halved else _own_rows(value, rows)
    return {row.seed: row.scores[value.measure] for row in own if row.error is None}


def _left(start: list[str], columns: Sequence[str], means: Mapping[PublishedValue, Interval]) -> list[str]:
    """Return one line: what is left of each difference, in bold where that is outside."""
    texts, away, n_inside, decimals = dict.fromkeys(columns, ""), [], 0, 3
    for value, mine in means.items():
        decimals = 2 if value.measure == "rmse" else 3
        inside = Compared(printed=value).is_inside(mine)
        text = _signed(mine.mean - value.mean, decimals)
        texts[_column(value)] = text if inside else f"**{text}**"
        away.append(abs(mine.mean - value.mean))
        n_inside += inside
    return [*start, *texts.values(), number(float(np.mean(away)), decimals), f"{n_inside} of {len(away)}"]


def _signed(difference: float, decimals: int) -> str:
    return f"{'+' if difference >= 0 else ''}{number(difference, decimals)}".replace("-", "−")


def _costs(by_experiment: Mapping[str, Sequence[Row]]) -> str:
    """Return what each experiment took, and what its missing trials would."""
    measured = _trial_seconds(by_experiment)
    model = _umap_model(measured)
    lines = []
    # RQ1 and RQ2 share trials, which the sum counts once.
    missing: dict[tuple[bool, Condition, int], float] = {}
    for name in (*PRINTED, "slice"):
        # Slice localisation has no rows to run on; its conditions would be those of UJIIndoorLoc.
        is_slice = name == "slice"
        experiment = load_experiment("regression" if is_slice else name, "printed")
        assert experiment is not None
        rows = {(row.cell, row.seed) for row in by_experiment.get(name, ()) if row.error is None}
        wanted: dict[Condition, list[str]] = {}
        for cell in cells(experiment):
            wanted.setdefault(cell.condition, []).append(cell.id)
        groups: dict[tuple[str, str], list[Condition]] = {}
        for condition in experiment.conditions:
            dataset = "slice-localization" if is_slice else condition.dataset
            groups.setdefault((dataset, _title(condition)), []).append(condition)
        for (dataset, title), conditions in groups.items():
            draws = {condition: drawn_condition(condition) for condition in conditions}
            seconds = {condition: _expected(draw, measured, model) for condition, draw in draws.items()}
            left = {
                (is_slice, draws[condition], seed): seconds[condition]
                for condition in conditions
                for seed in experiment.seeds
                if not all((cell, seed) in rows for cell in wanted[condition])
            }
            missing |= left
            n_trials = len(conditions) * len(experiment.seeds)
            mean = _amount(float(np.mean(list(seconds.values()))), 0)
            is_measured = not is_slice and all(draw in measured for draw in draws.values())
            each = mean if is_measured or mean == "–" else f"about {mean}"
            lines.append([name, dataset, title, f"{n_trials - len(left)} of {n_trials}", each, *_hours(left, 1)])
    lines.append(["all", "", "", "", "", *_hours(missing, 0)])
    head = ["experiment", "data set", "condition", "trials run", "CPU seconds a trial"]
    head += ["hours to ten seeds", "hours to all seeds"]
    note = (
        "CPU seconds: the median of the trials that ran whole, which leaves out what umap-learn takes to compile in a "
        "run's first trial; of one trial alone, it may be in it. *About* is what no trial was measured for. Under UMAP "
        "it is c + a K + b K², fitted to RQ1's and RQ2's medians of both data sets, and never below one with fewer "
        "parties: anchors, columns and attacks are not in it. RQ1 and RQ2 share their trials, which the last line "
        "counts once. Slice localisation needs all 53,500 rows, and only 682 are here; its cost is taken to be that of "
        "UJIIndoorLoc."
    )
    return _pipes(head, lines) + "\n\n" + note


def _hours(left: Mapping[tuple[bool, Condition, int], float], decimals: int) -> list[str]:
    """Hours of missing trials: up to ten seeds, and up to all."""
    first = sum(seconds for (*_, seed), seconds in left.items() if seed < FEWEST_SEEDS)
    return [_amount(seconds / 3600, decimals) for seconds in (first, sum(left.values()))]


def _amount(value: float, decimals: int) -> str:
    return "–" if math.isnan(value) else number(value, decimals)


def _title(condition: Condition) -> str:
    kind = OBFUSCATORS[condition.obfuscator]
    if condition.n_parties != 10:
        return f"{kind}, K = {condition.n_parties}"
    return kind


def _trial_seconds(by_experiment: Mapping[str, Sequence[Row]]) -> dict[Condition, float]:
    """Median CPU seconds of the trials that ran whole, by what was drawn."""
    spent: dict[Condition, dict[int, dict[str, float]]] = {}
    obfuscated = set()
    for part in by_experiment.values():
        for row in part:
            if "cpu" in row.seconds:
                draw = drawn_condition(row.condition)
                spent.setdefault(draw, {}).setdefault(row.seed, {})[row.cell] = row.seconds["cpu"]
                if row.name not in BASELINES:
                    obfuscated.add(draw)
    found = {}
    # What parties do alone is shared between obfuscators, and says nothing of a trial.
    for draw in obfuscated:
        # Where rows of an earlier run were there, a trial computed the others alone.
        most = max(map(len, spent[draw].values()))
        whole = [sum(by_cell.values()) for by_cell in spent[draw].values() if len(by_cell) == most]
        found[draw] = float(np.median(whole))
    return found


def _umap_model(measured: Mapping[Condition, float]) -> Callable[[int], float]:
    """Seconds of a trial under UMAP by its number of parties.

    They are c + a K + b K², none of the factors below 0, and at least what was measured with fewer parties.
    """
    # With ten parties RQ3's trials share fitted parties, and RQ4's have attacks: they say nothing of RQ1 and RQ2.
    points = [
        (draw.n_parties, seconds)
        for draw, seconds in measured.items()
        if draw.obfuscator == "umap" and draw.n_parties != Condition().n_parties
    ]
    if not points:
        return lambda n_parties: math.nan
    parties = np.array([n for n, _ in points], dtype=float)
    seconds = np.array([each for _, each in points])
    # Relative errors count, so that few parties are fitted as well as many.
    powers = parties[:, np.newaxis] ** np.arange(3)
    factors, _ = nnls(powers / seconds[:, np.newaxis], np.ones(len(seconds)))

    def seconds_of(n_parties: int) -> float:
        fewer = seconds[parties < n_parties]
        return float(np.max([factors @ float(n_parties) ** np.arange(3), *fewer]))

    return seconds_of


def _expected(draw: Condition, measured: Mapping[Condition, float], model: Callable[[int], float]) -> float:
    if draw in measured:
        return measured[draw]
    if draw.obfuscator == "umap":
        return model(draw.n_parties)
    others = [seconds for each, seconds in measured.items() if each.obfuscator == draw.obfuscator]
    return float(np.mean(others)) if others else math.nan


def figures(results: ExperimentResults, data_dir: Path | None) -> dict[str, bytes]:
    """Return the paper's figures as PNG, by file name: those whose rows, or images, are there.

    The illustration is drawn again; the others come from rows.
    """
    rows = dict(results.rows)
    # The paper leaves Central out, which would squeeze the other curves.
    rows["rq1"] = tuple(row for row in rows["rq1"] if row.name != "Central")
    for experiment in ("rq1", "rq2", "rq3"):
        rows[experiment] = _with_ten_seeds(rows[experiment])
    drawn = {f"{plot.name}.png": rendered(plot.figure, "png") for plot in result_figures(rows)}
    for picture in reconstruction_pictures(results):
        dataset = "fashion-mnist" if "fashion-mnist" in picture.title else "mnist"
        drawn[f"reconstructions_{dataset}.png"] = rendered(picture_figure(picture), "png")
    if any(row.condition.dataset == "ujiindoorloc" for row in rows["regression"]):
        drawn["regression.png"] = rendered(_regression_figure(compared(results.rows)), "png")
    drawn["toy.png"] = rendered(alignment_figure(load("mnist", data_dir=data_dir), out_of_sample="umap"), "png")
    return drawn


def _with_ten_seeds(rows: Sequence[Row]) -> tuple[Row, ...]:
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


def _regression_figure(found: Sequence[Compared]) -> Any:
    """Errors on UJIIndoorLoc, one panel per obfuscator: printed and ours with their intervals."""
    by_kind = {
        kind: [e for e in found if e.printed.dataset == "ujiindoorloc" and e.printed.obfuscator == kind]
        for kind in _KINDS
    }
    titles = [
        OBFUSCATORS[kind] + ("" if any(each.ours for each in cells_here) else " (not run)")
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
    texts = page(results, [path.name for path in given.to.glob("*.png")], given.to)
    for name, text in texts.items():
        (given.to / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
