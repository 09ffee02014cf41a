import json

import numpy as np
import pytest

from datacollab.cli._demonstration import SITUATIONS, WAYS, Demonstration, demonstrate
from datacollab.datasets import load
from playing import interrupted, run


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """One small run of the whole command."""
    output = tmp_path_factory.mktemp("demo")
    return run("demo", "--parties", 3, "--rows", 15, "--seeds", 1, "-o", output), output


@pytest.mark.slow
def test_the_demo_writes_figure_page_and_scores(played):
    result, output = played
    assert result.exit_code == 0, result.output
    assert sorted(path.name for path in output.iterdir()) == ["index.html", "pays.png", "scores.json"]
    assert (output / "pays.png").read_bytes().startswith(b"\x89PNG")
    page = (output / "index.html").read_text(encoding="utf-8")
    told = json.loads((output / "scores.json").read_text(encoding="utf-8"))
    assert [each["name"] for each in told["situations"]] == [situation.name for situation in SITUATIONS]
    for each in told["situations"]:
        assert each["name"] in page
        for way in WAYS:
            assert f"{each['accuracy'][way][0]:.3f}" in result.stdout
    assert "nan" not in page.partition("base64,")[0]
    assert "viewport" in page
    assert "With more draws intervals are narrower: --seeds 5." in result.stdout


@pytest.mark.slow
def test_the_demo_played_again_gives_the_same_one_play_at_a_time(played):
    again = demonstrate(load("digits"), n_parties=3, n_rows=15, seeds=[0], progress=lambda done: None, n_jobs=1)
    told = json.loads((played[1] / "scores.json").read_text(encoding="utf-8"))["situations"]
    for each, situation in zip(told, SITUATIONS, strict=True):
        found = {way: again.accuracies[situation, way] for way in WAYS}
        # Within one of 500 test rows: how many threads sum decides how it is rounded.
        assert each["accuracy"] == {way: pytest.approx(found[way], abs=0.002) for way in WAYS}


@pytest.mark.slow
def test_collaborating_pays_where_public_rows_have_no_targets(played):
    told = json.loads((played[1] / "scores.json").read_text(encoding="utf-8"))["situations"]
    open_, without = told[0], told[2]
    assert without["accuracy"]["pooled"][0] > without["accuracy"]["alone"][0] + 0.05
    assert open_["accuracy"]["all rows in one place"][0] > 0.9
    assert open_["linked"][0] > 0.9
    # Behind the defence no shared row stands for one of a party's.
    assert [told[place]["linked"] for place in (1, 3)] == [None, None]


def made_up(alone, pooled, linked):
    scores = {(s, way): np.array(pooled if way == "pooled" else alone) for s in SITUATIONS for way in WAYS}
    return Demonstration(
        n_parties=3,
        n_rows=15,
        seeds=tuple(range(len(alone))),
        accuracies=scores,
        linked=dict.fromkeys(SITUATIONS, linked),
        benefits={situation: [] for situation in SITUATIONS},
    )


@pytest.mark.parametrize(
    ("pooled", "words"),
    [
        ([0.8, 0.81, 0.82], "collaborating brought 11.0 points of accuracy"),
        ([0.5, 0.51, 0.52], "collaborating cost 19.0 points of accuracy"),
        ([0.6, 0.7, 0.82], "the pool was 0.7 points of accuracy above, which 3 draws cannot tell from chance"),
        ([0.5, 0.7, 0.82], "the pool was 2.7 points of accuracy below, which 3 draws cannot tell from chance"),
    ],
)
def test_sentences_claim_what_the_intervals_support(pooled, words):
    told = made_up([0.7, 0.7, 0.7], pooled, (0.25, 0.1)).sentences()
    assert len(told) == len(SITUATIONS)
    assert all(
        words in sentence and "25 % of its rows can be linked, 10 % by targets alone" in sentence for sentence in told
    )


def test_no_word_of_the_table_is_cut_on_a_terminal_of_80_columns(tmp_path, monkeypatch):
    monkeypatch.setattr(
        "datacollab.cli._demonstration.demonstrate",
        lambda *given, **options: made_up([0.7, 0.72], [0.8, 0.86], (0.25, 0.1)),
    )
    result = run("demo", "--output", tmp_path, COLUMNS="80")
    assert result.exit_code == 0, result.output
    assert "…" not in result.stdout
    assert max(map(len, result.stdout.replace(str(tmp_path), "").splitlines())) <= 80
    for word in " ".join((*WAYS, "linked", "undefended", "0.710", "± 0.127", "0.830", "± 0.381", "25 %")).split():
        assert word in result.stdout


def test_gains_are_of_paired_draws():
    demonstration = made_up([0.5, 0.7], [0.6, 0.8], None)
    assert demonstration.gain(SITUATIONS[0]) == pytest.approx((0.1, 0.0))
    assert demonstration.interval(SITUATIONS[0], "alone")[1] > 1


def test_numbers_are_refused_in_one_line(tmp_path):
    result = run("demo", "--dataset", "diabetes", "--output", tmp_path)
    assert result.exit_code == 1
    assert "datacollab compare" in result.stderr
    assert result.stderr.count("\n") == 1


def test_an_interruption_says_what_there_is(tmp_path, monkeypatch):
    monkeypatch.setattr("datacollab.cli._demonstration.demonstrate", interrupted)
    result = run("demo", "--output", tmp_path)
    assert result.exit_code == 130
    assert "interrupted. Nothing was written" in result.stderr
