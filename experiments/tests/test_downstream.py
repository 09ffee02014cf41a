"""The runner of `make downstream`: what it keeps, and how it judges."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

import datacollab_experiments.downstream.__main__ as runner
from datacollab_experiments.downstream.measuring import Measured, Wanted
from datacollab_experiments.downstream.report import judged, report_text
from datacollab_experiments.downstream.store import append, read


def row(method, seed, value):
    return {"section": "s", "data": "d", "method": method, "measure": "m", "seed": seed, "value": value}


ROWS = [row("DC", 0, 0.8), row("DC", 1, 0.9), row("Local", 0, 0.7), row("Local", 1, 0.72)]


def wanted(**bounds):
    return Wanted(section="s", data="d", method="DC", measure="m", **bounds)


@pytest.mark.parametrize(
    ("bounds", "found", "held"),
    [
        ({"at_least": 0.84}, 0.85, True),
        ({"at_least": 0.86}, 0.85, False),
        ({"at_most": 0.86, "at_least": 0.84}, 0.85, True),
        ({"at_least": 0.13, "beside": "Local"}, 0.14, True),
        ({"at_most": 0.13, "beside": "Local"}, 0.14, False),
    ],
)
def test_means_over_seeds_are_judged(bounds, found, held):
    (verdict,) = judged(ROWS, [wanted(**bounds)])
    np.testing.assert_allclose(verdict.found, found)
    assert verdict.held is held
    assert ("**not held**" in report_text(ROWS, [wanted(**bounds)])) is not held


def test_what_is_missing_is_not_held():
    (verdict,) = judged(ROWS, [Wanted(section="s", data="d", method="other", measure="m", at_most=1.0)])
    assert not verdict.held


def test_a_line_cut_off_is_left_out(tmp_path):
    path = tmp_path / "results.jsonl"
    append(path, ROWS)
    path.write_text(path.read_text(encoding="utf-8")[:-5], encoding="utf-8")
    assert read(path) == ROWS[:-1]


def test_a_run_goes_on_where_it_was(tmp_path, monkeypatch, capsys):
    made = []

    def one_seed(section, seed):
        made.append((section, seed))
        return section, seed, [Measured(section="s", data="d", method="DC", measure="m", seed=seed, value=seed / 10)]

    monkeypatch.setattr(runner, "one_seed", one_seed)
    module = SimpleNamespace(WANTED=(wanted(at_most=0.25),))
    monkeypatch.setattr(runner, "import_module", lambda name, package: module)
    options = ["--section", "groups", "--output", str(tmp_path)]
    assert runner.main([*options, "--seeds", "2"]) == 0
    assert runner.main([*options, "--seeds", "3"]) == 0
    assert made == [("groups", 0), ("groups", 1), ("groups", 2)]
    assert len((tmp_path / "results.jsonl").read_text(encoding="utf-8").splitlines()) == 3
    lines = (tmp_path / "results.jsonl").read_text(encoding="utf-8").splitlines()
    assert all(json.loads(line)["digest"] for line in lines)
    assert runner.main([*options, "--seeds", "5"]) == 0
    assert "1 of 1 wanted figures held" in capsys.readouterr().out


@pytest.mark.parametrize("section", runner.SECTIONS)
def test_every_section_says_what_is_wanted(section):
    module = pytest.importorskip(f"datacollab_experiments.downstream.{section}")
    assert module.WANTED
    assert all(isinstance(one, Wanted) for one in module.WANTED)
    assert all((one.at_least, one.at_most) != (None, None) for one in module.WANTED)
