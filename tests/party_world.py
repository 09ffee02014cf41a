"""A project of two parties and an analyst, on disk."""

import copy
import shutil
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

import datacollab as dc
from datacollab.agreement import Anchor, AnchorRecipe, Project, Task, project_text, seal_anchor
from datacollab.bundle import KeyPair, pack, seal, unpack, unseal
from datacollab.errors import ExchangeError
from datacollab.model import model_contents
from datacollab.share import share_from
from datacollab.steps.party import PartyFolder
from datacollab.table import Column

NAMES = ["age", "pulse", "weight", "ward"]


TASKS = {
    "classification": Task(kind="classification", target="ill", classes=("no", "yes")),
    "regression": Task(kind="regression", target="ill", unit="days", minimum=-200.0, maximum=200.0),
}


def refused(code, match=None):
    """Context of a refusal with this code, and with these words."""
    return pytest.raises(ExchangeError, match=match, check=lambda error: error.code == code)


def refusal(code, call, *args, **kwargs):
    """The words of a call's refusal with this code."""
    with refused(code) as found:
        call(*args, **kwargs)
    return str(found.value)


def events(folder):
    """What the log of a folder tells of."""
    return [entry["event"] for entry in folder.log.entries()]


def contents(folder):
    """All files of a folder but the lock and the log."""
    files = (path for path in folder.path.rglob("*") if path.is_file() and path.name not in (".lock", "log.jsonl"))
    return {str(path.relative_to(folder.path)): path.read_bytes() for path in files}


def made_up_table(n_rows, seed=0, task="classification"):
    """Rows that fit the project."""
    random = np.random.default_rng(seed)
    table = pd.DataFrame(random.normal(50, 10, size=(n_rows, 3)).clip(0, 100), columns=NAMES[:3])
    table["ward"] = random.choice(["north", "south"], size=n_rows)
    score = table["age"] - table["pulse"] + random.normal(0, 3, size=n_rows)
    table["ill"] = np.where(score > 0, "yes", "no") if task == "classification" else score
    table.insert(0, "id", [f"patient-{number:05d}" for number in range(n_rows)])
    return table


def allow_without_audit(policy):
    """Have a policy as `join` writes it only warn of risks, as attacks take their time."""
    policy.write_text(policy.read_text().replace('audit = "required"', 'audit = "warn"'))


@dataclass
class World:
    """What everybody has, and where."""

    root: Path
    project: Project
    keys: dict
    anchor: Anchor
    task: str
    table: pd.DataFrame = field(init=False)

    def __post_init__(self):
        self.table = made_up_table(80, task=self.task)
        self.write_project(self.project)
        for name, key in self.keys.items():
            (self.root / name).mkdir()
            key.save(self.root / name / "keys.json")
        for name in ("a", "b"):
            made_up_table(80, seed=ord(name), task=self.task).to_csv(self.root / f"{name}.csv", index=False)
        self.table.to_csv(self.root / "new.csv", index=False)

    def copied(self, root):
        """Everything as it is, in another folder."""
        shutil.copytree(self.root, root, dirs_exist_ok=True)
        other = copy.copy(self)
        other.root = root
        return other

    def folder(self, name="a"):
        return PartyFolder(self.root / name)

    def write_project(self, project):
        (self.root / "project.toml").write_text(project_text(project, self.keys["a"]))
        (self.root / "anchor.dcanchor").write_bytes(seal_anchor(self.anchor, project, self.keys["a"]))

    def join(self, name="a", **options):
        files = self.root / "project.toml", self.root / "anchor.dcanchor"
        folder = PartyFolder.join(self.root / name, *files, **options)
        allow_without_audit(folder.path / "policy.toml")
        return folder

    def shared(self, name="a", **options):
        folder = self.join(name)
        self.share(folder, **options)
        return folder

    def share(self, folder, table=None, **options):
        options = {"approve": lambda summary: "me", "audit": False, "n_components": 3, "undefended": True} | options
        if not options.keys() & {"preset", "group_size", "noise", "epsilon"}:
            options["preset"] = "none"
        return folder.share(self.root / f"{folder.name}.csv" if table is None else table, **options)

    def open_share(self, folder):
        """A share as the analyst reads it, and its bundle."""
        bundle = unpack(folder.path / "outbox" / f"{folder.name}.dcshare", signed_by=self.keys[folder.name].public)
        if "sealed.bin" in bundle.members:
            purpose = f"share of {folder.name} in {self.project.digest}"
            inner = unseal(bundle.members["sealed.bin"], self.keys["analyst"], purpose=purpose)
            return share_from(unpack(inner)), bundle
        return share_from(bundle), bundle

    def model_file(
        self,
        *folders,
        estimator=None,
        signer="analyst",
        party="a",
        sealed_to=None,
        change=None,
        integrator=None,
        **facts,
    ):
        """What the analyst would send to the first party."""
        opened = [self.open_share(folder) for folder in folders]
        if estimator is None:
            estimator = LogisticRegression() if self.task == "classification" else LinearRegression()
        model = dc.Analyst(integrator or dc.LTI(3), estimator).fit([share for share, _ in opened]).party_model(party)
        model = model if change is None else change(model)
        inner, members = model_contents(model)
        told = {name: inner[name] for name in ("task", "n_components", "estimator", "created", "versions")}
        told |= {"party": party, "project_digest": self.project.digest, "share_digest": opened[0][1].digest} | facts
        recipient, purpose = self.keys[sealed_to or party], f"model of {party} in {self.project.digest}"
        sealed = seal(pack("datacollab.model", inner, members), [recipient.public], purpose=purpose)
        path = self.root / f"{party}.dcmodel"
        path.write_bytes(pack("datacollab.model", told, {"sealed.bin": sealed}, key=self.keys.get(signer)))
        return path

    def unsealed(self, path, party="a"):
        """What only the party can read of its model."""
        purpose = f"model of {party} in {self.project.digest}"
        return unseal(unpack(path).members["sealed.bin"], self.keys[party], purpose=purpose)

    def installed(self, **options):
        """The first party, ready to predict."""
        a, b = self.shared("a", **options), self.shared("b", **options)
        a.install(self.model_file(a, b))
        return a


def new_world(root, task="classification", columns=None, **rules):
    keys = {name: KeyPair.generate() for name in ("a", "b", "analyst", "stranger")}
    if columns is None:
        columns = [Column(name=name, kind="number", minimum=0.0, maximum=100.0) for name in NAMES[:3]]
        columns.append(Column(name="ward", kind="category", categories=("north", "south")))
    project = Project(
        name="wards",
        purpose="Tests.",
        columns=tuple(columns),
        task=TASKS[task],
        owner=keys["a"].public,
        analyst=keys["analyst"].public,
        parties={name: keys[name].public for name in ("a", "b")},
        **{"max_components": 4, "anchor": AnchorRecipe(method="uniform", n_rows=60, source="none")} | rules,
    )
    most = np.concatenate([[column.maximum or 1.0] * column.n_features for column in columns])
    least = np.concatenate([[column.minimum or 0.0] * column.n_features for column in columns])
    rows = np.random.default_rng(99).uniform(least, most, size=(60, project.n_features))
    return World(root=root, project=project, keys=keys, anchor=Anchor(rows=rows), task=task)
