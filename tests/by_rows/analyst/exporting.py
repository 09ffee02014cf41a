"""What `killing.py` does and checks at the analyst: integrating and exporting."""

from sklearn.ensemble import RandomForestClassifier

import datacollab as dc
from datacollab.bundle import unpack
from datacollab.folder.log import AuditLog
from datacollab.steps.analyst import AnalystFolder

FOREST = RandomForestClassifier(n_estimators=5, max_depth=4, random_state=0)


def act(folder):
    opened = AnalystFolder(folder)
    opened.integrate(dc.LTI(6), FOREST, n_folds=None)
    opened.export()


def check(folder):
    """Whatever lies there is whole, signed, and made of one integration of the shares that are there."""
    opened = AnalystFolder(folder)
    shares = {each.party: each.digest for each in opened.shares()}
    for file in (folder / "outbox").glob("*.dcmodel"):
        bundle = unpack(file, signed_by=opened.project.analyst)
        assert bundle.facts["share_digest"] == shares[file.stem]
        assert (bundle.facts["party"], list(bundle.members)) == (file.stem, ["sealed.bin"])
    AuditLog(folder / "log.jsonl").verify()
    assert len(list(folder.glob(".export-*"))) <= 1
    visible = {file.name for file in folder.iterdir() if not file.name.startswith(".")}
    assert visible <= {
        "keys.json",
        "public.key",
        "project.toml",
        "shares",
        "outbox",
        "collaboration.dcstate",
        "log.jsonl",
    }
