import json
from functools import partial

import pytest
from sklearn.ensemble import RandomForestClassifier
from typer import Typer
from typer.testing import CliRunner

from datacollab import datasets
from datacollab_experiments import paper as experiments
from datacollab_experiments.commands import register

SMALL = [
    "compare", "--obfuscator", "pca", "--seeds", "2", "--parties", "3", "--rows", "30", "--components", "5",
    "--method", "LTI", "--method", "KTI", "--anchors", "100", "--sources", "50", "--test-rows", "100",
]  # fmt: skip
METHODS = ["Local", "Local+Public", "LTI", "KTI", "Central"]
APP = Typer()
register(APP)


def run(*arguments, **environment):
    return CliRunner().invoke(APP, [str(argument) for argument in arguments], env=environment or None)


@pytest.fixture
def quick(monkeypatch):
    """Without the picture that costs a UMAP, and with small forests."""
    small = partial(RandomForestClassifier, n_estimators=3)
    monkeypatch.setattr("datacollab_experiments.paper._trial.RandomForestClassifier", small)
    monkeypatch.setattr(experiments, "alignment_figure", lambda data, **options: a_figure())


def a_figure():
    from matplotlib.figure import Figure

    return Figure()


@pytest.fixture
def untouched_data(monkeypatch):
    """Fails where data are loaded."""
    monkeypatch.setattr(datasets, "load", lambda *given, **options: pytest.fail("the data were loaded"))


@pytest.mark.nightly
def test_the_comparison_writes_figures_and_scores(tmp_path):
    """The one test that draws the alignment with UMAP."""
    output = tmp_path / "new" / "directory"
    result = run(*SMALL, "--output", output)
    assert result.exit_code == 0, result.output
    written = ["alignment.png", "scores.json", "scores.png"]
    assert sorted(path.name for path in output.iterdir()) == written
    for name in written:
        assert str(output / name) in result.stdout.replace("\n", "")
    for picture in ("scores.png", "alignment.png"):
        assert (output / picture).read_bytes().startswith(b"\x89PNG")
    told = json.loads((output / "scores.json").read_text(encoding="utf-8"))
    assert [row["method"] for row in told["results"]] == METHODS
    for row in told["results"]:
        assert f"{row['accuracy']:.3f}" in result.stdout
    assert "better than Local" in result.stdout or "not told apart" in result.stdout


@pytest.mark.slow
@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("environment", [{}, {"FORCE_COLOR": "1", "COLUMNS": "40"}])
def test_json_is_all_that_stdout_has(tmp_path, environment):
    result = run(*SMALL, "--output", tmp_path, "--json", **environment)
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert told == json.loads((tmp_path / "scores.json").read_text(encoding="utf-8"))
    assert told["condition"]["n_sources"] == 50
    assert [row["method"] for row in told["results"]] == METHODS
    assert all(len(row["values"]) == 2 for row in told["results"])
    # Without a terminal there is no bar; with one, it is on the other stream.
    assert ("trial 1 of 2" in result.stderr) == bool(environment)


@pytest.mark.usefixtures("untouched_data")
@pytest.mark.parametrize(
    ("option", "value", "listed"),
    [
        ("--method", "PCA", "LTI, KTI"),
        ("--obfuscator", "tsne", "pca, kernel-pca, umap, random-projection"),
        ("--hyperparameters", "best", "recommended, paper"),
        ("--out-of-sample", "batch", "row-wise, umap"),
    ],
)
def test_an_unknown_name_is_one_line_before_anything_is_loaded(tmp_path, option, value, listed):
    result = run(*SMALL, option, value, "--output", tmp_path / "output")
    assert_one_line(result, value, listed)
    assert not (tmp_path / "output").exists()


def test_an_unknown_data_set_is_one_line(tmp_path):
    assert_one_line(run(*SMALL, "--dataset", "iris", "--output", tmp_path), "iris", "'digits', 'diabetes', 'mnist'")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--parties", "100"], "100 parties of 30 rows, 100 test rows and 50 anchor sources need 3150 rows"),
        (["--rows", "5000"], "need 15150 rows, but digits has 1797"),
        (["--test-rows", "1797"], "need 1937 rows"),
        (["--sources", "0", "--anchors", "1700"], "1700 real anchors need 1890 rows"),
        (["--sources", "101"], "n_sources=101 is above n_anchors=100"),
        (["--components", "31"], "n_components=31 is more than its 30 rows"),
    ],
)
def test_impossible_sizes_are_one_line(tmp_path, options, words):
    assert_one_line(run(*SMALL, *options, "--output", tmp_path), words)


@pytest.mark.usefixtures("untouched_data")
def test_a_directory_that_cannot_be_made_is_one_line_before_any_work(tmp_path):
    (tmp_path / "file").write_text("in the way")
    assert_one_line(run(*SMALL, "--output", tmp_path / "file" / "compare"), str(tmp_path / "file"))
    assert_one_line(run(*SMALL, "--output", tmp_path / "file"), str(tmp_path / "file"))


@pytest.mark.parametrize("option", ["--seeds", "--parties", "--rows", "--components"])
def test_nonsense_numbers_are_usage_errors(option):
    result = run(*SMALL, option, "0")
    assert result.exit_code == 2
    assert option in result.stderr


def test_an_interruption_exits_with_130_and_says_what_there_is(tmp_path, monkeypatch):
    def interrupted(*given, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(experiments, "compare_methods", interrupted)
    result = run(*SMALL, "--output", tmp_path)
    assert result.exit_code == 130
    assert "interrupted. Nothing was written" in result.stderr
    assert "Traceback" not in result.output
    assert list(tmp_path.iterdir()) == []


def assert_one_line(result, *words):
    assert result.exit_code == 1, result.output
    assert isinstance(result.exception, SystemExit)
    assert result.stdout == ""
    assert result.stderr.startswith("datacollab: ")
    assert result.stderr.count("\n") == 1
    for word in words:
        assert word in result.stderr
