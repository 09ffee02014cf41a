"""The runner of `make downstream`: what it keeps, and how it judges."""

from types import SimpleNamespace

import numpy as np
import pytest

import datacollab_experiments.downstream.__main__ as runner
from datacollab_experiments.downstream.report import Datum, Wanted, judge_figures, report_text
from datacollab_experiments.harness import _run


def row(method, seed, value):
    return Datum(section="s", data="d", method=method, measure="m", seed=seed, value=value)


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
    (verdict,) = judge_figures(ROWS, [wanted(**bounds)])
    np.testing.assert_allclose(verdict.found, found)
    assert verdict.held is held
    assert ("**not held**" in report_text(ROWS, [wanted(**bounds)])) is not held


def test_a_run_goes_on_where_it_was(tmp_path, monkeypatch, capsys):
    made = []

    def measure(seed):
        made.append(seed)
        return [("d", "DC", "m", seed / 10), ("d", "Local", "m", np.nan)]

    module = SimpleNamespace(WANTED=(wanted(at_most=0.25),), SECTION="s", measure=measure)
    for place in (runner, _run):
        monkeypatch.setattr(place, "import_module", lambda *name: module)
    options = ["--section", "clusters", "--output", str(tmp_path)]
    assert runner.main([*options, "--seeds", "2"]) == 0
    assert runner.main([*options, "--seeds", "3", "--copy-to", str(tmp_path / "copy")]) == 0
    assert made == [0, 1, 2]
    assert "1 of 1 wanted figures held" in capsys.readouterr().out
    page = (tmp_path / "copy" / "README.md").read_text(encoding="utf-8")
    assert "| d | m | DC | 0.100 ± 0.082 | at most 0.25 |" in page
    assert "| d | m | Local | – |  |" in page
    assert runner.main([*options, "--seeds", "7"]) == 1
    assert "not held: s, d, DC, m: 0.300" in capsys.readouterr().out
