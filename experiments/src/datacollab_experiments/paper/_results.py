"""Results as rows of experiments."""

import csv
import gzip
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from datacollab._validation import FloatArray

from ..harness import Outcome, ResultStore, results_file
from ._condition import Condition
from ._definition import Experiment, cells


@dataclass(frozen=True, kw_only=True)
class Row:
    """The result of one method, or one attack, in one trial of an experiment.

    Attributes
    ----------
    experiment : str
        Name of the definition, such as "rq1".
    condition : Condition
        The fixed settings, the preset of hyperparameters included.
    name : str
        Name in the tables: "KTI+TSL", "Central", "PINV".
    cell : str
        Hash of all that determines the scores but the seed.  Rows of several experiments, or conditions, that share
        a cell are one computation.
    scores : mapping of str to float
        For a method "accuracy", or "rmse" in the target's own units.  For an attack "reconstruction_accuracy",
        "most_common_share" (of the reconstructions, how many the judge puts into its most frequent class),
        "mean_image_accuracy" (of a reconstruction that always is the mean leaked row) and "original_accuracy" (of the
        originals themselves); for the attack "audit" those of `score_risks`.  Empty where the row failed.
    seconds : mapping of str to float
        Wall times; for a method of integration "construct" (all g_k) and "represent" (the test rows of all parties),
        "train" and "predict" of h.  Empty where the row failed.
    error : str or None
        Why the row failed.  Failures are counted, never averaged.
    versions : mapping of str to str
        Of Python and of the libraries that compute.
    commit : str
        Commit of the source, where known; with "+" where it had been changed since.
    """

    experiment: str
    condition: Condition
    kind: str
    name: str
    seed: int
    cell: str
    scores: Mapping[str, float] = field(default_factory=dict)
    seconds: Mapping[str, float] = field(default_factory=dict)
    error: str | None = None
    versions: Mapping[str, str] = field(default_factory=dict)
    commit: str = ""


# Begins the names of those columns of a file of rows that hold times.
SECONDS = "seconds "


class ExperimentResults:
    """Computed rows, experiment by experiment.

    Attributes
    ----------
    rows : dict of str to tuple of Row
        Rows by the name of the experiment, in the order of its definition.
    missing : int
        Rows that were asked for and are not there yet.
    """

    def __init__(self, store: ResultStore) -> None:
        self.experiments = tuple(Experiment.from_json(text) for text in store.definitions())
        self.missing = 0
        self.rows = {}
        self._images: dict[tuple[str, int], FloatArray] = {}
        found = store.results()
        for experiment in self.experiments:
            rows = []
            for cell in cells(experiment):
                for seed in experiment.seeds:
                    result = found.get((cell.id, seed))
                    if result is None:
                        self.missing += 1
                        continue
                    rows.append(
                        Row(
                            experiment=experiment.name,
                            condition=cell.condition,
                            kind=cell.kind,
                            name=cell.name,
                            seed=seed,
                            cell=cell.id,
                            scores=result.scores,
                            seconds=result.seconds,
                            error=result.error,
                            versions=result.versions,
                            commit=result.source,
                        )
                    )
            self.rows[experiment.name] = tuple(rows)
        self._read_images(store)

    def images(self, row: Row) -> FloatArray | None:
        """Originals and reconstructions of an attack's row, shape (2, n_targets, n_features), where they were kept."""
        return self._images.get((row.cell, row.seed))

    def _read_images(self, store: ResultStore) -> None:
        for rows in self.rows.values():
            for row in rows:
                if row.kind == "attack" and row.seed == 0 and row.error is None:
                    images = store.images(row.cell, row.seed)
                    if images is not None:
                        self._images[row.cell, row.seed] = images


def read_results(path: Path) -> ExperimentResults:
    """Read results.

    Parameters
    ----------
    path : Path
        The file, or the directory that it is in.

    Raises
    ------
    ValueError
        When there are none.
    """
    file = results_file(path)
    if not file.is_file():
        raise ValueError(f"There are no results in {path}: run `datacollab experiment run` with that --output first.")
    with ResultStore(file) as store:
        return ExperimentResults(store)


def take_rows(path: Path, results: Path) -> None:
    """Add the rows of an earlier run to results; rows that are there stay as they are.

    Parameters
    ----------
    path : Path
        ``rows.csv`` of a report, or the same packed by gzip.  Failed rows are passed over.

    Raises
    ------
    ValueError
        When the file has no column "cell" or "seed".
    """
    with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as file:
        reader = csv.DictReader(file)
        columns = list(reader.fieldnames or ())
        if not {"cell", "seed", "error"} <= set(columns):
            raise ValueError(f"{path} holds no rows of experiments: expected the columns cell, seed and error.")
        # Measures stand between the columns seed and error.
        measures = columns[columns.index("seed") + 1 : columns.index("error")]
        outcomes: dict[int, list[Outcome]] = {}
        for line in reader:
            # Failed rows are computed again.
            if line["error"]:
                continue
            found = {name: float(line[name]) for name in measures if line[name]}
            seconds = {name.removeprefix(SECONDS): found.pop(name) for name in measures
                       if name.startswith(SECONDS) and name in found}  # fmt: skip
            outcomes.setdefault(int(line["seed"]), []).append(Outcome(cell=line["cell"], scores=found, seconds=seconds))
    with ResultStore(results) as store:
        for seed, part in outcomes.items():
            store.save(seed, part, {}, "")
