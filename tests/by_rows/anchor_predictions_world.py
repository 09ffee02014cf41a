"""What the analyst would send to a party in place of a model."""

from sklearn.linear_model import LinearRegression, LogisticRegression

import datacollab as dc
from datacollab.agreement import Anchor
from datacollab.bundle import pack, seal
from datacollab.model import PREDICTIONS_KIND, predictions_contents
from datacollab.table import encode_table
from party_world import made_up_table, new_world


def world_of(root, task="classification", **rules):
    """Two parties, and an anchor of rows like theirs."""
    world = new_world(root, task=task, **rules)
    rows = encode_table(world.project, made_up_table(60, seed=5, task=task), where="anchor").X
    world.anchor = Anchor(rows=rows)
    world.write_project(world.project)
    return world


def predictions_file(
    world, *folders, party="a", signer="analyst", sealed_to=None, change=None, project=None, bare=False, **facts
):
    """What the analyst would send to a party, and the collaboration that it is of."""
    opened = [world.open_share(folder) for folder in folders]
    estimator = LogisticRegression() if world.task == "classification" else LinearRegression()
    collaboration = dc.Analyst(dc.LTI(3), estimator).fit([share for share, _ in opened])
    answers = collaboration.anchor_predictions(party)
    inner, members = predictions_contents(answers if change is None else change(answers))
    told = {name: inner[name] for name in ("task", "n_anchors", "created", "versions")} | {"party": party}
    told |= {"project_digest": world.project.digest, "share_digest": opened[0][1].digest, "n_rows": 160, "n_parties": 2}
    recipient, purpose = world.keys[sealed_to or party], f"answers for {party} in {world.project.digest}"
    sealed = seal(pack(PREDICTIONS_KIND, inner, members), [recipient.public], purpose=purpose)
    path = world.root / f"{party}.dcanswers"
    held = members if bare else {"sealed.bin": sealed}
    path.write_bytes(pack(PREDICTIONS_KIND, told | facts, held, key=world.keys.get(signer)))
    return path
