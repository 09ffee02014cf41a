"""The attackers that audits are held against: planted cases, all subsets tried, and what the table says."""

from itertools import combinations

import numpy as np
import pytest
from numpy.random import RandomState

from datacollab.party import Party
from datacollab.share import Share
from datacollab_experiments.harness import Outcome, ResultStore, results_file
from datacollab_experiments.pays.tables import load_table
from datacollab_experiments.risks import audit_upper_end, reference_attacks


def world(Z, own, strangers=None, target=None, anchor=None, places=None):
    """An attacked share of an f that changes nothing."""
    rng = np.random.default_rng(1)
    anchor = rng.normal(size=(60, own.shape[1])) if anchor is None else anchor
    y = np.zeros(len(own), dtype=int) if target is None else target
    strangers = rng.normal(size=(40, own.shape[1])) if strangers is None else strangers
    labels = np.resize(y, len(anchor))
    share = Share(party="a", representation=Z, anchor_representation=anchor, target=y[: len(Z)], anchor_target=labels)
    return reference_attacks.AttackedShare(
        own=(own, y),
        anchor=(anchor, labels),
        public=(anchor, labels),
        strangers=(strangers, np.resize(y, len(strangers))),
        party=Party("a", None),
        share=share,
        places=np.arange(len(Z)) if places is None else places,
        random=RandomState(0),
    )


def test_rows_as_they_are_are_all_linked_and_all_members_found(rng):
    own = rng.normal(size=(30, 4))
    found = reference_attacks.strongest(world(own, own))
    assert found["linkage"][0] == 1.0
    assert found["membership AUC"][0] == 1.0


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5])
def test_members_of_a_mean_are_those_that_trying_all_finds(rng, size):
    people = rng.normal(size=(16, 3))
    planted = sorted(rng.choice(16, size, replace=False).tolist())
    mean = people[planted].mean(axis=0)
    fits = [s for s in combinations(range(16), size) if np.allclose(people[list(s)].mean(axis=0), mean, atol=1e-9)]
    assert [sorted(reference_attacks.solve(people, mean, size))] == [list(each) for each in fits] == [planted]
    assert reference_attacks.solve(people, mean + 0.01, size) == []


@pytest.mark.slow
def test_numbers_of_a_solved_group_say_whose_rows_they_are(rng):
    """The target is a column of the record, and each row of a mean has its own."""
    own, anchor = rng.normal(size=(20, 4)), rng.normal(size=(400, 4))
    means = np.repeat(own.reshape(4, 5, 4).mean(axis=1), 5, axis=0)
    attacked = world(means, own, target=own[:, 0].copy(), anchor=anchor)
    told = Share(
        party="a", representation=means, anchor_representation=anchor, target=own[:, 0], anchor_target=anchor[:, 0]
    )
    attacked = reference_attacks.AttackedShare(
        **{name: getattr(attacked, name) for name in ("own", "public", "strangers", "party", "places", "random")},
        anchor=(anchor, anchor[:, 0]),
        share=told,
    )
    assert reference_attacks.strongest(attacked)["linkage"][0] > 0.8


def test_the_table_counts_runs_in_which_both_figures_hold(tmp_path, capsys):
    command = ["--datasets", "mnist", "--seeds", "1", "--output", str(tmp_path), "--report-only"]
    tasks = audit_upper_end.tasks_of(audit_upper_end.parser().parse_args(command))
    assert [task.way for task in tasks] == list(audit_upper_end.WAYS["classification"])
    with ResultStore(results_file(tmp_path)) as store:
        for task, upper in zip(tasks, (0.6, 0.4), strict=True):
            (cell,) = task.cells
            scores = {
                name: value
                for figure in audit_upper_end.FIGURES
                for name, value in ((f"{figure}|upper|x", upper), (f"{figure}|reached|y", 0.5))
            }
            store.save(task.seed, [Outcome(cell=cell, scores=scores, seconds={"audit": 1.0})], {}, "")
    assert audit_upper_end.main(command) == 0
    printed = capsys.readouterr().out
    assert "| means of 5 | 1 | 0.50 | 0.40 | 0 |" in printed
    assert "| all | 2 | 0.50 | 0.50 | 1 |" in printed
    assert "1 of 2 runs" in printed
    assert printed.count("below: mnist, means of 5") == 2


@pytest.mark.nightly
def test_an_audit_is_run_against_them():
    row = audit_upper_end.run(load_table("diabetes"), "means of 5", 0)
    assert row.figures["membership AUC"].reached > 0.8
    assert all(held.holds for held in row.figures.values())
