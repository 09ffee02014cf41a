import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from report_rows import all_rows, failed, row
from scipy import stats

from datacollab_experiments.paper import Condition
from datacollab_experiments.reports._report import canonical
from datacollab_experiments.reports._table import layout, number, with_half_width
from datacollab_experiments.reports._tables import result_tables

ROWS = all_rows()


def tables_of(rows):
    tables = result_tables(canonical(rows))
    named = {table.name: table for table in tables}
    assert len(named) == len(tables)
    return named


TABLES = tables_of(ROWS)


def cell_at(table, column, *headings):
    (line,) = [line for line in table.lines if line.headings == headings]
    return line.cells[table.columns.index(column)]


def naive(experiment, name, measure="accuracy", rows=ROWS, **settings):
    """Mean and Student's t half width, written out."""
    values = [
        row.scores[measure]
        for row in rows[experiment]
        if row.name == name
        and row.error is None
        and all(getattr(row.condition, setting) == value for setting, value in settings.items())
    ]
    n, mean = len(values), sum(values) / len(values)
    variance = sum((value - mean) ** 2 for value in values) / (n - 1)
    return mean, stats.t.ppf(0.975, n - 1) * math.sqrt(variance / n)


def assert_shows(cell, wanted):
    assert_allclose((cell.interval.mean, cell.interval.half_width), wanted, rtol=1e-10)


def texts(table):
    head, body = layout(table)
    return [dict(zip(head, [entry.text for entry in line], strict=True)) for line in body]


def test_every_experiment_has_its_tables():
    names = set()
    for preset in ("paper", "recommended"):
        for dataset in ("mnist", "fashion-mnist"):
            names |= {f"{name}_{dataset}_{preset}" for name in ("rq1", "rq2", "rq3_quantity", "rq3_quality")}
            names |= {f"rq3_seconds-{times}_{dataset}_{preset}" for times in ("construct", "represent")}
        names |= {f"{name}_{preset}" for name in ("rq4_trade-off", "rq4_integration", "rq4_attacks", "regression")}
    assert set(TABLES) == names


@pytest.mark.parametrize(("experiment", "preset"), [("rq1", "paper"), ("rq2", "recommended")])
def test_accuracy_by_parties(experiment, preset):
    table = TABLES[f"{experiment}_fashion-mnist_{preset}"]
    assert [line.headings for line in table.lines] == [(str(k),) for k in (2, 4, 8, 16, 32, 64)]
    for name in table.columns:
        where = {"dataset": "fashion-mnist", "hyperparameters": preset, "n_parties": 16}
        assert_shows(cell_at(table, name, "16"), naive(experiment, name, **where))


def test_trade_off_shows_the_strongest_attack_beside_the_published_one():
    table = TABLES["rq4_trade-off_paper"]
    at = ("mnist", "PCA", "64")
    where = {"dataset": "mnist", "hyperparameters": "paper", "obfuscator": "pca", "n_components": 64}
    assert_shows(cell_at(table, "accuracy", *at), naive("rq4", "KTI+TSL", **where))
    risk = cell_at(table, "reconstruction", *at)
    assert_shows(risk, naive("rq4", "PINV", "reconstruction_accuracy", **where))
    assert (risk.published.mean, risk.published.half_width) == (0.834, 0.005)
    assert cell_at(table, "strongest attack", *at).text == "PINV"
    assert cell_at(table, "strongest attack", "mnist", "kernel PCA", "4").text == "LR"
    assert cell_at(table, "strongest attack", "fashion-mnist", "UMAP", "4").published_text == "MLP"
    assert_shows(cell_at(table, "largest class", *at), naive("rq4", "PINV", "most_common_share", **where))


def test_regression_has_both_data_sets_and_says_where_sizes_differ():
    table = TABLES["regression_paper"]
    assert [line.headings for line in table.lines] == [
        (dataset, kind) for dataset in ("slice-localization", "ujiindoorloc") for kind in ("PCA", "kernel PCA", "UMAP")
    ]
    found = cell_at(table, "KTI+GL", "ujiindoorloc", "UMAP")
    where = {"dataset": "ujiindoorloc", "hyperparameters": "paper", "obfuscator": "umap"}
    assert_shows(found, naive("regression", "KTI+GL", "rmse", **where))
    assert found.published.mean == 22.85
    assert cell_at(table, "Central", "slice-localization", "PCA").published.mean == 6.41
    assert "on slice-localization" in table.note
    assert "n_parties 5 (paper: 10)" in table.note
    assert "n_per_party 20 (paper: 100)" in table.note
    assert "on ujiindoorloc" not in table.note


