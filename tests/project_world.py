"""A project and a table that fits it, as fixtures of tests of tables and of agreements."""

import numpy as np
import pandas as pd
import pytest

from datacollab.agreement import AnchorRecipe, Project, Task, project_text
from datacollab.bundle import KeyPair
from datacollab.table import Column


@pytest.fixture(scope="session")
def keys():
    return {name: KeyPair.generate() for name in ("a", "b", "analyst", "stranger")}


@pytest.fixture(scope="session")
def make_project(keys):
    """A project with one column of each kind; its owner is party a."""

    def make(**changes):
        entries = {
            "name": "heart",
            "purpose": "Who is at risk?\nFor the ward round.",
            "columns": (
                Column(name="age", kind="number", unit="years", minimum=0, maximum=120),
                Column(name="ward", kind="category", categories=("north", "south", "1")),
                Column(
                    name="dose",
                    kind="number",
                    unit="mg",
                    minimum=-1,
                    maximum=9.5,
                    missing="fill",
                    fill=2,
                    flag_missing=True,
                ),
                Column(name="sex", kind="category", categories=("f", "m"), missing="fill", fill="m"),
            ),
            "task": Task(kind="classification", target="ill", classes=("no", "yes", "unclear")),
            "anchor": AnchorRecipe(method="smote", n_rows=40, source="a public register"),
            "max_components": 3,
            "owner": keys["a"].public,
            "analyst": keys["analyst"].public,
            "parties": {name: keys[name].public for name in ("a", "b")},
        }
        return Project(**(entries | changes))

    return make


@pytest.fixture(scope="session")
def project(make_project):
    return make_project()


@pytest.fixture(scope="session")
def regression(make_project):
    return make_project(task=Task(kind="regression", target="stay", unit="days", minimum=0, maximum=400))


@pytest.fixture(scope="session")
def text(project, keys):
    return project_text(project, keys["a"])


@pytest.fixture
def table(rng):
    """Sixty rows that fit the project."""
    n_rows = 60
    return pd.DataFrame(
        {
            "name": [f"Huber-{row}" for row in range(n_rows)],
            "age": rng.integers(18, 97, n_rows),
            "ward": rng.choice(["north", "south", "1"], n_rows),
            "dose": np.where(rng.random(n_rows) < 0.2, np.nan, rng.normal(4, 1, n_rows)),
            "sex": np.where(np.arange(n_rows) % 25 == 3, None, rng.choice(["f", "m"], n_rows)),
            "ill": rng.choice(["no", "yes"], n_rows),
            "stay": rng.gamma(2, 10, n_rows),
        }
    )
