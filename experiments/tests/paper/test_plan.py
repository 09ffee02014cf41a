"""Which computations are one, and in which order they are run."""

from collections import Counter
from dataclasses import replace

import pytest
from tiny import tiny

from datacollab_experiments.paper import Attacks, Condition, Experiment, load_experiment, make_tasks

PAPER = Condition(hyperparameters="paper")
RECOMMENDED = Condition(hyperparameters="recommended")
ATTACKS = Attacks()


def task_of(condition, **options):
    experiment = Experiment(name="e", preset="p", title="t", conditions=(condition,), seeds=(0,), **options)
    (task,) = make_tasks([experiment])
    return task


def cell(name, condition, own=None):
    (found,) = task_of(condition, methods={name: own or {}}).cells
    return found


def attack_cell(name, condition=PAPER, attacks=ATTACKS):
    (found,) = [key for key, each in task_of(condition, attacks=attacks).cells.items() if each.name == name]
    return found


def draw_of(condition):
    """The condition without settings that do not change a trial."""
    return task_of(condition, methods={"LTI": {}}).condition


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
    hashes = [cell(name, PAPER) for name in ("Local", "Local+Public", "Central", "MPP", "LTI", "KTI", "KTI+Center")]
    hashes += [attack_cell(name) for name in ("LR", "MLP")]
    hashes += [attack_cell("LR", attacks=replace(ATTACKS, **more)) for more in ({"n_judge": 9}, {"n_attacked": 1000})]
    hashes += [cell("Mine", PAPER, {"class": "a:B", **more}) for more in ({}, {"c": 1}, {"c": 2})]
    assert len(set(hashes)) == len(hashes)


def test_equal_computations_are_one():
    pca = replace(PAPER, obfuscator="pca")
    assert cell("Local", PAPER) == cell("Local", replace(pca, n_components=3, n_anchors=500, n_neighbors=3))
    assert cell("Local+Public", PAPER) == cell("Local+Public", replace(pca, n_anchors=500))
    assert cell("Local+Public", PAPER) != cell("Local+Public", replace(PAPER, n_sources=50))
    assert cell("LTI", pca) == cell("LTI", replace(pca, hyperparameters="recommended", out_of_sample="row-wise"))
    assert cell("LTI", PAPER) != cell("LTI", RECOMMENDED), "another transform of UMAP"
    assert cell("LTI", PAPER) == cell("LTI", replace(PAPER, hyperparameters="recommended"))
    assert cell("Mine", PAPER, {"class": "a:B"}) == cell("Yours", PAPER, {"class": "a:B"})
    assert attack_cell("LR", attacks=Attacks(names=("LR",))) == attack_cell("LR")


def test_settings_concern_only_who_uses_them():
    """The concentration, a skewed split; the width of kernel PCA, kernel PCA; a defence, who shares or has anchors."""
    skewed, kernel = replace(PAPER, split="label-skew"), replace(PAPER, obfuscator="kernel-pca")
    for name in ("Local", "Local+Public", "Central", "KTI"):
        assert len({cell(name, PAPER), cell(name, skewed), cell(name, replace(skewed, concentration=0.5))}) == 3
        assert cell(name, replace(PAPER, concentration=0.5)) == cell(name, PAPER)
    assert draw_of(replace(PAPER, concentration=0.5)) == draw_of(PAPER)
    assert draw_of(replace(skewed, concentration=0.5)) != draw_of(skewed)

    wide, pca = replace(kernel, kernel_width="median"), replace(PAPER, obfuscator="pca")
    assert cell("LTI", wide) != cell("LTI", kernel)
    assert cell("Central", wide) == cell("Central", kernel)
    assert draw_of(wide) != draw_of(kernel)
    assert draw_of(replace(pca, kernel_width="median")) == draw_of(pca)

    grouped = replace(PAPER, defence="groups")
    for name in ("Local", "Central"):
        assert cell(name, grouped) == cell(name, PAPER)
    # The anchor's rows are drawn from those that the parties do not fit on.
    assert cell("Local+Public", grouped) != cell("Local+Public", PAPER)
    assert attack_cell("LR", grouped) != attack_cell("LR")


def test_the_audit_has_no_judge_and_no_leaked_targets():
    both, other = Attacks(names=("LR", "audit")), Attacks(names=("audit",), n_judge=9, leaked_targets=(7,))
    assert attack_cell("audit", attacks=other) == attack_cell("audit", attacks=both)
    assert attack_cell("audit", replace(PAPER, defence="groups"), other) != attack_cell("audit", attacks=both)


def test_tasks_hold_every_row_once_and_on_its_own_trial():
    experiments = [load_experiment(name, "quick") for name in ("rq1", "rq2", "rq3", "rq4")]
    tasks = make_tasks(experiments)
    planned = Counter((key, task.seed) for task in tasks for key in task.cells)
    assert set(planned) == {
        (key, task.seed) for each in experiments for task in make_tasks([each]) for key in task.cells
    }
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
    tasks = make_tasks([tiny(tmp_path)])
    done = {(key, 0) for task in tasks for key in task.cells if task.seed == 0}
    assert {task.seed for task in (each.without(done) for each in tasks) if task.cells} == {1}
