import json
import os
import re
from pathlib import Path

import numpy as np
import pytest

from datacollab.cli import _demo_commands as demo
from datacollab.cli._command import COMMANDS
from datacollab.datasets import load
from playing import interrupted, run

GIVEN = {"n_parties": 8, "n_rows": 20}
ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """One small run of the whole command."""
    output = tmp_path_factory.mktemp("demo")
    return run("demo", "--parties", GIVEN["n_parties"], "--rows", GIVEN["n_rows"], "--seeds", 1, "-o", output), output


@pytest.mark.slow
def test_the_demo_writes_figure_page_and_scores(played):
    result, output = played
    assert result.exit_code == 0, result.output
    assert sorted(path.name for path in output.iterdir()) == ["index.html", "methods.png", "pays.png", "scores.json"]
    for picture in ("pays.png", "methods.png"):
        assert (output / picture).read_bytes().startswith(b"\x89PNG")
    page = (output / "index.html").read_text(encoding="utf-8")
    scores = json.loads((output / "scores.json").read_text(encoding="utf-8"))
    told, methods = scores["accuracy"], scores["integration"]
    for name in (*demo.BASELINES, *demo.METHODS, *demo.MAPS.values()):
        assert name in page
        assert name in result.stdout
    assert methods.keys() == {
        *demo.BASELINES,
        *(f"{method}, {title}" for method in demo.METHODS for title in demo.MAPS.values()),
    }
    assert methods["GEP, PCA"] == methods["LTI, PCA"]
    assert methods[demo.LOCAL][0] < methods["KTI, PCA"][0] < methods[demo.CENTRAL][0]
    for way in demo.WAYS:
        assert way in page
        assert f"{told[way][0]:.3f}" in result.stdout
    assert list(told) == list(demo.WAYS)
    assert told[demo.ONE_PLACE][0] > 0.9
    assert "nan" not in re.sub(r"base64,[^\"]+", "", page)
    assert "viewport" in page


@pytest.fixture(scope="module")
def usual():
    """What `make demo` plays: its folder, if it was played before these tests, or else its first table once more."""
    if folder := os.environ.get("DATACOLLAB_DEMO"):
        scores = json.loads((ROOT / folder / "scores.json").read_text(encoding="utf-8"))
        accuracies = {name: np.array(each) for name, each in (scores["accuracy"] | scores["integration"]).items()}
        facts = {name: scores[name] for name in ("n_parties", "n_rows", "seeds")}
        return demo.Demonstration(**facts, accuracies=accuracies)
    given = {each.name: each.default for each in COMMANDS["demo"].inputs}
    options = {"n_parties": given["parties"], "n_rows": given["rows"], "seeds": range(given["seeds"])}
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("datacollab.cli._demo_commands.MAPS", {})
        return demo.demonstrate(load(given["dataset"]), **options, progress=lambda done: None, n_jobs=given["jobs"])


@pytest.mark.slow
def test_sums_beat_what_a_party_has_alone_as_it_is_played(usual):
    assert usual.gain(demo.SUMS)[0] > 0.01


NUMBER = re.compile(r"[-+−]?\d\.\d+")


def tabled(page, n_columns=2):
    """The figures of a page's table, by the way's name as the demonstration has it; a name may have further words."""
    lines = re.findall(
        r"^\| (?!way|---)(.*?) \| (.*) \|$", page.partition("| way |")[2].partition("\n\n")[0], re.MULTILINE
    )
    found = {}
    for name, cells in lines:
        words = set(re.findall(r"\w+", name))
        (way,) = [way for way in demo.WAYS if set(re.findall(r"\w+", way)) <= words]
        found[way] = [NUMBER.findall(cell) for cell in cells.split("|")[:n_columns]]
    return found


@pytest.mark.slow
def test_the_readme_shows_what_make_demo_prints(usual):
    shown = tabled(README)
    assert {demo.SUMS, demo.ALONE} <= shown.keys()
    for way, cells in shown.items():
        for said, printed in zip(cells, demo._figures(usual, way), strict=True):
            assert bool(said) == bool(printed), (way, said, printed)
            # The last digit depends on how a processor rounds; README has an accuracy without its interval.
            for one, other in zip(said, NUMBER.findall(printed), strict=False):
                assert float(one) == pytest.approx(float(other), abs=0.0011), (way, said, printed)


