import re
from dataclasses import replace
from pathlib import Path

import pytest
from tiny import TINY, tiny

from datacollab_experiments import readings
from datacollab_experiments.paper import (
    Attacks,
    Condition,
    Experiment,
    definition_text,
    experiment_names,
    load_experiment,
    make_tasks,
)

PAPERS = ("regression", "rq1", "rq2", "rq3", "rq4", "slice")
SHIPPED = ("regression", "rq1", "rq2", "rq3", "rq4", "rq4-risks", "rq4-risks-table", "slice")


def test_the_papers_experiments_and_their_extensions_are_there():
    assert experiment_names() == SHIPPED


@pytest.mark.parametrize("preset", ["smoke", "quick", "paper"])
@pytest.mark.parametrize("name", SHIPPED)
def test_every_definition_can_be_read(name, preset):
    experiment = load_experiment(name, preset)
    if (name, preset) == ("slice", "smoke"):
        assert experiment is None
        return
    assert (experiment.name, experiment.preset) == (name, preset)
    assert len(set(experiment.conditions)) == len(experiment.conditions) > 0
    assert experiment.title
    assert experiment.source


def test_the_paper_preset_is_as_large_as_the_paper():
    """Section "Experiments" and the appendix: numbers of trials, of parties, anchors, columns, and attacks."""
    found = {name: load_experiment(name, "paper") for name in PAPERS}
    n_seeds = {"rq1": 100, "rq2": 100, "rq3": 30, "rq4": 30, "regression": 20, "slice": 20}
    assert {name: len(experiment.seeds) for name, experiment in found.items()} == n_seeds
    for name in ("rq1", "rq2"):
        assert {c.n_parties for c in found[name].conditions} == {2, 4, 8, 16, 32, 64}
        assert {c.n_test / c.n_parties for c in found[name].conditions} == {100}
    sizes = {(c.n_anchors, c.n_sources) for c in found["rq3"].conditions}
    quantity, quality = {(n, 100) for n in (100, 200, 400, 800, 1600)}, {(1000, n) for n in (10, 30, 100, 300, 1000)}
    assert sizes == quantity | quality
    widths = {(c.obfuscator, c.n_components) for c in found["rq4"].conditions}
    assert widths == {(kind, width) for kind in ("pca", "kernel-pca", "umap") for width in (4, 16, 64)}
    assert {(c.n_anchors, c.n_sources) for c in found["rq4"].conditions} == {(1000, None)}
    assert found["rq4"].attacks == Attacks(
        names=("LR", "MLP", "PINV"), leaked_targets=(0, 1, 2), n_judge=5000, n_per_target=50, n_attacked=1000
    )
    for experiment in found.values():
        assert {c.hyperparameters for c in experiment.conditions} == {"paper", "recommended"}
        assert {(c.n_per_party, c.n_neighbors) for c in experiment.conditions} == {(100, 10)}


@pytest.mark.parametrize("name", [name for name in SHIPPED if name != "slice"])
def test_a_data_set_of_ones_own_in_a_copied_definition_is_run_or_the_preset_refused(tmp_path, name):
    text = re.sub(r"^dataset = .*$", 'dataset = ["mine:load"]', definition_text(name), count=1, flags=re.MULTILINE)
    path = tmp_path / f"{name}.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=r"as axes of \[presets.smoke\] has dataset"):
        load_experiment(path, "smoke")
    assert {condition.dataset for condition in load_experiment(path, "quick").conditions} == {"mine:load"}


def test_axes_are_multiplied_and_a_preset_goes_first(tmp_path):
    text = TINY.replace("seeds = 2", "seeds = [4, 7]\naxes = { n_components = [2] }\ncondition = { n_test = 50 }")
    experiment = tiny(tmp_path, text)
    assert experiment.seeds == (4, 7)
    assert len(experiment.conditions) == 2 * 1 * 2
    assert {(c.n_components, c.n_test, c.n_sources) for c in experiment.conditions} == {(2, 50, None)}
    assert experiment.attacks == Attacks(names=("LR", "PINV"), n_judge=200, n_per_target=4)


