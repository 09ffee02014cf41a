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
from datacollab_experiments.oneshot.attacks import attack_method, judge_evidence
from datacollab_experiments.oneshot.messages import Kind, Records, Total
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
from datacollab_experiments.oneshot.report import means_of, text
from datacollab_experiments.oneshot.tasks import PRESETS, tasks_of
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


@pytest.mark.slow
def test_controls_find_everybody_and_nobody(drawn):
    found = attack_method(Central(), drawn, 10)
    assert found["membership|receiver|AUC"] > 0.99
    assert found["target|receiver|AUC"] > 0.99
    assert attack_method(Constant(), drawn, 10)["target|together|AUC"] == 0.5


# report


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


@pytest.mark.slow
def test_the_published_page_says_what_its_rows_say():
    rows = pd.read_csv(PUBLISHED / "rows.csv.gz").to_dict("records")
    said = text(means_of(rows), rows, [], preset="quick")
    [answer, reach] = said.split("\n\n")[1:3]
    page = (PUBLISHED / "README.md").read_text(encoding="utf-8")
    assert answer in page
    assert reach in page
    assert said.split("## What to know")[1] in page
    assert said.split("![")[1].split("##")[0] in page


@pytest.mark.nightly
def test_all_methods_run(tmp_path):
    assert main(["--preset", "smoke", "--output", str(tmp_path)]) == 0
    rows = pd.read_csv(tmp_path / "report" / "rows.csv.gz")
    assert rows.method.tolist() == list(METHODS)
    assert rows["membership|together|AUC"].between(0, 1).all()
