"""Three hospitals with a rare outcome by commands: the bars, with room for one draw's chance."""

import numpy as np
import pytest

from datacollab.agreement import draft_project
from datacollab.bundle import KeyPair
from datacollab_experiments.sums.hospitals import HOSPITALS, TABLES, YES, deal, score_draw


def test_nobody_at_the_last_hospital_has_the_outcome():
    table, code, target = TABLES["simulated"](0)
    assert table[code].nunique() == 40
    assert 0.12 < (table[target] == "ja").mean() < 0.16
    assert table.isna().mean().max() > 0.1
    public, parts, new = deal(table, target, "ja")
    assert [len(each) for each in parts.values()] == list(HOSPITALS.values())
    assert (parts["west"][target] == "nein").all()
    assert set(parts["north"][target]) == {"ja", "nein"}
    assert not set(new.index) & {row for part in (public, *parts.values()) for row in part.index}


@pytest.mark.nightly
@pytest.mark.parametrize("name", list(TABLES))
def test_no_hospital_is_refused_for_gaps_that_it_has_by_chance(name):
    *keys, analyst = (KeyPair.generate().public for _ in range(4))
    agreed = {"name": "rare", "purpose": "x", "parties": dict(zip(HOSPITALS, keys, strict=True)), "owner": keys[0]}
    for seed in range(100, 120):
        table, _, target = TABLES[name](seed)
        public, parts, _ = deal(table, target, YES[name])
        project = draft_project(public, target=target, analyst=analyst, **agreed)
        unflagged = [column.name for column in project.columns if not column.flag_missing]
        assert set(unflagged) < {each.name for each in project.columns}
        for rows in parts.values():
            assert (rows[unflagged].isna().mean() <= 0.05).all(), (seed, len(rows))


@pytest.mark.nightly
@pytest.mark.parametrize("name", list(TABLES))
def test_a_rare_outcome_is_predicted_about_as_well_as_from_all_rows_in_one_place(name):
    """In the mean of three draws, as those of one differ by .05."""
    draws = [score_draw(name, seed) for seed in (100, 101, 102)]
    found = {figure: np.mean([draw[figure] for draw in draws]) for figure in draws[0]}
    assert found["AUC"] > found["AUC, logistic, all rows"] - 0.02
    assert found["Brier"] < 0.97 * found["Brier, constant"]
    assert abs(found["mean"] - found["truth"]) < 0.05
