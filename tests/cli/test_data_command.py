import json

import pytest

from datacollab import datasets
from playing import assert_one_line, interrupted, runs

run = runs("data")


NAMES = ["digits", "diabetes", "mnist", "fashion-mnist", "ujiindoorloc", "slice-localization"]


@pytest.fixture
def mnist_at(tmp_path):
    """A directory with a long name, and files where those of MNIST are looked for."""
    place = tmp_path / ("long" * 30) / "mnist"
    place.mkdir(parents=True)
    for part in ("train", "t10k"):
        for kind in ("images-idx3", "labels-idx1"):
            (place / f"{part}-{kind}-ubyte.gz").touch()
    return place


@pytest.mark.parametrize("columns", ["80", "200"])
def test_the_list_shows_every_name_and_place_in_one_piece(mnist_at, columns):
    result = run("list", "--data-dir", mnist_at.parent, COLUMNS=columns)
    assert result.exit_code == 0
    assert str(mnist_at) in result.stdout
    table = result.stdout.splitlines()
    for name in NAMES:
        assert any(line.split()[:1] == [name] for line in table)
    assert "70000 x 784" in result.stdout
    assert "comes with scikit-learn" in result.stdout


def test_the_list_as_json(mnist_at):
    result = run("list", "--data-dir", mnist_at.parent, "--json", COLUMNS="40")
    assert result.exit_code == 0
    assert result.stderr == ""
    rows = {row["name"]: row for row in json.loads(result.stdout)}
    assert list(rows) == NAMES
    assert rows["mnist"]["path"] == str(mnist_at)
    assert rows["digits"]["path"] is None
    assert (rows["ujiindoorloc"]["n_samples"], rows["ujiindoorloc"]["task"]) == (21048, "regression")


def test_what_is_fetched_is_said_and_an_interruption_leaves_nothing(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(datasets, "fetch", lambda name, data_dir: asked.append((name, data_dir)) or data_dir / name)
    result = run("fetch", "mnist", "--data-dir", tmp_path)
    assert (result.exit_code, result.stdout) == (0, f"{tmp_path / 'mnist'}\n")
    assert asked == [("mnist", tmp_path)]
    monkeypatch.setattr(datasets, "fetch", interrupted)
    result = run("fetch", "mnist")
    assert result.exit_code == 130
    assert "Interrupted. No incomplete file was left behind" in result.stderr


@pytest.mark.parametrize(("name", "words"), [("digits", "comes with scikit-learn"), ("iris", "There is no data set")])
def test_what_cannot_be_fetched_is_one_line(name, words):
    result = run("fetch", name)
    assert_one_line(result, words)