def test_series_are_not_multiplied_with_each_other(tmp_path):
    text = TINY.replace("[methods]", "[[series]]\nn_anchors = [50, 60]\n[[series]]\nn_test = [30]\n[methods]")
    sizes = [(c.n_anchors, c.n_test) for c in tiny(tmp_path, text).conditions if c.obfuscator == "pca"]
    assert set(sizes) == {(50, 60), (60, 60), (80, 30)}


def test_a_definition_without_the_preset_is_none(tmp_path):
    assert tiny(tmp_path, preset="quick") is None


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("title =", "tilte =", "Experiment 'tiny': unknown key 'tilte'; known keys: attacks, axes, condition"),
        ("seeds =", "seed =", "Experiment 'tiny', preset 'test': unknown key 'seed'; known keys: attacks, axes"),
        (
            "n_test =",
            "n_tests =",
            "Unknown setting of a condition 'n_tests'; known: concentration, dataset, defence, hyper",
        ),
        ("n_judge =", "judges =", r"Experiment 'tiny', preset 'test': .*judges"),
        ('"LR", "PINV"', '"LR", "SVM"', "Unknown attack 'SVM'; known attacks: LR, MLP, PINV"),
        ("LTI = {}", "LTX = {}", "unknown method 'LTX'; known methods: Local, .*LTX' = { class ="),
        ("LTI = {}", "Mine = { alpha = 1 }", "method 'Mine' has parameters but no class"),
        ('"kernel-pca"', '"tsne"', "Unknown obfuscator 'tsne'"),
        ("LTI = {}", 'LTI = { class = "a:B" }', "'LTI' is one of the library's methods; give yours another name"),
        ("[axes]", "[axes", "not a TOML file"),
        ("[axes]", '[axes]\ndataset = "my_module:load"', r"Axis 'dataset': expected a list, such as dataset = \['my_m"),
    ],
)
def test_a_mistake_is_an_error_that_names_it(tmp_path, old, new, message):
    assert old in TINY
    with pytest.raises(ValueError, match=message):
        tiny(tmp_path, TINY.replace(old, new))


def test_an_unknown_experiment_is_an_error_that_lists_the_known_ones():
    with pytest.raises(ValueError, match="There is no experiment 'rq9'; there are regression, rq1, rq2"):
        definition_text("rq9")


@pytest.mark.parametrize("name", SHIPPED)
def test_a_definition_survives_being_stored(name):
    experiment = load_experiment(name, "quick").with_methods({"Mine": {"class": "tiny:FirstColumns", "shift": 0.5}})
    assert Experiment.from_json(experiment.to_json()) == experiment


def test_what_is_stored_keeps_its_own_transform(tmp_path):
    """ "auto" is settled when a condition is made, and stays so."""
    condition = Condition(hyperparameters="paper", out_of_sample="row-wise")
    experiment = replace(tiny(tmp_path), conditions=(condition,))
    assert Experiment.from_json(experiment.to_json()).conditions == (condition,)


def test_the_comparison_of_searches_has_the_conditions_of_rq4_and_one_transform():
    """Of readings/selection.toml: only hyperparameters differ, so UMAP maps rows one by one under all of them."""
    path = Path(readings.__file__).with_name("selection.toml")
    experiment = load_experiment(path, "quick")
    rq4 = load_experiment("rq4", "quick").conditions
    assert set(experiment.conditions) == {replace(condition, out_of_sample="row-wise") for condition in rq4}
    assert len(experiment.conditions) == 2 * 18
    cells = {key: cell for task in make_tasks([experiment]) for key, cell in task.cells.items()}
    assert sum(cell.name == "KTICV+TSL+Center" for cell in cells.values()) == 18, (
        "a search is one computation under both presets"
    )
    assert load_experiment(path, "smoke").conditions
