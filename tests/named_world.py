"""Projects of two parties with times to an event, effects or no targets: tables, folders and files."""

import numpy as np
import pandas as pd

from datacollab.agreement import AnchorRecipe, Project, Task, make_anchor, project_text, seal_anchor
from datacollab.bundle import KeyPair
from datacollab.steps.analyst import AnalystFolder
from datacollab.steps.party import PartyFolder
from datacollab.table import Column
from party_world import allow_without_audit

NUMBERS = ("age", "pulse", "weight")
EVENT = {"event": "died", "seen": ("yes",), "not_seen": ("no",)}
TIME = {"time": "days", "unit": "days", "maximum": 1000.0, "rounding": 30.0}
ARMS = {"treatment": "drug", "treated": (1,), "untreated": (0,)}
TASKS = {
    "survival": Task(kind="survival", **EVENT, **TIME),
    "effect": Task(kind="effect", **ARMS, outcome="pressure", unit="mmHg", minimum=0.0, maximum=300.0),
    "survival-effect": Task(kind="effect", **ARMS, **EVENT, **TIME),
    "none": Task(kind="none"),
}


def table_of(n_rows, seed=0):
    """Rows with all kinds of targets; the older die sooner, and the drug lowers the pressure by 10."""
    random = np.random.default_rng(seed)
    table = pd.DataFrame(random.normal(50, 10, size=(n_rows, 3)).clip(0, 100), columns=NUMBERS)
    dies = random.exponential(300 * np.exp(-(table["age"] - 50) / 10))
    ends = random.uniform(100, 1000, n_rows)
    table["died"] = np.where(dies <= ends, "yes", "no")
    table["days"] = np.minimum(dies, ends).clip(0.5)
    table["drug"] = (random.random(n_rows) < 1 / (1 + np.exp(-(table["pulse"] - 50) / 10))).astype(int)
    table["pressure"] = 120 + (table["pulse"] - 50) - 10 * table["drug"] + random.normal(0, 2, n_rows)
    table["ward"] = random.choice(["north", "south"], n_rows)
    return table


def project_of(kind, keys, **changes):
    columns = tuple(Column(name=name, kind="number", minimum=0.0, maximum=100.0) for name in NUMBERS)
    entries = {
        "name": "wards",
        "purpose": "Tests.",
        "columns": columns,
        "task": TASKS[kind],
        "anchor": AnchorRecipe(method="uniform", n_rows=80, source="none"),
        "max_components": 3,
        "owner": keys["a"].public,
        "analyst": keys["analyst"].public,
        "parties": {name: keys[name].public for name in ("a", "b")},
    }
    return Project(**({"seal_shares": False} | entries | changes))


class NamedWorld:
    """What everybody has, and where."""

    def __init__(self, root, kind, *, n_rows=120, **changes):
        self.root = root
        self.keys = {name: KeyPair.generate() for name in ("a", "b", "analyst")}
        self.project = project_of(kind, self.keys, **changes)
        self.tables = {name: table_of(n_rows, seed) for seed, name in enumerate(("a", "b"), start=1)}
        public = table_of(100, seed=9)
        self.anchor = make_anchor(self.project, public, where="public.csv", random_state=0)
        (root / "project.toml").write_text(project_text(self.project, self.keys["a"]))
        (root / "anchor.dcanchor").write_bytes(seal_anchor(self.anchor, self.project, self.keys["a"]))
        for name, key in self.keys.items():
            (root / name).mkdir()
            key.save(root / name / "keys.json")

    def joined(self, name="a"):
        folder = PartyFolder.join(self.root / name, self.root / "project.toml", self.root / "anchor.dcanchor")
        allow_without_audit(folder.path / "policy.toml")
        return folder

    def shared(self, name="a", **options):
        """A folder that has shared, undefended unless told otherwise."""
        folder = self.joined(name)
        given = {"approve": lambda summary: "me", "audit": False, "undefended": True, "n_components": 3} | options
        if not options.keys() & {"preset", "group_size", "noise", "epsilon", "default"}:
            given["preset"] = "none"
        given.pop("default", None)
        self.tables[name].to_csv(self.root / f"{name}.csv", index=False)
        folder.share(self.root / f"{name}.csv", **given)
        return folder

    def analyst(self, *folders):
        opened = AnalystFolder.init(self.root / "analyst", self.root / "project.toml")
        opened.add(folder.path / "outbox" / f"{folder.name}.dcshare" for folder in folders)
        return opened
