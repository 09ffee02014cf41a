import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from report_rows import LINEAR, all_rows, attacks, failed, row, scored
from scipy import stats

from datacollab_experiments.claims._estimates import in_order
from datacollab_experiments.paper import Condition
from datacollab_experiments.reports._records import canonical
from datacollab_experiments.reports._table import layout
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


@pytest.mark.parametrize("experiment", ["rq1", "rq2"])
@pytest.mark.parametrize("preset", ["paper", "recommended"])
def test_accuracy_by_parties(experiment, preset):
    table = TABLES[f"{experiment}_fashion-mnist_{preset}"]
    assert [line.headings for line in table.lines] == [(str(k),) for k in (2, 4, 8, 16, 32, 64)]
    for name in table.columns:
        where = {"dataset": "fashion-mnist", "hyperparameters": preset, "n_parties": 16}
        assert_shows(cell_at(table, name, "16"), naive(experiment, name, **where))


def test_columns_have_the_order_of_the_paper_and_own_names_come_last():
    assert TABLES["rq1_mnist_paper"].columns == ("Local", "Local+Public", "Central", *LINEAR, "KTI")
    assert in_order(["mine", "KTI", "a", "Local", "KTI"]) == ["Local", "KTI", "a", "mine"]
    assert [line.headings[0] for line in TABLES["rq4_integration_paper"].lines[::9]] == ["mnist", "fashion-mnist"]


def test_anchor_tables():
    where = {"dataset": "mnist", "hyperparameters": "paper"}
    quantity, quality = TABLES["rq3_quantity_mnist_paper"], TABLES["rq3_quality_mnist_paper"]
    assert [line.headings[0] for line in quantity.lines] == ["100", "200", "400", "800", "1600"]
    assert [line.headings[0] for line in quality.lines] == ["10", "30", "100", "300", "1000"]
    assert_shows(cell_at(quantity, "KTI", "800"), naive("rq3", "KTI", n_anchors=800, n_sources=100, **where))
    assert_shows(cell_at(quality, "LTI", "100"), naive("rq3", "LTI", n_anchors=1000, n_sources=100, **where))


def test_slopes_of_times_are_those_of_the_rows():
    table = TABLES["rq3_seconds-construct_mnist_paper"]
    assert_allclose(cell_at(table, "KTI", "slope").interval.mean, 2.8)
    assert_allclose(cell_at(table, "LTI", "slope").interval.mean, 1.1)
    assert_allclose(cell_at(TABLES["rq3_seconds-represent_mnist_paper"], "LTI", "slope").interval.mean, 0, atol=1e-12)
    seconds = [
        row.seconds["construct"] for row in ROWS["rq3"]
        if row.name == "ODC" and row.condition == Condition(hyperparameters="paper", n_anchors=400)
    ]  # fmt: skip
    assert_allclose(cell_at(table, "ODC", "400").interval.mean, np.mean(seconds))


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


def test_a_difference_is_in_pooled_standard_errors():
    found = cell_at(TABLES["rq4_integration_paper"], "LTI", "mnist", "PCA", "16")
    mean, half_width = naive("rq4", "LTI", dataset="mnist", hyperparameters="paper", obfuscator="pca", n_components=16)
    errors = half_width / stats.t.ppf(0.975, 2), 0.007 / stats.t.ppf(0.975, 29)
    assert_allclose(found.difference, (mean - 0.755) / math.hypot(*errors))
    lines = texts(TABLES["rq4_integration_paper"])
    at = [(line["data set"], line["obfuscator"], line["dimension"]) for line in lines].index(("mnist", "PCA", "16"))
    shown = lines[at + 2]
    assert shown["LTI"] == f"{found.difference:+.1f} SE".replace("-", "−")
    assert (shown["Local"], shown["KTI+TSL+Center"]) == ("", "")


def test_published_values_without_an_interval_have_no_difference():
    table = TABLES["rq1_mnist_paper"]
    published = cell_at(table, "Central", "64").published
    assert (published.mean, published.half_width) == (0.941, None)
    labels = [line[""] for line in texts(table)]
    assert labels.count("published") == 2
    assert "difference" not in labels
    assert "Difference" not in table.note
    assert "published" not in str(layout(TABLES["rq2_mnist_paper"]))


def test_all_attacks_stand_beside_the_mean_image_and_the_originals():
    table = TABLES["rq4_attacks_paper"]
    assert table.columns == ("LR", "MLP", "PINV", "mean image", "originals")
    at = ("fashion-mnist", "UMAP", "16")
    where = {"dataset": "fashion-mnist", "hyperparameters": "paper", "obfuscator": "umap", "n_components": 16}
    for name in ("LR", "MLP", "PINV"):
        assert_shows(cell_at(table, name, *at), naive("rq4", name, "reconstruction_accuracy", **where))
    assert_allclose(cell_at(table, "mean image", *at).interval.mean, 0.143)
    assert_shows(cell_at(table, "originals", *at), naive("rq4", "LR", "original_accuracy", **where))
    assert cell_at(table, "LR", *at).best
    assert not cell_at(table, "originals", *at).best


def test_a_failed_attack_does_not_hide_the_baselines():
    rows = failed(attacks(Condition(n_sources=None), 3), lambda row: row.name == "LR" or row.seed == 0)
    tables = tables_of({"rq4": rows})
    (line,) = tables["rq4_attacks_recommended"].lines
    assert [cell.interval and cell.interval.n for cell in line.cells] == [None, 2, 2, 2, 2]
    assert [cell.estimate.n_failed for cell in line.cells] == [3, 1, 1, 0, 0]
    assert texts(tables["rq4_attacks_recommended"])[0]["LR"] == "failed"
    (line,) = tables_of({"rq4": failed(rows, lambda row: True)})["rq4_trade-off_recommended"].lines
    assert [cell.interval for cell in line.cells] == [None] * 4


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


@pytest.mark.parametrize("missing", list(ROWS))
def test_any_experiment_may_be_missing(missing):
    found = tables_of({name: part for name, part in ROWS.items() if name != missing})
    assert set(found) == {name for name in TABLES if not name.startswith(f"{missing}_") or missing == "regression"}


def test_other_data_methods_and_experiments():
    small = all_rows(2, ("digits",), ("diabetes",))
    mine = Condition(dataset="digits", hyperparameters="paper", n_parties=2)
    small["rq1"] += scored("rq1", mine, ["My method"], 2)
    small["unheard-of"] = list(scored("unheard-of", mine, ["KTI"], 2))
    tables = tables_of(small)
    table = tables["rq1_digits_paper"]
    assert table.columns[-1] == "My method"
    assert cell_at(table, "My method", "2").interval.n == 2
    assert texts(table)[1]["My method"] == "–"
    assert not any("published" in str(layout(table)) for table in tables.values())


def test_conditions_that_a_table_cannot_tell_apart_are_refused():
    rows = [row("rq1", Condition(n_neighbors=n), "KTI", 0, accuracy=0.5) for n in (5, 10)]
    with pytest.raises(ValueError, match="'KTI' of experiment 'rq1'"):
        result_tables({"rq1": rows})


@pytest.fixture(scope="module")
def unshuffled():
    rows = all_rows(2, ("digits",), ("diabetes",))
    return rows, list(tables_of(rows).values())


@given(randomness=st.randoms(use_true_random=False))
@settings(max_examples=3)
def test_tables_do_not_depend_on_the_order_of_rows(randomness, unshuffled):
    rows, tables = unshuffled
    shuffled = {name: randomness.sample(rows[name], len(rows[name])) for name in reversed(rows)}
    assert result_tables(canonical(shuffled)) == tables
