"""Printed numbers beside ours: what counts as run and as inside, and what the rest would cost."""

import math
from dataclasses import replace

import numpy as np
import pytest

from datacollab_experiments.claims import Interval, find_published, published_values
from datacollab_experiments.paper import Condition, Row, load_experiment
from datacollab_experiments.paper._plan import Cell
from datacollab_experiments.readings import printed

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
        for each in printed.compared(rows_by_experiment)
        if (each.printed.table, each.printed.dataset, each.printed.obfuscator, each.printed.n_components)
        == ("tab:rq4-integration-accuracy-wide", "mnist", "pca", 16)
        and each.printed.name == name
    ]
    return found


def test_every_printed_number_is_compared_once():
    assert [each.printed for each in printed.compared({})] == list(published_values())
    assert not any(each.is_run for each in printed.compared({}))


def test_inside_is_within_both_half_widths():
    value = find_published("tab:rq4-integration-accuracy-wide", dataset="mnist", name="KTI", obfuscator="pca",
                           n_components=16)  # fmt: skip
    assert (value.mean, value.half_width) == (0.517, 0.012)
    each = printed.Compared(printed=value)
    for mean, half_width, inside, settled in [
        (0.5365, 0.008, True, True), (0.5375, 0.008, False, True), (0.4965, 0.008, False, True),
        (0.517, 0.0, True, True), (0.54, 0.013, True, False), (0.5, math.nan, False, False),
    ]:  # fmt: skip
        found = Interval(mean, half_width, 10)
        assert (each.is_inside(found), each.is_settled(found)) == (inside, settled)
    assert not each.is_inside(None)
    central = find_published("fig:num-existing", dataset="mnist", name="Central", n_parties=2)
    assert printed.Compared(printed=central).is_inside(Interval(0.6903, 0.01, 10)), "rounded to three digits"


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


def test_costs_grow_with_the_parties_as_those_that_were_measured():
    """Seconds of 3 K + 0.5 K² are found again, and extended."""
    measured = {
        replace(SKEWED, obfuscator="umap", n_parties=k, n_test=100 * k): [3 * k + 0.5 * k**2] * 2 for k in (2, 4, 8)
    }
    model = printed._umap_model(measured)
    for k in (2, 16, 64):
        assert model(k) == pytest.approx(3 * k + 0.5 * k**2, rel=1e-6)
    assert math.isnan(printed._umap_model({})(4))


def test_every_reason_is_of_something_printed():
    of = {(value.obfuscator, value.name) for value in published_values()}
    assert set(printed._reasons()) <= of


def test_half_the_gamma_has_the_trials_of_the_preset():
    width = next(each for each in printed.experiments() if each.name == "protocol-width")
    rq4 = load_experiment("rq4", "printed")
    assert width.seeds == rq4.seeds
    drawn = {(c.dataset, c.n_components, c.split, c.concentration, c.n_sources) for c in width.conditions}
    assert drawn == {(c.dataset, c.n_components, c.split, c.concentration, c.n_sources) for c in rq4.conditions}
    assert {c.obfuscator for c in width.conditions} == {"pca"}
