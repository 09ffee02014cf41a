from collections import Counter
from dataclasses import replace
from itertools import pairwise

import pytest
from tiny import tiny

from datacollab_experiments.paper import Attacks, Condition, load_experiment, make_tasks
from datacollab_experiments.paper._plan import Cell, cells, condition_of_draw

PAPER = Condition(hyperparameters="paper")
RECOMMENDED = Condition(hyperparameters="recommended")


def cell(name, condition, kind="method", own=None, attacks=None):
    return Cell(condition=condition, kind=kind, name=name, own=own or {}, attacks=attacks).id


def test_a_hash_stays_what_it_was():
    """If this fails, older results are no longer found: raise PROTOCOL if they would differ, and pin anew."""
    assert cell("KTI+TSL", PAPER) == "aeab525f067ad593"


@pytest.mark.parametrize(
    "change",
    [
        {"dataset": "digits"}, {"n_parties": 9}, {"n_per_party": 99}, {"n_test": 999}, {"n_anchors": 999},
        {"n_sources": 99}, {"n_sources": None}, {"obfuscator": "pca"}, {"n_components": 9}, {"n_neighbors": 9},
        {"out_of_sample": "row-wise"}, {"hyperparameters": "recommended"}, {"defence": "groups"},
        {"split": "stratified"}, {"split": "label-skew"}, {"split": "label-skew", "concentration": 2.0},
    ],
)  # fmt: skip
def test_whatever_changes_a_score_changes_the_hash(change):
    assert cell("KTI+TSL", replace(PAPER, **change)) != cell("KTI+TSL", PAPER)


def test_methods_and_attacks_are_told_apart():
    attacks = Attacks()
    hashes = [cell(name, PAPER) for name in ("Local", "Local+Public", "Central", "MPP", "LTI", "KTI", "KTI+Center")]
    hashes += [cell(name, PAPER, "attack", attacks=attacks) for name in ("LR", "MLP")]
    hashes += [cell("LR", PAPER, "attack", attacks=replace(attacks, n_judge=9))]
    hashes += [cell("Mine", PAPER, own={"class": "a:B", **more}) for more in ({}, {"c": 1}, {"c": 2})]
    assert len(set(hashes)) == len(hashes)


def test_equal_computations_are_one():
    pca = replace(PAPER, obfuscator="pca")
    assert cell("Local", PAPER) == cell("Local", replace(pca, n_components=3, n_anchors=500, n_neighbors=3))
    assert cell("Local+Public", PAPER) == cell("Local+Public", replace(pca, n_anchors=500))
    assert cell("Local+Public", PAPER) != cell("Local+Public", replace(PAPER, n_sources=50))
    assert cell("LTI", pca) == cell("LTI", replace(pca, hyperparameters="recommended", out_of_sample="row-wise"))
    assert cell("LTI", PAPER) != cell("LTI", RECOMMENDED), "another transform of UMAP"
    assert cell("LTI", PAPER) == cell("LTI", replace(PAPER, hyperparameters="recommended"))
    assert cell("Mine", PAPER, own={"class": "a:B"}) == cell("Yours", PAPER, own={"class": "a:B"})
    attacks = Attacks(names=("LR",))
    assert cell("LR", PAPER, "attack", attacks=attacks) == cell("LR", PAPER, "attack", attacks=Attacks())


def test_a_split_concerns_everybody_and_its_concentration_only_a_skewed_one():
    skewed = replace(PAPER, split="label-skew")
    for name in ("Local", "Local+Public", "Central", "KTI"):
        assert len({cell(name, PAPER), cell(name, skewed), cell(name, replace(skewed, concentration=0.5))}) == 3
        assert cell(name, replace(PAPER, concentration=0.5)) == cell(name, PAPER)
    stratified = replace(PAPER, split="stratified")
    assert cell("KTI", stratified) == cell("KTI", replace(stratified, concentration=0.5))
    again = condition_of_draw(replace(PAPER, concentration=0.5))
    assert again == condition_of_draw(PAPER)
    assert condition_of_draw(replace(skewed, concentration=0.5)) != condition_of_draw(skewed)


def test_the_width_of_kernel_pca_concerns_who_uses_it():
    kernel = replace(PAPER, obfuscator="kernel-pca")
    wide = replace(kernel, kernel_width="median")
    assert cell("LTI", wide) != cell("LTI", kernel)
    assert condition_of_draw(wide) != condition_of_draw(kernel)
    assert cell("Central", wide) == cell("Central", kernel)
    pca = replace(PAPER, obfuscator="pca")
    assert cell("LTI", replace(pca, kernel_width="median")) == cell("LTI", pca)
    assert condition_of_draw(replace(pca, kernel_width="median")) == condition_of_draw(pca)


