"""The simulation of columns that one party codes otherwise: named if so, and not if not."""

import numpy as np
import pytest

from datacollab_experiments.study.coding import CASES, names_column, rows
from datacollab_experiments.sums.playing import noise_factor


@pytest.mark.parametrize("name", [name for name in CASES if "0.45" not in name and "0 %" not in name])
def test_another_unit_is_named_and_the_same_is_not(name):
    draw, convert = CASES[name]
    random, noise = np.random.default_rng(0), noise_factor(3)
    parts = [draw(random, 600, shift) for shift in (-0.3, 0.0, 0.3)]
    assert not names_column(random, parts, noise)
    assert names_column(random, [convert(parts[0]), *parts[1:]], noise)


@pytest.mark.nightly
def test_the_table_has_a_row_for_each_case():
    assert [row["case"] for row in rows(3, 0)] == list(CASES)
