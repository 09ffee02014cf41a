"""Printed numbers beside ours: what counts as run and as inside, and what is said of the others."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from datacollab_experiments.claims import Interval, find_published, published_values
from datacollab_experiments.paper import Condition, Row
from datacollab_experiments.paper._plan import Cell, cells
from datacollab_experiments.readings import printed

ROOT = Path(__file__).resolve().parents[2]
SKEWED = Condition(split="label-skew", concentration=2.0, hyperparameters="paper", obfuscator="pca", n_sources=None)


def rows(experiment, name, values, **settings):
    condition = replace(SKEWED, **settings)
    cell = Cell(condition=condition, kind="method", name=name, own={}).id if "," not in name else name
    return [
        Row(experiment=experiment, condition=condition, kind="method", name=name, seed=seed, cell=cell,
            scores={"accuracy": value}, seconds={"cpu": 2.0})
        for seed, value in enumerate(values)
    ]  # fmt: skip


def one(rows_by_experiment, name="KTI"):
    (found,) = [
        each
        for each in printed.compare_numbers(rows_by_experiment)
        if (each.printed.table, each.printed.dataset, each.printed.obfuscator, each.printed.n_components)
        == ("tab:rq4-integration-accuracy-wide", "mnist", "pca", 16)
        and each.printed.name == name
    ]
    return found


def test_every_printed_number_is_compared_once():
    assert [each.printed for each in printed.compare_numbers({})] == list(published_values())
    assert not any(each.is_run for each in printed.compare_numbers({}))


def test_inside_is_within_both_half_widths():
    value = find_published("tab:rq4-integration-accuracy-wide", dataset="mnist", name="KTI", obfuscator="pca",
                           n_components=16)  # fmt: skip
    assert (value.mean, value.half_width) == (0.517, 0.012)
    each = printed.PrintedNumber(printed=value)
    for mean, half_width, inside, settled in [
        (0.5365, 0.008, True, True), (0.5375, 0.008, False, True), (0.4965, 0.008, False, True),
        (0.517, 0.0, True, True), (0.54, 0.013, True, False), (0.5, math.nan, False, False),
    ]:  # fmt: skip
        found = Interval(mean, half_width, 10)
        assert (each.is_inside(found), each.is_settled(found)) == (inside, settled)
    assert not each.is_inside(None)
    central = find_published("fig:num-existing", dataset="mnist", name="Central", n_parties=2)
    assert printed.PrintedNumber(printed=central).is_inside(Interval(0.6903, 0.01, 10)), "rounded to three digits"


def test_ten_seeds_are_a_run_and_half_the_gamma_counts_then_as_well():
    few = one({"rq4": rows("rq4", "KTI", [0.3] * 9, n_components=16)})
    assert not few.is_run
    values = np.linspace(0.28, 0.3, 10)
    half = rows("protocol-width", "KTI, gamma 0.5", [0.5] * 9, n_components=16)
    ours = one({"rq4": rows("rq4", "KTI", values, n_components=16), "protocol-width": half})
    assert ours.is_run
    assert ours.ours.mean == pytest.approx(values.mean())
    assert ours.reading is ours.ours, "nine seeds are too few"
    half = rows("protocol-width", "KTI, gamma 0.5", [0.5] * 10, n_components=16)
    ours = one({"rq4": rows("rq4", "KTI", values, n_components=16), "protocol-width": half})
    assert ours.reading.mean == pytest.approx(0.5)
    other = one({"rq4": rows("rq4", "KTI", values, n_components=4)})
    assert other.ours is None


def test_curves_hold_conditions_with_ten_seeds_of_every_method():
    def of(n_parties, n_seeds, dataset="mnist"):
        return [row for name in ("LTI", "KTI") for row in rows(
            "rq1", name, [0.5] * (n_seeds if name == "KTI" else 10), n_parties=n_parties, dataset=dataset)]  # fmt: skip

    lone = of(2, 10, "fashion-mnist") + of(4, 1, "fashion-mnist")
    kept = printed._keep_ten_seeds([*of(2, 10), *of(4, 10), *of(8, 9), *of(16, 1), *lone])
    assert {(row.condition.dataset, row.condition.n_parties) for row in kept} == {("mnist", 2), ("mnist", 4)}
    assert len(kept) == 40


def test_what_is_not_shown_is_named():
    text = printed._figure_texts(["regression.png"])
    assert text.startswith(
        "![Regression: printed and ours](regression.png)\n\n*Open grey diamonds are printed values.*"
    )
    assert "* RQ1: accuracy by number of parties" in text
    assert "![RQ1" not in text


def test_every_reason_is_of_something_printed():
    for reason in printed._reasons():
        assert any(printed._is_of(reason, value) for value in published_values()), reason["text"]


def test_no_two_reasons_are_equally_narrow():
    for value in published_values():
        asked = [len(each) for each in printed._reasons() if printed._is_of(each, value)]
        assert asked.count(max(asked, default=0)) <= 1, value


def test_the_narrowest_reason_counts(monkeypatch):
    table = "tab:rq4-integration-accuracy-wide"
    monkeypatch.setattr(printed, "_reasons", lambda: (
        {"table": table, "name": "LTI", "text": "of all"},
        {"table": table, "name": "LTI", "dataset": "mnist", "n_components": [16, 64], "text": "of two"},
        {"table": table, "name": "LTI", "dataset": "mnist", "text": "of MNIST"},
        {"table": "tab:recon-score-2datasets-transposed-se", "name": "LTI", "text": "of errors"},
    ))  # fmt: skip
    for dataset, n_components, text in [
        ("mnist", 4, "of MNIST"), ("mnist", 16, "of two"), ("mnist", 64, "of two"), ("fashion-mnist", 64, "of all"),
    ]:  # fmt: skip
        assert printed._reason(printed_number(table, "LTI", dataset, n_components=n_components)) == text
    assert printed._reason(printed_number(table, "KTI", "mnist", n_components=4)) == printed.NO_REASON


def test_every_cell_outside_has_a_reason():
    rows = ROOT / "docs" / "results" / "printed" / "rows.csv.gz"
    text = printed._differences(printed.compare_numbers(printed.gather_results([rows]).rows))
    assert len([line for line in text.splitlines() if "**" in line]) > 10
    assert [line for line in text.splitlines() if printed.NO_REASON in line] == []


def test_half_the_gamma_has_the_trials_of_the_preset():
    by_name = {each.name: each for each in printed.load_experiments()}
    for width, beside in (("protocol-width", "rq4"), ("latitude-width", "regression")):
        half, whole = by_name[width], by_name[beside]
        assert half.seeds == whole.seeds
        drawn = [
            {replace(c, obfuscator="pca", kernel_width="median") for c in each.conditions} for each in (half, whole)
        ]
        assert drawn[0] == drawn[1]
        assert {c.obfuscator for c in half.conditions} == {"pca"}
        cells_of = [{cell.name for cell in cells(each)} for each in (half, whole)]
        assert {name.removesuffix(", gamma 0.5") for name in cells_of[0]} < cells_of[1]


def printed_number(table, name, dataset, obfuscator="pca", n_components=None, n_parties=None):
    found = find_published(table, name=name, dataset=dataset, obfuscator=obfuscator, n_components=n_components,
                           n_parties=n_parties)  # fmt: skip
    assert found is not None
    return found


def outside_lines(*found):
    lines = [line.split(" | ") for line in printed._differences(found).splitlines() if line.startswith("| ")]
    return [line for line in lines if line[0] not in ("| cell", "| ---")]


def test_cells_outside_are_told_one_by_one_in_half_widths():
    value = printed_number("tab:rq4-integration-accuracy-wide", "LTI", "mnist", n_components=4)
    assert (value.mean, value.half_width) == (0.408, 0.007)
    inside, away = (printed.PrintedNumber(printed=value, ours=Interval(mean, 0.008, 10)) for mean in (0.42, 0.438))
    few = printed.PrintedNumber(printed=value, ours=Interval(0.438, 0.008, 9))
    (line,) = outside_lines(inside, away, few)
    assert line[:5] == ["| LTI, mnist PCA 4", "0.408 ± 0.007", "0.438 ± 0.008", "+0.030", "**2.00**"]
    assert "1 of 2 cells" in printed._differences([inside, away, few])


def test_a_number_of_two_tables_is_told_once_and_counted_in_both():
    tables = ("tab:rq4-tradeoff-main-wide", "tab:rq4-integration-accuracy-wide")
    values = [printed_number(table, "KTI+TSL", "mnist", n_components=64) for table in tables]
    found = [printed.PrintedNumber(printed=value, ours=Interval(0.8, 0.01, 10)) for value in values]
    assert len(outside_lines(*found)) == 1
    text = printed._differences(found)
    assert text.count("1 of 1 cells that were run") == 2
    assert "1 are KTI+TSL's" in text


def test_a_cell_that_either_gamma_leaves_outside_is_told_with_both():
    value = printed_number("tab:rq4-integration-accuracy-wide", "KTI", "mnist", n_components=16)
    near, far = Interval(value.mean, 0.01, 10), Interval(value.mean - 0.2, 0.01, 10)
    for ours, halved in ((near, far), (far, near)):
        both = outside_lines(printed.PrintedNumber(printed=value, ours=ours, halved=halved))
        assert [line[0] for line in both] == ["| KTI, mnist PCA 16", "| with γ = 1/2"]
        assert [line[4].startswith("**") for line in both] == [ours is far, halved is far]
    assert outside_lines(printed.PrintedNumber(printed=value, ours=near, halved=near)) == []


def test_an_obfuscator_without_rows_is_said_not_to_be_run():
    made = rows("regression", "KTI", [20.0, 21.0], dataset="ujiindoorloc", n_components=10)
    found = printed.compare_numbers(
        {"regression": [replace(row, scores={"rmse": row.scores["accuracy"]}) for row in made]}
    )
    titles = [axes.get_title() for axes in printed._regression_figure(found).axes]
    assert titles == ["PCA", "kernel PCA (not run)", "UMAP (not run)"]
