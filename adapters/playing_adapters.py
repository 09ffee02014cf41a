"""One small exchange, carried by a framework and once more by copying files: what adapters' tests play."""

import shutil
from collections.abc import Callable
from pathlib import Path

from sklearn.linear_model import LogisticRegression

from datacollab import LTI
from datacollab.steps.analyst import AnalystFolder
from datacollab.steps.party import PartyFolder
from party_world import World, allow_without_audit, new_world

PARTIES = ("a", "b")
PROJECT, ANCHOR = "project.toml", "anchor.dcanchor"


def prepare(root: Path) -> World:
    """Party a owns the project; b and the analyst have keys, and nothing else."""
    world = new_world(root, seal_shares=True)
    owners = PartyFolder.join(root / "a", root / PROJECT, root / ANCHOR)
    shutil.copy(root / ANCHOR, owners.path / ANCHOR)
    allow_without_audit(owners.path / "policy.toml")
    return world


def play(world: World, carry: Callable[[], None]) -> None:
    """Three rounds that `carry` brings about: what is agreed, shares, models; then predictions are compared."""
    root = world.root
    carry()
    other = root / "b"
    folder = PartyFolder.join(other, other / "inbox" / PROJECT, other / "inbox" / ANCHOR)
    allow_without_audit(folder.path / "policy.toml")
    AnalystFolder.init(root / "analyst", root / "analyst" / "inbox" / PROJECT)
    for name in PARTIES:
        world.share(PartyFolder(root / name))
    # From here on twice: the maps behind shares are secret, and drawn once.
    copies = root / "by-files"
    for name in (*PARTIES, "analyst"):
        shutil.copytree(root / name, copies / name)

    carry()
    for name in PARTIES:
        came = root / "analyst" / "inbox" / f"{name}.dcshare"
        assert came.read_bytes() == (root / name / "outbox" / f"{name}.dcshare").read_bytes()
        copy(copies / name / "outbox" / f"{name}.dcshare", copies / "analyst" / "inbox")
    for place in (root, copies):
        integrate(place / "analyst")

    carry()
    for name in PARTIES:
        came = root / name / "inbox" / f"{name}.dcmodel"
        assert came.read_bytes() == (root / "analyst" / "outbox" / f"{name}.dcmodel").read_bytes()
        copy(copies / "analyst" / "outbox" / f"{name}.dcmodel", copies / name / "inbox")
        by_framework, by_files = (predict(place / name, root / "new.csv") for place in (root, copies))
        assert by_framework == by_files
        assert len(by_framework.splitlines()) == 81


def integrate(path: Path) -> None:
    """The analyst's part."""
    folder = AnalystFolder(path)
    folder.add(sorted((path / "inbox").glob("*.dcshare")))
    folder.integrate(LTI(3), LogisticRegression(), n_folds=None, random_state=0)
    folder.export()


def predict(path: Path, table: Path) -> bytes:
    """A party's part: its predictions, as they were written."""
    folder = PartyFolder(path)
    folder.install(path / "inbox" / f"{folder.name}.dcmodel", random_state=0)
    folder.predict(table, path / "predictions.csv")
    return (path / "predictions.csv").read_bytes()


def copy(file: Path, target: Path) -> None:
    """As by a memory stick."""
    target.mkdir(exist_ok=True)
    shutil.copy(file, target)
