"""The comparison of KTICV: what is computed, and what the table says of it."""

from datacollab_experiments.harness import Outcome, ResultStore, results_file
from datacollab_experiments.readings import selection

CHOSEN = {"KTICV": '{"alpha": 0.1}'}
VALUES = {"paper": 0.5, "recommended": 0.6, "KTICV": 0.625}


def save(folder, tasks, **better):
    with ResultStore(results_file(folder)) as store:
        for task in tasks:
            outcomes = [
                Outcome(
                    cell=cell,
                    scores={f"accuracy|{CHOSEN.get(name, '')}": VALUES[name] + better.get(name, 0)},
                    seconds={"fit": 1.0},
                )
                for cell, name in task.cells.items()
            ]
            store.save(task.seed, outcomes, {}, "")


def test_the_table_has_every_condition_and_what_was_chosen(tmp_path, capsys):
    command = ["--seeds", "2", "--output", str(tmp_path), "--report-only"]
    tasks = selection.tasks_of(selection.parser().parse_args(command))
    assert len(tasks) == 2 * len(selection.conditions(None)) == 36
    save(tmp_path, tasks)
    assert selection.main(command) == 0
    printed = capsys.readouterr().out
    assert printed.count("{alpha: 0.1}") == 18
    assert "KTICV - recommended: +0.0250 on the mean, +0.0250 at worst, at or above in 18 of 18 conditions" in printed
    save(tmp_path / "worse", tasks, KTICV=-0.05)
    assert selection.main([*command[:2], "--output", str(tmp_path / "worse"), "--report-only"]) == 1


def test_other_options_are_other_cells():
    def cells(*options):
        return {cell for task in selection.tasks_of(selection.parser().parse_args(options)) for cell in task.cells}

    plain = cells()
    assert plain < cells("--oracle")
    assert not plain & cells("--alphas", "0.1", "1")
    assert not plain & cells("--sources", "100")