def test_readme_and_page_show_the_same_figures():
    page = (ROOT / "docs" / "paying.md").read_text(encoding="utf-8")
    both = tabled(page)
    shown = tabled(README)
    assert shown.keys() <= both.keys()
    for way, (accuracy, gain) in shown.items():
        assert (accuracy, gain) == (both[way][0][: len(accuracy)], both[way][1]), way
    of_ten = tabled(page, 4)
    for words, way in (("sums are", demo.SUMS), ("the average of local models", demo.AVERAGE)):
        said = re.search(rf"{words} (\d\.\d+)", README.partition("with ten parties")[2].replace("\n", " "))
        assert f"+{said[1]}" == of_ten[way][3][0]


def made_up(alone, sums):
    better = {demo.SUMS, *(f"{demo.EXTENDED}, {title}" for title in demo.MAPS.values())}
    names = [
        *demo.WAYS,
        *demo.BASELINES,
        *(f"{method}, {title}" for method in demo.METHODS for title in demo.MAPS.values()),
    ]
    return demo.Demonstration(
        n_parties=3,
        n_rows=15,
        seeds=tuple(range(len(alone))),
        accuracies={name: np.array(sums if name in better else alone) for name in names},
    )


def test_the_table_of_methods_has_a_column_for_each_map_and_what_graph_and_centring_gain():
    headings, *rows = demo._tabulate(made_up([0.5, 0.7], [0.6, 0.8]))
    assert headings == ["integration", "PCA", "kernel PCA", "UMAP"]
    cells = {name.strip(): each for name, *each in rows}
    assert list(cells) == [demo.LOCAL, *demo.METHODS, "above LTI", "Local + public", demo.CENTRAL]
    assert cells["above LTI"] == ["+0.100 ± 0.000"] * 3
    assert cells["KTI"] == ["0.600 ± 1.271"] * 3


@pytest.mark.nightly
def test_without_umap_its_column_is_left_out_in_words(monkeypatch):
    monkeypatch.setattr("datacollab.cli._demo_commands.importlib.util.find_spec", lambda name: None)
    played = demo.demonstrate(load("digits"), n_parties=3, n_rows=12, seeds=[0], progress=lambda done: None, n_jobs=1)
    headings, *rows = demo._tabulate(played)
    assert headings == ["integration", "PCA", "kernel PCA"]
    assert rows[-1] == ["UMAP is left out: pip install 'datacollab[umap]' adds it."]
    assert {len(row) for row in rows[:-1]} == {3}


@pytest.mark.parametrize(
    ("sums", "words"),
    [
        ([0.8, 0.81, 0.82], "brought a party 11.0 points of accuracy"),
        ([0.5, 0.51, 0.52], "cost a party 19.0 points of accuracy"),
        ([0.6, 0.7, 0.82], "were 0.7 points of accuracy above, which 3 draws cannot tell from chance"),
        ([0.5, 0.7, 0.82], "were 2.7 points of accuracy below, which 3 draws cannot tell from chance"),
    ],
)
def test_the_sentence_claims_what_the_intervals_support(sums, words):
    assert words in made_up([0.7, 0.7, 0.7], sums).sentence


@pytest.mark.slow
def test_no_word_of_the_table_is_cut_on_a_terminal_of_80_columns(tmp_path, monkeypatch):
    monkeypatch.setattr(
        "datacollab.cli._demo_commands.demonstrate", lambda *given, **options: made_up([0.7, 0.72], [0.8, 0.86])
    )
    result = run("demo", "--output", tmp_path, COLUMNS="80")
    assert result.exit_code == 0, result.output
    assert "…" not in result.stdout
    assert max(map(len, result.stdout.replace(str(tmp_path), "").splitlines())) <= 80
    for word in " ".join((*demo.WAYS, *demo.WAYS.values(), "0.710 ± 0.127", "0.830 ± 0.381", "+0.120 ± 0.254")).split():
        assert word in result.stdout


def test_gains_are_of_paired_draws():
    demonstration = made_up([0.5, 0.7], [0.6, 0.8])
    assert demonstration.gain(demo.SUMS) == pytest.approx((0.1, 0.0))
    assert demonstration.interval(demo.ALONE)[1] > 1


def test_numbers_are_refused_and_an_interruption_says_what_there_is(tmp_path, monkeypatch):
    result = run("demo", "--dataset", "diabetes", "--output", tmp_path)
    assert result.exit_code == 1
    assert "datacollab compare" in result.stderr
    assert result.stderr.count("\n") == 1
    monkeypatch.setattr("datacollab.cli._demo_commands.demonstrate", interrupted)
    result = run("demo", "--output", tmp_path)
    assert result.exit_code == 130
    assert "Interrupted. Nothing was written" in result.stderr
