"""Accuracy against risk: the preset, defences, hashes of settings, the report, and a small run."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from datacollab_experiments.pays import library
from datacollab_experiments.pays.__main__ import is_wanted, main
from datacollab_experiments.pays.draws import draw
from datacollab_experiments.pays.frontier import DataSet, by_data_set, draw_frontier, text, write_frontier
from datacollab_experiments.pays.results import Measured
from datacollab_experiments.pays.settings import DEFENCES, EPSILONS, PRESETS, Preset, Setting
from datacollab_experiments.pays.tables import load_table
from datacollab_experiments.pays.tasks import tasks_of

SMALL = Setting(dataset="digits", n_parties=2, n_per_party=50, most_columns=16)
NUMBERS = Setting(dataset="diabetes", n_parties=2, n_per_party=50, most_columns=16)
CHANGES = ({"most_columns": 48}, {"defence": "private"}, {"labelled": False}, {"n_public": 50}, {"f": "own"})


def measured(setting, dc, membership, public=None, metric="accuracy"):
    values = {"DC*": dc, "pool": dc + 0.01, "Local+Public": 0.5, **({} if public is None else {"public alone": public})}
    scores = {name: {0: {"a": value - 0.001}, 1: {"a": value + 0.001}} for name, value in values.items()}
    risks = {"linkage": 0.25, "linkage by targets alone": 0.125, "membership AUC": membership}
    return Measured(setting, metric, scores=scores, losses=scores, risks=risks, seconds=[1.0, 2.0])


def made_up():
    """The private defence beats means on digits; with numbers less is better, and nothing beats anything."""
    behind = [("none", 0.90, 1.0), ("means of 5", 0.80, 0.9), ("epsilon 4", 0.60, 0.7), ("private", 0.85, 0.6)]
    found = [measured(replace(SMALL, defence=d), s, m, 0.7 if d == "none" else None) for d, s, m in behind]
    found.append(measured(replace(SMALL, labelled=False, defence="private"), 0.75, 0.65))
    for d, s, m in [("none", 50.0, 1.0), ("means of 5", 55.0, 0.9), ("private", 60.0, 0.6)]:
        found.append(measured(replace(NUMBERS, defence=d), s, m, 58.0 if d == "none" else None, metric="RMSE"))
    return found


def test_preset_has_every_defence_on_six_data_sets_with_the_same_columns():
    settings = PRESETS["frontier"].settings
    assert len(settings) == len(set(settings)) == 6 * (6 + 3)
    assert {setting.most_columns for setting in settings} == {16}
    assert {(s.dataset, s.n_public) for s in settings} == {
        *((name, 1000) for name in ("mnist", "fashion-mnist", "ujiindoorloc")),
        *((name, 100) for name in ("gbsg2", "flchain", "whas500")),
    }
    for labelled, wanted in ((True, set(DEFENCES)), (False, {"none", "means of 5", "private"})):
        assert {s.defence for s in settings if s.dataset == "gbsg2" and s.labelled == labelled} == wanted


def test_attacks_are_made_once_behind_every_defence_and_none():
    assert is_wanted("risks", SMALL, 0, attacks_undefended=True)
    assert not is_wanted("risks", SMALL, 1, attacks_undefended=True)
    tasks = tasks_of(
        PRESETS["frontier"], PRESETS["frontier"].parts, lambda *task: is_wanted(*task, attacks_undefended=True)
    )
    assert pd.Series([task.part for task in tasks]).value_counts().to_dict() == {"frontier": 108, "risks": 54}


def test_a_part_that_the_preset_lacks_is_refused(capsys):
    with pytest.raises(SystemExit):
        main(["--preset", "frontier", "--part", "main"])
    assert "has no part main; it has frontier, risks" in capsys.readouterr().err


def test_hashes_tell_settings_and_parts_apart():
    settings = [SMALL, *(replace(SMALL, **change) for change in CHANGES)]
    hashes = {setting.cell(part) for setting in settings for part in ("main", "risks")}
    assert len(hashes) == 2 * len(settings)
    assert replace(SMALL).cell("main") == SMALL.cell("main")


@pytest.mark.parametrize("defence", sorted(EPSILONS))
def test_what_is_proven_needs_targets_and_is_what_the_party_states(defence, monkeypatch):
    with pytest.raises(ValueError, match="labelled=True"):
        replace(SMALL, labelled=False, defence=defence)
    # Noise that can be repeated, as everywhere else here, proves nothing.
    monkeypatch.setattr(library, "secrets", lambda drawn, name: None)
    drawn = draw(load_table("digits"), replace(SMALL, defence=defence), 0)
    guarantee = library.make_party(drawn, "party-0").guarantee(drawn.anchor, drawn.anchor_target)
    assert guarantee.epsilon == float(defence.split()[1])
    assert library.proven_auc(guarantee.epsilon) == pytest.approx(guarantee.auc_at_most, abs=1e-12)


@pytest.mark.parametrize("setting", [SMALL, NUMBERS])
def test_means_hide_rows_of_small_classes_too_and_f_is_that_without_a_defence(setting):
    table = load_table(setting.dataset)
    shares = {}
    for defence in ("none", "means of 5"):
        drawn = draw(table, replace(setting, defence=defence), 0)
        shares[defence] = library.make_party(drawn, "party-0").share(drawn.anchor, drawn.anchor_target)
    means, rows = shares["means of 5"].representation, shares["none"].representation
    assert means.shape == rows.shape
    assert means.shape[1] <= 16
    assert np.unique(means.round(9), axis=0, return_counts=True)[1].min() >= 5
    np.testing.assert_allclose(shares["means of 5"].anchor_representation, shares["none"].anchor_representation)


def test_columns_are_as_many_as_the_setting_says_and_no_more_behind_a_defence():
    table = load_table("digits")
    for most, defence, wanted in ((48, "none", 48), (16, "none", 16), (48, "private", 16), (8, "private", 8)):
        assert draw(table, replace(SMALL, most_columns=most, defence=defence), 0).n_components == wanted


def test_everybodys_rows_do_not_hang_on_the_defence():
    table = load_table("digits")
    one, other = (draw(table, replace(SMALL, defence=defence), 1) for defence in ("none", "private"))
    np.testing.assert_array_equal(one.public.X, other.public.X)
    np.testing.assert_array_equal(one.test.X, other.test.X)
    np.testing.assert_array_equal(one.anchor, other.anchor)
    np.testing.assert_array_equal(one.parties["party-1"].X, other.parties["party-1"].X)


def test_frontier_holds_what_nothing_else_beats():
    digits, diabetes = by_data_set(made_up())

    def on_it(data_set, labelled=True):
        return [each.setting.defence for each in data_set.frontier(labelled=labelled)]

    assert on_it(digits) == ["none", "private"]
    assert on_it(digits, labelled=False) == ["private"]
    assert on_it(diabetes) == ["none", "means of 5", "private"]
    tied = DataSet("digits", tuple(measured(replace(SMALL, defence=d), 0.8, 0.7) for d in ("none", "private")))
    assert on_it(tied) == ["none", "private"]


def test_report_says_what_was_found(tmp_path):
    path = write_frontier(made_up(), tmp_path, expected=16, preset="frontier")
    report = path.read_text(encoding="utf-8")
    assert "16 of 16 trials" in report
    assert (
        "With targets of public rows these are no defence in 2, means of 5 in 1, epsilon 4 in 0, private in 2 of 2 "
        "data sets; without targets, private in 1 of 2 data sets."
    ) in report
    assert "with no defence in 2, means of 5 in 2, epsilon 4 in 0, private in 1 of 2 data sets." in report
    assert "| none | 0.900 | 0.910 | 0.500 | 0.700 | 0.25 | 0.12 | 1.00 | – |" in report
    assert "| epsilon 4 | 0.600 | 0.610 | 0.500 | 0.700 | 0.25 | 0.12 | 0.70 | 0.74 |" in report
    assert "| private, without targets | 0.750 | 0.760 | 0.500 | – | 0.25 | 0.12 | 0.65 | – |" in report
    assert len(pd.read_csv(tmp_path / "scores.csv")) == 2 * (8 * 3 + 2)


def test_figure_has_a_panel_a_data_set_with_errors_upside_down():
    digits, diabetes = draw_frontier(by_data_set(made_up())).axes
    points = [line for line in digits.lines if line.get_marker() != "None"]
    assert sorted(line.get_xdata()[0] for line in points) == [0.6, 0.65, 0.7, 0.9, 1.0]
    # Open where public rows have no targets; the line is that of labelled public rows alone.
    assert [line.get_xdata()[0] for line in points if line.get_markerfacecolor() == "white"] == [0.65]
    assert [list(line.get_ydata()) for line in digits.lines if line not in points] == [[0.7, 0.7]]
    assert not digits.yaxis_inverted()
    assert diabetes.yaxis_inverted()


def test_report_lives_with_what_is_not_there_yet():
    found = made_up()
    found[1].risks.clear()
    found[0].scores.pop("public alone")
    found[3].errors.append("frontier: digits, seed 1: ValueError: no such luck")
    report = text(found, expected=20, preset="frontier")
    assert "| means of 5 | 0.800 | 0.810 | 0.500 | – | – | – | – | – |" in report
    assert "## What failed\n\n* frontier: digits, seed 1: ValueError: no such luck" in report
    assert "0 of 20 trials" in text([], expected=20, preset="frontier")


@pytest.mark.slow
def test_a_small_run_makes_its_report(tmp_path, monkeypatch):
    settings = (SMALL, replace(SMALL, defence="epsilon 8"))
    monkeypatch.setitem(PRESETS, "frontier", Preset(settings, (0,), ("frontier", "risks")))
    command = ["--preset", "frontier", "--output", str(tmp_path / "run"), "--copy-to", str(tmp_path / "docs")]
    assert main(command) == 0
    table = pd.read_csv(tmp_path / "docs" / "scores.csv")
    assert set(table[table.defence == "none"].method) == {"DC*", "pool", "Local+Public", "public alone"}
    assert set(table[table.defence == "epsilon 8"].method) == {"DC*", "pool", "Local+Public"}
    assert (table.score > 0.5).all()
    report = (tmp_path / "docs" / "README.md").read_text(encoding="utf-8")
    assert "2 of 2 trials" in report
    assert "## What failed" not in report
    (undefended, proven) = (
        line.split("|")[1:-1] for line in report.splitlines() if line.startswith(("| none", "| epsilon"))
    )
    assert undefended[4] == proven[4]
    assert float(undefended[7]) > float(proven[7])
    assert (tmp_path / "docs" / "frontier.png").stat().st_size > 5_000