@pytest.mark.parametrize("name", ["rq1_mnist_paper", "regression_recommended", "rq4_integration_paper"])
def test_the_best_integration_method_is_marked_and_no_baseline(name):
    table = TABLES[name]
    for line in table.lines:
        own = {
            column: round(cell.interval.mean, line.decimals)
            for column, cell in zip(table.columns, line.cells, strict=True)
            if column not in ("Local", "Local+Public", "Central")
        }
        best = (min if name.startswith("regression") else max)(own.values())
        marked = {column for column, cell in zip(table.columns, line.cells, strict=True) if cell.best}
        assert marked == {column for column, value in own.items() if value == best}


def test_failed_rows_are_counted_and_not_averaged():
    def choose(row):
        return row.name == "KTI" and row.seed == 0 and row.condition.n_parties == 8

    rows = {"rq1": failed(ROWS["rq1"], choose)}
    table = tables_of(rows)["rq1_mnist_paper"]
    where = {"dataset": "mnist", "hyperparameters": "paper", "n_parties": 8}
    assert_shows(cell_at(table, "KTI", "8"), naive("rq1", "KTI", rows=rows, **where))
    shown = {line["K"]: line for line in texts(table) if line["K"]}
    assert (shown["8"]["seeds"], shown["8"]["failed"]) == ("2 to 3", "1")
    assert (shown["4"]["seeds"], shown["4"]["failed"]) == ("3", "")
    assert "failed" not in texts(TABLES["rq1_mnist_paper"])[0]


def test_one_seed_has_no_interval():
    tables = tables_of(all_rows(seeds=1))
    for table in tables.values():
        for line in layout(table)[1]:
            assert not any("nan" in entry.text.lower() for entry in line)
    shown = texts(tables["rq2_mnist_paper"])[0]
    assert shown["seeds"] == "1"
    assert "±" not in shown["KTI"]


def test_conditions_that_a_table_cannot_tell_apart_are_refused():
    rows = [row("rq1", Condition(n_neighbors=n), "KTI", 0, accuracy=0.5) for n in (5, 10)]
    with pytest.raises(ValueError, match="'KTI' of experiment 'rq1'"):
        result_tables({"rq1": rows})


@pytest.fixture(scope="module")
def unshuffled():
    rows = all_rows(2, ("digits",), ("diabetes",))
    return rows, list(tables_of(rows).values())


@pytest.mark.slow
@given(randomness=st.randoms(use_true_random=False))
@settings(max_examples=3)
def test_tables_do_not_depend_on_the_order_of_rows(randomness, unshuffled):
    rows, tables = unshuffled
    shuffled = {name: randomness.sample(rows[name], len(rows[name])) for name in reversed(rows)}
    assert result_tables(canonical(shuffled)) == tables


@given(st.floats(-1e6, 1e6), st.sampled_from([0, 2, 3, None]))
def test_numbers_are_printed_to_their_digits(value, decimals):
    text = number(value, decimals)
    tolerance = 0.51 * 10.0**-decimals if decimals is not None else 0.0051 * abs(value) + 0.51 * (abs(value) >= 100)
    assert abs(float(text) - value) <= tolerance
    assert decimals is None or not (text.startswith("-") and float(text) == 0)


def test_an_interval_that_no_share_can_fill_is_told_by_its_ends():
    """Of two seeds: Student's t has 12.7 for them."""
    assert with_half_width(0.565, 1.207, 3) == "0.565 (0 to 1)"
    assert with_half_width(0.9, 0.6, 3) == "0.900 (0.3 to 1)"
    assert with_half_width(0.565, 0.5, 3) == "0.565 ± 0.500"
    assert with_half_width(3.2, 1.207, 2) == "3.20 ± 1.21"
