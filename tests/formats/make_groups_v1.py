"""Writes the files in groups_v1/.  It was run once, with version 1 of the formats between groups.

A later version must read these files as they are: when a format changes, add groups_v2/ and leave groups_v1/ alone.
"""

import json
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression

from datacollab import KTI, LTI, GeometricGraph, Share
from datacollab.analyst import Centre, GroupAnalyst
from datacollab.bundle import KeyPair

FOLDER = Path(__file__).with_name("groups_v1")


def main() -> None:
    generator = np.random.default_rng(6)
    key = KeyPair.generate()
    y = np.array(["no", "yes"] * 6)
    shares = [
        Share(
            party=name,
            representation=generator.normal(size=(12, 3)),
            anchor_representation=generator.normal(size=(8, 3)),
            target=y,
        )
        for name in ("a", "b")
    ]
    anchors = {share.party: share.anchor_representation for share in shares}
    linear = GroupAnalyst("south", LTI(2, fit_intercept=True), LogisticRegression())
    kernel = GroupAnalyst("north", KTI(2, graph=GeometricGraph(2)), LogisticRegression())
    linear.message(shares).save(FOLDER / "linear.dcgroup", key=key)
    message = kernel.message(shares)
    message.save(FOLDER / "kernel.dcgroup", key=key)
    target = Centre().target([message])
    target.save(FOLDER / "target.dcgroup", key=key)
    kernel.moments(kernel.finish(target)).save(FOLDER / "moments.dcgroup", key=key)
    expected = {
        "signer": key.public.text,
        "anchors": {party: A.tolist() for party, A in anchors.items()},
        "gammas": KTI(2).fit(anchors).gammas_,
        "target": KTI(2, graph=GeometricGraph(2)).fit(anchors).target_.tolist(),
        "classes": ["no", "yes"],
    }
    (FOLDER / "expected.json").write_text(json.dumps(expected, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
