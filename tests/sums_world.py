"""A project of five parties and an analyst that shares sums, on disk."""

import copy
import shutil
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.special import expit

from datacollab.agreement import AnchorRecipe, Project, Sharing, Task, make_anchor, project_text, seal_anchor
from datacollab.bundle import KeyPair, PublicKey, key_with_proof, mask_card_in
from datacollab.steps.analyst import AnalystFolder
from datacollab.steps.party import PartyFolder, make_mask_key
from datacollab.sums import MaskKey, mask_card
from datacollab.table import Column

PARTIES = ("north", "south", "east", "west", "centre")
TASKS = {
    "classification": Task(kind="classification", target="ill", classes=("no", "yes")),
    "regression": Task(kind="regression", target="ill", unit="days", minimum=-100.0, maximum=100.0),
    "costs": Task(kind="regression", target="ill", unit="euros", minimum=0.0, maximum=400.0, scale="log"),
}
ROWS = 60


def rows_of(n_rows, seed, task="classification"):
    """Rows that fit the project."""
    random = np.random.default_rng(seed)
    table = pd.DataFrame(random.normal(50, 15, size=(n_rows, 2)).clip(0, 100), columns=["age", "pulse"])
    table["ward"] = random.choice(["day", "night"], size=n_rows)
    score = table["age"] - table["pulse"] + random.normal(0, 5, size=n_rows)
    kinds = {"classification": np.where(score > 0, "yes", "no"), "costs": np.exp(score / 20).clip(0, 400)}
    table["ill"] = kinds.get(task, score.clip(-100, 100))
    return table


def make_rows(seed, n=700):
    """Rows whose outcome depends on their columns, and on the party."""
    random = np.random.default_rng(seed)
    table = pd.DataFrame(random.normal(50, 15, size=(n, 2)).clip(0, 100), columns=["age", "pulse"])
    table["ward"] = random.choice(["day", "night"], n)
    eta = 0.4 * seed - 1.5 + 0.04 * (table["age"] - 50) + 0.6 * (table["ward"] == "night")
    table["ill"] = np.where(random.random(n) < expit(eta), "yes", "no")
    return table


def entities_of(parties):
    """One institution behind each key."""
    return {name: f"The {name} hospital" for name in parties} | {"analyst": "The institute"}


def cards_of(keys, parties):
    """Cards of fresh mask keys that nobody keeps."""
    return {name: mask_card(MaskKey.generate(), keys[name]) for name in parties}


def project_of(keys, parties, cards, kind="classification", sharing=None, **changes):
    """A project of these parties that shares sums; the first one owns it."""
    entries = {
        "name": "wards",
        "purpose": "Tests of sums.",
        "columns": (
            Column(name="age", kind="number", minimum=0.0, maximum=100.0),
            Column(name="pulse", kind="number", minimum=0.0, maximum=100.0),
            Column(name="ward", kind="category", categories=("day", "night")),
        ),
        "task": TASKS[kind],
        "anchor": AnchorRecipe(method="sample", n_rows=120, source="a register"),
        "max_components": 3,
        "owner": keys[parties[0]].public,
        "analyst": keys["analyst"].public,
        "parties": {name: keys[name].public for name in parties},
        "sharing": Sharing(**{"mask_keys": cards, "entities": entities_of(parties)} | (sharing or {})),
    }
    return Project(**(entries | changes))


@dataclass
class SumsWorld:
    """What everybody has, and where."""

    root: Path
    keys: dict
    project: Project
    task: str

    def copied(self, root):
        """Everything as it is, in another folder."""
        shutil.copytree(self.root, root, dirs_exist_ok=True)
        other = copy.copy(self)
        other.root = root
        return other

    def table(self, name):
        return self.root / f"{name}.csv"

    def folder(self, name):
        return PartyFolder(self.root / name)

    @property
    def analyst(self):
        return AnalystFolder(self.root / "analyst")

    def share(self, name, table=None, **options):
        """What a party sends."""
        options = {"approve": lambda summary: "me", "heard": self.heard(name)} | options
        return self.folder(name).share(self.table(name) if table is None else table, **options)

    def heard(self, name):
        """Fingerprints of two other institutions, as a party hears them by telephone."""
        parties, entity = self.project.parties, self.project.sharing.entity
        of_others = {entity(each): key.fingerprint for each, key in parties.items() if entity(each) != entity(name)}
        return list(of_others.values())[:2]

    def share_all(self, parties=None):
        return [self.share(name) for name in parties or self.project.parties]

    def write_project(self, project):
        """Sign a project and an anchor for it, and have all join."""
        self.project = project
        owner = self.keys[next(name for name, key in project.parties.items() if key == project.owner)]
        (self.root / "project.toml").write_text(project_text(project, owner))
        file = None
        if project.has_anchor:
            file = self.root / "anchor.dcanchor"
            anchor = make_anchor(project, rows_of(200, 1, self.task), where="public.csv", random_state=0)
            file.write_bytes(seal_anchor(anchor, project, owner))
        for name in project.parties:
            PartyFolder.join(self.root / name, self.root / "project.toml", file)

    def next_run(self, without=()):
        """The same agreement once more, with new mask keys; some parties may be left out."""
        parties = {name: key for name, key in self.project.parties.items() if name not in without}
        cards = {name: make_mask_key(self.root / name) for name in parties}
        changed = {"run": self.project.sharing.run + 1, "mask_keys": cards, "entities": entities_of(parties)}
        sharing, revision = replace(self.project.sharing, **changed), self.project.revision + 1
        self.write_project(replace(self.project, sharing=sharing, revision=revision, parties=parties))


def new_sums_world(root, task="classification", parties=PARTIES, sharing=None, task_of_project=None, **changes):
    """All parties have joined, and nobody has shared."""
    changes |= {} if task_of_project is None else {"task": task_of_project}
    keys = {name: KeyPair.generate() for name in (*parties, "analyst", "stranger")}
    for name, key in keys.items():
        (root / name).mkdir()
        key.save(root / name / "keys.json")
        (root / name / "public.key").write_text(key_with_proof(key))
    for seed, name in enumerate(parties):
        make_mask_key(root / name)
        rows_of(ROWS, 100 + seed, task).to_csv(root / f"{name}.csv", index=False)
    rows_of(400, 7, task).to_csv(root / "new.csv", index=False)
    rows_of(200, 1, task).to_csv(root / "public.csv", index=False)
    cards = {name: mask_card_in(root / name / "public.key") for name in parties}
    assert all(PublicKey.load(root / name / "public.key", proven=True) for name in parties)
    world = SumsWorld(root, keys, project_of(keys, parties, cards, task, sharing, **changes), task)
    world.write_project(world.project)
    AnalystFolder.init(root / "analyst", root / "project.toml")
    return world
