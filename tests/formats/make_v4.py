"""Writes the files in v4/.  It was run once, with version 4 of the model's format, and is kept to say what they are.

A later version must read these files as they are: when the format changes, add v5/ and leave v4/ alone.
"""

import json
from pathlib import Path

import numpy as np
from sklearn.linear_model import Ridge

from datacollab.bundle import KeyPair
from datacollab.model import LinearMap, PartyModel

FOLDER = Path(__file__).with_name("v4")


def main() -> None:
    generator = np.random.default_rng(4)
    key = KeyPair.generate()
    X = generator.normal(size=(60, 3))
    g = LinearMap("north", generator.normal(size=(3, 2)), generator.normal(size=2))
    model = PartyModel(party="north", integration_function=g, estimator=Ridge().fit(g(X), X[:, 0]))
    model.save(FOLDER / "affine.dcmodel", key=key)
    rows = generator.normal(size=(6, 3))
    expected = {"signer": key.public.text, "rows": rows.tolist(), "predicted": model.predict(rows).tolist()}
    (FOLDER / "expected.json").write_text(json.dumps(expected, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
