"""One-shot collaboration side by side: methods against oracles, evidence and attacks, and a method that is added."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from scipy.special import softmax

from datacollab_experiments.oneshot import methods
from datacollab_experiments.oneshot.__main__ import main
from datacollab_experiments.oneshot.attacks import Worlds, attack_method, judge_evidence
from datacollab_experiments.oneshot.messages import Kind, Points, Records, Total
from datacollab_experiments.oneshot.methods import (
    METHODS,
    RATE,
    ROUNDS,
    STEPS,
    Average,
    Central,
    Constant,
    ExactSums,
    FederatedAveraging,
    Local,
    MaskedSums,
    SyntheticRows,
    kind_of,
)
from datacollab_experiments.oneshot.report import BOTH, EACH, dominating, means_of, text
from datacollab_experiments.oneshot.settings import PRESETS
from datacollab_experiments.oneshot.tasks import tasks_of
from datacollab_experiments.pays.draws import Rows, draw
from datacollab_experiments.pays.library import pooled
from datacollab_experiments.pays.settings import Setting
from datacollab_experiments.pays.tables import load_table
from datacollab_experiments.sums.membership import find_turn_back, turn_and_undo

PUBLISHED = Path(__file__).parents[3] / "docs" / "results" / "oneshot"
HOW_TO = Path(__file__).parents[2] / "docs" / "oneshot.md"


@pytest.fixture(scope="module")
def drawn():
    setting = Setting(dataset="breast-cancer", n_parties=3, n_per_party=20, n_public=40)
    return draw(load_table("breast-cancer"), setting, 3)


@pytest.fixture(scope="module")
def alike(drawn):
    """All parties have the same rows."""
    rows = drawn.parties["party-0"]
    return replace(drawn, parties=dict.fromkeys(drawn.parties, rows))


# methods


def test_masks_change_nothing_that_anybody_gets(drawn):
    masked, plain = (MaskedSums().play(drawn, attacked=attacked) for attacked in (False, True))
    X = drawn.test.X
    assert_allclose(masked.models[0](X), plain.models[0](X), atol=1e-5)
    assert masked.sent > 0
    assert not np.allclose(plain.models[0](X), ExactSums().play(drawn, attacked=True).models[0](X), atol=1e-3)


def test_exact_sums_do_not_hang_on_who_has_which_row(drawn):
    every = pooled(drawn.parties)
    order = np.random.default_rng(0).permutation(len(every))
    parts = np.split(order, [5, 30])
    mixed = replace(drawn, parties={f"party-{k}": Rows(every.X[i], every.y[i]) for k, i in enumerate(parts)})
    before, after = (ExactSums().play(each, attacked=False).models[0](drawn.test.X) for each in (drawn, mixed))
    assert_allclose(before, after, atol=1e-8)


def test_average_of_equal_parties_is_the_local_model(alike):
    [mean] = Average().play(alike, attacked=False).models
    assert_allclose(mean(alike.test.X), Local().play(alike, attacked=False).models[0](alike.test.X))


def test_federated_averaging_of_equal_parties_is_gradient_descent(alike):
    rows, common = alike.parties["party-0"], kind_of(alike).common
    V = np.column_stack([common.transform(rows.X), np.ones(len(rows))])
    start = methods.logistic(common.transform(alike.public.X), alike.public.y, alike)
    W = np.vstack([start.coefficients, start.intercept])
    for _ in range(ROUNDS * STEPS):
        slope = np.zeros_like(W)
        for v, y in zip(V, rows.y, strict=True):
            slope += np.outer(v, softmax(v @ W) - np.eye(2)[y]) / len(rows)
        W = W - RATE * slope
    test = np.column_stack([common.transform(alike.test.X), np.ones(len(alike.test))])
    played = FederatedAveraging().play(alike, attacked=False)
    assert_allclose(played.models[0](alike.test.X), softmax(test @ W, axis=1), atol=1e-8)
    assert played.rounds == ROUNDS


def test_bytes_are_those_of_the_numbers_sent(drawn):
    n_rows, n_columns = drawn.parties["party-0"].X.shape
    D = kind_of(drawn).common.n_components
    assert SyntheticRows().play(drawn, attacked=False).sent == 8 * n_rows * (n_columns + 1)
    assert Average().play(drawn, attacked=False).sent == 8 * 2 * (D + 1)
    assert ExactSums().play(drawn, attacked=False).sent == 8 * (D + 3) * (D + 4) // 2


# what messages say


def test_whitened_evidence_is_that_of_the_whole_covariance():
    random = np.random.default_rng(0)
    setting = Setting(dataset="breast-cancer", n_parties=3, n_per_party=20, n_public=40)
    drawn = draw(load_table("breast-cancer"), setting, 1)
    of_draw = kind_of(drawn)
    common = of_draw.common.from_anchor(drawn.public.X, bytes(32), n_components=4)
    statistic = replace(of_draw.statistic, n_components=4)
    empty = Kind(common, statistic, np.eye(7)[:6])
    kind = Kind(common, statistic, empty.lift(drawn.test.X[:50], drawn.test.y[:50]))
    u = kind.lift(drawn.test.X[50:90], drawn.test.y[50:90])
    matrix = u.T @ u + random.normal(size=(7, 7))
    matrix = (matrix + matrix.T) / 2
    X, y = drawn.test.X[100:105], drawn.test.y[100:105]
    found = Total(matrix, 0.5, kind).evidence(Records(X, y, 1 - y, X[None]))
    n = matrix[-1, -1] / 0.25

    def deviation(v):
        return (np.outer(v, v) - kind.mean).ravel()

    of_kind = np.array([deviation(v) for v in kind.u])
    residual = (matrix - n * kind.mean).ravel()
    for start, target in ((0, y), (4, 1 - y)):
        for place, v in enumerate(kind.lift(X, target)):
            delta = deviation(v)
            assert_allclose(found[place, start], delta @ residual / np.linalg.norm(delta))
            for column, rest in ((1, 0.3), (2, 3.0)):
                S = n / len(of_kind) * of_kind.T @ of_kind + (0.25 + n * rest * kind.rest) * np.eye(49)
                solved = np.linalg.solve(S, delta)
                scale = np.sqrt(0.25 + n * rest * kind.rest)
                assert_allclose(found[place, start + column], solved @ residual / np.sqrt(solved @ delta) * scale)


def test_points_say_where_the_record_itself_is(drawn):
    rows = drawn.test
    X, y = rows.X[:5], rows.y[:5]
    said = Points(rows).evidence(Records(X, y, 1 - y, X[None]))
    assert (said[:, [0, 2]] < -20).all()
    assert (said[:, 1] > -5).all()


def test_a_secret_turn_is_found_from_the_moments_themselves():
    random = np.random.default_rng(0)
    rows = random.normal(size=(200, 6)) * np.arange(1, 7)
    rows[:, 5] += rows[:, :4].sum(axis=1)
    turn = stats.ortho_group.rvs(4, random_state=0)
    turned = np.hstack([rows[:, :4] @ turn, rows[:, 4:]])
    back = find_turn_back(turned.T @ turned, rows.T @ rows, 4)
    assert_allclose(turned[:, :4] @ back, rows[:, :4], atol=1e-8)
    # So a total of such rows comes back as it was, unless other moments are expected.
    M = rows.T @ rows
    assert_allclose(turn_and_undo(M, M, 4, random), M, atol=1e-8 * M.max())
    assert not np.allclose(turn_and_undo(M, M[::-1, ::-1], 4, random), M, atol=0.01 * M.max())


# attacks


def test_attack_is_as_good_as_the_distance_of_normal_evidence_allows():
    random = np.random.default_rng(0)
    state = random.random((400, 10)) < 0.5
    # Records differ by themselves, far more than by their states.
    evidence = random.normal(size=(400, 10, 3)) + 10 * random.normal(size=(10, 3))
    evidence[..., 1] += state
    found = judge_evidence(evidence, state)
    expected = stats.norm.cdf(1 / np.sqrt(2))
    assert_allclose(found["AUC"], expected, atol=4 * 0.0085)
    assert_allclose(found["advantage"], 2 * stats.norm.cdf(0.5) - 1, atol=4 * 0.015)
    # t of four degrees of freedom.
    assert abs(found["AUC"] - expected) < 8 * max(found["se"], 0.005)


def test_attack_finds_nothing_where_there_is_nothing():
    random = np.random.default_rng(1)
    state = random.random((400, 10)) < 0.5
    assert_allclose(judge_evidence(random.normal(size=(400, 10, 3)), state)["AUC"], 0.5, atol=4 * 0.0092)
    assert judge_evidence(np.empty((400, 10, 0)), state) == {"AUC": 0.5, "se": 0.0, "TPR": 0.01, "advantage": 0.0}


def test_controls_find_everybody_and_nobody(drawn):
    found = attack_method(Central(), drawn, 10)
    assert found["membership|receiver|AUC"] > 0.99
    assert found["target|receiver|AUC"] > 0.99
    assert attack_method(Constant(), drawn, 10)["target|together|AUC"] == 0.5


def test_worlds_are_as_they_say():
    setting = Setting(dataset="digits", n_parties=4, n_per_party=30, split="label-skew")
    drawn = draw(load_table("digits"), setting, 0)
    worlds = Worlds(drawn)
    n, records = worlds.n_members, worlds.records
    assert n == 10
    assert not (records.y == records.other).any()
    for world in map(worlds.world, range(5)):
        rows = world.drawn.parties["party-0"]
        where = [np.flatnonzero((record == rows.X).all(axis=1)) for record in records.X]
        assert [bool(len(found)) for found in where[:n]] == world.states["membership"].tolist()
        seen = [rows.y[found[0]] for found in where[n:]]
        assert (seen == np.where(world.states["target"], records.y[n:], records.other[n:])).all()
        assert all(len(world.drawn.parties[name]) == len(own) for name, own in drawn.parties.items())
        # Other parties get classes that they have, and no others.
        for name in ("party-1", "party-2", "party-3"):
            assert set(world.drawn.parties[name].y) <= set(drawn.parties[name].y)


# report


def test_a_method_is_ahead_if_it_is_better_in_one_way_and_no_worse_in_the_other():
    means = pd.DataFrame(
        {
            "score": {"sums under masks": 0.80, "a": 0.80, "b": 0.81, "c": 0.79, "d": 0.803, "central": 0.9},
            EACH: {"sums under masks": 0.7, "a": 0.6, "b": 0.71, "c": 0.5, "d": 0.7, "central": 0.5},
            BOTH: {"sums under masks": 0.7, "a": 0.7, "b": 0.7, "c": 0.7, "d": 0.8, "central": 0.5},
        }
    )
    assert dominating(means, EACH) == ["a", "d"]
    assert dominating(means, BOTH) == ["b"]
    # .71 is level with .7, and .803 with .8.
    assert dominating(means, EACH, utility=0.005, less=0.02) == ["a", "b"]


def test_quick_preset_has_each_table_under_each_condition():
    settings = PRESETS["quick"].settings
    assert len(set(settings)) == 20
    assert {setting.dataset for setting in settings[:4]} == {"credit", "email", "digits", "telco"}
    conditions = {(setting.n_parties, setting.split) for setting in settings if setting.dataset == "email"}
    assert conditions == {*((n, "iid") for n in (3, 10, 50)), (10, "label-skew"), (10, "feature-shift")}


@pytest.mark.nightly
def test_a_method_is_added_as_the_page_says(tmp_path, monkeypatch, capsys):
    [code] = re.findall(r"```python\n(.*?)```", HOW_TO.read_text(encoding="utf-8"), re.DOTALL)
    line = re.search(r"The line is `(\w+\(\)),`", HOW_TO.read_text(encoding="utf-8"))[1]
    kept = ["constant", "local", "average of locals", "sums, exact", "sums under masks", "central"]
    for name in set(METHODS) - set(kept):
        monkeypatch.delitem(METHODS, name)
    command = ["--preset", "smoke", "--output", str(tmp_path)]
    assert main(command) == 0
    names = dict(vars(methods))
    exec(code, names)
    added = eval(line, names)
    monkeypatch.setitem(METHODS, added.name, added)
    waiting = [list(task.cells.values()) for task in tasks_of(PRESETS["smoke"])]
    assert waiting == [[*kept, "median of locals"]]
    assert main(command) == 0
    rows = pd.read_csv(tmp_path / "report" / "rows.csv.gz").set_index("method")
    assert rows.loc["median of locals", "bytes"] == rows.loc["average of locals", "bytes"]
    assert 0.9 < rows.loc["median of locals", "AUC"] <= 1.0
    assert "| median of locals |" in (tmp_path / "report" / "README.md").read_text(encoding="utf-8")
    assert (tmp_path / "report" / "frontier.png").stat().st_size > 10_000
    capsys.readouterr()
    # What is there is not computed again.
    assert main(command) == 0
    assert "1/1" not in capsys.readouterr().out


def test_the_published_page_says_what_its_rows_say():
    rows = pd.read_csv(PUBLISHED / "rows.csv.gz").to_dict("records")
    said = text(means_of(rows), rows, [], preset="quick")
    [answer, reach] = said.split("\n\n")[1:3]
    page = (PUBLISHED / "README.md").read_text(encoding="utf-8")
    assert answer in page
    assert reach in page
    assert said.split("## What to know")[1] in page
    assert said.split("![")[1].split("##")[0] in page


def test_the_report_counts_settings_with_one_draw_and_averages_errors():
    rows = pd.read_csv(PUBLISHED / "rows.csv.gz")
    rows = rows[(rows.seed == 0) | (rows.dataset == "credit")]
    setting = ["dataset", "parties", "rows", "split"]
    n_draws, errors = [], []
    for _, of in rows[rows.method == "sums under masks"].groupby(setting):
        n_draws.append(len(of))
        # The mean of independent draws.
        errors += [np.sqrt(np.sum(of[column] ** 2)) / len(of) for column in rows if column.endswith("|se")]
    assert (n_draws.count(1), n_draws.count(3)) == (15, 5)
    assert len(errors) == 6 * 20
    said = text(means_of(rows.to_dict("records")), rows.to_dict("records"), [], preset="quick")
    assert " 15 of 20 settings have one draw." in said
    assert f"a standard error of {np.mean(errors):.3f} on average, and {max(errors):.3f} at most" in said
    first = said.split("\n\n")[1]
    assert "on digits as high as that of exact sums" in first
    # Less risk on digits, and the page no longer says so; `local` is ahead of nobody if it scores like `constant`.
    sums = (rows.method == "sums under masks") & (rows.dataset == "digits")
    rows.loc[sums, [column for column in rows if column.endswith("|AUC")]] = 0.6
    rows.loc[rows.method == "local", ["AUC", "accuracy"]] = 0.05
    changed = text(means_of(rows.to_dict("records")), rows.to_dict("records"), [], preset="quick").split("\n\n")[1]
    assert "as high as" not in changed
    assert "`local`, which sends nothing, is on the frontier in 20 and 20 of 20." in first
    assert "`local`, which sends nothing, is on the frontier in 0 and 0 of 20." in changed


def test_a_run_of_one_method_alone_ends_without_a_table(tmp_path):
    assert main(["--preset", "smoke", "--method", "constant", "--output", str(tmp_path)]) == 0
    assert "No setting has run with all methods yet." in (tmp_path / "report" / "README.md").read_text("utf-8")
    assert pd.read_csv(tmp_path / "report" / "rows.csv.gz").method.tolist() == ["constant"]


def test_a_whole_run_is_not_called_unfinished():
    rows = pd.read_csv(PUBLISHED / "rows.csv.gz")
    first = rows[rows.seed == 0]
    for n, unfinished in ((2, True), (3, False)):
        some = pd.concat([first.assign(seed=seed) for seed in range(n)]).to_dict("records")
        said = text(means_of(some), some, [], preset="quick")
        assert ("The run is unfinished" in said) is unfinished
        assert "one draw" not in said


@pytest.mark.nightly
def test_all_methods_run(tmp_path):
    assert main(["--preset", "smoke", "--output", str(tmp_path)]) == 0
    rows = pd.read_csv(tmp_path / "report" / "rows.csv.gz")
    assert rows.method.tolist() == list(METHODS)
    assert rows["membership|together|AUC"].between(0, 1).all()
