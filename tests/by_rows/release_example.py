"""A project of two parties over digits or diabetes, without files; and one party's table."""

import numpy as np
from sklearn.datasets import load_diabetes, load_digits

from datacollab.agreement import Anchor, AnchorRecipe, Project, Task
from datacollab.bundle import KeyPair
from datacollab.table import Column, EncodedTable

KEYS = {name: KeyPair.generate().public for name in ("owner", "analyst", "north", "south")}
N_ANCHORS = 200


def project_of(task, n_features, **changes):
    given = {
        "name": "example",
        "purpose": "Tests.",
        "columns": tuple(Column(name=f"x{i}", kind="number", minimum=-1.0, maximum=1.0) for i in range(n_features)),
        "task": task,
        "anchor": AnchorRecipe(method="sample", n_rows=N_ANCHORS, source="public rows"),
        "max_components": 10,
        "owner": KEYS["owner"],
        "analyst": KEYS["analyst"],
        "parties": {"north": KEYS["north"], "south": KEYS["south"]},
    }
    return Project(**given | changes)


def digits(n_rows, *, classes=10, **changes):
    """Project, table and anchor of so many rows of the first classes."""
    X, y = load_digits(return_X_y=True)
    task = Task(kind="classification", target="digit", classes=tuple(range(classes)))
    return _parts(project_of(task, 64, **changes), X[y < classes] / 16, y[y < classes], n_rows)


def diabetes(n_rows, **changes):
    """The same for a regression."""
    X, y = load_diabetes(return_X_y=True)
    return _parts(
        project_of(Task(kind="regression", target="progression", minimum=0.0, maximum=400.0), 10, **changes),
        X,
        y,
        n_rows,
    )


def said_by(options):
    """What options of a command mean in Python."""
    words, said = iter(options.split()), {}
    flags = {"standardize": True, "no_standardize": False, "fit_on_anchor": True}
    kinds = {"components": int, "group_size": int, "epsilon": float, "noise": float}
    for word in words:
        name = word.removeprefix("--").replace("-", "_")
        if name in flags:
            said[name.removeprefix("no_")] = flags[name]
        else:
            said["n_components" if name == "components" else name] = kinds.get(name, str)(next(words))
    return said


def rows_of(encoded, index):
    """Some rows of an encoded table, all with targets."""
    X = encoded.X[index]
    return EncodedTable(X=X, target=encoded.target[index], labelled=np.ones(len(X), dtype=bool), n_rows=len(X))


def _parts(project, X, y, n_rows):
    order = np.random.default_rng(0).permutation(len(y))
    known, own = order[:N_ANCHORS], order[N_ANCHORS : N_ANCHORS + n_rows]
    return (
        project,
        EncodedTable(X=X[own], target=y[own], labelled=np.ones(n_rows, dtype=bool), n_rows=n_rows),
        Anchor(rows=X[known], target=y[known]),
    )