def test_who_is_attacked_is_part_of_the_hash():
    attacks = Attacks()
    assert cell("LR", PAPER, "attack", attacks=replace(attacks, n_attacked=1000)) != cell(
        "LR", PAPER, "attack", attacks=attacks
    )


def test_a_defence_concerns_whoever_shares_or_uses_the_anchor():
    grouped = replace(PAPER, defence="groups")
    for name in ("Local", "Central"):
        assert cell(name, grouped) == cell(name, PAPER)
    # The anchor's rows are drawn from those that the parties do not fit on.
    assert cell("Local+Public", grouped) != cell("Local+Public", PAPER)
    attacks = Attacks()
    assert cell("LR", grouped, "attack", attacks=attacks) != cell("LR", PAPER, "attack", attacks=attacks)


def test_the_audit_has_no_judge_and_no_leaked_targets():
    first = cell("audit", PAPER, "attack", attacks=Attacks(names=("LR", "audit")))
    other = Attacks(names=("audit",), n_judge=9, leaked_targets=(7,), n_per_target=1)
    assert cell("audit", PAPER, "attack", attacks=other) == first
    assert cell("audit", replace(PAPER, defence="groups"), "attack", attacks=other) != first
    assert cell("LR", PAPER, "attack", attacks=other) != cell("LR", PAPER, "attack", attacks=Attacks())


def test_rq1_and_rq2_share_trials_and_rows():
    first, second = load_experiment("rq1", "quick"), load_experiment("rq2", "quick")
    together, alone = make_tasks([first, second]), make_tasks([first])
    assert [task.condition for task in together] == [task.condition for task in alone]
    n_kti = sum(cell.name == "KTI" for task in together for cell in task.cells.values())
    assert n_kti == len(together) == 2 * 4 * 2 * 5


def test_tasks_hold_every_row_once_and_on_its_own_trial():
    experiments = [load_experiment(name, "quick") for name in ("rq1", "rq2", "rq3", "rq4")]
    wanted = {(cell.id, seed) for e in experiments for cell in cells(e) for seed in e.seeds}
    tasks = make_tasks(experiments)
    planned = Counter((hash_, task.seed) for task in tasks for hash_ in task.cells)
    assert set(planned) == wanted
    assert set(planned.values()) == {1}
    for task in tasks:
        for inner in task.cells.values():
            if inner.name in ("Local", "Local+Public", "Central"):
                continue
            for setting in ("dataset", "n_parties", "n_anchors", "n_sources", "obfuscator", "n_components"):
                assert getattr(inner.condition, setting) == getattr(task.condition, setting)
            if inner.condition.obfuscator == "umap":
                assert inner.condition.out_of_sample == task.condition.out_of_sample
    assert [task.place for task in tasks] == sorted(task.place for task in tasks)


def test_what_is_done_is_not_planned_again(tmp_path):
    experiment = tiny(tmp_path)
    done = {(inner.id, 0) for inner in cells(experiment)}
    left = [task.without(done) for task in make_tasks([experiment])]
    assert {task.seed for task in left if task.cells} == {1}
    done |= {(inner.id, 1) for inner in cells(experiment)}
    assert not any(task.without(done).cells for task in make_tasks([experiment]))


def test_ten_seeds_of_everything_come_first_and_cheap_parties_before_others():
    experiments = [load_experiment(name, "printed") for name in ("rq1", "rq2", "rq3", "rq4")]
    tasks = make_tasks(experiments)
    assert [task.seed // 10 for task in tasks] == sorted(task.seed // 10 for task in tasks)
    first = [task.condition for task in tasks if task.seed < 10]
    place = {(c.obfuscator, c.n_parties): number for number, c in enumerate(first)}
    assert max(place["pca", 10], place["kernel-pca", 10]) < place["umap", 2] < place["umap", 4] < place["umap", 10]
    assert place["umap", 10] < place["umap", 16] < place["umap", 32] < place["umap", 64] == len(first) - 1
    # What fits its parties once for several anchors stands together.
    shared = [
        (task.seed, replace(task.condition, n_anchors=1000, n_sources=100))
        for task in tasks
        if (task.condition.dataset, task.condition.n_components) == ("mnist", 10) and task.condition.n_parties == 10
    ]
    assert len(set(shared)) == 30
    assert sum(one != other for one, other in pairwise(shared)) == 29
