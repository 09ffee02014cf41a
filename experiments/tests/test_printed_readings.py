"""Printed numbers beside ours: what counts as run and as inside, and what is said of the others."""

import math
from dataclasses import replace
from pathlib import Path

from datacollab_experiments.claims import Interval, find_published, published_values
from datacollab_experiments.paper import make_tasks
from datacollab_experiments.readings import printed

ROOT = Path(__file__).resolve().parents[2]


def test_every_printed_number_is_compared_once():
    assert [each.printed for each in printed.compare_numbers({})] == list(published_values())
    assert not any(each.is_run for each in printed.compare_numbers({}))


def test_inside_is_within_both_half_widths():
    value = find_published("tab:rq4-integration-accuracy-wide", dataset="mnist", name="KTI", obfuscator="pca",
                           n_components=16)  # fmt: skip
    assert (value.mean, value.half_width) == (0.517, 0.012)
    each = printed.PrintedNumber(printed=value)
    for mean, half_width, inside, settled in [
        (0.5365, 0.008, True, True), (0.5375, 0.008, False, True), (0.4965, 0.008, False, True),
        (0.517, 0.0, True, True), (0.54, 0.013, True, False), (0.5, math.nan, False, False),
    ]:  # fmt: skip
        found = Interval(mean, half_width, 10)
        assert (each.is_inside(found), each.is_settled(found)) == (inside, settled)
    assert not each.is_inside(None)
    central = find_published("fig:num-existing", dataset="mnist", name="Central", n_parties=2)
    assert printed.PrintedNumber(printed=central).is_inside(Interval(0.6903, 0.01, 10)), "rounded to three digits"


def test_every_cell_outside_has_a_reason():
    """The page is that of the rows, which is tested with the other results."""
    page = (ROOT / "docs" / "results" / "printed" / "README.md").read_text(encoding="utf-8")
    assert len([line for line in page.splitlines() if "**" in line]) > 10
    assert printed.NO_REASON not in page


def test_half_the_gamma_has_the_trials_of_the_preset():
    by_name = {each.name: each for each in printed.load_experiments()}
    for width, beside in (("protocol-width", "rq4"), ("latitude-width", "regression")):
        half, whole = by_name[width], by_name[beside]
        assert half.seeds == whole.seeds
        drawn = [
            {replace(c, obfuscator="pca", kernel_width="median") for c in each.conditions} for each in (half, whole)
        ]
        assert drawn[0] == drawn[1]
        assert {c.obfuscator for c in half.conditions} == {"pca"}
        tasks = [make_tasks([each]) for each in (half, whole)]
        cells_of = [{cell.name for task in each for cell in task.cells.values()} for each in tasks]
        assert {name.removesuffix(", gamma 0.5") for name in cells_of[0]} < cells_of[1]
