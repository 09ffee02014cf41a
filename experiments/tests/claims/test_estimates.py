from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from report_rows import row

from datacollab_experiments.claims import anchor_series, by_axes, in_order, slope
from datacollab_experiments.paper import Condition


def test_where_the_series_meet_a_short_one_keeps_the_point():
    sizes = [(50, 20), (100, 20), (100, 10), (100, 40)]
    rows = [row("rq3", Condition(dataset="digits", n_anchors=a, n_sources=s), "KTI", 0, accuracy=0.5) for a, s in sizes]
    quantity, quality = anchor_series(rows)
    assert [row.condition.n_anchors for row in quantity] == [50, 100]
    assert sorted(row.condition.n_sources for row in quality) == [10, 20, 40]
    assert anchor_series(rows[:2]) == (rows[:2], [])
    assert anchor_series([]) == ([], [])


@given(st.floats(-3, 3), st.floats(1e-6, 1e3), st.lists(st.integers(10, 5000), min_size=2, max_size=5, unique=True))
def test_the_slope_of_a_power_is_its_exponent(exponent, factor, sizes):
    rows = [
        replace(
            row("rq3", Condition(n_anchors=n, n_sources=10), "KTI", seed),
            seconds={"construct": factor * (seed + 1) * n**exponent},
        )
        for n in sizes
        for seed in range(3)
    ]
    found = slope(rows, "n_anchors", "construct")
    assert found.n == 3
    assert_allclose(found.mean, exponent, atol=1e-6)


def test_a_slope_takes_seeds_that_have_all_points():
    rows = [
        replace(row("rq3", Condition(n_anchors=n), "KTI", seed), seconds={"construct": n ** (1.0 + seed)})
        for n in (100, 1000)
        for seed in (0, 1)
    ]
    assert_allclose(slope(rows, "n_anchors", "construct").mean, 1.5)
    assert slope(rows[:-1], "n_anchors", "construct").mean == pytest.approx(1.0)
    assert slope(rows[:1], "n_anchors", "construct") is None


def test_groups_come_in_the_order_of_their_settings():
    conditions = [Condition(dataset="digits", n_sources=n, obfuscator=kind)
                  for n in (None, 100, 20) for kind in ("umap", "pca")]  # fmt: skip
    rows = [row("rq4", condition, "KTI", 0, accuracy=0.5) for condition in conditions]
    keys = list(by_axes(rows, "n_sources", "obfuscator"))
    assert keys == [(20, "pca"), (20, "umap"), (100, "pca"), (100, "umap"), (None, "pca"), (None, "umap")]


def test_names_of_the_paper_come_first():
    assert in_order(["mine", "KTI", "a", "Local", "KTI"]) == ["Local", "KTI", "a", "mine"]
