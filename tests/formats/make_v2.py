"""Writes the files in v2/.  It was run once, with version 2 of the formats, and is kept to say what they are.

A later version must read these files as they are: when a format changes, add v3/ and leave v2/ alone.
"""

import json
from pathlib import Path

import numpy as np
import sklearn

from datacollab import Share
from datacollab.bundle import KeyPair
from datacollab.model import (
    CalibratedForestClassifier,
    LandmarkRidgeClassifier,
    LandmarkRidgeRegressor,
    LinearMap,
    PartyModel,
)

FOLDER = Path(__file__).with_name("v2")


def main() -> None:
    generator = np.random.default_rng(2)
    key = KeyPair.generate()
    X, A = generator.normal(size=(40, 3)), generator.normal(size=(12, 3))
    names = np.where(X[:, 0] > 0, "high", np.where(X[:, 1] > 0, "middle", "low"))
    g = LinearMap("north", generator.normal(size=(3, 2)))
    estimators = {
        "ridge": LandmarkRidgeClassifier(g(A), gamma=0.5).fit(g(X), names),
        "numbers": LandmarkRidgeRegressor(kernel="linear").fit(g(X), X[:, 0]),
        "forest": CalibratedForestClassifier(5, random_state=0).fit(g(X), names.astype(object)),
    }
    besides = {
        "ridge": {"left_out": estimators["ridge"].predict_proba(g(X[:5]))},
        "numbers": {"left_out": X[:5, 0]},
        "forest": {"without_party": LandmarkRidgeClassifier(kernel="linear").fit(g(X[20:]), names[20:])},
    }
    rows = generator.normal(size=(6, 3))
    expected = {"signer": key.public.text, "sklearn": sklearn.__version__, "rows": rows.tolist(), "models": {}}
    for name, estimator in estimators.items():
        model = PartyModel(party="north", integration_function=g, estimator=estimator, **besides[name])
        model.save(FOLDER / f"{name}.dcmodel", key=key)
        without = model.without_party
        expected["models"][name] = {
            "predicted": model.predict(rows).tolist(),
            "probabilities": model.predict_proba(rows).tolist() if name != "numbers" else None,
            "left_out": None if model.left_out is None else model.left_out.tolist(),
            "without_party": None if without is None else without.predict(model.transform(rows)).tolist(),
        }
    share = Share(
        party="north",
        representation=A[[3, 0, 0]] + 0.5,
        anchor_representation=A,
        target=names[:3],
        anchor_target=names[:12],
        one_to_one=False,
        anchor_rows=[3, 0, 0],
    )
    share.save(FOLDER / "moved.dcshare", key=key)
    fields = ("representation", "anchor_representation", "target", "anchor_target", "anchor_rows")
    expected["share"] = {field: getattr(share, field).tolist() for field in fields}
    (FOLDER / "expected.json").write_text(json.dumps(expected, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
