"""One way from a definition to a report: tasks, a run that goes on where it was, a file, a page.

**Definition.** Work is a list of `Task`: a dataclass that can be pickled, with a seed and its cells.  A cell is all
that determines a result but the seed; `cell_id` gives the hash of its definition as data.  A task computes all its
cells together, because they share a draw of parties, or because they are one.  A `Study` names tasks, the
fingerprints of their data and the function that writes the report; experiments of the paper are defined by TOML files
instead (`datacollab_experiments.paper`).

**Resumable run.** `run_tasks` computes the cells that the file lacks, in parallel, with one BLAS thread a task, and
writes each task's outcomes when it ends, all or none.  An `Outcome` has scores by name (a name may have parts, as
"survival|whas500|C-index"), seconds by step, or an error: `attempt` turns an exception into one, except for faults
of the machine, which end the run.

**Store.** `ResultStore` is one SQLite file, with the versions and the commit that computed each result.

**Report.** `read_outcomes` gives tasks and their results, in the order of the tasks; a report is made from
these alone, by a function ``write(found, folder) -> path``.  `markdown` and `write_rows` write tables and CSV files.
A module that makes one table and nothing else has `write_table` for its program.
`run_study` is a whole command: it runs, reports, and copies a complete report to where it is published.

A study in full::

    @dataclass(frozen=True, kw_only=True)
    class Draw(Task):
        table: str

        @property
        def label(self):
            return f"{self.table}, seed {self.seed}"

        def measure(self):
            yield from (attempt(cell, partial(score, self.table, self.seed)) for cell in self.cells)

    tasks = [
        Draw(seed=seed, cells={cell_id({"protocol": 1, "table": table}): table}, table=table)
        for seed in range(5)
        for table in ("whas500", "gbsg2")
    ]
    study = Study(name="survival", tasks=tasks, write_report=write, fingerprints={"whas500": "..."})
    sys.exit(run_study(study, study_options(argparse.ArgumentParser(), Path("output")).parse_args()))
"""

from ._carried import arff_table, r_table, source_state, versions
from ._run import (
    ENVIRONMENT,
    Key,
    ModuleTask,
    Outcome,
    Progress,
    Result,
    ResultStore,
    Scored,
    Task,
    attempt,
    cell_id,
    module_tasks,
    read_outcomes,
    results_file,
    run_tasks,
    to_failure,
)
from ._study import Found, Study, markdown, open_table, run_study, study_options, write_rows, write_table

__all__ = [
    "ENVIRONMENT",
    "Found",
    "Key",
    "ModuleTask",
    "Outcome",
    "Progress",
    "Result",
    "ResultStore",
    "Scored",
    "Study",
    "Task",
    "arff_table",
    "attempt",
    "cell_id",
    "markdown",
    "module_tasks",
    "open_table",
    "r_table",
    "read_outcomes",
    "results_file",
    "run_study",
    "run_tasks",
    "source_state",
    "study_options",
    "to_failure",
    "versions",
    "write_rows",
    "write_table",
]
